//! The center of density, and the radii around it that hold given shares of the mass, as [`fmm_core::totals`] defines them.

use fmm_core::math::{CollectVec, blocked_sums};
use fmm_core::totals::{Extent, FEWEST, SHARES, SHRINK, fewest, reached};
use rayon::prelude::*;

/// Of particles at `position` with `mass`, N of each.
pub fn extent(position: &[[f64; 3]], mass: &[f64]) -> Extent {
    let n = position.len();
    if n == 0 {
        return Extent::default();
    }
    // Particles without any mass count alike.
    let massless = mass.iter().all(|&m| m == 0.0);
    let weight = |i: usize| if massless { 1.0 } else { mass[i] };
    let moments = blocked_sums(n, |i| moments(&position[i], weight(i)));
    let Some(center_of_mass) = center(moments) else { return Extent::default() };
    let square = |c: &[f64; 3], i: usize| distance2(c, &position[i]);
    let radius = (0..n).into_par_iter().map(|i| square(&center_of_mass, i)).reduce(|| 0.0, f64::max).sqrt();
    let density_center = if n > FEWEST {
        let all: Vec<[f64; 4]> =
            position.par_iter().enumerate().map(|(i, x)| [x[0], x[1], x[2], weight(i)]).collect_vec();
        densest(all, center_of_mass, radius)
    } else {
        center_of_mass
    };
    let mut by_distance: Vec<(f64, u32)> =
        (0..n as u32).into_par_iter().map(|i| (square(&density_center, i as usize), i)).collect_vec();
    let [total] = blocked_sums(n, |i| [weight(i)]);
    let lagrangian = SHARES.map(|share| holding(&mut by_distance, weight, reached(share, total)));
    Extent { center_of_mass, density_center, lagrangian }
}

/// What adds up to the center of mass: w x and w.
fn moments(x: &[f64; 3], w: f64) -> [f64; 4] {
    [w * x[0], w * x[1], w * x[2], w]
}

/// Inside a sphere there may be massless particles only.
fn center([x, y, z, m]: [f64; 4]) -> Option<[f64; 3]> {
    (m > 0.0).then(|| [x / m, y / m, z / m])
}

/// The center of the sphere that shrinks from `radius` about `center`, see [`SHRINK`], of places with weights.
fn densest(mut inside: Vec<[f64; 4]>, mut at: [f64; 3], mut radius: f64) -> [f64; 3] {
    let fewest = fewest(inside.len());
    // A radius of zero means that all are at one place.
    while radius > 0.0 {
        radius *= SHRINK;
        // What has been left outside stays there, even if the sphere moves over it.
        let sums: Vec<[f64; 5]> =
            inside.par_chunks_mut(BLOCK).map(|block| shrink(block, &at, radius * radius)).collect_vec();
        let [x, y, z, m, count] = sums.into_iter().fold([0.0; 5], |s, b| std::array::from_fn(|k| s[k] + b[k]));
        if count < fewest as f64 {
            break;
        }
        let Some(next) = center([x, y, z, m]) else { break };
        at = next;
        if count < 0.5 * inside.len() as f64 {
            inside.retain(|p| p[0] < OUTSIDE);
        }
    }
    at
}

/// Places whose moments are added up one after the other; blocks are added in their order.
const BLOCK: usize = 4096;

/// The coordinate of places outside.
const OUTSIDE: f64 = f64::INFINITY;

/// Marks the places that are not within √`r2` of `at`; returns the moments of the others and their number.
fn shrink(block: &mut [[f64; 4]], at: &[f64; 3], r2: f64) -> [f64; 5] {
    let mut sums = [0.0; 5];
    for p in block {
        let [x, y, z, w] = *p;
        let inside = distance2(at, &[x, y, z]) < r2;
        // Without a branch, whose way nothing foretells.
        let [mx, my, mz, m] = moments(&[x, y, z], w);
        let terms = [mx, my, mz, m, 1.0].map(|term| if inside { term } else { 0.0 });
        (0..5).for_each(|k| sums[k] += terms[k]);
        p[0] = if inside { x } else { OUTSIDE };
    }
    sums
}

