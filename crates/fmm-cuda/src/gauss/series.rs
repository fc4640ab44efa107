//! Series on the device: the stages of fmm-core's `gauss/execute.rs` but P2P, in double precision.

use fmm_core::gauss::Plan;
use fmm_core::gauss::boxes::MARGIN;
use fmm_core::gauss::translate::translation;
use fmm_core::{Error, Stage};

use super::place::{Place, launch_tasks, tasks};
use super::polynomials::polynomials;
use super::view::{BATCH, GATHER_THREADS, GaussView, HELD, SPREAD_POINTS, SPREAD_THREADS, THREADS};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::clock::Clock;
use crate::kernels::SHARED;

/// Sources of a block of P2M.
const CHUNK: usize = 2048;

/// The highest order, and the smallest tolerance, for which Hermite series become polynomials: their terms are then up to 50 times
/// as large as their sum along each axis.
const POLYNOMIAL: (usize, f64) = (16, 1e-9);

/// One pass of M2L.
#[derive(Default)]
struct Pass {
    tasks: Buffer<[u32; 4]>,
    list: Buffer<[u32; 2]>,
}

/// Who has a series, and who meets it.
#[derive(Default)]
pub struct Series {
    p2m: Buffer<[u32; 4]>,
    join: Buffer<u64>,
    passes: Vec<Pass>,
    matrices: Buffer<f64>,
    used: Buffer<u32>,
    p2l: (Buffer<[u32; 4]>, Buffer<u64>, Buffer<[u32; 2]>),
    m2p: (Buffer<[u32; 4]>, Buffer<u64>, Buffer<[u32; 2]>),
    /// To polynomials.
    change: (Buffer<f64>, Buffer<u32>, Pass),
    l2p: Buffer<[u32; 4]>,
    roots: Buffer<f64>,
    factors: Buffer<f64>,
    multipoles: Buffer<f64>,
    locals: Buffer<f64>,
    steps: [Buffer<f64>; 2],
    parts: Buffer<f64>,
    /// Points of a thread of L2P and M2P.
    held: [usize; 2],
}

/// Coefficients of a box.
fn terms<const D: usize>(plan: &Plan<D>) -> usize {
    plan.geometry.shape.order.pow(D as u32)
}

/// Terms along an axis up to whole groups of a thread.
fn width(order: usize) -> usize {
    order.next_multiple_of(HELD)
}

/// Whether the plan evaluates Hermite series as polynomials.
fn polynomial<const D: usize>(plan: &Plan<D>) -> bool {
    const { assert!(8 * POLYNOMIAL.0.pow(3) <= SHARED, "polynomials fit") };
    plan.geometry.shape.order <= POLYNOMIAL.0
        && plan.geometry.demand.tolerance >= POLYNOMIAL.1
        && !plan.lists.m2p.is_empty()
}

impl Series {
    /// Bytes that the series of a plan take, and their lists.
    pub fn bytes<const D: usize>(plan: &Plan<D>) -> usize {
        if plan.geometry.expanded.is_empty() && plan.geometry.local.is_empty() {
            return 0;
        }
        let parts: usize =
            plan.geometry.expanded.iter().map(|&b| plan.source_tree().count(b as usize).div_ceil(CHUNK)).sum();
        let parts = if parts > plan.geometry.expanded.len() { parts } else { 0 };
        let steps: usize = plan.geometry.passes.iter().map(|p| p.cells.len()).max().unwrap_or(0);
        let series = plan.geometry.expanded.len()
            + plan.geometry.local.len()
            + parts
            + 2 * steps.max(plan.geometry.expanded.len());
        let cells: usize = plan.geometry.passes.iter().map(|p| p.cells.len() + p.order.len()).sum();
        let lists = plan.lists.m2p.len() + plan.lists.p2l.len() + cells;
        8 * series * terms(plan) + 32 * (plan.source_tree().len() + plan.targets.len()) + 16 * lists
    }

