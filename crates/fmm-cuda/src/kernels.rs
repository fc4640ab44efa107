//! The kernels as modules of a device.

use std::collections::HashMap;

use cust::function::{BlockSize, GridSize};
use cust::memory::DeviceCopy;
use cust::module::Module;
use cust::stream::Stream;
use fmm_core::Error;

use crate::Unavailable;
use crate::device::Description;
use crate::error::device as told;

mod built {
    include!(concat!(env!("OUT_DIR"), "/modules.rs"));
}

pub use built::{MISSING, MODULES};

/// Bytes of shared memory that every device gives a block unasked, less what kernels have of their own.
pub const SHARED: usize = 47 * 1024;

/// All modules, compiled by the driver for one device.
pub struct Kernels {
    modules: Vec<(&'static str, Module)>,
    /// The module of each kernel: asking a module for what it lacks would be an error of the driver in the eyes of its checking
    /// tools.
    places: HashMap<&'static str, usize>,
}

impl Kernels {
    /// Loads the newest text of every module that the device understands into the current context.
    pub fn load(device: &Description) -> Result<Self, Unavailable> {
        let capability = (10 * device.capability.0 + device.capability.1) as u32;
        let mut modules: Vec<(&'static str, Module)> = vec![];
        let mut places = HashMap::new();
        let names = MODULES.iter().map(|m| m.0);
        for name in names {
            if modules.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let texts = MODULES.iter().filter(|m| m.0 == name && m.1 <= capability);
            let Some(newest) = texts.max_by_key(|m| m.1) else {
                return Err(Unavailable::TooOld { name: device.name.clone(), capability: device.capability });
            };
            let entries = newest.2.split(".entry ").skip(1).filter_map(|rest| rest.split('(').next());
            places.extend(entries.map(|entry| (entry, modules.len())));
            modules.push((name, Module::from_ptx(newest.2, &[])?));
        }
        Ok(Kernels { modules, places })
    }

    /// Launches the kernel `name` with its one argument.
    ///
    /// # Errors
    /// [`Error::Device`] that names the kernel, if there is none of that name or the driver refuses.
    ///
    /// # Safety
    /// `view` must be the struct that the kernel takes, with pointers to memory of the sizes that the kernel expects, which lives
    /// until the stream is done.
    pub unsafe fn launch<V: DeviceCopy>(
        &self,
        stream: &Stream,
        name: &str,
        grid: impl Into<GridSize>,
        block: impl Into<BlockSize>,
        view: &V,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_with(stream, name, grid, (block, 0), view) }
    }

    /// The same with `shared` bytes of memory for each block, besides the kernel's own: up to [`SHARED`].
    ///
    /// # Errors
    /// Those of [`Kernels::launch`].
    ///
    /// # Safety
    /// That of [`Kernels::launch`].
    pub unsafe fn launch_with<V: DeviceCopy>(
        &self,
        stream: &Stream,
        name: &str,
        grid: impl Into<GridSize>,
        (block, shared): (impl Into<BlockSize>, usize),
        view: &V,
    ) -> Result<(), Error> {
        let module = self.places.get(name).map(|&place| &self.modules[place].1);
        let module = module.ok_or_else(|| Error::Device(format!("there is no GPU kernel {name}")))?;
        let function = module.get_function(name).map_err(told(&format!("cannot get {name}")))?;
        let argument = std::ptr::from_ref(view).cast_mut().cast();
        // SAFETY: the caller's promise.
        let launched = unsafe { stream.launch(&function, grid, block, shared as u32, &[argument]) };
        launched.map_err(told(&format!("cannot launch {name}")))
    }
}
