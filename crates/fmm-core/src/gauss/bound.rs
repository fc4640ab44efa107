//! Truncation errors that hold, and what follows from them: order of the series and cut-off.
//!
//! The kernel is a product over the axes, and so are both truncated series. With an error of at most ε in each axis the product is wrong
//! by at most (1 + ε)^D − 1, since no factor of the kernel exceeds 1. In one axis the remainders of Taylor's theorem are, with
//! M_n(g) = sup |ψ_n| beyond the gap g between the boxes:
//!
//! - one truncated series (Hermite or Taylor): r^p/√p! · M_p(g);
//! - both, of M2L: twice that, and r^(2p) √(2p)!/p!² · M_2p(g).
//!
//! The bound of Greengard & Strain (1991) does not hold for D ≥ 2, and that of Lee, Gray & Moore (2006) is a hundred times too
//! large; these are within a factor of two of what the worst pair of points shows.

use std::sync::OnceLock;

/// The highest order: more terms than this an axis are never needed by boxes that pay.
pub const MAX_ORDER: usize = 48;

/// Cramér's constant: |ψ_n(z)| ≤ this · e^(−z²/4).
const CRAMER: f64 = 1.086_435;

/// Width of a bin of [`supremum`].
const BIN: f64 = 0.05;
const BINS: usize = 500;

/// sup |ψ_n(z)| over |z| ≥ `gap`, or a little more than it.
pub fn supremum(n: usize, gap: f64) -> f64 {
    static TABLE: OnceLock<Vec<[f64; BINS]>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        /// Places in a bin.
        const INSIDE: usize = 4;
        let (most, step) = (2 * MAX_ORDER + 2, BIN / INSIDE as f64);
        let mut table = vec![[0.0f64; BINS]; most + 1];
        for bin in 0..BINS {
            let start = bin as f64 * BIN;
            for inside in 0..INSIDE {
                let z = start + (inside as f64 + 0.5) * step;
                let (mut last, mut here) = (0.0f64, (-0.5 * z * z).exp());
                for (n, row) in table.iter_mut().enumerate() {
                    row[bin] = row[bin].max(here.abs());
                    (last, here) = (here, (z * here - (n as f64).sqrt() * last) / (n as f64 + 1.0).sqrt());
                }
            }
            // ψ_n' = −√(n + 1) ψ_(n + 1), and no place of the bin is farther than half a step from one that was tried.
            for (n, row) in table.iter_mut().enumerate() {
                row[bin] += 0.5 * step * (n as f64 + 1.0).sqrt() * CRAMER * (-0.25 * start * start).exp();
            }
        }
        for row in &mut table {
            for bin in (0..BINS - 1).rev() {
                row[bin] = row[bin].max(row[bin + 1]);
            }
        }
        table
    });
    match (gap.max(0.0) / BIN) as usize {
        bin if bin < BINS => table[n][bin],
        _ => CRAMER * (-0.25 * gap * gap).exp(),
    }
}

/// log n!
fn log_factorial(n: usize) -> f64 {
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let step = |sum: &mut f64, n: usize| {
            *sum += (n.max(1) as f64).ln();
            Some(*sum)
        };
        (0..=2 * MAX_ORDER + 2).scan(0.0, step).collect()
    })[n]
}

/// What is asked of every pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Axes.
    pub dimension: usize,
    /// The largest error of a unit strength.
    pub tolerance: f64,
    /// Whether it holds for σ times the gradient too.
    pub gradient: bool,
}

/// sup |z e^(−z²/2)|.
const STEEPEST: f64 = 0.606_530_659_712_633_5;

impl Demand {
    /// The largest error of a pair whose series have p terms an axis, for half sides `r` and a `gap`, both in units of σ.
    pub fn error(&self, r: f64, gap: f64, p: usize) -> f64 {
        let f = log_factorial;
        let (d, order, log) = (self.dimension as i32, p as f64, r.max(1e-300).ln());
        let one = (order * log - 0.5 * f(p)).exp() * supremum(p, gap);
        let both = (2.0 * order * log + 0.5 * f(2 * p) - 2.0 * f(p)).exp() * supremum(2 * p, gap);
        let value = 2.0 * one + both;
        let rest = (f64::from(d - 1) * value.ln_1p()).exp_m1();
        let error = (f64::from(d) * value.ln_1p()).exp_m1();
        if !self.gradient {
            return error;
        }
        // The derivative of a series has one term less.
        let hermite = (order * log + 0.5 * f(p + 1) - f(p)).exp() * supremum(p + 1, gap);
        let taylor = ((order - 1.0) * log + 0.5 * f(p) - f(p - 1)).exp() * supremum(p, gap);
        let cross = ((2.0 * order - 1.0) * log + 0.5 * f(2 * p) - f(p) - f(p - 1)).exp() * supremum(2 * p, gap);
        let slope = hermite + taylor + cross;
        error.max(f64::from(d).sqrt() * (slope * (1.0 + rest) + STEEPEST * rest))
    }

