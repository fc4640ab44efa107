// The error field: how much of the field of each target the truncation of the expansions loses,
// estimated, and the sample of the guard that is drawn by it. The formulas are those of fmm-core's
// `error_model.rs`, `cpu/error_field.rs` and `guard.rs`.
#include "common/image.cuh"
#include "common/real.cuh"
#include "common/tree.cuh"

// Threads of a block that is alone, and of a block that has a chunk of the targets.
constexpr unsigned ALONE = 1024, CHUNK_THREADS = 256;

// Threads of a block that has leaves.
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

// The mean square of the field of the last degree of each cell: sources first, then targets. A thread has a cell.
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
  v.norms[k] = sum;
}

// The value of lane `o` of eight neighbouring lanes whose first is this one's group.
__device__ inline double of_lane(double x, unsigned o) { return __shfl_sync(~0u, x, o, 8); }

// The logarithm of an octant's value: its bits, no smaller than a part of the largest of the group.
__device__ inline double logarithm(double value, double least) {
  double largest = value;
  for (unsigned d = 4; d > 0; d /= 2) largest = fmax(largest, __shfl_xor_sync(~0u, largest, d));
  largest = fmax(largest, 2.2250738585072014e-308);
  return double(__double_as_longlong(fmax(value, least * largest)));
}

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

// The weight of an octant at a place between the centers of the octants, and beyond.
__device__ inline double weight_of(unsigned o, const double *at) {
  return (0.5 + side_of(o, 0) * at[0]) * (0.5 + side_of(o, 1) * at[1]) * (0.5 + side_of(o, 2) * at[2]);
}

