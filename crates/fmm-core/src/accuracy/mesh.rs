//! Sums with a mesh over a periodic box: when, and with which order and cut-off.

use super::{Problem, limits};
use crate::Error;
use crate::boundary::PeriodicBox;
use crate::guard::TRUSTED;
use crate::kernel::Softening;
use crate::mesh::Recipe;
use crate::mesh::recipe::{Load, Rates};
use crate::settings::{Choice, Method, Precision, Settings};

/// The fewest points of a window that the guard trusts with `target_error`, if any do.
fn points_for(cell: &PeriodicBox, problem: Problem, target_error: f64) -> Option<usize> {
    Recipe::points_for(TRUSTED * problem.table_error(target_error, true) / excess(cell))
}

/// The part of the squared error of potentials in a cube that its longest waves have, and how large
/// that error is next to those of the tables. Measured: 0.3 to 1, and 0.8.
const OF_LONG_WAVES: f64 = 0.6;
const OF_POTENTIALS: f64 = 0.8;

/// By how much an error of the tables has to be less in a box than in a cube.
///
/// The window gives the longest waves a part of the noise of all, and the potential has a wave k as
/// 1/k²: the squared error of potentials goes with Σ k⁻⁴, which the longest waves along the longest
/// side make. In a box of 10 : 1 : 1 two of them have 0.97 of it (docs/performance.md), and
/// potentials err four to eight times as much as in a cube; fields do not. The sum over few waves
/// scatters: two standard deviations are added.
fn excess(cell: &PeriodicBox) -> f64 {
    // The sides one by one: their product may be no number.
    let mean = cell.side.iter().map(|s| s.cbrt()).product::<f64>();
    let [own, squares] = long_waves(cell.side.map(|s| s / mean));
    let [in_cube, _] = long_waves([1.0; 3]);
    let scatter = 1.0 + 2.0 * (2.0 * squares).sqrt() / own;
    let grown = scatter * own / in_cube;
    (OF_POTENTIALS * (1.0 - OF_LONG_WAVES + OF_LONG_WAVES * grown).sqrt()).max(1.0)
}

/// Waves along a side beyond this one add nothing that matters.
const MOST_WAVES: f64 = 64.0;

/// Σ (k/2π)⁻⁴ and Σ (k/2π)⁻⁸ over waves of a box of volume 1 that are no shorter along any axis than
/// one half.
fn long_waves(side: [f64; 3]) -> [f64; 2] {
    let most = side.map(|s| (2.0 * s).round().min(MOST_WAVES) as i64);
    let squared = |n: i64, d: usize| (n as f64 / side[d]).powi(2);
    let mut sums = [0.0; 2];
    for i in -most[0]..=most[0] {
        for j in -most[1]..=most[1] {
            for k in -most[2]..=most[2] {
                if [i, j, k] != [0; 3] {
                    let term = (squared(i, 0) + squared(j, 1) + squared(k, 2)).powi(-2);
                    sums = [sums[0] + term, sums[1] + term * term];
                }
            }
        }
    }
    sums
}

/// The choice of a mesh for an error of about `target_error`; `precision` is what expansions would have.
///
/// # Errors
/// [`Error::Unsupported`] where there is none, and with an opening angle; [`Error::Range`] for the order.
pub(super) fn choose(
    settings: &Settings,
    problem: Problem,
    precision: Precision,
    target_error: f64,
) -> Result<Choice, Error> {
    let Some((cell, rates)) = settings.boundary.periodic().zip(problem.mesh) else {
        let why = "method mesh sums potentials and fields of periodic boxes; method auto or fmm";
        return Err(Error::Unsupported(why.into()));
    };
    if settings.theta.is_some() {
        return Err(Error::Unsupported("a mesh has no opening angle; its order is the points of its window".into()));
    }
    if let Some(order) = settings.order.filter(|p| !Recipe::ORDERS.contains(p)) {
        return Err(Error::Range { what: "order", value: order as f64, range: "3 to 16 with method mesh" });
    }
    let precision = limits::mesh_precision(settings, problem, precision);
    let most = *Recipe::ORDERS.end();
    let order = settings.order.or_else(|| points_for(cell, problem, target_error)).unwrap_or(most);
    let (load, recipe) = (load(cell, settings.softening, problem, precision, rates), Recipe::of(order));
    let leaf_size = settings.leaf_size.unwrap_or_else(|| load.neighbours(recipe));
    let points = load.points(recipe, leaf_size);
    if points > MOST_POINTS.max(POINTS * (problem.sources + problem.targets) as f64) {
        return Err(Error::Unsupported(format!(
            "the mesh of this box would have {points:.1e} points; method direct or auto, or a larger leaf_size, the \
             number of bodies within the cut-off"
        )));
    }
    Ok(Choice { method: Method::Mesh, precision, expansion: None, order: Some(order), theta: None, leaf_size })
}

/// The choice of a mesh where it keeps `target_error` and takes less than `time`, in nanoseconds by the rates of the place.
pub fn cheaper_mesh(
    settings: &Settings,
    problem: Problem,
    precision: Precision,
    target_error: f64,
    time: f64,
) -> Option<Choice> {
    let cell = settings.boundary.periodic()?;
    let rates = problem.mesh.filter(|_| points_for(cell, problem, target_error).is_some())?;
    let choice = choose(settings, problem, precision, target_error).ok()?;
    let (load, recipe) = (load(cell, settings.softening, problem, choice.precision, rates), Recipe::of(choice.order?));
    let fits =
        load.points(recipe, choice.leaf_size) <= FEW_POINTS + POINTS * (problem.sources + problem.targets) as f64;
    (fits && load.cost(recipe, choice.leaf_size) < time).then_some(choice)
}

