//! One execution of a choice by all ranks: bodies to the ranks that own them, the stages of a sum there, and the sums home.

use super::cuts::Cuts;
use super::essential::Requests;
use super::home::Home;
use super::part::{Part, Pieces};
use super::work;
use crate::accuracy;
use crate::comm::{self, Comm, exchanged};
use crate::cpu::evaluate::sum;
use crate::cpu::far::sum_squares;
use crate::cpu::points::Summed;
use crate::cpu::schedule::{Bodies, execute_sorted};
use crate::cpu::sorted::{Sorted, Sum};
use crate::expansion::Expansion;
use crate::kernel::Pairs;
use crate::lists::{Reach, Space};
use crate::math::Real;
use crate::plan::{OctreePlan, Octrees};
use crate::tree::{Cube, Growth, Tree};
use crate::{Choice, Precision, Settings, Stage, StageTimes, error_model};

/// The largest share of the work, over the mean, that is accepted before the cuts are made anew.
const IMBALANCE: f64 = 1.05;

/// New cuts are taken where their largest share is below this part of the last one.
const BETTER: f64 = 0.98;

/// How often cuts are made for one execution, at most.
const CUTS: usize = 3;

/// What an execution took, as this rank has seen it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// Cells of other ranks in the part of this rank.
    pub cells: usize,
    /// Bytes of these cells as they came: who they are, without their multipoles.
    pub cell_bytes: usize,
    /// Bytes of the multipoles that came.
    pub multipole_bytes: usize,
    /// Bytes of the bodies of other ranks that came for direct sums.
    pub body_bytes: usize,
    /// Bodies that this rank has summed at.
    pub targets: usize,
    /// The work of this rank over the mean of all.
    pub share: f64,
    /// The largest share of all ranks.
    pub largest_share: f64,
    /// How often cuts were made.
    pub cuts: usize,
}

impl Traffic {
    /// The bytes that came of the essential trees of other ranks.
    pub fn bytes(&self) -> usize {
        self.cell_bytes + self.multipole_bytes + self.body_bytes
    }
}

/// What one execution of a choice sums.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub settings: &'a Settings,
    pub choice: &'a Choice,
    pub home: &'a Home<'a>,
    pub cube: Cube<3>,
}

/// The part of this rank in one execution, with all that it needs of others but multipoles.
pub(super) struct Planned {
    plan: OctreePlan<3>,
    bodies: Bodies<3>,
    owned: Owned,
    part: Part,
    requests: Requests,
    traffic: Traffic,
}

