//! What a run keeps of the choice of a sum for the next one, where the tables misled it.

use crate::{Method, Precision, Settings};

/// A choice that held in the last sum of a run where that of the tables did not. The next sum begins
/// with it.
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
}

impl Kept {
    /// How many sums keep a choice before the tables are read again: so many the first time, twice as
    /// many each time that the tables miss again, and at most so many. Particles move on, and what
    /// misled the tables may be over. The measured error cannot say so: direct sums are not measured,
    /// and sums in double precision do not show the error of single precision.
    pub const PATIENCE: [u32; 2] = [4, 64];

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
        let kept = Kept { direct: false, target_error: 1e-7, precision, leaf_size, sums: 0, patience: 4 };
        let open = Settings { method: Method::Fmm, ..Settings::default() };
        let filled = kept.fill(&open);
        assert_eq!(filled, Settings { precision, leaf_size, ..open.clone() });
        let given = Settings { precision: Precision::F64, leaf_size: Some(33), ..open.clone() };
        assert_eq!(kept.fill(&given), given);
        let direct = Kept { direct: true, ..kept }.fill(&open);
        assert_eq!(direct, Settings { method: Method::Direct, precision: Precision::F64, ..open });
    }
}
