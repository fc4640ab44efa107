//! Vectors of one fixed width, and the choice of instructions at run time.
//!
//! Every kernel is one generic text over [`Vector`]; [`dispatch`] compiles it three times (AVX-512, AVX2
//! with FMA, baseline) and picks at run time. AVX-512 and AVX2 give the same bits: the width is the same
//! and every operation rounds alike. The baseline has no fused multiply-add and differs in the last
//! digits.

use std::sync::OnceLock;

use super::Number;

/// [`Number::WIDTH`] numbers that are worked on together.
pub trait Vector: Copy {
    /// One of them.
    type Scalar: Number;

    /// All lanes `x`.
    fn splat(x: Self::Scalar) -> Self;
    /// The first [`Number::WIDTH`] numbers of `from`; panics if there are fewer.
    fn load(from: &[Self::Scalar]) -> Self;
    /// Writes the lanes to the front of `to`; panics if it is shorter.
    fn store(self, to: &mut [Self::Scalar]);
    /// self + b.
    fn add(self, b: Self) -> Self;
    /// self − b.
    fn sub(self, b: Self) -> Self;
    /// self·b.
    fn mul(self, b: Self) -> Self;
    /// self/b.
    fn div(self, b: Self) -> Self;
    /// √self.
    fn sqrt(self) -> Self;
    /// The larger of each lane.
    fn max(self, b: Self) -> Self;
    /// The smaller of each lane.
    fn min(self, b: Self) -> Self;
    /// self·b + c, rounded once where the machine can.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// c − self·b, rounded once where the machine can.
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    /// A reciprocal square root with an error below 3.5 %, by halving the exponent in the bits: the same
    /// on every machine, unlike the hardware's estimates.
    fn rsqrt_seed(self) -> Self;
    /// `self` where `x ≥ limit`, else zero.
    fn keep_where_at_least(self, x: Self, limit: Self) -> Self;
    /// Whole numbers e and m in [√½, √2) with self = 2^e·m, for positive normal numbers; numbers without meaning for others.
    fn split_exponent(self) -> (Self, Self);
    /// self·2^n for whole numbers n, where self and the result are normal.
    fn times_power_of_two(self, n: Self) -> Self;

    /// Exchanges rows and columns of [`Number::WIDTH`] vectors.
    #[inline(always)]
    fn transpose(rows: &mut [Self]) {
        let w = Self::Scalar::WIDTH;
        let mut flat = [Self::Scalar::ZERO; 256];
        for (i, row) in rows.iter().enumerate() {
            row.store(&mut flat[i * w..]);
        }
        for i in 0..w {
            for j in 0..i {
                flat.swap(i * w + j, j * w + i);
            }
        }
        for (i, row) in rows.iter_mut().enumerate() {
            *row = Self::load(&flat[i * w..]);
        }
    }

