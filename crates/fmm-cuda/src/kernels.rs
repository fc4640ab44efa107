//! The kernels as modules of a device.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};

use cust::CudaApiVersion;
use cust::error::CudaError;
use cust::function::{BlockSize, GridSize};
use cust::memory::DeviceCopy;
use cust::module::Module;
use cust::stream::Stream;
use cust::sys::{CUfunc_st, cuLaunchKernel, cudaError_enum};
use fmm_core::Error;

use crate::Unavailable;
use crate::device::Description;
use crate::error::{device as told, explain};

mod built {
    include!(concat!(env!("OUT_DIR"), "/modules.rs"));
}

use built::RELEASE;
pub use built::{MISSING, MODULES};

/// Bytes of shared memory that every device gives a block unasked, less what kernels have of their own.
pub const SHARED: usize = 47 * 1024;

/// All modules, compiled by the driver for one device.
pub struct Kernels {
    modules: Vec<(&'static str, Module)>,
    /// The module of each kernel (asking a module for what it lacks would be an error of the driver in the eyes of its checking
    /// tools) and the kernel itself once it has been asked for: asking takes as long as a launch.
    places: HashMap<&'static str, (usize, AtomicPtr<CUfunc_st>)>,
}

/// Why the driver cannot load a module: most often it is older than the compiler.
fn unreadable(e: CudaError) -> Unavailable {
    let Ok(version) = CudaApiVersion::get() else { return e.into() };
    let found = (version.major(), version.minor());
    let mut needed = RELEASE.split('.').map(|n| n.parse::<i32>().unwrap_or(0));
    if found < (needed.next().unwrap_or(0), needed.next().unwrap_or(0)) {
        let found = format!("{}.{}", found.0, found.1);
        return Unavailable::OldDriver { found, needed: RELEASE, why: explain(e) };
    }
    e.into()
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
            places.extend(entries.map(|entry| (entry, (modules.len(), AtomicPtr::default()))));
            modules.push((name, Module::from_ptx(newest.2, &[]).map_err(unreadable)?));
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
        let place = self.places.get(name).ok_or_else(|| Error::Device(format!("there is no GPU kernel {name}")))?;
        let mut function = place.1.load(Ordering::Relaxed);
        if function.is_null() {
            let found = self.modules[place.0].1.get_function(name).map_err(told(&format!("cannot get {name}")))?;
            function = found.to_raw();
            place.1.store(function, Ordering::Relaxed);
        }
        let (grid, block): (GridSize, BlockSize) = (grid.into(), block.into());
        let mut arguments = [std::ptr::from_ref(view).cast_mut().cast()];
        // SAFETY: the caller's promise; the function is of a module that is loaded.
        let launched = unsafe {
            cuLaunchKernel(
                function,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                shared as u32,
                stream.as_inner(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        if launched == cudaError_enum::CUDA_SUCCESS {
            return Ok(());
        }
        Err(Error::Device(format!("cannot launch {name}: {launched:?}")))
    }
}
