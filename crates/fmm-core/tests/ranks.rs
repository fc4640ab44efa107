//! Sums of several ranks have the bits of a single process.

use fmm_core::comm::{Comm, run};
use fmm_core::expansion::Count;
use fmm_core::ranks::{Ranks, Traffic, execute, share};
use fmm_core::solve::Evaluation;
use fmm_core::tree::Cube;
use fmm_core::{
    Choice, Error, Family, Method, PeriodicBox, Precision, Settings, Softening, StageTimes, Uniform, evaluate,
};
use testkit::sets::*;

/// The sum of all ranks, or the error that all of them give.
fn of_ranks(
    size: usize,
    settings: &Settings,
    position: &[[f64; 3]],
    strength: &[f64],
) -> Result<(Evaluation, Vec<Traffic>), Error> {
    let parts = run(size, |comm| {
        let own = share(position.len(), comm.rank(), size);
        let mut ranks = Ranks::new(comm);
        let times = &mut StageTimes::default();
        ranks.evaluate(settings, &position[own.clone()], &strength[own], times).map(|sum| (sum, ranks.traffic()))
    });
    let parts = parts.expect("no rank aborts");
    if let Some(error) = parts.iter().find_map(|part| part.as_ref().err()) {
        // By their text: what is no number is not equal to itself.
        let same = |part: &Result<_, Error>| part.as_ref().err().map(text) == Some(text(error));
        assert!(parts.iter().all(same), "all ranks give the same error");
        return Err(error.clone());
    }
    let (sums, traffic): (Vec<_>, Vec<_>) = parts.into_iter().flatten().unzip();
    assert!(sums.iter().all(|s| (&s.choice, s.coincident_pairs) == (&sums[0].choice, sums[0].coincident_pairs)));
    let whole = Evaluation {
        potential: sums.iter().flat_map(|s| s.potential.iter().copied()).collect(),
        field: sums.iter().flat_map(|s| s.field.iter().copied()).collect(),
        error: sums.iter().flat_map(|s| s.error.iter().copied()).collect(),
        choice: sums[0].choice.clone(),
        coincident_pairs: sums[0].coincident_pairs,
    };
    Ok((whole, traffic))
}

fn text(error: &Error) -> String {
    format!("{error:?}")
}

/// All bits of a sum.
fn bits(sum: &Evaluation) -> Vec<u64> {
    let values = sum.potential.iter().chain(sum.field.as_flattened()).chain(&sum.error);
    values.map(|x| x.to_bits()).collect()
}

fn check(what: &str, settings: &Settings, position: &[[f64; 3]], strength: &[f64], sizes: &[usize]) {
    let expected = evaluate(settings, position, strength, None, &mut StageTimes::default());
    for &size in sizes {
        match (&expected, of_ranks(size, settings, position, strength)) {
            (Ok(expected), Ok((found, _))) => {
                assert_eq!(found.choice, expected.choice, "{what}, {size} ranks");
                assert_eq!(found.coincident_pairs, expected.coincident_pairs, "{what}, {size} ranks");
                assert!(bits(&found) == bits(expected), "{what}: {size} ranks differ from a single process");
            }
            (Err(expected), found) => {
                assert_eq!(found.err().as_ref().map(text), Some(text(expected)), "{what}, {size} ranks")
            }
            (_, Err(error)) => panic!("{what}, {size} ranks: {error}"),
        }
    }
}

