//! The vectors of AVX-512, of AVX2 with FMA, and of SSE2, which every processor of 64 bits has.
//!
//! All `unsafe` here has one reason: an intrinsic may run only where the processor has the extension. The
//! types are private and are handed to a [`Task`] only by [`Real`], inside functions that enable
//! the extension, for a [`Level`] that was detected. Loads and stores check the slice's length first.

use std::arch::x86_64::*;

use super::{Level, Real, Task, Vector};
use transpose::{transpose_d256, transpose_d512, transpose_s256, transpose_s512};

#[path = "simd_x86_transpose.rs"]
mod transpose;

#[derive(Clone, Copy)]
struct D512(__m512d);
#[derive(Clone, Copy)]
struct S512(__m512);
/// Two registers of four (eight) lanes, so that the width is that of AVX-512.
#[derive(Clone, Copy)]
struct D256(__m256d, __m256d);
#[derive(Clone, Copy)]
struct S256(__m256, __m256);
/// Four registers of two (four) lanes.
#[derive(Clone, Copy)]
struct D128(__m128d, __m128d, __m128d, __m128d);
#[derive(Clone, Copy)]
struct S128(__m128, __m128, __m128, __m128);

macro_rules! one_register {
    ($name:ident, $real:ty, $width:literal, $set1:ident, $load:ident, $store:ident, $add:ident,
     $sub:ident, $mul:ident, $div:ident, $sqrt:ident, $max:ident, $min:ident, $fma:ident, $fnma:ident,
     seed: |$x:ident| $seed:expr, keep: |$y:ident, $v:ident, $l:ident| $keep:expr, transpose: $transpose:ident,
     bits: $bits:ident) => {
        impl Vector for $name {
            type Scalar = $real;
            #[inline(always)]
            fn transpose(rows: &mut [Self]) {
                let rows: &mut [Self; $width] = rows.first_chunk_mut().expect("as many vectors as lanes");
                // SAFETY: see the head of this file; so for every block below.
                unsafe { $transpose(rows) }
            }
            #[inline(always)]
            fn splat(x: $real) -> Self {
                unsafe { $name($set1(x)) }
            }
            #[inline(always)]
            fn load(from: &[$real]) -> Self {
                let from: &[$real; $width] = from.first_chunk().expect("a whole vector");
                unsafe { $name($load(from.as_ptr())) }
            }
            #[inline(always)]
            fn store(self, to: &mut [$real]) {
                let to: &mut [$real; $width] = to.first_chunk_mut().expect("a whole vector");
                unsafe { $store(to.as_mut_ptr(), self.0) }
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                unsafe { $name($add(self.0, b.0)) }
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                unsafe { $name($sub(self.0, b.0)) }
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                unsafe { $name($mul(self.0, b.0)) }
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                unsafe { $name($div(self.0, b.0)) }
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                unsafe { $name($sqrt(self.0)) }
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                unsafe { $name($max(self.0, b.0)) }
            }
            #[inline(always)]
            fn min(self, b: Self) -> Self {
                unsafe { $name($min(self.0, b.0)) }
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                unsafe { $name($fma(self.0, b.0, c.0)) }
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                unsafe { $name($fnma(self.0, b.0, c.0)) }
            }
            #[inline(always)]
            fn rsqrt_seed(self) -> Self {
                let $x = self.0;
                unsafe { $name($seed) }
            }
            #[inline(always)]
            fn keep_where_at_least(self, x: Self, limit: Self) -> Self {
                let ($y, $v, $l) = (self.0, x.0, limit.0);
                unsafe { $name($keep) }
            }
            #[inline(always)]
            fn split_exponent(self) -> (Self, Self) {
                let (e, m) = unsafe { $bits::split_exponent(self.0) };
                ($name(e), $name(m))
            }
            #[inline(always)]
            fn times_power_of_two(self, n: Self) -> Self {
                unsafe { $name($bits::times_power_of_two(self.0, n.0)) }
            }
        }
    };
}

