//! Vectors that count: how many floating-point operations a kernel asks for, found by running its own text.

use std::cell::Cell;

use super::simd::{Array, Task, Vector};
use crate::real::Real;

thread_local! {
    /// Operations of this thread since [`count`] began, in lanes.
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    /// Vector instructions of this thread since [`instructions`] began.
    static INSTRUCTIONS: Cell<u64> = const { Cell::new(0) };
}

/// The floating-point operations that `task` asks for: two for a multiply-add, one for each lane of +, −, ×, ÷, √, minimum, maximum
/// and comparison; none for loads, constants, the integer seed of a root, and what is done in scalars.
pub fn count<T: Counting, K: Task<T>>(task: K) -> u64 {
    OPERATIONS.set(0);
    task.run::<Counted<T::Plain>>();
    OPERATIONS.get()
}

/// The vector instructions that `task` asks for, where a vector is a register and memory is read on the way: one for each operation,
/// two for the integer seed of a root and for a comparison with its selection; none for loads, stores and constants.
pub fn instructions<T: Counting, K: Task<T>>(task: K) -> u64 {
    INSTRUCTIONS.set(0);
    task.run::<Counted<T::Plain>>();
    INSTRUCTIONS.get()
}

fn issue(count: u64) {
    INSTRUCTIONS.set(INSTRUCTIONS.get() + count);
}

/// Numbers that have plain vectors to count with.
pub trait Counting: Real {
    /// The vector that does the work.
    type Plain: Vector<Scalar = Self>;
}

impl Counting for f32 {
    type Plain = Array<f32, 16>;
}

impl Counting for f64 {
    type Plain = Array<f64, 8>;
}

/// A vector that counts its operations.
#[derive(Clone, Copy)]
pub struct Counted<V>(V);

impl<V: Vector> Counted<V> {
    fn after(each: u64, value: V) -> Self {
        OPERATIONS.set(OPERATIONS.get() + each * V::Scalar::WIDTH as u64);
        issue(1);
        Counted(value)
    }
}

impl<V: Vector> Vector for Counted<V> {
    type Scalar = V::Scalar;

    fn splat(x: V::Scalar) -> Self {
        Counted(V::splat(x))
    }
    fn load(from: &[V::Scalar]) -> Self {
        Counted(V::load(from))
    }
    fn store(self, to: &mut [V::Scalar]) {
        self.0.store(to);
    }
    fn add(self, b: Self) -> Self {
        Self::after(1, self.0.add(b.0))
    }
    fn sub(self, b: Self) -> Self {
        Self::after(1, self.0.sub(b.0))
    }
    fn mul(self, b: Self) -> Self {
        Self::after(1, self.0.mul(b.0))
    }
    fn div(self, b: Self) -> Self {
        Self::after(1, self.0.div(b.0))
    }
    fn sqrt(self) -> Self {
        Self::after(1, self.0.sqrt())
    }
    fn max(self, b: Self) -> Self {
        Self::after(1, self.0.max(b.0))
    }
    fn min(self, b: Self) -> Self {
        Self::after(1, self.0.min(b.0))
    }
    fn mul_add(self, b: Self, c: Self) -> Self {
        Self::after(2, self.0.mul_add(b.0, c.0))
    }
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        Self::after(2, self.0.neg_mul_add(b.0, c.0))
    }
    fn rsqrt_seed(self) -> Self {
        issue(2);
        Counted(self.0.rsqrt_seed())
    }
    fn keep_where_at_least(self, x: Self, limit: Self) -> Self {
        issue(1);
        Self::after(1, self.0.keep_where_at_least(x.0, limit.0))
    }
    fn split_exponent(self) -> (Self, Self) {
        let (e, m) = self.0.split_exponent();
        (Counted(e), Counted(m))
    }
    fn times_power_of_two(self, n: Self) -> Self {
        Counted(self.0.times_power_of_two(n.0))
    }
}
