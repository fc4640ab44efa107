//! Vectors that count: how many floating-point operations a kernel asks for, found by running its own text.

use std::cell::Cell;
use std::marker::PhantomData;

use super::Real;
use super::simd::{Task, Vector};

thread_local! {
    /// Operations of this thread since [`count`] began, in lanes.
    static OPERATIONS: Cell<u64> = const { Cell::new(0) };
    /// Vector instructions of this thread since [`instructions`] began.
    static INSTRUCTIONS: Cell<u64> = const { Cell::new(0) };
}

/// The floating-point operations that `task` asks for: two for a multiply-add, one for each lane of +, −, ×, ÷, √, minimum, maximum
/// and comparison; none for loads, constants, the integer seed of a root, and what is done in scalars. The task writes zeros.
pub fn count<T: Real, K: Task<T>>(task: K) -> u64 {
    OPERATIONS.set(0);
    task.run::<Counted<T>>();
    OPERATIONS.get()
}

/// The vector instructions that `task` asks for, where a vector is a register and memory is read on the way: one for each operation,
/// two for the integer seed of a root and for a comparison with its selection; none for loads, stores and constants. The task
/// writes zeros.
pub fn instructions<T: Real, K: Task<T>>(task: K) -> u64 {
    INSTRUCTIONS.set(0);
    task.run::<Counted<T>>();
    INSTRUCTIONS.get()
}

/// A vector that counts its operations, and holds no numbers: what a kernel asks for does not depend on them, and the compiler
/// has a tenth of the work.
#[derive(Clone, Copy)]
struct Counted<T>(PhantomData<T>);

impl<T: Real> Counted<T> {
    /// After `instructions` with `each` operations a lane.
    fn after(each: u64, instructions: u64) -> Self {
        OPERATIONS.set(OPERATIONS.get() + each * T::WIDTH as u64);
        INSTRUCTIONS.set(INSTRUCTIONS.get() + instructions);
        Counted(PhantomData)
    }
}

impl<T: Real> Vector for Counted<T> {
    type Scalar = T;

    fn splat(_: T) -> Self {
        Counted(PhantomData)
    }
    fn load(from: &[T]) -> Self {
        assert!(from.len() >= T::WIDTH, "a whole vector");
        Counted(PhantomData)
    }
    fn store(self, to: &mut [T]) {
        to[..T::WIDTH].fill(T::ZERO);
    }
    fn add(self, _: Self) -> Self {
        Self::after(1, 1)
    }
    fn sub(self, _: Self) -> Self {
        Self::after(1, 1)
    }
    fn mul(self, _: Self) -> Self {
        Self::after(1, 1)
    }
    fn div(self, _: Self) -> Self {
        Self::after(1, 1)
    }
    fn sqrt(self) -> Self {
        Self::after(1, 1)
    }
    fn max(self, _: Self) -> Self {
        Self::after(1, 1)
    }
    fn min(self, _: Self) -> Self {
        Self::after(1, 1)
    }
    fn mul_add(self, _: Self, _: Self) -> Self {
        Self::after(2, 1)
    }
    fn neg_mul_add(self, _: Self, _: Self) -> Self {
        Self::after(2, 1)
    }
    fn rsqrt_seed(self) -> Self {
        Self::after(0, 2)
    }
    fn keep_where_at_least(self, _: Self, _: Self) -> Self {
        Self::after(1, 2)
    }
    fn split_exponent(self) -> (Self, Self) {
        (self, self)
    }
    fn times_power_of_two(self, _: Self) -> Self {
        self
    }
    fn transpose(_: &mut [Self]) {}
}