one_register!(D512, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd, _mm512_sub_pd,
    _mm512_mul_pd, _mm512_div_pd, _mm512_sqrt_pd, _mm512_max_pd, _mm512_min_pd, _mm512_fmadd_pd, _mm512_fnmadd_pd,
    seed: |x| _mm512_castsi512_pd(_mm512_sub_epi64(
        _mm512_set1_epi64(0x5fe6_eb50_c7b5_37a9), _mm512_srli_epi64::<1>(_mm512_castpd_si512(x)))),
    keep: |y, v, l| _mm512_maskz_mov_pd(_mm512_cmp_pd_mask::<_CMP_GE_OQ>(v, l), y), transpose: transpose_d512,
    bits: bits_d512);

one_register!(S512, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_sub_ps,
    _mm512_mul_ps, _mm512_div_ps, _mm512_sqrt_ps, _mm512_max_ps, _mm512_min_ps, _mm512_fmadd_ps, _mm512_fnmadd_ps,
    seed: |x| _mm512_castsi512_ps(_mm512_sub_epi32(
        _mm512_set1_epi32(0x5f37_59df), _mm512_srli_epi32::<1>(_mm512_castps_si512(x)))),
    keep: |y, v, l| _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(v, l), y), transpose: transpose_s512,
    bits: bits_s512);

macro_rules! several_registers {
    ($name:ident, $real:ty, $width:literal, $lanes:literal, parts: [$($part:tt)*], $set1:ident, $load:ident, $store:ident,
     $add:ident, $sub:ident, $mul:ident, $div:ident, $sqrt:ident, $max:ident, $min:ident, $fma:ident, $fnma:ident,
     seed: |$x:ident| $seed:expr, keep: |$y:ident, $v:ident, $l:ident| $keep:expr, bits: $bits:ident $(, transpose: $transpose:ident)?) => {
        impl Vector for $name {
            type Scalar = $real;
            $(
                #[inline(always)]
                fn transpose(rows: &mut [Self]) {
                    let rows: &mut [Self; $width] = rows.first_chunk_mut().expect("as many vectors as lanes");
                    // SAFETY: see the head of this file.
                    unsafe { $transpose(rows) }
                }
            )?
            #[inline(always)]
            fn splat(x: $real) -> Self {
                // SAFETY: see the head of this file; so for every block below.
                let one = unsafe { $set1(x) };
                $name($({ let _ = $part; one }),*)
            }
            #[inline(always)]
            fn load(from: &[$real]) -> Self {
                let from: &[$real; $width] = from.first_chunk().expect("a whole vector");
                unsafe { $name($($load(from.as_ptr().add($part * $lanes))),*) }
            }
            #[inline(always)]
            fn store(self, to: &mut [$real]) {
                let to: &mut [$real; $width] = to.first_chunk_mut().expect("a whole vector");
                unsafe { $($store(to.as_mut_ptr().add($part * $lanes), self.$part);)* }
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                unsafe { $name($($add(self.$part, b.$part)),*) }
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                unsafe { $name($($sub(self.$part, b.$part)),*) }
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                unsafe { $name($($mul(self.$part, b.$part)),*) }
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                unsafe { $name($($div(self.$part, b.$part)),*) }
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                unsafe { $name($($sqrt(self.$part)),*) }
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                unsafe { $name($($max(self.$part, b.$part)),*) }
            }
            #[inline(always)]
            fn min(self, b: Self) -> Self {
                unsafe { $name($($min(self.$part, b.$part)),*) }
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                unsafe { $name($($fma(self.$part, b.$part, c.$part)),*) }
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                unsafe { $name($($fnma(self.$part, b.$part, c.$part)),*) }
            }
            #[inline(always)]
            fn rsqrt_seed(self) -> Self {
                let seed = |$x| unsafe { $seed };
                $name($(seed(self.$part)),*)
            }
            #[inline(always)]
            fn keep_where_at_least(self, x: Self, limit: Self) -> Self {
                let keep = |$y, $v, $l| unsafe { $keep };
                $name($(keep(self.$part, x.$part, limit.$part)),*)
            }
            #[inline(always)]
            fn split_exponent(self) -> (Self, Self) {
                let parts = unsafe { ($($bits::split_exponent(self.$part)),*) };
                ($name($(parts.$part.0),*), $name($(parts.$part.1),*))
            }
            #[inline(always)]
            fn times_power_of_two(self, n: Self) -> Self {
                unsafe { $name($($bits::times_power_of_two(self.$part, n.$part)),*) }
            }
        }
    };
}

