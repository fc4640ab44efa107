// Cells of blocks from those of other levels: fmm-core's `grid/transfer.rs`, one number of a cell a
// thread.
#include "grid/fields.cuh"

// Weights of five cells for the lower or the upper half of the one in the middle.
__device__ inline void halves(bool points, bool upper, double (&w)[5]) {
  const double side = upper ? 1.0 : -1.0;
  if (points) {
    const double even[5] = {-5, 84, 1890, 84, -5}, odd[5] = {40, -336, 0, 336, -40};
    for (unsigned n = 0; n < 5; n++) w[n] = (even[n] + side * odd[n]) / 2048.0;
  } else {
    const double odd[5] = {3, -22, 0, 22, -3};
    for (unsigned n = 0; n < 5; n++) w[n] = side * odd[n] / 128.0 + (n == 2 ? 1.0 : 0.0);
  }
}

// Weights of cells of half the side for cell `i` of eight, and the first of them: two means, or six
// values of the same block.
__device__ inline unsigned wholes(bool points, unsigned i, double (&w)[6], unsigned &first) {
  if (!points) {
    w[0] = w[1] = 0.5;
    first = 2 * i;
    return 2;
  }
  const double middle[6] = {3, -25, 150, 150, -25, 3}, end[6] = {63, 315, -210, 126, -45, 7};
  first = i == 0 ? 0 : i == 7 ? BLOCK - 6 : 2 * i - 2;
  for (unsigned n = 0; n < 6; n++) w[n] = (i == 0 ? end[n] : i == 7 ? end[5 - n] : middle[n]) / 256.0;
  return 6;
}

__device__ inline double predicted(const Surrounded &f, bool points, unsigned part, const unsigned (&cell)[3], unsigned n) {
  double w[3][5];
  int at[3];
  for (unsigned d = 0; d < 3; d++) {
    at[d] = 8 * int(part >> d & 1) + int(cell[d] / 2);
    halves(points, cell[d] & 1, w[d]);
  }
  double sum = 0;
  for (int c = 0; c < 5; c++)
    for (int b = 0; b < 5; b++) {
      double row = 0;
      for (int a = 0; a < 5; a++) row += w[0][a] * f.at(at[0] + a - 2, at[1] + b - 2, at[2] + c - 2, n);
      sum += w[2][c] * w[1][b] * row;
    }
  return sum;
}

__device__ inline double held_by(const Surrounded &f, bool points, const unsigned (&cell)[3], unsigned n) {
  const unsigned part = (cell[0] >> 3) + 2 * (cell[1] >> 3) + 4 * (cell[2] >> 3);
  if (f.around[part] == NO_BLOCK) return 0;
  const double *fine = cells_of(f.own, f.made, f.own_blocks, f.around[part], f.numbers) + n;
  double w[3][6];
  unsigned first[3], count = 0;
  for (unsigned d = 0; d < 3; d++) count = wholes(points, cell[d] & 7, w[d], first[d]);
  double sum = 0;
  for (unsigned c = 0; c < count; c++)
    for (unsigned b = 0; b < count; b++) {
      double row = 0;
      for (unsigned a = 0; a < count; a++)
        row += w[0][a] * fine[size_t(f.numbers) * (first[0] + a + BLOCK * (first[1] + b + BLOCK * (first[2] + c)))];
      sum += w[2][c] * w[1][b] * row;
    }
  return sum;
}

// The cells of blocks, each from what its record in `table` says; slices of a block one after the
// other.
extern "C" __global__ void __launch_bounds__(FIELD_THREADS) field_fill(FieldView v) {
  __shared__ uint32_t record[RECORD];
  const size_t block = blockIdx.x / SLICES;
  if (threadIdx.x < RECORD) record[threadIdx.x] = v.table[RECORD * block + threadIdx.x];
  __syncthreads();
  const uint32_t kind = record[AROUND];
  const Surrounded f = {v.own, v.made, record, v.own_blocks, v.numbers};
  const size_t each = size_t(BLOCK_CELLS) * v.numbers;
  double *out = v.out + each * block;
  const double *same = kind == KIND_SAME ? cells_of(v.own, v.made, v.own_blocks, record[0], v.numbers) : nullptr;
  for (unsigned e = blockIdx.x % SLICES * FIELD_THREADS + threadIdx.x; e < each; e += SLICES * FIELD_THREADS) {
    const unsigned c = e / v.numbers, n = e % v.numbers;
    const unsigned cell[3] = {c % BLOCK, c / BLOCK % BLOCK, c / (BLOCK * BLOCK)};
    double value = 0;
    if (kind == KIND_SAME) value = same[e];
    else if (kind == KIND_PARTS) value = held_by(f, v.points, cell, n);
    else if (kind != KIND_NOTHING) value = predicted(f, v.points, kind, cell, n);
    out[e] = value;
  }
}

// The largest detail of a block's cells and of `count` around: what their means over 2^3 cells do
// not predict (`wavelet.rs`).
extern "C" __global__ void __launch_bounds__(FIELD_THREADS) field_detail(FieldView v) {
  extern __shared__ double means[];
  __shared__ uint32_t held[AROUND];
  const Surrounded f = surrounded(v, held);
  // Means begin two beyond the cells whose details are asked for.
  const int beyond = v.count, inner = BLOCK + 2 * beyond, wide = inner / 2 + 4, first = -beyond - 4;
  for (int e = threadIdx.x; e < 3 * wide * wide * wide; e += FIELD_THREADS) {
    const int m = e / 3, i = first + 2 * (m % wide), j = first + 2 * (m / wide % wide), k = first + 2 * (m / (wide * wide));
    double sum = 0;
    for (int c = 0; c < 8; c++) sum += f.at(i + (c & 1), j + (c >> 1 & 1), k + (c >> 2), e % 3);
    means[e] = sum / 8.0;
  }
  __syncthreads();
  double most = 0;
  for (int e = threadIdx.x; e < 3 * inner * inner * inner; e += FIELD_THREADS) {
    const int c = e / 3, cell[3] = {c % inner, c / inner % inner, c / (inner * inner)};
    double w[3][5];
    for (unsigned d = 0; d < 3; d++) halves(false, cell[d] & 1, w[d]);
    double sum = 0;
    for (int z = 0; z < 5; z++)
      for (int y = 0; y < 5; y++) {
        double row = 0;
        for (int x = 0; x < 5; x++)
          row += w[0][x] * means[3 * (cell[0] / 2 + x + wide * (cell[1] / 2 + y + wide * (cell[2] / 2 + z))) + e % 3];
        sum += w[2][z] * w[1][y] * row;
      }
    most = fmax(most, fabs(f.at(cell[0] - beyond, cell[1] - beyond, cell[2] - beyond, e % 3) - sum));
  }
  most = largest(most);
  if (threadIdx.x == 0) v.out[blockIdx.x] = most;
}
