//! The CUDA driver, bound at run time.
//!
//! `cust` declares the functions of `libcuda.so` and would have the program linked to it, which then would not start on a
//! machine without a driver. This file defines all of these functions instead: each jumps through a table that [`load`]
//! fills from `libcuda.so.1`. Until then every entry answers `CUDA_ERROR_NOT_INITIALIZED`.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::Unavailable;

/// What a function answers that is not bound: `CUDA_ERROR_NOT_INITIALIZED`.
extern "C" fn unbound() -> u32 {
    3
}

/// Defines every function of the list, its name and its place in [`TABLE`].
macro_rules! functions {
    ($($name:ident)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(usize)]
        enum Place { $($name),* }

        /// The functions of the driver that are bound.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            extern "C" fn $name() {
                #[cfg(target_arch = "x86_64")]
                std::arch::naked_asm!(
                    "jmp qword ptr [rip + {table} + {offset}]",
                    table = sym TABLE,
                    offset = const 8 * Place::$name as usize,
                );
                #[cfg(target_arch = "aarch64")]
                std::arch::naked_asm!(
                    "adrp x16, {table} + {offset}",
                    "ldr x16, [x16, :lo12:{table} + {offset}]",
                    "br x16",
                    table = sym TABLE,
                    offset = const 8 * Place::$name as usize,
                );
            }
        )*
    };
}

functions! {
    cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuArrayDestroy cuCtxCreate_v2 cuCtxDestroy_v2
    cuCtxEnablePeerAccess cuCtxGetApiVersion cuCtxGetCacheConfig cuCtxGetCurrent cuCtxGetDevice cuCtxGetFlags cuCtxGetLimit
    cuCtxGetSharedMemConfig cuCtxGetStreamPriorityRange cuCtxPopCurrent_v2 cuCtxPushCurrent_v2
    cuCtxSetCacheConfig cuCtxSetCurrent cuCtxSetLimit cuCtxSetSharedMemConfig cuCtxSynchronize
    cuDestroyExternalMemory cuDeviceGet cuDeviceGetAttribute cuDeviceGetCount cuDeviceGetName
    cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxReset_v2 cuDevicePrimaryCtxRetain
    cuDevicePrimaryCtxSetFlags_v2 cuDeviceTotalMem_v2 cuDriverGetVersion cuEventCreate cuEventDestroy_v2
    cuEventElapsedTime cuEventQuery cuEventRecord cuEventSynchronize cuExternalMemoryGetMappedBuffer
    cuFuncGetAttribute cuFuncSetAttribute cuFuncSetCacheConfig cuFuncSetSharedMemConfig cuGetErrorString cuGraphAddKernelNode
    cuGraphCreate cuGraphDebugDotPrint cuGraphDestroy cuGraphGetEdges cuGraphGetNodes cuGraphKernelNodeGetParams
    cuGraphNodeGetType cuImportExternalMemory cuInit cuLaunchHostFunc cuLaunchKernel cuLinkAddData_v2
    cuLinkComplete cuLinkCreate_v2 cuLinkDestroy cuMemAdvise cuMemAllocAsync cuMemAllocHost_v2 cuMemAllocManaged
    cuMemAlloc_v2 cuMemFreeAsync cuMemFreeHost cuMemFree_v2 cuMemGetInfo_v2 cuMemPrefetchAsync cuMemcpy2D_v2
    cuMemcpyAtoH_v2 cuMemcpyDtoDAsync_v2 cuMemcpyDtoD_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoH_v2 cuMemcpyHtoA_v2
    cuMemcpyHtoDAsync_v2 cuMemcpyHtoD_v2 cuMemcpyPeerAsync
    cuMemsetD16Async cuMemsetD16_v2 cuMemsetD32Async cuMemsetD32_v2
    cuMemsetD8Async cuMemsetD8_v2 cuModuleGetFunction cuModuleGetGlobal_v2 cuModuleLoad cuModuleLoadData
    cuModuleLoadDataEx cuModuleUnload cuOccupancyAvailableDynamicSMemPerBlock
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxPotentialBlockSize cuStreamCreateWithPriority
    cuStreamDestroy_v2 cuStreamGetFlags cuStreamGetPriority cuStreamSynchronize cuStreamWaitEvent
    cuSurfObjectCreate cuSurfObjectDestroy cuSurfObjectGetResourceDesc cuTexObjectCreate cuTexObjectDestroy
    cuTexObjectGetResourceDesc cuTexObjectGetResourceViewDesc
}

/// The addresses of the driver's functions, in the order of [`NAMES`].
static TABLE: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(unbound as extern "C" fn() -> u32 as *mut c_void) }; NAMES.len()];

/// Binds the driver, once; later calls repeat the first answer.
///
/// Call this before anything of `cust`.
///
/// # Errors
/// [`Unavailable::NoDriver`] without a `libcuda.so.1`, [`Unavailable::MissingFunction`] if it lacks a function.
pub fn load() -> Result<(), Unavailable> {
    static DONE: OnceLock<Result<(), Unavailable>> = OnceLock::new();
    DONE.get_or_init(bind).clone()
}

fn bind() -> Result<(), Unavailable> {
    // SAFETY: loading the driver runs its initialisers, which are made for that.
    let library = unsafe { libloading::Library::new("libcuda.so.1") };
    let library = library.map_err(|e| Unavailable::NoDriver(e.to_string()))?;
    for (place, name) in TABLE.iter().zip(NAMES) {
        // SAFETY: the address is only kept; `cust` calls it by the signature that the name has in CUDA's headers.
        let function = unsafe { library.get::<*mut c_void>(name.as_bytes()) };
        let function = function.map_err(|_| Unavailable::MissingFunction(name))?;
        place.store(*function, Ordering::Release);
    }
    // The table points into it from now on.
    std::mem::forget(library);
    Ok(())
}
