// Cells of blocks, and of those around a block: fmm-core's `grid/padded.rs`, without copies. A
// block of threads has a block of cells.
#pragma once
#include "arguments/grid_fields.cuh"

// The number of an array of `own` blocks and those made from them.
__device__ inline const double *cells_of(const double *own, const double *made, unsigned own_blocks, uint32_t block, unsigned numbers) {
  const size_t each = size_t(BLOCK_CELLS) * numbers;
  return block < own_blocks ? own + block * each : made + (block - own_blocks) * each;
}

// The place of a cell among 27 blocks, from -16 to 31 along each axis.
__device__ inline unsigned block_at(int i, int j, int k) { return ((i + 16) >> 4) + 3 * ((j + 16) >> 4) + 9 * ((k + 16) >> 4); }
__device__ inline unsigned cell_at(int i, int j, int k) { return (i & 15) + BLOCK * ((j & 15) + BLOCK * (k & 15)); }

// A field around a block.
struct Surrounded {
  const double *own, *made;
  const uint32_t *around;
  unsigned own_blocks, numbers;

  // Number `n` of a cell; zero where there is no block.
  __device__ double at(int i, int j, int k, unsigned n) const {
    const uint32_t block = around[block_at(i, j, k)];
    if (block == NO_BLOCK) return 0;
    return cells_of(own, made, own_blocks, block, numbers)[size_t(numbers) * cell_at(i, j, k) + n];
  }

  // The same `by` cells on along an axis.
  __device__ double along(int i, int j, int k, unsigned axis, int by, unsigned n) const {
    return at(i + (axis == 0 ? by : 0), j + (axis == 1 ? by : 0), k + (axis == 2 ? by : 0), n);
  }

  // 12 h times the derivative along an axis.
  __device__ double slope(int i, int j, int k, unsigned axis, unsigned n) const {
    const double a = along(i, j, k, axis, -2, n), b = along(i, j, k, axis, -1, n);
    const double c = along(i, j, k, axis, 1, n), d = along(i, j, k, axis, 2, n);
    return 8.0 * (c - b) - (d - a);
  }
};

// The blocks around that of the threads, which these may read after a barrier.
__device__ inline Surrounded surrounded(const FieldView &v, uint32_t (&held)[AROUND]) {
  if (threadIdx.x < AROUND) held[threadIdx.x] = v.around[size_t(AROUND) * blockIdx.x + threadIdx.x];
  __syncthreads();
  return {v.own, v.made, held, v.own_blocks, v.numbers};
}

// h of a level, exactly: it is halved from level to level.
__device__ inline double spacing_of(double coarsest, uint32_t level) { return ldexp(coarsest, -int(level)); }

// The center of a cell along an axis, with the bits of the host.
__device__ inline double center_of(double corner, double h, uint32_t block, unsigned cell) {
  return __dadd_rn(corner, __dmul_rn(double(block * uint64_t(BLOCK) + cell) + 0.5, h));
}

__device__ inline bool is_zero(const double *w) { return w[0] == 0 && w[1] == 0 && w[2] == 0; }
__device__ inline double square_of(const double *w) { return w[0] * w[0] + w[1] * w[1] + w[2] * w[2]; }

// Whether a cell is at most `reach` cells from one of the blocks around that `bits` names.
__device__ inline bool is_near(uint32_t bits, int i, int j, int k, int reach) {
  if (bits == 0) return false;
  const int cell[3] = {i, j, k};
  bool near[3][3];
  for (unsigned d = 0; d < 3; d++) {
    near[d][0] = cell[d] < reach;
    near[d][1] = true;
    near[d][2] = cell[d] + reach >= int(BLOCK);
  }
  for (unsigned n = 0; n < AROUND; n++)
    if (bits >> n & 1 && near[0][n % 3] && near[1][n / 3 % 3] && near[2][n / 9]) return true;
  return false;
}

// What a block of threads makes of one value each, in a fixed order; thread 0 has the result.
template <typename Join> __device__ inline double joined(double value, Join join) {
  __shared__ double held[FIELD_THREADS];
  __syncthreads();
  held[threadIdx.x] = value;
  for (unsigned half = FIELD_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) held[threadIdx.x] = join(held[threadIdx.x], held[threadIdx.x + half]);
  }
  __syncthreads();
  return held[0];
}
__device__ inline double largest(double value) { return joined(value, [](double a, double b) { return fmax(a, b); }); }
__device__ inline double smallest(double value) { return joined(value, [](double a, double b) { return fmin(a, b); }); }
__device__ inline double total(double value) { return joined(value, [](double a, double b) { return a + b; }); }
