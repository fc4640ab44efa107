//! What is summed and how accurately, and the points that it is summed for.

use fmm_core::planar::Blob;
use fmm_core::{Boundary, Error as Refused, Method, Precision, Settings, Softening};

use crate::{Error, Kernel};

/// What is summed, and how.
#[derive(Debug, Clone)]
pub struct Problem {
    /// What is summed.
    pub kernel: Kernel,
    /// Tolerance, method, precision, softening, boundary.
    pub settings: Settings,
    /// The shape of sources in the plane.
    pub blob: Blob,
    /// Pairs of sources that do not interact (in a periodic box: their nearest images), as
    /// [`in_order`](crate::in_order) returns them. Only without targets, of [`Kernel::Laplace`] and
    /// [`Kernel::Yukawa`].
    pub exclusions: Vec<[usize; 2]>,
    /// The number of targets whose error is measured against direct sums in double precision; 0
    /// measures none. In space on the cores they are drawn by the estimated error of each target,
    /// elsewhere evenly. Exclusions are taken out afterwards.
    pub sample: usize,
    /// Whether second derivatives of the potential are wanted, too. The tolerance then bounds them as
    /// it does the field. Only of [`Kernel::Laplace`] and [`Kernel::Yukawa`]; in a periodic
    /// box on the cores.
    pub hessian: bool,
}

impl Problem {
    /// A sum of `kernel` with default settings: point sources in open space, relative error 1e-4.
    pub fn new(kernel: Kernel) -> Self {
        Problem {
            kernel,
            settings: Settings::default(),
            blob: Blob::Point,
            exclusions: vec![],
            sample: 0,
            hessian: false,
        }
    }

    /// Checks that the kernel has the softening, the boundary and the options that are asked for.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub fn check(&self) -> Result<(), Error> {
        self.check_softening()?;
        self.check_space()?;
        if !self.exclusions.is_empty() {
            self.check_exclusions()?;
        }
        if self.hessian {
            self.check_kernel("hessian", Kernel::is_radial)?;
        }
        if self.settings.errors {
            self.check_kernel("errors", Kernel::estimates_errors)?;
        }
        if matches!(self.kernel, Kernel::Gauss(_)) { self.check_gauss() } else { Ok(()) }
    }

    fn refuse(&self, parameter: &'static str, allowed: &str) -> Result<(), Error> {
        Err(Error::Request { parameter, why: format!("with kernel {} {allowed}", self.kernel.name()) })
    }

    fn check_softening(&self) -> Result<(), Error> {
        let (blob, softening) = (self.blob != Blob::Point, self.settings.softening);
        let allowed = match self.kernel {
            Kernel::Log | Kernel::Harmonic if softening != Softening::None => "allowed: none, algebraic:E, gaussian:E",
            Kernel::Laplace if blob => "allowed: none, plummer:E, spline:E, p1:E",
            Kernel::Laplace => return Ok(()),
            Kernel::Vortex if blob || !matches!(softening, Softening::None | Softening::P1(_)) => "allowed: none, p1:E",
            Kernel::Log | Kernel::Harmonic | Kernel::Vortex => return Ok(()),
            _ if blob || softening != Softening::None => "allowed: none",
            _ => return Ok(()),
        };
        self.refuse("softening", allowed)
    }

    fn check_space(&self) -> Result<(), Error> {
        match self.settings.boundary {
            Boundary::Periodic(_) => self.check_kernel("periodic", |kernel| kernel == Kernel::Laplace),
            Boundary::Open if self.settings.uniform.is_some() => self.check_kernel("depth", Kernel::is_radial),
            Boundary::Open => Ok(()),
        }
    }

    /// Checks that the kernel has exclusions.
    ///
    /// # Errors
    /// [`Error::Request`] for other kernels than [`Kernel::Laplace`] and [`Kernel::Yukawa`].
    pub fn check_exclusions(&self) -> Result<(), Error> {
        self.check_kernel("exclusions", Kernel::is_radial)
    }

    /// Refuses `parameter` unless the kernel is one of those that have it.
    fn check_kernel(&self, parameter: &'static str, has: fn(Kernel) -> bool) -> Result<(), Error> {
        if has(self.kernel) {
            return Ok(());
        }
        let names: Vec<&str> = Kernel::ALL.into_iter().filter(|kernel| has(*kernel)).map(Kernel::name).collect();
        let others = match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last} have", rest.join(", ")),
            _ => format!("{} has", names.concat()),
        };
        let why = format!("the kernel {} has none; only {others}", self.kernel.name());
        Err(Error::Request { parameter, why })
    }

    fn check_gauss(&self) -> Result<(), Error> {
        let s = &self.settings;
        if matches!(s.method, Method::Treecode | Method::Mesh) {
            return self.refuse("method", "allowed: auto, direct, fmm");
        }
        if s.precision == Precision::Mixed {
            return self.refuse("precision", "allowed: auto, f32, f64");
        }
        let given = [("order", s.order.is_some()), ("theta", s.theta.is_some()), ("leaf-size", s.leaf_size.is_some())];
        given.into_iter().find(|g| g.1).map_or(Ok(()), |(name, _)| self.refuse(name, "there is none"))
    }

    /// The settings of a sum in space: those asked for, with the radial function of the kernel.
    pub(crate) fn in_space(&self) -> Settings {
        Settings { softening: self.kernel.radial(self.settings.softening), ..self.settings.clone() }
    }
}