/// A mesh that is chosen has at most so many points, and so many more for each body: in thin boxes it has the points of
/// a window across, however thin they are.
const FEW_POINTS: f64 = 1e6;
const POINTS: f64 = 150.0;

/// The most points of any mesh: its functions take 4 GB in double precision.
const MOST_POINTS: f64 = 1.3e8;

/// How many times more bodies a body of a problem sees around it than if they filled the box evenly.
pub fn crowding_in(cell: &PeriodicBox, problem: &Problem) -> f64 {
    // That of a problem is of the cube around the box.
    (problem.crowding * cell.volume() / cell.longest().powi(3)).max(1.0)
}

fn load(cell: &PeriodicBox, softening: Softening, problem: Problem, precision: Precision, rates: Rates) -> Load {
    let Problem { sources, targets, .. } = problem;
    let reach = softening.newtonian_beyond(0.0);
    let crowding = crowding_in(cell, &problem);
    Load { side: cell.side, sources, targets, crowding, reach, precision, rates }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::{Kind, choose};
    use crate::boundary::Boundary;

    /// The choice for ions in a cube of this many, whose fields have this strength.
    fn chosen(sources: usize, tolerance: f64, method: Method, field: Option<f64>) -> Choice {
        let boundary = Boundary::Periodic(PeriodicBox::cube(1.0));
        let (kind, mesh) = (Kind::Cancelling, Some(Rates::CORES));
        let problem = Problem {
            sources,
            targets: sources,
            kind,
            crowding: 1.0,
            dense_leaf: 0.1,
            side: 1.0,
            strength_range: 1.0,
            mesh,
            field,
        };
        choose(&Settings { method, tolerance, boundary, ..Settings::default() }, problem).unwrap()
    }

    #[test]
    fn even_boxes_take_a_mesh() {
        for sources in [20_000, 100_000, 1_000_000] {
            for tolerance in [1e-3, 1e-4, 1e-6, 1e-8] {
                let choice = chosen(sources, tolerance, Method::Auto, Some(1.0));
                assert_eq!(choice.method, Method::Mesh, "{sources} {tolerance:e}");
            }
        }
    }

    #[test]
    fn long_boxes_ask_for_more_points() {
        let of = |sides: [f64; 3]| excess(&PeriodicBox { side: sides, ..PeriodicBox::cube(1.0) });
        // Whatever the axis and the size.
        let long = of([10.0, 1.0, 1.0]);
        assert!((of([2.0, 20.0, 2.0]) / long - 1.0).abs() < 1e-12 && (8.0..11.0).contains(&long), "{long}");
        assert!([of([1.0; 3]), of([3.0; 3]), of([1e60; 3]), of([1e-60; 3])] == [1.0; 4] && of([2.0, 1.0, 1.0]) < 1.35);
        let flat = of([10.0, 10.0, 1.0]);
        assert!((1.2..long).contains(&flat), "{flat}");
        // As soon as any other, which a sum over all waves would not be.
        let extreme = [of([1e30, 1.0, 1.0]), of([1e30, 1e30, 1.0])];
        assert!(extreme.iter().all(|e| *e > 1e3 && e.is_finite()), "{extreme:?}");
    }

    #[test]
    fn weak_fields_ask_for_more_points_and_strong_ones_for_fewer() {
        for method in [Method::Mesh, Method::Fmm] {
            let order = |field| chosen(100_000, 1e-5, method, field).order.unwrap();
            assert!(order(Some(0.1)) > order(Some(1.0)) && order(Some(1.0)) > order(Some(20.0)), "{method:?}");
        }
        // Without a look: the mesh's table is of ions, that of the FMM of random charges.
        assert_eq!(chosen(100_000, 1e-5, Method::Mesh, None), chosen(100_000, 1e-5, Method::Mesh, Some(1.0 / 0.7)));
    }

    #[test]
    fn fields_are_measured_in_those_of_ions() {
        // A spacing of 2 and strengths of 3: the unit is 3/4.
        let (volume, strengths) = (8.0 * 2.0, [3.0, -3.0]);
        let of = |fields: &[[f64; 3]], largest: &[f64]| Problem::field_of(fields, largest, volume, &strengths);
        let near = |field: f64, expected: f64| assert!((field / expected - 1.0).abs() < 1e-12, "{field} {expected}");
        near(of(&[[0.0, 1.5, 0.0]; 2], &[0.0; 2]), 2.0 / 1.2);
        // The weak ones make the relative error.
        let e = [1.5, 0.15].map(|e| [e, 0.0, 0.0]);
        near(of(&e, &[0.0; 2]), (2.0 / (1.0 / 4.0 + 1.0 / 0.04f64)).sqrt() / 0.69);
        // A field that vanishes counts as a thousandth of its largest term.
        near(of(&[[0.0; 3]; 2], &[750.0; 2]), 1.0 / 1.2);
        // Without strengths there is nothing to measure, and the tables are taken as they are.
        assert!(Problem::field_of(&[[0.0; 3]], &[0.0], 1.0, &[0.0]).is_nan());
        assert_eq!(chosen(100_000, 1e-5, Method::Mesh, Some(f64::NAN)), chosen(100_000, 1e-5, Method::Mesh, None));
    }
}
