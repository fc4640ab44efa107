// Variants of M2L after Kohnke et al., on the last level of a full octree in a periodic box, for comparison with that of m2l.cu: a thread a
// coefficient and target with loops over the octree; lists sorted by operators that differ in signs alone; translations by rotation. Complex
// coefficients A_l^m with m >= 0 at l(l+1)/2 + m.
#include "arguments/m2l_variants.cuh"

template <typename Real> struct Complex;
template <> struct Complex<float> { using Type = float2; };
template <> struct Complex<double> { using Type = double2; };

__device__ inline float flipped(float x, unsigned negative) { return __uint_as_float(__float_as_uint(x) ^ negative << 31); }
__device__ inline double flipped(double x, unsigned negative) {
  return __hiloint2double(__double2hiint(x) ^ int(negative << 31), __double2loint(x));
}
__device__ inline unsigned at(unsigned l, unsigned m) { return l * (l + 1) / 2 + m; }

// The cell at an offset from another, around the edges.
__device__ inline uint32_t around(const M2lVariantsView &v, uint32_t cell, int dx, int dy, int dz) {
  const int side = v.side, x = cell % side, y = cell / side % side, z = cell / (side * side);
  const auto wrap = [&](int c) { return c < 0 ? c + side : c >= side ? c - side : c; };
  return (wrap(z + dz) * side + wrap(y + dy)) * side + wrap(x + dx);
}
__device__ inline unsigned octant(const M2lVariantsView &v, uint32_t cell) {
  return cell % v.side % 2 | (cell / v.side % v.side % 2) << 1 | (cell / (v.side * v.side) % 2) << 2;
}

// l and m of a place.
__device__ inline void degree_of(unsigned place, unsigned &l, unsigned &m) {
  l = unsigned((sqrtf(8.0f * float(place) + 1.0f) - 1.0f) * 0.5f);
  while (at(l, 0) > place) l--;
  while (at(l + 1, 0) <= place) l++;
  m = place - at(l, 0);
}

// Adds (-1)^j conj(M_j^k) I_{l+j}^{m+k} for both signs of k, with what the operator's signs are.
template <typename Real, class C, class Signs>
__device__ inline void both(unsigned l, int m, unsigned j, int k, const C &source, const C *op, Signs signs, C &sum) {
  const auto one = [&](int q, Real re, Real im) {
    const int order = m + q;
    const unsigned n = l + j, size = order < 0 ? -order : order, odd = order < 0 && (order & 1);
    const C value = op[at(n, size)];
    unsigned flip_re, flip_im;
    signs(n, size, flip_re, flip_im);
    // A_l^-m = (-1)^m conj(A_l^m).
    const Real a = flipped(value.x, flip_re ^ odd), b = flipped(value.y, flip_im ^ odd ^ (order < 0));
    sum.x += re * a - im * b;
    sum.y += re * b + im * a;
  };
  const unsigned negative = j & 1;
  one(k, flipped(source.x, negative), flipped(source.y, negative ^ 1));
  if (k > 0) one(-k, flipped(source.x, negative ^ (k & 1)), flipped(source.y, negative ^ (k & 1)));
}

template <typename Real> __device__ inline void naive(const M2lVariantsView &v) {
  using C = typename Complex<Real>::Type;
  const unsigned pairs = (v.p + 1) * (v.p + 2) / 2, whole = (2 * v.p + 1) * (v.p + 1);
  const uint64_t i = uint64_t(blockIdx.x) * NAIVE + threadIdx.x;
  const uint32_t cell = i / pairs;
  if (cell >= v.cells) return;
  unsigned l, m;
  degree_of(i % pairs, l, m);
  const auto *multipoles = static_cast<const C *>(v.multipoles);
  const auto *operators = static_cast<const C *>(v.operators);
  const int side = v.side, x = cell % side, y = cell / side % side, z = cell / (side * side);
  C sum = {0, 0};
  const auto plain = [](unsigned, unsigned, unsigned &re, unsigned &im) { re = im = 0; };
  // The children of the parent's neighbours that are no neighbours themselves.
  for (int dz = -2 - (z & 1); dz <= 3 - (z & 1); dz++)
    for (int dy = -2 - (y & 1); dy <= 3 - (y & 1); dy++)
      for (int dx = -2 - (x & 1); dx <= 3 - (x & 1); dx++) {
        if (abs(dx) < 2 && abs(dy) < 2 && abs(dz) < 2) continue;
        const C *source = multipoles + size_t(around(v, cell, dx, dy, dz)) * pairs;
        const C *op = operators + size_t((dz + 3) * 49 + (dy + 3) * 7 + dx + 3) * whole;
        for (unsigned j = 0; j <= v.p; j++)
          for (unsigned k = 0; k <= j; k++) both<Real>(l, int(m), j, int(k), source[at(j, k)], op, plain, sum);
      }
  static_cast<C *>(v.locals)[i] = sum;
}

