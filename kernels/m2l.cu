// M2L on the tensor cores.
//
// A block owns two tiles of target cells, each of one level and octant: where the octants are the same they meet the same operators,
// else one tile waits for the other. A warp owns 32 targets and keeps their sums in registers. The block goes through the operators in
// a fixed order; each is a product of the sources' coefficients, gathered row by row (zeros where a target has no such source), and the
// operator's matrix, which comes to shared memory in pieces, two pieces ahead. Matrices and coefficients lie in memory in the order in
// which lanes need them. Operators whose offsets differ by mirrors share a matrix: mirrors along the axes only change signs, of the
// sources as they are gathered and of the sums where the mirror changes.
//
// Single precision multiplies in TF32 (11 bits), or with SPLIT in three products of numbers cut into two of bf16 (8 bits each), at the
// price of one and a half: an error of 2^-16 of each coefficient. Double precision has tensor cores of its own.
#include "tree.cuh"

constexpr unsigned WARPS = 4, BLOCK = 32 * WARPS;
// Pieces of matrices in shared memory.
constexpr unsigned STAGES = 3;

// What a lane has of a step of 16 coefficients of one cell: 4 of them, or with SPLIT the high halves of 4 and then the low halves.
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
__device__ inline void mma_bf16(float *low, float *high, const uint32_t *a, const uint32_t *b, const uint32_t *m) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(low[0]), "+f"(low[1]), "+f"(high[0]), "+f"(high[1])
      : "r"(a[0]), "r"(b[0]), "r"(a[1]), "r"(b[1]), "r"(m[0]), "r"(m[1]));
}
__device__ inline void mma_bf16_half(float *low, float *high, uint32_t a, uint32_t b, uint32_t m) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(low[0]), "+f"(low[1]), "+f"(high[0]), "+f"(high[1])
      : "r"(a), "r"(b), "r"(m));
}
__device__ inline void mma(double *sum, double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+d"(sum[0]), "+d"(sum[1])
      : "d"(a), "d"(b));
}

// Adds the product of 16 (HALF: 8) coefficients of 32 cells and the columns of the block.
template <bool SPLIT, unsigned TILES, bool HALF>
__device__ inline void product(float (*sum)[TILES][2], const Quad<float> *a, const float *matrix, unsigned lane) {
#pragma unroll
  for (unsigned c = 0; c < TILES; c++) {
    Quad<float> b;
    b.load(matrix + (c * 32 + lane) * 4);
#pragma unroll
    for (unsigned r = 0; r < 4; r += 2) {
      if constexpr (SPLIT) {
        // Tensor cores cut sums off instead of rounding them: a long sum of theirs would drift. So they add few terms.
        float few[2][2] = {};
        if constexpr (HALF) {
          mma_bf16_half(few[0], few[1], a[r].x[2], a[r + 1].x[2], b.x[0]);
          mma_bf16_half(few[0], few[1], a[r].x[0], a[r + 1].x[0], b.x[2]);
          mma_bf16_half(few[0], few[1], a[r].x[0], a[r + 1].x[0], b.x[0]);
        } else {
          mma_bf16(few[0], few[1], a[r].x + 2, a[r + 1].x + 2, b.x);
          mma_bf16(few[0], few[1], a[r].x, a[r + 1].x, b.x + 2);
          mma_bf16(few[0], few[1], a[r].x, a[r + 1].x, b.x);
        }
#pragma unroll
        for (unsigned k = 0; k < 4; k++) sum[r + k / 2][c][k % 2] += few[k / 2][k % 2];
      } else {
        mma_tf32(sum[r][c], sum[r + 1][c], a[r].x, a[r + 1].x, b.x);
        if constexpr (!HALF) mma_tf32(sum[r][c], sum[r + 1][c], a[r].x + 2, a[r + 1].x + 2, b.x + 2);
      }
    }
  }
}
template <bool, unsigned TILES, bool HALF>
__device__ inline void product(double (*sum)[TILES][2], const Quad<double> *a, const double *matrix, unsigned lane) {
#pragma unroll
  for (unsigned c = 0; c < TILES; c++) {
    Quad<double> b;
    b.load(matrix + (c * 32 + lane) * 4);
#pragma unroll
    for (unsigned e = 0; e < (HALF ? 2 : 4); e++)
#pragma unroll
      for (unsigned r = 0; r < 4; r++) mma(sum[r][c], a[r].x[e], b.x[e]);
  }
}

__device__ inline void copy_ahead(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(to))), "l"(from));
}
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;"); }
template <int LEFT> __device__ inline void await_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

