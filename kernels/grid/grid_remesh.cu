// Between particles and cells of their level (fmm-core's `grid/remesh.rs`). A particle belongs to
// the cell whose center is the last below it along each axis. Particles are sorted by these cells,
// and in each cell by their numbers: so sums have one order.
#include "common/scan.cuh"
#include "grid/fields.cuh"

// The cell along an axis, and where between its center and the next the particle is.
__device__ inline int cell_along(const ParticleView &v, double x, unsigned d, double &s) {
  const double at = (x - v.corner[d]) * v.cells - 0.5, below = floor(at);
  s = at - below;
  return int(below);
}

// The weight of a cell `o` cells on from the particle's own.
template <int REACH> __device__ inline double weight(int o, double s) {
  const double r = fabs(double(o) - s);
  if (REACH == 2) {
    if (o == 0 || o == 1) return 1.0 - r * r * (2.5 - 1.5 * r);
    return 0.5 * (2.0 - r) * (2.0 - r) * (1.0 - r);
  }
  if (o == 0 || o == 1) return (1.0 - r) * (((25.0 * r - 38.0) * r - 3.0) * r * r + 12.0 * r + 12.0) / 12.0;
  if (o == -1 || o == 2) return (r - 1.0) * (r - 2.0) * (((25.0 * r - 114.0) * r + 153.0) * r - 48.0) / 24.0;
  return (3.0 - r) * (r - 2.0) * (r - 3.0) * (r - 3.0) * (5.0 * r - 8.0) / 24.0;
}

// The block of the box that holds a particle, its cell there, and where in it the particle is.
__device__ inline unsigned held_in(const ParticleView &v, size_t i, int (&cell)[3], double (&s)[3]) {
  unsigned box = 0;
  for (int d = 2; d >= 0; d--) {
    const int c = cell_along(v, v.position[3 * i + d], d, s[d]);
    box = box * v.side[d] + unsigned((c >> 4) - v.low[d]);
    cell[d] = c & 15;
  }
  return box;
}

// The number of that cell among those of all blocks with particles.
__device__ inline size_t occupied_cell(const ParticleView &v, size_t i) {
  int cell[3];
  double s[3];
  const size_t block = v.occupied[held_in(v, i, cell, s)];
  return size_t(BLOCK_CELLS) * block + cell_at(cell[0], cell[1], cell[2]);
}

template <int REACH> __device__ inline void scatter(const ParticleView &v) {
  __shared__ uint32_t around[AROUND];
  const size_t number = blockIdx.x / SLICES;
  if (threadIdx.x < AROUND) around[threadIdx.x] = v.around[AROUND * number + threadIdx.x];
  __syncthreads();
  double *out = v.out + size_t(3 * BLOCK_CELLS) * v.targets[number];
  const unsigned c = blockIdx.x % SLICES * FIELD_THREADS + threadIdx.x;
  const int t[3] = {int(c % BLOCK), int(c / BLOCK % BLOCK), int(c / (BLOCK * BLOCK))};
  double sum[3] = {};
  for (int k = t[2] - REACH; k < t[2] + REACH; k++)
    for (int j = t[1] - REACH; j < t[1] + REACH; j++)
      for (int i = t[0] - REACH; i < t[0] + REACH; i++) {
        const uint32_t block = around[block_at(i, j, k)];
        if (block == NO_BLOCK) continue;
        const size_t key = size_t(BLOCK_CELLS) * block + cell_at(i, j, k);
        for (uint32_t p = v.start[key]; p < v.start[key + 1]; p++) {
          const size_t n = v.order[p];
          double all = 1;
          const int o[3] = {t[0] - i, t[1] - j, t[2] - k};
          for (unsigned d = 0; d < 3; d++) {
            double s;
            cell_along(v, v.position[3 * n + d], d, s);
            all *= weight<REACH>(o[d], s);
          }
          for (unsigned d = 0; d < 3; d++) sum[d] = fma(all, v.vorticity[3 * n + d], sum[d]);
        }
      }
  for (unsigned d = 0; d < 3; d++) out[3 * c + d] = sum[d];
}

