// Interaction lists: the traversal of fmm-core's `lists/traverse.rs`, with the same pairs in the same order. Every target is
// walked twice: to count its pairs, which gives each its place, and to write them. Compiled without fused multiply-add, so that
// every decision is the CPU's.
#include "geometry.cuh"
#include "scan.cuh"

enum { M2L, M2P, P2L, P2P, NEAR };

__device__ inline bool is_leaf(const Cells &t, uint32_t c) { return t.children[2 * c] == t.children[2 * c + 1]; }
__device__ inline uint64_t bodies_of(const Cells &t, uint32_t c) { return t.bodies[2 * c + 1] - t.bodies[2 * c]; }
__device__ inline double half_of(const Cells &t, unsigned level) { return ldexp(t.side, -int(level) - 1); }

// Counts what is found.
struct Count {
  uint32_t found[COUNTS] = {};
  __device__ void pair(int list, uint32_t, uint32_t) { found[list]++; }
  __device__ void near(uint32_t, const int *, bool) { found[NEAR]++; }
};

// Writes what is found, as far as there is room.
struct Write {
  const ListsView &v;
  uint64_t at[COUNTS];
  __device__ explicit Write(const ListsView &v) : v(v) {}
  __device__ void pair(int list, uint32_t source, uint32_t cls) {
    if (at[list] < v.capacity[list]) v.pairs[list][at[list]] = {source, cls};
    at[list]++;
  }
  __device__ void near(uint32_t source, const int *o, bool direct) {
    if (at[NEAR] < v.capacity[NEAR]) v.near_out[at[NEAR]] = {source, {int16_t(o[0]), int16_t(o[1]), int16_t(o[2])}, direct};
    at[NEAR]++;
  }
};

// A target cell.
struct Target {
  uint32_t cell;
  bool leaf;
  unsigned octant;
  uint64_t count;
  double half;
  __device__ Target(const ListsView &v, uint32_t cell, unsigned level)
      : cell(cell), leaf(is_leaf(v.targets, cell)), octant(v.targets.octant[cell]), count(bodies_of(v.targets, cell)),
        half(half_of(v.targets, level)) {}
};

// The squared distance from x to the cube about a centre.
__device__ inline double distance2(const double *x, const double *centre, double half) {
  double r2 = 0;
  for (int d = 0; d < 3; d++) {
    const double gap = fmax(fabs(x[d] - centre[d]) - half, 0.0);
    r2 += gap * gap;
  }
  return r2;
}

// Whether an expansion about the centre of a cell holds at the squared distance r2.
__device__ inline bool apart(const ListsView &v, double r2, double half) {
  const double reach = v.min_distance + half * sqrt(3.0);
  return r2 >= v.point_separation2 * (half * half) && (v.min_distance == 0.0 || r2 >= reach * reach);
}

__device__ inline bool separated(const ListsView &v, const Target &t, const int *offset) {
  int d2 = 0, gap2 = 0;
  for (int d = 0; d < 3; d++) {
    const int gap = max(abs(offset[d]) - 1, 0);
    d2 += offset[d] * offset[d];
    gap2 += gap * gap;
  }
  const double side = 2.0 * t.half;
  return double(d2) >= v.separation2 && double(gap2) * (side * side) >= v.min_distance * v.min_distance;
}

// Down from source `s` for a target leaf. Children are consecutive and know their parent, so that no stack is needed.
template <class Found> __device__ void walk(const ListsView &v, const Target &t, uint32_t s, Found &found) {
  const Cells &from = v.sources;
  const double *centre = v.targets.centre + 3 * size_t(t.cell);
  for (uint32_t c = s;;) {
    bool down = false;
    if (bodies_of(from, c) < v.m2p_min_bodies) {
      found.pair(P2P, c, 0);
    } else if (apart(v, distance2(from.centre + 3 * size_t(c), centre, t.half), half_of(from, from.level[c]))) {
      found.pair(M2P, c, 0);
    } else if (is_leaf(from, c)) {
      found.pair(P2P, c, 0);
    } else {
      down = true;
    }
    if (down) {
      c = from.children[2 * c];
      continue;
    }
    while (c != s && c + 1 == from.children[2 * from.parent[c] + 1]) c = from.parent[c];
    if (c == s) return;
    c++;
  }
}

