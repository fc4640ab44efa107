// Direct sums in double precision at a sample of targets: what a sum is measured by. A block has one target and one share of the
// sources.
#include "softening.cuh"
#include "view.cuh"

template <template <typename> class Kernel> __device__ inline void guard(const GuardView &v) {
  __shared__ double sums[4][TILE];
  const Kernel<double> kernel(v.softening);
  const unsigned target = blockIdx.y, part = blockIdx.x, me = threadIdx.x;
  const double *at = v.places + 3 * size_t(target);
  const double x = at[0] * v.scale, y = at[1] * v.scale, z = at[2] * v.scale;
  const uint64_t begin = uint64_t(v.n) * part / v.parts, end = uint64_t(v.n) * (part + 1) / v.parts;
  double sum[3] = {}, largest = 0;
  for (uint64_t j = begin + me; j < end; j += TILE) {
    const Body b = v.sources[j];
    const double dx = fma(-b.x, v.scale, x), dy = fma(-b.y, v.scale, y), dz = fma(-b.z, v.scale, z);
    const double r2 = fma(dx, dx, fma(dy, dy, dz * dz));
    const double g = kernel.force(b.q, r2 + kernel.raise());
    sum[0] = fma(g, dx, sum[0]);
    sum[1] = fma(g, dy, sum[1]);
    sum[2] = fma(g, dz, sum[2]);
    largest = fmax(largest, g * g * r2);
  }
  for (int k = 0; k < 3; k++) sums[k][me] = sum[k];
  sums[3][me] = largest;
  for (unsigned half = TILE / 2; half > 0; half /= 2) {
    __syncthreads();
    if (me >= half) continue;
    for (int k = 0; k < 3; k++) sums[k][me] += sums[k][me + half];
    sums[3][me] = fmax(sums[3][me], sums[3][me + half]);
  }
  __syncthreads();
  if (me < 4) v.partial[(size_t(target) * v.parts + part) * 4 + me] = sums[me][0];
}

extern "C" {
__global__ void __launch_bounds__(TILE) guard_newton_f64(GuardView v) { guard<Newton>(v); }
__global__ void __launch_bounds__(TILE) guard_plummer_f64(GuardView v) { guard<Plummer>(v); }
__global__ void __launch_bounds__(TILE) guard_p1_f64(GuardView v) { guard<P1>(v); }
__global__ void __launch_bounds__(TILE) guard_spline_f64(GuardView v) { guard<Spline>(v); }
}
