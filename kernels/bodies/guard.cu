// What a sum is measured by: a sample of its targets, drawn where the last degree of the expansions is large, and direct sums in
// double precision there. The rules are those of fmm-core's `cpu/truncation.rs` and `cpu/guard.rs`.
#include "common/image.cuh"
#include "common/scan.cuh"
#include "common/softening.cuh"
#include "far/weights.cuh"

// Threads of a block that is alone, and of a block of the direct sums, each of which has a target.
constexpr unsigned ALONE = 1024, GUARDED = 128;

// The sum over the threads before this one of a block of ALONE, never smaller than over fewer, and in `total` over all. Numbers are
// added one after the other: sums in the order of a tree could round below those of fewer threads.
__device__ inline double running_sum(double value, double &total) {
  __shared__ double values[ALONE], warps[ALONE / 32 + 1];
  const unsigned warp = threadIdx.x / 32;
  values[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    double sum = 0;
    for (unsigned i = threadIdx.x; i < threadIdx.x + 32; i++) {
      const double own = values[i];
      values[i] = sum;
      sum += own;
    }
    warps[warp] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    double sum = 0;
    for (unsigned w = 0; w < ALONE / 32; w++) {
      const double own = warps[w];
      warps[w] = sum;
      sum += own;
    }
    warps[ALONE / 32] = sum;
  }
  __syncthreads();
  total = warps[ALONE / 32];
  return warps[warp] + values[threadIdx.x];
}

template <bool VALUE> struct Flag { static constexpr bool value = VALUE; };

// The squared force of the last degree at the bodies of a sampled leaf, over that of the whole force. A warp works for 32 bodies,
// each a lane's.
template <typename Real> __device__ inline void shares(const ShareView &v) {
  extern __shared__ double memory[];
  using Real4 = typename Four<Real>::Type;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // Bodies beyond the largest number of a leaf are all at one place: the first 32 of them stand for all.
  const unsigned chunks = (v.leaf_size + 31) / 32;
  const unsigned task = blockIdx.x * (blockDim.x / 32) + warp, w = task / chunks, chunk = task % chunks;
  if (w >= v.count) return;
  const uint32_t leaf = v.leaves[size_t(w) * v.step];
  const uint32_t begin = v.targets.bodies[2 * size_t(leaf)], end = v.targets.bodies[2 * size_t(leaf) + 1];
  const uint32_t place = v.start[w], from = begin + 32 * chunk;
  const bool one_place = end - begin > v.leaf_size;
  if (from >= end || (one_place && chunk > 0)) return;
  const unsigned p = v.order, n = (p + 1) * (p + 1);
  Real4 *weights = reinterpret_cast<Real4 *>(memory) + size_t(warp) * (2 * p + 3);

  // The squared force of degree p of a cell at a body: harmonics of one degree less, or more, make it.
  const auto of_cell = [&](auto multipole, const TreeView &tree, uint32_t cell, const Body &b, uint32_t image) {
    constexpr bool MULTIPOLE = decltype(multipole)::value;
    const unsigned degree = MULTIPOLE ? p + 1 : p - 1, first = degree * degree, values = 2 * degree + 1;
    const Real *a = static_cast<const Real *>(MULTIPOLE ? v.multipoles : v.locals) + size_t(cell) * n;
    __syncwarp();
    for (unsigned k = lane; k < values; k += 32) {
      Real weight[4];
      weigh<MULTIPOLE>(a, int(p), first + k, weight);
      weights[k] = Real4{weight[0], weight[1], weight[2], weight[3]};
    }
    __syncwarp();
    Frame<Real> frame(tree, cell, half_of(tree, cell));
    double shift[3];
    shift_of(image, v.sides, shift);
    frame.x += shift[0];
    frame.y += shift[1];
    frame.z += shift[2];
    Real at[3], sum[3] = {};
    frame.place(b, at);
    const auto meet = [&](const Real4 &weight, Real value) {
      sum[0] = fused(weight.y, value, sum[0]);
      sum[1] = fused(weight.z, value, sum[1]);
      sum[2] = fused(weight.w, value, sum[2]);
    };
    const auto *factors = static_cast<const typename Pair2<Real>::Type *>(MULTIPOLE ? v.m2p_factors : v.l2p_factors);
    // The recurrences are those of degree p, or p + 1: all of them are passed on the way.
    harmonics<MULTIPOLE, Real>(MULTIPOLE ? p + 1 : p, factors, at, [&](unsigned l, unsigned m, Real re, Real im) {
      if (l != degree) return;
      const unsigned k = at_harmonic(l, m) - first;
      meet(weights[k], re);
      if (m > 0) meet(weights[k + 1], im);
    });
    double force = 0;
    for (int d = 0; d < 3; d++) {
      const double f = double(sum[d]) * (frame.scale * frame.scale);
      force += f * f;
    }
    return force;
  };

  const uint32_t i = min(from + lane, end - 1);
  const Body b = v.target_bodies[i];
  double share = 0;
  if (v.locals && v.root < 2)
    for (uint32_t cell = leaf; cell != 0; cell = v.targets.parent[cell]) share += of_cell(Flag<false>{}, v.targets, cell, b, 0);
  // The root has a local expansion from the images of a periodic box alone.
  if (v.locals && v.root > 0) share += of_cell(Flag<false>{}, v.targets, 0, b, 0);
  if (v.multipoles)
    for (uint64_t k = v.m2p.start[leaf]; k < v.m2p.start[leaf + 1]; k++)
      share += of_cell(Flag<true>{}, v.sources, v.m2p.pairs[2 * k], b, v.m2p.pairs[2 * k + 1]);
  const Sum whole = v.sums[i];
  share = share > 0 ? fmin(share / (whole.x * whole.x + whole.y * whole.y + whole.z * whole.z), v.largest) : 0;
  const uint32_t last = one_place ? end : min(from + 32, end);
  for (uint32_t j = from + lane; j < last; j += 32) {
    const uint32_t to = place + (j - begin);
    if (to >= v.capacity) break;
    v.target[to] = j;
    v.share[to] = share;
  }
}

