//! Codes and texts that functions answer with.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use fmm::ErrorKind;
use fmm::bindings::Failure;

/// The call did what was asked.
pub const NBODY_OK: c_int = 0;
/// An argument or option is wrong, or does not go together with the others.
pub const NBODY_ERROR_REQUEST: c_int = 1;
/// The numbers in the arrays: values that are not finite, points that are too close, results
/// beyond the range of numbers.
pub const NBODY_ERROR_DATA: c_int = 2;
/// The method and precision that were asked for do not reach the tolerance.
pub const NBODY_ERROR_TOLERANCE: c_int = 3;
/// The device is not available, too small, or failed.
pub const NBODY_ERROR_DEVICE: c_int = 4;
/// An error of the library, or the system refuses threads.
pub const NBODY_ERROR_INTERNAL: c_int = 5;

/// A code that is not [`NBODY_OK`], and its text.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: c_int,
    text: String,
}

/// The refusal of an argument.
pub(crate) fn request(text: String) -> Refusal {
    Refusal { code: NBODY_ERROR_REQUEST, text }
}

/// An error of the library or of the system.
pub(crate) fn internal(text: String) -> Refusal {
    Refusal { code: NBODY_ERROR_INTERNAL, text }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let (code, text) = match failure {
            Failure::Sum(ErrorKind::Request, text) => (NBODY_ERROR_REQUEST, text),
            Failure::Sum(ErrorKind::Data, text) => (NBODY_ERROR_DATA, text),
            Failure::Sum(ErrorKind::Tolerance, text) => (NBODY_ERROR_TOLERANCE, text),
            Failure::Sum(ErrorKind::Device, text) => (NBODY_ERROR_DEVICE, text),
            Failure::Threads(text) => (NBODY_ERROR_INTERNAL, text),
            Failure::Panic(text) => {
                (NBODY_ERROR_INTERNAL, format!("internal error of nbody, please report it: {text}"))
            }
        };
        Refusal { code, text }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Does the work of a function. Returns its code, and keeps the text of a refusal.
pub(crate) fn answer(work: impl FnOnce() -> Result<(), Refusal>) -> c_int {
    let panicked = |_| Err(internal("internal error of nbody, please report it".into()));
    let Err(refusal) = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked) else { return NBODY_OK };
    let text = CString::new(refusal.text.replace('\0', " ")).unwrap_or_default();
    // Without the thread's storage, at the end of the thread, the code alone is returned.
    let _ = LAST.try_with(|last| last.replace(text));
    refusal.code
}

/// Returns the text of the last call of this thread that failed, or "" if none has.
///
/// The text names the argument and what is allowed. It is valid until another call of this thread
/// fails. It is UTF-8, and never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn nbody_last_error() -> *const c_char {
    // The CString itself does not move: only a failure of this thread replaces it.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last() -> String {
        // SAFETY: the text is a C string that no call replaces meanwhile.
        unsafe { CStr::from_ptr(nbody_last_error()) }.to_str().unwrap().to_string()
    }

    #[test]
    fn panics_have_a_code_and_a_text() {
        assert_eq!(last(), "");
        let failure = || fmm::bindings::guarded(None, 1.0, |_| -> () { panic!("asked for") });
        assert_eq!(answer(|| Ok(failure()?)), NBODY_ERROR_INTERNAL);
        assert_eq!(last(), "internal error of nbody, please report it: asked for");
        assert_eq!(answer(|| panic!("elsewhere")), NBODY_ERROR_INTERNAL);
        assert_eq!(last(), "internal error of nbody, please report it");
        assert_eq!(answer(|| Ok(())), NBODY_OK);
        assert_eq!(answer(|| Err(request("a\0b".into()))), NBODY_ERROR_REQUEST);
        assert_eq!(last(), "a b");
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
    }
}
