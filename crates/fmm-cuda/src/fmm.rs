//! Sums on the device by fast methods: trees, lists and every operator.

use fmm_core::accuracy;
use fmm_core::boundary::Background;
use fmm_core::lists::{Classes, Space};
use fmm_core::plan::{OctreePlan, periodic_schedule, schedule};
use fmm_core::tree::Cube;
use fmm_core::{Choice, Error, Family, Method, Precision, Settings, Softening, Stage, StageTimes};

use crate::Gpu;
use crate::boxed;
use crate::buffer::Buffer;
use crate::cartesian::Softened;
use crate::cells::{Cells, rows};
use crate::clock::Clock;
use crate::delivery::{Delivery, Sorted};
use crate::direct::{self, Output};
use crate::error_field::{Described, Predicted};
use crate::far::Far;
use crate::geometry::{DeviceLists, Work};
use crate::guard;
use crate::hessian::{Executed, Hessian};
use crate::inputs::Ends;
use crate::m2l_schedule::Offsets;
use crate::mma_layout::DeviceReal;
use crate::near::Near;
use crate::needed::Needed;
use crate::place::Place;
use crate::policy;
use crate::shares::Member;
use crate::ternary_root;
use crate::view::{Body, GatherView, Sum, TILE};

use cust::memory::DevicePointer;
use cust::stream::Stream;

/// What the host knows of a plan whose trees and lists lie on the device.
#[derive(Clone)]
pub struct Planned {
    /// What was chosen.
    pub choice: Choice,
    /// Pairs of sources at bitwise the same place.
    pub coincident_pairs: u64,
    classes: Classes<3>,
    closest: f64,
    /// Whether targets are the sources.
    same: bool,
    /// Of a periodic box.
    space: Option<Space<3>>,
    /// Whether the box has a ternary root.
    ternary: bool,
}

/// The arrays of sums by fast methods, kept from sum to sum.
#[derive(Default)]
pub struct Fmm {
    /// Whether the near field waits for the far field, so that the time of each stage is its own.
    pub apart: bool,
    /// Whether the GPUs of a team share the targets of the next plan.
    pub divided: bool,
    /// Whether each of them gets all results, and not those of its slice of the caller's order
    /// alone.
    pub whole: bool,
    cells: [Cells; 2],
    lists: DeviceLists,
    bodies: [Buffer<Body>; 2],
    sums: Buffer<Sum>,
    delivery: Delivery,
    needed: Needed,
    /// The near part of the potential, where the forces were summed without it.
    more: Buffer<Sum>,
    near: Near,
    far: (Option<Far<f32>>, Option<Far<f64>>),
    last: Option<Last>,
}

/// The sum whose arrays these are.
struct Last {
    planned: Planned,
    softening: Softening,
    strength_scale: f64,
    /// Σ|q| of the scaled strengths, see [`Ends::total`].
    total: f64,
    /// Whether the potential is summed already.
    whole: bool,
}

/// Work that may run after the near field, at the same time as the far field.
pub type More<'a> = &'a mut dyn FnMut(&Stream) -> Result<(), Error>;

/// What a stage has left, for comparisons with the CPU's: multipoles and local expansions cell after cell, and sums at the targets
/// in the order of their tree, of strengths that are multiplied by the last number.
pub type Watch<'a> = &'a mut dyn FnMut(Stage, Vec<f64>, Vec<f64>, Vec<Sum>, f64);

