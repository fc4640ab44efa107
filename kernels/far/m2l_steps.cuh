// What M2L multiplies next, on its way while the steps before are multiplied.
//
// A step is 16 coefficients of a slot: of the lane's cells, with their signs, and the rows of the operator's matrix. The first step of
// a slot brings the scales of its cells, the slot's number and its operator too.
#pragma once
#include "far/m2l_numbers.cuh"

constexpr unsigned WARPS = 4, BLOCK = 32 * WARPS;

// Copies the 4 or 16 bytes at `from` to shared memory, or as many zeros. Waits for nothing.
template <typename Word> __device__ inline void copy(Word *to, const void *from, bool there = true) {
  static_assert(sizeof(Word) == 4 || sizeof(Word) == 16, "what can be copied");
  const unsigned at = unsigned(__cvta_generic_to_shared(to)), bytes = there ? sizeof(Word) : 0;
  if constexpr (sizeof(Word) == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

// Steps in shared memory, which the warps of a block fill together: one is multiplied, the others are on their way.
template <class Numbers, unsigned TILES> class InShared {
  using Real = typename Numbers::Packed;
  static constexpr unsigned STAGES = 3, SCALES = Numbers::SCALED ? 4 : 1;
  struct Stage {
    Real matrix[TILES * 128];
    uint4 row[4][BLOCK], sign[WARPS][4];
    float scale[SCALES][Numbers::SCALED ? BLOCK : 1];
    uint2 slot[BLOCK];
  };
  Stage *stages;
  unsigned now = 0, to = 0;

public:
  static constexpr unsigned AHEAD = STAGES - 1;
  __device__ InShared() {
    __shared__ Stage all[STAGES];
    stages = all;
  }
  __device__ void bring_slot(uint2 slot) { stages[to].slot[threadIdx.x] = slot; }
  __device__ void bring_scale(unsigned r, const float *from, bool there) { copy(&stages[to].scale[r][threadIdx.x], from, there); }
  __device__ void bring_row(unsigned r, const Real *from, bool there) { copy(&stages[to].row[r][threadIdx.x], from, there); }
  // Of the first four lanes of a warp: they are those of all.
  __device__ void bring_signs(const uint32_t *from) {
    if (threadIdx.x % 32 < 4) copy(&stages[to].sign[threadIdx.x / 32][threadIdx.x % 32], from);
  }
  // Each warp copies a part of the same matrix: a slot has one for all octants.
  __device__ void bring_matrix(const Real *from) {
    for (unsigned i = threadIdx.x; i < TILES * 32; i += blockDim.x) copy(reinterpret_cast<uint4 *>(stages[to].matrix + 4 * i), from + 4 * i);
  }
  // The step is whole, even if it is none.
  __device__ void end_bringing() {
    asm volatile("cp.async.commit_group;" ::: "memory");
    to = to + 1 == STAGES ? 0 : to + 1;
  }
  __device__ uint2 slot() const { return stages[now].slot[threadIdx.x]; }
  __device__ void wait() const {
    asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD - 1) : "memory");
    __syncthreads();
  }
  __device__ float scale(unsigned r) const { return stages[now].scale[r][threadIdx.x]; }
  // Takes the step, whose matrix stays until the next one is waited for.
  __device__ const Real *take(Quad<Real> *rows) {
    const Stage &stage = stages[now];
    const uint4 sign = stage.sign[threadIdx.x / 32][threadIdx.x % 4];
#pragma unroll
    for (unsigned r = 0; r < 4; r++) {
      rows[r].load(reinterpret_cast<const Real *>(&stage.row[r][threadIdx.x]));
      rows[r].flip(sign);
    }
    now = now + 1 == STAGES ? 0 : now + 1;
    return stage.matrix;
  }
};

// The same in registers, one step ahead, and matrices through the first-level cache: for products of one piece these come in time. Double
// precision would be held up by twice the bytes through shared memory.
template <class Numbers> class InRegisters {
  using Real = typename Numbers::Packed;
  static_assert(!Numbers::SCALED, "cells have no scales here");
  Quad<Real> row[4];
  uint4 sign = {};
  const Real *matrix = nullptr;
  uint2 of_slot = {};

public:
  static constexpr unsigned AHEAD = 1;
  __device__ void bring_slot(uint2 slot) { of_slot = slot; }
  __device__ void bring_row(unsigned r, const Real *from, bool) { row[r].load(from); }
  __device__ void bring_signs(const uint32_t *from) { sign = *reinterpret_cast<const uint4 *>(from); }
  __device__ void bring_matrix(const Real *from) { matrix = from; }
  __device__ void end_bringing() {}
  __device__ uint2 slot() const { return of_slot; }
  __device__ void wait() const {}
  __device__ const Real *take(Quad<Real> *rows) {
#pragma unroll
    for (unsigned r = 0; r < 4; r++) {
      rows[r] = row[r];
      rows[r].flip(sign);
    }
    return matrix;
  }
};

template <class Numbers, unsigned TILES, bool = Numbers::SPLIT> struct StepsOf { using Type = InShared<Numbers, TILES>; };
template <class Numbers, unsigned TILES> struct StepsOf<Numbers, TILES, false> { using Type = InRegisters<Numbers>; };
