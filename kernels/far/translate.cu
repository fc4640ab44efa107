// Translations between a cell and its children, M2M and L2L, as products of matrices; and sums over the bodies of cells.
//
// A block owns a tile of cells of one level and octant, the children, which one matrix serves. It gathers the coefficients to be
// translated (zeros where the tile is not full), multiplies them and keeps the sums in registers: a thread has ROWS cells and COLUMNS
// coefficients. L2L gathers the parents' and adds to the children's. M2M leaves what each child is about its parent's center aside; a
// parent is the sum of that over its children, in their order, which the level above makes when it gathers.
#include "common/tree.cuh"

constexpr unsigned ROWS = 8, COLUMNS = 4;
// Coefficients are gathered with the targets side by side, and room to spare so that the writes fall into different banks.
constexpr unsigned PITCH = CELLS + 4;

enum class Shift { M2M, L2L };

__device__ inline void load4(const float *from, float *to) {
  const float4 a = *reinterpret_cast<const float4 *>(from);
  to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
}
__device__ inline void load4(const double *from, double *to) {
  const double2 a = *reinterpret_cast<const double2 *>(from), b = *reinterpret_cast<const double2 *>(from + 2);
  to[0] = a.x, to[1] = a.y, to[2] = b.x, to[3] = b.y;
}
__device__ inline void copy4(float *to, const float *from) { *reinterpret_cast<float4 *>(to) = *reinterpret_cast<const float4 *>(from); }
__device__ inline void copy4(double *to, const double *from) {
  reinterpret_cast<double2 *>(to)[0] = reinterpret_cast<const double2 *>(from)[0];
  reinterpret_cast<double2 *>(to)[1] = reinterpret_cast<const double2 *>(from)[1];
}

// Which cells M2M takes: all; of several GPUs that share a tree, first those whose bodies are all of
// this one's share, and once the others' are there, those of several shares with their children.
enum { ALL_CELLS, OWN_CELLS, JOINT_CELLS };

// Whether a cell has children, and bodies of several shares.
__device__ inline bool is_joint(const TranslateView &v, uint32_t cell) {
  const TreeView &t = v.tree;
  if (is_leaf(t, cell)) return false;
  const uint32_t begin = t.bodies[2 * size_t(cell)], end = t.bodies[2 * size_t(cell) + 1];
  bool joint = false;
  for (unsigned k = 1; k < v.members; k++) joint |= begin < v.bounds[k] && v.bounds[k] < end;
  return joint;
}

// Whether a cell is translated in this pass.
template <Shift SHIFT> __device__ inline bool takes(const TranslateView &v, uint32_t cell) {
  if (SHIFT == Shift::L2L) return in_share(v.tree, cell);
  if (v.pass == ALL_CELLS) return true;
  const uint32_t begin = v.tree.bodies[2 * size_t(cell)];
  if (v.pass == OWN_CELLS) return begin >= v.tree.share[0] && begin < v.tree.share[1] && !is_joint(v, cell);
  return is_joint(v, cell) || is_joint(v, v.tree.parent[cell]);
}

// Items that a thread gathers at once, so that their loads wait together, and the most children.
constexpr unsigned AT_ONCE = 4, CHILDREN = 8;

