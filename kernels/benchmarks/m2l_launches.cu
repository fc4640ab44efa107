// M2L with kernels that launch kernels, approach (2) of Kohnke et al.: a block for each target cell has a thread for
// each neighbor of its parent, which launches a kernel for the eight children there. Each translation is a block,
// whose operator and source lie in shared memory, with two threads a coefficient. The paper adds up by atomic
// operations; here each translation has a place of its own, and another kernel adds up in a fixed order.
#include "benchmarks/m2l_variants.cuh"

// One translation: the child `blockIdx` of a neighbor of the parent, whose first child lies at (dx, dy, dz) from the
// target.
template <typename Real>
__device__ inline void translated(const M2lVariantsView &v, uint32_t slot, uint32_t cell, int dx, int dy, int dz) {
  using C = typename Complex<Real>::Type;
  extern __shared__ double memory[];
  const unsigned pairs = (v.p + 1) * (v.p + 2) / 2, whole = (2 * v.p + 1) * (v.p + 1);
  C *op = reinterpret_cast<C *>(memory), *source = op + whole, *other = source + pairs;
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x, threads = 2 * pairs;
  const unsigned place = thread % pairs, second = thread / pairs;
  dx += blockIdx.x, dy += blockIdx.y, dz += blockIdx.z;
  C *to = static_cast<C *>(v.parts) + (size_t(slot) * 8 + blockIdx.z * 4 + blockIdx.y * 2 + blockIdx.x) * pairs;
  // Neighbors of the target meet it directly.
  if (abs(dx) < 2 && abs(dy) < 2 && abs(dz) < 2) {
    if (second == 0) to[place] = {0, 0};
    return;
  }
  const C *from = static_cast<const C *>(v.operators) + size_t((dz + 3) * 49 + (dy + 3) * 7 + dx + 3) * whole;
  for (unsigned k = thread; k < whole; k += threads) op[k] = from[k];
  const C *multipole = static_cast<const C *>(v.multipoles) + size_t(around(v, cell, dx, dy, dz)) * pairs;
  if (second == 0) source[place] = multipole[place];
  __syncthreads();
  unsigned l, m;
  degree_of(place, l, m);
  C sum = {0, 0};
  const auto plain = [](unsigned, unsigned, unsigned &re, unsigned &im) { re = im = 0; };
  for (unsigned j = second; j <= v.p; j += 2)
    for (unsigned k = 0; k <= j; k++) both<Real>(l, int(m), j, int(k), source[at(j, k)], op, plain, sum);
  if (second == 1) other[place] = sum;
  __syncthreads();
  if (second == 0) to[place] = {sum.x + other[place].x, sum.y + other[place].y};
}

// The sum of the parts of a cell, a thread a coefficient.
template <typename Real> __device__ inline void joined(const M2lVariantsView &v) {
  using C = typename Complex<Real>::Type;
  const unsigned pairs = (v.p + 1) * (v.p + 2) / 2, i = blockIdx.x * NAIVE + threadIdx.x, here = i / pairs;
  if (here >= v.count) return;
  const C *part = static_cast<const C *>(v.parts) + size_t(here) * PARTS * pairs + i % pairs;
  C sum = {0, 0};
#pragma unroll 8
  for (unsigned k = 0; k < PARTS; k++) sum = {sum.x + part[size_t(k) * pairs].x, sum.y + part[size_t(k) * pairs].y};
  static_cast<C *>(v.locals)[size_t(v.first) * pairs + i] = sum;
}

extern "C" {
__global__ void m2l_launches_child_f32(M2lVariantsView v, uint32_t slot, uint32_t cell, int dx, int dy, int dz) {
  translated<float>(v, slot, cell, dx, dy, dz);
}
__global__ void m2l_launches_child_f64(M2lVariantsView v, uint32_t slot, uint32_t cell, int dx, int dy, int dz) {
  translated<double>(v, slot, cell, dx, dy, dz);
}
}

// Launches the children of one target, 3 x 3 x 3 threads, and reports a launch that fails.
template <typename Real> __device__ inline void launched(const M2lVariantsView &v) {
  const unsigned neighbor = (threadIdx.z * 3 + threadIdx.y) * 3 + threadIdx.x;
  // The parent's own children are neighbors of each other.
  if (neighbor == 13) return;
  const uint32_t cell = v.first + blockIdx.x, slot = blockIdx.x * LAUNCHES + neighbor - (neighbor > 13);
  const int side = v.side, x = cell % side, y = cell / side % side, z = cell / (side * side);
  const int dx = 2 * int(threadIdx.x) - 2 - (x & 1), dy = 2 * int(threadIdx.y) - 2 - (y & 1);
  const int dz = 2 * int(threadIdx.z) - 2 - (z & 1);
  const unsigned pairs = (v.p + 1) * (v.p + 2) / 2, whole = (2 * v.p + 1) * (v.p + 1);
  const size_t shared = (whole + 2 * pairs) * 2 * sizeof(Real);
  const dim3 blocks(2, 2, 2), threads(v.p + 1, v.p + 2);
  if constexpr (sizeof(Real) == 4)
    m2l_launches_child_f32<<<blocks, threads, shared, cudaStreamFireAndForget>>>(v, slot, cell, dx, dy, dz);
  else
    m2l_launches_child_f64<<<blocks, threads, shared, cudaStreamFireAndForget>>>(v, slot, cell, dx, dy, dz);
  if (cudaGetLastError() != cudaSuccess) *v.failed = 1;
}

extern "C" {
__global__ void __launch_bounds__(27) m2l_launches_f32(M2lVariantsView v) { launched<float>(v); }
__global__ void __launch_bounds__(27) m2l_launches_f64(M2lVariantsView v) { launched<double>(v); }
__global__ void __launch_bounds__(NAIVE) m2l_launches_join_f32(M2lVariantsView v) { joined<float>(v); }
__global__ void __launch_bounds__(NAIVE) m2l_launches_join_f64(M2lVariantsView v) { joined<double>(v); }
}
