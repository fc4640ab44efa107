// Direct sums by lists of leaves.
//
// A warp has one task: up to MOST_TARGETS targets of a leaf. A lane holds R targets, and `width`
// lanes hold all of them, where width is the smallest power of two that is enough. The 32/width
// groups of lanes share the sources among themselves, and their sums are added in a fixed order. So
// leaves of any size keep the lanes busy. Sources are taken 32 at a time, across the bounds of
// their cells: while those in shared memory meet the targets, the next ones are being copied.
//
// Single precision reads bodies in 16 bytes, measured from the center of their leaf, and adds the difference of the centers, which is
// exact but for its last rounding. Bodies of the targets' leaf, of larger leaves and of inner cells are subtracted in double. It notes
// the closest pair of each target: where that is too close for the rounding, and where a sum is not finite, nothing is written and the
// target is summed again in double precision, which subtracts the coordinates as they are. Where more than one target in FEW has such a
// pair, all targets of the task are: bodies on curves and surfaces, where forces of neighbours cancel and their rounding does not.
#pragma once
#include "common/image.cuh"
#include "common/softening.cuh"
#include "common/tree.cuh"

// See above; as on the cores.
constexpr unsigned FEW = 8;
// Tasks that a block looks at for targets that are to be summed again.
constexpr unsigned LOOKED_AT = 8;
// Targets that a lane can hold.
template <typename Real> constexpr unsigned HELD = sizeof(Real) == 4 ? 7 : 6;

__device__ inline double power_of_two_below(double x) {
  return isfinite(x) && x > 0 ? scalbn(1.0, min(max(ilogb(x), -1000), 1000)) : 1;
}

// A warp's targets.
template <typename Real> struct Task {
  uint32_t leaf, begin, end;
  unsigned level;
  unsigned count, width, part, parts;
  double half, unit, scale;     // the unit keeps the softening length in range as well

  __device__ Task(const NearView &v, size_t task) : leaf(v.tasks[3 * task]) {
    if (leaf == NONE) return;
    begin = v.tasks[3 * task + 1];
    end = v.tasks[3 * task + 2];
    level = level_of(v.targets, leaf);
    half = v.targets.half[level];
    unit = power_of_two_below(fmax(half, v.smooth_below / 1024));
    scale = 1 / unit;
    share(end - begin);
  }
  // Divides so many targets among the lanes.
  __device__ void share(unsigned targets) {
    count = targets;
    width = 1;
    while (width < 32 && count > HELD<Real> * width) width *= 2;
    parts = 32 / width;
    part = threadIdx.x % 32 / width;
  }
  // Of all targets of the task, the lane's `r`-th.
  __device__ unsigned number(unsigned r) const { return threadIdx.x % 32 % width + r * width; }
  __device__ unsigned held() const { return (count + width - 1) / width; }
  // A shorter length has no effect, and its scale would overflow.
  __device__ double length(const NearView &v) const {
    return v.softening == 0 ? 0 : fmax(v.softening * scale, sizeof(Real) == 4 ? 1e-8 : 1e-60);
  }
};

// The groups' sums together, and to the targets.
template <typename Real, bool POTENTIAL, unsigned R>
__device__ inline void add_groups(const Task<Real> &t, Real (*sum)[POTENTIAL ? 4 : 3]) {
  for (unsigned step = t.width; step < 32; step *= 2)
#pragma unroll
    for (unsigned r = 0; r < R; r++)
#pragma unroll
      for (unsigned k = 0; k < (POTENTIAL ? 4 : 3); k++) sum[r][k] += __shfl_xor_sync(~0u, sum[r][k], step);
}
template <typename Real, bool POTENTIAL, unsigned R>
__device__ inline void keep(const NearView &v, const Task<Real> &t, const uint32_t *mine, const Real (*sum)[POTENTIAL ? 4 : 3]) {
  if (t.part > 0) return;
#pragma unroll
  for (unsigned r = 0; r < R; r++) {
    const uint32_t i = mine[r];
    if (i == NONE) continue;
    Sum s = v.sums[i];
    if constexpr (POTENTIAL) s.potential += double(sum[r][3]) * t.scale;
    s.x += double(sum[r][0]) * (t.scale * t.scale);
    s.y += double(sum[r][1]) * (t.scale * t.scale);
    s.z += double(sum[r][2]) * (t.scale * t.scale);
    v.sums[i] = s;
  }
}

