//! What a run keeps of the choice of a sum for the next one: where the tables misled it, and of sums with a mesh.

use crate::guard::FLOOR;
use crate::mesh::Recipe;
use crate::{Method, Precision, Settings};

/// A choice that held in the last sum of a run where that of the tables did not, or that has a mesh. The next sum
/// begins with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kept {
    /// Whether no expansion kept the tolerance, so that the direct sum was taken.
    pub direct: bool,
    /// The error at which the tables were read.
    pub target_error: f64,
    /// Of the sum, where the settings leave it open.
    pub precision: Precision,
    /// The same for the largest number of bodies in a leaf.
    pub leaf_size: Option<usize>,
    /// Sums that have kept it since the tables were read.
    pub sums: u32,
    /// After how many of them the tables are read again.
    pub patience: u32,
    /// Of a sum with a mesh.
    pub mesh: Option<KeptMesh>,
}

/// A mesh of a run, whose error is not measured at every sum. Over few steps it hardly changes, and is the same at all
/// targets: what changes is the field that it is compared with, which every sum has at hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptMesh {
    /// Points of its window along an axis.
    pub order: usize,
    /// The larger of rms and L2, when it was last measured.
    pub error: f64,
    /// What the sums had then.
    pub weights: Weights,
}

/// How much errors of one size at all targets count in norms of relative errors: the roots of the means of 1/|e|², and
/// the inverse rms of the field e, both times the first of [the fields of ions](crate::accuracy::field_of_ions); and
/// the inverse rms of the potential.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights(pub [f64; 3]);

/// The weight of relative errors from which on a guard's sums are sharper, and the most by which they are.
const WEAK: f64 = 2.0;
const WEAKEST: f64 = 1e6;

impl Weights {
    /// The least |e|² that counts, as errors are judged: some thousandth of a largest term, squared.
    pub fn least_square(field_of_ions: f64) -> f64 {
        FLOOR * field_of_ions * field_of_ions
    }

    /// From the sums over so many targets of 1/|e|², |e|² and the square of the potential, which is 0 where it is not
    /// known.
    pub fn of([inverses, squares, potentials]: [f64; 3], targets: usize, field_of_ions: f64) -> Self {
        let n = targets as f64;
        let potential = if potentials > 0.0 { (n / potentials).sqrt() } else { 0.0 };
        Weights([field_of_ions * (inverses / n).sqrt(), field_of_ions * (n / squares).sqrt(), potential])
    }

    /// By how many times the error of a guard's sums is to be smaller than among ions, whose potential is about this:
    /// where fields or potentials are weak, errors that are relative to them have to be known better.
    pub fn sharper(&self, potential_of_ions: f64) -> f64 {
        let [relative, _, potential] = self.0;
        let weight = relative.max(potential * potential_of_ions);
        if weight > WEAK { weight.min(WEAKEST) } else { 1.0 }
    }

    /// The rms of the field.
    pub fn rms(&self, field_of_ions: f64) -> f64 {
        field_of_ions / self.0[1]
    }
}

impl KeptMesh {
    /// Every how many sums the error is measured.
    pub const EVERY: u32 = 16;

    /// The error of sums with these weights: that of the table at least. In crystals errors depend on where the ions
    /// lie between the points of the mesh, and may be far less for a while. What is no number is none that is known.
    pub fn error_with(&self, now: Weights) -> f64 {
        let growth = |(now, then): (&f64, &f64)| if *now == 0.0 { 0.0 } else { self.error * now / then };
        let of_table = now.0[..2].iter().map(|w| w * Recipe::error(self.order));
        let errors = now.0.iter().zip(&self.weights.0).map(growth).chain(of_table);
        // A maximum that keeps what is no number.
        errors.fold(0.0, |m, e| if e > m || e.is_nan() { e } else { m })
    }
}

impl Kept {
    /// How many sums keep a choice before the tables are read again: so many the first time, twice as
    /// many each time that the tables miss again, and at most so many. Particles move on, and what
    /// misled the tables may be over. The measured error cannot say so: direct sums are not measured,
    /// and sums in double precision do not show the error of single precision.
    pub const PATIENCE: [u32; 2] = [4, 64];

