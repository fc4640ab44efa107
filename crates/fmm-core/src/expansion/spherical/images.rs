//! T_n^m, the sums of irregular harmonics over the images of a periodic box.
//!
//! They converge absolutely for n > 2 alone. Instead of by renormalisation, which needs cubes and a value for n = 2, the sums are done as Ewald's: with
//! I_n^m = (−1)^n (n−m)!(n+m)!/(2n−1)!! R_n^m(∇) 1/r (Hobson 1931, §84) his potential of a lattice of unit charges in their background, differentiated,
//!
//! T_n^m = Σ_far I_n^m Q(n+½, α²r²) − Σ_near I_n^m P(n+½, α²r²)
//!       + (4π/V) (−1)^{n/2} Σ_k e^{−k²/4α²} k^{n−2}/(2n−1)!! I_n^m(k/|k|) − δ_n0 (2α/√π + π/(α²V)),
//!
//! Q and P the incomplete gamma functions over Γ(n+½). This is the sum in tin foil for every n, in boxes of any shape.
//! Boxes are their own mirror images: n and m are even and T is real.

use std::f64::consts::PI;

use super::harmonics::{Factors, Kind, at};
use crate::math::Number;
use crate::math::simd::{Task, Vector, dispatch};

/// Real and reciprocal vectors up to this many times the cube root of their cell's volume: e^(−8²π) is nothing.
const REACH: f64 = 8.0;

/// T_n^m to `degree` of a cubic lattice with this side, of the images x + side n of a point x but for those that are `near`.
pub fn sums_at(degree: usize, side: f64, x: [f64; 3], near: impl Fn([i32; 3]) -> bool) -> Vec<f64> {
    let volume = side.powi(3);
    let alpha = PI.sqrt() / side;
    let square = |v: &[f64; 3]| v.iter().map(|c| c * c).sum::<f64>();
    let mut total = vec![0.0; (degree + 1) * (degree + 1)];
    let mut terms: Vec<([f64; 3], Vec<f64>)> = vec![];
    let most = REACH as i32 + 1;
    let images = move || {
        let width = 2 * most + 1;
        (0..width.pow(3)).map(move |k| [k % width, k / width % width, k / (width * width)].map(|n| n - most))
    };
    for image in images() {
        let at: [f64; 3] = std::array::from_fn(|d| x[d] + side * f64::from(image[d]));
        let r2 = square(&at);
        if r2 > (REACH * side).powi(2) {
            continue;
        }
        if r2 == 0.0 {
            // What −P(n + ½)/r^(n+1) comes to.
            total[0] -= 2.0 * alpha / PI.sqrt();
            continue;
        }
        let r = r2.sqrt();
        let gamma: Vec<f64> = if near(image) {
            lower_gamma(degree, 1, alpha * alpha * r2).map(|p| -p).collect()
        } else {
            upper_gamma(degree, 1, alpha * alpha * r2).collect()
        };
        let weights = gamma.iter().enumerate().map(|(n, g)| g * r.powi(-(n as i32) - 1));
        terms.push((at.map(|c| c / r), weights.collect()));
    }
    let wave = 2.0 * PI / side;
    for number in images().filter(|&[a, b, c]| c > 0 || c == 0 && (b > 0 || b == 0 && a > 0)) {
        let k = number.map(|n| wave * f64::from(n));
        let k2 = square(&k);
        if k2 > (REACH * wave).powi(2) {
            continue;
        }
        // Each stands for its opposite too.
        let mut weight = 8.0 * PI / volume * (-k2 / (4.0 * alpha * alpha)).exp() / k2;
        let (sine, cosine) = (k[0] * x[0] + k[1] * x[1] + k[2] * x[2]).sin_cos();
        let weights = (0..=degree).map(|n| {
            let sign = if n / 2 % 2 == 0 { 1.0 } else { -1.0 };
            let here = weight * sign * if n % 2 == 0 { cosine } else { sine };
            weight *= k2.sqrt() / (2 * n + 1) as f64;
            here
        });
        terms.push((k.map(|c| c / k2.sqrt()), weights.collect()));
    }
    let size = |t: &(_, Vec<f64>)| t.1[0].abs();
    terms.sort_by(|a, b| size(a).total_cmp(&size(b)));
    let c = 2.0 * PI / (3.0 * volume);
    total[0] -= PI / (alpha * alpha * volume) + c * square(&x);
    // −∇ of c|x|², by the first degree in the direction of x.
    let r = square(&x).sqrt();
    if r > 0.0 {
        let mut weights = vec![0.0; degree + 1];
        weights[1.min(degree)] = if degree > 0 { 2.0 * c * r } else { 0.0 };
        terms.push((x.map(|c| c / r), weights));
    }
    dispatch(Add { degree, step: 1, terms: &terms, total: &mut total });
    total
}