// 32 sources.
struct Batch {
  float4 source[32];
  uint32_t index[32];
};

// The cells of a list, 32 at a time, one a lane, and their bodies, numbered through.
template <bool BOX> struct Cells {
  uint32_t through = 0;         // bodies of the cells up to the lane's
  uint32_t offset = 0;          // from numbers to places of bodies
  float x = 0, y = 0, z = 0;    // the center from the targets'
  uint32_t exact = 0;           // the lanes whose cells are to be subtracted in double
  uint32_t total = 0;
  uint32_t image = 0;           // of the lane's cell, in a periodic box

  __device__ Cells(const NearView &v, const Task<float> &t, const double *center, uint64_t p, uint64_t row_end) {
    const unsigned lane = threadIdx.x % 32;
    bool mine = false;
    if (p + lane < row_end) {
      const size_t cell = v.list.pairs[2 * (p + lane)];
      if constexpr (BOX) image = v.list.pairs[2 * (p + lane) + 1];
      const uint32_t begin = v.sources.bodies[2 * cell];
      offset = begin;
      through = v.sources.bodies[2 * cell + 1] - begin;
      const bool own = v.same && image == 0 && begin < t.end && t.begin < begin + through;
      mine = own || cell < v.sources.level_start[min(t.level, v.sources.levels - 1)] || !is_leaf(v.sources, cell);
      if (!mine) {
        x = (v.sources.center[3 * cell] - center[0]) * t.scale;
        y = (v.sources.center[3 * cell + 1] - center[1]) * t.scale;
        z = (v.sources.center[3 * cell + 2] - center[2]) * t.scale;
        if constexpr (BOX) {
          double shift[3];
          shift_of(image, v.sides, shift);
          x = (v.sources.center[3 * cell] + shift[0] - center[0]) * t.scale;
          y = (v.sources.center[3 * cell + 1] + shift[1] - center[1]) * t.scale;
          z = (v.sources.center[3 * cell + 2] + shift[2] - center[2]) * t.scale;
        }
      }
    }
    exact = __ballot_sync(~0u, mine);
    const uint32_t length = through;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
      const uint32_t before = __shfl_up_sync(~0u, through, step);
      if (lane >= step) through += before;
    }
    offset -= through - length;
    total = __shfl_sync(~0u, through, 31);
  }
};

// A source on its way: from the center of its cell in the unit of the bodies, and that center.
struct Coming {
  float4 body;
  float x, y, z;
  uint32_t index;

  // Body `number` of the cells. An image is nobody's own body.
  template <bool BOX>
  __device__ Coming(const NearView &v, const Task<float> &t, const double *center, float shrink, const Cells<BOX> &cells, uint32_t number) {
    unsigned cell = 0;
#pragma unroll
    for (unsigned step = 16; step > 0; step /= 2)
      if (__shfl_sync(~0u, cells.through, cell + step - 1) <= number) cell += step;
    index = __shfl_sync(~0u, cells.offset, cell) + number;
    x = __shfl_sync(~0u, cells.x, cell);
    y = __shfl_sync(~0u, cells.y, cell);
    z = __shfl_sync(~0u, cells.z, cell);
    uint32_t image = 0;
    if constexpr (BOX) image = __shfl_sync(~0u, cells.image, cell);
    if (number >= cells.total) {
      // What is beyond the last source adds nothing.
      body = make_float4(0, 0, 0, 0);
      x = y = z = 1e9f;
      index = NONE;
    } else if (cells.exact >> cell & 1) {
      Body b = v.source_bodies[index];
      if constexpr (BOX) {
        double shift[3];
        shift_of(image, v.sides, shift);
        b.x += shift[0];
        b.y += shift[1];
        b.z += shift[2];
      }
      body = make_float4(float((b.x - center[0]) * t.scale) * shrink, float((b.y - center[1]) * t.scale) * shrink,
                         float((b.z - center[2]) * t.scale) * shrink, float(b.q));
    } else {
      body = v.near[index];
    }
    if constexpr (BOX)
      if (image != 0) index = NONE;
  }
};

// The numbers within a task of the targets that are to be summed again, 128 bits.
struct Marks {
  uint64_t low = 0, high = 0;

