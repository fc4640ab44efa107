// Kernels that runs in the plane need in addition to sums: they convert particles to points and do
// steps of vortices. Compiled without fused multiply-add, so that the bits are the CPU's. Blocks
// share the particles, and the number of blocks does not depend on the device.
#include "planar/planar.cuh"

// The largest of the numbers of a block, none of which is below `least`, in the first thread.
__device__ inline double block_largest(double value, double least) {
  __shared__ double shared[PLANE_THREADS / 32];
  for (unsigned d = 16; d > 0; d /= 2) value = fmax(value, __shfl_down_sync(~0u, value, d));
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = least;
  for (unsigned w = 0; threadIdx.x == 0 && w < PLANE_THREADS / 32; w++) value = fmax(value, shared[w]);
  return value;
}

extern "C" {
// x and y of the particles, their extremes, and whether one of them is no number.
__global__ void __launch_bounds__(PLANE_THREADS) planar_flatten(FlattenView v) {
  constexpr double least = -INFINITY;
  double top[2] = {least, least}, bottom[2] = {least, least}, bad = 0;
  const uint64_t step = uint64_t(gridDim.x) * PLANE_THREADS;
  for (uint64_t i = uint64_t(blockIdx.x) * PLANE_THREADS + threadIdx.x; i < v.n; i += step)
    for (unsigned d = 0; d < 2; d++) {
      const double x = v.position[3 * i + d];
      v.points[2 * i + d] = x;
      top[d] = fmax(top[d], x);
      bottom[d] = fmax(bottom[d], -x);
      if (!isfinite(x)) bad = 1;
    }
  const double found[FLAT_FOUND] = {block_largest(top[0], least), block_largest(top[1], least), block_largest(bottom[0], least),
                                    block_largest(bottom[1], least), block_largest(bad, 0)};
  for (unsigned k = 0; threadIdx.x == 0 && k < FLAT_FOUND; k++) v.found[FLAT_FOUND * blockIdx.x + k] = found[k];
}

// A step begins where the vortices are; their largest coordinates.
__global__ void __launch_bounds__(PLANE_THREADS) planar_flow_begin(FlowView v) {
  double largest = 0;
  const uint64_t step = uint64_t(gridDim.x) * PLANE_THREADS;
  for (uint64_t i = uint64_t(blockIdx.x) * PLANE_THREADS + threadIdx.x; i < v.n; i += step)
    for (unsigned d = 0; d < 2; d++) {
      const double x = v.position[3 * i + d];
      v.start[2 * i + d] = x;
      v.sum[2 * i + d] = 0;
      largest = fmax(largest, fabs(x));
    }
  largest = block_largest(largest, 0);
  if (threadIdx.x == 0) v.largest[blockIdx.x] = largest;
}

// Velocities from the field, added to the step's sum of them, and how much they have changed.
__global__ void __launch_bounds__(PLANE_THREADS) planar_flow(FlowView v) {
  double largest = 0;
  const uint64_t step = uint64_t(gridDim.x) * PLANE_THREADS;
  for (uint64_t i = uint64_t(blockIdx.x) * PLANE_THREADS + threadIdx.x; i < v.n; i += step) {
    const double c = v.coupling[i];
    const double u[2] = {c * v.field[3 * i + 1], -(c * v.field[3 * i])};
    for (unsigned d = 0; d < 2; d++) {
      double &last = v.velocity[2 * i + d];
      if (!v.first) largest = fmax(largest, fabs(last - u[d]));
      last = u[d];
      if (v.weight != 0) v.sum[2 * i + d] += v.weight * u[d];
    }
  }
  largest = block_largest(largest, 0);
  if (threadIdx.x == 0) v.largest[blockIdx.x] = largest;
}

// Where velocities, or the sum of them, lead from the start.
__global__ void __launch_bounds__(PLANE_THREADS) planar_flow_to(FlowView v) {
  const double *u = v.summed ? v.sum : v.velocity;
  const uint64_t step = uint64_t(gridDim.x) * PLANE_THREADS;
  for (uint64_t i = uint64_t(blockIdx.x) * PLANE_THREADS + threadIdx.x; i < v.n; i += step)
    for (unsigned d = 0; d < 2; d++) v.position[3 * i + d] = v.start[2 * i + d] + v.h * u[2 * i + d];
}
}