// A share of the sources at GUARDED targets, one a thread. Sources go through shared memory, so that each is read once for all of them.
template <template <typename> class Kernel> __device__ inline void guard(const GuardView &v) {
  __shared__ Body tile[GUARDED];
  const Kernel<double> kernel(v.softening);
  const unsigned me = threadIdx.x, target = blockIdx.x * GUARDED + me, part = blockIdx.y;
  const size_t place = v.picked[min(target, v.targets - 1)];
  double at[3], sum[3] = {};
  for (int d = 0; d < 3; d++) at[d] = (v.position[v.stride * place + d] * v.unit) * v.scale;
  // The upper half of the square: halves are in the order of the squares, and a factor of a thousand needs no more digits.
  int largest = 0;
  const uint64_t begin = uint64_t(v.n) * part / v.parts, end = uint64_t(v.n) * (part + 1) / v.parts;
  // What is beyond the last source repeats its place without its strength.
  const auto source = [&](uint64_t j) {
    const Body b = v.sources[min(j, uint64_t(v.n) - 1)];
    return Body{b.x * v.scale, b.y * v.scale, b.z * v.scale, j < end ? b.q : 0};
  };
  Body next = source(begin + me);
  for (uint64_t first = begin; first < end; first += GUARDED) {
    __syncthreads();
    tile[me] = next;
    __syncthreads();
    if (first + GUARDED < end) next = source(first + GUARDED + me);
#pragma unroll 8
    for (unsigned j = 0; j < GUARDED; j++) {
      const Body s = tile[j];
      const double dx = at[0] - s.x, dy = at[1] - s.y, dz = at[2] - s.z;
      const double r2 = fma(dx, dx, fma(dy, dy, dz * dz));
      const double g = kernel.force(s.q, r2 + kernel.raise());
      sum[0] = fma(g, dx, sum[0]);
      sum[1] = fma(g, dy, sum[1]);
      sum[2] = fma(g, dz, sum[2]);
      largest = max(largest, __double2hiint(g * g * r2));
    }
  }
  if (target >= v.targets) return;
  double *out = v.partial + (size_t(target) * v.parts + part) * 4;
  for (int d = 0; d < 3; d++) out[d] = sum[d];
  out[3] = __hiloint2double(largest, 0);
}

