// Direct sums: every source at every target.
//
// A block holds TILE x TARGETS targets in registers and streams a share of the sources through shared memory, tile by
// tile. Bodies in the order of a curve that fills space make tiles compact. Single precision then keeps its digits thus:
// - a tile that is far from the block (`is_near`) is measured from the center of the block's targets, subtracted in double;
// - a near tile too, but with coordinates of two numbers each, which hold 48 bits;
// - where that shows a pair too close for them, the target meets the tile again in double precision.
// What a tile adds is added up in double. Each block writes its share; `reduce` adds the shares in a fixed order.
#include "common/softening.cuh"
#include "arguments/view.cuh"

// Blocks of a multiprocessor that the registers must suffice for, and sources that a loop is unrolled by.
#ifndef BLOCKS_F32
#define BLOCKS_F32 3
#endif
#ifndef BLOCKS_F64
#define BLOCKS_F64 3
#endif
#ifndef UNROLL_F32
#define UNROLL_F32 8
#endif
#ifndef UNROLL_F64
#define UNROLL_F64 2
#endif
// A pragma expands no macros.
constexpr int SOURCES_F32 = UNROLL_F32, SOURCES_F64 = UNROLL_F64;

// The bounds of the block's targets.
template <int TARGETS> __device__ inline Bounds around(const SumView &v, unsigned first_tile) {
  const unsigned tiles = (v.n_targets + TILE - 1) / TILE;
  Bounds all = v.target_bounds[first_tile];
  for (unsigned t = first_tile + 1; t < min(first_tile + TARGETS, tiles); t++) {
    for (int d = 0; d < 3; d++) {
      all.low[d] = fmin(all.low[d], v.target_bounds[t].low[d]);
      all.high[d] = fmax(all.high[d], v.target_bounds[t].high[d]);
    }
  }
  return all;
}

// The square of half the diagonal.
__device__ inline double radius2(const Bounds &box) {
  double sum = 0;
  for (int d = 0; d < 3; d++) sum += (box.high[d] - box.low[d]) * (box.high[d] - box.low[d]);
  return sum / 4;
}

// Whether the gap between the boxes is less than R/4, with R half the diagonal of the targets' box. From there on coordinates from
// the center are at most d + 2R <= 9d, where d is the distance of a pair. Nor may inverse cubes overflow single precision.
__device__ inline bool is_near(const Bounds &targets, const Bounds &sources) {
  double gap2 = 0;
  for (int d = 0; d < 3; d++) {
    const double gap = fmax(0.0, fmax(sources.low[d] - targets.high[d], targets.low[d] - sources.high[d]));
    gap2 += gap * gap;
  }
  return gap2 <= fmax(radius2(targets) / 16, 1e-12);
}

// The tiles of sources that are the block's, and where its sums go.
struct Share {
  unsigned begin, end;

  __device__ explicit Share(const SumView &v) {
    begin = blockIdx.y * v.tiles_per_split;
    end = min(begin + v.tiles_per_split, (v.n_sources + TILE - 1) / TILE);
  }
  // The thread's source of a tile; beyond the last source its place is repeated with strength 0.
  __device__ static Body source(const SumView &v, unsigned tile) {
    const size_t j = size_t(tile) * TILE + threadIdx.x;
    Body b = v.sources[min(j, size_t(v.n_sources) - 1)];
    if (j >= v.n_sources) b.q = 0;
    return b;
  }
  template <int COMPONENTS> __device__ static double *place(const SumView &v, int component, unsigned target) {
    return v.partial + (size_t(blockIdx.y) * COMPONENTS + component) * v.n_targets + target;
  }
};

// A coordinate as the sum of two numbers.
struct Split {
  float high, low;
  __device__ explicit Split(double x) : high(x), low(x - high) {}
};

// Near tiles: PAIRED targets of a thread at a time, which halves the traffic of shared memory.
constexpr int PAIRED = 2;
static_assert(TARGETS_F32 % PAIRED == 0, "near tiles take targets in pairs");

// A position in two floats for each coordinate.
struct Place {
  float3 high, low;
  __device__ Place() {}
  __device__ Place(double x, double y, double z) {
    const Split a(x), b(y), c(z);
    high = make_float3(a.high, b.high, c.high);
    low = make_float3(a.low, b.low, c.low);
  }
};

