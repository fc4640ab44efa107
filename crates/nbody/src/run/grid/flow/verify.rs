//! Checks of a flow: velocities that the solver gave in a sample of the cells, against direct sums.

use fmm_core::grid::Solution;

use super::{FlowRun, refused};
use crate::failure::Failure;
use crate::run::verify::{Measured, chosen, relative_l2};
use crate::scenario::grid::VelocityCheck;
use fmm::GridStore;

impl<S: GridStore> FlowRun<S> {
    /// Measures the error of the velocities of a solution for `vorticity`. That is the vorticity
    /// from before: solving has taken away what of it is no curl.
    pub(super) fn verify(&mut self, vorticity: &[[f64; 3]], solution: &Solution<S::Field>) -> Result<(), Failure> {
        let (grid, scenario) = (self.flow.grid(), &self.scenario);
        let Some(VelocityCheck { verify, tolerance }) = scenario.steps.verify else { return Ok(()) };
        let (step, time) = (self.course.step, self.course.time());
        let cells: Vec<u32> = chosen(grid.cells(), verify.sample, step).map(|cell| cell as u32).collect();
        let mut found = self.store.pick(&solution.velocity, &cells).map_err(|e| refused(&e))?;
        // The inflow, which was added to the sums, would hide their errors.
        let inflow = scenario.grid.conditions.inflow.at(time);
        found.iter_mut().for_each(|u| *u = [0, 1, 2].map(|k| u[k] - inflow[k]));
        let (_, exact) = scenario.grid.solver.direct_at(grid, vorticity, &cells);
        let error = relative_l2(&found, &exact);
        self.verified.add(error);
        let measured = Measured {
            error,
            name: format!("L2 velocity error of {} cells", cells.len()),
            tolerance: ("verify.tolerance", tolerance),
            way_out: "Choose a smaller solver.theta, a larger solver.order or solver.guard, or solver.precision = \"f64\"",
        };
        if let Some(text) = measured.judge(verify.action, (step, time))? {
            self.course.progress.warn(&text);
        }
        Ok(())
    }
}
