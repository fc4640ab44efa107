// From strengths on a mesh to potential and field there, with the waves of the far kernel alone. Rows along z are transformed first,
// then along y, and of their waves those within the sphere |k| <= K go along x, times the kernel, and back. The derivative along an axis
// is a factor along this axis alone, so that the four functions share what their transforms have in common.
#include "arguments/mesh.cuh"
#include "mesh/fft.cuh"

extern __shared__ __align__(16) double shared_waves[];

// m of a place among `count` points, of both signs.
__device__ inline int number_at(unsigned place, unsigned count) { return 2 * place > count ? int(place) - int(count) : int(place); }

// A wave of -d/dx along an axis, where `value` is that of the function.
template <typename Real> __device__ inline Wave<Real> slope(double k, Wave<Real> value) { return {Real(k) * value.y, -Real(k) * value.x}; }

// The axis along which a kernel transforms.
template <typename Real> struct Axis {
  unsigned n, lines, bits, pitch, count;
  const uint32_t *factors;
  const Wave<Real> *roots;
  Wave<Real> *first, *second;
  __device__ Axis(const TransformView &v, unsigned axis, unsigned lines, unsigned pitch)
      : n(v.counts[axis]), lines(lines), bits(__ffs(lines) - 1), pitch(pitch), count(v.factor_count[axis]), factors(v.factors[axis]),
        roots(reinterpret_cast<const Wave<Real> *>(v.roots[axis])), first(reinterpret_cast<Wave<Real> *>(shared_waves)), second(first + n * pitch) {}
  template <int SIGN> __device__ Wave<Real> *transformed() const {
    __syncthreads();
    return transform_lines<SIGN>(first, second, n, lines, pitch, factors, count, roots);
  }
  __device__ Wave<Real> &at(Wave<Real> *waves, unsigned i, unsigned line) const { return waves[i * pitch + line]; }
};

// Rows of strengths along z, two of them as one of complex numbers. A warp reads a row.
template <typename Real> __device__ inline void along_z_forward(const TransformView &v) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = TRANSFORM_THREADS / 32;
  const Axis<Real> axis(v, 2, v.lines, v.lines + 1);
  const Real *mesh = reinterpret_cast<const Real *>(v.mesh);
  Wave<Real> *out = reinterpret_cast<Wave<Real> *>(v.spectrum);
  const size_t pairs = size_t(v.counts[0]) * v.counts[1] / 2, first = size_t(blockIdx.x) * v.lines;
  for (unsigned line = warp; line < v.lines; line += warps) {
    const Real *row = mesh + 2 * (first + line) * axis.n;
    const bool is_there = first + line < pairs;
    for (unsigned i = lane; i < axis.n; i += 32)
      axis.at(axis.first, i, line) = is_there ? Wave<Real>{row[i], row[axis.n + i]} : Wave<Real>{Real(0), Real(0)};
  }
  Wave<Real> *z = axis.template transformed<-1>();
  for (unsigned line = warp; line < v.lines && first + line < pairs; line += warps) {
    Wave<Real> *row = out + 2 * (first + line) * v.depth;
    for (unsigned m = lane; m < v.depth; m += 32) {
      const Wave<Real> a = axis.at(z, m, line), b = axis.at(z, m == 0 ? 0 : axis.n - m, line);
      row[m] = {Real(0.5) * (a.x + b.x), Real(0.5) * (a.y - b.y)};
      row[v.depth + m] = {Real(0.5) * (a.y + b.y), Real(0.5) * (b.x - a.x)};
    }
  }
}

// Columns along y of a plane x; the rows that have waves are kept.
template <typename Real> __device__ inline void along_y_forward(const TransformView &v) {
  const Axis<Real> axis(v, 1, v.lines, v.lines);
  const size_t x = blockIdx.y;
  const unsigned first = blockIdx.x * v.lines;
  const Wave<Real> *in = reinterpret_cast<const Wave<Real> *>(v.spectrum) + x * axis.n * v.depth;
  Wave<Real> *out = reinterpret_cast<Wave<Real> *>(v.rows) + x * v.row_count * v.depth;
  for (unsigned at = threadIdx.x; at < axis.n << axis.bits; at += blockDim.x) {
    const unsigned line = at & (v.lines - 1), y = at >> axis.bits, m = first + line;
    axis.at(axis.first, y, line) = m < v.depth ? in[size_t(y) * v.depth + m] : Wave<Real>{Real(0), Real(0)};
  }
  Wave<Real> *waves = axis.template transformed<-1>();
  for (unsigned at = threadIdx.x; at < v.row_count << axis.bits; at += blockDim.x) {
    const unsigned line = at & (v.lines - 1), row = at >> axis.bits, m = first + line;
    // Rows are those of m_y = 0, 1, ..., and of ..., -1.
    const unsigned y = 2 * row < v.row_count ? row : axis.n + row - v.row_count;
    if (m < v.row_waves[row]) out[size_t(row) * v.depth + m] = axis.at(waves, y, line);
  }
}

