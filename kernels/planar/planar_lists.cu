// Who meets whom: the rows of fmm-core's `planar/connect.rs`, in the same order. A warp has a target and looks at its candidates twice: to count
// them, and to write them where they belong. Compiled without fused multiply-add, so that every decision is the CPU's.
#include "planar/planar.cuh"
#include "common/scan.cuh"

// The least part of their distance that separated boxes leave between them.
constexpr double SMALLEST_GAP = 1.0 / (uint64_t(1) << 40);

// R + theta r <= theta d, no blob felt, and more than rounding between the boxes.
__device__ inline bool apart(const ConnectView &v, double large, double small, double d) {
  const double gap = d - large - small;
  return large + v.theta * small <= v.theta * d && gap >= v.min_distance && gap >= SMALLEST_GAP * d;
}

__device__ inline uint32_t count_of(const BoxesView &t, uint32_t box) {
  return t.points[2 * size_t(box) + 1] - t.points[2 * size_t(box)];
}

// The candidates of one target.
struct Candidates {
  const ConnectView &v;
  uint32_t box;
  uint64_t row, count;
  double x, y, radius;

  __device__ Candidates(const ConnectView &v, uint32_t local, bool leaves) : v(v), box(v.first + local) {
    const uint32_t place = leaves ? local : (box - 1) / 4 - v.parents;
    row = v.near_start[place];
    const uint64_t end = min(v.near_start[place + 1], v.near_capacity);
    count = end > row ? end - row : 0;
    if (!leaves) count = count_of(v.targets, box) > 0 ? 4 * count : 0;
    x = v.targets.center[2 * size_t(box)];
    y = v.targets.center[2 * size_t(box) + 1];
    radius = v.targets.radius[box];
  }

  __device__ double distance(uint32_t c) const {
    const double dx = x - v.sources.center[2 * size_t(c)], dy = y - v.sources.center[2 * size_t(c) + 1];
    return sqrt(dx * dx + dy * dy);
  }

  // Child j of the parents' strong boxes: 0 weak, 1 strong, -1 empty.
  __device__ int kind(uint64_t j, uint32_t &c) const {
    c = 4 * v.near[row + j / 4] + 1 + uint32_t(j % 4);
    if (count_of(v.sources, c) == 0) return -1;
    const double other = v.sources.radius[c];
    return apart(v, fmax(radius, other), fmin(radius, other), distance(c)) ? 0 : 1;
  }

  // Strong pair j of leaves: 0 M2P, 1 P2L, 2 P2P.
  __device__ int swapped(uint64_t j, uint32_t &c) const {
    c = v.near[row + j];
    const double other = v.sources.radius[c];
    if (!apart(v, fmin(radius, other), fmax(radius, other), distance(c))) return 2;
    // The multipole of a small source box at the points of a large target box.
    if (radius > other) return count_of(v.sources, c) >= v.swap_min_points ? 0 : 2;
    return count_of(v.targets, box) >= v.swap_min_points ? 1 : 2;
  }
};

template <int LISTS, bool LEAVES> __device__ void connect(const ConnectView &v) {
  __shared__ uint32_t counts[LISTS][PLANE_ROWS];
  __shared__ uint64_t starts[LISTS][PLANE_ROWS];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned tile = next_tile(v.ticket);
  const uint32_t local = tile * PLANE_ROWS + warp;
  const bool there = local < v.cells;
  const Candidates all(v, there ? local : 0, LEAVES);
  const uint64_t count = there ? all.count : 0;
  uint32_t found[LISTS] = {};
  for (uint64_t base = 0; base < count; base += 32) {
    uint32_t c = 0;
    int kind = -1;
    if (base + lane < count) kind = LEAVES ? all.swapped(base + lane, c) : all.kind(base + lane, c);
    for (int k = 0; k < LISTS; k++) found[k] += __popc(__ballot_sync(ALL, kind == k));
  }
  if (lane == 0)
    for (int k = 0; k < LISTS; k++) counts[k][warp] = found[k];
  __syncthreads();
  if (warp < LISTS) {
    const uint32_t own = lane < PLANE_ROWS ? counts[warp][lane] : 0;
    const uint32_t earlier = warp_exclusive(own);
    const uint32_t total = __shfl_sync(ALL, earlier + own, 31);
    uint64_t base = before_tile(v.status + size_t(warp) * v.tiles, v.epoch, tile, total);
    if (v.before[warp]) base += *v.before[warp];
    if (lane < PLANE_ROWS) starts[warp][lane] = base + earlier;
    if (lane == 0 && tile == v.tiles - 1) {
      *v.found[warp] = base + total;
      v.start[warp][v.cells] = base + total;
    }
  }
  __syncthreads();
  if (!there) return;
  uint64_t at[LISTS];
  for (int k = 0; k < LISTS; k++) {
    at[k] = starts[k][warp];
    if (lane == 0) v.start[k][local] = at[k];
  }
  for (uint64_t base = 0; base < count; base += 32) {
    uint32_t c = 0;
    int kind = -1;
    if (base + lane < count) kind = LEAVES ? all.swapped(base + lane, c) : all.kind(base + lane, c);
    for (int k = 0; k < LISTS; k++) {
      const unsigned same = __ballot_sync(ALL, kind == k);
      const uint64_t to = at[k] + __popc(same & ((1u << lane) - 1));
      if (kind == k && to < v.capacity[k]) v.source[k][to] = c;
      at[k] += __popc(same);
    }
  }
}

extern "C" {
__global__ void __launch_bounds__(PLANE_THREADS) planar_connect(ConnectView v) { connect<2, false>(v); }
__global__ void __launch_bounds__(PLANE_THREADS) planar_swap(ConnectView v) { connect<3, true>(v); }
}
