// Hermite and Taylor series of sums of Gaussians: the operators of fmm-core's `gauss/points.rs` and `gauss/translate.rs`. Every series and
// every point is written by one thread or block, in a fixed order.
#include "gauss/gauss.cuh"

__device__ inline uint4 task_of(const GaussView &v, size_t i) { return reinterpret_cast<const uint4 *>(v.tasks)[i]; }

// P2M (powers) and P2L (Hermite functions): series[i][r] = sum over points q f_i(x) f_r(y, z). A thread has HELD rows of one column r; where
// there are few columns, groups of threads share the points.
template <bool HERMITE> __device__ void gather(const GaussView &v) {
  // Functions along each axis of the points of a batch, [axis][point][stride]; then the sums of groups.
  extern __shared__ double table[];
  const uint4 task = task_of(v, blockIdx.x);
  const unsigned p = v.order, rest = v.terms / p, items = v.width / HELD * rest, stride = v.width + 2;
  const unsigned last = v.axes > 2 ? p : 1;
  const unsigned groups = items < GATHER_THREADS ? min(GATHER_THREADS / items, BATCH) : 1;
  unsigned item = blockIdx.y * GATHER_THREADS + threadIdx.x, group = 0;
  if (groups > 1) {
    group = item / items;
    item %= items;
  }
  const bool active = item < items && group < groups;
  const unsigned first = active ? item / rest * HELD : 0, r = active ? item % rest : 0;
  const GaussPoint center = v.center[task.y];
  Feed feed = {v.list, 0, 0, task.z, task.w};
  if (HERMITE) feed = {v.list, v.start[task.y], v.start[task.y + 1], 0, 0};
  const unsigned axis = threadIdx.x / BATCH, point = threadIdx.x % BATCH;
  double *row = table + (axis * BATCH + point) * stride;
  double sums[HELD] = {};
  while (true) {
    uint32_t index = 0;
    const uint32_t filled = feed.take(BATCH, point, index);
    if (filled == 0) break;
    if (axis < v.axes && point < filled) {
      const GaussPoint x = v.points[index];
      const double at = axis == 0 ? x.x[0] : axis == 1 ? x.x[1] : x.x[2];
      const double from = axis == 0 ? center.x[0] : axis == 1 ? center.x[1] : center.x[2];
      const double z = (at - from) * v.scale;
      double here = HERMITE ? exp(-0.5 * z * z) : 1, before = 0;
      if (axis == 0) here *= x.q;
      for (unsigned n = 0; n < p; n++) {
        row[n] = here;
        const double next = HERMITE ? fma(-v.roots[2 * n], before, z * here) : z * here;
        before = here;
        here = next * v.roots[2 * n + 3];
      }
      if (axis == 0)
        for (unsigned n = p; n < v.width; n++) row[n] = 0;
    }
    __syncthreads();
    if (active) {
      const double *y = table + BATCH * stride + r / last, *z = table + 2 * BATCH * stride + r % last;
      const double *x = table + first;
      for (unsigned s = group; s < filled; s += groups) {
        double f = 1;
        if (v.axes > 1) f = y[s * stride];
        if (v.axes > 2) f *= z[s * stride];
        const double2 *a = reinterpret_cast<const double2 *>(x + s * stride);
        for (unsigned u = 0; u < HELD / 2; u++) {
          const double2 b = a[u];
          sums[2 * u] = fma(b.x, f, sums[2 * u]);
          sums[2 * u + 1] = fma(b.y, f, sums[2 * u + 1]);
        }
      }
    }
    __syncthreads();
  }
  if (groups > 1) {
    if (active)
      for (unsigned u = 0; u < HELD; u++) table[(group * items + item) * HELD + u] = sums[u];
    __syncthreads();
    if (active && group == 0)
      for (unsigned g = 1; g < groups; g++)
        for (unsigned u = 0; u < HELD; u++) sums[u] += table[(g * items + item) * HELD + u];
  }
  if (!active || group > 0) return;
  double *to = v.series + size_t(task.x) * v.terms + r;
  for (unsigned u = 0; u < HELD; u++) {
    if (first + u >= p) break;
    double &here = to[size_t(first + u) * rest];
    here = HERMITE ? here + sums[u] : sums[u];
  }
}

