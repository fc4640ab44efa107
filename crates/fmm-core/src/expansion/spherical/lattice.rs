//! The operator of the lattice: what all images of a periodic box, but for those that the lists know, do at its bodies.
//!
//! L_l^m = Σ_j,k (−1)^j conj(M_j^k) T_{l+j}^{m+k} (Berman & Greengard 1994) with T_n^m the sum of I_n^m over the images (see
//! [`sums`]). It lacks (2π/3V)|x−s|² for each pair, which is not harmonic (de Leeuw, Perram & Smith 1980).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rayon::prelude::*;

use super::harmonics::at;
use super::images::{sums, sums_at};
use crate::lists::Space;
use crate::math::CollectVec;

/// T_n^m of a box, for M2L of one order.
#[derive(Debug, Clone)]
pub struct Lattice {
    order: usize,
    /// T_n^m in units of half the longest side, to degree 2p, in the order of [`at`].
    operator: Arc<Vec<f64>>,
}

impl Lattice {
    /// The operator of order `order` between the roots of all images that are not near in `space`, and the root.
    pub fn new(order: usize, space: &Space<3>) -> Self {
        // Runs ask for the same operator again and again.
        type Made = Mutex<HashMap<(usize, Vec<u64>), Arc<Vec<f64>>>>;
        static MADE: OnceLock<Made> = OnceLock::new();
        let sides = space.aspect().map(|a| 2.0 * a);
        let images = space.near.iter().map(|n| u64::from(crate::lists::image_class(*n)));
        let key = (order, sides.iter().map(|s| s.to_bits()).chain(images).collect());
        let mut made = MADE.get_or_init(Made::default).lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() > 64 {
            made.clear();
        }
        let operator = made.entry(key).or_insert_with(|| Arc::new(sums(2 * order, sides, &space.near))).clone();
        Lattice { order, operator }
    }

    /// The local expansion of the root from its multipole, both in units of half its longest side and in the order of the coefficients.
    pub fn apply(&self, multipole: &[f64]) -> Vec<f64> {
        let p = self.order as isize;
        let mut local = vec![0.0; multipole.len()];
        for l in 0..=p {
            for m in 0..=l {
                let mut sum = [0.0; 2];
                for j in (l % 2..=p).step_by(2) {
                    let mut part = [0.0; 2];
                    for k in (-j..=j).filter(|k| (m + k) % 2 == 0) {
                        let t = self.operator[at((l + j) as usize, (m + k).unsigned_abs())];
                        let [re, im] = full(multipole, j as usize, k);
                        part = [part[0] + t * re, part[1] - t * im];
                    }
                    let sign = if j % 2 == 0 { 1.0 } else { -1.0 };
                    sum = [sum[0] + sign * part[0], sum[1] + sign * part[1]];
                }
                let k = at(l as usize, m as usize);
                local[k] = sum[0];
                if m > 0 {
                    local[k + 1] = sum[1];
                }
            }
        }
        local
    }
}

/// Matrices of M2L between the cells of a periodic cubic box that is divided into `across`³ cells,
/// with all images except those whose cells lie nearer than √`separation2` sides. Each maps the
/// multipole of a cell to the local expansion of another, in units of half their side and in the
/// order of the coefficients. Shape `[offset][source][target]`; offsets are source minus target, x
/// runs fastest, each from 1 − `across` to `across` − 1.
///
/// The sums are those of [`Lattice`], for a lattice that the target does not lie on. An offset x
/// breaks the symmetry: waves have the factor cos kx in even degrees, and (−1)^{(n−1)/2} sin kx in
/// place of (−1)^{n/2} in odd ones. The part that is not harmonic, (2π/3V)|x|² and its gradient, is
/// left out of degrees 0 and 1.
pub fn between_cells(order: usize, across: usize, separation2: f64) -> Vec<f64> {
    let (width, across) = (2 * across as i32 - 1, across as i32);
    let offsets: Vec<[i32; 3]> = (0..width.pow(3))
        .map(|k| [k % width, k / width % width, k / (width * width)].map(|o| o + 1 - across))
        .collect();
    let of = |offset: &[i32; 3]| {
        let near = |image: [i32; 3]| {
            let o: [i32; 3] = std::array::from_fn(|d| offset[d] + across * image[d]);
            f64::from(o.iter().map(|c| c * c).sum::<i32>()) < separation2
        };
        let t = sums_at(2 * order, 2.0 * f64::from(across), offset.map(|o| 2.0 * f64::from(o)), near);
        matrix(order, &t)
    };
    offsets.par_iter().map(of).collect_vec().concat()
}
/// A_n^m of either sign of m, from the half of `a` that is stored: A_n^(−m) = (−1)^m conj(A_n^m).
fn full(a: &[f64], n: usize, m: isize) -> [f64; 2] {
    let k = at(n, m.unsigned_abs());
    let stored = [a[k], if m == 0 { 0.0 } else { a[k + 1] }];
    match (m < 0, m % 2 == 0) {
        (false, _) => stored,
        (true, true) => [stored[0], -stored[1]],
        (true, false) => [-stored[0], stored[1]],
    }
}

/// The matrix of M2L with the sums T to degree 2p. `[source][target]`
fn matrix(order: usize, t: &[f64]) -> Vec<f64> {
    let n = (order + 1) * (order + 1);
    let mut all = vec![0.0; n * n];
    for j in 0..=order {
        let odd = if j % 2 == 0 { 1.0 } else { -1.0 };
        for k in 0..=j {
            let source = at(j, k);
            for l in 0..=order {
                for m in 0..=l {
                    let target = at(l, m);
                    let (k, m) = (k as isize, m as isize);
                    let up = full(t, l + j, m + k).map(|c| odd * c);
                    let down = full(t, l + j, m - k).map(|c| if k % 2 == 0 { odd * c } else { -odd * c });
                    // conj(M_j^k) T^{m+k}, and for −k, where M_j^{−k} = (−1)^k conj(M_j^k), M_j^k T^{m−k} (−1)^k.
                    let rows: [[f64; 2]; 2] = match k {
                        0 => [up, [0.0; 2]],
                        _ => [[up[0] + down[0], up[1] + down[1]], [up[1] - down[1], down[0] - up[0]]],
                    };
                    for (stored, row) in rows.iter().enumerate().take(if k == 0 { 1 } else { 2 }) {
                        all[(source + stored) * n + target] = row[0];
                        if m > 0 {
                            all[(source + stored) * n + target + 1] = row[1];
                        }
                    }
                }
            }
        }
    }
    all
}
