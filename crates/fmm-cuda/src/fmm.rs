//! Sums on the device by fast methods: trees, lists and every operator.

use fmm_core::accuracy;
use fmm_core::cpu::{self, power_of_two_below};
use fmm_core::expansion::{Cartesian, Spherical};
use fmm_core::lists::{Classes, Csr, Lists, Pair};
use fmm_core::plan::Plan;
use fmm_core::tree::Cube;
use fmm_core::{Choice, Error, Family, Method, Precision, Settings, Softening, Stage, StageTimes};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::cells::{Cells, Rows, made};
use crate::clock::Clock;
use crate::direct::{self, Output};
use crate::far::Far;
use crate::geometry::{DeviceLists, Work};
use crate::near::Near;
use crate::operators::{DeviceReal, Offsets, Operators};
use crate::order::Points;
use crate::view::{Body, CsrView, GatherView, Sum, TILE, TreeView};

use cust::memory::DevicePointer;

/// Where the arrays of a sum are.
#[derive(Clone, Copy)]
pub struct Place {
    /// Tree of the targets.
    pub targets: TreeView,
    /// Tree of the sources, perhaps the same.
    pub sources: TreeView,
    /// Well-separated cells.
    pub m2l: CsrView,
    /// Multipoles at leaves.
    pub m2p: CsrView,
    /// Bodies of leaves to cells.
    pub p2l: CsrView,
    /// Direct sums.
    pub p2p: CsrView,
    /// In the order of their tree.
    pub target_bodies: DevicePointer<Body>,
    /// In the order of their tree.
    pub source_bodies: DevicePointer<Body>,
    /// In the order of the targets' tree, of scaled strengths.
    pub sums: DevicePointer<Sum>,
    /// Whether targets and sources are the same bodies, of which none sees itself.
    pub same: bool,
}

/// The arrays of sums by fast methods, kept from sum to sum.
#[derive(Default)]
pub struct Fmm {
    cells: [Cells; 2],
    /// Lists of the CPU.
    rows: [Rows; 4],
    /// Lists made here.
    lists: DeviceLists,
    work: Work,
    /// Whether trees and lists were made here, and lie there already.
    made: bool,
    bodies: [Buffer<Body>; 2],
    sums: Buffer<Sum>,
    /// Caller's order → sorted place of the targets.
    inverse: Buffer<u32>,
    /// The near part of the potential, where the forces were summed without it.
    more: Buffer<Sum>,
    near: Near,
    tables: (Option<Operators<f32>>, Option<Operators<f64>>),
    last: Option<Last>,
}

/// The sum whose arrays these are.
struct Last {
    /// Whether its lists were made here.
    made: bool,
    /// Whether targets were the sources.
    same: bool,
    softening: Softening,
    precision: Precision,
    closest: f64,
    strength_scale: f64,
    /// Whether the potential is summed already.
    whole: bool,
}

/// What a stage has left, for comparisons with the CPU's: multipoles and local expansions cell after cell, and sums at the targets
/// in the order of their tree, of strengths that are multiplied by the last number.
pub type Watch<'a> = &'a mut dyn FnMut(Stage, Vec<f64>, Vec<f64>, Vec<Sum>, f64);

/// Targets, and how much of their force the last degree of the expansions makes.
pub type Shares = Vec<(u32, f64)>;

/// Points on the device; targets only where they are not the sources.
#[derive(Clone, Copy)]
pub struct Ends {
    /// Sources.
    pub sources: Points,
    /// Other targets.
    pub targets: Option<Points>,
    /// The largest |q|.
    pub largest: f64,
}

impl Ends {
    /// The power of two that strengths are multiplied by.
    pub fn strength_scale(&self) -> f64 {
        power_of_two_below(1.0 / self.largest)
    }
}

