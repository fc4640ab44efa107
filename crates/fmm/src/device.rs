//! The device that sums: the cores of this machine or a GPU, and the particles of a run on it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fmm_core::forces::Forces;
use fmm_core::planar::{Blob, Kernel};
use fmm_core::solve::Quantity;
use fmm_core::{Cancel, CpuStore, Method, ParticleStore, Precision, Settings};
use fmm_cuda::{CudaStore, DeviceSums, Gpu, Unavailable};

use crate::Error;

/// Where sums are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Device {
    /// A GPU if there is one and the sum is large enough to gain from it, else the cores.
    #[default]
    Auto,
    /// The cores of this machine.
    Cpu,
    /// The GPU of this number, counted from 0.
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

/// What a user may want to know of the choice of a device.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// [`Device::Auto`] takes the cores for a sum that would gain from a GPU.
    NoGpu(Unavailable),
    /// [`Device::Auto`] takes the cores: the arithmetic of the GPU cannot resolve the closest points.
    TooClose,
    /// Loading the kernels took more than a second: the driver compiled them for a GPU that is
    /// newer than the program, and keeps the result.
    Loaded(Duration),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NoGpu(why) => write!(f, "running on the CPU ({})", why.brief()),
            Note::TooClose => f.write_str(
                "running on the CPU (the closest points are too close for the GPU, relative to the extent of the set)",
            ),
            Note::Loaded(took) => write!(f, "the driver loaded the kernels in {:.1} s, once", took.as_secs_f64()),
        }
    }
}

/// Sums of fewer pairs take less time on the cores than a GPU takes to start.
const FEWEST_PAIRS: f64 = 1e7;

impl Device {
    /// The number of the GPU; `None` of the cores, and of a choice that is still open.
    pub fn gpu(self) -> Option<u32> {
        match self {
            Device::Cuda(n) => Some(n),
            Device::Cpu | Device::Auto => None,
        }
    }

    /// The accepted names, for the help of options.
    pub const NAMES: &'static str = "auto|cpu|cuda|cuda:N";

    /// The same for messages.
    pub const ALLOWED: &'static str = "allowed: auto, cpu, cuda, cuda:N with N the number of a GPU from 0";

    /// The cores in place of `Auto` for sums that no GPU does: by trees of a given depth, in the plane directly in single
    /// precision, second derivatives in a periodic box, and estimates of the errors of other sums than of potentials and
    /// fields in space.
    pub(crate) fn able(self, settings: &Settings, plane: bool, quantity: Quantity) -> Device {
        let direct_single = settings.method == Method::Direct && settings.precision == Precision::F32;
        let boxed = settings.boundary.periodic().is_some();
        let unestimated = settings.errors && (plane || quantity != Quantity::Potential);
        let cores_alone = settings.uniform.is_some()
            || plane && direct_single
            || boxed && quantity == Quantity::Hessian
            || unestimated;
        if self == Device::Auto && cores_alone { Device::Cpu } else { self }
    }

    /// Whether sums of `pairs` pairs stay on the cores, with or without a GPU.
    pub fn on_cores(self, pairs: f64) -> bool {
        self == Device::Cpu || self == Device::Auto && pairs < FEWEST_PAIRS
    }

    /// Opens the GPU that sums of `pairs` pairs go to; `None` is the cores. `note` receives the
    /// reason where `Auto` takes the cores for a large sum.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if a GPU is asked for and there is none.
    pub(crate) fn open(self, pairs: f64, note: &mut dyn FnMut(Note)) -> Result<Option<Gpu>, Error> {
        let ordinal = match self {
            _ if self.on_cores(pairs) => return Ok(None),
            Device::Cuda(n) => n,
            Device::Auto | Device::Cpu => 0,
        };
        match Gpu::open(ordinal) {
            Ok(gpu) => Ok(Some(gpu)),
            Err(why) if self == Device::Auto => {
                note(Note::NoGpu(why));
                Ok(None)
            }
            Err(why) => Err(Error::Unavailable { device: self.to_string(), why }),
        }
    }
}

/// A device with what was opened of it.
pub(crate) struct Place<'n> {
    pub device: Device,
    /// Opened by the first sum that needs it.
    pub gpu: Option<Opened>,
    pub note: Box<dyn FnMut(Note) + Send + 'n>,
    pub cancel: Cancel,
}