    /// All lanes zero.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(Self::Scalar::ZERO)
    }

    /// All lanes the constant `x`.
    #[inline(always)]
    fn constant(x: f64) -> Self {
        Self::splat(Self::Scalar::from_f64(x))
    }

    /// 1/√self to the last digits, and zero where self < [`Number::TINY`].
    #[inline(always)]
    fn rsqrt(self) -> Self {
        self.rsqrt_positive().keep_where_at_least(self, Self::splat(Self::Scalar::TINY))
    }

    /// 1/√self to the last digits for self > 0.
    ///
    /// The seed y has h = 1 − self·y² in ±0.0691; (1 − h)^(−1/2) is a polynomial there whose largest relative error is the smallest
    /// of its degree: 2.3e-8 in degree 4 for `f32`, 7.5e-7 in degree 3 and one cubic step (1e-19) for `f64`.
    #[inline(always)]
    fn rsqrt_positive(self) -> Self {
        let y = self.rsqrt_seed();
        let h = self.mul(y).neg_mul_add(y, Self::constant(1.0));
        if size_of::<Self::Scalar>() == 4 {
            let series = Self::constant(0.274_069_39).mul_add(h, Self::constant(0.313_939_24));
            let series = series.mul_add(h, Self::constant(0.375_000_587));
            let series = series.mul_add(h, Self::constant(0.499_998_320_5));
            return y.mul(series.mul_add(h, Self::constant(0.999_999_999_4)));
        }
        let series = Self::constant(0.313_054_096_968_445_1).mul_add(h, Self::constant(0.376_279_011_635_032_3));
        let series = series.mul_add(h, Self::constant(0.500_000_423_357_339_3));
        let y = y.mul(series.mul_add(h, Self::constant(0.999_999_253_622_593_8)));
        let h = self.mul(y).neg_mul_add(y, Self::constant(1.0));
        y.mul(h).mul_add(h.mul_add(Self::constant(0.375), Self::constant(0.5)), y)
    }

    /// The first lane.
    #[inline(always)]
    fn first(self) -> Self::Scalar {
        let mut lanes = [Self::Scalar::ZERO; 16];
        self.store(&mut lanes);
        lanes[0]
    }

    /// The lanes added in a fixed order.
    #[inline(always)]
    fn sum(self) -> Self::Scalar {
        let mut lanes = [Self::Scalar::ZERO; 16];
        self.store(&mut lanes);
        let mut half = Self::Scalar::WIDTH / 2;
        while half > 0 {
            for i in 0..half {
                let x = lanes[i + half];
                lanes[i] += x;
            }
            half /= 2;
        }
        lanes[0]
    }
}

/// Work that is compiled once per set of instructions. Mark `run` `#[inline(always)]`.
pub trait Task<T: Number> {
    /// What it returns.
    type Out;
    /// Does the work with vectors of type `V`.
    fn run<V: Vector<Scalar = T>>(self) -> Self::Out;
}

/// The sets of instructions that [`dispatch`] chooses from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The compiler's target, without fused multiply-add.
    Baseline,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F.
    Avx512,
}

impl Level {
    /// The best level of this machine, or the lower one named by `NBODY_SIMD` (baseline, avx2, avx512).
    pub fn detect() -> Level {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| match std::env::var("NBODY_SIMD").as_deref() {
            Ok("baseline") => Level::Baseline,
            Ok("avx2") => Level::best().min(Level::Avx2),
            _ => Level::best(),
        })
    }

    #[cfg(target_arch = "x86_64")]
    fn best() -> Level {
        match is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            true if is_x86_feature_detected!("avx512f") => Level::Avx512,
            true => Level::Avx2,
            false => Level::Baseline,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn best() -> Level {
        Level::Baseline
    }

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Baseline => "baseline",
            Level::Avx2 => "AVX2+FMA",
            Level::Avx512 => "AVX-512",
        }
    }
}

/// Runs `task` with the best instructions of this machine.
#[inline]
pub fn dispatch<T: Real, K: Task<T>>(task: K) -> K::Out {
    T::dispatch(Level::detect(), task)
}

/// A number with vectors: which types of them serve it at each level.
pub trait Real: Number {
    /// Runs `task` with the vectors of `level`, which the machine must have.
    fn dispatch<K: Task<Self>>(level: Level, task: K) -> K::Out;
}

/// Plain arrays, for machines without the extensions.
#[derive(Clone, Copy)]
pub struct Array<T, const W: usize>([T; W]);

/// One lane after another. A loop, since `array::from_fn` makes six functions of every closure, which the compiler has to inline again.
macro_rules! lanes {
    ($width:literal, |$i:ident| $value:expr) => {{
        let mut lanes = [Default::default(); $width];
        for $i in 0..$width {
            lanes[$i] = $value;
        }
        Array(lanes)
    }};
}

