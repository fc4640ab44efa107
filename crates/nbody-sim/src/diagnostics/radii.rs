//! The center of density, and the radii around it that hold given shares of the mass, as [`fmm_core::totals`] defines them.

use fmm_core::comm::{self, Comm, blocked_sums, gathered};
use fmm_core::math::CollectVec;
use fmm_core::totals::{Extent, FEWEST, SHARES, SHRINK, fewest, reached};
use rayon::prelude::*;

/// Of the particles of all ranks; `position` and `mass` are those at home on this one.
pub fn extent(comm: &dyn Comm, position: &[[f64; 3]], mass: &[f64]) -> Extent {
    let here = position.len();
    let mut counts = [here as u64, u64::from(mass.iter().any(|&m| m != 0.0))];
    comm.sum(&mut counts);
    let (n, massless) = (counts[0] as usize, counts[1] == 0);
    if n == 0 {
        return Extent::default();
    }
    // Particles without any mass count alike.
    let weight = |i: usize| if massless { 1.0 } else { mass[i] };
    let moments = blocked_sums(comm, here, |i| moments(&position[i], weight(i)));
    let Some(center_of_mass) = center(moments) else { return Extent::default() };
    let square = |c: &[f64; 3], i: usize| distance2(c, &position[i]);
    let largest = |value: &(dyn Fn(usize) -> f64 + Sync)| {
        comm::max(comm, (0..here).into_par_iter().map(value).reduce(|| 0.0, f64::max))
    };
    let density_center = if n > FEWEST {
        let places: Vec<[f64; 4]> =
            position.par_iter().enumerate().map(|(i, x)| [x[0], x[1], x[2], weight(i)]).collect_vec();
        let radius = largest(&|i| square(&center_of_mass, i)).sqrt();
        densest(comm, places.chunks(BLOCK).map(<[_]>::to_vec).collect(), (center_of_mass, radius), fewest(n))
    } else {
        center_of_mass
    };
    let heaviest = largest(&weight);
    let by_distance: Vec<[u64; 2]> = (0..here)
        .into_par_iter()
        .map(|i| [square(&density_center, i).to_bits(), (weight(i) / heaviest * HEAVIEST) as u64])
        .collect_vec();
    let total: u128 = weights(comm, &by_distance, |_| 0, 1)[0];
    let lagrangian = SHARES.map(|share| holding(comm, &by_distance, reached(share, total as f64) as u128));
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

/// The center of the sphere that shrinks from its radius about its center, see [`SHRINK`], as long as it holds the `fewest`
/// places. They are in blocks, with weights.
fn densest(
    comm: &dyn Comm,
    mut inside: Vec<Vec<[f64; 4]>>,
    (mut at, mut radius): ([f64; 3], f64),
    fewest: usize,
) -> [f64; 3] {
    // A radius of zero means that all are at one place.
    while radius > 0.0 {
        radius *= SHRINK;
        // What has been left outside stays there, even if the sphere moves over it.
        let sums: Vec<[f64; 5]> = inside.par_iter_mut().map(|block| shrink(block, &at, radius * radius)).collect_vec();
        let sums = gathered(comm, &sums);
        let [x, y, z, m, count] = sums.into_iter().fold([0.0; 5], |s, b| std::array::from_fn(|k| s[k] + b[k]));
        if count < fewest as f64 {
            break;
        }
        let Some(next) = center([x, y, z, m]) else { break };
        at = next;
    }
    at
}

/// Places whose moments are added up one after the other; blocks are added in their order.
const BLOCK: usize = 4096;

/// The coordinate of places outside.
const OUTSIDE: f64 = f64::INFINITY;

/// Takes out the places that are not within √`r2` of `at`; returns the moments of the others and their number.
fn shrink(block: &mut Vec<[f64; 4]>, at: &[f64; 3], r2: f64) -> [f64; 5] {
    let mut sums = [0.0; 5];
    for p in &mut *block {
        let [x, y, z, w] = *p;
        let inside = distance2(at, &[x, y, z]) < r2;
        // Without a branch, whose way nothing foretells.
        let [mx, my, mz, m] = moments(&[x, y, z], w);
        let terms = [mx, my, mz, m, 1.0].map(|term| if inside { term } else { 0.0 });
        (0..5).for_each(|k| sums[k] += terms[k]);
        p[0] = if inside { x } else { OUTSIDE };
    }
    // Later than at once: places are moved a few times in all. No sum depends on it.
    if sums[4] < 0.5 * block.len() as f64 {
        block.retain(|p| p[0] < OUTSIDE);
    }
    sums
}

/// The weight of the heaviest particle as a whole number. Sums of whole numbers do not depend on their order.
const HEAVIEST: f64 = (1u64 << 63) as f64;

/// The bits of a number that are looked at together.
const DIGIT: u32 = 8;

/// The sums of the weights of all ranks, of each of `bins`.
fn weights(comm: &dyn Comm, of: &[[u64; 2]], bin: impl Fn(u64) -> usize + Sync, bins: usize) -> Vec<u128> {
    let of_chunk = |chunk: &[[u64; 2]]| {
        let mut sums = vec![0u128; bins];
        chunk.iter().for_each(|&[r2, weight]| sums[bin(r2)] += u128::from(weight));
        sums
    };
    let added = |mut a: Vec<u128>, b: Vec<u128>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let sums = of.par_chunks(1 << 16).map(of_chunk).reduce(|| vec![0; bins], added);
    // Ranks add numbers of 64 bits: in parts of 32, which have room for the sums of as many ranks.
    let mut parts: Vec<u64> = sums.iter().flat_map(|s| [0, 32, 64].map(|at| (s >> at) as u64 & 0xffff_ffff)).collect();
    comm.sum(&mut parts);
    parts.chunks_exact(3).map(|p| (0..3).map(|k| u128::from(p[k]) << (32 * k)).sum()).collect()
}

/// The distance of the particle with which the weights in the order of distance reach `goal`, from the bits of the squares of
/// distances, which are ordered as the squares are, with weights.
fn holding(comm: &dyn Comm, by_distance: &[[u64; 2]], goal: u128) -> f64 {
    let (mut rest, mut below, mut found) = (by_distance.to_vec(), 0, 0);
    for shift in (0..u64::BITS).step_by(DIGIT as usize).rev() {
        let digit_of = |r2: u64| (r2 >> shift) as usize & ((1 << DIGIT) - 1);
        let weights = weights(comm, &rest, digit_of, 1 << DIGIT);
        let reaches = |&digit: &usize| below + weights[..=digit].iter().sum::<u128>() >= goal;
        let digit = (0..weights.len() - 1).find(reaches).unwrap_or(weights.len() - 1);
        below += weights[..digit].iter().sum::<u128>();
        rest.retain(|&[r2, _]| digit_of(r2) == digit);
        found |= (digit as u64) << shift;
    }
    f64::from_bits(found).sqrt()
}

fn distance2(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|k| (a[k] - b[k]).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use fmm_core::comm::{Solo, run};
    use fmm_core::ranks::share;

    use super::*;

    /// Of particles that are all in one place.
    fn extent(position: &[[f64; 3]], mass: &[f64]) -> Extent {
        super::extent(&Solo, position, mass)
    }

    #[test]
    fn extents_have_the_same_bits_for_any_number_of_ranks() {
        let n = 50_000;
        let x: Vec<[f64; 3]> = (0..n).map(|i| [0.618, 0.755, 0.569].map(|a| (i as f64 * a).fract().powi(3))).collect();
        let mass: Vec<f64> = (0..n).map(|i| 1.0 + (i as f64 * 0.37).sin()).collect();
        let whole = extent(&x, &mass);
        assert!(whole.density_center != whole.center_of_mass);
        for size in [2, 3, 5] {
            let parts = run(size, |comm| {
                let own = share(n, comm.rank(), size);
                super::extent(comm, &x[own.clone()], &mass[own])
            });
            assert_eq!(parts, Ok(vec![whole; size]));
        }
    }

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
