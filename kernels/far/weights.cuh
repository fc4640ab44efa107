// The weights of harmonics in the potential of an expansion and its derivatives.
#pragma once
#include "common/tree.cuh"

// A_l^m as Re and Im, zero outside 0 <= m <= l <= p.
template <typename Real> struct Complex {
  Real re, im;
  __device__ Complex(const Real *a, int p, int l, int m) : re(0), im(0) {
    if (m < 0 || m > l || l < 0 || l > p) return;
    const unsigned k = at_harmonic(l, m);
    re = a[k];
    if (m > 0) im = a[k + 1];
  }
};

// The weights of coefficient k of the harmonics in the potential and its derivatives: order m of a degree meets the
// coefficients of orders m, m-1 and m+1 of the next degree (L2P) or the one before (M2P). Negative orders are folded.
template <bool MULTIPOLE, typename Real>
__device__ inline void weigh(const Real *a, int p, unsigned k, Real *weight) {
  int l = int(sqrtf(float(k) + 0.5f));
  const int within = int(k) - l * l, m = (within + 1) / 2;
  const int next = MULTIPOLE ? l - 1 : l + 1;
  const Complex<Real> here(a, p, l, m), middle(a, p, next, m), below(a, p, next, m - 1), above(a, p, next, m + 1);
  const Real fold = m == 0 ? 1 : 2, z = MULTIPOLE ? -fold : fold;
  if (m == 0) {
    weight[0] = here.re;
    weight[1] = -above.re;
    weight[2] = -above.im;
    weight[3] = z * middle.re;
  } else if (within % 2 == 1) {
    weight[0] = fold * here.re;
    weight[1] = below.re - above.re;
    weight[2] = -(below.im + above.im);
    weight[3] = z * middle.re;
  } else {
    weight[0] = fold * here.im;
    weight[1] = below.im - above.im;
    weight[2] = below.re + above.re;
    weight[3] = z * middle.im;
  }
}
