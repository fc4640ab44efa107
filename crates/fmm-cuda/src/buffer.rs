//! Memory of the device that is kept from step to step.

use std::ops::Range;

use cust::memory::{AsyncCopyDestination, CopyDestination, DeviceBuffer, DeviceCopy, DevicePointer, DeviceSlice};
use cust::stream::Stream;
use fmm_core::Error;

use crate::error::device as told;

/// An array on the device that grows and is reused.
pub struct Buffer<T: DeviceCopy> {
    memory: Option<DeviceBuffer<T>>,
    len: usize,
    /// Whether the memory is a caller's.
    lent: bool,
}

impl<T: DeviceCopy> Buffer<T> {
    /// An empty array.
    pub const fn new() -> Self {
        Buffer { memory: None, len: 0, lent: false }
    }
}

impl<T: DeviceCopy> Buffer<T> {
    /// The array of `len` elements at `address`, which a caller lends. It is not freed.
    ///
    /// # Safety
    /// The elements are there, in memory that the GPU can reach, as long as the array is.
    pub unsafe fn lent(address: u64, len: usize) -> Self {
        // SAFETY: as the caller promises; `free` forgets the memory.
        let memory = (len > 0).then(|| unsafe { DeviceBuffer::from_raw_parts(DevicePointer::from_raw(address), len) });
        Buffer { memory, len, lent: true }
    }

    /// Gives the memory back.
    fn free(&mut self) {
        let memory = self.memory.take();
        if std::mem::take(&mut self.lent) {
            std::mem::forget(memory);
        }
    }
}

impl<T: DeviceCopy> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.free();
    }
}

impl<T: DeviceCopy> Default for Buffer<T> {
    fn default() -> Self {
        Buffer::new()
    }
}

impl<T: DeviceCopy + Default> Buffer<T> {
    /// Makes the array `n` long; the contents are then unknown. The GPU must be entered.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory.
    pub fn resize(&mut self, n: usize) -> Result<(), Error> {
        if self.memory.as_ref().map_or(0, |m| m.len()) < n {
            // The old array goes first: both together may not fit.
            self.free();
            // SAFETY: the kernels write before they read.
            let memory = unsafe { DeviceBuffer::uninitialized(n) };
            let bytes = n * size_of::<T>();
            self.memory = Some(memory.map_err(told(&format!("no {bytes} bytes of GPU memory")))?);
        }
        self.len = n;
        Ok(())
    }

    /// Bytes more than there are now that [`resize`](Buffer::resize) to `n` takes.
    pub fn growth(&self, n: usize) -> usize {
        n.saturating_sub(self.capacity()) * size_of::<T>()
    }

    /// Replaces the contents. The GPU's queues do not wait for it;
    /// [`Gpu::settle`](crate::Gpu::settle) does.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the copy fails.
    pub fn upload(&mut self, values: &[T]) -> Result<(), Error> {
        self.resize(values.len())?;
        match &mut self.memory {
            Some(memory) if !values.is_empty() => {
                memory.index(..values.len()).copy_from(values).map_err(told("cannot copy to the GPU"))
            }
            _ => Ok(()),
        }
    }

    /// Queues the filling of every byte with `byte`.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver refuses.
    pub fn fill(&mut self, stream: &Stream, byte: u8) -> Result<(), Error> {
        match &self.memory {
            // SAFETY: any bytes are numbers, and the stream orders this before the kernels that read them.
            Some(memory) if self.len > 0 => unsafe {
                let bytes = DeviceSlice::from_raw_parts(memory.as_device_ptr().cast::<u8>(), self.len * size_of::<T>());
                { bytes }.set_8_async(byte, stream).map_err(told("cannot fill memory of the GPU"))
            },
            _ => Ok(()),
        }
    }

    /// A copy of the contents. The work that writes them must be finished.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    pub fn download(&self) -> Result<Vec<T>, Error> {
        self.download_first(self.len)
    }

    /// A copy of the contents once `stream` has written them: one wait for both.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy or the work before it fails.
    pub fn read(&self, stream: &Stream) -> Result<Vec<T>, Error> {
        let mut values = vec![T::default(); self.len];
        if let Some(memory) = self.memory.as_ref().filter(|_| self.len > 0) {
            // SAFETY: the values stay where they are until the stream is done.
            let queued = unsafe { memory.index(..self.len).async_copy_to(&mut values, stream) };
            queued.and_then(|()| stream.synchronize()).map_err(told("cannot copy from the GPU"))?;
        }
        Ok(values)
    }

    /// A copy of the first `n` elements, or of all if there are fewer. The work that writes them must be finished.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    pub fn download_first(&self, n: usize) -> Result<Vec<T>, Error> {
        self.download_part(0..n.min(self.len))
    }

    /// A copy of a part. The work that writes it must be finished.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    ///
    /// # Panics
    /// If there are fewer elements.
    pub fn download_part(&self, part: Range<usize>) -> Result<Vec<T>, Error> {
        assert!(part.end <= self.len, "a part of the array");
        let mut values = vec![T::default(); part.len()];
        if let Some(memory) = self.memory.as_ref().filter(|_| !values.is_empty()) {
            memory.index(part).copy_to(&mut values).map_err(told("cannot copy from the GPU"))?;
        }
        Ok(values)
    }

    /// Queues the replacing of the contents by those of `other`.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver refuses.
    pub fn copy_from(&mut self, other: &Self, stream: &Stream) -> Result<(), Error> {
        self.resize(other.len)?;
        match (&mut self.memory, &other.memory) {
            // SAFETY: both live until the stream is done with them, which the caller waits for.
            (Some(to), Some(from)) if other.len > 0 => {
                unsafe { to.index(..other.len).async_copy_from(&from.index(..other.len), stream) }
                    .map_err(told("cannot copy on the GPU"))
            }
            _ => Ok(()),
        }
    }
}

impl Buffer<f64> {
    /// A copy of the contents, in threes.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    pub fn download_threes(&self) -> Result<Vec<[f64; 3]>, Error> {
        self.download_some_threes(0..self.len / 3)
    }

    /// The same of a part, counted in threes.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn download_some_threes(&self, part: Range<usize>) -> Result<Vec<[f64; 3]>, Error> {
        assert!(3 * part.end <= self.len, "a part of the array");
        let mut values = vec![[0.0; 3]; part.len()];
        if let Some(memory) = self.memory.as_ref().filter(|_| !values.is_empty()) {
            let numbers = memory.index(3 * part.start..3 * part.end);
            numbers.copy_to(values.as_flattened_mut()).map_err(told("cannot copy from the GPU"))?;
        }
        Ok(values)
    }

    /// Copies the contents to `values`, as many as there are, through a queue; nothing else of the device is waited for. The work that writes
    /// them must be finished.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    pub fn read_by(&self, values: &mut [f64], stream: &Stream) -> Result<(), Error> {
        let Some(memory) = self.memory.as_ref().filter(|_| self.len > 0) else { return Ok(()) };
        // SAFETY: the values stay where they are until the queue is done.
        let queued = unsafe { memory.index(..self.len).async_copy_to(values, stream) };
        queued.and_then(|()| stream.synchronize()).map_err(told("cannot copy from the GPU"))
    }
}

impl<T: DeviceCopy> Buffer<T> {
    /// Its address; null if it is empty.
    pub fn pointer(&self) -> DevicePointer<T> {
        self.memory.as_ref().filter(|_| self.len > 0).map_or(DevicePointer::null(), |m| m.as_device_ptr())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of elements that there is memory for.
    pub fn capacity(&self) -> usize {
        self.memory.as_ref().map_or(0, |m| m.len())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }
}
