//! The options of a sum.

use std::ffi::{c_char, c_int};
use std::ptr;

use fmm::bindings::{Failure, Options, Request};
use fmm::{Family, Kernel};

use crate::answer::{Refusal, answer, request};
use crate::memory::{self, Sized8};

/// Options of a sum. Set all members by nbody_options_init() before you change some.
///
/// Later versions add members at the end; `size` says which of them a program knows. A text that
/// is NULL has its default. Texts end with 0 and have at most 255 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NbodyOptions {
    /// sizeof(nbody_options) of the program, set by nbody_options_init().
    pub size: usize,
    /// What is summed: "laplace" (default), "yukawa:KAPPA", "log", "harmonic", "vortex" or
    /// "gauss:SIGMA", with a number in place of KAPPA (1/length) and SIGMA (length).
    pub kernel: *const c_char,
    /// Shape of the sources: "none" (default), "plummer:E", "spline:E" or "p1:E" for laplace, "p1:E"
    /// for vortex, "algebraic:E" or "gaussian:E" for log and harmonic. E is a length.
    pub softening: *const c_char,
    /// What all images of a box are embedded in: "tinfoil" (default), "vacuum" or a dielectric
    /// constant such as "78.5". Only with a box.
    pub surroundings: *const c_char,
    /// "auto" (default), "direct", "treecode", "fmm", or in a periodic box "mesh".
    pub method: *const c_char,
    /// Arithmetic of the sum: "auto" (default), "f32", "mixed" or "f64". Results are double.
    pub precision: *const c_char,
    /// "auto" (default), "cpu", "cuda", "cuda:N" with N the number of a GPU from 0, several of these with commas, "cuda:all".
    pub device: *const c_char,
    /// Relative error of the field, rms and L2 over the targets (log and harmonic: L2 alone): 1e-14 to
    /// 0.1, by default 1e-4. With gauss the largest error of a potential over the sum of |strengths|.
    pub tolerance: f64,
    /// Sides of a periodic box, a length each; all 0 (default) is open space. Only laplace.
    pub r#box: [f64; 3],
    /// Number of axes of positions: 1, 2 or 3 with gauss; 0 (default) is 3, and 2 with log and
    /// harmonic.
    pub dimension: i64,
    /// Order of the expansions, 1 to 30; 0 (default) follows from the tolerance.
    pub order: i64,
    /// Opening angle, 0.2 to 1; 0 (default) follows from the tolerance.
    pub theta: f64,
    /// Largest number of particles in a leaf, 1 to 1000000; 0 (default) follows from the tolerance.
    pub leaf_size: i64,
    /// Worker threads, 1 to 1024; 0 (default) is one for each core.
    pub threads: i64,
    /// Number of targets whose field is compared with the direct sum in double precision; 0
    /// (default) compares none. See nbody_result.
    pub check: i64,
    /// Number of pairs of sources that do not interact; 0 (default) is none. Only laplace and
    /// yukawa without targets.
    pub exclusion_count: i64,
    /// The pairs: indices of sources from 0, [exclusion_count][2]; NULL if there are none.
    pub exclusions: *const i64,
}

// SAFETY: numbers and pointers of 8 bytes each, the first of them the size; any bytes are valid.
unsafe impl Sized8 for NbodyOptions {
    const NAME: &'static str = "nbody_options";
}

const _: () = assert!(size_of::<NbodyOptions>() == 19 * 8);

const DEFAULT: NbodyOptions = NbodyOptions {
    size: size_of::<NbodyOptions>(),
    kernel: ptr::null(),
    softening: ptr::null(),
    surroundings: ptr::null(),
    method: ptr::null(),
    precision: ptr::null(),
    device: ptr::null(),
    tolerance: 1e-4,
    r#box: [0.0; 3],
    dimension: 0,
    order: 0,
    theta: 0.0,
    leaf_size: 0,
    threads: 0,
    check: 0,
    exclusion_count: 0,
    exclusions: ptr::null(),
};

