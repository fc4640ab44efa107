// Ewald's sum: fmm-core's `ewald`, in another order. In real space a lane holds sources, a warp takes target after target. Waves come by
// octants: over the eight signs of (a, b, c) the phases of k = 2 pi (a/L_x, b/L_y, c/L_z) add up to 8 cos cos cos of the differences, so
// that the eight sums of q times cosines or sines of each coordinate are all there is to know of eight waves.
#include "arguments/periodic.cuh"
#include "common/softening.cuh"
#include "common/sums.cuh"

// Sources of a chunk in real space that a lane holds.
constexpr unsigned HELD_SOURCES = SOURCES / 32;

// Threads of a block: warps in real space and at targets, columns of waves.
constexpr unsigned NEAR_WARPS = 4, COLUMNS = 256, AT_WARPS = 4;

// Place k of the targets of this launch.
__device__ inline uint32_t target_of(const EwaldView &v, uint32_t k) { return v.picked ? v.picked[k] : v.first + k; }

// (erf(u)/u^3 - 2/sqrt(pi) exp(-u^2)/u^2), which loses its digits where u is small: 4/sqrt(pi) sum (-u^2)^k / (k! (2k + 3)).
__device__ inline double smeared(double u, double erfc_u, double gaussian) {
  if (u > 0.5) return ((1 - erfc_u) / u - gaussian) / (u * u);
  double sum = 0, term = 1;
  for (int k = 0; k < 14; k++) {
    sum += term / (2 * k + 3);
    term *= -u * u / (k + 1);
  }
  return 2.2567583341910251478 * sum;
}

// What source `q` does at the difference d from its nearest image: potential, field, the largest square of a single bare force.
template <bool SOFT>
__device__ inline void meet(const EwaldView &v, const Spline<double> &kernel, const double *d, double q, bool itself, double *sum) {
  const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
  if (r2 >= v.cutoff2) return;
  constexpr double ROOT = 1.1283791670955125739;  // 2/sqrt(pi)
  const double r = sqrt(r2), u = v.alpha * r;
  const bool soft = SOFT && r2 < v.softening * v.softening;
  if (r2 == 0 || soft) {
    // Without the pair itself what remains of erfc(u)/r is -erf(u)/r.
    const double erfc_u = erfc(u), gaussian = ROOT * exp(-u * u);
    double potential = u > 1e-8 ? -(1 - erfc_u) / r : -ROOT * v.alpha, force = -smeared(u, erfc_u, gaussian) * v.alpha * v.alpha * v.alpha;
    if (soft && !itself) {
      double w;
      force += kernel.both(1.0, r2 + kernel.raise(), w);
      potential += w;
    }
    sum[0] += q * potential;
    for (int k = 0; k < 3; k++) sum[1 + k] += q * force * d[k];
  } else {
    const double inverse = 1 / r, square = inverse * inverse;
    const double bare = q * erfc(u) * inverse;
    const double force = (bare + q * (ROOT * v.alpha) * exp(-u * u)) * square;
    sum[0] += bare;
    for (int k = 0; k < 3; k++) sum[1 + k] += force * d[k];
  }
  if (r2 > 0) {
    const double g = q / r2;
    sum[4] = fmax(sum[4], g * g);
  }
}

// A coordinate in two floats.
struct Double {
  float high, low;
  __device__ Double() {}
  __device__ Double(double x) : high(float(x)), low(float(x - double(float(x)))) {}
};

