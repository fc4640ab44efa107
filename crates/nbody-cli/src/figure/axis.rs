//! Ranges and ticks of axes. A logarithmic axis is a linear one of the decimal logarithms.

/// Where an axis goes and where its ticks are.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// Whether coordinates are decimal logarithms.
    pub log: bool,
    /// Coordinates of both ends.
    pub range: (f64, f64),
    /// Coordinates of ticks with a label.
    pub major: Vec<f64>,
    /// Coordinates of ticks without.
    pub minor: Vec<f64>,
}

impl Scale {
    /// The scale for values; `from_zero` puts 0 at its begin.
    pub fn of(values: impl Iterator<Item = f64>, log: bool, from_zero: bool) -> Self {
        let coordinates = values.filter_map(|v| coordinate(v, log));
        let (low, high) = coordinates.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        // Nothing to show still has axes.
        let (mut low, mut high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        if from_zero && !log {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if log { Scale::decades(low, high) } else { Scale::steps(low, high) }
    }

    fn decades(low: f64, high: f64) -> Self {
        // A little air, and at least half a decade.
        let air = (0.05 * (high - low)).max(0.02);
        let widen = (0.25 - 0.5 * (high - low)).max(air);
        let range = (low - widen, high + widen);
        let (first, last) = (range.0.floor() as i32, range.1.ceil() as i32);
        let inside = |v: &f64| (range.0..=range.1).contains(v);
        let of = |digits: &[i32]| -> Vec<f64> {
            let all = (first..=last).flat_map(|k| digits.iter().map(move |&d| f64::from(k) + f64::from(d).log10()));
            all.filter(inside).collect()
        };
        let decades = of(&[1]);
        let (major, minor) = match decades.len() {
            // Few powers of ten in sight: label more than those.
            0..=1 => (of(&[1, 2, 3, 5, 7]), of(&[4, 6, 8, 9])),
            2 => (of(&[1, 2, 5]), of(&[3, 4, 6, 7, 8, 9])),
            3..=9 => (decades, of(&[2, 3, 4, 5, 6, 7, 8, 9])),
            n => {
                let every = n.div_ceil(8) as i32;
                let kept = decades.iter().copied().filter(|v| (v.round() as i32).rem_euclid(every) == 0).collect();
                (kept, decades)
            }
        };
        Scale { log: true, range, major, minor }
    }

    fn steps(low: f64, high: f64) -> Self {
        let span = if high > low { high - low } else { low.abs().max(1.0) };
        let raw = span / 6.0;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= raw).unwrap_or(raw);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let last = last.max(first + 1);
        let major: Vec<f64> = (first..=last).map(|k| k as f64 * step).collect();
        Scale { log: false, range: (first as f64 * step, last as f64 * step), major, minor: vec![] }
    }

    /// The label of a tick.
    pub fn label(&self, at: f64) -> String {
        if !self.log {
            let step = self.major.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
            let digits = if step.is_finite() && step > 0.0 { (-step.log10()).ceil().max(0.0) as usize } else { 0 };
            // Rounding leaves -0 behind.
            let at = if at.abs() < 1e-9 * step { 0.0 } else { at };
            return if digits > 5 || at.abs() >= 1e6 { format!("{at:e}") } else { format!("{at:.digits$}") };
        }
        let power = (at + 1e-9).floor();
        let digit = 10f64.powf(at - power).round();
        let power = power as i32;
        match (digit as i32, power) {
            (d, -3..=3) if d != 1 || power.abs() <= 2 => {
                let digits = (-power).max(0) as usize;
                format!("{:.digits$}", digit * 10f64.powi(power))
            }
            (1, _) => format!("10{}", superscript(power)),
            (d, _) => format!("{d}·10{}", superscript(power)),
        }
    }
}

/// Where a value lies on an axis; nowhere if it is not finite, or not above 0 on a logarithmic one.
pub fn coordinate(value: f64, log: bool) -> Option<f64> {
    match log {
        true => (value > 0.0 && value.is_finite()).then(|| value.log10()),
        false => value.is_finite().then_some(value),
    }
}

/// A whole number in raised digits.
pub fn superscript(n: i32) -> String {
    let raise = |c: char| match c.to_digit(10) {
        Some(d) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][d as usize],
        None => '⁻',
    };
    n.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], log: bool, from_zero: bool) -> Vec<String> {
        let s = Scale::of(values.iter().copied(), log, from_zero);
        s.major.iter().map(|&m| s.label(m)).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(&[0.0, 1.0], false, true), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&[3.0, 3.0], false, false).len(), 2);
        assert_eq!(labels(&[1e-9, 1e-6], true, false), ["10⁻⁹", "10⁻⁸", "10⁻⁷", "10⁻⁶"]);
        assert_eq!(labels(&[0.2, 2.0], true, false), ["0.2", "0.3", "0.5", "0.7", "1", "2"]);
        assert_eq!(
            labels(&[1e-20, 1.0], true, false),
            ["10⁻²¹", "10⁻¹⁸", "10⁻¹⁵", "10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³", "1"]
        );
        // Nothing to show, and what has no logarithm.
        assert!(!labels(&[], true, false).is_empty() && !labels(&[0.0, -1.0, f64::NAN], true, false).is_empty());
    }

    #[test]
    fn every_value_is_inside() {
        for (values, log) in
            [(vec![-3.7, 12.2], false), (vec![1e-12, 5.0], true), (vec![7.0], true), (vec![-2.0], false)]
        {
            let s = Scale::of(values.iter().copied(), log, false);
            for v in values {
                let c = coordinate(v, log).unwrap();
                assert!(s.range.0 <= c && c <= s.range.1, "{v} not in {:?}", s.range);
            }
        }
    }
}
