//! Sums with a mesh over a periodic box: when, and with which order and cut-off.

use super::Problem;
use crate::Error;
use crate::boundary::PeriodicBox;
use crate::kernel::Softening;
use crate::mesh::Recipe;
use crate::mesh::recipe::Load;
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
    let Some(cell) = settings.boundary.periodic().filter(|_| problem.mesh) else {
        let why = "method mesh sums potentials and fields of periodic boxes, on the cores; method auto or fmm";
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
    let (pairs, mesh) = (precision != Precision::F64, precision == Precision::F32);
    let fewest = || load(cell, settings.softening, problem).neighbours(Recipe::of(order), pairs, mesh);
    let leaf_size = settings.leaf_size.unwrap_or_else(fewest);
    Ok(Choice { method: Method::Mesh, precision, expansion: None, order: Some(order), theta: None, leaf_size })
}

/// The choice of a mesh where it keeps `target_error` and takes less than `time`, in nanoseconds of one thread.
pub(super) fn cheaper(
    settings: &Settings,
    problem: Problem,
    precision: Precision,
    target_error: f64,
    time: f64,
) -> Option<Choice> {
    let serves = problem.mesh && Recipe::points_for(target_error).is_some();
    let choice = serves.then(|| choose(settings, problem, precision, target_error).ok())??;
    (cost(settings, problem, &choice) < time).then_some(choice)
}

/// Nanoseconds of one thread.
fn cost(settings: &Settings, problem: Problem, choice: &Choice) -> f64 {
    let (Some(cell), Some(order)) = (settings.boundary.periodic(), choice.order) else { return f64::INFINITY };
    let (pairs, mesh) = (choice.precision != Precision::F64, choice.precision == Precision::F32);
    load(cell, settings.softening, problem).cost(Recipe::of(order), choice.leaf_size, pairs, mesh)
}

fn load(cell: &PeriodicBox, softening: Softening, problem: Problem) -> Load {
    let Problem { sources, targets, crowding, .. } = problem;
    let reach = softening.newtonian_beyond(0.0);
    // It is of the cube around the box.
    let crowding = (crowding * cell.volume() / cell.longest().powi(3)).max(1.0);
    Load { volume: cell.volume(), sources, targets, crowding, reach }
}