// Adds the sources of a near tile to the sums of PAIRED targets, and notes the smallest squared distances.
template <class Kernel, bool POTENTIAL, int COMPONENTS>
__device__ inline void near_tile(const Kernel &kernel, const float4 (*tile)[TILE], const Place *at,
                                 float (*sum)[COMPONENTS], float *nearest) {
#pragma unroll 4
  for (unsigned j = 0; j < TILE; j++) {
    const float4 high = tile[0][j], low = tile[1][j];
#pragma unroll
    for (int k = 0; k < PAIRED; k++) {
      const float dx = (at[k].high.x - high.x) + (at[k].low.x - low.x);
      const float dy = (at[k].high.y - high.y) + (at[k].low.y - low.y);
      const float dz = (at[k].high.z - high.z) + (at[k].low.z - low.z);
      meet<float, Kernel, POTENTIAL>(kernel, dx, dy, dz, high.w, false, sum[k]);
      nearest[k] = fminf(nearest[k], fmaf(dx, dx, fmaf(dy, dy, dz * dz)));
    }
  }
}

// In single precision.
template <template <typename> class Kernel, bool POTENTIAL> __device__ inline void sums_f32(const SumView &v) {
  constexpr int TARGETS = TARGETS_F32, COMPONENTS = POTENTIAL ? 4 : 3;
  // Coordinates from the center and strengths; what rounding took off the coordinates, in near tiles only.
  __shared__ float4 tile[2][TILE];
  // What tiles have added so far: each thread has its own column. In registers it would cost a third of the speed.
  __shared__ double sum[TARGETS][COMPONENTS][TILE];
  __shared__ Bounds box;
  const Kernel<float> kernel(v.softening);

  const unsigned me = threadIdx.x;
  const unsigned first = blockIdx.x * (TILE * TARGETS) + me;
  const auto target = [&](int k) { return v.targets[min(first + k * TILE, v.n_targets - 1)]; };
  if (me == 0) box = around<TARGETS>(v, blockIdx.x * TARGETS);
  __syncthreads();
  const auto center = [&](int d) { return 0.5 * (box.low[d] + box.high[d]); };
  float x[TARGETS], y[TARGETS], z[TARGETS];
#pragma unroll
  for (int k = 0; k < TARGETS; k++) {
    const Body t = target(k);
    x[k] = t.x - center(0);
    y[k] = t.y - center(1);
    z[k] = t.z - center(2);
    for (int c = 0; c < COMPONENTS; c++) sum[k][c][me] = 0;
  }
  const Share share(v);
  Body next = share.source(v, share.begin);
  for (unsigned t = share.begin; t < share.end; t++) {
    const bool near = is_near(box, v.source_bounds[t]);
    __syncthreads();
    const Place from(next.x - center(0), next.y - center(1), next.z - center(2));
    tile[0][me] = make_float4(from.high.x, from.high.y, from.high.z, next.q);
    if (near) tile[1][me] = make_float4(from.low.x, from.low.y, from.low.z, 0);
    __syncthreads();
    if (t + 1 < share.end) next = share.source(v, t + 1);
    if (!near) {
      float part[TARGETS][COMPONENTS] = {};
#pragma unroll SOURCES_F32
      for (unsigned j = 0; j < TILE; j++) {
        const float4 s = tile[0][j];
#pragma unroll
        for (int k = 0; k < TARGETS; k++)
          meet<float, Kernel<float>, POTENTIAL>(kernel, x[k] - s.x, y[k] - s.y, z[k] - s.z, s.w, false, part[k]);
      }
#pragma unroll
      for (int k = 0; k < TARGETS; k++)
        for (int c = 0; c < COMPONENTS; c++) sum[k][c][me] += part[k][c];
      continue;
    }
    // Closer than this, two floats are too few, or inverse cubes too large.
    const float closest2 = fmax(radius2(box) * 0x1p-44, 1e-12);
#pragma unroll 1
    for (int pair = 0; pair < TARGETS; pair += PAIRED) {
      Place at[PAIRED];
      float part[PAIRED][COMPONENTS] = {}, nearest[PAIRED];
#pragma unroll
      for (int k = 0; k < PAIRED; k++) {
        const Body b = target(pair + k);
        at[k] = Place(b.x - center(0), b.y - center(1), b.z - center(2));
        nearest[k] = 1e30f;
      }
      near_tile<Kernel<float>, POTENTIAL, COMPONENTS>(kernel, tile, at, part, nearest);
#pragma unroll
      for (int k = 0; k < PAIRED; k++) {
        if (nearest[k] >= closest2) {
          for (int c = 0; c < COMPONENTS; c++) sum[pair + k][c][me] += part[k][c];
          continue;
        }
        // Rare, but for a target's own tile.
        const Kernel<double> exact(v.softening);
        const Body b = target(pair + k);
        const unsigned i = first + (pair + k) * TILE;
        double all[COMPONENTS] = {};
#pragma unroll 2
        for (unsigned j = t * TILE; j < min((t + 1) * TILE, v.n_sources); j++) {
          const Body s = v.sources[j];
          meet<double, Kernel<double>, POTENTIAL>(exact, b.x - s.x, b.y - s.y, b.z - s.z, s.q, v.same && j == i, all);
        }
        for (int c = 0; c < COMPONENTS; c++) sum[pair + k][c][me] += all[c];
      }
    }
  }
  for (int k = 0; k < TARGETS; k++) {
    const unsigned i = first + k * TILE;
    if (i >= v.n_targets) continue;
    for (int c = 0; c < COMPONENTS; c++) *share.place<COMPONENTS>(v, c, i) = sum[k][c][me];
  }
}

