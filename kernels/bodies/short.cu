// Forces that join those of the sum, with the formulas of fmm-core's `forces/`, in double precision throughout.
#include "arguments/forces.cuh"
#include "common/image.cuh"
#include "common/softening.cuh"

// Threads of a block of the kernels that have a particle a thread.
constexpr unsigned EACH = 256;

// Warps of a block.
constexpr unsigned SHORT_WARPS = 4;

// Energy and -u'/r of two ions at r^2, within the cut-off.
__device__ inline double of_two(const double *kind, double r2, double cutoff, double &energy) {
  const double inverse = 1 / r2, r = sqrt(r2), t = kind[0] * inverse, six = t * t * t;
  energy = 4 * kind[1] * six * (six - 1) - kind[2] + (r - cutoff) * kind[3];
  return 24 * kind[1] * six * (2 * six - 1) * inverse - kind[3] / r;
}

// K and -K'/r at r^2.
template <template <typename> class Kernel> __device__ inline double of_kernel(double length, double r2, double &potential) {
  const Kernel<double> kernel(length);
  return kernel.both(1, r2 + kernel.raise(), potential);
}

__device__ inline double warp_total(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

template <template <typename> class Kernel> __device__ inline void excluded(const ExclusionView &v) {
  const size_t i = size_t(blockIdx.x) * EACH + threadIdx.x;
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
__global__ void __launch_bounds__(EACH) external_field(const __grid_constant__ ExternalView v) {
  const size_t i = size_t(blockIdx.x) * EACH + threadIdx.x;
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
  __global__ void __launch_bounds__(EACH) exclusions_##NAME(const __grid_constant__ ExclusionView v) { excluded<KERNEL>(v); }
FOR_EACH_KERNEL(EXCLUSIONS)

// A warp has a leaf, each lane a target, and walks the tree for all leaves within the cut-off.
__global__ void __launch_bounds__(32 * SHORT_WARPS) short_range(const __grid_constant__ ShortView v) {
  __shared__ Body batch[SHORT_WARPS][32];
  __shared__ double kinds[4][4];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x < 16) kinds[threadIdx.x / 4][threadIdx.x % 4] = v.kinds[threadIdx.x / 4][threadIdx.x % 4];
  __syncthreads();
  const uint32_t w = blockIdx.x * SHORT_WARPS + warp;
  if (w >= v.count) return;
  const CellsView &tree = v.cells;
  const uint32_t leaf = v.leaves[w], begin = tree.bodies[2 * leaf], end = tree.bodies[2 * leaf + 1];
  const double cut2 = v.cutoff * v.cutoff;
  const double half = ldexp(tree.side, -int(tree.level[leaf]) - 1);
  double energy = 0, virial = 0;
  for (uint32_t first = begin; first < end; first += 32) {
    const uint32_t i = first + lane;
    const Body mine = v.ions[min(i, end - 1)];
    double force[3] = {};
    for (int number = 0; number < 27; number++) {
      const double shift[3] = {(number % 3 - 1) * v.sides[0], (number / 3 % 3 - 1) * v.sides[1], (number / 9 - 1) * v.sides[2]};
      for (uint32_t c = 0; c != ~0u;) {
        const uint32_t child = tree.children[2 * c], skip = tree.skip[c];
        const double reach = half + ldexp(tree.side, -int(tree.level[c]) - 1);
        double gap2 = 0;
        for (int d = 0; d < 3; d++) {
          const double apart = fabs(tree.center[3 * size_t(c) + d] + shift[d] - tree.center[3 * size_t(leaf) + d]);
          // Rounding must not lose a pair.
          const double gap = fmax(apart - reach * v.aspect[d] * (1 + 1e-12), 0.0);
          gap2 += gap * gap;
        }
        if (gap2 >= cut2) {
          c = skip;
          continue;
        }
        if (child != tree.children[2 * c + 1]) {
          c = child;
          continue;
        }
        const uint32_t to = tree.bodies[2 * c + 1];
        for (uint32_t from = tree.bodies[2 * c]; from < to; from += 32) {
          const unsigned held = min(32u, to - from);
          __syncwarp();
          if (lane < held) {
            Body s = v.ions[from + lane];
            s.x += shift[0];
            s.y += shift[1];
            s.z += shift[2];
            batch[warp][lane] = s;
          }
          __syncwarp();
          for (unsigned j = 0; j < held; j++) {
            const Body s = batch[warp][j];
            const double d[3] = {mine.x - s.x, mine.y - s.y, mine.z - s.z};
            const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            if (r2 >= cut2 || r2 == 0 || i >= end) continue;
            const double *kind = kinds[2 * (mine.q < 0) + (s.q < 0)];
            double both;
            const double slope = of_two(kind, r2, v.cutoff, both);
            for (int k = 0; k < 3; k++) force[k] += slope * d[k];
            energy += 0.5 * both;
            virial += 0.5 * slope * r2;
          }
        }
        c = skip;
      }
    }
    if (i < end) {
      const size_t place = v.order[i];
      for (int k = 0; k < 3; k++) v.field[3 * place + k] += v.per_charge * force[k] / mine.q;
    }
  }
  energy = warp_total(energy);
  virial = warp_total(virial);
  if (lane == 0) {
    v.partial[2 * w] = energy;
    v.partial[2 * w + 1] = virial;
  }
}
}
