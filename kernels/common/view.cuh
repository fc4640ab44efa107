// What host and device share: the arguments of the kernels, by value. crates/fmm-cuda/src/view mirrors every struct, and
// `layout` lets a test compare the two in the PTX text, without a GPU.
#pragma once
#include <cstddef>
#include <cstdint>

// Bodies that one block reads at once, and threads of a block.
constexpr unsigned TILE = 256;

// Targets that a thread of a direct sum holds, in each precision: enough to hide latencies, with registers left for
// several blocks on a multiprocessor.
#ifndef TARGETS_F32
#define TARGETS_F32 4
#endif
#ifndef TARGETS_F64
#define TARGETS_F64 3
#endif

// A body in the units of the sum: lengths and strengths are multiplied by powers of two.
struct alignas(32) Body {
  double x, y, z, q;
};

// The bounds of a tile of bodies.
struct Bounds {
  double low[3], high[3];
};

// Positions to bodies in a given order, and to tiles.
struct OrderView {
  const double *position;   // [n][3]
  const double *strength;   // [n], or null: all zero
  const uint32_t *order;    // [n], or null: the order of the caller
  Body *bodies;             // [n]
  Bounds *bounds;           // of each tile of bodies, or of each block's share of the positions
  double scale, strength_scale;
  uint32_t n, unused;
};

// Sums over all sources at all targets.
struct SumView {
  const Body *targets;         // [n_targets]
  const Body *sources;         // [n_sources]
  const Bounds *target_bounds; // of each tile; null in double precision
  const Bounds *source_bounds;
  double *partial;             // [splits][components][n_targets]
  const uint32_t *order;       // place of each target in the caller's order; null: the same
  double *field;               // [n_targets][3]; null: not wanted
  double *potential;           // [n_targets]; null: not wanted
  double softening;            // in the units of the bodies: epsilon, or h of the spline
  double field_scale, potential_scale;
  uint32_t n_targets, n_sources;
  uint32_t splits, tiles_per_split;
  uint32_t same, components;   // same: targets are the sources, and none sees itself
};

// x += h w y, [n] numbers: y accelerations or velocities, w one weight for three of them.
struct StepView {
  double *x;             // [n]
  const double *y;       // [n]
  const double *weight;  // [n / 3], or null: 1
  double h;
  uint64_t n;
};

// The first number that is not finite, and how many, for each block.
struct CheckView {
  const double *x;   // [n]
  uint64_t *first;   // [blocks]
  uint64_t *count;   // [blocks]
  uint64_t n;
};

// No cell.
constexpr uint32_t NONE = ~uint32_t(0);

// Target cells of one octant that one block translates to.
constexpr unsigned CELLS = 64;

// A tree as fmm-core's `Tree` has it.
struct TreeView {
  const double *center;         // [cells][3]
  const double *half;           // [levels]: half the side of the cells of a level
  const uint32_t *level_start;  // [levels + 1]
  const uint32_t *bodies;       // [cells][2]
  const uint32_t *children;     // [cells][2]
  const uint32_t *parent;       // [cells]
  const uint8_t *octant;        // [cells]
  uint32_t cells, levels;
};

// Rows of pairs (source cell, class), one row a target cell.
struct CsrView {
  const uint64_t *start;        // [cells + 1]
  const uint32_t *pairs;        // [start[cells]][2]
};

// Potential and field at one body.
struct alignas(32) Sum {
  double potential, x, y, z;
};

// Bodies to expansions and expansions to bodies. Bodies and sums are in the order of their tree.
struct FarView {
  TreeView targets, sources;
  CsrView list;                 // of P2L and M2P
  const Body *target_bodies;
  const Body *source_bodies;
  const uint32_t *work;         // [count]: the cells that have work
  const void *factors;          // [][2]: of the recurrences, see fmm-core's `recurrences`
  void *coefficients;           // [cells][(order + 1)^2]: multipoles, or local expansions
  Sum *sums;
  double sides[3];              // of the periodic box, or 0
  uint32_t count, order;
  uint32_t staged;              // 1: shared memory holds the harmonics of 32 bodies for each warp
};

// Multipoles of children to their parents', local expansions of parents to their children's.
struct TranslateView {
  TreeView tree;
  const uint32_t *tiles;        // [][CELLS]: children of one level and octant, then NONE
  const void *matrices;         // [8][n][columns]: [octant][source][target coefficient]
  void *from;                   // [cells][n]: the expansions that are translated; M2M completes those of the tile's cells first
  void *to;                     // [cells][n]: L2L adds to it; M2M leaves each cell about its parent's center there
  uint32_t first_tile;
  uint32_t translates;          // 0: nothing but the completing, for the root
  uint32_t n, columns;          // coefficients, and those rounded up to 4
  uint32_t part, depth;         // target coefficients of a block, and source coefficients at a time
};