// In double precision, with coordinates as they are given.
template <template <typename> class Kernel, bool POTENTIAL> __device__ inline void sums_f64(const SumView &v) {
  constexpr int TARGETS = TARGETS_F64, COMPONENTS = POTENTIAL ? 4 : 3;
  __shared__ Body tile[TILE];
  const Kernel<double> kernel(v.softening);

  const unsigned first = blockIdx.x * (TILE * TARGETS) + threadIdx.x;
  double x[TARGETS], y[TARGETS], z[TARGETS], sum[TARGETS][COMPONENTS] = {};
#pragma unroll
  for (int k = 0; k < TARGETS; k++) {
    const Body t = v.targets[min(first + k * TILE, v.n_targets - 1)];
    x[k] = t.x;
    y[k] = t.y;
    z[k] = t.z;
  }
  const Share share(v);
  Body next = share.source(v, share.begin);
  for (unsigned t = share.begin; t < share.end; t++) {
    __syncthreads();
    tile[threadIdx.x] = next;
    __syncthreads();
    if (t + 1 < share.end) next = share.source(v, t + 1);
#pragma unroll SOURCES_F64
    for (unsigned j = 0; j < TILE; j++) {
      const Body s = tile[j];
#pragma unroll
      for (int k = 0; k < TARGETS; k++) {
        const bool itself = v.same && t * TILE + j == first + k * TILE;
        meet<double, Kernel<double>, POTENTIAL>(kernel, x[k] - s.x, y[k] - s.y, z[k] - s.z, s.q, itself, sum[k]);
      }
    }
  }
  for (int k = 0; k < TARGETS; k++) {
    const unsigned i = first + k * TILE;
    if (i >= v.n_targets) continue;
    for (int c = 0; c < COMPONENTS; c++) *share.place<COMPONENTS>(v, c, i) = sum[k][c];
  }
}

// Blocks of a multiprocessor in double precision.
template <template <typename> class Kernel> constexpr int BLOCKS = 2;
template <> constexpr int BLOCKS<Newton> = BLOCKS_F64;

extern "C" {
#define SUMS(NAME, KERNEL)                                                                                              \
  __global__ void __launch_bounds__(TILE, BLOCKS_F32) p2p_##NAME##_f32(SumView v) { sums_f32<KERNEL, false>(v); }       \
  __global__ void __launch_bounds__(TILE, BLOCKS<KERNEL>) p2p_##NAME##_f64(SumView v) { sums_f64<KERNEL, false>(v); }   \
  __global__ void __launch_bounds__(TILE) p2p_##NAME##_potential_f32(SumView v) { sums_f32<KERNEL, true>(v); }          \
  __global__ void __launch_bounds__(TILE) p2p_##NAME##_potential_f64(SumView v) { sums_f64<KERNEL, true>(v); }
FOR_EACH_KERNEL(SUMS)

// Adds the shares of a target and puts the sum in its place.
__global__ void __launch_bounds__(TILE) reduce_f64(SumView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n_targets) return;
  double sum[4] = {};
  for (unsigned s = 0; s < v.splits; s++)
#pragma unroll
    for (unsigned c = 0; c < 4; c++)
      if (c < v.components) sum[c] += v.partial[(size_t(s) * v.components + c) * v.n_targets + i];
  const size_t at = v.order ? v.order[i] : i;
  if (v.field)
    for (int d = 0; d < 3; d++) v.field[3 * at + d] = sum[d] * v.field_scale;
  if (v.potential) v.potential[at] = sum[3] * v.potential_scale;
}
}
