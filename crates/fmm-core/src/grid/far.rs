//! Multipoles of the nodes, three components at a time, and their evaluation at the points of bricks.
//!
//! Operators between expansions are those of all other sums. Ψ and u are six linear forms of the irregular harmonics, u by their
//! derivatives (degree p + 1), so that a node has six weights for each harmonic, made once; at a point harmonics are
//! generated, order after order, and met by their weights on the spot.

use rayon::prelude::*;

use super::near::SUMS;
use super::plan::{Brick, POINTS, SIDE};
use super::sources::Sources;
use crate::cpu::far::m2m;
use crate::expansion::{Expansion, Kind, Spherical, multipole_weights, place_of, recurrences};
use crate::lists::Classes;
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{Number, Real};
use crate::stage::{Stage, StageTimes};

/// The highest order in single precision: factorials of twice as much must not overflow.
pub const MAX_SINGLE_ORDER: usize = 14;
/// The highest order.
pub const MAX_ORDER: usize = 30;

/// Weights below this are none.
const TINY: f64 = 1e-34;

/// Nodes whose sums single precision adds up before they go on in double.
const NODES: usize = 32;

/// Multipoles of all nodes, as weights of the harmonics at points.
pub struct Expansions<T> {
    order: usize,
    /// Factors of the recurrences, see [`Evaluate`].
    diagonal: Vec<T>,
    steps: Vec<[T; 2]>,
    /// [`weights_len`] numbers a node.
    weights: Vec<T>,
    /// Half the side of each node.
    half: Vec<f64>,
}

/// Numbers of a node: six weights a harmonic of degree 0 to p, three of degree p + 1.
pub fn weights_len(order: usize) -> usize {
    6 * (order + 1) * (order + 1) + 3 * (2 * order + 3)
}

impl<T: Real> Expansions<T> {
    /// The expansions of order `order` of all nodes; times go to P2M and M2M.
    pub fn new(sources: &Sources, order: usize, times: &mut StageTimes) -> Self {
        let spherical = Spherical::<f64>::new(order, Classes::new(4.0));
        let n = Expansion::<f64, 3>::len(&spherical);
        let tree = &sources.tree;
        let mut multipoles = [0, 1, 2].map(|_| vec![0.0; n * tree.len()]);
        let levels = tree.level_of();
        times.time(Stage::P2M, || {
            let [a, b, c] = &mut multipoles;
            let cells = a.par_chunks_mut(n).zip(b.par_chunks_mut(n)).zip(c.par_chunks_mut(n)).enumerate();
            cells.for_each_init(Gathered::default, |gathered, (cell, ((a, b), c))| {
                if tree.is_leaf(cell) && tree.count(cell) > 0 {
                    gathered.load(sources, cell, 1.0 / tree.half(levels[cell] as usize));
                    dispatch(Moments { expansion: &spherical, gathered, out: [a, b, c] });
                }
            });
        });
        times.time(Stage::M2M, || {
            multipoles.iter_mut().for_each(|m| m2m(&spherical, tree, &|_| true, m));
            let half: Vec<f64> = levels.iter().map(|&l| tree.half(l as usize)).collect();
            let mut weights = vec![T::ZERO; weights_len(order) * tree.len()];
            weights.par_chunks_mut(weights_len(order)).enumerate().for_each(|(cell, weights)| {
                let of = [0, 1, 2].map(|k| multipole_weights(&multipoles[k][cell * n..(cell + 1) * n], order));
                fill_weights(order, &of, half[cell] / tree.half(0), weights);
            });
            let (diagonal, steps) = factors(order);
            Expansions { order, diagonal, steps, weights, half }
        })
    }

    /// The weights of all nodes: of one node after the other, six of each harmonic of degree up to p and three of those of degree p + 1, in units of
    /// half the side of the root; order by order, in each degree by degree, real part first.
    pub fn weights(&self) -> &[T] {
        &self.weights
    }

    /// The factors of the recurrences: for I_m^m one each, and two for each step in the degree, in the order of the weights.
    pub fn factors(&self) -> (&[T], &[[T; 2]]) {
        (&self.diagonal, &self.steps)
    }

    /// Half the side of each node.
    pub fn half(&self) -> &[f64] {
        &self.half
    }

    /// One node of no strength.
    pub(super) fn example(order: usize) -> Self {
        let (diagonal, steps) = factors(order);
        Expansions { order, diagonal, steps, weights: vec![T::ZERO; weights_len(order)], half: vec![1.0] }
    }

