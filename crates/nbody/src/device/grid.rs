//! Where grids are solved: on the cores, on a GPU, or on both at the same time.

use std::fmt;
use std::str::FromStr;

use fmm_core::grid::{Grid, Solution, Solve, Solver};
use fmm_core::{Error, StageTimes};
use fmm_cuda::grid::{CudaSolver, Expanding};

use super::{Device, compiled, tell};
use crate::fault::Fault;

/// `solver.device` of a scenario with a `[grid]`, and `nbody run --device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// A GPU where there is one and it gains, else the cores.
    #[default]
    Auto,
    /// The cores of this machine.
    Cpu,
    /// Direct sums and expansions on the GPU of this number.
    Cuda(u32),
    /// Direct sums on the GPU of this number while the cores evaluate the expansions.
    Hybrid(u32),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |n: &str| n.parse().map(Place::Hybrid).map_err(|_| Place::ALLOWED.to_string());
        match (text, text.strip_prefix("hybrid:")) {
            ("hybrid", _) => Ok(Place::Hybrid(0)),
            (_, Some(n)) => number(n),
            _ => match text.parse() {
                Ok(Device::Auto) => Ok(Place::Auto),
                Ok(Device::Cpu) => Ok(Place::Cpu),
                Ok(Device::Cuda(n)) => Ok(Place::Cuda(n)),
                Err(_) => Err(Place::ALLOWED.to_string()),
            },
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Auto => f.write_str("auto"),
            Place::Cpu => f.write_str("cpu"),
            Place::Cuda(n) => write!(f, "cuda:{n}"),
            Place::Hybrid(n) => write!(f, "hybrid:{n}"),
        }
    }
}

/// Cells times cells with vorticity below which the cores are done before a GPU has begun.
const FEWEST_PAIRS: f64 = 1e10;

impl Place {
    /// What may be given.
    pub const ALLOWED: &'static str =
        "allowed: auto, cpu, cuda, cuda:N, and with a [grid] hybrid, hybrid:N, with N the number of a GPU from 0";

    /// The GPU that is asked for, as a device of other sums.
    fn device(self) -> Device {
        match self {
            Place::Auto => Device::Auto,
            Place::Cpu => Device::Cpu,
            Place::Cuda(n) | Place::Hybrid(n) => Device::Cuda(n),
        }
    }
}

/// Who solves.
pub enum GridSolver {
    /// The cores.
    Cores(Solver),
    /// A device, alone or with the cores.
    Device(Box<CudaSolver>, Place),
}

impl GridSolver {
    /// The solver at `place` for some `pairs` of a cell and a cell with vorticity. Unless `quiet`, stderr hears why `auto` takes the CPU.
    ///
    /// # Errors
    /// 69 without the GPU that is asked for, 65 for settings out of range, 70 and 71 for a GPU that fails or has no memory.
    pub fn new(place: Place, solver: Solver, pairs: f64, quiet: bool) -> Result<Self, Fault> {
        // Auto depends on what there is, but never on a timing: a GPU takes all.
        let wanted = if place == Place::Auto && pairs < FEWEST_PAIRS { Device::Cpu } else { place.device() };
        let Some(gpu) = wanted.resolve_as(&place.to_string(), f64::INFINITY, tell(quiet))? else {
            return Ok(GridSolver::Cores(solver));
        };
        compiled(&gpu).into_iter().for_each(tell(quiet));
        let ordinal = gpu.description().ordinal;
        let (place, expanding) = match place {
            Place::Hybrid(_) => (place, Expanding::Cores),
            _ => (Place::Cuda(ordinal), Expanding::Device),
        };
        let solver = CudaSolver::new(gpu, solver, expanding).map_err(|e| Fault::new(super::code(&e), e.to_string()))?;
        Ok(GridSolver::Device(Box::new(solver), place))
    }

    /// Where it solves.
    pub fn place(&self) -> Place {
        match self {
            GridSolver::Cores(_) => Place::Cpu,
            GridSolver::Device(_, place) => *place,
        }
    }
}

impl Solve for GridSolver {
    fn solve(&mut self, grid: &Grid, vorticity: &[[f64; 3]], times: &mut StageTimes) -> Result<Solution, Error> {
        match self {
            GridSolver::Cores(solver) => Solve::solve(solver, grid, vorticity, times),
            GridSolver::Device(solver, _) => solver.solve(grid, vorticity, times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (text, place) in
            [("auto", Place::Auto), ("cpu", Place::Cpu), ("cuda:3", Place::Cuda(3)), ("hybrid:1", Place::Hybrid(1))]
        {
            assert_eq!((text.parse(), place.to_string()), (Ok(place), text.to_string()));
        }
        assert_eq!(("cuda".parse(), "hybrid".parse()), (Ok(Place::Cuda(0)), Ok(Place::Hybrid(0))));
        for bad in ["", "hybrid:", "hybrid:x", "hybrid:-1", "both", "HYBRID"] {
            assert_eq!(bad.parse::<Place>(), Err(Place::ALLOWED.to_string()), "{bad}");
        }
    }

    #[test]
    fn a_gpu_that_is_not_there_is_named_as_it_was_asked_for() {
        let solver = Solver::default();
        let none = GridSolver::new(Place::Auto, solver, 100.0, false).map(|s| s.place());
        assert_eq!(none.unwrap(), Place::Cpu);
        for (place, name) in
            [(Place::Hybrid(4711), "device = hybrid:4711: "), (Place::Cuda(4711), "device = cuda:4711: ")]
        {
            let fault = GridSolver::new(place, solver, 1.0, true).err().unwrap();
            assert!(fault.code == 69 && fault.render(false).contains(name), "{}", fault.render(false));
        }
    }
}
