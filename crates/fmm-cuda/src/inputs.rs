//! The bodies of a sum on the device, in the caller's order.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::accuracy::Strengths;
use fmm_core::bodies;
use fmm_core::math::scale::scale_of;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::view::Points;

/// Points on the device; targets only where they are not the sources.
#[derive(Clone, Copy)]
pub struct Ends {
    /// Sources.
    pub sources: Points,
    /// Other targets.
    pub targets: Option<Points>,
    /// The largest |q|.
    pub largest: f64,
    /// Σ|q| of all columns, to 24 bits: the order in which it was added leaves no trace.
    pub total: f64,
    /// Whether strengths have both signs; of several columns true, whose sums are vector products.
    pub mixed: bool,
}

impl Ends {
    /// The power of two that strengths are multiplied by.
    pub fn strength_scale(&self) -> f64 {
        scale_of(self.largest)
    }

    /// The targets, which may be the sources.
    pub fn at(&self) -> Points {
        self.targets.unwrap_or(self.sources)
    }
}

/// Sources and the columns of their strengths, and targets where they are others, on the host.
pub type Host<'a> = (&'a [[f64; 3]], &'a [&'a [f64]], Option<&'a [[f64; 3]]>);

/// Arrays of a caller on one GPU, by their addresses: float64, in C order.
#[derive(Debug, Clone, Copy)]
pub struct DeviceArrays<'a> {
    /// Number of the GPU.
    pub ordinal: u32,
    /// Positions of the sources, and how many. `[n][3]`
    pub sources: (u64, usize),
    /// Columns of strengths: one, or three of vortices. `[n]`
    pub strengths: &'a [u64],
    /// Positions of the targets, and how many; `None`: the sources, none of which sees itself. `[m][3]`
    pub targets: Option<(u64, usize)>,
    /// Where the potential goes; 0 for kernels without one. `[m]`
    pub potential: u64,
    /// Where the field goes. `[m][3]`
    pub field: u64,
    /// Where the second derivatives of the potential go; 0: they are not wanted. `[m][6]`
    pub hessian: u64,
}

impl DeviceArrays<'_> {
    /// Number of targets.
    pub fn targets(&self) -> usize {
        self.targets.unwrap_or(self.sources).1
    }

    /// Number of pairs of a source and a target.
    pub fn pairs(&self) -> f64 {
        self.sources.1 as f64 * self.targets() as f64
    }
}

/// The same on the device.
#[derive(Default)]
pub struct Inputs {
    /// `[sources][3]`
    pub position: Buffer<f64>,
    /// `[columns][sources]`
    strengths: Vec<Buffer<f64>>,
    place: Buffer<f64>,
    sources: usize,
    targets: Option<usize>,
    largest: f64,
    total: f64,
    mixed: bool,
    by_size: Vec<usize>,
}

impl Inputs {
    /// Copies `host` to the device.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if a copy fails.
    pub fn upload(&mut self, gpu: &Gpu, (sources, columns, targets): Host) -> Result<(), Error> {
        self.position.upload(sources.as_flattened())?;
        self.strengths.resize_with(columns.len(), Buffer::new);
        for (buffer, column) in self.strengths.iter_mut().zip(columns) {
            buffer.upload(column)?;
        }
        self.place.upload(targets.unwrap_or(&[]).as_flattened())?;
        (self.sources, self.targets) = (sources.len(), targets.map(<[_]>::len));
        self.order_columns(Strengths::of(columns), columns.iter().map(|column| bodies::total_size(column)).collect());
        gpu.settle()
    }

    /// Bytes more of device memory than there are now that [`upload`](Inputs::upload) takes.
    pub fn growth(&self, (sources, columns, targets): Host) -> usize {
        let strengths = |k: usize| self.strengths.get(k).map_or(8 * sources.len(), |b| b.growth(sources.len()));
        self.position.growth(3 * sources.len())
            + (0..columns.len()).map(strengths).sum::<usize>()
            + self.place.growth(targets.map_or(0, |t| 3 * t.len()))
    }

    /// The arrays of a caller. [`order_columns`](Inputs::order_columns) comes next.
    ///
    /// # Safety
    /// They lie in memory that the GPU can reach, and stay as long as this.
    pub unsafe fn lent(arrays: &DeviceArrays) -> Self {
        let (n, m) = (arrays.sources.1, arrays.targets.map(|t| t.1));
        // SAFETY: as the caller promises.
        unsafe {
            Inputs {
                position: Buffer::lent(arrays.sources.0, 3 * n),
                strengths: arrays.strengths.iter().map(|&column| Buffer::lent(column, n)).collect(),
                place: arrays.targets.map_or(Buffer::new(), |(targets, m)| Buffer::lent(targets, 3 * m)),
                sources: n,
                targets: m,
                ..Inputs::default()
            }
        }
    }

    /// Sets what is known of the strengths, and the order of the columns, whose sums of sizes these are.
    pub fn order_columns(&mut self, strengths: Strengths, sizes: Vec<f64>) {
        self.by_size = (0..sizes.len()).collect();
        self.by_size.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]));
        (self.largest, self.mixed) = (strengths.largest, strengths.mixed);
        let total = sizes.iter().sum::<f64>();
        self.total = f64::from_bits((total.to_bits() + (1 << 28)) >> 29 << 29);
    }

    /// The strengths, column by column.
    pub fn columns(&self) -> &[Buffer<f64>] {
        &self.strengths
    }

    /// Gives the memory back; the numbers of bodies stay known. The work that reads them must be done.
    pub fn release(&mut self) {
        (self.position, self.strengths, self.place) = Default::default();
    }

    /// Whether the bodies are not there, since they were released.
    pub fn released(&self) -> bool {
        self.position.len() < 3 * self.sources
    }

    /// Where they are, with the first column of strengths.
    pub fn ends(&self) -> Ends {
        self.ends_of(0)
    }

    /// The columns of strengths, those of the largest sum of sizes first.
    pub fn by_size(&self) -> Vec<usize> {
        self.by_size.clone()
    }

    /// Where they are, with this column of strengths.
    pub fn ends_of(&self, column: usize) -> Ends {
        let strength = self.strengths.get(column).map_or(DevicePointer::null(), Buffer::pointer);
        let at = |points: &Buffer<f64>, strength, n| Points { position: points.pointer(), strength, n };
        Ends {
            sources: at(&self.position, strength, self.sources),
            targets: self.targets.map(|n| at(&self.place, DevicePointer::null(), n)),
            largest: self.largest,
            total: self.total,
            mixed: self.mixed,
        }
    }

    /// Positions of sources, and of targets where they are others.
    pub fn positions(&self) -> (&Buffer<f64>, Option<&Buffer<f64>>) {
        (&self.position, self.targets.map(|_| &self.place))
    }
}
