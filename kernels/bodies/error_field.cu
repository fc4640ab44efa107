// The error field: how much of the field of each target the truncation of the expansions loses,
// estimated, and the sample of the guard that is drawn by it. The formulas are those of fmm-core's
// `error_model.rs`, `cpu/error_field.rs` and `guard.rs`.
#include "common/image.cuh"
#include "common/real.cuh"
#include "common/tree.cuh"

// Threads of a block that is alone, and of a block that has a chunk of the targets.
constexpr unsigned ALONE = 1024, CHUNK_THREADS = 256;

// Threads of a block that has cells or leaves.
constexpr unsigned ERROR_THREADS = 128;

// The levels of most trees.
constexpr unsigned KEPT_LEVELS = 32;

__device__ inline double power(double x, unsigned n) {
  double result = 1;
  for (; n > 0; n >>= 1, x *= x)
    if (n & 1) result *= x;
  return result;
}

// What a multipole loses at a place in half sides of its cell.
__device__ inline double fall(double x, double y, double z, unsigned order) {
  return power(1 / (x * x + y * y + z * z), order + 3);
}

// The side of the octant along an axis: -1 or 1.
__device__ inline double side_of(unsigned octant, unsigned axis) { return octant >> axis & 1 ? 1 : -1; }

// The mean square of the field of the last degree of each cell: sources first, then targets. A thread has a cell. Single
// precision holds them: strengths are of order 1, and what underflows is nothing next to any field.
template <typename Real> __device__ inline void norms(const ErrorView &v) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x, sources = v.sources.cells;
  if (k >= sources + v.targets.cells) return;
  const bool local = k >= sources;
  const size_t cell = local ? k - sources : k;
  const Real *all = static_cast<const Real *>(local ? v.locals : v.multipoles);
  double sum = 0;
  if (all) {
    const Real *c = all + cell * v.coefficients + v.first;
    const double *weights = v.weights + (local ? v.width : 0);
    for (unsigned i = 0; i < v.width; i++) sum += weights[i] * double(c[i]) * double(c[i]);
  }
  v.norms[k] = float(fmin(sum, 1e38));
}

// The logarithm of an octant's value, no smaller than a part of the largest of its cell: the upper half of its bits, of
// which single precision keeps 1e-4 of the value.
__device__ inline float logarithm(double value, double least) {
  float log = float(__double2hiint(value)), largest = log;
  for (unsigned d = 4; d > 0; d /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, d));
  const double most = __hiloint2double(max(int(largest), 1 << 20), 0);
  return fmaxf(log, float(__double2hiint(least * most)));
}

// Eight lanes have the logarithms of the octants of a cell, and share what is linear along each axis between the centers
// of the octants, and beyond: the sum of `c[s]` times the coordinates of the bits of s.
struct Interpolated {
  float c[8];
  __device__ Interpolated(double value, double least) {
    float mine = logarithm(value, least);
    const unsigned o = threadIdx.x % 8;
    for (unsigned d = 1; d < 8; d *= 2) {
      const float other = __shfl_xor_sync(~0u, mine, d);
      mine = o & d ? mine - other : 0.5f * (mine + other);
    }
    for (unsigned s = 0; s < 8; s++) c[s] = __shfl_sync(~0u, mine, s, 8);
  }
  // The value at a place in half sides of the cell.
  __device__ double at(float x, float y, float z) const {
    const float low = fmaf(y, fmaf(x, c[3], c[2]), fmaf(x, c[1], c[0]));
    const float high = fmaf(y, fmaf(x, c[7], c[6]), fmaf(x, c[5], c[4]));
    return __hiloint2double(max(int(fmaf(z, high, low)), 0), 0);
  }
};

