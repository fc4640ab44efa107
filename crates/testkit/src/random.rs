//! Numbers that look random, and points and strengths made of them, in any dimension.

/// A linear congruence modulo 2⁶⁴; the number is its seed.
pub struct Random(pub u64);

impl Random {
    /// From 0 to 1.
    pub fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// In the unit cube of D dimensions.
    pub fn points<const D: usize>(&mut self, n: usize) -> Vec<[f64; D]> {
        (0..n).map(|_| std::array::from_fn(|_| self.number())).collect()
    }

    /// From −1 to 1.
    pub fn signed(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| 2.0 * self.number() - 1.0).collect()
    }
}
