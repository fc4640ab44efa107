// The error field: how much of the field of each target the truncation of the expansions loses,
// estimated. The formulas are those of fmm-core's `error_model.rs` and `cpu/error_field.rs`.
#include "common/image.cuh"
#include "common/largest_term.cuh"
#include "common/real.cuh"
#include "common/tree.cuh"

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

// What a multipole loses at a place in half sides of its cell, in which `core2` is the square of the softening length.
__device__ inline double fall(double x, double y, double z, double core2, unsigned order) {
  return power(1 / (x * x + y * y + z * z + core2), order + 3);
}

// The side of the octant along an axis: -1 or 1.
__device__ inline double side_of(unsigned octant, unsigned axis) { return octant >> axis & 1 ? 1 : -1; }

// The mean square of the field of the last degree of each cell, or what else the weights say: sources first, then
// targets. A thread has a cell. Single precision holds them: strengths are of order 1, and what underflows is nothing
// next to any field.
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
  if (!local && v.strength_squares) sum = fmax(sum, v.least_of_random * double(v.strength_squares[cell]));
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

// Eight lanes have the values at the octants of a cell, whose logarithms are linear along each axis between the centers of
// the octants, and beyond: the sum of `c[s]` times the coordinates of the bits of s. The lane's c.
__device__ inline float coefficient(double value, double least) {
  float mine = logarithm(value, least);
  for (unsigned d = 1; d < 8; d *= 2) {
    const float other = __shfl_xor_sync(~0u, mine, d);
    mine = threadIdx.x % 8 & d ? mine - other : 0.5f * (mine + other);
  }
  return mine;
}

// The value at a place in half sides of the cell.
__device__ inline double interpolated(const float *c, float x, float y, float z) {
  const float low = fmaf(y, fmaf(x, c[3], c[2]), fmaf(x, c[1], c[0]));
  const float high = fmaf(y, fmaf(x, c[7], c[6]), fmaf(x, c[5], c[4]));
  return __hiloint2double(max(int(fmaf(z, high, low)), 0), 0);
}

// All coefficients, in each of the eight lanes.
struct Interpolated {
  float c[8];
  __device__ Interpolated(double value, double least) {
    const float mine = coefficient(value, least);
    for (unsigned s = 0; s < 8; s++) c[s] = __shfl_sync(~0u, mine, s, 8);
  }
  __device__ double at(float x, float y, float z) const { return interpolated(c, x, y, z); }
};

// Whether the pairs of a leaf's bodies were in double precision, asked for in their order.
struct InDouble {
  uint64_t low, high;
  unsigned task = 0, begin = 0, end = 0;

  __device__ bool operator()(const ErrorView &v, uint32_t leaf, unsigned count, unsigned body) {
    for (; body >= end; task++) {
      begin = end;
      end = task_begin(count, task + 1);
      const size_t place = task_place(v.targets, leaf, task);
      low = v.again[2 * place];
      high = v.again[2 * place + 1];
    }
    const unsigned bit = body - begin;
    return (bit < 64 ? low >> bit : high >> (bit - 64)) & 1;
  }
};

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

// What the rounding of pairs to single precision loses at an octant of a leaf, squared: eight lanes have a leaf, and
// look at eight cells of its list together.
__device__ inline float of_pairs(const ErrorView &v, uint32_t leaf, double half, const double *center, uint64_t begin, uint64_t end) {
  const unsigned o = threadIdx.x % 8, group = 0xffu << (threadIdx.x % 32 & 24);
  float at[3], sum = 0;
  for (unsigned d = 0; d < 3; d++) at[d] = float(0.5 * side_of(o, d) * v.aspect[d]);
  const float core2 = float(v.core2_of_terms / (half * half));
  for (uint64_t first = begin; first < end; first += 8) {
    float x[3] = {}, least = 1, size = 0;
    if (first + o < end) {
      const uint32_t cell = v.p2p.pairs[2 * (first + o)];
      double shift[3];
      shift_of(v.p2p.pairs[2 * (first + o) + 1], v.sides, shift);
      for (unsigned d = 0; d < 3; d++)
        x[d] = float((v.sources.center[3 * size_t(cell) + d] + shift[d] - center[d]) / half);
      const double ratio = half_of(v.sources, cell) / half;
      least = float(ratio * ratio);
      if (is_leaf(v.sources, cell))
        size = v.sizes[cell];
      else
        for (uint32_t i = v.sources.bodies[2 * size_t(cell)]; i < v.sources.bodies[2 * size_t(cell) + 1]; i++)
          size += fabsf(v.near_bodies[i].w);
    }
#pragma unroll
    for (unsigned k = 0; k < 8; k++) {
      float r2 = 0;
      for (unsigned d = 0; d < 3; d++) {
        const float away = __shfl_sync(group, x[d], k, 8) - at[d];
        r2 = fmaf(away, away, r2);
      }
      r2 = fmaxf(r2, __shfl_sync(group, least, k, 8));
      const float inverse = 1 / (r2 + core2), term = __shfl_sync(group, size, k, 8) * inverse;
      sum = fmaf(term * term, r2 * inverse, sum);
    }
  }
  return sum;
}