template <int REACH> __device__ inline void gather(const ParticleView &v) {
  const size_t place = size_t(FIELD_THREADS) * blockIdx.x + threadIdx.x;
  if (place >= v.n) return;
  const size_t i = v.order[place];
  int cell[3];
  double s[3], w[3][2 * REACH];
  const unsigned block = v.occupied[held_in(v, i, cell, s)];
  for (unsigned d = 0; d < 3; d++)
    for (int o = 0; o < 2 * REACH; o++) w[d][o] = weight<REACH>(o - REACH + 1, s[d]);
  const uint32_t *around = v.around + size_t(AROUND) * block;
  double sum[15] = {};
  for (int c = 0; c < 2 * REACH; c++)
    for (int b = 0; b < 2 * REACH; b++)
      for (int a = 0; a < 2 * REACH; a++) {
        const int x = cell[0] + a - REACH + 1, y = cell[1] + b - REACH + 1, z = cell[2] + c - REACH + 1;
        const uint32_t from = around[block_at(x, y, z)];
        if (from == NO_BLOCK) continue;
        const double all = w[0][a] * w[1][b] * w[2][c];
        const size_t at = cell_at(x, y, z);
        const double *m = cells_of(v.motion, v.motion_made, v.own_blocks, from, 12) + 12 * at;
#pragma unroll
        for (unsigned n = 0; n < 12; n++) sum[n] = fma(all, m[n], sum[n]);
        if (v.diffused == nullptr) continue;
        const double *d = cells_of(v.diffused, v.diffused_made, v.own_blocks, from, 3) + 3 * at;
#pragma unroll
        for (unsigned n = 0; n < 3; n++) sum[12 + n] = fma(all, d[n], sum[12 + n]);
      }
  const double *own = v.vorticity + 3 * i;
  for (unsigned k = 0; k < 3; k++) {
    v.velocity[3 * i + k] = sum[k];
    v.growth[3 * i + k] = own[0] * sum[3 + 3 * k] + own[1] * sum[4 + 3 * k] + own[2] * sum[5 + 3 * k] + sum[12 + k];
  }
}

