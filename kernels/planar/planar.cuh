// What the kernels of the plane share with the host, by value. crates/fmm-cuda/src/planar/view.rs mirrors every struct.
#pragma once
#include <cstddef>
#include <cstdint>

// Threads of a block; points that a block halves at once.
constexpr unsigned PLANE_THREADS = 256, SPLIT_ITEMS = 8, SPLIT_TILE = PLANE_THREADS * SPLIT_ITEMS;
// Digits of a key along an axis.
constexpr unsigned KEY_DIGITS = 8;
// Rows of a block of the connectivity, one a warp, and the most lists that it writes.
constexpr unsigned PLANE_ROWS = PLANE_THREADS / 32, PLANE_LISTS = 3;

// Warps of a block of M2L, and the target boxes of each: on the tensor cores, and with a translation a thread.
constexpr unsigned M2L_WARPS = 4, PAIR_BOXES = 4, THREAD_BOXES = 7;

// A point in the scaled unit, with its strength.
struct alignas(32) PlanePoint {
  double x, y, q, qi;
};

// The pyramid of one set of points, level by level.
struct PyramidView {
  const double *position;      // [n][2]
  uint64_t *key[2];            // [n]: of each axis, sorted once the sort is done
  const uint32_t *index[2];    // [n]: the points in these orders
  uint32_t *rank[2];           // [n]: the place of each point in them
  uint32_t *list[2];           // [n][2]: places along both axes; in the order of boxes, then of one axis
  uint32_t *list_out[2];       // [n][2]
  uint32_t *pivot;             // [2^depth]: the place of the first point of the second half, and the axis in the highest bit
  uint32_t *points;            // [boxes][2]: first point and one past the last
  double *center;              // [boxes][2]
  double *radius;              // [boxes]
  int32_t *exponent;           // [boxes]: of the unit of the expansions
  uint64_t *leaf;              // [n]: the leaf of each point, by index
  uint32_t *bins;              // [..][256]: counts of digits
  uint64_t *ties;              // [2]: neighbours along an axis with the same coordinate
  uint64_t *status;            // [2][tiles]
  uint32_t *ticket;            // [2]
  double scale;                // of coordinates
  uint64_t epoch;
  uint32_t n, depth, tiles, digits;
};

// The boxes of a pyramid.
struct BoxesView {
  const uint32_t *points;      // [boxes][2]
  const double *center;        // [boxes][2]
  const double *radius;        // [boxes]
  const int32_t *exponent;     // [boxes]
  uint32_t n, levels;
};

// The rows of one level.
struct ConnectView {
  BoxesView targets, sources;
  const uint64_t *near_start;  // [parents + 1]: strong pairs of the level above, or of the leaves themselves
  const uint32_t *near;
  uint64_t near_capacity;
  uint64_t *start[PLANE_LISTS];      // [cells + 1]: weak and strong, or M2P, P2L and P2P
  uint32_t *source[PLANE_LISTS];     // [capacity]
  uint64_t capacity[PLANE_LISTS];
  const uint64_t *before[PLANE_LISTS];  // entries of earlier levels; null: none
  uint64_t *found[PLANE_LISTS];         // entries with those of this level
  uint64_t *status;            // [lists][tiles]
  uint32_t *ticket;
  double theta, min_distance;
  uint64_t swap_min_points;
  uint64_t epoch;
  uint32_t first, cells, parents, tiles;
};

// Operators: boxes, points, one list, expansions of `terms` complex numbers.
struct PlaneView {
  BoxesView targets, sources;
  const PlanePoint *at;        // [targets], in the order of their pyramid
  const PlanePoint *bodies;    // [sources]
  const uint64_t *start;       // [boxes + 1]
  const uint32_t *source;
  const double *matrix;        // [terms][terms]: of a shift, see series.rs of the host
  const double *weights;       // [terms]: of P2M and P2L
  double *multipoles;          // [boxes][terms][2]
  double *locals;              // [boxes][terms][2]
  double *potential;           // [targets], log alone
  double *g;                   // [targets][2]
  float *single_points;        // [sources][4]: relative to the center of the leaf, in its unit, and strength
  double core;                 // length of the blobs
  double at_center;            // what stands for log 0 at a blob's own center; 0: nothing
  int32_t global;              // the unit of length is 2^global of the caller's
  uint32_t terms;
  uint32_t first, count;       // boxes
  uint32_t log, same;          // kernel; whether the targets are the sources
};

// Direct sums, shared out in parts of the sources.
struct AllPairsView {
  const PlanePoint *bodies;    // [sources]
  const PlanePoint *at;        // [targets]
  double *partial;             // [parts][targets][3]: potential, or the largest squared term, and G
  double *potential;           // [targets]
  double *g;                   // [targets][2]
  double *out;                 // [targets][6]: of a sample
  double core, at_center;
  int32_t global;
  uint32_t sources, targets, parts;
  uint32_t step;               // of the sample, 0: all targets
  uint32_t all;                // targets from which the sample is drawn
  uint32_t log, same;
};

