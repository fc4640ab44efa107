//! Where forces are summed: the cores of this machine or a GPU.

pub mod grid;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fmm_core::forces::Forces;
use fmm_core::planar::{self, Blob, Kernel};
use fmm_core::{Bath, CpuExecutor, Error, Evaluation, Executor, Method, Precision, Settings, StageTimes, gauss};
use fmm_cuda::{CudaExecutor, Gpu};

use crate::fault::Fault;

/// `solver.device` and `--device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Device {
    /// A GPU where there is one and it gains, else the cores.
    #[default]
    Auto,
    /// The cores of this machine.
    Cpu,
    /// The GPU of this number.
    Cuda(u32),
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |n: &str| n.parse().map(Device::Cuda).map_err(|_| Device::ALLOWED.to_string());
        match text {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            _ => text.strip_prefix("cuda:").map_or_else(|| Err(Device::ALLOWED.to_string()), number),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(n) => write!(f, "cuda:{n}"),
        }
    }
}

/// The exit code of an error of the sums: 71 where memory of the device lacks, 70 where the device has failed, 65 for what
/// was asked.
pub fn code(error: &Error) -> u8 {
    match error {
        // In the words of the driver, and of `fmm_cuda` where it asks beforehand.
        Error::Device(why) if why.contains("OutOfMemory") || why.contains("of GPU memory, and") => 71,
        Error::Device(_) => 70,
        _ => 65,
    }
}

/// Sums of fewer pairs are done before a GPU has begun.
const FEWEST_PAIRS: f64 = 1e7;

impl Device {
    /// What may be given.
    pub const ALLOWED: &'static str = "allowed: auto, cpu, cuda, cuda:N with N the number of a GPU from 0";

    /// The CPU in place of `auto` for what no GPU does: direct sums in the plane in single precision.
    fn fitting(self, settings: &Settings, plane: bool) -> Device {
        let single = settings.precision == Precision::F32 && settings.method == Method::Direct;
        if self == Device::Auto && plane && single { Device::Cpu } else { self }
    }

    /// The CPU in place of `auto` for trees of a given depth, which no GPU makes.
    fn of_space(self, settings: &Settings) -> Device {
        if settings.uniform.is_some() && self == Device::Auto { Device::Cpu } else { self }
    }

    /// The GPU that sums of so many pairs go to; `None` is the CPU. `note` gets the reason why `auto` takes the CPU,
    /// unless there are too few pairs.
    fn resolve(self, pairs: f64, note: impl FnOnce(String)) -> Result<Option<Gpu>, Fault> {
        self.resolve_as(&self.to_string(), pairs, note)
    }

    /// The same where the device was asked for by another name.
    fn resolve_as(self, name: &str, pairs: f64, note: impl FnOnce(String)) -> Result<Option<Gpu>, Fault> {
        match self {
            Device::Cpu => Ok(None),
            Device::Cuda(n) => Gpu::open(n).map(Some).map_err(|why| {
                let line = format!("device = {name}: {why}; device auto or cpu runs on the cores of this machine");
                Fault::new(69, line)
            }),
            Device::Auto => {
                // Whoever has a GPU or none, nothing is to be told of so small a sum.
                if pairs < FEWEST_PAIRS {
                    return Ok(None);
                }
                let opened = Gpu::open(0);
                if let Err(why) = &opened {
                    note(format!("nbody: running on the CPU ({}; `nbody info` says more)", why.brief()));
                }
                Ok(opened.ok())
            }
        }
    }
}

