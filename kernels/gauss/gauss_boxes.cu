// Points in the boxes of a lattice: those of fmm-core's `gauss/boxes.rs`, bit for bit. Compiled without fused multiply-add.
#include "gauss/gauss.cuh"
#include "common/scan.cuh"

constexpr unsigned VALUES = 256;

extern "C" {
// The corners of the box around the points of each block.
__global__ void __launch_bounds__(GAUSS_THREADS) gauss_bounds(GaussBoxesView v) {
  __shared__ double part[6][GAUSS_THREADS / 32];
  const double infinity = __longlong_as_double(0x7ff0000000000000ll);
  double low[3] = {infinity, infinity, infinity}, high[3] = {-infinity, -infinity, -infinity};
  for (size_t i = size_t(blockIdx.x) * GAUSS_THREADS + threadIdx.x; i < v.n; i += size_t(gridDim.x) * GAUSS_THREADS)
#pragma unroll
    for (unsigned d = 0; d < 3; d++) {
      if (d >= v.axes) break;
      const double x = v.position[i * v.axes + d];
      low[d] = fmin(low[d], x);
      high[d] = fmax(high[d], x);
    }
#pragma unroll
  for (unsigned d = 0; d < 3; d++) {
    for (unsigned k = 16; k > 0; k /= 2) {
      low[d] = fmin(low[d], __shfl_xor_sync(ALL, low[d], k));
      high[d] = fmax(high[d], __shfl_xor_sync(ALL, high[d], k));
    }
    if (threadIdx.x % 32 == 0) {
      part[d][threadIdx.x / 32] = low[d];
      part[3 + d][threadIdx.x / 32] = high[d];
    }
  }
  __syncthreads();
  if (threadIdx.x < 6) {
    double all = part[threadIdx.x][0];
    for (unsigned w = 1; w < GAUSS_THREADS / 32; w++) {
      const double here = part[threadIdx.x][w];
      all = threadIdx.x < 3 ? fmin(all, here) : fmax(all, here);
    }
    v.bounds[size_t(blockIdx.x) * 6 + threadIdx.x] = all;
  }
}

// The number of the box of each point, and how many there are of each value of each digit.
__global__ void __launch_bounds__(GAUSS_THREADS) gauss_keys(GaussBoxesView v) {
  __shared__ uint32_t count[BOX_DIGITS][VALUES];
  for (unsigned i = threadIdx.x; i < BOX_DIGITS * VALUES; i += GAUSS_THREADS) (&count[0][0])[i] = 0;
  __syncthreads();
  for (size_t i = size_t(blockIdx.x) * GAUSS_THREADS + threadIdx.x; i < v.n; i += size_t(gridDim.x) * GAUSS_THREADS) {
    uint64_t key = 0;
    for (unsigned d = v.axes; d-- > 0;) {
      // The conversion cuts off what is below the first box.
      const uint64_t cell = __double2uint_rz((v.position[i * v.axes + d] - v.origin[d]) * v.inverse);
      key = key * v.count[d] + min(cell, v.count[d] - 1);
    }
    v.key[i] = key;
    const unsigned here = __activemask(), leader = __ffs(here) - 1;
    for (unsigned d = 0; d < BOX_DIGITS; d++) {
      // Neighbours often have the same digit, and the high ones are zero: one lane counts for all.
      const unsigned digit = unsigned(key >> (8 * d)) & (VALUES - 1);
      if (__all_sync(here, digit == __shfl_sync(here, digit, leader))) {
        if (threadIdx.x % 32 == leader) atomicAdd(&count[d][digit], __popc(here));
      } else {
        atomicAdd(&count[d][digit], 1u);
      }
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < BOX_DIGITS * VALUES; i += GAUSS_THREADS) {
    const uint32_t here = (&count[0][0])[i];
    if (here) atomicAdd(&v.bins[i], here);
  }
}

// Where boxes begin in the sorted numbers.
__global__ void __launch_bounds__(GAUSS_THREADS) gauss_runs(GaussBoxesView v) {
  __shared__ uint32_t first;
  const unsigned tile = next_tile(v.ticket);
  const size_t begin = size_t(tile) * RUN_TILE + size_t(threadIdx.x) * RUN_ITEMS;
  uint64_t key[RUN_ITEMS + 1];
  key[0] = begin > 0 && begin <= v.n ? v.key[begin - 1] : 0;
  for (unsigned i = 0; i < RUN_ITEMS; i++) key[i + 1] = begin + i < v.n ? v.key[begin + i] : 0;
  unsigned heads = 0;
  for (unsigned i = 0; i < RUN_ITEMS; i++)
    if (begin + i < v.n && (begin + i == 0 || key[i + 1] != key[i])) heads |= 1u << i;
  uint32_t total;
  const uint32_t own = block_exclusive(__popc(heads), total);
  if (threadIdx.x < 32) {
    const uint32_t before = uint32_t(before_tile(v.status, v.epoch, tile, total));
    if (threadIdx.x == 0) first = before;
  }
  __syncthreads();
  uint32_t at = first + own;
  for (unsigned i = 0; i < RUN_ITEMS; i++) {
    if (!(heads >> i & 1)) continue;
    v.box[at] = key[i + 1];
    v.start[at++] = uint32_t(begin + i);
  }
  if (tile + 1 == gridDim.x && threadIdx.x == 0) {
    v.start[first + total] = v.n;
    *v.found = first + total;
  }
}

// The centers of `n` boxes.
__global__ void __launch_bounds__(GAUSS_THREADS) gauss_centers(GaussBoxesView v) {
  const size_t i = size_t(blockIdx.x) * GAUSS_THREADS + threadIdx.x;
  if (i >= v.n) return;
  uint64_t key = v.box[i];
  GaussPoint center = {};
#pragma unroll
  for (unsigned d = 0; d < 3; d++) {
    if (d >= v.axes) break;
    center.x[d] = v.origin[d] + (double(key % v.count[d]) + 0.5) * v.side;
    key /= v.count[d];
  }
  v.center[i] = center;
}

// Points and strengths in the order of their boxes.
__global__ void __launch_bounds__(GAUSS_THREADS) gauss_gather(GaussBoxesView v) {
  const size_t i = size_t(blockIdx.x) * GAUSS_THREADS + threadIdx.x;
  if (i >= v.n) return;
  const uint32_t j = v.order[i];
  GaussPoint point = {};
#pragma unroll
  for (unsigned d = 0; d < 3; d++)
    if (d < v.axes) point.x[d] = v.position[size_t(j) * v.axes + d];
  if (v.strength) point.q = v.strength[j];
  v.points[i] = point;
}

// Sums to the caller's order.
__global__ void __launch_bounds__(GAUSS_THREADS) gauss_return(GaussReturnView v) {
  const size_t i = size_t(blockIdx.x) * GAUSS_THREADS + threadIdx.x;
  if (i >= v.n) return;
  const size_t j = v.order[i], values = v.field ? 1 + v.axes : 1;
  v.potential[j] = v.out[i * values];
  if (v.field)
    for (unsigned d = 0; d < v.axes; d++) v.field[j * v.axes + d] = -v.out[i * values + 1 + d] * v.scale;
}
}
