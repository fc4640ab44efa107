// Sums over the threads of a warp and of a block, in one order.
#pragma once
#include "arguments/view.cuh"

// The sum over a warp, the same in every lane.
template <typename Real> __device__ inline Real warp_sum(Real x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

// The sums over a block of TILE threads, in the first thread.
template <unsigned COUNT> __device__ inline void block_sums(double *sum) {
  __shared__ double shared[COUNT][TILE / 32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (unsigned k = 0; k < COUNT; k++) {
    sum[k] = warp_sum(sum[k]);
    if (lane == 0) shared[k][warp] = sum[k];
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
#pragma unroll
  for (unsigned k = 0; k < COUNT; k++) {
    sum[k] = 0;
    for (unsigned w = 0; w < TILE / 32; w++) sum[k] += shared[k][w];
  }
}
