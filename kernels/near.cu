// Direct sums by lists of leaves.
//
// A warp has one task: up to 128 targets of a leaf. A lane holds R targets, and WIDTH lanes hold all of them, with WIDTH as small as
// can be; the 32/WIDTH groups of lanes share the sources among themselves, and their sums are added in a fixed order. So leaves
// of any size keep the lanes busy. Sources are gathered, whatever cells they come from, 32 at a time into shared memory.
// Single precision measures from the centre of the leaf, subtracted in double, and notes the closest pair: where that is too close,
// nothing is written and the task is done again in double precision.
#include "softening.cuh"
#include "tree.cuh"

// Warps of a block, and sources that a warp gathers before they meet the targets.
constexpr unsigned WARPS = 4, GROUP = 128;

// The targets that a lane can hold.
template <typename Real> constexpr unsigned HELD = sizeof(Real) == 4 ? 8 : 4;

template <typename Real> struct Gathered {
  typename Four<Real>::Type source[GROUP];
  uint32_t index[GROUP];
};

__device__ inline double power_of_two_below(double x) {
  return isfinite(x) && x > 0 ? exp2(floor(fmin(fmax(log2(x), -1000.0), 1000.0))) : 1;
}

// What the gathered sources add to the sums. OWN: some of them may be the targets.
template <typename Real, class Kernel, bool POTENTIAL, unsigned R, bool OWN>
__device__ inline void meet(const Kernel &kernel, const Gathered<Real> &from, unsigned count, unsigned part, unsigned parts,
                            const Real (*at)[3], uint32_t first, unsigned width, Real (*sum)[4], Real &nearest) {
#pragma unroll 2
  for (unsigned j = part; j < count; j += parts) {
    const auto s = from.source[j];
    const uint32_t index = OWN ? from.index[j] : 0;
#pragma unroll
    for (unsigned r = 0; r < R; r++) {
      const Real dx = at[r][0] - s.x, dy = at[r][1] - s.y, dz = at[r][2] - s.z;
      const Real r2 = fused(dx, dx, fused(dy, dy, fused(dz, dz, kernel.raise())));
      const bool itself = OWN && index == first + r * width;
      Real g;
      if constexpr (POTENTIAL) {
        Real potential;
        g = kernel.both(itself ? Real(0) : s.w, r2, potential);
        sum[r][3] += potential;
      } else {
        g = kernel.force(s.w, r2);
      }
      sum[r][0] = fused(g, dx, sum[r][0]);
      sum[r][1] = fused(g, dy, sum[r][1]);
      sum[r][2] = fused(g, dz, sum[r][2]);
      if constexpr (sizeof(Real) == 4) nearest = fminf(nearest, itself ? Real(1e30) : r2);
    }
  }
}

