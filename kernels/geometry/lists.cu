// Interaction lists: the traversal of fmm-core's `lists/traverse.rs`, with the same pairs in the same order. Every target is
// walked twice: to count its pairs, which gives each its place, and to write them. Compiled without fused multiply-add, so that
// every decision is the CPU's.
#include "arguments/geometry.cuh"
#include "common/image.cuh"
#include "common/scan.cuh"

enum { M2L, M2P, P2L, P2P, NEAR, WALK, NOTHING };

__device__ inline bool is_leaf(const CellsView &t, uint32_t c) { return t.children[2 * c] == t.children[2 * c + 1]; }
__device__ inline uint64_t bodies_of(const CellsView &t, uint32_t c) { return t.bodies[2 * c + 1] - t.bodies[2 * c]; }
// Whether the rows of a target cell are made here: other rows are empty. A tree without bodies has
// the row of its one cell where targets are not shared.
__device__ inline bool in_share(const CellsView &t, uint32_t c) {
  const uint32_t begin = t.bodies[2 * c], end = t.bodies[2 * c + 1];
  return begin < t.share[1] && max(end, begin + 1) > t.share[0];
}
__device__ inline double half_of(const CellsView &t, unsigned level) { return ldexp(t.side, -int(level) - 1); }

// What one candidate source comes to: a pair of a list, a cell left to the next level, nothing, or a walk that may find many.
// `cls` is the class of an offset, or the image that the source is.
struct Found {
  int list;
  uint32_t source, cls;
  int offset[3];
  bool direct;
};

__device__ inline Found nothing() { return {NOTHING, 0, 0, {0, 0, 0}, false}; }
__device__ inline Found pair(int list, uint32_t source, uint32_t cls) { return {list, source, cls, {0, 0, 0}, false}; }
__device__ inline Found open(uint32_t source, uint32_t image, bool direct) { return {NEAR, source, image, {0, 0, 0}, direct}; }

// Counts what a walk finds.
struct Count {
  uint32_t found[COUNTS] = {};
  __device__ void add(int list, uint32_t, uint32_t) { found[list]++; }
};

// Writes what a walk finds.
struct Write {
  const ListsView &v;
  uint64_t at[COUNTS];
  __device__ explicit Write(const ListsView &v) : v(v) {}
  __device__ void add(int list, uint32_t source, uint32_t image) {
    if (at[list] < v.capacity[list]) v.pairs[list][at[list]] = {source, image};
    at[list]++;
  }
};

// Writes one finding to its place, if there is room.
__device__ inline void put(const ListsView &v, const Found &f, uint64_t at) {
  if (at >= v.capacity[f.list]) return;
  if (f.list == NEAR)
    v.near_out[at] = {f.source, f.cls, {int16_t(f.offset[0]), int16_t(f.offset[1]), int16_t(f.offset[2])}, f.direct};
  else
    v.pairs[f.list][at] = {f.source, f.cls};
}

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

// The squared distance from x to the cell about a center whose longest side is twice `half`.
__device__ inline double distance2(const ListsView &v, const double *x, const double *center, double half) {
  double r2 = 0;
  for (int d = 0; d < 3; d++) {
    const double gap = fmax(fabs(x[d] - center[d]) - half * v.aspect[d], 0.0);
    r2 += gap * gap;
  }
  return r2;
}

// A center as an image sees it: what is relative to it there is relative to the center here.
__device__ inline void seen_from(const ListsView &v, uint32_t image, const double *center, double *seen) {
  shift_of(image, v.sides, seen);
  for (int d = 0; d < 3; d++) seen[d] = center[d] - seen[d];
}

// Whether an expansion about the center of a cell holds at the squared distance r2.
__device__ inline bool apart(const ListsView &v, double r2, double half) {
  const double reach = v.min_distance + half * v.diagonal;
  return r2 >= v.point_separation2 * (half * half) && (v.min_distance == 0.0 || r2 >= reach * reach);
}