several_registers!(D256, f64, 8, 4, parts: [0 1], _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd,
    _mm256_sub_pd, _mm256_mul_pd, _mm256_div_pd, _mm256_sqrt_pd, _mm256_max_pd, _mm256_min_pd, _mm256_fmadd_pd, _mm256_fnmadd_pd,
    seed: |x| _mm256_castsi256_pd(_mm256_sub_epi64(
        _mm256_set1_epi64x(0x5fe6_eb50_c7b5_37a9), _mm256_srli_epi64::<1>(_mm256_castpd_si256(x)))),
    keep: |y, v, l| _mm256_and_pd(_mm256_cmp_pd::<_CMP_GE_OQ>(v, l), y), bits: bits_d256, transpose: transpose_d256);

several_registers!(S256, f32, 16, 8, parts: [0 1], _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps,
    _mm256_sub_ps, _mm256_mul_ps, _mm256_div_ps, _mm256_sqrt_ps, _mm256_max_ps, _mm256_min_ps, _mm256_fmadd_ps, _mm256_fnmadd_ps,
    seed: |x| _mm256_castsi256_ps(_mm256_sub_epi32(
        _mm256_set1_epi32(0x5f37_59df), _mm256_srli_epi32::<1>(_mm256_castps_si256(x)))),
    keep: |y, v, l| _mm256_and_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(v, l), y), bits: bits_s256, transpose: transpose_s256);

several_registers!(D128, f64, 8, 2, parts: [0 1 2 3], _mm_set1_pd, _mm_loadu_pd, _mm_storeu_pd, _mm_add_pd, _mm_sub_pd,
    _mm_mul_pd, _mm_div_pd, _mm_sqrt_pd, _mm_max_pd, _mm_min_pd, rounded_twice_pd, minus_rounded_twice_pd,
    seed: |x| _mm_castsi128_pd(_mm_sub_epi64(
        _mm_set1_epi64x(0x5fe6_eb50_c7b5_37a9), _mm_srli_epi64::<1>(_mm_castpd_si128(x)))),
    keep: |y, v, l| _mm_and_pd(_mm_cmpge_pd(v, l), y), bits: bits_d128);

several_registers!(S128, f32, 16, 4, parts: [0 1 2 3], _mm_set1_ps, _mm_loadu_ps, _mm_storeu_ps, _mm_add_ps, _mm_sub_ps,
    _mm_mul_ps, _mm_div_ps, _mm_sqrt_ps, _mm_max_ps, _mm_min_ps, rounded_twice_ps, minus_rounded_twice_ps,
    seed: |x| _mm_castsi128_ps(_mm_sub_epi32(
        _mm_set1_epi32(0x5f37_59df), _mm_srli_epi32::<1>(_mm_castps_si128(x)))),
    keep: |y, v, l| _mm_and_ps(_mm_cmpge_ps(v, l), y), bits: bits_s128);

/// a·b + c and c − a·b without a fused multiply-add.
macro_rules! rounded_twice {
    ($plus:ident, $minus:ident, $register:ty, $add:ident, $sub:ident, $mul:ident) => {
        /// # Safety
        /// The processor has SSE2.
        #[inline(always)]
        unsafe fn $plus(a: $register, b: $register, c: $register) -> $register {
            unsafe { $add($mul(a, b), c) }
        }
        /// # Safety
        /// The processor has SSE2.
        #[inline(always)]
        unsafe fn $minus(a: $register, b: $register, c: $register) -> $register {
            unsafe { $sub(c, $mul(a, b)) }
        }
    };
}

rounded_twice!(rounded_twice_pd, minus_rounded_twice_pd, __m128d, _mm_add_pd, _mm_sub_pd, _mm_mul_pd);
rounded_twice!(rounded_twice_ps, minus_rounded_twice_ps, __m128, _mm_add_ps, _mm_sub_ps, _mm_mul_ps);

