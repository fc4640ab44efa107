//! `nbody paraview`: a Python script that opens a run in ParaView with a representation, colors and a camera that show it.
//!
//! Of particles ParaView shows red dots at first, of grids their outline. The script uses calls of `paraview.simple`
//! that ParaView 5.11 and later ones have; camera, sizes and ranges are computed here, from the run.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::console;
use crate::failure::Failure;
use crate::files::cells::Magnitude;
use crate::files::snapshot::Snapshot;
use crate::files::{atomic, regular};
use crate::plot::slice::Plane;
use crate::plot::snapshots::{Shown, need_folder};
use crate::plot::space::View;

/// The script in a run directory. A script named paraview.py would hide the module.
pub const NAME: &str = "open_in_paraview.py";

/// A line of every script: what has it may be written over.
const MARK: &str = "# Written by nbody paraview.";

/// The parts of a script: it opens the run, shows particles or a grid, and sets time and camera.
const OPEN: &str = include_str!("paraview/open.py");
const PARTICLES: &str = include_str!("paraview/particles.py");
const GRID: &str = include_str!("paraview/grid.py");
const CAMERA: &str = include_str!("paraview/camera.py");

const EXAMPLES: &str = "\
Examples:
  nbody paraview out/plummer
  paraview --script=out/plummer/open_in_paraview.py
  pvpython out/plummer/open_in_paraview.py picture.png

Particles are shown as Point Gaussian, colored by the depth of their potential (or their speed) on a logarithmic scale; the
vorticity on a grid as a slice and contours.

Exit codes: 0 done, 2 wrong option, 65 wrong data, 66 no run there or nothing to show, 74 the script cannot be written,
or another file is there";

/// Options of `nbody paraview`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Paraview {
    /// The run directory
    run: PathBuf,
    /// The script to write [default: open_in_paraview.py in the run directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the script.
///
/// # Errors
/// 65 and 66 for the run, 74 where the script cannot be written.
pub fn paraview(options: &Paraview) -> Result<(), Failure> {
    let run = &options.run;
    let nothing = |why: &str| Failure::new(66, format!("{}: {why}", run.display()));
    need_folder(run)?;
    let shown = Shown::read(run)?.ok_or_else(|| nothing("no snapshots that run.hdf.series names"))?;
    let facts = match &shown {
        Shown::Particles(snapshots) => particles(snapshots),
        Shown::Vorticity(fields) => grid(&fields.iter().map(|f| &f.1).collect::<Vec<_>>()),
    };
    let why = match &shown {
        Shown::Particles(_) => "nothing to show: no particles",
        Shown::Vorticity(fields) if fields.is_empty() => {
            "nothing to show: its files have no vorticity; they have it where output.fields has \"vorticity\""
        }
        Shown::Vorticity(_) => "nothing to show: the vorticity is 0 everywhere",
    };
    let (facts, display) = facts.ok_or_else(|| nothing(why))?;
    let path = std::path::absolute(run).unwrap_or(run.clone());
    let mut text = "# Opens this run in ParaView 5.11 or newer: paraview --script=FILE, or pvpython FILE picture.png\n"
        .to_string();
    let _ = writeln!(text, "{MARK}\n\nRUN = {}", json!(path.to_string_lossy()));
    text.push_str(&facts);
    let _ = write!(text, "\n{OPEN}{display}{CAMERA}");
    let out = options.out.clone().unwrap_or_else(|| run.join(NAME));
    if out.symlink_metadata().is_ok() && !regular::text(&out, regular::REPORT).is_ok_and(|there| there.contains(MARK)) {
        let line = format!("{}: is there already, and no script of nbody paraview; choose another name", out.display());
        return Err(Failure::new(74, line));
    }
    atomic::replace(&out, text.as_bytes())?;
    console::print(&format!("wrote {0}\nopen it with: paraview --script={0}\n", out.display()))
}

/// What both scripts need.
struct Facts<'a> {
    center: [f64; 3],
    side: f64,
    /// From the center to the camera.
    towards: [f64; 3],
    up: [f64; 3],
    /// The quantity that has colors, and how ParaView computes it.
    name: &'a str,
    function: &'a str,
    /// Where its colors begin and end.
    range: [f64; 2],
}

impl Facts<'_> {
    /// Lines that assign them.
    fn assignments(&self) -> String {
        let mut text = String::new();
        for (key, value) in [
            ("CENTER", json!(self.center)),
            ("SIDE", json!(self.side)),
            ("TOWARDS", json!(self.towards)),
            ("UP", json!(self.up)),
            ("NAME", json!(self.name)),
            ("FUNCTION", json!(self.function)),
            ("LOWEST", json!(self.range[0])),
            ("HIGHEST", json!(self.range[1])),
        ] {
            let _ = writeln!(text, "{key} = {value}");
        }
        text
    }
}