// The same of cells that are no cubes.
__device__ inline bool separated_boxes(const ListsView &v, const Target &t, const int *offset) {
  double d2 = 0, gap2 = 0;
  for (int d = 0; d < 3; d++) {
    const double along = double(offset[d]) * v.aspect[d], gap = double(max(abs(offset[d]) - 1, 0)) * v.aspect[d];
    d2 += along * along;
    gap2 += gap * gap;
  }
  if (d2 < v.separation) return false;
  const double side = 2.0 * t.half;
  return v.min_distance == 0.0 || gap2 * (side * side) >= v.min_distance * v.min_distance;
}

// `separation2` is rounded up to a whole number, which compares alike with the whole number d2.
__device__ inline bool separated(const ListsView &v, const Target &t, const int *offset) {
  if (v.separation2 == 0) return separated_boxes(v, t, offset);
  int d2 = 0, gap2 = 0;
  for (int d = 0; d < 3; d++) {
    const int gap = max(abs(offset[d]) - 1, 0);
    d2 += offset[d] * offset[d];
    gap2 += gap * gap;
  }
  if (d2 < v.separation2) return false;
  const double side = 2.0 * t.half;
  return v.min_distance == 0.0 || double(gap2) * (side * side) >= v.min_distance * v.min_distance;
}

// Down from this image of source `s` for a target leaf, in the order of a recursion: `skip` leads past the cells below one.
template <class Finds> __device__ void walk(const ListsView &v, const Target &t, uint32_t s, uint32_t image, Finds &found) {
  const CellsView &from = v.sources;
  double center[3];
  seen_from(v, image, v.targets.center + 3 * size_t(t.cell), center);
  const uint32_t end = from.skip[s];
  for (uint32_t c = s; c != end;) {
    // Everything that may be needed, asked for at once: the time is that of waiting for memory.
    const uint32_t begin = from.bodies[2 * c], after = from.bodies[2 * c + 1];
    const uint32_t child = from.children[2 * c], last = from.children[2 * c + 1], skip = from.skip[c];
    const double half = half_of(from, from.level[c]);
    const double x[3] = {from.center[3 * size_t(c)], from.center[3 * size_t(c) + 1], from.center[3 * size_t(c) + 2]};
    const bool few = after - begin < v.m2p_min_bodies;
    if (!few && apart(v, distance2(v, x, center, t.half), half)) {
      found.add(M2P, c, image);
    } else if (few || child == last) {
      found.add(P2P, c, image);
    } else {
      c = child;
      continue;
    }
    c = skip;
  }
}

// The same from the root of every image.
template <class Finds> __device__ void walk_images(const ListsView &v, const Target &t, Finds &found) {
  for (uint32_t i = 0; i < v.image_count; i++) walk(v, t, 0, v.images[i].cls, found);
}

// All bodies of `s` at all leaves below the target.
__device__ inline Found directly(const Target &t, uint32_t s, uint32_t image) {
  return t.leaf ? pair(P2P, s, image) : open(s, image, true);
}

__device__ inline Found same_level(const ListsView &v, const Target &t, uint32_t s, const int *offset, uint32_t image) {
  const bool leaf = t.leaf && is_leaf(v.sources, s);
  const bool few = leaf && t.count * bodies_of(v.sources, s) <= v.m2l_min_pairs;
  if (!few && separated(v, t, offset)) {
    const int *radius = v.radius;
    const int row = (offset[2] + radius[2]) * (2 * radius[1] + 1) + offset[1] + radius[1];
    return pair(M2L, s, uint32_t(row * (2 * radius[0] + 1) + offset[0] + radius[0]));
  }
  if (leaf) return pair(P2P, s, image);
  if (t.leaf) return pair(WALK, s, image);
  if (2 * abs(offset[0]) < v.radius[0] && 2 * abs(offset[1]) < v.radius[1] && 2 * abs(offset[2]) < v.radius[2])
    return {NEAR, s, image, {offset[0], offset[1], offset[2]}, false};
  // Far enough but for the softening, which smaller cells would only come closer to.
  return directly(t, s, image);
}