// All bodies of `s` at all leaves below the target.
template <class Found> __device__ void directly(const Target &t, uint32_t s, Found &found) {
  const int none[3] = {0, 0, 0};
  if (t.leaf)
    found.pair(P2P, s, 0);
  else
    found.near(s, none, true);
}

template <class Found>
__device__ void same_level(const ListsView &v, const Target &t, uint32_t s, const int *offset, Found &found) {
  const bool leaf = is_leaf(v.sources, s);
  const bool few = t.leaf && leaf && t.count * bodies_of(v.sources, s) <= v.m2l_min_pairs;
  if (!few && separated(v, t, offset)) {
    const int width = 2 * v.radius + 1;
    const int cls = ((offset[2] + v.radius) * width + offset[1] + v.radius) * width + offset[0] + v.radius;
    found.pair(M2L, s, uint32_t(cls));
  } else if (t.leaf && leaf) {
    found.pair(P2P, s, 0);
  } else if (t.leaf) {
    walk(v, t, s, found);
  } else if (2 * abs(offset[0]) < v.radius && 2 * abs(offset[1]) < v.radius && 2 * abs(offset[2]) < v.radius) {
    found.near(s, offset, false);
  } else {
    // Far enough but for the softening, which smaller cells would only come closer to.
    directly(t, s, found);
  }
}

// A source leaf above the level of the target.
template <class Found> __device__ void coarse_source(const ListsView &v, const Target &t, uint32_t s, Found &found) {
  const int none[3] = {0, 0, 0};
  bool far = false;
  if (t.count >= v.p2l_min_bodies) {
    const double half = half_of(v.sources, v.sources.level[s]);
    const double r2 = distance2(v.targets.centre + 3 * size_t(t.cell), v.sources.centre + 3 * size_t(s), half);
    far = apart(v, r2, t.half);
  }
  if (far)
    found.pair(P2L, s, 0);
  else if (t.leaf)
    found.pair(P2P, s, 0);
  else
    found.near(s, none, false);
}

// Decides what the target's parent left open.
template <class Found> __device__ void inherit(const ListsView &v, const Target &t, const Near &n, Found &found) {
  const uint32_t s = n.source;
  if (n.direct) return directly(t, s, found);
  if (is_leaf(v.sources, s)) return coarse_source(v, t, s, found);
  const uint32_t end = v.sources.children[2 * s + 1];
  for (uint32_t c = v.sources.children[2 * s]; c < end; c++) {
    const unsigned octant = v.sources.octant[c];
    int offset[3];
    for (int d = 0; d < 3; d++) offset[d] = 2 * n.offset[d] + int(octant >> d & 1) - int(t.octant >> d & 1);
    same_level(v, t, c, offset, found);
  }
}

// The part of this lane in round `r` of a target: one of the cells that its parent left open, or the root.
template <class Found> __device__ void part(const ListsView &v, const Target &t, uint64_t at, uint64_t end, Found &found) {
  if (at >= end) return;
  if (v.depth == 0) {
    const int none[3] = {0, 0, 0};
    same_level(v, t, 0, none, found);
  } else {
    inherit(v, t, v.near[at], found);
  }
}

// What the parent of a target left open.
__device__ inline void open_range(const ListsView &v, uint32_t cell, uint64_t &begin, uint64_t &end) {
  if (v.depth == 0) {
    begin = 0;
    end = 1;
  } else {
    const uint32_t parent = v.targets.parent[cell] - v.parents;
    begin = v.near_start[parent];
    end = v.near_start[parent + 1];
  }
}

// From the counts of the block's rows to their first places. Warp k does list k.
__device__ inline void place_rows(const ListsView &v, uint32_t tile, uint32_t tiles, uint32_t rows, uint32_t (*count)[TARGETS],
                                  uint64_t (*begin)[TARGETS]) {
  const unsigned lane = threadIdx.x % 32, k = threadIdx.x / 32;
  if (k >= COUNTS) return;
  const uint32_t own = count[k][lane];
  uint64_t upto = own;
  for (unsigned d = 1; d < 32; d *= 2) {
    const uint64_t other = __shfl_up_sync(ALL, upto, d);
    if (lane >= d) upto += other;
  }
  const uint64_t sum = __shfl_sync(ALL, upto, 31);
  const uint64_t above = k < LISTS ? v.total[v.depth * COUNTS + k] : 0;
  const uint64_t base = above + before_tile(v.status + size_t(k) * tiles, v.epoch, tile, sum);
  begin[k][lane] = base + upto - own;
  if (lane < rows) {
    const uint32_t row = tile * TARGETS + lane;
    uint64_t *start = k < LISTS ? v.start[k] + v.first : v.near_out_start;
    start[row] = base + upto - own;
    // The last row of a level ends where the next level begins, which has it from `total`.
    if (row + 1 == v.cells) {
      if (k == NEAR || v.first + v.cells == v.last) start[row + 1] = base + upto;
      v.total[(v.depth + 1) * COUNTS + k] = base + upto;
    }
  }
}

