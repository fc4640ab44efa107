// M2L in the plane on the tensor cores: the operator of planar_far.cu. A warp has a target box, whose sources it takes 16 at a time: the terms of
// their multipoles, times powers of sigma, are the rows of a product with the kernel's matrix, and the columns, times powers of tau, are added up,
// by the lanes that have them at first and by all in a fixed order at the end.
#include "planar/planar.cuh"
#include "common/tensor.cuh"

constexpr unsigned LANES_OF_WARP = 0xffffffff;

__device__ inline Complex square(Complex a) { return {fma(-a.y, a.y, a.x * a.x), 2 * a.x * a.y}; }
__device__ inline double shuffled(double x, unsigned from) { return __shfl_sync(LANES_OF_WARP, x, from); }
__device__ inline Complex shuffled(Complex z, unsigned from) { return {shuffled(z.x, from), shuffled(z.y, from)}; }

// The products of 16 rows of P numbers with 8 columns of the matrix, whose numbers lie as lanes have them.
template <int P> __device__ inline void product(const double (*row)[P / 4], const double *matrix, double (*sum)[2]) {
  constexpr int K = P / 4;
  double m[K];
#pragma unroll
  for (int e = 0; e < K; e++) m[e] = matrix[32 * e];
  sum[0][0] = sum[0][1] = sum[1][0] = sum[1][1] = 0;
#pragma unroll
  for (int e = 0; e + 4 <= K; e += 4) mma_f64<4>(sum[0], sum[1], row[0] + e, row[1] + e, m + e);
  if constexpr (K & 2) mma_f64<2>(sum[0], sum[1], row[0] + K / 4 * 4, row[1] + K / 4 * 4, m + K / 4 * 4);
  if constexpr (K & 1) mma_f64<1>(sum[0], sum[1], row[0] + K - 1, row[1] + K - 1, m + K - 1);
}

// What a warp keeps of 32 sources in shared memory: powers of sigma from 0 to 4, the factors of terms 0, 2, .. and 1, 3, .. of the local expansion,
// tau^8, and the logarithm. A stride of 34 lets lanes 4g + t read the powers of order t of rows g at once.
enum { POWER = 0, LEAP = 4, EVEN = 5, ODD = 9, JUMP = 13, LOGARITHM = 14, SLOTS = 15 };
constexpr unsigned STRIDE = 34;

// 1/x to about the last digit for normal x, from the unit's estimate of some 20 bits: 1/(1 - e) = 1 + e + e^2 + ..
__device__ inline double inverse(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double e = fma(-x, y, 1.0);
  return fma(y, fma(e, e, e), y);
}

// Where a target box lies, and a source of it for each lane.
struct Place {
  Complex own, center;
  int exponent, from;
};

