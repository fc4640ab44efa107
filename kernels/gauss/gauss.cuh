// What the kernels of sums of Gaussians share with the host, by value. crates/fmm-cuda/src/gauss/view.rs mirrors every struct.
#pragma once
#include <cstddef>
#include <cstdint>

// Threads of a block that sorts points into boxes, and points that a block looks at once for where boxes begin.
constexpr unsigned GAUSS_THREADS = 256, RUN_ITEMS = 8, RUN_TILE = GAUSS_THREADS * RUN_ITEMS;
// Digits of the number of a box.
constexpr unsigned BOX_DIGITS = 8;
// Threads of a block of P2M and P2L, points that it holds, and coefficients of a thread.
constexpr unsigned GATHER_THREADS = 128, BATCH = 32, HELD = 8;
// Threads of a block of L2P and M2P, and the points of each where boxes are full.
constexpr unsigned SPREAD_THREADS = 64, SPREAD_POINTS = 4;
// Warps of a block of P2P, each with up to 32 targets.
constexpr unsigned NEAR_WARPS = 4;

// A point with its strength; unused axes are zero.
struct alignas(32) GaussPoint {
  double x[3], q;
};

// Points and the boxes of a lattice that hold them.
struct GaussBoxesView {
  const double *position;      // [n][axes]
  const double *strength;      // [n]; null: zero
  double *bounds;              // [blocks][6]: the smallest and the largest coordinates of the share of each block
  uint64_t *key;               // [n]: the number of the box of each point; sorted where boxes are looked for
  uint32_t *bins;              // [BOX_DIGITS][256]
  uint64_t *box;               // [n]: the numbers of the boxes that hold any
  uint32_t *start;             // [n + 1]: the first point of each, and n
  GaussPoint *center;          // [boxes]
  uint32_t *found;             // how many they are
  const uint32_t *order;       // [n]
  GaussPoint *points;          // [n]
  uint64_t *status;            // [tiles]
  uint32_t *ticket;
  double origin[3], side, inverse;
  uint64_t count[3];           // boxes along each axis
  uint64_t epoch;
  uint32_t n, axes;
};

// Operators.
struct GaussView {
  const GaussPoint *points;    // sources of P2M and P2L, targets of the others
  const GaussPoint *sources;   // of P2P
  const GaussPoint *center;    // of the boxes of tasks
  const GaussPoint *other;     // of the boxes of sources, for M2P
  const uint32_t *tasks;       // [count][4]: place of the series, box, first point, one past the last; M2L: row of `list`, place along the axis
  const uint64_t *start;       // [boxes + 1]: rows of `list`
  const uint32_t *list;        // [entries][2]: runs of sources, or the place of a series and its box, or that and where it is along the axis
  const double *matrix;        // [offsets][order][width]: of M2L
  const uint32_t *used;        // [offsets]: terms of each
  const double *roots;         // [order + 1][2]: roots of n and their inverses; for gauss_scale the inverse roots of n!
  double *series;              // [places][terms]
  const double *before;        // [places][terms]: what M2L begins with, or the parts of sums
  double *out;                 // [targets][values]
  double scale;                // 1/sigma
  double strength;             // a power of two by which strengths are multiplied in single precision
  uint32_t order, width;       // terms along an axis, and the same up to whole eights
  uint32_t terms, axes;        // of a box
  uint32_t values, count;      // numbers of a target; tasks, boxes or coefficients
  uint32_t reach, fresh;       // fresh: L2P forgets what `out` was
};

// To the caller's order.
struct GaussReturnView {
  const double *out;           // [n][values]
  const uint32_t *order;       // [n]
  double *potential;           // [n]
  double *field;               // [n][axes]; null: not wanted
  double scale;                // 1/sigma
  uint32_t n, axes;
};

extern "C" __device__ const unsigned gauss_layout[] = {
    GAUSS_THREADS, RUN_TILE, BOX_DIGITS, GATHER_THREADS, BATCH, HELD, SPREAD_THREADS, SPREAD_POINTS, NEAR_WARPS,
    sizeof(GaussPoint), sizeof(GaussBoxesView), offsetof(GaussBoxesView, center), offsetof(GaussBoxesView, ticket),
    offsetof(GaussBoxesView, origin), offsetof(GaussBoxesView, count), offsetof(GaussBoxesView, axes),
    sizeof(GaussView), offsetof(GaussView, tasks), offsetof(GaussView, roots), offsetof(GaussView, scale),
    offsetof(GaussView, reach), sizeof(GaussReturnView), offsetof(GaussReturnView, scale), offsetof(GaussReturnView, axes),
};

// Runs of sources, one after the other: a block or a warp takes up to `most` at once, of which each thread may ask for one.
struct Feed {
  const uint32_t *list;
  uint64_t next, end;          // of the runs that follow
  uint32_t at, to;             // of the present one

  // How many there are for the threads 0, 1, ..; `index` is that of thread t, if it has one.
  __device__ uint32_t take(uint32_t most, uint32_t t, uint32_t &index) {
    uint32_t filled = 0;
    while (filled < most) {
      if (at == to) {
        if (next == end) break;
        at = list[2 * next];
        to = list[2 * next + 1];
        next++;
        continue;
      }
      const uint32_t here = min(most - filled, to - at);
      if (t >= filled && t < filled + here) index = at + (t - filled);
      at += here;
      filled += here;
    }
    return filled;
  }
};

constexpr double LOG2_E = 1.4426950408889634074;

// 2^(-y) for y >= 0 by a series of degree TERMS; 0 where it is below 2^-1000. `y` may be infinite.
template <int TERMS> __device__ inline double power_of_half(double y) {
  constexpr double ROUND = 6755399441055744.0;
  // log(2)^k/k!
  constexpr double SERIES[14] = {
    1.0, 0.69314718055994531, 0.24022650695910071, 0.055504108664821580, 0.0096181291076284772, 0.0013333558146428443,
    1.5403530393381609e-4, 1.5252733804059840e-5, 1.3215486790144309e-6, 1.0178086009239699e-7, 7.0549116208011233e-9,
    4.4455382718708116e-10, 2.5678435993488206e-11, 1.3691488853904129e-12};
  const double shifted = ROUND - y;
  const double f = (ROUND - shifted) - y;
  double sum = SERIES[TERMS];
#pragma unroll
  for (int k = TERMS - 1; k >= 0; k--) sum = fma(sum, f, SERIES[k]);
  const int e = __double2loint(shifted);
  const double power = __hiloint2double(__double2hiint(sum) + (e << 20), __double2loint(sum));
  // 1000 as bits: numbers that are not negative are in the order of their words.
  return __double2hiint(y) < 0x408f4000 ? power : 0;
}
