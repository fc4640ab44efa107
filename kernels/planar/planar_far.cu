// Expansions in the plane: the operators of fmm-core's `planar/points.rs` and `planar/shifts.rs`. A few lanes share a box, each with terms or
// points of its own; every box is written by the lanes that own it, in a fixed order.
#include "planar/planar.cuh"

// a b + c
__device__ inline Complex times_plus(Complex a, Complex b, Complex c) {
  return {fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y))};
}
__device__ inline Complex inverse_of(Complex z) {
  const double f = 1.0 / fma(z.x, z.x, z.y * z.y);
  return {z.x * f, -z.y * f};
}
__device__ inline Complex center_of(const BoxesView &t, uint32_t box) {
  return reinterpret_cast<const Complex *>(t.center)[box];
}
__device__ inline Segment points_of(const BoxesView &t, uint32_t box) {
  const uint2 range = reinterpret_cast<const uint2 *>(t.points)[box];
  return {range.x, range.y - range.x};
}
// log |z| in the caller's unit for z in units of 2^exponent of the scaled one.
__device__ inline double log_of(const PlaneView &v, Complex z, int exponent) {
  return fma(double(exponent + v.global), 0.69314718055994530942, 0.5 * log(fma(z.x, z.x, z.y * z.y)));
}
// z^n for n below 2^BITS.
template <int BITS> __device__ inline Complex power_of(Complex z, unsigned n) {
  Complex w = {1, 0};
  for (int b = 0; b < BITS; b++) {
    if (n >> b & 1) w = times(w, z);
    if (b < BITS - 1) z = times(z, z);
  }
  return w;
}

// Lanes of a box in P2M and P2L, and points that each holds.
constexpr unsigned POINT_LANES = 8, HELD = 8;

// Adds the expansion about the center of `box` of `t` of the points of a source box; `fresh` forgets what was there.
template <bool LOCAL>
__device__ void gather(const PlaneView &v, const BoxesView &t, uint32_t box, uint32_t from, double *expansions, bool fresh) {
  const unsigned lane = threadIdx.x % POINT_LANES;
  const unsigned mask = 0xffu << (threadIdx.x % 32 / POINT_LANES * POINT_LANES);
  const Complex center = center_of(t, box);
  const int exponent = t.exponent[box];
  const double scale = power_of_two(-exponent);
  const Segment points = points_of(v.sources, from);
  Complex *to = reinterpret_cast<Complex *>(expansions) + size_t(box) * v.terms;
  uint32_t done = 0;
  do {
    Complex w[HELD], ratio[HELD];
    double logs = 0;
    for (unsigned i = 0; i < HELD; i++) {
      const uint32_t j = done + lane + POINT_LANES * i;
      w[i] = ratio[i] = {0, 0};
      if (j >= points.count) continue;
      const PlanePoint p = v.bodies[size_t(points.start) + j];
      ratio[i] = {(p.x - center.x) * scale, (p.y - center.y) * scale};
      w[i] = {p.q, p.qi};
      if (LOCAL) {
        if (v.log) logs = fma(p.q, log_of(v, ratio[i], exponent), logs);
        ratio[i] = inverse_of(ratio[i]);
        if (!v.log) w[i] = times({-w[i].x, -w[i].y}, ratio[i]);
      }
    }
    for (unsigned k = 0; k < v.terms; k++) {
      Complex sum = {0, 0};
      for (unsigned i = 0; i < HELD; i++) {
        sum = {sum.x + w[i].x, sum.y + w[i].y};
        w[i] = times(w[i], ratio[i]);
      }
      // P2L of the logarithm begins with the logarithms.
      if (LOCAL && v.log && k == 0) sum = {logs, 0};
      for (unsigned d = 1; d < POINT_LANES; d *= 2) {
        sum.x += __shfl_xor_sync(mask, sum.x, d);
        sum.y += __shfl_xor_sync(mask, sum.y, d);
      }
      if (lane == 0) {
        const double weight = v.weights[k];
        const Complex old = fresh && done == 0 ? Complex{0, 0} : to[k];
        to[k] = {fma(weight, sum.x, old.x), fma(weight, sum.y, old.y)};
      }
    }
    done += POINT_LANES * HELD;
  } while (done < points.count);
}

// Value and derivative of an expansion with coefficients from `skip` on.
template <bool SLOPE>
__device__ inline void evaluate(const Complex *from, unsigned terms, bool skip, Complex w, Complex &value, Complex &slope) {
  value = slope = {0, 0};
  for (unsigned k = terms; k-- > 0;) {
    if (SLOPE) slope = times_plus(slope, w, value);
    const Complex c = skip && k == 0 ? Complex{0, 0} : from[k];
    value = times_plus(value, w, c);
  }
}

