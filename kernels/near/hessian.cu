// Second derivatives of the potential: of pairs by lists of leaves, of pairs at chosen targets, and those of expansions added to them.
//
// With g = -K'/r and h = -g'/r they are h x_i x_j - g delta_ij. Sums are kept as TERMS numbers: of q g, and of q h x_i x_j for xx, yy,
// zz, xy, xz, yz.
#include "near/near.cuh"

// Threads of a block, each of which has a target.
constexpr unsigned THREADS = 128, TERMS = 7;

// Adds the terms of strength `q` at the difference `d` and the raised squared distance `r2`. Returns g, and h in `h`.
template <typename Real, class Kernel>
__device__ inline Real meet_second(const Kernel &kernel, const Real *d, Real r2, Real q, Real *sum, Real &h) {
  const Real g = kernel.second(r2, h), qh = q * h;
  const Real x = qh * d[0], y = qh * d[1], z = qh * d[2];
  sum[0] = fused(q, g, sum[0]);
  sum[1] = fused(x, d[0], sum[1]);
  sum[2] = fused(y, d[1], sum[2]);
  sum[3] = fused(z, d[2], sum[3]);
  sum[4] = fused(x, d[1], sum[4]);
  sum[5] = fused(x, d[2], sum[5]);
  sum[6] = fused(y, d[2], sum[6]);
  return g;
}

template <typename Real> __device__ inline Real square(const Real *d) { return fused(d[0], d[0], fused(d[1], d[1], d[2] * d[2])); }

// In double precision. Bodies at one place have no terms where these would be infinite.
template <class Kernel>
__device__ inline double meet_double(const Kernel &kernel, const double *d, double q, bool itself, double *sum, double &h, double &r2) {
  r2 = square(d);
  const bool none = itself || (Kernel::SINGULAR && r2 == 0);
  return meet_second<double>(kernel, d, none ? 1 : r2 + kernel.raise(), none ? 0 : q, sum, h);
}

__device__ inline void combine(const double *sum, double scale, double *out) {
  for (unsigned k = 0; k < 6; k++) out[k] = (k < 3 ? sum[k + 1] - sum[0] : sum[k + 1]) * scale;
}

// The pairs of a leaf. A block has one: groups of threads that hold its targets share the sources among themselves. Coordinates are
// subtracted in double in both precisions; what overflows in single is summed in double.
template <template <typename> class Kernel, typename Real> __device__ inline void by_lists(const HessianPairView &v) {
  constexpr float CLOSE = 1e-10f;
  __shared__ double others[THREADS][TERMS];
  const size_t leaf = v.leaves[blockIdx.x];
  const uint32_t begin = v.targets.bodies[2 * leaf], end = v.targets.bodies[2 * leaf + 1];
  const double scale = 1 / power_of_two_below(fmax(half_of(v.targets, leaf), v.smooth_below / 1024));
  const double length = v.softening == 0 ? 0 : fmax(v.softening * scale, sizeof(Real) == 4 ? 1e-8 : 1e-60);
  const Kernel<Real> kernel(length);
  const Kernel<double> exact(length);
  unsigned width = 1;
  while (width < THREADS && width < end - begin) width *= 2;
  const unsigned part = threadIdx.x / width, parts = THREADS / width;
  for (uint32_t first = begin; first < end; first += width) {
    const uint32_t i = first + threadIdx.x % width;
    const Body b = v.target_bodies[min(i, end - 1)];
    double total[TERMS] = {};
    for (uint64_t p = v.list.start[leaf]; p < v.list.start[leaf + 1]; p++) {
      const size_t cell = v.list.pairs[2 * p];
      const uint32_t image = v.list.pairs[2 * p + 1];
      double shift[3];
      shift_of(image, v.sides, shift);
      Real sum[TERMS] = {};
      for (uint32_t j = v.sources.bodies[2 * cell] + part; j < v.sources.bodies[2 * cell + 1]; j += parts) {
        const Body s = v.source_bodies[j];
        const double d[3] = {(b.x - (s.x + shift[0])) * scale, (b.y - (s.y + shift[1])) * scale, (b.z - (s.z + shift[2])) * scale};
        const bool itself = v.same && image == 0 && j == i;
        double h, r2;
        if constexpr (sizeof(Real) == 4) {
          const float f[3] = {float(d[0]), float(d[1]), float(d[2])};
          const float raised = square(f) + kernel.raise();
          float unused;
          if (raised >= CLOSE)
            meet_second<float>(kernel, f, raised, itself ? 0 : float(s.q), sum, unused);
          else
            meet_double(exact, d, s.q, itself, total, h, r2);
        } else {
          meet_double(exact, d, s.q, itself, sum, h, r2);
        }
      }
      for (unsigned k = 0; k < TERMS; k++) total[k] += sum[k];
    }
    for (unsigned k = 0; k < TERMS; k++) others[threadIdx.x][k] = total[k];
    __syncthreads();
    if (part == 0 && i < end) {
      for (unsigned other = 1; other < parts; other++)
        for (unsigned k = 0; k < TERMS; k++) total[k] += others[threadIdx.x + other * width][k];
      combine(total, scale * scale * scale, v.hessian + 6 * size_t(i));
    }
    __syncthreads();
  }
}

