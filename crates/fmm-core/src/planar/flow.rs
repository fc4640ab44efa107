//! Point vortices: their velocities, and what a step of them keeps.

use rayon::prelude::*;

use crate::math::CollectVec;

/// Velocities from the field e = −∇Σ Γ log r: u = coupling · (e_y, −e_x), with 1/(2π) as coupling.
pub fn velocities(coupling: &[f64], field: &[[f64; 3]]) -> Vec<[f64; 3]> {
    coupling.par_iter().zip(field).map(|(c, e)| [c * e[1], -(c * e[0]), 0.0]).collect_vec()
}

/// What a step of a flow keeps of one vector of each particle on the cores, a place or a strength:
/// see [`ParticleStore::begin_flow`](crate::ParticleStore::begin_flow).
#[derive(Debug, Clone, Default)]
pub struct Flow {
    start: Vec<[f64; 3]>,
    velocity: Vec<[f64; 3]>,
    sum: Vec<[f64; 3]>,
}

impl Flow {
    /// Begins a step with these values. Returns the largest component.
    pub fn begin(&mut self, position: &[[f64; 3]]) -> f64 {
        self.start = position.to_vec();
        self.velocity.clear();
        self.sum = vec![[0.0; 3]; position.len()];
        largest(position)
    }

    /// Takes velocities. Returns the largest component of their change from the last ones.
    pub fn take(&mut self, velocity: Vec<[f64; 3]>, weight: f64) -> f64 {
        let apart = |(a, b): (&[f64; 3], &[f64; 3])| largest_of(&[0, 1, 2].map(|d| a[d] - b[d]));
        let change = match self.velocity.len() == velocity.len() && !velocity.is_empty() {
            true => self.velocity.par_iter().zip(&velocity).map(apart).reduce(|| 0.0, f64::max),
            false => f64::INFINITY,
        };
        self.velocity = velocity;
        if weight != 0.0 {
            add(&mut self.sum, &self.velocity, weight);
        }
        change
    }

    /// Where the last velocities, or the weighed ones, lead in the time `h`.
    pub fn reach(&self, h: f64, summed: bool) -> Vec<[f64; 3]> {
        let mut position = self.start.clone();
        add(&mut position, if summed { &self.sum } else { &self.velocity }, h);
        position
    }
}

fn largest_of(v: &[f64; 3]) -> f64 {
    v.iter().fold(0.0, |m, c| f64::max(m, c.abs()))
}

/// The largest component of all.
fn largest(vectors: &[[f64; 3]]) -> f64 {
    vectors.par_iter().map(largest_of).reduce(|| 0.0, f64::max)
}

/// x += h y.
fn add(x: &mut [[f64; 3]], y: &[[f64; 3]], h: f64) {
    x.par_iter_mut().zip(y).for_each(|(x, y)| *x = std::array::from_fn(|d| x[d] + h * y[d]));
}