__device__ inline float inverse_root(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The same in single precision but for differences of coordinates, whose two floats hold 48 bits: enough for all but pairs within 1e-11 of the box. Unsoftened; WRAPS:
// sources of a chunk may have different images. erfc(u) = e^(-u^2) P(1/(1 + p u)) to 1.5e-7 (Abramowitz & Stegun 1964, 7.1.26).
template <bool WRAPS>
__device__ inline void meet_single(const EwaldView &v, const Double *at, const Double *from, const Double *side, float q, float *sum) {
  float d[3], r2 = 0;
#pragma unroll
  for (int k = 0; k < 3; k++) {
    const float apart = at[k].high - from[k].high, rest = at[k].low - from[k].low;
    d[k] = apart + rest;
    if (WRAPS) {
      // Both lie in the box: the nearest image is at most one away.
      const float half = 0.5f * side[k].high, image = apart > half ? 1.0f : apart < -half ? -1.0f : 0.0f;
      d[k] = fmaf(-image, side[k].high, apart) + fmaf(-image, side[k].low, rest);
    }
    r2 = fmaf(d[k], d[k], r2);
  }
  if (r2 >= float(v.cutoff2)) return;
  constexpr float ROOT = 1.1283791670955125739f;  // 2/sqrt(pi)
  const float alpha = float(v.alpha);
  if (r2 == 0) {
    // Without the pair itself what remains of erfc(u)/r is -erf(u)/r.
    sum[0] = fmaf(q, -ROOT * alpha, sum[0]);
    return;
  }
  const float inverse = inverse_root(r2), u = alpha * (r2 * inverse), gaussian = __expf(-u * u), g = q * inverse * inverse;
  const float t = __fdividef(1.0f, fmaf(0.3275911f, u, 1.0f));
  const float series = fmaf(t, fmaf(t, fmaf(t, fmaf(t, 1.061405429f, -1.453152027f), 1.421413741f), -0.284496736f), 0.254829592f);
  const float bare = series * t * gaussian * inverse;
  sum[0] = fmaf(q, bare, sum[0]);
  const float force = fmaf(ROOT * alpha, gaussian, bare) * g;
#pragma unroll
  for (int k = 0; k < 3; k++) sum[1 + k] = fmaf(force, d[k], sum[1 + k]);
  // Its square is more than single precision holds for pairs within 1e-10 of the box.
  sum[4] = fmaxf(sum[4], fabsf(g));
}

// Whether all of a chunk is too far from a target.
__device__ inline bool beyond(const EwaldView &v, const double *at, const double *low, const double *high) {
  double gap2 = 0;
  for (int k = 0; k < 3; k++) {
    // Rounding must not lose a pair.
    const double apart = fabs(at[k] - 0.5 * (low[k] + high[k])), around = fmin(apart, v.side[k] - apart);
    const double gap = fmax(around - 0.5 * (high[k] - low[k]) - 1e-12 * v.side[k], 0.0);
    gap2 += gap * gap;
  }
  return gap2 >= v.cutoff2;
}

// The box around what the lanes of a warp have.
__device__ inline void extent(double *low, double *high) {
  for (int step = 16; step > 0; step /= 2)
    for (int k = 0; k < 3; k++) {
      low[k] = fmin(low[k], __shfl_xor_sync(~0u, low[k], step));
      high[k] = fmax(high[k], __shfl_xor_sync(~0u, high[k], step));
    }
}

// Source i in the units of the sum, without strength if there are none so many; the box takes it in.
__device__ inline Body source(const EwaldView &v, uint32_t i, double *low, double *high) {
  const Body b = v.sources[min(i, v.n - 1)];
  const double at[3] = {b.x * v.scale, b.y * v.scale, b.z * v.scale};
  for (int k = 0; k < 3; k++) {
    low[k] = fmin(low[k], at[k]);
    high[k] = fmax(high[k], at[k]);
  }
  return {at[0], at[1], at[2], i < v.n ? b.q : 0};
}

// Chunks of sources at 32 targets in single precision, where images beyond the nearest are out of reach: see `real_space`.
__device__ inline void real_space_single(const EwaldView &v) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, share = blockIdx.x * NEAR_WARPS + warp, base = blockIdx.y * 32;
  if (share >= v.shares) return;
  const uint32_t chunks = (v.n + SOURCES - 1) / SOURCES;
  const uint32_t begin = uint64_t(chunks) * share / v.shares, end = uint64_t(chunks) * (share + 1) / v.shares;
  const unsigned targets = min(32u, v.count - base);
  const Body mine = v.targets[target_of(v, base + min(lane, targets - 1))];
  const Double side[3] = {v.side[0], v.side[1], v.side[2]};
  double total[5] = {};
  for (uint32_t chunk = begin; chunk < end; chunk++) {
    const uint32_t first = chunk * SOURCES + lane;
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    Double held[HELD_SOURCES][3];
    float strength[HELD_SOURCES];
#pragma unroll
    for (unsigned j = 0; j < HELD_SOURCES; j++) {
      const Body b = source(v, first + 32 * j, low, high);
      held[j][0] = Double(b.x);
      held[j][1] = Double(b.y);
      held[j][2] = Double(b.z);
      strength[j] = float(b.q);
    }
    extent(low, high);
    for (unsigned t = 0; t < targets; t++) {
      const double at[3] = {__shfl_sync(~0u, mine.x, t) * v.scale, __shfl_sync(~0u, mine.y, t) * v.scale,
                            __shfl_sync(~0u, mine.z, t) * v.scale};
      if (beyond(v, at, low, high)) continue;
      // The image of the whole chunk, if its sources have the same one: that of the target, the other way.
      bool wraps = false;
      Double place[3], seen[3];
      for (int k = 0; k < 3; k++) {
        const double half = 0.5 * v.side[k], middle = 0.5 * (low[k] + high[k]), apart = at[k] - middle;
        const double image = apart > half ? v.side[k] : apart < -half ? -v.side[k] : 0.0;
        wraps |= fabs(apart - image) + 0.5 * (high[k] - low[k]) > half * (1 - 1e-12);
        place[k] = Double(at[k]);
        seen[k] = Double(at[k] - image);
      }
      float sum[5] = {};
      if (wraps) {
#pragma unroll
        for (unsigned j = 0; j < HELD_SOURCES; j++) meet_single<true>(v, place, held[j], side, strength[j], sum);
      } else {
#pragma unroll
        for (unsigned j = 0; j < HELD_SOURCES; j++) meet_single<false>(v, seen, held[j], side, strength[j], sum);
      }
      for (int step = 16; step > 0; step /= 2) {
        for (int k = 0; k < 4; k++) sum[k] += __shfl_xor_sync(~0u, sum[k], step);
        sum[4] = fmaxf(sum[4], __shfl_xor_sync(~0u, sum[4], step));
      }
      if (lane == t) {
        for (int k = 0; k < 4; k++) total[k] += sum[k];
        total[4] = fmax(total[4], double(sum[4]) * double(sum[4]));
      }
    }
  }
  if (lane < targets)
    for (int k = 0; k < 5; k++) v.partial[(size_t(share) * v.count + base + lane) * 5 + k] = total[k];
}

