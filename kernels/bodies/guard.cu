// What a sum is measured by: direct sums at a sample of its targets, in double precision or nearly, which
// `error_field.cu` draws. The rules are those of fmm-core's `guard.rs`.
#include "common/scan.cuh"
#include "common/softening.cuh"
#include "arguments/view.cuh"

// Threads of a block that is alone, and of a block of the direct sums.
constexpr unsigned ALONE = 1024, GUARDED = 128;

// Bins of squares, and the bits of a number that are of one bin.
constexpr unsigned BINS = 1 << 12, BIN_BITS = 19;

// A target is far from a row of 32 sources from FAR times their extent from the middle one on, and from NO_NEARER on, in
// half sides of the root: beyond, single precision holds the squares of forces. Coordinates are at most five times as
// large as a distance that is their difference, so that single precision keeps it to 2e-7.
constexpr float FAR = 1.5f, NO_NEARER = 1e-5f;

// Adds what a row of sources gives to a target that is far from all of them. Strengths are two numbers each: the sum
// that is judged may have rounded them, which no comparison with strengths that are rounded in the same way would
// show.
template <class Kernel>
__device__ inline void add_far(const Kernel &kernel, const float4 *row, const float *low, const float *at, double *sum, float &largest) {
  float part[3] = {};
#pragma unroll 8
  for (unsigned j = 0; j < 32; j++) {
    const float4 s = row[j];
    const float dx = at[0] - s.x, dy = at[1] - s.y, dz = at[2] - s.z;
    const float r2 = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, kernel.raise())));
    const float slope = kernel.force(1, r2), g = fmaf(slope, low[j], slope * s.w);
    part[0] = fmaf(g, dx, part[0]);
    part[1] = fmaf(g, dy, part[1]);
    part[2] = fmaf(g, dz, part[2]);
    largest = fmaxf(largest, g * g * r2);
  }
  for (int d = 0; d < 3; d++) sum[d] += part[d];
}

// The same at any distance.
template <class Kernel> __device__ inline void add_near(const Kernel &kernel, const Body *row, const double *at, double *sum, int &largest) {
#pragma unroll 8
  for (unsigned j = 0; j < 32; j++) {
    const Body s = row[j];
    const double dx = at[0] - s.x, dy = at[1] - s.y, dz = at[2] - s.z;
    const double r2 = fma(dx, dx, fma(dy, dy, dz * dz));
    const double g = kernel.force(s.q, r2 + kernel.raise());
    sum[0] = fma(g, dx, sum[0]);
    sum[1] = fma(g, dy, sum[1]);
    sum[2] = fma(g, dz, sum[2]);
    largest = max(largest, __double2hiint(g * g * r2));
  }
}