impl Fmm {
    /// Trees and lists of `sources` at `targets` or at themselves, `[n][3]` within `cube`, made on
    /// the device; with a ternary root where a wider cube is given for it and bodies are in all of
    /// these.
    #[expect(clippy::too_many_arguments, reason = "the ends of one plan")]
    pub fn plan(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        settings: &Settings,
        choice: Choice,
        (cube, wide): (Cube<3>, Option<Cube<3>>),
        (sources, targets): (&Buffer<f64>, Option<&Buffer<f64>>),
        times: &mut StageTimes,
    ) -> Result<Planned, Error> {
        let rule = policy::rule(settings, &choice);
        let cell = settings.boundary.periodic();
        let space = cell.map_or_else(|| Space::open(cube.side), |cell| Space::periodic(cell.side, &rule));
        let classes = Classes::of_space(rule.separation2, &space);
        let lists = &mut self.lists;
        let [at, from] = &mut self.cells;
        let ternary = times.time(Stage::Tree, || {
            let mut ternary = false;
            if let (Some(wide), None) = (wide, targets) {
                at.build(gpu, work, sources, wide, choice.leaf_size)?;
                ternary = ternary_root::has_all(&at.tree);
            }
            if ternary {
                return Ok(true);
            }
            at.build(gpu, work, targets.unwrap_or(sources), cube, choice.leaf_size)?;
            cell.map_or(Ok(()), |cell| boxed::unstretch(gpu, cell, &at.tree))?;
            if targets.is_some() {
                from.build(gpu, work, sources, cube, choice.leaf_size)?;
                cell.map_or(Ok(()), |cell| boxed::unstretch(gpu, cell, &from.tree))?;
            }
            Ok::<_, Error>(false)
        })?;
        at.divide(gpu, gpu.member().filter(|_| self.divided), targets.is_none())?;
        let from = if targets.is_some() { &from.tree } else { &at.tree };
        times.time(Stage::Lists, || {
            if ternary {
                let met = ternary_root::neighbours(at.tree.level_start()[ternary_root::LEVEL]);
                lists.fmm_from(gpu, work, &space, &at.tree, from, rule, classes, (ternary_root::LEVEL, &met))
            } else if choice.method == Method::Treecode {
                lists.treecode(gpu, work, &space, &at.tree, from, rule)
            } else {
                lists.fmm(gpu, work, &space, &at.tree, from, rule, classes)
            }
        })?;
        Ok(Planned {
            coincident_pairs: from.coincident_pairs(),
            closest: accuracy::closest_pair(settings.tolerance),
            same: targets.is_none(),
            choice,
            classes,
            space: cell.is_some().then_some(space),
            ternary,
        })
    }

    /// Copies trees and lists of the CPU.
    pub fn take(&mut self, plan: &OctreePlan<3>) -> Result<Planned, Error> {
        self.cells[0].upload(&plan.targets)?;
        // Every GPU of a team sums all of it.
        self.cells[0].undivide();
        if let Some(sources) = &plan.sources {
            self.cells[1].upload(sources)?;
        }
        self.lists.upload(&plan.lists)?;
        Ok(Planned {
            choice: plan.choice.clone(),
            coincident_pairs: plan.source_tree().coincident_pairs,
            classes: plan.geometry.classes,
            closest: plan.geometry.closest,
            same: plan.sources.is_none(),
            space: plan.geometry.lattice.is_some().then(|| plan.geometry.space.clone()),
            ternary: false,
        })
    }