// A block has `targets` cells of one octant, a thread a coefficient of one. LOADS and PRODUCTS: what the whole does; each alone bounds it.
template <typename Real, bool LOADS, bool PRODUCTS> __device__ inline void grouped(const M2lVariantsView &v) {
  using C = typename Complex<Real>::Type;
  extern __shared__ double memory[];
  const unsigned pairs = (v.p + 1) * (v.p + 2) / 2, whole = (2 * v.p + 1) * (v.p + 1);
  C *op = reinterpret_cast<C *>(memory), *held = op + whole;
  const unsigned mine = threadIdx.x / pairs, place = threadIdx.x % pairs, half = v.side / 2, octants = half * half * half;
  const unsigned turn = blockIdx.x % 8;
  const unsigned number = min(blockIdx.x / 8 * v.targets + mine, octants - 1);
  const uint32_t cell = ((number / (half * half) * 2 + (turn >> 2)) * v.side + number / half % half * 2 + (turn >> 1 & 1)) * v.side +
                        number % half * 2 + (turn & 1);
  const bool works = mine < v.targets && blockIdx.x / 8 * v.targets + mine < octants;
  unsigned l, m;
  degree_of(place, l, m);
  const auto *multipoles = static_cast<const C *>(v.multipoles);
  C sum = {0, 0};
  for (unsigned g = 0; g < GROUPS; g++) {
    const uint32_t *group = v.groups + (octant(v, cell) * GROUPS + g) * (1 + MEMBERS);
    const unsigned members = group[0];
    __syncthreads();
    if (LOADS || g == 0) {
      const C *from = static_cast<const C *>(v.operators) + size_t(g) * whole;
      for (unsigned k = threadIdx.x; k < whole; k += blockDim.x) op[k] = from[k];
      if (mine < v.targets)
        for (unsigned s = 0; s < (LOADS ? members : MEMBERS); s++) {
          const uint32_t code = group[1 + min(s, members - 1)];
          const uint32_t source = around(v, cell, int(code & 7) - 3, int(code >> 3 & 7) - 3, int(code >> 6 & 7) - 3);
          held[(mine * MEMBERS + s) * pairs + place] = multipoles[size_t(source) * pairs + place];
        }
    }
    __syncthreads();
    if (!works) continue;
    for (unsigned s = 0; s < members; s++) {
      const unsigned bits = group[1 + s] >> 16;
      const C *source = held + (mine * MEMBERS + s) * pairs;
      if constexpr (!PRODUCTS) {
        sum.x += source[place].x + op[place].x;
        sum.y += source[place].y;
        continue;
      }
      // Four bits for real parts and four for imaginary ones, by the parities of order and of degree and order.
      const auto signs = [&](unsigned n, unsigned size, unsigned &re, unsigned &im) {
        const unsigned which = (size & 1) | ((n + size) & 1) << 1;
        re = bits >> which & 1;
        im = bits >> (4 + which) & 1;
      };
      for (unsigned j = 0; j <= v.p; j++)
        for (unsigned k = 0; k <= j; k++) both<Real>(l, int(m), j, int(k), source[at(j, k)], op, signs, sum);
    }
  }
  if (works) static_cast<C *>(v.locals)[size_t(cell) * pairs + place] = sum;
}

// A coefficient times a power of a unit number, or its conjugate.
template <typename C> __device__ inline C turned(C a, C e, bool conjugate) {
  const auto im = conjugate ? -e.y : e.y;
  return {a.x * e.x - a.y * im, a.x * im + a.y * e.x};
}