    /// The fewest terms an axis that keep the tolerance, if so few do.
    pub fn order(&self, r: f64, gap: f64) -> Option<usize> {
        (1..=MAX_ORDER).find(|&p| self.error(r, gap, p) <= self.tolerance)
    }

    /// The distance in units of σ beyond which a unit strength contributes at most the tolerance.
    pub fn cutoff(&self) -> f64 {
        let log = (1.0 / self.tolerance).ln();
        let plain = (2.0 * log).sqrt().max(1.0);
        if !self.gradient {
            return plain;
        }
        // r e^(−r²/2) = tolerance: the iteration approaches from below, and ends a little above.
        let last = (0..40).fold(plain, |r, _| (2.0 * (log + r.ln())).sqrt().max(1.0));
        last * (1.0 + 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn psi(n: usize, z: f64) -> f64 {
        let (mut last, mut here) = (0.0f64, (-0.5 * z * z).exp());
        for n in 0..n {
            (last, here) = (here, (z * here - (n as f64).sqrt() * last) / (n as f64 + 1.0).sqrt());
        }
        here
    }

    #[test]
    fn suprema_are_upper_bounds_and_near() {
        for n in [0, 1, 2, 3, 7, 10, 20, 41, 2 * MAX_ORDER] {
            for gap in [0.0, 0.3, 1.0, 2.5, 5.0, 9.0] {
                let most = (0..200_000).map(|i| psi(n, gap + 1e-4 * i as f64).abs()).fold(0.0, f64::max);
                let bound = supremum(n, gap);
                assert!(bound >= most, "{n} {gap}: {bound} < {most}");
                assert!(bound <= 1.5 * most + 1e-4, "{n} {gap}: {bound} >> {most}");
            }
        }
    }

    #[test]
    fn the_bound_holds_for_single_pairs_and_is_near() {
        for (r, p) in [(0.5f64, 6), (0.5, 10), (1.0, 12), (0.25, 5)] {
            let (mut worst, mut worst_slope) = (0.0f64, 0.0f64);
            for i in 0..4000 {
                let (a, b) = (r * (1 - 2 * (i % 2)) as f64, r * (1 - 2 * (i / 2 % 2)) as f64);
                let z = 1e-3 * i as f64;
                let (mut sum, mut slope, mut power_b) = (0.0, 0.0, 1.0);
                for m in 0..p {
                    let mut power_a = 1.0;
                    for n in 0..p {
                        let both = (0.5 * (log_factorial(n + m) - log_factorial(n) - log_factorial(m))).exp();
                        let term = (1 - 2 * (m as i32 % 2)) as f64 * both * psi(n + m, z) * power_a;
                        sum += term * power_b;
                        if m > 0 {
                            slope += term * (m as f64 / b) * power_b;
                        }
                        power_a *= a / (n as f64 + 1.0).sqrt();
                    }
                    power_b *= b / (m as f64 + 1.0).sqrt();
                }
                let d = z + b - a;
                worst = worst.max((sum - (-0.5 * d * d).exp()).abs());
                worst_slope = worst_slope.max((slope + d * (-0.5 * d * d).exp()).abs());
            }
            let bound = |gradient| Demand { dimension: 1, tolerance: 1e-6, gradient }.error(r, 0.0, p);
            assert!(worst <= bound(false) && bound(false) <= 3.0 * worst, "{r} {p}: {worst} {}", bound(false));
            assert!(worst_slope <= bound(true) && bound(true) <= 4.0 * worst_slope, "{r} {p}: {worst_slope}");
        }
    }

    #[test]
    fn cutoffs() {
        for tolerance in [1e-1, 1e-3, 1e-6, 1e-12] {
            let demand = |gradient| Demand { dimension: 3, tolerance, gradient };
            let r = demand(false).cutoff();
            assert!((-0.5 * r * r).exp() <= tolerance * 1.000_001);
            let r = demand(true).cutoff();
            assert!((-0.5 * r * r).exp() * r.max(1.0) <= tolerance * 1.000_001, "{tolerance}");
        }
    }
}
