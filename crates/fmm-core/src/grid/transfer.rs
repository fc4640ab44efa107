//! Between cells and those of half the side: prediction of the finer ones, and what the coarser ones hold of them.
//!
//! Vorticity is a mean over a cell, for its sum is conserved: prediction is by the polynomial of degree 4 whose means five cells
//! are, ū_0 ± [22 (ū_1 − ū_−1) − 3 (ū_2 − ū_−2)]/128 (Donoho 1993), and the coarser cell holds the mean of its eight parts. Ψ, u and
//! its gradients are values at centers: prediction is the polynomial of degree 4 through five of them, and the center between two
//! finer cells gets the polynomial of degree 5 through the six around, of the same block. Both take one axis after the other.

use super::blocks::{BLOCK, CELLS};
use super::padded::{REACH, WIDE};

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
pub fn refined(values: Values, coarse: &[f64], wide: usize) -> Vec<f64> {
    // The first index becomes fine and goes last: after three turns all are fine and in order again.
    let along_x = predict(values, coarse, wide);
    let along_y = predict(values, &along_x, wide);
    predict(values, &along_y, wide)
}

/// Rows of `wide` numbers, each to those of its inner halves; entry (i, row) of the result is at row + rows·i.
fn predict(values: Values, coarse: &[f64], wide: usize) -> Vec<f64> {
    let (rows, inner) = (coarse.len() / wide, wide - 2 * GHOSTS);
    let mut fine = vec![0.0; rows * 2 * inner];
    for (row, u) in coarse.chunks_exact(wide).enumerate() {
        for i in 0..inner {
            let c = i + GHOSTS;
            let (near, far) = (u[c + 1] - u[c - 1], u[c + 2] - u[c - 2]);
            let (middle, slope) = match values {
                Values::Means => (u[c], (22.0 * near - 3.0 * far) / 128.0),
                Values::Points => {
                    let even = 1890.0 * u[c] + 84.0 * (u[c + 1] + u[c - 1]) - 5.0 * (u[c + 2] + u[c - 2]);
                    (even / 2048.0, (336.0 * near - 40.0 * far) / 2048.0)
                }
            };
            fine[row + rows * (2 * i)] = middle - slope;
            fine[row + rows * (2 * i + 1)] = middle + slope;
        }
    }
    fine
}

/// The 8³ numbers of twice the side that 16³ stand for.
fn coarsened(values: Values, fine: &[f64]) -> Vec<f64> {
    let along_x = halve(values, fine);
    let along_y = halve(values, &along_x);
    halve(values, &along_y)
}

/// Rows of 16 numbers, each to 8, in the order of [`predict`].
fn halve(values: Values, fine: &[f64]) -> Vec<f64> {
    const MIDDLE: [f64; 6] = [3.0, -25.0, 150.0, 150.0, -25.0, 3.0];
    const END: [f64; 6] = [63.0, 315.0, -210.0, 126.0, -45.0, 7.0];
    let rows = fine.len() / BLOCK;
    let mut coarse = vec![0.0; rows * HALF];
    for (row, u) in fine.chunks_exact(BLOCK).enumerate() {
        for i in 0..HALF {
            let sum = |weights: [f64; 6], at: &dyn Fn(usize) -> f64| {
                weights.iter().enumerate().map(|(n, w)| w * at(n)).sum::<f64>() / 256.0
            };
            coarse[row + rows * i] = match values {
                Values::Means => 0.5 * (u[2 * i] + u[2 * i + 1]),
                Values::Points if i == 0 => sum(END, &|n| u[n]),
                Values::Points if i == HALF - 1 => sum(END, &|n| u[BLOCK - 1 - n]),
                Values::Points => sum(MIDDLE, &|n| u[2 * i - 2 + n]),
            };
        }
    }
    coarse
}

/// The field in part `part` of a block, x fastest, from the block with [`REACH`] cells around.
pub fn child(values: Values, wide: &[[f64; 3]], part: usize) -> Vec<[f64; 3]> {
    const CUBE: usize = HALF + 2 * GHOSTS;
    let first = [0, 1, 2].map(|d: usize| HALF * (part >> d & 1) + REACH - GHOSTS);
    let mut cells = vec![[0.0; 3]; CELLS];
    for k in 0..3 {
        let at = |n: usize| {
            let [i, j, l] = [n % CUBE, n / CUBE % CUBE, n / (CUBE * CUBE)];
            wide[first[0] + i + WIDE * (first[1] + j + WIDE * (first[2] + l))][k]
        };
        let coarse: Vec<f64> = (0..CUBE * CUBE * CUBE).map(at).collect();
        let fine = refined(values, &coarse, CUBE);
        cells.iter_mut().zip(fine).for_each(|(cell, value)| cell[k] = value);
    }
    cells
}

/// The field in a block from that in its eight parts, zero where there is no part.
pub fn parent(values: Values, parts: [Option<&[[f64; 3]]>; 8]) -> Vec<[f64; 3]> {
    let mut cells = vec![[0.0; 3]; CELLS];
    for (part, fine) in parts.into_iter().enumerate() {
        let Some(fine) = fine else { continue };
        let first = [0, 1, 2].map(|d: usize| HALF * (part >> d & 1));
        for k in 0..3 {
            let coarse = coarsened(values, &fine.iter().map(|w| w[k]).collect::<Vec<_>>());
            for (n, value) in coarse.into_iter().enumerate() {
                let [i, j, l] = [n % HALF, n / HALF % HALF, n / (HALF * HALF)];
                cells[first[0] + i + BLOCK * (first[1] + j + BLOCK * (first[2] + l))][k] = value;
            }
        }
    }
    cells
}

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
            let beyond = corner.map(|c| c - REACH as f64 * H);
            let wide: Vec<_> =
                (0..WIDE * WIDE * WIDE).map(|n| polynomial(values, center(n, WIDE, beyond, H), H)).collect();
            let parts: [Vec<_>; 8] = std::array::from_fn(|part| child(values, &wide, part));
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
        let mut wide = vec![[0.0; 3]; WIDE * WIDE * WIDE];
        wide.iter_mut().enumerate().for_each(|(n, w)| w[1] = (n as f64).cos());
        for part in 0..8 {
            let first = [0, 1, 2].map(|d: usize| HALF * (part >> d & 1) + REACH);
            let cell = |n: usize| [n % HALF, n / HALF % HALF, n / (HALF * HALF)];
            let at = |[i, j, l]: [usize; 3]| wide[first[0] + i + WIDE * (first[1] + j + WIDE * (first[2] + l))][1];
            let sum: f64 = (0..HALF * HALF * HALF).map(|n| 8.0 * at(cell(n))).sum();
            let fine: f64 = child(Values::Means, &wide, part).iter().map(|w| w[1]).sum();
            assert!((sum - fine).abs() < 1e-9, "{sum} {fine}");
        }
    }
}
