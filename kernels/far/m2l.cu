// M2L on the tensor cores.
//
// A warp owns 32 target cells of one level and octant, so that all of them meet the same operators,
// and keeps their sums in registers. It goes through the operators in a fixed order. Each is a
// product of the sources' coefficients, gathered row by row (zeros where a target has no source at
// this offset), and the operator's matrix. Both lie in memory in the order in which lanes need
// them. The warps of a block keep step, so that the first-level cache has the matrix for all of
// them. Operators whose offsets differ by mirrors share a matrix: mirrors along the axes only
// change signs, of the sources as they are gathered and of the sums where the mirror changes.
//
// Single precision multiplies in TF32 (11 bits), or in three products of numbers that are each the
// sum of two of bf16 (8 bits each), at the price of one and a half products, with an error of 2^-16
// of each coefficient. Double precision has tensor cores of its own, or three products of halves (11 bits
// each), with an error of 2^-22 of each coefficient, at least 2^-39 of the cell's largest. Their exponents are so
// short that all numbers are scaled by powers of two: the matrices before, each cell's coefficients as they are packed.
#include "common/tensor.cuh"
#include "common/tree.cuh"

constexpr unsigned WARPS = 4, BLOCK = 32 * WARPS;

// Numbers as tensor cores have them (Packed) and as sums end (Out); whether they are the sums of two, and scaled.
struct Tf32 {
  typedef float Packed, Out;
  static constexpr bool SPLIT = false, SCALED = false;
};
struct Bf16 {
  typedef float Packed, Out;
  static constexpr bool SPLIT = true, SCALED = false;
};
struct Halves {
  typedef float Packed;
  typedef double Out;
  static constexpr bool SPLIT = true, SCALED = true;
};
struct Double {
  typedef double Packed, Out;
  static constexpr bool SPLIT = false, SCALED = false;
};

// What a lane has of a step of 16 coefficients of one cell: 4 of them, or with SPLIT the first parts of 4 and then the remainders.
template <typename Real> struct Quad;
template <> struct Quad<float> {
  uint32_t x[4];
  __device__ void load(const float *from) {
    const uint4 a = *reinterpret_cast<const uint4 *>(from);
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
  }
  __device__ void flip(const uint4 &s) { x[0] ^= s.x, x[1] ^= s.y, x[2] ^= s.z, x[3] ^= s.w; }
};
__device__ inline float flipped(float x, uint32_t sign) { return __uint_as_float(__float_as_uint(x) ^ sign); }
__device__ inline double flipped(double x, uint32_t sign) { return __hiloint2double(__double2hiint(x) ^ int(sign), __double2loint(x)); }
template <> struct Quad<double> {
  double x[4];
  __device__ void load(const double *from) {
    const double2 a = *reinterpret_cast<const double2 *>(from), b = *reinterpret_cast<const double2 *>(from + 2);
    x[0] = a.x, x[1] = a.y, x[2] = b.x, x[3] = b.y;
  }
  __device__ void flip(const uint4 &s) {
    x[0] = flipped(x[0], s.x), x[1] = flipped(x[1], s.y), x[2] = flipped(x[2], s.z), x[3] = flipped(x[3], s.w);
  }
};