/// Borrowed positions and strengths.
#[derive(Debug, Clone, Copy)]
pub struct Points<'a> {
    /// Number of axes, 1 to 3; coordinates beyond are 0. Only [`Kernel::Gauss`] sums along fewer
    /// axes than its kernel has.
    pub dimension: usize,
    /// Positions of the sources. `[n]`
    pub sources: &'a [[f64; 3]],
    /// A column for each of [`Kernel::strengths`], and for the harmonic kernel perhaps one of
    /// imaginary parts. `[columns][n]`
    pub strengths: &'a [&'a [f64]],
    /// Positions of the targets; `None`: the sources, none of which sees itself. `[m]`
    pub targets: Option<&'a [[f64; 3]]>,
}

impl<'a> Points<'a> {
    /// Points in three dimensions that are sources and targets.
    pub fn in_space(sources: &'a [[f64; 3]], strengths: &'a [&'a [f64]]) -> Self {
        Points { dimension: 3, sources, strengths, targets: None }
    }

    /// The targets: those given, or the sources.
    pub fn at(&self) -> &'a [[f64; 3]] {
        self.targets.unwrap_or(self.sources)
    }

    /// Checks the number of columns and their lengths, and the pairs of `problem`.
    pub(crate) fn check(&self, problem: &Problem) -> Result<(), Error> {
        if !(1..=3).contains(&self.dimension) {
            let (what, value) = ("number of axes", self.dimension as f64);
            return Err(Refused::Range { what, value, range: "1 to 3" }.into());
        }
        let (given, needed) = (self.strengths.len(), problem.kernel.strengths().len());
        let imaginary = problem.kernel == Kernel::Harmonic && given == needed + 1;
        if given != needed && !imaginary {
            return Err(Refused::Shape { what: "columns of strengths", expected: needed, found: given }.into());
        }
        let n = self.sources.len();
        if let Some(column) = self.strengths.iter().find(|column| column.len() != n) {
            return Err(Refused::Shape { what: "strengths", expected: n, found: column.len() }.into());
        }
        if problem.exclusions.is_empty() {
            return Ok(());
        }
        let refuse = |why: String| Err(Error::Request { parameter: "exclusions", why });
        match problem.exclusions.iter().find(|[i, j]| i == j || *i.max(j) >= n) {
            _ if self.targets.is_some() => refuse("not available with targets".into()),
            Some([i, j]) => refuse(format!("the pair {i}, {j} is not one of two of the {n} sources")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::{PeriodicBox, Uniform};

    use super::*;

    #[test]
    fn parameters_that_do_not_go_together_are_named() {
        let with = |kernel, settings| Problem { settings, ..Problem::new(kernel) };
        let softened = Settings { softening: Softening::Plummer(0.1), ..Settings::default() };
        let periodic = Settings { boundary: Boundary::Periodic(PeriodicBox::cube(1.0)), ..Settings::default() };
        let ordered = Settings { order: Some(5), ..Settings::default() };
        let uniform = Some(Uniform { depth: 3, separation: 1 });
        let levels = Settings { uniform, ..Settings::default() };
        for (problem, text) in [
            (with(Kernel::Log, softened.clone()), "softening: with kernel log allowed: none, algebraic:E, gaussian:E"),
            (with(Kernel::Yukawa(1.0), softened.clone()), "softening: with kernel yukawa allowed: none"),
            (with(Kernel::Vortex, softened), "softening: with kernel vortex allowed: none, p1:E"),
            (with(Kernel::Yukawa(1.0), periodic), "periodic: the kernel yukawa has none; only laplace has"),
            (with(Kernel::Vortex, levels), "depth: the kernel vortex has none; only laplace and yukawa have"),
            (
                with(Kernel::Gauss(1.0), Settings { errors: true, ..Settings::default() }),
                "errors: the kernel gauss has none; only laplace, yukawa, log, harmonic and vortex have",
            ),
            (with(Kernel::Gauss(1.0), ordered), "order: with kernel gauss there is none"),
        ] {
            assert_eq!(problem.check().unwrap_err().to_string(), text);
        }
        assert_eq!(Problem::new(Kernel::Laplace).check(), Ok(()));
    }

    #[test]
    fn shapes_are_checked() {
        let problem = Problem::new(Kernel::Laplace);
        let sources = [[0.0; 3], [1.0; 3]];
        let text = |columns: &[&[f64]], problem: &Problem| {
            Points::in_space(&sources, columns).check(problem).map_err(|e| e.to_string())
        };
        assert_eq!(text(&[&[1.0, 2.0]], &problem), Ok(()));
        assert_eq!(text(&[&[1.0]], &problem).unwrap_err(), "1 strengths, but 2 are needed");
        assert_eq!(text(&[], &problem).unwrap_err(), "0 columns of strengths, but 1 are needed");
        let flat = Points { dimension: 0, ..Points::in_space(&sources, &[]) };
        assert_eq!(flat.check(&problem).unwrap_err().to_string(), "number of axes = 0 is outside 1 to 3");
        let excluded = Problem { exclusions: vec![[0, 2]], ..problem };
        assert_eq!(
            text(&[&[1.0, 2.0]], &excluded).unwrap_err(),
            "exclusions: the pair 0, 2 is not one of two of the 2 sources"
        );
    }
}