// The sources that are looked at for the largest term of the field at a body of a leaf: those next to it, or in the cell
// of its list where it lies.
__device__ inline uint2 next_to(const ErrorView &v, uint32_t target, uint32_t leaf) {
  uint32_t begin = 0, end = 0, middle = target;
  if (v.same) {
    begin = v.targets.bodies[2 * size_t(leaf)], end = v.targets.bodies[2 * size_t(leaf) + 1];
  } else {
    const Body b = v.target_bodies[target];
    const double x[3] = {b.x, b.y, b.z};
    for (uint64_t k = v.p2p.start[leaf]; k < v.p2p.start[leaf + 1]; k++) {
      const uint32_t cell = v.p2p.pairs[2 * k];
      const double half = half_of(v.sources, cell);
      bool holds = true;
      for (unsigned d = 0; d < 3; d++)
        holds &= fabs(x[d] - v.sources.center[3 * size_t(cell) + d]) <= half * v.aspect[d];
      if (!holds) continue;
      begin = v.sources.bodies[2 * size_t(cell)], end = v.sources.bodies[2 * size_t(cell) + 1];
      middle = begin + (end - begin) / 2;
      break;
    }
  }
  return make_uint2(max(begin, middle - min(middle, v.looked_at)), min(end, middle + v.looked_at));
}

