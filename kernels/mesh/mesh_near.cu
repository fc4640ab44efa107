// Pairs within the cut-off of a mesh: the kernel less what the mesh has of it.
#include "common/softening.cuh"
#include "common/sums.cuh"
#include "mesh/pairs.cuh"

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

// Potential and field of these pairs.
template <typename Real, class Kernel, int N> struct LessFar {
  static constexpr int SUMS = 4;
  const CutoffView &v;
  const Kernel kernel;
  // Pairs that are too close for single precision. One at distance zero is the body itself, where targets are the sources.
  unsigned close = 0;

  __device__ explicit LessFar(const CutoffView &v) : v(v), kernel(v.softening) {}

  __device__ void add(Real (&sum)[SUMS], Real, Real q, Real dx, Real dy, Real dz, Real r2) {
    const Real *units = units_of(v, Real());
    Real bare, far_force;
    const Real far = far_at<N>(v, fused(r2, units[0], Real(-1)), far_force);
    const Real bare_force = kernel.both(Real(1), r2 + kernel.raise(), bare);
    const Real push = (bare_force - far_force) * q;
    sum[0] = fused(bare - far, q, sum[0]);
    sum[1] = fused(push, dx, sum[1]);
    sum[2] = fused(push, dy, sum[2]);
    sum[3] = fused(push, dz, sum[3]);
    if (r2 < units[1]) close += r2 > 0 ? 2 : 1;
  }

  __device__ void keep(bool is_there, unsigned place, const double (&total)[SUMS]) {
    if (!is_there) return;
    for (int k = 0; k < SUMS; k++) v.sums[SUMS * size_t(place) + k] = total[k];
    // An integer, and the order of the list does not matter: each of its targets is summed anew.
    if (close > v.same) v.again[1 + atomicAdd(v.again, 1u)] = place;
  }
};

// Calls `each` with every image of a run of cells [low, high] along z of a column: its places, and how many cells away cell 0 of the image is.
template <typename Each> __device__ inline void runs_along_z(const CutoffView &v, unsigned row, int low, int high, Each each) {
  const int count = int(v.bricks.lattice.cells[2]);
  int image = 0;
  while (low < image) image -= count;
  while (low >= image + count) image += count;
  while (low <= high) {
    const int last = min(high, image + count - 1);
    each(v.bricks.start[row + (low - image)], v.bricks.start[row + (last - image) + 1], image);
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
  const unsigned ny = v.bricks.lattice.cells[1], nz = v.bricks.lattice.cells[2];
  const Lattice &l = v.bricks.lattice;
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
      sum[k] = warp_sum(sum[k]);
      if (lane == 0) v.sums[4 * size_t(i) + k] = sum[k];
    }
  }
}

#define NEAR(REAL, NAME, KERNEL_NAME, KERNEL, N)                                                                                    \
  __global__ void __launch_bounds__(NEAR_THREADS) mesh_near_##KERNEL_NAME##_##NAME##_##N(const __grid_constant__ CutoffView v) { \
    near<REAL>(v.bricks, LessFar<REAL, KERNEL<REAL>, N>(v));                                                                                                \
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
