// M2L of the harmonic kernel in the plane with one translation a thread, as in Cruz, Layton &
// Barba, for `nbody bench m2l2d` alone: planar_pairs.cu is as fast with 8 and 12 terms, faster with
// more, and serves both kernels. A warp has a few target boxes and takes their sources 32 at a
// time, with the multipoles copied to shared memory without use of registers. The lanes that own
// the terms of the results then add them up in a fixed order.
#include "planar/planar.cuh"

constexpr unsigned LANES_OF_WARP = 0xffffffff;

// Binomials: what the two triangles of a translation are, multiplied out.
template <int P> struct Pascal {
  double entry[P][P];
  __host__ __device__ constexpr Pascal() : entry() {
    for (int l = 0; l < P; l++)
      for (int k = 0; k < P; k++) entry[l][k] = l == 0 || k == 0 ? 1.0 : entry[l - 1][k] + entry[l][k - 1];
  }
};

// Queues the copy of 16 bytes to shared memory.
__device__ inline void copy_aside(Complex *to, const Complex *from) {
  const unsigned at = unsigned(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));
}

template <int P> __device__ void m2l_threads(const PlaneView &v) {
  constexpr Pascal<P> MATRIX;
  // An odd number of words of 16 bytes from lane to lane.
  constexpr unsigned STRIDE = P + 1 + P % 2, TOGETHER = 32 / P;
  __shared__ Complex held[M2L_WARPS][32 * STRIDE];
  const unsigned lane = threadIdx.x % 32;
  Complex *own = held[threadIdx.x / 32];
  const uint32_t group = (blockIdx.x * M2L_WARPS + threadIdx.x / 32) * THREAD_BOXES;
  if (group >= v.count) return;
  const uint32_t boxes = min(THREAD_BOXES, v.count - group), first = v.first + group;
  // The end of the row of each box.
  const uint64_t ends = v.start[first + 1 + min(lane, boxes - 1)];
  const uint64_t begin = v.start[first], end = v.start[first + boxes];
  const Complex *multipoles = reinterpret_cast<const Complex *>(v.multipoles);
  const Complex *target = reinterpret_cast<const Complex *>(v.targets.center), *other = reinterpret_cast<const Complex *>(v.sources.center);
  double *locals = v.locals + size_t(first) * 2 * v.terms;
  double sum = 0;
  uint32_t box = 0;
  uint64_t limit = __shfl_sync(LANES_OF_WARP, ends, 0);
  // Writes the sums of boxes whose rows end at e.
  auto close = [&](uint64_t e) {
    while (box < boxes && limit == e) {
      if (lane < 2 * v.terms) locals[size_t(box) * 2 * v.terms + lane] = sum;
      sum = 0;
      box++;
      limit = __shfl_sync(LANES_OF_WARP, ends, min(box, boxes - 1));
    }
  };
  close(begin);
  uint32_t source = begin < end ? v.source[min(begin + lane, end - 1)] : 0;
  for (uint64_t base = begin; base < end; base += 32) {
    const uint64_t mine = min(base + lane, end - 1);
    const uint32_t next = v.source[min(base + 32 + lane, end - 1)];
#pragma unroll
    for (unsigned s = 0; s < 32; s += TOGETHER) {
      const unsigned from = s + lane / P, k = lane % P;
      const uint32_t which = __shfl_sync(LANES_OF_WARP, source, from);
      if (lane / P >= TOGETHER || from >= 32) continue;
      Complex *to = own + from * STRIDE + k;
      if (k < v.terms)
        copy_aside(to, multipoles + size_t(which) * v.terms + k);
      else
        *to = {0, 0};
    }
    uint32_t to = first;
    for (uint32_t b = 0; b + 1 < boxes; b++) to += __shfl_sync(LANES_OF_WARP, ends, b) <= mine;
    const int exponent = v.targets.exponent[to], from = v.sources.exponent[source], largest = max(exponent, from);
    const double scale = power_of_two(-largest);
    const Complex a = target[to], b = other[source];
    const Complex t = {(a.x - b.x) * scale, (a.y - b.y) * scale};
    const double f = 1.0 / fma(t.x, t.x, t.y * t.y);
    const Complex inverse = {t.x * f, -t.y * f};
    const double us = power_of_two(from - largest), ut = -power_of_two(exponent - largest);
    const Complex sigma = {us * inverse.x, us * inverse.y}, tau = {ut * inverse.x, ut * inverse.y};
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
    Complex x[P], power = sigma;
    x[0] = own[lane * STRIDE];
#pragma unroll
    for (int k = 1; k < P; k++) {
      x[k] = times(own[lane * STRIDE + k], power);
      power = times(power, sigma);
    }
    // (-u_target/t)^l u_target/t
    Complex factor = {-tau.x, -tau.y};
#pragma unroll
    for (int l = 0; l < P; l++) {
      Complex y = x[0];
#pragma unroll
      for (int k = 1; k < P; k++) y = {fma(MATRIX.entry[l][k], x[k].x, y.x), fma(MATRIX.entry[l][k], x[k].y, y.y)};
      own[lane * STRIDE + l] = times(factor, y);
      factor = times(factor, tau);
    }
    __syncwarp();
    const unsigned here = unsigned(min(uint64_t(32), end - base));
    for (unsigned s = 0; s < here;) {
      // Of one box; two sums, so that none waits for the other.
      const unsigned stop = unsigned(min(uint64_t(here), limit - base));
      double even = 0, odd = 0;
      if (lane < 2 * P) {
        for (; s + 1 < stop; s += 2) {
          even += reinterpret_cast<const double *>(own + s * STRIDE)[lane];
          odd += reinterpret_cast<const double *>(own + (s + 1) * STRIDE)[lane];
        }
        if (s < stop) even += reinterpret_cast<const double *>(own + s * STRIDE)[lane];
      }
      sum += even + odd;
      s = stop;
      if (base + s == limit) close(base + s);
    }
    __syncwarp();
    source = next;
  }
}

extern "C" {
__global__ void __launch_bounds__(32 * M2L_WARPS, 6) planar_threads_8(PlaneView v) { m2l_threads<8>(v); }
__global__ void __launch_bounds__(32 * M2L_WARPS, 4) planar_threads_12(PlaneView v) { m2l_threads<12>(v); }
__global__ void __launch_bounds__(32 * M2L_WARPS, 4) planar_threads_16(PlaneView v) { m2l_threads<16>(v); }
}
