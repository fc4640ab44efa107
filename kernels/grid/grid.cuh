// What the kernels of the Poisson solver on grids share with the host, by value. crates/fmm-cuda/src/grid/view.rs mirrors every struct.
#pragma once
#include <cstddef>
#include <cstdint>

// Cells along a side of a brick, cells of a brick, and the six sums of each: three components of 4 pi Psi and three of 4 pi u.
constexpr unsigned SIDE = 8, POINTS = SIDE * SIDE * SIDE, SUMS = 6 * POINTS;
// Threads of a block of direct sums, each with a column of points along y; sources that it holds.
constexpr unsigned COLUMNS = SIDE * SIDE;
// Threads of a block of evaluations, each with two points of a column.
constexpr unsigned EVALUATORS = POINTS / 2;

// A cell with vorticity: center, strength, and the square of its core.
struct alignas(32) GridSource {
  double x[3], q[3], core2, unused;
};

struct GridView {
  const double *center;        // [n][3]
  const double *strength;      // [n][3]
  const double *core2;         // [n]
  const uint32_t *order;       // [n]: sorted place -> place in these arrays
  GridSource *source;          // [n], sorted, in units of 1/scale
  const double *brick;         // [bricks][3][SIDE]: coordinates of the points, in the same units
  const uint32_t *tasks;       // [count][4]: brick, first run or node, one past the last, place of its sums
  const uint32_t *runs;        // [runs][2]: first source and one past the last
  const uint32_t *parts;       // [count][3]: place of the sums of a brick, first of those to be added to them, one past the last
  const uint32_t *nodes;       // those that act by expansion, row by row
  const double *node;          // [nodes][4]: center, and the inverse of half the side
  const double *weights;       // [nodes][length]
  const double *diagonal;      // [degree + 2]
  const double *steps;         // [..][2]
  double *out;                 // [places][SUMS]
  double scale;                // a power of two
  double stream, velocity;     // factors of the sums of a task
  uint32_t n, count;
  uint32_t degree, length;     // of the expansions, and numbers of a node
};

extern "C" __device__ const unsigned grid_layout[] = {
    SIDE, SUMS, COLUMNS, EVALUATORS, sizeof(GridSource), offsetof(GridSource, q), offsetof(GridSource, core2), sizeof(GridView),
    offsetof(GridView, order), offsetof(GridView, tasks), offsetof(GridView, parts), offsetof(GridView, node),
    offsetof(GridView, out), offsetof(GridView, scale), offsetof(GridView, velocity), offsetof(GridView, n), offsetof(GridView, degree),
};
