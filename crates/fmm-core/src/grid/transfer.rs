//! Between cells and those of half the side: prediction of the finer ones, and what the coarser ones hold of them.
//!
//! Vorticity is a mean over a cell, for its sum is conserved: prediction is by the polynomial of degree 4 whose means five cells
//! are, ū_0 ± [22 (ū_1 − ū_−1) − 3 (ū_2 − ū_−2)]/128 (Donoho 1993), and the coarser cell holds the mean of its eight parts. Ψ, u and
//! its gradients are values at centers: prediction is the polynomial of degree 4 through five of them, and the center between two
//! finer cells gets the polynomial of degree 5 through the six around, of the same block. Both take one axis after the other.

use super::blocks::{BLOCK, CELLS};
use super::padded::{Around, cube};

/// What the numbers of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Means over cells.
    Means,
    /// Values at their centers.
    Points,
}

/// Cells that a prediction needs on either side.
pub const GHOSTS: usize = 2;

/// Cells along a side of half a block.
const HALF: usize = BLOCK / 2;

/// The cells of half the side within a cube of `wide`³ coarse ones, but for those in its two outermost layers: x fastest.
pub fn refined<const N: usize>(values: Values, coarse: &[[f64; N]], wide: usize) -> Vec<[f64; N]> {
    let fine = 2 * (wide - 2 * GHOSTS);
    let mut along_x = vec![0.0; wide * wide * fine * N];
    let mut along_y = vec![0.0; wide * fine * fine * N];
    let mut cells = vec![[0.0; N]; fine * fine * fine];
    predict(values, coarse.as_flattened(), wide, N, &mut along_x);
    predict(values, &along_x, wide, fine * N, &mut along_y);
    predict(values, &along_y, wide, fine * fine * N, cells.as_flattened_mut());
    cells
}

/// [`refined`] along one axis, where `step` numbers lie between neighbors.
#[inline(always)]
fn predict(values: Values, coarse: &[f64], wide: usize, step: usize, fine: &mut [f64]) {
    let inner = wide - 2 * GHOSTS;
    for (from, to) in coarse.chunks_exact(wide * step).zip(fine.chunks_exact_mut(2 * inner * step)) {
        for (i, to) in to.chunks_exact_mut(2 * step).enumerate() {
            let [a, b, u, c, d]: [&[f64]; 5] = std::array::from_fn(|n| &from[(i + n) * step..(i + n + 1) * step]);
            let (low, high) = to.split_at_mut(step);
            let mut set = |n: usize, middle: f64, slope: f64| (low[n], high[n]) = (middle - slope, middle + slope);
            match values {
                Values::Means => {
                    for n in 0..step {
                        let (near, far) = (c[n] - b[n], d[n] - a[n]);
                        set(n, u[n], (22.0 * near - 3.0 * far) / 128.0);
                    }
                }
                Values::Points => {
                    for n in 0..step {
                        let (near, far) = (c[n] - b[n], d[n] - a[n]);
                        let even = 1890.0 * u[n] + 84.0 * (c[n] + b[n]) - 5.0 * (d[n] + a[n]);
                        set(n, even / 2048.0, (336.0 * near - 40.0 * far) / 2048.0);
                    }
                }
            }
        }
    }
}

/// The numbers of the 8³ cells of twice the side that 16³ stand for.
fn coarsened<const N: usize>(values: Values, fine: &[[f64; N]]) -> Vec<f64> {
    let along_x = halve(values, fine.as_flattened(), N);
    let along_y = halve(values, &along_x, HALF * N);
    halve(values, &along_y, HALF * HALF * N)
}

/// [`coarsened`] along one axis, where `step` numbers lie between neighbors.
#[inline(always)]
fn halve(values: Values, fine: &[f64], step: usize) -> Vec<f64> {
    const MIDDLE: [f64; 6] = [3.0, -25.0, 150.0, 150.0, -25.0, 3.0];
    const END: [f64; 6] = [63.0, 315.0, -210.0, 126.0, -45.0, 7.0];
    let mut coarse = vec![0.0; fine.len() / 2];
    for (from, to) in fine.chunks_exact(BLOCK * step).zip(coarse.chunks_exact_mut(HALF * step)) {
        let at = |i: usize| &from[i * step..(i + 1) * step];
        for (i, to) in to.chunks_exact_mut(step).enumerate() {
            if values == Values::Means {
                let [a, b] = [at(2 * i), at(2 * i + 1)];
                for n in 0..step {
                    to[n] = 0.5 * (a[n] + b[n]);
                }
                continue;
            }
            let (weights, [a, b, c, d, e, f]): ([f64; 6], [&[f64]; 6]) = match i {
                0 => (END, std::array::from_fn(at)),
                _ if i == HALF - 1 => (END, std::array::from_fn(|n| at(BLOCK - 1 - n))),
                _ => (MIDDLE, std::array::from_fn(|n| at(2 * i - 2 + n))),
            };
            let [p, q, r, s, t, u] = weights;
            for n in 0..step {
                to[n] = (p * a[n] + q * b[n] + r * c[n] + s * d[n] + t * e[n] + u * f[n]) / 256.0;
            }
        }
    }
    coarse
}

/// The field in part `part` of a block, x fastest, from the block and those around.
pub fn child<const N: usize>(values: Values, around: &Around<N>, part: usize) -> Vec<[f64; N]> {
    const CUBE: usize = HALF + 2 * GHOSTS;
    let first = [0, 1, 2].map(|d: usize| (HALF * (part >> d & 1)) as i64 - GHOSTS as i64);
    refined(values, &cube(around, first, CUBE), CUBE)
}

