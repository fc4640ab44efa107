//! The prolate spheroidal wave function of order zero, and polynomials in its place.
//!
//! ψ_c on [−1, 1] is the even function with Fourier transform within ±c that is the most concentrated
//! there (Slepian & Pollak 1961): its transform is itself, ∫ψ_c(x) e^(iωx) dx = 2 C ψ_c(ω/c) for |ω| ≤ c, with
//! C = ∫₀¹ψ_c and ψ_c(0) = 1. It is summed over Legendre polynomials, whose coefficients are an
//! eigenvector of a tridiagonal matrix (Xiao, Rokhlin & Yarvin 2001).

/// Coefficients that are computed: more than any digit of ψ_c needs for c ≤ 60.
const TERMS: usize = 64;

/// Steps of the inverse iteration. Each gains more than a factor of three.
const STEPS: usize = 60;

/// ψ_c with ψ_c(0) = 1.
#[derive(Debug, Clone)]
pub struct Prolate {
    /// Coefficients of the Legendre polynomials of degrees 0, 2, 4, …
    even: [f64; TERMS],
}

impl Prolate {
    /// Of the bandlimit `c`.
    pub fn new(c: f64) -> Self {
        // The matrix in normalised polynomials of degree k = 2i; below the diagonal it is as above.
        let degree = |i: usize| 2.0 * i as f64;
        let diagonal: [f64; TERMS] = std::array::from_fn(|i| {
            let k = degree(i);
            k * (k + 1.0) + (2.0 * k * (k + 1.0) - 1.0) / ((2.0 * k + 3.0) * (2.0 * k - 1.0)) * c * c
        });
        let above: [f64; TERMS] = std::array::from_fn(|i| {
            let k = degree(i);
            (k + 2.0) * (k + 1.0) / ((2.0 * k + 3.0) * ((2.0 * k + 1.0) * (2.0 * k + 5.0)).sqrt()) * c * c
        });
        // Inverse iteration: ψ_c has the smallest eigenvalue.
        let mut v: [f64; TERMS] = std::array::from_fn(|i| if i < 2 { 1.0 } else { 0.0 });
        for _ in 0..STEPS {
            let (mut pivot, mut rest) = ([0.0; TERMS], v);
            pivot[0] = diagonal[0];
            for i in 1..TERMS {
                let factor = above[i - 1] / pivot[i - 1];
                pivot[i] = diagonal[i] - factor * above[i - 1];
                rest[i] -= factor * rest[i - 1];
            }
            v[TERMS - 1] = rest[TERMS - 1] / pivot[TERMS - 1];
            for i in (0..TERMS - 1).rev() {
                v[i] = (rest[i] - above[i] * v[i + 1]) / pivot[i];
            }
            let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            v = v.map(|x| x / norm);
        }
        let mut prolate = Prolate { even: std::array::from_fn(|i| v[i] * (degree(i) + 0.5).sqrt()) };
        let at_zero = prolate.at(0.0);
        prolate.even = prolate.even.map(|b| b / at_zero);
        prolate
    }

    /// ψ_c(x).
    pub fn at(&self, x: f64) -> f64 {
        self.sum(x, |b, _, here, _, _| b * here)
    }

    /// ∫₀ˣ ψ_c.
    pub fn integral(&self, x: f64) -> f64 {
        self.sum(x, |b, degree, _, before, after| b * (after - before) / (2.0 * degree + 1.0))
    }

    /// C = ∫₀¹ ψ_c.
    pub fn whole(&self) -> f64 {
        self.even[0]
    }

    /// ∫₀¹ x² ψ_c.
    pub fn second_moment(&self) -> f64 {
        self.even[0] / 3.0 + 2.0 / 15.0 * self.even[1]
    }

    /// I(u)/u of I(u) = ∫₀ᵘψ_c, which is even, as a polynomial of t = 2 u² − 1, with errors of about `accuracy` C.
    pub fn mean(&self, accuracy: f64) -> Chebyshev {
        let part = |t: f64| {
            let u = (0.5 * (t + 1.0)).sqrt();
            self.integral(u) / u
        };
        Chebyshev::fit(part, accuracy * self.whole())
    }

    /// ψ_c(u) by powers of t = 2 u² − 1, the highest first.
    pub fn by_square(&self) -> Vec<f64> {
        Chebyshev::fit(|t| self.at((0.5 * (t + 1.0)).sqrt()), 1e-16).powers(1.0)
    }

    /// Σ term(b_k, k, P_k, P_(k−1), P_(k+1)) over even k, with P_(−1) = 0.
    fn sum(&self, x: f64, term: impl Fn(f64, f64, f64, f64, f64) -> f64) -> f64 {
        let (mut before, mut here, mut sum) = (0.0, 1.0, 0.0);
        for (i, b) in self.even.iter().enumerate() {
            let k = 2.0 * i as f64;
            let after = ((2.0 * k + 1.0) * x * here - k * before) / (k + 1.0);
            sum += term(*b, k, here, before, after);
            let next = ((2.0 * k + 3.0) * x * after - (k + 1.0) * here) / (k + 2.0);
            (before, here) = (after, next);
        }
        sum
    }
}

