//! Points of a periodic box on this machine's cores, and what is particular to sums over all images.

use rayon::prelude::*;

use super::points::{Points, Summed};
use crate::accuracy::{self, Problem, closest_pair};
use crate::bodies::coincident_pairs;
use crate::boundary::{Moments, PeriodicBox};
use crate::error_model::{DOUBTED, largest_term, square};
use crate::ewald::{self, At, Ewald};
use crate::guard::{Look, Norms, Sample};
use crate::math::{CollectVec, blocked_sums};
use crate::mesh::{self, Mesh, Places, Recipe, recipe};
use crate::solve::Quantity;
use crate::tree::Cube;
use crate::{Choice, Settings, Softening, Stage, StageTimes};

/// The guard's sums have this part of the tolerance as their error.
const GUARD: f64 = 0.01;

/// What sums in a box are measured by.
pub struct Reference<'a> {
    pub sum: Ewald<'a>,
    /// See [`InBox::reference`].
    pub sharper: f64,
}

/// The points of a sum, wrapped into their box.
pub struct InBox {
    pub cell: PeriodicBox,
    sources: Vec<[f64; 3]>,
    /// If they are not the sources.
    targets: Option<Vec<[f64; 3]>>,
    /// Σq².
    squares: f64,
}

impl InBox {
    /// Wraps `points`.
    pub fn new(cell: PeriodicBox, points: Points) -> Self {
        let strengths = points.columns[0];
        let [squares] = blocked_sums(strengths.len(), |i| [strengths[i] * strengths[i]]);
        InBox { cell, sources: cell.wrap(points.sources), targets: points.targets.map(|t| cell.wrap(t)), squares }
    }

    /// `points` with the wrapped positions.
    pub fn points<'a>(&'a self, points: Points<'a>) -> Points<'a> {
        Points { sources: &self.sources, targets: self.targets.as_deref(), ..points }
    }

    /// What a choice depends on.
    pub fn problem(&self, points: Points) -> Problem {
        let cube = Cube { corner: [0.0; 3], side: self.cell.longest() };
        Problem::of(&self.sources, points.columns, points.at().len(), &cube).in_box()
    }

    /// Ewald's sum at all targets, with second derivatives if `hessian` asks for them.
    pub fn direct(&self, softening: Softening, points: Points, hessian: bool, times: &mut StageTimes) -> Summed {
        let at = points.targets.map_or(At::Sources, At::Points);
        let targets = points.at().len();
        let new = || Ewald::new(&self.cell, softening, ewald::EXACT, points.sources, points.columns[0], targets);
        let exact = times.time(Stage::P2P, new);
        let ewald::Sums { potential, field, .. } = times.time_more(Stage::P2P, || exact.sums(at));
        let hessian = if hessian { times.time_more(Stage::P2P, || exact.hessians(at).hessian) } else { vec![] };
        let coincident_pairs = times.time_more(Stage::P2P, || coincident_pairs(&self.sources));
        Summed {
            hessian,
            potential,
            field,
            coincident_pairs,
            error: vec![],
            largest_term: vec![],
            epsilon: f64::EPSILON,
        }
    }

    /// The sum with a mesh at all targets, with the choice's order and cut-off.
    pub fn mesh(&self, settings: &Settings, choice: &Choice, points: Points, times: &mut StageTimes) -> Summed {
        let Settings { softening, tolerance, .. } = *settings;
        let sources = Places { wrapped: &self.sources, given: points.sources };
        let targets = self.targets.as_deref().zip(points.targets);
        let targets = targets.map(|(wrapped, given)| Places { wrapped, given });
        let cutoff = recipe::cutoff(self.cell.volume(), points.sources.len(), choice.leaf_size);
        let recipe = Recipe::of(choice.order.unwrap_or(*Recipe::ORDERS.end()));
        let (precision, closest) = (choice.precision, closest_pair(tolerance));
        let mesh = Mesh { cell: self.cell, softening, recipe, cutoff, precision, closest };
        let sums = mesh.sums(sources, points.columns[0], targets, times);
        // The same everywhere, and of the size that the recipe has among ions: a pair that all but meets makes fields
        // larger, and not errors.
        let error = Recipe::error_in(recipe.points, precision) * self.field_of_ions();
        let largest_term = if settings.estimates_errors() {
            times
                .time_more(Stage::Guard, || self.largest_terms(softening, points, &sums, error / (DOUBTED * tolerance)))
        } else {
            vec![]
        };
        let mesh::Sums { potential, field, coincident_pairs, .. } = sums;
        Summed {
            hessian: vec![],
            potential,
            error: vec![error; field.len()],
            field,
            coincident_pairs,
            largest_term,
            epsilon: choice.precision.epsilon(),
        }
    }

