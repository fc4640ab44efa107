//! The functions that sum.

use std::ffi::c_int;

use fmm::bindings::{Arrays, Session, components};
use fmm_core::Cancel;

use crate::answer::{Refusal, answer, request};
use crate::forks;
use crate::memory::{self, Output};
use crate::options::{self, NbodyOptions};
use crate::result::{NbodyResult, Wanted};

/// Options that were checked, with the device that they name: see nbody_solver_new().
pub struct NbodySolver {
    session: Session,
    exclusions: Vec<[i64; 2]>,
    dimension: usize,
}

impl NbodySolver {
    /// # Safety
    /// Options as the header documents them.
    unsafe fn new(options: *const NbodyOptions) -> Result<Self, Refusal> {
        // SAFETY: as promised.
        let options::Read { options, exclusions, dimension } = unsafe { options::read(options) }?;
        forks::register()?;
        Ok(NbodySolver { session: Session::new(options), exclusions, dimension })
    }

    /// # Safety
    /// Arrays as the header documents them.
    unsafe fn run(&self, arrays: Raw) -> Result<(), Refusal> {
        let (kernel, dimension) = (self.session.options().problem.kernel, self.dimension);
        let outputs = kernel.outputs(dimension);
        // A complex strength has two columns.
        let columns = kernel.strengths().len() + usize::from(kernel == fmm::Kernel::Harmonic);
        let (n, m) = (memory::count("n", arrays.n)?, memory::count("m", arrays.m)?);
        if arrays.targets.is_null() && m != n {
            return Err(request(format!(
                "m = {m}, but targets is NULL: the sums are then those at the n = {n} sources; allowed: m = {n}"
            )));
        }
        if outputs.potential.is_none() && !arrays.potential.is_null() {
            let name = kernel.name();
            return Err(request(format!("potential: the kernel {name} has none; allowed: NULL")));
        }
        let potential = Output::new("potential", arrays.potential, m, 1)?;
        let field = Output::new("field", arrays.field, m, outputs.field.len())?;
        // SAFETY: the caller promises a structure of the size that it states.
        let wanted = unsafe { Wanted::new(arrays.result) }?;
        let sum = {
            // SAFETY: the caller promises arrays of these lengths.
            let sources = unsafe { memory::input("sources", arrays.sources, n, dimension) }?;
            // SAFETY: likewise.
            let strengths = unsafe { memory::input("strengths", arrays.strengths, n, columns) }?;
            let targets = match arrays.targets.is_null() {
                true => None,
                // SAFETY: likewise.
                false => Some(unsafe { memory::input("targets", arrays.targets, m, dimension) }?),
            };
            let split = split(strengths, columns);
            let borrowed: Vec<&[f64]> = match columns {
                1 => vec![strengths],
                _ => split.iter().map(Vec::as_slice).collect(),
            };
            let exclusions = &self.exclusions;
            let arrays = Arrays { dimension, sources, strengths: &borrowed, targets, exclusions };
            self.session.evaluate(&arrays, Cancel::default())?
        };
        let result = NbodyResult::from(&sum);
        // SAFETY: `m` rows each, checked above; the references to the caller's arrays have ended.
        unsafe {
            if let Some(potential) = potential {
                potential.write(&sum.potential);
            }
            if let Some(field) = field {
                field.write(&components(sum.field, outputs.field.len()));
            }
            wanted.write(&result);
        }
        Ok(())
    }
}

/// The columns of `[n][columns]` numbers; none of a single column, which is borrowed as it is.
fn split(strengths: &[f64], columns: usize) -> Vec<Vec<f64>> {
    if columns == 1 {
        return vec![];
    }
    (0..columns).map(|k| strengths.iter().skip(k).step_by(columns).copied().collect()).collect()
}

/// The arguments of a sum.
struct Raw {
    n: i64,
    sources: *const f64,
    strengths: *const f64,
    m: i64,
    targets: *const f64,
    potential: *mut f64,
    field: *mut f64,
    result: *mut NbodyResult,
}