/// T_n^m to `degree`, of boxes with `sides`, over all images but `near`.
pub fn sums(degree: usize, sides: [f64; 3], near: &[[i32; 3]]) -> Vec<f64> {
    let volume: f64 = sides.iter().product();
    let length = volume.cbrt();
    // Where both sums end alike.
    let alpha = PI.sqrt() / length;
    let mut total = vec![0.0; (degree + 1) * (degree + 1)];
    let mut terms: Vec<([f64; 3], Vec<f64>)> = vec![];
    // One octant stands for all, each of its vectors for its mirror images.
    each_in_octant(sides, REACH * length, |image, x, copies| {
        let r2 = x.iter().map(|c| c * c).sum::<f64>();
        let gamma = if near.contains(&image) {
            lower_gamma(degree / 2, 2, alpha * alpha * r2).map(|p| -p).collect::<Vec<_>>()
        } else {
            upper_gamma(degree / 2, 2, alpha * alpha * r2).collect()
        };
        let (unit, r) = (x.map(|c| c / r2.sqrt()), r2.sqrt());
        let weights = gamma.iter().enumerate().map(|(half, g)| copies * g * r.powi(-(2 * half as i32) - 1));
        terms.push((unit, weights.collect()));
    });
    let waves = sides.map(|s| 2.0 * PI / s);
    each_in_octant(waves, REACH * 2.0 * PI / length, |_, k, copies| {
        let square = k.iter().map(|c| c * c).sum::<f64>();
        let first = copies * 4.0 * PI / volume * (-square / (4.0 * alpha * alpha)).exp() / square;
        let mut weight = first;
        let weights = (0..=degree / 2).map(|half| {
            let here = weight;
            // From n to n + 2: −k²/((2n + 1)(2n + 3)).
            let n = 2.0 * half as f64;
            weight *= -square / ((2.0 * n + 1.0) * (2.0 * n + 3.0));
            here
        });
        terms.push((k.map(|c| c / square.sqrt()), weights.collect()));
    });
    // Small terms first.
    let size = |t: &(_, Vec<f64>)| t.1[0].abs();
    terms.sort_by(|a, b| size(a).total_cmp(&size(b)));
    dispatch(Add { degree, step: 2, terms: &terms, total: &mut total });
    total[0] -= 2.0 * alpha / PI.sqrt() + PI / (alpha * alpha * volume);
    total
}

/// Σ over directions of weight(n) I_n^m, of every `step`th degree: of 2, where only even orders count and T is real, and of 1.
struct Add<'a> {
    degree: usize,
    step: usize,
    terms: &'a [([f64; 3], Vec<f64>)],
    total: &'a mut [f64],
}

impl Task<f64> for Add<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) {
        let factors = Factors::<f64>::new(self.degree);
        let mut values = vec![V::zero(); self.total.len()];
        let mut sums = vec![V::zero(); self.total.len()];
        for terms in self.terms.chunks(f64::WIDTH) {
            let mut lanes = [[0.0; 8]; 3];
            for lane in 0..f64::WIDTH {
                // Idle lanes have any direction and no weight.
                for d in 0..3 {
                    lanes[d][lane] = terms[lane.min(terms.len() - 1)].0[d];
                }
            }
            factors.fill(Kind::Irregular, [V::load(&lanes[0]), V::load(&lanes[1]), V::load(&lanes[2])], &mut values);
            for n in (0..=self.degree).step_by(self.step) {
                let mut weights = [0.0; 8];
                for lane in 0..terms.len() {
                    weights[lane] = terms[lane].1[n / self.step];
                }
                let weight = V::load(&weights);
                if self.step == 1 {
                    for k in n * n..(n + 1) * (n + 1) {
                        sums[k] = weight.mul_add(values[k], sums[k]);
                    }
                    continue;
                }
                for m in (0..=n).step_by(2) {
                    sums[at(n, m)] = weight.mul_add(values[at(n, m)], sums[at(n, m)]);
                }
            }
        }
        for (t, s) in self.total.iter_mut().zip(&sums) {
            *t += s.sum();
        }
    }
}

