//! Rings that the cells of a grid cannot hold, and the energy of flows that keep it: results that make no sense.
//!
//! None of it is certain to be a mistake, so the exit code stays 0 unless `--strict` asks for 1.

use fmm_core::grid::{CELLS, Grid, Rings, Vorticity};
use rayon::prelude::*;

use crate::console;
use crate::messages::{number, short};
use crate::scenario::grid::{GridScenario, Origin, Resolution};

/// A core is this many of the smallest cells wide, at least.
const THINNEST: f64 = 1.5;
/// A Gaussian core reaches this many times its size: beyond, there is 2 % of its vorticity.
const REACH: f64 = 2.0;
/// The vorticity that a grid holds of a ring may be off by this part.
const HELD: f64 = 0.05;
/// The energy of a flow that keeps it may be off by this part.
const ENERGY: f64 = 0.05;

/// A ring, as both models have it.
struct Circle {
    center: [f64; 3],
    axis: [f64; 3],
    radius: f64,
    /// The size of a Gaussian that falls off as the core does.
    size: f64,
    /// Distance from the circle within which its vorticity is.
    reach: f64,
}

impl Circle {
    fn of(origin: &Origin) -> Option<(Circle, Box<dyn Vorticity>)> {
        match origin {
            Origin::Ring(r) => {
                let (center, axis, radius, size) = (r.center, r.axis, r.radius, r.core / r.steepness.sqrt());
                Some((Circle { center, axis, radius, size, reach: r.core }, Box::new(Rings(vec![*r]))))
            }
            Origin::Gaussian(r) => {
                let (center, axis, radius, size) = (r.center, r.axis, r.radius, r.core);
                Some((Circle { center, axis, radius, size, reach: REACH * r.core }, Box::new(*r)))
            }
            Origin::File(..) => None,
        }
    }

    /// Where it begins and ends along an axis of space.
    fn ends(&self, d: usize) -> [f64; 2] {
        let half = self.radius * (1.0 - self.axis[d] * self.axis[d]).max(0.0).sqrt() + self.reach;
        [self.center[d] - half, self.center[d] + half]
    }

    /// The distance from its axis.
    fn axis_distance(&self, x: [f64; 3]) -> f64 {
        let from: [f64; 3] = std::array::from_fn(|k| x[k] - self.center[k]);
        let along: f64 = (0..3).map(|k| from[k] * self.axis[k]).sum();
        size(std::array::from_fn(|k| from[k] - along * self.axis[k]))
    }

    /// The distance from its circle.
    fn circle_distance(&self, x: [f64; 3]) -> f64 {
        let along: f64 = (0..3).map(|k| (x[k] - self.center[k]) * self.axis[k]).sum();
        (self.axis_distance(x) - self.radius).hypot(along)
    }

    /// ∫ |ω| over the half plane that begins at its axis: of a Gaussian ring the circulation.
    fn strength(&self, vorticity: &dyn Vorticity) -> f64 {
        const POINTS: u32 = 200;
        // A unit vector across the axis.
        let least = (0..3).min_by(|a, b| self.axis[*a].abs().total_cmp(&self.axis[*b].abs())).unwrap_or(0);
        let across: [f64; 3] =
            std::array::from_fn(|k| f64::from(u8::from(k == least)) - self.axis[least] * self.axis[k]);
        let length = across.iter().map(|a| a * a).sum::<f64>().sqrt();
        let half = 2.0 * self.reach;
        let step = 2.0 * half / f64::from(POINTS);
        let at = |i: u32| (f64::from(i) + 0.5) * step - half;
        let of_row = |i: u32| -> f64 {
            let r = self.radius + at(i);
            let place = |z: f64| std::array::from_fn(|k| self.center[k] + r * across[k] / length + z * self.axis[k]);
            (0..POINTS).filter(|_| r > 0.0).map(|j| size(vorticity.cell(place(at(j)), step))).sum()
        };
        (0..POINTS).map(of_row).sum::<f64>() * step * step
    }