/// A unit vector along an axis.
fn along(axis: usize) -> [f64; 3] {
    std::array::from_fn(|k| f64::from(k == axis))
}

/// From where the first axis points to the right and the second upwards.
fn front(axes: [usize; 3]) -> [f64; 3] {
    // x and z are seen so against y.
    let sign = if axes == [0, 2, 1] { -1.0 } else { 1.0 };
    along(axes[2]).map(|d| sign * d)
}

/// The script of particles; `None` without any.
fn particles(snapshots: &[Snapshot]) -> Option<(String, &'static str)> {
    let view = View::of(snapshots)?;
    let depth = |s: &Snapshot| s.potential.as_ref().map(|p| p.iter().map(|p| -p).collect::<Vec<f64>>());
    let speed = |s: &Snapshot| Some(s.velocity.iter().map(|v| v.iter().map(|v| v * v).sum::<f64>().sqrt()).collect());
    let all = |values: &dyn Fn(&Snapshot) -> Option<Vec<f64>>| -> Option<Vec<f64>> {
        let each: Option<Vec<Vec<f64>>> = snapshots.iter().map(values).collect();
        each.map(|v| v.concat()).filter(|v| !v.is_empty())
    };
    let positive = |v: &Vec<f64>| v.iter().all(|v| *v > 0.0);
    let ((name, function), range) = match all(&depth).filter(positive) {
        Some(values) => (("depth of the potential", "-potential"), range(values)),
        None => match all(&speed) {
            Some(values) => (("speed", "mag(velocity)"), range(values)),
            None => (("mass", "mass"), [0.0, 1.0]),
        },
    };
    let n = snapshots.iter().map(|s| s.id.len()).max()?;
    let radius = view.side * (0.25 / (n as f64).sqrt()).clamp(0.001, 0.01);
    let (center, side, towards, up) = (view.center, view.side, front(view.axes), along(view.axes[1]));
    let mut text = Facts { center, side, towards, up, name, function, range }.assignments();
    let _ = writeln!(text, "RADIUS = {}", json!(radius));
    Some((text, PARTICLES))
}

/// Where colors begin and end: all values but the outermost hundredths, and at most four decades.
fn range(mut values: Vec<f64>) -> [f64; 2] {
    let last = values.len() - 1;
    let mut at = |share: f64| *values.select_nth_unstable_by((share * last as f64) as usize, f64::total_cmp).1;
    let (low, high) = (at(0.01), at(0.99));
    if high > low {
        [if high > 0.0 { low.max(1e-4 * high) } else { low }, high]
    } else {
        [low, low + low.abs().max(1.0)]
    }
}

/// The script of a grid; `None` without vorticity.
fn grid(fields: &[&Magnitude]) -> Option<(String, &'static str)> {
    let plane = Plane::of(fields)?;
    // Contours are seen better from above and the side.
    let [right, up, _] = plane.axes.map(along);
    let front = front(plane.axes);
    let towards = std::array::from_fn(|k| 0.8 * front[k] + 0.48 * up[k] + 0.36 * right[k]);
    let facts = Facts {
        center: plane.center,
        side: plane.side,
        towards,
        up,
        name: "size of the vorticity",
        function: "mag(vorticity)",
        range: [0.0, plane.highest],
    };
    let mut text = facts.assignments();
    let _ = writeln!(text, "NORMAL = {}", json!(along(plane.axes[2])));
    Some((text, GRID))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_positive_where_values_are_and_never_empty() {
        assert_eq!(range((0..=100).map(f64::from).collect()), [1.0, 99.0]);
        assert_eq!(range(vec![0.0; 90].into_iter().chain([5.0; 10]).collect()), [5e-4, 5.0]);
        assert_eq!(range(vec![3.0; 4]), [3.0, 6.0]);
        assert_eq!(range(vec![-2.0, -1.0, -1.0]), [-2.0, -1.0]);
    }

    #[test]
    fn the_camera_sees_the_first_axis_to_the_right() {
        for axes in [[0, 1, 2], [1, 2, 0], [0, 2, 1]] {
            let ([right, up, _], front) = (axes.map(along), front(axes));
            let cross = |k: usize| right[(k + 1) % 3] * up[(k + 2) % 3] - right[(k + 2) % 3] * up[(k + 1) % 3];
            assert_eq!([cross(0), cross(1), cross(2)], front);
        }
    }
}
