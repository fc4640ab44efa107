// Periodic boxes: where bodies lie in them, and what is not harmonic of their potential (fmm-core's `boundary.rs`). Compiled without
// fused multiply-add, so that every place is the CPU's.
#include "arguments/periodic.cuh"

// The sums of N numbers over the threads of a block, to its place among those of all blocks.
template <unsigned N>
__device__ void share(const double (&sum)[N], double *partial) {
  __shared__ double all[N][TILE];
  for (unsigned k = 0; k < N; k++) all[k][threadIdx.x] = sum[k];
  for (unsigned half = TILE / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      for (unsigned k = 0; k < N; k++) all[k][threadIdx.x] += all[k][threadIdx.x + half];
  }
  // The last sums are of thread 0.
  __syncthreads();
  if (threadIdx.x < N) partial[blockIdx.x * N + threadIdx.x] = all[threadIdx.x][0];
}

extern "C" {
// Bodies to the box, and each block's share of the moments.
__global__ void __launch_bounds__(TILE) box_wrap(BoxView v) {
  double sum[MOMENTS] = {};
  for (size_t i = size_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += size_t(gridDim.x) * TILE) {
    const double q = v.strength ? v.strength[i] : 0;
    double square = 0, outer = 0;
    for (int d = 0; d < 3; d++) {
      const double x = v.position[3 * i + d], side = v.side[d];
      const double within = x - floor(x / side) * side;
      // Rounding reaches the ends; what is no number stays none.
      const double place = within >= side || within < 0 ? 0 : within;
      v.wrapped[3 * i + d] = place;
      if (v.stretched) v.stretched[3 * i + d] = place * v.stretch[d];
      const double y = place - v.middle[d];
      square += y * y;
      outer += x * x;
      sum[1 + d] += q * y;
      sum[6 + d] += q * x;
    }
    sum[0] += q;
    sum[4] += q * square;
    sum[5] += fabs(q);
    sum[9] += q * outer;
    sum[10] += q * q;
  }
  if (v.strength) share(sum, v.partial);
}

// Each block's share of the sums of 1/|e|^2, |e|^2 and the squares of potentials.
__global__ void __launch_bounds__(TILE) box_weights(BoxView v) {
  double sum[WEIGHTS] = {};
  for (size_t i = size_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += size_t(gridDim.x) * TILE) {
    const double x = v.field[3 * i], y = v.field[3 * i + 1], z = v.field[3 * i + 2];
    const double square = x * x + y * y + z * z, potential = v.potential ? v.potential[i] : 0;
    sum[0] += 1 / fmax(square, v.least_square);
    sum[1] += square;
    sum[2] += potential * potential;
  }
  share(sum, v.partial);
}

// The centers of the cells of the stretched cube, in the box.
__global__ void __launch_bounds__(TILE) box_centers(BoxView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i < v.n)
    for (int d = 0; d < 3; d++) v.center[3 * i + d] = v.center[3 * i + d] / v.stretch[d];
}

// Adds what is not harmonic, c sum q |x - x_j|^2, of the background at wrapped places and of the surroundings at places as they are.
__global__ void __launch_bounds__(TILE) box_finish(BoxView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  double square = 0, along = 0, outer_along = 0;
  for (int d = 0; d < 3; d++) {
    const double x = v.position[3 * i + d], y = v.wrapped[3 * i + d] - v.middle[d];
    square += y * y;
    along += y * v.dipole[d];
    outer_along += x * v.outer_dipole[d];
    if (v.field) v.field[3 * i + d] += 2 * (v.dipole[d] - v.charge * y) - 2 * v.outer_dipole[d];
  }
  if (v.potential)
    v.potential[i] += (v.charge * square - 2 * along + v.second) - (v.outer_second - 2 * outer_along);
}

// The root's local expansion from its multipole. A thread has one coefficient.
#define LATTICE(REAL, NAME)                                                                                      \
  __global__ void __launch_bounds__(TILE) box_lattice_##NAME(LatticeView v) {                                     \
    const unsigned k = blockIdx.x * TILE + threadIdx.x;                                                          \
    if (k >= v.n) return;                                                                                        \
    const REAL *multipole = static_cast<const REAL *>(v.multipole);                                              \
    double sum = 0;                                                                                              \
    for (unsigned j = 0; j < v.n; j++) sum += double(multipole[j]) * v.matrix[size_t(j) * v.n + k];              \
    static_cast<REAL *>(v.local)[k] += REAL(sum);                                                                \
  }
LATTICE(float, f32)
LATTICE(double, f64)

// The same between the cells of a ternary root: a block has 32 coefficients of a target, a warp what one source does to them.
#define TERNARY(REAL, NAME)                                                                                                      \
  __global__ void __launch_bounds__(32 * CELLS_IN_BOX) box_ternary_root_##NAME(const __grid_constant__ LatticeView v) {        \
    __shared__ double all[CELLS_IN_BOX][32];                                                                                    \
    const unsigned lane = threadIdx.x % 32, source = threadIdx.x / 32, target = blockIdx.x, k = blockIdx.y * 32 + lane;         \
    int offset[3];                                                                                                              \
    for (int d = 0; d < 3; d++) offset[d] = v.place[source][d] - v.place[target][d] + 2;                                        \
    const double *matrix = v.matrix + size_t((offset[2] * 5 + offset[1]) * 5 + offset[0]) * v.n * v.n + min(k, v.n - 1);        \
    const REAL *multipole = static_cast<const REAL *>(v.multipole) + size_t(source) * v.n;                                      \
    double sum = 0;                                                                                                             \
    _Pragma("unroll 8") for (unsigned j = 0; j < v.n; j++) sum += double(multipole[j]) * matrix[size_t(j) * v.n];               \
    all[source][lane] = sum;                                                                                                    \
    __syncthreads();                                                                                                            \
    if (source > 0 || k >= v.n) return;                                                                                         \
    for (unsigned other = 1; other < CELLS_IN_BOX; other++) sum += all[other][lane];                                            \
    static_cast<REAL *>(v.local)[size_t(target) * v.n + k] += REAL(sum);                                                        \
  }
TERNARY(float, f32)
TERNARY(double, f64)
}