macro_rules! array_vector {
    ($real:ty, $bits:ty, $width:literal, $magic:literal, fraction: $fraction:literal, whole: $whole:literal) => {
        impl Vector for Array<$real, $width> {
            type Scalar = $real;
            #[inline(always)]
            fn splat(x: $real) -> Self {
                Array([x; $width])
            }
            #[inline(always)]
            fn load(from: &[$real]) -> Self {
                Array(*from.first_chunk().expect("a whole vector"))
            }
            #[inline(always)]
            fn store(self, to: &mut [$real]) {
                *to.first_chunk_mut().expect("a whole vector") = self.0;
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                lanes!($width, |i| self.0[i] + b.0[i])
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                lanes!($width, |i| self.0[i] - b.0[i])
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                lanes!($width, |i| self.0[i] * b.0[i])
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                lanes!($width, |i| self.0[i] / b.0[i])
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                lanes!($width, |i| self.0[i].sqrt())
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                lanes!($width, |i| if self.0[i] > b.0[i] { self.0[i] } else { b.0[i] })
            }
            #[inline(always)]
            fn min(self, b: Self) -> Self {
                lanes!($width, |i| if self.0[i] < b.0[i] { self.0[i] } else { b.0[i] })
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                lanes!($width, |i| self.0[i] * b.0[i] + c.0[i])
            }
            #[inline(always)]
            fn neg_mul_add(self, b: Self, c: Self) -> Self {
                lanes!($width, |i| c.0[i] - self.0[i] * b.0[i])
            }
            #[inline(always)]
            fn rsqrt_seed(self) -> Self {
                const MAGIC: $bits = $magic;
                lanes!($width, |i| <$real>::from_bits(MAGIC.wrapping_sub(self.0[i].to_bits() >> 1)))
            }
            #[inline(always)]
            fn keep_where_at_least(self, x: Self, limit: Self) -> Self {
                lanes!($width, |i| if x.0[i] >= limit.0[i] { self.0[i] } else { 0.0 })
            }
            #[inline(always)]
            fn split_exponent(self) -> (Self, Self) {
                const ONE: $bits = <$real>::to_bits(1.0);
                const SHIFT: $bits = ONE - <$real>::to_bits(std::f64::consts::FRAC_1_SQRT_2 as $real);
                const WHOLE: $real = $whole;
                let raised = |i: usize| self.0[i].to_bits().wrapping_add(SHIFT);
                let exponent = |i| <$real>::from_bits(WHOLE.to_bits() | (raised(i) >> $fraction));
                let e = |i| exponent(i) - (WHOLE + (ONE >> $fraction) as $real);
                let rest = |i: usize| (raised(i) >> $fraction << $fraction).wrapping_sub(ONE);
                let m = |i: usize| <$real>::from_bits(self.0[i].to_bits().wrapping_sub(rest(i)));
                (lanes!($width, |i| e(i)), lanes!($width, |i| m(i)))
            }
            #[inline(always)]
            fn times_power_of_two(self, n: Self) -> Self {
                const ROUND: $real = 1.5 * $whole;
                let place = |i: usize| (n.0[i] + ROUND).to_bits() << $fraction;
                lanes!($width, |i| <$real>::from_bits(self.0[i].to_bits().wrapping_add(place(i))))
            }
        }
    };
}

array_vector!(f64, u64, 8, 0x5fe6_eb50_c7b5_37a9, fraction: 52, whole: 4_503_599_627_370_496.0);
array_vector!(f32, u32, 16, 0x5f37_59df, fraction: 23, whole: 8_388_608.0);

#[cfg(not(target_arch = "x86_64"))]
mod native {
    use super::*;

    macro_rules! only_baseline {
        ($real:ty, $width:literal) => {
            impl Real for $real {
                #[inline(always)]
                fn dispatch<K: Task<$real>>(_: Level, task: K) -> K::Out {
                    task.run::<Array<$real, $width>>()
                }
            }
        };
    }
    only_baseline!(f64, 8);
    only_baseline!(f32, 16);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "intrinsics run only where the processor has them")]
#[path = "simd_x86.rs"]
mod native;