impl Fmm {
    /// Trees and lists of `sources` at `targets` or at themselves, `[n][3]` within `cube`, made on the device. What is returned is what
    /// the host needs of them: the trees, the lists of bodies with cells, and of M2L one pair that says that there are some.
    /// `None` if keys do not resolve the bodies, which is for [`Plan::new`].
    pub fn plan(
        &mut self,
        gpu: &Gpu,
        settings: &Settings,
        choice: Choice,
        cube: Cube<3>,
        (sources, targets): (&Buffer<f64>, Option<&Buffer<f64>>),
        times: &mut StageTimes,
    ) -> Result<Option<Plan<3>>, Error> {
        self.made = false;
        let rule = accuracy::rule(settings, &choice);
        let classes = Classes::new(rule.separation2);
        let (lists, work) = (&mut self.lists, &mut self.work);
        let [at, from] = &mut self.cells;
        times.time(Stage::Tree, || {
            at.build(gpu, work, targets.unwrap_or(sources), cube, choice.leaf_size)?;
            if targets.is_some() {
                from.build(gpu, work, sources, cube, choice.leaf_size)?;
            }
            Ok::<_, Error>(())
        })?;
        let from = targets.is_some().then_some(&*from);
        if at.tree.on_host() || from.is_some_and(|f| f.tree.on_host()) {
            return Ok(None);
        }
        times.time(Stage::Lists, || {
            let sources = from.map_or(&at.tree, |f| &f.tree);
            if choice.method == Method::Treecode {
                lists.treecode(gpu, work, &at.tree, sources, rule)
            } else {
                lists.fmm(gpu, work, &at.tree, sources, rule, classes)
            }
        })?;
        self.made = true;
        times.time_more(Stage::Tree, || {
            let none = lists.m2l().pairs.is_empty();
            let first = if none { vec![] } else { vec![Pair { source: 0, class: 0 }] };
            Ok(Some(Plan {
                choice,
                targets: at.tree.download()?,
                sources: from.map(|f| f.tree.download()).transpose()?,
                lists: Lists {
                    m2l: Csr { start: vec![], pairs: first },
                    m2p: lists.m2p().download()?,
                    p2l: lists.p2l().download()?,
                    p2p: Csr::default(),
                },
                closest: accuracy::closest_pair(settings.tolerance),
                classes,
            }))
        })
    }

    /// Copies trees and lists of the CPU.
    fn upload(&mut self, plan: &Plan<3>) -> Result<(), Error> {
        self.cells[0].upload(&plan.targets)?;
        if let Some(sources) = &plan.sources {
            self.cells[1].upload(sources)?;
        }
        let lists = [&plan.lists.m2l, &plan.lists.m2p, &plan.lists.p2l, &plan.lists.p2p];
        self.rows.iter_mut().zip(lists).try_for_each(|(rows, list)| rows.upload(list))
    }

