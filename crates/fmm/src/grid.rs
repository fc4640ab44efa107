//! Where grids are solved: on the cores, on a GPU, or on both at the same time.

use std::fmt;
use std::str::FromStr;

use fmm_core::grid::flow::FieldStore;
use fmm_core::grid::{Grid, Solution, Solve, Solver};
use fmm_core::{Error as Refused, StageTimes};
use fmm_cuda::grid::fields::CudaFields;
use fmm_cuda::grid::{CudaSolver, Expanding};

use crate::device::loaded;
use crate::{Device, Error, Note};

/// Where grids of blocks are solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GridDevice {
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

impl FromStr for GridDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |n: &str| n.parse().map(GridDevice::Hybrid).map_err(|_| GridDevice::ALLOWED.to_string());
        match (text, text.strip_prefix("hybrid:")) {
            ("hybrid", _) => Ok(GridDevice::Hybrid(0)),
            (_, Some(n)) => number(n),
            _ => match text.parse() {
                Ok(Device::Auto) => Ok(GridDevice::Auto),
                Ok(Device::Cpu) => Ok(GridDevice::Cpu),
                Ok(Device::Cuda(n)) => Ok(GridDevice::Cuda(n)),
                // Also what does other sums and no grids.
                _ => Err(GridDevice::ALLOWED.to_string()),
            },
        }
    }
}

impl fmt::Display for GridDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GridDevice::Hybrid(n) => write!(f, "hybrid:{n}"),
            other => other.device().fmt(f),
        }
    }
}

/// Cells times cells with vorticity below which the cores are done before a GPU has begun.
const FEWEST_PAIRS: f64 = 1e10;

impl GridDevice {
    /// The accepted names, for messages.
    pub const ALLOWED: &'static str =
        "allowed: auto, cpu, cuda, cuda:N, and with a [grid] hybrid, hybrid:N, with N the number of a GPU from 0";

    /// The device of other sums.
    pub fn device(self) -> Device {
        match self {
            GridDevice::Auto => Device::Auto,
            GridDevice::Cpu => Device::Cpu,
            GridDevice::Cuda(n) | GridDevice::Hybrid(n) => Device::Cuda(n),
        }
    }
}

/// A solver on grids of blocks.
pub enum GridSolver {
    /// On the cores.
    Cores(Solver),
    /// On a GPU, alone or together with the cores.
    Device(Box<CudaSolver>, GridDevice),
}

impl GridSolver {
    /// The solver on `device` for about `pairs` pairs of a cell and a cell with vorticity. `note`
    /// receives notes on the choice of the device.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without the GPU that is asked for, settings out of range, a GPU that
    /// fails or lacks memory.
    pub fn new(device: GridDevice, solver: Solver, pairs: f64, note: &mut dyn FnMut(Note)) -> Result<Self, Error> {
        // `auto` depends on the hardware, but never on a timing: a GPU takes the whole sum.
        let wanted = if device == GridDevice::Auto && pairs < FEWEST_PAIRS { Device::Cpu } else { device.device() };
        let opened = wanted.open(f64::INFINITY, note).map_err(|e| match e {
            Error::Unavailable { why, .. } => Error::Unavailable { device: device.to_string(), why },
            e => e,
        });
        let Some(gpu) = opened?.into_iter().next() else { return Ok(GridSolver::Cores(solver)) };
        loaded(&gpu).into_iter().for_each(note);
        let ordinal = gpu.description().ordinal;
        let (device, expanding) = match device {
            GridDevice::Hybrid(_) => (device, Expanding::Cores),
            _ => (GridDevice::Cuda(ordinal), Expanding::Device),
        };
        Ok(GridSolver::Device(Box::new(CudaSolver::new(gpu, solver, expanding)?), device))
    }

    /// The settings, with the split once it is chosen.
    pub fn settings(&self) -> Solver {
        match self {
            GridSolver::Cores(solver) => *solver,
            GridSolver::Device(solver, _) => solver.settings(),
        }
    }

    /// The device.
    pub fn device(&self) -> GridDevice {
        match self {
            GridSolver::Cores(_) => GridDevice::Cpu,
            GridSolver::Device(_, device) => *device,
        }
    }
}

impl Solve for GridSolver {
    fn solve(&mut self, grid: &Grid, vorticity: &[[f64; 3]], times: &mut StageTimes) -> Result<Solution, Refused> {
        match self {
            GridSolver::Cores(solver) => Solve::solve(solver, grid, vorticity, times),
            GridSolver::Device(solver, _) => Solve::solve(&mut **solver, grid, vorticity, times),
        }
    }
}

/// Where the fields of a flow are, with the solver there.
pub trait GridStore: FieldStore {
    /// The settings of the solver, with the split once it is chosen.
    fn settings(&self) -> Solver;

    /// The device.
    fn device(&self) -> GridDevice;
}

impl GridStore for Solver {
    fn settings(&self) -> Solver {
        *self
    }

    fn device(&self) -> GridDevice {
        GridDevice::Cpu
    }
}

impl GridStore for CudaFields {
    fn settings(&self) -> Solver {
        self.solver().settings()
    }

    fn device(&self) -> GridDevice {
        let ordinal = self.solver().gpu().description().ordinal;
        match self.solver().expanding() {
            Expanding::Cores => GridDevice::Hybrid(ordinal),
            Expanding::Device => GridDevice::Cuda(ordinal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (text, place) in [
            ("auto", GridDevice::Auto),
            ("cpu", GridDevice::Cpu),
            ("cuda:3", GridDevice::Cuda(3)),
            ("hybrid:1", GridDevice::Hybrid(1)),
        ] {
            assert_eq!((text.parse(), place.to_string()), (Ok(place), text.to_string()));
        }
        assert_eq!(("cuda".parse(), "hybrid".parse()), (Ok(GridDevice::Cuda(0)), Ok(GridDevice::Hybrid(0))));
        for bad in ["", "hybrid:", "hybrid:x", "hybrid:-1", "both", "HYBRID"] {
            assert_eq!(bad.parse::<GridDevice>(), Err(GridDevice::ALLOWED.to_string()), "{bad}");
        }
    }

    #[test]
    fn a_gpu_that_is_not_there_is_named_as_it_was_asked_for() {
        let solver = Solver::default();
        let none = GridSolver::new(GridDevice::Auto, solver, 100.0, &mut |_| {}).map(|s| s.device());
        assert_eq!(none.unwrap(), GridDevice::Cpu);
        for (place, name) in
            [(GridDevice::Hybrid(4711), "device = hybrid:4711: "), (GridDevice::Cuda(4711), "device = cuda:4711: ")]
        {
            let error = GridSolver::new(place, solver, 1.0, &mut |_| {}).err().unwrap();
            assert!(matches!(&error, Error::Unavailable { .. }) && error.to_string().contains(name), "{error}");
        }
    }
}
