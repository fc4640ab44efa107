//! Fewer points of a line that look the same.

/// About `most` of the points: of each of `most / 2` stretches the lowest and the highest.
pub fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most || most < 4 {
        return points.to_vec();
    }
    let mut kept = vec![];
    for stretch in points.chunks(points.len().div_ceil(most / 2)) {
        let of = |better: fn(f64, f64) -> bool| {
            (1..stretch.len()).fold(0, |best, i| if better(stretch[i].1, stretch[best].1) { i } else { best })
        };
        let (low, high) = (of(|a, b| a < b), of(|a, b| a > b));
        kept.push(stretch[low.min(high)]);
        if low != high {
            kept.push(stretch[low.max(high)]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::thin;

    #[test]
    fn thinning_keeps_the_extremes() {
        let points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), (f64::from(i) * 0.37).sin())).collect();
        let kept = thin(&points, 200);
        assert!(kept.len() <= 200 && kept.windows(2).all(|w| w[0].0 < w[1].0));
        let top = |p: &[(f64, f64)]| p.iter().fold(f64::MIN, |a, b| a.max(b.1));
        assert_eq!(top(&kept), top(&points));
        assert_eq!(thin(&points[..5], 200), points[..5]);
    }
}