template <typename Real, template <typename> class Kernel, bool POTENTIAL, unsigned R>
__device__ inline void task(const NearView &v, Gathered<Real> &gathered, unsigned task_index, unsigned width) {
  constexpr bool SINGLE = sizeof(Real) == 4;
  const unsigned lane = threadIdx.x % 32;
  const uint32_t leaf = v.tasks[3 * size_t(task_index)], begin = v.tasks[3 * size_t(task_index) + 1];
  const uint32_t end = v.tasks[3 * size_t(task_index) + 2];
  const double half = half_of(v.targets, leaf);
  const double unit = power_of_two_below(fmax(half, v.smooth_below / 1024)), scale = 1 / unit;
  // Double precision subtracts the coordinates as they are, so that no pair loses a digit.
  const double *c = v.targets.centre + 3 * size_t(leaf);
  const double centre[3] = {SINGLE ? c[0] : 0, SINGLE ? c[1] : 0, SINGLE ? c[2] : 0};
  // A length too small to be told from none would have a scale that overflows.
  const Kernel<Real> kernel(v.softening == 0 ? 0 : fmax(v.softening * scale, SINGLE ? 1e-8 : 1e-60));

  const unsigned parts = 32 / width, part = lane / width;
  const uint32_t first = begin + lane % width;
  Real at[R][3], sum[R][4] = {};
#pragma unroll
  for (unsigned r = 0; r < R; r++) {
    // Idle targets lie far from everything: a copy of a body would be a pair at distance zero.
    const uint32_t i = first + r * width;
    const Body b = v.target_bodies[min(i, end - 1)];
    at[r][0] = i < end ? Real((b.x - centre[0]) * scale) : Real(3e9);
    at[r][1] = Real((b.y - centre[1]) * scale);
    at[r][2] = Real((b.z - centre[2]) * scale);
  }
  Real nearest = Real(1e30);
  unsigned held = 0;
  bool own = false;
  const auto flush = [&]() {
    // Whole rounds: what is beyond the last source adds nothing.
    for (unsigned j = held + lane; j < (held + 31) / 32 * 32; j += 32) {
      gathered.source[j] = {Real(1e9), Real(1e9), Real(1e9), Real(0)};
      gathered.index[j] = NONE;
    }
    const unsigned count = (held + 31) / 32 * 32;
    __syncwarp();
    if (own)
      meet<Real, Kernel<Real>, POTENTIAL, R, true>(kernel, gathered, count, part, parts, at, first, width, sum, nearest);
    else
      meet<Real, Kernel<Real>, POTENTIAL, R, false>(kernel, gathered, count, part, parts, at, first, width, sum, nearest);
    __syncwarp();
    held = 0;
    own = false;
  };
  const uint64_t row_end = v.list.start[size_t(leaf) + 1];
  for (uint64_t p = v.list.start[leaf]; p < row_end; p += 32) {
    // A lane has a cell; the bodies of all cells are numbered through.
    uint32_t start = 0, length = 0;
    if (p + lane < row_end) {
      const size_t cell = v.list.pairs[2 * (p + lane)];
      start = v.sources.bodies[2 * cell];
      length = v.sources.bodies[2 * cell + 1] - start;
    }
    uint32_t through = length;
    for (unsigned step = 1; step < 32; step *= 2) {
      const uint32_t before = __shfl_up_sync(~0u, through, step);
      if (lane >= step) through += before;
    }
    const uint32_t total = __shfl_sync(~0u, through, 31);
    const uint32_t offset = start - (through - length);
    for (uint32_t g = 0; g < total; g += 32) {
      const uint32_t i = g + lane;
      unsigned cell = 0;
#pragma unroll
      for (unsigned step = 16; step > 0; step /= 2) {
        const uint32_t reached = __shfl_sync(~0u, through, cell + step - 1);
        if (reached <= i) cell += step;
      }
      const uint32_t body = __shfl_sync(~0u, offset, cell) + i;
      bool mine = false;
      if (i < total) {
        const Body b = v.source_bodies[body];
        gathered.source[held + lane] = {Real((b.x - centre[0]) * scale), Real((b.y - centre[1]) * scale),
                                        Real((b.z - centre[2]) * scale), Real(b.q)};
        gathered.index[held + lane] = body;
        mine = v.same && body >= begin && body < end;
      }
      own |= __any_sync(~0u, mine);
      held += min(32u, total - g);
      if (held > GROUP - 32) flush();
    }
  }
  if (held > 0) flush();

  for (unsigned step = width; step < 32; step *= 2)
#pragma unroll
    for (unsigned r = 0; r < R; r++)
      for (unsigned k = 0; k < 4; k++) sum[r][k] += __shfl_xor_sync(~0u, sum[r][k], step);
  if constexpr (SINGLE) {
    // The kernels of Plummer's kind raise distances by their length themselves.
    const double raised = kernel.raise() > Real(1e-24) ? 0 : v.smooth_below;
    const double closest = v.closest * half;
    const bool close = (double(nearest) * unit) * unit + raised * raised < closest * closest;
    const bool any = __any_sync(~0u, close);
    if (lane == 0) v.again[task_index] = any;
    if (any) return;
  }
  if (part > 0) return;
#pragma unroll
  for (unsigned r = 0; r < R; r++) {
    const uint32_t i = first + r * width;
    if (i >= end) break;
    Sum s = v.sums[i];
    if (v.potential) s.potential += double(sum[r][3]) * scale;
    s.x += double(sum[r][0]) * (scale * scale);
    s.y += double(sum[r][1]) * (scale * scale);
    s.z += double(sum[r][2]) * (scale * scale);
    v.sums[i] = s;
  }
}

template <typename Real, template <typename> class Kernel, bool POTENTIAL> __device__ inline void lists(const NearView &v) {
  __shared__ Gathered<Real> gathered[WARPS];
  const unsigned warp = threadIdx.x / 32, t = blockIdx.x * WARPS + warp;
  if (t >= v.count) return;
  // In double precision with `again`, only what single precision could not do.
  if (sizeof(Real) == 8 && v.again && !v.again[t]) return;
  const uint32_t targets = v.tasks[3 * size_t(t) + 2] - v.tasks[3 * size_t(t) + 1];
  unsigned width = 1;
  while (width < 32 && targets > HELD<Real> * width) width *= 2;
  Gathered<Real> &g = gathered[warp];
  const unsigned held = (targets + width - 1) / width;
  if constexpr (sizeof(Real) == 4) {
    switch (held) {
    case 1: return task<Real, Kernel, POTENTIAL, 1>(v, g, t, width);
    case 2: return task<Real, Kernel, POTENTIAL, 2>(v, g, t, width);
    case 3: return task<Real, Kernel, POTENTIAL, 3>(v, g, t, width);
    case 4: return task<Real, Kernel, POTENTIAL, 4>(v, g, t, width);
    case 5: return task<Real, Kernel, POTENTIAL, 5>(v, g, t, width);
    case 6: return task<Real, Kernel, POTENTIAL, 6>(v, g, t, width);
    default: return task<Real, Kernel, POTENTIAL, 8>(v, g, t, width);
    }
  } else {
    switch (held) {
    case 1: return task<Real, Kernel, POTENTIAL, 1>(v, g, t, width);
    case 2: return task<Real, Kernel, POTENTIAL, 2>(v, g, t, width);
    case 3: return task<Real, Kernel, POTENTIAL, 3>(v, g, t, width);
    default: return task<Real, Kernel, POTENTIAL, 4>(v, g, t, width);
    }
  }
}

extern "C" {
#define LISTS(NAME, KERNEL)                                                                                              \
  __global__ void __launch_bounds__(32 * WARPS, 5) p2p_list_##NAME##_f32(NearView v) { lists<float, KERNEL, false>(v); }     \
  __global__ void __launch_bounds__(32 * WARPS, 4) p2p_list_##NAME##_potential_f32(NearView v) { lists<float, KERNEL, true>(v); } \
  __global__ void __launch_bounds__(32 * WARPS) p2p_list_##NAME##_potential_f64(NearView v) { lists<double, KERNEL, true>(v); }
LISTS(newton, Newton)
LISTS(plummer, Plummer)
LISTS(p1, P1)
LISTS(spline, Spline)
}