extern "C" {
__global__ void __launch_bounds__(256) error_norms_f32(ErrorView v) { norms<float>(v); }
__global__ void __launch_bounds__(256) error_norms_f64(ErrorView v) { norms<double>(v); }

// What the multipoles of its list lose at the octants of a cell, by their rounding at its center. A warp has a cell, and
// a lane every 32nd pair, AHEAD at once: each waits for a pair and then for its norm.
__global__ void __launch_bounds__(128) error_pairs(ErrorView v) {
  constexpr unsigned AHEAD = 6;
  const unsigned cell = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (cell >= v.targets.cells || !in_share(v.targets, cell)) return;
  const uint64_t begin = v.has_m2l ? v.m2l.start[cell] : 0;
  const unsigned count = v.has_m2l ? unsigned(v.m2l.start[cell + 1] - begin) : 0;
  const uint2 *pairs = reinterpret_cast<const uint2 *>(v.m2l.pairs) + begin;
  const uint4 *by_class = reinterpret_cast<const uint4 *>(v.by_class);
  float sum[8] = {}, rounded = 0, of_halves = 0, replaced = 0;
  const double half = half_of(v.targets, cell);
  const float core2 = float(v.core2 / (half * half));
  for (unsigned k = lane; k < count; k += 32 * AHEAD) {
    uint2 pair[AHEAD];
    float norm[AHEAD];
#pragma unroll
    for (unsigned a = 0; a < AHEAD; a++) pair[a] = k + 32 * a < count ? pairs[k + 32 * a] : make_uint2(0, 0);
#pragma unroll
    for (unsigned a = 0; a < AHEAD; a++) norm[a] = k + 32 * a < count ? v.norms[pair[a].x] : 0;
    if (v.of_rounding > 0 || v.cell_scale) {
#pragma unroll
      for (unsigned a = 0; a < AHEAD; a++)
        if (k + 32 * a < count) {
          float far = v.far_by_class[pair[a].y];
          const float part = 1 / fmaf(core2, sqrtf(far), 1.0f);
          far *= part * part;
          if (v.of_rounding > 0) rounded = fmaf(v.strength_squares[pair[a].x], far, rounded);
          if (v.cell_scale) of_halves = fmaf(v.cell_scale[pair[a].x] * v.cell_scale[pair[a].x], far, of_halves);
        }
    }
    if (v.charges) {
#pragma unroll
      for (unsigned a = 0; a < AHEAD; a++)
        if (k + 32 * a < count) {
          const float far = v.far_by_class[pair[a].y], two = core2 * core2 * far;
          replaced = fmaf(v.charges[pair[a].x] * far, v.replaced_power > 2 ? two * two : two, replaced);
        }
    }
    if (core2 > float(v.core)) {
#pragma unroll
      for (unsigned a = 0; a < AHEAD; a++)
        norm[a] *= exp2f(-float(v.order + 3) * log2f(fmaf(core2, sqrtf(v.far_by_class[pair[a].y]), 1.0f)));
    }
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
  for (unsigned d = 16; d > 0; d /= 2) {
    rounded += __shfl_xor_sync(~0u, rounded, d);
    of_halves += __shfl_xor_sync(~0u, of_halves, d);
    replaced += __shfl_xor_sync(~0u, replaced, d);
  }
  const double lost = v.class_unit * sum[0] + v.of_rounding * rounded + v.of_halves * of_halves + v.replaced * replaced;
  if (lane % 4 == 0) v.octants[8 * size_t(cell) + lane / 4] = lost * power(v.root / half, 4);
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
  __shared__ float of_near[ERROR_THREADS / 8][8];
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
    const double unit = power(v.root * scale, 4);
    const double core2 = v.core2 * scale * scale;
    double lost = v.norms[source] * unit * fall(from[0], from[1], from[2], core2, p);
    const double r2 = from[0] * from[0] + from[1] * from[1] + from[2] * from[2];
    if (v.of_rounding > 0) lost += v.of_rounding * unit * v.strength_squares[source] / ((r2 + core2) * (r2 + core2));
    if (v.charges) lost += v.replaced * unit * v.charges[source] * power(core2 / r2, v.replaced_power) / (r2 * r2);
    return lost;
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
  if (v.sizes) {
    double rounded = 0;
    if (there)
      rounded = v.of_pairs * power(v.root / half, 4) * of_pairs(v, leaf, half, center, v.p2p.start[leaf], v.p2p.start[leaf + 1]);
    of_near[threadIdx.x / 8][o] = coefficient(rounded, v.least);
    __syncwarp();
  }
  if (!there) return;
  InDouble in_double;
  const double own = v.local * v.norms[v.sources.cells + size_t(leaf)] * power(v.root / half, 4);
  const double to_root = v.root * v.root, to_leaf = 1 / half;
  const float to_cube[3] = {float(1 / v.aspect[0]), float(1 / v.aspect[1]), float(1 / v.aspect[2])};
  const uint32_t begin = tree.bodies[2 * size_t(leaf)], end = tree.bodies[2 * size_t(leaf) + 1];
  for (uint32_t i = begin + o; i < end; i += 8) {
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
    const double sum[3] = {whole.x, whole.y, whole.z};
    double field = 0;
    for (unsigned d = 0; d < 3; d++) {
      const double e = (sum[d] + (v.uniform[d] + v.slope * (x[d] - v.middle[d]))) * to_root;
      field += e * e;
    }
    const double potential = whole.potential * v.root, terms = v.per_potential * potential * potential;
    squared += v.rounding * (field + terms * terms);
    if ((v.sizes || v.of_mixed > 0) && !in_double(v, leaf, end - begin, i - begin)) {
      squared += v.of_mixed * field;
      if (v.sizes) squared += interpolated(of_near[threadIdx.x / 8], at[0], at[1], at[2]);
    }
    if (squared > v.doubted * field) {
      const uint2 near = next_to(v, i, leaf);
      field = fmax(field, v.floor * largest_term(b, v.source_bodies, near.x, near.y, v.reach2) * (to_root * to_root));
    }
    // What no float holds counts as the largest.
    const float relative = float(squared > 0 ? fmin(squared / field, v.largest) : 0);
    reinterpret_cast<float2 *>(v.squares)[i] = make_float2(relative, float(fmin(squared, 1e38)));
  }
}
}
