// Between bodies and the points of a mesh: each body has P points along each axis, weighted by a window. Bricks of the mesh own their
// points and collect what the bodies around them give, in the order of these: no sum depends on which block comes first.
#include "common/scan.cuh"
#include "mesh/lattice.cuh"

// The weight of the point `k` of a window, `beyond` the first one is.
template <typename Real> __device__ inline Real weight_of(const Real *weights, unsigned powers, unsigned k, double beyond) {
  const Real t = Real(2 * beyond - 1);
  Real sum = weights[k];
  for (unsigned p = 1; p < powers; p++) sum = sum * t + weights[p * MOST_POINTS + k];
  return sum;
}

template <typename Real> __device__ inline void load_weights(const WindowView &v, Real *to) {
  const Real *weights = static_cast<const Real *>(v.weights);
  for (unsigned i = threadIdx.x; i < v.powers * MOST_POINTS; i += blockDim.x) to[i] = weights[i];
}

// The most powers of weights, as many as polynomials have.
constexpr unsigned MOST_POWERS = TERMS;
// Weights of a body along the three axes of a brick.
constexpr unsigned ROW = 3 * BRICK;

// Cells along an axis that may hold bodies whose windows reach the points from `low` on: the first, and how many.
__device__ inline int cells_around(const WindowView &v, int axis, int low, unsigned &count) {
  const int half = int(v.points + 1) / 2, group = v.lattice.group[axis];
  const int first = floor_over(low - half - 1, group), last = floor_over(low + int(BRICK) + half, group);
  count = min(unsigned(last - first + 1), v.lattice.cells[axis]);
  return first;
}

// Weights of the points of a thread.
template <typename Real> struct alignas(OWN_POINTS * sizeof(Real)) OwnWeights {
  Real w[OWN_POINTS];
};

template <typename Real> __device__ inline void spread(const WindowView &v) {
  __shared__ Real weights[MOST_POWERS * MOST_POINTS];
  __shared__ OwnWeights<Real> around[SPREADERS * ROW / OWN_POINTS];
  __shared__ unsigned run_first[SPREADERS], run_end[SPREADERS];
  __shared__ unsigned chosen[SPREADERS];
  const Lattice &l = v.lattice;
  const unsigned bricks_y = (l.points[1] + BRICK - 1) / BRICK, bricks_z = (l.points[2] + BRICK - 1) / BRICK;
  const unsigned brick[3] = {blockIdx.x / (bricks_y * bricks_z), blockIdx.x / bricks_z % bricks_y, blockIdx.x % bricks_z};
  unsigned count[3], width[3];
  int low[3], first_cell[3];
  for (int d = 0; d < 3; d++) {
    low[d] = brick[d] * BRICK;
    width[d] = min(BRICK, l.points[d] - unsigned(low[d]));
    first_cell[d] = cells_around(v, d, low[d], count[d]);
  }
  load_weights(v, weights);
  Real own[OWN_POINTS] = {};
  const unsigned z = threadIdx.x % BRICK, y = threadIdx.x / BRICK % BRICK, x = threadIdx.x / (BRICK * BRICK) * OWN_POINTS;
  // Cells along z are one run of bodies, or two around the edge of the box.
  const unsigned from_z = wrapped(first_cell[2], l.cells[2]), before_edge = min(count[2], l.cells[2] - from_z);
  const unsigned runs = 2 * count[0] * count[1];
  for (unsigned run = 0; run < runs; run += SPREADERS) {
    const unsigned mine = run + threadIdx.x, column = mine / 2;
    unsigned first = 0, length = 0;
    if (mine < runs) {
      const unsigned row = (wrapped(first_cell[0] + int(column / count[1]), l.cells[0]) * l.cells[1] +
                            wrapped(first_cell[1] + int(column % count[1]), l.cells[1])) *
                           l.cells[2];
      const unsigned from = mine % 2 ? 0 : from_z, to = mine % 2 ? count[2] - before_edge : from_z + before_edge;
      first = v.start[row + from];
      length = v.start[row + to] - first;
    }
    uint32_t total;
    const uint32_t before = block_exclusive(length, total);
    run_first[threadIdx.x] = first - before;
    run_end[threadIdx.x] = before + length;
    __syncthreads();
    for (unsigned batch = 0; batch < total; batch += SPREADERS) {
      const unsigned at = batch + threadIdx.x;
      unsigned body = 0;
      bool reaches = at < total;
      if (reaches) {
        // The first run that ends beyond.
        unsigned a = 0, b = SPREADERS - 1;
        while (a < b) {
          const unsigned middle = (a + b) / 2;
          if (run_end[middle] > at) b = middle;
          else a = middle + 1;
        }
        body = run_first[a] + at;
        const Body s = v.bodies[body];
        const double position[3] = {s.x, s.y, s.z};
        for (int d = 0; d < 3; d++) {
          double beyond;
          const unsigned begins = first_point(place_of(l, position[d], d), v.points, l.points[d], beyond);
          const unsigned after = begins >= unsigned(low[d]) ? begins - low[d] : begins + l.points[d] - low[d];
          reaches &= after < width[d] || after + v.points > l.points[d];
        }
      }
      uint32_t found;
      const uint32_t place = block_exclusive(reaches ? 1 : 0, found);
      if (reaches) chosen[place] = body;
      __syncthreads();
      for (unsigned task = threadIdx.x; task < 3 * found; task += SPREADERS) {
        const unsigned k = task / 3, d = task % 3;
        const Body s = v.bodies[chosen[k]];
        double beyond;
        const double position = d == 0 ? s.x : d == 1 ? s.y : s.z;
        const unsigned begins = first_point(place_of(l, position, d), v.points, l.points[d], beyond);
        Real *row = around->w + k * ROW + d * BRICK;
        for (unsigned p = 0; p < BRICK; p++) {
          const unsigned point = low[d] + p, of_window = point >= begins ? point - begins : point + l.points[d] - begins;
          const bool is_in = p < width[d] && of_window < v.points;
          const Real w = is_in ? weight_of(weights, v.powers, of_window, beyond) : Real(0);
          row[p] = d == 0 ? w * Real(s.q) : w;
        }
      }
      __syncthreads();
#pragma unroll 4
      for (unsigned k = 0; k < found; k++) {
        const Real *row = around->w + k * ROW;
        const Real w = row[BRICK + y] * row[2 * BRICK + z];
        const OwnWeights<Real> along_x = around[(k * ROW + x) / OWN_POINTS];
#pragma unroll
        for (unsigned p = 0; p < OWN_POINTS; p++) own[p] += w * along_x.w[p];
      }
      __syncthreads();
    }
  }
  if (y >= width[1] || z >= width[2]) return;
  Real *mesh = static_cast<Real *>(v.mesh);
  for (unsigned p = 0; p < OWN_POINTS && x + p < width[0]; p++)
    mesh[(size_t(low[0] + x + p) * l.points[1] + low[1] + y) * l.points[2] + low[2] + z] = own[p];
}