extern "C" {
// The lowest and the highest block along each axis, and how many particles are so near the faces
// that the kernel reaches beyond.
__global__ void __launch_bounds__(FIELD_THREADS) remesh_bounds(ParticleView v) {
  const size_t i = size_t(FIELD_THREADS) * blockIdx.x + threadIdx.x;
  __shared__ int ends[7];
  if (threadIdx.x < 7) ends[threadIdx.x] = threadIdx.x < 3 ? INT32_MAX : threadIdx.x < 6 ? INT32_MIN : 0;
  __syncthreads();
  if (i < v.n) {
    bool inside = true;
    for (unsigned d = 0; d < 3; d++) {
      const double cells = (v.position[3 * i + d] - v.corner[d]) * v.cells;
      // Also of what is no number.
      inside &= cells >= double(v.reach) && cells < v.across - double(v.reach);
    }
    if (!inside) atomicAdd(ends + 6, 1);
    for (unsigned d = 0; d < 3 && inside; d++) {
      double s;
      const int block = cell_along(v, v.position[3 * i + d], d, s) >> 4;
      atomicMin(ends + d, block);
      atomicMax(ends + 3 + d, block);
    }
  }
  __syncthreads();
  if (threadIdx.x < 3) atomicMin(v.bounds + threadIdx.x, ends[threadIdx.x]);
  else if (threadIdx.x < 6) atomicMax(v.bounds + threadIdx.x, ends[threadIdx.x]);
  else if (threadIdx.x == 6) atomicAdd(v.bounds + 6, ends[6]);
}

// How many particles each block of the box holds, and which blocks around these reach.
__global__ void __launch_bounds__(FIELD_THREADS) remesh_reach(ParticleView v) {
  const size_t i = size_t(FIELD_THREADS) * blockIdx.x + threadIdx.x;
  if (i >= v.n) return;
  int cell[3];
  double s[3];
  const unsigned box = held_in(v, i, cell, s);
  const int reach = v.reach;
  uint32_t bits = 0;
  for (unsigned n = 0; n < AROUND; n++) {
    const unsigned offset[3] = {n % 3, n / 3 % 3, n / 9};
    bool is = true;
    for (unsigned d = 0; d < 3; d++) {
      // Cells reach - 1 below the particle's own to reach above.
      const int from = cell[d] - reach + 1, to = cell[d] + reach;
      is &= offset[d] == 0 ? from < 0 : offset[d] == 2 ? to >= int(BLOCK) : from < int(BLOCK) && to >= 0;
    }
    bits |= uint32_t(is) << n;
  }
  atomicAdd(v.held + box, 1u);
  atomicOr(v.reached + box, bits);
}

// How many particles each cell has, one place on.
__global__ void __launch_bounds__(FIELD_THREADS) remesh_count(ParticleView v) {
  const size_t i = size_t(FIELD_THREADS) * blockIdx.x + threadIdx.x;
  if (i >= v.n) return;
  atomicAdd(v.taken + occupied_cell(v, i), 1u);
}

// The first particle of each cell; `taken` is zero again.
__global__ void __launch_bounds__(FIELD_THREADS) remesh_starts(ParticleView v) {
  constexpr unsigned EACH = BLOCK_CELLS / FIELD_THREADS;
  uint32_t *taken = v.taken + size_t(BLOCK_CELLS) * blockIdx.x + EACH * threadIdx.x;
  uint32_t own = 0, all;
  for (unsigned n = 0; n < EACH; n++) own += taken[n];
  uint32_t place = v.first[blockIdx.x] + block_exclusive(own, all);
  uint32_t *start = v.start + size_t(BLOCK_CELLS) * blockIdx.x + EACH * threadIdx.x;
  for (unsigned n = 0; n < EACH; n++) {
    start[n] = place;
    place += taken[n];
    taken[n] = 0;
  }
  if (blockIdx.x + 1 == gridDim.x && threadIdx.x + 1 == FIELD_THREADS) start[EACH] = place;
}

// Numbers of particles by cells, in any order.
__global__ void __launch_bounds__(FIELD_THREADS) remesh_sort(ParticleView v) {
  const size_t i = size_t(FIELD_THREADS) * blockIdx.x + threadIdx.x;
  if (i >= v.n) return;
  const size_t key = occupied_cell(v, i);
  v.order[v.start[key] + atomicAdd(v.taken + key, 1u)] = uint32_t(i);
}

// In each cell by their numbers: a few of them.
__global__ void __launch_bounds__(FIELD_THREADS) remesh_order(ParticleView v) {
  for (unsigned c = threadIdx.x; c < BLOCK_CELLS; c += FIELD_THREADS) {
    const size_t key = size_t(BLOCK_CELLS) * blockIdx.x + c;
    const uint32_t from = v.start[key], to = v.start[key + 1];
    for (uint32_t p = from + 1; p < to; p++) {
      const uint32_t own = v.order[p];
      uint32_t q = p;
      for (; q > from && v.order[q - 1] > own; q--) v.order[q] = v.order[q - 1];
      v.order[q] = own;
    }
  }
}

__global__ void __launch_bounds__(FIELD_THREADS) remesh_scatter_m4(ParticleView v) { scatter<2>(v); }
__global__ void __launch_bounds__(FIELD_THREADS) remesh_scatter_m6(ParticleView v) { scatter<3>(v); }
__global__ void __launch_bounds__(FIELD_THREADS) remesh_gather_m4(ParticleView v) { gather<2>(v); }
__global__ void __launch_bounds__(FIELD_THREADS) remesh_gather_m6(ParticleView v) { gather<3>(v); }
}
