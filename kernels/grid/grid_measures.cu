// Numbers of blocks, which the host decides by, and what fields do cell by cell.
#include "grid/fields.cuh"

// The number of the first cell of the block, and its cells one after the other.
#define EACH_CELL(c) \
  for (size_t c = size_t(BLOCK_CELLS) * blockIdx.x + threadIdx.x; c < size_t(BLOCK_CELLS) * (blockIdx.x + 1); c += FIELD_THREADS)

extern "C" {
// The largest square of each block.
__global__ void __launch_bounds__(FIELD_THREADS) field_largest(FieldView v) {
  double most = 0;
  EACH_CELL(c) most = fmax(most, square_of(v.own + 3 * c));
  most = largest(most);
  if (threadIdx.x == 0) v.out[blockIdx.x] = most;
}

// Zero where the square is below factor[0].
__global__ void __launch_bounds__(FIELD_THREADS) field_cut(FieldView v) {
  EACH_CELL(c) {
    double *w = v.out + 3 * c;
    if (square_of(w) < v.factor[0]) w[0] = w[1] = w[2] = 0;
  }
}

// The first and the last cell along each axis that are not zero; the first is BLOCK where all are.
__global__ void __launch_bounds__(FIELD_THREADS) field_filled(FieldView v) {
  __shared__ unsigned ends[6];
  if (threadIdx.x < 6) ends[threadIdx.x] = threadIdx.x < 3 ? BLOCK : 0;
  __syncthreads();
  EACH_CELL(c) {
    if (is_zero(v.own + 3 * c)) continue;
    const unsigned cell[3] = {unsigned(c % BLOCK), unsigned(c / BLOCK % BLOCK), unsigned(c / (BLOCK * BLOCK) % BLOCK)};
    for (unsigned d = 0; d < 3; d++) {
      atomicMin(ends + d, cell[d]);
      atomicMax(ends + 3 + d, cell[d]);
    }
  }
  __syncthreads();
  if (threadIdx.x < 6) v.integers[6 * size_t(blockIdx.x) + threadIdx.x] = ends[threadIdx.x];
}

// The largest square of the field `other` in blocks where `own` is not zero everywhere.
__global__ void __launch_bounds__(FIELD_THREADS) field_fastest(FieldView v) {
  double most = 0;
  bool turns = false;
  EACH_CELL(c) {
    turns |= !is_zero(v.own + 3 * c);
    most = fmax(most, square_of(v.other + 3 * c));
  }
  most = largest(__syncthreads_or(turns) ? most : 0.0);
  if (threadIdx.x == 0) v.out[blockIdx.x] = most;
}

// The largest square of the nine gradients in `other` of cells where `own` is not zero.
__global__ void __launch_bounds__(FIELD_THREADS) field_steepest(FieldView v) {
  double most = 0;
  EACH_CELL(c) {
    if (is_zero(v.own + 3 * c)) continue;
    double square = 0;
    for (unsigned n = 3; n < 12; n++) square = fma(v.other[12 * c + n], v.other[12 * c + n], square);
    most = fmax(most, square);
  }
  most = largest(most);
  if (threadIdx.x == 0) v.out[blockIdx.x] = most;
}

// Impulse and angular impulse of each block about `vector`.
__global__ void __launch_bounds__(FIELD_THREADS) field_impulse(FieldView v) {
  const uint32_t *block = v.block + 4 * size_t(blockIdx.x);
  const double h = spacing_of(v.spacing, block[3]), volume = h * h * h;
  double sums[6] = {};
  EACH_CELL(c) {
    const double *w = v.own + 3 * c;
    const unsigned cell[3] = {unsigned(c % BLOCK), unsigned(c / BLOCK % BLOCK), unsigned(c / (BLOCK * BLOCK) % BLOCK)};
    double x[3], square = 0;
    for (unsigned d = 0; d < 3; d++) {
      x[d] = center_of(v.corner[d], h, block[d], cell[d]) - v.vector[d];
      square = fma(x[d], x[d], square);
    }
    for (unsigned n = 0; n < 3; n++) {
      const unsigned a = (n + 1) % 3, b = (n + 2) % 3;
      sums[n] += 0.5 * volume * (x[a] * w[b] - x[b] * w[a]);
      sums[3 + n] -= 0.5 * volume * square * w[n];
    }
  }
  for (unsigned n = 0; n < 6; n++) {
    const double sum = total(sums[n]);
    if (threadIdx.x == 0) v.out[6 * size_t(blockIdx.x) + n] = sum;
  }
}

// The lowest and the highest coordinates of cells where `own` or `third` are not zero, and of where
// the velocity `other` takes them in a time factor[0].
__global__ void __launch_bounds__(FIELD_THREADS) field_paths(FieldView v) {
  const uint32_t *block = v.block + 4 * size_t(blockIdx.x);
  const double h = spacing_of(v.spacing, block[3]);
  double low[3], high[3];
  for (unsigned d = 0; d < 3; d++) low[d] = INFINITY, high[d] = -INFINITY;
  EACH_CELL(c) {
    if (is_zero(v.own + 3 * c) && (v.third == nullptr || is_zero(v.third + 3 * c))) continue;
    const unsigned cell[3] = {unsigned(c % BLOCK), unsigned(c / BLOCK % BLOCK), unsigned(c / (BLOCK * BLOCK) % BLOCK)};
    for (unsigned d = 0; d < 3; d++) {
      const double x = center_of(v.corner[d], h, block[d], cell[d]), way = v.factor[0] * v.other[3 * c + d];
      low[d] = fmin(low[d], x + fmin(way, 0.0));
      high[d] = fmax(high[d], x + fmax(way, 0.0));
    }
  }
  for (unsigned d = 0; d < 3; d++) {
    const double from = smallest(low[d]), to = largest(high[d]);
    if (threadIdx.x == 0) {
      v.out[6 * size_t(blockIdx.x) + d] = from;
      v.out[6 * size_t(blockIdx.x) + 3 + d] = to;
    }
  }
}

// Of `count` numbers: factor[0] times out, plus factor[1] times own.
__global__ void __launch_bounds__(FIELD_THREADS) field_blend(FieldView v) {
  const size_t i = size_t(FIELD_THREADS) * blockIdx.x + threadIdx.x;
  if (i < v.count) v.out[i] = fma(v.factor[1], v.own[i], v.factor[0] * v.out[i]);
}

// Adds the same vector to `count` cells.
__global__ void __launch_bounds__(FIELD_THREADS) field_shift(FieldView v) {
  const size_t i = size_t(FIELD_THREADS) * blockIdx.x + threadIdx.x;
  if (i < v.count)
    for (unsigned d = 0; d < 3; d++) v.out[3 * i + d] += v.vector[d];
}

// The values of the `count` cells that `table` names.
__global__ void __launch_bounds__(FIELD_THREADS) field_pick(FieldView v) {
  const size_t i = size_t(FIELD_THREADS) * blockIdx.x + threadIdx.x;
  if (i < v.count)
    for (unsigned d = 0; d < 3; d++) v.out[3 * i + d] = v.own[3 * size_t(v.table[i]) + d];
}

// The reverse.
__global__ void __launch_bounds__(FIELD_THREADS) field_put(FieldView v) {
  const size_t i = size_t(FIELD_THREADS) * blockIdx.x + threadIdx.x;
  if (i < v.count)
    for (unsigned d = 0; d < 3; d++) v.out[3 * size_t(v.table[i]) + d] = v.own[3 * i + d];
}
}
