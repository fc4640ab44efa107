// M2L on the tensor cores.
//
// A warp owns 32 target cells of one level and octant, so that all of them meet the same operators, and keeps their sums in
// registers. It goes through the operators in a fixed order; each is a product of the sources' coefficients, gathered row by row
// (zeros where a target has no such source), and the operator's matrix. Matrices lie in memory in the order in which lanes need
// them. Operators whose offsets differ by mirrors share a matrix: mirrors along the axes only change signs, of the sources as they
// are gathered and of the sums where the mirror changes.
//
// Single precision multiplies in TF32 (11 bits), or with SPLIT in three products of numbers cut into two, whose error is near that of
// single precision. Double precision has tensor cores of its own.
#include "tree.cuh"

constexpr unsigned WARPS = 4;

// Products of 8 rows at lanes 4g..4g+3 each (g + 8r for r = 0..3) with 8 columns; a lane has 2 of them.
__device__ inline void mma(float *high, float *low, float a0, float a1, float a2, float a3, float b0, float b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(high[0]), "+f"(high[1]), "+f"(low[0]), "+f"(low[1])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
        "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}
__device__ inline void mma(double *sum, double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+d"(sum[0]), "+d"(sum[1])
      : "d"(a), "d"(b));
}

__device__ inline float tf32(float x) {
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return __uint_as_float(y);
}

// Four coefficients of a source.
__device__ inline void row4(const float *from, float *to) {
  const float4 a = *reinterpret_cast<const float4 *>(from);
  to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
}
__device__ inline void row4(const double *from, double *to) {
  const double2 a = *reinterpret_cast<const double2 *>(from), b = *reinterpret_cast<const double2 *>(from + 2);
  to[0] = a.x, to[1] = a.y, to[2] = b.x, to[3] = b.y;
}
__device__ inline float flip(float x, uint32_t sign) { return __uint_as_float(__float_as_uint(x) ^ sign); }
__device__ inline double flip(double x, uint32_t sign) {
  return __hiloint2double(__double2hiint(x) ^ int(sign), __double2loint(x));
}

// Adds the product of 16 (HALF: 8) coefficients of 32 cells and the columns of the block.
template <typename Real, bool SPLIT, unsigned TILES, bool HALF>
__device__ inline void product(Real (*sum)[TILES][2], const Real (*a)[4], const Real *matrix, unsigned lane) {
  constexpr unsigned TERMS = HALF ? 2 : 4;
  if constexpr (sizeof(Real) == 4) {
    float high[4][TERMS], low[4][TERMS];
#pragma unroll
    for (unsigned r = 0; r < 4; r++)
#pragma unroll
      for (unsigned e = 0; e < TERMS; e++) {
        high[r][e] = tf32(a[r][e]);
        low[r][e] = SPLIT ? tf32(a[r][e] - high[r][e]) : 0;
      }
#pragma unroll
    for (unsigned c = 0; c < TILES; c++) {
      // High parts of the matrix, then low parts.
      Real b[4], l[4];
      row4(matrix + (size_t(2 * c) * 32 + lane) * 4, b);
      if constexpr (SPLIT) row4(matrix + (size_t(2 * c + 1) * 32 + lane) * 4, l);
#pragma unroll
      for (unsigned r = 0; r < 4; r += 2) {
        if constexpr (SPLIT) {
          // Tensor cores cut sums off instead of rounding them: a long sum of theirs would drift. So they add few terms.
          Real few[2][2] = {};
#pragma unroll
          for (unsigned e = 0; e < TERMS; e += 2) {
            mma(few[0], few[1], low[r][e], low[r + 1][e], low[r][e + 1], low[r + 1][e + 1], b[e], b[e + 1]);
            mma(few[0], few[1], high[r][e], high[r + 1][e], high[r][e + 1], high[r + 1][e + 1], l[e], l[e + 1]);
          }
#pragma unroll
          for (unsigned e = 0; e < TERMS; e += 2)
            mma(few[0], few[1], high[r][e], high[r + 1][e], high[r][e + 1], high[r + 1][e + 1], b[e], b[e + 1]);
#pragma unroll
          for (unsigned k = 0; k < 4; k++) sum[r + k / 2][c][k % 2] += few[k / 2][k % 2];
        } else {
#pragma unroll
          for (unsigned e = 0; e < TERMS; e += 2)
            mma(sum[r][c], sum[r + 1][c], high[r][e], high[r + 1][e], high[r][e + 1], high[r + 1][e + 1], b[e], b[e + 1]);
        }
      }
    }
  } else {
#pragma unroll
    for (unsigned c = 0; c < TILES; c++) {
      Real b[4];
      row4(matrix + (size_t(c) * 32 + lane) * 4, b);
#pragma unroll
      for (unsigned e = 0; e < TERMS; e++)
#pragma unroll
        for (unsigned r = 0; r < 4; r++) mma(sum[r][c], a[r][e], b[e]);
    }
  }
}