    /// Executes a plan; the sums are in the caller's order where `output` says.
    #[expect(clippy::too_many_arguments, reason = "the ends of one sum")]
    pub fn sum(
        &mut self,
        gpu: &Gpu,
        settings: &Settings,
        planned: &Planned,
        ends: Ends,
        output: Output,
        times: &mut StageTimes,
        watch: Option<Watch>,
        more: Option<More>,
    ) -> Result<(), Error> {
        if planned.choice.precision == Precision::F32 {
            let kept = self.far.0.take();
            self.far.0 = Some(self.sum_as(gpu, settings, planned, ends, output, times, (watch, more), kept)?);
        } else {
            let kept = self.far.1.take();
            self.far.1 = Some(self.sum_as(gpu, settings, planned, ends, output, times, (watch, more), kept)?);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the ends of one sum")]
    fn sum_as<T: DeviceReal>(
        &mut self,
        gpu: &Gpu,
        settings: &Settings,
        planned: &Planned,
        ends: Ends,
        output: Output,
        times: &mut StageTimes,
        (mut watch, mut more): (Option<Watch>, Option<More>),
        kept: Option<Far<T>>,
    ) -> Result<Far<T>, Error> {
        let choice = &planned.choice;
        let rule = policy::rule(settings, choice);
        let nearer = rule.min_distance > 0.0 || rule.most_near > 1;
        let offsets = Offsets { separation2: rule.separation2, nearer, classes: planned.classes };
        let n = ends.at().n;
        let mut far = times.time_more(Stage::Tree, || {
            direct::fits(gpu, self.growth(ends), &format!("bodies and sums of {n} targets"))?;
            self.near.plan(n, ends.sources.n);
            self.sums.resize(n)?;
            self.delivery.ready(n)?;
            let order = choice.order.unwrap_or(1);
            let tree = &self.cells[0].tree;
            let softened = (choice.expansion == Some(Family::Cartesian)).then_some(Softened {
                softening: settings.softening,
                side: tree.side(),
                levels: tree.level_start().len() - 1,
            });
            let place = &self.place(planned);
            let squares = ends.mixed && settings.estimates_errors();
            let accuracy = (settings.tolerance, choice.precision);
            let mut far = Far::<T>::ready(gpu, kept, (order, softened), offsets, accuracy, squares, place)?;
            planned.space.as_ref().map_or(Ok(()), |space| far.ready_lattice(space, planned.ternary))?;
            // Tables may have been copied, for which the queue does not wait.
            gpu.settle()?;
            Ok::<_, Error>(far)
        })?;
        let scale = ends.strength_scale();
        let mut clock = Clock::start(gpu)?;
        self.sums.fill(gpu.stream(), 0)?;
        clock.mark(Some(Stage::Tree))?;
        // Taken out of `self` because the sum borrows the rest; after an error a new one is made.
        let mut near = std::mem::take(&mut self.near);
        let place = self.place(planned);
        let potential = !output.potential.is_null();
        let mut meet = |stream: &Stream| {
            near.sum(gpu, stream, &place, settings.softening, choice.precision, planned.closest, potential)
        };
        // Near and far field at once: neither needs the other until the expansions add to the sums at bodies.
        let beside = watch.is_none() && !self.apart;
        let stages = if planned.space.is_some() { periodic_schedule(choice.method) } else { schedule(choice.method) };
        // Pairs in single precision after M2M, whose few blocks on each level would wait for the many of the
        // near field that are there already.
        let late = choice.method == Method::Fmm && choice.precision != Precision::F64;
        let begins = if late { Stage::M2L } else { stages[0] };
        for &stage in stages {
            if beside && stage == begins {
                gpu.order(gpu.stream(), gpu.side())?;
                clock.beside(gpu.side(), Stage::P2P, || meet(gpu.side()))?;
            }
            if stage != Stage::P2P {
                far.stage(gpu, &place, stage)?;
            } else if beside {
                gpu.order(gpu.side(), gpu.stream())?;
                if let Some(more) = more.take() {
                    more(gpu.side())?;
                }
                clock.mark(None)?;
                continue;
            } else {
                meet(gpu.stream())?;
            }
            clock.mark(Some(stage))?;
            if let Some(watch) = &mut watch {
                gpu.finish()?;
                let numbers = |b: &Buffer<T>| Ok::<_, Error>(b.download()?.into_iter().map(T::to_f64).collect());
                watch(stage, numbers(&far.multipoles)?, numbers(&far.locals)?, self.sums.download()?, scale);
            }
        }
        if let Some(more) = more {
            more(gpu.stream())?;
        }
        self.near = near;
        let team = (self.member(gpu), self.whole);
        let from = Sorted { sums: &self.sums, more: None, order: self.order(), strength_scale: scale };
        self.delivery.deliver(gpu, team, from, output)?;
        clock.mark(Some(if self.cells[0].tree.is_divided() { Stage::Exchange } else { Stage::Output }))?;
        clock.read(times)?;
        if far.faulty()? {
            return Err(Error::Device("a list has a pair of cells that no M2L operator serves".into()));
        }
        let (softening, planned) = (settings.softening, planned.clone());
        self.last =
            Some(Last { planned, softening, strength_scale: scale, total: scale * ends.total, whole: potential });
        Ok(far)
    }

    /// The last sum for its error field, which is to keep `tolerance`, and gets this background; none of direct sums.
    pub fn predicted(&self, tolerance: f64, background: Background) -> Option<Predicted> {
        let Last { planned, softening, total, .. } = self.last.as_ref()?;
        let (family, order) = (planned.choice.expansion?, planned.choice.order?);
        let (place, tree) = (self.place(planned), &self.cells[0].tree);
        let cells = |cells: &Cells| cells.tree.level_start().last().map_or(0, |&end| end as usize);
        let from = usize::from(!planned.same);
        let sources = cells(&self.cells[from]);
        let about = Described {
            root: 0.5 * tree.side(),
            aspect: planned.space.as_ref().filter(|_| !planned.ternary).map_or([1.0; 3], Space::aspect),
            family,
            order,
            precision: planned.choice.precision,
            classes: planned.classes,
            tolerance,
            softening: *softening,
            background: background.scaled(self.strength_scale()),
            total: if planned.space.is_none() { *total } else { f64::INFINITY },
            locals: planned.space.is_some() || planned.choice.method == Method::Fmm,
            distributed: tree.is_divided() && !self.whole,
        };
        let (cells, targets) = ([sources, cells(&self.cells[0])], self.sums.len());
        match planned.choice.precision {
            Precision::F32 => Some(Predicted::new(&place, self.far.0.as_ref()?, &self.near, cells, targets, about)),
            _ => Some(Predicted::new(&place, self.far.1.as_ref()?, &self.near, cells, targets, about)),
        }
    }

    /// The potential of the last sum, at the places that its bodies had.
    pub fn potential(&mut self, gpu: &Gpu, potential: DevicePointer<f64>) -> Result<(), Error> {
        let Some(last) = &self.last else { return Ok(()) };
        let n = self.sums.len();
        if !last.whole {
            self.more.resize(n)?;
            self.more.fill(gpu.stream(), 0)?;
            let planned = &last.planned;
            let mut near = std::mem::take(&mut self.near);
            let place = Place { sums: self.more.pointer(), ..self.place(planned) };
            near.sum(gpu, gpu.stream(), &place, last.softening, planned.choice.precision, planned.closest, true)?;
            self.near = near;
        }
        let (more, strength_scale) = ((!last.whole).then_some(&self.more), last.strength_scale);
        let from = Sorted { sums: &self.sums, more, order: self.order(), strength_scale };
        let output = Output { field: DevicePointer::null(), potential };
        let team = (self.member(gpu), self.whole);
        self.delivery.deliver(gpu, team, from, output)?;
        gpu.finish()
    }

    /// The place in a team that shares the targets of the last plan.
    fn member<'a>(&self, gpu: &'a Gpu) -> Option<&'a Member> {
        gpu.member().filter(|_| self.is_divided())
    }