impl Place<'_> {
    /// The GPU that sums of `pairs` pairs on `device` go to; `None` is the cores.
    ///
    /// # Errors
    /// Those of [`Device::open`].
    pub fn gpu_for(&mut self, device: Device, pairs: f64) -> Result<Option<&mut Opened>, Error> {
        if device.on_cores(pairs) {
            return Ok(None);
        }
        if self.gpu.is_none() {
            self.gpu = device.open(pairs, &mut self.note)?.map(Opened::new);
        }
        Ok(self.gpu.as_mut())
    }

    /// The GPU of this number, on which arrays of the caller lie.
    ///
    /// # Errors
    /// [`Error::Request`] if sums are to be done elsewhere; those of [`Device::open`].
    pub fn gpu_of_arrays(&mut self, ordinal: u32) -> Result<&mut Opened, Error> {
        let theirs = Device::Cuda(ordinal);
        if self.device != Device::Auto && self.device != theirs {
            let why = format!("the arrays are on {theirs}; allowed: auto, {theirs}");
            return Err(Error::Request { parameter: "device", why });
        }
        let opened = match self.gpu.take() {
            Some(opened) => opened,
            None => {
                let why = |why| Error::Unavailable { device: theirs.to_string(), why };
                Opened::new(Gpu::open(ordinal).map_err(why)?)
            }
        };
        let opened = self.gpu.insert(opened);
        let ours = opened.gpu.description().ordinal;
        if ours != ordinal {
            // Callers keep the address of our stream.
            let why = format!(
                "this solver sums on cuda:{ours}, and the arrays are on {theirs}, which needs a solver of its own"
            );
            return Err(Error::Request { parameter: "device", why });
        }
        Ok(opened)
    }
}

/// A GPU, with the memory and tables of its sums.
pub(crate) struct Opened {
    // Dropped in this order: memory before the GPU whose it is.
    pub sums: DeviceSums,
    pub gpu: Gpu,
}

impl Opened {
    fn new(gpu: Gpu) -> Self {
        Opened { sums: DeviceSums::default(), gpu }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Freeing memory needs its GPU; a thread that cannot enter it has lost the memory with it.
        let _ = self.gpu.enter();
    }
}

/// A note if the kernels of `gpu` took long to load.
pub(crate) fn loaded(gpu: &Gpu) -> Option<Note> {
    let took = gpu.loading();
    (took > Duration::from_secs(1)).then_some(Note::Loaded(took))
}

/// A store of `n` particles on `device`, in the plane if `plane` is given, with forces that act in
/// addition to the sum. `note` receives notes on the choice of the device.
///
/// # Errors
/// [`Error::Unavailable`] without the GPU that is asked for; settings out of range.
pub fn store(
    device: Device,
    settings: &Settings,
    plane: Option<(Kernel, Blob)>,
    n: usize,
    forces: Forces,
    note: &mut dyn FnMut(Note),
) -> Result<Box<dyn ParticleStore>, Error> {
    let gpu = device.able(settings, plane.is_some(), Quantity::Potential).open((n as f64).powi(2), note)?;
    let settings = settings.clone();
    let Some(gpu) = gpu else {
        let store = match plane {
            None => CpuStore::new(settings),
            Some((kernel, blob)) => CpuStore::in_plane(settings, kernel, blob),
        };
        return Ok(Box::new(store?.with_forces(forces)));
    };
    loaded(&gpu).into_iter().for_each(note);
    let store = match plane {
        None => CudaStore::new(gpu, settings),
        Some((kernel, blob)) => CudaStore::in_plane(gpu, settings, kernel, blob),
    };
    Ok(Box::new(store?.with_forces(forces)))
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
        assert_eq!([Device::Auto, Device::Cpu, Device::Cuda(3)].map(Device::gpu), [None, None, Some(3)]);
        for bad in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CUDA", "cpu:0"] {
            assert_eq!(bad.parse::<Device>(), Err(Device::ALLOWED.to_string()), "{bad}");
        }
    }

    #[test]
    fn the_cpu_is_taken_for_a_reason() {
        let none = Device::Auto.open(100.0, &mut |note| panic!("{note}")).unwrap();
        assert!(none.is_none(), "a sum of 100 pairs");
        let mut notes = vec![];
        let gpu = Device::Auto.open(1e9, &mut |note| notes.push(note)).unwrap();
        assert_eq!(gpu.is_none(), notes.len() == 1, "{notes:?}");
        assert!(notes.iter().all(|note| note.to_string().starts_with("running on the CPU (")), "{notes:?}");
        assert!(Device::Cpu.open(1e9, &mut |_| panic!("asked for")).unwrap().is_none());
        let missing = Device::Cuda(4711).open(1e9, &mut |_| {});
        assert!(missing.is_err_and(|e| e.to_string().starts_with("device = cuda:4711: ")));
    }
}
