// Variants of M2L after Kohnke et al., on the last level of a full octree in a periodic box, for comparison with that
// of m2l.cu: a thread a coefficient and target with loops over the octree; lists sorted by operators that differ in
// signs alone, in one kernel or in one for each size of the groups; translations by rotation.
#include "benchmarks/m2l_variants.cuh"

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

// Groups of each size in the order of their lists: 7 of one offset, 21 of two, 21 of four, 7 of eight.
__device__ constexpr unsigned first_group(unsigned size) { return size == 1 ? 0 : size == 2 ? 7 : size == 4 ? 28 : 49; }

// A block has `targets` cells of one octant, a thread a coefficient of one. LOADS and PRODUCTS: what the whole does;
// each alone bounds it. The groups of SIZE offsets alone, added to what those of fewer gave, or all groups where SIZE
// is 0.
template <typename Real, bool LOADS, bool PRODUCTS, unsigned SIZE>
__device__ inline void grouped(const M2lVariantsView &v) {
  constexpr unsigned HELD = SIZE ? SIZE : MEMBERS, FIRST = SIZE ? first_group(SIZE) : 0;
  constexpr unsigned END = SIZE == 0 || SIZE == 8 ? GROUPS : first_group(2 * SIZE);
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
  for (unsigned g = FIRST; g < END; g++) {
    const uint32_t *group = v.groups + (octant(v, cell) * GROUPS + g) * (1 + MEMBERS);
    const unsigned members = SIZE ? SIZE : group[0];
    __syncthreads();
    if (LOADS || g == FIRST) {
      const C *from = static_cast<const C *>(v.operators) + size_t(g) * whole;
      for (unsigned k = threadIdx.x; k < whole; k += blockDim.x) op[k] = from[k];
      if (mine < v.targets)
        for (unsigned s = 0; s < (LOADS ? members : HELD); s++) {
          const uint32_t code = group[1 + min(s, members - 1)];
          const uint32_t source = around(v, cell, int(code & 7) - 3, int(code >> 3 & 7) - 3, int(code >> 6 & 7) - 3);
          held[(mine * HELD + s) * pairs + place] = multipoles[size_t(source) * pairs + place];
        }
    }
    __syncthreads();
    if (!works) continue;
    for (unsigned s = 0; s < members; s++) {
      const unsigned bits = group[1 + s] >> 16;
      const C *source = held + (mine * HELD + s) * pairs;
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
  if (!works) return;
  C &local = static_cast<C *>(v.locals)[size_t(cell) * pairs + place];
  if (SIZE > 1) sum = {local.x + sum.x, local.y + sum.y};
  local = sum;
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

#define VARIANT(NAME, THREADS, BODY) \
  __global__ void __launch_bounds__(THREADS) m2l_variants_##NAME(M2lVariantsView v) { BODY(v); }
#define SIZED(REAL, TYPE, SIZE) VARIANT(size##SIZE##_##REAL, WIDTH, (grouped<TYPE, true, true, SIZE>))
#define VARIANTS(REAL, TYPE) \
  VARIANT(naive_##REAL, NAIVE, naive<TYPE>) \
  VARIANT(grouped_##REAL, WIDTH, (grouped<TYPE, true, true, 0>)) \
  VARIANT(loads_##REAL, WIDTH, (grouped<TYPE, true, false, 0>)) \
  VARIANT(products_##REAL, WIDTH, (grouped<TYPE, false, true, 0>)) \
  VARIANT(rotated_##REAL, WIDTH, rotated<TYPE>) \
  SIZED(REAL, TYPE, 1) SIZED(REAL, TYPE, 2) SIZED(REAL, TYPE, 4) SIZED(REAL, TYPE, 8)
extern "C" {
VARIANTS(f32, float)
VARIANTS(f64, double)
}
