// Translations between a cell and its children, M2M and L2L, as products of matrices.
//
// A block owns a tile of target cells of one level and octant. It gathers the source cells' coefficients (zeros where a target has no
// such source), multiplies them by the operator's matrix and keeps the sums in registers: a thread has ROWS targets and COLUMNS
// coefficients. M2M goes through the octants of the children in their order.
#include "tree.cuh"

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

// The source cell that a target meets at a slot.
template <Shift SHIFT>
__device__ inline uint32_t source_of(const TranslateView &v, unsigned slot, uint32_t cell) {
  if (cell == NONE || slot >= v.slots) return NONE;
  if constexpr (SHIFT == Shift::L2L) {
    return v.tree.parent[cell];
  } else {
    for (uint32_t c = v.tree.children[2 * size_t(cell)]; c < v.tree.children[2 * size_t(cell) + 1]; c++)
      if (v.tree.octant[c] == slot) return c;
    return NONE;
  }
}

template <typename Real, Shift SHIFT> __device__ inline void translate(const TranslateView &v) {
  extern __shared__ double memory[];
  __shared__ uint32_t cells[CELLS], source[CELLS];
  Real *gathered = reinterpret_cast<Real *>(memory);  // [depth][PITCH]
  Real *matrix = gathered + v.depth * PITCH;          // [depth][width]
  const unsigned tid = threadIdx.x;
  const uint32_t tile = v.first_tile + blockIdx.x;
  const unsigned first_column = blockIdx.y * v.part;
  const unsigned width = min(v.part, v.columns - first_column), across = width / COLUMNS;
  // Threads beyond these only gather.
  const bool works = tid < across * (CELLS / ROWS);
  const unsigned row = tid / across * ROWS, column = tid % across * COLUMNS;
  const auto *from = static_cast<const Real *>(v.from);
  const auto *matrices = static_cast<const Real *>(v.matrices);

  uint32_t mine = NONE;
  if (tid < CELLS) {
    mine = v.tiles[size_t(tile) * CELLS + tid];
    cells[tid] = mine;
  }
  __syncthreads();
  const unsigned octant = v.tree.octant[cells[0]];
  Real sum[ROWS][COLUMNS] = {};
  uint32_t next = tid < CELLS ? source_of<SHIFT>(v, 0, mine) : NONE;
  for (unsigned slot = 0; slot < v.slots; slot++) {
    const uint32_t here = next;
    // Nobody is left in the slot before: the reads of its last products are behind this.
    if (!__syncthreads_or(here != NONE)) {
      if (tid < CELLS) next = source_of<SHIFT>(v, slot + 1, mine);
      continue;
    }
    if (tid < CELLS) {
      source[tid] = here;
      next = source_of<SHIFT>(v, slot + 1, mine);
    }
    // Children of all octants meet their parents by slots; parents the children of a tile by its octant.
    const unsigned op = SHIFT == Shift::M2M ? slot : octant;
    const Real *table = matrices + size_t(op) * v.n * v.columns;
    for (unsigned k0 = 0; k0 < v.n; k0 += v.depth) {
      const unsigned depth = min(v.depth, v.n - k0);
      __syncthreads();
      // 8 coefficients of 4 cells a warp: whole sectors are read, and different banks written.
      const unsigned pieces = (depth + 7) / 8 * 8 * CELLS;
      for (unsigned i = tid; i < pieces; i += blockDim.x) {
        const unsigned t = (i & 3) | (i >> 5 & 15) << 2, k = (i >> 2 & 7) | i >> 9 << 3;
        if (k >= depth) continue;
        const uint32_t s = source[t];
        const Real value = s == NONE ? Real(0) : from[size_t(s) * v.n + k0 + k];
        gathered[k * PITCH + t] = value;
      }
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
  }
  if (!works) return;
  Real *to = static_cast<Real *>(v.to);
  for (unsigned i = 0; i < ROWS; i++) {
    const uint32_t cell = cells[row + i];
    if (cell == NONE) continue;
    for (unsigned j = 0; j < COLUMNS; j++) {
      const unsigned c = first_column + column + j;
      if (c < v.n) to[size_t(cell) * v.n + c] += sum[i][j];
    }
  }
}

extern "C" {
__global__ void __launch_bounds__(352) m2m_spherical_f32(TranslateView v) { translate<float, Shift::M2M>(v); }
__global__ void __launch_bounds__(352) m2m_spherical_f64(TranslateView v) { translate<double, Shift::M2M>(v); }
__global__ void __launch_bounds__(352) l2l_spherical_f32(TranslateView v) { translate<float, Shift::L2L>(v); }
__global__ void __launch_bounds__(352) l2l_spherical_f64(TranslateView v) { translate<double, Shift::L2L>(v); }
}
