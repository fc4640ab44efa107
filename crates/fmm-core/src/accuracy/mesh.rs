//! Sums with a mesh over a periodic box: when, and with which order and cut-off.

use super::Problem;
use crate::Error;
use crate::boundary::PeriodicBox;
use crate::kernel::Softening;
use crate::mesh::Recipe;
use crate::mesh::recipe::{Load, Rates};
use crate::settings::{Choice, Method, Precision, Settings};

/// The choice of a mesh for an error of about `target_error`.
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
    let most = *Recipe::ORDERS.end();
    let order = settings.order.unwrap_or_else(|| Recipe::points_for(target_error).unwrap_or(most));
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
    let rates = problem.mesh.filter(|_| Recipe::points_for(target_error).is_some())?;
    let choice = choose(settings, problem, precision, target_error).ok()?;
    let cell = settings.boundary.periodic()?;
    let (load, recipe) = (load(cell, settings.softening, problem, precision, rates), Recipe::of(choice.order?));
    let fits =
        load.points(recipe, choice.leaf_size) <= FEW_POINTS + POINTS * (problem.sources + problem.targets) as f64;
    (fits && load.cost(recipe, choice.leaf_size) < time).then_some(choice)
}

/// A mesh that is chosen has at most so many points, and so many more for each body: in thin boxes it has the points of
/// a window across, however thin they are.
const FEW_POINTS: f64 = 1e6;
const POINTS: f64 = 100.0;

/// The most points of any mesh: its functions take 4 GB in double precision.
const MOST_POINTS: f64 = 1.3e8;

fn load(cell: &PeriodicBox, softening: Softening, problem: Problem, precision: Precision, rates: Rates) -> Load {
    let Problem { sources, targets, crowding, .. } = problem;
    let reach = softening.newtonian_beyond(0.0);
    // It is of the cube around the box.
    let crowding = (crowding * cell.volume() / cell.longest().powi(3)).max(1.0);
    Load { side: cell.side, sources, targets, crowding, reach, precision, rates }
}
