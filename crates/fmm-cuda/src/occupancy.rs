//! How many threads of a kernel a multiprocessor holds at once, and what bounds them.

use std::fmt;

use cust::sys::CUdevice_attribute_enum as DeviceAttribute;
use cust::sys::CUfunction_attribute_enum as FunctionAttribute;
use cust::sys::{
    cuDeviceGetAttribute, cuFuncGetAttribute, cuOccupancyMaxActiveBlocksPerMultiprocessor, cudaError_enum,
};
use fmm_core::Error;

use crate::Gpu;

/// Threads of a warp.
const WARP: u32 = 32;
/// Registers are given to warps in pieces of this size.
const REGISTER_UNIT: u32 = 256;

/// What bounds the threads that a multiprocessor holds at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// The most threads: the occupancy is as high as blocks of this size allow.
    Threads,
    /// The most blocks.
    Blocks,
}

impl fmt::Display for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limiter::Registers => "registers",
            Limiter::SharedMemory => "shared memory",
            Limiter::Threads => "threads",
            Limiter::Blocks => "blocks",
        })
    }
}

/// What a kernel takes of a multiprocessor, with blocks of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occupancy {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Bytes of local memory of a thread, to which registers spill.
    pub local: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that a multiprocessor holds at once, as the driver counts them.
    pub blocks: u32,
    /// Warps of these blocks over the most that a multiprocessor holds, 0 to 1.
    pub share: f64,
    /// What bounds the number of blocks.
    pub limiter: Limiter,
}

/// What a multiprocessor has.
#[derive(Debug, Clone, Copy)]
struct Capacity {
    threads: u32,
    blocks: u32,
    registers: u32,
    /// Bytes.
    shared: u32,
    /// Bytes that the driver takes of each block's.
    reserved: u32,
}

impl Capacity {
    /// What bounds the blocks of a kernel first; of two that bound them alike the one that is named first here:
    /// threads, blocks, registers, shared memory.
    fn limiter(&self, threads: u32, registers: u32, shared: u32) -> Limiter {
        let warps = threads.div_ceil(WARP).max(1);
        let of_warp = (registers * WARP).next_multiple_of(REGISTER_UNIT).max(REGISTER_UNIT);
        let bounds = [
            (self.threads / WARP / warps, Limiter::Threads),
            (self.blocks, Limiter::Blocks),
            (self.registers / of_warp / warps, Limiter::Registers),
            (self.shared / (shared + self.reserved).max(1), Limiter::SharedMemory),
        ];
        bounds.into_iter().min_by_key(|b| b.0).map_or(Limiter::Threads, |b| b.1)
    }
}

/// The occupancy of the kernel `name` in blocks of `threads` threads with `dynamic` bytes of shared memory in
/// addition to its own.
///
/// # Errors
/// [`Error::Device`] if there is no such kernel or the driver fails.
pub(crate) fn occupancy(gpu: &Gpu, name: &str, threads: usize, dynamic: usize) -> Result<Occupancy, Error> {
    gpu.enter()?;
    let function = gpu.kernels().function(name)?;
    let done = |result: cudaError_enum, value: i32| match result {
        cudaError_enum::CUDA_SUCCESS => Ok(value as u32),
        failed => Err(Error::Device(format!("cannot ask for the occupancy of {name}: {failed:?}"))),
    };
    let of = |attribute| {
        let mut value = 0;
        // SAFETY: one number to write to; the function is of a module that is loaded.
        let result = unsafe { cuFuncGetAttribute(&mut value, attribute, function) };
        done(result, value)
    };
    let device = |attribute| {
        let mut value = 0;
        // SAFETY: one number to write to; devices are named by their ordinals.
        let result = unsafe { cuDeviceGetAttribute(&mut value, attribute, gpu.description().ordinal as i32) };
        done(result, value)
    };
    let mut blocks = 0;
    // SAFETY: one number to write to; the function is of a module that is loaded.
    let result = unsafe { cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, function, threads as i32, dynamic) };
    let blocks = done(result, blocks)?;
    let capacity = Capacity {
        threads: device(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        blocks: device(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        registers: device(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        shared: device(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        reserved: device(DeviceAttribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
    };
    let registers = of(FunctionAttribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
    let shared = of(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)? + dynamic as u32;
    let threads = threads as u32;
    Ok(Occupancy {
        registers,
        shared,
        local: of(FunctionAttribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        threads,
        blocks,
        share: f64::from(blocks * threads.div_ceil(WARP) * WARP) / f64::from(capacity.threads.max(1)),
        limiter: capacity.limiter(threads, registers, shared),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limiter_is_what_runs_out_first() {
        // An H100.
        let chip = Capacity { threads: 2048, blocks: 32, registers: 65_536, shared: 233_472, reserved: 1024 };
        for (threads, registers, shared, expected) in [
            (128, 32, 0, Limiter::Threads),
            // 16 blocks of 128 threads would need 32 registers a thread; 40 leave 12 blocks.
            (128, 40, 0, Limiter::Registers),
            (128, 32, 33_024, Limiter::SharedMemory),
            (32, 32, 0, Limiter::Blocks),
            // 33 registers are given as 40.
            (128, 33, 0, Limiter::Registers),
            (1024, 64, 0, Limiter::Registers),
        ] {
            assert_eq!(chip.limiter(threads, registers, shared), expected, "{threads} {registers} {shared}");
        }
        assert_eq!(Limiter::SharedMemory.to_string(), "shared memory");
    }
}
