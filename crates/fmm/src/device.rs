//! The device that sums: the cores of this machine or a GPU, and the particles of a run on it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fmm_core::forces::Forces;
use fmm_core::planar::{Blob, Kernel};
use fmm_core::solve::Quantity;
use fmm_core::vortices::{Exchange, OnCores, VortexStore};
use fmm_core::{Cancel, CpuStore, Method, ParticleStore, Precision, Settings};
use fmm_cuda::team::{self, Opened, TeamStore};
use fmm_cuda::{CudaStore, CudaVortices, Gpu, Unavailable};

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
    /// Several GPUs of one model, which share sums in space; other sums are done by the first of them.
    Team(Team),
}

/// The numbers of two GPUs or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Team {
    /// All that the driver shows.
    All,
    /// Those whose bits are set.
    Some(u64),
}

impl Team {
    /// Numbers from 0, ascending; `present` is how many there are.
    pub fn ordinals(self, present: u32) -> Vec<u32> {
        match self {
            Team::All => (0..present).collect(),
            Team::Some(bits) => (0..u64::BITS).filter(|n| bits >> n & 1 == 1).collect(),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || Device::ALLOWED.to_string();
        let number = |part: &str| part.strip_prefix("cuda:")?.parse().ok();
        match text {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            "cuda:all" => Ok(Device::Team(Team::All)),
            _ if !text.contains(',') => number(text).map(Device::Cuda).ok_or_else(refused),
            _ => {
                let mut bits = 0u64;
                for part in text.split(',') {
                    let n = number(part.trim()).filter(|&n| n < u64::BITS && bits >> n & 1 == 0);
                    bits |= 1 << n.ok_or_else(refused)?;
                }
                Ok(Device::Team(Team::Some(bits)))
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(n) => write!(f, "cuda:{n}"),
            Device::Team(Team::All) => f.write_str("cuda:all"),
            Device::Team(team) => {
                let names: Vec<_> = team.ordinals(0).iter().map(|n| format!("cuda:{n}")).collect();
                f.write_str(&names.join(","))
            }
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
    /// The GPUs that are opened, one at least.
    pub(crate) fn of(opened: &[Opened]) -> Device {
        let ordinals = opened.iter().map(|opened| opened.gpu.description().ordinal);
        match opened {
            [one] => Device::Cuda(one.gpu.description().ordinal),
            _ => Device::Team(Team::Some(ordinals.fold(0, |bits, n| bits | 1 << n))),
        }
    }

    /// The number of the GPU, of several that of the first; `None` of the cores, and of a choice that is still open.
    pub fn gpu(self) -> Option<u32> {
        match self {
            Device::Cuda(n) => Some(n),
            Device::Team(team) => team.ordinals(1).first().copied(),
            Device::Cpu | Device::Auto => None,
        }
    }

    /// The accepted names, for the help of options.
    pub const NAMES: &'static str = "auto|cpu|cuda|cuda:N|cuda:N,cuda:M|cuda:all";

    /// The same for messages.
    pub const ALLOWED: &'static str =
        "allowed: auto, cpu, cuda, cuda:N with N the number of a GPU from 0, several of these with commas, cuda:all";

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

    /// Opens the GPUs that sums of `pairs` pairs go to; none is the cores. `note` receives the
    /// reason where `Auto` takes the cores for a large sum.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if a GPU is asked for and there is none.
    pub(crate) fn open(self, pairs: f64, note: &mut dyn FnMut(Note)) -> Result<Vec<Gpu>, Error> {
        let opened = match self {
            _ if self.on_cores(pairs) => return Ok(vec![]),
            Device::Cuda(n) => team::open(&[n]),
            Device::Auto | Device::Cpu => team::open(&[0]),
            Device::Team(team) => {
                fmm_cuda::devices().and_then(|present| team::open(&team.ordinals(present.len() as u32)))
            }
        };
        match opened {
            Ok(gpus) => Ok(gpus),
            Err(why) if self == Device::Auto => {
                note(Note::NoGpu(why));
                Ok(vec![])
            }
            Err(why) => Err(Error::Unavailable { device: self.to_string(), why }),
        }
    }
}

/// A device with what was opened of it.
pub(crate) struct Place<'n> {
    pub device: Device,
    /// Opened by the first sum that needs them.
    pub gpus: Vec<Opened>,
    pub note: Box<dyn FnMut(Note) + Send + 'n>,
    pub cancel: Cancel,
}

impl Place<'_> {
    /// The GPUs that sums of `pairs` pairs on `device` go to; none is the cores.
    ///
    /// # Errors
    /// Those of [`Device::open`].
    pub fn gpus_for(&mut self, device: Device, pairs: f64) -> Result<&mut [Opened], Error> {
        if device.on_cores(pairs) {
            return Ok(&mut []);
        }
        if self.gpus.is_empty() {
            self.gpus = device.open(pairs, &mut self.note)?.into_iter().map(Opened::new).collect();
        }
        Ok(&mut self.gpus)
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
        if self.gpus.is_empty() {
            let why = |why| Error::Unavailable { device: theirs.to_string(), why };
            self.gpus.push(Opened::new(Gpu::open(ordinal).map_err(why)?));
        }
        if self.gpus.len() > 1 {
            let why = "several GPUs share the sums of this solver: arrays on one need a solver of their own";
            return Err(Error::Request { parameter: "device", why: why.into() });
        }
        let opened = &mut self.gpus[0];
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
    let mut gpus = device.able(settings, plane.is_some(), Quantity::Potential).open((n as f64).powi(2), note)?;
    let settings = settings.clone();
    if gpus.is_empty() {
        let store = match plane {
            None => CpuStore::new(settings),
            Some((kernel, blob)) => CpuStore::in_plane(settings, kernel, blob),
        };
        return Ok(Box::new(store?.with_forces(forces)));
    }
    loaded(&gpus[0]).into_iter().for_each(note);
    if plane.is_some() {
        gpus.truncate(1);
    }
    let on = |gpu: Gpu| {
        let store = match plane {
            None => CudaStore::new(gpu, settings.clone()),
            Some((kernel, blob)) => CudaStore::in_plane(gpu, settings.clone(), kernel, blob),
        };
        store.map(|store| store.with_forces(forces.clone()))
    };
    let mut stores = gpus.into_iter().map(on).collect::<Result<Vec<_>, _>>()?;
    match stores.pop() {
        Some(store) if stores.is_empty() => Ok(Box::new(store)),
        last => Ok(Box::new(TeamStore::new(stores.into_iter().chain(last).collect(), team::PAYS))),
    }
}

/// A store of `n` vortex particles in space on `device`, which exchange strength if `exchange` is given. `note` receives notes
/// on the choice of the device. Of several GPUs the first sums.
///
/// # Errors
/// Those of [`store`].
pub fn vortex_store(
    device: Device,
    settings: &Settings,
    exchange: Option<Exchange>,
    n: usize,
    note: &mut dyn FnMut(Note),
) -> Result<Box<dyn ParticleStore>, Error> {
    let gpus = device.able(settings, false, Quantity::Hessian).open((n as f64).powi(2), note)?;
    let settings = settings.clone();
    let store = match gpus.into_iter().next() {
        None => VortexStore::new(OnCores, settings, exchange),
        Some(gpu) => {
            loaded(&gpu).into_iter().for_each(note);
            VortexStore::new(CudaVortices::new(gpu), settings, exchange)
        }
    };
    Ok(Box::new(store?))
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
        for text in ["cuda:all", "cuda:0,cuda:1", "cuda:2,cuda:5,cuda:63"] {
            assert_eq!(text.parse::<Device>().map(|device| device.to_string()), Ok(text.into()));
        }
        let team: Device = "cuda:5, cuda:2".parse().unwrap();
        assert_eq!((team.to_string(), team.gpu()), ("cuda:2,cuda:5".into(), Some(2)));
        for bad in [
            "",
            "gpu",
            "cuda:",
            "cuda:-1",
            "cuda:x",
            "CUDA",
            "cpu:0",
            "cuda:1,cuda:1",
            "cuda:0,",
            "cuda:0,cpu",
            "cuda:0,cuda:64",
            "cuda:0,cuda:all",
        ] {
            assert_eq!(bad.parse::<Device>(), Err(Device::ALLOWED.to_string()), "{bad}");
        }
    }

    #[test]
    fn the_cpu_is_taken_for_a_reason() {
        let none = Device::Auto.open(100.0, &mut |note| panic!("{note}")).unwrap();
        assert!(none.is_empty(), "a sum of 100 pairs");
        let mut notes = vec![];
        let gpu = Device::Auto.open(1e9, &mut |note| notes.push(note)).unwrap();
        assert_eq!(gpu.is_empty(), notes.len() == 1, "{notes:?}");
        assert!(notes.iter().all(|note| note.to_string().starts_with("running on the CPU (")), "{notes:?}");
        assert!(Device::Cpu.open(1e9, &mut |_| panic!("asked for")).unwrap().is_empty());
        let missing = Device::Cuda(4711).open(1e9, &mut |_| {});
        assert!(missing.is_err_and(|e| e.to_string().starts_with("device = cuda:4711: ")));
        let missing = "cuda:0,cuda:62".parse::<Device>().unwrap().open(1e9, &mut |_| {});
        assert!(missing.is_err_and(|e| e.to_string().starts_with("device = cuda:0,cuda:62: ")));
    }
}
