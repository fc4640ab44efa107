// Builds the pyramid of fmm-core's `planar/pyramid.rs`, array by array. The points are sorted along
// both axes once; each list then holds, for every point in its order, the places in both. The
// median of an axis is the middle of its list. The other list is halved by a stable partition by
// places, which are integers. Compiled without fused multiply-add.
#include "planar/planar.cuh"
#include "common/scan.cuh"

constexpr unsigned VALUES = 256, PLANE_WARPS = PLANE_THREADS / 32;
constexpr uint32_t AXIS = uint32_t(1) << 31;
// A radius below this part of the parent's counts as this part.
constexpr double SMALLEST = 1.0 / (1 << 30);

// Keys in the order of numbers; -0 is 0.
__device__ inline uint64_t key_of(double x) {
  const uint64_t bits = x == 0 ? 0 : uint64_t(__double_as_longlong(x));
  return bits >> 63 ? ~bits : bits | uint64_t(1) << 63;
}
__device__ inline double value_of_key(uint64_t key) {
  return __longlong_as_double((long long)(key >> 63 ? key & ~(uint64_t(1) << 63) : ~key));
}

// Counts a digit. Neighbours often have the same, for which one lane counts.
__device__ inline void count_digit(uint32_t *count, unsigned digit) {
  const unsigned here = __activemask();
  const unsigned leader = __ffs(here) - 1;
  if (__all_sync(here, digit == __shfl_sync(here, digit, leader))) {
    if (threadIdx.x % 32 == leader) atomicAdd(&count[digit], __popc(here));
  } else {
    atomicAdd(&count[digit], 1u);
  }
}

