//! The estimated error of every target of a sum in the plane against the true one.

use fmm_core::planar::{Blob, Kernel, evaluate};
use fmm_core::{Complex64, Evaluation, Method, Precision, Settings, StageTimes};
use testkit::planar::{complex, error_sets, errors, gamma, set, strengths, sum};
use testkit::ranks::correlation;

const KERNELS: [Kernel; 2] = [Kernel::Log, Kernel::Harmonic];

fn double() -> Settings {
    Settings { precision: Precision::F64, ..Settings::default() }
}

/// True over estimated errors of a sum by expansions, in the middle and at 98 %.
fn ratios(sum: impl Fn(Method) -> Evaluation<Complex64>) -> [f64; 2] {
    let (exact, found) = (sum(Method::Direct).field, sum(Method::Fmm));
    let off = found.field.iter().zip(&exact).map(|(a, b)| (a - b).norm());
    let mut ratios: Vec<f64> = off.zip(&found.error).map(|(off, error)| off / error).collect();
    ratios.sort_by(f64::total_cmp);
    [0.5, 0.98].map(|part| ratios[(part * ratios.len() as f64) as usize])
}

/// A complex normal number is within a factor of 4 of its root mean square in 94 % of all cases, a real
/// one in 80 %: errors on straight lines are real. At low orders all targets of a uniform set err
/// about equally, and ranks mean nothing.
#[test]
fn most_errors_in_the_plane_are_within_a_factor_of_four_of_their_estimate() {
    let (mut parts, mut count) = (0.0, 0.0);
    for (name, points, q) in error_sets(5000) {
        for kernel in KERNELS {
            let exact = sum(&Settings { method: Method::Direct, ..double() }, kernel, &points, &q, None).field;
            for (order, ranked) in [(4, 0.4), (8, 0.6), (12, 0.6), (17, 0.6)] {
                let (method, order, leaf_size) = (Method::Fmm, Some(order), Some(40));
                let settings = Settings { method, order, leaf_size, errors: true, ..double() };
                let found = sum(&settings, kernel, &points, &q, None);
                let off: Vec<f64> = found.field.iter().zip(&exact).map(|(a, b)| (a - b).norm()).collect();
                let close = off.iter().zip(&found.error).filter(|(o, e)| (0.25..4.0).contains(&(*o / *e))).count();
                let (part, ranks) = (close as f64 / off.len() as f64, correlation(&off, &found.error));
                println!("{name:22} {kernel:?} p {order:?}: {part:.3}, ranks {ranks:.2}");
                let curve = ["line", "diagonal ±", "circle", "circle ±"].contains(&name);
                // Lattices have 75 % at order 8, where their rows err alike.
                let least = match name {
                    "lattice" => 0.72,
                    _ if curve => 0.65,
                    _ => 0.78,
                };
                assert!(part >= least, "{name} {kernel:?} p {order:?}: {part}");
                assert!(ranks >= ranked, "{name} {kernel:?} p {order:?}: {ranks}");
                if !curve {
                    (parts, count) = (parts + part, count + 1.0);
                }
            }
        }
    }
    println!("all but lines and circles: {:.3}", parts / count);
    assert!(parts / count >= 0.92, "{}", parts / count);
}

#[test]
fn errors_in_the_plane_are_estimated_only_where_they_are_asked_for() {
    let (points, q) = (set("normal", 3000, 1), strengths(3000, 2));
    let others = set("uniform", 500, 3);
    for kernel in KERNELS {
        for method in [Method::Direct, Method::Fmm] {
            for precision in [Precision::F32, Precision::F64] {
                for targets in [None, Some(&others[..])] {
                    let settings = Settings { method, precision, tolerance: 1e-4, leaf_size: Some(40), ..double() };
                    let with = Settings { errors: true, ..settings.clone() };
                    let [without, with] = [settings, with].map(|s| sum(&s, kernel, &points, &q, targets));
                    assert!(without.error.is_empty() && with.error.len() == with.field.len());
                    assert!(
                        with.error.iter().all(|e| e.is_finite() && *e > 0.0),
                        "{kernel:?} {method:?} {precision:?}"
                    );
                    assert_eq!(without.field, with.field);
                    // Together they are about the error of the sum, which keeps its tolerance.
                    let squares = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>();
                    let size = squares(&mut with.field.iter().map(|f| f.norm()));
                    let l2 = (squares(&mut with.error.iter().copied()) / size).sqrt();
                    let e = errors(kernel, &with, &points, &q, None, targets, usize::MAX);
                    assert!(l2 < 1e-4 && e.l2 < 1e-4, "{kernel:?} {method:?} {precision:?}: {l2:e} {e:?}");
                    if method == Method::Fmm && precision == Precision::F64 {
                        assert!((0.5..2.0).contains(&(l2 / e.l2)), "{kernel:?} {precision:?}: {l2:e} {e:?}");
                    }
                }
            }
        }
    }
}

