//! `[flow]` and `[[bodies]]`: what a flow on a grid is subject to.

use std::any::Any;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fmm_core::grid::bodies::{Body, Inflow, Pose, Shape, Solid};
use fmm_core::grid::flow::Conditions;

use super::super::document::{Item, Value};
use super::super::reader::{Notes, Range, Section, TURNED};
use super::super::resolved::{number, text, vector};
use super::Resolution;
use crate::messages::{number as in_message, short};
use crate::surface::Surface;

/// Names of shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sphere,
    Ellipsoid,
    Box,
    Surface,
}

const KINDS: [(&str, Kind); 4] =
    [("sphere", Kind::Sphere), ("ellipsoid", Kind::Ellipsoid), ("box", Kind::Box), ("surface", Kind::Surface)];

/// λ h/U without `flow.penalty`.
const PENALTY: f64 = 100.0;

/// The largest component of a place, a velocity or an angular velocity.
const MOST: f64 = 1e60;

/// The half width of a body in cells, at least: its mask takes two to become 1.
const THINNEST: f64 = 2.0;

/// Smallest cells between a body and the faces of the domain, at least.
const ON_ONE_LEVEL: f64 = 12.0;
/// The same on several levels: eight of the cells that may be next to the smallest.
const ON_LEVELS: f64 = 16.0;

/// The cube, and its cells if they are known.
pub(super) struct Domain<'a> {
    pub corner: [f64; 3],
    pub side: f64,
    pub resolution: &'a Option<Resolution>,
}

impl Domain<'_> {
    /// h where the grid is finest.
    pub fn spacing(&self) -> Option<f64> {
        self.resolution.as_ref().map(|r| r.spacing(self.side))
    }
}

/// Reads both sections; `None` if a mistake left a hole.
pub(super) fn read(
    notes: &Notes,
    top: &mut Section<'_>,
    folder: Option<&Path>,
    domain: &Domain<'_>,
) -> Option<Conditions> {
    let mut flow = top.section("flow");
    let velocity = flow.numbers_up_to("inflow", MOST).unwrap_or_default();
    let ramp = flow.number("ramp", Range::NOT_NEGATIVE).unwrap_or(0.0);
    let penalty = flow.number("penalty", Range::PENALTY).unwrap_or(PENALTY);
    flow.close();
    let bodies = match top.item("bodies").map(|i| (i, &i.value)) {
        None => vec![],
        Some((_, Value::Array(list))) => {
            let read = |(i, item)| body(Section::new(notes, format!("bodies.{i}"), Some(item)), folder, domain);
            let all: Vec<Option<Body>> = list.iter().enumerate().map(read).collect();
            let all = all.into_iter().collect::<Option<Vec<_>>>()?;
            separate(&all, list, notes, domain);
            all
        }
        Some((item, other)) => {
            let help = "each body has its own header in double brackets: [[bodies]]";
            let message = format!("'bodies' is {}", other.kind());
            notes.add(Some(&item.span), message, "a list of bodies", Some(help.into()));
            return None;
        }
    };
    Some(Conditions { inflow: Inflow { velocity, ramp }, bodies, penalty })
}

fn body(mut s: Section<'_>, folder: Option<&Path>, domain: &Domain<'_>) -> Option<Body> {
    let kind = s.choice("shape", &KINDS);
    let center = s.numbers_up_to("center", MOST);
    let shape = match kind {
        Some(Kind::Sphere) => {
            if !s.has("radius") {
                s.missing("radius", "for example radius = 0.5");
            }
            s.number("radius", Range::SIDE).map(Shape::Sphere)
        }
        Some(Kind::Ellipsoid) => lengths(&mut s, "half_axes").map(Shape::Ellipsoid),
        Some(Kind::Box) => lengths(&mut s, "sides").map(Shape::Box),
        Some(Kind::Surface) => surface(&mut s, folder).map(|surface| Shape::Solid(Arc::new(surface))),
        None => {
            if !s.has("shape") {
                s.missing("shape", "one of sphere, ellipsoid, box, surface");
            }
            None
        }
    };
    if !s.has("center") {
        s.missing("center", "where the body is at time 0, for example center = [0.5, 0.5, 0.5]");
    }
    let rotation = s.numbers_up_to("rotation", TURNED).unwrap_or_default();
    let [velocity, spin] = ["velocity", "spin"].map(|key| s.numbers_up_to(key, MOST).unwrap_or_default());
    let body = Body { shape: shape?, center: center?, rotation, velocity, spin };
    fits(&s, &body, domain);
    if kind.is_some() {
        s.close();
    }
    Some(body)
}