// The functions of a point.
template <typename Real> struct alignas(4 * sizeof(Real)) Functions {
  Real f[4];
};

// The sums at the targets: what the mesh gives to the pairs. `LANES` lanes have a target, each a point of the window along z.
template <typename Real, unsigned LANES> __device__ inline void gather(const WindowView &v) {
  __shared__ Real weights[MOST_POWERS * MOST_POINTS];
  __shared__ Real along[GATHERERS / LANES][2][LANES];
  load_weights(v, weights);
  __syncthreads();
  const Lattice &l = v.lattice;
  const unsigned lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
  const unsigned i = blockIdx.x * (GATHERERS / LANES) + group;
  const bool is_there = i < v.n;
  const Body at = v.bodies[is_there ? i : 0];
  const double position[3] = {at.x, at.y, at.z};
  unsigned begins[3];
  Real w = 0;
  for (int d = 0; d < 3; d++) {
    double beyond;
    begins[d] = first_point(place_of(l, position[d], d), v.points, l.points[d], beyond);
    w = lane < v.points ? weight_of(weights, v.powers, lane, beyond) : Real(0);
    if (d < 2) along[group][d][lane] = w;
  }
  __syncwarp();
  const unsigned nx = l.points[0], ny = l.points[1], nz = l.points[2];
  const unsigned z = begins[2] + min(lane, v.points - 1);
  const Functions<Real> *mesh = static_cast<const Functions<Real> *>(v.functions) + (z < nz ? z : z - nz);
  Real sum[4] = {};
  for (unsigned a = 0; a < v.points; a++) {
    const unsigned x = begins[0] + a;
    const Functions<Real> *plane = mesh + size_t(x < nx ? x : x - nx) * ny * nz;
    Real inner[4] = {};
#pragma unroll 4
    for (unsigned b = 0; b < v.points; b++) {
      const unsigned y = begins[1] + b;
      const Functions<Real> point = plane[size_t(y < ny ? y : y - ny) * nz];
      const Real weight = along[group][1][b];
      for (int k = 0; k < 4; k++) inner[k] += weight * point.f[k];
    }
    const Real weight = along[group][0][a];
    for (int k = 0; k < 4; k++) sum[k] += weight * inner[k];
  }
  for (int k = 0; k < 4; k++) {
    sum[k] *= w;
    for (unsigned d = LANES / 2; d > 0; d /= 2) sum[k] += __shfl_xor_sync(0xffffffff, sum[k], d);
  }
  if (!is_there || lane >= 4) return;
  const double near = v.near[4 * size_t(i) + lane];
  const size_t body = v.order[i];
  const Real mine = lane == 0 ? sum[0] : lane == 1 ? sum[1] : lane == 2 ? sum[2] : sum[3];
  const double whole = near + double(mine);
  if (lane > 0) v.field[3 * body + lane - 1] = whole * v.field_scale;
  else if (v.potential) v.potential[body] = (whole - v.background - v.own * at.q) * v.potential_scale;
}

extern "C" {
__global__ void __launch_bounds__(SPREADERS) mesh_spread_f32(const __grid_constant__ WindowView v) { spread<float>(v); }
__global__ void __launch_bounds__(SPREADERS) mesh_spread_f64(const __grid_constant__ WindowView v) { spread<double>(v); }
__global__ void __launch_bounds__(GATHERERS) mesh_gather_f32_8(const __grid_constant__ WindowView v) { gather<float, 8>(v); }
__global__ void __launch_bounds__(GATHERERS) mesh_gather_f32_16(const __grid_constant__ WindowView v) { gather<float, 16>(v); }
__global__ void __launch_bounds__(GATHERERS) mesh_gather_f64_8(const __grid_constant__ WindowView v) { gather<double, 8>(v); }
__global__ void __launch_bounds__(GATHERERS) mesh_gather_f64_16(const __grid_constant__ WindowView v) { gather<double, 16>(v); }
}
