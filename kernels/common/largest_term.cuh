// The largest term of a field.
#pragma once
#include "arguments/view.cuh"

// The square of the largest term of the field at a body, of the bodies from `begin` up to `end` that are farther away
// than the softening reaches.
__device__ inline double largest_term(const Body &b, const Body *bodies, uint32_t begin, uint32_t end, double reach2) {
  double largest = 0;
  for (uint32_t i = begin; i < end; i++) {
    const Body other = bodies[i];
    const double x = b.x - other.x, y = b.y - other.y, z = b.z - other.z, r2 = x * x + y * y + z * z;
    const double term = other.q / r2;
    if (r2 > reach2) largest = fmax(largest, term * term);
  }
  return largest;
}