// Between the caller's arrays and those in the order of a pyramid.
struct ExchangeView {
  const double *position;      // [n][2]
  const double *real, *imaginary;  // [n]; null: zero
  const uint32_t *order;       // [n]; null: the caller's
  PlanePoint *points;          // [n]
  const double *potential;     // [n]
  const double *g;             // [n][2]
  double *potential_out;       // [n]; null: not wanted
  double *field_out;           // [n][width]
  double scale, strength;      // of coordinates and strengths, or of the potential
  double sign[2];              // of G to field
  uint32_t n, width;           // width: numbers of a field_out, those after the second zero
};

// Numbers that a block finds about its points.
constexpr unsigned FLAT_FOUND = 5;

// Points out of particles in space.
struct FlattenView {
  const double *position;      // [n][3]
  double *points;              // [n][2]
  double *found;               // [blocks][FLAT_FOUND]: largest x, y, -x, -y; 1 if one is no number
  uint64_t n;
};

// A step of vortices.
struct FlowView {
  double *position;            // [n][3]
  const double *field;         // [n][3]
  const double *coupling;      // [n]
  double *start;               // [n][2]: where the step began
  double *velocity;            // [n][2]
  double *sum;                 // [n][2]: of weighed velocities
  double *largest;             // [blocks]
  double weight, h;
  uint64_t n;
  uint32_t first, summed;      // whether no velocities came before; whether the sum leads on
};

extern "C" __device__ const unsigned planar_layout[] = {
    PLANE_THREADS, SPLIT_TILE, PLANE_ROWS, PLANE_LISTS, sizeof(PlanePoint),
    sizeof(PyramidView), offsetof(PyramidView, pivot), offsetof(PyramidView, ticket), offsetof(PyramidView, digits),
    sizeof(BoxesView), sizeof(ConnectView), offsetof(ConnectView, start), offsetof(ConnectView, theta),
    offsetof(ConnectView, tiles), sizeof(PlaneView), offsetof(PlaneView, at), offsetof(PlaneView, core),
    offsetof(PlaneView, same), sizeof(AllPairsView), offsetof(AllPairsView, core), offsetof(AllPairsView, same),
    sizeof(ExchangeView), offsetof(ExchangeView, points), offsetof(ExchangeView, sign),
    M2L_WARPS, PAIR_BOXES, THREAD_BOXES, FLAT_FOUND, sizeof(FlattenView), sizeof(FlowView), offsetof(FlowView, weight), offsetof(FlowView, summed),
};

typedef double2 Complex;

__device__ inline Complex times(Complex a, Complex b) { return {fma(-a.y, b.y, a.x * b.x), fma(a.y, b.x, a.x * b.y)}; }

// A run of points.
struct Segment {
  uint32_t start, count;
};

// One half of a segment.
__device__ inline Segment half_of(Segment s, bool second) {
  const uint32_t left = s.count / 2;
  return second ? Segment{s.start + left, s.count - left} : Segment{s.start, left};
}

// Part `index` of n points that were halved `depth` times.
__device__ inline Segment part_of(uint32_t n, unsigned depth, uint32_t index) {
  Segment s = {0, n};
  for (unsigned d = depth; d-- > 0;) s = half_of(s, index >> d & 1);
  return s;
}

// Down to the part at `depth` that holds the point at place p, from one `at` halvings deep.
__device__ inline void descend(Segment &s, uint32_t &index, unsigned at, unsigned depth, uint32_t p) {
  for (; at < depth; at++) {
    const bool second = p - s.start >= s.count / 2;
    s = half_of(s, second);
    index = 2 * index + second;
  }
}

// Boxes before those of a level.
__host__ __device__ inline uint32_t first_of(unsigned level) { return ((uint64_t(1) << (2 * level)) - 1) / 3; }

// The leaf of the point at place p.
__device__ inline uint32_t leaf_of(const BoxesView &t, uint32_t p) {
  Segment s = {0, t.n};
  uint32_t index = 0;
  descend(s, index, 0, 2 * t.levels, p);
  return first_of(t.levels) + index;
}

// 2^e for exponents of normal numbers.
__device__ inline double power_of_two(int e) { return __longlong_as_double((long long)(e + 1023) << 52); }

// The exponent of the power of two at or above x >= 0, within the normal numbers.
__device__ inline int exponent_above(double x) {
  const int e = max(-1000, min(1000, int(uint64_t(__double_as_longlong(x)) >> 52) - 1023));
  return power_of_two(e) < x ? e + 1 : e;
}
