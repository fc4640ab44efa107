// Expansions at the points of bricks: fmm-core's `grid/far.rs` in double precision. A block has a brick and takes its nodes one after the other,
// whose weights it holds; a thread has two points, of which it makes the harmonics, order after order, and meets them with the weights on the spot.
#include "arguments/grid.cuh"

constexpr unsigned EACH = POINTS / EVALUATORS;

__device__ inline double inverse_root(double s) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(s));
  const double e = fma(-s, y * y, 1.0);
  return fma(y * e, fma(0.375, e, 0.5), y);
}

extern "C" __global__ void __launch_bounds__(EVALUATORS) grid_m2p(GridView v) {
  extern __shared__ double2 held[];
  double *weights = reinterpret_cast<double *>(held);
  const unsigned t = threadIdx.x;
  const uint4 task = reinterpret_cast<const uint4 *>(v.tasks)[blockIdx.x];
  const double *at = v.brick + 3 * SIDE * size_t(task.x);
  const double px = at[t % SIDE], pz = at[2 * SIDE + t / SIDE % SIDE];
  double py[EACH];
#pragma unroll
  for (unsigned k = 0; k < EACH; k++) py[k] = at[SIDE + t / COLUMNS + k * (SIDE / EACH)];
  const double2 *steps = reinterpret_cast<const double2 *>(v.steps);
  const unsigned degree = v.degree + 1;
  // Order 0 has an odd number of weights: one is left out after it, so that all others are met in twos.
  const unsigned first = 6 * degree + 3;
  double total[EACH][6] = {};
  for (uint32_t entry = task.y; entry < task.z; entry++) {
    const size_t node = v.nodes[entry];
    __syncthreads();
    for (unsigned i = t; i < v.length; i += EVALUATORS) weights[i < first ? i : i + 1] = v.weights[node * v.length + i];
    __syncthreads();
    const double *center = v.node + 4 * node;
    const double inverse_half = center[3];
    const double ax = (px - center[0]) * inverse_half, az = (pz - center[2]) * inverse_half;
    double x[EACH], y[EACH], z[EACH], w[EACH], re[EACH], im[EACH], now[EACH], before[EACH];
#pragma unroll
    for (unsigned k = 0; k < EACH; k++) {
      const double ay = (py[k] - center[1]) * inverse_half;
      const double inverse = inverse_root(fma(ax, ax, fma(ay, ay, az * az)));
      w[k] = inverse * inverse;
      x[k] = ax * w[k];
      y[k] = ay * w[k];
      z[k] = az * w[k];
      re[k] = now[k] = inverse;
      im[k] = before[k] = 0;
    }
    // Order 0 has real parts alone.
    for (unsigned l = 0; l < degree; l++) {
      const double2 *here = held + 3 * l;
#pragma unroll
      for (unsigned c = 0; c < 3; c++) {
        const double2 pair = here[c];
#pragma unroll
        for (unsigned k = 0; k < EACH; k++) {
          total[k][2 * c] = fma(pair.x, now[k], total[k][2 * c]);
          total[k][2 * c + 1] = fma(pair.y, now[k], total[k][2 * c + 1]);
        }
      }
      const double2 step = steps[l];
#pragma unroll
      for (unsigned k = 0; k < EACH; k++) {
        const double next = fma(-(step.y * w[k]), before[k], step.x * z[k] * now[k]);
        before[k] = now[k];
        now[k] = next;
      }
    }
#pragma unroll
    for (unsigned c = 0; c < 3; c++)
#pragma unroll
      for (unsigned k = 0; k < EACH; k++) total[k][3 + c] = fma(weights[6 * degree + c], now[k], total[k][3 + c]);
    const double2 *here = held + (first + 1) / 2, *step = steps + degree;
    for (unsigned m = 1; m <= degree; m++) {
      const double d = v.diagonal[m];
      double re1[EACH], im1[EACH], re2[EACH], im2[EACH];
#pragma unroll
      for (unsigned k = 0; k < EACH; k++) {
        const double dx = d * x[k], dy = d * y[k], r = re[k], i = im[k];
        re1[k] = re[k] = fma(-dy, i, dx * r);
        im1[k] = im[k] = fma(dx, i, dy * r);
        re2[k] = im2[k] = 0;
      }
      for (unsigned l = m; l < degree; l++, here += 6) {
        const double2 next = *step++;
#pragma unroll
        for (unsigned c = 0; c < 3; c++) {
          const double2 real = here[c], imaginary = here[3 + c];
#pragma unroll
          for (unsigned k = 0; k < EACH; k++) {
            total[k][2 * c] = fma(imaginary.x, im1[k], fma(real.x, re1[k], total[k][2 * c]));
            total[k][2 * c + 1] = fma(imaginary.y, im1[k], fma(real.y, re1[k], total[k][2 * c + 1]));
          }
        }
#pragma unroll
        for (unsigned k = 0; k < EACH; k++) {
          const double a = next.x * z[k], b = next.y * w[k];
          const double re0 = fma(-b, re2[k], a * re1[k]), im0 = fma(-b, im2[k], a * im1[k]);
          re2[k] = re1[k];
          im2[k] = im1[k];
          re1[k] = re0;
          im1[k] = im0;
        }
      }
      const double2 last[3] = {here[0], here[1], here[2]};
      here += 3;
#pragma unroll
      for (unsigned k = 0; k < EACH; k++) {
        total[k][3] = fma(last[1].y, im1[k], fma(last[0].x, re1[k], total[k][3]));
        total[k][4] = fma(last[2].x, im1[k], fma(last[0].y, re1[k], total[k][4]));
        total[k][5] = fma(last[2].y, im1[k], fma(last[1].x, re1[k], total[k][5]));
      }
    }
  }
  double *out = v.out + SUMS * size_t(task.w) + (t / SIDE % SIDE) * COLUMNS + (t / COLUMNS) * SIDE + t % SIDE;
#pragma unroll
  for (unsigned k = 0; k < EACH; k++)
#pragma unroll
    for (unsigned c = 0; c < 6; c++) {
      double *sum = out + c * POINTS + k * (SIDE / EACH) * SIDE;
      *sum = fma(c < 3 ? v.stream : v.velocity, total[k][c], *sum);
    }
}
