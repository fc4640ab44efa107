// Pairs within the cut-off: the kernel less what the mesh has of it. A block has the targets of a brick of cells. It holds the bodies of all
// cells within the cut-off of the brick; each warp has a part of the targets, lists the bodies near these, finds by products on tensor cores which
// of them may be within the cut-off of which target, and meets those alone.
#include "common/softening.cuh"
#include "mesh/brick.cuh"
#include "mesh/within.cuh"

// Numbers in a precision: the argument's own memory, which instructions read as constants.
__device__ inline const float *units_of(const CutoffView &v, float) { return v.units_f32; }
__device__ inline const double *units_of(const CutoffView &v, double) { return v.units; }
__device__ inline const float *potential_of(const CutoffView &v, float) { return v.potential_f32; }
__device__ inline const double *potential_of(const CutoffView &v, double) { return v.potential; }
__device__ inline const float *force_of(const CutoffView &v, float) { return v.force_f32; }
__device__ inline const double *force_of(const CutoffView &v, double) { return v.force; }

// The far kernel at t with N coefficients, the first of which may be zero, and its force over r with one less.
template <int N, typename Real> __device__ inline Real far_at(const CutoffView &v, Real t, Real &force) {
  const Real *a = potential_of(v, Real()), *b = force_of(v, Real());
  Real sum = a[0];
  force = b[0];
#pragma unroll
  for (int k = 1; k < N; k++) sum = fused(sum, t, a[k]);
#pragma unroll
  for (int k = 1; k + 1 < N; k++) force = fused(force, t, b[k]);
  return sum;
}

constexpr unsigned NEAR_THREADS = 32 * NEAR_WARPS;
// Bodies that a block holds, and those that a warp lists at a time.
template <typename Real> constexpr unsigned HELD = 4096 / sizeof(Real);
constexpr unsigned LISTED = 512;

// Cells between a cell and a brick, `at` cells from the brick's first.
__device__ inline int cells_apart(int at, int width) { return at < 0 ? -1 - at : at >= width ? at - width : 0; }

template <typename Real, class Kernel, int N> __device__ inline void near(const CutoffView &v) {
  // One more, which is nobody's neighbour.
  __shared__ InCell<Real> held[HELD<Real> + 1];
  __shared__ unsigned short all_listed[NEAR_WARPS][LISTED];
  __shared__ unsigned all_hits[NEAR_WARPS][LISTED / 32][32];
  __shared__ Columns columns_of_targets;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Lattice &l = v.lattice;
  const int ny = l.cells[1], nz = l.cells[2];
  const Real *size = units_of(v, Real()), &cutoff2 = size[3], &to_t = size[4], &closest2 = size[5], &reach2 = size[7];
  const InCell<Real> *targets = static_cast<const InCell<Real> *>(v.targets), *sources = static_cast<const InCell<Real> *>(v.sources);
  const Real *target_depths = static_cast<const Real *>(v.target_depth), *depths = static_cast<const Real *>(v.depth);
  const Brick brick = brick_of(l, v.brick, blockIdx.x);
  const Real middle[3] = {Real(0.5) * brick.width[0], Real(0.5) * brick.width[1], Real(0.5) * brick.width[2]};
  const Kernel kernel(v.softening);
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
    double total[4] = {};
    // Pairs that are too close for single precision. One at distance zero is the body itself, where targets are the sources.
    unsigned close = 0;
    // Lanes meet the bodies that may be within their reach, each at its own pace.
    auto meet = [&](unsigned words) {
      Real sum[4] = {};
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
        if (r2 < cutoff2) {
          Real bare, far_force;
          const Real far = far_at<N>(v, fused(r2, to_t, Real(-1)), far_force);
          const Real bare_force = kernel.both(Real(1), r2 + kernel.raise(), bare);
          const Real push = (bare_force - far_force) * s.q;
          sum[0] = fused(bare - far, s.q, sum[0]);
          sum[1] = fused(push, dx, sum[1]);
          sum[2] = fused(push, dy, sum[2]);
          sum[3] = fused(push, dz, sum[3]);
          if (r2 < closest2) close += r2 > 0 ? 2 : 1;
        }
      }
      for (int k = 0; k < 4; k++) total[k] += sum[k];
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
        const int more = int(left * rsqrt_seed(left) * Real(1.0001) * size[6]) + 1;
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
    if (is_there) {
      for (int k = 0; k < 4; k++) v.sums[4 * size_t(place) + k] = total[k];
      // An integer, and the order of the list does not matter: each of its targets is summed anew.
      if (close > v.same) v.again[1 + atomicAdd(v.again, 1u)] = place;
    }
  }
}

// Calls `each` with every image of a run of cells [low, high] along z of a column: its places, and how many cells away cell 0 of the image is.
template <typename Each> __device__ inline void runs_along_z(const CutoffView &v, unsigned row, int low, int high, Each each) {
  const int count = int(v.lattice.cells[2]);
  int image = 0;
  while (low < image) image -= count;
  while (low >= image + count) image += count;
  while (low <= high) {
    const int last = min(high, image + count - 1);
    each(v.start[row + (low - image)], v.start[row + (last - image) + 1], image);
    low = last + 1;
    image += count;
  }
}

