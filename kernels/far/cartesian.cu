// Cartesian expansions of softened kernels between bodies and cells, P2M, P2L, L2P and M2P, and the matrices of their M2L: the
// mathematics of fmm-core's `expansion/cartesian`. A warp works for one cell. What a body has of each multi-index lies in shared memory,
// for `lanes` bodies at a time.
#include "common/tree.cuh"

__device__ const double factorial[18] = {1,         1,          2,           6,             24,           120,
                                         720,       5040,       40320,       362880,        3628800,      39916800,
                                         479001600, 6227020800, 87178291200, 1307674368000, 2.0922789888e13, 3.55687428096e14};

// A multi-index.
struct Index {
  unsigned n[3];
  __device__ explicit Index(uint32_t packed) : n{packed & 255, packed >> 8 & 255, packed >> 16} {}
  __device__ unsigned degree() const { return n[0] + n[1] + n[2]; }
  // Those of lower degree come first; within a degree the first exponent falls, then the second.
  __device__ unsigned place() const {
    const unsigned d = degree(), m = d - n[0];
    return d * (d + 1) * (d + 2) / 6 + m * (m + 1) / 2 + m - n[1];
  }
  __device__ Index with(unsigned axis, int more) const {
    Index other = *this;
    other.n[axis] += more;
    return other;
  }
  __device__ double factorials() const { return factorial[n[0]] * factorial[n[1]] * factorial[n[2]]; }
};

// A number of 8 bits.
__device__ inline uint16_t bf16_bits(float x) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// Kernels of a view; any other number is Plummer's.
constexpr uint32_t P1 = 1, YUKAWA = 2;

// Multi-indices of degree up to p.
__device__ inline unsigned indices(unsigned p) { return (p + 1) * (p + 2) * (p + 3) / 6; }

// A body's numbers, one a multi-index.
template <typename Real> struct Column {
  Real *first;
  unsigned pitch;
  __device__ Real &operator[](unsigned k) const { return first[k * pitch]; }
};

// q u^n/n! for all n of degree up to p.
template <typename Real>
__device__ inline void monomials(const CartesianView &v, unsigned p, const Real *u, Real q, const Column<Real> &out) {
  out[0] = q;
  for (unsigned k = 1; k < indices(p); k++) {
    const Index n(v.exponents[k]);
    const unsigned axis = n.n[0] > 0 ? 0 : n.n[1] > 0 ? 1 : 2;
    out[k] = out[n.with(axis, -1).place()] * (u[axis] * (Real(1) / Real(n.n[axis])));
  }
}

// The Taylor coefficients of (u + 2 x t + t^2)^(-lambda) in t to degree p, from the first.
template <typename Real>
__device__ inline void gegenbauer(const CartesianView &v, unsigned p, Real lambda, Real first, Real inverse, const Real *x,
                                  const Column<Real> &b) {
  b[0] = first;
  for (unsigned k = 1; k < indices(p); k++) {
    const Index n(v.exponents[k]);
    const Real degree = Real(n.degree());
    Real one = 0, two = 0;
    for (unsigned axis = 0; axis < 3; axis++) {
      if (n.n[axis] > 0) one = fused(x[axis], b[n.with(axis, -1).place()], one);
      if (n.n[axis] > 1) two += b[n.with(axis, -2).place()];
    }
    const Real scale = -inverse / degree;
    b[k] = fused((2 * degree + 2 * lambda - 2) * scale, one, (degree + 2 * lambda - 2) * scale * two);
  }
}

// The Taylor coefficients a of q exp(-kappa r)/r and b of q exp(-kappa r).
template <typename Real>
__device__ inline void screened(const CartesianView &v, unsigned p, Real kappa, Real q, const Real *x, const Column<Real> &a,
                                const Column<Real> &b) {
  const Real inverse = Real(1) / fused(x[0], x[0], fused(x[1], x[1], x[2] * x[2])), root = sqrt(inverse);
  b[0] = q * exp(-kappa / root);
  a[0] = b[0] * root;
  for (unsigned k = 1; k < indices(p); k++) {
    const Index n(v.exponents[k]);
    Real one = 0, two = 0, both = 0;
    for (unsigned axis = 0; axis < 3; axis++) {
      if (n.n[axis] > 0) {
        const unsigned below = n.with(axis, -1).place();
        one = fused(x[axis], a[below], one);
        both = fused(x[axis], b[below], both);
      }
      if (n.n[axis] > 1) {
        const unsigned below = n.with(axis, -2).place();
        two += a[below];
        both += b[below];
      }
    }
    const Real degree = Real(n.degree()), part = Real(1) / degree;
    a[k] = -inverse * part * fused(2 * degree - 1, one, fused(degree - 1, two, kappa * both));
    b[k] = -kappa * part * (one + two);
  }
}