// Adds an expansion about the center of `box` at the point i.
template <bool MULTIPOLE>
__device__ inline void spread(const PlaneView &v, const BoxesView &t, uint32_t box, const double *expansions, uint32_t i) {
  const PlanePoint p = v.at[i];
  const Complex center = center_of(t, box);
  const int exponent = t.exponent[box];
  const double unit = power_of_two(-exponent);
  const Complex z = {(p.x - center.x) * unit, (p.y - center.y) * unit};
  const Complex w = MULTIPOLE ? inverse_of(z) : z;
  const Complex *from = reinterpret_cast<const Complex *>(expansions) + size_t(box) * v.terms;
  Complex value, slope, g;
  if (v.log) {
    evaluate<true>(from, v.terms, MULTIPOLE, w, value, slope);
    g = slope;
    if (MULTIPOLE) {
      // G u = a_0 w - w^2 P'(w)
      const double strength = from[0].x;
      value.x = fma(strength, log_of(v, z, exponent), value.x);
      const Complex ws = times(w, slope);
      g = times(w, {strength - ws.x, -ws.y});
    }
    v.potential[i] += value.x;
  } else {
    evaluate<false>(from, v.terms, false, w, value, slope);
    g = MULTIPOLE ? times(w, value) : value;
  }
  Complex *out = reinterpret_cast<Complex *>(v.g) + i;
  const Complex old = *out;
  *out = {fma(g.x, unit, old.x), fma(g.y, unit, old.y)};
}

// M2L: a lane has one term, or two, of the local expansion of its group's target. The geometry is of one source a lane, in double precision;
// then the sources have their turns, each multipole evaluated by Horner's rule with the coefficients of each lane's row of the matrix. For series that
// are too long for planar_pairs.cu.
template <int LANES, int TERMS> __device__ void m2l(const PlaneView &v) {
  constexpr int BITS = LANES * TERMS == 16 ? 5 : LANES * TERMS == 32 ? 6 : 7;
  extern __shared__ double matrix[];
  const Complex *multipoles = reinterpret_cast<const Complex *>(v.multipoles);
  for (unsigned i = threadIdx.x; i < v.terms * v.terms; i += blockDim.x)
    matrix[i % v.terms * v.terms + i / v.terms] = v.matrix[i];
  __syncthreads();
  const unsigned lane = threadIdx.x % LANES;
  const unsigned mask = LANES == 32 ? 0xffffffffu : 0xffffu << (threadIdx.x % 32 / LANES * LANES);
  const uint32_t group = blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
  if (group >= v.count) return;
  const uint32_t box = v.first + group;
  const Complex own = center_of(v.targets, box);
  const int exponent = v.targets.exponent[box];
  const uint64_t end = v.start[box + 1];
  Complex total[TERMS];
  for (int r = 0; r < TERMS; r++) total[r] = {0, 0};
  for (uint64_t base = v.start[box]; base < end; base += LANES) {
    const unsigned here = unsigned(min(uint64_t(LANES), end - base));
    uint32_t source = 0;
    Complex sigma = {0, 0}, tau = {0, 0};
    double logarithm = 0;
    if (lane < here) {
      source = v.source[base + lane];
      const int other = v.sources.exponent[source], largest = max(exponent, other);
      // In the larger unit squares stay in the range of numbers.
      const double scale = power_of_two(-largest);
      const Complex from = center_of(v.sources, source);
      const Complex t = {(own.x - from.x) * scale, (own.y - from.y) * scale};
      const Complex inverse = inverse_of(t);
      const double us = power_of_two(other - largest), ut = -power_of_two(exponent - largest);
      sigma = {us * inverse.x, us * inverse.y};
      tau = {ut * inverse.x, ut * inverse.y};
      if (v.log) logarithm = log_of(v, t, largest);
    }
    for (unsigned s = 0; s < here; s++) {
      const Complex *a = multipoles + size_t(__shfl_sync(mask, source, s, LANES)) * v.terms;
      const Complex w = {__shfl_sync(mask, sigma.x, s, LANES), __shfl_sync(mask, sigma.y, s, LANES)};
      const Complex u = {__shfl_sync(mask, tau.x, s, LANES), __shfl_sync(mask, tau.y, s, LANES)};
      const double log_t = __shfl_sync(mask, logarithm, s, LANES);
      Complex sum[TERMS];
      for (int r = 0; r < TERMS; r++) sum[r] = {0, 0};
#pragma unroll 4
      for (unsigned k = v.terms; k-- > 0;) {
        const Complex c = a[k];
        for (int r = 0; r < TERMS; r++) {
          // Lanes beyond the last term do its work again.
          const double m = matrix[k * v.terms + min(lane + LANES * r, v.terms - 1)];
          sum[r] = times_plus(sum[r], w, {m * c.x, m * c.y});
        }
      }
      for (int r = 0; r < TERMS; r++) {
        const unsigned l = lane + LANES * r;
        // (-u_target/t)^l, and for the harmonic kernel u_target/t times it.
        Complex factor = power_of<BITS>(u, v.log ? l : l + 1);
        if (!v.log) factor = {-factor.x, -factor.y};
        total[r] = times_plus(factor, sum[r], total[r]);
        if (v.log && l == 0) total[r].x = fma(a[0].x, log_t, total[r].x);
      }
    }
  }
  for (int r = 0; r < TERMS; r++) {
    const unsigned l = lane + LANES * r;
    if (l < v.terms) reinterpret_cast<Complex *>(v.locals)[size_t(box) * v.terms + l] = total[r];
  }
}