fn sets(n: usize) -> [(&'static str, Vec<[f64; 3]>); 5] {
    let mut coincident = uniform(n / 2, 4);
    coincident.extend(vec![[0.5; 3]; n - n / 2]);
    [
        ("uniform", uniform(n, 1)),
        ("Plummer", plummer(n, 2)),
        ("two clusters", two_clusters(n, 20.0, 3)),
        ("coincident", coincident),
        ("sphere", sphere_surface(n, 5)),
    ]
}

#[test]
fn any_number_of_ranks_has_the_bits_of_a_single_process() {
    for (name, position) in sets(40_000) {
        let strength = vec![1.0 / 40_000.0; position.len()];
        for (method, precision, tolerance, ranks) in [
            (Method::Fmm, Precision::F32, 1e-3, &[3][..]),
            (Method::Fmm, Precision::F64, 1e-5, &[1, 2, 8]),
            (Method::Fmm, Precision::Mixed, 1e-5, &[5]),
            (Method::Treecode, Precision::F64, 1e-5, &[4]),
        ] {
            let settings = Settings { method, precision, tolerance, errors: true, ..Settings::default() };
            check(&format!("{name} {method:?} {precision:?}"), &settings, &position, &strength, ranks);
        }
    }
}

#[test]
fn charges_and_softenings_have_the_bits_of_a_single_process() {
    let position = plummer(20_000, 7);
    let charges = alternating(position.len());
    for softening in [
        Softening::None,
        Softening::Plummer(0.02),
        Softening::Spline(0.05),
        Softening::P1(0.02),
        Softening::Yukawa(2.0),
    ] {
        for method in [Method::Auto, Method::Fmm, Method::Treecode] {
            let settings = Settings { softening, method, tolerance: 1e-4, ..Settings::default() };
            check(&format!("{softening:?} {method:?}"), &settings, &position, &charges, &[3]);
        }
    }
}

#[test]
fn settings_that_are_given_have_the_bits_of_a_single_process() {
    let position = two_clusters(20_000, 20.0, 9);
    let strength: Vec<f64> = (0..position.len()).map(|i| 1.0 + (i % 7) as f64).collect();
    let given = [
        Settings { order: Some(6), errors: true, ..Settings::default() },
        Settings { order: Some(3), theta: Some(0.4), leaf_size: Some(5), ..Settings::default() },
        Settings { uniform: Some(Uniform { depth: 4, separation: 2 }), ..Settings::default() },
        Settings { leaf_size: Some(700), tolerance: 1e-7, ..Settings::default() },
    ];
    for settings in given {
        let settings = Settings { method: Method::Fmm, ..settings };
        check(&format!("{settings:?}"), &settings, &position, &strength, &[2, 5]);
    }
}

#[test]
fn a_tolerance_that_the_first_choice_misses_is_kept_with_the_same_bits() {
    // Forces in a crystal cancel: choices are made anew, targets summed again, or all of them directly.
    let (position, strength) = crystal(20);
    for tolerance in [1e-3, 1e-6] {
        let settings = Settings { method: Method::Fmm, tolerance, errors: true, ..Settings::default() };
        check(&format!("crystal {tolerance:e}"), &settings, &position, &strength, &[3]);
    }
    let ring: Vec<[f64; 3]> = (0..20_000).map(|i| (i as f64 * 3.1e-4).sin_cos()).map(|(s, c)| [s, c, 0.0]).collect();
    let settings = Settings { tolerance: 1e-4, errors: true, ..Settings::default() };
    check("ring", &settings, &ring, &vec![1.0; ring.len()], &[2]);
}

#[test]
fn few_particles_on_many_ranks() {
    for n in [0, 1, 2, 3, 7, 100, 1500] {
        let position = uniform(n, n as u64);
        let strength = vec![1.0; n];
        for method in [Method::Auto, Method::Direct, Method::Fmm] {
            let settings = Settings { method, errors: true, ..Settings::default() };
            check(&format!("{n} particles, {method:?}"), &settings, &position, &strength, &[1, 3, 8]);
        }
    }
    let direct = Settings { method: Method::Direct, precision: Precision::F32, ..Settings::default() };
    let position = plummer(20_000, 1);
    check("direct", &direct, &position, &vec![1.0; 20_000], &[3]);
}

#[test]
fn scales_far_apart_and_deep_trees_have_the_bits_of_a_single_process() {
    let deep: Vec<[f64; 3]> = around_the_origin(20_000, |n, u| (-30.0 * u * n as f64 / n.max(1) as f64).exp());
    let far = two_clusters(20_000, 1e9, 3);
    for (name, position) in [("deep", deep), ("far apart", far)] {
        let settings = Settings { method: Method::Fmm, tolerance: 1e-4, ..Settings::default() };
        check(name, &settings, &position, &vec![1.0; position.len()], &[4]);
    }
}

#[test]
fn all_ranks_refuse_what_a_single_process_refuses() {
    let settings = Settings::default();
    let (mut position, mut strength) = (uniform(40_000, 1), vec![1.0; 40_000]);
    position[39_000][1] = f64::NAN;
    position[20_000][2] = f64::INFINITY;
    check("not finite", &settings, &position, &strength, &[3]);
    position = uniform(40_000, 1);
    strength[17_000] = f64::NAN;
    check("strength", &settings, &position, &strength, &[3]);
    strength[17_000] = 1.0;
    position[39_999][0] = 1e101;
    check("magnitude", &settings, &position, &strength, &[3]);
    position[39_999] = [1e-150, 0.0, 0.0];
    position[3] = [0.0; 3];
    check("distance", &settings, &position, &strength, &[3]);
    let settings = Settings { tolerance: 0.5, ..settings };
    check("range", &settings, &uniform(10, 1), &[1.0; 10], &[2]);
    let boxed = Settings { boundary: fmm_core::Boundary::Periodic(PeriodicBox::cube(2.0)), ..Settings::default() };
    assert!(matches!(of_ranks(2, &boxed, &[], &[]), Err(Error::Unsupported(_))));
    let uneven = run(2, |comm| {
        let own = if comm.rank() == 0 { 7 } else { 3 };
        Ranks::new(comm).evaluate(
            &Settings::default(),
            &vec![[0.0; 3]; own],
            &vec![1.0; own],
            &mut StageTimes::default(),
        )
    });
    assert!(uneven.expect("no abort").iter().all(|e| matches!(e, Err(Error::Shape { .. }))));
}

#[test]
fn work_is_shared_evenly() {
    for (name, position) in [("Plummer", plummer(60_000, 1)), ("two clusters", two_clusters(60_000, 20.0, 2))] {
        let settings = Settings { method: Method::Fmm, tolerance: 1e-3, ..Settings::default() };
        for size in [2, 4] {
            let (_, traffic) = of_ranks(size, &settings, &position, &vec![1.0; position.len()]).unwrap();
            let largest = traffic.iter().map(|t| t.share).fold(0.0, f64::max);
            assert!(largest < 1.06 && largest == traffic[0].largest_share, "{name}, {size} ranks: {traffic:?}");
            // And no rank has all.
            assert!(traffic.iter().all(|t| t.body_bytes / 32 + t.targets < position.len()), "{traffic:?}");
        }
    }
}

#[test]
fn every_target_sees_every_source_once_on_any_number_of_ranks() {
    let settings = Settings::default();
    for ((name, position), method) in
        sets(3000).iter().flat_map(|s| [Method::Direct, Method::Treecode, Method::Fmm].map(|m| (s, m)))
    {
        for (leaf_size, theta, size) in [(1, 0.87, 3), (8, 0.87, 8), (8, 0.5, 2), (100, 0.7, 5)] {
            let choice = Choice {
                method,
                precision: Precision::F64,
                expansion: Some(Family::Spherical),
                order: Some(4),
                theta: Some(theta),
                leaf_size,
            };
            let counts = run(size, |comm| {
                let own = share(position.len(), comm.rank(), size);
                let points = (&position[own.clone()], &vec![1.0; own.len()][..]);
                let count = |cube: &Cube<3>| (Count { side: cube.side }, Count { side: cube.side });
                execute::<f64, _, _>(comm, (&settings, &choice), points, count).unwrap()
            });
            let counts = counts.unwrap().concat();
            assert_eq!(counts.len(), position.len());
            let others = position.len() as f64 - 1.0;
            let what = format!("{name}: {method:?} θ = {theta}, leaf {leaf_size}, {size} ranks");
            assert!(counts.iter().all(|c| c.potential == others), "{what}");
        }
    }
}
