// Kick and drift, and the check that numbers are finite. Compiled without fused multiply-add, so that the bits are the CPU's.
#include "arguments/view.cuh"

extern "C" {
// x += h w y.
__global__ void __launch_bounds__(TILE) advance_f64(StepView v) {
  const uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  const double y = v.weight ? v.weight[i / 3] * v.y[i] : v.y[i];
  v.x[i] += v.h * y;
}

// The first number that is not finite, and how many, in the share of each block.
__global__ void __launch_bounds__(TILE) check_f64(CheckView v) {
  uint64_t first = ~uint64_t(0), count = 0;
  for (uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += uint64_t(gridDim.x) * TILE)
    if (!isfinite(v.x[i])) {
      if (first == ~uint64_t(0)) first = i;
      count++;
    }
  __shared__ uint64_t firsts[TILE], counts[TILE];
  firsts[threadIdx.x] = first;
  counts[threadIdx.x] = count;
  for (unsigned half = TILE / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    firsts[threadIdx.x] = min(firsts[threadIdx.x], firsts[threadIdx.x + half]);
    counts[threadIdx.x] += counts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) {
    v.first[blockIdx.x] = firsts[0];
    v.count[blockIdx.x] = counts[0];
  }
}
}