template <typename Real, Shift SHIFT> __device__ inline void translate(const TranslateView &v) {
  extern __shared__ double memory[];
  // What each cell of the tile gathers: so many rows from the first on; none where the tile is not full.
  __shared__ const Real *rows[CELLS];
  __shared__ uint32_t cells[CELLS];
  __shared__ uint8_t count[CELLS];
  __shared__ bool inner[CELLS];
  Real *gathered = reinterpret_cast<Real *>(memory);  // [depth][PITCH]
  Real *matrix = gathered + v.depth * PITCH;          // [depth][width]
  const unsigned tid = threadIdx.x;
  const uint32_t tile = v.first_tile + blockIdx.x;
  const unsigned first_column = blockIdx.y * v.part;
  const unsigned width = min(v.part, v.columns - first_column), across = width / COLUMNS;
  // Threads beyond these only gather.
  const bool works = v.translates && tid < across * (CELLS / ROWS);
  const unsigned row = tid / across * ROWS, column = tid % across * COLUMNS;
  auto *from = static_cast<Real *>(v.from);
  auto *to = static_cast<Real *>(v.to);

  bool here = false;
  if (tid < CELLS) {
    uint32_t cell = v.tiles[size_t(tile) * CELLS + tid];
    here = cell != NONE && takes<SHIFT>(v, cell);
    if (!here) cell = NONE;
    const Real *first = from;
    uint32_t number = 0;
    bool leaf = true;
    if (cell != NONE && SHIFT == Shift::L2L) {
      first = from + size_t(v.tree.parent[cell]) * v.n;
      number = 1;
    } else if (cell != NONE) {
      const uint32_t begin = v.tree.children[2 * size_t(cell)], end = v.tree.children[2 * size_t(cell) + 1];
      leaf = begin == end || (v.pass == JOINT_CELLS && !is_joint(v, cell));
      first = leaf ? from + size_t(cell) * v.n : to + size_t(begin) * v.n;
      number = leaf ? 1 : end - begin;
    }
    cells[tid] = cell;
    rows[tid] = first;
    count[tid] = uint8_t(number);
    inner[tid] = !leaf;
  }
  if (!__syncthreads_or(here)) return;
  const unsigned octant = v.tree.octant[v.tiles[size_t(tile) * CELLS]];
  const Real *table = static_cast<const Real *>(v.matrices) + size_t(octant) * v.n * v.columns;
  Real sum[ROWS][COLUMNS] = {};
  for (unsigned k0 = 0; k0 < v.n; k0 += v.depth) {
    const unsigned depth = min(v.depth, v.n - k0);
    if (k0 > 0) __syncthreads();
    // 8 coefficients of 4 cells a warp: whole sectors are read, and different banks written.
    const unsigned pieces = (depth + 7) / 8 * 8 * CELLS;
    for (unsigned first = tid; first < pieces; first += AT_ONCE * blockDim.x) {
      Real value[AT_ONCE] = {};
      unsigned t[AT_ONCE], k[AT_ONCE], number[AT_ONCE];
#pragma unroll
      for (unsigned u = 0; u < AT_ONCE; u++) {
        const unsigned i = first + u * blockDim.x;
        t[u] = (i & 3) | (i >> 5 & 15) << 2, k[u] = (i >> 2 & 7) | i >> 9 << 3;
        number[u] = i < pieces && k[u] < depth ? count[t[u]] : 0;
      }
      if constexpr (SHIFT == Shift::L2L) {
#pragma unroll
        for (unsigned u = 0; u < AT_ONCE; u++)
          if (number[u] > 0) value[u] = rows[t[u]][k0 + k[u]];
      } else {
#pragma unroll
        for (unsigned c = 0; c < CHILDREN; c++)
#pragma unroll
          for (unsigned u = 0; u < AT_ONCE; u++)
            if (c < number[u]) value[u] += rows[t[u]][size_t(c) * v.n + k0 + k[u]];
      }
#pragma unroll
      for (unsigned u = 0; u < AT_ONCE; u++) {
        if (k[u] >= depth || first + u * blockDim.x >= pieces) continue;
        gathered[k[u] * PITCH + t[u]] = value[u];
        // The first of the blocks that share a tile keeps its cells' multipoles; those of leaves are there.
        if constexpr (SHIFT == Shift::M2M)
          if (blockIdx.y == 0 && inner[t[u]]) from[size_t(cells[t[u]]) * v.n + k0 + k[u]] = value[u];
      }
    }
    if (!v.translates) continue;
    for (unsigned i = tid; i < depth * across; i += blockDim.x) {
      const unsigned k = i / across, c = i % across * COLUMNS;
      copy4(matrix + k * width + c, table + size_t(k0 + k) * v.columns + first_column + c);
    }
    __syncthreads();
    if (works) {
#pragma unroll 4
      for (unsigned k = 0; k < depth; k++) {
        Real a[ROWS], b[COLUMNS];
        load4(gathered + k * PITCH + row, a);
        load4(gathered + k * PITCH + row + 4, a + 4);
        load4(matrix + k * width + column, b);
#pragma unroll
        for (unsigned i = 0; i < ROWS; i++)
#pragma unroll
          for (unsigned j = 0; j < COLUMNS; j++) sum[i][j] = fused(a[i], b[j], sum[i][j]);
      }
    }
  }
  if (!works) return;
  for (unsigned i = 0; i < ROWS; i++) {
    const uint32_t cell = cells[row + i];
    if (cell == NONE) continue;
    for (unsigned j = 0; j < COLUMNS; j++) {
      const unsigned c = first_column + column + j;
      if (c >= v.n) continue;
      Real &out = to[size_t(cell) * v.n + c];
      out = SHIFT == Shift::L2L ? out + sum[i][j] : sum[i][j];
    }
  }
}