// Horner's rule, c + z (..), for the Taylor series that gauss_scale has freed of its roots and, times a Gaussian, for the polynomials that
// Hermite series become; Clenshaw's for Hermite polynomials themselves, He_(n+1) = z He_n - n He_(n-1).
enum Basis { TAYLOR, POLYNOMIAL, HERMITE };

template <Basis B> struct Chain {
  double a = 0, b = 0;
  __device__ void step(double c, double z, double next) {
    if (B != HERMITE) {
      a = fma(z, a, c);
    } else {
      const double here = fma(z, a, fma(-next, b, c));
      b = a;
      a = here;
    }
  }
};

// A series at N points of a thread, its rows along the last axis two by two in shared memory, or one by one where they do not fit: value and,
// along the last axis, the one before it and the first, derivatives. Rows of ROW terms, where that is not 0, are one straight piece.
template <Basis B, int N, bool SLOPE, bool SHARED, int ROW>
__device__ inline void evaluate(const double *series, const unsigned *terms, const double (*z)[3], double (*out)[4]) {
  Chain<B> whole[N][SLOPE ? 4 : 1];
  const unsigned row = SHARED ? terms[2] + terms[2] % 2 : terms[2];
  const double *c = series + size_t(terms[0]) * terms[1] * row;
  for (unsigned i = terms[0]; i-- > 0;) {
    Chain<B> plane[N][SLOPE ? 3 : 1];
    for (unsigned j = terms[1]; j-- > 0;) {
      Chain<B> line[N][SLOPE ? 2 : 1];
      auto step = [&](double here, double next) {
#pragma unroll
        for (int n = 0; n < N; n++) {
          if (SLOPE) line[n][SLOPE].step(line[n][0].a, z[n][2], next);
          line[n][0].step(here, z[n][2], next);
        }
      };
      if (ROW > 0) {
        c -= (ROW + 1) / 2 * 2;
#pragma unroll
        for (int k = (ROW + 1) / 2; k-- > 0;) {
          const double2 two = *reinterpret_cast<const double2 *>(c + 2 * k);
          if (2 * k + 1 < ROW) step(two.y, 0);
          step(two.x, 0);
        }
      } else if (SHARED) {
#pragma unroll 2
        for (unsigned k = row / 2; k > 0; k--) {
          c -= 2;
          const double2 two = *reinterpret_cast<const double2 *>(c);
          step(two.y, 0);
          step(two.x, 0);
        }
      } else {
        double next = row;
#pragma unroll 4
        for (unsigned k = row; k > 0; k--, next -= 1) step(*--c, next);
      }
      const double after = j + 1;
#pragma unroll
      for (int n = 0; n < N; n++) {
        if (SLOPE) {
          plane[n][2 * SLOPE].step(plane[n][0].a, z[n][1], after);
          plane[n][SLOPE].step(line[n][SLOPE].a, z[n][1], after);
        }
        plane[n][0].step(line[n][0].a, z[n][1], after);
      }
    }
    const double after = i + 1;
#pragma unroll
    for (int n = 0; n < N; n++) {
      if (SLOPE) {
        whole[n][3 * SLOPE].step(whole[n][0].a, z[n][0], after);
        whole[n][2 * SLOPE].step(plane[n][2 * SLOPE].a, z[n][0], after);
        whole[n][SLOPE].step(plane[n][SLOPE].a, z[n][0], after);
      }
      whole[n][0].step(plane[n][0].a, z[n][0], after);
    }
  }
#pragma unroll
  for (int n = 0; n < N; n++)
#pragma unroll
    for (int d = 0; d < (SLOPE ? 4 : 1); d++) out[n][d] = whole[n][d].a;
}