extern "C" {
// Where the bodies of each sampled leaf go, and in `found[0]` how many there are. One block.
__global__ void __launch_bounds__(ALONE) share_starts(ShareView v) {
  const unsigned each = (v.count + ALONE - 1) / ALONE;
  const unsigned first = threadIdx.x * each, last = min(first + each, v.count);
  const auto held = [&](unsigned w) {
    const size_t leaf = v.leaves[size_t(w) * v.step];
    return v.targets.bodies[2 * leaf + 1] - v.targets.bodies[2 * leaf];
  };
  uint32_t own = 0, total;
  for (unsigned w = first; w < last; w++) own += held(w);
  uint32_t before = block_exclusive(own, total);
  for (unsigned w = first; w < last; w++) {
    v.start[w] = before;
    before += held(w);
  }
  if (threadIdx.x == 0) v.found[0] = total;
}

__global__ void __launch_bounds__(128) shares_f32(ShareView v) { shares<float>(v); }
__global__ void __launch_bounds__(128) shares_f64(ShareView v) { shares<double>(v); }

// Draws the sample: half of it evenly over the targets that have shares, half in proportion to these; or all targets evenly where
// there are none. One block.
__global__ void __launch_bounds__(ALONE) guard_pick(GuardView v) {
  const uint32_t count = v.shared ? uint32_t(min(v.shared[0], double(v.capacity))) : 0;
  const unsigned each = (count + ALONE - 1) / ALONE;
  const unsigned first = min(threadIdx.x * each, count), last = min(first + each, count);
  double own = 0, total;
  for (unsigned k = first; k < last; k++) own += v.share[k];
  const double before = running_sum(own, total);
  if (count <= v.targets || !(total > 0)) {
    const uint64_t step = max(uint64_t(1), (uint64_t(v.all) + v.targets - 1) / v.targets);
    for (uint64_t k = threadIdx.x; k < v.targets; k += ALONE) {
      const bool there = k * step < v.all;
      v.picked[k] = there ? uint32_t(min(k * step + k * 7 % step, uint64_t(v.all) - 1)) : 0;
      v.weight[k] = there ? 1 : 0;
    }
    return;
  }
  __shared__ double starts[ALONE + 1];
  starts[threadIdx.x] = before;
  if (threadIdx.x == 0) starts[ALONE] = total;
  __syncthreads();
  const unsigned half = v.targets / 2;
  const double even = 1.0 / count;
  const auto pick = [&](unsigned slot, uint32_t k) {
    v.picked[slot] = v.share_target[k];
    v.weight[slot] = even / (0.5 * (even + v.share[k] / total));
  };
  // Every 1/half of the way along the shares: the places that are passed at a body are its own.
  const auto passed = [&](double reached) { return unsigned(fmin(reached / total * half + 0.5, double(half))); };
  double reached = before;
  const double limit = starts[threadIdx.x + 1];
  unsigned slot = passed(fmin(reached, limit));
  for (unsigned k = first; k < last; k++) {
    reached = k + 1 == last ? limit : fmin(reached + v.share[k], limit);
    const unsigned next = passed(reached);
    for (; slot < next; slot++) pick(slot, k);
  }
  // And along the bodies.
  for (unsigned j = threadIdx.x; j < half; j += ALONE)
    pick(half + j, uint32_t(((2 * uint64_t(j) + 1) * count + 2 * half - 1) / (2 * half)) - 1);
  if (threadIdx.x == 0 && 2 * half < v.targets) {
    v.picked[2 * half] = 0;
    v.weight[2 * half] = 0;
  }
}

#define GUARD(NAME, KERNEL) \
  __global__ void __launch_bounds__(GUARDED) guard_##NAME##_f64(GuardView v) { guard<KERNEL>(v); }
FOR_EACH_KERNEL(GUARD)

// The sums over all parts, the field that is to be measured, and the weight, of each target. A warp has one.
__global__ void __launch_bounds__(TILE) guard_join(GuardView v) {
  const unsigned target = blockIdx.x * (TILE / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (target >= v.targets) return;
  double sum[4] = {};
  for (unsigned part = lane; part < v.parts; part += 32) {
    const double *other = v.partial + (size_t(target) * v.parts + part) * 4;
    for (unsigned k = 0; k < 3; k++) sum[k] += other[k];
    sum[3] = fmax(sum[3], other[3]);
  }
  for (unsigned d = 16; d > 0; d /= 2) {
    for (unsigned k = 0; k < 3; k++) sum[k] += __shfl_xor_sync(~0u, sum[k], d);
    sum[3] = fmax(sum[3], __shfl_xor_sync(~0u, sum[3], d));
  }
  if (lane > 0) return;
  double *out = v.out + 8 * size_t(target);
  for (unsigned k = 0; k < 4; k++) out[k] = sum[k];
  for (unsigned k = 0; k < 3; k++) out[4 + k] = v.field[v.stride * size_t(v.picked[target]) + k];
  out[7] = v.weight[target];
  // After the rows: whether there was room.
  if (target == 0) v.out[8 * size_t(v.targets)] = v.shared ? v.shared[0] : 0;
}
}
