// What the kernels of sums of Gaussians have in common.
#pragma once
#include "arguments/gauss.cuh"

// Runs of sources, one after the other: a block or a warp takes up to `most` at once, of which each thread may ask for one.
struct Feed {
  const uint32_t *list;
  uint64_t next, end;          // of the runs that follow
  uint32_t at, to;             // of the present one

  // How many there are for the threads 0, 1, ..; `index` is that of thread t, if it has one.
  __device__ uint32_t take(uint32_t most, uint32_t t, uint32_t &index) {
    uint32_t filled = 0;
    while (filled < most) {
      if (at == to) {
        if (next == end) break;
        at = list[2 * next];
        to = list[2 * next + 1];
        next++;
        continue;
      }
      const uint32_t here = min(most - filled, to - at);
      if (t >= filled && t < filled + here) index = at + (t - filled);
      at += here;
      filled += here;
    }
    return filled;
  }
};

constexpr double LOG2_E = 1.4426950408889634074;

// 2^(-y) for y >= 0 by a series of degree TERMS; 0 where it is below 2^-1000. `y` may be infinite.
template <int TERMS> __device__ inline double power_of_half(double y) {
  constexpr double ROUND = 6755399441055744.0;
  // log(2)^k/k!
  constexpr double SERIES[14] = {
    1.0, 0.69314718055994531, 0.24022650695910071, 0.055504108664821580, 0.0096181291076284772, 0.0013333558146428443,
    1.5403530393381609e-4, 1.5252733804059840e-5, 1.3215486790144309e-6, 1.0178086009239699e-7, 7.0549116208011233e-9,
    4.4455382718708116e-10, 2.5678435993488206e-11, 1.3691488853904129e-12};
  const double shifted = ROUND - y;
  const double f = (ROUND - shifted) - y;
  double sum = SERIES[TERMS];
#pragma unroll
  for (int k = TERMS - 1; k >= 0; k--) sum = fma(sum, f, SERIES[k]);
  const int e = __double2loint(shifted);
  const double power = __hiloint2double(__double2hiint(sum) + (e << 20), __double2loint(sum));
  // 1000 as bits: numbers that are not negative are in the order of their words.
  return __double2hiint(y) < 0x408f4000 ? power : 0;
}