// Products of 16 rows (8 at lanes 4g..4g+3 in `low` and 8 in `high`) with 8 columns; a lane has 2 of each row.
__device__ inline void mma_tf32(float *low, float *high, const uint32_t *a, const uint32_t *b, const uint32_t *m) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(low[0]), "+f"(low[1]), "+f"(high[0]), "+f"(high[1])
      : "r"(a[0]), "r"(b[0]), "r"(a[1]), "r"(b[1]), "r"(m[0]), "r"(m[1]));
}
#define MMA_SPLIT(NUMBERS, TYPE)                                                                                                         \
  __device__ inline void mma(NUMBERS, float *low, float *high, const uint32_t *a, const uint32_t *b, const uint32_t *m) {               \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"             \
        : "+f"(low[0]), "+f"(low[1]), "+f"(high[0]), "+f"(high[1])                                                                       \
        : "r"(a[0]), "r"(b[0]), "r"(a[1]), "r"(b[1]), "r"(m[0]), "r"(m[1]));                                                             \
  }                                                                                                                                      \
  __device__ inline void mma_eight(NUMBERS, float *low, float *high, uint32_t a, uint32_t b, uint32_t m) {                               \
    asm("mma.sync.aligned.m16n8k8.row.col.f32." TYPE "." TYPE ".f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"                       \
        : "+f"(low[0]), "+f"(low[1]), "+f"(high[0]), "+f"(high[1])                                                                       \
        : "r"(a), "r"(b), "r"(m));                                                                                                       \
  }
MMA_SPLIT(Bf16, "bf16")
MMA_SPLIT(Halves, "f16")

// Adds the product of 16 (HALF: 8) coefficients of 32 cells and COUNT times 8 columns in three
// products. Tensor cores truncate sums instead of rounding them, so a long sum in them would drift.
// Each sum here has few terms, and those of several columns alternate, since each product waits for
// the one before it in the same sum.
template <class Numbers, bool HALF, unsigned COUNT, unsigned TILES>
__device__ inline void split_product(float (*sum)[TILES][2], unsigned c, const Quad<float> *a, const float *matrix, unsigned lane) {
  Quad<float> b[COUNT];
  float few[COUNT][4][2] = {};
#pragma unroll
  for (unsigned i = 0; i < COUNT; i++) b[i].load(matrix + ((c + i) * 32 + lane) * 4);
#pragma unroll
  for (unsigned product = 0; product < 3; product++) {
    // Low by high, high by low, high by high.
    const unsigned of_a = product == 0 ? 2 : 0, of_b = product == 1 ? 2 : 0;
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
#pragma unroll
      for (unsigned r = 0; r < 4; r += 2)
        if constexpr (HALF)
          mma_eight(Numbers(), few[i][r], few[i][r + 1], a[r].x[of_a], a[r + 1].x[of_a], b[i].x[of_b]);
        else
          mma(Numbers(), few[i][r], few[i][r + 1], a[r].x + of_a, a[r + 1].x + of_a, b[i].x + of_b);
  }
#pragma unroll
  for (unsigned i = 0; i < COUNT; i++)
#pragma unroll
    for (unsigned r = 0; r < 4; r++)
#pragma unroll
      for (unsigned j = 0; j < 2; j++) sum[r][c + i][j] += few[i][r][j];
}

// Adds the product of a step and the columns of the block.
template <class Numbers, unsigned TILES, bool HALF>
__device__ inline void product(float (*sum)[TILES][2], const Quad<float> *a, const float *matrix, unsigned lane) {
  if constexpr (Numbers::SPLIT) {
#pragma unroll
    for (unsigned c = 0; c + 1 < TILES; c += 2) split_product<Numbers, HALF, 2, TILES>(sum, c, a, matrix, lane);
    if constexpr (TILES % 2 == 1) split_product<Numbers, HALF, 1, TILES>(sum, TILES - 1, a, matrix, lane);
  } else {
#pragma unroll
    for (unsigned c = 0; c < TILES; c++) {
      Quad<float> b;
      b.load(matrix + (c * 32 + lane) * 4);
#pragma unroll
      for (unsigned r = 0; r < 4; r += 2) {
        mma_tf32(sum[r][c], sum[r + 1][c], a[r].x, a[r + 1].x, b.x);
        if constexpr (!HALF) mma_tf32(sum[r][c], sum[r + 1][c], a[r].x + 2, a[r + 1].x + 2, b.x + 2);
      }
    }
  }
}
template <class, unsigned TILES, bool HALF>
__device__ inline void product(double (*sum)[TILES][2], const Quad<double> *a, const double *matrix, unsigned lane) {
#pragma unroll
  for (unsigned c = 0; c < TILES; c++) {
    Quad<double> b;
    b.load(matrix + (c * 32 + lane) * 4);
#pragma unroll
    for (unsigned r = 0; r < 4; r += 2) mma_f64<HALF ? 2 : 4>(sum[r][c], sum[r + 1][c], a[r].x, a[r + 1].x, b.x);
  }
}

// Whether a tile has cells with bodies that are summed here. Its cells are in the order of their bodies.
__device__ inline bool in_share(const M2lView &v, size_t tile) {
  const uint32_t *cells = v.tiles + tile * CELLS;
  unsigned last = CELLS - 1;
  while (cells[last] == NONE) last--;
  return v.bodies[2 * size_t(cells[0])] < v.share[1] && v.bodies[2 * size_t(cells[last]) + 1] > v.share[0];
}

template <class Numbers, unsigned TILES> __device__ inline void m2l(const M2lView &v) {
  using Real = typename Numbers::Packed;
  using Out = typename Numbers::Out;
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const unsigned blocks = v.columns / TILES, first = blockIdx.x % blocks * TILES;
  const uint32_t warp = blockIdx.x / blocks * WARPS + threadIdx.x / 32, tile = warp / (CELLS / 32);
  // Warps beyond the last tile, and those of tiles that another GPU sums, only keep step.
  const bool works = tile < v.tiles_len && in_share(v, tile);
  if (!__syncthreads_or(works)) return;
  const unsigned base = warp % (CELLS / 32) * 32;
  const uint32_t *cells = v.tiles + size_t(works ? tile : 0) * CELLS;
  const unsigned octant = v.octant[cells[0]];
  const unsigned begin = v.slots * blockIdx.y / v.parts, end = v.slots * (blockIdx.y + 1) / v.parts;
  const auto *from = static_cast<const Real *>(v.from);
  const unsigned step = v.columns * 128;
  const auto *matrices = static_cast<const Real *>(v.matrices) + first * 128;
  if (v.per_level > 0) {
    unsigned level = 0;
    while (level + 1 < v.levels && v.level_start[level + 1] <= cells[0]) level++;
    matrices += size_t(level) * v.per_level * v.steps * step;
  }
  const uint32_t *table = v.table + size_t(works ? tile : 0) * v.slots * CELLS + base + g;

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
        for (unsigned r = 0; r < 4; r++) sum[r][c][j] = flipped(sum[r][c][j], sign);
      }
  };
  // The sources of the next slot, and this slot's next step, are on their way.
  float scale_ahead[4] = {};
  uint32_t next[4];
  const auto look = [&](unsigned slot) {
#pragma unroll
    for (unsigned r = 0; r < 4; r++) next[r] = works && slot < end ? table[size_t(slot) * CELLS + 8 * r] : NONE;
  };
  const Real *row[4];
  Quad<Real> ahead[4];
  bool any = false;
  const auto turn = [&](unsigned slot) {
    any = __any_sync(~0u, (next[0] & next[1] & next[2] & next[3]) != NONE);
    if (any)
#pragma unroll
      for (unsigned r = 0; r < 4; r++) {
        const uint32_t cell = min(next[r], v.zero_row);
        row[r] = from + size_t(cell) * v.pitch + 4 * t;
        ahead[r].load(row[r]);
        if constexpr (Numbers::SCALED) scale_ahead[r] = v.cell_scale[cell];
      }
    look(slot + 1);
  };
  look(begin);
  turn(begin);
  for (unsigned slot = begin; slot < end; slot++) {
    __syncthreads();
    if (!any) {
      turn(slot + 1);
      continue;
    }
    const uint32_t op = v.operators[octant * v.slots + slot];
    const unsigned axes = op >> 29;
    if (axes != mirror) {
      mirror_by(axes ^ mirror);
      mirror = axes;
    }
    const Real *matrix = matrices + size_t(op & 0x1fffffff) * v.steps * step;
    const uint32_t *signs = v.source_signs + axes * v.pitch + 4 * t;
    // Cells have scales of their own. The steps of an operator are added up first: the whole is rounded once an operator,
    // not once a step.
    Real of_slot[Numbers::SCALED ? 4 : 1][TILES][2] = {};
    Real(*const to_sum)[TILES][2] = Numbers::SCALED ? of_slot : sum;
    float scale[4];
#pragma unroll
    for (unsigned r = 0; r < 4; r++) scale[r] = scale_ahead[r];
    for (unsigned k = 0; k < v.steps; k++, matrix += step) {
      const uint4 sign = *reinterpret_cast<const uint4 *>(signs + 16 * k);
      Quad<Real> a[4];
#pragma unroll
      for (unsigned r = 0; r < 4; r++) {
        a[r] = ahead[r];
        a[r].flip(sign);
      }
      const bool last = k + 1 == v.steps;
      if (last)
        turn(slot + 1);
      else
#pragma unroll
        for (unsigned r = 0; r < 4; r++) ahead[r].load(row[r] + 16 * (k + 1));
      if (last && v.half)
        product<Numbers, TILES, true>(to_sum, a, matrix, lane);
      else
        product<Numbers, TILES, false>(to_sum, a, matrix, lane);
    }
    if constexpr (Numbers::SCALED)
#pragma unroll
      for (unsigned r = 0; r < 4; r++)
#pragma unroll
        for (unsigned c = 0; c < TILES; c++)
#pragma unroll
          for (unsigned j = 0; j < 2; j++) sum[r][c][j] = fmaf(of_slot[r][c][j], scale[r], sum[r][c][j]);
  }
  mirror_by(mirror);
  if (!works) return;
  Out *to = static_cast<Out *>(v.to);
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
        Out all = sum[r][c][j];
        if constexpr (Numbers::SCALED) all *= v.target_scale[k];
        if (v.parts == 1)
          to[size_t(cell) * v.n + k] += all;
        else
          static_cast<Out *>(v.partial)[(size_t(blockIdx.y) * v.cells + cell) * v.n + k] = all;
      }
  }
}