// Lines along x: forward, times the kernel, and back, for the potential and its slope along x.
template <typename Real> __device__ inline void along_x(const TransformView &v) {
  const Axis<Real> axis(v, 0, v.lines, v.lines);
  const unsigned row = blockIdx.y, first = blockIdx.x * v.lines, held = v.row_waves[row];
  if (first >= held) return;
  const size_t plane = size_t(v.row_count) * v.depth, begin = size_t(row) * v.depth + first;
  const Wave<Real> *in = reinterpret_cast<const Wave<Real> *>(v.rows) + begin;
  Wave<Real> *out[2] = {reinterpret_cast<Wave<Real> *>(v.potential) + begin, reinterpret_cast<Wave<Real> *>(v.slope) + begin};
  for (unsigned at = threadIdx.x; at < axis.n << axis.bits; at += blockDim.x) {
    const unsigned line = at & (v.lines - 1), x = at >> axis.bits;
    axis.at(axis.first, x, line) = first + line < held ? in[x * plane + line] : Wave<Real>{Real(0), Real(0)};
  }
  Wave<Real> *waves = axis.template transformed<-1>();
  Wave<Real> *kept = axis.second + axis.n * axis.pitch;
  const int m_y = 2 * row < v.row_count ? int(row) : int(row) - int(v.row_count);
  const unsigned y = m_y < 0 ? v.counts[1] + m_y : m_y;
  for (unsigned at = threadIdx.x; at < axis.n << axis.bits; at += blockDim.x) {
    const unsigned line = at & (v.lines - 1), x = at >> axis.bits, z = first + line;
    const double kx = number_at(x, axis.n) * v.wave[0], ky = m_y * v.wave[1], kz = z * v.wave[2];
    const double square = kx * kx + ky * ky + kz * kz;
    double factor = 0;
    if (square > 0 && square <= v.highest2 && z < held) {
      const double t = 2 * square / v.highest2 - 1;
      for (unsigned k = 0; k < v.power_count; k++) factor = fma(factor, t, v.powers[k]);
      factor *= v.kernel / square * v.inverse[0][x] * v.inverse[1][y] * v.inverse[2][z];
    }
    axis.at(kept, x, line) = scaled(axis.at(waves, x, line), Real(factor));
  }
  for (int function = 0; function < 2; function++) {
    __syncthreads();
    for (unsigned at = threadIdx.x; at < axis.n << axis.bits; at += blockDim.x) {
      const unsigned line = at & (v.lines - 1), x = at >> axis.bits;
      const Wave<Real> value = axis.at(kept, x, line);
      axis.at(axis.first, x, line) = function == 0 ? value : slope(number_at(x, axis.n) * v.wave[0], value);
    }
    Wave<Real> *back = axis.template transformed<1>();
    for (unsigned at = threadIdx.x; at < axis.n << axis.bits; at += blockDim.x) {
      const unsigned line = at & (v.lines - 1), x = at >> axis.bits;
      if (first + line < held) out[function][x * plane + line] = axis.at(back, x, line);
    }
  }
}

