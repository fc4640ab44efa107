//! Values of options that several commands have.

use fmm_core::Settings;
use nbody_sim::messages;

/// The value, if the library's own check allows the settings with it.
///
/// # Errors
/// What it answers otherwise, for a person.
pub fn allowed<T>(value: T, settings: Settings) -> Result<T, String> {
    settings.check().map(|()| value).map_err(|e| messages::error(&e))
}

/// A number.
///
/// # Errors
/// That it is none.
pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "not a number of this kind".to_string())
}

/// A relative error that may be asked for.
///
/// # Errors
/// The allowed range.
pub fn tolerance(text: &str) -> Result<f64, String> {
    let tolerance = number(text)?;
    allowed(tolerance, Settings { tolerance, ..Settings::default() })
}

/// A whole number, also as 1e4, 10k or 10M.
///
/// # Errors
/// That it is none.
pub fn whole(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(rest) => (rest, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |rest| (rest, 1e6)),
    };
    let value: f64 = number(digits)?;
    let value = value * unit;
    if value.fract() == 0.0 && (0.0..9e15).contains(&value) {
        Ok(value as usize)
    } else {
        Err("not a whole number".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        assert_eq!(["12", "1e4", "10k", "2M"].map(|t| whole(t).unwrap()), [12, 10_000, 10_000, 2_000_000]);
        for bad in ["1.5", "-1", "1e99", "nan", "ten", ""] {
            assert!(whole(bad).is_err(), "{bad}");
        }
    }
}