// The matrices of one block, piece after piece.
template <typename Real, unsigned TILES> struct Pieces {
  static constexpr unsigned STEP = TILES * 128; // reals of a step
  const M2lView &v;
  Real *ring;                   // [STAGES][chunk][STEP]
  const uint8_t *active[2];
  const uint32_t *operators;
  unsigned end, first;
  unsigned slot, chunk = 0;     // to be copied next

  // The next operator that a target of the block has a source for.
  __device__ unsigned after(unsigned s) const {
    do s++;
    while (s < end && !(active[0][s] | active[1][s]));
    return s;
  }
  __device__ void copy(unsigned stage) {
    if (slot < end) {
      const unsigned k = chunk * v.chunk, count = min(v.chunk, v.steps - k) * STEP;
      const auto *from = static_cast<const Real *>(v.matrices) + (size_t(operators[slot] & 0x1fffffff) * v.steps + k) * v.columns * 128 + first * 128;
      Real *to = ring + stage * v.chunk * STEP;
      constexpr unsigned PER = 16 / sizeof(Real);
      for (unsigned i = threadIdx.x * PER; i < count; i += BLOCK * PER)
        copy_ahead(to + i, from + size_t(i / STEP) * v.columns * 128 + i % STEP);
      if (++chunk * v.chunk >= v.steps) {
        chunk = 0;
        slot = after(slot);
      }
    }
    end_copies();
  }
};

template <typename Real, bool SPLIT, unsigned TILES> __device__ inline void m2l(const M2lView &v) {
  extern __shared__ uint4 memory[];
  Real *ring = reinterpret_cast<Real *>(memory);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const unsigned blocks = v.columns / TILES, first = blockIdx.x % blocks * TILES;
  const uint32_t pair = blockIdx.x / blocks;
  const uint32_t tiles[2] = {2 * pair, min(2 * pair + 1, v.tiles_len - 1)};
  const unsigned octants[2] = {v.octant[v.tiles[size_t(tiles[0]) * CELLS]], v.octant[v.tiles[size_t(tiles[1]) * CELLS]]};
  const unsigned mine = warp / 2, base = warp % 2 * 32;
  const bool alone = octants[0] == octants[1];
  const bool there = 2 * pair + mine < v.tiles_len;
  const unsigned begin = v.slots * blockIdx.y / v.parts, end = v.slots * (blockIdx.y + 1) / v.parts;
  const auto *from = static_cast<const Real *>(v.from);
  const uint32_t *table = v.table + size_t(tiles[mine]) * v.slots * CELLS + base + g;

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
  for (unsigned pass = 0; pass < (alone ? 1 : 2); pass++) {
    const bool works = there && (alone || mine == pass);
    const uint8_t *active[2] = {v.active + size_t(tiles[alone ? 0 : pass]) * v.slots, v.active + size_t(tiles[alone ? 1 : pass]) * v.slots};
    Pieces<Real, TILES> pieces{v, ring, {active[0], active[1]}, v.operators + octants[pass] * v.slots, end, first, 0};
    unsigned slot = pieces.slot = pieces.after(begin - 1);
    pieces.copy(0);
    pieces.copy(1);
    unsigned stage = 0;
    // The sources of a slot, and their next step on its way.
    uint32_t source[4];
    const Real *row[4];
    Quad<Real> ahead[4];
    bool any = false;
    const auto look = [&](unsigned s) {
#pragma unroll
      for (unsigned r = 0; r < 4; r++) source[r] = works && s < end ? table[size_t(s) * CELLS + 8 * r] : NONE;
    };
    const auto turn = [&]() {
      any = __any_sync(~0u, (source[0] & source[1] & source[2] & source[3]) != NONE);
      if (!any) return;
#pragma unroll
      for (unsigned r = 0; r < 4; r++) {
        row[r] = from + size_t(min(source[r], v.zero_row)) * v.pitch + 4 * t;
        ahead[r].load(row[r]);
      }
    };
    look(slot);
    turn();
    while (slot < end) {
      const unsigned following = pieces.after(slot);
      const unsigned axes = pieces.operators[slot] >> 29;
      const bool here = any;
      look(following);
      if (here && axes != mirror) {
        mirror_by(axes ^ mirror);
        mirror = axes;
      }
      const uint32_t *signs = v.source_signs + axes * v.pitch + 4 * t;
      for (unsigned k0 = 0; k0 < v.steps; k0 += v.chunk) {
        await_copies<1>();
        // All see the piece, and nobody reads what is copied to next.
        __syncthreads();
        pieces.copy(stage == 0 ? 2 : stage - 1);
        const Real *matrix = ring + stage * v.chunk * Pieces<Real, TILES>::STEP;
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        const unsigned until = min(k0 + v.chunk, v.steps);
        if (!here) {
          if (until == v.steps) turn();
          continue;
        }
        for (unsigned k = k0; k < until; k++, matrix += Pieces<Real, TILES>::STEP) {
          const uint4 sign = *reinterpret_cast<const uint4 *>(signs + 16 * k);
          Quad<Real> a[4];
#pragma unroll
          for (unsigned r = 0; r < 4; r++) {
            a[r] = ahead[r];
            a[r].flip(sign);
          }
          const bool last = k + 1 == v.steps;
          if (last)
            turn();
          else
#pragma unroll
            for (unsigned r = 0; r < 4; r++) ahead[r].load(row[r] + 16 * (k + 1));
          if (last && v.half)
            product<SPLIT, TILES, true>(sum, a, matrix, lane);
          else
            product<SPLIT, TILES, false>(sum, a, matrix, lane);
        }
      }
      slot = following;
    }
    await_copies<0>();
    __syncthreads();
  }
  mirror_by(mirror);
  if (!there) return;
  Real *to = static_cast<Real *>(v.to);
  const uint32_t *cells = v.tiles + size_t(tiles[mine]) * CELLS + base + g;
#pragma unroll
  for (unsigned r = 0; r < 4; r++) {
    const uint32_t cell = cells[8 * r];
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
          static_cast<Real *>(v.partial)[(size_t(blockIdx.y) * v.cells + cell) * v.n + k] = sum[r][c][j];
      }
  }
}