// Up to P terms, a multiple of 4.
template <int P, bool LOG> __device__ void m2l_pairs(const PlaneView &v) {
  constexpr int K = P / 4, N = (P + 7) / 8;
  __shared__ double matrix[N * K * 32];
  __shared__ Complex held[M2L_WARPS][SLOTS * STRIDE];
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (unsigned i = threadIdx.x; i < N * K * 32; i += 32 * M2L_WARPS) {
    const unsigned k = i / 32 % K * 4 + i % 4, l = i / (32 * K) * 8 + i % 32 / 4;
    matrix[i] = k < v.terms && l < v.terms ? v.matrix[l * v.terms + k] : 0;
  }
  __syncthreads();
  const uint32_t group = (blockIdx.x * M2L_WARPS + threadIdx.x / 32) * PAIR_BOXES;
  if (group >= v.count) return;
  const uint32_t boxes = min(PAIR_BOXES, v.count - group), first = v.first + group;
  const Complex *multipoles = reinterpret_cast<const Complex *>(v.multipoles) + t;
  const Complex *target = reinterpret_cast<const Complex *>(v.targets.center), *other = reinterpret_cast<const Complex *>(v.sources.center);
  // Sources are counted from the first of these boxes.
  const uint64_t begin = v.start[first];
  const uint32_t *sources = v.source + begin;
  const uint32_t ends = uint32_t(v.start[first + 1 + min(lane, boxes - 1)] - begin);
  Complex *own_slots = held[threadIdx.x / 32];
  own_slots[POWER * STRIDE + lane] = {1, 0};
  double sum[N][4] = {};

  auto end_of = [&](uint32_t b) { return __shfl_sync(LANES_OF_WARP, ends, b); };
  // Each exchange leaves a lane half of its numbers, with those of the other added.
  auto close = [&](uint32_t b) {
#pragma unroll
    for (unsigned n = 0; n < N; n++) {
      const bool upper = lane & 16, odd = lane & 8;
      const double a = (upper ? sum[n][2] : sum[n][0]) + __shfl_xor_sync(LANES_OF_WARP, upper ? sum[n][0] : sum[n][2], 16);
      const double c = (upper ? sum[n][3] : sum[n][1]) + __shfl_xor_sync(LANES_OF_WARP, upper ? sum[n][1] : sum[n][3], 16);
      double whole = (odd ? c : a) + __shfl_xor_sync(LANES_OF_WARP, odd ? a : c, 8);
      whole += __shfl_xor_sync(LANES_OF_WARP, whole, 4);
      const unsigned l = 8 * n + 2 * t + upper;
      if (!(lane & 4) && l < v.terms) v.locals[(size_t(first + b) * v.terms + l) * 2 + odd] = whole;
      sum[n][0] = sum[n][1] = sum[n][2] = sum[n][3] = 0;
    }
  };
  // The first box from b on that has sources, where they begin at `base`; those without have no expansions.
  auto skip = [&](uint32_t b, uint32_t base) {
    while (b < boxes && end_of(b) == base) close(b++);
    return b;
  };
  auto source_of = [&](uint32_t base, uint32_t end) { return sources[min(base + lane, end - 1)]; };
  auto place_of = [&](uint32_t b, uint32_t source) {
    return Place{target[first + b], other[source], v.targets.exponent[first + b], v.sources.exponent[source]};
  };
  Complex x[2][K];
  auto load = [&](uint32_t source, unsigned half) {
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
      const Complex *a = multipoles + size_t(__shfl_sync(LANES_OF_WARP, source, half + 8 * r + g)) * v.terms;
#pragma unroll
      for (unsigned e = 0; e < K; e++) x[r][e] = t + 4 * e < v.terms ? a[4 * e] : Complex{0, 0};
    }
  };

  uint32_t base = 0, b = skip(0, base);
  if (b == boxes) return;
  uint32_t end = end_of(b), source = source_of(base, end);
  Place place = place_of(b, source);
  while (true) {
    // What follows is on its way meanwhile.
    const bool last = base + 32 >= end;
    const uint32_t next_base = last ? end : base + 32;
    const bool more = !last || next_base < end_of(boxes - 1);
    uint32_t next = b, next_end = end, next_source = 0;
    if (more) {
      while (next_end == next_base) next_end = end_of(++next);
      next_source = source_of(next_base, next_end);
    }
    // The geometry, of a source a lane. In the larger unit squares stay in the range of numbers.
    {
      const int largest = max(place.exponent, place.from);
      const double scale = power_of_two(-largest);
      const Complex d = {(place.own.x - place.center.x) * scale, (place.own.y - place.center.y) * scale};
      const double norm = fma(d.x, d.x, d.y * d.y), f = inverse(norm);
      const double us = f * power_of_two(place.from - largest), ut = -f * power_of_two(place.exponent - largest);
      const Complex s = {us * d.x, -us * d.y}, u = {ut * d.x, -ut * d.y}, s2 = square(s), u2 = square(u), u4 = square(u2);
      Complex *to = own_slots + lane;
      to[(POWER + 1) * STRIDE] = s;
      to[(POWER + 2) * STRIDE] = s2;
      to[(POWER + 3) * STRIDE] = times(s, s2);
      if (K > 1) to[LEAP * STRIDE] = square(s2);
      // tau^l, and for the harmonic kernel -tau times it; nothing of lanes without a source.
      const double one = base + lane < end ? 1 : 0;
      Complex even = LOG ? Complex{one, 0} : Complex{-one * u.x, -one * u.y}, odd = times(even, u);
#pragma unroll
      for (unsigned l = 0; l < 4; l++) {
        to[(EVEN + l) * STRIDE] = even;
        to[(ODD + l) * STRIDE] = odd;
        if (l < 3) even = times(even, u2), odd = times(odd, u2);
      }
      if (N > 1) to[JUMP * STRIDE] = square(u4);
      // log |t| in the caller's unit.
      if (LOG) to[LOGARITHM * STRIDE].x = one * fma(double(largest + v.global), 0.69314718055994530942, 0.5 * log(norm));
    }
    __syncwarp();
#pragma unroll 1
    for (unsigned half = 0; half < 32 && base + half < end; half += 16) {
      load(source, half);
      double re[2][K], im[2][K];
#pragma unroll
      for (unsigned r = 0; r < 2; r++) {
        const Complex *slot = own_slots + half + 8 * r + g;
        if (LOG && t == 0) sum[0][0] = fma(x[r][0].x, slot[LOGARITHM * STRIDE].x, sum[0][0]);
        Complex power = slot[(POWER + t) * STRIDE];
#pragma unroll
        for (unsigned e = 0; e < K; e++) {
          const Complex y = times(x[r][e], power);
          re[r][e] = y.x, im[r][e] = y.y;
          if (e + 1 < K) power = times(power, slot[LEAP * STRIDE]);
        }
      }
      if (more && (half > 0 || base + 16 >= end)) place = place_of(next, next_source);
      Complex even[2], odd[2];
#pragma unroll
      for (unsigned r = 0; r < 2; r++) {
        even[r] = own_slots[half + 8 * r + g + (EVEN + t) * STRIDE];
        odd[r] = own_slots[half + 8 * r + g + (ODD + t) * STRIDE];
      }
#pragma unroll
      for (unsigned n = 0; n < N; n++) {
        double real[2][2], imaginary[2][2];
        product<P>(re, matrix + n * K * 32 + lane, real);
        product<P>(im, matrix + n * K * 32 + lane, imaginary);
#pragma unroll
        for (unsigned r = 0; r < 2; r++) {
          sum[n][0] = fma(-even[r].y, imaginary[r][0], fma(even[r].x, real[r][0], sum[n][0]));
          sum[n][1] = fma(even[r].y, real[r][0], fma(even[r].x, imaginary[r][0], sum[n][1]));
          sum[n][2] = fma(-odd[r].y, imaginary[r][1], fma(odd[r].x, real[r][1], sum[n][2]));
          sum[n][3] = fma(odd[r].y, real[r][1], fma(odd[r].x, imaginary[r][1], sum[n][3]));
          if (n + 1 < N) {
            const Complex jump = own_slots[half + 8 * r + g + JUMP * STRIDE];
            even[r] = times(even[r], jump), odd[r] = times(odd[r], jump);
          }
        }
      }
    }
    __syncwarp();
    if (last) {
      close(b);
      b = skip(b + 1, end);
    }
    if (!more) return;
    base = next_base, end = next_end, source = next_source;
  }
}

#define PAIRS(P, BLOCKS)                                                                                                                 \
  __global__ void __launch_bounds__(32 * M2L_WARPS, BLOCKS) planar_pairs_harmonic_##P(PlaneView v) { m2l_pairs<P, false>(v); }           \
  __global__ void __launch_bounds__(32 * M2L_WARPS, BLOCKS) planar_pairs_log_##P(PlaneView v) { m2l_pairs<P, true>(v); }
extern "C" {
PAIRS(8, 6)
PAIRS(12, 4)
PAIRS(16, 4)
PAIRS(20, 3)
PAIRS(24, 3)
PAIRS(28, 2)
PAIRS(32, 2)
}
