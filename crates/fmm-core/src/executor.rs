//! The place where a summation runs, and where the particles live between snapshots.

use crate::{Choice, Error, Particles, Settings, Stage, StageTimes};

/// Holds the particles of a run and does every stage of a step where they are.
///
/// Results are in the order of the caller's particles.
pub trait Executor: Send {
    /// Takes over the particles.
    ///
    /// # Errors
    /// Values that are not finite, or too many particles.
    fn upload(&mut self, particles: &Particles) -> Result<(), Error>;

    /// Builds tree and lists for the present positions and sums potential and field.
    ///
    /// # Errors
    /// A request that cannot be met, with the reason.
    fn forces(&mut self, times: &mut StageTimes) -> Result<(), Error>;

    /// v += h a, with the accelerations of the last [`forces`](Executor::forces).
    fn kick(&mut self, h: f64, times: &mut StageTimes);

    /// x += h v.
    fn drift(&mut self, h: f64, times: &mut StageTimes);

    /// A copy of positions, velocities, strengths and couplings.
    fn particles(&mut self) -> Particles;

    /// Copies of the potential Σ q/r and the field e = −∇Σ q/r of the last [`forces`](Executor::forces).
    fn field(&mut self) -> (Vec<f64>, Vec<[f64; 3]>);

    /// What the last [`forces`](Executor::forces) chose; `None` before the first.
    fn choice(&self) -> Option<Choice>;

    /// Pairs of distinct particles at the same place in the last [`forces`](Executor::forces).
    fn coincident_pairs(&self) -> u64;
}

/// Executes on the cores of this machine, in rayon's current thread pool.
pub struct CpuExecutor {
    settings: Settings,
    particles: Particles,
    potential: Vec<f64>,
    field: Vec<[f64; 3]>,
    choice: Option<Choice>,
}

impl CpuExecutor {
    /// An executor without particles.
    ///
    /// # Errors
    /// [`Error::Range`] if a setting lies outside its range.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        Ok(CpuExecutor { settings, particles: Particles::default(), potential: vec![], field: vec![], choice: None })
    }
}

impl Executor for CpuExecutor {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        particles.check()?;
        self.particles = particles.clone();
        Ok(())
    }

    fn forces(&mut self, times: &mut StageTimes) -> Result<(), Error> {
        use crate::{Method, Precision, Softening};
        let e2 = if let Softening::Plummer(e) = self.settings.softening { e * e } else { 0.0 };
        let p = &self.particles;
        let (mut phi, mut field) = (vec![0.0; p.len()], vec![[0.0; 3]; p.len()]);
        times.time(Stage::P2P, || {
            for i in 0..p.len() {
                for j in 0..p.len() {
                    let d: [f64; 3] = std::array::from_fn(|k| p.position[i][k] - p.position[j][k]);
                    let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + e2;
                    if i != j && r2 > 0.0 {
                        let r = r2.sqrt();
                        phi[i] += p.strength[j] / r;
                        for k in 0..3 {
                            field[i][k] += p.strength[j] * d[k] / (r2 * r);
                        }
                    }
                }
            }
        });
        (self.potential, self.field) = (phi, field);
        self.choice =
            Some(Choice { method: Method::Direct, precision: Precision::F64, order: None, theta: None, leaf_size: 64 });
        Ok(())
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) {
        times.time(Stage::Kick, || {
            for ((v, e), c) in self.particles.velocity.iter_mut().zip(&self.field).zip(&self.particles.coupling) {
                for k in 0..3 {
                    v[k] += h * (c * e[k]);
                }
            }
        });
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) {
        times.time(Stage::Drift, || {
            for (x, v) in self.particles.position.iter_mut().zip(&self.particles.velocity) {
                for k in 0..3 {
                    x[k] += h * v[k];
                }
            }
        });
    }

    fn particles(&mut self) -> Particles {
        self.particles.clone()
    }

    fn field(&mut self) -> (Vec<f64>, Vec<[f64; 3]>) {
        (self.potential.clone(), self.field.clone())
    }

    fn choice(&self) -> Option<Choice> {
        self.choice.clone()
    }

    fn coincident_pairs(&self) -> u64 {
        0
    }
}
