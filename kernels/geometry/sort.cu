// Keys, and their stable sort by digits of 8 bits, least significant first: one pass over memory for each digit. A tile learns
// from the tiles before it where its keys go, while it holds them. Compiled without fused multiply-add.
#include "arguments/geometry.cuh"
#include "geometry/key.cuh"
#include "common/scan.cuh"

constexpr unsigned WARPS = THREADS / 32;

__device__ inline unsigned digit_of(uint64_t key, unsigned digit) { return unsigned(key >> (8 * digit)) & (RADIX - 1); }

// The keys of the positions, and how many there are of each value of each digit.
template <class Key> __device__ inline void make_keys(const SortView &v, Key key_of) {
  __shared__ uint32_t count[DIGITS][RADIX];
  for (unsigned i = threadIdx.x; i < DIGITS * RADIX; i += THREADS) (&count[0][0])[i] = 0;
  __syncthreads();
  // Several positions on their way at once.
  constexpr unsigned AHEAD = 4;
  const size_t stride = size_t(gridDim.x) * THREADS;
  for (size_t first = size_t(blockIdx.x) * THREADS + threadIdx.x; first < v.n; first += AHEAD * stride) {
    double x[AHEAD][3];
    for (unsigned a = 0; a < AHEAD; a++) {
      const size_t i = min(first + a * stride, size_t(v.n) - 1);
      for (int d = 0; d < 3; d++) x[a][d] = v.position[3 * i + d];
    }
    for (unsigned a = 0; a < AHEAD; a++) {
      const size_t i = first + a * stride;
      if (i >= v.n) break;
      const uint64_t key = key_of(x[a]);
      v.key_out[i] = key;
      for (unsigned d = 0; d < DIGITS; d++) atomicAdd(&count[d][digit_of(key, d)], 1u);
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < DIGITS * RADIX; i += THREADS) {
    const uint32_t here = (&count[0][0])[i];
    if (here) atomicAdd(&v.bins[i], here);
  }
}

extern "C" {
__global__ void __launch_bounds__(THREADS) keys(SortView v) {
  make_keys(v, [&](const double *x) { return morton(x, v.corner, v.side); });
}

// Squared distances from `corner`: numbers that are not negative are in the order of their bits.
__global__ void __launch_bounds__(THREADS) distance_keys(SortView v) {
  make_keys(v, [&](const double *x) {
    const double dx = v.corner[0] - x[0], dy = v.corner[1] - x[1], dz = v.corner[2] - x[2];
    return uint64_t(__double_as_longlong(dx * dx + dy * dy + dz * dz));
  });
}

// The cell of a mesh, z fastest. A product with one rounding, as everywhere else.
__global__ void __launch_bounds__(THREADS) lattice_keys(SortView v) {
  make_keys(v, [&](const double *x) {
    uint64_t cell = 0;
    for (int d = 0; d < 3; d++) {
      const unsigned point = min(unsigned(x[d] * v.corner[d]), v.points[d] - 1);
      cell = cell * (v.points[d] / v.group[d]) + point / v.group[d];
    }
    return cell << 8 * v.digit;
  });
}

// From counts to first places, one digit a block.
__global__ void __launch_bounds__(THREADS) sort_bins(SortView v) {
  uint32_t *bin = v.bins + blockIdx.x * RADIX + threadIdx.x;
  uint32_t total;
  *bin = block_exclusive(*bin, total);
}

// One pass: keys and indices to their places by one digit.
__global__ void __launch_bounds__(THREADS, 3) sort_pass(SortView v) {
  // Counts and masks of lanes by warp and value; later the keys, then the indices, in their new order.
  __shared__ uint64_t memory[SORT_TILE];
  __shared__ uint32_t first[RADIX];
  __shared__ uint32_t place[RADIX];
  uint32_t(*count)[RADIX] = reinterpret_cast<uint32_t(*)[RADIX]>(memory);
  uint32_t(*match)[RADIX] = count + WARPS;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned tile = next_tile(v.ticket);
  const size_t begin = size_t(tile) * SORT_TILE;
  const unsigned held = unsigned(min(size_t(SORT_TILE), v.n - begin));

  for (unsigned i = threadIdx.x; i < 2 * WARPS * RADIX; i += THREADS) (&count[0][0])[i] = 0;
  // Each warp holds consecutive keys, item by item. The largest key pads: it stays behind all others.
  uint64_t key[SORT_ITEMS];
  const unsigned mine = warp * 32 * SORT_ITEMS + lane;
  for (unsigned i = 0; i < SORT_ITEMS; i++)
    key[i] = mine + 32 * i < held ? v.key[begin + mine + 32 * i] : ~uint64_t(0);
  __syncthreads();

  // Ranks among the warp's keys of the same value.
  uint32_t to[SORT_ITEMS];
  for (unsigned i = 0; i < SORT_ITEMS; i++) {
    const unsigned d = digit_of(key[i], v.digit);
    atomicOr(&match[warp][d], 1u << lane);
    __syncwarp();
    const unsigned same = match[warp][d];
    const unsigned leader = __ffs(same) - 1;
    uint32_t before = 0;
    if (lane == leader) {
      before = count[warp][d];
      count[warp][d] = before + __popc(same);
    }
    before = __shfl_sync(ALL, before, leader);
    __syncwarp();
    if (lane == leader) match[warp][d] = 0;
    __syncwarp();
    to[i] = before + __popc(same & ((1u << lane) - 1));
  }
  __syncthreads();

  // Each thread has one value of the digit now: how many in the warps before, and in this tile.
  uint32_t own = 0;
  for (unsigned w = 0; w < WARPS; w++) {
    const uint32_t here = count[w][threadIdx.x];
    count[w][threadIdx.x] = own;
    own += here;
  }
  volatile uint64_t *status = v.status + threadIdx.x;
  status[size_t(tile) * RADIX] = published(v.epoch, tile == 0 ? WHOLE : OWN, own);
  uint32_t total;
  const uint32_t start = block_exclusive(own, total);
  first[threadIdx.x] = start;
  __syncthreads();
  for (unsigned i = 0; i < SORT_ITEMS; i++) {
    const unsigned d = digit_of(key[i], v.digit);
    to[i] += first[d] + count[warp][d];
  }
  __syncthreads();
  for (unsigned i = 0; i < SORT_ITEMS; i++) memory[to[i]] = key[i];

  // Of this value in the tiles before.
  uint64_t before = 0;
  for (int64_t t = int64_t(tile) - 1; t >= 0; t--) {
    uint64_t word;
    do word = status[t * RADIX];
    while (known_of(word, v.epoch) == 0);
    before += value_of(word);
    if (known_of(word, v.epoch) == WHOLE) break;
  }
  if (tile > 0) status[size_t(tile) * RADIX] = published(v.epoch, WHOLE, before + own);
  place[threadIdx.x] = v.bins[v.digit * RADIX + threadIdx.x] + uint32_t(before) - start;
  __syncthreads();

  uint32_t out[SORT_ITEMS];
  for (unsigned i = 0; i < SORT_ITEMS; i++) {
    const unsigned j = threadIdx.x + i * THREADS;
    const uint64_t k = memory[j];
    out[i] = place[digit_of(k, v.digit)] + j;
    if (j < held) v.key_out[out[i]] = k;
  }
  __syncthreads();
  uint32_t *indices = reinterpret_cast<uint32_t *>(memory);
  for (unsigned i = 0; i < SORT_ITEMS; i++) {
    const unsigned j = mine + 32 * i;
    if (j < held) indices[to[i]] = v.index ? v.index[begin + j] : uint32_t(begin + j);
  }
  __syncthreads();
  for (unsigned i = 0; i < SORT_ITEMS; i++) {
    const unsigned j = threadIdx.x + i * THREADS;
    if (j < held) v.index_out[out[i]] = indices[j];
  }
}
}
