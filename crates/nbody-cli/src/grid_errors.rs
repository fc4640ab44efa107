//! Errors of Ψ and u where they are known, as distributions over the cells.

use std::fmt::Write as _;

use fmm_core::grid::{CELLS, Grid, Rings, Solution, only};
use fmm_core::math::blocked_sums;
use rayon::prelude::*;
use serde_json::{Value, json};

/// The error of a field, relative to the exact one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Error {
    /// √(∫|e|²/∫|v|²) over the domain.
    pub rms: f64,
    /// The same over the cells with vorticity.
    pub within: f64,
    /// |e| of the cell that 99 % do not surpass, over the largest |v|.
    pub p99: f64,
    /// The largest |e| over the largest |v|.
    pub largest: f64,
}

/// The errors of both fields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Of Ψ.
    pub stream: Error,
    /// Of u; none where one component of ω was solved for alone, whose u is not known.
    pub velocity: Option<Error>,
}

impl Errors {
    /// Those of a solution on a grid whose vorticity is that of the rings, or one component of it.
    pub fn of(
        grid: &Grid,
        vorticity: &[[f64; 3]],
        solution: &Solution,
        (rings, component): (&Rings, Option<usize>),
    ) -> Self {
        let stream = |x| component.map_or(rings.stream(x), |k| only(k, rings.stream(x)));
        let of_velocity = || error(grid, vorticity, &solution.velocity, |x| rings.velocity(x));
        Errors {
            stream: error(grid, vorticity, &solution.psi, stream),
            velocity: component.is_none().then(of_velocity),
        }
    }

    fn named(&self) -> impl Iterator<Item = (&'static str, &Error)> {
        std::iter::once(("psi", &self.stream)).chain(self.velocity.iter().map(|e| ("u", e)))
    }

    /// For `run.json`.
    pub fn json(&self) -> Value {
        let one = |e: &Error| json!({ "rms": e.rms, "rms_within": e.within, "p99": e.p99, "largest": e.largest });
        json!({ "stream": one(&self.stream), "velocity": self.velocity.as_ref().map(one) })
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, e) in self.named() {
            let name = format!("error of {name}");
            let _ = writeln!(
                text,
                "  {name:<13} rms {:.3e}, {:.3e} where there is vorticity; 99 % {:.3e}, largest {:.3e}",
                e.rms, e.within, e.p99, e.largest
            );
        }
        text
    }
}

fn error(
    grid: &Grid,
    vorticity: &[[f64; 3]],
    found: &[[f64; 3]],
    exact: impl Fn([f64; 3]) -> [f64; 3] + Sync,
) -> Error {
    let square = |v: [f64; 3]| v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    let exact = |i: usize| exact(grid.center_of(i / CELLS, i % CELLS));
    let [wrong, all, wrong_within, all_within] = blocked_sums(found.len(), |i| {
        let v = exact(i);
        let volume = grid.spacing(grid.blocks()[i / CELLS].level).powi(3);
        let within = if vorticity[i] == [0.0; 3] { 0.0 } else { volume };
        let (e2, v2) = (square([0, 1, 2].map(|k| found[i][k] - v[k])), square(v));
        [volume * e2, volume * v2, within * e2, within * v2]
    });
    let each = |i: usize| {
        let v = exact(i);
        (square([0, 1, 2].map(|k| found[i][k] - v[k])).sqrt(), square(v).sqrt())
    };
    let (mut errors, mut sizes): (Vec<f64>, Vec<f64>) = (vec![], vec![]);
    (0..found.len()).into_par_iter().map(each).unzip_into_vecs(&mut errors, &mut sizes);
    let size = sizes.into_iter().fold(0.0, f64::max);
    let place = (errors.len() * 99 / 100).min(errors.len() - 1);
    let (_, &mut p99, above) = errors.select_nth_unstable_by(place, f64::total_cmp);
    let largest = above.iter().fold(p99, |m, e| m.max(*e));
    Error {
        rms: (wrong / all).sqrt(),
        within: (wrong_within / all_within).sqrt(),
        p99: p99 / size,
        largest: largest / size,
    }
}
