//! Arrays of a device that come and go with the steps of a flow. Their memory is kept for the next
//! ones, because allocating and freeing stall the device. All of them are used in one queue, in
//! whose order memory can be used again at once.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use cust::context::Context;
use cust::memory::{AsyncCopyDestination, DeviceCopy, DevicePointer, DeviceSlice};
use cust::stream::Stream;
use fmm_core::Error;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::error::device as told;

/// Arrays that wait, at most: those of grids that were smaller would otherwise stay for ever.
const MOST: usize = 256;

/// Memory that is not in use.
pub struct Pool {
    spare: Mutex<Vec<Buffer<f64>>>,
    // Dropped after the memory, which it holds.
    _context: Context,
}

impl Pool {
    /// No memory yet.
    pub fn new(gpu: &Gpu) -> Arc<Self> {
        Arc::new(Pool { spare: Mutex::default(), _context: gpu.context() })
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Buffer<f64>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the memory back that is not in use. Returns whether there was any.
    pub fn release(&self) -> bool {
        !std::mem::take(&mut *self.spare()).is_empty()
    }

    /// An array of `len` elements, whose contents are unknown. The GPU must be entered.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory.
    pub fn array<T: DeviceCopy>(self: &Arc<Self>, len: usize) -> Result<Array<T>, Error> {
        let words = (len * size_of::<T>()).div_ceil(size_of::<f64>());
        let mut spare = self.spare();
        let fits = spare.iter().enumerate().filter(|(_, b)| (words..=2 * words + 1024).contains(&b.capacity()));
        let mut memory = match fits.min_by_key(|(_, b)| b.capacity()).map(|(i, _)| i) {
            Some(i) => spare.swap_remove(i),
            None => Buffer::new(),
        };
        if memory.capacity() < words {
            if spare.len() >= MOST {
                spare.clear();
            }
            // Room to grow.
            let more = words + words / 8;
            memory.resize(more).or_else(|_| {
                spare.clear();
                memory.resize(words)
            })?;
        }
        drop(spare);
        memory.resize(words)?;
        Ok(Array { memory, len, pool: self.clone(), of: PhantomData })
    }

    /// An array with these values, which are in pageable memory.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the copy fails.
    pub fn with<T: DeviceCopy>(self: &Arc<Self>, values: &[T], stream: &Stream) -> Result<Array<T>, Error> {
        let array = self.array(values.len())?;
        if !values.is_empty() {
            // SAFETY: the array has these elements. The driver has read the values when it returns:
            // they are in pageable memory.
            let queued = unsafe { array.slice().async_copy_from(values, stream) };
            queued.map_err(told("cannot copy to the GPU"))?;
        }
        Ok(array)
    }

    /// An array of zeros.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver refuses.
    pub fn zeros<T: DeviceCopy>(self: &Arc<Self>, len: usize, stream: &Stream) -> Result<Array<T>, Error> {
        let mut array = self.array(len)?;
        array.memory.fill(stream, 0)?;
        Ok(array)
    }
}

/// An array of a pool.
pub struct Array<T: DeviceCopy> {
    memory: Buffer<f64>,
    len: usize,
    pool: Arc<Pool>,
    of: PhantomData<T>,
}

impl<T: DeviceCopy> Array<T> {
    /// Its address; null if it is empty.
    pub fn pointer(&self) -> DevicePointer<T> {
        self.memory.pointer().cast()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    fn slice(&self) -> DeviceSlice<T> {
        // SAFETY: the memory has these elements, and lives as long as the array.
        unsafe { DeviceSlice::from_raw_parts(self.pointer(), self.len) }
    }

    /// The elements, once the queue has written them.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy or the work before it fails.
    pub fn read_into(&self, values: &mut [T], stream: &Stream) -> Result<(), Error> {
        if self.len == 0 {
            return Ok(());
        }
        // SAFETY: the values stay where they are until the queue is done.
        let queued = unsafe { self.slice().async_copy_to(values, stream) };
        queued.and_then(|()| stream.synchronize()).map_err(told("cannot copy from the GPU"))
    }

    /// The same as a vector.
    ///
    /// # Errors
    /// Those of [`read_into`](Self::read_into).
    pub fn read(&self, stream: &Stream) -> Result<Vec<T>, Error>
    where
        T: Default,
    {
        let mut values = vec![T::default(); self.len];
        self.read_into(&mut values, stream)?;
        Ok(values)
    }

    /// A copy.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver refuses.
    pub fn copy(&self, stream: &Stream) -> Result<Self, Error> {
        let copy = self.pool.array(self.len)?;
        if self.len > 0 {
            // SAFETY: both have these elements, and memory is used again in the order of the queue.
            let queued = unsafe { copy.slice().async_copy_from(&self.slice(), stream) };
            queued.map_err(told("cannot copy on the GPU"))?;
        }
        Ok(copy)
    }
}

impl<T: DeviceCopy> Drop for Array<T> {
    fn drop(&mut self) {
        self.pool.spare().push(std::mem::take(&mut self.memory));
    }
}
