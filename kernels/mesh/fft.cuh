// Fourier transforms of lines in shared memory: Stockham's algorithm, whose results are in order, with factors 2, 3, 4, 5, 7 and 8.
// A block has a power of two of lines, element by element: the element i of line l is at i * pitch + l.
#pragma once
#include <cstdint>

template <typename Real> struct alignas(2 * sizeof(Real)) Wave {
  Real x, y;
};
template <typename Real> __device__ inline Wave<Real> operator+(Wave<Real> a, Wave<Real> b) { return {a.x + b.x, a.y + b.y}; }
template <typename Real> __device__ inline Wave<Real> operator-(Wave<Real> a, Wave<Real> b) { return {a.x - b.x, a.y - b.y}; }
template <typename Real> __device__ inline Wave<Real> operator*(Wave<Real> a, Wave<Real> b) {
  return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
template <typename Real> __device__ inline Wave<Real> scaled(Wave<Real> a, Real s) { return {a.x * s, a.y * s}; }
// Times SIGN i.
template <int SIGN, typename Real> __device__ inline Wave<Real> turned(Wave<Real> a) {
  return SIGN > 0 ? Wave<Real>{-a.y, a.x} : Wave<Real>{a.y, -a.x};
}

// cos and sin of 2 pi k / R for the odd factors and k up to R/2: constants once loops are unrolled.
template <int R> __device__ constexpr double cosine(int k) {
  if (R == 3) return -0.5;
  if (R == 5) return k == 1 ? 0.30901699437494742410 : -0.80901699437494742410;
  return k == 1 ? 0.62348980185873353053 : k == 2 ? -0.22252093395631440429 : -0.90096886790241912624;
}
template <int R> __device__ constexpr double sine(int k) {
  if (R == 3) return 0.86602540378443864676;
  if (R == 5) return k == 1 ? 0.95105651629515357212 : 0.58778525229247312917;
  return k == 1 ? 0.78183148246802980871 : k == 2 ? 0.97492791218182360702 : 0.43388373911755812048;
}

// The transform of R numbers with exp(SIGN 2 pi i j k / R). Of an odd R the numbers k and R - k go together.
template <int R, int SIGN, typename Real> __device__ inline void transform(Wave<Real> *v) {
  if constexpr (R == 2) {
    const Wave<Real> a = v[0];
    v[0] = a + v[1];
    v[1] = a - v[1];
  } else if constexpr (R == 4) {
    const Wave<Real> a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = turned<SIGN>(v[1] - v[3]);
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
  } else if constexpr (R == 8) {
    Wave<Real> even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
    transform<4, SIGN>(even);
    transform<4, SIGN>(odd);
    const Real half = Real(0.70710678118654752440);
    const Wave<Real> one = turned<SIGN>(odd[1]), three = turned<SIGN>(odd[3]);
    odd[1] = scaled(odd[1] + one, half);
    odd[2] = turned<SIGN>(odd[2]);
    odd[3] = scaled(three - odd[3], half);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      v[k] = even[k] + odd[k];
      v[k + 4] = even[k] - odd[k];
    }
  } else {
    constexpr int HALF = R / 2;
    Wave<Real> sum[HALF], difference[HALF];
    Wave<Real> first = v[0];
#pragma unroll
    for (int j = 0; j < HALF; j++) {
      sum[j] = v[j + 1] + v[R - 1 - j];
      difference[j] = turned<SIGN>(v[j + 1] - v[R - 1 - j]);
      first = first + sum[j];
    }
#pragma unroll
    for (int k = 1; k <= HALF; k++) {
      Wave<Real> even = v[0], odd = {Real(0), Real(0)};
#pragma unroll
      for (int j = 0; j < HALF; j++) {
        const int at = (j + 1) * k % R;
        const bool upper = at > HALF;
        const int place = upper ? R - at : at;
        const Real c = Real(cosine<R>(place)), s = Real(upper ? -sine<R>(place) : sine<R>(place));
        even = even + scaled(sum[j], c);
        odd = odd + scaled(difference[j], s);
      }
      // v[k] and v[R - k] are still inputs of nothing: the sums hold all of them.
      v[k] = even + odd;
      v[R - k] = even - odd;
    }
    v[0] = first;
  }
}

// One pass of factor R over `lines` lines of n elements, of which `done` factors' product has been transformed.
template <int R, int SIGN, typename Real>
__device__ inline void pass(const Wave<Real> *from, Wave<Real> *to, unsigned n, unsigned done, unsigned lines, unsigned pitch, const Wave<Real> *roots) {
  const unsigned part = n / R, step = part / done, bits = __ffs(lines) - 1;
  for (unsigned at = threadIdx.x; at < part << bits; at += blockDim.x) {
    const unsigned line = at & (lines - 1), i = at >> bits, k = i % done;
    Wave<Real> v[R];
#pragma unroll
    for (int r = 0; r < R; r++) v[r] = from[(i + r * part) * pitch + line];
    if (k > 0) {
#pragma unroll
      for (int r = 1; r < R; r++) {
        Wave<Real> root = roots[r * k * step];
        if (SIGN > 0) root.y = -root.y;
        v[r] = v[r] * root;
      }
    }
    transform<R, SIGN>(v);
    const unsigned place = (i - k) * R + k;
#pragma unroll
    for (int r = 0; r < R; r++) to[(place + r * done) * pitch + line] = v[r];
  }
}

// Transforms the lines in `from`, which must have been written before a barrier; returns where the results are, after one.
// `roots[k]` = exp(-2 pi i k / n). `other` has as much room.
template <int SIGN, typename Real>
__device__ inline Wave<Real> *transform_lines(Wave<Real> *from, Wave<Real> *other, unsigned n, unsigned lines, unsigned pitch,
                                              const uint32_t *factors, unsigned count, const Wave<Real> *roots) {
  unsigned done = 1;
  for (unsigned f = 0; f < count; f++) {
    const unsigned factor = factors[f];
    switch (factor) {
      case 2: pass<2, SIGN>(from, other, n, done, lines, pitch, roots); break;
      case 3: pass<3, SIGN>(from, other, n, done, lines, pitch, roots); break;
      case 4: pass<4, SIGN>(from, other, n, done, lines, pitch, roots); break;
      case 5: pass<5, SIGN>(from, other, n, done, lines, pitch, roots); break;
      case 7: pass<7, SIGN>(from, other, n, done, lines, pitch, roots); break;
      default: pass<8, SIGN>(from, other, n, done, lines, pitch, roots);
    }
    done *= factor;
    __syncthreads();
    Wave<Real> *swap = from;
    from = other;
    other = swap;
  }
  return from;
}
