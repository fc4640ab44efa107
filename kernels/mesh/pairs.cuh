// Pairs within a cut-off. A block has the targets of a brick of cells. It holds the bodies of all cells within the cut-off of the brick; each warp
// has a part of the targets, lists the bodies near these, finds by products on tensor cores which of them may be within the cut-off of which target,
// and meets those alone.
#pragma once
#include "mesh/brick.cuh"
#include "mesh/within.cuh"

// Numbers in a precision: the argument's own memory, which instructions read as constants.
__device__ inline const float *units_of(const BrickView &v, float) { return v.units_f32; }
__device__ inline const double *units_of(const BrickView &v, double) { return v.units; }

constexpr unsigned NEAR_THREADS = 32 * NEAR_WARPS;
// Bodies that a block holds, and those that a warp lists at a time.
template <typename Real> constexpr unsigned HELD = 4096 / sizeof(Real);
constexpr unsigned LISTED = 512;

// Cells between a cell and a brick, `at` cells from the brick's first.
__device__ inline int cells_apart(int at, int width) { return at < 0 ? -1 - at : at >= width ? at - width : 0; }

// A law has as many sums as it says, adds pairs to them, and keeps those of a target; `begun` is one without any.
template <typename Real, class Law> __device__ inline void near(const BrickView &v, const Law &begun) {
  // One more, which is nobody's neighbour.
  __shared__ InCell<Real> held[HELD<Real> + 1];
  __shared__ unsigned short all_listed[NEAR_WARPS][LISTED];
  __shared__ unsigned all_hits[NEAR_WARPS][LISTED / 32][32];
  __shared__ Columns columns_of_targets;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Lattice &l = v.lattice;
  const int ny = l.cells[1], nz = l.cells[2];
  const Real *size = units_of(v, Real()), &cutoff2 = size[3], &reach2 = size[5];
  const InCell<Real> *targets = static_cast<const InCell<Real> *>(v.targets), *sources = static_cast<const InCell<Real> *>(v.sources);
  const Real *target_depths = static_cast<const Real *>(v.target_depth), *depths = static_cast<const Real *>(v.depth);
  const Brick brick = brick_of(l, v.brick, blockIdx.x);
  const Real middle[3] = {Real(0.5) * brick.width[0], Real(0.5) * brick.width[1], Real(0.5) * brick.width[2]};
  unsigned short *listed = all_listed[warp];
  const unsigned held_at = shared_address(held), listed_at = shared_address(listed), hits_at = shared_address(&all_hits[warp][0][lane]);
  if (threadIdx.x == 0) held[HELD<Real>] = {Real(1e15), Real(0), Real(0), Real(0)};
  const unsigned all = columns_of_targets.find(l, brick, v.target_start);
  // A round has up to as many targets as there are lanes.
  for (unsigned round = 0; round * NEAR_THREADS < all; round++) {
    // Even parts for the warps; the lane of a target is that of its row of products.
    const unsigned here = min(all - round * NEAR_THREADS, NEAR_THREADS), part = (here + NEAR_WARPS - 1) / NEAR_WARPS;
    const unsigned row = lane / 4 + 8 * (lane % 4), mine = warp * part + row;
    const bool is_there = row < part && mine < here;
    unsigned place = 0;
    InCell<Real> at = {};
    if (is_there) {
      unsigned column;
      place = columns_of_targets.place_of(brick, round * NEAR_THREADS + mine, column);
      at = targets[place];
      at.x = fused(Real(column / brick.width[1]) - middle[0], size[0], at.x);
      at.y = fused(Real(column % brick.width[1]) - middle[1], size[1], at.y);
      at.z = fused(target_depths[place] - Real(brick.first[2]) - middle[2], size[2], at.z);
    }
    const Extent<Real> along_x(is_there, at.x), along_y(is_there, at.y), along_z(is_there, at.z);
    const Rows of_targets(is_there, float(at.x), float(at.y), float(at.z));
    double total[Law::SUMS] = {};
    Law law = begun;
    // Lanes meet the bodies that may be within their reach, each at its own pace.
    auto meet = [&](unsigned words) {
      Real sum[Law::SUMS] = {};
      unsigned left = words - 1, hits = hits_at, list = listed_at, mask = load_shared_u32(hits);
      for (;;) {
        if (mask == 0) {
          if (left == 0) break;
          left--;
          hits += 32 * sizeof(unsigned);
          list += 32 * sizeof(unsigned short);
          mask = load_shared_u32(hits);
        }
        // A word may have no bit.
        const unsigned bit = __ffs(mask) - 1, j = mask ? load_shared_u16(list + sizeof(unsigned short) * bit) : HELD<Real>;
        mask &= mask - 1;
        const InCell<Real> s = load_body<Real>(held_at, j);
        const Real dx = at.x - s.x, dy = at.y - s.y, dz = at.z - s.z;
        const Real r2 = fused(dx, dx, fused(dy, dy, dz * dz));
        if (r2 < cutoff2) law.add(sum, at.q, s.q, dx, dy, dz, r2);
      }
      for (int k = 0; k < Law::SUMS; k++) total[k] += sum[k];
    };
    // All that the block holds.
    auto meet_held = [&](unsigned count) {
      for (unsigned from = 0; from < count;) {
        unsigned length = 0;
        for (; from < count && length + 32 <= LISTED; from += 32) {
          const unsigned j = from + lane;
          const InCell<Real> s = load_body<Real>(held_at, min(j, HELD<Real>));
          const Real x = along_x.gap(s.x), y = along_y.gap(s.y), z = along_z.gap(s.z);
          const bool reaches = j < count && fused(x, x, fused(y, y, z * z)) < reach2;
          const unsigned bits = __ballot_sync(~0u, reaches);
          if (reaches) listed[length + __popc(bits & ((1u << lane) - 1))] = j;
          length += __popc(bits);
        }
        const unsigned words = (length + 31) / 32;
        if (length + lane < 32 * words) listed[length + lane] = HELD<Real>;
        __syncwarp();
        for (unsigned word = 0; word < words; word++)
          all_hits[warp][word][lane] = of_targets.within<Real>(held_at, listed_at + 32 * sizeof(unsigned short) * word, float(reach2));
        __syncwarp();
        if (words > 0) meet(words);
        __syncwarp();
      }
    };
    // Columns of cells around the brick, and images of each along z.
    const int wide = brick.width[1] + 2 * int(v.reach[1]), columns = (brick.width[0] + 2 * int(v.reach[0])) * wide;
    const int images = (brick.width[2] + 2 * int(v.reach[2]) + nz - 2) / nz + 1;
    unsigned count = 0;
    for (int batch = 0; batch < columns * images; batch += NEAR_THREADS) {
      const int index = batch + threadIdx.x, column = index / images;
      const int x = column / wide - int(v.reach[0]), y = column % wide - int(v.reach[1]);
      const Real gx = cells_apart(x, brick.width[0]) * size[0], gy = cells_apart(y, brick.width[1]) * size[1];
      const Real left = cutoff2 - gx * gx - gy * gy;
      unsigned first = 0, length = 0;
      int image = 0;
      if (column < columns && left > 0) {
        // Rounding is less than what is added.
        const int more = int(left * rsqrt_seed(left) * Real(1.0001) * size[4]) + 1;
        const int low = brick.first[2] - more, high = brick.first[2] + brick.width[2] - 1 + more;
        image = (floor_over(low, nz) + index % images) * nz;
        const int from = max(low, image) - image, to = min(high, image + nz - 1) - image;
        if (from <= to) {
          const unsigned cells = (wrapped(brick.first[0] + x, l.cells[0]) * ny + wrapped(brick.first[1] + y, ny)) * nz;
          first = v.start[cells + from];
          length = v.start[cells + to + 1] - first;
        }
      }
      uint32_t found;
      const uint32_t before = block_exclusive(length, found);
      const Real from_x = Real(x) - middle[0], from_y = Real(y) - middle[1], from_z = Real(image - brick.first[2]) - middle[2];
      const bool last = batch + int(NEAR_THREADS) >= columns * images;
      unsigned taken = 0;
      do {
        const unsigned takes = min(found - taken, HELD<Real> - count);
        // This thread's part of those from `taken` on.
        const unsigned begin = max(before, taken), end = min(before + length, taken + takes);
        for (unsigned k = begin; k < end; k++) {
          const unsigned from = first + (k - before);
          InCell<Real> s = sources[from];
          s.x = fused(from_x, size[0], s.x);
          s.y = fused(from_y, size[1], s.y);
          s.z = fused(depths[from] + from_z, size[2], s.z);
          held[count + (k - taken)] = s;
        }
        taken += takes;
        count += takes;
        if (count == HELD<Real> || (last && taken == found)) {
          __syncthreads();
          meet_held(count);
          __syncthreads();
          count = 0;
        }
      } while (taken < found);
    }
    law.keep(is_there, place, total);
  }
}
