// Between bodies and the points of a mesh: each body has P points along each axis, weighted by a window. Bricks of the mesh own their
// points and collect what the bodies around them give, in the order of these: no sum depends on which block comes first.
#include "common/scan.cuh"
#include "mesh/lattice.cuh"

// The weight of the point `k` of a window, where t is -1 to 1 as the first point is 0 to 1 spacings beyond the lower end.
template <typename Real> __device__ inline Real weight_of(const Real *weights, unsigned powers, unsigned k, Real t) {
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
// Weights of a body along the three axes of a brick, and room after them: so few lanes that follow each other meet in a bank.
constexpr unsigned ROW = 3 * BRICK + 4;

// Cells along an axis that may hold bodies whose windows of P points reach the points from `low` on: the first, and how many.
template <unsigned P> __device__ inline int cells_around(const WindowView &v, int axis, int low, unsigned &count) {
  const int half = int(P + 1) / 2, group = v.lattice.group[axis];
  const int first = floor_over(low - half, group), last = floor_over(low + int(BRICK) - 1 + half, group);
  count = min(unsigned(last - first + 1), v.lattice.cells[axis]);
  return first;
}

// Where a body's window begins along each axis, and how far that is beyond the window's lower end.
template <typename Real> struct Begins {
  unsigned first[3];
  Real beyond[3];
};

// Points of a lane along each axis of a brick: a warp has all points, and a part of the bodies.
constexpr unsigned OWN_X = 4, OWN_Y = 2, OWN_Z = 2, SPREAD_WARPS = SPREADERS / 32;
static_assert(BRICK * BRICK * BRICK == 32 * OWN_X * OWN_Y * OWN_Z, "a warp has a brick");

// Some weights that a lane reads at once.
template <typename Real, unsigned N> struct alignas(N * sizeof(Real)) Some {
  Real w[N];
};
template <typename Real, unsigned N> __device__ inline Some<Real, N> some(const Real *from) { return *reinterpret_cast<const Some<Real, N> *>(from); }

template <typename Real, unsigned P> __device__ inline void spread(const WindowView &v) {
  __shared__ __align__(32) Real weights[MOST_POWERS * MOST_POINTS];
  // Weights of the bodies of a batch, in the end the sums of the warps.
  __shared__ __align__(32) Real around[SPREADERS * ROW];
  __shared__ Begins<Real> begins[SPREADERS];
  __shared__ Real strength[SPREADERS];
  __shared__ unsigned run_first[SPREADERS], run_end[SPREADERS];
  const Lattice &l = v.lattice;
  const unsigned bricks_y = (l.points[1] + BRICK - 1) / BRICK, bricks_z = (l.points[2] + BRICK - 1) / BRICK;
  const unsigned brick[3] = {blockIdx.x / (bricks_y * bricks_z), blockIdx.x / bricks_z % bricks_y, blockIdx.x % bricks_z};
  unsigned count[3], width[3];
  int low[3], first_cell[3];
#pragma unroll
  for (int d = 0; d < 3; d++) {
    low[d] = brick[d] * BRICK;
    width[d] = min(BRICK, l.points[d] - unsigned(low[d]));
    first_cell[d] = cells_around<P>(v, d, low[d], count[d]);
  }
  load_weights(v, weights);
  Real own[OWN_X][OWN_Y][OWN_Z] = {};
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned z = lane % (BRICK / OWN_Z) * OWN_Z, y = lane / (BRICK / OWN_Z) % (BRICK / OWN_Y) * OWN_Y;
  const unsigned x = lane / (BRICK / OWN_Z) / (BRICK / OWN_Y) * OWN_X;
  // Cells along z are one run of bodies, or two around the edge of the box.
  const unsigned from_z = wrapped(first_cell[2], l.cells[2]), before_edge = min(count[2], l.cells[2] - from_z);
  const unsigned runs = (before_edge < count[2] ? 2 : 1) * count[0] * count[1];
  for (unsigned run = 0; run < runs; run += SPREADERS) {
    const unsigned mine = run + threadIdx.x;
    const bool is_around = mine >= count[0] * count[1];
    const unsigned column = is_around ? mine - count[0] * count[1] : mine;
    unsigned first = 0, length = 0;
    if (mine < runs) {
      const unsigned row = (wrapped(first_cell[0] + int(column / count[1]), l.cells[0]) * l.cells[1] +
                            wrapped(first_cell[1] + int(column % count[1]), l.cells[1])) *
                           l.cells[2];
      const unsigned from = is_around ? 0 : from_z, to = is_around ? count[2] - before_edge : from_z + before_edge;
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
      Begins<Real> mine_begins;
      Real mine_strength = 0;
      bool reaches = at < total;
      if (reaches) {
        // The first run that ends beyond.
        unsigned a = 0, b = SPREADERS - 1;
        while (a < b) {
          const unsigned middle = (a + b) / 2;
          if (run_end[middle] > at) b = middle;
          else a = middle + 1;
        }
        const Body s = v.bodies[run_first[a] + at];
        const double position[3] = {s.x, s.y, s.z};
        mine_strength = Real(s.q);
#pragma unroll
        for (int d = 0; d < 3; d++) {
          double beyond;
          const unsigned begin = first_point(place_of(l, position[d], d), P, l.points[d], beyond);
          mine_begins.first[d] = begin;
          mine_begins.beyond[d] = Real(2 * beyond - 1);
          const unsigned after = begin >= unsigned(low[d]) ? begin - low[d] : begin + l.points[d] - low[d];
          reaches &= after < width[d] || after + P > l.points[d];
        }
      }
      uint32_t found;
      const uint32_t place = block_exclusive(reaches ? 1 : 0, found);
      if (reaches) {
        begins[place] = mine_begins;
        strength[place] = mine_strength;
      }
      __syncthreads();
      for (unsigned task = threadIdx.x; task < 3 * found; task += SPREADERS) {
        const unsigned d = task < found ? 0 : task < 2 * found ? 1 : 2, k = task - d * found;
        const int count = d == 0 ? l.points[0] : d == 1 ? l.points[1] : l.points[2];
        const Real t = begins[k].beyond[d], q = d == 0 ? strength[k] : Real(1);
        // Where the brick's first point is in the window, or before it.
        const int before = d == 0 ? low[0] : d == 1 ? low[1] : low[2];
        const unsigned wide = d == 0 ? width[0] : d == 1 ? width[1] : width[2];
        // From the window's beginning on, or before it as far as the window is around the box.
        int after = int(begins[k].first[d]) - before;
        if (after < 0) after += count;
        const bool is_around = after + int(P) > count;
        const int at = is_around ? after - count : after;
        Real *row = around + k * ROW + d * BRICK;
#pragma unroll
        for (unsigned p = 0; p < BRICK; p++) row[p] = 0;
#pragma unroll
        for (unsigned from = 0; from < P; from += 4) {
          Some<Real, 4> w = some<Real, 4>(weights + from);
          for (unsigned power = 1; power < v.powers; power++) {
            const auto next = some<Real, 4>(weights + power * MOST_POINTS + from);
#pragma unroll
            for (unsigned j = 0; j < 4; j++) w.w[j] = w.w[j] * t + next.w[j];
          }
#pragma unroll
          for (unsigned j = 0; j < 4 && from + j < P; j++) {
            const unsigned p = at + int(from + j), again = after + int(from + j);
            if (p < wide) row[p] = w.w[j] * q;
            // Boxes so narrow that both ends of a window are in a brick.
            if (count < int(BRICK + P) && is_around && again < wide) row[again] = w.w[j] * q;
          }
        }
      }
      __syncthreads();
#pragma unroll 2
      for (unsigned k = warp; k < found; k += SPREAD_WARPS) {
        const Real *row = around + k * ROW;
        const auto of_x = some<Real, OWN_X>(row + x);
        const auto of_y = some<Real, OWN_Y>(row + BRICK + y);
        const auto of_z = some<Real, OWN_Z>(row + 2 * BRICK + z);
#pragma unroll
        for (unsigned b = 0; b < OWN_Y; b++)
#pragma unroll
          for (unsigned c = 0; c < OWN_Z; c++) {
            const Real w = of_y.w[b] * of_z.w[c];
#pragma unroll
            for (unsigned a = 0; a < OWN_X; a++) own[a][b][c] += w * of_x.w[a];
          }
      }
      __syncthreads();
    }
  }
  // The sums of the warps, one after the other.
  static_assert(BRICK * BRICK * BRICK <= SPREADERS * ROW, "the weights' memory holds a brick");
  for (unsigned w = 0; w < SPREAD_WARPS; w++) {
    if (warp == w)
      for (unsigned a = 0; a < OWN_X; a++)
        for (unsigned b = 0; b < OWN_Y; b++)
          for (unsigned c = 0; c < OWN_Z; c++) {
            Real &sum = around[((x + a) * BRICK + y + b) * BRICK + z + c];
            sum = w == 0 ? own[a][b][c] : sum + own[a][b][c];
          }
    __syncthreads();
  }
  Real *mesh = static_cast<Real *>(v.mesh);
  for (unsigned i = threadIdx.x; i < BRICK * BRICK * BRICK; i += SPREADERS) {
    const unsigned at[3] = {i / (BRICK * BRICK), i / BRICK % BRICK, i % BRICK};
    if (at[0] < width[0] && at[1] < width[1] && at[2] < width[2])
      mesh[(size_t(low[0] + at[0]) * l.points[1] + low[1] + at[1]) * l.points[2] + low[2] + at[2]] = around[i];
  }
}

// The functions of a point.
template <typename Real> struct alignas(4 * sizeof(Real)) Functions {
  Real f[4];
};

// The sums at the targets: what the mesh gives to the pairs. P lanes have a target, each a point of the window along z; targets of a warp
// mostly share a column of cells, and rows of points.
template <typename Real, unsigned P> __device__ inline void gather(const WindowView &v) {
  constexpr unsigned TARGETS = 32 / P, WARPS = GATHERERS / 32;
  __shared__ Real weights[MOST_POWERS * MOST_POINTS];
  __shared__ Real along[WARPS][TARGETS][2][P];
  load_weights(v, weights);
  __syncthreads();
  const Lattice &l = v.lattice;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = min(lane / P, TARGETS - 1), point = lane % P;
  const unsigned nx = l.points[0], ny = l.points[1], nz = l.points[2], plane = ny * nz;
  const Functions<Real> *mesh = static_cast<const Functions<Real> *>(v.functions);
  // Lanes beyond the last group read what it reads.
  const unsigned number = (blockIdx.x * WARPS + warp) * TARGETS + group, i = min(number, v.n - 1);
  const Body at = v.bodies[i];
  const double position[3] = {at.x, at.y, at.z};
  unsigned begins[3];
  Real w = 0;
  for (int d = 0; d < 3; d++) {
    double beyond;
    begins[d] = first_point(place_of(l, position[d], d), P, l.points[d], beyond);
    w = weight_of(weights, v.powers, point, Real(2 * beyond - 1));
    if (d < 2) along[warp][group][d][point] = w;
  }
  __syncwarp();
  const unsigned z = begins[2] + point;
  // Meshes have fewer than 2^32 points. The last row before the edge of the box, if the window has one beyond.
  const unsigned edge = ny - 1 - begins[1];
  Real weights_y[P];
#pragma unroll
  for (unsigned b = 0; b < P; b++) weights_y[b] = along[warp][group][1][b];
  Real sum[4] = {};
#pragma unroll 1
  for (unsigned a = 0; a < P; a++) {
    const unsigned x = begins[0] + a;
    unsigned at_row = (x < nx ? x : x - nx) * plane + begins[1] * nz + (z < nz ? z : z - nz);
    Real inner[4] = {};
#pragma unroll
    for (unsigned b = 0; b < P; b++) {
      const Functions<Real> values = mesh[at_row];
      at_row += b == edge ? nz - plane : nz;
      for (int k = 0; k < 4; k++) inner[k] += weights_y[b] * values.f[k];
    }
    const Real weight = along[warp][group][0][a];
    for (int k = 0; k < 4; k++) sum[k] += weight * inner[k];
  }
  // To the first lane of the group.
  for (int k = 0; k < 4; k++) {
    sum[k] *= w;
#pragma unroll
    for (unsigned d = P > 8 ? 8 : P > 4 ? 4 : 2; d > 0; d /= 2) {
      const Real other = __shfl_down_sync(0xffffffff, sum[k], d);
      if (point + d < P) sum[k] += other;
    }
  }
  if (point != 0 || lane >= TARGETS * P || number >= v.n) return;
  const double *near = v.near + 4 * size_t(i);
  const size_t body = v.order[i];
  for (int k = 0; k < 3; k++) v.field[3 * body + k] = (near[1 + k] + double(sum[1 + k])) * v.field_scale;
  if (v.potential) v.potential[body] = (near[0] + double(sum[0]) - v.background - v.own * at.q) * v.potential_scale;
}

#define OF_POINTS(P, REAL, NAME)                                                                                                         \
  __global__ void __launch_bounds__(SPREADERS) mesh_spread_##NAME##_##P(const __grid_constant__ WindowView v) { spread<REAL, P>(v); } \
  __global__ void __launch_bounds__(GATHERERS) mesh_gather_##NAME##_##P(const __grid_constant__ WindowView v) { gather<REAL, P>(v); }
#define OF(P) OF_POINTS(P, float, f32) OF_POINTS(P, double, f64)
extern "C" {
OF(3)
OF(4)
OF(5)
OF(6)
OF(7)
OF(8)
OF(9)
OF(10)
OF(11)
OF(12)
OF(13)
OF(14)
OF(15)
OF(16)
}