/// The polynomial that meets a function at Chebyshev's points.
#[derive(Debug, Clone)]
pub struct Chebyshev(Vec<f64>);

/// Points at which a function is met.
const POINTS: usize = 48;

impl Chebyshev {
    /// Of `f` on [−1, 1], with the terms that are above `accuracy`.
    pub fn fit(f: impl Fn(f64) -> f64, accuracy: f64) -> Self {
        let angle = |j: usize| std::f64::consts::PI * (j as f64 + 0.5) / POINTS as f64;
        let values: Vec<f64> = (0..POINTS).map(|j| f(angle(j).cos())).collect();
        let coefficient = |k: usize| {
            let sum: f64 = values.iter().enumerate().map(|(j, v)| v * (k as f64 * angle(j)).cos()).sum();
            sum * if k == 0 { 1.0 } else { 2.0 } / POINTS as f64
        };
        let mut all: Vec<f64> = (0..POINTS).map(coefficient).collect();
        let needed = all.iter().rposition(|a| a.abs() > accuracy).map_or(1, |last| last + 1);
        all.truncate(needed);
        Chebyshev(all)
    }

    /// The derivative.
    pub fn derivative(&self) -> Self {
        let Chebyshev(a) = self;
        let mut d = vec![0.0; a.len() + 1];
        for k in (1..a.len()).rev() {
            d[k - 1] = d.get(k + 1).copied().unwrap_or(0.0) + 2.0 * k as f64 * a[k];
        }
        d[0] *= 0.5;
        d.truncate(a.len().max(2) - 1);
        Chebyshev(d)
    }

    /// Coefficients of the powers of x, times `factor`, the highest first.
    pub fn powers(&self, factor: f64) -> Vec<f64> {
        let n = self.0.len();
        let (mut before, mut here, mut out) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        // T_(−1) = T_1 = x and T_0 = 1.
        here[0] = 1.0;
        if n > 1 {
            before[1] = 1.0;
        }
        for a in &self.0 {
            out.iter_mut().zip(&here).for_each(|(o, t)| *o += factor * a * t);
            let mut next: Vec<f64> = before.iter().map(|b| -b).collect();
            (1..n).for_each(|k| next[k] += 2.0 * here[k - 1]);
            (before, here) = (here, next);
        }
        out.reverse();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the rule of midpoints, which has all digits of ends where nothing is left.
    fn integral(f: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
        let n = 20_000;
        let h = (to - from) / n as f64;
        (0..n).map(|i| f(from + (i as f64 + 0.5) * h)).sum::<f64>() * h
    }

    #[test]
    fn its_fourier_transform_is_itself() {
        for c in [1.0, 8.0, 20.0, 40.0] {
            let prolate = Prolate::new(c);
            assert!((prolate.at(0.0) - 1.0).abs() < 1e-14);
            for part in [0.0, 0.3, 0.8, 1.0] {
                let transform = integral(|x| prolate.at(x) * (part * c * x).cos(), -1.0, 1.0);
                let expected = 2.0 * prolate.whole() * prolate.at(part);
                assert!((transform - expected).abs() < 1e-8, "{c} {part}: {transform} {expected}");
            }
        }
    }

    #[test]
    fn integrals_and_moments_are_those_of_its_values() {
        let prolate = Prolate::new(14.0);
        for x in [0.1, 0.5, 1.0] {
            assert!((prolate.integral(x) - integral(|y| prolate.at(y), 0.0, x)).abs() < 1e-9);
        }
        assert!((prolate.integral(1.0) - prolate.whole()).abs() < 1e-15);
        assert!((prolate.second_moment() - integral(|y| y * y * prolate.at(y), 0.0, 1.0)).abs() < 1e-9);
    }

    #[test]
    fn polynomials_are_the_function_and_its_derivative() {
        let fit = Chebyshev::fit(|x| (2.0 * x).exp(), 1e-14);
        let value = |powers: &[f64], x: f64| powers.iter().fold(0.0, |sum, a| sum * x + a);
        let (whole, slope) = (fit.powers(3.0), fit.derivative().powers(1.0));
        assert!(whole.len() < 25, "{}", whole.len());
        for x in [-1.0, -0.3, 0.0, 0.9] {
            let exact = (2.0f64 * x).exp();
            assert!((value(&whole, x) - 3.0 * exact).abs() < 1e-12 && (value(&slope, x) - 2.0 * exact).abs() < 1e-11);
        }
    }
}
