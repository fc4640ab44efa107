// Heat that particles exchange with a bath, with the formulas and the random numbers of fmm-core's `bath.rs`. Compiled without fused
// multiply-add, so that all but logarithms and cosines has the CPU's bits.
#include "common/sums.cuh"

__device__ inline void quarter_round(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d) {
  auto add = [](uint32_t &x, uint32_t y, uint32_t &z, unsigned by) {
    x += y;
    z = __funnelshift_l(z ^ x, z ^ x, by);
  };
  add(a, b, d, 16);
  add(c, d, b, 12);
  add(a, b, d, 8);
  add(c, d, b, 7);
}

// A block of ChaCha with eight rounds (Bernstein 2008), the number of the block and that of the stream in 64 bits each.
__device__ inline void chacha8(const uint32_t (&key)[8], uint64_t block, uint64_t stream, uint32_t (&words)[16]) {
  const uint32_t first[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key[0], key[1], key[2], key[3],
                              key[4], key[5], key[6], key[7], uint32_t(block), uint32_t(block >> 32), uint32_t(stream), uint32_t(stream >> 32)};
#pragma unroll
  for (int k = 0; k < 16; k++) words[k] = first[k];
#pragma unroll
  for (int round = 0; round < 4; round++) {
#pragma unroll
    for (int k = 0; k < 4; k++) quarter_round(words[k], words[4 + k], words[8 + k], words[12 + k]);
#pragma unroll
    for (int k = 0; k < 4; k++) quarter_round(words[k], words[4 + (k + 1) % 4], words[8 + (k + 2) % 4], words[12 + (k + 3) % 4]);
  }
#pragma unroll
  for (int k = 0; k < 16; k++) words[k] += first[k];
}

// Uniform in (0, 1): 52 bits and a half.
__device__ inline double uniform(uint32_t low, uint32_t high) {
  return double((uint64_t(high) << 32 | low) >> 12) * 0x1p-52 + 0x1p-53;
}

// A normal variate (Box and Muller) of four words.
__device__ inline double normal(const uint32_t *words) {
  const double radius = sqrt(-2 * log(uniform(words[0], words[1])));
  return radius * cos(6.283185307179586 * uniform(words[2], words[3]));
}

extern "C" {
// Friction and noise over a step.
__global__ void __launch_bounds__(TILE) bath_langevin(const __grid_constant__ LangevinView v) {
  const uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x;
  if (i >= v.n) return;
  uint32_t words[16];
  chacha8(v.key, v.first + i * v.blocks, v.stream, words);
  const double noise = v.noise / sqrt(v.mass[i]);
#pragma unroll
  for (int d = 0; d < 3; d++) {
    double &own = v.velocity[3 * i + d];
    own = v.kept * own + noise * normal(words + 4 * d);
  }
}

// Kinetic energy, momentum and mass of each block's share of the particles.
__global__ void __launch_bounds__(TILE) bath_sums(MotionView v) {
  double sum[MOTION_SUMS] = {};
  for (uint64_t i = uint64_t(blockIdx.x) * TILE + threadIdx.x; i < v.n; i += uint64_t(gridDim.x) * TILE) {
    const double *u = v.velocity + 3 * i, m = v.mass[i];
    sum[0] += 0.5 * m * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
    for (int d = 0; d < 3; d++) sum[1 + d] += m * u[d];
    sum[4] += m;
  }
  block_sums<MOTION_SUMS>(sum);
  if (threadIdx.x > 0) return;
  for (unsigned k = 0; k < MOTION_SUMS; k++) v.partial[size_t(blockIdx.x) * MOTION_SUMS + k] = sum[k];
}

// Velocities about that of the center of mass, times a factor.
__global__ void __launch_bounds__(TILE) bath_rescale(MotionView v) {
  const uint64_t k = uint64_t(blockIdx.x) * TILE + threadIdx.x;
  if (k >= 3 * v.n) return;
  const double center = v.center[k % 3];
  v.velocity[k] = center + v.factor * (v.velocity[k] - center);
}
}