extern "C" {
// One level of a fast multipole method: a warp a target, a lane for each cell that the target's parent left open.
__global__ void __launch_bounds__(THREADS) lists_fmm(ListsView v) {
  __shared__ uint32_t count[COUNTS][TARGETS];
  __shared__ uint64_t begin[COUNTS][TARGETS];
  constexpr unsigned WARPS = THREADS / 32;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t tile = next_tile(v.ticket + v.depth);
  // The level above left more than there is room for: the host tries again.
  const uint64_t left = v.total[v.depth * COUNTS + NEAR];
  if (left > v.capacity[NEAR]) {
    if (tile == 0 && threadIdx.x < COUNTS) v.total[(v.depth + 1) * COUNTS + threadIdx.x] = v.total[v.depth * COUNTS + threadIdx.x];
    return;
  }
  const uint32_t rows = min(TARGETS, v.cells - tile * TARGETS);
  for (uint32_t row = warp; row < TARGETS; row += WARPS) {
    Count mine;
    if (row < rows) {
      const Target t(v, v.first + tile * TARGETS + row, v.depth);
      uint64_t from, end;
      open_range(v, t.cell, from, end);
      for (; from < end; from += 32) part(v, t, from + lane, end, mine);
    }
    for (unsigned k = 0; k < COUNTS; k++) {
      const uint32_t sum = __reduce_add_sync(ALL, mine.found[k]);
      if (lane == 0) count[k][row] = sum;
    }
  }
  __syncthreads();
  place_rows(v, tile, gridDim.x, rows, count, begin);
  __syncthreads();
  for (uint32_t row = warp; row < rows; row += WARPS) {
    const Target t(v, v.first + tile * TARGETS + row, v.depth);
    uint64_t from, end;
    open_range(v, t.cell, from, end);
    uint64_t at[COUNTS];
    for (unsigned k = 0; k < COUNTS; k++) at[k] = begin[k][row];
    for (; from < end; from += 32) {
      Count mine;
      part(v, t, from + lane, end, mine);
      Write out(v);
      for (unsigned k = 0; k < COUNTS; k++) {
        const uint32_t before = warp_exclusive(mine.found[k]);
        out.at[k] = at[k] + before;
        at[k] += __shfl_sync(ALL, before + mine.found[k], 31);
      }
      part(v, t, from + lane, end, out);
    }
  }
}

// A treecode: every leaf of the targets walks the sources from their root; a thread a target, a block TARGETS of them. Level
// and near cells mean nothing here: all cells are one launch.
__global__ void __launch_bounds__(THREADS) lists_walk(ListsView v) {
  __shared__ uint32_t count[COUNTS][TARGETS];
  __shared__ uint64_t begin[COUNTS][TARGETS];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t tile = next_tile(v.ticket);
  const uint32_t rows = min(TARGETS, v.cells - tile * TARGETS);
  const uint32_t cell = tile * TARGETS + lane;
  const bool walks = warp == 0 && lane < rows && is_leaf(v.targets, cell);
  if (warp == 0) {
    Count mine;
    if (walks) walk(v, Target(v, cell, v.targets.level[cell]), 0, mine);
    for (unsigned k = 0; k < COUNTS; k++) count[k][lane] = mine.found[k];
  }
  __syncthreads();
  place_rows(v, tile, gridDim.x, rows, count, begin);
  __syncthreads();
  if (walks) {
    Write out(v);
    for (unsigned k = 0; k < COUNTS; k++) out.at[k] = begin[k][lane];
    walk(v, Target(v, cell, v.targets.level[cell]), 0, out);
  }
}
}