/// The exponents of one register: see [`Vector::split_exponent`] and [`Vector::times_power_of_two`].
macro_rules! exponents {
    ($name:ident, $register:ty, $real:ty, $whole:literal, $fraction:literal, $as_bits:ident, $as_real:ident, $set1:ident as $lane:ty,
     $set1_real:ident, $add:ident, $sub:ident, $add_real:ident, $sub_real:ident, $or:ident, $right:ident, $left:ident) => {
        mod $name {
            use std::arch::x86_64::*;

            const ONE: $lane = <$real>::to_bits(1.0) as $lane;
            const SHIFT: $lane = ONE - <$real>::to_bits(std::f64::consts::FRAC_1_SQRT_2 as $real) as $lane;
            const WHOLE: $real = $whole;

            /// # Safety
            /// The processor has the extension.
            #[inline(always)]
            pub unsafe fn split_exponent(x: $register) -> ($register, $register) {
                unsafe {
                    let bits = $as_bits(x);
                    let exponent = $right::<$fraction>($add(bits, $set1(SHIFT)));
                    let whole = $as_real($or(exponent, $set1(WHOLE.to_bits() as $lane)));
                    let e = $sub_real(whole, $set1_real(WHOLE + (ONE >> $fraction) as $real));
                    let rest = $sub($left::<$fraction>(exponent), $set1(ONE));
                    (e, $as_real($sub(bits, rest)))
                }
            }

            /// # Safety
            /// The processor has the extension.
            #[inline(always)]
            pub unsafe fn times_power_of_two(x: $register, n: $register) -> $register {
                unsafe {
                    let place = $left::<$fraction>($as_bits($add_real(n, $set1_real(1.5 * WHOLE))));
                    $as_real($add($as_bits(x), place))
                }
            }
        }
    };
}

exponents!(
    bits_d512,
    __m512d,
    f64,
    4_503_599_627_370_496.0,
    52,
    _mm512_castpd_si512,
    _mm512_castsi512_pd,
    _mm512_set1_epi64 as i64,
    _mm512_set1_pd,
    _mm512_add_epi64,
    _mm512_sub_epi64,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_or_si512,
    _mm512_srli_epi64,
    _mm512_slli_epi64
);
exponents!(
    bits_s512,
    __m512,
    f32,
    8_388_608.0,
    23,
    _mm512_castps_si512,
    _mm512_castsi512_ps,
    _mm512_set1_epi32 as i32,
    _mm512_set1_ps,
    _mm512_add_epi32,
    _mm512_sub_epi32,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_or_si512,
    _mm512_srli_epi32,
    _mm512_slli_epi32
);
exponents!(
    bits_d256,
    __m256d,
    f64,
    4_503_599_627_370_496.0,
    52,
    _mm256_castpd_si256,
    _mm256_castsi256_pd,
    _mm256_set1_epi64x as i64,
    _mm256_set1_pd,
    _mm256_add_epi64,
    _mm256_sub_epi64,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_or_si256,
    _mm256_srli_epi64,
    _mm256_slli_epi64
);
exponents!(
    bits_s256,
    __m256,
    f32,
    8_388_608.0,
    23,
    _mm256_castps_si256,
    _mm256_castsi256_ps,
    _mm256_set1_epi32 as i32,
    _mm256_set1_ps,
    _mm256_add_epi32,
    _mm256_sub_epi32,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_or_si256,
    _mm256_srli_epi32,
    _mm256_slli_epi32
);
exponents!(
    bits_d128,
    __m128d,
    f64,
    4_503_599_627_370_496.0,
    52,
    _mm_castpd_si128,
    _mm_castsi128_pd,
    _mm_set1_epi64x as i64,
    _mm_set1_pd,
    _mm_add_epi64,
    _mm_sub_epi64,
    _mm_add_pd,
    _mm_sub_pd,
    _mm_or_si128,
    _mm_srli_epi64,
    _mm_slli_epi64
);
exponents!(
    bits_s128,
    __m128,
    f32,
    8_388_608.0,
    23,
    _mm_castps_si128,
    _mm_castsi128_ps,
    _mm_set1_epi32 as i32,
    _mm_set1_ps,
    _mm_add_epi32,
    _mm_sub_epi32,
    _mm_add_ps,
    _mm_sub_ps,
    _mm_or_si128,
    _mm_srli_epi32,
    _mm_slli_epi32
);

