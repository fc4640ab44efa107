//! Looks for sets of particles on which a sum misses its tolerance although the guard says that it is kept.
//!
//! Random starts of a dozen families, then hill climbing: bodies are moved, re-weighted, copied to
//! where forces cancel; a change stays if the ratio of the true error (over all targets, by direct
//! sums) to the tolerance grows. Prints every new record, and at the end the distribution of ratios.
//!
//! Usage: `cargo run --release -p fmm --example worst_sets -- MINUTES [N] [SEED] [DEVICE] [FOLDER]`
//!
//! DEVICE is `cpu`, the default, or `cuda`; the direct sums are those of the cores. With a folder every set that misses goes there, a line x, y, z and strength for each body.

use std::f64::consts::TAU;
use std::time::{Duration, Instant};

use fmm::{Device, Kernel, Points as Bodies, Problem, Solver};
use fmm_core::{Choice, Method, Precision, Settings, cpu::direct_field};
use rand::{Rng, SeedableRng, rngs::StdRng};
use testkit::sets::*;

#[derive(Clone)]
struct Set {
    family: &'static str,
    points: Points,
    strengths: Vec<f64>,
}

impl Set {
    fn push(&mut self, x: [f64; 3], q: f64) {
        self.points.push(x);
        self.strengths.push(q);
    }

    /// Adds light bodies within `size` of `center`.
    fn light(&mut self, rng: &mut StdRng, count: usize, center: [f64; 3], size: f64) {
        let q = 10f64.powf(-12.0 * rng.random::<f64>());
        for _ in 0..count {
            self.push(center.map(|c| c + size * (rng.random::<f64>() - 0.5)), q);
        }
    }
}

/// A set of about `n` bodies.
fn start(n: usize, rng: &mut StdRng) -> Set {
    let seed = rng.random();
    let few = rng.random_range(1..30);
    let new = |family, points: Points| Set { family, strengths: vec![1.0; points.len()], points };
    let spread = 10f64.powf(-2.0 * rng.random::<f64>());
    let away: [f64; 3] = [0; 3].map(|_| rng.random::<f64>() - 0.5);
    let size = 10f64.powf(-4.0 * rng.random::<f64>());
    match rng.random_range(0..12) {
        0 => {
            let mut x: Points =
                plummer(n / 2, seed).iter().map(|x| [0, 1, 2].map(|d| away[d] + 0.3 * spread * x[d])).collect();
            x.extend(x.clone().iter().map(|x| x.map(|c| -c)));
            let mut set = new("mirrored clusters with light bodies", x);
            set.light(rng, few, [0.0; 3], size);
            set
        }
        1 => {
            let mut set = new("shell with bodies inside", sphere_surface(n, seed));
            set.light(rng, few, [0.0; 3], size.max(0.1));
            set
        }
        2 => {
            let at = |u: &[f64; 3]| [(TAU * u[0]).cos(), (TAU * u[0]).sin(), 1e-3 * u[1]];
            let mut set = new("ring with bodies at its center", uniform(n, seed).iter().map(at).collect());
            set.light(rng, few, [0.0; 3], size);
            set
        }
        3 => new("line", uniform(n, seed).iter().map(|u| [u[0], away[1] * u[0], away[2] * u[0]]).collect()),
        4 => new("plane", uniform(n, seed).iter().map(|u| [u[0], u[1], away[2] * u[0]]).collect()),
        5 => new("circle", uniform(n, seed).iter().map(|u| [(TAU * u[0]).cos(), (TAU * u[0]).sin(), 0.0]).collect()),
        6 => {
            let mut set = new("charges", uniform(n, seed));
            set.strengths = alternating(n);
            set
        }
        7 => {
            let mut set = new("cloud with a far outlier", plummer(n, seed));
            set.light(rng, few, away.map(|a| a / size), 1.0);
            set
        }
        8 => {
            let mut set = new("one heavy body in dust", uniform(n, seed));
            set.push([0.5 + size * away[0], 0.5, 0.5], n as f64 / spread);
            set
        }
        9 => {
            let side = (n as f64).cbrt() as usize;
            let places = (0..side.pow(3))
                .map(|k| [k % side, k / side % side, k / side / side].map(|c| c as f64 + size * rng.random::<f64>()));
            let mut set = new("lattice", places.collect());
            if few % 2 == 0 {
                set.strengths = alternating(set.points.len());
            }
            set
        }
        10 => new("two clusters", two_clusters(n, 3.0 / spread, seed)),
        _ => {
            let mut set = new("strengths over many decades", plummer(n, seed));
            set.strengths = (0..n)
                .map(|_| 10f64.powf(-8.0 * rng.random::<f64>()) * if few % 2 == 0 && rng.random() { -1.0 } else { 1.0 })
                .collect();
            set
        }
    }
}