// Lanes of a box in M2M and L2L, each with a term after the other.
constexpr unsigned SHIFT_LANES = 16;

// The shift of a child relative to its parent in the parent's unit, and the ratio of the units.
__device__ inline Complex step_of(const BoxesView &t, uint32_t child, uint32_t parent, double &ratio) {
  const Complex a = center_of(t, child), b = center_of(t, parent);
  const double scale = power_of_two(-t.exponent[parent]);
  ratio = power_of_two(t.exponent[child] - t.exponent[parent]);
  return {(a.x - b.x) * scale, (a.y - b.y) * scale};
}

extern "C" {
// Multipoles of leaves.
__global__ void __launch_bounds__(256) planar_p2m(PlaneView v) {
  const uint32_t i = (blockIdx.x * 256 + threadIdx.x) / POINT_LANES;
  if (i < v.count) gather<false>(v, v.sources, v.first + i, v.first + i, v.multipoles, true);
}

// Local expansions of leaves from the points of larger ones.
__global__ void __launch_bounds__(256) planar_p2l(PlaneView v) {
  const uint32_t i = (blockIdx.x * 256 + threadIdx.x) / POINT_LANES;
  if (i >= v.count) return;
  const uint32_t box = v.first + i;
  for (uint64_t j = v.start[box]; j < v.start[box + 1]; j++) gather<true>(v, v.targets, box, v.source[j], v.locals, false);
}

// Multipoles of parents, of one level, from their children's: a'_l = sum_k matrix_lk d^(l-k) a_k.
__global__ void __launch_bounds__(256) planar_m2m(PlaneView v) {
  const uint32_t i = (blockIdx.x * 256 + threadIdx.x) / SHIFT_LANES;
  if (i >= v.count) return;
  const uint32_t parent = v.first + i;
  Complex *all = reinterpret_cast<Complex *>(v.multipoles);
  for (unsigned l = threadIdx.x % SHIFT_LANES; l < v.terms; l += SHIFT_LANES) {
    Complex total = {0, 0};
    for (uint32_t child = 4 * parent + 1; child < 4 * parent + 5; child++) {
      double ratio;
      const Complex shift = step_of(v.sources, child, parent, ratio);
      const Complex *a = all + size_t(child) * v.terms;
      Complex sum = {0, 0};
      double power = 1;
      for (unsigned k = 0; k <= l; k++) {
        const double m = v.matrix[l * v.terms + k] * power;
        const Complex c = a[k];
        sum = times_plus(sum, shift, {m * c.x, m * c.y});
        power *= ratio;
      }
      total = {total.x + sum.x, total.y + sum.y};
    }
    all[size_t(parent) * v.terms + l] = total;
  }
}

// Adds to the local expansions of children, of one level, those of their parents: b'_l = sum_k matrix_lk d^(k-l) b_k.
__global__ void __launch_bounds__(256) planar_l2l(PlaneView v) {
  const uint32_t i = (blockIdx.x * 256 + threadIdx.x) / SHIFT_LANES;
  if (i >= v.count) return;
  const uint32_t child = v.first + i, parent = (child - 1) / 4;
  Complex *all = reinterpret_cast<Complex *>(v.locals);
  double ratio;
  const Complex shift = step_of(v.targets, child, parent, ratio);
  const Complex *b = all + size_t(parent) * v.terms;
  for (unsigned l = threadIdx.x % SHIFT_LANES; l < v.terms; l += SHIFT_LANES) {
    Complex sum = {0, 0};
    for (unsigned k = v.terms; k-- > l;) {
      const double m = v.matrix[l * v.terms + k];
      const Complex c = b[k];
      sum = times_plus(sum, shift, {m * c.x, m * c.y});
    }
    double factor = v.log ? 1 : ratio;
    for (unsigned k = 0; k < l; k++) factor *= ratio;
    Complex &to = all[size_t(child) * v.terms + l];
    to = {fma(factor, sum.x, to.x), fma(factor, sum.y, to.y)};
  }
}

// At the points of leaves: their local expansions.
__global__ void __launch_bounds__(256) planar_l2p(PlaneView v) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i < v.targets.n) spread<false>(v, v.targets, leaf_of(v.targets, i), v.locals, i);
}

// At the points of leaves: the multipoles of smaller ones.
__global__ void __launch_bounds__(256) planar_m2p(PlaneView v) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i >= v.targets.n) return;
  const uint32_t box = leaf_of(v.targets, i);
  for (uint64_t j = v.start[box]; j < v.start[box + 1]; j++) spread<true>(v, v.sources, v.source[j], v.multipoles, i);
}

__global__ void __launch_bounds__(256) planar_m2l_16(PlaneView v) { m2l<16, 1>(v); }
__global__ void __launch_bounds__(256) planar_m2l_64(PlaneView v) { m2l<32, 2>(v); }
}