    /// Adds what `nodes` do at the points of `brick` by their expansions to `out`, as [`near::brick`](super::near::brick) does.
    pub fn brick(&self, sources: &Sources, brick: &Brick, nodes: &[u32], sums: &mut Vec<T>, out: &mut [f64]) {
        let root = sources.tree.half(0);
        for nodes in nodes.chunks(NODES) {
            sums.clear();
            sums.resize(SUMS, T::ZERO);
            for &node in nodes {
                let (center, scale) = (sources.tree.center[node as usize], 1.0 / self.half[node as usize]);
                let at = std::array::from_fn(|d| brick.at[d].map(|x| T::from_f64((x - center[d]) * scale)));
                dispatch(Evaluate { expansions: self, node: node as usize, at: &at, sums });
            }
            for (c, (out, sums)) in out.chunks_exact_mut(POINTS).zip(sums.chunks_exact(POINTS)).enumerate() {
                let factor = if c < 3 { 1.0 / root } else { 1.0 / (root * root) };
                out.iter_mut().zip(sums).for_each(|(o, s)| *o += s.to_f64() * factor);
            }
        }
    }
}

/// The factors of the recurrences to degree p + 1: those of I_m^m, and for each order those of the steps from it.
fn factors<T: Real>(order: usize) -> (Vec<T>, Vec<[T; 2]>) {
    let (degree, all) = (order + 1, recurrences(Kind::Irregular, order + 1));
    let (mut diagonal, mut steps, mut rest) = (vec![], vec![], all.as_slice());
    for m in 0..=degree {
        let (first, more) = rest.split_at(1 + (degree + 1).saturating_sub(m + 2));
        rest = more;
        diagonal.push(T::from_f64(first[0][0]));
        if m < degree {
            steps.push([T::from_f64(first[0][1]), T::ZERO]);
        }
        steps.extend(first[1..].iter().map(|f| f.map(T::from_f64)));
    }
    (diagonal, steps)
}

/// Weights in the order in which [`Evaluate`] meets them, in units of the root's half side; `size` is that of the node.
fn fill_weights<T: Real>(order: usize, of: &[Vec<[f64; 4]>; 3], size: f64, weights: &mut [T]) {
    let (once, twice) = (1.0 / size, 1.0 / (size * size));
    let mut out = weights.iter_mut();
    let mut put = |value: f64| {
        if let Some(place) = out.next() {
            // Numbers below the normal ones of single precision are set to zero: they contribute
            // next to nothing and are slow.
            *place = if value.abs() < TINY { T::ZERO } else { T::from_f64(value) };
        }
    };
    for m in 0..=order + 1 {
        for l in m..=order + 1 {
            for part in 0..if m == 0 { 1 } else { 2 } {
                let [x, y, z] = [0, 1, 2].map(|k| of[k][place_of(l, m) + part]);
                if l <= order {
                    [x, y, z].iter().for_each(|w| put(w[0] * once));
                }
                // ∇ × Ψ; the derivative along axis d is at d + 1.
                [z[2] - y[3], x[3] - z[1], y[1] - x[2]].iter().for_each(|w| put(w * twice));
            }
        }
    }
}

/// Sources of one leaf in its units, up to whole vectors.
#[derive(Default)]
struct Gathered {
    x: [Vec<f64>; 3],
    strength: [Vec<f64>; 3],
}

impl Gathered {
    fn load(&mut self, sources: &Sources, cell: usize, scale: f64) {
        let (range, center) = (sources.tree.body_range(cell), sources.tree.center[cell]);
        let n = range.len().next_multiple_of(f64::WIDTH);
        for d in 0..3 {
            self.x[d].clear();
            self.x[d].extend(sources.x[d][range.clone()].iter().map(|x| (x - center[d]) * scale));
            self.x[d].resize(n, 0.0);
            self.strength[d].clear();
            self.strength[d].extend(&sources.strength[d][range.clone()]);
            self.strength[d].resize(n, 0.0);
        }
    }
}

/// P2M of three components in one pass.
struct Moments<'a> {
    expansion: &'a Spherical<f64>,
    gathered: &'a Gathered,
    out: [&'a mut [f64]; 3],
}

impl Task<f64> for Moments<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) {
        let n = self.out[0].len();
        let (mut values, mut sums) = (vec![V::zero(); n], vec![[V::zero(); 3]; n]);
        let Gathered { x, strength } = self.gathered;
        for i in (0..x[0].len()).step_by(f64::WIDTH) {
            self.expansion.regular::<V>([V::load(&x[0][i..]), V::load(&x[1][i..]), V::load(&x[2][i..])], &mut values);
            let q = [V::load(&strength[0][i..]), V::load(&strength[1][i..]), V::load(&strength[2][i..])];
            for c in 0..n {
                for k in 0..3 {
                    sums[c][k] = q[k].mul_add(values[c], sums[c][k]);
                }
            }
        }
        for (k, out) in self.out.into_iter().enumerate() {
            for c in 0..n {
                out[c] += sums[c][k].sum();
            }
        }
    }
}

/// M2P of one node at the points of a brick, whose coordinates are in units of the node.
///
/// With x, y, z over r² and w = 1/r²: I_m^m = diagonal (x + iy) I_{m−1}^{m−1}, and I_{l+1}^m = a z I_l^m − b w I_{l−1}^m from there.
pub(super) struct Evaluate<'a, T> {
    pub expansions: &'a Expansions<T>,
    pub node: usize,
    pub at: &'a [[T; SIDE]; 3],
    pub sums: &'a mut [T],
}

