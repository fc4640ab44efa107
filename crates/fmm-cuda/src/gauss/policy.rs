//! What a sum of Gaussians costs on the device, and which precision its pairs have.

use fmm_core::gauss::cost::Costs;
use fmm_core::gauss::plan::CostModel;
use fmm_core::gauss::series::Shape;
use fmm_core::gauss::{Plan, Settings};
use fmm_core::{Error, Precision};

use super::view::HELD;

/// Nanoseconds of a fused multiply-add of double precision in a kernel, at half the rate of an H200; and of one in single precision.
const DOUBLE: f64 = 1.2e-4;
const SINGLE: f64 = 0.4e-4;

/// Nanoseconds in which the device's memory moves a number.
const MOVE: f64 = 3e-3;

/// Nanoseconds of the host for a row of boxes in a list, and for a box in a pass of M2L.
const ROW: f64 = 8.0;
const BOX: f64 = 60.0;

/// Costs of the operators on a device.
fn costs(single: bool, shape: Shape, terms: usize, gradient: bool) -> Costs {
    let (d, p, c) = (shape.dimension as f64, shape.order as f64, shape.columns as f64);
    let all = p.powi(shape.dimension as i32);
    let slopes = if gradient { 1.0 } else { 0.0 };
    let pair = match single {
        true => SINGLE * (9.0 + 3.0 * slopes),
        false => DOUBLE * (terms as f64 + 10.0 + 4.0 * slopes),
    };
    // P2M takes coefficients along the first axis by eights, and waits for shared memory as long as it multiplies.
    let gathered = 2.5 * DOUBLE * all / p * (p / HELD as f64).ceil() * HELD as f64;
    let point = 20.0 * MOVE + DOUBLE * d * p;
    let exponentials = DOUBLE * 30.0 * d;
    Costs {
        pair: c * pair,
        p2m: c * (point + gathered),
        p2l: c * (point + exponentials + gathered),
        l2p: c * (point + DOUBLE * all * (1.0 + slopes)),
        m2p: c * (point + exponentials + 2.0 * DOUBLE * all * (1.0 + slopes)),
        matrix: c * DOUBLE * all * p * 1.5,
        turn: BOX + c * 2.0 * MOVE * all,
        row: ROW,
    }
}

/// How sums are planned for the device.
pub fn cost_model(precision: Precision) -> CostModel<'static> {
    match precision {
        Precision::F32 => {
            CostModel { costs: &|shape, terms, gradient| costs(true, shape, terms, gradient), share: 0.88 }
        }
        _ => CostModel { costs: &|shape, terms, gradient| costs(false, shape, terms, gradient), share: 0.98 },
    }
}

/// The part of the tolerance that rounding in single precision may take.
const SINGLE_SHARE: f64 = 0.1;

/// The largest error of a pair in single precision, of the value and of σ times the gradient, where
/// points are at most `far` σ from the center of the targets' box along an axis. Coordinates are
/// off by 2⁻²⁴ of that, differences by twice as much in each of three axes, and no slope of the
/// Gaussian exceeds 0.61 (1 for its gradient); 32 terms are added up at a time, and a dozen
/// roundings do the rest.
fn single_error(far: f64, gradient: bool) -> f64 {
    let roundings = if gradient { 3.5 * far + 60.0 } else { 2.1 * far + 48.0 };
    roundings / f64::from(1 << 24)
}

/// Whether pairs keep the tolerance in single precision. The answer does not depend on the boxes.
fn allows_single(settings: &Settings) -> bool {
    single_error(0.0, settings.gradient) <= SINGLE_SHARE * settings.tolerance
        && settings.route != Some(fmm_core::gauss::Route::All)
}

/// The precisions that are tried for pairs, one after the other.
///
/// # Errors
/// [`Error::Unsupported`] where single precision is asked for and does not keep the tolerance.
pub fn tried(settings: &Settings, asked: Precision) -> Result<&'static [Precision], Error> {
    match asked {
        Precision::Mixed => {
            Err(Error::Unsupported("precision mixed is of sums in space; of Gaussians: auto, f32, f64".into()))
        }
        Precision::F64 => Ok(&[Precision::F64]),
        Precision::Auto if !allows_single(settings) => Ok(&[Precision::F64]),
        Precision::Auto => Ok(&[Precision::F32, Precision::F64]),
        Precision::F32 if allows_single(settings) => Ok(&[Precision::F32]),
        Precision::F32 => Err(refused(settings)),
    }
}

/// Single precision does not do.
pub fn refused(settings: &Settings) -> Error {
    Error::Unsupported(format!(
        "pairs in single precision do not keep the tolerance {:e}: ask for precision auto or f64, or for 1e-4 and more",
        settings.tolerance
    ))
}

/// Whether a plan keeps the tolerance with pairs of this precision.
pub fn keeps<const D: usize>(settings: &Settings, plan: &Plan<D>, precision: Precision) -> bool {
    let side = plan.geometry.lattice.side / settings.sigma;
    let far = plan.choice.cutoff / settings.sigma + 1.6 * side;
    precision != Precision::F32 || single_error(far, settings.gradient) <= SINGLE_SHARE * settings.tolerance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_precision_is_for_coarse_tolerances() {
        let settings = |tolerance| Settings { tolerance, gradient: true, ..Settings::new(1.0) };
        assert_eq!(tried(&settings(1e-3), Precision::Auto).unwrap().len(), 2);
        assert_eq!(tried(&settings(1e-6), Precision::Auto).unwrap(), [Precision::F64]);
        assert!(tried(&settings(1e-6), Precision::F32).is_err());
        assert!(tried(&settings(1e-3), Precision::F32).is_ok());
        // Ten sides of a box are not far, and a thousand are.
        assert!(single_error(10.0, true) < 1e-5 && single_error(1000.0, true) > 1e-4);
    }
}
