// What host and device share: the arguments of the kernels, by value. crates/fmm-cuda/src/view.rs mirrors every struct, and
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

extern "C" __device__ const unsigned layout[] = {
    TILE, TARGETS_F32, TARGETS_F64,
    sizeof(Body), sizeof(Bounds),
    sizeof(OrderView), offsetof(OrderView, scale), offsetof(OrderView, n),
    sizeof(SumView), offsetof(SumView, partial), offsetof(SumView, softening), offsetof(SumView, n_targets),
    offsetof(SumView, components),
    sizeof(StepView), offsetof(StepView, n),
    sizeof(CheckView), offsetof(CheckView, n),
};