    /// Executes `plan`; the sums are in the caller's order where `output` says. With `guarded` returns where they err most.
    #[expect(clippy::too_many_arguments, reason = "the ends of one sum")]
    pub fn sum(
        &mut self,
        gpu: &Gpu,
        settings: &Settings,
        plan: &Plan<3>,
        ends: Ends,
        output: Output,
        guarded: Option<&[[f64; 3]]>,
        times: &mut StageTimes,
        watch: Option<Watch>,
    ) -> Result<Shares, Error> {
        if plan.choice.precision == Precision::F32 {
            let kept = self.tables.0.take();
            let (shares, tables) =
                self.sum_as::<f32>(gpu, settings, plan, ends, output, guarded, times, watch, kept)?;
            self.tables.0 = Some(tables);
            Ok(shares)
        } else {
            let kept = self.tables.1.take();
            let (shares, tables) =
                self.sum_as::<f64>(gpu, settings, plan, ends, output, guarded, times, watch, kept)?;
            self.tables.1 = Some(tables);
            Ok(shares)
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the ends of one sum")]
    fn sum_as<T: DeviceReal>(
        &mut self,
        gpu: &Gpu,
        settings: &Settings,
        plan: &Plan<3>,
        ends: Ends,
        output: Output,
        guarded: Option<&[[f64; 3]]>,
        times: &mut StageTimes,
        mut watch: Option<Watch>,
        kept: Option<Operators<T>>,
    ) -> Result<(Shares, Operators<T>), Error> {
        let rule = accuracy::rule(settings, &plan.choice);
        let softened = rule.min_distance > 0.0;
        let offsets = Offsets { separation2: rule.separation2, softened, classes: plan.classes };
        let n = plan.targets.order.len();
        let pairs = [&plan.lists.m2l, &plan.lists.m2p, &plan.lists.p2l, &plan.lists.p2p];
        let made = std::mem::take(&mut self.made);
        let listed: usize = pairs.iter().map(|list| 8 * (list.pairs.len() + list.start.len())).sum();
        let bodies = 52 * (n + plan.sources.as_ref().map_or(0, |s| s.order.len())) + 32 * n;
        direct::fits(gpu, listed + bodies + Far::<T>::bytes(plan), &format!("expansions and lists of {n} targets"))?;

        let mut far = times.time_more(Stage::Tree, || {
            if !made {
                self.upload(plan)?;
            }
            self.near.plan(n, plan.source_tree().order.len());
            self.sums.resize(n)?;
            self.inverse.resize(n)?;
            let far = Far::<T>::new(gpu, plan, offsets, settings, kept)?;
            gpu.settle()?;
            Ok::<_, Error>(far)
        })?;
        let scale = ends.strength_scale();
        let mut clock = Clock::start(gpu)?;
        self.gather(gpu, ends)?;
        self.sums.fill(gpu.stream(), 0)?;
        clock.mark(Some(Stage::Tree))?;
        let place = self.place(plan.sources.is_none(), made);
        self.last = Some(Last {
            made,
            same: plan.sources.is_none(),
            softening: settings.softening,
            precision: plan.choice.precision,
            closest: plan.closest,
            strength_scale: scale,
            whole: !output.potential.is_null(),
        });
        for &stage in plan.schedule() {
            if stage == Stage::P2P {
                let Choice { precision, .. } = plan.choice;
                let potential = !output.potential.is_null();
                self.near.sum(gpu, &place, settings.softening, precision, plan.closest, potential)?;
            } else {
                far.stage(gpu, &place, stage)?;
            }
            clock.mark(Some(stage))?;
            if let Some(watch) = &mut watch {
                gpu.finish()?;
                let numbers = |b: &Buffer<T>| Ok::<_, Error>(b.download()?.into_iter().map(T::to_f64).collect());
                watch(stage, numbers(&far.multipoles)?, numbers(&far.locals)?, self.sums.download()?, scale);
            }
        }
        self.scatter(gpu, output, DevicePointer::null(), scale, n)?;
        clock.mark(Some(Stage::Output))?;
        clock.read(times)?;
        if far.faulty()? {
            return Err(Error::Device("a list has a pair of cells that no M2L operator serves".into()));
        }
        let shares = match guarded {
            Some(at) => times.time_more(Stage::Guard, || {
                let used =
                    |list: &Csr, all: &Buffer<T>| if list.pairs.is_empty() { Ok(vec![]) } else { all.download() };
                // Multipoles are asked at leaves alone; local expansions where there is M2L.
                let multipoles = used(&plan.lists.m2p, &far.multipoles)?;
                let locals = used(&plan.lists.m2l, &far.locals)?;
                let sums = self.sums.download()?;
                let sums: Vec<_> = sums.iter().map(|s| cpu::Sum { potential: s.potential, field: s.field }).collect();
                let (order, classes) = (plan.choice.order.unwrap_or(1), plan.classes);
                let expansions = (&multipoles[..], &locals[..]);
                let mut shares = if plan.choice.expansion == Some(Family::Cartesian) {
                    let (side, levels) = (plan.targets.side, plan.targets.levels());
                    let expansion = Cartesian::<T>::new(order, settings.softening, classes, side, levels);
                    cpu::last_degree(&expansion, plan, at, expansions, &sums)
                } else {
                    cpu::last_degree(&Spherical::<T>::new(order, classes), plan, at, expansions, &sums)
                };
                shares.iter_mut().for_each(|s| s.0 = plan.targets.order[s.0 as usize]);
                Ok::<_, Error>(shares)
            })?,
            None => vec![],
        };
        Ok((shares, far.into_operators()))
    }

    /// The potential of the last sum, at the places that its bodies had.
    pub fn potential(&mut self, gpu: &Gpu, potential: DevicePointer<f64>) -> Result<(), Error> {
        let Some(last) = &self.last else { return Ok(()) };
        let n = self.sums.len();
        if !last.whole {
            self.more.resize(n)?;
            self.more.fill(gpu.stream(), 0)?;
            let place = Place { sums: self.more.pointer(), ..self.place(last.same, last.made) };
            self.near.sum(gpu, &place, last.softening, last.precision, last.closest, true)?;
        }
        let more = if last.whole { DevicePointer::null() } else { self.more.pointer() };
        self.scatter(gpu, Output { field: DevicePointer::null(), potential }, more, last.strength_scale, n)?;
        gpu.finish()
    }

    /// Queues the copying of bodies into the order of their trees.
    fn gather(&mut self, gpu: &Gpu, ends: Ends) -> Result<(), Error> {
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
                inverse: DevicePointer::null(),
                bodies: self.bodies[k].pointer(),
                sums: DevicePointer::null(),
                more: DevicePointer::null(),
                field: DevicePointer::null(),
                potential: DevicePointer::null(),
                strength_scale: ends.strength_scale(),
                n: points.n as u32,
            };
            let blocks = points.n.div_ceil(TILE) as u32;
            // SAFETY: all arrays are of the points' number.
            unsafe { gpu.kernels().launch(gpu.stream(), "gather_tree_f64", blocks, TILE as u32, &view)? };
        }
        Ok(())
    }

