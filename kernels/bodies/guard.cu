// What a sum is measured by: direct sums in double precision at a sample of its targets, which
// `error_field.cu` draws. The rules are those of fmm-core's `guard.rs`.
#include "common/scan.cuh"
#include "common/softening.cuh"
#include "arguments/view.cuh"

// Threads of a block that is alone, and of a block of the direct sums.
constexpr unsigned ALONE = 1024, GUARDED = 128;

// Bins of squares, and the bits of a number that are of one bin.
constexpr unsigned BINS = 1 << 12, BIN_BITS = 19;

// A share of the sources at GUARDED targets, one a thread; of small samples at a half or a quarter
// of them, where threads share the sources of a tile. Sources go through shared memory, so that each
// is read once for all of them.
template <template <typename> class Kernel> __device__ inline void guard(const GuardView &v) {
  __shared__ Body tile[GUARDED];
  const Kernel<double> kernel(v.softening);
  const unsigned together = GUARDED / v.split, me = threadIdx.x, share = me / together;
  const unsigned target = blockIdx.x * together + me % together, part = v.first_part + blockIdx.y;
  const size_t place = v.picked[min(target, v.targets - 1)];
  double at[3], sum[3] = {};
  for (int d = 0; d < 3; d++) at[d] = (v.position[v.stride * place + d] * v.unit) * v.scale;
  // The upper half of the square: halves are in the order of the squares, and a factor of a thousand needs no more digits.
  int largest = 0;
  const uint64_t begin = uint64_t(v.n) * part / v.parts, end = uint64_t(v.n) * (part + 1) / v.parts;
  // What is beyond the last source of the part repeats its place without its strength: others may not be there.
  const auto source = [&](uint64_t j) {
    const Body b = v.sources[min(j, end - 1)];
    return Body{b.x * v.scale, b.y * v.scale, b.z * v.scale, j < end ? b.q : 0};
  };
  Body next = source(begin + me);
  for (uint64_t first = begin; first < end; first += GUARDED) {
    __syncthreads();
    tile[me] = next;
    __syncthreads();
    if (first + GUARDED < end) next = source(first + GUARDED + me);
#pragma unroll 8
    for (unsigned j = 0; j < together; j++) {
      const Body s = tile[share * together + j];
      const double dx = at[0] - s.x, dy = at[1] - s.y, dz = at[2] - s.z;
      const double r2 = fma(dx, dx, fma(dy, dy, dz * dz));
      const double g = kernel.force(s.q, r2 + kernel.raise());
      sum[0] = fma(g, dx, sum[0]);
      sum[1] = fma(g, dy, sum[1]);
      sum[2] = fma(g, dz, sum[2]);
      largest = max(largest, __double2hiint(g * g * r2));
    }
  }
  if (target >= v.targets) return;
  double *out = v.partial + ((size_t(part) * v.targets + target) * v.split + share) * 4;
  for (int d = 0; d < 3; d++) out[d] = sum[d];
  out[3] = __hiloint2double(largest, 0);
}

