// Products of double precision on the tensor cores.
#pragma once

// Adds to 16 rows (8 at lanes 4g..4g+3 in `low` and 8 in `high`) of 8 columns, of which a lane has 2 of each row, the product of 16 rows of 4 STEPS
// numbers and a matrix of 4 STEPS rows. Lane 4g + t has numbers t + 4e of rows g (in `a`) and g + 8 (in `b`), and rows t + 4e of column g (in `m`).
template <int STEPS> __device__ inline void mma_f64(double *low, double *high, const double *a, const double *b, const double *m) {
  static_assert(STEPS == 1 || STEPS == 2 || STEPS == 4, "the shapes that there are");
#if __CUDA_ARCH__ >= 900
  if constexpr (STEPS == 1)
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(low[0]), "+d"(low[1]), "+d"(high[0]), "+d"(high[1])
        : "d"(a[0]), "d"(b[0]), "d"(m[0]));
  else if constexpr (STEPS == 2)
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(low[0]), "+d"(low[1]), "+d"(high[0]), "+d"(high[1])
        : "d"(a[0]), "d"(b[0]), "d"(a[1]), "d"(b[1]), "d"(m[0]), "d"(m[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, "
        "{%0,%1,%2,%3};"
        : "+d"(low[0]), "+d"(low[1]), "+d"(high[0]), "+d"(high[1])
        : "d"(a[0]), "d"(b[0]), "d"(a[1]), "d"(b[1]), "d"(a[2]), "d"(b[2]), "d"(a[3]), "d"(b[3]), "d"(m[0]), "d"(m[1]), "d"(m[2]),
          "d"(m[3]));
#else
#pragma unroll
  for (int e = 0; e < STEPS; e++) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(low[0]), "+d"(low[1])
        : "d"(a[e]), "d"(m[e]));
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(high[0]), "+d"(high[1])
        : "d"(b[e]), "d"(m[e]));
  }
#endif
}
