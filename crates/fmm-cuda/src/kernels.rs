//! The kernels as modules of a device, each loaded when one of its kernels is launched for the
//! first time.
//!
//! The driver takes the machine code for the device from a module's fat binary. For a device newer
//! than all machine code it compiles the PTX there, and keeps the result for the next run.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cust::CudaApiVersion;
use cust::function::{BlockSize, GridSize};
use cust::memory::DeviceCopy;
use cust::module::Module;
use cust::stream::Stream;
use cust::sys::{CUfunc_st, CUfunction_attribute_enum, cuFuncSetAttribute, cuLaunchKernel, cudaError_enum};
use fmm_core::Error;

use crate::Unavailable;
use crate::description::Description;
use crate::error::device as told;

/// Bytes at an address that suits the headers of a fat binary.
#[repr(C, align(16))]
pub struct Aligned<T: ?Sized>(T);

/// A compiled module.
pub struct Binary {
    /// The name of its file below `kernels/`, without the ending.
    pub name: &'static str,
    /// Names of its kernels.
    pub kernels: &'static [&'static str],
    /// The fat binary.
    code: &'static Aligned<[u8]>,
}

mod built {
    #[allow(unused_imports, reason = "without nvcc there are no modules")]
    use super::Aligned;
    use super::Binary;
    include!(concat!(env!("OUT_DIR"), "/modules.rs"));
}

pub use built::{GRID_NEAR, MISSING, MODULES};
use built::{OLDEST, RELEASE};

/// Bytes of shared memory that every device gives a block unasked, less what kernels have of their
/// own.
pub const SHARED: usize = 47 * 1024;

/// Bytes that every device from compute capability 8.0 on gives a block that asks for them.
pub const MOST_SHARED: usize = 96 * 1024;

/// All modules for one device, and those that have been loaded into its context.
pub struct Kernels {
    /// In the order of [`MODULES`].
    modules: Vec<OnceLock<Module>>,
    /// The module of each kernel, and the kernel itself after its first launch: asking the driver
    /// takes as long as a launch. The names come from the compiler: CUDA's checking tools report a
    /// question for a name that a module lacks as an error.
    places: HashMap<&'static str, (usize, AtomicPtr<CUfunc_st>)>,
    /// How long loading took so far. One thread loads at a time.
    loading: Mutex<Duration>,
}

/// Whether a driver and a device can use the kernels.
fn check(device: &Description, driver: (i32, i32)) -> Result<(), Unavailable> {
    if device.capability < OLDEST {
        return Err(Unavailable::TooOld { name: device.name.clone(), capability: device.capability });
    }
    let mut needed = RELEASE.split('.').map(|n| n.parse::<i32>().unwrap_or(0));
    if driver < (needed.next().unwrap_or(0), needed.next().unwrap_or(0)) {
        return Err(Unavailable::OldDriver { found: format!("{}.{}", driver.0, driver.1), needed: RELEASE });
    }
    Ok(())
}

impl Kernels {
    /// The modules for `device`, none of them loaded.
    ///
    /// # Errors
    /// [`Unavailable::TooOld`] or [`Unavailable::OldDriver`] if no module could be loaded.
    pub fn new(device: &Description) -> Result<Self, Unavailable> {
        let driver = CudaApiVersion::get()?;
        check(device, (driver.major(), driver.minor()))?;
        let modules = MODULES.iter().map(|_| OnceLock::new()).collect();
        let names = MODULES.iter().enumerate().flat_map(|(i, m)| m.kernels.iter().map(move |name| (*name, i)));
        let places = names.map(|(name, i)| (name, (i, AtomicPtr::default()))).collect();
        Ok(Kernels { modules, places, loading: Mutex::default() })
    }

    /// The names of the modules that have been loaded.
    pub fn loaded(&self) -> Vec<&'static str> {
        let modules = self.modules.iter().zip(MODULES);
        modules.filter(|(module, _)| module.get().is_some()).map(|(_, binary)| binary.name).collect()
    }

    /// How long loading took so far.
    pub fn loading(&self) -> Duration {
        *self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A module of the current context. A failure is not kept: the next call tries again.
    fn module(&self, index: usize) -> Result<&Module, Error> {
        let mut loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let (place, binary) = (&self.modules[index], &MODULES[index]);
        if let Some(module) = place.get() {
            return Ok(module);
        }
        let start = Instant::now();
        let module = Module::from_fatbin(&binary.code.0, &[]);
        let module = module.map_err(told(&format!("cannot load the GPU kernels of {}", binary.name)))?;
        *loading += start.elapsed();
        Ok(place.get_or_init(|| module))
    }

    /// The kernel `name`, whose module is loaded before if need be.
    ///
    /// # Errors
    /// [`Error::Device`] if there is none of that name, or the driver refuses its module.
    pub fn function(&self, name: &str) -> Result<*mut CUfunc_st, Error> {
        let place = self.places.get(name).ok_or_else(|| Error::Device(format!("there is no GPU kernel {name}")))?;
        let mut function = place.1.load(Ordering::Relaxed);
        if function.is_null() {
            let found = self.module(place.0)?.get_function(name).map_err(told(&format!("cannot get {name}")))?;
            function = found.to_raw();
            place.1.store(function, Ordering::Relaxed);
        }
        Ok(function)
    }

    /// Launches the kernel `name` with its one argument, in the current context, and loads its
    /// module before if need be. Without blocks it does nothing.
    ///
    /// # Errors
    /// [`Error::Device`] that names the kernel, if there is none of that name or the driver refuses.
    /// It names the module, if that cannot be loaded.
    ///
    /// # Safety
    /// `view` must be the struct that the kernel takes, with pointers to memory of the sizes that
    /// the kernel expects, which lives until the stream is done.
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

    /// The same with `shared` bytes of memory for each block, besides the kernel's own: up to
    /// [`MOST_SHARED`] of kernels that have none of their own, up to [`SHARED`] of all.
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
        let (grid, block): (GridSize, BlockSize) = (grid.into(), block.into());
        if [grid.x, grid.y, grid.z].contains(&0) {
            return Ok(());
        }
        let function = self.function(name)?;
        if shared > SHARED {
            let attribute = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is of a module that is loaded.
            let asked = unsafe { cuFuncSetAttribute(function, attribute, MOST_SHARED as i32) };
            if asked != cudaError_enum::CUDA_SUCCESS {
                return Err(Error::Device(format!("cannot give {name} {shared} bytes of memory: {asked:?}")));
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_old_is_refused_before_anything_is_loaded() {
        if MISSING.is_some() {
            return;
        }
        let device = |capability| Description {
            ordinal: 0,
            name: "GPU".into(),
            capability,
            memory: 1 << 30,
            multiprocessors: 100,
        };
        assert!(matches!(check(&device((7, 5)), (99, 0)), Err(Unavailable::TooOld { capability: (7, 5), .. })));
        for capability in [(8, 0), (8, 6), (9, 0), (10, 0)] {
            assert_eq!(check(&device(capability), (99, 0)), Ok(()));
        }
        let old = check(&device((9, 0)), (11, 4));
        assert_eq!(old, Err(Unavailable::OldDriver { found: "11.4".into(), needed: RELEASE }));
        let needed: Vec<i32> = RELEASE.split('.').map(|n| n.parse().unwrap()).collect();
        assert_eq!(check(&device((9, 0)), (needed[0], needed[1])), Ok(()));
    }
}
