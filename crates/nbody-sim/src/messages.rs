//! Numbers and texts of messages.

use std::borrow::Cow;

/// Reals from here on have an exponent.
const LARGE: f64 = 1e15;
/// Reals below this have an exponent.
const SMALL: f64 = 1e-4;

/// A real number to the last bit: `0.25`, `1e-15`, `3.2e200`.
pub fn number(x: f64) -> String {
    if x == 0.0 || !x.is_finite() || (SMALL..LARGE).contains(&x.abs()) { format!("{x}") } else { format!("{x:e}") }
}

/// A real number with six digits: `0.866025`, `9.00000e11`.
pub fn rounded(x: f64) -> String {
    const DIGITS: i32 = 6;
    match x.abs().log10().floor() {
        e if (-4.0..f64::from(DIGITS)).contains(&e) => format!("{x:.*}", (DIGITS - 1 - e as i32) as usize),
        _ if x == 0.0 || !x.is_finite() => format!("{x}"),
        _ => format!("{x:.*e}", DIGITS as usize - 1),
    }
}

/// A real number to four significant digits: `0.866`, `12.5`, `3.2e-7`.
pub fn short(x: f64) -> String {
    digits(x, 4)
}

/// A real number to `n` significant digits, without zeros at its end.
pub fn digits(x: f64, n: usize) -> String {
    if x == 0.0 || !x.is_finite() {
        return number(x);
    }
    let text = format!("{:.*e}", n.max(1) - 1, x);
    let Some((mantissa, power)) = text.split_once('e') else { return text };
    let power: i32 = power.parse().unwrap_or(0);
    let trimmed =
        |t: &str| if t.contains('.') { t.trim_end_matches('0').trim_end_matches('.').into() } else { t.to_string() };
    if (-4..n.max(6) as i32).contains(&power) {
        let decimals = usize::try_from(n as i32 - 1 - power).unwrap_or(0);
        return trimmed(&format!("{x:.decimals$}"));
    }
    format!("{}e{power}", trimmed(mantissa))
}

/// The text of an error of a sum.
pub fn error(e: &fmm_core::Error) -> String {
    match e {
        fmm_core::Error::Range { what, value, range } => format!("{what} = {} is outside {range}", number(*value)),
        e => e.to_string(),
    }
}

/// `1 thread`, `2 threads`: so many of what a word names.
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A size in bytes, as `8.00 GiB`.
pub fn bytes(b: u64) -> String {
    const PREFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let (mut size, mut prefix) = (b as f64, None);
    for next in PREFIXES {
        if size < 1024.0 {
            break;
        }
        (size, prefix) = (size / 1024.0, Some(next));
    }
    prefix.map_or(format!("{size:.0} B"), |prefix| format!("{size:.2} {prefix}B"))
}

/// A text of a file as messages show it: a text that is too long to be read is truncated.
pub fn clipped(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}

/// The best match for a misspelt word.
pub fn nearest<'w>(word: &str, words: &[&'w str]) -> Option<&'w str> {
    let score = |w: &&str| strsim::normalized_damerau_levenshtein(word, w);
    words.iter().copied().max_by(|a, b| score(a).total_cmp(&score(b))).filter(|w| score(w) > 0.45)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_numbers_have_six_digits() {
        for (x, text) in [
            (0.0, "0"),
            (9e11, "9.00000e11"),
            (0.8660254037844386, "0.866025"),
            (-123456.7, "-123457"),
            (1234567.0, "1.23457e6"),
            (1e-4, "0.000100000"),
            (1e-5, "1.00000e-5"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(rounded(x), text);
        }
    }

    #[test]
    fn sizes_have_binary_prefixes() {
        for (size, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1_600_000, "1.53 MiB"),
            (8 << 30, "8.00 GiB"),
            (u64::MAX, "16.00 EiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
    }

    #[test]
    fn no_number_is_a_row_of_zeros() {
        for (x, text) in [
            (0.0, "0"),
            (-0.25, "-0.25"),
            (1e-4, "0.0001"),
            (9.9e-5, "9.9e-5"),
            (-1e-320, "-1e-320"),
            (123456789012345.0, "123456789012345"),
            (1e15, "1e15"),
            (1.5e300, "1.5e300"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(x), text);
        }
    }

    #[test]
    fn short_numbers_have_four_digits() {
        for (x, text) in [
            (0.0, "0"),
            (0.866_025_403_784_438_6, "0.866"),
            (-12.5, "-12.5"),
            (99_999.6, "100000"),
            (0.000_123_456, "0.0001235"),
            (3.2e-7, "3.2e-7"),
            (1e15, "1e15"),
            (9.999_9e-5, "0.0001"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(short(x), text);
        }
    }
}