// Series that lie in shared memory, by the length of their rows if that is one of the first 16 and threads have many points.
template <Basis B, int N, bool SLOPE, bool SHARED>
__device__ inline void evaluate_any(const double *series, const unsigned *terms, const double (*z)[3], double (*out)[4]) {
  if constexpr (SHARED && N > 1) {
#define ROWS(P) \
  case P: return evaluate<B, N, SLOPE, SHARED, P>(series, terms, z, out);
    switch (terms[2]) {
      ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12) ROWS(13) ROWS(14) ROWS(15) ROWS(16)
    }
#undef ROWS
  }
  evaluate<B, N, SLOPE, SHARED, 0>(series, terms, z, out);
}

// The axes that there are, the last of them last.
__device__ inline void axes_of(const GaussPoint &p, unsigned axes, double *x) {
  x[2] = axes > 2 ? p.x[2] : axes > 1 ? p.x[1] : p.x[0];
  x[1] = axes > 2 ? p.x[1] : axes > 1 ? p.x[0] : 0;
  x[0] = axes > 2 ? p.x[0] : 0;
}

// L2P and M2P: series at the points of a task.
template <Basis B, int N, bool SLOPE, bool SHARED> __device__ void spread(const GaussView &v) {
  extern __shared__ double2 rows[];
  double *held = reinterpret_cast<double *>(rows);
  const uint4 task = task_of(v, blockIdx.x);
  const unsigned p = v.order, terms[3] = {v.axes > 2 ? p : 1, v.axes > 1 ? p : 1, p}, row = p + p % 2;
  double at[N][3];
#pragma unroll
  for (int n = 0; n < N; n++)
    axes_of(v.points[min(task.z + threadIdx.x + n * SPREAD_THREADS, task.w - 1)], v.axes, at[n]);
  double total[N][SLOPE ? 4 : 1] = {};
  const uint64_t begin = B == TAYLOR ? 0 : v.start[task.y], end = B == TAYLOR ? 1 : v.start[task.y + 1];
  for (uint64_t e = begin; e < end; e++) {
    const uint32_t place = B == TAYLOR ? task.x : v.list[2 * e];
    const double *series = v.series + size_t(place) * v.terms;
    if (SHARED) {
      __syncthreads();
      for (unsigned i = threadIdx.x; i < terms[0] * terms[1] * row; i += SPREAD_THREADS)
        held[i] = i % row < p ? series[i / row * p + i % row] : 0;
      __syncthreads();
    }
    double center[3], z[N][3], sum[N][4];
    axes_of(B == TAYLOR ? v.center[task.y] : v.other[v.list[2 * e + 1]], v.axes, center);
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
      for (int d = 0; d < 3; d++) z[n][d] = (at[n][d] - center[d]) * v.scale;
    evaluate_any<B, N, SLOPE, SHARED>(SHARED ? held : series, terms, z, sum);
#pragma unroll
    for (int n = 0; n < N; n++) {
      const double r2 = fma(z[n][0], z[n][0], fma(z[n][1], z[n][1], z[n][2] * z[n][2]));
      const double f = B == TAYLOR ? 1 : power_of_half<12>(0.5 * LOG2_E * r2);
      total[n][0] = fma(f, sum[n][0], total[n][0]);
      if (SLOPE) {
#pragma unroll
        for (int d = 1; d < 4; d++) {
          const double slope = B == TAYLOR ? sum[n][d] : fma(-z[n][3 - d], sum[n][0], sum[n][d]);
          total[n][SLOPE * d] = fma(f, slope, total[n][SLOPE * d]);
        }
      }
    }
  }
#pragma unroll
  for (int n = 0; n < N; n++) {
    const uint32_t i = task.z + threadIdx.x + n * SPREAD_THREADS;
    if (i >= task.w) break;
    double *out = v.out + size_t(i) * v.values;
    auto give = [&](unsigned d, double sum) { out[d] = v.fresh ? sum : out[d] + sum; };
    give(0, total[n][0]);
    if (SLOPE) {
      give(v.axes, total[n][SLOPE]);
      if (v.axes > 1) give(v.axes - 1, total[n][2 * SLOPE]);
      if (v.axes > 2) give(1, total[n][3 * SLOPE]);
    }
  }
}