extern "C" {
__global__ void __launch_bounds__(256) error_norms_f32(ErrorView v) { norms<float>(v); }
__global__ void __launch_bounds__(256) error_norms_f64(ErrorView v) { norms<double>(v); }

// What the multipoles of its list lose at the octants of a cell. A warp has a cell, and each eight
// lanes a quarter of its pairs, AHEAD at once: each waits for two loads one after the other.
__global__ void __launch_bounds__(128) error_pairs(ErrorView v) {
  constexpr unsigned AHEAD = 8;
  const unsigned cell = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (cell >= v.targets.cells || !in_share(v.targets, cell)) return;
  const unsigned o = lane % 8;
  const uint64_t begin = v.has_m2l ? v.m2l.start[cell] : 0, end = v.has_m2l ? v.m2l.start[cell + 1] : 0;
  double sum = 0;
  for (uint64_t k = begin + lane / 8; k < end; k += 4 * AHEAD) {
    double norm[AHEAD], lost[AHEAD];
#pragma unroll
    for (unsigned a = 0; a < AHEAD; a++) {
      const bool there = k + 4 * a < end;
      const uint64_t pair = there ? k + 4 * a : k;
      norm[a] = there ? v.norms[v.m2l.pairs[2 * pair]] : 0;
      lost[a] = v.by_class[8 * size_t(v.m2l.pairs[2 * pair + 1]) + o];
    }
#pragma unroll
    for (unsigned a = 0; a < AHEAD; a++) sum = fma(norm[a], lost[a], sum);
  }
  sum += __shfl_xor_sync(~0u, sum, 8);
  sum += __shfl_xor_sync(~0u, sum, 16);
  if (lane < 8) v.octants[8 * size_t(cell) + o] = sum * power(v.root / half_of(v.targets, cell), 4);
}

// The squares of the predicted errors of the bodies of a leaf. Eight lanes have a leaf, and an octant each.
__global__ void __launch_bounds__(ERROR_THREADS) error_targets(ErrorView v) {
  const unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) / 8, o = threadIdx.x % 8;
  const uint32_t leaf = v.leaves[place < v.leaf_count ? place : 0];
  const bool there = place < v.leaf_count && in_share(v.targets, leaf);
  const TreeView &tree = v.targets;
  const double *local_norms = v.norms + v.sources.cells;
  const unsigned p = v.order, last = level_of(tree, leaf);
  // Groups of a warp pass as many levels as the deepest of them: shuffles are the whole warp's.
  unsigned deepest = last;
  for (unsigned d = 16; d > 0; d /= 2) deepest = max(deepest, __shfl_xor_sync(~0u, deepest, d));
  // The cells from the leaf up, which are needed from the root down; of the deepest trees the upper ones.
  __shared__ uint32_t paths[ERROR_THREADS / 8][KEPT_LEVELS];
  uint32_t *path = paths[threadIdx.x / 8];
  if (o == 0)
    for (unsigned level = last, cell = leaf; level > 0; level--, cell = tree.parent[cell])
      if (level < KEPT_LEVELS) path[level] = cell;
  __syncwarp();
  double value = v.octants[o];
  uint32_t parent = 0;
  for (unsigned level = 1; level <= deepest; level++) {
    const double log = logarithm(value, v.least);
    uint32_t cell = level <= last && level < KEPT_LEVELS ? path[level] : leaf;
    if (level >= KEPT_LEVELS)
      for (unsigned l = last; l > level; l--) cell = tree.parent[cell];
    const unsigned octant = tree.octant[cell];
    double at[3], r2 = 0, mean = 0;
    for (unsigned d = 0; d < 3; d++) {
      at[d] = 0.5 * side_of(octant, d) + 0.25 * side_of(o, d);
      r2 += at[d] * v.aspect[d] * at[d] * v.aspect[d];
    }
    for (unsigned k = 0; k < 8; k++) mean += of_lane(log, k) * weight_of(k, at);
    if (level > last) continue;
    const double handed = __longlong_as_double((long long)mean);
    const double local = v.local * local_norms[parent] * power(v.root / tree.half[level - 1], 4);
    value = v.octants[8 * size_t(cell) + o] + handed + local * power(r2, p);
    parent = cell;
  }
  double center[3], shift[3];
  for (unsigned d = 0; d < 3; d++) center[d] = tree.center[3 * size_t(leaf) + d];
  const double half = tree.half[last];
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
  const double log = logarithm(value, v.least);
  double logs[8];
  for (unsigned k = 0; k < 8; k++) logs[k] = of_lane(log, k);
  if (!there) return;
  const double own = v.local * local_norms[leaf] * power(v.root / half, 4), to_root = v.root * v.root;
  const double to_leaf = 1 / half, to_cube[3] = {1 / v.aspect[0], 1 / v.aspect[1], 1 / v.aspect[2]};
  const uint32_t end = tree.bodies[2 * size_t(leaf) + 1];
  for (uint32_t i = tree.bodies[2 * size_t(leaf)] + o; i < end; i += 8) {
    const Body b = v.target_bodies[i];
    const double x[3] = {b.x, b.y, b.z};
    double at[3], r2 = 0, mean = 0;
    for (unsigned d = 0; d < 3; d++) {
      at[d] = (x[d] - center[d]) * to_leaf;
      r2 += at[d] * at[d];
      at[d] *= to_cube[d];
    }
    for (unsigned k = 0; k < 8; k++) mean += logs[k] * weight_of(k, at);
    double squared = __longlong_as_double((long long)mean) + own * power(r2, p);
    if (any_near)
      for (uint64_t k = begin_pair; k < end_pair; k++) {
        bool near;
        const double lost = of_pair(k, x, near);
        if (near) squared += lost;
      }
    const Sum whole = v.sums[i];
    const double fx = whole.x * to_root, fy = whole.y * to_root, fz = whole.z * to_root;
    const double field = fx * fx + fy * fy + fz * fz;
    const double potential = whole.potential * v.root, terms = v.per_potential * potential * potential;
    squared += v.rounding * (field + terms * terms);
    // What no float holds counts as the largest.
    v.squares[2 * size_t(i)] = float(squared > 0 ? fmin(squared / field, v.largest) : 0);
    v.squares[2 * size_t(i) + 1] = float(fmin(squared, 1e38));
  }
}

// The sums of the squares of a chunk of the targets. A block has a chunk.
__global__ void __launch_bounds__(CHUNK_THREADS) error_chunks(DrawView v) {
  __shared__ double held[CHUNK_THREADS];
  const unsigned chunk = v.first + blockIdx.x;
  const uint64_t first = uint64_t(v.count) * chunk / v.chunks;
  const uint64_t last = uint64_t(v.count) * (chunk + 1) / v.chunks;
  double sum[3] = {};
  for (uint64_t i = first + threadIdx.x; i < last; i += CHUNK_THREADS) {
    sum[0] += v.squares[2 * i];
    sum[1] += v.squares[2 * i + 1];
    const Sum whole = v.field[i];
    const double x = whole.x * v.unit, y = whole.y * v.unit, z = whole.z * v.unit;
    sum[2] += x * x + y * y + z * z;
  }
  for (unsigned k = 0; k < 3; k++) {
    __syncthreads();
    held[threadIdx.x] = sum[k];
    for (unsigned d = CHUNK_THREADS / 2; d > 0; d /= 2) {
      __syncthreads();
      if (threadIdx.x < d) held[threadIdx.x] += held[threadIdx.x + d];
    }
    if (threadIdx.x == 0) v.sums[3 * size_t(chunk) + k] = held[0];
  }
}

