// Pairs within the cut-off: the kernel less what the mesh has of it. A block has 32 targets, which follow each other along z where they
// share a column of cells; its warps share the columns around them. Lanes walk through a column side by side, so that they read bodies that
// are side by side.
#include "common/softening.cuh"
#include "mesh/lattice.cuh"

// A body from the corner of its cell, and its strength.
template <typename Real> struct alignas(4 * sizeof(Real)) InCell {
  Real x, y, z, q;
};

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

// Bodies of a column that may be within the cut-off of a target, the column, and the index along z that the target's cell has among the
// cells of their image.
struct alignas(16) Run {
  unsigned first, last, column;
  int seen;
};

// Runs that a lane holds: as many as leave room for several blocks.
constexpr unsigned RUNS = 12;

template <typename Real, class Kernel, int N> __device__ inline void near(const CutoffView &v) {
  __shared__ Run runs[NEAR_WARPS][RUNS][32];
  // The sums of the warps, once no runs are left.
  double(*all)[NEAR_TARGETS][4] = reinterpret_cast<double(*)[NEAR_TARGETS][4]>(runs);
  static_assert(sizeof(runs) >= NEAR_WARPS * NEAR_TARGETS * 4 * sizeof(double), "the memory of runs holds the sums");
  __shared__ unsigned closer[NEAR_WARPS];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned i = blockIdx.x * NEAR_TARGETS + lane;
  const bool is_there = i < v.n;
  const InCell<Real> at = static_cast<const InCell<Real> *>(v.targets)[is_there ? i : 0];
  const InCell<Real> *sources = static_cast<const InCell<Real> *>(v.sources);
  const Real *depths = static_cast<const Real *>(v.depth);
  const unsigned cell = v.target_cell[is_there ? i : 0], ny = v.lattice.cells[1], nz = v.lattice.cells[2];
  const int cx = cell / (ny * nz), cy = cell / nz % ny, cz = cell % nz;
  const Real *size = units_of(v, Real()), &cutoff2 = size[3], &to_t = size[4], &closest2 = size[5], &per_size = size[6];
  // A body is too close to others alone.
  const unsigned itself = v.same ? i : ~0u;
  const Kernel kernel(v.softening);
  double total[4] = {};
  unsigned close = 0;
  // Lanes walk through the runs that they hold one after the other, each at its own pace: runs are short, and their lengths differ. The
  // next body is on its way while the present one is met.
  auto walk = [&](unsigned held) {
    Real sum[4] = {}, x = 0, y = 0, seen = 0, depth = 0;
    InCell<Real> s = {};
    unsigned j = 0, last = 0;
    const Run *next = &runs[warp][0][lane], *end = next + 32 * held;
    const auto load = [&] {
      if (j == last) {
        if (next == end) return false;
        const Run run = *next;
        j = run.first;
        last = run.last;
        seen = Real(run.seen);
        x = at.x - v.columns[2 * run.column] * size[0];
        y = at.y - v.columns[2 * run.column + 1] * size[1];
        next += 32;
      }
      s = sources[j];
      depth = depths[j];
      return true;
    };
    for (bool more = load(); more;) {
      const Real dx = x - s.x, dy = y - s.y, dz = fused(seen - depth, size[2], at.z - s.z), q = s.q;
      const unsigned here = j++;
      more = load();
      const Real r2 = fused(dx, dx, fused(dy, dy, dz * dz));
      if (r2 < cutoff2) {
        Real bare, far_force;
        const Real far = far_at<N>(v, fused(r2, to_t, Real(-1)), far_force);
        const Real bare_force = kernel.both(Real(1), r2 + kernel.raise(), bare);
        const Real push = (bare_force - far_force) * q;
        sum[0] = fused(bare - far, q, sum[0]);
        sum[1] = fused(push, dx, sum[1]);
        sum[2] = fused(push, dy, sum[2]);
        sum[3] = fused(push, dz, sum[3]);
        if (r2 < closest2 && here != itself) close = 1;
      }
    }
    for (int k = 0; k < 4; k++) total[k] += sum[k];
  };
  unsigned held = 0;
  const auto hold = [&](unsigned first, unsigned last, unsigned column, int image) {
    if (first == last) return;
    if (held == RUNS) {
      walk(held);
      held = 0;
    }
    runs[warp][held][lane] = {first, last, column, cz - image};
    held++;
  };
  for (unsigned c = warp; c < v.columns_len; c += NEAR_WARPS) {
    const int a = v.columns[2 * c], b = v.columns[2 * c + 1];
    const Real gx = gap(at.x, a, size[0]), gy = gap(at.y, b, size[1]);
    const Real left = cutoff2 - gx * gx - gy * gy;
    if (is_there && left > 0) {
      // Rounding, and that of the root, is less than what is added.
      const Real reach = left * rsqrt_seed(left) * Real(1.0001);
      const int low = cz + int(floor((at.z - reach) * per_size)), high = cz + int(floor((at.z + reach) * per_size));
      int ix = cx + a, iy = cy + b;
      if (v.once) {
        ix = once_wrapped(ix, v.lattice.cells[0]);
        iy = once_wrapped(iy, ny);
      } else {
        ix = wrapped(ix, v.lattice.cells[0]);
        iy = wrapped(iy, ny);
      }
      runs_along_z(v, (ix * ny + iy) * nz, low, high, [&](unsigned first, unsigned last, int image) { hold(first, last, c, image); });
    }
    // All lanes together. One that is full before the others, around an edge of the box, walks alone.
    if (__any_sync(0xffffffff, held == RUNS)) {
      walk(held);
      held = 0;
    }
  }
  walk(held);
  __syncthreads();
  for (int k = 0; k < 4; k++) all[warp][lane][k] = total[k];
  const unsigned flags = __ballot_sync(0xffffffff, close != 0);
  if (lane == 0) closer[warp] = flags;
  __syncthreads();
  const unsigned target = threadIdx.x / 4, k = threadIdx.x % 4, place = blockIdx.x * NEAR_TARGETS + target;
  if (place >= v.n) return;
  double sum = all[0][target][k];
  for (unsigned w = 1; w < NEAR_WARPS; w++) sum += all[w][target][k];
  v.sums[4 * size_t(place) + k] = sum;
  unsigned any = 0;
  for (unsigned w = 0; w < NEAR_WARPS; w++) any |= closer[w] >> target & 1;
  // An integer, and the order of the list does not matter: each of its targets is summed anew.
  if (any && k == 0) v.again[1 + atomicAdd(v.again, 1u)] = place;
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
  __global__ void __launch_bounds__(32 * NEAR_WARPS) mesh_near_##KERNEL_NAME##_##NAME##_##N(const __grid_constant__ CutoffView v) { \
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