// A source leaf above the level of the target.
__device__ inline Found coarse_source(const ListsView &v, const Target &t, uint32_t s, uint32_t image) {
  if (t.count >= v.p2l_min_bodies) {
    const double half = half_of(v.sources, v.sources.level[s]);
    double center[3];
    seen_from(v, image, v.targets.center + 3 * size_t(t.cell), center);
    const double r2 = distance2(v, center, v.sources.center + 3 * size_t(s), half);
    if (apart(v, r2, t.half)) return pair(P2L, s, image);
  }
  return t.leaf ? pair(P2P, s, image) : open(s, image, false);
}

// What the cell `at` of those that the target's parent left open comes to: lane `o` of eight has its child o, and the first of
// them the cell itself where its children do not matter.
__device__ inline Found inherit(const ListsView &v, const Target &t, uint64_t at, uint64_t end, unsigned o) {
  if (at >= end) return nothing();
  if (v.depth == v.base) {
    const Image image = v.images[at];
    return o == 0 ? same_level(v, t, image.source, image.offset, image.cls) : nothing();
  }
  const Near n = v.near[at];
  if (n.direct) return o == 0 ? directly(t, n.source, n.image) : nothing();
  const uint32_t first = v.sources.children[2 * n.source], last = v.sources.children[2 * n.source + 1];
  if (first == last) return o == 0 ? coarse_source(v, t, n.source, n.image) : nothing();
  const uint32_t c = first + o;
  if (c >= last) return nothing();
  const unsigned octant = v.sources.octant[c];
  int offset[3];
  for (int d = 0; d < 3; d++) offset[d] = 2 * n.offset[d] + int(octant >> d & 1) - int(t.octant >> d & 1);
  return same_level(v, t, c, offset, n.image);
}

// What a finding counts for, with that of its walk.
__device__ inline Count count_of(const ListsView &v, const Target &t, const Found &f) {
  Count count;
  if (f.list == WALK)
    walk(v, t, f.source, f.cls, count);
  else
    // No run-time index, which would move the counts out of the registers.
    #pragma unroll
    for (int k = 0; k < int(COUNTS); k++) count.found[k] = f.list == k;
  return count;
}