    /// The size of the largest term of the field of each target, of the sources next to it, where the field is below
    /// `doubted`; else 0.
    fn largest_terms(&self, softening: Softening, points: Points, sums: &mesh::Sums, doubted: f64) -> Vec<f64> {
        let (at, strengths) = (self.targets.as_ref().unwrap_or(&self.sources), points.columns[0]);
        let (reach, targets) = (softening.newtonian_beyond(0.0), sums.neighbours.targets());
        let of_place = |(place, &target): (usize, &u32)| {
            if square(&sums.field[target as usize]) >= doubted * doubted {
                return 0.0;
            }
            let nearby = sums.neighbours.of(place).iter().map(|&k| (self.sources[k as usize], strengths[k as usize]));
            largest_term(&at[target as usize], nearby, reach)
        };
        let terms = targets.par_iter().enumerate().with_min_len(64).map(of_place).collect_vec();
        let mut largest = vec![0.0; terms.len()];
        targets.iter().zip(terms).for_each(|(&target, term)| largest[target as usize] = term);
        largest
    }

    /// The moments of the sources, about the middle of the box as they are wrapped into it, and as they were given.
    pub fn moments(&self, points: Points) -> [Moments; 2] {
        let (strengths, middle) = (points.columns[0], self.cell.side.map(|s| 0.5 * s));
        [Moments::of(&self.sources, strengths, middle), Moments::of(points.sources, strengths, [0.0; 3])]
    }

    /// Adds what is not harmonic of tin foil's potential, (2π/3V) Σ q |x − x_j|² (de Leeuw, Perram & Smith 1980), and the
    /// surroundings, which follow from the [moments](Self::moments).
    pub fn finish(&self, points: Points, [inner, outer]: &[Moments; 2], summed: &mut Summed) {
        let Summed { potential, field, hessian, .. } = summed;
        let middle = self.cell.side.map(|s| 0.5 * s);
        let c = 2.0 * std::f64::consts::PI / (3.0 * self.cell.volume());
        let at = self.targets.as_ref().unwrap_or(&self.sources);
        potential.par_iter_mut().zip(field.par_iter_mut()).zip(at).for_each(|((p, e), x)| {
            let (value, slope) = inner.paraboloid(std::array::from_fn(|d| x[d] - middle[d]));
            *p += c * value;
            (0..3).for_each(|d| e[d] += c * slope[d]);
        });
        let curvature = 2.0 * c * inner.charge;
        hessian.par_iter_mut().for_each(|h| h[..3].iter_mut().for_each(|h| *h += curvature));
        ewald::depolarise(&self.cell, outer, points.at(), potential, field);
    }

    /// What sums of `quantity` are measured by, with an error that is so many times [sharper](crate::Weights::sharper)
    /// than among ions.
    pub fn reference<'a>(
        settings: &'a Settings,
        points: Points<'a>,
        quantity: Quantity,
        sharper: f64,
    ) -> Option<Reference<'a>> {
        // Second derivatives lose more digits, most of them in crystals.
        let part = if quantity == Quantity::Hessian { GUARD * GUARD } else { GUARD };
        let accuracy = f64::max(part * settings.tolerance / sharper, ewald::EXACT);
        let (targets, cell) = (Look::First.size(points.at().len()), settings.boundary.periodic()?);
        let sum = Ewald::new(cell, settings.softening, accuracy, points.sources, points.columns[0], targets);
        Some(Reference { sum, sharper })
    }

    /// [`accuracy::field_of_ions`] of the sources.
    pub fn field_of_ions(&self) -> f64 {
        accuracy::field_of_ions(self.cell.volume(), self.sources.len(), self.squares)
    }

    /// [`accuracy::potential_of_ions`] of the sources.
    pub fn potential_of_ions(&self) -> f64 {
        accuracy::potential_of_ions(self.cell.volume(), self.sources.len(), self.squares)
    }

    /// How strong fields are at some targets: [`Problem::field_of`].
    pub fn field(&self, reference: &Ewald, points: Points) -> f64 {
        let sums = at(points, &Sample::spread(points.at().len(), FIELDS), |_, at| reference.sums(at));
        Problem::field_of(&sums.field, &sums.largest, self.cell.volume(), points.columns[0])
    }
}

/// Targets at which fields are summed before anything is chosen.
const FIELDS: usize = 16;

/// Calls `with` with the places of a sample's targets, among all and in space.
fn at<R>(points: Points, sample: &Sample, with: impl FnOnce(&[usize], At) -> R) -> R {
    let chosen: Vec<usize> = sample.places().collect();
    match points.targets {
        Some(targets) => with(&chosen, At::Points(&chosen.iter().map(|&i| targets[i]).collect::<Vec<_>>())),
        None => with(&chosen, At::Some(&chosen)),
    }
}

/// The errors of the field of `sums` at the targets of `sample`, and the larger of those of the potential and of second
/// derivatives.
pub fn errors(sample: &Sample, reference: &Ewald, points: Points, sums: &Summed) -> (Norms, f64) {
    at(points, sample, |chosen, at| {
        let fields: Vec<[f64; 3]> = chosen.iter().map(|&i| sums.field[i]).collect();
        let potentials: Vec<f64> = chosen.iter().map(|&i| sums.potential[i]).collect();
        let rms = Some(sums.prediction().rms());
        let (norms, potential) = sample.errors_in_box(&reference.sums(at), &potentials, &fields, rms);
        if sums.hessian.is_empty() {
            return (norms, potential);
        }
        let found = chosen.iter().map(|&i| sums.hessian[i]);
        (norms, potential.max(sample.error_of_matrices_in_box(&reference.hessians(at), found)))
    })
}
