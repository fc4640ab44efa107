//! Names of options, as a user writes them.

use fmm_core::planar::Blob;
use fmm_core::{Boundary, Method, PeriodicBox, Precision, Settings, Softening, Surroundings};

use crate::Error;

/// All methods.
pub const METHODS: [Method; 5] = [Method::Auto, Method::Direct, Method::Treecode, Method::Fmm, Method::Mesh];
/// All precisions.
pub const PRECISIONS: [Precision; 4] = [Precision::Auto, Precision::F32, Precision::Mixed, Precision::F64];

/// The shape of the sources: none, one of the softenings in space or one of the blobs in the plane,
/// each with its length.
///
/// # Errors
/// [`Error::Request`] for an unknown name; [`Error::Sum`] for a length out of range.
pub fn softening(text: &str) -> Result<(Softening, Blob), Error> {
    let refuse = |why: String| Err(Error::Request { parameter: "softening", why });
    let space = Softening::SOFTENED.into_iter().filter(|kernel| kernel.length() > 0.0);
    let plane = Blob::ALL.into_iter().filter(|blob| blob.length() > 0.0);
    let space = space.map(|softening| (softening.name(), (softening, Blob::Point)));
    let shapes: Vec<(&str, (Softening, Blob))> =
        space.chain(plane.map(|blob| (blob.name(), (Softening::None, blob)))).collect();
    let (kind, length) = match text.split_once(':') {
        None if text == "none" => return Ok((Softening::None, Blob::Point)),
        None if shapes.iter().any(|(name, _)| *name == text) => {
            return refuse(format!("its length is missing: {text}:E, for example {text}:0.01"));
        }
        None => (text, None),
        Some((kind, length)) => (kind, Some(length)),
    };
    let Some((_, (softening, blob))) = shapes.iter().find(|(name, _)| *name == kind) else {
        let names: Vec<String> = shapes.iter().map(|(name, _)| format!("{name}:E")).collect();
        let names = names.join(", ");
        return refuse(format!("allowed: none, {names}, with the length E, 0 or more; {kind:?} is none of these"));
    };
    let length = length.unwrap_or_default();
    let Ok(length) = length.parse::<f64>() else {
        return refuse(format!("the length {length:?} of {kind} is not a number; allowed: 0 or more"));
    };
    let (softening, blob) = (softening.with_length(length), blob.scaled(length));
    blob.check()?;
    Settings { softening, ..Settings::default() }.check()?;
    Ok((softening, blob))
}

/// The medium around all images of a periodic box: `tinfoil`, `vacuum` or a dielectric constant.
///
/// # Errors
/// [`Error::Request`] for an unknown name; [`Error::Sum`] for a constant out of range.
pub fn surroundings(text: &str) -> Result<Surroundings, Error> {
    let surroundings = match text {
        "tinfoil" => Surroundings::TinFoil,
        "vacuum" => Surroundings::Dielectric(1.0),
        _ => match text.parse() {
            Ok(medium) => Surroundings::Dielectric(medium),
            Err(_) => {
                let why = "allowed: tinfoil, vacuum, or a dielectric constant, 1 or more".into();
                return Err(Error::Request { parameter: "surroundings", why });
            }
        },
    };
    let boundary = Boundary::Periodic(PeriodicBox { side: [1.0; 3], surroundings });
    Settings { boundary, ..Settings::default() }.check()?;
    Ok(surroundings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softenings_have_a_name_and_a_length() {
        let space = |text| softening(text).map(|shape| shape.0);
        let plane = |text| softening(text).map(|shape| shape.1);
        assert_eq!(softening("none"), Ok((Softening::None, Blob::Point)));
        assert_eq!(space("plummer:0.1"), Ok(Softening::Plummer(0.1)));
        assert_eq!(space("spline:1e-3"), Ok(Softening::Spline(1e-3)));
        assert_eq!(space("p1:0"), Ok(Softening::P1(0.0)));
        assert_eq!(plane("algebraic:2"), Ok(Blob::Algebraic(2.0)));
        assert_eq!(plane("gaussian:0.5"), Ok(Blob::Gaussian(0.5)));
        let bad =
            ["plummer", "plummer:", "plummer:-1", "plummer:nan", "p2:1", "none:1", "", "spline:inf", "gaussian:-1"];
        for bad in bad.into_iter().chain(["algebraic", "algebraic:x", "gaussian:inf"]) {
            assert!(softening(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn surroundings_have_a_name_or_a_constant() {
        assert_eq!(surroundings("tinfoil"), Ok(Surroundings::TinFoil));
        assert_eq!(surroundings("vacuum"), surroundings("1"));
        assert_eq!(surroundings("78.5"), Ok(Surroundings::Dielectric(78.5)));
        for bad in ["", "air", "0.5", "-1", "nan", "inf"] {
            assert!(surroundings(bad).is_err(), "{bad}");
        }
    }
}
