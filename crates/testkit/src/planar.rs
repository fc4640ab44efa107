//! Sets in the plane, sums in it as the formulas stand, and the norms of their errors.

use fmm_core::planar::{Blob, Kernel};
use fmm_core::{Complex64, Evaluation, Settings, StageTimes};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Positions. `[n]`
pub type Points = Vec<[f64; 2]>;

fn normal(rng: &mut StdRng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// The sets of Goude & Engblom: the unit square; a normal distribution around its middle, σ = 0.1;
/// a layer that is uniform in x and normal in y, σ = 0.1. The normal distribution and the layer are
/// restricted to the square.
pub fn set(name: &str, n: usize, seed: u64) -> Points {
    let mut rng = StdRng::seed_from_u64(seed);
    let inside = |rng: &mut StdRng| loop {
        let y = 0.5 + 0.1 * normal(rng);
        if (0.0..=1.0).contains(&y) {
            return y;
        }
    };
    (0..n)
        .map(|_| match name {
            "normal" => [inside(&mut rng), inside(&mut rng)],
            "layer" => [rng.random(), inside(&mut rng)],
            _ => [rng.random(), rng.random()],
        })
        .collect()
}

/// Uniform in [−1, 1].
pub fn strengths(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..n).map(|_| 2.0 * rng.random::<f64>() - 1.0).collect()
}

/// Points as complex numbers.
pub fn complex(points: &[[f64; 2]]) -> Vec<Complex64> {
    points.iter().map(|&[re, im]| Complex64 { re, im }).collect()
}

/// Strengths as complex numbers.
pub fn gamma(q: &[f64], qi: Option<&[f64]>) -> Vec<Complex64> {
    (0..q.len()).map(|i| Complex64 { re: q[i], im: qi.map_or(0.0, |qi| qi[i]) }).collect()
}

/// A sum that keeps what each addition rounds off (Neumaier): 20,000 terms of either sign round to 1e-14 of their sum without.
#[derive(Clone, Copy, Default)]
struct Exact {
    sum: f64,
    lost: f64,
}

impl Exact {
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        self.lost += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    fn value(self) -> f64 {
        self.sum + self.lost
    }
}

/// Potential and field (log), or Φ (harmonic), pair by pair as the formulas stand.
pub fn reference(kernel: Kernel, x: [f64; 2], sources: &[[f64; 2]], q: &[f64], qi: Option<&[f64]>) -> (f64, [f64; 2]) {
    let (mut potential, mut field) = (Exact::default(), [Exact::default(); 2]);
    for (j, y) in sources.iter().enumerate() {
        let d = [x[0] - y[0], x[1] - y[1]];
        let r2 = d[0] * d[0] + d[1] * d[1];
        if r2 == 0.0 {
            continue;
        }
        let (g, h) = (q[j], qi.map_or(0.0, |qi| qi[j]));
        match kernel {
            Kernel::Log => {
                potential.add(0.5 * g * r2.ln());
                (0..2).for_each(|k| field[k].add(-(g * d[k] / r2)));
            }
            // Γ/(z_j − z) = −(g + ih)(dx − i dy)/r²
            Kernel::Harmonic => {
                field[0].add(-(g * d[0] + h * d[1]) / r2);
                field[1].add(-(h * d[0] - g * d[1]) / r2);
            }
        }
    }
    (potential.value(), field.map(Exact::value))
}

/// Relative L2 of potential and field, and the largest relative error of a field (Eq. 5.3 of the paper).
#[derive(Debug, Clone, Copy)]
pub struct Errors {
    /// L2 of the field.
    pub l2: f64,
    /// 99 % of the relative errors are at most this.
    pub p99: f64,
    /// The largest relative error.
    pub max: f64,
    /// L2 of the potential.
    pub potential: f64,
}

