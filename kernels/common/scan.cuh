// Sums over the threads of a block, and running sums over the tiles of a launch in one pass over memory.
#pragma once
#include <cstdint>

constexpr unsigned ALL = 0xffffffff;

// A tile publishes a word: its sum (40 bits), what is known (2 bits), and the number of the launch (22 bits), so that words of
// earlier launches mean nothing and need not be cleared.
constexpr uint64_t OWN = 1, WHOLE = 2;  // the sum of this tile; of it and all before it
constexpr unsigned VALUE_BITS = 40;

__device__ inline uint64_t published(uint64_t epoch, uint64_t known, uint64_t value) {
  return (epoch << 2 | known) << VALUE_BITS | value;
}
__device__ inline uint64_t value_of(uint64_t word) { return word & ((uint64_t(1) << VALUE_BITS) - 1); }
__device__ inline uint64_t known_of(uint64_t word, uint64_t epoch) {
  return word >> (VALUE_BITS + 2) == epoch ? word >> VALUE_BITS & 3 : 0;
}

// The next tile of a launch. Tiles are numbered in the order in which blocks start, so that no block waits for one that cannot.
__device__ inline unsigned next_tile(uint32_t *ticket) {
  __shared__ unsigned tile;
  __syncthreads();
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1u);
  __syncthreads();
  return tile;
}

// The sum of all tiles before this one, whose own is `sum`. By a whole warp.
__device__ inline uint64_t before_tile(volatile uint64_t *status, uint64_t epoch, unsigned tile, uint64_t sum) {
  const unsigned lane = threadIdx.x % 32;
  if (lane == 0) status[tile] = published(epoch, tile == 0 ? WHOLE : OWN, sum);
  uint64_t before = 0;
  for (int64_t last = int64_t(tile) - 1; last >= 0; last -= 32) {
    const int64_t from = last - lane;
    // Before the first tile everything is known.
    uint64_t word = published(epoch, WHOLE, 0);
    do {
      if (from >= 0) word = status[from];
    } while (!__all_sync(ALL, known_of(word, epoch) != 0));
    const unsigned whole = __ballot_sync(ALL, known_of(word, epoch) == WHOLE);
    const unsigned stop = whole ? __ffs(whole) - 1 : 31;
    uint64_t part = lane <= stop ? value_of(word) : 0;
    for (unsigned d = 16; d > 0; d /= 2) part += __shfl_xor_sync(ALL, part, d);
    before += part;
    if (whole) break;
  }
  if (lane == 0 && tile > 0) status[tile] = published(epoch, WHOLE, before + sum);
  return before;
}

// The sum over the lanes before this one.
__device__ inline uint32_t warp_exclusive(uint32_t value) {
  const unsigned lane = threadIdx.x % 32;
  uint32_t sum = value;
  for (unsigned d = 1; d < 32; d *= 2) {
    const uint32_t other = __shfl_up_sync(ALL, sum, d);
    if (lane >= d) sum += other;
  }
  return sum - value;
}

// The sum over the threads before this one, and in `total` over all, of a block of at most 1024.
__device__ inline uint32_t block_exclusive(uint32_t value, uint32_t &total) {
  __shared__ uint32_t warps[33];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t before = warp_exclusive(value);
  __syncthreads();
  if (lane == 31) warps[warp] = before + value;
  __syncthreads();
  if (warp == 0) {
    const uint32_t sum = lane < blockDim.x / 32 ? warps[lane] : 0;
    const uint32_t first = warp_exclusive(sum);
    __syncwarp();
    warps[lane] = first;
    if (lane == 31) warps[32] = first + sum;
  }
  __syncthreads();
  total = warps[32];
  return warps[warp] + before;
}
