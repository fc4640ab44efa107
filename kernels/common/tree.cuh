// What the stages of the far field share: places in trees, and solid harmonics.
#pragma once
#include "common/real.cuh"
#include "common/sums.cuh"

// The level of a cell.
__device__ inline unsigned level_of(const TreeView &tree, uint32_t cell) {
  unsigned level = 0;
  while (level + 1 < tree.levels && tree.level_start[level + 1] <= cell) level++;
  return level;
}

// Whether a cell has no children.
__device__ inline bool is_leaf(const TreeView &tree, size_t cell) { return tree.children[2 * cell] == tree.children[2 * cell + 1]; }

// Whether a cell has bodies that are summed here.
__device__ inline bool in_share(const TreeView &tree, uint32_t cell) {
  return tree.bodies[2 * size_t(cell)] < tree.share[1] && tree.bodies[2 * size_t(cell) + 1] > tree.share[0];
}

// Targets of a task of direct sums by lists, at most; how many tasks so many targets of a leaf are, and where the k-th
// begins.
constexpr unsigned MOST_TARGETS = 128;
__device__ inline unsigned task_count(unsigned targets) { return (targets + MOST_TARGETS - 1) / MOST_TARGETS; }
__device__ inline unsigned task_begin(unsigned targets, unsigned k) { return uint64_t(targets) * k / task_count(targets); }

// The place of a leaf's k-th task: the first has the number of the leaf, others are where no other leaf's bodies lead to.
__device__ inline size_t task_place(const TreeView &tree, uint32_t leaf, unsigned k) {
  return k == 0 ? leaf : size_t(tree.cells) + tree.bodies[2 * size_t(leaf)] / MOST_TARGETS + k - 1;
}

// Half the side of a cell.
__device__ inline double half_of(const TreeView &tree, uint32_t cell) { return tree.half[level_of(tree, cell)]; }

// The center of a cell and what its bodies are measured in.
template <typename Real> struct Frame {
  double x, y, z, scale;
  __device__ Frame(const TreeView &tree, uint32_t cell, double unit)
      : x(tree.center[3 * size_t(cell)]), y(tree.center[3 * size_t(cell) + 1]), z(tree.center[3 * size_t(cell) + 2]),
        scale(1 / unit) {}
  // A body's place; subtraction and scaling are in double.
  __device__ void place(const Body &b, Real *at) const {
    at[0] = Real((b.x - x) * scale);
    at[1] = Real((b.y - y) * scale);
    at[2] = Real((b.z - z) * scale);
  }
};

template <typename Real> struct Pair2;
template <> struct Pair2<float> { using Type = float2; };
template <> struct Pair2<double> { using Type = double2; };
template <typename Real> struct Four;
template <> struct Four<float> { using Type = float4; };
template <> struct Four<double> { using Type = double4; };

// Place of Re A_l^m; Im follows it (m > 0).
__device__ inline unsigned at_harmonic(unsigned l, unsigned m) { return l * l + (m == 0 ? 0 : 2 * m - 1); }

struct Nothing {
  __device__ void operator()(unsigned) const {}
};

// Shows every harmonic of degree <= p at a place to `visit(l, m, re, im)`, order after order, after `begin(m)`. IRREGULAR: I_l^m, else
// R_l^m. `factors` are those of fmm-core's `recurrences`.
template <bool IRREGULAR, typename Real, class Visit, class Begin = Nothing>
__device__ inline void harmonics(unsigned p, const typename Pair2<Real>::Type *__restrict__ factors, const Real *at, Visit visit,
                                 Begin begin = {}) {
  Real x = at[0], y = at[1], z = at[2];
  Real w = fused(x, x, fused(y, y, z * z));
  Real re = 1, im = 0;
  if constexpr (IRREGULAR) {
    w = Real(1) / w;
    re = sqrt(w);
    x *= w;
    y *= w;
    z *= w;
  }
  for (unsigned m = 0; m <= p; m++) {
    begin(m);
    const auto first = *factors++;
    if (m > 0) {
      const Real sx = first.x * x, sy = first.x * y;
      const Real r = fused(-sy, im, sx * re);
      im = fused(sx, im, sy * re);
      re = r;
    }
    visit(m, m, re, im);
    if (m == p) break;
    Real re2 = re, im2 = im, re1 = first.y * z * re, im1 = first.y * z * im;
    visit(m + 1, m, re1, im1);
    for (unsigned l = m + 2; l <= p; l++) {
      const auto f = *factors++;
      const Real az = f.x * z, bw = f.y * w;
      const Real re0 = fused(-bw, re2, az * re1), im0 = fused(-bw, im2, az * im1);
      re2 = re1;
      im2 = im1;
      re1 = re0;
      im1 = im0;
      visit(l, m, re1, im1);
    }
  }
}

