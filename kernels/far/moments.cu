// Bodies to expansions: P2M in the leaves, P2L by lists. A warp works for one cell, a lane for one body at a time. Harmonics are added up
// over the bodies through shared memory, a window of them at a time: the less memory, the more warps.
#include "common/image.cuh"
#include "common/tree.cuh"

// Lanes and a place more, so that both lanes side by side and coefficients side by side lie in different banks.
constexpr unsigned ROW = 33;

template <typename Real, bool LOCAL> __device__ inline void moments(const FarView &v) {
  extern __shared__ double memory[];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned w = blockIdx.x * (blockDim.x / 32) + warp;
  if (w >= v.count) return;
  const uint32_t cell = v.work[w];
  if (!LOCAL && !in_share(v.sources, cell)) return;
  const unsigned p = v.order, n = (p + 1) * (p + 1);
  const TreeView &tree = LOCAL ? v.targets : v.sources;
  const Frame<Real> own(tree, cell, half_of(tree, cell));
  const auto *factors = static_cast<const typename Pair2<Real>::Type *>(v.factors);
  Real *row = static_cast<Real *>(v.coefficients) + size_t(cell) * n;
  Real *stage = reinterpret_cast<Real *>(memory) + size_t(warp) * v.window * ROW;

  // Harmonics of 32 bodies lie in the window, in their order, until it has no room for all of the next m.
  const auto values = [&](unsigned m) { return (m == 0 ? 1 : 2) * (p + 1 - m); };
  unsigned held = 0, first_m = 0;
  const auto add_up = [&](unsigned next_m) {
    __syncwarp();
    for (unsigned r = lane; r < held; r += 32) {
      Real sum = 0;
#pragma unroll
      for (unsigned j = 0; j < 32; j++) sum += stage[r * ROW + j];
      unsigned m = first_m, within = r;
      while (within >= values(m)) within -= values(m++);
      row[m == 0 ? at_harmonic(within, 0) : at_harmonic(m + within / 2, m) + within % 2] += sum;
    }
    __syncwarp();
    held = 0;
    first_m = next_m;
  };
  const auto add = [&](const Frame<Real> &frame, uint32_t begin, uint32_t end) {
    for (uint32_t first = begin; first < end; first += 32) {
      // Idle lanes repeat a body with strength 0: its harmonics are finite.
      const uint32_t i = first + lane;
      const Body b = v.source_bodies[i < end ? i : first];
      const Real q = i < end ? Real(b.q) : Real(0);
      Real at[3];
      frame.place(b, at);
      const auto hold = [&](unsigned, unsigned m, Real re, Real im) {
        stage[held++ * ROW + lane] = q * re;
        if (m > 0) stage[held++ * ROW + lane] = q * im;
      };
      const auto make_room = [&](unsigned m) {
        if (held + values(m) > v.window) add_up(m);
      };
      harmonics<LOCAL, Real>(p, factors, at, hold, make_room);
      add_up(0);
    }
  };
  if constexpr (LOCAL) {
    for (uint64_t i = v.list.start[cell]; i < v.list.start[cell + 1]; i++) {
      const uint32_t source = v.list.pairs[2 * i], image = v.list.pairs[2 * i + 1];
      // The cell as that image sees it.
      double shift[3];
      shift_of(image, v.sides, shift);
      Frame<Real> seen = own;
      seen.x -= shift[0];
      seen.y -= shift[1];
      seen.z -= shift[2];
      add(seen, v.sources.bodies[2 * size_t(source)], v.sources.bodies[2 * size_t(source) + 1]);
    }
  } else {
    add(own, v.sources.bodies[2 * size_t(cell)], v.sources.bodies[2 * size_t(cell) + 1]);
  }
}

extern "C" {
__global__ void __launch_bounds__(128) p2m_spherical_f32(FarView v) { moments<float, false>(v); }
__global__ void __launch_bounds__(128) p2m_spherical_f64(FarView v) { moments<double, false>(v); }
__global__ void __launch_bounds__(128) p2l_spherical_f32(FarView v) { moments<float, true>(v); }
__global__ void __launch_bounds__(128) p2l_spherical_f64(FarView v) { moments<double, true>(v); }
}