    /// Copies what a plan says.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if a copy fails.
    pub fn take<const D: usize>(&mut self, plan: &Plan<D>, sigma: f64) -> Result<(), Error> {
        let order = plan.geometry.shape.order;

        let (sources, targets) = (plan.source_tree(), &plan.targets);
        let expanded = || plan.geometry.expanded.iter().map(|&b| b as usize).enumerate();
        let p2m = tasks(expanded(), sources, CHUNK);
        self.join.resize(0)?;
        if p2m.len() > plan.geometry.expanded.len() {
            let counts = plan.geometry.expanded.iter().map(|&b| sources.count(b as usize).div_ceil(CHUNK) as u64);
            let start = counts.scan(0, |n, c| {
                *n += c;
                Some(*n)
            });
            self.join.upload(&std::iter::once(0).chain(start).collect::<Vec<_>>())?;
            // Parts come first, each at a place of its own.
            let parts: Vec<[u32; 4]> = p2m.iter().enumerate().map(|(i, t)| [i as u32, t[1], t[2], t[3]]).collect();
            self.p2m.upload(&parts)?;
        } else {
            self.p2m.upload(&p2m)?;
        }
        let roots: Vec<[f64; 2]> =
            (0..order + 2).map(|n| [(n as f64).sqrt(), 1.0 / (n.max(1) as f64).sqrt()]).collect();
        self.roots.upload(roots.as_flattened())?;
        let factors = (0..order).scan(1.0, |f, n| {
            *f /= (n.max(1) as f64).sqrt();
            Some(*f)
        });
        self.factors.upload(&factors.collect::<Vec<f64>>())?;
        self.take_passes(plan, sigma)?;

        let local = || plan.geometry.local.iter().map(|&c| c as usize).enumerate();
        let fits = spread_shared(order, D) <= SHARED;
        // More points a thread want fewer loads of coefficients, but full boxes.
        let held = |boxes: usize, points: usize, most: usize| match points / (2 * SPREAD_THREADS * boxes.max(1)) {
            0 => 1,
            full if fits && full >= SPREAD_POINTS => most,
            _ if fits => SPREAD_POINTS,
            _ => 1,
        };
        let points: usize = plan.geometry.local.iter().map(|&c| targets.count(c as usize)).sum();
        self.held[0] = held(plan.geometry.local.len(), points, 2 * SPREAD_POINTS);
        self.l2p.upload(&tasks(local(), targets, SPREAD_THREADS * self.held[0]))?;
        if !plan.lists.p2l.is_empty() {
            let rows = &plan.lists.p2l;
            let meet = local().filter(|&(_, c)| !rows.row(c).is_empty());
            let all: Vec<[u32; 4]> = meet.map(|(place, c)| [place as u32, c as u32, 0, 0]).collect();
            self.p2l.0.upload(&all)?;
            self.p2l.1.upload(&rows.start)?;
            let runs = rows.items.iter().map(|&b| [sources.start[b as usize], sources.start[b as usize + 1]]);
            self.p2l.2.upload(&runs.collect::<Vec<_>>())?;
        }
        if !plan.lists.m2p.is_empty() {
            let rows = &plan.lists.m2p;
            let meet: Vec<usize> = (0..targets.len()).filter(|&c| !rows.row(c).is_empty()).collect();
            let points: usize = meet.iter().map(|&c| targets.count(c)).sum();
            self.held[1] = if polynomial(plan) { held(meet.len(), points, SPREAD_POINTS) } else { 1 };
            let all = tasks(meet.into_iter().map(|c| (0, c)), targets, SPREAD_THREADS * self.held[1]);
            self.m2p.0.upload(&all)?;
            self.m2p.1.upload(&rows.start)?;
            let place = |b: u32| plan.geometry.expanded.binary_search(&b).expect("a box with a series") as u32;
            self.m2p.2.upload(&rows.items.iter().map(|&b| [place(b), b]).collect::<Vec<_>>())?;
            if polynomial(plan) {
                let count = plan.geometry.expanded.len() as u32;
                self.change.0.upload(&padded(&polynomials(order), order))?;
                self.change.1.upload(&[order as u32])?;
                self.change.2.tasks.upload(&(0..count).map(|i| [i, i + 1, 0, 0]).collect::<Vec<_>>())?;
                self.change.2.list.upload(&(0..count).map(|i| [i, 0]).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    fn take_passes<const D: usize>(&mut self, plan: &Plan<D>, sigma: f64) -> Result<(), Error> {
        if plan.geometry.passes.is_empty() {
            return Ok(());
        }
        let order = plan.geometry.shape.order;
        let step = plan.geometry.lattice.side / sigma;
        let half = 0.5 * step * (1.0 + MARGIN);
        let (mut matrices, mut used) = (vec![], vec![]);
        for k in -plan.geometry.reach..=plan.geometry.reach {
            // Far boxes need fewer terms.
            let gap = (k.abs() - 1).max(0) as f64 * step - 2.0 * MARGIN * half;
            let here = plan.geometry.demand.order(half, gap).unwrap_or(order).min(order);
            matrices.extend(padded(&translation(order, here, k as f64 * step), order));
            used.push(here as u32);
        }
        self.matrices.upload(&matrices)?;
        self.used.upload(&used)?;
        let mut before: Vec<[i64; D]> =
            plan.geometry.expanded.iter().map(|&b| plan.source_tree().cells[b as usize]).collect();
        self.passes.resize_with(plan.geometry.passes.len(), Pass::default);
        for (pass, here) in plan.geometry.passes.iter().zip(&mut self.passes) {
            let rows = pass.rows.iter().zip(&pass.cells);
            here.tasks.upload(&rows.map(|(r, c)| [r.start, r.end, c[pass.axis] as u32, 0]).collect::<Vec<_>>())?;
            let along = pass.order.iter().map(|&i| [i, before[i as usize][pass.axis] as u32]);
            here.list.upload(&along.collect::<Vec<_>>())?;
            before.clone_from(&pass.cells);
        }
        Ok(())
    }

    /// Makes room for the series of a plan.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory.
    pub fn ready<const D: usize>(&mut self, plan: &Plan<D>) -> Result<(), Error> {
        let n = terms(plan);
        self.multipoles.resize(n * plan.geometry.expanded.len())?;
        self.locals.resize(n * plan.geometry.local.len())?;
        let steps = plan.geometry.passes.iter().map(|p| p.cells.len()).max().unwrap_or(0);
        let steps = if polynomial(plan) { steps.max(plan.geometry.expanded.len()) } else { steps };
        self.steps.iter_mut().try_for_each(|s| s.resize(n * steps))?;
        self.parts.resize(if self.join.is_empty() { 0 } else { n * self.p2m.len() })
    }

    /// Whether the stages of a plan write the sums of every target, so that nothing need be there before.
    pub fn writes_all<const D: usize>(plan: &Plan<D>) -> bool {
        plan.geometry.local.len() == plan.targets.len()
            && !(plan.geometry.passes.is_empty() && plan.lists.p2l.is_empty())
    }

    /// Queues all stages, whose results are added to those of the place.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver refuses.
    pub fn sum<const D: usize>(
        &mut self,
        gpu: &Gpu,
        plan: &Plan<D>,
        place: &Place,
        clock: &mut Clock,
    ) -> Result<(), Error> {
        let (order, n) = (plan.geometry.shape.order, terms(plan));
        let shared = spread_shared(order, D);
        let view = GaussView {
            order: order as u32,
            width: width(order) as u32,
            terms: n as u32,
            roots: self.roots.pointer(),
            ..place.view()
        };
        if !plan.geometry.expanded.is_empty() {
            self.p2m(gpu, GaussView { points: place.sources, center: place.source_centers, ..view })?;
            clock.mark(Some(Stage::P2M))?;
        }
        if !plan.geometry.passes.is_empty() {
            let mut from = &self.multipoles;
            for (k, (pass, cells)) in self.passes.iter().zip(&plan.geometry.passes).enumerate() {
                let to = if k + 1 == self.passes.len() { &self.locals } else { &self.steps[k % 2] };
                let reach = plan.geometry.reach as u32;
                let view = GaussView { matrix: self.matrices.pointer(), used: self.used.pointer(), reach, ..view };
                translate(gpu, view, pass, cells.cells.len(), (from, to))?;
                from = to;
            }
            clock.mark(Some(Stage::M2L))?;
        }
        if !plan.lists.m2p.is_empty() {
            let mut series = &self.multipoles;
            let mut name = "gauss_m2p_high";
            if polynomial(plan) {
                name = if self.held[1] > 1 { "gauss_m2p_full" } else { "gauss_m2p" };
                for axis in 0..D {
                    let to = &self.steps[axis % 2];
                    let view = GaussView { matrix: self.change.0.pointer(), used: self.change.1.pointer(), ..view };
                    translate(gpu, view, &self.change.2, plan.geometry.expanded.len(), (series, to))?;
                    series = to;
                }
            } else {
                let view = GaussView { series: series.pointer(), roots: self.factors.pointer(), ..view };
                scale(gpu, view, plan.geometry.expanded.len())?;
            }
            let (tasks, start, list) = &self.m2p;
            let view = GaussView {
                points: place.targets,
                other: place.source_centers,
                series: series.pointer(),
                tasks: tasks.pointer(),
                start: start.pointer(),
                list: list.pointer(),
                ..view
            };
            let shared = if polynomial(plan) { shared } else { 0 };
            launch_tasks(gpu, &slope(name, place), tasks.len(), SPREAD_THREADS, shared, &view)?;
            clock.mark(Some(Stage::M2P))?;
        }
        if plan.geometry.local.is_empty() || (plan.geometry.passes.is_empty() && plan.lists.p2l.is_empty()) {
            return Ok(());
        }
        if plan.geometry.passes.is_empty() {
            self.locals.fill(gpu.stream(), 0)?;
        }
        let locals = self.locals.pointer();
        if !plan.lists.p2l.is_empty() {
            let (tasks, start, list) = &self.p2l;
            let view = GaussView {
                points: place.sources,
                center: place.target_centers,
                series: locals,
                tasks: tasks.pointer(),
                start: start.pointer(),
                list: list.pointer(),
                ..view
            };
            gather(gpu, "gauss_p2l", tasks.len(), &view)?;
            clock.mark(Some(Stage::P2L))?;
        }
        scale(gpu, GaussView { series: locals, roots: self.factors.pointer(), ..view }, plan.geometry.local.len())?;
        let (name, shared) = match (self.held[0], shared <= SHARED) {
            (2.., _) if self.held[0] > SPREAD_POINTS => ("gauss_l2p_vast", shared),
            (2.., _) => ("gauss_l2p_full", shared),
            (_, true) => ("gauss_l2p", shared),
            _ => ("gauss_l2p_high", 0),
        };
        let view = GaussView {
            points: place.targets,
            center: place.target_centers,
            series: locals,
            tasks: self.l2p.pointer(),
            fresh: u32::from(Series::writes_all(plan)),
            ..view
        };
        launch_tasks(gpu, &slope(name, place), self.l2p.len(), SPREAD_THREADS, shared, &view)?;
        clock.mark(Some(Stage::L2P))
    }

    fn p2m(&self, gpu: &Gpu, view: GaussView) -> Result<(), Error> {
        let whole = self.join.is_empty();
        let series = if whole { self.multipoles.pointer() } else { self.parts.pointer() };
        gather(gpu, "gauss_p2m", self.p2m.len(), &GaussView { series, tasks: self.p2m.pointer(), ..view })?;
        if whole {
            return Ok(());
        }
        let boxes = self.join.len() - 1;
        let view = GaussView {
            series: self.multipoles.pointer(),
            before: self.parts.pointer(),
            start: self.join.pointer(),
            count: boxes as u32,
            ..view
        };
        launch_tasks(gpu, "gauss_join", (boxes * view.terms as usize).div_ceil(THREADS), THREADS, 0, &view)
    }
}

/// Bytes of shared memory of a series in L2P and M2P, in rows of an even length.
pub fn spread_shared(order: usize, axes: usize) -> usize {
    8 * order.pow(axes as u32 - 1) * order.next_multiple_of(2)
}

/// The kernel for values alone, or with derivatives.
fn slope(name: &str, place: &Place) -> String {
    if place.values > 1 { format!("{name}_slope") } else { name.to_string() }
}

/// Queues P2M or P2L.
fn gather(gpu: &Gpu, name: &str, tasks: usize, view: &GaussView) -> Result<(), Error> {
    if tasks == 0 {
        return Ok(());
    }
    let (order, width) = (view.order as usize, view.width as usize);
    let items = width / HELD * (view.terms as usize / order);
    let table = view.axes as usize * BATCH * (width + 2);
    let sums = if items < GATHER_THREADS { GATHER_THREADS * HELD } else { 0 };
    let grid = (tasks as u32, items.div_ceil(GATHER_THREADS) as u32);
    let shared = 8 * table.max(sums);
    // SAFETY: all arrays have the lengths that the view says.
    unsafe { gpu.kernels().launch_with(gpu.stream(), name, grid, (GATHER_THREADS as u32, shared), view) }
}

/// Queues a pass of M2L.
fn translate(
    gpu: &Gpu,
    view: GaussView,
    pass: &Pass,
    boxes: usize,
    (from, to): (&Buffer<f64>, &Buffer<f64>),
) -> Result<(), Error> {
    let items = view.width as usize / HELD * (view.terms / view.order) as usize;
    let view = GaussView {
        tasks: pass.tasks.pointer(),
        list: pass.list.pointer(),
        before: from.pointer(),
        series: to.pointer(),
        count: boxes as u32,
        ..view
    };
    launch_tasks(gpu, "gauss_m2l", (boxes * items).div_ceil(GATHER_THREADS), GATHER_THREADS, 0, &view)
}

/// Queues the scaling of series.
fn scale(gpu: &Gpu, view: GaussView, boxes: usize) -> Result<(), Error> {
    let view = GaussView { count: boxes as u32, ..view };
    launch_tasks(gpu, "gauss_scale", (boxes * view.terms as usize).div_ceil(THREADS), THREADS, 0, &view)
}

/// A matrix of `order` rows, each filled up to whole groups of a thread.
fn padded(matrix: &[f64], order: usize) -> Vec<f64> {
    let row = |r: &[f64]| r.iter().copied().chain(std::iter::repeat_n(0.0, width(order) - order)).collect::<Vec<_>>();
    matrix.chunks_exact(order).flat_map(row).collect()
}