// A share of the sources at GUARDED targets, one a thread; of small samples at a half or a quarter of them, where the warps
// of a target share the rows of sources. If `v.single`, pairs that are far are in single precision, others in double.
template <template <typename> class Kernel> __device__ inline void guard(const GuardView &v) {
  __shared__ Body tile[GUARDED];
  __shared__ float4 offsets[GUARDED];
  __shared__ float low[GUARDED];
  const Kernel<double> kernel(v.softening);
  const Kernel<float> far_kernel(v.softening);
  const unsigned together = GUARDED / v.split, me = threadIdx.x, share = me / together, lane = me % 32;
  const unsigned target = blockIdx.x * together + me % together, part = v.first_part + blockIdx.y;
  const size_t place = v.picked[min(target, v.targets - 1)];
  Body *row = tile + (me - lane);
  float4 *far_row = offsets + (me - lane);
  double at[3], sum[3] = {};
  // Rounded products in both places: one that was fused with the difference would part a target from itself.
  for (int d = 0; d < 3; d++) at[d] = __dmul_rn(v.position[v.stride * place + d] * v.unit, v.scale);
  // The upper half of the square: halves are in the order of the squares, and a factor of a thousand needs no more digits.
  int largest = 0;
  float largest_far = 0;
  const uint64_t begin = uint64_t(v.n) * part / v.parts, end = uint64_t(v.n) * (part + 1) / v.parts;
  // What is beyond the last source of the part repeats its place without its strength: others may not be there.
  const auto source = [&](uint64_t j) {
    const Body b = v.sources[min(j, end - 1)];
    return Body{__dmul_rn(b.x, v.scale), __dmul_rn(b.y, v.scale), __dmul_rn(b.z, v.scale), j < end ? b.q : 0};
  };
  Body next = source(begin + 32 * share + lane);
  for (uint64_t first = begin + 32 * share; first < end; first += 32 * v.split) {
    const Body own = next;
    __syncwarp();
    row[lane] = own;
    __syncwarp();
    next = source(first + 32 * v.split + lane);
    bool far = v.single;
    float from[3];
    if (far) {
      const Body &middle = row[16];
      const float x = own.x - middle.x, y = own.y - middle.y, z = own.z - middle.z;
      far_row[lane] = make_float4(x, y, z, own.q);
      low[me] = own.q - far_row[lane].w;
      __syncwarp();
      // Positive numbers are in the order of their bits.
      const unsigned extent = __reduce_max_sync(~0u, __float_as_uint(fmaxf(fabsf(x), fmaxf(fabsf(y), fabsf(z)))));
      from[0] = at[0] - middle.x, from[1] = at[1] - middle.y, from[2] = at[2] - middle.z;
      const float away = fmaxf(fabsf(from[0]), fmaxf(fabsf(from[1]), fabsf(from[2])));
      far = __all_sync(~0u, away > fmaxf(FAR * __uint_as_float(extent), NO_NEARER));
    }
    if (far)
      add_far(far_kernel, far_row, low + (me - lane), from, sum, largest_far);
    else
      add_near(kernel, row, at, sum, largest);
  }
  if (target >= v.targets) return;
  double *out = v.partial + ((size_t(part) * v.targets + target) * v.split + share) * 4;
  for (int d = 0; d < 3; d++) out[d] = sum[d];
  out[3] = fmax(__hiloint2double(largest, 0), double(largest_far));
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
  __global__ void __launch_bounds__(GUARDED, 8) guard_##NAME##_f64(GuardView v) { guard<KERNEL>(v); }
FOR_EACH_KERNEL(GUARD)

// The sums over all parts, the field that is to be measured, and the weight, of each target. A block has one.
__global__ void __launch_bounds__(TILE) guard_join(GuardView v) {
  __shared__ double held[TILE / 32][4];
  const unsigned target = blockIdx.x, lane = threadIdx.x % 32;
  double sum[4] = {};
  for (unsigned k = threadIdx.x; k < v.parts * v.split; k += TILE) {
    const double *other = v.partial + ((size_t(k / v.split) * v.targets + target) * v.split + k % v.split) * 4;
    for (unsigned d = 0; d < 3; d++) sum[d] += other[d];
    sum[3] = fmax(sum[3], other[3]);
  }
  for (unsigned d = 16; d > 0; d /= 2) {
    for (unsigned k = 0; k < 3; k++) sum[k] += __shfl_xor_sync(~0u, sum[k], d);
    sum[3] = fmax(sum[3], __shfl_xor_sync(~0u, sum[3], d));
  }
  if (lane == 0)
    for (unsigned k = 0; k < 4; k++) held[threadIdx.x / 32][k] = sum[k];
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (unsigned w = 1; w < TILE / 32; w++) {
    for (unsigned k = 0; k < 3; k++) sum[k] += held[w][k];
    sum[3] = fmax(sum[3], held[w][3]);
  }
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
  const Sum sum = v.sums[i];
  const double x = sum.x * v.rounding, y = sum.y * v.rounding, z = sum.z * v.rounding;
  const double rounded = x * x + y * y + z * z;
  const double lost = fmax(double(v.squares[2 * i + 1]) - rounded, 0.0);
  v.error[v.order[i]] = sqrt(lost * v.factor * v.factor + rounded) * v.unscale;
}
}
