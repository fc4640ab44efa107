// Bodies to the order of a tree, and sums back to the caller's. Compiled without fused multiply-add.
#include "view.cuh"

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

__global__ void __launch_bounds__(TILE) scatter_sums_f64(GatherView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  const size_t to = v.order[i];
  const Sum s = v.sums[i];
  const double unscale = 1 / v.strength_scale;
  if (v.field) {
    v.field[3 * to] = s.x * unscale;
    v.field[3 * to + 1] = s.y * unscale;
    v.field[3 * to + 2] = s.z * unscale;
  }
  if (v.potential) v.potential[to] = (v.more ? s.potential + v.more[i].potential : s.potential) * unscale;
}
}
