// Morton keys: those of fmm-core's `tree/key.rs`, bit for bit, where multiplications and additions are not fused.
#pragma once
#include <cstdint>

// Bit i of x to bit 3 i.
__device__ inline uint64_t spread(uint64_t x) {
  x &= 0x1fffff;
  x = (x | x << 32) & 0x001f00000000ffff;
  x = (x | x << 16) & 0x001f0000ff0000ff;
  x = (x | x << 8) & 0x100f00f00f00f00f;
  x = (x | x << 4) & 0x10c30c30c30c30c3;
  return (x | x << 2) & 0x1249249249249249;
}

__device__ inline uint64_t morton(const double *x, const double *corner, double side) {
  uint64_t key = 0;
  const double width = side / 2097152.0;
  for (int d = 0; d < 3; d++) {
    const double cell = (x[d] - corner[d]) / side * 2097152.0;
    uint64_t i = uint64_t(fmin(fmax(cell, 0.0), 2097151.0));
    // Rounded up to a face that it lies below.
    if (i > 0 && x[d] < corner[d] + double(i) * width) i--;
    key |= spread(i) << d;
  }
  return key;
}
