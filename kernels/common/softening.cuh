// The kernels that replace 1/r, in the forms of fmm-core's `kernel/radial.rs`. `force` gives
// -q K'/r from r^2; `both` adds the potential q K and leaves the force its bits. `second` gives
// g = -K'/r and h = -g'/r. SINGULAR kernels are infinite at distance zero.
#pragma once
#include "common/real.cuh"

// s^3, and 3 s^5 in `h`.
template <typename Real> __device__ inline Real cubed(Real s, Real &h) {
  const Real s2 = s * s, cube = s2 * s;
  h = Real(3) * (cube * s2);
  return cube;
}

// 1/r.
template <typename Real> struct Newton {
  static constexpr bool SINGULAR = true;
  __device__ explicit Newton(double) {}
  __device__ Real raise() const { return TINY<Real>; }
  __device__ Real force(Real q, Real r2) const { return over_cube(q, r2); }
  __device__ Real both(Real q, Real r2, Real &potential) const {
    const Real g = over_cube(q, r2, potential);
    // Bodies at one place.
    if (r2 < Real(2) * TINY<Real>) potential = 0;
    return g;
  }
  __device__ Real second(Real r2, Real &h) const { return cubed(inverse_sqrt(r2), h); }
};

// (r^2 + e^2)^(-1/2): r^2 is raised by e^2.
template <typename Real> struct Plummer {
  static constexpr bool SINGULAR = false;
  Real e2;
  __device__ explicit Plummer(double e) : e2(Real(e) * Real(e)) {}
  __device__ Real raise() const { return e2 > TINY<Real> ? e2 : TINY<Real>; }
  __device__ Real force(Real q, Real r2) const { return over_cube(q, r2); }
  __device__ Real both(Real q, Real r2, Real &potential) const {
    return over_cube(q, r2, potential);
  }
  __device__ Real second(Real r2, Real &h) const { return cubed(inverse_sqrt(r2), h); }
};

// (r^2 + 3/2 e^2) (r^2 + e^2)^(-3/2): with s = (r^2 + e^2)^(-1/2), K = s (1 + e^2 s^2 / 2), -K'/r = s^3 (1 + 3/2 e^2 s^2).
template <typename Real> struct P1 {
  static constexpr bool SINGULAR = false;
  Real e2;
  __device__ explicit P1(double e) : e2(Real(e) * Real(e)) {}
  __device__ Real raise() const { return e2 > TINY<Real> ? e2 : TINY<Real>; }
  __device__ Real force(Real q, Real r2) const {
    Real potential;
    return both(q, r2, potential);
  }
  __device__ Real both(Real q, Real r2, Real &potential) const {
    const Real s = inverse_sqrt(r2), s2 = s * s, es2 = e2 * s2, qs = q * s;
    potential = qs * fused(es2, Real(0.5), Real(1));
    return (qs * s2) * fused(es2, Real(1.5), Real(1));
  }
  // g = s^3 (1 + 3/2 e^2 s^2), h = 3 s^5 (1 + 5/2 e^2 s^2).
  __device__ Real second(Real r2, Real &h) const {
    const Real s = inverse_sqrt(r2), es2 = e2 * (s * s), g = cubed(s, h);
    h *= fused(es2, Real(2.5), Real(1));
    return g * fused(es2, Real(1.5), Real(1));
  }
};