/// An executor for `n` particles, in the plane if `plane` says so, with what acts in addition to their
/// sum. Unless `quiet`, stderr says why `auto` takes the CPU.
///
/// # Errors
/// 69 without the GPU that is asked for, 65 for settings out of range.
pub fn executor(
    device: Device,
    settings: &Settings,
    plane: Option<(Kernel, Blob)>,
    n: usize,
    quiet: bool,
    (forces, bath): (Forces, Option<Bath>),
) -> Result<Box<dyn Executor>, Fault> {
    let refused = |e: Error| Fault::new(65, e.to_string());
    let gpu = device.of_space(settings).fitting(settings, plane.is_some()).resolve((n as f64).powi(2), tell(quiet))?;
    let settings = settings.clone();
    gpu.iter().filter_map(compiled).for_each(tell(quiet));
    let Some(gpu) = gpu else {
        let executor = match plane {
            None => CpuExecutor::new(settings),
            Some((kernel, blob)) => CpuExecutor::in_plane(settings, kernel, blob),
        };
        return Ok(Box::new(executor.map_err(refused)?.with_forces(forces).with_bath(bath)));
    };
    let executor = match plane {
        None => CudaExecutor::new(gpu, settings),
        Some((kernel, blob)) => CudaExecutor::in_plane(gpu, settings, kernel, blob),
    };
    Ok(Box::new(executor.map_err(refused)?.with_forces(forces).with_bath(bath)))
}

/// How sums are watched and refused.
pub struct Asked<'a> {
    /// Where.
    pub device: Device,
    /// Unless set, stderr hears why `auto` takes the CPU.
    pub quiet: bool,
    /// What the sum refuses, as the user reads it.
    pub fault: fn(Error) -> Fault,
    /// Of the stages.
    pub times: &'a mut StageTimes,
}

impl Asked<'_> {
    /// A sum over so many pairs on a GPU or on the cores, and the device that has done it.
    ///
    /// # Errors
    /// 69 without the GPU that is asked for; what the sum refuses.
    fn sum<T>(
        self,
        pairs: f64,
        on_gpu: impl FnOnce(&Gpu, &mut StageTimes) -> Result<T, Error>,
        on_cores: impl FnOnce(&mut StageTimes) -> Result<T, Error>,
    ) -> Result<(T, Device), Fault> {
        let (sum, place) = match self.device.resolve(pairs, tell(self.quiet))? {
            Some(gpu) => {
                let sum = on_gpu(&gpu, self.times);
                compiled(&gpu).into_iter().for_each(tell(self.quiet));
                (sum, Device::Cuda(gpu.description().ordinal))
            }
            None => (on_cores(self.times), Device::Cpu),
        };
        sum.map(|sum| (sum, place)).map_err(self.fault)
    }

    /// The same of a sum in space.
    fn sum_in_space<T>(
        self,
        settings: &Settings,
        (sources, targets): Points,
        on_gpu: impl FnOnce(&Gpu, &mut StageTimes) -> Result<T, Error>,
        on_cores: impl FnOnce(&mut StageTimes) -> Result<T, Error>,
    ) -> Result<(T, Device), Fault> {
        let pairs = sources.len() as f64 * targets.map_or(sources.len(), <[_]>::len) as f64;
        Asked { device: self.device.of_space(settings), ..self }.sum(pairs, on_gpu, on_cores)
    }
}

/// Positions of the sources, and positions of the targets where they are others.
pub type Points<'a> = (&'a [[f64; 3]], Option<&'a [[f64; 3]]>);

/// The field of `strengths` at the targets, or at the sources themselves, and the device that has summed it.
///
/// # Errors
/// 69 without the GPU that is asked for; what the sum refuses.
pub fn evaluate(
    asked: Asked,
    settings: &Settings,
    points: Points,
    strengths: &[f64],
) -> Result<(Evaluation, Device), Fault> {
    let (sources, targets) = points;
    asked.sum_in_space(
        settings,
        points,
        |gpu, times| fmm_cuda::evaluate(gpu, settings, sources, strengths, targets, times),
        |times| fmm_core::evaluate(settings, sources, strengths, targets, times),
    )
}

/// The same of the velocity of vortex particles.
///
/// # Errors
/// Those of [`evaluate`].
pub fn biot_savart(
    asked: Asked,
    settings: &Settings,
    points: Points,
    strengths: [&[f64]; 3],
) -> Result<(Evaluation, Device), Fault> {
    let (sources, targets) = points;
    asked.sum_in_space(
        settings,
        points,
        |gpu, times| fmm_cuda::biot_savart(gpu, settings, sources, strengths, targets, times),
        |times| fmm_core::biot_savart(settings, sources, strengths, targets, times),
    )
}

