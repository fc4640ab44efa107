//! Looks for sets of particles on which a sum misses its tolerance although the guard says that it is kept.
//!
//! Random starts of many families, some with other targets than sources and some in a periodic box, then hill climbing:
//! bodies are moved, re-weighted, copied to where forces cancel; a change stays if the ratio of the true error (over all
//! targets, by direct sums) to the tolerance grows. Prints every new record, and at the end the distribution of ratios.
//!
//! Usage: `cargo run --release -p fmm --example worst_sets -- MINUTES [N] [SEED] [DEVICE] [FOLDER] [FAMILY]`
//!
//! DEVICE is `cpu`, the default, or `cuda`; the direct sums are those of the cores. With a folder every set that misses
//! goes there, a line x, y, z and strength for each body, those of strength 0 at the end being the targets. FAMILY is the
//! number of the only one that is to be looked at.

use std::f64::consts::TAU;
use std::time::{Duration, Instant};

use fmm::{Device, Kernel, Points as Bodies, Problem, Solver};
use fmm_core::{Boundary, Choice, Method, PeriodicBox, Precision, Settings};
use rand::{Rng, SeedableRng, rngs::StdRng};
use testkit::sets::*;

#[derive(Clone)]
struct Set {
    family: &'static str,
    points: Points,
    strengths: Vec<f64>,
    /// If they are not the sources.
    targets: Option<Points>,
    /// The side of the periodic box that it is in.
    side: Option<f64>,
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

    /// Adds a neutral molecule: 2, 4 or 8 charges at the corners of a box about `center`.
    fn molecule(&mut self, rng: &mut StdRng, charges: usize, center: [f64; 3], size: f64, q: f64) {
        let sides: [f64; 3] = std::array::from_fn(|_| size * (0.5 + rng.random::<f64>()));
        for corner in 0..charges {
            let x = std::array::from_fn(|d| center[d] + if corner >> d & 1 == 1 { 0.5 } else { -0.5 } * sides[d]);
            self.push(x, if corner.count_ones() % 2 == 0 { q } else { -q });
        }
    }

    /// Puts targets around it, or among it, in place of the sources.
    fn targets_elsewhere(&mut self, rng: &mut StdRng) {
        let count = rng.random_range(200..3000);
        let size = 10f64.powf(3.0 * rng.random::<f64>() - 1.0);
        let near = rng.random();
        let place = |rng: &mut StdRng| {
            let of = self.points[rng.random_range(0..self.points.len())];
            let (from, size) = if near { (of, 0.01 * size) } else { ([0.5; 3], size) };
            from.map(|c| c + size * (rng.random::<f64>() - 0.5))
        };
        self.targets = Some((0..count).map(|_| place(rng)).collect());
    }

    /// The largest error over the tolerance of a sum over it, and what was chosen.
    fn ratio(&self, solver: &mut Solver, settings: &Settings) -> Option<(f64, Choice)> {
        let boundary = self.side.map_or(Boundary::Open, |side| Boundary::Periodic(PeriodicBox::cube(side)));
        let settings = Settings { boundary, ..settings.clone() };
        let sample = self.targets.as_ref().unwrap_or(&self.points).len();
        let problem = Problem { settings, sample, ..Problem::new(Kernel::Laplace) };
        let columns: [&[f64]; 1] = [&self.strengths];
        let points = Bodies { targets: self.targets.as_deref(), ..Bodies::in_space(&self.points, &columns) };
        let sum = solver.evaluate(&problem, &points).ok()?;
        let errors = sum.errors?;
        let error = errors.rms.max(errors.l2).max(errors.potential.unwrap_or(0.0));
        Some((error / problem.settings.tolerance, sum.choice))
    }
}

/// Families of sets.
const FAMILIES: usize = 14;