// A number from 0 to 1 for each other number, without a pattern: as `guard.rs` has it.
__device__ inline double spread(uint64_t k) {
  uint64_t z = (k + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return double(z ^ (z >> 31)) / 18446744073709551616.0;
}

// The sum of a number of each thread of a block of ALONE, in one order.
__device__ inline double sum_of_block(double x, double *warps) {
  for (unsigned d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0;
  for (unsigned w = 0; w < ALONE / 32; w++) sum += warps[w];
  return sum;
}

// The sum of a number of each thread of a block up to this one. It never falls from one thread to the next by rounding:
// the sum of a warp's last is where the next warp begins.
template <unsigned THREADS> __device__ inline double running_sum(double x, double *held, double *warps) {
  const unsigned me = threadIdx.x;
  held[me] = x;
  __syncthreads();
  if (me % 32 == 0) {
    double sum = 0;
    for (unsigned k = me; k < me + 32; k++) held[k] = sum += held[k];
    warps[me / 32] = sum;
  }
  __syncthreads();
  if (me == 0) {
    double sum = 0;
    for (unsigned w = 0; w < THREADS / 32; w++) {
      const double own = warps[w];
      warps[w] = sum;
      sum += own;
    }
  }
  __syncthreads();
  return warps[me / 32] + held[me];
}

// What an octant of a cell at `level` has by itself, and from its parent: by interpolation of all that the parent has, and
// from what the parent's own local expansion loses.
__device__ inline double handed_down(const ErrorView &v, uint32_t cell, unsigned level, const Interpolated &parent) {
  const unsigned o = threadIdx.x % 8, octant = v.targets.octant[cell];
  float at[3];
  double r2 = 0;
  for (unsigned d = 0; d < 3; d++) {
    at[d] = float(0.5 * side_of(octant, d) + 0.25 * side_of(o, d));
    r2 += (at[d] * v.aspect[d]) * (at[d] * v.aspect[d]);
  }
  const double lost = v.norms[v.sources.cells + size_t(v.targets.parent[cell])] * power(v.root / v.targets.half[level - 1], 4);
  return v.octants[8 * size_t(cell) + o] + parent.at(at[0], at[1], at[2]) + v.local * lost * power(r2, v.order);
}

extern "C" {
__global__ void __launch_bounds__(256) error_norms_f32(ErrorView v) { norms<float>(v); }
__global__ void __launch_bounds__(256) error_norms_f64(ErrorView v) { norms<double>(v); }

// What the multipoles of its list lose at the octants of a cell. A warp has a cell, and a lane every 32nd pair, AHEAD at
// once: each waits for a pair and then for its norm.
__global__ void __launch_bounds__(128) error_pairs(ErrorView v) {
  constexpr unsigned AHEAD = 6;
  const unsigned cell = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (cell >= v.targets.cells || !in_share(v.targets, cell)) return;
  const uint64_t begin = v.has_m2l ? v.m2l.start[cell] : 0;
  const unsigned count = v.has_m2l ? unsigned(v.m2l.start[cell + 1] - begin) : 0;
  const uint2 *pairs = reinterpret_cast<const uint2 *>(v.m2l.pairs) + begin;
  const uint4 *by_class = reinterpret_cast<const uint4 *>(v.by_class);
  float sum[8] = {};
  for (unsigned k = lane; k < count; k += 32 * AHEAD) {
    uint2 pair[AHEAD];
    float norm[AHEAD];
#pragma unroll
    for (unsigned a = 0; a < AHEAD; a++) pair[a] = k + 32 * a < count ? pairs[k + 32 * a] : make_uint2(0, 0);
#pragma unroll
    for (unsigned a = 0; a < AHEAD; a++) norm[a] = k + 32 * a < count ? v.norms[pair[a].x] : 0;
#pragma unroll
    for (unsigned a = 0; a < AHEAD; a++) {
      const uint4 lost = by_class[pair[a].y];
      const unsigned twos[4] = {lost.x, lost.y, lost.z, lost.w};
      for (unsigned k = 0; k < 4; k++) {
        sum[2 * k] = fmaf(norm[a], __uint_as_float(twos[k] << 16), sum[2 * k]);
        sum[2 * k + 1] = fmaf(norm[a], __uint_as_float(twos[k] & 0xffff0000), sum[2 * k + 1]);
      }
    }
  }
  // Each step halves the octants of a lane: lane 4 o to 4 o + 3 have octant o at last.
#pragma unroll
  for (unsigned d = 16, left = 4; left > 0; d /= 2, left /= 2)
    for (unsigned o = 0; o < left; o++) {
      const bool upper = lane & d;
      const float given = upper ? sum[o] : sum[o + left], mine = upper ? sum[o + left] : sum[o];
      sum[o] = mine + __shfl_xor_sync(~0u, given, d);
    }
  sum[0] += __shfl_xor_sync(~0u, sum[0], 2);
  sum[0] += __shfl_xor_sync(~0u, sum[0], 1);
  const double unit = v.class_unit * power(v.root / half_of(v.targets, cell), 4);
  if (lane % 4 == 0) v.octants[8 * size_t(cell) + lane / 4] = sum[0] * unit;
}

// What cells with children have at their octants with all that is handed down to them, from the root on. Eight lanes have
// a cell, and groups of a warp pass as many levels as the deepest of them: shuffles are the whole warp's.
__global__ void __launch_bounds__(ERROR_THREADS) error_cells(ErrorView v) {
  __shared__ uint32_t paths[ERROR_THREADS / 8][KEPT_LEVELS];
  const TreeView &tree = v.targets;
  const unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) / 8, o = threadIdx.x % 8;
  const uint32_t cell = min(place, tree.cells - 1);
  const bool parent = tree.children[2 * size_t(cell)] < tree.children[2 * size_t(cell) + 1];
  const bool there = place < tree.cells && parent && in_share(tree, cell);
  const unsigned last = there ? level_of(tree, cell) : 0;
  unsigned deepest = last;
  for (unsigned d = 16; d > 0; d /= 2) deepest = max(deepest, __shfl_xor_sync(~0u, deepest, d));
  // The cells from this one up, which are needed from the root down; of the deepest trees the upper ones.
  uint32_t *path = paths[threadIdx.x / 8];
  if (o == 0)
    for (unsigned level = last, at = cell; level > 0; level--, at = tree.parent[at])
      if (level < KEPT_LEVELS) path[level] = at;
  __syncwarp();
  double value = v.octants[o];
  for (unsigned level = 1; level <= deepest; level++) {
    const Interpolated above(value, v.least);
    if (level > last) continue;
    uint32_t at = level < KEPT_LEVELS ? path[level] : cell;
    if (level >= KEPT_LEVELS)
      for (unsigned l = last; l > level; l--) at = tree.parent[at];
    value = handed_down(v, at, level, above);
  }
  if (there) v.handed[8 * size_t(cell) + o] = value;
}

// The squares of the predicted errors of the bodies of a leaf. Eight lanes have a leaf, and an octant each.
__global__ void __launch_bounds__(ERROR_THREADS, 8) error_targets(ErrorView v) {
  const unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) / 8, o = threadIdx.x % 8;
  const uint32_t leaf = v.leaves[place < v.leaf_count ? place : 0];
  const bool there = place < v.leaf_count && in_share(v.targets, leaf);
  const TreeView &tree = v.targets;
  const unsigned p = v.order;
  const unsigned level = level_of(tree, leaf);
  const Interpolated above(v.handed[8 * size_t(level > 0 ? tree.parent[leaf] : 0) + o], v.least);
  double value = level > 0 ? handed_down(v, leaf, level, above) : v.octants[o];
  double center[3], shift[3];
  for (unsigned d = 0; d < 3; d++) center[d] = tree.center[3 * size_t(leaf) + d];
  const double half = tree.half[level];
  bool any_near = false;
  const auto of_pair = [&](uint64_t k, const double *x, bool &near) {
    const uint32_t source = v.m2p.pairs[2 * k];
    const double scale = 1 / half_of(v.sources, source);
    shift_of(v.m2p.pairs[2 * k + 1], v.sides, shift);
    double from[3], away = 0;
    for (unsigned d = 0; d < 3; d++) {
      const double c = v.sources.center[3 * size_t(source) + d] + shift[d];
      from[d] = (x[d] - c) * scale;
      away += (center[d] - c) * (center[d] - c);
    }
    near = away < v.near * half * (v.near * half);
    return v.norms[source] * power(v.root * scale, 4) * fall(from[0], from[1], from[2], p);
  };
  const uint64_t begin_pair = there && v.has_m2p ? v.m2p.start[leaf] : 0;
  const uint64_t end_pair = there && v.has_m2p ? v.m2p.start[leaf + 1] : 0;
  double mine[3];
  for (unsigned d = 0; d < 3; d++) mine[d] = center[d] + half * 0.5 * side_of(o, d) * v.aspect[d];
  for (uint64_t k = begin_pair; k < end_pair; k++) {
    bool near;
    const double lost = of_pair(k, mine, near);
    if (!near) value += lost;
    any_near |= near;
  }
  const Interpolated octants(value, v.least);
  if (!there) return;
  const double own = v.local * v.norms[v.sources.cells + size_t(leaf)] * power(v.root / half, 4);
  const double to_root = v.root * v.root, to_leaf = 1 / half;
  const float to_cube[3] = {float(1 / v.aspect[0]), float(1 / v.aspect[1]), float(1 / v.aspect[2])};
  const uint32_t end = tree.bodies[2 * size_t(leaf) + 1];
  for (uint32_t i = tree.bodies[2 * size_t(leaf)] + o; i < end; i += 8) {
    const Body b = v.target_bodies[i];
    const Sum whole = v.sums[i];
    const double x[3] = {b.x, b.y, b.z};
    float at[3], r2 = 0;
    for (unsigned d = 0; d < 3; d++) {
      at[d] = float((x[d] - center[d]) * to_leaf);
      r2 = fmaf(at[d], at[d], r2);
      at[d] *= to_cube[d];
    }
    double squared = octants.at(at[0], at[1], at[2]) + own * power(double(r2), p);
    if (any_near)
      for (uint64_t k = begin_pair; k < end_pair; k++) {
        bool near;
        const double lost = of_pair(k, x, near);
        if (near) squared += lost;
      }
    const double fx = whole.x * to_root, fy = whole.y * to_root, fz = whole.z * to_root;
    const double field = fx * fx + fy * fy + fz * fz;
    const double potential = whole.potential * v.root, terms = v.per_potential * potential * potential;
    squared += v.rounding * (field + terms * terms);
    // What no float holds counts as the largest.
    const float relative = float(squared > 0 ? fmin(squared / field, v.largest) : 0);
    reinterpret_cast<float2 *>(v.squares)[i] = make_float2(relative, float(fmin(squared, 1e38)));
  }
}
}

