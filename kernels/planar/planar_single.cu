// Direct sums in the plane in single precision, of pairs that take more than a reciprocal in double: logarithms and algebraic blobs. The place of a target relative to the center of a source leaf is found in double precision, and
// the sources have theirs relative to it: one rounding of 2^-24 of a few units of the leaves. Pairs nearer than NEAR units, for which that is too
// much, are summed in double precision: they are few.
#include "planar/planar_pairs.cuh"

// Squared, in the larger of the units of the two leaves.
constexpr float NEAR_SQUARE = 1.0f / 256;

__device__ inline float inverse_single(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// f and, where it is wanted, twice the potential of a unit strength, for squared distances that are not small.
template <int BLOB, bool LOG> __device__ inline float pair_single(float r2, float e2, float &potential) {
  if (BLOB == POINT) {
    if (LOG) potential = __logf(r2);
    return inverse_single(r2);
  }
  const float sum = r2 + e2, f = inverse_single(sum), e = e2 * f;
  if (LOG) potential = __logf(sum) - e;
  return fmaf(e, f, f);
}

template <bool LOG, bool COMPLEX, int BLOB> __device__ void p2p_single(const PlaneView &v) {
  const uint32_t i = blockIdx.x * 128 + threadIdx.x;
  if (i >= v.targets.n) return;
  const uint32_t leaf = leaf_of(v.targets, i);
  const int least = BLOB == POINT ? -1000 : int(log2(v.core)) - 10;
  const int own_exponent = max(v.targets.exponent[leaf], least);
  const double own_scale = power_of_two(-own_exponent), own_core = v.core * own_scale;
  const double own_shift = 2 * LN2 * (own_exponent + v.global);
  const PlanePoint own = v.at[i];
  const double x = own.x * own_scale, y = own.y * own_scale;
  Sums<LOG, COMPLEX> near;
  double potential = 0, re = 0, im = 0;
  const uint64_t end = v.start[leaf + 1];
  for (uint64_t row = v.start[leaf]; row < end; row++) {
    const uint32_t box = v.source[row];
    const uint2 range = reinterpret_cast<const uint2 *>(v.sources.points)[box];
    const double2 center = reinterpret_cast<const double2 *>(v.sources.center)[box];
    const int other = v.sources.exponent[box], exponent = max(own_exponent, other);
    const double scale = power_of_two(-exponent);
    const float px = float((own.x - center.x) * scale), py = float((own.y - center.y) * scale);
    // A leaf that is 2^100 times smaller is a point.
    const float ratio = float(power_of_two(max(other - exponent, -100)));
    const float core = float(v.core * scale), e2 = core * core;
    float sum = 0, strength = 0, sum_re = 0, sum_im = 0;
#pragma unroll 4
    for (uint32_t j = range.x; j < range.y; j++) {
      const float4 p = reinterpret_cast<const float4 *>(v.single_points)[j];
      const float dx = fmaf(-ratio, p.x, px), dy = fmaf(-ratio, p.y, py);
      const float r2 = fmaf(dx, dx, dy * dy);
      if (r2 < NEAR_SQUARE) {
        const double2 *from = reinterpret_cast<const double2 *>(v.bodies + j);
        const double2 at = from[0], q = from[1];
        near.template add<BLOB>(fma(-own_scale, at.x, x), fma(-own_scale, at.y, y), q.x, q.y, own_core, own_shift);
        continue;
      }
      float twice = 0;
      const float f = pair_single<BLOB, LOG>(r2, e2, twice), fx = f * dx, fy = f * dy;
      sum_re = fmaf(p.z, fx, sum_re);
      sum_im = fmaf(-p.z, fy, sum_im);
      if (COMPLEX) {
        sum_re = fmaf(p.w, fy, sum_re);
        sum_im = fmaf(p.w, fx, sum_im);
      }
      if (LOG) {
        sum = fmaf(p.z, twice, sum);
        strength += p.z;
      }
    }
    re = fma(double(sum_re), scale, re);
    im = fma(double(sum_im), scale, im);
    // The logarithm of the unit is the same for all.
    if (LOG) potential += double(sum) + 2 * LN2 * (exponent + v.global) * double(strength);
  }
  if (LOG) v.potential[i] = 0.5 * (near.potential + potential) - (v.same ? v.at_center * own.q : 0);
  reinterpret_cast<double2 *>(v.g)[i] = make_double2(fma(near.re, own_scale, re), fma(near.im, own_scale, im));
}

extern "C" {
// Sources relative to the centers of their leaves.
__global__ void __launch_bounds__(256) planar_points_single(PlaneView v) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i >= v.sources.n) return;
  const uint32_t leaf = leaf_of(v.sources, i);
  const double scale = power_of_two(-v.sources.exponent[leaf]);
  const double2 center = reinterpret_cast<const double2 *>(v.sources.center)[leaf];
  const PlanePoint p = v.bodies[i];
  const float2 place = make_float2(float((p.x - center.x) * scale), float((p.y - center.y) * scale));
  reinterpret_cast<float4 *>(v.single_points)[i] = make_float4(place.x, place.y, float(p.q), float(p.qi));
}

__global__ void __launch_bounds__(128) planar_p2p_single_log_point(PlaneView v) { p2p_single<true, false, POINT>(v); }
__global__ void __launch_bounds__(128) planar_p2p_single_log_algebraic(PlaneView v) { p2p_single<true, false, ALGEBRAIC>(v); }
__global__ void __launch_bounds__(128) planar_p2p_single_real_algebraic(PlaneView v) { p2p_single<false, false, ALGEBRAIC>(v); }
__global__ void __launch_bounds__(128) planar_p2p_single_complex_algebraic(PlaneView v) { p2p_single<false, true, ALGEBRAIC>(v); }
}