// GADGET's cubic spline: 1/r beyond h.
template <typename Real> struct Spline {
  static constexpr bool SINGULAR = false;
  Real h2, scale;
  __device__ explicit Spline(double h) : h2(Real(h) * Real(h)), scale(Real(1.0 / h)) {}
  __device__ Real raise() const { return TINY<Real>; }
  __device__ Real force(Real q, Real r2) const {
    Real potential;
    return both(q, r2, potential);
  }
  __device__ Real both(Real q, Real r2, Real &potential) const {
    const Real s = inverse_sqrt(r2);
    Real w = s, g = s * s * s;
    if (r2 < h2) {
      const Real u = r2 * s * scale, u2 = u * u;
      if (u < Real(0.5)) {
        w = fused(u2, fused(u2, fused(u, Real(-32.0 / 5), Real(48.0 / 5)), Real(-16.0 / 3)), Real(14.0 / 5));
        g = fused(u2, fused(u, Real(32), Real(-192.0 / 5)), Real(32.0 / 3));
      } else {
        const Real inverse = Real(1) / u;
        w = fused(u2, fused(u, fused(u, fused(u, Real(32.0 / 15), Real(-48.0 / 5)), Real(16)), Real(-32.0 / 3)), Real(16.0 / 5));
        w = fused(inverse, Real(-1.0 / 15), w);
        g = fused(u, fused(u, fused(u, Real(-32.0 / 3), Real(192.0 / 5)), Real(-48)), Real(64.0 / 3));
        g = fused(inverse * inverse * inverse, Real(-1.0 / 15), g);
      }
      w *= scale;
      g *= scale * scale * scale;
    }
    potential = q * w;
    return q * g;
  }
  __device__ Real second(Real r2, Real &h) const {
    const Real s = inverse_sqrt(r2), u = r2 * s * scale, scale2 = scale * scale;
    Real g = cubed(s, h);
    if (r2 < h2) {
      g = force(Real(1), r2);
      if (u < Real(0.5)) {
        h = fused(u, Real(-96), Real(384.0 / 5));
      } else {
        const Real inverse = Real(1) / u, inverse2 = inverse * inverse;
        h = fused(inverse, Real(48), fused(u, Real(32), Real(-384.0 / 5)));
        h = fused(inverse2 * inverse2 * inverse, Real(-1.0 / 5), h);
      }
      h *= scale2 * scale2 * scale;
    }
    return g;
  }
};

// exp(-r/length)/r.
template <typename Real> struct Yukawa {
  static constexpr bool SINGULAR = true;
  Real kappa;
  __device__ explicit Yukawa(double length) : kappa(Real(1.0 / length)) {}
  __device__ Real raise() const { return TINY<Real>; }
  __device__ Real force(Real q, Real r2) const {
    Real potential;
    return both(q, r2, potential);
  }
  __device__ Real both(Real q, Real r2, Real &potential) const {
    const Real s = inverse_sqrt(r2), x = kappa * (r2 * s);
    const Real screened = q * exp(-x) * s;
    // Bodies at one place.
    potential = r2 < Real(2) * TINY<Real> ? Real(0) : screened;
    return fused(x, screened, screened) * (s * s);
  }
  // h = (3 + 3 kappa r + (kappa r)^2) K/r^4.
  __device__ Real second(Real r2, Real &h) const {
    const Real s = inverse_sqrt(r2), s2 = s * s, x = kappa * (r2 * s);
    const Real screened = exp(-x) * s, g = fused(x, screened, screened) * s2;
    h = s2 * fused(Real(3), g, x * x * screened * s2);
    return g;
  }
};

// Does something for each kernel: its name in names of CUDA's kernels, and its type.
#define FOR_EACH_KERNEL(DO) DO(newton, Newton) DO(plummer, Plummer) DO(p1, P1) DO(spline, Spline) DO(yukawa, Yukawa)

// Adds what `q` at the difference `d` contributes: the field, then the potential. Returns the squared distance, raised.
template <typename Real, class Kernel, bool POTENTIAL>
__device__ inline Real meet(const Kernel &kernel, Real dx, Real dy, Real dz, Real q, bool itself, Real *sum) {
  const Real r2 = fused(dx, dx, fused(dy, dy, fused(dz, dz, kernel.raise())));
  Real g;
  if constexpr (POTENTIAL) {
    Real potential;
    g = kernel.both(itself ? Real(0) : q, r2, potential);
    sum[3] += potential;
  } else {
    g = kernel.force(q, r2);
  }
  sum[0] = fused(g, dx, sum[0]);
  sum[1] = fused(g, dy, sum[1]);
  sum[2] = fused(g, dz, sum[2]);
  return r2;
}