template <typename Real, bool SPLIT, unsigned TILES> __device__ inline void m2l(const M2lView &v) {
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const uint32_t warp = blockIdx.x * WARPS + threadIdx.x / 32;
  if (warp >= v.tiles_len * (CELLS / 32)) return;
  const uint32_t tile = warp / (CELLS / 32);
  const unsigned base = warp % (CELLS / 32) * 32;
  const uint32_t *cells = v.tiles + size_t(tile) * CELLS;
  const unsigned octant = v.octant[cells[0]];
  const unsigned first = blockIdx.y * TILES;
  const unsigned begin = v.slots * blockIdx.z / v.parts, end = v.slots * (blockIdx.z + 1) / v.parts;
  constexpr unsigned PIECES = sizeof(Real) == 4 ? 2 : 1;
  const auto *from = static_cast<const Real *>(v.from);
  const auto *matrices = static_cast<const Real *>(v.matrices);
  const size_t step = size_t(v.columns) * PIECES * 128;
  const uint32_t *table = v.table + size_t(tile) * v.slots * CELLS + base + g;

  Real sum[4][TILES][2] = {};
  unsigned mirror = 0;
  const auto mirror_by = [&](unsigned axes) {
    const uint32_t *signs = v.target_signs + axes * v.columns * 8;
#pragma unroll
    for (unsigned c = 0; c < TILES; c++)
#pragma unroll
      for (unsigned j = 0; j < 2; j++) {
        const uint32_t sign = signs[(first + c) * 8 + 2 * t + j];
#pragma unroll
        for (unsigned r = 0; r < 4; r++) sum[r][c][j] = flip(sum[r][c][j], sign);
      }
  };
  uint32_t next[4];
#pragma unroll
  for (unsigned r = 0; r < 4; r++) next[r] = begin < end ? table[size_t(begin) * CELLS + 8 * r] : NONE;
  for (unsigned slot = begin; slot < end; slot++) {
    uint32_t source[4];
    bool any = false;
#pragma unroll
    for (unsigned r = 0; r < 4; r++) {
      source[r] = next[r];
      any |= source[r] != NONE;
      next[r] = slot + 1 < end ? table[size_t(slot + 1) * CELLS + 8 * r] : NONE;
    }
    if (!__any_sync(~0u, any)) continue;
    const uint32_t op = v.operators[octant * v.slots + slot];
    const unsigned axes = op >> 29;
    if (axes != mirror) {
      mirror_by(axes ^ mirror);
      mirror = axes;
    }
    const Real *row[4];
#pragma unroll
    for (unsigned r = 0; r < 4; r++) row[r] = from + size_t(min(source[r], v.zero_row)) * v.pitch + 4 * t;
    const Real *matrix = matrices + (size_t(op & 0x1fffffff) * v.steps) * step + size_t(first) * PIECES * 128;
    const uint32_t *signs = v.source_signs + axes * v.pitch + 4 * t;
    Real a[4][4], ahead[4][4];
#pragma unroll
    for (unsigned r = 0; r < 4; r++) row4(row[r], ahead[r]);
    for (unsigned k = 0; k < v.steps; k++) {
      const uint4 sign = *reinterpret_cast<const uint4 *>(signs + 16 * k);
#pragma unroll
      for (unsigned r = 0; r < 4; r++) {
        a[r][0] = flip(ahead[r][0], sign.x);
        a[r][1] = flip(ahead[r][1], sign.y);
        a[r][2] = flip(ahead[r][2], sign.z);
        a[r][3] = flip(ahead[r][3], sign.w);
      }
      const bool last = k + 1 == v.steps;
      if (!last)
#pragma unroll
        for (unsigned r = 0; r < 4; r++) row4(row[r] + 16 * (k + 1), ahead[r]);
      if (last && v.half)
        product<Real, SPLIT, TILES, true>(sum, a, matrix + k * step, lane);
      else
        product<Real, SPLIT, TILES, false>(sum, a, matrix + k * step, lane);
    }
  }
  mirror_by(mirror);
  Real *to = static_cast<Real *>(v.to);
#pragma unroll
  for (unsigned r = 0; r < 4; r++) {
    const uint32_t cell = cells[base + g + 8 * r];
    if (cell == NONE) continue;
#pragma unroll
    for (unsigned c = 0; c < TILES; c++)
#pragma unroll
      for (unsigned j = 0; j < 2; j++) {
        const unsigned k = (first + c) * 8 + 2 * t + j;
        if (k >= v.n) continue;
        if (v.parts == 1)
          to[size_t(cell) * v.n + k] += sum[r][c][j];
        else
          static_cast<Real *>(v.partial)[(size_t(blockIdx.z) * v.cells + cell) * v.n + k] = sum[r][c][j];
      }
  }
}

