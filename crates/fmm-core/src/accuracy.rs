//! From a tolerance to method, order, opening angle and leaf size.

use crate::Error;
use crate::lists::Rule;
use crate::settings::{Choice, Family, Method, Precision, Settings, Softening};

/// rms relative force error of the FMM with the rule of 27 near cells, by order, on a Plummer sphere (the worst of
/// the gravitating sets).
const STENCIL: [f64; 20] = [
    2.0e-1, 4.6e-2, 1.3e-2, 4.1e-3, 1.4e-3, 4.9e-4, 1.7e-4, 4.8e-5, 1.8e-5, 6.5e-6, 2.9e-6, 1.3e-6, 5.3e-7, 2.2e-7,
    1.1e-7, 5.6e-8, 2.8e-8, 1.4e-8, 6.9e-9, 3.4e-9,
];

/// The same for the Cartesian expansions and their triangular truncation.
const STENCIL_CARTESIAN: [f64; 16] = [
    2.0e-1, 4.6e-2, 1.3e-2, 4.1e-3, 1.4e-3, 4.9e-4, 1.7e-4, 4.8e-5, 1.8e-5, 6.5e-6, 2.9e-6, 1.3e-6, 5.3e-7, 2.2e-7,
    1.1e-7, 5.6e-8,
];

/// What the choice depends on besides the settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Number of sources.
    pub sources: usize,
    /// Number of targets.
    pub targets: usize,
    /// Side of the cube around all.
    pub extent: f64,
}

/// Resolves everything that `settings` leaves open: a pure function of its arguments, never of a timing.
///
/// # Errors
/// [`Error::Unsupported`] where single precision cannot keep the tolerance.
pub fn choose(settings: &Settings, problem: Problem) -> Result<Choice, Error> {
    settings.check()?;
    let tolerance = settings.tolerance;
    let precision = match settings.precision {
        Precision::Auto if tolerance >= 2e-5 => Precision::F32,
        Precision::Auto => Precision::F64,
        Precision::F32 if tolerance < 1e-5 => {
            return Err(Error::Unsupported(format!(
                "tolerance {tolerance:e} needs precision f64: sums in f32 keep 1e-5 at best"
            )));
        }
        given => given,
    };
    let method = match settings.method {
        Method::Auto if (problem.sources as f64) * (problem.targets as f64) < 2e7 => Method::Direct,
        Method::Auto => Method::Fmm,
        given => given,
    };
    if method == Method::Direct {
        let leaf_size = settings.leaf_size.unwrap_or(256);
        return Ok(Choice { method, precision, expansion: None, order: None, theta: None, leaf_size });
    }
    let theta = settings.theta.unwrap_or(match method {
        Method::Treecode => 0.6,
        _ => 0.75f64.sqrt(),
    });
    let family = family(settings, problem);
    let table: &[f64] = match family {
        Family::Spherical => &STENCIL,
        Family::Cartesian => &STENCIL_CARTESIAN,
    };
    let order = settings.order.unwrap_or_else(|| {
        let p = table.iter().position(|&e| e <= tolerance).map_or(table.len(), |k| k + 1);
        // Another opening angle converges like θ^p.
        let ratio = 0.75f64.sqrt().ln() / theta.ln();
        ((p as f64 * ratio).ceil() as usize).clamp(1, Settings::MAX_ORDER)
    });
    let order = if family == Family::Cartesian { order.min(crate::expansion::MAX_CARTESIAN_ORDER) } else { order };
    let leaf_size = settings.leaf_size.unwrap_or(if precision == Precision::F32 { 96 } else { 24 + 6 * order });
    Ok(Choice { method, precision, expansion: Some(family), order: Some(order), theta: Some(theta), leaf_size })
}

/// Solid harmonics, unless cells would have to come closer than they may: a softened kernel that is not yet 1/r at
/// the distance of neighbouring bodies wants its own Taylor series.
fn family(settings: &Settings, problem: Problem) -> Family {
    let spacing = problem.extent / (problem.sources.max(1) as f64).cbrt();
    match settings.softening {
        Softening::Plummer(_) | Softening::P1(_)
            if newtonian_beyond(settings.softening, settings.tolerance) > 0.1 * spacing =>
        {
            Family::Cartesian
        }
        _ => Family::Spherical,
    }
}

/// The traversal's rule for a choice.
pub fn rule(settings: &Settings, choice: &Choice) -> Rule {
    let coefficients = choice.order.map_or(1, |p| (p + 1) * (p + 1));
    let separation2 = choice.theta.map_or(4.0, Rule::separation2_of);
    let any_distance = choice.expansion == Some(Family::Cartesian);
    Rule {
        separation2: if choice.method == Method::Fmm { separation2.max(4.0 * (1.0 - 1e-12)) } else { separation2 },
        min_distance: if any_distance { 0.0 } else { newtonian_beyond(settings.softening, settings.tolerance) },
        m2l_min_pairs: 2 * coefficients,
        m2p_min_bodies: 2 * coefficients,
        p2l_min_bodies: 2 * coefficients,
    }
}

/// The distance beyond which a softened force differs from q/r² by less than half the tolerance.
pub fn newtonian_beyond(softening: Softening, tolerance: f64) -> f64 {
    match softening {
        Softening::None => 0.0,
        // 1 − (1 + ε²/r²)^(−3/2) ≤ 3/2 ε²/r².
        Softening::Plummer(e) => e * (3.0 / tolerance).sqrt(),
        // 1 − (1 + 5/2 ε²/r²)(1 + ε²/r²)^(−5/2) ≤ 15/8 (ε/r)⁴.
        Softening::P1(e) => e * (3.75 / tolerance).powf(0.25),
        Softening::Spline(e) => 2.8 * e,
    }
}
