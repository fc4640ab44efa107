//! What is known of a sum besides its numbers.

use std::ffi::{CStr, c_char};
use std::ptr;

use fmm::Evaluation;
use fmm_core::{Method, Precision};

use crate::answer::Refusal;
use crate::memory::{self, Sized8};

/// What is known of a sum besides potential and field. Set `size` before the call.
///
/// Later versions add members at the end; `size` says which of them a program knows.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NbodyResult {
    /// sizeof(nbody_result) of the program, set by the program.
    pub size: usize,
    /// Wall time of the sum in seconds.
    pub seconds: f64,
    /// Wall time of the direct sums that errors were measured with, in seconds; 0 without `check`.
    pub check_seconds: f64,
    /// Pairs at distance 0 that contributed nothing. A source's own pair does not count.
    pub coincident_pairs: i64,
    /// "direct", "treecode", "fmm" or "mesh". The text lives as long as the program.
    pub method: *const c_char,
    /// "f32", "mixed" or "f64". The text lives as long as the program.
    pub precision: *const c_char,
    /// Order of the expansions; 0 in direct sums.
    pub order: i64,
    /// Opening angle; 0 in direct sums and with gauss.
    pub theta: f64,
    /// Largest number of particles in a leaf.
    pub leaf_size: i64,
    /// Number of the GPU that summed, or -1 for the cores.
    pub gpu: i64,
    /// Targets that were compared with the direct sum; 0 without `check`, and the members below too.
    pub sample: i64,
    /// Root mean square of the relative errors of the field (gauss: of the potential, relative to the sum
    /// of |strengths|, here and below).
    pub rms: f64,
    /// Half of the targets have at most this relative error.
    pub median: f64,
    /// 99 % of the targets have at most this relative error.
    pub p99: f64,
    /// The largest relative error.
    pub max: f64,
    /// Norm of all errors over the norm of all fields.
    pub l2: f64,
    /// Relative error of the potential in periodic boxes, L2; 0 elsewhere.
    pub potential: f64,
    /// Targets whose field nearly vanishes: their error is relative to the largest contribution.
    pub floored: i64,
    /// Lower end of the interval that holds `rms` of all targets with a probability of about 95 %; equal
    /// to `rms` where all targets were compared.
    pub rms_low: f64,
    /// Upper end of that interval.
    pub rms_high: f64,
    /// Lower end of the interval of `l2`, likewise.
    pub l2_low: f64,
    /// Upper end of that interval.
    pub l2_high: f64,
}

// SAFETY: numbers and pointers of 8 bytes each, the first of them the size; any bytes are valid.
unsafe impl Sized8 for NbodyResult {
    const NAME: &'static str = "nbody_result";
}

const _: () = assert!(size_of::<NbodyResult>() == 22 * 8);

impl From<&Evaluation> for NbodyResult {
    fn from(sum: &Evaluation) -> Self {
        let choice = &sum.choice;
        let number = |n: usize| n as i64;
        let errors = sum.errors;
        let error = |of: fn(&fmm::Errors) -> f64| errors.as_ref().map_or(0.0, of);
        NbodyResult {
            size: size_of::<NbodyResult>(),
            seconds: sum.seconds.sum,
            check_seconds: sum.seconds.errors,
            coincident_pairs: sum.coincident_pairs as i64,
            method: method(choice.method).as_ptr(),
            precision: precision(choice.precision).as_ptr(),
            order: choice.order.map_or(0, number),
            theta: choice.theta.unwrap_or(0.0),
            leaf_size: number(choice.leaf_size),
            gpu: sum.device.gpu().map_or(-1, i64::from),
            sample: errors.map_or(0, |e| number(e.sample)),
            rms: error(|e| e.rms),
            median: error(|e| e.median),
            p99: error(|e| e.p99),
            max: error(|e| e.max),
            l2: error(|e| e.l2),
            potential: error(|e| e.potential.unwrap_or(0.0)),
            floored: errors.map_or(0, |e| number(e.floored)),
            rms_low: error(|e| e.rms_interval[0]),
            rms_high: error(|e| e.rms_interval[1]),
            l2_low: error(|e| e.l2_interval[0]),
            l2_high: error(|e| e.l2_interval[1]),
        }
    }
}

fn method(method: Method) -> &'static CStr {
    match method {
        Method::Auto => c"auto",
        Method::Direct => c"direct",
        Method::Treecode => c"treecode",
        Method::Fmm => c"fmm",
        Method::Mesh => c"mesh",
    }
}

fn precision(precision: Precision) -> &'static CStr {
    match precision {
        Precision::Auto => c"auto",
        Precision::F32 => c"f32",
        Precision::Mixed => c"mixed",
        Precision::F64 => c"f64",
    }
}

/// A structure of the caller that is written after the sum; NULL if it is not wanted.
pub(crate) struct Wanted {
    address: *mut NbodyResult,
    size: usize,
}

impl Wanted {
    /// Checks the size that the structure states.
    ///
    /// # Safety
    /// NULL or a structure of the size that it states.
    pub unsafe fn new(address: *mut NbodyResult) -> Result<Self, Refusal> {
        let size = match ptr::NonNull::new(address) {
            None => 0,
            // SAFETY: as promised.
            Some(given) => unsafe { memory::stated_size(given.as_ptr().cast_const()) }?,
        };
        Ok(Wanted { address, size })
    }

    /// Writes it.
    ///
    /// # Safety
    /// The structure is still there.
    pub unsafe fn write(self, sum: &NbodyResult) {
        if !self.address.is_null() {
            // SAFETY: its size was checked.
            unsafe { memory::write(self.address, self.size, sum) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_library() {
        for value in fmm::names::METHODS {
            assert_eq!(method(value).to_str(), Ok(value.name()));
        }
        for value in fmm::names::PRECISIONS {
            assert_eq!(precision(value).to_str(), Ok(value.name()));
        }
    }
}