/// The larger of rms and L2 over all targets, over the tolerance, and what was chosen.
fn ratio(solver: &mut Solver, set: &Set, settings: &Settings) -> Option<(f64, Choice)> {
    let problem = Problem { settings: settings.clone(), ..Problem::new(Kernel::Laplace) };
    let sum = solver.evaluate(&problem, &Bodies::in_space(&set.points, &[&set.strengths])).ok()?;
    let exact = direct_field(settings.softening, &set.points, &set.strengths, &set.points);
    let square = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>();
    let (mut relative, mut wrong, mut right, mut floors) = (0.0, 0.0, 0.0, 0.0);
    for (found, (field, largest)) in sum.field.iter().zip(&exact) {
        let delta = square([0, 1, 2].map(|d| found[d] - field[d]));
        let floor = (1e-3 * largest).powi(2);
        relative += if delta > 0.0 { delta / square(*field).max(floor) } else { 0.0 };
        wrong += delta;
        right += square(*field);
        floors += floor;
    }
    let error = (relative / exact.len() as f64).max(wrong / right.max(floors)).sqrt();
    Some((error / settings.tolerance, sum.choice))
}

/// What is asked for, with the least and the most digits: double precision, any, single, and both at once.
const ARITHMETIC: [(Precision, [f64; 2]); 4] = [
    (Precision::F64, [2.0, 10.0]),
    (Precision::Auto, [2.0, 10.0]),
    (Precision::Auto, [2.0, 5.0]),
    (Precision::Auto, [5.0, 6.0]),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let minutes: f64 = arguments.next().map_or(1.0, |a| a.parse().expect("minutes"));
    let most: usize = arguments.next().map_or(20_000, |a| a.parse().expect("a number of bodies"));
    let mut rng = StdRng::seed_from_u64(arguments.next().map_or(1, |a| a.parse().expect("a seed")));
    let device = arguments.next().map_or(Ok(Device::Cpu), |a| a.parse()).expect("cpu or cuda");
    let mut solver = Solver::new(device);
    let folder = arguments.next();
    if let Some(folder) = &folder {
        std::fs::create_dir_all(folder).expect("a folder that can be made");
    }
    let end = Instant::now() + Duration::from_secs_f64(60.0 * minutes);
    let (mut ratios, mut records) = (vec![], [0.0f64; 3]);
    while Instant::now() < end {
        let n = (2000.0 * (most as f64 / 2000.0).powf(rng.random())) as usize;
        let mut set = start(n, &mut rng);
        let method = [Method::Fmm, Method::Treecode, Method::Auto, Method::Fmm][rng.random_range(0..4)];
        let (precision, [least, most_digits]) = ARITHMETIC[rng.random_range(0..ARITHMETIC.len())];
        let tolerance = 10f64.powf(-least - (most_digits - least) * rng.random::<f64>());
        let settings = Settings { method, precision, tolerance, ..Settings::default() };
        let Some((mut best, mut choice)) = ratio(&mut solver, &set, &settings) else { continue };
        ratios.push(best);
        let steps = if best > 0.5 { 12 } else { 2 };
        for _ in 0..steps {
            let mut changed = set.clone();
            for _ in 0..rng.random_range(1..=1 + changed.points.len() / 50) {
                let i = rng.random_range(0..changed.points.len());
                let j = rng.random_range(0..changed.points.len());
                match rng.random_range(0..4) {
                    0 => changed.points[i] = [0, 1, 2].map(|d| 0.5 * (set.points[i][d] + set.points[j][d])),
                    1 => changed.strengths[i] *= 10f64.powf(rng.random::<f64>() - 0.5),
                    2 => changed.points[i] = set.points[i].map(|c| c + 0.02 * (rng.random::<f64>() - 0.5)),
                    _ => changed.points[i] = set.points[j].map(|c| c + 1e-4 * (rng.random::<f64>() - 0.5)),
                }
            }
            if Instant::now() > end {
                break;
            }
            if let Some((now, with)) = ratio(&mut solver, &changed, &settings) {
                ratios.push(now);
                if now > best {
                    (best, choice, set) = (now, with, changed);
                }
            }
        }
        let kind = match choice.precision {
            Precision::F32 => 0,
            Precision::Mixed => 1,
            Precision::Auto | Precision::F64 => 2,
        };
        if best > records[kind] || best > 1.0 {
            records[kind] = records[kind].max(best);
            println!(
                "{best:.3} {}, {} bodies, asked {tolerance:e} {method:?} {precision:?}: {choice:?}",
                set.family,
                set.points.len()
            );
            if let Some(folder) = folder.as_ref().filter(|_| best > 1.0) {
                let rows = set.points.iter().zip(&set.strengths).map(|([x, y, z], q)| format!("{x},{y},{z},{q}\n"));
                let file = format!("{folder}/{}-{}.csv", set.family.replace(' ', "-"), ratios.len());
                std::fs::write(file, rows.collect::<String>()).expect("a folder that can be written");
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    let at = |part: f64| ratios[((ratios.len() - 1) as f64 * part) as usize];
    println!(
        "{} sums: median {:.2}, 90 % {:.2}, 99 % {:.2}, largest {:.3}",
        ratios.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    let [single, mixed, double] = records;
    println!("largest in single precision {single:.3}, with both {mixed:.3}, in double {double:.3}");
}
