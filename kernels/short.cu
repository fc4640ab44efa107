// Lennard-Jones forces between ions of a periodic box: those of crates/nbody/src/molecular/lennard_jones.rs. A warp has a leaf, each lane a
// target, and walks the tree for all leaves within the cut-off. Double precision throughout.
#include "geometry.cuh"
#include "image.cuh"

// Warps of a block.
constexpr unsigned SHORT_WARPS = 4;

// An ion in the order of the tree.
struct alignas(32) Ion {
  double x, y, z, q;
};

// Ions of two kinds, told by the sign of their charge.
struct ShortView {
  CellsView cells;
  const uint32_t *leaves;      // [count]
  const uint32_t *order;       // place of each ion in the caller's order
  const Ion *ions;
  double *field;               // [n][3], in the caller's order: added to
  double *partial;             // [count][2]: energy and virial of each leaf
  double kinds[4][4];          // of two kinds: sigma^2, epsilon, and u and -u' at the cut-off
  double sides[3], aspect[3];
  double cutoff, per_charge;   // per_charge: field of a force, times the charge
  uint32_t count, unused;
};

extern "C" __device__ const unsigned short_layout[] = {
    sizeof(Ion), sizeof(ShortView), offsetof(ShortView, kinds), offsetof(ShortView, sides), offsetof(ShortView, count),
};

__device__ inline double warp_total(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

extern "C" {
__global__ void __launch_bounds__(32 * SHORT_WARPS) short_range(const __grid_constant__ ShortView v) {
  __shared__ Ion batch[SHORT_WARPS][32];
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
    const Ion mine = v.ions[min(i, end - 1)];
    double force[3] = {};
    for (int number = 0; number < 27; number++) {
      const double shift[3] = {(number % 3 - 1) * v.sides[0], (number / 3 % 3 - 1) * v.sides[1], (number / 9 - 1) * v.sides[2]};
      for (uint32_t c = 0; c != ~0u;) {
        const uint32_t child = tree.children[2 * c], skip = tree.skip[c];
        const double reach = half + ldexp(tree.side, -int(tree.level[c]) - 1);
        double gap2 = 0;
        for (int d = 0; d < 3; d++) {
          const double apart = fabs(tree.centre[3 * size_t(c) + d] + shift[d] - tree.centre[3 * size_t(leaf) + d]);
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
            Ion s = v.ions[from + lane];
            s.x += shift[0];
            s.y += shift[1];
            s.z += shift[2];
            batch[warp][lane] = s;
          }
          __syncwarp();
          for (unsigned j = 0; j < held; j++) {
            const Ion s = batch[warp][j];
            const double d[3] = {mine.x - s.x, mine.y - s.y, mine.z - s.z};
            const double r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            if (r2 >= cut2 || r2 == 0 || i >= end) continue;
            const double *kind = kinds[2 * (mine.q < 0) + (s.q < 0)];
            const double inverse = 1 / r2, r = sqrt(r2), t = kind[0] * inverse, six = t * t * t;
            const double slope = 24 * kind[1] * six * (2 * six - 1) * inverse - kind[3] / r;
            for (int k = 0; k < 3; k++) force[k] += slope * d[k];
            energy += 0.5 * (4 * kind[1] * six * (six - 1) - kind[2] + (r - v.cutoff) * kind[3]);
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