/// The surface of a file.
fn surface(s: &mut Section<'_>, folder: Option<&Path>) -> Option<Surface> {
    let (given, scale, origin) = (s.string("path"), s.number("scale", Range::SIDE), s.numbers_up_to("origin", MOST));
    let digest = s.string("digest");
    if !s.has("path") {
        s.missing("path", "an STL file with a closed surface, for example path = \"wing.stl\"");
    }
    let wrong = |(key, is_read): (&str, bool)| s.has(key) && !is_read;
    if [("scale", scale.is_some()), ("origin", origin.is_some()), ("digest", digest.is_some())].into_iter().any(wrong) {
        return None;
    }
    let given = given?;
    let path = folder.map_or_else(|| PathBuf::from(&given), |f| f.join(&given));
    // A run may go on from another folder.
    let path = std::path::absolute(&path).unwrap_or(path);
    let surface = match Surface::read(&path, scale.unwrap_or(1.0), origin) {
        Ok(surface) => surface,
        Err(e) => {
            s.absent("path", e.exit_code(), e.to_string(), "needs a closed surface in STL", None);
            return None;
        }
    };
    if let Some(digest) = digest.filter(|digest| digest != surface.digest.as_str()) {
        let message = format!("{} = \"{digest}\" is not that of the surface", s.full("digest"));
        let label = format!("{} in {}", surface.digest, surface.path.display());
        let help = format!(
            "the file has changed since: a run goes on with the surface that it began with alone. If that is \
             elsewhere, --set {}=FILE",
            s.full("path")
        );
        s.mistake("digest", message, label, Some(help));
    }
    Some(surface)
}

/// Sees that a body has cells enough, and that it begins within the domain.
fn fits(s: &Section<'_>, body: &Body, domain: &Domain<'_>) {
    let Some(h) = domain.spacing() else { return };
    if body.narrowest() < THINNEST * h {
        let key = match body.shape {
            Shape::Sphere(_) => "radius",
            Shape::Ellipsoid(_) => "half_axes",
            Shape::Box(_) => "sides",
            Shape::Solid(_) => "path",
        };
        let (thin, least) = (short(2.0 * body.narrowest()), in_message(2.0 * THINNEST * h));
        let message = format!("{} is of a body that is {thin} wide, less than four cells", s.full(key));
        s.mistake(
            key,
            message,
            format!("allowed: widths from {least} on"),
            Some("give more cells or a larger body".into()),
        );
    }
    // Vorticity may come no nearer to the faces than four cells, of the level above the finest too,
    // and spreads by some in the first steps.
    let cells = if matches!(domain.resolution, Some(Resolution::Adapted(..))) { ON_LEVELS } else { ON_ONE_LEVEL };
    let (margin, extent) = (cells * h, body.extent());
    let [low, high] = [margin + extent, domain.side - margin - extent];
    if (0..3).any(|d| !(low..=high).contains(&(body.center[d] - domain.corner[d]))) {
        let message = format!("{} is of a body that is near a face of the domain", s.full("center"));
        let label = format!(
            "allowed: {} or more from each face of the cube, the extent of the body and {cells} of the smallest cells",
            short(margin + extent)
        );
        let of_file = format!("{} turns lengths of the file into those of the scenario", s.full("scale"));
        s.mistake("center", message, label, matches!(body.shape, Shape::Solid(_)).then_some(of_file));
    }
}

/// Sees that no cell belongs to two bodies at time 0: what each of them takes from the fluid would mean nothing.
fn separate(bodies: &[Body], items: &[Item], notes: &Notes, domain: &Domain<'_>) {
    let Some(h) = domain.spacing() else { return };
    let poses: Vec<Pose> = bodies.iter().map(|body| body.at(0.0)).collect();
    for (b, body) in bodies.iter().enumerate() {
        let shared = |a: &usize| {
            // The cells of the domain that both may have: those in the boxes around both.
            let place = |x: f64, d: usize| ((x - domain.corner[d]) / h).clamp(0.0, domain.side / h);
            let ends: [[i64; 2]; 3] = std::array::from_fn(|d| {
                let ends = |body: &Body| [body.center[d] - body.extent() - h, body.center[d] + body.extent() + h];
                let (one, two) = (ends(&bodies[*a]), ends(body));
                [place(one[0].max(two[0]), d).floor() as i64, place(one[1].min(two[1]), d).ceil() as i64]
            });
            meet([&poses[*a], &poses[b]], ends, domain.corner, h)
        };
        if let Some(a) = (0..b).find(shared) {
            let message = format!("bodies.{a} and bodies.{b} overlap at time 0");
            let help = "keep them at a distance by bodies.center".to_string();
            notes.add(Some(&items[b].span), message, "allowed: bodies without a common cell", Some(help));
        }
    }
}