    /// Whether the GPUs of a team share the targets of the last plan.
    pub fn is_divided(&self) -> bool {
        self.cells[0].tree.is_divided()
    }

    /// Whether the results of the last sum are right in this GPU's slice of the caller's order
    /// alone.
    pub fn is_sliced(&self) -> bool {
        self.delivery.is_sliced()
    }

    /// The second derivatives of the potential of the last sum by `arrays`, to `out` in the caller's order.
    ///
    /// # Errors
    /// [`Error::Device`] where memory lacks or the device fails.
    pub fn hessian(
        &self,
        gpu: &Gpu,
        arrays: &mut Hessian,
        out: DevicePointer<f64>,
        times: &mut StageTimes,
    ) -> Result<(), Error> {
        let Some(Last { planned, softening, strength_scale, .. }) = &self.last else { return Ok(()) };
        let sum = Executed {
            place: self.place(planned),
            softening: *softening,
            side: self.cells[0].tree.side(),
            targets: self.sums.len(),
            inverse: self.delivery.inverse(),
            strength_scale: *strength_scale,
        };
        match (planned.choice.precision, &self.far) {
            (Precision::F32, (Some(far), _)) => arrays.of_plan(gpu, &sum, far, out, times),
            (_, (_, Some(far))) => arrays.of_plan(gpu, &sum, far, out, times),
            _ => Ok(()),
        }
    }

    /// Bytes more of device memory than there are now for bodies and sums.
    pub fn growth(&self, ends: Ends) -> usize {
        let n = ends.at().n;
        let each = [Some(ends.at()), ends.targets.map(|_| ends.sources)];
        let bodies = self.bodies.iter().zip(each).map(|(b, p)| p.map_or(0, |p| b.growth(p.n))).sum::<usize>();
        bodies
            + self.needed.growth(&self.cells[0])
            + self.sums.growth(n)
            + self.delivery.growth(n)
            + self.near.growth(ends.sources.n)
    }

