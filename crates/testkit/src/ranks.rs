//! How alike two columns of numbers are ordered.

/// Spearman's rank correlation.
pub fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let middle = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - middle) * (y - middle)).sum::<f64>();
    let (a, b) = (ranks(a), ranks(b));
    product(&a, &b) / product(&a, &a)
}

/// The place of each value among all, from 0.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    order.iter().enumerate().for_each(|(rank, &i)| ranks[i] = rank as f64);
    ranks
}
