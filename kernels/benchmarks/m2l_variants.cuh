// What the variants of M2L after Kohnke et al. have in common. Complex coefficients A_l^m with m >= 0 at l(l+1)/2 + m.
#pragma once
#include "arguments/m2l_variants.cuh"

template <typename Real> struct Complex;
template <> struct Complex<float> { using Type = float2; };
template <> struct Complex<double> { using Type = double2; };

__device__ inline float flipped(float x, unsigned negative) { return __uint_as_float(__float_as_uint(x) ^ negative << 31); }
__device__ inline double flipped(double x, unsigned negative) {
  return __hiloint2double(__double2hiint(x) ^ int(negative << 31), __double2loint(x));
}
__device__ inline unsigned at(unsigned l, unsigned m) { return l * (l + 1) / 2 + m; }

// The cell at an offset from another, around the edges.
__device__ inline uint32_t around(const M2lVariantsView &v, uint32_t cell, int dx, int dy, int dz) {
  const int side = v.side, x = cell % side, y = cell / side % side, z = cell / (side * side);
  const auto wrap = [&](int c) { return c < 0 ? c + side : c >= side ? c - side : c; };
  return (wrap(z + dz) * side + wrap(y + dy)) * side + wrap(x + dx);
}
__device__ inline unsigned octant(const M2lVariantsView &v, uint32_t cell) {
  return cell % v.side % 2 | (cell / v.side % v.side % 2) << 1 | (cell / (v.side * v.side) % 2) << 2;
}

// l and m of a place.
__device__ inline void degree_of(unsigned place, unsigned &l, unsigned &m) {
  l = unsigned((sqrtf(8.0f * float(place) + 1.0f) - 1.0f) * 0.5f);
  while (at(l, 0) > place) l--;
  while (at(l + 1, 0) <= place) l++;
  m = place - at(l, 0);
}

// Adds (-1)^j conj(M_j^k) I_{l+j}^{m+k} for both signs of k, with what the operator's signs are.
template <typename Real, class C, class Signs>
__device__ inline void both(unsigned l, int m, unsigned j, int k, const C &source, const C *op, Signs signs, C &sum) {
  const auto one = [&](int q, Real re, Real im) {
    const int order = m + q;
    const unsigned n = l + j, size = order < 0 ? -order : order, odd = order < 0 && (order & 1);
    const C value = op[at(n, size)];
    unsigned flip_re, flip_im;
    signs(n, size, flip_re, flip_im);
    // A_l^-m = (-1)^m conj(A_l^m).
    const Real a = flipped(value.x, flip_re ^ odd), b = flipped(value.y, flip_im ^ odd ^ (order < 0));
    sum.x += re * a - im * b;
    sum.y += re * b + im * a;
  };
  const unsigned negative = j & 1;
  one(k, flipped(source.x, negative), flipped(source.y, negative ^ 1));
  if (k > 0) one(-k, flipped(source.x, negative ^ (k & 1)), flipped(source.y, negative ^ (k & 1)));
}