// What the parent of a target left open.
__device__ inline void open_range(const ListsView &v, uint32_t cell, uint64_t &begin, uint64_t &end) {
  if (!in_share(v.targets, cell)) {
    begin = end = 0;
  } else if (v.depth <= v.base) {
    begin = uint64_t(cell - v.first) * v.image_count;
    end = v.depth == v.base ? begin + v.image_count : begin;
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
    const uint32_t row = tile * v.rows + lane;
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
// One level of a fast multipole method: a warp a target, eight lanes for each cell that the target's parent left open.
__global__ void __launch_bounds__(THREADS) lists_fmm(const __grid_constant__ ListsView v) {
  __shared__ uint32_t count[COUNTS][TARGETS];
  __shared__ uint64_t begin[COUNTS][TARGETS];
  constexpr unsigned WARPS = THREADS / 32, CELLS = 32 / 8;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t tile = next_tile(v.ticket + v.depth);
  // The level above left more than there is room for: the host tries again.
  const uint64_t left = v.total[v.depth * COUNTS + NEAR];
  if (left > v.capacity[NEAR]) {
    if (tile == 0 && threadIdx.x < COUNTS)
      v.total[(v.depth + 1) * COUNTS + threadIdx.x] = v.total[v.depth * COUNTS + threadIdx.x];
    return;
  }
  const uint32_t rows = min(v.rows, v.cells - tile * v.rows);
  for (uint32_t row = warp; row < TARGETS; row += WARPS) {
    uint32_t sum[COUNTS] = {};
    if (row < rows) {
      const Target t(v, v.first + tile * v.rows + row, v.depth);
      uint64_t from, end;
      open_range(v, t.cell, from, end);
      for (; from < end; from += CELLS) {
        const Found f = inherit(v, t, from + lane / 8, end, lane % 8);
        if (__any_sync(ALL, f.list == WALK)) {
          const Count mine = count_of(v, t, f);
          #pragma unroll
          for (unsigned k = 0; k < COUNTS; k++) sum[k] += __reduce_add_sync(ALL, mine.found[k]);
        } else {
          #pragma unroll
          for (unsigned k = 0; k < COUNTS; k++) sum[k] += __popc(__ballot_sync(ALL, f.list == int(k)));
        }
      }
    }
    if (lane == 0)
      #pragma unroll
      for (unsigned k = 0; k < COUNTS; k++) count[k][row] = sum[k];
  }
  __syncthreads();
  place_rows(v, tile, gridDim.x, rows, count, begin);
  __syncthreads();
  for (uint32_t row = warp; row < rows; row += WARPS) {
    const Target t(v, v.first + tile * v.rows + row, v.depth);
    uint64_t from, end;
    open_range(v, t.cell, from, end);
    uint64_t at[COUNTS];
    #pragma unroll
    for (unsigned k = 0; k < COUNTS; k++) at[k] = begin[k][row];
    for (; from < end; from += CELLS) {
      const Found f = inherit(v, t, from + lane / 8, end, lane % 8);
      Write out(v);
      uint64_t place = 0;
      if (__any_sync(ALL, f.list == WALK)) {
        const Count mine = count_of(v, t, f);
        #pragma unroll
        for (unsigned k = 0; k < COUNTS; k++) {
          const uint32_t before = warp_exclusive(mine.found[k]);
          out.at[k] = at[k] + before;
          at[k] += __shfl_sync(ALL, before + mine.found[k], 31);
          if (f.list == int(k)) place = out.at[k];
        }
        if (f.list == WALK) walk(v, t, f.source, f.cls, out);
      } else {
        #pragma unroll
        for (unsigned k = 0; k < COUNTS; k++) {
          const unsigned all = __ballot_sync(ALL, f.list == int(k));
          if (f.list == int(k)) place = at[k] + __popc(all & ((1u << lane) - 1));
          at[k] += __popc(all);
        }
      }
      if (f.list < int(COUNTS)) put(v, f, place);
    }
  }
}

// A treecode: every leaf of the targets walks the sources from their root; a thread a target, a block TARGETS of them. Level
// and near cells mean nothing here: all cells are one launch.
__global__ void __launch_bounds__(THREADS) lists_walk(const __grid_constant__ ListsView v) {
  __shared__ uint32_t count[COUNTS][TARGETS];
  __shared__ uint64_t begin[COUNTS][TARGETS];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t tile = next_tile(v.ticket);
  const uint32_t rows = min(v.rows, v.cells - tile * v.rows);
  const uint32_t cell = tile * v.rows + lane;
  const bool walks = warp == 0 && lane < rows && is_leaf(v.targets, cell) && in_share(v.targets, cell);
  if (warp == 0) {
    Count mine;
    if (walks) walk_images(v, Target(v, cell, v.targets.level[cell]), mine);
    #pragma unroll
    for (unsigned k = 0; k < COUNTS; k++) count[k][lane] = mine.found[k];
  }
  __syncthreads();
  place_rows(v, tile, gridDim.x, rows, count, begin);
  __syncthreads();
  if (walks) {
    Write out(v);
    #pragma unroll
    for (unsigned k = 0; k < COUNTS; k++) out.at[k] = begin[k][lane];
    walk_images(v, Target(v, cell, v.targets.level[cell]), out);
  }
}
}
