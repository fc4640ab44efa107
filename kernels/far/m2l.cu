// M2L on the tensor cores.
//
// A warp owns 32 target cells of one level and octant, so that all of them meet the same operators,
// and keeps their sums in registers. It goes through the operators in a fixed order. Each is a
// product of the sources' coefficients, gathered row by row (zeros where a target has no source at
// this offset), and the operator's matrix. Both lie in memory in the order in which lanes need
// them. The warps of a block keep step, and read one matrix. It serves all operators whose offsets
// differ by mirrors along the axes, which only change signs: of the sources as they are gathered, and
// of the sums where the mirror changes.
#include "far/m2l_steps.cuh"

// An operator's matrix; the bits above are the axes that it is mirrored along. And a slot in which a warp has no source.
constexpr uint32_t MATRIX = 0x1fffffff, IDLE = 0x80000000;

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
  using Steps = typename StepsOf<Numbers, TILES>::Type;
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const unsigned blocks = v.columns / TILES, first = blockIdx.x % blocks * TILES;
  const uint32_t warp = blockIdx.x / blocks * (blockDim.x / 32) + threadIdx.x / 32, tile = warp / (CELLS / 32);
  // Warps beyond the last tile, and those of tiles that another GPU sums, only keep step, and copy matrices where
  // these go through shared memory.
  const bool works = tile < v.tiles_len && in_share(v, tile);
  if (!__syncthreads_or(works)) return;
  const unsigned base = warp % (CELLS / 32) * 32;
  const uint32_t *cells = v.tiles + size_t(tile < v.tiles_len ? tile : v.tiles_len - 1) * CELLS;
  const unsigned octant = v.octant[cells[0]];
  const unsigned begin = v.slots * blockIdx.y / v.parts, end = v.slots * (blockIdx.y + 1) / v.parts;
  const auto *from = static_cast<const Real *>(v.from) + 4 * t;
  const size_t step = v.columns * 128;
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
  // The sources of the slot after the one that is being copied.
  uint32_t next[4];
  unsigned looked = begin;
  const auto look = [&] {
#pragma unroll
    for (unsigned r = 0; r < 4; r++) next[r] = works && looked < end ? table[size_t(looked) * CELLS + 8 * r] : NONE;
  };
  look();
  // The step that is brought next.
  Steps steps;
  const Real *row[4], *matrix = matrices;
  const uint32_t *signs = v.source_signs;
  bool there[4], any = false;
  unsigned left = 0;
  const auto bring = [&] {
    if (left == 0) {
      unsigned slot = end;
      uint32_t op = 0;
      while (looked < end) {
        slot = looked++;
        any = __any_sync(~0u, (next[0] & next[1] & next[2] & next[3]) != NONE);
        const float *scale[4];
#pragma unroll
        for (unsigned r = 0; r < 4; r++) {
          there[r] = next[r] != NONE;
          const uint32_t cell = min(next[r], v.zero_row);
          row[r] = from + size_t(cell) * v.pitch;
          scale[r] = v.cell_scale + cell;
        }
        look();
        if (__syncthreads_or(any)) {
          op = v.operators[octant * v.slots + slot];
          left = v.steps;
          if constexpr (Numbers::SCALED) {
#pragma unroll
            for (unsigned r = 0; r < 4; r++) steps.bring_scale(r, scale[r], there[r]);
          }
          break;
        }
        slot = end;
      }
      matrix = matrices + (op & MATRIX) * v.steps * step;
      signs = v.source_signs + (op >> 29) * v.pitch + 4 * t;
      steps.bring_slot(make_uint2(any ? slot : slot | IDLE, op));
    }
    if (left > 0) {
      steps.bring_matrix(matrix);
      matrix += step;
      if (any) {
        steps.bring_signs(signs);
        signs += 16;
#pragma unroll
        for (unsigned r = 0; r < 4; r++) {
          steps.bring_row(r, row[r], there[r]);
          row[r] += 16;
        }
      }
      left--;
    }
    steps.end_bringing();
  };
#pragma unroll 1
  for (unsigned i = 0; i < Steps::AHEAD; i++) bring();
  while (true) {
    const uint2 slot = steps.slot();
    if ((slot.x & ~IDLE) >= end) break;
    const bool idle = slot.x & IDLE;
    const unsigned axes = slot.y >> 29;
    if (axes != mirror) {
      mirror_by(axes ^ mirror);
      mirror = axes;
    }
    // Cells have scales of their own. The steps of an operator are added up first: the whole is rounded once an operator,
    // not once a step.
    Real of_slot[Numbers::SCALED ? 4 : 1][TILES][2] = {};
    Real(*const to_sum)[TILES][2] = Numbers::SCALED ? of_slot : sum;
    float scale[4];
    // Takes the next step, and has one more brought to where the last one was.
    const auto take = [&](Quad<Real> *a, bool first) -> const Real * {
      steps.wait();
      if constexpr (Numbers::SCALED) {
#pragma unroll
        for (unsigned r = 0; r < 4; r++)
          if (first) scale[r] = steps.scale(r);
      }
      const Real *matrix = steps.take(a);
      bring();
      return matrix;
    };
    const unsigned whole = v.steps - v.half;
#pragma unroll 1
    for (unsigned k = 0; k < whole; k++) {
      Quad<Real> a[4];
      const Real *matrix = take(a, k == 0);
      if (!idle) product<Numbers, TILES, false>(to_sum, a, matrix, lane);
    }
    if (v.half) {
      Quad<Real> a[4];
      const Real *matrix = take(a, whole == 0);
      if (!idle) product<Numbers, TILES, true>(to_sum, a, matrix, lane);
    }
    if constexpr (Numbers::SCALED) {
      if (idle) continue;
#pragma unroll
      for (unsigned r = 0; r < 4; r++)
#pragma unroll
        for (unsigned c = 0; c < TILES; c++)
#pragma unroll
          for (unsigned j = 0; j < 2; j++) sum[r][c][j] = fmaf(of_slot[r][c][j], scale[r], sum[r][c][j]);
    }
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