// q D^n g/n! at x to degree p, in the units of half a side; P1 and Yukawa's kernel take a second column.
template <typename Real>
__device__ inline void derivatives(const CartesianView &v, unsigned p, double half, const Real *x, Real q, const Column<Real> &out,
                                   const Column<Real> &second) {
  if (v.kernel == YUKAWA) return screened<Real>(v, p, Real(half / v.epsilon), q, x, out, second);
  const Real e2 = Real((v.epsilon / half) * (v.epsilon / half));
  const Real inverse = Real(1) / fused(x[0], x[0], fused(x[1], x[1], fused(x[2], x[2], e2)));
  const Real root = sqrt(inverse);
  gegenbauer<Real>(v, p, Real(0.5), q * root, inverse, x, out);
  if (v.kernel != P1) return;
  // g = u^(-1/2) + e^2/2 u^(-3/2).
  gegenbauer<Real>(v, p, Real(1.5), q * root * inverse, inverse, x, second);
  for (unsigned k = 0; k < indices(p); k++) out[k] = fused(Real(0.5) * e2, second[k], out[k]);
}

// Bodies to expansions: P2M in the leaves, P2L by lists.
template <typename Real, bool LOCAL> __device__ inline void moments(const CartesianView &v) {
  extern __shared__ double memory[];
  const uint32_t cell = v.work[blockIdx.x];
  if (!LOCAL && !in_share(v.sources, cell)) return;
  const unsigned lane = threadIdx.x, pitch = v.lanes | 1, n = indices(v.order);
  const TreeView &tree = LOCAL ? v.targets : v.sources;
  const double half = half_of(tree, cell);
  const Frame<Real> frame(tree, cell, half);
  Real *values = reinterpret_cast<Real *>(memory);
  const Column<Real> mine{values + lane, pitch}, second{values + n * pitch + lane, pitch};
  Real *row = static_cast<Real *>(v.coefficients) + size_t(cell) * n;
  const auto add = [&](uint32_t begin, uint32_t end) {
    for (uint32_t first = begin; first < end; first += v.lanes) {
      const unsigned count = min(v.lanes, end - first);
      if (lane < count) {
        const Body b = v.source_bodies[first + lane];
        Real at[3];
        frame.place(b, at);
        if constexpr (LOCAL) {
          // The center is the origin: derivatives at center minus source.
          for (Real &x : at) x = -x;
          derivatives<Real>(v, v.order, half, at, Real(b.q), mine, second);
        } else {
          monomials<Real>(v, v.order, at, Real(b.q), mine);
        }
      }
      __syncwarp();
      for (unsigned k = lane; k < n; k += 32) {
        Real sum = 0;
        for (unsigned j = 0; j < count; j++) sum += values[k * pitch + j];
        if constexpr (LOCAL) sum *= Real(Index(v.exponents[k]).factorials());
        row[k] += sum;
      }
      __syncwarp();
    }
  };
  if constexpr (LOCAL) {
    for (uint64_t i = v.list.start[cell]; i < v.list.start[cell + 1]; i++) {
      const size_t source = v.list.pairs[2 * i];
      add(v.sources.bodies[2 * source], v.sources.bodies[2 * source + 1]);
    }
  } else {
    add(v.sources.bodies[2 * size_t(cell)], v.sources.bodies[2 * size_t(cell) + 1]);
  }
}

// Expansions at bodies: L2P in the leaves, M2P by lists.
template <typename Real, bool MULTIPOLE> __device__ inline void evaluate(const CartesianView &v) {
  extern __shared__ double memory[];
  const uint32_t leaf = v.work[blockIdx.x];
  if (!in_share(v.targets, leaf)) return;
  const unsigned lane = threadIdx.x, pitch = v.lanes | 1, n = indices(v.order), all = MULTIPOLE ? indices(v.order + 1) : n;
  Real *values = reinterpret_cast<Real *>(memory);
  const Column<Real> mine{values + lane, pitch}, second{values + all * pitch + lane, pitch};
  const uint32_t begin = v.targets.bodies[2 * size_t(leaf)], end = v.targets.bodies[2 * size_t(leaf) + 1];
  if (lane >= v.lanes) return;
  const auto add = [&](const TreeView &tree, uint32_t cell) {
    const double half = half_of(tree, cell);
    const Frame<Real> frame(tree, cell, half);
    const Real *a = static_cast<const Real *>(v.coefficients) + size_t(cell) * n;
    for (uint32_t i = begin + lane; i < end; i += v.lanes) {
      Real at[3], sum[4] = {};
      frame.place(v.target_bodies[i], at);
      if constexpr (MULTIPOLE)
        derivatives<Real>(v, v.order + 1, half, at, Real(1), mine, second);
      else
        monomials<Real>(v, v.order, at, Real(1), mine);
      for (unsigned k = 0; k < n; k++) {
        const Index index(v.exponents[k]);
        if constexpr (MULTIPOLE) {
          // D^n g = n! b_n, and a derivative of it (n + e)! b_(n+e).
          const Real weight = a[k] * Real(index.degree() % 2 == 0 ? index.factorials() : -index.factorials());
          sum[0] = fused(weight, mine[k], sum[0]);
          for (unsigned d = 0; d < 3; d++)
            sum[d + 1] = fused(weight * Real(index.n[d] + 1), mine[index.with(d, 1).place()], sum[d + 1]);
        } else {
          sum[0] = fused(a[k], mine[k], sum[0]);
          for (unsigned d = 0; d < 3; d++)
            if (index.n[d] > 0) sum[d + 1] = fused(a[k], mine[index.with(d, -1).place()], sum[d + 1]);
        }
      }
      Sum s = v.sums[i];
      s.potential += double(sum[0]) * frame.scale;
      s.x -= double(sum[1]) * (frame.scale * frame.scale);
      s.y -= double(sum[2]) * (frame.scale * frame.scale);
      s.z -= double(sum[3]) * (frame.scale * frame.scale);
      v.sums[i] = s;
    }
  };
  if constexpr (MULTIPOLE) {
    for (uint64_t i = v.list.start[leaf]; i < v.list.start[leaf + 1]; i++) add(v.sources, v.list.pairs[2 * i]);
  } else {
    add(v.targets, leaf);
  }
}

