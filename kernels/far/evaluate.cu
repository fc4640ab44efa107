// Expansions at bodies: L2P in the leaves, M2P by lists. A warp works for one leaf, a lane for one target at a time.
// And the expansions of their derivatives.
#include "common/image.cuh"
#include "far/weights.cuh"

template <typename Real, bool MULTIPOLE> __device__ inline void evaluate(const FarView &v) {
  extern __shared__ double memory[];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned w = blockIdx.x * (blockDim.x / 32) + warp;
  if (w >= v.count) return;
  const uint32_t leaf = v.work[w];
  if (!in_share(v.targets, leaf)) return;
  const unsigned p = v.order, n = (p + 1) * (p + 1);
  // The gradient of a multipole is of one degree more.
  const unsigned degree = MULTIPOLE ? p + 1 : p, values = (degree + 1) * (degree + 1);
  const auto *factors = static_cast<const typename Pair2<Real>::Type *>(v.factors);
  using Real4 = typename Four<Real>::Type;
  Real4 *weights = reinterpret_cast<Real4 *>(memory) + size_t(warp) * values;
  const uint32_t begin = v.targets.bodies[2 * size_t(leaf)], end = v.targets.bodies[2 * size_t(leaf) + 1];

  // What the expansion of this image of `cell` adds to the targets of the leaf.
  const auto add = [&](const TreeView &tree, uint32_t cell, uint32_t image) {
    const double half = half_of(tree, cell);
    Frame<Real> frame(tree, cell, half);
    if constexpr (MULTIPOLE) {
      double shift[3];
      shift_of(image, v.sides, shift);
      frame.x += shift[0];
      frame.y += shift[1];
      frame.z += shift[2];
    }
    const Real *a = static_cast<const Real *>(v.coefficients) + size_t(cell) * n;
    __syncwarp();
    for (unsigned k = lane; k < values; k += 32) {
      Real weight[4];
      weigh<MULTIPOLE>(a, int(p), k, weight);
      weights[k] = Real4{weight[0], weight[1], weight[2], weight[3]};
    }
    __syncwarp();
    for (uint32_t i = begin + lane; i < end; i += 32) {
      Real at[3], sum[4] = {};
      frame.place(v.target_bodies[i], at);
      const auto meet = [&](const Real4 &weight, Real value) {
        sum[0] = fused(weight.x, value, sum[0]);
        sum[1] = fused(weight.y, value, sum[1]);
        sum[2] = fused(weight.z, value, sum[2]);
        sum[3] = fused(weight.w, value, sum[3]);
      };
      harmonics<MULTIPOLE, Real>(degree, factors, at, [&](unsigned l, unsigned m, Real re, Real im) {
        const unsigned k = at_harmonic(l, m);
        meet(weights[k], re);
        if (m > 0) meet(weights[k + 1], im);
      });
      Sum s = v.sums[i];
      s.potential += double(sum[0]) * frame.scale;
      s.x -= double(sum[1]) * (frame.scale * frame.scale);
      s.y -= double(sum[2]) * (frame.scale * frame.scale);
      s.z -= double(sum[3]) * (frame.scale * frame.scale);
      v.sums[i] = s;
    }
  };
  if constexpr (MULTIPOLE) {
    for (uint64_t i = v.list.start[leaf]; i < v.list.start[leaf + 1]; i++) add(v.sources, v.list.pairs[2 * i], v.list.pairs[2 * i + 1]);
  } else {
    add(v.targets, leaf, 0);
  }
}

// The derivative along an axis of each cell's expansion, as an expansion: of the same order if local, of the next if a multipole.
template <typename Real, bool MULTIPOLE> __device__ inline void derivative(const DerivativeView &v) {
  const unsigned n = (v.order + 1) * (v.order + 1), values = MULTIPOLE ? (v.order + 2) * (v.order + 2) : n;
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x, cell = i / values;
  if (cell >= v.tree.cells) return;
  const unsigned k = i % values;
  Real weight[4];
  weigh<MULTIPOLE>(static_cast<const Real *>(v.coefficients) + cell * n, int(v.order), k, weight);
  // Weights of orders above 0 count twice, for the negative ones.
  const unsigned degree = unsigned(sqrtf(float(k) + 0.5f));
  const Real fold = k == degree * degree ? 1 : Real(0.5);
  static_cast<Real *>(v.out)[i] = weight[1 + v.axis] * (fold * Real(v.unit / half_of(v.tree, cell)));
}

extern "C" {
__global__ void __launch_bounds__(TILE) l2p_derivative_spherical_f32(DerivativeView v) { derivative<float, false>(v); }
__global__ void __launch_bounds__(TILE) l2p_derivative_spherical_f64(DerivativeView v) { derivative<double, false>(v); }
__global__ void __launch_bounds__(TILE) m2p_derivative_spherical_f32(DerivativeView v) { derivative<float, true>(v); }
__global__ void __launch_bounds__(TILE) m2p_derivative_spherical_f64(DerivativeView v) { derivative<double, true>(v); }
__global__ void __launch_bounds__(128) l2p_spherical_f32(FarView v) { evaluate<float, false>(v); }
__global__ void __launch_bounds__(128) l2p_spherical_f64(FarView v) { evaluate<double, false>(v); }
__global__ void __launch_bounds__(128) m2p_spherical_f32(FarView v) { evaluate<float, true>(v); }
__global__ void __launch_bounds__(128) m2p_spherical_f64(FarView v) { evaluate<double, true>(v); }
}