/// Visits the vectors of a rectangular lattice up to `reach` that are in the octant of no negative number, but for zero, with the number
/// of their mirror images.
fn each_in_octant(sides: [f64; 3], reach: f64, mut visit: impl FnMut([i32; 3], [f64; 3], f64)) {
    let most = sides.map(|s| (reach / s) as i32);
    for a in 0..=most[0] {
        for b in 0..=most[1] {
            for c in 0..=most[2] {
                let image = [a, b, c];
                let x: [f64; 3] = std::array::from_fn(|d| f64::from(image[d]) * sides[d]);
                if image != [0; 3] && x.iter().map(|c| c * c).sum::<f64>() <= reach * reach {
                    visit(image, x, image.iter().map(|n| if *n == 0 { 1.0 } else { 2.0 }).product());
                }
            }
        }
    }
}

/// x^a e^(−x)/Γ(a + 1) at a = ½.
fn first_step(x: f64) -> f64 {
    2.0 * (x / PI).sqrt() * (-x).exp()
}

/// Q(n + ½, x) for n = 0, `by`, …, `most` of them after the first: Q(a + 1) = Q(a) + x^a e^(−x)/Γ(a + 1).
fn upper_gamma(most: usize, by: usize, x: f64) -> impl Iterator<Item = f64> {
    let (mut q, mut step, mut a) = (crate::math::erfc::erfc(x.sqrt()), first_step(x), 0.5);
    (0..=most).map(move |_| {
        let here = q;
        for _ in 0..by {
            q += step;
            a += 1.0;
            step *= x / a;
        }
        here
    })
}

