//! `nbody_fmm._library`: the sums of [`fmm`] on NumPy arrays, and the simulations of [`nbody_sim`].
//!
//! The package `nbody_fmm` (python/nbody_fmm) converts what users give into contiguous arrays and
//! documents everything; this module checks shapes, releases the GIL and sums. It uses NumPy's
//! allocator and the system's, none of its own.
#![deny(missing_docs, unsafe_code)]

mod guard;
mod options;
mod refusals;
mod simulation;
mod sum;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[pymodule(name = "_library")]
fn library(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ToleranceError", py.get_type::<refusals::ToleranceError>())?;
    module.add("DeviceError", py.get_type::<refusals::DeviceError>())?;
    let forms = |wanted| PyTuple::new(py, fmm::Kernel::forms(wanted));
    module.add("RADIAL", forms(fmm::Kernel::is_radial)?)?;
    module.add("IN_SPACE", forms(fmm::Kernel::is_in_space)?)?;
    module.add_class::<sum::Sum>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_function(wrap_pyfunction!(guard::before_fork, module)?)?;
    module.add_function(wrap_pyfunction!(guard::after_fork_in_parent, module)?)?;
    module.add_function(wrap_pyfunction!(guard::after_fork_in_child, module)?)?;
    module.add_function(wrap_pyfunction!(guard::panic, module)?)
}
