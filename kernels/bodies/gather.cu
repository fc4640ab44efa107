// Bodies to the order of a tree, and sums back to the caller's. Compiled without fused multiply-add.
#include "arguments/view.cuh"

// The slice of the caller's order that a target belongs to.
__device__ inline unsigned slice_of(const ParcelView &v, uint32_t index) {
  unsigned slice = 0;
  while (slice + 1 < v.members && v.slices[slice + 1] <= index) slice++;
  return slice;
}

// The body of this index in the caller's order.
template <class View> __device__ inline Body body_of(const View &v, size_t from) {
  Body b;
  b.x = v.position[3 * from];
  b.y = v.position[3 * from + 1];
  b.z = v.position[3 * from + 2];
  b.q = v.strength ? v.strength[from] * v.strength_scale : 0;
  return b;
}

// A sum to its place in the caller's order.
template <class View> __device__ inline void put(const View &v, size_t to, const Sum &s) {
  const double unscale = 1 / v.strength_scale;
  if (v.field) {
    v.field[3 * to] = s.x * unscale;
    v.field[3 * to + 1] = s.y * unscale;
    v.field[3 * to + 2] = s.z * unscale;
  }
  if (v.potential) v.potential[to] = s.potential * unscale;
}

// The sum at this sorted place, with more of its potential where there is some.
template <class View> __device__ inline Sum sum_at(const View &v, size_t from) {
  Sum s = v.sums[from];
  if (v.more) s.potential += v.more[from].potential;
  return s;
}

extern "C" {
__global__ void __launch_bounds__(TILE) gather_tree_f64(GatherView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i < v.n) v.bodies[i] = body_of(v, v.order[i]);
}

// Marks the leaves whose bodies are sources of pairs. A thread has a pair.
__global__ void __launch_bounds__(TILE) mark_needed(NeededView v) {
  const uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.pairs_len) return;
  const size_t cell = v.pairs[2 * i];
  if (v.tree.children[2 * cell] == v.tree.children[2 * cell + 1]) {
    v.needed[cell] = 1;
    return;
  }
  // All leaves below the cell: those whose bodies are the cell's.
  const uint32_t begin = v.tree.bodies[2 * cell], end = v.tree.bodies[2 * cell + 1];
  uint32_t low = 0, high = v.leaf_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (v.tree.bodies[2 * size_t(v.leaves[middle])] < begin)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < v.leaf_count && v.tree.bodies[2 * size_t(v.leaves[low])] < end; low++) v.needed[v.leaves[low]] = 1;
}

// The bodies of the leaves that are marked, and of those of this GPU's share, which it marks too. A warp has a leaf.
__global__ void __launch_bounds__(TILE) gather_needed(NeededView v) {
  const uint32_t k = blockIdx.x * (TILE / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (k >= v.leaf_count) return;
  const size_t leaf = v.leaves[k];
  const uint32_t begin = v.tree.bodies[2 * leaf], end = v.tree.bodies[2 * leaf + 1];
  const bool own = begin < v.tree.share[1] && end > v.tree.share[0], more = begin < v.more[1] && end > v.more[0];
  if (!own && !more && !v.needed[leaf]) return;
  if (lane == 0) v.needed[leaf] = 1;
  for (uint32_t i = begin + lane; i < end; i += 32) v.bodies[i] = body_of(v, v.order[i]);
}

// 0, 1, 2, ...
__global__ void __launch_bounds__(TILE) count_up(GatherView v) {
  const uint32_t i = blockIdx.x * TILE + threadIdx.x;
  if (i < v.n) v.inverse[i] = i;
}

// Small enough to stay in the cache, so that its scattered writes are cheap; what is returned by it is written in order.
__global__ void __launch_bounds__(TILE) invert_order(GatherView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i < v.n) v.inverse[v.order[i]] = i;
}

// Adds -1/(4 pi) E x (unit vector of the component): fmm-core's `velocity_of`.
__global__ void __launch_bounds__(TILE) add_velocity_f64(VelocityView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  const double axis = -1 / (4 * 3.14159265358979323846);
  const unsigned a = (v.component + 1) % 3, b = (v.component + 2) % 3;
  v.velocity[3 * i + a] += v.field[3 * i + b] * axis;
  v.velocity[3 * i + b] -= v.field[3 * i + a] * axis;
}

// How many of this GPU's targets belong to each slice.
__global__ void __launch_bounds__(TILE) parcel_count(ParcelView v) {
  __shared__ uint32_t held[TEAM];
  if (threadIdx.x < TEAM) held[threadIdx.x] = 0;
  __syncthreads();
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i < v.count) atomicAdd(held + slice_of(v, v.order[v.first + i]), 1);
  __syncthreads();
  if (threadIdx.x < v.members && held[threadIdx.x] > 0) atomicAdd(v.counts + threadIdx.x, held[threadIdx.x]);
}

// The sums of this GPU's targets, slice by slice, in any order: each says where it belongs.
__global__ void __launch_bounds__(TILE) parcel_fill(ParcelView v) {
  __shared__ uint32_t held[TEAM], base[TEAM];
  if (threadIdx.x < TEAM) held[threadIdx.x] = 0;
  __syncthreads();
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x, from = v.first + i;
  const bool there = i < v.count;
  const uint32_t index = there ? v.order[from] : 0;
  const unsigned slice = slice_of(v, index);
  const uint32_t rank = there ? atomicAdd(held + slice, 1) : 0;
  __syncthreads();
  if (threadIdx.x < v.members && held[threadIdx.x] > 0)
    base[threadIdx.x] = v.starts[threadIdx.x] + atomicAdd(v.counts + threadIdx.x, held[threadIdx.x]);
  __syncthreads();
  if (!there) return;
  v.parcels[base[slice] + rank] = sum_at(v, from);
  v.index[base[slice] + rank] = index;
}

// Sums to their places.
__global__ void __launch_bounds__(TILE) parcel_take(ParcelView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.count) return;
  put(v, v.index[i], v.parcels[i]);
}

__global__ void __launch_bounds__(TILE) return_sums_f64(GatherView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i < v.n) put(v, i, sum_at(v, v.inverse[i]));
}
}