    /// Gives back the memory that is needed until the trees are made.
    pub fn trim(&mut self, work: &mut Work) {
        work.trim();
        self.cells.iter_mut().for_each(|cells| cells.tree.trim());
    }

    /// Queues the copying of bodies into the order of their trees: of those that this GPU of a team
    /// needs, where it does not get all results.
    pub fn gather(&mut self, gpu: &Gpu, ends: Ends) -> Result<(), Error> {
        if let Some(member) = gpu.member().filter(|_| !self.whole && self.cells[0].parts().is_some()) {
            let (sources, more) = (ends.sources, guard::sources_of(member, ends.sources.n));
            let (tree, from) = ((&self.cells[0], &self.lists), (sources, ends.strength_scale()));
            return self.needed.gather(gpu, tree, from, more, &mut self.bodies[0]);
        }
        self.needed.all()?;
        let targets = ends.targets.map(|points| (points, 0));
        let from = if targets.is_some() { 1 } else { 0 };
        for (points, k) in [Some((ends.sources, from)), targets].into_iter().flatten() {
            self.bodies[k].resize(points.n)?;
            if points.n == 0 {
                continue;
            }
            let view = GatherView {
                position: points.position,
                strength: points.strength,
                order: self.cells[k].tree.order.pointer(),
                bodies: self.bodies[k].pointer(),
                strength_scale: ends.strength_scale(),
                n: points.n as u32,
                ..GatherView::default()
            };
            let blocks = points.n.div_ceil(TILE) as u32;
            // SAFETY: all arrays are of the points' number.
            unsafe { gpu.kernels().launch(gpu.stream(), "gather_tree_f64", blocks, TILE as u32, &view)? };
        }
        Ok(())
    }

    fn place(&self, planned: &Planned) -> Place<'_> {
        let same = planned.same;
        let from = usize::from(!same);
        let lists = [self.lists.m2l(), self.lists.m2p(), self.lists.p2l(), self.lists.p2p()];
        let [m2l, m2p, p2l, p2p] = lists.map(rows);
        let leaves = |cells: &Cells| (cells.tree.leaves.pointer(), cells.tree.leaves.len());
        Place {
            targets: self.cells[0].view(),
            sources: self.cells[from].view(),
            target_tiles: &self.cells[0].tree.tiles,
            source_tiles: &self.cells[from].tree.tiles,
            source_cells: self.cells[from].tree.level_start(),
            target_leaves: leaves(&self.cells[0]),
            source_leaves: leaves(&self.cells[from]),
            m2l,
            m2p,
            p2l,
            p2p,
            pairs: lists.map(|list| list.pairs.len()),
            target_bodies: self.bodies[0].pointer(),
            source_bodies: self.bodies[from].pointer(),
            sums: self.sums.pointer(),
            parts: self.cells[0].parts(),
            needed: self.needed.pointer(),
            same,
            sides: planned.space.as_ref().map_or([0.0; 3], |space| space.sides),
            ternary_root: planned.ternary.then(|| self.cells[0].tree.level_start()[ternary_root::LEVEL]),
        }
    }

    /// The place of each target of the last sum in the caller's order, in the order of their tree.
    pub fn order(&self) -> DevicePointer<u32> {
        self.cells[0].tree.order.pointer()
    }

    /// The sums at the targets, in the order of their tree.
    pub fn sums(&self) -> DevicePointer<Sum> {
        self.sums.pointer()
    }

    /// What the strengths of the last sum were multiplied by.
    pub fn strength_scale(&self) -> f64 {
        self.last.as_ref().map_or(1.0, |last| last.strength_scale)
    }

    /// Sources and targets of the last sum, in the order of their trees; of a team that distributes
    /// results each GPU has those that its lists name, and the guard's. `same` says whether they
    /// are the same.
    pub fn bodies(&self, same: bool) -> [DevicePointer<Body>; 2] {
        [self.bodies[usize::from(!same)].pointer(), self.bodies[0].pointer()]
    }

    /// The fields of the last sum in the order of the targets' tree, of scaled strengths; four numbers from one to the next.
    pub fn fields(&self) -> DevicePointer<f64> {
        // The potential comes first.
        self.sums.pointer().cast::<f64>().wrapping_add(1)
    }
}