// Chunks of sources at 32 targets, one warp a share of the chunks. Lane t keeps the sums of target t.
template <bool SOFT> __device__ inline void real_space(const EwaldView &v) {
  __shared__ Body held[NEAR_WARPS][HELD_SOURCES][32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, share = blockIdx.x * NEAR_WARPS + warp, base = blockIdx.y * 32;
  if (share >= v.shares) return;
  const Spline<double> kernel(SOFT ? v.softening : 1.0);
  const uint32_t chunks = (v.n + SOURCES - 1) / SOURCES;
  const uint32_t begin = uint64_t(chunks) * share / v.shares, end = uint64_t(chunks) * (share + 1) / v.shares;
  const unsigned targets = min(32u, v.count - base);
  const uint32_t place = target_of(v, base + min(lane, targets - 1));
  const Body mine = v.targets[place];
  double total[5] = {};
  const bool wide = v.reach[0] + v.reach[1] + v.reach[2] > 0;
  for (uint32_t chunk = begin; chunk < end; chunk++) {
    const uint32_t first = chunk * SOURCES + lane;
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
#pragma unroll
    for (unsigned j = 0; j < HELD_SOURCES; j++) {
      held[warp][j][lane] = source(v, first + 32 * j, low, high);
    }
    // Sources in the order of a tree are close together, and most chunks too far away for most targets.
    extent(low, high);
    for (unsigned t = 0; t < targets; t++) {
      const double at[3] = {__shfl_sync(~0u, mine.x, t) * v.scale, __shfl_sync(~0u, mine.y, t) * v.scale,
                            __shfl_sync(~0u, mine.z, t) * v.scale};
      if (!wide && beyond(v, at, low, high)) continue;
      const uint32_t own = v.same ? __shfl_sync(~0u, place, t) : ~0u;
      double sum[5] = {};
#pragma unroll 1
      for (unsigned j = 0; j < HELD_SOURCES; j++) {
        // A lane reads what it has written.
        const Body from = held[warp][j][lane];
        double d[3] = {at[0] - from.x, at[1] - from.y, at[2] - from.z};
        // Both lie in the box: the nearest image is at most one away.
        for (int k = 0; k < 3; k++) d[k] -= d[k] > 0.5 * v.side[k] ? v.side[k] : d[k] < -0.5 * v.side[k] ? -v.side[k] : 0;
        const bool itself = first + 32 * j == own;
        if (!wide) {
          meet<SOFT>(v, kernel, d, from.q, itself, sum);
          continue;
        }
        const int reach[3] = {int(v.reach[0]), int(v.reach[1]), int(v.reach[2])};
        for (int a = -reach[0]; a <= reach[0]; a++)
          for (int b = -reach[1]; b <= reach[1]; b++)
            for (int c = -reach[2]; c <= reach[2]; c++) {
              const double image[3] = {d[0] + a * v.side[0], d[1] + b * v.side[1], d[2] + c * v.side[2]};
              meet<SOFT>(v, kernel, image, from.q, itself && a == 0 && b == 0 && c == 0, sum);
            }
      }
      double largest = sum[4];
      for (int step = 16; step > 0; step /= 2) largest = fmax(largest, __shfl_xor_sync(~0u, largest, step));
      for (int k = 0; k < 4; k++) {
        const double all = warp_sum(sum[k]);
        if (lane == t) total[k] += all;
      }
      if (lane == t) total[4] = fmax(total[4], largest);
    }
  }
  if (lane < targets)
    for (int k = 0; k < 5; k++) v.partial[(size_t(share) * v.count + base + lane) * 5 + k] = total[k];
}

template <typename Real> struct Complex;
template <> struct Complex<float> { using Type = float2; };
template <> struct Complex<double> { using Type = double2; };

// Cosines and sines of 2 pi k x / L for k = 0, 1, ... by the angle's addition theorem, the first of them `first`.
template <typename Real> __device__ inline void turn(double first, double x, double side, Real *to, unsigned count) {
  double2 step, here = {first, 0};
  sincospi(2 * (x / side), &step.y, &step.x);
  for (unsigned k = 0; k < count; k++) {
    to[2 * k] = Real(here.x);
    to[2 * k + 1] = Real(here.y);
    here = {here.x * step.x - here.y * step.y, here.x * step.y + here.y * step.x};
  }
}

// A share of the bodies in the structure factors; a thread has a column of DEEP waves.
template <typename Real> __device__ inline void structure(const EwaldView &v) {
  using Real2 = typename Complex<Real>::Type;
  extern __shared__ double2 memory[];
  Real2 *tables = reinterpret_cast<Real2 *>(memory);
  const unsigned column = blockIdx.x * blockDim.x + threadIdx.x, part = blockIdx.y;
  const uint4 waves = v.columns[min(column, v.columns_len - 1)];
  const uint32_t begin = uint64_t(v.n) * part / v.parts, end = uint64_t(v.n) * (part + 1) / v.parts;
  const unsigned width[3] = {v.most[0] + 1, v.most[1] + 1, v.most[2] + DEEP}, row = width[0] + width[1] + width[2];
  Real sum[DEEP][8] = {};
  for (uint32_t first = begin; first < end; first += v.bodies) {
    const unsigned held = min(v.bodies, end - first);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < held * 3; i += blockDim.x) {
      const unsigned body = i % held, axis = i / held;
      const size_t at = size_t(first) + body;
      const unsigned start = axis == 0 ? 0 : axis == 1 ? width[0] : width[0] + width[1];
      const double begins = axis == 0 ? v.charge[at] * v.strength_scale : 1;
      turn(begins, v.place[3 * at + axis] * v.scale, v.side[axis], reinterpret_cast<Real *>(tables + body * row + start), width[axis]);
    }
    __syncthreads();
    for (unsigned i = 0; i < held; i++) {
      const Real2 *mine = tables + i * row;
      const Real2 x = mine[waves.x], y = mine[width[0] + waves.y];
      const Real2 *z = mine + width[0] + width[1] + waves.z;
      const Real product[4] = {x.x * y.x, x.x * y.y, x.y * y.x, x.y * y.y};
#pragma unroll
      for (unsigned j = 0; j < DEEP; j++) {
        const Real2 along = z[j];
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
          sum[j][2 * k] = fma(product[k], along.x, sum[j][2 * k]);
          sum[j][2 * k + 1] = fma(product[k], along.y, sum[j][2 * k + 1]);
        }
      }
    }
  }
  if (column >= v.columns_len) return;
  double *to = v.structure + (size_t(part) * v.columns_len + column) * DEEP * 8;
  for (unsigned j = 0; j < DEEP; j++)
    for (unsigned k = 0; k < 8; k++) to[8 * j + k] = sum[j][k];
}