/// The errors of `sum` at about `sample` targets.
///
/// # Panics
/// If a field is no number.
pub fn errors(
    kernel: Kernel,
    sum: &Evaluation<Complex64>,
    sources: &[[f64; 2]],
    q: &[f64],
    qi: Option<&[f64]>,
    targets: Option<&[[f64; 2]]>,
    sample: usize,
) -> Errors {
    let targets = targets.unwrap_or(sources);
    let (mut wrong, mut right, mut pwrong, mut pright) = (0.0, 0.0, 0.0, 0.0);
    let mut all = vec![];
    for i in (0..targets.len()).step_by((targets.len() / sample).max(1)) {
        let (p, f) = reference(kernel, targets[i], sources, q, qi);
        let e = (sum.field[i].re - f[0]).powi(2) + (sum.field[i].im - f[1]).powi(2);
        let size = f[0] * f[0] + f[1] * f[1];
        assert!(e.is_finite(), "target {i}: {:?} for {f:?}", sum.field[i]);
        all.push(if e == 0.0 { 0.0 } else { (e / size).sqrt() });
        wrong += e;
        right += size;
        if kernel == Kernel::Log {
            pwrong += (sum.potential[i] - p).powi(2);
            pright += p * p;
        }
    }
    all.sort_by(f64::total_cmp);
    let ratio = |a: f64, b: f64| if a == 0.0 { 0.0 } else { (a / b).sqrt() };
    Errors {
        l2: ratio(wrong, right),
        p99: all[(all.len() - 1) * 99 / 100],
        max: all[all.len() - 1],
        potential: ratio(pwrong, pright),
    }
}

/// The sum on the cores.
///
/// # Panics
/// If it is refused.
pub fn sum(
    settings: &Settings,
    kernel: Kernel,
    points: &[[f64; 2]],
    q: &[f64],
    targets: Option<&[[f64; 2]]>,
) -> Evaluation<Complex64> {
    let (points, targets) = (complex(points), targets.map(complex));
    let (q, times) = (gamma(q, None), &mut StageTimes::default());
    fmm_core::planar::evaluate(settings, kernel, Blob::Point, &points, &q, targets.as_deref(), times).unwrap()
}

/// Sets of all kinds with strengths, to compare estimated errors of targets with true ones: name, points, strengths.
pub fn error_sets(n: usize) -> Vec<(&'static str, Points, Vec<f64>)> {
    let (tau, ones, mut rng) = (std::f64::consts::TAU, vec![1.0; n], StdRng::seed_from_u64(31));
    let u: Vec<f64> = (0..n).map(|_| rng.random()).collect();
    let signs: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let on = |f: &dyn Fn(f64) -> [f64; 2]| -> Points { u.iter().map(|&t| f(t)).collect() };
    let side = (n as f64).sqrt() as usize;
    let lattice = |k: usize| [(k % side) as f64, (k / side) as f64];
    let circle = |t: f64| [(tau * t).cos(), (tau * t).sin()];
    let spiral = |t: f64| [t * (6.0 * tau * t).cos(), t * (6.0 * tau * t).sin()];
    let ring = u.iter().map(|&t| circle(t).map(|c| (1.0 + 0.05 * normal(&mut rng)) * c)).collect();
    vec![
        ("uniform", set("uniform", n, 1), ones.clone()),
        ("uniform ±", set("uniform", n, 2), signs.clone()),
        ("uniform, any strength", set("uniform", n, 3), strengths(n, 4)),
        ("normal", set("normal", n, 5), ones.clone()),
        ("normal ±", set("normal", n, 6), signs.clone()),
        ("layer", set("layer", n, 7), ones.clone()),
        ("ring", ring, ones.clone()),
        ("circle", on(&circle), ones.clone()),
        ("circle ±", on(&circle), signs.clone()),
        ("line", on(&|t| [t, 0.25]), ones.clone()),
        ("diagonal ±", on(&|t| [t, 0.3 * t]), signs.clone()),
        ("spiral", on(&spiral), ones.clone()),
        ("lattice", (0..side * side).map(lattice).collect(), vec![1.0; side * side]),
        ("lattice ±", (0..side * side).map(lattice).collect(), signs[..side * side].to_vec()),
    ]
}