extern "C" {
// The cells of each level whose bodies are all of one share, and leaves whose first body is. A thread
// has a level and a share.
__global__ void __launch_bounds__(TILE) cell_parts(CellPartsView v) {
  const unsigned i = blockIdx.x * TILE + threadIdx.x;
  if (i >= v.tree.levels * v.members) return;
  const unsigned level = i / v.members, share = i % v.members;
  const auto begins = [&](uint32_t body) {
    uint32_t low = v.tree.level_start[level], high = v.tree.level_start[level + 1];
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (v.tree.bodies[2 * size_t(middle)] < body)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  const uint32_t first = begins(v.bounds[share]);
  uint32_t end = begins(v.bounds[share + 1]);
  if (end > first) {
    const size_t last = end - 1;
    const bool leaf = v.tree.children[2 * last] == v.tree.children[2 * last + 1];
    if (!leaf && v.tree.bodies[2 * last + 1] > v.bounds[share + 1]) end--;
  }
  v.parts[2 * size_t(i)] = first;
  v.parts[2 * size_t(i) + 1] = end;
}

// The squares of the strengths of each cell of a level together. A warp has a cell. In the last pass M2M takes the
// children of cells of several shares too, whose sums have come already.
__global__ void __launch_bounds__(128) m2m_squares(SquaresView v) {
  const TreeView &tree = v.pass.tree;
  const unsigned k = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (k >= v.count) return;
  const uint32_t cell = v.first + k;
  if (!takes<Shift::M2M>(v.pass, cell) || (v.pass.pass == JOINT_CELLS && !is_joint(v.pass, cell))) return;
  const bool leaf = is_leaf(tree, cell);
  const uint32_t *range = (leaf ? tree.bodies : tree.children) + 2 * size_t(cell);
  float sum = 0;
  for (uint32_t i = range[0] + lane; i < range[1]; i += 32) sum += leaf ? float(v.bodies[i].q * v.bodies[i].q) : v.squares[i];
  sum = warp_sum(sum);
  if (lane == 0) v.squares[cell] = sum;
}

__global__ void __launch_bounds__(352) m2m_spherical_f32(TranslateView v) { translate<float, Shift::M2M>(v); }
__global__ void __launch_bounds__(352) m2m_spherical_f64(TranslateView v) { translate<double, Shift::M2M>(v); }
__global__ void __launch_bounds__(352) l2l_spherical_f32(TranslateView v) { translate<float, Shift::L2L>(v); }
__global__ void __launch_bounds__(352) l2l_spherical_f64(TranslateView v) { translate<double, Shift::L2L>(v); }
}
