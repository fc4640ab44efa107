// Bounds of positions, and bodies in the order of their keys.
#include "arguments/view.cuh"

// The smallest and largest of the block's numbers, in thread 0. Order does not matter to them.
__device__ inline void block_bounds(Bounds &b) {
  __shared__ Bounds all[TILE];
  all[threadIdx.x] = b;
  for (unsigned half = TILE / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    Bounds &mine = all[threadIdx.x];
    const Bounds &other = all[threadIdx.x + half];
    for (int d = 0; d < 3; d++) {
      mine.low[d] = fmin(mine.low[d], other.low[d]);
      mine.high[d] = fmax(mine.high[d], other.high[d]);
    }
  }
  b = all[threadIdx.x];
}

extern "C" {
// The bounds of the positions, a share for each block.
__global__ void __launch_bounds__(TILE) bounds_f64(OrderView v) {
  Bounds b;
  for (int d = 0; d < 3; d++) {
    b.low[d] = INFINITY;
    b.high[d] = -INFINITY;
  }
  for (size_t i = size_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += size_t(gridDim.x) * TILE)
    for (int d = 0; d < 3; d++) {
      b.low[d] = fmin(b.low[d], v.position[3 * i + d]);
      b.high[d] = fmax(b.high[d], v.position[3 * i + d]);
    }
  block_bounds(b);
  if (threadIdx.x == 0) v.bounds[blockIdx.x] = b;
}

// Bodies in their order and in the units of the sum, and the bounds of each tile.
__global__ void __launch_bounds__(TILE) gather_f64(OrderView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  // Beyond the last body its place is repeated, so that the bounds are those of the bodies.
  const size_t last = min(i, size_t(v.n) - 1);
  const size_t from = v.order ? v.order[last] : last;
  const double *x = v.position + 3 * from;
  const Body body = {x[0] * v.scale, x[1] * v.scale, x[2] * v.scale, v.strength ? v.strength[from] * v.strength_scale : 0};
  if (i < v.n) v.bodies[i] = body;
  if (!v.bounds) return;
  Bounds b = {{body.x, body.y, body.z}, {body.x, body.y, body.z}};
  block_bounds(b);
  if (threadIdx.x == 0) v.bounds[blockIdx.x] = b;
}
}