  // Those of the lanes of the first part, `begin` on.
  __device__ void add(uint32_t bits, unsigned begin) {
    if (begin < 64) {
      low |= uint64_t(bits) << begin;
    } else {
      high |= uint64_t(bits) << (begin - 64);
    }
  }
  // All of so many, if they are more than one in FEW. Returns whether they are.
  __device__ bool spread(unsigned count) {
    if ((__popcll(low) + __popcll(high)) * FEW <= count) return false;
    low = count < 64 ? (uint64_t(1) << count) - 1 : ~uint64_t(0);
    high = count <= 64 ? 0 : count < 128 ? (uint64_t(1) << (count - 64)) - 1 : ~uint64_t(0);
    return true;
  }
  // Their numbers, one after the other; returns how many there are.
  __device__ unsigned list(uint8_t *numbers) const {
    const unsigned lane = threadIdx.x % 32;
    unsigned before = 0;
#pragma unroll
    for (unsigned begin = 0; begin < MOST_TARGETS; begin += 32) {
      const uint32_t bits = (begin < 64 ? low : high) >> (begin % 64);
      if (bits >> lane & 1) numbers[before + __popc(bits & ((1u << lane) - 1))] = begin + lane;
      before += __popc(bits);
    }
    __syncwarp();
    return before;
  }
};

template <template <typename> class Kernel, bool POTENTIAL, bool BOX, unsigned R>
__device__ inline void in_single(const NearView &v, const Task<float> &t, size_t task) {
  constexpr int FAR = 0x7149f2ca; // 1e30
  __shared__ Batch batch;
  const unsigned lane = threadIdx.x % 32;
  const double *from = v.targets.center + 3 * size_t(t.leaf);
  const double center[3] = {from[0], from[1], from[2]};
  const Kernel<float> kernel(t.length(v));
  float at[R][3], sum[R][POTENTIAL ? 4 : 3] = {};
  // Positive numbers compare as whole numbers do, of which three are compared at once.
  int nearest[R];
#pragma unroll
  for (unsigned r = 0; r < R; r++) {
    // Idle targets lie far from everything: a copy of a body would be a pair at distance zero.
    const uint32_t i = t.begin + t.number(r);
    const Body b = v.target_bodies[min(i, t.end - 1)];
    nearest[r] = FAR;
    at[r][0] = i < t.end ? float((b.x - center[0]) * t.scale) : 3e9f;
    at[r][1] = (b.y - center[1]) * t.scale;
    at[r][2] = (b.z - center[2]) * t.scale;
  }
  const float stretch = power_of_two_below(v.sources.half[0]) * t.scale, shrink = 1 / stretch;
  // The squares of the distances from one source.
  const auto meets = [&](const float4 &s, int *r2) {
#pragma unroll
    for (unsigned r = 0; r < R; r++)
      r2[r] = __float_as_int(
          meet<float, Kernel<float>, POTENTIAL>(kernel, at[r][0] - s.x, at[r][1] - s.y, at[r][2] - s.z, s.w, false, sum[r]));
  };
  const uint64_t row_end = v.list.start[size_t(t.leaf) + 1];
  for (uint64_t p = v.list.start[t.leaf]; p < row_end; p += 32) {
    const Cells<BOX> cells(v, t, center, p, row_end);
    Coming next(v, t, center, shrink, cells, lane);
    for (uint32_t g = 0; g < cells.total; g += 32) {
      __syncwarp();
      batch.source[lane] = make_float4(fmaf(next.body.x, stretch, next.x), fmaf(next.body.y, stretch, next.y),
                                       fmaf(next.body.z, stretch, next.z), next.body.w);
      const bool own = __any_sync(~0u, v.same && next.index - t.begin < t.end - t.begin);
      if (own) batch.index[lane] = next.index;
      __syncwarp();
      if (g + 32 < cells.total) next = Coming(v, t, center, shrink, cells, g + 32 + lane);
      if (!own) {
        int r2[2][R];
#pragma unroll 1
        for (unsigned j = t.part; j + t.parts < 32; j += 2 * t.parts) {
          meets(batch.source[j], r2[0]);
          meets(batch.source[j + t.parts], r2[1]);
#pragma unroll
          for (unsigned r = 0; r < R; r++) nearest[r] = __vimin3_s32(nearest[r], r2[0][r], r2[1][r]);
        }
        // A source for each lane.
        if (t.parts == 32) {
          meets(batch.source[t.part], r2[0]);
#pragma unroll
          for (unsigned r = 0; r < R; r++) nearest[r] = min(nearest[r], r2[0][r]);
        }
      } else {
#pragma unroll 1
        for (unsigned j = t.part; j < 32; j += t.parts) {
          const float4 s = batch.source[j];
          const uint32_t index = batch.index[j];
#pragma unroll
          for (unsigned r = 0; r < R; r++) {
            const bool itself = index == t.begin + t.number(r);
            const float r2 =
                meet<float, Kernel<float>, POTENTIAL>(kernel, at[r][0] - s.x, at[r][1] - s.y, at[r][2] - s.z, s.w, itself, sum[r]);
            nearest[r] = min(nearest[r], itself ? FAR : __float_as_int(r2));
          }
        }
      }
    }
  }
  add_groups<float, POTENTIAL, R>(t, sum);
  // Kernels of Plummer's kind raise distances by their length themselves.
  const double raised = kernel.raise() > 1e-24f ? 0 : v.smooth_below;
  const double closest = v.closest * t.half;
  uint32_t mine[R];
  Marks marks;
#pragma unroll
  for (unsigned r = 0; r < R; r++) {
    for (unsigned step = t.width; step < 32; step *= 2) nearest[r] = min(nearest[r], __shfl_xor_sync(~0u, nearest[r], step));
    bool again = (double(__int_as_float(nearest[r])) * t.unit) * t.unit + raised * raised < closest * closest;
#pragma unroll
    for (unsigned k = 0; k < (POTENTIAL ? 4 : 3); k++) again |= !isfinite(sum[r][k]);
    const bool real = t.number(r) < t.count;
    marks.add(__ballot_sync(~0u, again && real && t.part == 0), r * t.width);
    mine[r] = real && !again ? t.begin + t.number(r) : NONE;
  }
  const bool all = marks.spread(t.count);
  if (lane == 0) {
    v.again[2 * task] = marks.low;
    v.again[2 * task + 1] = marks.high;
  }
  if (!all) keep<float, POTENTIAL, R>(v, t, mine, sum);
}