extern "C" {
__global__ void __launch_bounds__(32 * NEAR_WARPS) ewald_near_f32(const __grid_constant__ EwaldView v) { real_space_single(v); }
__global__ void __launch_bounds__(COLUMNS) ewald_structure(const __grid_constant__ EwaldView v) { structure<double>(v); }
__global__ void __launch_bounds__(COLUMNS) ewald_structure_f32(const __grid_constant__ EwaldView v) { structure<float>(v); }
__global__ void __launch_bounds__(32 * NEAR_WARPS) ewald_near(EwaldView v) { real_space<false>(v); }
__global__ void __launch_bounds__(32 * NEAR_WARPS) ewald_near_spline(EwaldView v) { real_space<true>(v); }

// The shares together, times 4 pi/V exp(-k^2/4 alpha^2)/k^2 and the number of the wave's mirror images.
__global__ void __launch_bounds__(TILE) ewald_factors(EwaldView v) {
  // A warp has every eighth share of 32 sums.
  __shared__ double some[TILE / 32][32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned i = blockIdx.x * 32 + lane, all = v.columns_len * DEEP * 8;
  double sum = 0;
#pragma unroll 8
  for (unsigned part = warp; part < v.parts; part += TILE / 32) sum += v.structure[size_t(part) * all + min(i, all - 1)];
  some[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || i >= all) return;
  for (unsigned other = 1; other < TILE / 32; other++) sum += some[other][lane];
  const uint4 waves = v.columns[i / (8 * DEEP)];
  const unsigned number[3] = {waves.x, waves.y, waves.z + i / 8 % DEEP};
  constexpr double PI = 3.14159265358979323846;
  double square = 0, copies = 1;
  for (int d = 0; d < 3; d++) {
    const double k = 2 * PI * number[d] / v.side[d];
    square += k * k;
    if (number[d] > 0) copies *= 2;
  }
  const bool counts = square > 0 && square <= v.highest2;
  const double volume = v.side[0] * v.side[1] * v.side[2];
  v.factors[i] = counts ? sum * copies * 4 * PI / volume * exp(-square / (4 * v.alpha * v.alpha)) / square : 0;
}

// All waves at a target: a warp has one.
__global__ void __launch_bounds__(32 * AT_WARPS) ewald_waves(EwaldView v) {
  extern __shared__ double2 tables[];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, target = blockIdx.x * (blockDim.x / 32) + warp;
  if (target >= v.count) return;
  const unsigned width[3] = {v.most[0] + 1, v.most[1] + 1, v.most[2] + DEEP}, row = width[0] + width[1] + width[2];
  const Body b = v.targets[target_of(v, target)];
  double2 *mine = tables + warp * row;
  if (lane < 3) {
    const unsigned start = lane == 0 ? 0 : lane == 1 ? width[0] : width[0] + width[1];
    const double x = (lane == 0 ? b.x : lane == 1 ? b.y : b.z) * v.scale;
    turn(1, x, v.side[lane], reinterpret_cast<double *>(mine + start), width[lane]);
  }
  __syncwarp();
  constexpr double TURN = 6.28318530717958647693;
  double sum[4] = {};
  for (unsigned i = lane; i < v.columns_len * DEEP; i += 32) {
    const uint4 waves = v.columns[i / DEEP];
    const unsigned c = waves.z + i % DEEP;
    const double2 x = mine[waves.x], y = mine[width[0] + waves.y], z = mine[width[0] + width[1] + c];
    const double k[3] = {TURN * waves.x / v.side[0], TURN * waves.y / v.side[1], TURN * c / v.side[2]};
    const double *f = v.factors + size_t(i) * 8;
    double u[4], dz[4];
#pragma unroll
    for (unsigned j = 0; j < 4; j++) {
      u[j] = f[2 * j] * z.x + f[2 * j + 1] * z.y;
      dz[j] = k[2] * (f[2 * j + 1] * z.x - f[2 * j] * z.y);
    }
    double w[2], wy[2], wz[2];
#pragma unroll
    for (unsigned j = 0; j < 2; j++) {
      w[j] = u[2 * j] * y.x + u[2 * j + 1] * y.y;
      wy[j] = k[1] * (u[2 * j + 1] * y.x - u[2 * j] * y.y);
      wz[j] = dz[2 * j] * y.x + dz[2 * j + 1] * y.y;
    }
    sum[0] += w[0] * x.x + w[1] * x.y;
    sum[1] -= k[0] * (w[1] * x.x - w[0] * x.y);
    sum[2] -= wy[0] * x.x + wy[1] * x.y;
    sum[3] -= wz[0] * x.x + wz[1] * x.y;
  }
  for (unsigned j = 0; j < 4; j++) {
    const double all = warp_sum(sum[j]);
    if (lane == 0) v.waves[size_t(target) * 4 + j] = all;
  }
}

// Adds the sums in real space and over waves. Writes them to the caller's order, or with the
// results to check to rows of the guard. A warp has a target.
__global__ void __launch_bounds__(TILE) ewald_join(EwaldView v) {
  const unsigned target = blockIdx.x * (TILE / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (target >= v.count) return;
  double sum[5] = {};
  for (unsigned share = lane; share < v.shares; share += 32) {
    const double *other = v.partial + (size_t(share) * v.count + target) * 5;
    for (int k = 0; k < 4; k++) sum[k] += other[k];
    sum[4] = fmax(sum[4], other[4]);
  }
  for (int k = 0; k < 4; k++) sum[k] = warp_sum(sum[k]) + v.waves[size_t(target) * 4 + k];
  for (int step = 16; step > 0; step /= 2) sum[4] = fmax(sum[4], __shfl_xor_sync(~0u, sum[4], step));
  if (lane > 0) return;
  sum[0] = (sum[0] - v.background) * v.potential_scale;
  for (int k = 1; k < 4; k++) sum[k] *= v.field_scale;
  const size_t place = v.order ? v.order[target_of(v, target)] : target_of(v, target);
  if (!v.out) {
    v.potential[place] = sum[0];
    for (int k = 0; k < 3; k++) v.field[3 * place + k] = sum[1 + k];
    return;
  }
  double *out = v.out + BOX_ROW * size_t(target);
  for (int k = 0; k < 4; k++) out[k] = sum[k];
  out[4] = sqrt(sum[4]) * v.field_scale;
  out[5] = v.potential[place];
  for (int k = 0; k < 3; k++) {
    out[6 + k] = v.field[3 * place + k];
    out[10 + k] = v.position[3 * place + k];
  }
  out[9] = v.weight[target];
}
}
