// The two precisions.
#pragma once

// Squared distances are raised by this much, so that a pair at distance zero has a finite force factor; times its
// difference of zero it contributes nothing.
template <typename Real> __device__ constexpr Real TINY;
template <> __device__ constexpr float TINY<float> = 1e-25f;
template <> __device__ constexpr double TINY<double> = 1e-200;

__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return fma(a, b, c); }

// 1/sqrt(x): the unit's own result in single precision (relative error below 2^-22.9), a seed of some 20 bits in double.
__device__ inline float rsqrt_seed(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline double rsqrt_seed(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}

// 1/sqrt(x) to about the last digit. With y the seed and h = 1 - x y^2: x^(-1/2) = y (1 - h)^(-1/2) = y (1 + h/2 + 3/8 h^2 + ...).
__device__ inline float inverse_sqrt(float x) { return rsqrt_seed(x); }
__device__ inline double inverse_sqrt(double x) {
  const double y = rsqrt_seed(x);
  const double h = fma(-x, y * y, 1.0);
  return fma(y * h, fma(h, 0.375, 0.5), y);
}

// q x^(-3/2) to about the last digit: q y^3 (1 + 3/2 h + 15/8 h^2 + ...).
__device__ inline float over_cube(float q, float x) {
  const float y = rsqrt_seed(x);
  return (q * y) * (y * y);
}
__device__ inline double over_cube(double q, double x) {
  const double y = rsqrt_seed(x);
  const double y2 = y * y;
  const double h = fma(-x, y2, 1.0);
  const double g = (q * y) * y2;
  return fma(g * h, fma(h, 1.875, 1.5), g);
}

// The same, and q x^(-1/2) in `root`.
__device__ inline float over_cube(float q, float x, float &root) {
  const float y = rsqrt_seed(x);
  root = q * y;
  return root * (y * y);
}
__device__ inline double over_cube(double q, double x, double &root) {
  const double y = rsqrt_seed(x);
  const double y2 = y * y;
  const double h = fma(-x, y2, 1.0);
  const double qy = q * y;
  root = fma(qy * h, fma(h, 0.375, 0.5), qy);
  const double g = qy * y2;
  return fma(g * h, fma(h, 1.875, 1.5), g);
}