__device__ inline float tf32(float x) {
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return __uint_as_float(y);
}
// Two numbers of 8 bits, the first in the low half.
__device__ inline uint32_t bf16(float x, float y) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
  return both;
}

// The coefficients of all cells in the order of the lanes, and a row of zeros. A thread has four places.
template <typename Real, bool SPLIT> __device__ inline void pack(const M2lView &v) {
  const size_t i = 4 * (size_t(blockIdx.x) * TILE + threadIdx.x);
  const size_t cell = i / v.pitch;
  if (cell > v.zero_row) return;
  const auto *multipoles = static_cast<const Real *>(v.multipoles);
  Real x[4];
#pragma unroll
  for (unsigned j = 0; j < 4; j++) {
    const uint32_t k = v.order[i % v.pitch + j];
    x[j] = cell < v.zero_row && k != NONE ? multipoles[cell * v.n + k] : Real(0);
  }
  Real *to = static_cast<Real *>(v.packed) + i;
  if constexpr (SPLIT) {
    const uint32_t high[2] = {bf16(x[0], x[1]), bf16(x[2], x[3])};
#pragma unroll
    for (unsigned j = 0; j < 4; j++) x[j] -= __uint_as_float(j % 2 == 0 ? high[j / 2] << 16 : high[j / 2] & 0xffff0000);
    *reinterpret_cast<uint4 *>(to) = make_uint4(high[0], high[1], bf16(x[0], x[1]), bf16(x[2], x[3]));
  } else {
#pragma unroll
    for (unsigned j = 0; j < 4; j++)
      if constexpr (sizeof(Real) == 4)
        to[j] = tf32(x[j]);
      else
        to[j] = x[j];
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

// Which slots of a tile have a source. A warp works for one.
__global__ void __launch_bounds__(256) m2l_active(M2lView v) {
  const size_t place = size_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (place >= size_t(v.tiles_len) * v.slots) return;
  const uint32_t *sources = v.table + place * CELLS + threadIdx.x % 32;
  const bool any = __any_sync(~0u, (sources[0] & sources[32]) != NONE);
  if (threadIdx.x % 32 == 0) v.active[place] = any;
}

__global__ void __launch_bounds__(TILE) m2l_pack_f32(M2lView v) { pack<float, false>(v); }
__global__ void __launch_bounds__(TILE) m2l_pack_split_f32(M2lView v) { pack<float, true>(v); }
__global__ void __launch_bounds__(TILE) m2l_pack_f64(M2lView v) { pack<double, false>(v); }
__global__ void __launch_bounds__(TILE) m2l_parts_f32(M2lView v) { add_parts<float>(v); }
__global__ void __launch_bounds__(TILE) m2l_parts_f64(M2lView v) { add_parts<double>(v); }

// By the number of 8 columns that a block has. Columns in two blocks gather twice.
#define M2L_F32(TILES, BLOCKS)                                                                                             \
  __global__ void __launch_bounds__(BLOCK, BLOCKS) m2l_dense_f32_##TILES(M2lView v) { m2l<float, false, TILES>(v); }       \
  __global__ void __launch_bounds__(BLOCK, BLOCKS) m2l_dense_split_f32_##TILES(M2lView v) { m2l<float, true, TILES>(v); }
#define M2L_F64(TILES) \
  __global__ void __launch_bounds__(BLOCK, 2) m2l_dense_f64_##TILES(M2lView v) { m2l<double, false, TILES>(v); }
M2L_F32(1, 4)
M2L_F32(2, 4)
M2L_F32(4, 4)
M2L_F32(5, 4)
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