extern "C" {
__global__ void __launch_bounds__(GATHER_THREADS) gauss_p2m(GaussView v) { gather<false>(v); }
__global__ void __launch_bounds__(GATHER_THREADS) gauss_p2l(GaussView v) { gather<true>(v); }

// Adds up the parts of series whose boxes had several tasks: start are first parts.
__global__ void __launch_bounds__(GAUSS_THREADS) gauss_join(GaussView v) {
  const size_t i = size_t(blockIdx.x) * GAUSS_THREADS + threadIdx.x;
  if (i >= size_t(v.count) * v.terms) return;
  const size_t box = i / v.terms, term = i % v.terms;
  double sum = 0;
  for (uint64_t part = v.start[box]; part < v.start[box + 1]; part++) sum += v.before[part * v.terms + term];
  v.series[i] = sum;
}

// One pass of M2L: along the first axis of the coefficients, which then comes last. A thread has HELD rows of one column.
__global__ void __launch_bounds__(GATHER_THREADS) gauss_m2l(GaussView v) {
  const unsigned p = v.order, rest = v.terms / p, items = v.width / HELD * rest;
  const size_t i = size_t(blockIdx.x) * GATHER_THREADS + threadIdx.x;
  const size_t box = i / items;
  if (box >= v.count) return;
  const unsigned item = unsigned(i % items), first = item / rest * HELD, r = item % rest;
  const uint4 task = task_of(v, box);
  double sums[HELD] = {};
  for (uint32_t e = task.x; e < task.y; e++) {
    const uint2 from = reinterpret_cast<const uint2 *>(v.list)[e];
    const unsigned offset = task.z + v.reach - from.y, used = v.used[offset];
    if (first >= used) continue;
    const double *c = v.before + size_t(from.x) * v.terms + r;
    const double2 *a = reinterpret_cast<const double2 *>(v.matrix + size_t(offset) * p * v.width + first);
#pragma unroll 2
    for (unsigned n = 0; n < used; n++) {
      const double here = c[size_t(n) * rest];
      for (unsigned u = 0; u < HELD / 2; u++) {
        const double2 b = a[n * (v.width / 2) + u];
        sums[2 * u] = fma(b.x, here, sums[2 * u]);
        sums[2 * u + 1] = fma(b.y, here, sums[2 * u + 1]);
      }
    }
  }
  double *to = v.series + box * v.terms + size_t(r) * p + first;
  for (unsigned u = 0; u < HELD; u++)
    if (first + u < p) to[u] = sums[u];
}

// Frees Taylor series of their roots: from phi_n = z^n/sqrt(n!) to z^n.
__global__ void __launch_bounds__(GAUSS_THREADS) gauss_scale(GaussView v) {
  const size_t i = size_t(blockIdx.x) * GAUSS_THREADS + threadIdx.x;
  if (i >= size_t(v.count) * v.terms) return;
  unsigned term = unsigned(i % v.terms);
  double factor = 1;
  for (unsigned d = 0; d < v.axes; d++) {
    factor *= v.roots[term % v.order];
    term /= v.order;
  }
  v.series[i] *= factor;
}

#define SPREAD(NAME, BASIS, N, SHARED, BLOCKS)                                                                            \
  __global__ void __launch_bounds__(SPREAD_THREADS, BLOCKS) NAME(GaussView v) { spread<BASIS, N, false, SHARED>(v); }     \
  __global__ void __launch_bounds__(SPREAD_THREADS) NAME##_slope(GaussView v) { spread<BASIS, N, true, SHARED>(v); }
SPREAD(gauss_l2p, TAYLOR, 1, true, 1)
SPREAD(gauss_l2p_full, TAYLOR, SPREAD_POINTS, true, 1)
SPREAD(gauss_l2p_vast, TAYLOR, 2 * SPREAD_POINTS, true, 1)
SPREAD(gauss_l2p_high, TAYLOR, 1, false, 1)
SPREAD(gauss_m2p, POLYNOMIAL, 1, true, 1)
SPREAD(gauss_m2p_full, POLYNOMIAL, SPREAD_POINTS, true, 12)
SPREAD(gauss_m2p_high, HERMITE, 1, false, 1)
}