    /// Queues the copying of the sums into the caller's order.
    fn scatter(&self, gpu: &Gpu, output: Output, more: DevicePointer<Sum>, scale: f64, n: usize) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        let view = GatherView {
            position: DevicePointer::null(),
            strength: DevicePointer::null(),
            order: self.cells[0].tree.order.pointer(),
            inverse: self.inverse.pointer(),
            bodies: DevicePointer::null(),
            sums: self.sums.pointer(),
            more,
            field: output.field,
            potential: output.potential,
            strength_scale: scale,
            n: n as u32,
        };
        // SAFETY: all arrays are of the targets' number.
        let launch =
            |name| unsafe { gpu.kernels().launch(gpu.stream(), name, n.div_ceil(TILE) as u32, TILE as u32, &view) };
        launch("invert_order")?;
        launch("return_sums_f64")
    }

    fn place(&self, same: bool, here: bool) -> Place {
        let from = usize::from(!same);
        let lists = &self.lists;
        let [m2l, m2p, p2l, p2p] = if here {
            [lists.m2l(), lists.m2p(), lists.p2l(), lists.p2p()].map(made)
        } else {
            self.rows.each_ref().map(Rows::view)
        };
        Place {
            targets: self.cells[0].view(),
            sources: self.cells[from].view(),
            m2l,
            m2p,
            p2l,
            p2p,
            target_bodies: self.bodies[0].pointer(),
            source_bodies: self.bodies[from].pointer(),
            sums: self.sums.pointer(),
            same,
        }
    }

    /// The sources of the last sum, in the order of their tree; `same` says whether they were the targets.
    pub fn source_bodies(&self, same: bool) -> &Buffer<Body> {
        &self.bodies[usize::from(!same)]
    }
}
