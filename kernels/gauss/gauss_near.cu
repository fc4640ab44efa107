// P2P of Gaussians: pairs of points, directly. A warp has up to 32 targets of one box; where it has fewer, its lanes share the sources.
#include "gauss/gauss.cuh"

constexpr unsigned ALL_LANES = 0xffffffff;
// sqrt(log2(e)/2) and its inverse: squares of differences in this unit are exponents of two.
constexpr double UNIT = 0.84932180028801904, INVERSE_UNIT = 1.1774100225154747;

__device__ inline float power_of_half(float y) {
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(-y));
  return e;
}

// What a source is to the targets of a box: as it is in double precision, relative to the center in units of sigma/UNIT in single.
struct alignas(16) Exact {
  double x, y, z, q;
};
struct alignas(16) Short {
  float x, y, z, q;
};

template <typename S> __device__ S relative(const GaussView &v, const GaussPoint &p, const GaussPoint &center);
template <> __device__ inline Exact relative(const GaussView &, const GaussPoint &p, const GaussPoint &) {
  return {p.x[0], p.x[1], p.x[2], p.q};
}
template <> __device__ inline Short relative(const GaussView &v, const GaussPoint &p, const GaussPoint &center) {
  const double unit = v.scale * UNIT;
  return {float((p.x[0] - center.x[0]) * unit), float((p.x[1] - center.x[1]) * unit), float((p.x[2] - center.x[2]) * unit),
          float(p.q * v.strength)};
}

template <int TERMS> __device__ inline double weight(const GaussView &v, double r2) {
  // The square of the scale leaves no number's range; that of a distance may, where nothing is left of the exponential.
  return power_of_half<TERMS>(r2 * (v.scale * v.scale * (0.5 * LOG2_E)));
}
template <int TERMS> __device__ inline float weight(const GaussView &, float r2) { return power_of_half(r2); }

template <typename S, typename Real, int TERMS, bool SLOPE> __device__ void near(const GaussView &v) {
  __shared__ S held[NEAR_WARPS][32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t number = size_t(blockIdx.x) * NEAR_WARPS + warp;
  if (number >= v.count) return;
  const uint4 task = reinterpret_cast<const uint4 *>(v.tasks)[number];
  const unsigned targets = task.w - task.z;
  unsigned width = 1;
  while (width < targets) width *= 2;
  const unsigned parts = 32 / width, part = lane / width, mine = min(lane % width, targets - 1);
  const GaussPoint center = v.center[task.y];
  const S at = relative<S>(v, v.points[task.z + mine], center);
  Feed feed = {v.list, v.start[task.y], v.start[task.y + 1], 0, 0};
  double total[SLOPE ? 4 : 1] = {};
  while (true) {
    uint32_t index = 0;
    const uint32_t filled = feed.take(32, lane, index);
    if (filled == 0) break;
    __syncwarp();
    if (lane < filled) held[warp][lane] = relative<S>(v, v.sources[index], center);
    __syncwarp();
    // In single precision no more than 32 terms are added up.
    Real sum[SLOPE ? 4 : 1] = {};
#pragma unroll 4
    for (unsigned s = part; s < filled; s += parts) {
      const S from = held[warp][s];
      const Real x = at.x - from.x, y = at.y - from.y, z = at.z - from.z;
      const Real term = from.q * weight<TERMS>(v, x * x + y * y + z * z);
      sum[0] += term;
      if (SLOPE) {
        sum[SLOPE] -= term * x;
        sum[2 * SLOPE] -= term * y;
        sum[3 * SLOPE] -= term * z;
      }
    }
#pragma unroll
    for (int d = 0; d < (SLOPE ? 4 : 1); d++) total[d] += sum[d];
  }
#pragma unroll
  for (int d = 0; d < (SLOPE ? 4 : 1); d++)
    for (unsigned k = width; k < 32; k *= 2) total[d] += __shfl_xor_sync(ALL_LANES, total[d], k);
  if (lane >= targets) return;
  double *out = v.out + size_t(task.z + lane) * v.values;
  const double inverse = sizeof(Real) == 4 ? 1 / v.strength : 1;
  out[0] = fma(inverse, total[0], out[0]);
  const double unit = sizeof(Real) == 4 ? INVERSE_UNIT * inverse : v.scale;
  if (SLOPE)
    for (unsigned d = 0; d < v.axes; d++) {
      const double sum = d == 0 ? total[SLOPE] : d == 1 ? total[2 * SLOPE] : total[3 * SLOPE];
      out[1 + d] = fma(unit, sum, out[1 + d]);
    }
}

extern "C" {
#define NEAR(NAME, S, REAL, TERMS, SLOPE) \
  __global__ void __launch_bounds__(32 * NEAR_WARPS, 6) NAME(GaussView v) { near<S, REAL, TERMS, SLOPE>(v); }
NEAR(gauss_p2p_f32, Short, float, 0, false)
NEAR(gauss_p2p_f32_slope, Short, float, 0, true)
NEAR(gauss_p2p_8, Exact, double, 8, false)
NEAR(gauss_p2p_8_slope, Exact, double, 8, true)
NEAR(gauss_p2p_13, Exact, double, 13, false)
NEAR(gauss_p2p_13_slope, Exact, double, 13, true)
}