// What lies between a body and a column of cells, along an axis.
template <typename Real> __device__ inline Real gap(Real x, int cells, Real size) {
  return cells > 0 ? max(cells * size - x, Real(0)) : cells < 0 ? max(x - (cells + 1) * size, Real(0)) : Real(0);
}

// The targets whose pairs were too close, in double precision: a warp has one, and its lanes share the bodies of a run.
template <class Kernel> __device__ inline void near_again(const CutoffView &v) {
  const unsigned lane = threadIdx.x % 32, warps = gridDim.x * (MESH_TILE / 32), count = v.again[0];
  const unsigned ny = v.lattice.cells[1], nz = v.lattice.cells[2];
  const Lattice &l = v.lattice;
  const Kernel kernel(v.softening);
  for (unsigned w = blockIdx.x * (MESH_TILE / 32) + threadIdx.x / 32; w < count; w += warps) {
    const unsigned i = v.again[1 + w], cell = v.target_cell[i];
    const int cx = cell / (ny * nz), cy = cell / nz % ny, cz = cell % nz;
    const Body at = v.target_bodies[i];
    const double from[3] = {at.x * l.scale - cx * l.size[0], at.y * l.scale - cy * l.size[1], at.z * l.scale - cz * l.size[2]};
    double sum[4] = {};
    for (unsigned c = 0; c < v.columns_len; c++) {
      const int a = v.columns[2 * c], b = v.columns[2 * c + 1];
      const double gx = gap(from[0], a, l.size[0]), gy = gap(from[1], b, l.size[1]);
      const double left = v.cutoff2 - gx * gx - gy * gy;
      if (left < 0) continue;
      const double reach = sqrt(left) * 1.0001;
      const int low = cz + int(floor((from[2] - reach) / l.size[2])), high = cz + int(floor((from[2] + reach) / l.size[2]));
      const unsigned sx = wrapped(cx + a, l.cells[0]), sy = wrapped(cy + b, ny), row = (sx * ny + sy) * nz;
      // Images are whole boxes away.
      const double away_x = (cx + a - int(sx)) * l.size[0], away_y = (cy + b - int(sy)) * l.size[1];
      runs_along_z(v, row, low, high, [&](unsigned first, unsigned last, int image) {
        for (unsigned j = first + lane; j < last; j += 32) {
          const Body s = v.source_bodies[j];
          const double dx = (at.x - s.x) * l.scale - away_x, dy = (at.y - s.y) * l.scale - away_y;
          const double dz = (at.z - s.z) * l.scale - image * l.size[2];
          const double r2 = fused(dx, dx, fused(dy, dy, dz * dz));
          if (r2 >= v.cutoff2) continue;
          double bare, far_force;
          const double far = far_at<TERMS>(v, 2 * r2 / v.cutoff2 - 1, far_force);
          const double push = (kernel.both(1.0, r2 + kernel.raise(), bare) - far_force) * s.q;
          sum[0] = fused(bare - far, s.q, sum[0]);
          sum[1] = fused(push, dx, sum[1]);
          sum[2] = fused(push, dy, sum[2]);
          sum[3] = fused(push, dz, sum[3]);
        }
      });
    }
    for (int k = 0; k < 4; k++) {
      for (unsigned d = 16; d > 0; d /= 2) sum[k] += __shfl_xor_sync(0xffffffff, sum[k], d);
      if (lane == 0) v.sums[4 * size_t(i) + k] = sum[k];
    }
  }
}

#define NEAR(REAL, NAME, KERNEL_NAME, KERNEL, N)                                                                                    \
  __global__ void __launch_bounds__(NEAR_THREADS) mesh_near_##KERNEL_NAME##_##NAME##_##N(const __grid_constant__ CutoffView v) { \
    near<REAL, KERNEL<REAL>, N>(v);                                                                                                \
  }
#define NEAR_OF(KERNEL_NAME, KERNEL)                                                                                                      \
  NEAR(float, f32, KERNEL_NAME, KERNEL, 8)                                                                                                \
  NEAR(float, f32, KERNEL_NAME, KERNEL, 10)                                                                                               \
  NEAR(float, f32, KERNEL_NAME, KERNEL, 12)                                                                                               \
  NEAR(float, f32, KERNEL_NAME, KERNEL, 14)                                                                                               \
  NEAR(float, f32, KERNEL_NAME, KERNEL, 16)                                                                                               \
  NEAR(float, f32, KERNEL_NAME, KERNEL, 48)                                                                                               \
  NEAR(double, f64, KERNEL_NAME, KERNEL, 12)                                                                                              \
  NEAR(double, f64, KERNEL_NAME, KERNEL, 16)                                                                                              \
  NEAR(double, f64, KERNEL_NAME, KERNEL, 20)                                                                                              \
  NEAR(double, f64, KERNEL_NAME, KERNEL, 24)                                                                                              \
  NEAR(double, f64, KERNEL_NAME, KERNEL, 48)                                                                                              \
  __global__ void __launch_bounds__(MESH_TILE) mesh_near_again_##KERNEL_NAME(const __grid_constant__ CutoffView v) { near_again<KERNEL<double>>(v); }
extern "C" {
NEAR_OF(newton, Newton)
NEAR_OF(spline, Spline)
}