// The coefficients of all cells in the order of the lanes, and a row of zeros.
template <typename Real> __device__ inline void pack(const M2lView &v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  const size_t cell = i / v.pitch;
  if (cell > v.zero_row) return;
  const uint32_t k = v.order[i % v.pitch];
  const auto *multipoles = static_cast<const Real *>(v.multipoles);
  static_cast<Real *>(v.packed)[i] = cell < v.zero_row && k != NONE ? multipoles[cell * v.n + k] : Real(0);
}

// Adds the parts in their order.
template <typename Real> __device__ inline void add_parts(const M2lView &v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x, all = size_t(v.cells) * v.n;
  if (i >= all) return;
  Real sum = 0;
  for (unsigned part = 0; part < v.parts; part++) sum += static_cast<const Real *>(v.partial)[part * all + i];
  static_cast<Real *>(v.to)[i] += sum;
}

extern "C" {
// The sources of every target by tile and slot, in a table full of NONE. A warp works for one target.
__global__ void __launch_bounds__(256) m2l_table(M2lView v) {
  const size_t place = size_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  const size_t tile = place / CELLS, t = place % CELLS;
  const uint32_t cell = v.tiles[place];
  if (cell == NONE) return;
  const unsigned octant = v.octant[cell];
  for (uint64_t i = v.list.start[cell] + threadIdx.x % 32; i < v.list.start[cell + 1]; i += 32) {
    const uint32_t source = v.list.pairs[2 * i], kind = v.list.pairs[2 * i + 1];
    const uint32_t slot = v.slot_of[octant * v.classes + kind];
    if (slot == NONE)
      *v.fault = 1;
    else
      v.table[(tile * v.slots + slot) * CELLS + t] = source;
  }
}

__global__ void __launch_bounds__(TILE) m2l_pack_f32(M2lView v) { pack<float>(v); }
__global__ void __launch_bounds__(TILE) m2l_pack_f64(M2lView v) { pack<double>(v); }
__global__ void __launch_bounds__(TILE) m2l_parts_f32(M2lView v) { add_parts<float>(v); }
__global__ void __launch_bounds__(TILE) m2l_parts_f64(M2lView v) { add_parts<double>(v); }

// By the number of 8 columns that a block has. Columns in two blocks gather twice: 104 columns took twice as long as in one.
#define M2L_F32(TILES, BLOCKS)                                                                                                    \
  __global__ void __launch_bounds__(32 * WARPS, BLOCKS) m2l_spherical_f32_##TILES(M2lView v) { m2l<float, false, TILES>(v); }      \
  __global__ void __launch_bounds__(32 * WARPS, BLOCKS) m2l_spherical_split_f32_##TILES(M2lView v) { m2l<float, true, TILES>(v); }
#define M2L_F64(TILES)                                                                                                    \
  __global__ void __launch_bounds__(32 * WARPS) m2l_spherical_f64_##TILES(M2lView v) { m2l<double, false, TILES>(v); }
M2L_F32(1, 3)
M2L_F32(2, 3)
M2L_F32(4, 3)
M2L_F32(5, 3)
M2L_F32(7, 3)
M2L_F32(8, 3)
M2L_F32(9, 3)
M2L_F32(11, 2)
M2L_F32(13, 2)
M2L_F64(1)
M2L_F64(2)
M2L_F64(4)
M2L_F64(5)
M2L_F64(6)
}
