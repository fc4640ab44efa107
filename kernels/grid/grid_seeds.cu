// Particles from cells: those of a level with vorticity, in the order of their blocks (fmm-core's
// `grid/flow/particles.rs`).
#include "common/scan.cuh"
#include "grid/fields.cuh"

// Whether cell `c` of the block becomes a particle.
__device__ inline bool is_seed(const SeededView &v, const uint32_t *seeded, const double *w, const double *d, unsigned c) {
  if (is_zero(w + 3 * c) && (d == nullptr || is_zero(d + 3 * c))) return false;
  // Of blocks of the grid, all cells.
  if (seeded[0] < v.own_blocks) return true;
  const int i = c % BLOCK, j = c / BLOCK % BLOCK, k = c / (BLOCK * BLOCK);
  if (!is_near(seeded[1], i, j, k, int(seeded[4]))) return false;
  if (seeded[2] == NO_BLOCK) return true;
  const unsigned part = seeded[3];
  const size_t above = size_t(BLOCK_CELLS) * seeded[2] + 8 * (part & 1) + i / 2 + BLOCK * (8 * (part >> 1 & 1) + j / 2 + BLOCK * (8 * (part >> 2) + k / 2));
  return !is_zero(v.vorticity + 3 * above) || (v.diffused != nullptr && !is_zero(v.diffused + 3 * above));
}

// Threads have 16 cells of a block each, which follow one another.
constexpr unsigned EACH = BLOCK_CELLS / FIELD_THREADS;

extern "C" {
__global__ void __launch_bounds__(FIELD_THREADS) seeds_count(SeededView v) {
  const uint32_t *seeded = v.seeded + SEEDED * size_t(blockIdx.x);
  const double *w = cells_of(v.vorticity, v.vorticity_made, v.own_blocks, seeded[0], 3);
  const double *d = v.diffused ? cells_of(v.diffused, v.diffused_made, v.own_blocks, seeded[0], 3) : nullptr;
  uint32_t count = 0, all;
  for (unsigned n = 0; n < EACH; n++) count += is_seed(v, seeded, w, d, EACH * threadIdx.x + n);
  block_exclusive(count, all);
  if (threadIdx.x == 0) v.counts[blockIdx.x] = all;
}

__global__ void __launch_bounds__(FIELD_THREADS) seeds_write(SeededView v) {
  const uint32_t *seeded = v.seeded + SEEDED * size_t(blockIdx.x);
  const double *w = cells_of(v.vorticity, v.vorticity_made, v.own_blocks, seeded[0], 3);
  const double *d = v.diffused ? cells_of(v.diffused, v.diffused_made, v.own_blocks, seeded[0], 3) : nullptr;
  const double *motion = cells_of(v.motion, v.motion_made, v.own_blocks, seeded[0], 12);
  const uint32_t *block = v.block + 4 * size_t(seeded[0]);
  const double h = spacing_of(v.spacing, block[3]);
  uint32_t count = 0, all;
  for (unsigned n = 0; n < EACH; n++) count += is_seed(v, seeded, w, d, EACH * threadIdx.x + n);
  size_t place = v.first[blockIdx.x] + block_exclusive(count, all);
  for (unsigned n = 0; n < EACH; n++) {
    const unsigned c = EACH * threadIdx.x + n, cell[3] = {c % BLOCK, c / BLOCK % BLOCK, c / (BLOCK * BLOCK)};
    if (!is_seed(v, seeded, w, d, c)) continue;
    const double *m = motion + 12 * c, *here = w + 3 * c;
    for (unsigned k = 0; k < 3; k++) {
      const double *g = m + 3 + 3 * k;
      v.position[3 * place + k] = center_of(v.corner[k], h, block[k], cell[k]);
      v.weight[3 * place + k] = here[k];
      v.velocity[3 * place + k] = m[k];
      v.growth[3 * place + k] = here[0] * g[0] + here[1] * g[1] + here[2] * g[2] + (d ? d[3 * c + k] : 0.0);
    }
    place++;
  }
}
}
