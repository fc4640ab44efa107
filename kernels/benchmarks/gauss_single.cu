// Hermite series in the plane at many points in single precision, for `nbody bench gauss`: what gauss_series.cu does
// in double. A block has a series in shared memory, and points whose results its threads find by Horner's rule along
// both axes.
#include "arguments/gauss_single.cuh"

// P terms an axis, or v.order where P is 0.
template <int P> __device__ void series_at_points(const SeriesView &v) {
  __shared__ float held[MOST_TERMS * MOST_TERMS];
  const unsigned p = P ? P : v.order;
  const float *series = v.series + size_t(blockIdx.x % v.series_count) * p * p;
  for (unsigned i = threadIdx.x; i < p * p; i += SERIES_THREADS) held[i] = series[i];
  __syncthreads();
  const size_t first = size_t(blockIdx.x) * (SERIES_THREADS * SERIES_POINTS) + threadIdx.x;
  const float2 *points = reinterpret_cast<const float2 *>(v.points);
  float2 z[SERIES_POINTS];
  float sum[SERIES_POINTS];
#pragma unroll
  for (unsigned s = 0; s < SERIES_POINTS; s++) {
    const float2 x = points[first + s * SERIES_THREADS];
    z[s] = make_float2(x.x - v.center[0], x.y - v.center[1]);
    sum[s] = 0;
  }
  for (unsigned i = p; i-- > 0;) {
    float row[SERIES_POINTS] = {};
#pragma unroll
    for (unsigned k = p; k-- > 0;) {
      const float c = held[i * p + k];
#pragma unroll
      for (unsigned s = 0; s < SERIES_POINTS; s++) row[s] = fmaf(row[s], z[s].y, c);
    }
#pragma unroll
    for (unsigned s = 0; s < SERIES_POINTS; s++) sum[s] = fmaf(sum[s], z[s].x, row[s]);
  }
#pragma unroll
  for (unsigned s = 0; s < SERIES_POINTS; s++) {
    sum[s] *= __expf(-0.5f * fmaf(z[s].x, z[s].x, z[s].y * z[s].y));
    v.out[first + s * SERIES_THREADS] = sum[s];
  }
}

#define SERIES(P) \
  __global__ void __launch_bounds__(SERIES_THREADS) gauss_single_##P(SeriesView v) { series_at_points<P>(v); }
extern "C" {
SERIES(0)
SERIES(5)
SERIES(9)
SERIES(12)
}
