// Direct sums in the plane: leaves with their rows, all pairs, and the sample of the guard. A thread has a target.
#include "planar/planar_pairs.cuh"

// Leaves against the leaves of their rows, in units of the target's leaf.
template <bool LOG, bool COMPLEX, int BLOB> __device__ void p2p(const PlaneView &v) {
  const uint32_t i = blockIdx.x * 128 + threadIdx.x;
  if (i >= v.targets.n) return;
  const uint32_t leaf = leaf_of(v.targets, i);
  int exponent = v.targets.exponent[leaf];
  if (BLOB != POINT) exponent = max(exponent, int(log2(v.core)) - 10);
  const double scale = power_of_two(-exponent), core = v.core * scale;
  const double shift = 2 * LN2 * (exponent + v.global);
  const PlanePoint own = v.at[i];
  const double x = own.x * scale, y = own.y * scale;
  Sums<LOG, COMPLEX> sums;
  const uint64_t end = v.start[leaf + 1];
  for (uint64_t row = v.start[leaf]; row < end; row++) {
    const uint2 range = reinterpret_cast<const uint2 *>(v.sources.points)[v.source[row]];
#pragma unroll 4
    for (uint32_t j = range.x; j < range.y; j++) {
      const double2 *from = reinterpret_cast<const double2 *>(v.bodies + j);
      const double2 at = from[0], q = from[1];
      // Multiplying by a power of two is exact: one rounding, that of the difference.
      sums.template add<BLOB>(fma(-scale, at.x, x), fma(-scale, at.y, y), q.x, q.y, core, shift);
    }
  }
  if (LOG) v.potential[i] = 0.5 * sums.potential - (v.same ? v.at_center * own.q : 0);
  reinterpret_cast<double2 *>(v.g)[i] = make_double2(sums.re * scale, sums.im * scale);
}

constexpr unsigned ALL_THREADS = 128;

// The share of one part of the sources. SAMPLE: every so many-th target, and the largest squared term in place of the potential.
template <bool LOG, int BLOB, bool SAMPLE> __device__ void all_pairs(const AllPairsView &v) {
  __shared__ double2 place[ALL_THREADS], strength[ALL_THREADS];
  const uint32_t i = blockIdx.x * ALL_THREADS + threadIdx.x;
  size_t target = i < v.targets ? i : 0;
  if (SAMPLE) target = min(target * v.step + target * 7 % v.step, size_t(v.all) - 1);
  const PlanePoint own = v.at[target];
  const uint64_t each = (uint64_t(v.sources) + v.parts - 1) / v.parts;
  const uint64_t begin = min(each * blockIdx.y, uint64_t(v.sources)), end = min(begin + each, uint64_t(v.sources));
  const double shift = 2 * LN2 * v.global;
  Sums<LOG, true> sums;
  double largest = 0;
  for (uint64_t base = begin; base < end; base += ALL_THREADS) {
    __syncthreads();
    if (base + threadIdx.x < end) {
      const PlanePoint p = v.bodies[base + threadIdx.x];
      place[threadIdx.x] = make_double2(p.x, p.y);
      strength[threadIdx.x] = make_double2(p.q, p.qi);
    }
    __syncthreads();
    const unsigned here = unsigned(min(uint64_t(ALL_THREADS), end - base));
#pragma unroll 4
    for (unsigned j = 0; j < here; j++) {
      const double dx = own.x - place[j].x, dy = own.y - place[j].y;
      const double2 q = strength[j];
      const double square = sums.template add<BLOB>(dx, dy, q.x, q.y, v.core, shift);
      if (SAMPLE) largest = fmax(largest, fma(q.x, q.x, q.y * q.y) * square);
    }
  }
  if (i >= v.targets) return;
  double *to = v.partial + 3 * (size_t(blockIdx.y) * v.targets + i);
  to[0] = SAMPLE ? largest : sums.potential;
  to[1] = sums.re;
  to[2] = sums.im;
}