macro_rules! dispatch_to {
    ($real:ty, $avx512:ty, $avx2:ty, $sse2:ty) => {
        impl Real for $real {
            #[inline(always)]
            fn dispatch<K: Task<$real>>(level: Level, task: K) -> K::Out {
                #[target_feature(enable = "avx512f,avx2,fma")]
                fn avx512<K: Task<$real>>(task: K) -> K::Out {
                    task.run::<$avx512>()
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2<K: Task<$real>>(task: K) -> K::Out {
                    task.run::<$avx2>()
                }
                match level {
                    // SAFETY: the level was detected on this processor.
                    Level::Avx512 => unsafe { avx512(task) },
                    Level::Avx2 => unsafe { avx2(task) },
                    Level::Baseline => task.run::<$sse2>(),
                }
            }
        }
    };
}

dispatch_to!(f64, D512, D256, D128);
dispatch_to!(f32, S512, S256, S128);

#[cfg(test)]
mod tests {
    use super::super::Array;
    use super::*;

    /// Every operation on the same numbers, as bits.
    fn all<T: Real, V: Vector<Scalar = T>>() -> Vec<u64> {
        let number =
            |i: usize, k: usize| T::from_f64(((i * 7 + k) as f64 * 0.754_877_666_246_692_8).fract() * 3.0 + 0.01);
        let row = |k: usize| (0..T::WIDTH).map(|i| number(i, k)).collect::<Vec<T>>();
        let [a, b, c] = [1, 2, 3].map(|k| V::load(&row(k)));
        let (exponent, rest) = a.split_exponent();
        let mut values = vec![a.add(b), a.sub(b), a.mul(b), a.div(b), a.sqrt(), a.max(b), a.min(b), a.mul_add(b, c)];
        values.extend([a.neg_mul_add(b, c), a.rsqrt_seed(), a.rsqrt(), a.keep_where_at_least(b, c), exponent, rest]);
        values.extend([a.times_power_of_two(exponent), V::splat(number(1, 1))]);
        let mut lanes = [T::ZERO; 16];
        let bits = |v: V| {
            v.store(&mut lanes);
            lanes.map(|x| x.to_f64().to_bits())
        };
        values.into_iter().flat_map(bits).collect()
    }

    /// Rows and columns exchanged, as all machines do it, and as this one does.
    fn transposed<T: Real, V: Vector<Scalar = T>>() -> [Vec<T>; 2] {
        let w = T::WIDTH;
        let numbers: Vec<T> = (0..w * w).map(|k| T::from_f64(k as f64)).collect();
        let mut rows: Vec<V> = numbers.chunks(w).map(V::load).collect();
        V::transpose(&mut rows);
        let mut found = vec![T::ZERO; w * w];
        rows.iter().zip(found.chunks_mut(w)).for_each(|(row, to)| row.store(to));
        [(0..w * w).map(|k| numbers[k % w * w + k / w]).collect(), found]
    }

    #[test]
    fn rows_and_columns_are_exchanged() {
        struct Transposed;
        impl<T: Real> Task<T> for Transposed {
            type Out = [Vec<T>; 2];
            #[inline(always)]
            fn run<V: Vector<Scalar = T>>(self) -> Self::Out {
                transposed::<T, V>()
            }
        }
        for level in [Level::Baseline, Level::Avx2, Level::Avx512].into_iter().filter(|l| *l <= Level::best()) {
            let [expected, found] = <f64 as Real>::dispatch(level, Transposed);
            assert_eq!(expected, found, "{level:?}");
            let [expected, found] = <f32 as Real>::dispatch(level, Transposed);
            assert_eq!(expected, found, "{level:?}");
        }
    }

    #[test]
    fn plain_arrays_have_the_bits_of_the_baseline() {
        assert_eq!(all::<f64, Array<f64, 8>>(), all::<f64, D128>());
        assert_eq!(all::<f32, Array<f32, 16>>(), all::<f32, S128>());
        assert_ne!(all::<f64, D128>()[..8], all::<f64, D128>()[16..24], "sums and differences differ");
    }
}