/// P(n + ½, x) likewise, by its series x^a e^(−x)/Γ(a + 1) (1 + x/(a + 1) + x²/((a + 1)(a + 2)) + …), which keeps its digits where P is small.
fn lower_gamma(most: usize, by: usize, x: f64) -> impl Iterator<Item = f64> {
    let (mut step, mut a) = (first_step(x), 0.5);
    (0..=most).map(move |_| {
        let (mut sum, mut term, mut b) = (1.0, 1.0, a);
        while term > 1e-18 * sum {
            b += 1.0;
            term *= x / b;
            sum += term;
        }
        let here = step * sum;
        for _ in 0..by {
            a += 1.0;
            step *= x / a;
        }
        here
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::{Rule, Space};
    use crate::math::simd::Array;

    fn near_of(sides: [f64; 3], separation2: f64) -> Vec<[i32; 3]> {
        Space::periodic(sides, &Rule { separation2, ..Rule::classical() }).near
    }

    /// Numbers of 40-digit arithmetic by renormalisation, over all images with |n|∞ ≥ 2.
    #[test]
    fn sums_over_cubes_take_their_known_values() {
        let t = sums(16, [1.0; 3], &near_of([1.0; 3], 4.0));
        let s26 = 6.0 + 12.0 / 2f64.sqrt() + 8.0 / 3f64.sqrt();
        let known = [
            (0, 0, -2.837_297_479_480_62 - s26),
            (4, 0, 2.811_930_487_188_867),
            (4, 4, 14.059_652_435_944_335),
            (6, 0, 0.547_959_087_393_216),
            (6, 4, -3.835_713_611_752_51),
            (8, 0, 121.561_573_020_979),
            (8, 4, 121.561_573_020_979),
            (8, 8, 7_901.502_246_363_65),
            (10, 0, 311.799_167_361_091),
            (10, 4, -685.958_168_194_401),
            (10, 8, -11_661.288_859_304_8),
            (12, 0, 242_456.127_473_591),
            (12, 4, 203_758.582_641_403),
            (12, 8, 706_826.665_459_85),
            (12, 12, 237_024_359.845_271),
            (14, 0, 2_095_408.711_988_55),
            (16, 0, 542_798_582.996_5),
        ];
        for (n, m, value) in known {
            let found = t[at(n, m)];
            assert!((found / value - 1.0).abs() < 1e-13, "T_{n}^{m} = {found}, not {value}");
        }
        for n in (2..=16).step_by(2) {
            let largest = t[n * n..(n + 1) * (n + 1)].iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            for m in (2..=n).step_by(2).filter(|m| m % 4 != 0) {
                assert!(t[at(n, m)].abs() < 1e-13 * largest.max(1.0), "T_{n}^{m} = {}", t[at(n, m)]);
            }
        }
        assert!(t[at(2, 0)].abs() < 1e-13);
    }

    /// Boxes of three by three by three boxes repeat as boxes do: T = Σ over shells + Σ R T 3^−(n+1), the fixed point that renormalisation
    /// iterates to (Berman & Greengard 1994), at which the sums over boxes of any shape must stand already.
    #[test]
    fn sums_over_any_boxes_are_fixed_points_of_renormalisation() {
        for sides in [[1.0; 3], [1.0, 0.8, 0.6], [1.0, 0.6, 0.5]] {
            let cube = |most: i32| {
                let places =
                    move |k: i32| [k % (2 * most + 1), k / (2 * most + 1) % (2 * most + 1), k / (2 * most + 1).pow(2)];
                (0..(2 * most + 1).pow(3)).map(move |k| places(k).map(|c| c - most)).collect::<Vec<_>>()
            };
            let (carried, shown) = (60, 14);
            let t = sums(carried, sides, &cube(1));
            let harmonics = |kind, degree: usize, images: &[[i32; 3]]| {
                let factors = Factors::<f64>::new(degree);
                let mut total = vec![0.0; (degree + 1) * (degree + 1)];
                let mut values = vec![Array::<f64, 8>::zero(); total.len()];
                for image in images {
                    let x: [f64; 3] = std::array::from_fn(|d| f64::from(image[d]) * sides[d]);
                    factors.fill(kind, x.map(Array::splat), &mut values);
                    total.iter_mut().zip(&values).for_each(|(t, v)| *t += v.first());
                }
                total
            };
            let shell: Vec<_> = cube(4).into_iter().filter(|n| n.iter().any(|c| c.abs() > 1)).collect();
            let direct = harmonics(Kind::Irregular, shown, &shell);
            let regular = harmonics(Kind::Regular, carried, &cube(1));
            for n in (4..=shown).step_by(2) {
                for m in (0..=n as isize).step_by(2) {
                    let mut image = direct[at(n, m as usize)];
                    for j in (0..=carried - n).step_by(2) {
                        let scale = 3f64.powi(-((n + j) as i32) - 1);
                        for k in (-(j as isize)..=j as isize).step_by(2) {
                            image += scale * regular[at(j, k.unsigned_abs())] * t[at(n + j, (m + k).unsigned_abs())];
                        }
                    }
                    let largest = t[n * n..(n + 1) * (n + 1)].iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                    let found = t[at(n, m as usize)];
                    assert!((found - image).abs() < 1e-11 * largest, "{sides:?}: T_{n}^{m} = {found}, image {image}");
                }
            }
        }
    }

    /// The points that a lattice of 3³ boxes has in each of its boxes are together the lattice of one box.
    #[test]
    fn sums_off_the_lattice_add_up_to_those_on_it() {
        let degree = 12;
        let one = sums(degree, [1.0; 3], &near_of([1.0; 3], 4.0));
        let (mut all, mut size) = (vec![0.0; one.len()], vec![1.0; one.len()]);
        let mut squares = 0.0;
        for k in 0..27 {
            let place = [k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1];
            let near = |image: [i32; 3]| (0..3).map(|d| (place[d] + 3 * image[d]).pow(2)).sum::<i32>() < 4;
            let t = sums_at(degree, 3.0, place.map(f64::from), near);
            all.iter_mut().zip(&t).for_each(|(a, t)| *a += t);
            size.iter_mut().zip(&t).for_each(|(s, t)| *s += t.abs());
            squares += f64::from(place.iter().map(|c| c * c).sum::<i32>());
        }
        all[0] += 2.0 * PI / 81.0 * squares;
        for n in 0..=degree {
            // In odd degrees they cancel.
            let largest = size[n * n..(n + 1) * (n + 1)].iter().fold(0.0, |m: f64, v| m.max(*v));
            for k in n * n..(n + 1) * (n + 1) {
                assert!((all[k] - one[k]).abs() < 1e-12 * largest, "{n} {k}: {} {}", all[k], one[k]);
            }
        }
    }

    /// Odd degrees: I_{n+1}^0 is −∂/∂z I_n^0, and T likewise.
    #[test]
    fn sums_off_the_lattice_are_derivatives_of_one_another() {
        let (x, h) = ([0.31, -0.27, 0.44], 1e-4);
        let at_height = |z: f64| sums_at(8, 1.0, [x[0], x[1], z], |image| image.iter().all(|n| n.abs() < 2));
        let (below, here, above) = (at_height(x[2] - h), at_height(x[2]), at_height(x[2] + h));
        for n in 0..8 {
            let (slope, t) = ((above[at(n, 0)] - below[at(n, 0)]) / (2.0 * h), here[at(n + 1, 0)]);
            assert!((t + slope).abs() < 1e-5 * t.abs().max(1.0), "{n}: {t} {slope}");
        }
    }

    #[test]
    fn gamma_functions_add_up_to_one() {
        for x in [0.3, 3.0, 12.0, 40.0] {
            for (q, p) in upper_gamma(10, 2, x).zip(lower_gamma(10, 2, x)) {
                assert!((p + q - 1.0).abs() < 1e-14, "{x}: {p} + {q}");
            }
        }
    }
}
