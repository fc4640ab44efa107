//! Options by name as a problem of the library.

use fmm_core::{Boundary, Method, PeriodicBox, Precision, Settings};

use super::Threads;
use crate::{Device, Error, Problem, names};

/// Options of a sum as a caller in another language writes them.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Name of the kernel, with its parameter: `laplace`, `yukawa:2`.
    pub kernel: &'a str,
    /// `none`, or a shape with its length.
    pub softening: &'a str,
    /// Sides of a periodic box; `None` is open space.
    pub sides: Option<[f64; 3]>,
    /// What all images of the box are embedded in: `tinfoil`, `vacuum` or a dielectric constant.
    pub surroundings: &'a str,
    /// Relative error.
    pub tolerance: f64,
    /// `auto`, `direct`, `treecode` or `fmm`.
    pub method: &'a str,
    /// `auto`, `f32` or `f64`.
    pub precision: &'a str,
    /// Order of the expansions; `None` follows from the tolerance.
    pub order: Option<usize>,
    /// Opening angle; `None` follows from the tolerance.
    pub theta: Option<f64>,
    /// Largest number of particles in a leaf; `None` is the tuned one.
    pub leaf_size: Option<usize>,
    /// `auto`, `cpu`, `cuda` or `cuda:N`.
    pub device: &'a str,
    /// Worker threads; `None` is all cores.
    pub threads: Option<usize>,
    /// Number of targets whose error is measured.
    pub check: usize,
    /// Whether second derivatives of the potential are wanted.
    pub hessian: bool,
    /// Whether the error of each target is estimated.
    pub errors: bool,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Request {
            kernel: "laplace",
            softening: "none",
            sides: None,
            surroundings: "tinfoil",
            tolerance: Settings::default().tolerance,
            method: "auto",
            precision: "auto",
            order: None,
            theta: None,
            leaf_size: None,
            device: "auto",
            threads: None,
            check: 0,
            hessian: false,
            errors: false,
        }
    }
}

/// What is summed, where, and on how many threads.
#[derive(Debug, Clone)]
pub struct Options {
    /// Without exclusions.
    pub problem: Problem,
    /// The device.
    pub device: Device,
    /// Worker threads; `None` is all cores.
    pub threads: Option<usize>,
}

impl Request<'_> {
    /// The options that these names stand for.
    ///
    /// # Errors
    /// An unknown name, a value out of range, or parameters that do not go together.
    pub fn options(&self) -> Result<Options, Error> {
        let kernel = self.kernel.parse().map_err(|why| refused("kernel", why))?;
        let (softening, blob) = names::softening(self.softening)?;
        let surroundings = names::surroundings(self.surroundings)?;
        if self.sides.is_none() && self.surroundings != "tinfoil" {
            return Err(refused("surroundings", "only with a box".into()));
        }
        let boundary = self.sides.map_or(Boundary::Open, |side| Boundary::Periodic(PeriodicBox { side, surroundings }));
        if let Some(threads) = self.threads.filter(|n| !(1..=Threads::MOST).contains(n)) {
            return Err(refused("threads", format!("{threads} is outside 1 to {}", Threads::MOST)));
        }
        let settings = Settings {
            softening,
            boundary,
            method: named("method", self.method, names::METHODS, Method::name)?,
            tolerance: self.tolerance,
            precision: named("precision", self.precision, names::PRECISIONS, Precision::name)?,
            order: self.order,
            theta: self.theta,
            leaf_size: self.leaf_size,
            uniform: None,
            errors: self.errors,
        };
        // Orders and angles have limits that depend on the kernel: the sum checks them.
        Settings { order: None, theta: None, ..settings.clone() }.check()?;
        let problem = Problem { blob, settings, sample: self.check, hessian: self.hessian, ..Problem::new(kernel) };
        problem.check()?;
        let device = self.device.parse().map_err(|why| refused("device", why))?;
        Ok(Options { problem, device, threads: self.threads })
    }
}

fn refused(parameter: &'static str, why: String) -> Error {
    Error::Request { parameter, why }
}

/// The one of `values` that is called `text`.
fn named<T: Copy, const N: usize>(
    parameter: &'static str,
    text: &str,
    values: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, Error> {
    values.into_iter().find(|&value| name(value) == text).ok_or_else(|| {
        let allowed = values.map(name).join(", ");
        refused(parameter, format!("{text:?} is unknown; allowed: {allowed}"))
    })
}