// The sums over all chunks, and where along the drawing each chunk begins. One block, a thread a chunk.
__global__ void __launch_bounds__(ALONE) error_starts(DrawView v) {
  __shared__ double warps[ALONE / 32], parts[ALONE];
  const unsigned me = threadIdx.x;
  const bool there = me < v.chunks;
  double total[3];
  for (unsigned k = 0; k < 3; k++) {
    total[k] = sum_of_block(there ? v.sums[3 * size_t(me) + k] : 0, warps);
    if (me == 0) v.totals[k] = total[k];
  }
  const double half = 0.5 * (1 - v.even);
  const bool drawn = total[0] > 0 && total[1] > 0 && isfinite(total[0]) && isfinite(total[1]);
  double part = 0;
  if (there) {
    const double all = double(v.count);
    const double count = double(uint64_t(v.count) * (me + 1) / v.chunks - uint64_t(v.count) * me / v.chunks) / all;
    const double *own = v.sums + 3 * size_t(me);
    part = drawn ? v.even * count + half * (own[0] / total[0] + own[1] / total[1]) : count;
  }
  // One after the other: no chunk ends before it begins by rounding.
  parts[me] = part;
  __syncthreads();
  if (me == 0) {
    double reached = 0;
    for (unsigned c = 0; c < v.chunks; c++) reached = parts[c] += reached;
    v.starts[0] = 0;
    v.totals[3] = drawn;
  }
  __syncthreads();
  if (there) v.starts[me + 1] = me + 1 == v.chunks ? 1 : fmin(parts[me], 1.0);
}

// Draws the targets of a chunk. A slot belongs to the target at which it is passed; chunks and
// threads agree on where they begin.
__global__ void __launch_bounds__(CHUNK_THREADS) error_draw(DrawView v) {
  __shared__ double starts[CHUNK_THREADS + 1];
  const unsigned chunk = v.first + blockIdx.x;
  const uint64_t first = uint64_t(v.count) * chunk / v.chunks;
  const uint64_t last = uint64_t(v.count) * (chunk + 1) / v.chunks;
  const uint64_t each = (last - first + CHUNK_THREADS - 1) / CHUNK_THREADS;
  const uint64_t begin = min(first + each * threadIdx.x, last), end = min(begin + each, last);
  const bool drawn = v.totals[3] != 0;
  const double even = 1.0 / v.count, half = 0.5 * (1 - v.even);
  const auto probability = [&](uint64_t i) {
    return drawn ? v.even * even + half * (v.squares[2 * i] / v.totals[0] + v.squares[2 * i + 1] / v.totals[1]) : even;
  };
  const auto passed = [&](double reached) {
    const double place = fmin(reached * v.size, double(v.size));
    const unsigned draw = place;
    return draw + (place - draw > spread(draw));
  };
  const double limit = v.starts[chunk + 1];
  if (passed(v.starts[chunk]) == passed(limit)) return;
  double own = 0;
  for (uint64_t i = begin; i < end; i++) own += probability(i);
  starts[threadIdx.x + 1] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    double reached = v.starts[chunk];
    for (unsigned t = 0; t < CHUNK_THREADS; t++) {
      starts[t] = first + each * t >= last ? limit : fmin(reached, limit);
      reached += starts[t + 1];
    }
    starts[CHUNK_THREADS] = limit;
  }
  __syncthreads();
  double reached = starts[threadIdx.x];
  unsigned slot = passed(reached);
  for (uint64_t i = begin; i < end; i++) {
    const double chance = probability(i);
    reached = i + 1 == end ? starts[threadIdx.x + 1] : fmin(reached + chance, starts[threadIdx.x + 1]);
    const unsigned next = passed(reached);
    for (; slot < next; slot++) {
      v.picked[slot] = uint32_t(i);
      v.weight[slot] = even / chance;
    }
  }
}
}
