// Independent multiply-adds in registers: the most that the ordinary units can do.
#include "arguments/view.cuh"

template <typename T> __device__ inline void multiply_adds(const PeakView &v) {
  const T a = T(v.factor), b = T(v.shift);
  T x[PEAK_CHAINS];
#pragma unroll
  for (unsigned k = 0; k < PEAK_CHAINS; k++) x[k] = T(threadIdx.x + k);
  for (unsigned round = 0; round < v.rounds; round++) {
#pragma unroll
    for (unsigned k = 0; k < PEAK_CHAINS; k++) x[k] = x[k] * a + b;
  }
  T sum = 0;
#pragma unroll
  for (unsigned k = 0; k < PEAK_CHAINS; k++) sum += x[k];
  v.out[uint64_t(blockIdx.x) * TILE + threadIdx.x] = double(sum);
}

extern "C" {
__global__ void __launch_bounds__(TILE) peak_f32(PeakView v) { multiply_adds<float>(v); }
__global__ void __launch_bounds__(TILE) peak_f64(PeakView v) { multiply_adds<double>(v); }
}