// Columns along y, back: of the potential, its slope along x, and that along y.
template <typename Real> __device__ inline void along_y_backward(const TransformView &v) {
  const Axis<Real> axis(v, 1, v.lines, v.lines);
  const size_t x = blockIdx.y;
  const unsigned first = blockIdx.x * v.lines, function = blockIdx.z;
  const Wave<Real> *in = reinterpret_cast<const Wave<Real> *>(function == 1 ? v.slope : v.potential) + x * v.row_count * v.depth;
  Wave<Real> *out = reinterpret_cast<Wave<Real> *>(v.spectra) + (function * v.counts[0] + x) * axis.n * v.depth;
  for (unsigned at = threadIdx.x; at < axis.n << axis.bits; at += blockDim.x) {
    const unsigned line = at & (v.lines - 1), y = at >> axis.bits, m = first + line;
    const int m_y = number_at(y, axis.n), most = int(v.row_count / 2);
    Wave<Real> value = {Real(0), Real(0)};
    if (m_y <= most && -m_y <= most) {
      const unsigned row = m_y < 0 ? v.row_count + m_y : m_y;
      if (m < v.row_waves[row]) value = in[size_t(row) * v.depth + m];
      if (function == 2) value = slope(m_y * v.wave[1], value);
    }
    axis.at(axis.first, y, line) = value;
  }
  Wave<Real> *back = axis.template transformed<1>();
  for (unsigned at = threadIdx.x; at < axis.n << axis.bits; at += blockDim.x) {
    const unsigned line = at & (v.lines - 1), y = at >> axis.bits, m = first + line;
    if (m < v.depth) out[size_t(y) * v.depth + m] = axis.at(back, y, line);
  }
}

// Rows along z, back. The functions of a point are two complex numbers: potential and field along x, field along y and z.
template <typename Real> __device__ inline void along_z_backward(const TransformView &v) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = TRANSFORM_THREADS / 32;
  const Axis<Real> axis(v, 2, 2 * v.lines, 2 * v.lines + 1);
  const size_t rows = size_t(v.counts[0]) * v.counts[1], first = size_t(blockIdx.x) * v.lines;
  const Wave<Real> *in = reinterpret_cast<const Wave<Real> *>(v.spectra);
  const unsigned empty = axis.n - 2 * v.depth + 1;
  for (unsigned at = threadIdx.x; at < empty << axis.bits; at += blockDim.x)
    axis.at(axis.first, v.depth + (at >> axis.bits), at & (axis.lines - 1)) = {Real(0), Real(0)};
  for (unsigned line = warp; line < v.lines; line += warps) {
    const Wave<Real> *row = in + (first + line) * v.depth;
    for (unsigned m = lane; m < v.depth; m += 32) {
      Wave<Real> f[4] = {};
      if (first + line < rows) {
        for (int k = 0; k < 3; k++) f[k] = row[k * rows * v.depth + m];
        f[3] = slope(m * v.wave[2], f[0]);
      }
      for (int k = 0; k < 2; k++) {
        const Wave<Real> a = f[2 * k], b = f[2 * k + 1];
        if (m == 0) {
          // What a real function cannot have is rounding.
          axis.at(axis.first, 0, 2 * line + k) = {a.x, b.x};
        } else {
          axis.at(axis.first, m, 2 * line + k) = {a.x - b.y, a.y + b.x};
          axis.at(axis.first, axis.n - m, 2 * line + k) = {a.x + b.y, b.x - a.y};
        }
      }
    }
  }
  Wave<Real> *back = axis.template transformed<1>();
  for (unsigned line = warp; line < v.lines && first + line < rows; line += warps) {
    Wave<Real> *row = reinterpret_cast<Wave<Real> *>(v.functions) + 2 * (first + line) * axis.n;
    for (unsigned i = lane; i < 2 * axis.n; i += 32) row[i] = axis.at(back, i / 2, 2 * line + i % 2);
  }
}

#define TRANSFORM(REAL, NAME)                                                                                                  \
  __global__ void __launch_bounds__(TRANSFORM_THREADS) mesh_z_forward_##NAME(const __grid_constant__ TransformView v) { along_z_forward<REAL>(v); }   \
  __global__ void __launch_bounds__(TRANSFORM_THREADS) mesh_y_forward_##NAME(const __grid_constant__ TransformView v) { along_y_forward<REAL>(v); }   \
  __global__ void __launch_bounds__(TRANSFORM_THREADS) mesh_x_##NAME(const __grid_constant__ TransformView v) { along_x<REAL>(v); }                   \
  __global__ void __launch_bounds__(TRANSFORM_THREADS) mesh_y_backward_##NAME(const __grid_constant__ TransformView v) { along_y_backward<REAL>(v); } \
  __global__ void __launch_bounds__(TRANSFORM_THREADS) mesh_z_backward_##NAME(const __grid_constant__ TransformView v) { along_z_backward<REAL>(v); }
extern "C" {
TRANSFORM(float, f32)
TRANSFORM(double, f64)
}
