// A pair of points in the plane in double precision, and what a target collects of its pairs. With d = z - z_j a pair adds f d* Gamma to G:
// f = 1/r^2 for points, which is what blobs differ in.
#pragma once
#include "planar/planar.cuh"

constexpr double EULER = 0.5772156649015329, LN2 = 0.69314718055994530942;
// Squared distances are raised by this much: a pair at distance zero has a finite f, which it multiplies by zero.
constexpr double SMALLEST_SQUARE = 1e-290;

// 1/x to about the last digit, from the unit's estimate of some 20 bits: 1/(1 - e) = 1 + e + e^2 + ...
__device__ inline double inverse(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double e = fma(-x, y, 1.0);
  return fma(y, fma(e, e, e), y);
}

// 1/x and log x for normal x > 0, with one reciprocal for both. x = 2^e m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m - 1)/(m + 1)): an
// odd series in |s| <= 0.1716, of minimal largest error there, as fmm-core's `planar/logarithm.rs` has it.
__device__ inline double inverse_and_log(double x, double &logarithm) {
  const long long bits = __double_as_longlong(x);
  const int e = (int(bits >> 32) - 0x3fe6a09e) >> 20;
  const double m = __longlong_as_double(bits - ((long long)e << 52));
  const double sum = m + 1, both = inverse(x * sum);
  const double s = (m - 1) * (both * x), s2 = s * s;
  double series = 0.06543383504974087;
  series = fma(series, s2, 0.06634379834280306);
  series = fma(series, s2, 0.07693120102906739);
  series = fma(series, s2, 0.09090897815442377);
  series = fma(series, s2, 0.11111111195900235);
  series = fma(series, s2, 0.14285714285401616);
  series = fma(series, s2, 0.2000000000000044);
  series = fma(series, s2, 0.3333333333333333);
  const double half = fma(series * s2, s, s);
  logarithm = fma(double(e), LN2, half + half);
  return both * sum;
}

enum { POINT, ALGEBRAIC, GAUSSIAN };

// log x + E_1(x), entire.
__device__ double smooth_log(double x) {
  if (x <= 1) {
    double term = 1, sum = -EULER;
    for (int k = 1; k <= 20; k++) {
      term *= -x / k;
      sum -= term / k;
    }
    return sum;
  }
  double tail = x + 161;
  for (int k = 80; k >= 1; k--) tail = x + (2 * k - 1) - double(k * k) / tail;
  return log(x) + exp(-x) / tail;
}

// f and, where it is wanted, twice the potential of a unit strength; lengths in units of a sum, `shift` log of its square.
template <int BLOB, bool LOG> __device__ inline double pair(double r2, double core, double shift, double &potential) {
  if (BLOB == POINT) {
    if (!LOG) return inverse(r2);
    const double f = inverse_and_log(r2, potential);
    potential = r2 > SMALLEST_SQUARE ? potential + shift : 0;
    return f;
  }
  if (BLOB == ALGEBRAIC) {
    const double e2 = core * core, sum = r2 + e2;
    const double f = 1.0 / sum, e = e2 * f;
    if (LOG) potential = log(sum) + shift - e;
    return fma(e, f, f);
  }
  const double inverse_square = 0.5 / (core * core), x = r2 * inverse_square;
  if (LOG) potential = x < 40 ? smooth_log(x) - log(inverse_square) + shift : log(r2) + shift;
  return x > 1e-300 ? -expm1(-x) / x * inverse_square : inverse_square;
}

// What a target collects.
template <bool LOG, bool COMPLEX> struct Sums {
  double potential = 0, re = 0, im = 0;

  // The squared force factor of the pair times its squared distance.
  template <int BLOB> __device__ inline double add(double dx, double dy, double q, double qi, double core, double shift) {
    const double r2 = fma(dx, dx, fma(dy, dy, SMALLEST_SQUARE));
    double twice = 0;
    const double f = pair<BLOB, LOG>(r2, core, shift, twice);
    const double fx = f * dx, fy = f * dy;
    // Gamma/d = Gamma (dx - i dy)/r^2
    re = fma(q, fx, re);
    im = fma(-q, fy, im);
    if (COMPLEX) {
      re = fma(qi, fy, re);
      im = fma(qi, fx, im);
    }
    if (LOG) potential = fma(q, twice, potential);
    return fma(fx, fx, fy * fy);
  }
};
