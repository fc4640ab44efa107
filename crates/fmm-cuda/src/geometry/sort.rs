//! Keys of positions, sorted: by key, or by its first digits alone, then by index.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::tree::Cube;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::view::{DIGITS, RADIX, SORT_TILE, SortView, THREADS};
use crate::geometry::work::{Work, launch};

/// Blocks that share the positions where keys are made: each adds its counts to those of all.
const SHARES: usize = 1024;

/// What positions are sorted by.
#[derive(Debug, Clone, Copy)]
pub enum Key {
    /// Their place along the curve through the cells of a cube.
    Cell(Cube<3>),
    /// The square of the distance from a point; keys are its bits.
    Distance([f64; 3]),
    /// The index of their cell of a mesh, z fastest, shifted to the most significant of its digits.
    Lattice {
        /// Points over the side of the box.
        per_length: [f64; 3],
        /// Points of the mesh.
        points: [u32; 3],
        /// Points of a cell.
        group: [u32; 3],
    },
}

/// Queues the keys of `n` positions, `[n][3]`, their sort by the `digits` most significant of their [`DIGITS`] digits, and the index of the
/// body that each belongs to.
#[expect(clippy::too_many_arguments, reason = "what is sorted, by what, and to where")]
pub fn sort(
    gpu: &Gpu,
    work: &mut Work,
    position: DevicePointer<f64>,
    n: usize,
    by: Key,
    digits: usize,
    key: &mut Buffer<u64>,
    order: &mut Buffer<u32>,
) -> Result<(), Error> {
    let (keys, corner, side, points, group) = match by {
        Key::Cell(cube) => ("keys", cube.corner, cube.side, [0; 3], [0; 3]),
        Key::Distance(from) => ("distance_keys", from, 0.0, [0; 3], [0; 3]),
        Key::Lattice { per_length, points, group } => ("lattice_keys", per_length, 0.0, points, group),
    };
    key.resize(n)?;
    order.resize(n)?;
    work.key.resize(n)?;
    work.index.resize(n)?;
    work.bins.resize(DIGITS * RADIX)?;
    if n == 0 {
        return Ok(());
    }
    work.mark(gpu, "keys")?;
    work.bins.fill(gpu.stream(), 0)?;
    let tickets = work.tickets(gpu, digits)?;
    // There and back: an odd number of passes begins where an even one turns.
    let places = [(key.pointer(), order.pointer()), (work.key.pointer(), work.index.pointer())];
    let at = |pass: usize| places[(digits - pass) % 2];
    let tiles = n.div_ceil(SORT_TILE);
    let mut view = SortView {
        position,
        bins: work.bins.pointer(),
        key: DevicePointer::null(),
        index: DevicePointer::null(),
        key_out: at(0).0,
        index_out: at(0).1,
        status: DevicePointer::null(),
        ticket: tickets,
        corner,
        side,
        epoch: 0,
        n: n as u32,
        digit: (DIGITS - digits) as u32,
        points,
        group,
    };
    // SAFETY: all arrays have the lengths that the view says.
    unsafe {
        launch(gpu, keys, n.div_ceil(THREADS).min(SHARES), THREADS, &view)?;
        work.mark(gpu, "sort")?;
        launch(gpu, "sort_bins", DIGITS, RADIX, &view)?;
        for pass in 0..digits {
            (view.status, view.epoch) = work.launch(gpu, tiles * RADIX)?;
            view.digit = (DIGITS - digits + pass) as u32;
            view.ticket = tickets.add(pass);
            let ((key, index), (key_out, index_out)) = (at(pass), at(pass + 1));
            let index = if pass == 0 { DevicePointer::null() } else { index };
            launch(gpu, "sort_pass", tiles, THREADS, &SortView { key, index, key_out, index_out, ..view })?;
        }
    }
    Ok(())
}

/// Queues the passes of a sort of keys, with the indices 0, 1, 2, … that go along, there and back between two pairs of arrays; the keys are in
/// the first.
///
/// # Safety
/// All arrays have n elements, `bins` holds the counts of each digit, and there is a ticket for each.
pub(crate) unsafe fn sort_keys(
    gpu: &Gpu,
    work: &mut Work,
    n: usize,
    arrays: [(DevicePointer<u64>, DevicePointer<u32>); 2],
    bins: DevicePointer<u32>,
    digits: usize,
    tickets: DevicePointer<u32>,
) -> Result<(), Error> {
    let tiles = n.div_ceil(SORT_TILE);
    for digit in 0..digits {
        let (from, to) = (arrays[digit % 2], arrays[(digit + 1) % 2]);
        let (status, epoch) = work.launch(gpu, tiles * RADIX)?;
        let view = SortView {
            position: DevicePointer::null(),
            bins,
            key: from.0,
            index: if digit == 0 { DevicePointer::null() } else { from.1 },
            key_out: to.0,
            index_out: to.1,
            status,
            // SAFETY: the caller's promise.
            ticket: unsafe { tickets.add(digit) },
            corner: [0.0; 3],
            side: 0.0,
            epoch,
            n: n as u32,
            digit: digit as u32,
            points: [0; 3],
            group: [0; 3],
        };
        // SAFETY: the caller's promise.
        unsafe {
            if digit == 0 {
                launch(gpu, "sort_bins", digits, RADIX, &view)?;
            }
            launch(gpu, "sort_pass", tiles, THREADS, &view)?;
        }
    }
    Ok(())
}
