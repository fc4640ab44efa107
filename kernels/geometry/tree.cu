// Cells from sorted keys, level by level, in the order of fmm-core's `Tree::octree`. Nothing here needs to know on the host how
// many cells a level has: blocks take tiles of cells until there are none. Compiled without fused multiply-add.
#include "arguments/geometry.cuh"
#include "common/scan.cuh"

__device__ inline unsigned octant_of(uint64_t key, unsigned level) { return unsigned(key >> 3 * (KEY_LEVELS - level)) & 7; }

// Half the side of the cells of a level, exact.
__device__ inline double half_of(double side, unsigned level) { return ldexp(side, -int(level) - 1); }

// Whether two bodies are at the same place; -0 and 0 are the same.
__device__ inline bool same_place(const GrowthView &v, size_t i, size_t j) {
  const double *a = v.position + 3 * size_t(v.order[i]), *b = v.position + 3 * size_t(v.order[j]);
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

// The first cell after the last level.
__device__ inline uint32_t cells_of(const GrowthView &v) { return uint32_t(v.state[KEY_LEVELS + 1]); }

// Whether a cell, which has all keys equal, holds more than a leaf may.
__device__ inline bool over_full(const GrowthView &v, uint32_t cell) {
  return v.bodies[2 * cell + 1] - v.bodies[2 * cell] > v.leaf_size;
}

// The low bits of a key, by which passes over all bodies need not have sorted: three digits, eight levels. And the most bodies
// that may agree in the others: one thread sorts them.
constexpr unsigned LOW_BITS = 24, MOST_ALIKE = 64;

extern "C" {
// Sorts each run of bodies that agree in the high bits of their keys by key; bodies of one key keep their order.
__global__ void __launch_bounds__(THREADS) sort_rest(GrowthView v) {
  const size_t first = size_t(blockIdx.x) * THREADS + threadIdx.x;
  if (first + 1 >= v.n) return;
  const uint64_t high = v.key[first] >> LOW_BITS;
  if (v.key[first + 1] >> LOW_BITS != high || (first > 0 && v.key[first - 1] >> LOW_BITS == high)) return;
  for (size_t end = first + 1; end < v.n && v.key[end] >> LOW_BITS == high; end++) {
    if (end - first == MOST_ALIKE) {
      v.state[STATE_CROWDED] = 1;
      return;
    }
    const uint64_t key = v.key[end];
    const uint32_t body = v.order[end];
    size_t at = end;
    for (; at > first && v.key[at - 1] > key; at--) {
      v.key[at] = v.key[at - 1];
      v.order[at] = v.order[at - 1];
    }
    v.key[at] = key;
    v.order[at] = body;
  }
}

// The root.
__global__ void root(GrowthView v) {
  if (threadIdx.x > 0) return;
  v.state[1] = 1;
  v.bodies[0] = 0;
  v.bodies[1] = v.n;
  v.children[0] = v.children[1] = 0;
  v.parent[0] = 0;
  v.skip[0] = ~0u;
  v.level[0] = 0;
  v.octant[0] = 0;
  for (int d = 0; d < 3; d++) v.center[d] = v.corner[d] + v.side / 2.0;
}

// The children of the cells of level `depth`: eight threads a cell, one for each octant.
__global__ void __launch_bounds__(THREADS) split(GrowthView v) {
  __shared__ uint32_t base;
  const uint32_t first = uint32_t(v.state[v.depth]), last = uint32_t(v.state[v.depth + 1]);
  // After the last level, or where the cells do not fit: the host tries again with more memory.
  if (first == last || last > v.capacity) {
    if (blockIdx.x == 0 && threadIdx.x == 0) v.state[v.depth + 2] = last;
    return;
  }
  const double quarter = half_of(v.side, v.depth) / 2.0;
  const unsigned octant = threadIdx.x % 8;
  const uint32_t tiles = (last - first + THREADS / 8 - 1) / (THREADS / 8);
  for (;;) {
    const uint32_t tile = next_tile(v.ticket + v.depth);
    if (tile >= tiles) return;
    const uint32_t cell = first + tile * (THREADS / 8) + threadIdx.x / 8;
    uint32_t begin = 0, end = 0, low = 0;
    bool full = false;
    if (cell < last) {
      begin = v.bodies[2 * cell];
      end = v.bodies[2 * cell + 1];
      full = end - begin > v.leaf_size;
      low = begin;
    }
    if (full && octant > 0) {
      // The first body of this octant or a later one.
      uint32_t high = end;
      while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (octant_of(v.key[middle], v.depth + 1) < octant)
          low = middle + 1;
        else
          high = middle;
      }
    }
    uint32_t next = __shfl_down_sync(ALL, low, 1, 8);
    if (octant == 7) next = end;
    const bool there = full && next > low;
    const unsigned siblings = __ballot_sync(ALL, there) >> (threadIdx.x % 32 - octant) & 0xff;
    uint32_t total;
    const uint32_t rank = block_exclusive(there, total);
    if (threadIdx.x < 32) {
      const uint32_t before = uint32_t(before_tile(v.status, v.epoch, tile, total));
      if (threadIdx.x == 0) {
        base = last + before;
        if (tile == tiles - 1) v.state[v.depth + 2] = base + total;
      }
    }
    __syncthreads();
    const uint32_t child = base + rank;
    if (octant == 0 && cell < last) {
      v.children[2 * cell] = siblings ? child : 0;
      v.children[2 * cell + 1] = siblings ? child + __popc(siblings) : 0;
    }
    if (there && child < v.capacity) {
      v.bodies[2 * child] = low;
      v.bodies[2 * child + 1] = next;
      v.children[2 * child] = v.children[2 * child + 1] = 0;
      v.parent[child] = cell;
      v.skip[child] = siblings >> octant == 1 ? v.skip[cell] : child + 1;
      v.level[child] = uint16_t(v.depth + 1);
      v.octant[child] = uint8_t(octant);
      for (int d = 0; d < 3; d++) {
        const double c = v.center[3 * size_t(cell) + d];
        v.center[3 * size_t(child) + d] = octant >> d & 1 ? c + quarter : c - quarter;
      }
    }
  }
}

// No levels below those that have been made.
__global__ void end_levels(GrowthView v) {
  const unsigned level = v.depth + 2 + threadIdx.x;
  if (level <= KEY_LEVELS + 1) v.state[level] = v.state[v.depth + 1];
}

// Cells of the last level of a key that hold more than a leaf may: fine where all bodies are at one place, else the tree has to
// go on below the keys.
__global__ void __launch_bounds__(THREADS) deepest(GrowthView v) {
  const uint32_t first = uint32_t(v.state[KEY_LEVELS]), last = cells_of(v);
  if (last > v.capacity) return;
  for (uint32_t cell = first + blockIdx.x; cell < last; cell += gridDim.x) {
    if (!over_full(v, cell)) continue;
    const uint32_t begin = v.bodies[2 * cell], end = v.bodies[2 * cell + 1];
    bool differ = false;
    for (uint32_t i = begin + 1 + threadIdx.x; i < end; i += THREADS) differ |= !same_place(v, begin, i);
    const bool any = __syncthreads_or(differ);
    if (threadIdx.x == 0) {
      const unsigned long long n = end - begin;
      if (any) v.state[STATE_DEEP] = 1;
      atomicAdd(reinterpret_cast<unsigned long long *>(v.state + STATE_COINCIDENT), n * (n - 1) / 2);
    }
  }
}

// Pairs of bodies at one place in cells that are not over-full. Equal keys are consecutive, and a run of them longer than a
// leaf is an over-full cell of the last level, which `deepest` has counted.
__global__ void __launch_bounds__(THREADS) coincident(GrowthView v) {
  const size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x;
  if (i == 0 || i >= v.n || v.key[i] != v.key[i - 1]) return;
  const uint64_t key = v.key[i];
  size_t begin = i - 1;
  while (begin > 0 && i - begin <= v.leaf_size && v.key[begin - 1] == key) begin--;
  if (i - begin >= v.leaf_size || (begin + v.leaf_size < v.n && v.key[begin + v.leaf_size] == key)) return;
  unsigned long long same = 0;
  for (size_t j = begin; j < i; j++) same += same_place(v, i, j);
  if (same) atomicAdd(reinterpret_cast<unsigned long long *>(v.state + STATE_COINCIDENT), same);
}

// Marks the first body of every leaf.
__global__ void __launch_bounds__(THREADS) mark_leaves(GrowthView v) {
  const uint32_t cells = cells_of(v);
  if (cells > v.capacity) return;
  for (uint32_t cell = blockIdx.x * THREADS + threadIdx.x; cell < cells; cell += gridDim.x * THREADS)
    if (v.children[2 * cell] == v.children[2 * cell + 1])
      atomicOr(&v.map[v.bodies[2 * cell] / 32], 1u << v.bodies[2 * cell] % 32);
}

// Leaves before each word of the map.
__global__ void __launch_bounds__(THREADS) count_leaves(GrowthView v) {
  __shared__ uint32_t base;
  const uint32_t words = v.n / 32 + 1;
  const uint32_t tile = next_tile(v.ticket + KEY_LEVELS);
  const uint32_t begin = tile * WORD_TILE + threadIdx.x * WORDS;
  uint32_t own = 0;
  for (uint32_t w = begin; w < begin + WORDS; w++) own += w < words ? __popc(v.map[w]) : 0;
  uint32_t total;
  uint32_t rank = block_exclusive(own, total);
  if (threadIdx.x < 32) {
    const uint32_t before = uint32_t(before_tile(v.status, v.epoch, tile, total));
    if (threadIdx.x == 0) {
      base = before;
      if (tile == (words - 1) / WORD_TILE) v.state[STATE_LEAVES] = before + total;
    }
  }
  __syncthreads();
  rank += base;
  for (uint32_t w = begin; w < begin + WORDS && w < words; w++) {
    v.rank[w] = rank;
    rank += __popc(v.map[w]);
  }
}

// The leaves in the order of their bodies.
__global__ void __launch_bounds__(THREADS) place_leaves(GrowthView v) {
  const uint32_t cells = cells_of(v);
  if (cells > v.capacity) return;
  for (uint32_t cell = blockIdx.x * THREADS + threadIdx.x; cell < cells; cell += gridDim.x * THREADS)
    if (v.children[2 * cell] == v.children[2 * cell + 1]) {
      const uint32_t body = v.bodies[2 * cell];
      v.leaves[v.rank[body / 32] + __popc(v.map[body / 32] & ((1u << body % 32) - 1))] = cell;
    }
}

// The kind of every cell, and how many there are of each.
__global__ void __launch_bounds__(THREADS) count_kinds(GrowthView v) {
  __shared__ uint32_t count[KINDS];
  const uint32_t cells = cells_of(v);
  if (cells > v.capacity) return;
  for (unsigned i = threadIdx.x; i < KINDS; i += THREADS) count[i] = 0;
  __syncthreads();
  for (uint32_t cell = blockIdx.x * THREADS + threadIdx.x; cell < cells; cell += gridDim.x * THREADS) {
    const unsigned kind = 8 * v.level[cell] + v.octant[cell];
    v.kind[cell] = kind;
    atomicAdd(&count[kind], 1u);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < KINDS; i += THREADS)
    if (count[i]) {
      atomicAdd(&v.bins[i], count[i]);
      atomicAdd(reinterpret_cast<unsigned long long *>(v.state + STATE_KINDS + i), (unsigned long long)(count[i]));
    }
}

// The tiles of the sorted cells.
__global__ void __launch_bounds__(THREADS) fill_tiles(TilesView v) {
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x, tile = i / TILE_CELLS;
  if (tile >= v.first_tile[KINDS]) return;
  unsigned kind = 0;
  for (unsigned step = 128; step > 0; step /= 2)
    if (kind + step < KINDS && v.first_tile[kind + step] <= tile) kind += step;
  // Kinds without cells start where the next one does: the last that starts here has the tile.
  const uint32_t mine = tile - v.first_tile[kind], at = v.first[kind] + mine * TILE_CELLS + i % TILE_CELLS;
  // Two tiles of an octant, then two of the next.
  const unsigned level = kind / 8 * 8;
  uint32_t place = v.first_tile[level] + mine % 2;
  for (unsigned k = level; k < level + 8; k++) {
    const uint32_t tiles = v.first_tile[k + 1] - v.first_tile[k];
    place += min(tiles, mine / 2 * 2 + (k < kind ? 2 : 0));
  }
  v.tiles[place * TILE_CELLS + i % TILE_CELLS] = at < v.first[kind + 1] ? v.sorted[at] : NO_CELL;
}
}
