// What the kernels of the plane have in common.
#pragma once
#include "arguments/planar.cuh"

typedef double2 Complex;

__device__ inline Complex times(Complex a, Complex b) { return {fma(-a.y, b.y, a.x * b.x), fma(a.y, b.x, a.x * b.y)}; }

// A run of points.
struct Segment {
  uint32_t start, count;
};

// One half of a segment.
__device__ inline Segment half_of(Segment s, bool second) {
  const uint32_t left = s.count / 2;
  return second ? Segment{s.start + left, s.count - left} : Segment{s.start, left};
}

// Part `index` of n points that were halved `depth` times.
__device__ inline Segment part_of(uint32_t n, unsigned depth, uint32_t index) {
  Segment s = {0, n};
  for (unsigned d = depth; d-- > 0;) s = half_of(s, index >> d & 1);
  return s;
}

// Down to the part at `depth` that holds the point at place p, from one `at` halvings deep.
__device__ inline void descend(Segment &s, uint32_t &index, unsigned at, unsigned depth, uint32_t p) {
  for (; at < depth; at++) {
    const bool second = p - s.start >= s.count / 2;
    s = half_of(s, second);
    index = 2 * index + second;
  }
}

// Boxes before those of a level.
__host__ __device__ inline uint32_t first_of(unsigned level) { return ((uint64_t(1) << (2 * level)) - 1) / 3; }

// The leaf of the point at place p.
__device__ inline uint32_t leaf_of(const BoxesView &t, uint32_t p) {
  Segment s = {0, t.n};
  uint32_t index = 0;
  descend(s, index, 0, 2 * t.levels, p);
  return first_of(t.levels) + index;
}

// 2^e for exponents of normal numbers.
__device__ inline double power_of_two(int e) { return __longlong_as_double((long long)(e + 1023) << 52); }

// The exponent of the power of two at or above x >= 0, within the normal numbers.
__device__ inline int exponent_above(double x) {
  const int e = max(-1000, min(1000, int(uint64_t(__double_as_longlong(x)) >> 52) - 1023));
  return power_of_two(e) < x ? e + 1 : e;
}
