//! The GPUs that the driver shows.

use cust::CudaFlags;
use cust::device::{Device, DeviceAttribute};

use crate::{Unavailable, driver};

/// What a GPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Number of the GPU, from 0.
    pub ordinal: u32,
    /// As the driver names it.
    pub name: String,
    /// Major and minor number of the compute capability.
    pub capability: (i32, i32),
    /// Bytes of memory.
    pub memory: usize,
    /// Number of multiprocessors.
    pub multiprocessors: i32,
}

impl Description {
    fn of(ordinal: u32, device: Device) -> Result<Self, Unavailable> {
        let attribute = |a| device.get_attribute(a);
        Ok(Description {
            ordinal,
            name: device.name()?,
            capability: (
                attribute(DeviceAttribute::ComputeCapabilityMajor)?,
                attribute(DeviceAttribute::ComputeCapabilityMinor)?,
            ),
            memory: device.total_memory()?,
            multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
        })
    }
}

/// All GPUs that the driver shows; never empty.
///
/// # Errors
/// Without a driver or a GPU.
pub fn devices() -> Result<Vec<Description>, Unavailable> {
    driver::load()?;
    cust::init(CudaFlags::empty())?;
    let list: Result<Vec<_>, _> =
        (0..Device::num_devices()?).map(|i| Description::of(i, Device::get_device(i)?)).collect();
    list.and_then(|list| if list.is_empty() { Err(Unavailable::NoDevice) } else { Ok(list) })
}
