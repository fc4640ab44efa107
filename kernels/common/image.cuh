// Images of a periodic box, as fmm-core's `lists/space.rs` numbers them.
#pragma once
#include <cstdint>

// Where the image of this class lies in a box with `sides`; class 0 is the box itself, in open space too, where sides are 0.
__device__ inline void shift_of(uint32_t cls, const double *sides, double *shift) {
  for (int d = 0; d < 3; d++) shift[d] = double(int32_t(cls >> 10 * d << 22) >> 22) * sides[d];
}