/// The sum in the plane that `problem` asks for, and the device that has done it.
///
/// # Errors
/// Those of [`evaluate`].
pub fn evaluate_plane(asked: Asked, problem: &planar::Problem) -> Result<(Evaluation<2>, Device), Fault> {
    let size = problem.request.size;
    let pairs = size.sources as f64 * size.targets as f64;
    let device = asked.device.fitting(&problem.request.settings, true);
    // Pairs that only the cores can tell apart.
    let device = match device {
        Device::Auto if problem.request.minute => {
            if pairs >= FEWEST_PAIRS {
                tell(asked.quiet)(
                    "nbody: device: the CPU, since no GPU tells points so close beside the extent of the set apart"
                        .into(),
                );
            }
            Device::Cpu
        }
        device => device,
    };
    Asked { device, ..asked }.sum(
        pairs,
        |gpu, times| fmm_cuda::planar::evaluate(gpu, problem, times),
        |times| planar::evaluate_problem(problem, times),
    )
}

/// The sum of Gaussians that `problem` asks for with the precision of its pairs, and the device that has done it.
///
/// # Errors
/// Those of [`evaluate`], among them single precision on the cores.
pub fn evaluate_gauss<const D: usize>(
    asked: Asked,
    problem: &fmm_cuda::gauss::Problem<D>,
) -> Result<((gauss::Evaluation<D>, Precision), Device), Fault> {
    let at = problem.targets.unwrap_or(problem.sources);
    let pairs = problem.sources.len() as f64 * at.len() as f64;
    asked.sum(
        pairs,
        |gpu, times| fmm_cuda::gauss::evaluate(gpu, problem, times),
        |times| {
            if problem.precision == Precision::F32 {
                let why = "--precision: with --kernel gauss on the cores allowed: auto, f64";
                return Err(Error::Unsupported(why.into()));
            }
            let sum = gauss::evaluate(problem.settings, problem.sources, problem.strengths, problem.targets, times)?;
            Ok((sum, Precision::F64))
        },
    )
}

/// How long the driver took to load the kernels of a sum, where that is worth a line. It has
/// compiled them then, for a GPU that is newer than the program, and keeps the result.
fn compiled(gpu: &Gpu) -> Option<String> {
    let took = gpu.loading();
    (took > Duration::from_secs(1))
        .then(|| format!("nbody: device: the driver loaded the kernels in {:.1} s, once", took.as_secs_f64()))
}

fn tell(quiet: bool) -> impl Fn(String) {
    move |line| {
        if !quiet {
            crate::console::tell(format_args!("{line}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (text, device) in [("auto", Device::Auto), ("cpu", Device::Cpu), ("cuda:3", Device::Cuda(3))] {
            assert_eq!((text.parse(), device.to_string()), (Ok(device), text.to_string()));
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        for bad in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CUDA", "cpu:0"] {
            assert_eq!(bad.parse::<Device>(), Err(Device::ALLOWED.to_string()), "{bad}");
        }
    }

    #[test]
    fn the_cpu_is_taken_for_a_reason() {
        let none = Device::Auto.resolve(100.0, |line| panic!("{line}")).unwrap();
        assert!(none.is_none(), "a sum of 100 pairs");
        let mut lines = vec![];
        let gpu = Device::Auto.resolve(1e9, |line| lines.push(line)).unwrap();
        assert_eq!(gpu.is_none(), lines.len() == 1, "{lines:?}");
        assert!(lines.iter().all(|line| line.starts_with("nbody: running on the CPU (")), "{lines:?}");
        assert!(Device::Cpu.resolve(1e9, |_| panic!("asked for")).unwrap().is_none());
        let missing = Device::Cuda(4711).resolve(1e9, |_| {});
        assert!(missing.is_err_and(|f| f.code == 69 && f.render(false).contains("device = cuda:4711: ")));
    }
}