/// Sums the interactions of n sources at m targets.
///
/// With r the distance of target and source, and no constants of nature:
///
///    kernel       sum                           strengths potential field
///    laplace      q / r                         [n]       [m]       [m][3], minus the gradient
///    yukawa:KAPPA q exp(-KAPPA r) / r           [n]       [m]       [m][3], minus the gradient
///    log          q log(r), in the plane        [n]       [m]       [m][2], minus the gradient
///    harmonic     q / (z_j - z), z = x + i y    [n][2]    none      [m][2], real and imaginary part
///    vortex       -(x - x_j) x w_j / (4 pi r^3) [n][3]    none      [m][3], the velocity
///    gauss:SIGMA  q exp(-r^2 / (2 SIGMA^2))     [n]       [m]       [m][d], minus the gradient
///
/// Sources, targets and strengths are read and not changed. Nobody may write to them during the
/// call. Results are written if the sum succeeds and are left alone otherwise. The same input gives
/// the same bits on any number of threads.
///
/// @param options options, or NULL for the defaults
/// @param n number of sources, 0 or more
/// @param sources positions [n][d] in any unit of length; d is 3, 2 with log and harmonic, or
///        options->dimension with gauss
/// @param strengths charges, masses or vorticities as in the table; [n][2] are the real and the
///        imaginary part
/// @param m number of targets, 0 or more
/// @param targets positions [m][d]; NULL sums at the sources, none of which acts on itself (but
///        with gauss it does), and m is then n
/// @param potential [m], or NULL if it is not wanted or the kernel has none
/// @param field [m][3], [m][2] or [m][d] as in the table, or NULL if it is not wanted
/// @param result what else is known of the sum, or NULL; set result->size before
/// @return NBODY_OK or an error, whose text nbody_last_error() returns
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn nbody_evaluate(
    options: *const NbodyOptions,
    n: i64,
    sources: *const f64,
    strengths: *const f64,
    m: i64,
    targets: *const f64,
    potential: *mut f64,
    field: *mut f64,
    result: *mut NbodyResult,
) -> c_int {
    answer(|| {
        let arrays = Raw { n, sources, strengths, m, targets, potential, field, result };
        // SAFETY: options and arrays as documented.
        unsafe { NbodySolver::new(options)?.run(arrays) }
    })
}

/// Makes a solver, which reads and keeps options and keeps a GPU open between sums.
///
/// Options, texts and exclusions are copied: the caller may change or free them afterwards.
///
/// @param solver the new solver, or NULL after an error; nbody_solver_free() frees it
/// @param options options, or NULL for the defaults
/// @return NBODY_OK or an error, whose text nbody_last_error() returns
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbody_solver_new(solver: *mut *mut NbodySolver, options: *const NbodyOptions) -> c_int {
    answer(|| {
        if solver.is_null() {
            return Err(request("solver is NULL; the address of a pointer is needed".into()));
        }
        // SAFETY: the caller's pointer.
        unsafe { solver.write(std::ptr::null_mut()) };
        // SAFETY: options as documented.
        let made = unsafe { NbodySolver::new(options) }?;
        // SAFETY: the caller's pointer.
        unsafe { solver.write(Box::into_raw(Box::new(made))) };
        Ok(())
    })
}

/// Sums with the options of a solver. Arguments, results and errors are those of nbody_evaluate().
///
/// Threads may share a solver: their sums run one after another.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn nbody_solver_run(
    solver: *const NbodySolver,
    n: i64,
    sources: *const f64,
    strengths: *const f64,
    m: i64,
    targets: *const f64,
    potential: *mut f64,
    field: *mut f64,
    result: *mut NbodyResult,
) -> c_int {
    answer(|| {
        // SAFETY: NULL, or a solver that was made and is not yet freed.
        let Some(solver) = (unsafe { solver.as_ref() }) else {
            return Err(request("solver is NULL; one of nbody_solver_new() is needed".into()));
        };
        let arrays = Raw { n, sources, strengths, m, targets, potential, field, result };
        // SAFETY: arrays as documented.
        unsafe { solver.run(arrays) }
    })
}

/// Frees a solver, which no thread may use any more. NULL is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nbody_solver_free(solver: *mut NbodySolver) {
    answer(|| {
        if !solver.is_null() {
            // SAFETY: made by nbody_solver_new(), and freed once.
            drop(unsafe { Box::from_raw(solver) });
        }
        Ok(())
    });
}
