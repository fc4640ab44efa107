//! Degenerate inputs are ordinary inputs: each set goes through `nbody eval` as CSV, comes out finite, within the
//! tolerance, in single and in double precision, and in about the time of a uniform set.

use std::f64::consts::TAU;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::Value;

const N: usize = 10_000;

type Set = Vec<[f64; 4]>;

/// What the command measured.
#[derive(Debug)]
struct Measured {
    code: i32,
    told: String,
    seconds: f64,
    check: Value,
}

/// Sums a set through the command, and sees that every row is there and finite.
fn eval(set: &[[f64; 4]], options: &str) -> Measured {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "x,y,z,q\n".to_string();
    for [x, y, z, q] in set {
        writeln!(text, "{x:e},{y:e},{z:e},{q:e}").unwrap();
    }
    fs::write(folder.path().join("s.csv"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nbody"));
    command.current_dir(folder.path()).args(["eval", "--sources", "s.csv", "--json", "--output", "o.csv"]);
    let out = command.arg("--check").args(options.split_whitespace()).output().unwrap();
    let told = String::from_utf8_lossy(&out.stderr).into_owned();
    let json: Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
    if !json.is_null() {
        let rows = fs::read_to_string(folder.path().join("o.csv")).unwrap();
        let finite = |row: &str| row.split(',').all(|v| v.parse::<f64>().unwrap().is_finite());
        assert!(rows.lines().skip(1).all(finite) && rows.lines().count() == set.len() + 1);
    }
    Measured {
        code: out.status.code().unwrap_or(-1),
        told,
        seconds: json["seconds"]["evaluate"].as_f64().unwrap_or(f64::NAN),
        check: json["check"].clone(),
    }
}

/// The two contracts of the test: single precision as chosen, and double.
const ASKED: [&str; 2] = ["--tolerance 1e-3", "--tolerance 1e-6 --precision f64"];

/// Both contracts are kept, and neither takes more than ten times a uniform set's time.
fn kept(name: &str, set: Set) {
    let uniform = uniform(set.len());
    for options in ASKED {
        let m = eval(&set, options);
        println!("{name:>20} {options:<34} {:.3} s {}", m.seconds, m.check);
        assert_eq!(m.code, 0, "{name} {options}: {m:?}");
        // Other tests share the cores: only what is slow again and again is slow.
        let slow = || eval(&set, options).seconds > 10.0 * eval(&uniform, options).seconds + 0.05;
        assert!(m.seconds < 0.1 || !(0..3).all(|_| slow()), "{name} {options}: {} s", m.seconds);
    }
}

fn rng() -> StdRng {
    StdRng::seed_from_u64(20)
}

fn set(n: usize, mut particle: impl FnMut(usize, &mut StdRng) -> [f64; 4]) -> Set {
    let mut rng = rng();
    (0..n).map(|i| particle(i, &mut rng)).collect()
}

fn uniform(n: usize) -> Set {
    set(n, |_, r| [r.random(), r.random(), r.random(), 1.0])
}

fn direction(r: &mut StdRng) -> [f64; 3] {
    let c = 2.0 * r.random::<f64>() - 1.0;
    let (f, s) = (r.random::<f64>() * TAU, (1.0 - c * c).sqrt());
    [s * f.cos(), s * f.sin(), c]
}

/// The same set, shifted and scaled.
fn moved(set: Set, shift: f64, scale: f64) -> Set {
    set.into_iter().map(|[x, y, z, q]| [shift + scale * x, shift + scale * y, shift + scale * z, q]).collect()
}

#[test]
fn none_one_and_two() {
    for n in [0, 1, 2] {
        kept("few", uniform(n));
    }
    for place in [[0.0; 3], [1e12, -3.0, 1e-8]] {
        let [x, y, z] = place;
        kept("one", vec![[x, y, z, 2.0]]);
        kept("two at one place", vec![[x, y, z, 2.0], [x, y, z, -1.0]]);
    }
}

#[test]
fn all_on_a_line() {
    kept("axis", set(N, |_, r| [r.random(), 0.0, 0.0, 1.0]));
    kept(
        "oblique line",
        set(N, |_, r| {
            let t: f64 = r.random();
            [t, -2.0 * t, 0.3 * t, 1.0]
        }),
    );
}

#[test]
fn all_in_a_plane() {
    kept("plane", set(N, |_, r| [r.random(), r.random(), 0.5, 1.0]));
    kept("flat box", set(N, |_, r| [61.0 * r.random::<f64>(), 61.0 * r.random::<f64>(), r.random(), 1.0]));
}

#[test]
fn all_on_a_sphere() {
    kept(
        "sphere",
        set(N, |_, r| {
            let [x, y, z] = direction(r);
            [x, y, z, 1.0]
        }),
    );
}

#[test]
fn all_at_one_point() {
    kept("one point", vec![[0.1, 0.2, 0.3, 1.0]; 20_000]);
    kept("the origin", vec![[0.0, 0.0, 0.0, 1.0]; 20_000]);
}

#[test]
fn half_at_one_point() {
    kept(
        "half at one point",
        set(N, |i, r| if i % 2 == 0 { [0.1, 0.2, 0.3, 1.0] } else { [r.random(), r.random(), r.random(), 1.0] }),
    );
}

#[test]
fn a_geometric_series() {
    // 200 to the octave on a line: neighbours differ by a 288th of their distance from the origin.
    kept("geometric", set(N, |i, _| [(-(i as f64) / 200.0).exp2(), 0.0, 0.0, 1.0]));
    kept("powers of two", set(51, |i, _| [(-(i as f64)).exp2(), 0.0, 0.0, 1.0]));
}

#[test]
fn exponentially_concentrated() {
    kept(
        "exp(-30u)",
        set(N, |_, r| {
            let radius = (-30.0 * r.random::<f64>()).exp();
            let [x, y, z] = direction(r).map(|c| radius * c);
            [x, y, z, 1.0]
        }),
    );
}

#[test]
fn clusters_far_apart() {
    kept(
        "1e9 apart",
        set(N, |i, r| {
            let shift = if i % 2 == 0 { 0.0 } else { 1e9 };
            [shift + r.random::<f64>(), r.random(), r.random(), 1.0]
        }),
    );
}

#[test]
fn coordinates_of_any_size() {
    for (name, shift, scale) in [("around 1e6", 1e6, 1.0), ("1e-8", 0.0, 1e-8), ("1e12", 0.0, 1e12)] {
        kept(name, moved(uniform(N), shift, scale));
    }
    // Seven digits are left between neighbours.
    kept("around 1e12", moved(uniform(N), 1e12, 1e6));
    kept("1e20", moved(uniform(N), 0.0, 1e20));
    kept("1e-25", moved(uniform(N), 0.0, 1e-25));
}

#[test]
fn masses_of_zero() {
    kept("half massless", set(N, |i, r| [r.random(), r.random(), r.random(), (i % 2) as f64]));
    kept("all massless", set(N, |_, r| [r.random(), r.random(), r.random(), 0.0]));
}

#[test]
fn no_net_charge() {
    kept("neutral", set(N, |i, r| [r.random(), r.random(), r.random(), if i % 2 == 0 { 1.0 } else { -1.0 }]));
    // Dipoles: each charge beside its opposite.
    let mut last = [0.0; 3];
    kept(
        "dipoles",
        set(N, |i, r| {
            if i % 2 == 0 {
                last = [r.random(), r.random(), r.random()];
                [last[0], last[1], last[2], 1.0]
            } else {
                [last[0] + 1e-4, last[1], last[2], -1.0]
            }
        }),
    );
}

#[test]
fn strengths_of_any_size() {
    kept("q around 1e-30", set(N, |_, r| [r.random(), r.random(), r.random(), 1e-30 * r.random::<f64>()]));
    kept("q up to 1e30", set(N, |_, r| [r.random(), r.random(), r.random(), (60.0 * r.random::<f64>() - 30.0).exp()]));
}

#[test]
fn closer_than_any_key() {
    // Pairs that differ by one unit in the last place.
    kept(
        "1 ulp",
        set(N, |i, r| {
            let x = (i / 2) as f64 / N as f64 + 0.25;
            let x = if i % 2 == 0 { x } else { x.next_up() };
            [x, ((i / 2) as f64 * 0.618).fract(), ((i / 2) as f64 * 0.732).fract(), r.random()]
        }),
    );
}
