// Direct sums of the Poisson solver on grids: fmm-core's `grid/near.rs` in double precision. A block has the points of a brick, a thread one
// column of them along y. What belongs to a column is computed once for its eight points, and what belongs to a coordinate y once for the block.
#include "arguments/grid.cuh"

// A source as a block holds it.
struct alignas(16) Held {
  double x, z, a, b, c, core2, half_core2, unused;
  double dy[SIDE];             // y of each of the points of a column less that of the source
};

// s^(-1/2) to about the last digit, from the unit's estimate of some 20 bits: (1 - e)^(-1/2) = 1 + e/2 + 3/8 e^2 + ... An estimate of zero stays zero.
__device__ inline double refined(double s, double estimate) {
  const double e = fma(-s, estimate * estimate, 1.0);
  // No instruction with three registers besides the result: see below.
  return estimate * fma(e, fma(0.375, e, 0.5), 1.0);
}

__device__ inline double inverse_root_estimate(double s) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(s));
  return y;
}

// -2 y of a normal y > 0: one whole number is added to its exponent and sign.
__device__ inline double minus_twice(double y) { return __hiloint2double(__double2hiint(y) + int(0x80100000), __double2loint(y)); }

template <bool SINGULAR> __device__ void direct(const GridView &v) {
  __shared__ Held held[COLUMNS];
  __shared__ double rows[SIDE];
  const unsigned t = threadIdx.x;
  const uint4 task = reinterpret_cast<const uint4 *>(v.tasks)[blockIdx.x];
  const double *at = v.brick + 3 * SIDE * size_t(task.x);
  const double ax = at[t % SIDE], az = at[2 * SIDE + t / SIDE];
  if (t < SIDE) rows[t] = at[SIDE + t];
  // Centers of cells that do not overlap are at least 3/4 h apart, so a center nearer than half of
  // h is the cell itself. Squares of distances are not negative, so their upper words compare as
  // they do.
  const double half = 0.5 * (at[1] - at[0]);
  const int own = __double2hiint(half * half);
  double psi[SIDE][3] = {}, u[SIDE][3] = {};
  uint32_t run = task.y, from = 0, to = 0;
  while (true) {
    // The next sources, of one run or of several.
    uint32_t filled = 0, index = 0;
    while (filled < COLUMNS) {
      if (from == to) {
        if (run == task.z) break;
        from = v.runs[2 * size_t(run)];
        to = v.runs[2 * size_t(run) + 1];
        run++;
        continue;
      }
      const uint32_t here = min(COLUMNS - filled, to - from);
      if (t >= filled && t < filled + here) index = from + (t - filled);
      from += here;
      filled += here;
    }
    if (filled == 0) break;
    __syncthreads();
    if (t < filled) {
      const double2 *p = reinterpret_cast<const double2 *>(v.source + index);
      const double2 xy = p[0], za = p[1], bc = p[2], core = p[3];
      Held &h = held[t];
      h.x = xy.x;
      h.z = za.x;
      h.a = za.y;
      h.b = bc.x;
      h.c = bc.y;
      h.core2 = core.x;
      h.half_core2 = 0.5 * core.x;
#pragma unroll
      for (unsigned k = 0; k < SIDE; k++) h.dy[k] = rows[k] - xy.y;
    }
    __syncthreads();
#pragma unroll 1
    for (unsigned j = 0; j < filled; j++) {
      const double2 *h = reinterpret_cast<const double2 *>(held + j);
      const double2 xz = h[0], ab = h[1], ce = h[2];
      const double dx = ax - xz.x, dz = az - xz.y, a = ab.x, b = ab.y, c = ce.x;
      const double half_core2 = SINGULAR ? 0.0 : h[3].x;
      const double base = fma(dx, dx, SINGULAR ? dz * dz : fma(dz, dz, ce.y));
      double potential[SIDE], g[SIDE], dy[SIDE];
      // d x (a, b, c), but for what d_y makes of it.
      const double minus_zb = -dz * b, around_y = fma(dz, a, -dx * c), xb = dx * b;
#pragma unroll
      for (unsigned k = 0; k < SIDE; k++) {
        const double2 both = h[4 + k / 2];
        dy[k] = k % 2 ? both.y : both.x;
        const double s = fma(dy[k], dy[k], base);
        double estimate = inverse_root_estimate(s);
        if (SINGULAR) estimate = __double2hiint(s) >= own ? estimate : 0.0;
        const double inverse = refined(s, estimate), square = inverse * inverse;
        if (SINGULAR) {
          potential[k] = inverse;
          g[k] = square * inverse;
        } else {
          // y + t y and y^2 (y + 3 t y), t = core^2 y^2/2.
          potential[k] = fma(half_core2 * square, inverse, inverse);
          g[k] = square * fma(3.0, potential[k], minus_twice(inverse));
        }
      }
      // One component at all points after another: instructions that follow each other then share an operand, which is not read again. Three of
      // double precision take the registers longer than the units.
#pragma unroll
      for (unsigned k = 0; k < SIDE; k++) psi[k][0] = fma(a, potential[k], psi[k][0]);
#pragma unroll
      for (unsigned k = 0; k < SIDE; k++) psi[k][1] = fma(b, potential[k], psi[k][1]);
#pragma unroll
      for (unsigned k = 0; k < SIDE; k++) psi[k][2] = fma(c, potential[k], psi[k][2]);
#pragma unroll
      for (unsigned k = 0; k < SIDE; k++) u[k][1] = fma(around_y, g[k], u[k][1]);
#pragma unroll
      for (unsigned k = 0; k < SIDE; k++) u[k][0] = fma(g[k], fma(dy[k], c, minus_zb), u[k][0]);
#pragma unroll
      for (unsigned k = 0; k < SIDE; k++) u[k][2] = fma(g[k], fma(-dy[k], a, xb), u[k][2]);
    }
  }
  double *out = v.out + SUMS * size_t(task.w) + (t / SIDE) * COLUMNS + t % SIDE;
#pragma unroll
  for (unsigned k = 0; k < SIDE; k++)
#pragma unroll
    for (unsigned d = 0; d < 3; d++) {
      out[d * POINTS + k * SIDE] = v.stream * psi[k][d];
      out[(3 + d) * POINTS + k * SIDE] = v.velocity * u[k][d];
    }
}

