// Bodies in the order of the cells of a mesh. Compiled without fused multiply-add.
#include "mesh/lattice.cuh"

// The first place of a cell, or of the next one that has bodies.
__device__ inline unsigned first_place(const CellsView &v, unsigned cell) {
  unsigned low = 0, high = v.n;
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    if (unsigned(v.key[middle] >> v.shift) < cell) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A thread has a body, and a cell: where most of a box is empty there are many more of these.
template <typename Real> __device__ inline void arrange(const CellsView &v) {
  const unsigned i = blockIdx.x * MESH_TILE + threadIdx.x;
  if (v.start && i <= v.cells) v.start[i] = first_place(v, i);
  if (i >= v.n) return;
  const unsigned cell = unsigned(v.key[i] >> v.shift), body = v.order[i];
  const unsigned at[3] = {cell / (v.lattice.cells[1] * v.lattice.cells[2]), cell / v.lattice.cells[2] % v.lattice.cells[1], cell % v.lattice.cells[2]};
  double x[3];
  Real *near = static_cast<Real *>(v.near) + 4 * size_t(i);
  for (int d = 0; d < 3; d++) {
    x[d] = v.position[3 * size_t(body) + d];
    near[d] = Real(x[d] * v.lattice.scale - at[d] * v.lattice.size[d]);
  }
  const double q = v.strength ? v.strength[body] * v.strength_scale : 0;
  near[3] = Real(q);
  static_cast<Real *>(v.depth)[i] = Real(at[2]);
  v.bodies[i] = Body{x[0], x[1], x[2], q};
  v.cell[i] = cell;
}

extern "C" {
__global__ void __launch_bounds__(MESH_TILE) mesh_arrange_f32(const __grid_constant__ CellsView v) { arrange<float>(v); }
__global__ void __launch_bounds__(MESH_TILE) mesh_arrange_f64(const __grid_constant__ CellsView v) { arrange<double>(v); }

// Pairs at bitwise the same place: they share a cell. An integer, so that the order of the blocks does not matter.
__global__ void __launch_bounds__(MESH_TILE) mesh_coincident(const __grid_constant__ CellsView v) {
  const unsigned i = blockIdx.x * MESH_TILE + threadIdx.x;
  if (i >= v.n) return;
  const Body a = v.bodies[i];
  unsigned found = 0;
  for (unsigned j = i + 1, end = v.start[v.cell[i] + 1]; j < end; j++) {
    const Body b = v.bodies[j];
    found += a.x == b.x && a.y == b.y && a.z == b.z;
  }
  if (found) atomicAdd(reinterpret_cast<unsigned long long *>(v.coincident), static_cast<unsigned long long>(found));
}
}
