//! Which method a sum in the plane has on the device, and its leaves: what differs from the CPU because pairs are cheap here.

use fmm_core::planar::accuracy;
use fmm_core::planar::{Kernel, Request};
use fmm_core::{Error, Method, Precision, Settings};

/// The most pairs that are summed directly in less time than a pyramid takes.
fn cheap_pairs(kernel: Kernel) -> f64 {
    if kernel == Kernel::Log { 2.4e8 } else { 6.5e8 }
}

/// Picoseconds of a pair, measured on an H200 like the costs below.
fn pair_cost(kernel: Kernel) -> f64 {
    if kernel == Kernel::Log { 3.2 } else { 1.4 }
}

/// Picoseconds of one M2L: its lanes evaluate a polynomial each.
fn m2l_cost(order: usize) -> f64 {
    let lanes = if order <= 16 { 16.0 } else { 32.0 * (order as f64 / 32.0).ceil() };
    lanes * (6.0 * order as f64 + 60.0) * 0.14
}

/// The settings with method, precision and leaf size resolved for the device.
///
/// # Errors
/// [`Error::Unsupported`] for single precision, and those of [`accuracy::choose`].
pub fn choose(request: &Request) -> Result<Settings, Error> {
    let settings = &request.settings;
    if settings.precision == Precision::F32 {
        return Err(Error::Unsupported(
            "in the plane a GPU sums in double precision: use precision auto or f64, or device cpu".into(),
        ));
    }
    let with = |method| Settings { method, precision: Precision::F64, ..settings.clone() };
    let pairs = request.size.sources as f64 * request.size.targets as f64;
    let fixed = settings.order.is_some() || settings.theta.is_some();
    let auto = settings.method == Method::Auto;
    if settings.method == Method::Direct || auto && !fixed && pairs <= cheap_pairs(request.kernel) {
        let direct = with(Method::Direct);
        accuracy::choose(request.kernel, &direct, request.size, settings.tolerance)?;
        return Ok(direct);
    }
    let fast = with(if auto { Method::Fmm } else { settings.method });
    let choice = accuracy::choose(request.kernel, &fast, request.size, settings.tolerance)?;
    let leaf_size = settings.leaf_size.unwrap_or_else(|| leaf_size(request.kernel, choice.order.unwrap_or(1)));
    Ok(Settings { leaf_size: Some(leaf_size), ..fast })
}

/// Picoseconds for the lists and the other operators of a leaf.
const LEAF_COST: f64 = 9000.0;

/// The largest number of points of a leaf. Leaves hold a quarter of it to all of it, and at half of it 45 M2L and the rest cost what the pairs
/// with 10.5 leaves do.
fn leaf_size(kernel: Kernel, order: usize) -> usize {
    (2.0 * ((45.0 * m2l_cost(order) + LEAF_COST) / (10.5 * pair_cost(kernel))).sqrt()).clamp(16.0, 400.0) as usize
}