template <template <typename> class Kernel, bool POTENTIAL, bool BOX, unsigned R>
__device__ inline void in_double(const NearView &v, const Task<double> &t, const uint8_t *numbers) {
  const unsigned lane = threadIdx.x % 32;
  const Kernel<double> kernel(t.length(v));
  double at[R][3], sum[R][POTENTIAL ? 4 : 3] = {};
  uint32_t mine[R];
#pragma unroll
  for (unsigned r = 0; r < R; r++) {
    const unsigned k = t.number(r);
    mine[r] = k < t.count ? t.begin + (v.again ? numbers[k] : k) : NONE;
    const Body b = v.target_bodies[min(mine[r], t.end - 1)];
    at[r][0] = b.x * t.scale;
    at[r][1] = b.y * t.scale;
    at[r][2] = b.z * t.scale;
  }
  const uint64_t row_end = v.list.start[size_t(t.leaf) + 1];
  for (uint64_t p = v.list.start[t.leaf]; p < row_end; p += 32) {
    uint32_t begin = 0, length = 0, image = 0;
    if (p + lane < row_end) {
      const size_t cell = v.list.pairs[2 * (p + lane)];
      if constexpr (BOX) image = v.list.pairs[2 * (p + lane) + 1];
      begin = v.sources.bodies[2 * cell];
      length = v.sources.bodies[2 * cell + 1] - begin;
    }
    const unsigned cells = min(row_end - p, uint64_t(32));
    for (unsigned c = 0; c < cells; c++) {
      const uint32_t start = __shfl_sync(~0u, begin, c), end = start + __shfl_sync(~0u, length, c);
      uint32_t own = v.same ? 0 : ~0u;
      double shift[3];
      if constexpr (BOX) {
        const uint32_t mine = __shfl_sync(~0u, image, c);
        shift_of(mine, v.sides, shift);
        if (mine != 0) own = ~0u;
      }
      uint32_t j = start + t.part;
      Body next = {};
      if (j < end) next = v.source_bodies[j];
#pragma unroll 1
      while (j < end) {
        Body s = next;
        if constexpr (BOX) {
          s.x += shift[0];
          s.y += shift[1];
          s.z += shift[2];
        }
        const uint32_t index = j | own;
        j += t.parts;
        if (j < end) next = v.source_bodies[j];
#pragma unroll
        for (unsigned r = 0; r < R; r++)
          meet<double, Kernel<double>, POTENTIAL>(kernel, fma(-s.x, t.scale, at[r][0]), fma(-s.y, t.scale, at[r][1]),
                                                  fma(-s.z, t.scale, at[r][2]), s.q, index == mine[r], sum[r]);
      }
    }
  }
  add_groups<double, POTENTIAL, R>(t, sum);
  keep<double, POTENTIAL, R>(v, t, mine, sum);
}

