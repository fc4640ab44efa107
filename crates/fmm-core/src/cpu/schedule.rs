//! The schedule of a plan, stage by stage, with any expansion.

use rayon::prelude::*;

use super::far;
use super::near::Near;
use super::sorted::{Sorted, Sum};
use crate::bodies::total_size;
use crate::boundary::Background;
use crate::expansion::Expansion;
use crate::kernel::Pairs;
use crate::math::Real;
use crate::math::scale::strength_scale;
use crate::plan::OctreePlan;
use crate::{Precision, Stage, StageTimes};

/// Bodies in the order of their trees, with strengths scaled.
pub struct Bodies<const D: usize> {
    sources: Sorted<D>,
    /// If they are not the sources.
    targets: Option<Sorted<D>>,
    /// What the strengths were multiplied by.
    pub scale: f64,
    /// Σ|q| of all sources, scaled.
    total_size: f64,
    /// What sums in a box get at last, of strengths as they are.
    pub background: Background,
    /// Σq² of each source cell, as [`Expansions`] has it, where other ranks have some of the bodies.
    squares: Option<Vec<f32>>,
}

impl<const D: usize> Bodies<D> {
    /// The bodies of `plan`.
    pub fn new(plan: &OctreePlan<D>, sources: &[[f64; D]], strengths: &[f64], targets: Option<&[[f64; D]]>) -> Self {
        let scale = strength_scale(strengths);
        Bodies {
            sources: Sorted::new(sources, Some(strengths), scale, &plan.source_tree().order),
            targets: targets.map(|t| Sorted::new(t, None, 1.0, &plan.targets.order)),
            scale,
            total_size: scale * total_size(strengths),
            background: Background::default(),
            squares: None,
        }
    }

    /// The bodies of one rank's part of a tree, which are sources and targets. `total_size` is Σ|q| of all ranks, scaled.
    pub fn of_part(sources: Sorted<D>, scale: f64, total_size: f64, squares: Vec<f32>) -> Self {
        let background = Background::default();
        Bodies { sources, targets: None, scale, total_size, background, squares: Some(squares) }
    }
}

/// The expansions of a plan that has been executed.
pub struct Expansions<'a, T, E, const D: usize> {
    /// The family.
    pub expansion: &'a E,
    /// The plan.
    pub plan: &'a OctreePlan<D>,
    /// Of all source cells.
    pub multipoles: &'a [T],
    /// Of all target cells.
    pub locals: &'a [T],
    /// Targets and sources.
    pub bodies: [&'a Sorted<D>; 2],
    /// The sums, in the order of the targets' tree.
    pub sums: &'a [Sum<D>],
    /// Whether the pairs of each target were summed in double precision, in the same order.
    pub in_double: &'a [bool],
    /// What these get at last, of scaled strengths.
    pub background: Background,
    /// Σ|q| of all sources, scaled.
    pub total_size: f64,
    /// Σq² of each source cell, of scaled strengths; empty where all have one sign or where it is not wanted. None: the
    /// bodies tell.
    pub squares: Option<&'a [f32]>,
}

/// Executes the schedule of a plan; the sums are in the order of the target tree.
pub fn execute<T: Real, E: Expansion<T, D>, K: Pairs<D>, const D: usize>(
    expansion: &E,
    kernel: &K,
    plan: &OctreePlan<D>,
    sources: &[[f64; D]],
    strengths: &[f64],
    targets: Option<&[[f64; D]]>,
    times: &mut StageTimes,
) -> Vec<Sum<D>> {
    let bodies = times.time_more(Stage::Tree, || Bodies::new(plan, sources, strengths, targets));
    execute_sorted(expansion, kernel, plan, &bodies, times, &mut |_, _, _, _| (), |_, _| ()).0
}

/// Sees what a stage left: multipoles, local expansions (both cell after cell) and sums, with strengths still scaled. It may
/// complete the multipoles: those of cells whose bodies are elsewhere.
pub type See<'a, T, const D: usize> = dyn FnMut(Stage, &mut [T], &[T], &[Sum<D>]) + 'a;

