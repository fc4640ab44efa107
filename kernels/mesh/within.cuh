// Which bodies may be within the cut-off of which targets, by products on tensor cores.
#pragma once
#include "common/real.cuh"
#include "common/shared.cuh"

// A body and its strength: from the corner of its cell, or from the center of a brick.
template <typename Real> struct alignas(4 * sizeof(Real)) InCell {
  Real x, y, z, q;
};

// The part of a number that TF32 has.
__device__ inline float high_part(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

// d += a b, of 16 rows, 8 columns and 8 terms.
__device__ inline void multiply(float (&d)[4], const float (&a)[4], float b0, float b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b0)),
        "r"(__float_as_uint(b1)));
}

// The body of an array in shared memory.
template <typename Real> __device__ inline InCell<Real> load_body(unsigned held, unsigned index) {
  InCell<Real> s;
  load_shared(held + sizeof(s) * index, s.x, s.y, s.z, s.q);
  return s;
}

// The targets of a warp for products: row 8 r + g is the target of lane 4 g + r. Squares of distances less one of the reach are the products of
// (x, y, z, |x|^2 in two parts, 1, 1, 0) of a target and (-2 x, -2 y, -2 z, 1, 1, |x|^2 less that square in two parts, 0) of a source.
struct Rows {
  float a[2][4];

  __device__ Rows(bool is_there, float x, float y, float z) {
    const unsigned lane = threadIdx.x % 32, t = lane % 4;
    const float square = is_there ? x * x + y * y + z * z : 1e30f, high = high_part(square), low = square - high;
#pragma unroll
    for (unsigned r = 0; r < 4; r++) {
      const unsigned from = lane / 4 * 4 + r;
      const float rx = __shfl_sync(~0u, x, from), ry = __shfl_sync(~0u, y, from), rz = __shfl_sync(~0u, z, from);
      const float rh = __shfl_sync(~0u, high, from), rl = __shfl_sync(~0u, low, from);
      a[r / 2][r % 2] = t == 0 ? rx : t == 1 ? ry : t == 2 ? rz : rh;
      a[r / 2][2 + r % 2] = t == 0 ? rl : t == 3 ? 0.0f : 1.0f;
    }
  }

  // Which of 32 listed bodies may be within the reach of the lane's target: a bit for each. Addresses are in shared memory.
  template <typename Real> __device__ unsigned within(unsigned held, unsigned listed, float reach2) const {
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    unsigned of_row[4] = {};
#pragma unroll
    for (unsigned block = 0; block < 4; block++) {
      // The body whose bit the products of this column become.
      const InCell<Real> s = load_body<Real>(held, load_shared_u16(listed + 2 * (8 * (g / 2) + 7 - 2 * block - g % 2)));
      const float x = float(s.x), y = float(s.y), z = float(s.z), square = fused(x, x, fused(y, y, fused(z, z, -reach2))), high = high_part(square);
      const float b0 = t == 0 ? -2 * x : t == 1 ? -2 * y : t == 2 ? -2 * z : 1.0f;
      const float b1 = t == 0 ? 1.0f : t == 1 ? high : t == 2 ? square - high : 0.0f;
#pragma unroll
      for (unsigned half = 0; half < 2; half++) {
        float d[4] = {};
        multiply(d, a[half], b0, b1);
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
          unsigned &bits = of_row[2 * half + k / 2];
          bits = __funnelshift_l(__float_as_uint(d[k]), bits, 1);
        }
      }
    }
    // Lanes 4 g to 4 g + 3 have a byte for each of four rows, and want all bytes of one.
    const unsigned mine = of_row[0] | of_row[1] << 8 | of_row[2] << 16 | of_row[3] << 24;
    const unsigned pairs = __byte_perm(mine, __shfl_xor_sync(~0u, mine, 1), t % 2 ? 0x3715 : 0x6240);
    return __byte_perm(pairs, __shfl_xor_sync(~0u, pairs, 2), t / 2 ? 0x3276 : 0x5410);
  }
};

// The middle of a coordinate of the targets of a warp, and how far they reach from it.
template <typename Real> struct Extent {
  Real middle, half;

  __device__ Extent(bool is_there, Real x) {
    Real low = is_there ? x : Real(1e30), high = is_there ? x : Real(-1e30);
    for (unsigned d = 16; d > 0; d /= 2) {
      low = min(low, __shfl_xor_sync(~0u, low, d));
      high = max(high, __shfl_xor_sync(~0u, high, d));
    }
    middle = Real(0.5) * (low + high);
    half = Real(0.5) * (high - low);
  }

  __device__ Real gap(Real x) const { return max(abs(x - middle) - half, Real(0)); }
};
