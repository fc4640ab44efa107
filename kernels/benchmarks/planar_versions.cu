// M2L of the harmonic kernel in the plane, in the versions that Cruz, Layton & Barba go through, for `nbody bench
// m2l2d`. With t the way from a source to a target, term n of what the source gives is (-1)^n sum_k C(n + k, k)
// t^(-n-k-1) a_k, in a unit that is the same for all boxes. Each translation is written by itself; another kernel
// then adds up those of each target in a fixed order, the paper's reduction.
#include "arguments/planar_versions.cuh"

template <typename Real> struct Complex;
template <> struct Complex<float> { using Type = float2; };
template <> struct Complex<double> { using Type = double2; };

template <class C> __device__ inline C times(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
template <class C> __device__ inline C inverse_of(C t) {
  const auto f = 1 / (t.x * t.x + t.y * t.y);
  return {t.x * f, -t.y * f};
}
// The place of the coefficients of a translation's source.
template <class C> __device__ inline const C *multipole_of(const VersionsView &v, uint32_t e) {
  return static_cast<const C *>(v.multipoles) + size_t(v.source[e]) * v.terms;
}
template <class C> __device__ inline C way_of(const VersionsView &v, uint32_t e) {
  return static_cast<const C *>(v.way)[e];
}

// A thread a translation. The entries of a diagonal n + k of the matrix have one power of 1/t, and each binomial
// follows from the one before. The results lie in shared memory until the whole block writes them.
template <typename Real> __device__ void by_diagonals(const VersionsView &v) {
  using C = typename Complex<Real>::Type;
  extern __shared__ double memory[];
  constexpr unsigned STRIDE = DIAGONAL_THREADS + 1;
  C *all = reinterpret_cast<C *>(memory), *local = all + threadIdx.x;
  const uint32_t first = blockIdx.x * DIAGONAL_THREADS, e = first + threadIdx.x;
  const unsigned terms = v.terms;
  if (e < v.count) {
    const C *a = multipole_of<C>(v, e);
    const C w = inverse_of(way_of<C>(v, e));
    for (unsigned n = 0; n < terms; n++) local[n * STRIDE] = {0, 0};
    C power = w;
    // C(d, terms - 1), where diagonals begin beyond the first row.
    Real edge = 1;
    for (unsigned d = 0; d + 1 < 2 * terms; d++) {
      const unsigned begin = d < terms ? 0 : d - terms + 1, end = min(d, terms - 1);
      if (d >= terms) edge = edge * Real(d) / Real(d - terms + 1);
      Real binomial = d < terms ? Real(1) : edge;
      for (unsigned k = begin; k <= end; k++) {
        const unsigned n = d - k;
        const Real entry = n & 1 ? -binomial : binomial;
        const C product = times(power, a[k]);
        C &to = local[n * STRIDE];
        to.x += entry * product.x;
        to.y += entry * product.y;
        binomial = binomial * Real(d - k) / Real(k + 1);
      }
      power = times(power, w);
    }
  }
  __syncthreads();
  const unsigned here = min(DIAGONAL_THREADS, v.count - first);
  C *to = static_cast<C *>(v.products) + size_t(first) * terms;
  for (unsigned i = threadIdx.x; i < here * terms; i += DIAGONAL_THREADS) to[i] = all[i % terms * STRIDE + i / terms];
}

// Row n of the product, whose factor (-1)^n t^(-n-1) is `power`, by multiplications in a loop of any length.
template <typename Real, class C> __device__ inline C row_of(const C *a, unsigned terms, unsigned n, C w, C power) {
  C sum = {0, 0};
  Real binomial = 1;
  for (unsigned k = 0; k < terms; k++) {
    const C product = times(power, a[k]);
    sum.x += binomial * product.x;
    sum.y += binomial * product.y;
    power = times(power, w);
    binomial = binomial * Real(n + k + 1) / Real(k + 1);
  }
  return sum;
}
// (-1)^n w^(n+1), one multiplication after the other.
template <class C> __device__ inline C power_of(C w, unsigned n) {
  C power = w;
  for (unsigned i = 0; i < n; i++) power = times(power, w);
  return n & 1 ? C{-power.x, -power.y} : power;
}

// A thread a row; coefficients from memory, or SHARED from shared memory, to which the threads of a translation bring
// one each.
template <typename Real, bool SHARED> __device__ void by_rows(const VersionsView &v) {
  using C = typename Complex<Real>::Type;
  __shared__ C held[SHARED ? ROW_THREADS : 1];
  const unsigned terms = v.terms, together = ROW_THREADS / terms, mine = threadIdx.x / terms, n = threadIdx.x % terms;
  const uint32_t e = blockIdx.x * together + mine;
  const bool works = mine < together && e < v.count;
  if (SHARED) {
    if (works) held[threadIdx.x] = multipole_of<C>(v, e)[n];
    __syncthreads();
  }
  if (!works) return;
  const C *a = SHARED ? held + mine * terms : multipole_of<C>(v, e);
  const C w = inverse_of(way_of<C>(v, e));
  static_cast<C *>(v.products)[size_t(e) * terms + n] = row_of<Real>(a, terms, n, w, power_of(w, n));
}

// A thread a row of P terms with all loops unrolled: powers of 1/t in as many steps for all rows, those beyond a
// row's own without effect.
template <typename Real, int P, class C> __device__ inline C row_unrolled(const C *a, unsigned n, C w) {
  C power = w;
#pragma unroll
  for (unsigned i = 1; i < P; i++) {
    const C next = times(power, w);
    if (n >= i) power = next;
  }
  if (n & 1) power = {-power.x, -power.y};
  C sum = {0, 0};
  Real binomial = 1;
#pragma unroll
  for (unsigned k = 0; k < P; k++) {
    const C product = times(power, a[k]);
    sum.x += binomial * product.x;
    sum.y += binomial * product.y;
    power = times(power, w);
    binomial *= Real(n + k + 1) * (Real(1) / Real(k + 1));
  }
  return sum;
}

// Up to P terms, those that lack are zero. With ROUNDS > 1 a block has several sets of translations, and the
// coefficients of the next are on their way while one is computed.
template <typename Real, int P, unsigned ROUNDS> __device__ void unrolled(const VersionsView &v) {
  using C = typename Complex<Real>::Type;
  constexpr unsigned TOGETHER = ROW_THREADS / P;
  __shared__ C held[ROUNDS > 1 ? 2 : 1][ROW_THREADS];
  const unsigned terms = v.terms, mine = threadIdx.x / P, n = threadIdx.x % P;
  const uint32_t first = blockIdx.x * (TOGETHER * ROUNDS) + mine;
  const bool there = mine < TOGETHER;
  C next = {0, 0}, way = {1, 0};
  const auto load = [&](uint32_t e) {
    if (!there || e >= v.count) return;
    if (n < terms) next = multipole_of<C>(v, e)[n];
    way = way_of<C>(v, e);
  };
  load(first);
#pragma unroll 1
  for (unsigned round = 0; round < ROUNDS; round++) {
    const uint32_t e = first + round * TOGETHER;
    // The other half of the memory may still be read.
    C *half = held[round % (ROUNDS > 1 ? 2 : 1)];
    half[threadIdx.x] = next;
    const C here = way;
    __syncthreads();
    if (round + 1 < ROUNDS) load(e + TOGETHER);
    if (!there || e >= v.count || n >= terms) continue;
    static_cast<C *>(v.products)[size_t(e) * terms + n] = row_unrolled<Real, P>(half + mine * P, n, inverse_of(here));
  }
}

// What the sources of a target give, a thread a term.
template <typename Real> __device__ void reduced(const VersionsView &v) {
  using C = typename Complex<Real>::Type;
  const size_t i = size_t(blockIdx.x) * ROW_THREADS + threadIdx.x, target = i / v.terms;
  if (target >= v.targets) return;
  const C *products = static_cast<const C *>(v.products) + i % v.terms;
  C sum = {0, 0};
  for (uint32_t e = v.start[target]; e < v.start[target + 1]; e++) {
    const C product = products[size_t(e) * v.terms];
    sum = {sum.x + product.x, sum.y + product.y};
  }
  static_cast<C *>(v.locals)[i] = sum;
}

#define VERSION(NAME, THREADS, BODY) \
  __global__ void __launch_bounds__(THREADS) planar_version_##NAME(VersionsView v) { BODY(v); }
#define UNROLLED(REAL, TYPE, P) \
  VERSION(unrolled_##P##_##REAL, ROW_THREADS, (unrolled<TYPE, P, 1>)) \
  VERSION(overlapped_##P##_##REAL, ROW_THREADS, (unrolled<TYPE, P, ROW_ROUNDS>))
#define VERSIONS(REAL, TYPE) \
  VERSION(diagonals_##REAL, DIAGONAL_THREADS, by_diagonals<TYPE>) \
  VERSION(rows_##REAL, ROW_THREADS, (by_rows<TYPE, false>)) \
  VERSION(shared_##REAL, ROW_THREADS, (by_rows<TYPE, true>)) \
  VERSION(reduced_##REAL, ROW_THREADS, reduced<TYPE>) \
  UNROLLED(REAL, TYPE, 8) UNROLLED(REAL, TYPE, 12) UNROLLED(REAL, TYPE, 16)
extern "C" {
VERSIONS(f32, float)
VERSIONS(f64, double)
}
