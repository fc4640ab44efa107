//! The GPUs of this machine.

use std::ops::Range;
use std::time::Duration;

use cust::context::{Context, CurrentContext};
use cust::device::Device;
use cust::event::{Event, EventFlags};
use cust::memory::DeviceCopy;
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};
use cust::sys::{cuCtxGetCurrent, cuCtxSetCurrent, cuMemcpyPeerAsync, cuStreamSynchronize, cudaError_enum};
use fmm_core::Error;

use crate::Unavailable;
use crate::buffer::Buffer;
use crate::description::{Description, devices};
use crate::error::device as told;
use crate::kernels::{self, Kernels};
use crate::shares::{Divided, Member, Parts, Pieces};

/// A GPU that is ready to compute.
pub struct Gpu {
    // Fields are dropped in their order: the context last.
    kernels: Kernels,
    stream: Stream,
    side: Stream,
    description: Description,
    /// Its place among GPUs that share sums, and whether it works without them now.
    member: Option<Member>,
    alone: bool,
    context: Context,
}

impl Gpu {
    /// Opens the GPU `ordinal`. Kernels are loaded later, when they are launched for the first
    /// time.
    ///
    /// # Errors
    /// If there are no kernels, no driver or no GPU with this number, or if driver or GPU are older
    /// than the kernels.
    pub fn open(ordinal: u32) -> Result<Self, Unavailable> {
        if let Some(why) = kernels::MISSING {
            // A driver without a GPU is the better reason: nvcc would not help.
            devices()?;
            return Err(Unavailable::NoKernels(why));
        }
        let all = devices()?;
        let present = all.len() as u32;
        let description = all.into_iter().nth(ordinal as usize);
        let description = description.ok_or(Unavailable::NoSuchDevice { asked: ordinal, present })?;
        let kernels = Kernels::new(&description)?;
        let context = Context::new(Device::get_device(ordinal)?)?;
        CurrentContext::set_current(&context)?;
        // The queue's few blocks go first where both have work.
        let stream = Stream::new(StreamFlags::NON_BLOCKING, Some(-1))?;
        let side = Stream::new(StreamFlags::NON_BLOCKING, Some(0))?;
        Ok(Gpu { kernels, stream, side, description, member: None, alone: false, context })
    }

    /// What the GPU is.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// How long the driver took to load kernels so far. Where a GPU is newer than all machine code
    /// of the program, the driver compiles them, and keeps the result for the next run.
    pub fn loading(&self) -> Duration {
        self.kernels.loading()
    }