__device__ inline float tf32(float x) {
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return __uint_as_float(y);
}
// Two numbers in half the bits, the first in the lower ones, and what they are.
__device__ inline uint32_t packed_two(Bf16, float x, float y) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
  return both;
}
__device__ inline float2 values(Bf16, uint32_t both) { return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000)); }
__device__ inline uint32_t packed_two(Halves, float x, float y) {
  uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
  return both;
}
__device__ inline float2 values(Halves, uint32_t both) {
  float2 v;
  asm("{.reg .f16 x, y; mov.b32 {x, y}, %2; cvt.f32.f16 %0, x; cvt.f32.f16 %1, y;}" : "=f"(v.x), "=f"(v.y) : "r"(both));
  return v;
}

// Bits of the exponent of a number in double precision, and those of the largest scaled coefficient of a cell.
constexpr uint32_t EXPONENT = 0x7ff, LARGEST = 1023 + 14;
// What a scale in single precision holds.
constexpr int MOST_UP = 120;
__device__ inline uint32_t exponent_of(double x) { return uint32_t(__double2hiint(x)) >> 20 & EXPONENT; }
__device__ inline double power_of_two(int exponent) { return __hiloint2double((1023 + exponent) << 20, 0); }

// The coefficients of all cells in the order of the lanes, and a row of zeros. A warp has a cell, a lane four places at a time.
template <class Numbers> __device__ inline void pack(const M2lView &v) {
  using Real = typename Numbers::Packed;
  using Out = typename Numbers::Out;
  const size_t cell = size_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  if (cell > v.zero_row) return;
  const Out *multipole = static_cast<const Out *>(v.multipoles) + cell * v.n;
  const auto coefficient = [&](unsigned place) {
    const uint32_t k = v.order[place];
    const Out x = cell < v.zero_row && k != NONE ? multipole[k] : Out(0);
    return Numbers::SCALED ? Out(x * v.source_scale[place]) : x;
  };
  Out scale = 1;
  if constexpr (Numbers::SCALED) {
    uint32_t largest = 0;
    for (unsigned place = lane; place < v.pitch; place += 32) largest = max(largest, exponent_of(coefficient(place)));
    largest = __reduce_max_sync(~0u, largest);
    const int up = largest > 0 && largest < EXPONENT ? min(int(LARGEST) - int(largest), MOST_UP) : 0;
    scale = power_of_two(up);
    // Cells without any coefficient err by nothing.
    if (lane == 0) v.cell_scale[cell] = largest > 0 ? float(power_of_two(-up)) : 0.0f;
  }
  Real *to = static_cast<Real *>(v.packed) + cell * v.pitch;
  for (unsigned place = 4 * lane; place < v.pitch; place += 128) {
    Real x[4];
#pragma unroll
    for (unsigned j = 0; j < 4; j++) x[j] = Real(scale * coefficient(place + j));
    if constexpr (Numbers::SPLIT) {
      const uint32_t high[2] = {packed_two(Numbers(), x[0], x[1]), packed_two(Numbers(), x[2], x[3])};
      const float2 a = values(Numbers(), high[0]), b = values(Numbers(), high[1]);
      *reinterpret_cast<uint4 *>(to + place) =
          make_uint4(high[0], high[1], packed_two(Numbers(), x[0] - a.x, x[1] - a.y), packed_two(Numbers(), x[2] - b.x, x[3] - b.y));
    } else {
#pragma unroll
      for (unsigned j = 0; j < 4; j++)
        if constexpr (sizeof(Real) == 4)
          to[place + j] = tf32(x[j]);
        else
          to[place + j] = x[j];
    }
  }
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
// The sources of every target by tile and slot. A block has half a tile, whose rows are put together in shared memory, so that whole
// sectors are written.
__global__ void __launch_bounds__(256) m2l_table(M2lView v) {
  constexpr unsigned HALF = CELLS / 2, ROWS = 352;
  __shared__ uint32_t rows[ROWS][HALF + 1];
  const size_t tile = blockIdx.x / 2;
  if (!in_share(v, tile)) return;
  const unsigned first = blockIdx.x % 2 * HALF, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t *cells = v.tiles + tile * CELLS + first;
  for (unsigned begin = 0; begin < v.slots; begin += ROWS) {
    const unsigned count = min(ROWS, v.slots - begin);
    for (unsigned row = warp; row < count; row += 8) rows[row][lane] = NONE;
    __syncthreads();
    for (unsigned t = warp; t < HALF; t += 8) {
      const uint32_t cell = cells[t];
      if (cell == NONE) break;
      const uint32_t *slot_of = v.slot_of + v.octant[cell] * v.classes;
      for (uint64_t i = v.list.start[cell] + lane; i < v.list.start[cell + 1]; i += 32) {
        const uint2 pair = reinterpret_cast<const uint2 *>(v.list.pairs)[i];
        const uint32_t slot = slot_of[pair.y];
        if (slot == NONE)
          *v.fault = 1;
        else if (slot - begin < count)
          rows[slot - begin][t] = pair.x;
      }
    }
    __syncthreads();
    uint32_t *to = v.table + (tile * v.slots + begin) * CELLS + first;
    for (unsigned row = warp; row < count; row += 8) to[row * CELLS + lane] = rows[row][lane];
    __syncthreads();
  }
}

__global__ void __launch_bounds__(TILE) m2l_pack_f32(M2lView v) { pack<Tf32>(v); }
__global__ void __launch_bounds__(TILE) m2l_pack_split_f32(M2lView v) { pack<Bf16>(v); }
__global__ void __launch_bounds__(TILE) m2l_pack_half_f64(M2lView v) { pack<Halves>(v); }
__global__ void __launch_bounds__(TILE) m2l_pack_f64(M2lView v) { pack<Double>(v); }
__global__ void __launch_bounds__(TILE) m2l_parts_f32(M2lView v) { add_parts<float>(v); }
__global__ void __launch_bounds__(TILE) m2l_parts_f64(M2lView v) { add_parts<double>(v); }

// By the number of 8 columns that a block has. Columns in two blocks gather twice.
#define M2L(NAME, NUMBERS, TILES, BLOCKS) \
  __global__ void __launch_bounds__(BLOCK, BLOCKS) m2l_dense_##NAME##_##TILES(M2lView v) { m2l<NUMBERS, TILES>(v); }
#define M2L_F32(TILES, BLOCKS) M2L(f32, Tf32, TILES, BLOCKS) M2L(split_f32, Bf16, TILES, BLOCKS)
M2L_F32(1, 4)
M2L_F32(2, 4)
M2L_F32(4, 4)
M2L_F32(5, 4)
M2L_F32(7, 3)
M2L_F32(8, 3)
M2L_F32(9, 3)
M2L_F32(11, 2)
M2L_F32(13, 2)
M2L(half_f64, Halves, 1, 4)
M2L(half_f64, Halves, 2, 4)
M2L(half_f64, Halves, 4, 2)
M2L(half_f64, Halves, 5, 2)
M2L(half_f64, Halves, 7, 2)
M2L(half_f64, Halves, 8, 2)
M2L(half_f64, Halves, 9, 2)
M2L(f64, Double, 1, 2)
M2L(f64, Double, 2, 2)
M2L(f64, Double, 4, 2)
M2L(f64, Double, 5, 2)
M2L(f64, Double, 6, 2)
}
