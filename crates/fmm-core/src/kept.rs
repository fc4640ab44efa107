//! What a run keeps of the choice of a sum for the next one: where the tables misled it, and where a mesh need not be measured at every sum.

use crate::{Choice, Method, Precision, Settings};

/// A choice that held in the last sum of a run where that of the tables did not, or a mesh that held clearly. The next sum
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
    /// Of the last sum that was measured.
    pub mesh: Option<Mesh>,
}

/// A mesh that held clearly when it was measured. It errs alike everywhere, by amounts that depend on the strengths and the box, not
/// on where the bodies are: in a run the tolerance, which is relative, changes as slowly as the mean square of the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mesh {
    /// Points of the window along an axis.
    pub order: usize,
    /// Neighbours, the same as [`Choice::leaf_size`].
    pub neighbours: usize,
    /// F32, Mixed or F64.
    pub precision: Precision,
    /// Sums to come that are not measured.
    pub left: u32,
}

impl Mesh {
    /// How many sums of a run follow a measured one without being measured.
    pub const UNMEASURED: u32 = 15;

    /// The part of the tolerance up to which an error lets them: [`TRUSTED`](crate::guard::TRUSTED) is 0.8.
    const CLEARLY: f64 = 0.7;

    /// The mesh of a choice, if its error, as a part of the tolerance, is small enough.
    pub fn measured(choice: &Choice, error: f64) -> Option<Self> {
        let order = choice.order.filter(|_| choice.method == Method::Mesh && error <= Self::CLEARLY)?;
        Some(Mesh { order, neighbours: choice.leaf_size, precision: choice.precision, left: Self::UNMEASURED })
    }
}

impl Kept {
    /// How many sums keep a choice before the tables are read again: so many the first time, twice as
    /// many each time that the tables miss again, and at most so many. Particles move on, and what
    /// misled the tables may be over. The measured error cannot say so: direct sums are not measured,
    /// and sums in double precision do not show the error of single precision.
    pub const PATIENCE: [u32; 2] = [4, 64];

    /// `settings` for a sum with a mesh that need not be measured, nor its bodies surveyed, and what is kept after it.
    pub fn unmeasured(self, settings: &Settings) -> Option<(Settings, Self)> {
        let mesh = self.mesh.filter(|mesh| mesh.left > 0 && settings.guarded().is_some())?;
        let (order, leaf_size) = (Some(mesh.order), Some(mesh.neighbours));
        let asked = Settings { method: Method::Mesh, order, leaf_size, precision: mesh.precision, ..settings.clone() };
        Some((asked, Kept { mesh: Some(Mesh { left: mesh.left - 1, ..mesh }), ..self }))
    }

    /// `settings` with what they leave open as it was.
    pub fn fill(&self, settings: &Settings) -> Settings {
        if self.direct {
            return directly(settings);
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
        assert_eq!(direct, Settings { method: Method::Direct, precision: Precision::F64, ..open });
    }

    #[test]
    fn a_mesh_that_held_clearly_is_taken_as_it_is_until_none_is_left() {
        let choice = Choice {
            method: Method::Mesh,
            order: Some(7),
            leaf_size: 64,
            precision: Precision::F32,
            theta: None,
            expansion: None,
        };
        assert_eq!(Mesh::measured(&choice, 0.71), None);
        assert_eq!(Mesh::measured(&Choice { method: Method::Fmm, ..choice.clone() }, 0.1), None);
        let mesh = Mesh::measured(&choice, 0.7).expect("it holds clearly");
        let (target_error, precision, leaf_size) = (1e-4, Precision::Auto, None);
        let kept = Kept { direct: false, target_error, precision, leaf_size, sums: 0, patience: 4, mesh: Some(mesh) };
        let open = Settings::default();
        let (asked, next) = kept.unmeasured(&open).expect("some are left");
        assert_eq!((asked.method, asked.order, asked.leaf_size), (Method::Mesh, Some(7), Some(64)));
        assert_eq!((asked.precision, asked.guarded()), (Precision::F32, None));
        assert_eq!(next, Kept { mesh: Some(Mesh { left: mesh.left - 1, ..mesh }), ..kept });
        assert_eq!(Kept { mesh: Some(Mesh { left: 0, ..mesh }), ..kept }.unmeasured(&open), None);
        assert_eq!(kept.unmeasured(&asked), None, "an order that is given is never measured");
    }
}