    /// The same of the cells of a grid, as a mean over all half planes.
    fn held(&self, vorticity: &dyn Vorticity, grid: &Grid) -> f64 {
        let of_block = |b: usize| -> f64 {
            let h = grid.spacing(grid.blocks()[b].level);
            let [first, last] = [0, CELLS - 1].map(|c| grid.center_of(b, c));
            let middle = std::array::from_fn(|k| 0.5 * (first[k] + last[k]));
            let across = size(std::array::from_fn(|k| last[k] - first[k]));
            if self.circle_distance(middle) > 3.0 * self.reach + 0.5 * across {
                return 0.0;
            }
            let of_cell = |c: usize| {
                let x = grid.center_of(b, c);
                let r = self.axis_distance(x);
                if r > 0.0 { size(vorticity.cell(x, h)) / r } else { 0.0 }
            };
            (0..CELLS).map(of_cell).sum::<f64>() * h.powi(3)
        };
        let blocks: Vec<f64> = (0..grid.blocks().len()).into_par_iter().map(of_block).collect();
        blocks.iter().sum::<f64>() / (2.0 * std::f64::consts::PI)
    }
}

fn size(w: [f64; 3]) -> f64 {
    w.iter().map(|w| w * w).sum::<f64>().sqrt()
}

/// The part of the vorticity of each ring that the cells of a grid hold; 1 for what is no ring.
pub fn held(scenario: &GridScenario, grid: &Grid) -> Vec<f64> {
    let of_part = |origin: &Origin| {
        let Some((circle, vorticity)) = Circle::of(origin) else { return 1.0 };
        let strength = circle.strength(&*vorticity);
        if strength > 0.0 { circle.held(&*vorticity, grid) / strength } else { 1.0 }
    };
    scenario.vorticity.iter().map(of_part).collect()
}

/// What is wrong with the rings of a scenario on its grid, which [holds](held) so much of each.
pub fn of_rings(scenario: &GridScenario, held: &[f64]) -> Vec<String> {
    let finest = scenario.resolution.spacing(scenario.side);
    let adapts = matches!(scenario.resolution, Resolution::Adapted(..));
    let cells = if adapts { "grid.finest" } else { "grid.n" };
    let of_part = |(i, (origin, held)): (usize, (&Origin, &f64))| {
        let (circle, _) = Circle::of(origin)?;
        let holds = format!("the grid holds {} % of its vorticity", short((1000.0 * held).round() / 10.0));
        let outside = |d: &usize| {
            let [low, high] = circle.ends(*d);
            low < scenario.corner[*d] || high > scenario.corner[*d] + scenario.side
        };
        if let Some(d) = (0..3).find(outside) {
            let [[low, high], corner] = [circle.ends(d), [scenario.corner[d], scenario.corner[d] + scenario.side]];
            let axis = ["x", "y", "z"][d];
            let ([low, high], [from, to]) = ([low, high].map(short), corner.map(short));
            return Some(format!(
                "vorticity.{i} reaches from {axis} = {low} to {high}, and the domain from {from} to {to}: {holds}; move it by its \
                 center, or the domain by grid.corner and grid.side"
            ));
        }
        if circle.size < THINNEST * finest {
            let what = match origin {
                Origin::Ring(_) => format!("vorticity.{i}: core/sqrt(steepness) = {}", short(circle.size)),
                _ => format!("vorticity.{i}.core = {}", number(circle.size)),
            };
            return Some(format!(
                "{what} is less than {THINNEST} of the smallest cells, which are {} wide: {holds}, and too few cells see its core; \
                 allowed: {} or more, or a larger {cells}",
                short(finest),
                short(THINNEST * finest)
            ));
        }
        ((held - 1.0).abs() > HELD).then(|| {
            let out = if adapts { "a smaller grid.refinement, or a larger grid.coarsest," } else { "a larger grid.n" };
            format!("vorticity.{i}: {holds}; {out} has cells that see it")
        })
    };
    scenario.vorticity.iter().zip(held).enumerate().filter_map(of_part).collect()
}

/// The same, reported on standard error.
pub fn warned(scenario: &GridScenario, held: &[f64]) -> Vec<String> {
    let texts = of_rings(scenario, held);
    texts.iter().for_each(|text| console::tell(format_args!("nbody: warning: {text}")));
    texts
}

/// What is wrong with an energy that has changed by the part `drift`, where nothing takes or gives any.
pub fn of_energy(scenario: &GridScenario, viscosity: f64, drift: f64) -> Option<String> {
    let conditions = &scenario.conditions;
    let kept = viscosity == 0.0 && conditions.bodies.is_empty() && conditions.inflow.velocity == [0.0; 3];
    (kept && drift.abs() > ENERGY).then(|| {
        format!(
            "the energy is off by {:.1} %, which a flow without viscosity, bodies and inflow keeps: try smaller cells, a smaller \
             time.dt or time.cutoff, or solver.correction = true",
            100.0 * drift.abs()
        )
    })
}