extern "C" {
// A sample that is spread evenly over all targets, and not on any regular structure of their order. One block.
__global__ void __launch_bounds__(ALONE) guard_spread(GuardView v) {
  const uint64_t step = max(uint64_t(1), (uint64_t(v.all) + v.targets - 1) / v.targets);
  for (uint64_t k = threadIdx.x; k < v.targets; k += ALONE) {
    const bool there = k * step < v.all;
    v.picked[k] = there ? uint32_t(min(k * step + k * 7 % step, uint64_t(v.all) - 1)) : 0;
    v.weight[k] = there ? 1 : 0;
  }
}

#define GUARD(NAME, KERNEL) \
  __global__ void __launch_bounds__(GUARDED) guard_##NAME##_f64(GuardView v) { guard<KERNEL>(v); }
FOR_EACH_KERNEL(GUARD)

// The sums over all parts, the field that is to be measured, and the weight, of each target. A warp has one.
__global__ void __launch_bounds__(TILE) guard_join(GuardView v) {
  const unsigned target = blockIdx.x * (TILE / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (target >= v.targets) return;
  double sum[4] = {};
  for (unsigned k = lane; k < v.parts * v.split; k += 32) {
    const double *other = v.partial + ((size_t(k / v.split) * v.targets + target) * v.split + k % v.split) * 4;
    for (unsigned d = 0; d < 3; d++) sum[d] += other[d];
    sum[3] = fmax(sum[3], other[3]);
  }
  for (unsigned d = 16; d > 0; d /= 2) {
    for (unsigned k = 0; k < 3; k++) sum[k] += __shfl_xor_sync(~0u, sum[k], d);
    sum[3] = fmax(sum[3], __shfl_xor_sync(~0u, sum[3], d));
  }
  if (lane > 0) return;
  double *out = v.out + 8 * size_t(target);
  for (unsigned k = 0; k < 4; k++) out[k] = sum[k];
  for (unsigned k = 0; k < 3; k++) out[4 + k] = v.field[v.stride * size_t(v.picked[target]) + k];
  out[7] = v.weight[target];
}

// What this GPU knows of the targets that are picked.
__global__ void __launch_bounds__(TILE) guard_records(RecordView v) {
  const unsigned k = blockIdx.x * TILE + threadIdx.x;
  if (k >= v.count) return;
  const uint32_t place = v.picked[k];
  const bool known = place != NONE && place >= v.share[0] && place < v.share[1];
  double *out = v.records + 8 * size_t(k);
  out[0] = known ? place : 0;
  out[1] = known ? v.weight[k] : 0;
  for (unsigned d = 0; d < 3; d++) {
    out[2 + d] = known ? v.position[v.stride * size_t(place) + d] : 0;
    out[5 + d] = known ? v.field[v.stride * size_t(place) + d] : 0;
  }
}

// The number of targets in each bin by both squares of their predicted errors, see `guard.rs`.
__global__ void __launch_bounds__(ALONE) guard_count(WorstView v) {
  __shared__ uint32_t held[2 * BINS];
  for (unsigned k = threadIdx.x; k < 2 * BINS; k += ALONE) held[k] = 0;
  __syncthreads();
  const uint64_t first = v.share[0] + uint64_t(blockIdx.x) * ALONE + threadIdx.x;
  for (uint64_t i = first; i < v.share[1]; i += uint64_t(gridDim.x) * ALONE)
    for (unsigned k = 0; k < 2; k++) atomicAdd(held + k * BINS + (__float_as_uint(v.squares[2 * i + k]) >> BIN_BITS) % BINS, 1);
  __syncthreads();
  for (unsigned k = threadIdx.x; k < 2 * BINS; k += ALONE)
    if (held[k] > 0) atomicAdd(v.counts + k, held[k]);
}

// The targets one of whose squares is large enough, in any order: what becomes of each does not depend on its slot.
__global__ void __launch_bounds__(TILE) guard_choose(WorstView v) {
  const uint64_t i = v.share[0] + uint64_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.share[1]) return;
  if (v.squares[2 * i] >= v.from[0] || v.squares[2 * i + 1] >= v.from[1]) v.chosen[atomicAdd(v.counts, 1)] = uint32_t(i);
}

// Puts the rows of targets that were summed again to where the sum has left their fields.
__global__ void __launch_bounds__(TILE) guard_repair(RepairView v) {
  const unsigned k = blockIdx.x * TILE + threadIdx.x;
  if (k >= v.count) return;
  const size_t place = v.picked[k], to = 3 * size_t(v.order[place]);
  const double *row = v.rows + 8 * size_t(k);
  const double x = row[0] * v.unit, y = row[1] * v.unit, z = row[2] * v.unit;
  v.sums[place].x = x;
  v.sums[place].y = y;
  v.sums[place].z = z;
  v.field[to] = x * v.unscale;
  v.field[to + 1] = y * v.unscale;
  v.field[to + 2] = z * v.unscale;
  v.squares[2 * place] = 0;
  v.squares[2 * place + 1] = 0;
}

// The estimated error of each target in the caller's order and unit.
__global__ void __launch_bounds__(TILE) guard_errors(ColumnView v) {
  const uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.count) return;
  const double root = sqrt(double(v.squares[2 * i + 1])) * v.factor;
  const Sum sum = v.sums[i];
  const double x = sum.x * v.rounding, y = sum.y * v.rounding, z = sum.z * v.rounding;
  v.error[v.order[i]] = sqrt(root * root + (x * x + y * y + z * z)) * v.unscale;
}
}
