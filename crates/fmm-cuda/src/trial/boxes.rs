//! Sums over all images of a periodic box.

use cust::memory::DevicePointer;
use cust::stream::Stream;
use fmm_core::accuracy;
use fmm_core::mesh::{Mesh, Recipe, recipe};
use fmm_core::{Choice, Error, PeriodicBox, Settings, Stage};

use super::measure::guarded;
use super::{Arrays, SpaceTrial, Summed};
use crate::direct;
use crate::ewald;
use crate::fmm::More;
use crate::order::Units;
use crate::policy;
use crate::ternary_root;

impl SpaceTrial<'_> {
    /// A sum over all images with expansions.
    pub(super) fn sum_in_box(
        &mut self,
        settings: &Settings,
        choice: &Choice,
        cell: &PeriodicBox,
    ) -> Result<Summed, Error> {
        let output = self.output();
        let ends = self.inputs.ends();
        let (gpu, Arrays { fmm, work, boxed, guard, .. }) = (self.gpu, &mut *self.arrays);
        let within = boxed.ends(ends);
        // The waves of the guard's sums do not depend on its sample, and the far field leaves most
        // of what they need idle.
        let begins = !self.begun && settings.guarded().is_some() && within.sources.n > 0 && within.at().n > 0;
        let sources = guarded(cell, boxed, within, self.tolerance);
        let mut begin = |stream: &Stream| guard.ewald.begin(gpu, stream, sources);
        let more: Option<More> = if begins { Some(&mut begin) } else { None };
        self.begun |= begins;
        let rule = policy::rule(settings, choice);
        let ternary = self.fits && ternary_root::pay(settings, choice, &rule, cell, &self.problem);
        let cubes = (self.cube, ternary.then(|| ternary_root::cube(cell)));
        let planned = fmm.plan(gpu, work, settings, choice.clone(), cubes, boxed.places(cell, ends), self.times)?;
        fmm.gather(gpu, within)?;
        fmm.sum(gpu, settings, &planned, within, output, self.times, None, more)?;
        boxed.finish(gpu, cell, ends, true, output)?;
        Ok(Summed { coincident_pairs: Some(planned.coincident_pairs), ..Summed::default() })
    }

    /// A sum over all images with a mesh.
    pub(super) fn sum_with_mesh(
        &mut self,
        settings: &Settings,
        choice: &Choice,
        cell: &PeriodicBox,
    ) -> Result<Summed, Error> {
        let output = self.output();
        let ends = self.inputs.ends();
        let (gpu, Arrays { mesh, work, boxed, guard, .. }) = (self.gpu, &mut *self.arrays);
        let within = boxed.ends(ends);
        if within.sources.n == 0 || within.at().n == 0 {
            self.field.fill(gpu.stream(), 0)?;
            self.potential.iter_mut().try_for_each(|potential| potential.fill(gpu.stream(), 0))?;
            gpu.finish()?;
            return Ok(Summed { coincident_pairs: Some(0), ..Summed::default() });
        }
        // As in sums with expansions: the waves of the guard's sums fill what the mesh leaves idle.
        let begins = !self.begun && settings.guarded().is_some();
        let sources = guarded(cell, boxed, within, self.tolerance);
        let mut begin = |stream: &Stream| guard.ewald.begin(gpu, stream, sources);
        let more: Option<More> = if begins { Some(&mut begin) } else { None };
        self.begun |= begins;
        let request = Mesh {
            cell: *cell,
            softening: settings.softening,
            recipe: Recipe::of(choice.order.unwrap_or(*Recipe::ORDERS.end())),
            cutoff: recipe::cutoff(cell.volume(), within.sources.n, choice.leaf_size),
            precision: choice.precision,
            closest: accuracy::closest_pair(settings.tolerance),
        };
        let crowding = accuracy::crowding_in(cell, &self.problem);
        let of = (boxed.charge(), crowding);
        let coincident = mesh.sum(gpu, work, &request, within, of, output, more, self.times)?;
        boxed.finish(gpu, cell, ends, false, output)?;
        Ok(Summed { coincident_pairs: Some(coincident), ..Summed::default() })
    }

    /// Ewald's sum at all targets.
    pub(super) fn direct_in_box(&mut self, cell: &PeriodicBox) -> Result<(), Error> {
        let output = self.output();
        let ends = self.inputs.ends();
        let (gpu, Arrays { boxed, ewald, ewald_bodies: [sources, targets], .. }) = (self.gpu, &mut *self.arrays);
        let within = boxed.ends(ends);
        let units = Units { cube: self.cube, scale: 1.0, strength_scale: ends.strength_scale() };
        let bodies = [Some(within.sources.n), within.targets.map(|t| t.n)].into_iter().flatten().sum::<usize>();
        direct::fits(gpu, 32 * bodies, &format!("{bodies} particles"))?;
        self.times.time(Stage::P2P, || {
            sources.arrange(gpu, within.sources, units, false)?;
            let same = within.targets.is_none();
            if let Some(points) = within.targets {
                targets.arrange(gpu, points, units, false)?;
            }
            let all = ewald::Sources {
                cell,
                accuracy: fmm_core::ewald::EXACT,
                single: false,
                points: within.sources,
                strength_scale: units.strength_scale,
                charge: boxed.charge(),
                targets: within.at().n,
            };
            ewald.begin(gpu, gpu.stream(), all)?;
            let request = ewald::Request {
                softening: self.softening,
                sources: sources.bodies.pointer(),
                targets: if same { sources.bodies.pointer() } else { targets.bodies.pointer() },
                same,
                order: DevicePointer::null(),
            };
            ewald.all(gpu, request, within.at().n, output)?;
            boxed.finish(gpu, cell, ends, false, output)?;
            gpu.finish()
        })
    }
}
