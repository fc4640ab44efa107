//! The center of density, and the radii around it that hold given shares of the mass, as [`fmm_core::totals`] defines them.

use fmm_core::totals::{Extent, FEWEST, SHARES, SHRINK, fewest, reached};
use rayon::prelude::*;

use fmm_core::math::{CollectVec, blocked_sums};

/// Of particles at `position` with `mass`, N of each.
pub fn extent(position: &[[f64; 3]], mass: &[f64]) -> Extent {
    let n = position.len();
    if n == 0 {
        return Extent::default();
    }
    // Particles without any mass count alike.
    let massless = mass.iter().all(|&m| m == 0.0);
    let weight = |i: usize| if massless { 1.0 } else { mass[i] };
    let center = |of: &[u32]| {
        let [x, y, z, m] = blocked_sums(of.len(), |k| {
            let (i, w) = (of[k] as usize, weight(of[k] as usize));
            [w * position[i][0], w * position[i][1], w * position[i][2], w]
        });
        // Inside a sphere there may be massless particles only.
        (m > 0.0).then(|| [x / m, y / m, z / m])
    };
    let mut inside: Vec<u32> = (0..n as u32).collect();
    let Some(center_of_mass) = center(&inside) else { return Extent::default() };
    let mut density_center = center_of_mass;
    let square = |c: &[f64; 3], i: u32| distance2(c, &position[i as usize]);
    let mut radius = inside.par_iter().map(|&i| square(&center_of_mass, i)).reduce(|| 0.0, f64::max).sqrt();
    let fewest = fewest(n);
    // A radius of zero means that all are at one place.
    while n > FEWEST && radius > 0.0 {
        radius *= SHRINK;
        let within: Vec<u32> =
            inside.par_iter().copied().filter(|&i| square(&density_center, i) < radius * radius).collect();
        if within.len() < fewest {
            break;
        }
        // What has been left outside stays there, so that every pass is cheaper than the one before.
        inside = within;
        let Some(next) = center(&inside) else { break };
        density_center = next;
    }
    let mut by_distance: Vec<(f64, u32)> =
        (0..n as u32).into_par_iter().map(|i| (square(&density_center, i), i)).collect_vec();
    by_distance.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let total: f64 = by_distance.iter().map(|&(_, i)| weight(i as usize)).sum();
    let (mut sum, mut next, mut lagrangian) = (0.0, 0, [0.0; SHARES.len()]);
    for &(r2, i) in &by_distance {
        sum += weight(i as usize);
        while next < SHARES.len() && sum >= reached(SHARES[next], total) {
            lagrangian[next] = r2.sqrt();
            next += 1;
        }
    }
    Extent { center_of_mass, density_center, lagrangian }
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