template <template <typename> class Kernel, bool POTENTIAL, bool BOX> __device__ inline void lists_f32(const NearView &v) {
  const size_t task = blockIdx.x;
  const Task<float> t(v, task);
  if (t.leaf == NONE) return;
  switch (t.held()) {
  case 1:
  case 2: return in_single<Kernel, POTENTIAL, BOX, 2>(v, t, task);
  case 3:
  case 4: return in_single<Kernel, POTENTIAL, BOX, 4>(v, t, task);
  case 5: return in_single<Kernel, POTENTIAL, BOX, 5>(v, t, task);
  case 6: return in_single<Kernel, POTENTIAL, BOX, 6>(v, t, task);
  default: return in_single<Kernel, POTENTIAL, BOX, 7>(v, t, task);
  }
}

template <template <typename> class Kernel, bool POTENTIAL, bool BOX>
__device__ inline void task_f64(const NearView &v, size_t task, uint8_t *numbers) {
  Task<double> t(v, task);
  if (t.leaf == NONE) return;
  if (v.again) {
    Marks marks;
    marks.low = v.again[2 * task];
    marks.high = v.again[2 * task + 1];
    t.share(marks.list(numbers));
  }
  switch (t.held()) {
  case 1: return in_double<Kernel, POTENTIAL, BOX, 1>(v, t, numbers);
  case 2: return in_double<Kernel, POTENTIAL, BOX, 2>(v, t, numbers);
  case 3: return in_double<Kernel, POTENTIAL, BOX, 3>(v, t, numbers);
  case 4: return in_double<Kernel, POTENTIAL, BOX, 4>(v, t, numbers);
  case 5: return in_double<Kernel, POTENTIAL, BOX, 5>(v, t, numbers);
  default: return in_double<Kernel, POTENTIAL, BOX, 6>(v, t, numbers);
  }
}

// A task a block, or with `again` LOOKED_AT tasks, few of which single precision could not do.
template <template <typename> class Kernel, bool POTENTIAL, bool BOX> __device__ inline void lists_f64(const NearView &v) {
  __shared__ uint8_t numbers[MOST_TARGETS];
  if (!v.again) return task_f64<Kernel, POTENTIAL, BOX>(v, blockIdx.x, numbers);
  const size_t first = size_t(blockIdx.x) * LOOKED_AT, mine = first + threadIdx.x % 32;
  const bool marked = threadIdx.x % 32 < LOOKED_AT && mine < v.count && (v.again[2 * mine] | v.again[2 * mine + 1]) != 0;
  for (unsigned left = __ballot_sync(~0u, marked); left != 0; left &= left - 1) {
    __syncwarp();
    task_f64<Kernel, POTENTIAL, BOX>(v, first + __ffs(left) - 1, numbers);
  }
}

// Blocks of a multiprocessor that the registers must suffice for.
#define LISTS(NAME, KERNEL, BOX)                                                                                                \
  __global__ void __launch_bounds__(32, 20) p2p_list_##NAME##_f32(NearView v) { lists_f32<KERNEL, false, BOX>(v); }             \
  __global__ void __launch_bounds__(32, 16) p2p_list_##NAME##_potential_f32(NearView v) { lists_f32<KERNEL, true, BOX>(v); }    \
  __global__ void __launch_bounds__(32, 12) p2p_list_##NAME##_f64(NearView v) { lists_f64<KERNEL, false, BOX>(v); }             \
  __global__ void __launch_bounds__(32, 12) p2p_list_##NAME##_potential_f64(NearView v) { lists_f64<KERNEL, true, BOX>(v); }
