// Differences of fourth order in the cells of blocks: fmm-core's `grid/differences.rs`, and the
// leading error of solutions (`correction.rs`).
#include "grid/fields.cuh"

// Calls `of` with each cell of the block, its place in the arrays and h.
template <typename Of> __device__ inline void each_cell(const FieldView &v, Of of) {
  const double h = spacing_of(v.spacing, v.block[4 * size_t(blockIdx.x) + 3]);
  for (unsigned c = threadIdx.x; c < BLOCK_CELLS; c += FIELD_THREADS)
    of(int(c % BLOCK), int(c / BLOCK % BLOCK), int(c / (BLOCK * BLOCK)), size_t(BLOCK_CELLS) * blockIdx.x + c, h);
}

extern "C" {
// u with its gradients, twelve numbers a cell.
__global__ void __launch_bounds__(FIELD_THREADS) field_motion(FieldView v) {
  __shared__ uint32_t held[AROUND];
  const Surrounded u = surrounded(v, held);
  each_cell(v, [&](int i, int j, int k, size_t c, double h) {
    const double scale = 1.0 / (12.0 * h);
    double *out = v.out + 12 * c;
    for (unsigned n = 0; n < 3; n++) {
      out[n] = v.own[3 * c + n];
      for (unsigned d = 0; d < 3; d++) out[3 + 3 * n + d] = scale * u.slope(i, j, k, d, n);
    }
  });
}

__global__ void __launch_bounds__(FIELD_THREADS) field_curl(FieldView v) {
  __shared__ uint32_t held[AROUND];
  const Surrounded f = surrounded(v, held);
  each_cell(v, [&](int i, int j, int k, size_t c, double h) {
    const double scale = 1.0 / (12.0 * h);
    for (unsigned n = 0; n < 3; n++) {
      const unsigned a = (n + 1) % 3, b = (n + 2) % 3;
      v.out[3 * c + n] = scale * (f.slope(i, j, k, a, b) - f.slope(i, j, k, b, a));
    }
  });
}

// factor[0] times the Laplacian.
__global__ void __launch_bounds__(FIELD_THREADS) field_laplacian(FieldView v) {
  __shared__ uint32_t held[AROUND];
  const Surrounded f = surrounded(v, held);
  each_cell(v, [&](int i, int j, int k, size_t c, double h) {
    const double scale = v.factor[0] / (12.0 * h * h);
    for (unsigned n = 0; n < 3; n++) {
      double sum = 0;
      const double here = 30.0 * v.own[3 * c + n];
      for (unsigned d = 0; d < 3; d++) {
        const double near = f.along(i, j, k, d, 1, n) + f.along(i, j, k, d, -1, n);
        sum += 16.0 * near - (f.along(i, j, k, d, 2, n) + f.along(i, j, k, d, -2, n)) - here;
      }
      v.out[3 * c + n] = scale * sum;
    }
  });
}

// The divergence, one number a cell.
__global__ void __launch_bounds__(FIELD_THREADS) field_divergence(FieldView v) {
  __shared__ uint32_t held[AROUND];
  const Surrounded f = surrounded(v, held);
  each_cell(v, [&](int i, int j, int k, size_t c, double h) {
    v.out[c] = (f.slope(i, j, k, 0, 0) + f.slope(i, j, k, 1, 1) + f.slope(i, j, k, 2, 2)) / 12.0 / h;
  });
}

// Adds the gradient of a field of one number to `out` where that is not zero, nor within four cells
// of blocks of other levels, for which `table` has bits.
__global__ void __launch_bounds__(FIELD_THREADS) field_project(FieldView v) {
  __shared__ uint32_t held[AROUND];
  const Surrounded f = surrounded(v, held);
  const uint32_t others = v.table[blockIdx.x];
  each_cell(v, [&](int i, int j, int k, size_t c, double h) {
    double *w = v.out + 3 * c;
    if (is_zero(w) || is_near(others, i, j, k, 4)) return;
    for (unsigned d = 0; d < 3; d++) w[d] += f.slope(i, j, k, d, 0) / (12.0 * h);
  });
}

// Adds factor[0] h^2 w to the field `out`, and factor[1] h^2 times the curl of w by central
// differences to the field `second`.
__global__ void __launch_bounds__(FIELD_THREADS) field_correct(FieldView v) {
  __shared__ uint32_t held[AROUND];
  const Surrounded w = surrounded(v, held);
  each_cell(v, [&](int i, int j, int k, size_t c, double h) {
    const double whole = v.factor[0] * h * h, slope = v.factor[1] * h / 2.0;
    for (unsigned n = 0; n < 3; n++) {
      const unsigned a = (n + 1) % 3, b = (n + 2) % 3;
      const double da = w.along(i, j, k, a, 1, b) - w.along(i, j, k, a, -1, b);
      const double db = w.along(i, j, k, b, 1, a) - w.along(i, j, k, b, -1, a);
      v.out[3 * c + n] += whole * v.own[3 * c + n];
      v.second[3 * c + n] += slope * (da - db);
    }
  });
}
}
