// Sums over all particles for diagnostics, where the particles are. Each block sums its share of them, and shares are added in their
// order, so that the bits depend on the number of particles alone. Compiled without fused multiply-add, so that decisions are the CPU's.
#include "common/sums.cuh"

// The largest number of a block, none of which is negative, in the first thread.
__device__ inline double block_largest(double value) {
  __shared__ double shared[TILE / 32];
  for (unsigned d = 16; d > 0; d /= 2) value = fmax(value, __shfl_down_sync(~0u, value, d));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  for (unsigned w = 0; threadIdx.x == 0 && w < TILE / 32; w++) value = fmax(value, shared[w]);
  return value;
}

__device__ inline double distance2(const double *x, const double *center) {
  const double dx = center[0] - x[0], dy = center[1] - x[1], dz = center[2] - x[2];
  return dx * dx + dy * dy + dz * dz;
}

// Particles without any mass count alike.
__device__ inline double weight_of(const TotalsView &v, uint64_t i) { return v.massless ? 1 : v.mass[i]; }

extern "C" {
// Energies, momenta, virial, centers, moments of the strengths, and the largest |m|, of a share of the particles.
__global__ void __launch_bounds__(TILE) totals_sums(TotalsView v) {
  constexpr unsigned COUNT = 20;
  static_assert(COUNT < TOTALS);
  double sum[COUNT] = {}, largest = 0;
  for (uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += uint64_t(gridDim.x) * TILE) {
    const double *x = v.position + 3 * i, *u = v.velocity + 3 * i, *e = v.field + 3 * i;
    const double m = v.mass[i], c = v.coupling[i], q = v.strength[i];
    sum[0] += 0.5 * m * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
    sum[1] += q * (0.5 * v.potential[i]);
    sum[8] += m * (x[0] * (c * e[0]) + x[1] * (c * e[1]) + x[2] * (c * e[2]));
    sum[9] += m;
    for (unsigned d = 0; d < 3; d++) {
      const unsigned y = (d + 1) % 3, z = (d + 2) % 3;
      sum[2 + d] += m * u[d];
      sum[5 + d] += m * (x[y] * u[z] - x[z] * u[y]);
      sum[10 + d] += m * x[d];
      sum[13 + d] += x[d];
      sum[16 + d] += q * x[d];
    }
    sum[19] += q * (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
    largest = fmax(largest, fabs(m));
  }
  block_sums<COUNT>(sum);
  largest = block_largest(largest);
  if (threadIdx.x > 0) return;
  for (unsigned k = 0; k < COUNT; k++) v.partial[size_t(blockIdx.x) * TOTALS + k] = sum[k];
  v.partial[size_t(blockIdx.x) * TOTALS + TOTALS - 1] = largest;
}

// The largest squared distance from the center.
__global__ void __launch_bounds__(TILE) totals_reach(TotalsView v) {
  double largest = 0;
  for (uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += uint64_t(gridDim.x) * TILE)
    largest = fmax(largest, distance2(v.position + 3 * i, v.sphere->center));
  largest = block_largest(largest);
  if (threadIdx.x == 0) v.partial[blockIdx.x] = largest;
}

// The sphere that holds all. One block.
__global__ void __launch_bounds__(TILE) totals_first(TotalsView v) {
  double largest = 0;
  for (unsigned b = threadIdx.x; b < v.shares; b += TILE) largest = fmax(largest, v.partial[b]);
  largest = block_largest(largest);
  if (threadIdx.x > 0) return;
  v.sphere->radius = sqrt(largest);
  v.sphere->done = !(v.sphere->radius > 0);
}

// Mass and center of the particles that are in the next sphere and were in all before; the others stay outside for good.
__global__ void __launch_bounds__(TILE) totals_sphere(TotalsView v) {
  if (v.sphere->done) return;
  const double center[3] = {v.sphere->center[0], v.sphere->center[1], v.sphere->center[2]};
  const double radius = v.sphere->radius * v.shrink;
  double sum[5] = {};
  for (uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += uint64_t(gridDim.x) * TILE) {
    if (v.outside[i]) continue;
    const double *x = v.position + 3 * i;
    if (!(distance2(x, center) < radius * radius)) {
      v.outside[i] = 1;
      continue;
    }
    const double w = weight_of(v, i);
    for (unsigned d = 0; d < 3; d++) sum[d] += w * x[d];
    sum[3] += w;
    sum[4] += 1;
  }
  block_sums<5>(sum);
  for (unsigned k = 0; threadIdx.x == 0 && k < 5; k++) v.partial[5 * size_t(blockIdx.x) + k] = sum[k];
}

// Whether that sphere holds enough; then its center is the next. One block.
__global__ void __launch_bounds__(TILE) totals_next(TotalsView v) {
  if (v.sphere->done) return;
  double sum[5] = {};
  for (unsigned b = threadIdx.x; b < v.shares; b += TILE)
    for (unsigned k = 0; k < 5; k++) sum[k] += v.partial[5 * size_t(b) + k];
  block_sums<5>(sum);
  if (threadIdx.x > 0) return;
  const bool enough = sum[4] >= v.fewest && sum[3] > 0;
  if (enough) {
    v.sphere->radius *= v.shrink;
    for (unsigned d = 0; d < 3; d++) v.sphere->center[d] = sum[d] / sum[3];
  }
  v.sphere->done = !enough || !(v.sphere->radius > 0);
}

// The mass of a chunk of the particles in the order of their distances.
__global__ void __launch_bounds__(TILE) totals_chunks(TotalsView v) {
  const uint64_t begin = uint64_t(blockIdx.x) * CHUNK, end = min(begin + CHUNK, v.n);
  double sum = 0;
  for (uint64_t k = begin + threadIdx.x; k < end; k += TILE) sum += weight_of(v, v.order[k]);
  block_sums<1>(&sum);
  if (threadIdx.x == 0) v.partial[blockIdx.x] = sum;
}

// The masses of one chunk, and the squared distances.
__global__ void __launch_bounds__(TILE) totals_chunk(TotalsView v) {
  const uint64_t k = v.first + uint64_t(blockIdx.x) * TILE + threadIdx.x;
  if (k >= v.n) return;
  v.partial[2 * (k - v.first)] = weight_of(v, v.order[k]);
  v.partial[2 * (k - v.first) + 1] = __longlong_as_double(v.key[k]);
}
}
