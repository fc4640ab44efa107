//! The sums in the plane: accuracy of every order and of the tolerance, special sets, the same bits.

use fmm_core::planar::{Blob, Kernel, Lists, Pyramid, Rule, evaluate};
use fmm_core::{Complex64, Error, Method, Precision, Settings, StageTimes};
use testkit::planar::{complex, errors, gamma, reference, set, strengths, sum};

fn fmm() -> Settings {
    Settings { method: Method::Fmm, precision: Precision::F64, ..Settings::default() }
}

fn order(p: usize) -> Settings {
    Settings { order: Some(p), leaf_size: Some(72), ..fmm() }
}

/// Within a factor of 2 of errors that were measured elsewhere with θ = 1/2, 20,000 points and N_d = 45.
#[test]
fn errors_by_order() {
    let n = 20_000;
    let (few, all) = (&[6, 12, 24][..], &[4, 6, 8, 10, 12, 14, 17, 20, 24, 28][..]);
    let orders = if std::env::var_os("ALL_ORDERS").is_some() { all } else { few };
    let tables: [(&str, [f64; 10]); 3] = [
        ("uniform", [1.2e-3, 1.3e-4, 1.8e-5, 2.5e-6, 4.0e-7, 6.7e-8, 5.6e-9, 4.1e-10, 1.4e-11, 6.0e-13]),
        ("normal", [1.7e-3, 2.2e-4, 3.5e-5, 6.3e-6, 1.1e-6, 2.0e-7, 1.6e-8, 1.5e-9, 5.3e-11, 2.4e-12]),
        ("layer", [1.2e-3, 1.4e-4, 2.2e-5, 3.5e-6, 5.7e-7, 1.1e-7, 9.1e-9, 9.0e-10, 3.9e-11, 2.0e-12]),
    ];
    for (name, table) in tables {
        let (points, q) = (set(name, n, 1), strengths(n, 2));
        for &p in orders {
            let sum = sum(&order(p), Kernel::Harmonic, &points, &q, None);
            let e = errors(Kernel::Harmonic, &sum, &points, &q, None, None, 4000);
            let expected = table[all.iter().position(|&o| o == p).unwrap()];
            assert!(e.l2 < 2.0 * expected && e.l2 > 0.1 * expected, "{name}, order {p}: {e:?}, expected {expected:e}");
        }
    }
}

#[test]
fn the_last_digits() {
    for name in ["uniform", "normal", "layer"] {
        let (points, q) = (set(name, 5000, 3), strengths(5000, 4));
        for kernel in [Kernel::Log, Kernel::Harmonic] {
            let sum = sum(&Settings { leaf_size: Some(20), ..order(36) }, kernel, &points, &q, None);
            let e = errors(kernel, &sum, &points, &q, None, None, 5000);
            assert!(e.l2 < 6e-14 && e.max < 3e-11 && e.potential < 2e-14, "{name} {kernel:?}: {e:?}");
        }
    }
}

/// Lines, circles, points at one place, distant clusters, each with 1,000 and more points, compared
/// with direct sums of the formula.
#[test]
fn special_sets() {
    let u: Vec<f64> = strengths(2000, 12);
    let line = |f: &dyn Fn(f64) -> [f64; 2]| u.iter().map(|&t| f(t)).collect::<Vec<_>>();
    let mut cases = vec![
        ("horizontal line", line(&|t| [t, 0.25])),
        ("vertical line", line(&|t| [-3.0, t])),
        ("diagonal", line(&|t| [t, 1e-3 * t])),
        ("circle", line(&|t| [(7.0 * t).cos(), (7.0 * t).sin()])),
        ("small", line(&|t| [1e-30 * t, 1e-30 * (37.0 * t).sin()])),
        ("large", line(&|t| [1e30 * t, 1e30 * (37.0 * t).sin()])),
        ("far away", line(&|t| [1e6 + t, (37.0 * t).sin()])),
        ("towards a point", line(&|t| [(-30.0 * t).exp(), t * (-30.0 * t).exp()])),
        ("lattice", (0..2025).map(|i| [f64::from(i % 45), f64::from(i / 45)]).collect()),
        ("two clusters", line(&|t| [if t > 0.0 { 1e9 } else { 0.0 } + t, (37.0 * t).sin()])),
        ("halves at one place", line(&|t| if t > 0.0 { [0.5, 0.5] } else { [t, (37.0 * t).sin()] })),
        ("few places", line(&|t| [(3.0 * t).round(), (t * 31.0).sin().round()])),
        ("a pair closer than all", line(&|t| [t, (37.0 * t).sin()])),
    ];
    let last = cases.len() - 1;
    cases[last].1[1] = [cases[last].1[0][0] + 1e-13, cases[last].1[0][1]];
    for (name, points) in &cases {
        let q = strengths(points.len(), 13);
        for kernel in [Kernel::Log, Kernel::Harmonic] {
            for (precision, tolerance) in [(Precision::F64, 1e-8), (Precision::F32, 1e-3)] {
                let settings = Settings { tolerance, precision, leaf_size: Some(20), ..fmm() };
                let sum = sum(&settings, kernel, points, &q, None);
                let e = errors(kernel, &sum, points, &q, None, None, points.len());
                assert!(e.l2 <= tolerance && e.potential < tolerance, "{name} {kernel:?} {precision:?}: {e:?}");
            }
        }
    }
}