/// Vectors of points that are worked on together.
const GROUP: usize = 2;

impl<T: Real> Task<T> for Evaluate<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let Evaluate { expansions: Expansions { order, diagonal, steps, weights, .. }, node, at, sums } = self;
        let (len, degree) = (weights_len(*order), order + 1);
        let weights = &weights[node * len..(node + 1) * len];
        // A vector is one row of points, or two.
        let rows = T::WIDTH / SIDE;
        let mut lanes = [T::ZERO; 16];
        for i in 0..T::WIDTH {
            lanes[i] = at[0][i % SIDE];
        }
        let ax = V::load(&lanes);
        for plane in 0..SIDE {
            let az = V::splat(at[2][plane]);
            for first in (0..SIDE).step_by(GROUP * rows) {
                let (mut x, mut y, mut z, mut w) =
                    ([V::zero(); GROUP], [V::zero(); GROUP], [V::zero(); GROUP], [V::zero(); GROUP]);
                let (mut re, mut im) = ([V::zero(); GROUP], [V::zero(); GROUP]);
                for k in 0..GROUP {
                    for i in 0..T::WIDTH {
                        lanes[i] = at[1][first + k * rows + i / SIDE];
                    }
                    let ay = V::load(&lanes);
                    let inverse = ax.mul_add(ax, ay.mul_add(ay, az.mul(az))).rsqrt_positive();
                    w[k] = inverse.mul(inverse);
                    (x[k], y[k], z[k]) = (ax.mul(w[k]), ay.mul(w[k]), az.mul(w[k]));
                    re[k] = inverse;
                }
                let mut total = [[V::zero(); 6]; GROUP];
                let (mut steps, mut rest) = (&steps[..], weights);
                // Order 0 has real parts alone.
                let (mut now, mut before) = (re, [V::zero(); GROUP]);
                for l in 0..=degree {
                    let used = if l < degree { 6 } else { 3 };
                    for c in 6 - used..6 {
                        let weight = V::splat(rest[c + used - 6]);
                        for k in 0..GROUP {
                            total[k][c] = weight.mul_add(now[k], total[k][c]);
                        }
                    }
                    rest = &rest[used..];
                    if l < degree {
                        let [a, b] = steps[0];
                        steps = &steps[1..];
                        let (a, b) = (V::splat(a), V::splat(b));
                        for k in 0..GROUP {
                            let next = b.mul(w[k]).neg_mul_add(before[k], a.mul(z[k]).mul(now[k]));
                            (before[k], now[k]) = (now[k], next);
                        }
                    }
                }
                for m in 1..=degree {
                    let d = V::splat(diagonal[m]);
                    for k in 0..GROUP {
                        let (dx, dy) = (d.mul(x[k]), d.mul(y[k]));
                        (re[k], im[k]) = (dy.neg_mul_add(im[k], dx.mul(re[k])), dx.mul_add(im[k], dy.mul(re[k])));
                    }
                    let (mut re1, mut im1) = (re, im);
                    let (mut re2, mut im2) = ([V::zero(); GROUP], [V::zero(); GROUP]);
                    for l in m..degree {
                        let here = &rest[..12];
                        for c in 0..6 {
                            let weight = V::splat(here[c]);
                            for k in 0..GROUP {
                                total[k][c] = weight.mul_add(re1[k], total[k][c]);
                            }
                        }
                        for c in 0..6 {
                            let weight = V::splat(here[6 + c]);
                            for k in 0..GROUP {
                                total[k][c] = weight.mul_add(im1[k], total[k][c]);
                            }
                        }
                        rest = &rest[12..];
                        let [a, b] = steps[l - m];
                        let (a, b) = (V::splat(a), V::splat(b));
                        for k in 0..GROUP {
                            let (az, bw) = (a.mul(z[k]), b.mul(w[k]));
                            let re0 = bw.neg_mul_add(re2[k], az.mul(re1[k]));
                            let im0 = bw.neg_mul_add(im2[k], az.mul(im1[k]));
                            (re2[k], im2[k], re1[k], im1[k]) = (re1[k], im1[k], re0, im0);
                        }
                    }
                    steps = &steps[degree - m..];
                    let here = &rest[..6];
                    for c in 0..3 {
                        let (a, b) = (V::splat(here[c]), V::splat(here[3 + c]));
                        for k in 0..GROUP {
                            total[k][3 + c] = b.mul_add(im1[k], a.mul_add(re1[k], total[k][3 + c]));
                        }
                    }
                    rest = &rest[6..];
                }
                for k in 0..GROUP {
                    let place = (plane * SIDE + first + k * rows) * SIDE;
                    for c in 0..6 {
                        let sum = &mut sums[c * POINTS + place..];
                        V::load(sum).add(total[k][c]).store(sum);
                    }
                }
            }
        }
    }
}