/// The distance of the particle with which the weights in the order of distance reach `share`, from squares
/// of distances with the numbers of particles, whose order changes.
fn holding(by_distance: &mut [(f64, u32)], weight: impl Fn(usize) -> f64, share: f64) -> f64 {
    let (mut rest, mut below, mut last) = (by_distance, 0.0, 0.0);
    while rest.len() > 1 {
        let middle = rest.len() / 2;
        let order = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let (nearer, at, farther) = rest.select_nth_unstable_by(middle, order);
        let of_nearer = below + nearer.iter().map(|&(_, i)| weight(i as usize)).sum::<f64>();
        if of_nearer >= share {
            rest = nearer;
            continue;
        }
        below = of_nearer + weight(at.1 as usize);
        if below >= share {
            return at.0.sqrt();
        }
        // Sums of other orders may fall short of the share by their rounding: it is this particle then.
        (rest, last) = (farther, at.0);
    }
    rest.first().map_or(last, |&(r2, _)| r2).sqrt()
}

fn distance2(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|k| (a[k] - b[k]).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ball of radius 1 with its mass spread evenly, from a lattice.
    fn ball(center: [f64; 3], half: i32) -> Vec<[f64; 3]> {
        let side = || (-half..=half).map(move |i| f64::from(i) / f64::from(half));
        let lattice = side().flat_map(|x| side().flat_map(move |y| side().map(move |z| [x, y, z])));
        let inside = lattice.filter(|p| distance2(p, &[0.0; 3]) <= 1.0);
        inside.map(|p| std::array::from_fn(|k| p[k] + center[k])).collect()
    }

    #[test]
    fn radii_of_a_uniform_ball() {
        let points = ball([3.0, -1.0, 0.5], 20);
        let found = extent(&points, &vec![0.5; points.len()]);
        for k in 0..3 {
            assert!((found.center_of_mass[k] - [3.0, -1.0, 0.5][k]).abs() < 1e-12, "{found:?}");
        }
        // r(f) = f^(1/3).
        let about_the_middle = Extent { density_center: found.center_of_mass, ..found };
        assert!(distance2(&found.density_center, &about_the_middle.center_of_mass) < 1e-4, "{found:?}");
        for (r, f) in found.lagrangian.iter().zip(SHARES) {
            assert!((r - f.cbrt()).abs() < 0.03, "{found:?}");
        }
    }

    #[test]
    fn the_center_is_in_the_dense_part() {
        let mut points = ball([10.0, 0.0, 0.0], 10);
        let dense = points.len();
        points.extend(ball([0.0; 3], 8).into_iter().map(|p| p.map(|x| 9.0 * x)));
        let found = extent(&points, &vec![1.0; points.len()]);
        assert!(dense > 4000 && points.len() > dense + 2000);
        assert!(distance2(&found.density_center, &[10.0, 0.0, 0.0]) < 0.01, "{found:?}");
        assert!(found.center_of_mass[0] < 8.0, "{found:?}");
    }

    #[test]
    fn few_massless_and_coincident_particles() {
        assert_eq!(extent(&[], &[]), Extent::default());
        let one = extent(&[[1.0, 2.0, 3.0]], &[5.0]);
        assert_eq!((one.density_center, one.lagrangian), ([1.0, 2.0, 3.0], [0.0; 3]));
        // 1 and 3: the center of mass is at 0.75, from where 75 % are 0.25 away.
        let two = extent(&[[0.0; 3], [1.0, 0.0, 0.0]], &[1.0, 3.0]);
        assert_eq!((two.center_of_mass[0], two.lagrangian), (0.75, [0.25, 0.25, 0.75]));
        let massless = extent(&[[0.0; 3], [1.0, 0.0, 0.0]], &[0.0; 2]);
        assert_eq!((massless.center_of_mass[0], massless.lagrangian), (0.5, [0.5; 3]));
        let heap = extent(&[[7.0; 3]; 500], &[1.0; 500]);
        assert_eq!((heap.density_center, heap.lagrangian), ([7.0; 3], [0.0; 3]));
    }
}
