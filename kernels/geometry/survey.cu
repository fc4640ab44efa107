// How a sample of the bodies lies: fmm-core's `Spread`, with the same numbers. Compiled without fused multiply-add.
#include "arguments/geometry.cuh"
#include <cmath>

extern "C" {
// The sample, its bounds (a share for each block) and how many of it lie in each bin.
__global__ void __launch_bounds__(THREADS) survey_sample(SurveyView v) {
  __shared__ double bounds[6][THREADS];
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < v.count; i += gridDim.x * THREADS) {
    unsigned bin = 0;
    for (int d = 0; d < 3; d++) {
      const double x = v.position[3 * (i * v.step) + d];
      v.sample[3 * size_t(i) + d] = x;
      low[d] = fmin(low[d], x);
      high[d] = fmax(high[d], x);
      const double place = (x - v.corner[d]) / v.side * double(DIVISIONS);
      bin = bin * DIVISIONS + unsigned(fmin(fmax(place, 0.0), DIVISIONS - 1.0));
    }
    atomicAdd(&v.bins[bin], 1u);
  }
  for (int d = 0; d < 3; d++) {
    bounds[d][threadIdx.x] = low[d];
    bounds[3 + d][threadIdx.x] = high[d];
  }
  for (unsigned half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    for (int d = 0; d < 3; d++) {
      bounds[d][threadIdx.x] = fmin(bounds[d][threadIdx.x], bounds[d][threadIdx.x + half]);
      bounds[3 + d][threadIdx.x] = fmax(bounds[3 + d][threadIdx.x], bounds[3 + d][threadIdx.x + half]);
    }
  }
  __syncthreads();
  if (threadIdx.x < 6) v.bounds[6 * size_t(blockIdx.x) + threadIdx.x] = bounds[threadIdx.x][0];
}

// The pairs in bins, and the bounds of all shares. One block.
__global__ void __launch_bounds__(THREADS) survey_join(SurveyView v) {
  uint64_t pairs = 0;
  for (unsigned i = threadIdx.x; i < DIVISIONS * DIVISIONS * DIVISIONS; i += THREADS) {
    const uint64_t b = v.bins[i];
    pairs += b > 0 ? b * (b - 1) : 0;
  }
  if (pairs) atomicAdd(reinterpret_cast<unsigned long long *>(v.found), (unsigned long long)(pairs));
  if (threadIdx.x >= 6) return;
  double bound = v.bounds[threadIdx.x];
  for (unsigned b = 1; b < v.blocks; b++) {
    const double other = v.bounds[6 * size_t(b) + threadIdx.x];
    bound = threadIdx.x < 3 ? fmin(bound, other) : fmax(bound, other);
  }
  v.found[FOUND_BOUNDS + threadIdx.x] = uint64_t(__double_as_longlong(bound));
}

// Pairs of neighbours in the order of keys, by the level of the smallest cell that they share.
__global__ void __launch_bounds__(THREADS) survey_levels(SurveyView v) {
  __shared__ uint32_t levels[KEY_LEVELS + 1];
  if (threadIdx.x <= KEY_LEVELS) levels[threadIdx.x] = 0;
  __syncthreads();
  for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i + v.apart < v.count; i += gridDim.x * THREADS) {
    const uint64_t differ = v.key[i] ^ v.key[i + v.apart];
    atomicAdd(&levels[(__clzll(differ) - (64 - 3 * KEY_LEVELS)) / 3], 1u);
  }
  __syncthreads();
  if (threadIdx.x <= KEY_LEVELS && levels[threadIdx.x])
    atomicAdd(reinterpret_cast<unsigned long long *>(v.found + FOUND_LEVELS + threadIdx.x),
              (unsigned long long)(levels[threadIdx.x]));
}
}
