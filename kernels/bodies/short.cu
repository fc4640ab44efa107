// Forces that join those of the sum, with the formulas of fmm-core's `forces/`, in double precision throughout.
#include "arguments/forces.cuh"
#include "common/softening.cuh"
#include "common/sums.cuh"
#include "mesh/pairs.cuh"

// Energy and -u'/r of two ions at r^2, within the cut-off.
__device__ inline double of_two(const double *kind, double r2, double cutoff, double &energy) {
  const double of_r = rsqrt(r2), inverse = of_r * of_r, t = kind[0] * inverse, six = t * t * t;
  energy = 4 * kind[1] * six * (six - 1) - kind[2] + (r2 * of_r - cutoff) * kind[3];
  return 24 * kind[1] * six * (2 * six - 1) * inverse - kind[3] * of_r;
}

// Energy, force and virial of ions, whose kinds are the signs of their charges.
struct Ions {
  static constexpr int SUMS = 5;
  const ShortView &v;
  const double (*kinds)[4];

  __device__ void add(double (&sum)[SUMS], double own, double q, double dx, double dy, double dz, double r2) const {
    if (r2 == 0) return;
    double both;
    const double slope = of_two(kinds[2 * (own < 0) + (q < 0)], r2, v.cutoff, both);
    sum[0] += both;
    sum[1] = fused(slope, dx, sum[1]);
    sum[2] = fused(slope, dy, sum[2]);
    sum[3] = fused(slope, dz, sum[3]);
    sum[4] = fused(slope, r2, sum[4]);
  }

  __device__ void keep(bool is_there, unsigned place, const double (&total)[SUMS]) const {
    // Pairs are met from both sides.
    const double energy = warp_sum(is_there ? 0.5 * total[0] : 0), virial = warp_sum(is_there ? 0.5 * total[4] : 0);
    if (threadIdx.x % 32 == 0) {
      double *partial = v.partial + 2 * (size_t(blockIdx.x) * NEAR_WARPS + threadIdx.x / 32);
      partial[0] += energy;
      partial[1] += virial;
    }
    if (!is_there) return;
    const size_t body = v.order[place];
    const double per = v.per_charge / static_cast<const InCell<double> *>(v.bricks.targets)[place].q;
    for (int k = 0; k < 3; k++) v.field[3 * body + k] += per * total[1 + k];
  }
};

// K and -K'/r at r^2.
template <template <typename> class Kernel> __device__ inline double of_kernel(double length, double r2, double &potential) {
  const Kernel<double> kernel(length);
  return kernel.both(1, r2 + kernel.raise(), potential);
}

template <template <typename> class Kernel> __device__ inline void excluded(const ExclusionView &v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  const double own = v.strength[i];
  double field[3] = {}, less = 0, energy = 0, virial = 0;
  for (uint32_t k = v.start[i]; k < v.start[i + 1]; k++) {
    const size_t j = v.partner[k];
    double d[3], r2 = 0;
    for (int c = 0; c < 3; c++) {
      d[c] = v.position[3 * i + c] - v.position[3 * j + c];
      if (v.sides[c] > 0) d[c] -= round(d[c] / v.sides[c]) * v.sides[c];
      r2 += d[c] * d[c];
    }
    const double q = v.strength[j];
    double potential, slope = q * of_kernel<Kernel>(v.softening, r2, potential);
    less += q * potential;
    if (r2 > 0 && r2 < v.cutoff * v.cutoff) {
      double both;
      const double force = of_two(v.kinds[2 * (own < 0) + (q < 0)], r2, v.cutoff, both);
      energy -= 0.5 * both;
      virial -= 0.5 * force * r2;
      slope += v.per_charge * force / own;
    }
    for (int c = 0; c < 3; c++) field[c] += slope * d[c];
  }
  for (int c = 0; c < 3; c++) v.field[3 * i + c] -= field[c];
  v.less[i] = less;
  v.partial[2 * i] = energy;
  v.partial[2 * i + 1] = virial;
}

extern "C" {
__global__ void __launch_bounds__(TILE) external_field(const __grid_constant__ ExternalView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  double d[3], force[3];
  for (int k = 0; k < 3; k++) d[k] = v.position[3 * i + k] - v.center[k];
  const double *p = v.parameter;
  if (v.shape == 0) {
    const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + p[1];
    const double inverse = r2 > 0 ? 1 / sqrt(r2) : 0;
    for (int k = 0; k < 3; k++) force[k] = p[0] * d[k] * (inverse * inverse * inverse);
  } else if (v.shape == 1) {
    const double pull = p[0] / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] / p[2] + p[1]);
    force[0] = pull * d[0];
    force[1] = pull * d[1];
    force[2] = pull * d[2] / p[2];
  } else {
    for (int k = 0; k < 3; k++) force[k] = p[k];
  }
  for (int k = 0; k < 3; k++) v.field[3 * i + k] += v.per_field * force[k];
}

#define EXCLUSIONS(NAME, KERNEL) \
  __global__ void __launch_bounds__(TILE) exclusions_##NAME(const __grid_constant__ ExclusionView v) { excluded<KERNEL>(v); }
FOR_EACH_KERNEL(EXCLUSIONS)

// Energy and virial of the shares of a block.
__global__ void __launch_bounds__(TILE) pair_totals(PairTotalsView v) {
  double sum[2] = {};
  for (size_t i = size_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += size_t(gridDim.x) * TILE)
    for (unsigned k = 0; k < 2; k++) sum[k] += v.partial[2 * i + k];
  block_sums<2>(sum);
  if (threadIdx.x > 0) return;
  for (unsigned k = 0; k < 2; k++) v.total[2 * blockIdx.x + k] = sum[k];
}

// The warps of a block share the targets of a brick of cells.
__global__ void __launch_bounds__(NEAR_THREADS) short_range(const __grid_constant__ ShortView v) {
  __shared__ double kinds[4][4];
  if (threadIdx.x < 16) kinds[threadIdx.x / 4][threadIdx.x % 4] = v.kinds[threadIdx.x / 4][threadIdx.x % 4];
  __syncthreads();
  near<double>(v.bricks, Ions{v, kinds});
}
}