extern "C" {
// The parts of all pairs, in their order.
__global__ void __launch_bounds__(ALL_THREADS) planar_join(AllPairsView v) {
  const uint32_t i = blockIdx.x * ALL_THREADS + threadIdx.x;
  if (i >= v.targets) return;
  double sum[3] = {0, 0, 0};
  for (uint32_t part = 0; part < v.parts; part++) {
    const double *from = v.partial + 3 * (size_t(part) * v.targets + i);
    sum[0] = v.step ? fmax(sum[0], from[0]) : sum[0] + from[0];
    sum[1] += from[1];
    sum[2] += from[2];
  }
  if (v.step) {
    const size_t target = min(size_t(i) * v.step + size_t(i) * 7 % v.step, size_t(v.all) - 1);
    double *to = v.out + 6 * size_t(i);
    to[0] = sum[1];
    to[1] = sum[2];
    to[2] = sum[0];
    to[3] = v.g[2 * target];
    to[4] = v.g[2 * target + 1];
    to[5] = 0;
    return;
  }
  if (v.log) v.potential[i] = 0.5 * sum[0] - (v.same ? v.at_center * v.at[i].q : 0);
  v.g[2 * size_t(i)] = sum[1];
  v.g[2 * size_t(i) + 1] = sum[2];
}

__global__ void __launch_bounds__(128) planar_p2p_log_point(PlaneView v) { p2p<true, false, POINT>(v); }
__global__ void __launch_bounds__(128) planar_p2p_log_algebraic(PlaneView v) { p2p<true, false, ALGEBRAIC>(v); }
__global__ void __launch_bounds__(128) planar_p2p_log_gaussian(PlaneView v) { p2p<true, false, GAUSSIAN>(v); }
__global__ void __launch_bounds__(128) planar_p2p_real_point(PlaneView v) { p2p<false, false, POINT>(v); }
__global__ void __launch_bounds__(128) planar_p2p_real_algebraic(PlaneView v) { p2p<false, false, ALGEBRAIC>(v); }
__global__ void __launch_bounds__(128) planar_p2p_real_gaussian(PlaneView v) { p2p<false, false, GAUSSIAN>(v); }
__global__ void __launch_bounds__(128) planar_p2p_complex_point(PlaneView v) { p2p<false, true, POINT>(v); }
__global__ void __launch_bounds__(128) planar_p2p_complex_algebraic(PlaneView v) { p2p<false, true, ALGEBRAIC>(v); }
__global__ void __launch_bounds__(128) planar_p2p_complex_gaussian(PlaneView v) { p2p<false, true, GAUSSIAN>(v); }

__global__ void __launch_bounds__(ALL_THREADS) planar_all_log_point(AllPairsView v) { all_pairs<true, POINT, false>(v); }
__global__ void __launch_bounds__(ALL_THREADS) planar_all_log_algebraic(AllPairsView v) { all_pairs<true, ALGEBRAIC, false>(v); }
__global__ void __launch_bounds__(ALL_THREADS) planar_all_log_gaussian(AllPairsView v) { all_pairs<true, GAUSSIAN, false>(v); }
__global__ void __launch_bounds__(ALL_THREADS) planar_all_harmonic_point(AllPairsView v) { all_pairs<false, POINT, false>(v); }
__global__ void __launch_bounds__(ALL_THREADS) planar_all_harmonic_algebraic(AllPairsView v) { all_pairs<false, ALGEBRAIC, false>(v); }
__global__ void __launch_bounds__(ALL_THREADS) planar_all_harmonic_gaussian(AllPairsView v) { all_pairs<false, GAUSSIAN, false>(v); }
__global__ void __launch_bounds__(ALL_THREADS) planar_sample_point(AllPairsView v) { all_pairs<false, POINT, true>(v); }
__global__ void __launch_bounds__(ALL_THREADS) planar_sample_algebraic(AllPairsView v) { all_pairs<false, ALGEBRAIC, true>(v); }
__global__ void __launch_bounds__(ALL_THREADS) planar_sample_gaussian(AllPairsView v) { all_pairs<false, GAUSSIAN, true>(v); }
}