// A share of all sources at chosen targets, one a thread, in double precision; and the square of the largest term.
template <template <typename> class Kernel> __device__ inline void at_targets(const HessianSumView &v) {
  __shared__ Body tile[THREADS];
  const Kernel<double> kernel(v.softening);
  const unsigned me = threadIdx.x, target = blockIdx.x * THREADS + me, part = blockIdx.y;
  const unsigned mine = min(target, v.targets - 1);
  const size_t place = v.picked ? v.picked[mine] : mine;
  double at[3], sum[TERMS] = {}, largest = 0;
  for (int d = 0; d < 3; d++) at[d] = v.position[v.stride * place + d] * v.scale;
  const uint64_t begin = uint64_t(v.n) * part / v.parts, end = uint64_t(v.n) * (part + 1) / v.parts;
  const auto source = [&](uint64_t j) {
    const Body b = v.sources[min(j, uint64_t(v.n) - 1)];
    return Body{b.x * v.scale, b.y * v.scale, b.z * v.scale, b.q};
  };
  Body next = source(begin + me);
  for (uint64_t first = begin; first < end; first += THREADS) {
    __syncthreads();
    tile[me] = next;
    __syncthreads();
    if (first + THREADS < end) next = source(first + THREADS + me);
    const unsigned count = min(uint64_t(THREADS), end - first);
    for (unsigned j = 0; j < count; j++) {
      const Body s = tile[j];
      const double d[3] = {at[0] - s.x, at[1] - s.y, at[2] - s.z};
      const bool itself = v.same && first + j == place;
      double h, r2;
      const double g = meet_double(kernel, d, s.q, itself, sum, h, r2);
      // Eigenvalues along and across the line to the source.
      const double along = fma(h, r2, -g), term = s.q * s.q * fma(along, along, 2 * g * g);
      if (!itself && (!Kernel<double>::SINGULAR || r2 > 0)) largest = fmax(largest, term);
    }
  }
  if (target >= v.targets) return;
  double *out = v.partial + (size_t(target) * v.parts + part) * (TERMS + 1);
  for (unsigned k = 0; k < TERMS; k++) out[k] = sum[k];
  out[TERMS] = largest;
}

extern "C" {
#define KERNEL(NAME, KERNEL)                                                                                          \
  __global__ void __launch_bounds__(THREADS) p2p_hessian_##NAME##_f32(HessianPairView v) { by_lists<KERNEL, float>(v); }  \
  __global__ void __launch_bounds__(THREADS) p2p_hessian_##NAME##_f64(HessianPairView v) { by_lists<KERNEL, double>(v); } \
  __global__ void __launch_bounds__(THREADS) hessian_sums_##NAME##_f64(HessianSumView v) { at_targets<KERNEL>(v); }
FOR_EACH_KERNEL(KERNEL)

// The sums over all shares of the sources at each target, and what was found there. A warp has one target.
__global__ void __launch_bounds__(TILE) hessian_join(HessianSumView v) {
  const unsigned target = blockIdx.x * (TILE / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (target >= v.targets) return;
  double sum[TERMS] = {}, largest = 0;
  for (unsigned part = lane; part < v.parts; part += 32) {
    const double *other = v.partial + (size_t(target) * v.parts + part) * (TERMS + 1);
    for (unsigned k = 0; k < TERMS; k++) sum[k] += other[k];
    largest = fmax(largest, other[TERMS]);
  }
  for (unsigned k = 0; k < TERMS; k++) sum[k] = warp_sum(sum[k]);
  for (unsigned step = 16; step > 0; step /= 2) largest = fmax(largest, __shfl_xor_sync(~0u, largest, step));
  if (lane > 0) return;
  combine(sum, v.sum_scale, v.sum + 6 * size_t(target));
  if (!v.found) return;
  v.largest[target] = largest;
  for (unsigned k = 0; k < 6; k++) v.found_there[6 * size_t(target) + k] = v.found[6 * size_t(v.picked[target]) + k];
}

// Adds what the expansions of the derivative along an axis give: minus their fields, where no earlier axis has added it.
__global__ void __launch_bounds__(TILE) hessian_add(HessianView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  double *out = v.hessian + 6 * i;
  const Sum s = v.sums[i];
  out[v.axis == 0 ? 0 : v.axis == 1 ? 1 : 2] -= (v.axis == 0 ? s.x : v.axis == 1 ? s.y : s.z) * v.scale;
  if (v.axis == 0) {
    out[3] -= s.y * v.scale;
    out[4] -= s.z * v.scale;
  } else if (v.axis == 1) {
    out[5] -= s.z * v.scale;
  }
}

// To the caller's order.
__global__ void __launch_bounds__(TILE) return_hessian(HessianView v) {
  const size_t i = size_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  const double *from = v.hessian + 6 * size_t(v.inverse[i]);
  for (unsigned k = 0; k < 6; k++) v.out[6 * i + k] = from[k] * v.scale;
}
}