// Cartesian expansions: bodies to expansions and expansions to bodies.
struct CartesianView {
  TreeView targets, sources;
  CsrView list;                 // of P2L and M2P
  const Body *target_bodies;
  const Body *source_bodies;
  const uint32_t *work;         // a cell for each block
  const uint32_t *exponents;    // of the multi-indices to degree order + 1, 8 bits an axis
  void *coefficients;           // [cells][indices]
  Sum *sums;
  double epsilon;
  uint32_t order, lanes, kernel;  // lanes: bodies at a time; kernel: 0 for Plummer's, 1 for P1, 2 for Yukawa's
};

// The matrices of their M2L.
struct CartesianMatrixView {
  const uint32_t *exponents;
  const uint32_t *coefficients; // [16 steps]: `order` of M2lView
  const double *derivatives;    // [matrices][indices]
  void *matrices;               // [matrices][steps][columns][32][4]
  uint64_t size;                // numbers of all matrices
  uint32_t order, steps, columns;
  uint32_t words, split;        // words: 2 in double precision
};

// Multipoles to local expansions.
struct M2lView {
  CsrView list;
  const uint32_t *tiles;        // [tiles_len][CELLS]: target cells of one level and octant, then NONE
  uint32_t *table;              // [tiles_len][slots][CELLS]: source cells, or NONE
  const uint8_t *octant;        // [cells]
  const uint32_t *level_start;  // [levels + 1]
  const uint32_t *slot_of;      // [8][classes]: the slot of a class at targets of an octant, or NONE
  const uint32_t *operators;    // [8][slots]: the matrix, and in bits 29 to 31 the axes that it is mirrored along
  const uint32_t *source_signs; // [8][pitch]: the sign bits of a packed place in a mirror along these axes
  const uint32_t *target_signs; // [8][8 columns]
  const uint32_t *order;        // [pitch]: the coefficient of a packed place, or NONE
  const void *matrices;         // [][steps][columns][32 lanes][4]
  const void *multipoles;       // [zero_row][n]
  void *packed;                 // [zero_row + 1][pitch]
  const void *from;             // the same
  void *to;                     // [cells][n]
  void *partial;                // [parts][cells][n], where parts > 1
  uint32_t *fault;              // [1]: set where a pair's class has no slot
  uint32_t tiles_len, slots, classes, parts;
  uint32_t cells, zero_row;     // target cells and source cells
  uint32_t n, columns;          // coefficients, and eights of them
  uint32_t pitch, steps, half;  // steps of 16 source coefficients; half: the last has 8
  uint32_t levels, per_level;   // matrices of a level; 0: all levels have the same
};

// Direct sums by lists.
struct NearView {
  TreeView targets, sources;
  CsrView list;
  const Body *target_bodies;
  const Body *source_bodies;
  float4 *near;                 // [sources]: from the center of the leaf, in a power of two below half the root's side; strength
  uint32_t *tasks;              // [count][3]: leaf or NONE, first body, one past the last
  uint32_t *again;              // [count]: 1 where a pair was too close for single precision
  Sum *sums;
  double softening;             // epsilon, or h of the spline
  double smooth_below;          // epsilon
  double closest;               // in half sides of the leaf; 0: never too close
  double sides[3];              // of the periodic box, or 0
  uint32_t count, same;
};

// Where the last degree of the expansions is large, at the bodies of a sample of leaves.
struct ShareView {
  TreeView targets, sources;
  CsrView m2p;
  const uint32_t *leaves;       // every step-th is in the sample
  const Body *target_bodies;
  const Sum *sums;
  const void *multipoles;       // [cells][(order + 1)^2]; null where there is no M2P
  const void *locals;           // the same; null where there is no M2L
  const void *m2p_factors;      // of the recurrences
  const void *l2p_factors;
  uint32_t *start;              // [count]: first body of each leaf
  double *found;                // [1]: number of bodies
  uint32_t *target;             // [capacity]: the bodies
  double *share;                // [capacity]
  double sides[3];              // of the periodic box, or 0
  double largest;               // share
  uint32_t count, step;         // leaves of the sample
  uint32_t leaf_size, order;
  uint32_t capacity;
  uint32_t root;                // whether the root's local expansion counts: 0: no; 1: with all below it; 2: it alone
};