impl Planned {
    /// Cuts, trees, lists and bodies. `work` has that of each particle at home, by which ranks are cut, and is counted anew.
    pub fn new(comm: &dyn Comm, request: Request, work: &mut Vec<u32>, times: &mut StageTimes) -> Self {
        let Request { settings, choice, home, cube } = request;
        let growth = settings.uniform.map_or(Growth::Leaves(choice.leaf_size), |u| Growth::Depth(u.depth));
        let rule = accuracy::rule(settings, choice);
        let reach = Reach { method: choice.method, rule };
        let translation = rule.m2l_min_pairs.max(choice.order.unwrap_or(0));
        let mut cuts = times.time_more(Stage::Tree, || Cuts::new(comm, home.position, work, cube, growth));
        let mut made = 1;
        let (plan, owned, part, share) = loop {
            let owned = times.time_more(Stage::Tree, || Owned::new(comm, home, cuts));
            let (tree, part) = times.time(Stage::Tree, || {
                let own = Tree::part(&owned.position, cube, growth, &owned.cuts.tree);
                Part::new(comm, Pieces { cuts: &owned.cuts, own, growth, reach })
            });
            let space = Space::open(cube.side);
            let plan = OctreePlan::of_trees(settings, choice.clone(), (space, rule), (tree, None), times);
            let counted = times.time_more(Stage::Lists, || work::of_targets(&plan, translation));
            let share = Shares::new(comm, counted.iter().map(|&w| u64::from(w)).sum());
            *work = owned.home(comm, &plan.targets.order, &counted);
            if share.largest > IMBALANCE && made < CUTS {
                cuts = times.time_more(Stage::Tree, || Cuts::new(comm, home.position, work, cube, growth));
                if cuts.largest < BETTER * share.largest {
                    made += 1;
                    continue;
                }
            }
            break (plan, owned, part, share);
        };
        let plan = OctreePlan { geometry: Octrees { shared: part.shared.clone(), ..plan.geometry }, ..plan };
        let requests = times.time_more(Stage::Lists, || Requests::new(comm, &part, &plan, &owned.cuts));
        let order = &plan.targets.order;
        let gathered = times.time_more(Stage::Tree, || {
            let own = |k: usize| (owned.position[order[k] as usize], owned.strength[order[k] as usize]);
            requests.bodies(comm, &owned.cuts, own)
        });
        let scale = home.units(comm).strength;
        let runs = gathered.runs.iter().map(|&[start, end]| start..end);
        let sorted = Sorted::of_runs(&gathered.bodies, scale, runs);
        let mut squares = vec![];
        if settings.estimates_errors() && home.is_mixed(comm) {
            times.time_more(Stage::Tree, || {
                let (tree, shared) = (&plan.targets, |cell: usize| part.shared[cell]);
                squares.resize(tree.len(), 0.0);
                sum_squares(tree, &sorted, |cell| tree.owns(cell) && !shared(cell), &mut squares);
                requests.complete(comm, &part, &owned.cuts, &mut squares);
                sum_squares(tree, &sorted, shared, &mut squares);
            });
        }
        let bodies = Bodies::of_part(sorted, scale, scale * home.total_size(comm), squares);
        let traffic = Traffic {
            cells: part.received,
            cell_bytes: part.received * Part::CELL_BYTES,
            multipole_bytes: 0,
            body_bytes: gathered.received * size_of::<[f64; 4]>(),
            targets: order.len(),
            share: share.own,
            largest_share: share.largest,
            cuts: made,
        };
        Planned { plan, bodies, owned, part, requests, traffic }
    }

    /// What completes the multipoles after the stage that adds them up; `bytes` is set to those that have come.
    fn complete<'a, T: Real>(
        &'a self,
        comm: &'a dyn Comm,
        bytes: &'a mut usize,
    ) -> impl FnMut(Stage, &mut [T], &[T], &[Sum<3>]) + 'a {
        move |stage, multipoles, _, _| {
            if stage == Stage::M2M {
                *bytes = self.requests.complete(comm, &self.part, &self.owned.cuts, multipoles);
            }
        }
    }

    /// The sums with any expansion and kernel at the particles that this rank owns.
    pub fn execute_with<T: Real, E: Expansion<T, 3>, K: Pairs<3>>(
        &self,
        comm: &dyn Comm,
        expansion: &E,
        kernel: &K,
        times: &mut StageTimes,
    ) -> Vec<Sum<3>> {
        let mut bytes = 0;
        let mut see = self.complete::<T>(comm, &mut bytes);
        execute_sorted(expansion, kernel, &self.plan, &self.bodies, times, &mut see, |_, _| ()).0
    }

    /// The sums at the particles at home.
    pub fn execute(&self, comm: &dyn Comm, request: Request, times: &mut StageTimes) -> (Summed, Traffic) {
        let Request { settings, choice, .. } = request;
        let (plan, owned) = (&self.plan, &self.owned);
        let mut multipole_bytes = 0;
        let (sums, finished) = if choice.precision == Precision::F32 {
            let mut see = self.complete::<f32>(comm, &mut multipole_bytes);
            sum(settings, plan, &self.bodies, false, &mut see, times)
        } else {
            let mut see = self.complete::<f64>(comm, &mut multipole_bytes);
            sum(settings, plan, &self.bodies, false, &mut see, times)
        };
        let summed = times.time_more(Stage::Output, || {
            let order = &plan.targets.order;
            let row = |s: &Sum<3>| [s.potential, s.field[0], s.field[1], s.field[2]];
            let rows: Vec<[f64; 4]> = owned.home(comm, order, &sums.iter().map(row).collect::<Vec<_>>());
            let (potential, field): (Vec<f64>, Vec<[f64; 3]>) =
                rows.into_iter().map(|[p, x, y, z]| (p, [x, y, z])).unzip();
            let root = plan.targets.half(0);
            let rescale = self.bodies.scale * root * root;
            // Ranks without particles have none either.
            let estimated = comm::sum(comm, finished.squared_errors.len() as u64) > 0;
            let (mut error, mut largest_term) = (vec![], vec![]);
            if estimated {
                let squares: Vec<[f64; 2]> = owned.home(comm, order, &finished.squared_errors);
                let of_target = |squares: &[f64; 2]| squares.map(|squared| squared.sqrt() / rescale).into();
                (error, largest_term) = squares.iter().map(of_target).unzip();
            }
            let coincident_pairs = comm::sum(comm, plan.targets.coincident_pairs);
            let epsilon = error_model::epsilon_of_terms(choice.precision);
            Summed { hessian: vec![], potential, field, error, largest_term, coincident_pairs, epsilon }
        });
        (summed, Traffic { multipole_bytes, ..self.traffic })
    }
}

