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

// What is known of the numbers in the share of each block.
__global__ void __launch_bounds__(TILE) numbers_f64(NumbersView v) {
  NumbersShare own = {~uint64_t(0), 0, 0, 0, 0, INFINITY, 0, 0};
  for (uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += uint64_t(gridDim.x) * TILE) {
    const double x = v.x[i], size = fabs(x);
    if (!isfinite(x)) {
      own.first = min(own.first, i);
      own.bad++;
      continue;
    }
    own.plus += x > 0;
    own.minus += x < 0;
    own.largest = fmax(own.largest, size);
    if (size > 0) own.smallest = fmin(own.smallest, size);
    own.sum += x;
    own.magnitude += size;
  }
  __shared__ NumbersShare all[TILE];
  all[threadIdx.x] = own;
  for (unsigned half = TILE / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    NumbersShare &to = all[threadIdx.x];
    const NumbersShare &from = all[threadIdx.x + half];
    to.first = min(to.first, from.first);
    to.bad += from.bad;
    to.plus += from.plus;
    to.minus += from.minus;
    to.largest = fmax(to.largest, from.largest);
    to.smallest = fmin(to.smallest, from.smallest);
    to.sum += from.sum;
    to.magnitude += from.magnitude;
  }
  if (threadIdx.x == 0) v.share[blockIdx.x] = all[0];
}
}