// Direct sums at a sample of targets, for the guard.
struct GuardView {
  const Body *sources;          // [n]
  const double *position;       // [all][stride]: three numbers of each target
  const double *field;          // [all][stride]: what is to be measured
  const double *shared;         // [1]: number of targets that have shares; or null
  const uint32_t *share_target; // [capacity]
  const double *share;          // [capacity]
  uint32_t *picked;             // [targets]: the sample
  double *weight;               // [targets]: the number of targets, in any unit, that each stands for; 0: none
  double *partial;              // [targets][parts][4]: field, square of the largest term
  double *out;                  // [targets][8]: the same, the field that was found, weight; and what `shared` holds
  double softening;             // epsilon, or h of the spline, in the scaled unit
  double unit, scale;           // lengths are multiplied by: in the sources; besides, so that squares of forces are numbers
  uint32_t n, all;
  uint32_t targets, parts;
  uint32_t capacity, stride;
};

// Bodies in the order of a tree.
struct GatherView {
  const double *position;       // [n][3], in the caller's order
  const double *strength;       // [n], or null
  const uint32_t *order;        // [n]
  uint32_t *inverse;            // [n]: the place of order[i] is i
  Body *bodies;                 // [n]
  const Sum *sums;              // [n]
  const Sum *more;              // [n]: more of the potential; or null
  double *field;                // [n][3], in the caller's order; or null
  double *potential;            // [n], or null
  double strength_scale;
  uint32_t n;
};

// What one component of the strengths adds to velocities.
struct VelocityView {
  const double *field;          // [n][3]
  double *velocity;             // [n][3]
  uint32_t n;
  uint32_t component;           // 0, 1, 2
};

// Sums of one share of the particles, and particles of a chunk in the order of their distances.
constexpr unsigned TOTALS = 21, CHUNK = 4096;

// A sphere that shrinks about the densest part.
struct Sphere {
  double center[3], radius;
  uint32_t done, unused;
};

// Sums over all particles, in the caller's order.
struct TotalsView {
  const double *position;       // [n][3]
  const double *velocity;       // [n][3]
  const double *field;          // [n][3]
  const double *potential;      // [n]
  const double *mass;           // [n]
  const double *strength;       // [n]
  const double *coupling;       // [n]
  double *partial;              // what blocks find
  Sphere *sphere;               // [1]
  uint8_t *outside;             // [n]: 1 for particles that have left the sphere
  const uint32_t *order;        // [n]: by distance
  const uint64_t *key;          // [n]: squared distances in this order
  uint64_t n, first;            // first: of the chunk
  double shrink, fewest;        // the next radius over the last, and the fewest particles of a sphere
  uint32_t massless, shares;    // 1: particles count alike; blocks that share the particles
};

// Independent multiply-adds of a thread.
constexpr unsigned PEAK_CHAINS = 16;

// Multiply-adds x = factor x + shift that measure the device's peak.
struct PeakView {
  double *out;                  // [threads]
  double factor, shift;
  uint32_t rounds;
};

extern "C" __device__ const unsigned layout[] = {
    TILE, TARGETS_F32, TARGETS_F64,
    sizeof(Body), sizeof(Bounds),
    sizeof(OrderView), offsetof(OrderView, scale), offsetof(OrderView, n),
    sizeof(SumView), offsetof(SumView, partial), offsetof(SumView, softening), offsetof(SumView, n_targets),
    offsetof(SumView, components),
    sizeof(StepView), offsetof(StepView, n),
    sizeof(CheckView), offsetof(CheckView, n),
    CELLS, sizeof(TreeView), offsetof(TreeView, cells), sizeof(CsrView), sizeof(Sum),
    sizeof(FarView), offsetof(FarView, list), offsetof(FarView, sums), offsetof(FarView, staged),
    sizeof(TranslateView), offsetof(TranslateView, tiles), offsetof(TranslateView, depth),
    sizeof(CartesianView), offsetof(CartesianView, epsilon), offsetof(CartesianView, kernel),
    sizeof(CartesianMatrixView), offsetof(CartesianMatrixView, split),
    sizeof(M2lView), offsetof(M2lView, matrices), offsetof(M2lView, fault), offsetof(M2lView, per_level),
    sizeof(NearView), offsetof(NearView, tasks), offsetof(NearView, softening), offsetof(NearView, same),
    sizeof(ShareView), offsetof(ShareView, start), offsetof(ShareView, capacity),
    sizeof(GuardView), offsetof(GuardView, softening), offsetof(GuardView, capacity), sizeof(GatherView), offsetof(GatherView, n),
    sizeof(VelocityView), offsetof(VelocityView, component),
    TOTALS, CHUNK, sizeof(Sphere), sizeof(TotalsView), offsetof(TotalsView, n), offsetof(TotalsView, massless),
    PEAK_CHAINS, sizeof(PeakView), offsetof(PeakView, rounds),
};