/// A set of about `n` bodies of a family.
fn start(family: usize, n: usize, rng: &mut StdRng) -> Set {
    let seed = rng.random();
    let few = rng.random_range(1..30);
    let new =
        |family, points: Points| Set { family, strengths: vec![1.0; points.len()], points, targets: None, side: None };
    let spread = 10f64.powf(-2.0 * rng.random::<f64>());
    let away: [f64; 3] = [0; 3].map(|_| rng.random::<f64>() - 0.5);
    let size = 10f64.powf(-4.0 * rng.random::<f64>());
    match family {
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
        11 => {
            let (charges, light) = (1 << rng.random_range(1..4), rng.random_range(0..3));
            let decades = 9.0 * rng.random::<f64>();
            let mut set = new("neutral molecules", vec![]);
            for x in uniform(n / charges, seed) {
                let q = 10f64.powf(-decades * rng.random::<f64>());
                set.molecule(rng, charges, x, 0.1 * spread, q);
            }
            (0..light).for_each(|_| set.light(rng, few, [0.5; 3], 2.0));
            set
        }
        12 => {
            let cells = (n as f64 / 8.0).cbrt() as usize;
            let (points, strengths) = crystal(cells.max(1));
            let mut set = Set { strengths, ..new("crystal and what is around it", points) };
            set.light(rng, few, [0.5; 3], 3.0);
            set
        }
        _ => {
            let mut set = new("strengths over many decades", plummer(n, seed));
            set.strengths = (0..n)
                .map(|_| 10f64.powf(-8.0 * rng.random::<f64>()) * if few % 2 == 0 && rng.random() { -1.0 } else { 1.0 })
                .collect();
            set
        }
    }
}

/// What is asked for, with the least and the most digits: double precision, any, single, and both at once.
const ARITHMETIC: [(Precision, [f64; 2]); 4] = [
    (Precision::F64, [2.0, 10.0]),
    (Precision::Auto, [2.0, 10.0]),
    (Precision::Auto, [2.0, 5.0]),
    (Precision::Auto, [5.0, 6.0]),
];

/// Sets of fewer bodies may be in a box.
const MOST_IN_BOX: usize = 4000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let minutes: f64 = arguments.next().map_or(1.0, |a| a.parse().expect("minutes"));
    let most: usize = arguments.next().map_or(20_000, |a| a.parse().expect("a number of bodies"));
    let mut rng = StdRng::seed_from_u64(arguments.next().map_or(1, |a| a.parse().expect("a seed")));
    let device = arguments.next().map_or(Ok(Device::Cpu), |a| a.parse()).expect("cpu or cuda");
    let mut solver = Solver::new(device);
    let folder = arguments.next();
    let family: Option<usize> = arguments.next().map(|a| a.parse().expect("the number of a family"));
    if let Some(folder) = &folder {
        std::fs::create_dir_all(folder).expect("a folder that can be made");
    }
    let end = Instant::now() + Duration::from_secs_f64(60.0 * minutes);
    let (mut ratios, mut records) = (vec![], [0.0f64; 3]);
    while Instant::now() < end {
        let n = (2000.0 * (most as f64 / 2000.0).powf(rng.random())) as usize;
        let mut set = start(family.unwrap_or_else(|| rng.random_range(0..FAMILIES)), n, &mut rng);
        if rng.random_range(0..4) == 0 {
            set.targets_elsewhere(&mut rng);
        }
        // Ewald's sum over all targets takes long.
        if n < MOST_IN_BOX && rng.random_range(0..3) == 0 {
            set.side = Some(1.0 + rng.random::<f64>());
        }
        let other = if set.side.is_some() { Method::Mesh } else { Method::Direct };
        let method = [Method::Fmm, Method::Treecode, Method::Auto, Method::Fmm, other][rng.random_range(0..5)];
        let (precision, [least, most_digits]) = ARITHMETIC[rng.random_range(0..ARITHMETIC.len())];
        let tolerance = 10f64.powf(-least - (most_digits - least) * rng.random::<f64>());
        let settings = Settings { method, precision, tolerance, ..Settings::default() };
        let Some((mut best, mut choice)) = set.ratio(&mut solver, &settings) else { continue };
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
            if let Some((now, with)) = changed.ratio(&mut solver, &settings) {
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
                "{best:.3} {}, {} bodies, {} other targets, side {:?}, asked {tolerance:e} {method:?} {precision:?}: {choice:?}",
                set.family,
                set.points.len(),
                set.targets.as_ref().map_or(0, Vec::len),
                set.side,
            );
            if let Some(folder) = folder.as_ref().filter(|_| best > 1.0) {
                let targets = set.targets.iter().flatten().map(|x| (x, &0.0));
                let bodies = set.points.iter().zip(&set.strengths).chain(targets);
                let rows = bodies.map(|([x, y, z], q)| format!("{x},{y},{z},{q}\n"));
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