extern "C" {
// Cells in the order of their tree, in units of 1/scale.
__global__ void __launch_bounds__(256) grid_sort(GridView v) {
  const uint32_t i = blockIdx.x * 256 + threadIdx.x;
  if (i >= v.n) return;
  const size_t from = v.order[i];
  GridSource s = {};
#pragma unroll
  for (unsigned d = 0; d < 3; d++) {
    s.x[d] = v.center[3 * from + d] * v.scale;
    s.q[d] = v.strength[3 * from + d];
  }
  s.core2 = v.core2[from] * v.scale * v.scale;
  v.source[i] = s;
}

// The parts of bricks with many sources, in their order.
__global__ void __launch_bounds__(256) grid_join(GridView v) {
  const size_t number = blockIdx.x;
  const uint32_t *part = v.parts + 3 * number;
  for (unsigned i = threadIdx.x; i < SUMS; i += 256) {
    double sum = v.out[SUMS * size_t(part[0]) + i];
    for (uint32_t p = part[1]; p < part[2]; p++) sum += v.out[SUMS * size_t(p) + i];
    v.out[SUMS * size_t(part[0]) + i] = sum;
  }
}

// Psi and u in the cells of a block from the sums of its bricks; `stream` is the factor of both.
__global__ void __launch_bounds__(256) grid_spread(GridView v) {
  constexpr unsigned WIDE = 2 * SIDE;
  for (unsigned c = threadIdx.x; c < WIDE * WIDE * WIDE; c += 256) {
    const unsigned i = c % WIDE, j = c / WIDE % WIDE, k = c / (WIDE * WIDE);
    const size_t brick = 8 * size_t(blockIdx.x) + i / SIDE + 2 * (j / SIDE) + 4 * (k / SIDE);
    const unsigned point = i % SIDE + SIDE * (j % SIDE + SIDE * (k % SIDE));
    const size_t cell = WIDE * WIDE * WIDE * size_t(blockIdx.x) + c;
    const uint32_t place = v.place[brick];
    for (unsigned d = 0; d < 6; d++) {
      double sum = place == NO_SUMS ? 0.0 : v.out[SUMS * size_t(place) + d * POINTS + point];
      if (v.others != nullptr) sum += v.others[SUMS * brick + d * POINTS + point];
      (d < 3 ? v.psi : v.field)[3 * cell + d % 3] = v.stream * sum;
    }
  }
}

__global__ void __launch_bounds__(COLUMNS, 6) grid_p2p_singular(GridView v) { direct<true>(v); }
__global__ void __launch_bounds__(COLUMNS, 6) grid_p2p_regularised(GridView v) { direct<false>(v); }
}