    /// The mesh, if the next sum need not be measured.
    pub fn known_mesh(&self) -> Option<KeptMesh> {
        self.mesh.filter(|_| !(self.sums + 1).is_multiple_of(KeptMesh::EVERY))
    }

    /// `settings` with what they leave open as it was.
    pub fn fill(&self, settings: &Settings) -> Settings {
        if self.direct {
            return directly(settings);
        }
        if let Some(mesh) = self.mesh {
            let Kept { precision, leaf_size, .. } = *self;
            return Settings {
                method: Method::Mesh,
                order: Some(mesh.order),
                precision,
                leaf_size,
                ..settings.clone()
            };
        }
        let precision = if settings.precision == Precision::Auto { self.precision } else { settings.precision };
        let leaf_size = settings.leaf_size.or(self.leaf_size).filter(|_| settings.uniform.is_none());
        Settings { precision, leaf_size, ..settings.clone() }
    }
}

/// `settings` for the direct sum that is taken where no expansion keeps the tolerance.
pub fn directly(settings: &Settings) -> Settings {
    Settings { method: Method::Direct, precision: Precision::F64, uniform: None, ..settings.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_given_win_over_what_was_kept() {
        let (precision, leaf_size) = (Precision::F32, Some(77));
        let kept = Kept { direct: false, target_error: 1e-7, precision, leaf_size, sums: 0, patience: 4, mesh: None };
        let open = Settings { method: Method::Fmm, ..Settings::default() };
        let filled = kept.fill(&open);
        assert_eq!(filled, Settings { precision, leaf_size, ..open.clone() });
        let given = Settings { precision: Precision::F64, leaf_size: Some(33), ..open.clone() };
        assert_eq!(kept.fill(&given), given);
        let direct = Kept { direct: true, ..kept }.fill(&open);
        assert_eq!(direct, Settings { method: Method::Direct, precision: Precision::F64, ..open.clone() });
        let mesh = Some(KeptMesh { order: 7, error: 1e-5, weights: Weights([1.0; 3]) });
        let meshed = Kept { mesh, ..kept }.fill(&open);
        assert_eq!(meshed, Settings { method: Method::Mesh, order: Some(7), precision, leaf_size, ..open });
    }

    #[test]
    fn errors_of_a_mesh_grow_as_fields_fall() {
        let of = |fields: &[f64]| {
            let sum = |of: &dyn Fn(f64) -> f64| fields.iter().map(|&e| of(e)).sum::<f64>();
            Weights::of([sum(&|e| 1.0 / (e * e)), sum(&|e| e * e), sum(&|e| 4.0 * e * e)], fields.len(), 1e-3)
        };
        let mesh = KeptMesh { order: 7, error: 1e-5, weights: of(&[1.0, 2.0]) };
        let near =
            |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-12, "{found:e} {expected:e}");
        near(mesh.error_with(of(&[1.0, 2.0])), 1e-5);
        near(mesh.error_with(of(&[0.5, 1.0])), 2e-5);
        // One weak field counts in the rms of relative errors.
        near(mesh.error_with(of(&[0.1, 2.0])), 1e-5 * ((100.0 + 0.25) / 1.25f64).sqrt());
        // A potential that is not known says nothing; a field of zero leaves nothing known.
        near(mesh.error_with(Weights([mesh.weights.0[0], mesh.weights.0[1], 0.0])), 1e-5);
        assert_eq!(mesh.error_with(of(&[0.0, 2.0])), f64::INFINITY);
        assert!(KeptMesh { weights: of(&[0.0, 2.0]), ..mesh }.error_with(of(&[0.0, 2.0])).is_nan());
        // An error that was found to be small is not taken for it.
        let lucky = KeptMesh { error: 1e-9, ..mesh };
        near(lucky.error_with(of(&[1e-3, 1e-3])), Recipe::error(7));
    }
}