/// The same with bodies that are in order already; `see` sees what each stage left, `finish` what was executed, both with
/// strengths still scaled.
pub fn execute_sorted<T: Real, E: Expansion<T, D>, K: Pairs<D>, R, const D: usize>(
    expansion: &E,
    kernel: &K,
    plan: &OctreePlan<D>,
    bodies: &Bodies<D>,
    times: &mut StageTimes,
    see: &mut See<T, D>,
    finish: impl FnOnce(&Expansions<T, E, D>, &mut StageTimes) -> R,
) -> (Vec<Sum<D>>, R) {
    let (target_tree, source_tree) = (&plan.targets, plan.source_tree());
    let sorted = &bodies.sources;
    let at = bodies.targets.as_ref().unwrap_or(sorted);
    let mut out = bytemuck::zeroed_vec::<Sum<D>>(target_tree.order.len());
    let far = plan.choice.order.is_some();
    let mut multipoles = vec![T::ZERO; if far { source_tree.len() * expansion.len() } else { 0 }];
    let mut locals = vec![T::ZERO; if far { target_tree.len() * expansion.len() } else { 0 }];
    let mut in_double = vec![false; out.len()];
    let cancel = times.cancel().clone();
    let is_shared = |cell: usize| plan.geometry.shared.get(cell).is_some_and(|&shared| shared);
    for &stage in plan.schedule() {
        times.time(stage, || match stage {
            _ if cancel.is_set() => {}
            Stage::P2M => far::p2m(expansion, source_tree, sorted, &mut multipoles),
            Stage::M2M => {
                far::m2m(expansion, source_tree, &|cell| source_tree.owns(cell) && !is_shared(cell), &mut multipoles)
            }
            Stage::Lattice => {
                let operator = plan.geometry.lattice.as_ref().expect("a stage of periodic boxes");
                let n = expansion.len();
                expansion.lattice(operator, &multipoles[..n], &mut locals[..n]);
            }
            Stage::M2L => far::m2l(expansion, plan, &multipoles, &mut locals, &cancel),
            Stage::P2L => far::p2l(expansion, plan, sorted, &mut locals),
            Stage::L2L => far::l2l(expansion, target_tree, &mut locals),
            Stage::L2P => far::l2p(expansion, target_tree, at, &locals, &mut out),
            Stage::M2P => far::m2p(expansion, plan, at, &multipoles, &mut out, &cancel),
            Stage::P2P => {
                let near = Near { kernel, plan, bodies: [at, sorted], cancel: &cancel };
                let mixed = plan.choice.precision == Precision::Mixed;
                in_double = if mixed { near.p2p::<f32>(&mut out) } else { near.p2p::<T>(&mut out) };
            }
            Stage::Spread | Stage::Fft | Stage::Gather => unreachable!("{} is a stage of a mesh", stage.name()),
            Stage::Tree
            | Stage::Lists
            | Stage::Guard
            | Stage::Exchange
            | Stage::Kick
            | Stage::Drift
            | Stage::Output => {
                unreachable!("{} is no stage of a sum", stage.name())
            }
        });
        see(stage, &mut multipoles, &locals, &out);
        if stage == Stage::M2M && !plan.geometry.shared.is_empty() {
            far::m2m(expansion, source_tree, &is_shared, &mut multipoles);
        }
    }
    let (multipoles, locals) = (&multipoles[..], &locals[..]);
    let executed = Expansions {
        expansion,
        plan,
        multipoles,
        locals,
        bodies: [at, sorted],
        sums: &out,
        in_double: &in_double,
        background: bodies.background.scaled(bodies.scale),
        total_size: bodies.total_size,
        squares: bodies.squares.as_deref(),
    };
    let finished = finish(&executed, times);
    let unscale = 1.0 / bodies.scale;
    out.par_iter_mut().for_each(|s| {
        s.potential *= unscale;
        s.field = s.field.map(|f| f * unscale);
    });
    (out, finished)
}
