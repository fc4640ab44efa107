// The arguments of the kernels of periodic boxes. crates/fmm-cuda/src/view/periodic.rs mirrors every struct.
#pragma once
#include "common/view.cuh"

// Numbers of a share of the moments: charge, dipole and second moment of wrapped bodies about the middle of the box, the sum of the
// magnitudes, and dipole and second moment of bodies as they are about the origin.
constexpr unsigned MOMENTS = 10;

// Bodies to their places in the box, and what is not harmonic of its potential.
struct BoxView {
  const double *position;       // [n][3], as they are
  const double *strength;       // [n], or null: no moments
  double *wrapped;              // [n][3]
  double *stretched;            // [n][3]: in the cube that the box is stretched to; or null
  double *partial;              // [blocks][MOMENTS]
  double *center;               // [cells][3]
  double *field;                // [n][3]
  double *potential;            // [n]
  double side[3], stretch[3];   // stretch: the longest side over each
  double middle[3];
  double charge, dipole[3], second;             // of wrapped bodies about the middle, times 2 pi / 3 V
  double outer_dipole[3], outer_second;         // of bodies as they are, times what the surroundings do to them; or 0
  uint64_t n;
};

// Cells that a box is cut into, three along each axis.
constexpr unsigned CELLS_IN_BOX = 27;

// The images that lists do not know: from the root's multipole to its local expansion.
struct LatticeView {
  const double *matrix;         // [n][n]: [source][target coefficient]; with a ternary root [offsets][n][n], offsets from -2 to 2, x fastest
  const void *multipole;        // [n]; with a ternary root [CELLS_IN_BOX][n]
  void *local;                  // the same: added to
  uint32_t n;
  int32_t place[CELLS_IN_BOX][3];  // of each cell of a ternary root
};

// Waves along z of a column, and places of a target in a row of what the guard hears.
constexpr unsigned DEEP = 4, BOX_ROW = 16;
// Sources of a chunk in real space: that a lane holds, and all.
constexpr unsigned HELD_SOURCES = 8, SOURCES = 32 * HELD_SOURCES;

// Ewald's sum. Lengths are multiplied by `scale` as bodies are read.
struct EwaldView {
  const Body *sources;          // [n], in the box
  const Body *targets;          // in the box
  const double *place;          // [n][3]: the sources in any order, for their structure factors
  const double *charge;         // [n]
  const uint32_t *picked;       // [count]: places among the targets
  const uint32_t *order;        // of each target: its place in the caller's order
  const uint4 *columns;         // [columns]: numbers along x and y, first of DEEP along z
  double *structure;            // [parts][columns][DEEP][8]
  double *factors;              // [columns][DEEP][8]: the sums over all bodies, with the weight of the wave
  double *partial;              // [shares][count][5]
  double *waves;                // [count][4]
  double *potential;            // what was found, or what is wanted, in the caller's order
  double *field;
  const double *position;       // in the caller's order, as they are
  const double *weight;         // [count]
  const double *shared;         // see GuardView
  double *out;                  // [count][BOX_ROW]: the sums, the largest term, what was found, weight, position; and what `shared` holds
  double side[3];               // scaled
  double scale, alpha, cutoff2, highest2;
  double softening;             // h of the spline, scaled
  double background;            // of the scaled potential
  double potential_scale, field_scale, strength_scale;
  uint32_t n, count;
  uint32_t columns_len, parts, shares;
  uint32_t most[3], reach[3];   // waves along each axis; images beyond the nearest
  uint32_t same, first;         // first: of the targets of this launch, where none are picked
  uint32_t bodies;              // of a batch of the structure factors
};

extern "C" __device__ const unsigned box_layout[] = {
    MOMENTS, CELLS_IN_BOX, sizeof(BoxView), offsetof(BoxView, side), offsetof(BoxView, charge), offsetof(BoxView, n),
    sizeof(LatticeView), DEEP, BOX_ROW, SOURCES, sizeof(EwaldView), offsetof(EwaldView, side), offsetof(EwaldView, n),
    offsetof(EwaldView, most), offsetof(EwaldView, bodies),
};
