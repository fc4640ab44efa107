// Bounds, keys, their sort, and bodies in the order of the keys. Compiled without fused multiply-add: keys are those of
// fmm-core's `tree/key.rs`, bit for bit.
#include "view.cuh"

// Bit i of x to bit 3 i.
__device__ inline uint64_t spread(uint64_t x) {
  x &= 0x1fffff;
  x = (x | x << 32) & 0x001f00000000ffff;
  x = (x | x << 16) & 0x001f0000ff0000ff;
  x = (x | x << 8) & 0x100f00f00f00f00f;
  x = (x | x << 4) & 0x10c30c30c30c30c3;
  return (x | x << 2) & 0x1249249249249249;
}

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

// Elements that a block sorts in shared memory: two for each thread.
constexpr unsigned RUN = 2048;
constexpr unsigned SORTERS = RUN / 2;

__device__ inline bool precedes(uint64_t key, uint32_t index, uint64_t other_key, uint32_t other) {
  return key < other_key || (key == other_key && index < other);
}

// Orders elements i and i + stride: upwards where bit `size` of i is clear.
__device__ inline void exchange(uint64_t *key, uint32_t *index, unsigned i, unsigned j, bool up) {
  if (precedes(key[j], index[j], key[i], index[i]) == up) {
    const uint64_t k = key[i];
    const uint32_t x = index[i];
    key[i] = key[j];
    index[i] = index[j];
    key[j] = k;
    index[j] = x;
  }
}

// The steps of a bitonic sort within one run, from runs of `size` down to the stride 1.
__device__ inline void sort_run(uint64_t *key, uint32_t *index, unsigned begin, unsigned size, unsigned stride) {
  for (; stride > 0; stride /= 2) {
    const unsigned i = 2 * stride * (threadIdx.x / stride) + threadIdx.x % stride;
    exchange(key, index, i, i + stride, ((begin + i) & size) == 0);
    __syncthreads();
  }
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

// Morton keys of 21 bits a coordinate; the largest key pads to a power of two.
__global__ void __launch_bounds__(TILE) keys_f64(OrderView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.padded) return;
  uint64_t key = ~uint64_t(0);
  if (i < v.n) {
    key = 0;
    for (int d = 0; d < 3; d++) {
      const double cell = (v.position[3 * i + d] - v.corner[d]) / v.side * 2097152.0;
      key |= spread(uint64_t(fmin(fmax(cell, 0.0), 2097151.0))) << d;
    }
  }
  v.key[i] = key;
  v.order[i] = uint32_t(i);
}

// Sorts each run of RUN elements by (key, index), upwards and downwards in turn.
__global__ void __launch_bounds__(SORTERS) sort_runs(OrderView v) {
  __shared__ uint64_t key[RUN];
  __shared__ uint32_t index[RUN];
  const unsigned begin = blockIdx.x * RUN;
  for (unsigned i = threadIdx.x; i < RUN; i += SORTERS) {
    key[i] = v.key[begin + i];
    index[i] = v.order[begin + i];
  }
  __syncthreads();
  for (unsigned size = 2; size <= RUN; size *= 2) sort_run(key, index, begin, size, size / 2);
  for (unsigned i = threadIdx.x; i < RUN; i += SORTERS) {
    v.key[begin + i] = key[i];
    v.order[begin + i] = index[i];
  }
}

// One step across runs: the stride is RUN or more.
__global__ void __launch_bounds__(TILE) sort_step(OrderView v) {
  const size_t pair = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (pair >= v.padded / 2) return;
  const size_t i = 2 * size_t(v.stride) * (pair / v.stride) + pair % v.stride;
  exchange(v.key, v.order, i, i + v.stride, (i & v.size) == 0);
}

// The remaining steps of one size, within runs.
__global__ void __launch_bounds__(SORTERS) sort_merge(OrderView v) {
  __shared__ uint64_t key[RUN];
  __shared__ uint32_t index[RUN];
  const unsigned begin = blockIdx.x * RUN;
  for (unsigned i = threadIdx.x; i < RUN; i += SORTERS) {
    key[i] = v.key[begin + i];
    index[i] = v.order[begin + i];
  }
  __syncthreads();
  sort_run(key, index, begin, v.size, RUN / 2);
  for (unsigned i = threadIdx.x; i < RUN; i += SORTERS) {
    v.key[begin + i] = key[i];
    v.order[begin + i] = index[i];
  }
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