// How often a target is expected to be drawn: evenly, and in proportion to its squares.
struct Draws {
  double even, by_squares[2];
  __device__ double of(float2 squares) const {
    // Kernels that count and that write agree to the last bit.
    return fma(double(squares.x), by_squares[0], fma(double(squares.y), by_squares[1], even));
  }
};

// How a sample is drawn: what those targets were expected to be drawn that are there for certain
// (once or more), and what the others are; how many there are for certain, and whether there may be
// more.
struct DrawPlan {
  Draws chosen, draws;
  double certain, goes_on;
};

// Of `count` targets with these sums of squares, all draws that are `left`, of which `even` stay even.
__device__ inline Draws draws_of_rest(double count, const double *squares, double left, double even) {
  Draws draws;
  double given = 0;
  const double by_squares = fmax(left - even, 0.0);
  for (unsigned k = 0; k < 2; k++) {
    const double share = squares[k] > 0 ? 0.5 * by_squares : 0;
    draws.by_squares[k] = share > 0 ? share / squares[k] : 0;
    given += share;
  }
  draws.even = (left - given) / count;
  return draws;
}

// The targets of a chunk: the first, and one past the last.
__device__ inline uint2 targets_of(const DrawView &v, unsigned chunk) {
  return make_uint2(uint64_t(v.count) * chunk / v.chunks, uint64_t(v.count) * (chunk + 1) / v.chunks);
}