// The derivative along an axis of each cell's expansion, as an expansion: of the same order if local, of the next if a multipole.
template <typename Real, bool MULTIPOLE> __device__ inline void derivative(const DerivativeView &v) {
  const unsigned n = indices(v.order), values = MULTIPOLE ? indices(v.order + 1) : n;
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x, cell = i / values;
  if (cell >= v.tree.cells) return;
  const Index index(v.exponents[i % values]);
  const Real *a = static_cast<const Real *>(v.coefficients) + cell * n;
  Real x = 0;
  if constexpr (MULTIPOLE) {
    if (index.n[v.axis] > 0) x = -a[index.with(v.axis, -1).place()];
  } else {
    if (index.degree() < v.order) x = a[index.with(v.axis, 1).place()];
  }
  static_cast<Real *>(v.out)[i] = x * Real(v.unit / half_of(v.tree, cell));
}

extern "C" {
__global__ void __launch_bounds__(TILE) l2p_derivative_cartesian_f32(DerivativeView v) { derivative<float, false>(v); }
__global__ void __launch_bounds__(TILE) l2p_derivative_cartesian_f64(DerivativeView v) { derivative<double, false>(v); }
__global__ void __launch_bounds__(TILE) m2p_derivative_cartesian_f32(DerivativeView v) { derivative<float, true>(v); }
__global__ void __launch_bounds__(TILE) m2p_derivative_cartesian_f64(DerivativeView v) { derivative<double, true>(v); }
__global__ void __launch_bounds__(32) p2m_cartesian_f32(CartesianView v) { moments<float, false>(v); }
__global__ void __launch_bounds__(32) p2m_cartesian_f64(CartesianView v) { moments<double, false>(v); }
__global__ void __launch_bounds__(32) p2l_cartesian_f32(CartesianView v) { moments<float, true>(v); }
__global__ void __launch_bounds__(32) p2l_cartesian_f64(CartesianView v) { moments<double, true>(v); }
__global__ void __launch_bounds__(32) l2p_cartesian_f32(CartesianView v) { evaluate<float, false>(v); }
__global__ void __launch_bounds__(32) l2p_cartesian_f64(CartesianView v) { evaluate<double, false>(v); }
__global__ void __launch_bounds__(32) m2p_cartesian_f32(CartesianView v) { evaluate<float, true>(v); }
__global__ void __launch_bounds__(32) m2p_cartesian_f64(CartesianView v) { evaluate<double, true>(v); }

// The matrices of M2L, L_k = sum (-1)^|n| D^(n+k) M_n over |n| + |k| <= p, from the derivatives of their offsets. A thread has one
// number; numbers and words are arranged as the host's `MmaLayout` has them.
__global__ void __launch_bounds__(TILE) m2l_cartesian_f64(CartesianMatrixView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.size) return;
  const unsigned lane = i / 4 % 32, column = i / 128 % v.columns;
  const size_t step = i / 128 / v.columns % v.steps, matrix = i / 128 / v.columns / v.steps;
  const uint32_t from = v.coefficients[16 * step + 4 * (lane % 4) + i % 4], to = 8 * column + lane / 4;
  double x = 0;
  if (from != NONE && to < indices(v.order)) {
    Index n(v.exponents[from]);
    const Index k(v.exponents[to]);
    const bool odd = n.degree() % 2 == 1;
    for (unsigned d = 0; d < 3; d++) n.n[d] += k.n[d];
    if (n.degree() <= v.order) {
      x = v.derivatives[matrix * indices(v.order) + n.place()];
      if (odd) x = -x;
    }
  }
  if (v.words == 2) {
    static_cast<double *>(v.matrices)[i] = x;
  } else if (!v.split) {
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(float(x)));
    static_cast<uint32_t *>(v.matrices)[i] = y;
  } else {
    // Pairs of high parts, then of low parts.
    const uint16_t high = bf16_bits(float(x)), low = bf16_bits(float(x - double(__uint_as_float(uint32_t(high) << 16))));
    auto *halves = static_cast<uint16_t *>(v.matrices) + i / 4 * 8 + i % 4;
    halves[0] = high;
    halves[4] = low;
  }
}
}
