//! Hermite polynomials, which far series are evaluated as.

/// He_n/√n! in powers: row n has the coefficients of z^m.
pub fn polynomials(order: usize) -> Vec<f64> {
    let mut all = vec![0.0; order * order];
    all[0] = 1.0;
    for n in 0..order - 1 {
        let root = (n as f64 + 1.0).sqrt();
        for m in 0..order {
            let below = if n > 0 { (n as f64).sqrt() * all[(n - 1) * order + m] } else { 0.0 };
            let shifted = if m > 0 { all[n * order + m - 1] } else { 0.0 };
            all[(n + 1) * order + m] = (shifted - below) / root;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_hermites() {
        let all = polynomials(5);
        let root = |n: f64| n.sqrt();
        // He_3 = z³ − 3z, He_4 = z⁴ − 6z² + 3.
        let expected = [0.0, -3.0 / root(6.0), 0.0, 1.0 / root(6.0), 0.0];
        assert!(all[15..20].iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-15), "{all:?}");
        let expected = [3.0, 0.0, -6.0, 0.0, 1.0].map(|c| c / root(24.0));
        assert!(all[20..].iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-15), "{all:?}");
    }
}
