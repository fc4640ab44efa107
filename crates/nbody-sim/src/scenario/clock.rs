//! Steps and times: the step is the integer that counts; times follow from it without accumulated rounding.

/// A fixed step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// Length of a step.
    pub dt: f64,
    /// t = step · numerator / denominator, both exact.
    numerator: f64,
    denominator: f64,
}

impl Clock {
    /// For steps of length `dt` > 0.
    ///
    /// A step that is a short decimal or one over a whole number is kept as that fraction, so that step 300 of
    /// dt = 1e-3 is the time 0.3 and not 0.30000000000000004.
    pub fn new(dt: f64) -> Self {
        let inverse = (1.0 / dt).round();
        let decimal = (0..=15).map(|k| 10f64.powi(k)).find_map(|den| {
            let num = (dt * den).round();
            (num / den == dt && (1.0..1e9).contains(&num)).then_some((num, den))
        });
        let (numerator, denominator) = match decimal {
            Some(fraction) => fraction,
            None if inverse >= 1.0 && 1.0 / inverse == dt => (1.0, inverse),
            None => (dt, 1.0),
        };
        Clock { dt, numerator, denominator }
    }

    /// The time after `step` steps.
    pub fn time(&self, step: u64) -> f64 {
        step as f64 * self.numerator / self.denominator
    }

    /// The number of steps in `interval`.
    ///
    /// # Errors
    /// interval/dt, where that is not a whole number up to rounding (1e-9 relative) or exceeds 2^53.
    pub fn steps(&self, interval: f64) -> Result<u64, f64> {
        let ratio = interval / self.dt;
        let steps = ratio.round();
        if (ratio - steps).abs() <= 1e-9 * ratio && steps <= 9_007_199_254_740_992.0 {
            Ok(steps as u64)
        } else {
            Err(ratio)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(Clock::new(1e-3).time(300), 0.3);
        assert_eq!(Clock::new(0.015).time(20), 0.3);
        assert_eq!(Clock::new(1.0 / 128.0).time(64), 0.5);
        assert_eq!(Clock::new(0.25 * 86400.0 / 31_557_600.0).time(14_610), 10.0);
        assert_eq!(Clock::new(86400.0).time(3), 259_200.0);
        assert_eq!(Clock::new(std::f64::consts::PI).time(2), 2.0 * std::f64::consts::PI);
    }

    #[test]
    fn steps_divide_or_tell_the_ratio() {
        assert_eq!(Clock::new(1e-3).steps(10.0), Ok(10_000));
        assert_eq!(Clock::new(0.1).steps(0.3), Ok(3));
        assert!((Clock::new(0.003).steps(1.0).unwrap_err() - 333.333).abs() < 1e-3);
        assert_eq!(Clock::new(0.1).steps(0.0), Ok(0));
        assert!(Clock::new(0.3).steps(0.1).is_err() && Clock::new(1e-300).steps(1.0).is_err());
    }
}
