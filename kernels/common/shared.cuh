// Loads from shared memory by addresses that are computed once. The compiler computes those of arrays again at each use.
#pragma once

__device__ inline unsigned shared_address(const void *p) { return unsigned(__cvta_generic_to_shared(p)); }

__device__ inline unsigned load_shared_u16(unsigned from) {
  unsigned short x;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(from) : "memory");
  return x;
}

__device__ inline unsigned load_shared_u32(unsigned from) {
  unsigned x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}

// Four numbers that begin at a multiple of their size.
__device__ inline void load_shared(unsigned from, float &x, float &y, float &z, float &w) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "r"(from) : "memory");
}

__device__ inline void load_shared(unsigned from, double &x, double &y, double &z, double &w) {
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%4]; ld.shared.v2.f64 {%2, %3}, [%4 + 16];" : "=d"(x), "=d"(y), "=d"(z), "=d"(w) : "r"(from) : "memory");
}