/// The field in a block from that in its eight parts, zero where there is no part.
pub fn parent<const N: usize>(values: Values, parts: Parts<N>) -> Vec<[f64; N]> {
    let mut cells = vec![[0.0; N]; CELLS];
    for (part, fine) in parts.into_iter().enumerate() {
        let Some(fine) = fine else { continue };
        let first = [0, 1, 2].map(|d: usize| HALF * (part >> d & 1));
        for (n, row) in coarsened(values, fine).chunks_exact(HALF * N).enumerate() {
            let at = first[0] + BLOCK * (first[1] + n % HALF + BLOCK * (first[2] + n / HALF));
            cells[at..at + HALF].as_flattened_mut().copy_from_slice(row);
        }
    }
    cells
}

/// The cells of the eight parts of a block, where there are any.
pub type Parts<'a, const N: usize> = [Option<&'a [[f64; N]]>; 8];

#[cfg(test)]
mod tests {
    use super::*;

    /// A polynomial of degree 4 in each variable: its value at a point, or its mean over a cell of side h.
    fn polynomial(values: Values, x: [f64; 3], h: f64) -> [f64; 3] {
        let powers = |x: f64| match values {
            Values::Points => [1.0, x, x * x, x.powi(3), x.powi(4)],
            Values::Means => {
                let h2 = h * h;
                [1.0, x, x * x + h2 / 12.0, x.powi(3) + x * h2 / 4.0, x.powi(4) + x * x * h2 / 2.0 + h2 * h2 / 80.0]
            }
        };
        let [x, y, z] = x.map(powers);
        [x[4] - y[3] * z[1], y[4] * x[2] + z[0], z[4] * y[4] - 2.0 * x[3] * z[2] * y[1]]
    }

    /// Center of cell `n` of a cube of `across`³ cells of side h whose first begins at `from`.
    fn center(n: usize, across: usize, from: [f64; 3], h: f64) -> [f64; 3] {
        let cell = [n % across, n / across % across, n / (across * across)];
        std::array::from_fn(|d| from[d] + (cell[d] as f64 + 0.5) * h)
    }

    #[test]
    fn polynomials_of_degree_four_pass_between_levels() {
        const H: f64 = 0.1;
        let corner = [-0.9, -0.7, -1.1];
        for values in [Values::Means, Values::Points] {
            let of_block = |n: usize| {
                let offset = [n % 3, n / 3 % 3, n / 9].map(|o| (BLOCK as f64) * (o as f64 - 1.0) * H);
                let from = std::array::from_fn(|d| corner[d] + offset[d]);
                (0..CELLS).map(|c| polynomial(values, center(c, BLOCK, from, H), H)).collect()
            };
            let blocks: [Vec<[f64; 3]>; 27] = std::array::from_fn(of_block);
            let around = blocks.each_ref().map(|b| Some(&b[..]));
            let parts: [Vec<_>; 8] = std::array::from_fn(|part| child(values, &around, part));
            for (part, cells) in parts.iter().enumerate() {
                let from = std::array::from_fn(|d| corner[d] + (part >> d & 1) as f64 * HALF as f64 * H);
                for (n, found) in cells.iter().enumerate() {
                    let exact = polynomial(values, center(n, BLOCK, from, H / 2.0), H / 2.0);
                    assert!((0..3).all(|k| (found[k] - exact[k]).abs() < 1e-13), "{values:?} {found:?} {exact:?}");
                }
            }
            let back = parent(values, std::array::from_fn(|part| Some(&parts[part][..])));
            for (n, found) in back.iter().enumerate() {
                let exact = polynomial(values, center(n, BLOCK, corner, H), H);
                assert!((0..3).all(|k| (found[k] - exact[k]).abs() < 1e-13), "{values:?} {found:?} {exact:?}");
            }
        }
    }

    #[test]
    fn means_keep_their_sum() {
        let parts: [Vec<[f64; 3]>; 8] = std::array::from_fn(|part| {
            (0..CELLS).map(|c| [0, 1, 2].map(|k| ((part * CELLS + c) as f64 * (0.7 + k as f64)).sin())).collect()
        });
        let coarse = parent(Values::Means, std::array::from_fn(|part| Some(&parts[part][..])));
        for k in 0..3 {
            let fine: f64 = parts.iter().flatten().map(|w| w[k]).sum();
            let sum: f64 = coarse.iter().map(|w| 8.0 * w[k]).sum();
            assert!((sum - fine).abs() < 1e-9, "{sum} {fine}");
        }
        let block = |n: usize| (0..CELLS).map(|c| [0.0, ((CELLS * n + c) as f64).cos(), 0.0]).collect();
        let blocks: [Vec<[f64; 3]>; 27] = std::array::from_fn(block);
        let around = blocks.each_ref().map(|b| Some(&b[..]));
        for part in 0..8 {
            let first = [0, 1, 2].map(|d: usize| HALF * (part >> d & 1));
            let cell = |n: usize| [n % HALF, n / HALF % HALF, n / (HALF * HALF)];
            let at =
                |[i, j, l]: [usize; 3]| blocks[13][first[0] + i + BLOCK * (first[1] + j + BLOCK * (first[2] + l))][1];
            let sum: f64 = (0..HALF * HALF * HALF).map(|n| 8.0 * at(cell(n))).sum();
            let fine: f64 = child(Values::Means, &around, part).iter().map(|w| w[1]).sum();
            assert!((sum - fine).abs() < 1e-9, "{sum} {fine}");
        }
    }
}
