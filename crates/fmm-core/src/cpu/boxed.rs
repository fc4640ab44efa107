//! Sums over all images of a periodic box on this machine's cores.

use rayon::prelude::*;

use super::evaluate::{Evaluation, Summed};
use super::guard::{self, Sample};
use crate::accuracy::Problem;
use crate::boundary::{Moments, PeriodicBox};
use crate::contract::Attempt;
use crate::ewald::{self, At};
use crate::plan::Plan;
use crate::tree::Cube;
use crate::{Choice, Error, Method, Settings, Softening, Stage, StageTimes};

/// What a choice depends on, for bodies in a box.
pub fn problem(cell: &PeriodicBox, sources: &[[f64; 3]], strengths: &[f64], targets: usize) -> Problem {
    let cube = Cube { corner: [0.0; 3], side: cell.longest() };
    Problem::of(&cell.wrap(sources), strengths, targets, &cube).in_box()
}

/// A sum over all images, done with one choice after another.
pub struct BoxedAttempt<'a> {
    cell: PeriodicBox,
    /// As given.
    sources: &'a [[f64; 3]],
    strengths: &'a [f64],
    targets: Option<&'a [[f64; 3]]>,
    /// In the box.
    wrapped: Vec<[f64; 3]>,
    wrapped_targets: Option<Vec<[f64; 3]>>,
    /// What the stages took.
    pub times: StageTimes,
    done: Done,
}

/// The present result.
#[derive(Default)]
struct Done {
    summed: Summed,
    softening: Softening,
    tolerance: f64,
}

/// The guard's sums have this part of the tolerance as their error.
const GUARD: f64 = 0.01;

impl<'a> BoxedAttempt<'a> {
    /// Nothing done yet.
    pub fn new(
        cell: PeriodicBox,
        sources: &'a [[f64; 3]],
        strengths: &'a [f64],
        targets: Option<&'a [[f64; 3]]>,
    ) -> Self {
        let (wrapped, wrapped_targets) = (cell.wrap(sources), targets.map(|t| cell.wrap(t)));
        let (times, done) = (StageTimes::default(), Done::default());
        BoxedAttempt { cell, sources, strengths, targets, wrapped, wrapped_targets, times, done }
    }

    /// The last result.
    pub fn evaluation(self, choice: Choice) -> Evaluation {
        let Summed { potential, field, coincident_pairs, .. } = self.done.summed;
        Evaluation { potential, field, choice, coincident_pairs }
    }

    /// Adds what is not harmonic of tin foil's potential, (2π/3V) Σ q |x − x_j|² (de Leeuw, Perram & Smith 1980), and the surroundings.
    fn finish(&mut self) {
        let Summed { potential, field, .. } = &mut self.done.summed;
        let middle = self.cell.side.map(|s| 0.5 * s);
        let moments = Moments::of(&self.wrapped, self.strengths, middle);
        let c = 2.0 * std::f64::consts::PI / (3.0 * self.cell.volume());
        let at = self.wrapped_targets.as_ref().unwrap_or(&self.wrapped);
        potential.par_iter_mut().zip(field.par_iter_mut()).zip(at).for_each(|((p, e), x)| {
            let (value, slope) = moments.paraboloid(std::array::from_fn(|d| x[d] - middle[d]));
            *p += c * value;
            (0..3).for_each(|d| e[d] += c * slope[d]);
        });
        let unwrapped = Moments::of(self.sources, self.strengths, [0.0; 3]);
        ewald::depolarise(&self.cell, &unwrapped, self.targets.unwrap_or(self.sources), potential, field);
    }
}

impl Attempt for BoxedAttempt<'_> {
    fn sum(&mut self, settings: &Settings, choice: Choice) -> Result<(), Error> {
        let times = &mut self.times;
        let targets = self.wrapped_targets.as_deref();
        let (softening, tolerance) = (settings.softening, settings.tolerance);
        if choice.method == Method::Direct {
            let at = self.targets.map_or(At::Sources, At::Points);
            let ewald = || ewald::evaluate(&self.cell, softening, ewald::EXACT, self.sources, self.strengths, at);
            let ewald::Sums { potential, field, .. } = times.time(Stage::P2P, ewald);
            let coincident_pairs = times.time_more(Stage::P2P, || coincident_pairs(&self.wrapped));
            let summed = Summed { potential, field, coincident_pairs, shares: vec![] };
            self.done = Done { summed, softening, tolerance };
            return Ok(());
        }
        let plan = Plan::in_box(settings, choice, self.cell.side, &self.wrapped, targets, times);
        let summed = Summed::of(settings, &plan, &self.wrapped, self.strengths, targets, times);
        self.done = Done { summed, softening, tolerance };
        let start = std::time::Instant::now();
        self.finish();
        self.times.add_calls(Stage::Lattice, start.elapsed().as_secs_f64(), 0);
        Ok(())
    }

    fn error(&mut self) -> f64 {
        let BoxedAttempt { cell, sources, strengths, targets, times, done, .. } = self;
        let Summed { potential, field, shares, .. } = &done.summed;
        let sample = Sample::new(targets.unwrap_or(sources).len(), shares);
        let chosen: Vec<usize> = sample.places().collect();
        times.time(Stage::Guard, || {
            let points: Option<Vec<[f64; 3]>> = targets.map(|t| chosen.iter().map(|&i| t[i]).collect());
            let at = points.as_ref().map_or(At::Some(&chosen), |p| At::Points(p));
            let exact = ewald::evaluate(cell, done.softening, GUARD * done.tolerance, sources, strengths, at);
            let fields: Vec<[f64; 3]> = chosen.iter().map(|&i| field[i]).collect();
            let potentials: Vec<f64> = chosen.iter().map(|&i| potential[i]).collect();
            guard::of_box(&sample, &exact, &potentials, &fields)
        })
    }
}

/// Pairs of wrapped positions that are bitwise the same.
fn coincident_pairs(wrapped: &[[f64; 3]]) -> u64 {
    let mut keys: Vec<[u64; 3]> = wrapped.par_iter().map(|x| x.map(|c| (c + 0.0).to_bits())).collect();
    keys.par_sort_unstable();
    keys.chunk_by(|a, b| a == b).map(|same| same.len() as u64 * (same.len() as u64 - 1) / 2).sum()
}