/// Where tolerances are tight, algebraic blobs that act as points make the error, at all targets about equally. Both
/// kernels have the same field.
#[test]
fn the_difference_of_blobs_from_points_is_estimated() {
    let (side, moved) = (70, set("uniform", 4900, 6));
    let place = |i: usize| [i % side, i / side];
    let grid: Vec<[f64; 2]> =
        (0..moved.len()).map(|i| [0, 1].map(|d| (place(i)[d] as f64 + 0.01 * moved[i][d]) / side as f64)).collect();
    let (grid, q) = (complex(&grid), gamma(&vec![1.0; moved.len()], None));
    for (kernel, blob, tolerance) in [
        (Kernel::Harmonic, Blob::Algebraic(2e-4), 1e-9),
        (Kernel::Harmonic, Blob::Algebraic(2e-3), 1e-6),
        (Kernel::Log, Blob::Algebraic(1e-3), 1e-8),
        (Kernel::Harmonic, Blob::Gaussian(5e-3), 1e-6),
    ] {
        let run = |method| {
            let settings = Settings { method, tolerance, leaf_size: Some(20), errors: true, ..double() };
            evaluate(&settings, kernel, blob, &grid, &q, None, &mut StageTimes::default()).unwrap()
        };
        let [half, most] = ratios(run);
        println!("{kernel:?} {blob:?}: {half:.2} {most:.2}");
        assert!(half > 0.1 && most < 8.0, "{kernel:?} {blob:?}: {half} {most}");
    }
}

/// Few targets far from all sources, in boxes whose centers lie next to the middle of what they hold: one estimate that
/// is far too large would take the factor that is common to all.
#[test]
fn estimates_far_from_all_sources_are_of_one_size() {
    for seed in 0..8 {
        let (angles, far) = (set("uniform", 5000, seed), set("uniform", 3000, 100 + seed));
        let turn = |x: f64| Complex64::from_polar(1.0, std::f64::consts::TAU * x);
        let circle: Vec<Complex64> = angles.iter().map(|a| turn(a[0])).collect();
        let q: Vec<Complex64> = circle.iter().map(|z| Complex64::from((4.0 * z.re).cos())).collect();
        let targets: Vec<Complex64> = far.iter().map(|a| (2.0 + 8.0 * a[1]) * turn(a[0])).collect();
        let run = |method| {
            let settings = Settings { method, tolerance: 1e-6, errors: true, ..double() };
            evaluate(&settings, Kernel::Log, Blob::Point, &circle, &q, Some(&targets), &mut StageTimes::default())
                .unwrap()
        };
        let [half, most] = ratios(run);
        println!("{seed}: {half:.2} {most:.2}");
        assert!(half > 0.1 && most < 10.0, "{seed}: {half} {most}");
    }
}

/// Lengths and strengths of other units, by powers of two: errors have the unit of the field.
#[test]
fn estimates_in_the_plane_have_the_unit_of_the_field() {
    let (points, q) = (set("layer", 3000, 4), strengths(3000, 5));
    let run = |length: f64, strength: f64| -> Evaluation<Complex64> {
        let places: Vec<[f64; 2]> = points.iter().map(|x| x.map(|c| c * length)).collect();
        let q: Vec<f64> = q.iter().map(|q| q * strength).collect();
        let settings = Settings { method: Method::Fmm, leaf_size: Some(40), errors: true, ..double() };
        let (places, q, times) = (complex(&places), gamma(&q, None), &mut StageTimes::default());
        evaluate(&settings, Kernel::Harmonic, Blob::Point, &places, &q, None, times).unwrap()
    };
    let one = run(1.0, 1.0);
    for (length, strength) in [(2f64.powi(-40), 1.0), (1.0, 2f64.powi(30)), (2f64.powi(300), 2f64.powi(-200))] {
        let other = run(length, strength);
        let unit = strength / length;
        let near = |(a, b): (&f64, &f64)| (a * unit / b - 1.0).abs() < 1e-9;
        assert!(one.error.iter().zip(&other.error).all(near), "{length:e} {strength:e}");
    }
}

/// Fields on curves nearly cancel at some targets, and their errors are those of a few neighbors.
#[test]
fn sums_on_curves_in_the_plane_keep_their_tolerance() {
    let mut worst = 0.0f64;
    for (name, points, q) in error_sets(4000) {
        if !["line", "diagonal ±", "circle", "circle ±", "spiral", "ring"].contains(&name) {
            continue;
        }
        for kernel in KERNELS {
            for tolerance in [1e-2, 1e-3, 1e-4, 1e-6, 1e-8] {
                let settings = Settings { method: Method::Fmm, tolerance, leaf_size: Some(30), ..Settings::default() };
                let found = sum(&settings, kernel, &points, &q, None);
                let e = errors(kernel, &found, &points, &q, None, None, usize::MAX);
                assert!(e.l2 <= tolerance, "{name} {kernel:?} {tolerance:e}: {e:?}, {:?}", found.choice);
                worst = worst.max(e.l2 / tolerance);
            }
        }
    }
    println!("largest: {worst:.2} tolerances");
}