/// Sets all options to their defaults.
///
/// @param options the options
/// @param size sizeof(nbody_options), which is less in programs that know fewer options
/// @return NBODY_OK, or NBODY_ERROR_REQUEST if options is NULL or the size impossible
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbody_options_init(options: *mut NbodyOptions, size: usize) -> c_int {
    answer(|| {
        if options.is_null() {
            return Err(request("options is NULL; a nbody_options is needed".into()));
        }
        memory::aligned(NbodyOptions::NAME, options as usize)?;
        memory::check_size::<NbodyOptions>(size)?;
        // SAFETY: aligned, and the caller's structure has this size.
        unsafe { memory::write(options, size, &DEFAULT) };
        Ok(())
    })
}

/// Options that were read and checked.
pub(crate) struct Read {
    pub options: Options,
    pub exclusions: Vec<[i64; 2]>,
    /// Number of axes of positions.
    pub dimension: usize,
}

/// Reads options; NULL are the defaults.
///
/// # Safety
/// Options as the header documents them.
pub(crate) unsafe fn read(options: *const NbodyOptions) -> Result<Read, Refusal> {
    let o = match options.is_null() {
        true => DEFAULT,
        // SAFETY: the caller promises a structure of the size that it states.
        false => unsafe { memory::read(options, DEFAULT) }?,
    };
    // SAFETY: the caller promises texts that end, or NULL.
    let text = |name, value, default| unsafe { memory::text(name, value, default) };
    let open = o.r#box == [0.0; 3];
    let options = Request {
        kernel: text("kernel", o.kernel, "laplace")?,
        softening: text("softening", o.softening, "none")?,
        sides: (!open).then_some(o.r#box),
        surroundings: text("surroundings", o.surroundings, "tinfoil")?,
        tolerance: o.tolerance,
        method: text("method", o.method, "auto")?,
        precision: text("precision", o.precision, "auto")?,
        order: given("order", o.order, "1 to 30")?,
        theta: (o.theta != 0.0).then_some(o.theta),
        leaf_size: given("leaf_size", o.leaf_size, "1 to 1000000")?,
        device: text("device", o.device, "auto")?,
        threads: given("threads", o.threads, "1 to 1024")?,
        check: memory::count("check", o.check)?,
        hessian: false,
        errors: false,
    };
    let options = options.options().map_err(Failure::from)?;
    let pairs = memory::count("exclusion_count", o.exclusion_count)?;
    // SAFETY: the caller promises an array of this length.
    let exclusions = unsafe { memory::input("exclusions", o.exclusions, pairs, 2) }?.as_chunks().0.to_vec();
    let dimension = dimension(options.problem.kernel, o.dimension)?;
    Ok(Read { options, exclusions, dimension })
}

/// A number that is given unless it is 0.
fn given(name: &str, value: i64, allowed: &str) -> Result<Option<usize>, Refusal> {
    match usize::try_from(value) {
        Ok(0) => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(request(format!("{name} = {value} is negative; allowed: 0 (chosen by the library), {allowed}"))),
    }
}

/// The number of axes of positions.
fn dimension(kernel: Kernel, asked: i64) -> Result<usize, Refusal> {
    let (own, allowed) = match kernel.family() {
        Family::Plane(_) => (2, 2..=2),
        Family::Gauss(_) => (3, 1..=3),
        Family::Radial | Family::Vortex => (3, 3..=3),
    };
    match asked {
        0 => Ok(own),
        d if allowed.contains(&d) => Ok(d as usize),
        d => {
            let (name, first, last) = (kernel.name(), allowed.start(), allowed.end());
            let range = if first == last { format!("{first}") } else { format!("{first} to {last}") };
            Err(request(format!("dimension = {d}; with kernel {name} allowed: 0 (chosen by the library), {range}")))
        }
    }
}
