// The points and cells of a mesh over a box.
#pragma once
#include "arguments/mesh.cuh"

// The place of a coordinate among the points of an axis. One rounding, and no fused one: all kernels find the same.
__device__ inline double place_of(const Lattice &l, double x, int axis) { return __dmul_rn(x, l.per_length[axis]); }

__device__ inline unsigned cell_along(const Lattice &l, double x, int axis) {
  return min(unsigned(place_of(l, x, axis)), l.points[axis] - 1) / l.group[axis];
}

// The index of a cell or point that may be around a narrow box a few times. A division would cost more.
__device__ inline unsigned wrapped(int i, unsigned count) {
  i += i < 0 ? count : 0;
  i -= i >= int(count) ? count : 0;
  while (i < 0) i += count;
  while (i >= int(count)) i -= count;
  return i;
}

__device__ inline int floor_over(int i, int by) { return i >= 0 ? i / by : -((by - 1 - i) / by); }

// The first point of a window of P points around a place, and how far it is beyond the window's lower end: 0 to 1 spacings.
__device__ inline unsigned first_point(double place, unsigned points, unsigned count, double &beyond) {
  const double low = __dadd_rn(place, -0.5 * points), first = ceil(low);
  beyond = first - low;
  return wrapped(int(first), count);
}
