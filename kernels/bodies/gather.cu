// Bodies to the order of a tree, and sums back to the caller's. Compiled without fused multiply-add.
#include "arguments/view.cuh"

extern "C" {
__global__ void __launch_bounds__(TILE) gather_tree_f64(GatherView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  const size_t from = v.order[i];
  Body b;
  b.x = v.position[3 * from];
  b.y = v.position[3 * from + 1];
  b.z = v.position[3 * from + 2];
  b.q = v.strength ? v.strength[from] * v.strength_scale : 0;
  v.bodies[i] = b;
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

__global__ void __launch_bounds__(TILE) return_sums_f64(GatherView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  const size_t from = v.inverse[i];
  const Sum s = v.sums[from];
  const double unscale = 1 / v.strength_scale;
  if (v.field) {
    v.field[3 * i] = s.x * unscale;
    v.field[3 * i + 1] = s.y * unscale;
    v.field[3 * i + 2] = s.z * unscale;
  }
  if (v.potential) v.potential[i] = (v.more ? s.potential + v.more[from].potential : s.potential) * unscale;
}
}