    /// The names of the modules of kernels that have been loaded so far.
    pub fn loaded(&self) -> Vec<&'static str> {
        self.kernels.loaded()
    }

    /// Bytes of memory that are free.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn free_memory(&self) -> Result<usize, Error> {
        self.enter()?;
        cust::memory::mem_get_info().map(|(free, _)| free).map_err(told("cannot ask for the free memory"))
    }

    /// The GPU's queue of work.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The address of the queue that reads arrays of callers: for events of queues of their own.
    pub fn stream_address(&self) -> u64 {
        self.stream.as_inner() as u64
    }

    /// A second queue, for work that may run at the same time as that of the first.
    pub(crate) fn side(&self) -> &Stream {
        &self.side
    }

    /// Makes what is queued on `later` from now on wait for what is queued on `first`.
    pub(crate) fn order(&self, first: &Stream, later: &Stream) -> Result<(), Error> {
        let failed = |e| told("cannot order the GPU's queues")(e);
        let event = Event::new(EventFlags::DISABLE_TIMING).map_err(failed)?;
        event.record(first).map_err(failed)?;
        later.wait_event(event, StreamWaitEventFlags::DEFAULT).map_err(failed)
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// A handle with which another thread makes this GPU its own.
    pub(crate) fn context(&self) -> Context {
        self.context.clone()
    }

    /// Makes this GPU share sums.
    pub(crate) fn join(&mut self, member: Member) {
        self.member = Some(member);
    }

    /// Has this GPU of a team work without the others, or with them again.
    pub(crate) fn work_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    /// The place in a team, if it has one and works with it.
    pub(crate) fn member(&self) -> Option<&Member> {
        self.member.as_ref().filter(|_| !self.alone)
    }

    /// Copies parts of an array from the other GPUs of the team, each from the one that computed
    /// it, in bytes. Nothing without a team.
    pub(crate) fn exchange<T: DeviceCopy + Default>(
        &self,
        buffer: &Buffer<T>,
        what: &'static str,
        parts: Parts,
    ) -> Result<(), Error> {
        let bytes = buffer.len() * size_of::<T>();
        let there = |part: Range<usize>| (part.start, part);
        self.pull((buffer, buffer), (what, bytes), &|index| parts(index).into_iter().map(there).collect())
    }

    /// Copies pieces of an array of each other GPU of the team to an array of this one, all in
    /// bytes: places here, and pieces there. `what` is pulled, of a size in which all agree.
    /// Nothing without a team.
    pub(crate) fn pull<T: DeviceCopy + Default>(
        &self,
        (from, to): (&Buffer<T>, &Buffer<T>),
        what: (&'static str, usize),
        pieces: Pieces,
    ) -> Result<(), Error> {
        let Some(member) = self.member() else { return Ok(()) };
        self.wait()?;
        let context = self.raw_context()?;
        let (address, stream) = (to.pointer().as_raw(), self.stream.as_inner());
        let posts = member.meet(what, from.pointer().as_raw(), context)?;
        for (index, other) in posts.iter().enumerate().filter(|(index, _)| *index != member.index()) {
            for (place, piece) in pieces(index).into_iter().filter(|(_, piece)| !piece.is_empty()) {
                assert!(place + piece.len() <= to.len() * size_of::<T>(), "a place for what is pulled");
                let (to, from) = (address + place as u64, other.address + piece.start as u64);
                // SAFETY: both arrays have these bytes, and neither GPU writes them before the next meeting.
                succeeded(unsafe {
                    cuMemcpyPeerAsync(to, context as _, from, other.context as _, piece.len(), stream)
                })?;
            }
        }
        self.wait()?;
        // Nobody goes on while another still reads.
        member.meet((what.0, 0), 0, context).map(|_| ())
    }

    /// The same of `n` things of as many elements each, of which every GPU has its share.
    pub(crate) fn exchange_shares<T: DeviceCopy + Default>(
        &self,
        buffer: &Buffer<T>,
        n: usize,
        (what, divided): (&'static str, Divided),
    ) -> Result<(), Error> {
        let Some(member) = self.member() else { return Ok(()) };
        let (bounds, each) = (member.bounds(n, divided), buffer.len() * size_of::<T>() / n.max(1));
        let part = |index: usize| bounds[index] * each..bounds[index + 1] * each;
        self.exchange(buffer, what, &|index| Vec::from([part(index)]))
    }

    /// Replaces each number by the sum over all GPUs of the team, of which one at most has another
    /// than 0; returns the sums. Nothing without a team.
    pub(crate) fn join_numbers(&self, buffer: &mut Buffer<f64>) -> Result<Vec<f64>, Error> {
        let own = buffer.read(&self.stream)?;
        let Some(member) = self.member() else { return Ok(own) };
        let all = member.gathered(own)?;
        let sum = |k: usize| all.iter().filter_map(|of| of.get(k)).sum::<f64>();
        let sums = (0..buffer.len()).map(sum).collect::<Vec<_>>();
        buffer.upload(&sums)?;
        self.settle()?;
        Ok(sums)
    }

    /// Waits until the work of the first queue is done.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize().map_err(told("the GPU failed"))
    }

    /// Whether all GPUs of the team say yes; `yes` without a team.
    pub(crate) fn agree(&self, yes: bool) -> Result<bool, Error> {
        self.member().map_or(Ok(yes), |member| member.agree(yes))
    }

    /// The driver's handle of the context.
    pub(crate) fn raw_context(&self) -> Result<usize, Error> {
        self.enter()?;
        let mut context = std::ptr::null_mut();
        // SAFETY: one pointer to write to.
        succeeded(unsafe { cuCtxGetCurrent(&mut context) })?;
        Ok(context as usize)
    }

    /// Runs `work` with this GPU as that of the current thread, and then makes the one before that again.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn within<R>(&self, work: impl FnOnce() -> R) -> Result<R, Error> {
        let mut before = std::ptr::null_mut();
        // SAFETY: one pointer to write to. Without a context it is null.
        succeeded(unsafe { cuCtxGetCurrent(&mut before) })?;
        self.enter()?;
        let result = work();
        // SAFETY: a context of the caller's, or null for none.
        succeeded(unsafe { cuCtxSetCurrent(before) })?;
        Ok(result)
    }

    /// Makes this GPU the current one of the calling thread, which is required before it allocates,
    /// copies or launches.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn enter(&self) -> Result<(), Error> {
        CurrentContext::set_current(&self.context).map_err(told("cannot use the GPU"))
    }

    /// Waits until copies from the host have arrived, which the GPU's queues do not wait for; but not for copies that another thread
    /// makes in a queue of its own.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn settle(&self) -> Result<(), Error> {
        // SAFETY: null is the queue of all copies that name none.
        succeeded(unsafe { cuStreamSynchronize(std::ptr::null_mut()) })
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    pub fn finish(&self) -> Result<(), Error> {
        self.side.synchronize().and_then(|()| self.stream.synchronize()).map_err(told("the GPU failed"))
    }
}

/// The error of a call that the driver answers with `done`.
pub(crate) fn succeeded(done: cudaError_enum) -> Result<(), Error> {
    match done {
        cudaError_enum::CUDA_SUCCESS => Ok(()),
        failed => Err(Error::Device(format!("the GPU failed: {failed:?}"))),
    }
}