/// Shares of the work over their mean.
struct Shares {
    own: f64,
    largest: f64,
}

impl Shares {
    fn new(comm: &dyn Comm, own: u64) -> Self {
        let mean = comm::sum(comm, own) as f64 / comm.size() as f64;
        let own = if mean > 0.0 { own as f64 / mean } else { 1.0 };
        Shares { own, largest: comm::max(comm, own) }
    }
}

/// The particles that a rank owns for one execution, in the caller's order.
struct Owned {
    cuts: Cuts,
    position: Vec<[f64; 3]>,
    strength: Vec<f64>,
    /// How many of them came from each home.
    counts: Vec<usize>,
}

impl Owned {
    /// Sends each particle to its owner.
    fn new(comm: &dyn Comm, home: &Home, cuts: Cuts) -> Self {
        let mut to: Vec<Vec<[f64; 4]>> = vec![vec![]; comm.size()];
        for ((&[x, y, z], &q), &owner) in home.position.iter().zip(home.strength).zip(&cuts.owner_of) {
            to[owner as usize].push([x, y, z, q]);
        }
        let from = exchanged(comm, &to);
        let counts = from.iter().map(Vec::len).collect();
        let (position, strength) = from.into_iter().flatten().map(|[x, y, z, q]| ([x, y, z], q)).unzip();
        Owned { cuts, position, strength, counts }
    }

    /// Values of the own particles, in `order` as a tree has them, at their homes in the caller's order.
    fn home<V: bytemuck::NoUninit + bytemuck::AnyBitPattern>(
        &self,
        comm: &dyn Comm,
        order: &[u32],
        values: &[V],
    ) -> Vec<V> {
        // A sum that is cancelled may have no values.
        let mut rows = bytemuck::zeroed_vec::<V>(order.len());
        order.iter().zip(values).for_each(|(&k, value)| rows[k as usize] = *value);
        let mut rest = &rows[..];
        let to: Vec<Vec<V>> = self
            .counts
            .iter()
            .map(|&count| {
                let (here, others) = rest.split_at(count);
                rest = others;
                here.to_vec()
            })
            .collect();
        let mut from: Vec<_> = exchanged(comm, &to).into_iter().map(Vec::into_iter).collect();
        self.cuts.owner_of.iter().map(|&owner| from[owner as usize].next().expect("a value a particle")).collect()
    }
}
