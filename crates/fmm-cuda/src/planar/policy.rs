//! Which method a sum in the plane has on the device, and its leaves: what differs from the CPU because pairs are cheap here.

use fmm_core::planar::accuracy;
use fmm_core::planar::{Kernel, Request};
use fmm_core::{Error, Method, Precision, Settings};

/// The most pairs that are summed directly in less time than a pyramid takes.
fn cheap_pairs(kernel: Kernel) -> f64 {
    if kernel == Kernel::Log { 2.4e8 } else { 6.5e8 }
}

/// Picoseconds of a pair, measured on an H200 like the costs below.
fn pair_cost(kernel: Kernel, precision: Precision) -> f64 {
    match (kernel, precision) {
        (Kernel::Log, Precision::F32) => 1.8,
        (Kernel::Log, _) => 3.2,
        (Kernel::Harmonic, _) => 1.4,
    }
}

/// Picoseconds of one M2L: on the tensor cores as they were timed with 8 to 32 terms, beyond by 64 lanes that evaluate a polynomial each.
fn m2l_cost(order: usize) -> f64 {
    let p = order as f64;
    if order <= 32 { 25.0 + 0.18 * p * p } else { 64.0 * (6.0 * p + 60.0) * 0.14 }
}

/// The settings with method, precision and leaf size resolved for the device; the contract may take double precision for what single does not
/// keep. Direct sums of all pairs are in double precision.
///
/// # Errors
/// [`Error::Unsupported`] for direct sums in single precision, and those of [`accuracy::choose`].
pub fn choose(request: &Request) -> Result<Settings, Error> {
    let settings = &request.settings;
    if settings.errors {
        return Err(Error::Unsupported(
            "errors of each target are estimated on the cores alone; use device cpu".into(),
        ));
    }
    let with = |method, precision| Settings { method, precision, ..settings.clone() };
    let (kernel, single) = (request.kernel, settings.precision == Precision::F32);
    let pairs = request.size.sources as f64 * request.size.targets as f64;
    let fixed = settings.order.is_some() || settings.theta.is_some();
    let auto = settings.method == Method::Auto;
    if settings.method == Method::Direct && single {
        return Err(Error::Unsupported(
            "in the plane a GPU's direct sums are in double precision: use precision auto or f64, or device cpu".into(),
        ));
    }
    if settings.method == Method::Direct || auto && !fixed && !single && pairs <= cheap_pairs(kernel) {
        let direct = with(Method::Direct, Precision::F64);
        accuracy::choose(kernel, &direct, request.size, settings.tolerance)?;
        return Ok(direct);
    }
    let fast = with(if auto { Method::Fmm } else { settings.method }, settings.precision);
    let choice = accuracy::choose(kernel, &fast, request.size, settings.tolerance)?;
    let best = || leaf_size(kernel, choice.precision, choice.order.unwrap_or(1));
    Ok(Settings { leaf_size: Some(settings.leaf_size.unwrap_or_else(best)), ..fast })
}

/// Picoseconds for the lists and the other operators of a leaf.
const LEAF_COST: f64 = 9000.0;

/// The largest number of points of a leaf. Leaves hold a quarter of it to all of it, and at half of it 45 M2L and the rest cost what the pairs
/// with 10.5 leaves do.
fn leaf_size(kernel: Kernel, precision: Precision, order: usize) -> usize {
    let leaf = 45.0 * m2l_cost(order) + LEAF_COST;
    (2.0 * (leaf / (10.5 * pair_cost(kernel, precision))).sqrt()).clamp(16.0, 400.0) as usize
}
