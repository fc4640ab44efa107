// The numbers that M2L multiplies on the tensor cores, and their products.
//
// Single precision multiplies in TF32 (11 bits), or in three products of numbers that are each the
// sum of two of bf16 (8 bits each), at the price of one and a half products, with an error of 2^-16
// of each coefficient. Double precision has tensor cores of its own, or three products of halves (11 bits
// each), with an error of 2^-22 of each coefficient, at least 2^-39 of the cell's largest. Their exponents are so
// short that all numbers are scaled by powers of two: the matrices before, each cell's coefficients as they are packed.
#pragma once
#include "common/tensor.cuh"
#include "common/tree.cuh"

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
