//! What the user may ask of a summation, and what was chosen.

use crate::Error;
use crate::boundary::Boundary;
use crate::kernel::Softening;

/// How the sum is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Chosen by cost.
    #[default]
    Auto,
    /// Every pair.
    Direct,
    /// Multipoles evaluated at particles, O(N log N).
    Treecode,
    /// Fast multipole method, O(N).
    Fmm,
    /// Ewald's sum with a mesh, O(N log N), in periodic boxes.
    Mesh,
}

impl Method {
    /// The name used in scenarios and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::Direct => "direct",
            Method::Treecode => "treecode",
            Method::Fmm => "fmm",
            Method::Mesh => "mesh",
        }
    }
}

/// The arithmetic of the force. The state of a run is always `f64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// The cheapest that the tolerance allows.
    #[default]
    Auto,
    /// Single.
    F32,
    /// Expansions in double, whose M2L a GPU rounds to 22 bits where they are of 1/r in open space; pairs of bodies in single,
    /// which are added up in double. Direct sums of all pairs are then in double, too.
    Mixed,
    /// Double.
    F64,
}

impl Precision {
    /// The name used in scenarios and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Precision::Auto => "auto",
            Precision::F32 => "f32",
            Precision::Mixed => "mixed",
            Precision::F64 => "f64",
        }
    }

    /// The spacing of numbers next to 1; of double precision where it is open.
    pub const fn epsilon(self) -> f64 {
        match self {
            Precision::F32 | Precision::Mixed => f32::EPSILON as f64,
            Precision::Auto | Precision::F64 => f64::EPSILON,
        }
    }
}

/// A summation as asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Softening of 1/r.
    pub softening: Softening,
    /// Where space ends.
    pub boundary: Boundary,
    /// How.
    pub method: Method,
    /// Relative force error, rms; see `accuracy`.
    pub tolerance: f64,
    /// Arithmetic of the force.
    pub precision: Precision,
    /// Expansion order p (degrees 0..=p), or of a mesh the points of its window along an axis, instead of the
    /// one that the tolerance implies.
    pub order: Option<usize>,
    /// Opening angle, instead of the one that the tolerance implies.
    pub theta: Option<f64>,
    /// Largest number of bodies in a leaf, or with a mesh the average number within the cut-off, instead of the
    /// tuned one.
    pub leaf_size: Option<usize>,
    /// A tree of one depth everywhere, instead of one that follows the bodies; the method is then the FMM.
    pub uniform: Option<Uniform>,
    /// Estimate the error of the field of each target, where the order is given as well.
    pub errors: bool,
}

/// A tree all of whose leaves are on one level, with the textbook's lists of neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uniform {
    /// The level of the leaves; the root has level 0.
    pub depth: usize,
    /// Cells are near whose offsets are at most this along every axis: 1 or 2.
    pub separation: usize,
}

impl Uniform {
    /// The deepest level.
    pub const DEEPEST: usize = 10;
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            softening: Softening::None,
            boundary: Boundary::Open,
            method: Method::Auto,
            tolerance: 1e-4,
            precision: Precision::Auto,
            order: None,
            theta: None,
            leaf_size: None,
            uniform: None,
            errors: false,
        }
    }
}

impl Settings {
    /// The largest expansion order.
    pub const MAX_ORDER: usize = 30;

    /// The tightest tolerance.
    pub const TIGHTEST: f64 = 1e-14;

    /// The tolerance, where it is to be measured whether it is kept: an order that is given is taken as it is.
    pub fn guarded(&self) -> Option<f64> {
        self.order.is_none().then_some(self.tolerance)
    }

    /// What is given of `order`, `theta` and `leaf_size` for direct sums, which have no use for them.
    pub fn unused(&self) -> Vec<&'static str> {
        let given =
            [("order", self.order.is_some()), ("theta", self.theta.is_some()), ("leaf_size", self.leaf_size.is_some())];
        let unused = given.into_iter().filter(|(_, given)| *given && self.method == Method::Direct);
        unused.map(|(name, _)| name).collect()
    }

    /// Whether the errors of targets are estimated: for the guard, or since they are asked for.
    pub fn estimates_errors(&self) -> bool {
        self.guarded().is_some() || self.errors
    }

    /// The same with a softening of length zero taken for none.
    pub fn simplified(mut self) -> Self {
        self.softening = self.softening.simplified();
        self
    }

    /// Checks every number against its range.
    ///
    /// # Errors
    /// [`Error::Range`] for the first value outside its range.
    pub fn check(&self) -> Result<(), Error> {
        let range =
            |what, value: f64, ok: bool, range| if ok { Ok(()) } else { Err(Error::Range { what, value, range }) };
        range("tolerance", self.tolerance, (Self::TIGHTEST..=0.1).contains(&self.tolerance), "1e-14 to 0.1")?;
        if let Some(p) = self.order {
            range("order", p as f64, (1..=Self::MAX_ORDER).contains(&p), "1 to 30")?;
        }
        if let Some(t) = self.theta {
            range("theta", t, (0.2..=1.0).contains(&t), "0.2 to 1")?;
        }
        if let Some(s) = self.leaf_size {
            range("leaf_size", s as f64, (1..=1_000_000).contains(&s), "1 to 1000000")?;
        }
        if let Some(Uniform { depth, separation }) = self.uniform {
            range("depth", depth as f64, depth <= Uniform::DEEPEST, "0 to 10")?;
            range("separation", separation as f64, (1..=2).contains(&separation), "1 or 2")?;
            if !matches!(self.method, Method::Auto | Method::Fmm) || self.theta.is_some() || self.leaf_size.is_some() {
                let why = "a depth goes with method fmm, and leaves no opening angle or leaf size to be chosen";
                return Err(Error::Unsupported(why.into()));
            }
        }
        self.softening.check()?;
        self.boundary.periodic().map_or(Ok(()), |cell| cell.check(self.softening))
    }
}

/// The family of expansions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Solid harmonics: 1/r only.
    Spherical,
    /// Taylor series: softened kernels at any distance.
    Cartesian,
}

impl Family {
    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Spherical => "spherical",
            Family::Cartesian => "cartesian",
        }
    }
}

/// What a plan chose, after `Auto` and the tolerance were resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Never [`Method::Auto`].
    pub method: Method,
    /// Never [`Precision::Auto`].
    pub precision: Precision,
    /// Family of expansions; `None` for the direct sum and a mesh, and in the plane, where there is but one.
    pub expansion: Option<Family>,
    /// Expansion order p, or of a mesh the points of its window along an axis; `None` for the direct sum.
    pub order: Option<usize>,
    /// Opening angle; `None` for the direct sum and a mesh.
    pub theta: Option<f64>,
    /// Largest number of bodies in a leaf, or with a mesh the average number within the cut-off.
    pub leaf_size: usize,
}

impl Choice {
    /// Whether the sum has no error but rounding in double precision, and needs no measurement.
    pub fn is_exact(&self) -> bool {
        self.order.is_none() && self.precision == Precision::F64
    }
}