/// Whether two bodies have a cell in common among those from the first to before the last along each axis, which have side `h`.
fn meet(poses: [&Pose; 2], ends: [[i64; 2]; 3], corner: [f64; 3], h: f64) -> bool {
    let cells = ends.map(|[from, to]| to - from);
    if cells.iter().any(|n| *n <= 0) {
        return false;
    }
    let center = std::array::from_fn(|d| corner[d] + 0.5 * h * (ends[d][0] + ends[d][1]) as f64);
    if cells == [1; 3] {
        return poses.iter().all(|pose| pose.mask(center, h) > 0.0);
    }
    let radius = 0.5 * h * cells.map(|n| (n * n) as f64).iter().sum::<f64>().sqrt();
    let masks = poses.map(|pose| pose.mask_of_ball(center, radius, h));
    if masks.contains(&Some(0.0)) {
        return false;
    }
    if masks.iter().all(Option::is_some) {
        return true;
    }
    let longest = (0..3).max_by_key(|d| cells[*d]).unwrap_or(0);
    let middle = ends[longest][0] + cells[longest] / 2;
    let half = |k: usize| {
        let mut half = ends;
        half[longest][1 - k] = middle;
        meet(poses, half, corner, h)
    };
    half(0) || half(1)
}

/// Three lengths.
fn lengths(s: &mut Section<'_>, key: &'static str) -> Option<[f64; 3]> {
    if !s.has(key) {
        s.missing(key, "three lengths, for example [0.5, 0.2, 0.2]");
    }
    let lengths = s.numbers(key)?;
    if let Some(bad) = lengths.iter().find(|l| !(1e-60..=1e60).contains(*l)) {
        let message = format!("{} has a length of {}", s.full(key), in_message(*bad));
        s.mistake(key, message, format!("allowed: {}", Range::SIDE.text()), None);
        return None;
    }
    Some(lengths)
}

/// Both sections, where there is something in them.
pub(super) fn write(conditions: &Conditions, out: &mut String) -> fmt::Result {
    let Conditions { inflow, bodies, penalty } = conditions;
    if inflow.velocity != [0.0; 3] || !bodies.is_empty() {
        writeln!(out, "\n[flow]\ninflow = {}\nramp = {}", vector(inflow.velocity), number(inflow.ramp))?;
        writeln!(out, "penalty = {}", number(*penalty))?;
    }
    for body in bodies {
        let (kind, form) = match &body.shape {
            Shape::Sphere(r) => (Kind::Sphere, format!("radius = {}", number(*r))),
            Shape::Ellipsoid(a) => (Kind::Ellipsoid, format!("half_axes = {}", vector(*a))),
            Shape::Box(s) => (Kind::Box, format!("sides = {}", vector(*s))),
            Shape::Solid(solid) => (Kind::Surface, of_surface(&**solid)),
        };
        let name = KINDS[kind as usize].0;
        writeln!(out, "\n[[bodies]]\nshape = {}\ncenter = {}", text(name), vector(body.center))?;
        writeln!(out, "{form}\nrotation = {}", vector(body.rotation))?;
        writeln!(out, "velocity = {}\nspin = {}", vector(body.velocity), vector(body.spin))?;
    }
    Ok(())
}

/// The keys of a surface, with what was read from its file.
fn of_surface(solid: &dyn Solid) -> String {
    let surface = (solid as &dyn Any).downcast_ref::<Surface>().expect("scenarios have no other solid");
    let Surface { path, scale, origin, digest, triangles, volume, .. } = surface;
    let (path, origin, digest) = (text(&path.to_string_lossy()), vector(*origin), text(digest.as_str()));
    let about = format!("# {triangles} triangles, volume {}", short(*volume));
    format!("path = {path}\nscale = {}\norigin = {origin}\ndigest = {digest}  {about}", number(*scale))
}