extern "C" {
// The keys of both axes, and how many there are of each value of each digit.
__global__ void __launch_bounds__(PLANE_THREADS) planar_keys(PyramidView v) {
  __shared__ uint32_t count[2][KEY_DIGITS][VALUES];
  for (unsigned i = threadIdx.x; i < 2 * KEY_DIGITS * VALUES; i += PLANE_THREADS) (&count[0][0][0])[i] = 0;
  __syncthreads();
  const double2 *position = reinterpret_cast<const double2 *>(v.position);
  for (size_t i = size_t(blockIdx.x) * PLANE_THREADS + threadIdx.x; i < v.n; i += size_t(gridDim.x) * PLANE_THREADS) {
    const double2 x = position[i];
    const uint64_t keys[2] = {key_of(x.x * v.scale), key_of(x.y * v.scale)};
    for (unsigned axis = 0; axis < 2; axis++) {
      v.key[axis][i] = keys[axis];
      for (unsigned d = 0; d < KEY_DIGITS; d++) count_digit(count[axis][d], unsigned(keys[axis] >> (8 * d)) & (VALUES - 1));
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 2 * KEY_DIGITS * VALUES; i += PLANE_THREADS) {
    const uint32_t here = (&count[0][0][0])[i];
    if (here) atomicAdd(&v.bins[i], here);
  }
}

// The place of each point along an axis, and neighbours there with the same coordinate.
__global__ void __launch_bounds__(PLANE_THREADS) planar_ranks(PyramidView v) {
  const size_t i = size_t(blockIdx.x) * PLANE_THREADS + threadIdx.x;
  const unsigned axis = blockIdx.y;
  bool tie = false;
  if (i < v.n) {
    v.rank[axis][v.index[axis][i]] = i;
    tie = i > 0 && v.key[axis][i] == v.key[axis][i - 1];
  }
  const unsigned ties = __popc(__ballot_sync(ALL, tie));
  if (ties && threadIdx.x % 32 == 0) atomicAdd(reinterpret_cast<unsigned long long *>(&v.ties[axis]), ties);
}

// The lists of the root.
__global__ void __launch_bounds__(PLANE_THREADS) planar_lists(PyramidView v) {
  const size_t i = size_t(blockIdx.x) * PLANE_THREADS + threadIdx.x;
  if (i >= v.n) return;
  const unsigned axis = blockIdx.y;
  const uint32_t other = v.rank[1 - axis][v.index[axis][i]];
  reinterpret_cast<uint2 *>(v.list[axis])[i] = axis == 0 ? make_uint2(i, other) : make_uint2(other, i);
}

// Bounds, axis and median of the parts at one depth; at even depths they are boxes.
__global__ void __launch_bounds__(PLANE_THREADS) planar_boxes(PyramidView v) {
  const uint32_t i = blockIdx.x * PLANE_THREADS + threadIdx.x;
  if (i >= uint32_t(1) << v.depth) return;
  const Segment s = part_of(v.n, v.depth, i);
  double low[2] = {0, 0}, high[2] = {0, 0};
  if (s.count > 0) {
    for (unsigned d = 0; d < 2; d++) {
      low[d] = value_of_key(v.key[d][v.list[d][2 * size_t(s.start) + d]]);
      high[d] = value_of_key(v.key[d][v.list[d][2 * (size_t(s.start) + s.count - 1) + d]]);
    }
    const unsigned axis = high[0] - low[0] >= high[1] - low[1] ? 0 : 1;
    v.pivot[i] = v.list[axis][2 * (size_t(s.start) + s.count / 2) + axis] | (axis ? AXIS : 0);
  }
  if (v.depth % 2) return;
  const uint32_t box = first_of(v.depth / 2) + i;
  v.points[2 * size_t(box)] = s.start;
  v.points[2 * size_t(box) + 1] = s.start + s.count;
  double center[2] = {0, 0}, radius = 0;
  if (s.count > 0) {
    for (unsigned d = 0; d < 2; d++) center[d] = 0.5 * low[d] + 0.5 * high[d];
    // In units in which squares stay in the range of numbers.
    const double unit = power_of_two(exponent_above(fmax(high[0] - low[0], high[1] - low[1])));
    const double half[2] = {(0.5 * high[0] - 0.5 * low[0]) / unit, (0.5 * high[1] - 0.5 * low[1]) / unit};
    radius = sqrt(half[0] * half[0] + half[1] * half[1]) * unit;
  }
  if (box > 0) radius = fmax(radius, SMALLEST * v.radius[(box - 1) / 4]);
  else if (radius == 0) radius = 1;
  v.center[2 * size_t(box)] = center[0];
  v.center[2 * size_t(box) + 1] = center[1];
  v.radius[box] = radius;
  v.exponent[box] = exponent_above(radius);
}

// Both lists with every part of one depth halved, each half in the order that it had. The list of the axis is halved where it
// stands. In the other, the places of points are counted by what is left to move: points of the first half so far, less the places that
// belong to it, which is zero at the end of every part.
__global__ void __launch_bounds__(PLANE_THREADS) planar_split(PyramidView v) {
  __shared__ int32_t warp_sum[PLANE_WARPS];
  __shared__ int64_t tile_sum;
  const unsigned own = blockIdx.y, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned tile = next_tile(v.ticket + own);
  const uint32_t begin = tile * SPLIT_TILE, held = min(SPLIT_TILE, v.n - begin), end = begin + held;
  // The smallest part that holds the whole tile.
  Segment whole = {0, v.n};
  uint32_t whole_index = 0;
  unsigned whole_depth = 0;
  while (whole_depth < v.depth) {
    const uint32_t left = whole.count / 2;
    const bool second = begin - whole.start >= left;
    if (!second && end - 1 - whole.start >= left) break;
    whole = half_of(whole, second);
    whole_index = 2 * whole_index + second;
    whole_depth++;
  }
  const uint2 *from = reinterpret_cast<const uint2 *>(v.list[own]);
  uint2 entry[SPLIT_ITEMS];
  uint32_t first[SPLIT_ITEMS];  // place where its half begins, less its number there but for the sum of what comes before
  uint32_t second_half = 0;
  int32_t before[SPLIT_ITEMS], sum = 0;
  const uint32_t mine = begin + warp * 32 * SPLIT_ITEMS + lane;
  for (unsigned k = 0; k < SPLIT_ITEMS; k++) {
    const uint32_t p = mine + 32 * k;
    bool side = false, early = false;
    if (p < end) {
      entry[k] = from[p];
      Segment s = whole;
      uint32_t index = whole_index;
      descend(s, index, whole_depth, v.depth, p);
      const uint32_t pivot = v.pivot[index], left = s.count / 2, number = p - s.start;
      const unsigned axis = pivot / AXIS;
      early = number < left;
      side = axis == own ? early : (axis ? entry[k].y : entry[k].x) < (pivot & ~AXIS);
      // Points of the first half before this one: the sum so far, and this.
      const uint32_t rest = min(number, left);
      first[k] = side ? s.start + rest : s.start + left + number - rest;
      second_half |= uint32_t(!side) << k;
    }
    const unsigned sides = __ballot_sync(ALL, side), earlies = __ballot_sync(ALL, early);
    const unsigned lower = (1u << lane) - 1;
    before[k] = sum + __popc(sides & lower) - __popc(earlies & lower);
    sum += __popc(sides) - __popc(earlies);
  }
  if (lane == 0) warp_sum[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    int32_t all = 0;
    for (unsigned w = 0; w < PLANE_WARPS; w++) all += warp_sum[w];
    // Never negative with one more for each point.
    const uint64_t earlier = before_tile(v.status + size_t(own) * v.tiles, v.epoch, tile, uint64_t(int64_t(held) + all));
    if (lane == 0) tile_sum = int64_t(earlier) - int64_t(begin);
  }
  __syncthreads();
  int64_t base = tile_sum;
  for (unsigned w = 0; w < warp; w++) base += warp_sum[w];
  uint2 *to = reinterpret_cast<uint2 *>(v.list_out[own]);
  for (unsigned k = 0; k < SPLIT_ITEMS; k++) {
    if (mine + 32 * k >= end) break;
    const int64_t moved = base + before[k];
    to[size_t(int64_t(first[k]) + (second_half >> k & 1 ? -moved : moved))] = entry[k];
  }
}

// The leaf of each point, by index, to be sorted by.
__global__ void __launch_bounds__(PLANE_THREADS) planar_leaves(PyramidView v) {
  __shared__ uint32_t count[4][VALUES];
  for (unsigned i = threadIdx.x; i < 4 * VALUES; i += PLANE_THREADS) (&count[0][0])[i] = 0;
  __syncthreads();
  for (size_t p = size_t(blockIdx.x) * PLANE_THREADS + threadIdx.x; p < v.n; p += size_t(gridDim.x) * PLANE_THREADS) {
    Segment s = {0, v.n};
    uint32_t leaf = 0;
    descend(s, leaf, 0, v.depth, p);
    v.leaf[v.index[0][v.list[0][2 * p]]] = leaf;
    for (unsigned d = 0; d < v.digits; d++) count_digit(count[d], leaf >> (8 * d) & (VALUES - 1));
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < v.digits * VALUES; i += PLANE_THREADS) {
    const uint32_t here = (&count[0][0])[i];
    if (here) atomicAdd(&v.bins[i], here);
  }
}

// Points into the order of a pyramid, in its unit.
__global__ void __launch_bounds__(PLANE_THREADS) planar_gather(ExchangeView v) {
  const size_t i = size_t(blockIdx.x) * PLANE_THREADS + threadIdx.x;
  if (i >= v.n) return;
  const size_t from = v.order ? v.order[i] : i;
  const double2 x = reinterpret_cast<const double2 *>(v.position)[from];
  PlanePoint to = {x.x * v.scale, x.y * v.scale, 0, 0};
  if (v.real) to.q = v.real[from] * v.strength;
  if (v.imaginary) to.qi = v.imaginary[from] * v.strength;
  v.points[i] = to;
}

// Sums back into the caller's order and units.
__global__ void __launch_bounds__(PLANE_THREADS) planar_return(ExchangeView v) {
  const size_t i = size_t(blockIdx.x) * PLANE_THREADS + threadIdx.x;
  if (i >= v.n) return;
  const size_t to = v.order ? v.order[i] : i;
  const double2 g = reinterpret_cast<const double2 *>(v.g)[i];
  double *field = v.field_out + v.width * to;
  const double2 e = make_double2(g.x * v.sign[0], g.y * v.sign[1]);
  if (v.width == 2) {
    *reinterpret_cast<double2 *>(field) = e;
  } else {
    field[0] = e.x;
    field[1] = e.y;
    field[2] = 0;
  }
  if (v.potential_out) v.potential_out[to] = v.potential[i] * v.strength;
}
}