// The larger of a number of each thread of a block of CHUNK_THREADS, or their sum, for thread 0.
template <bool SUM> __device__ inline double joined_by_chunk(double x, double *held) {
  __syncthreads();
  held[threadIdx.x] = x;
  for (unsigned d = CHUNK_THREADS / 2; d > 0; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d) {
      const double other = held[threadIdx.x + d];
      held[threadIdx.x] = SUM ? held[threadIdx.x] + other : fmax(held[threadIdx.x], other);
    }
  }
  return held[0];
}

extern "C" {
// The sums of the squares of a chunk of the targets, and of the field, and the largest squares. A
// block has a chunk.
__global__ void __launch_bounds__(CHUNK_THREADS) error_chunks(DrawView v) {
  __shared__ double held[CHUNK_THREADS];
  const unsigned chunk = v.first + blockIdx.x;
  const uint2 targets = targets_of(v, chunk);
  double sum[3] = {};
  float largest[2] = {};
  const float2 *squares = reinterpret_cast<const float2 *>(v.squares);
#pragma unroll 4
  for (uint32_t i = targets.x + threadIdx.x; i < targets.y; i += CHUNK_THREADS) {
    const float2 both = squares[i];
    sum[0] += both.x;
    sum[1] += both.y;
    largest[0] = fmaxf(largest[0], both.x);
    largest[1] = fmaxf(largest[1], both.y);
    const Sum whole = v.field[i];
    const double x = whole.x * v.unit, y = whole.y * v.unit, z = whole.z * v.unit;
    sum[2] += x * x + y * y + z * z;
  }
  double all[5];
  for (unsigned k = 0; k < 3; k++) all[k] = joined_by_chunk<true>(sum[k], held);
  for (unsigned k = 0; k < 2; k++) all[3 + k] = joined_by_chunk<false>(largest[k], held);
  if (threadIdx.x == 0)
    for (unsigned k = 0; k < 5; k++) v.sums[5 * size_t(chunk) + k] = all[k];
}

// Of the targets of a chunk that are not in the sample for certain the sums of their squares and
// their number, and the number of the others.
__global__ void __launch_bounds__(CHUNK_THREADS) error_rest(DrawView v) {
  __shared__ double held[CHUNK_THREADS];
  const DrawPlan *plan = reinterpret_cast<const DrawPlan *>(v.plan);
  if (plan->goes_on == 0) return;
  const unsigned chunk = v.first + blockIdx.x;
  const uint2 targets = targets_of(v, chunk);
  const Draws draws = plan->draws;
  double sum[4] = {};
  const float2 *squares = reinterpret_cast<const float2 *>(v.squares);
#pragma unroll 4
  for (uint32_t i = targets.x + threadIdx.x; i < targets.y; i += CHUNK_THREADS) {
    const float2 both = squares[i];
    const bool certain = draws.of(both) >= 1;
    sum[0] += certain ? 0 : both.x;
    sum[1] += certain ? 0 : both.y;
    sum[2] += !certain;
    sum[3] += certain;
  }
  for (unsigned k = 0; k < 4; k++) {
    const double all = joined_by_chunk<true>(sum[k], held);
    if (threadIdx.x == 0) v.sums[5 * size_t(chunk) + k] = all;
  }
}

// From the sums of chunks how often targets are drawn, and where along the drawing each chunk
// begins, and among those that are there for certain. One block, a thread a chunk. `v.again` after
// error_rest.
__global__ void __launch_bounds__(ALONE) error_starts(DrawView v) {
  __shared__ double warps[ALONE / 32], held[ALONE];
  DrawPlan *to = reinterpret_cast<DrawPlan *>(v.plan);
  const DrawPlan before = v.again ? *to : DrawPlan{};
  if (v.again && before.goes_on == 0) return;
  const unsigned me = threadIdx.x;
  const bool there = me < v.chunks;
  const double all = double(v.count);
  double own[5] = {}, total[4];
  if (there)
    for (unsigned k = 0; k < 5; k++) own[k] = v.sums[5 * size_t(me) + k];
  for (unsigned k = 0; k < 4; k++) total[k] = sum_of_block(own[k], warps);
  const double count = v.again ? total[2] : all, certain = v.again ? total[3] : 0;
  const uint2 targets = targets_of(v, min(me, v.chunks - 1));
  const double own_count = v.again ? own[2] : double(targets.y - targets.x), left = v.size - certain;
  const bool known = v.again || (total[0] > 0 && total[1] > 0 && isfinite(total[0]) && isfinite(total[1]));
  const double none[2] = {};
  const Draws draws = draws_of_rest(count, known ? total : none, left, v.even * v.size);
  const double part = there ? draws.even * own_count + draws.by_squares[0] * own[0] + draws.by_squares[1] * own[1] : 0;
  const double reached = running_sum<ALONE>(known ? part : there ? draws.even * own_count : 0, held, warps);
  // The largest squares say whether any target may be there for certain.
  double most = 0;
  if (!v.again && known) {
    held[me] = there ? draws.of(make_float2(own[3], own[4])) : 0;
    __syncthreads();
    for (unsigned k = 0; k < v.chunks; k++) most = fmax(most, held[k]);
  }
  __syncthreads();
  const double sure_before = running_sum<ALONE>(v.again && there ? own[3] : 0, held, warps);
  if (there) {
    v.starts[me + 1] = me + 1 == v.chunks ? left : fmin(reached, left);
    v.sure[me + 1] = sure_before;
  }
  if (me == 0) {
    v.starts[0] = v.sure[0] = 0;
    if (!v.again)
      for (unsigned k = 0; k < 3; k++) v.totals[k] = total[k];
    for (unsigned k = 0; k < 2; k++) v.totals[3 + k] = total[k];
    DrawPlan plan;
    plan.chosen = v.again ? before.draws : Draws{};
    plan.draws = draws;
    plan.certain = certain;
    plan.goes_on = v.again ? certain > 0 : most >= 1;
    *to = plan;
  }
}

// Draws the targets of a chunk. A slot belongs to the target at which it is passed; chunks and
// threads agree on where they begin. Those that are there for certain have the last slots, and
// weights below zero.
__global__ void __launch_bounds__(CHUNK_THREADS) error_draw(DrawView v) {
  __shared__ double starts[CHUNK_THREADS + 1], held[CHUNK_THREADS], warps[CHUNK_THREADS / 32];
  const unsigned chunk = v.first + blockIdx.x;
  const uint2 targets = targets_of(v, chunk);
  const uint32_t each = (targets.y - targets.x + CHUNK_THREADS - 1) / CHUNK_THREADS;
  const uint32_t begin = min(targets.x + each * threadIdx.x, targets.y), end = min(begin + each, targets.y);
  const DrawPlan plan = *reinterpret_cast<const DrawPlan *>(v.plan);
  const double weight = double(v.size) / v.count, left = v.size - plan.certain;
  const float2 *squares = reinterpret_cast<const float2 *>(v.squares);
  const auto is_certain = [&](float2 both) { return plan.certain > 0 && plan.chosen.of(both) >= 1; };
  const auto passed = [&](double reached) {
    const double place = fmin(reached, left);
    const unsigned draw = place;
    return draw + (place - draw > spread(draw));
  };
  const double limit = v.starts[chunk + 1];
  const bool any_sure = v.sure[chunk] != v.sure[chunk + 1];
  if (passed(v.starts[chunk]) == passed(limit) && !any_sure) return;
  double own = 0, sure = 0;
  for (uint32_t i = begin; i < end; i++) {
    const float2 both = squares[i];
    const bool certain = is_certain(both);
    own += certain ? 0 : plan.draws.of(both);
    sure += certain;
  }
  const double upto = fmin(v.starts[chunk] + running_sum<CHUNK_THREADS>(own, held, warps), limit);
  starts[threadIdx.x + 1] = targets.x + each * (threadIdx.x + 1) >= targets.y ? limit : upto;
  if (threadIdx.x == 0) starts[0] = v.starts[chunk];
  __syncthreads();
  unsigned next_sure = left + v.sure[chunk] + (running_sum<CHUNK_THREADS>(sure, held, warps) - sure);
  double reached = starts[threadIdx.x];
  unsigned slot = passed(reached);
  for (uint32_t i = begin; i < end; i++) {
    const float2 both = squares[i];
    const double often = plan.draws.of(both);
    const bool certain = is_certain(both);
    if (certain) {
      v.picked[next_sure] = i;
      v.weight[next_sure++] = -weight;
    }
    reached = i + 1 == end ? starts[threadIdx.x + 1] : fmin(reached + (certain ? 0 : often), starts[threadIdx.x + 1]);
    const unsigned next = passed(reached);
    for (; slot < next; slot++) {
      v.picked[slot] = i;
      v.weight[slot] = weight / often;
    }
  }
}
}