/// Cells that are so much smaller than their distance from others that single precision, and for the last of these sets
/// double precision too, has no squares of that distance in their unit.
#[test]
fn cells_of_all_sizes() {
    let (u, q) = (strengths(10_000, 21), strengths(10_000, 22));
    for (precision, power) in [(Precision::F32, 8), (Precision::F64, 8), (Precision::F64, 80)] {
        let points: Vec<[f64; 2]> =
            u.iter().map(|u| (u.abs().powi(power), 41.0 * u)).map(|(r, a)| [r * a.cos(), r * a.sin()]).collect();
        let settings = Settings { precision, ..order(6) };
        let (fast, direct) = (
            sum(&Settings { leaf_size: Some(20), ..settings }, Kernel::Log, &points, &q, None),
            sum(&Settings { method: Method::Direct, order: None, ..order(6) }, Kernel::Log, &points, &q, None),
        );
        let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
        let off: Vec<f64> = fast.potential.iter().zip(&direct.potential).map(|(a, b)| a - b).collect();
        let error = (square(&off) / square(&direct.potential)).sqrt();
        println!("{precision:?}, {power}: {error:e}");
        assert!(error < 1e-4, "{precision:?}, {power}: {error:e}");
    }
}

#[test]
fn none_one_and_two_points() {
    for kernel in [Kernel::Log, Kernel::Harmonic] {
        for method in [Method::Auto, Method::Direct, Method::Fmm] {
            let settings = Settings { method, leaf_size: Some(1), ..Settings::default() };
            assert!(sum(&settings, kernel, &[], &[], None).field.is_empty());
            assert_eq!(sum(&settings, kernel, &[], &[], Some(&[[1.0, 2.0]])).field, [Complex64::ZERO]);
            assert_eq!(sum(&settings, kernel, &[[3.0, 4.0]], &[5.0], None).field, [Complex64::ZERO]);
            let two = sum(&settings, kernel, &[[1.0, 0.0], [1.0, 2.0]], &[1.0, 10.0], None);
            // e = −q d/r², Φ = Γ/(z_j − z).
            let expected = if kernel == Kernel::Log { [[0.0, 5.0], [0.0, -0.5]] } else { [[0.0, -5.0], [0.0, 0.5]] };
            assert_eq!(two.field, complex(&expected), "{kernel:?} {method:?}");
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let (points, q) = (set("normal", 20_000, 14), strengths(20_000, 15));
    for kernel in [Kernel::Log, Kernel::Harmonic] {
        for precision in [Precision::F32, Precision::F64] {
            let settings = Settings { precision, tolerance: 1e-3, ..fmm() };
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let e = pool.install(|| sum(&settings, kernel, &points, &q, None));
                let bits: Vec<[u64; 2]> = e.field.iter().map(|f| [f.re.to_bits(), f.im.to_bits()]).collect();
                (bits, e.potential.iter().map(|p| p.to_bits()).collect::<Vec<_>>())
            };
            let one = run(1);
            assert!([2, 3, 7].into_iter().all(|threads| run(threads) == one), "{kernel:?} {precision:?}");
        }
    }
}

/// Every target must see every source exactly once, by whichever operator.
#[test]
fn every_pair_is_in_one_list() {
    let sets = ["uniform", "normal", "layer"];
    for (name, other) in sets.iter().zip(["uniform", "layer", "normal"]) {
        for same in [true, false] {
            let (points, others) = (set(name, 1500, 16), set(other, 900, 17));
            let targets = Pyramid::new(&points, 1.0, 4);
            let sources = if same { targets.clone() } else { Pyramid::new(&others, 1.0, 4) };
            for (theta, min_distance) in [(0.5, 0.0), (0.3, 0.0), (0.5, 0.1)] {
                let lists =
                    Lists::between_pyramids(&targets, &sources, Rule { theta, min_distance, swap_min_points: 1 });
                let mut seen = vec![0u32; points.len() * sources.order.len()];
                let rows = [&lists.m2l, &lists.m2p, &lists.p2l, &lists.p2p];
                for cell in 0..targets.len() {
                    for &source in rows.iter().flat_map(|r| r.row(cell)) {
                        for i in targets.range(cell) {
                            for j in sources.range(source as usize) {
                                seen[i * sources.order.len() + j] += 1;
                            }
                        }
                    }
                }
                assert!(seen.iter().all(|&n| n == 1), "{name} {theta}");
                assert!(!lists.m2l.is_empty() && !lists.p2p.is_empty());
                if min_distance == 0.0 && !same {
                    assert!(!lists.m2p.is_empty() && !lists.p2l.is_empty(), "{name} {theta}");
                }
            }
        }
    }
}

/// Many points at the edge of a leaf, in leaves of their own whose size is negligible compared with
/// it.
#[test]
fn leaves_at_the_edge_of_others_are_not_seen_as_expansions() {
    let mut points: Vec<[f64; 2]> = (0..6400).map(|i| [f64::from(i % 80), f64::from(i / 80) - 40.0]).collect();
    points.extend([[7.0, 0.0]; 300]);
    let q = strengths(points.len(), 5);
    let settings = Settings {
        method: Method::Fmm,
        order: Some(12),
        leaf_size: Some(12),
        precision: Precision::F64,
        ..Settings::default()
    };
    let found = sum(&settings, Kernel::Log, &points, &q, None);
    let e = errors(Kernel::Log, &found, &points, &q, None, None, 400);
    assert!(e.l2 < 1e-5 && e.potential < 1e-5, "{e:?}");
}

#[test]
fn swapped_roles_keep_the_order() {
    let (points, q) = (set("uniform", 4000, 18), strengths(4000, 19));
    // A hundred points in a corner of a leaf: small boxes next to large ones.
    let mut points = points;
    for (k, x) in points.iter_mut().take(2000).enumerate() {
        *x = [0.5 + 1e-4 * (k as f64).sin(), 0.5 + 1e-4 * (1.7 * k as f64).cos()];
    }
    for kernel in [Kernel::Log, Kernel::Harmonic] {
        let sum = sum(&Settings { leaf_size: Some(80), ..order(18) }, kernel, &points, &q, None);
        let e = errors(kernel, &sum, &points, &q, None, None, 4000);
        assert!(e.l2 < 1e-7 && e.potential < 1e-7, "{kernel:?}: {e:?}");
    }
}

#[test]
fn blobs() {
    let (points, q) = (set("normal", 6000, 20), strengths(6000, 21));
    for blob in [Blob::Algebraic(1e-3), Blob::Gaussian(5e-3)] {
        for kernel in [Kernel::Log, Kernel::Harmonic] {
            let (places, s) = (complex(&points), gamma(&q, None));
            let settings = Settings { tolerance: 1e-7, ..fmm() };
            let run = |settings: &Settings| {
                evaluate(settings, kernel, blob, &places, &s, None, &mut StageTimes::default()).unwrap()
            };
            let (fast, direct) = (run(&settings), run(&Settings { method: Method::Direct, ..settings.clone() }));
            // Else the guard would have seen blobs that are taken for points.
            assert_eq!(fast.choice.method, Method::Fmm, "{blob:?}");
            let (mut wrong, mut right, mut pwrong, mut pright) = (0.0, 0.0, 0.0, 0.0);
            for i in 0..points.len() {
                wrong += (fast.field[i] - direct.field[i]).norm_sqr();
                right += direct.field[i].norm_sqr();
                if kernel == Kernel::Log {
                    pwrong += (fast.potential[i] - direct.potential[i]).powi(2);
                    pright += direct.potential[i].powi(2);
                }
            }
            assert!((wrong / right).sqrt() < 1e-7, "{blob:?} {kernel:?}: {:e}", (wrong / right).sqrt());
            assert!(pwrong <= 1e-14 * pright, "{blob:?}: {pwrong:e} of {pright:e}");
            // The direct sum, against one that is written as the formulas stand.
            for i in [0, 17, 4711] {
                let (mut potential, mut g) = (0.0, [0.0; 2]);
                for j in (0..points.len()).filter(|&j| j != i) {
                    let d = [points[i][0] - points[j][0], points[i][1] - points[j][1]];
                    let r2 = d[0] * d[0] + d[1] * d[1];
                    let (f, log) = match blob {
                        Blob::Algebraic(e) => {
                            let s = r2 + e * e;
                            ((r2 + 2.0 * e * e) / (s * s), 0.5 * s.ln() - 0.5 * e * e / s)
                        }
                        Blob::Gaussian(s) => {
                            let x = r2 / (2.0 * s * s);
                            (-(-x).exp_m1() / r2, 0.5 * r2.ln() + 0.5 * e1(x))
                        }
                        Blob::Point => (1.0 / r2, 0.5 * r2.ln()),
                    };
                    potential += q[j] * log;
                    g = [g[0] + q[j] * f * d[0], g[1] - q[j] * f * d[1]];
                }
                let expected = if kernel == Kernel::Log { [-g[0], g[1]] } else { [-g[0], -g[1]] };
                let e = (direct.field[i].re - expected[0]).hypot(direct.field[i].im - expected[1]);
                assert!(e < 1e-11 * g[0].hypot(g[1]), "{blob:?} {kernel:?} {i}: {e:e}");
                if kernel == Kernel::Log {
                    let e = (direct.potential[i] - potential).abs();
                    assert!(e < 1e-11 * potential.abs().max(1.0), "{blob:?} {i}: {e:e}");
                }
            }
        }
    }
}

/// ∫_x^∞ e^(−t)/t dt by the substitution t = x e^s and the trapezoidal rule, which doubles its digits with every step.
fn e1(x: f64) -> f64 {
    if x > 700.0 {
        return 0.0;
    }
    let f = |s: f64| (-x * s.exp()).exp();
    let h = 1e-3f64;
    // The half line begins at s = 0: Euler and Maclaurin's terms of its end, f' = −x f, f''' = −x (1 − 3x + x²) f.
    let mut sum = 0.5 * f(0.0);
    let mut k = 1.0f64;
    while x * (k * h).exp() < 740.0 {
        sum += f(k * h);
        k += 1.0;
    }
    let slope = -x * (-x).exp();
    let third = -x * (1.0 - 3.0 * x + x * x) * (-x).exp();
    h * sum + h * h / 12.0 * slope - h.powi(4) / 720.0 * third
}

#[test]
fn what_cannot_be_is_told() {
    let (points, q) = (set("uniform", 10, 22), strengths(10, 23));
    let run = |settings: &Settings, kernel, blob, imaginary| {
        evaluate(settings, kernel, blob, &complex(&points), &gamma(&q, imaginary), None, &mut StageTimes::default())
    };
    let settings = Settings::default();
    assert!(matches!(run(&settings, Kernel::Log, Blob::Point, Some(&q)), Err(Error::Unsupported(_))));
    let short = evaluate(
        &settings,
        Kernel::Harmonic,
        Blob::Point,
        &complex(&points),
        &gamma(&q[..9], None),
        None,
        &mut StageTimes::default(),
    );
    assert!(matches!(short, Err(Error::Shape { expected: 10, found: 9, .. })));
    assert!(matches!(run(&settings, Kernel::Log, Blob::Gaussian(-1.0), None), Err(Error::Range { .. })));
    let treecode = Settings { method: Method::Treecode, ..settings.clone() };
    assert!(matches!(run(&treecode, Kernel::Log, Blob::Point, None), Err(Error::Unsupported(_))));
    let single = Settings { precision: Precision::F32, tolerance: 1e-9, ..settings.clone() };
    assert!(matches!(run(&single, Kernel::Log, Blob::Point, None), Err(Error::Unsupported(_))));
    for order in [0, 61] {
        let settings = Settings { order: Some(order), ..settings.clone() };
        assert!(matches!(run(&settings, Kernel::Log, Blob::Point, None), Err(Error::Range { what: "order", .. })));
    }
    let mut bad = points.clone();
    bad[3][1] = f64::NAN;
    let (bad, q) = (complex(&bad), gamma(&q, None));
    let e = evaluate(&settings, Kernel::Log, Blob::Point, &bad, &q, None, &mut StageTimes::default());
    assert!(matches!(e, Err(Error::NotFinite { index: 3, .. })));
    assert_eq!(reference(Kernel::Harmonic, [0.0; 2], &[[0.0; 2]], &[1.0], None).1, [0.0; 2]);
}

/// Two patches of vortices that merge, by the classical Runge-Kutta scheme with the fast multipole method.
#[test]
fn vortices_keep_their_invariants() {
    use std::f64::consts::{PI, TAU};
    let each = 300;
    let circulation = vec![PI / each as f64; 2 * each];
    let place = |k: usize, x: f64| {
        let (r, angle) = (((k as f64 + 0.5) / each as f64).sqrt(), 2.399_963_229_728_653 * k as f64);
        [x + r * angle.cos(), r * angle.sin()]
    };
    let mut x: Vec<[f64; 2]> = (0..2 * each).map(|k| place(k % each, if k < each { -1.3 } else { 1.3 })).collect();
    let settings = Settings { tolerance: 1e-11, leaf_size: Some(20), ..fmm() };
    let motion = |x: &[[f64; 2]]| {
        let e = sum(&settings, Kernel::Log, x, &circulation, None);
        assert_eq!(e.choice.method, Method::Fmm);
        let energy: f64 = e.potential.iter().zip(&circulation).map(|(p, c)| -p * c / (2.0 * TAU)).sum();
        (e.field.iter().map(|e| [e.im / TAU, -e.re / TAU]).collect::<Vec<_>>(), energy)
    };
    let moved = |x: &[[f64; 2]], v: &[[f64; 2]], h: f64| -> Vec<[f64; 2]> {
        x.iter().zip(v).map(|(x, v)| [x[0] + h * v[0], x[1] + h * v[1]]).collect()
    };
    let moments = |x: &[[f64; 2]]| {
        let sum = |f: fn(&[f64; 2]) -> f64| x.iter().zip(&circulation).map(|(x, c)| c * f(x)).sum::<f64>();
        [sum(|x| x[0]), sum(|x| x[1]), sum(|x| x[0] * x[0] + x[1] * x[1])]
    };
    let (energy, begun, h) = (motion(&x).1, moments(&x), 0.05);
    for _ in 0..40 {
        let a = motion(&x).0;
        let b = motion(&moved(&x, &a, 0.5 * h)).0;
        let c = motion(&moved(&x, &b, 0.5 * h)).0;
        let d = motion(&moved(&x, &c, h)).0;
        let mean = |i: usize| [0, 1].map(|k| (a[i][k] + 2.0 * b[i][k] + 2.0 * c[i][k] + d[i][k]) / 6.0);
        x = moved(&x, &(0..x.len()).map(mean).collect::<Vec<_>>(), h);
    }
    let now = moments(&x);
    assert!((motion(&x).1 / energy - 1.0).abs() < 1e-8, "{} of {energy}", motion(&x).1);
    assert!((now[0] - begun[0]).hypot(now[1] - begun[1]) < 1e-9 && (now[2] / begun[2] - 1.0).abs() < 1e-8, "{now:?}");
    // They did move.
    assert!((x[0][0] + 1.3).hypot(x[0][1]) > 0.3, "{:?}", x[0]);
}