// One target for each `pairs` threads of a block; sources in turn.
template <typename Real> __device__ inline void rotated(const M2lVariantsView &v) {
  using C = typename Complex<Real>::Type;
  extern __shared__ double memory[];
  const unsigned p = v.p, pairs = (p + 1) * (p + 2) / 2, mine = threadIdx.x / pairs, place = threadIdx.x % pairs;
  const bool there = mine < v.targets;
  const unsigned wanted = blockIdx.x * v.targets + mine;
  const uint32_t cell = min(wanted, v.cells - 1);
  C *row = reinterpret_cast<C *>(memory) + (there ? mine : 0) * pairs;
  unsigned l, m;
  degree_of(place, l, m);
  const auto *multipoles = static_cast<const C *>(v.multipoles);
  const auto *swaps = static_cast<const Real *>(v.swaps) + l * (l + 1) * (2 * l + 1) / 6;
  const auto put = [&](C value) {
    __syncthreads();
    if (there) row[place] = value;
    __syncthreads();
  };
  // Row m of the block of degree l: of multipoles, or transposed of local expansions.
  const auto swapped = [&](unsigned kind) {
    const Real *re = swaps + size_t(kind) * v.blocks + m * (l + 1), *im = re + v.blocks;
    C sum = {0, 0};
    for (unsigned k = 0; k <= l; k++) {
      const C a = row[at(l, k)];
      sum.x += re[k] * a.x;
      sum.y += im[k] * a.y;
    }
    return sum;
  };
  const int side = v.side, x = cell % side, y = cell / side % side, z = cell / (side * side);
  C total = {0, 0};
  for (int dz = -2; dz <= 3; dz++)
    for (int dy = -2; dy <= 3; dy++)
      for (int dx = -2; dx <= 3; dx++) {
        // By the octant of each; all go through as many offsets, so that they stay together.
        const int o[3] = {x & 1 ? -dx : dx, y & 1 ? -dy : dy, z & 1 ? -dz : dz};
        if (abs(dx) < 2 && abs(dy) < 2 && abs(dz) < 2) continue;
        const unsigned code = (o[2] + 3) * 49 + (o[1] + 3) * 7 + o[0] + 3;
        const C *first = static_cast<const C *>(v.turns) + size_t(code) * 2 * (p + 1), *second = first + p + 1;
        const Real *powers = static_cast<const Real *>(v.powers) + size_t(code) * (2 * p + 1);
        C a = multipoles[size_t(around(v, cell, o[0], o[1], o[2])) * pairs + place];
        put(turned(a, first[m], true));
        put(turned(swapped(0), second[m], true));
        put(swapped(0));
        a = {0, 0};
        for (unsigned j = m; j <= p; j++) {
          const C b = row[at(j, m)];
          a.x += b.x * powers[l + j];
          a.y += b.y * powers[l + j];
        }
        const unsigned odd = (l + m) & 1;
        put({flipped(a.x, odd), flipped(a.y, odd)});
        put(turned(swapped(2), second[m], false));
        a = turned(swapped(2), first[m], false);
        total.x += a.x;
        total.y += a.y;
      }
  if (there && wanted < v.cells) static_cast<C *>(v.locals)[size_t(cell) * pairs + place] = total;
}

extern "C" {
__global__ void __launch_bounds__(NAIVE) m2l_variants_naive_f32(M2lVariantsView v) { naive<float>(v); }
__global__ void __launch_bounds__(NAIVE) m2l_variants_naive_f64(M2lVariantsView v) { naive<double>(v); }
__global__ void __launch_bounds__(WIDTH) m2l_variants_grouped_f32(M2lVariantsView v) { grouped<float, true, true>(v); }
__global__ void __launch_bounds__(WIDTH) m2l_variants_grouped_f64(M2lVariantsView v) { grouped<double, true, true>(v); }
__global__ void __launch_bounds__(WIDTH) m2l_variants_loads_f32(M2lVariantsView v) { grouped<float, true, false>(v); }
__global__ void __launch_bounds__(WIDTH) m2l_variants_loads_f64(M2lVariantsView v) { grouped<double, true, false>(v); }
__global__ void __launch_bounds__(WIDTH) m2l_variants_products_f32(M2lVariantsView v) { grouped<float, false, true>(v); }
__global__ void __launch_bounds__(WIDTH) m2l_variants_products_f64(M2lVariantsView v) { grouped<double, false, true>(v); }
__global__ void __launch_bounds__(WIDTH) m2l_variants_rotated_f32(M2lVariantsView v) { rotated<float>(v); }
__global__ void __launch_bounds__(WIDTH) m2l_variants_rotated_f64(M2lVariantsView v) { rotated<double>(v); }
}
