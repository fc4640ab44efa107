//! The boxes of the tree in the plane, as pictures: Goude & Engblom, Fig. 1.
//!
//! A record has the set and, for one box, the number of others by operator. It has no coordinates: the
//! figures build the same tree again.

use std::time::Instant;

use fmm_core::planar::{Lists, Pyramid, Rule, accuracy, levels, swap_min_points};
use serde_json::Value;

use super::suite;
use crate::lines::figure;
use crate::measure::Context;
use crate::record::Record;
use crate::sets::Set;
use crate::suite::{Case, Places, Suite, Sweep, Work};
use crate::table::significant;
use fmm::Device;
use nbody_cli::figure::{Axis, Brightness, Content, Figure, Rectangle, Rgb};
use nbody_sim::failure::Failure;

/// The suite.
pub const SUITE: Suite = Suite {
    plane: Some(PRESET),
    places: Places::Cores,
    columns: &[
        ("set", "set"),
        ("sigma", "σ"),
        ("n", "N"),
        ("boxes", "boxes"),
        ("theta", "θ"),
        ("seconds", "s"),
        ("m2l", "M2L"),
        ("direct", "direct"),
        ("swapped", "M2P, P2L"),
        ("m2l_mean", "mean M2L"),
        ("direct_mean", "mean direct"),
    ],
    ..suite("mesh", PRESET, cases, figures, summary)
};

const PRESET: &str = include_str!("../../../../configs/bench-mesh.toml");

/// The order of the paper, where the preset has none.
const ORDER: f64 = 17.0;

const BLACK: Rgb = [0x00, 0x00, 0x00];
const DARK: Rgb = [0x7a, 0x7a, 0x7a];
const MIDDLE: Rgb = [0xa8, 0xa8, 0xa8];
const LIGHT: Rgb = [0xd9, 0xd9, 0xd9];

/// The operator between a box and the chosen one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is the chosen one.
    Chosen,
    /// P2P.
    Direct,
    /// M2P or P2L, between a small and a large box.
    Swapped,
    /// M2L.
    M2l,
    /// M2L between boxes of a higher level that contain the two.
    Coarser,
}

/// The boxes of the last level, split as for a sum.
struct Mesh {
    /// Smallest and largest x and y of the points of each box.
    bounds: Vec<[[f64; 2]; 2]>,
    /// The operator between each and the chosen one.
    kinds: Vec<Kind>,
    /// Source boxes of M2L and of P2P, means over all boxes.
    means: [f64; 2],
}

/// What a picture is of.
#[derive(Debug, Clone, Copy)]
struct Points {
    set: Set,
    sigma: Option<f64>,
    n: usize,
    levels: usize,
    theta: f64,
    order: usize,
}

impl Points {
    fn of(record: &Record) -> Option<Points> {
        let whole = |name: &str| Some(record.number(name)).filter(|v| v.is_finite()).map(|v| v as usize);
        Some(Points {
            set: Set::named(record.text("set"))?,
            sigma: Some(record.number("sigma")).filter(|s| s.is_finite()),
            n: whole("n")?,
            levels: whole("levels")?,
            theta: record.number("theta"),
            order: whole("order")?,
        })
    }
}

impl Mesh {
    fn new(points: Points) -> Mesh {
        let at: Vec<[f64; 2]> =
            points.set.flat_points(points.n, points.sigma).into_iter().map(|[x, y, _]| [x, y]).collect();
        let tree = Pyramid::new(&at, 1.0, points.levels);
        let swap_min_points = swap_min_points(points.order);
        let lists =
            Lists::between_pyramids(&tree, &tree, Rule { theta: points.theta, min_distance: 0.0, swap_min_points });
        let leaves: Vec<usize> = tree.leaves().filter(|&leaf| tree.count(leaf) > 0).collect();
        let extent = |leaf: usize, d: usize| {
            let x = &tree.x[d][tree.range(leaf)];
            [x.iter().copied().fold(f64::INFINITY, f64::min), x.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
        };
        let bounds = leaves.iter().map(|&leaf| {
            let [x, y] = [0, 1].map(|d| extent(leaf, d));
            [[x[0], y[0]], [x[1], y[1]]]
        });
        let chosen = chosen(&tree, &leaves);
        let is_in = |rows: &fmm_core::Csr<u32>, leaf: usize| rows.row(chosen).contains(&(leaf as u32));
        let kind = |&leaf: &usize| match leaf {
            _ if leaf == chosen => Kind::Chosen,
            _ if is_in(&lists.p2p, leaf) => Kind::Direct,
            _ if is_in(&lists.m2p, leaf) || is_in(&lists.p2l, leaf) => Kind::Swapped,
            _ if is_in(&lists.m2l, leaf) => Kind::M2l,
            _ => Kind::Coarser,
        };
        let mean = |rows: &fmm_core::Csr<u32>| {
            leaves.iter().map(|&leaf| rows.row(leaf).len()).sum::<usize>() as f64 / leaves.len() as f64
        };
        Mesh {
            bounds: bounds.collect(),
            kinds: leaves.iter().map(kind).collect(),
            means: [mean(&lists.m2l), mean(&lists.p2p)],
        }
    }

    fn count(&self, kind: Kind) -> usize {
        self.kinds.iter().filter(|&&k| k == kind).count()
    }

    fn areas(&self) -> Vec<f64> {
        self.bounds.iter().map(|[low, high]| (high[0] - low[0]) * (high[1] - low[1])).collect()
    }

    /// The boxes with a grey for each operator; the darkest are drawn last.
    fn by_kind(&self) -> Content {
        let shown = [
            (Kind::Coarser, None, "M2L between larger boxes"),
            (Kind::M2l, Some(LIGHT), "M2L"),
            (Kind::Swapped, Some(MIDDLE), "M2P or P2L"),
            (Kind::Direct, Some(DARK), "direct"),
            (Kind::Chosen, Some(BLACK), "the box"),
        ];
        let mut rectangles = vec![];
        for (kind, fill, _) in shown {
            let here = self.bounds.iter().zip(&self.kinds).filter(|(_, k)| **k == kind);
            rectangles.extend(here.map(|(&[low, high], _)| Rectangle { low, high, fill }));
        }
        let there = shown.iter().rev().filter(|s| self.count(s.0) > 0);
        let names = there.map(|(_, fill, name)| (name.to_string(), fill.unwrap_or([0xff; 3]))).collect();
        content(rectangles, names, None)
    }

    /// The boxes in grey by 1/area, which is proportional to the density of the points.
    fn by_density(&self) -> Content {
        let densities: Vec<f64> = self.areas().iter().map(|a| 1.0 / a).collect();
        let finite = densities.iter().copied().filter(|d| d.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), d| (a.min(d), b.max(d)));
        let place = |d: f64| if high > low { ((d / low).ln() / (high / low).ln()).clamp(0.0, 1.0) } else { 0.5 };
        let grey = |t: f64| [(244.0 - 220.0 * t).round() as u8; 3];
        let boxes = self.bounds.iter().zip(&densities);
        let rectangles = boxes.map(|(&[low, high], &d)| Rectangle { low, high, fill: Some(grey(place(d))) }).collect();
        let ramp = (0..64).map(|i| grey(f64::from(i) / 63.0)).collect();
        let axis = Axis::log("1 / area of the box");
        // Boxes of one point have no area.
        let brightness = (low <= high).then_some(Brightness { axis, range: (low, high), ramp });
        content(rectangles, vec![], brightness)
    }
}

fn content(rectangles: Vec<Rectangle>, names: Vec<(String, Rgb)>, brightness: Option<Brightness>) -> Content {
    Content::Rectangles { x: Axis::linear("x"), y: Axis::linear("y"), rectangles, names, brightness }
}

/// The leaf with the median distance from the center of the root: small boxes on one side, large ones on the
/// other.
fn chosen(tree: &Pyramid, leaves: &[usize]) -> usize {
    let away = |leaf: usize| [0, 1].map(|d| tree.center[d][leaf] - tree.center[d][0]);
    let mut sorted = leaves.to_vec();
    sorted.sort_by(|&a, &b| {
        let [a, b] = [a, b].map(|leaf| away(leaf).iter().map(|d| d * d).sum::<f64>());
        a.total_cmp(&b)
    });
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let preset = &sweep.preset;
    let theta = preset.thetas.first().copied().unwrap_or(accuracy::THETA);
    let order = preset.orders.first().copied().unwrap_or(ORDER) as usize;
    let mut all = vec![];
    for set in preset.sets.iter().filter_map(|s| Set::named(s)) {
        let widths: Vec<Option<f64>> = match set.has_width() && !preset.sigmas.is_empty() {
            true => preset.sigmas.iter().copied().map(Some).collect(),
            false => vec![None],
        };
        for sigma in widths {
            for (leaf, n) in preset.leaves() {
                let levels = levels(n, n, leaf);
                all.push(case(Points { set, sigma, n, levels, theta, order }));
            }
        }
    }
    Ok(all)
}

fn case(points: Points) -> Case {
    let measure = move |context: &mut Context| {
        let start = Instant::now();
        let mesh = Mesh::new(points);
        let mut record = Record::default();
        record.set("seconds", start.elapsed().as_secs_f64()).set("set", points.set.name());
        record.set("sigma", points.sigma.map_or(Value::Null, Value::from)).set("n", points.n);
        record.set("levels", points.levels).set("boxes", 1u64 << (2 * points.levels));
        record.set("theta", points.theta).set("order", points.order);
        record.set("m2l", mesh.count(Kind::M2l)).set("direct", mesh.count(Kind::Direct));
        record.set("swapped", mesh.count(Kind::Swapped)).set("coarser", mesh.count(Kind::Coarser));
        record.set("m2l_mean", mesh.means[0]).set("direct_mean", mesh.means[1]);
        let areas = mesh.areas();
        let least = areas.iter().copied().fold(f64::INFINITY, f64::min);
        record.set("area_ratio", areas.iter().copied().fold(0.0, f64::max) / least);
        context.machine(&mut record, Device::Cpu);
        Ok(Some(record))
    };
    let width = points.sigma.map_or(String::new(), |s| format!("/sigma{s}"));
    let key = format!("{}{width}/n{}/{}levels", points.set.name(), points.n, points.levels);
    Case { key, weight: 0.1, work: Work::Other(Box::new(measure)) }
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for record in records {
        let Some(points) = Points::of(record) else { continue };
        let mesh = Mesh::new(points);
        let set = points.set.name();
        let (width, about) =
            points.sigma.map_or_else(Default::default, |s| (format!("-sigma{s}"), format!(", σ = {s}")));
        let boxes = record.number("boxes");
        let end = format!("{set}{width}-{boxes}");
        let subtitle = format!(
            "{set}{about}, N = {}, {boxes} boxes, each the rectangle that bounds its points, θ = {}",
            points.n, points.theta
        );
        let one = std::slice::from_ref(record);
        let title = "Boxes of the tree, by the operator between each and one of them";
        all.push((end.clone(), figure(one, title, subtitle.clone(), mesh.by_kind())));
        all.push((format!("{end}-density"), figure(one, "Boxes of the tree, by 1/area", subtitle, mesh.by_density())));
    }
    all
}

fn summary(records: &[Record]) -> Vec<String> {
    let sentence = |r: &Record| {
        format!(
            "{}, {} boxes: one box has M2L with {} and direct sums with {} others. The means over all boxes are {} and \
             {}, itself included. Their areas differ by a factor of up to {}.",
            r.text("set"),
            r.number("boxes"),
            r.number("m2l"),
            r.number("direct"),
            significant(r.number("m2l_mean")),
            significant(r.number("direct_mean")),
            significant(r.number("area_ratio"))
        )
    };
    records.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: Points = Points { set: Set::Normal, sigma: Some(0.1), n: 11_520, levels: 4, theta: 0.5, order: 17 };

    #[test]
    fn boxes_are_colored_by_the_criterion_of_separation() {
        let mesh = Mesh::new(POINTS);
        assert_eq!((mesh.bounds.len(), mesh.count(Kind::Chosen)), (256, 1));
        let own = mesh.kinds.iter().position(|&k| k == Kind::Chosen).unwrap();
        // R + θ r ≤ θ d, from the rectangles alone.
        let shape = |[low, high]: [[f64; 2]; 2]| {
            let half = [0, 1].map(|d| 0.5 * (high[d] - low[d]));
            ([0, 1].map(|d| 0.5 * (low[d] + high[d])), half[0].hypot(half[1]))
        };
        let (center, radius) = shape(mesh.bounds[own]);
        for (&bounds, &kind) in mesh.bounds.iter().zip(&mesh.kinds) {
            let (other, r) = shape(bounds);
            let d = (other[0] - center[0]).hypot(other[1] - center[1]);
            let separated = radius.max(r) + 0.5 * radius.min(r) <= 0.5 * d;
            match kind {
                Kind::M2l => assert!(separated, "{bounds:?}"),
                Kind::Direct | Kind::Swapped => assert!(!separated, "{bounds:?}"),
                Kind::Chosen | Kind::Coarser => {}
            }
        }
        let counts = [Kind::M2l, Kind::Direct, Kind::Coarser].map(|k| mesh.count(k));
        assert!(counts[0] > 5 && counts[1] > 5 && counts[2] > 5, "{counts:?}");
    }

    #[test]
    fn figures_show_every_box_once_and_the_denser_ones_darker() {
        let mesh = Mesh::new(POINTS);
        let Content::Rectangles { rectangles, names, .. } = mesh.by_kind() else { panic!("rectangles") };
        let black = rectangles.iter().filter(|r| r.fill == Some(BLACK)).count();
        let light = rectangles.iter().filter(|r| r.fill == Some(LIGHT)).count();
        assert_eq!((rectangles.len(), black, light), (256, 1, mesh.count(Kind::M2l)));
        assert_eq!((&names[0].0[..], names[0].1), ("the box", BLACK));
        let Content::Rectangles { rectangles, brightness: Some(brightness), .. } = mesh.by_density() else { panic!() };
        let area = |r: &Rectangle| (r.high[0] - r.low[0]) * (r.high[1] - r.low[1]);
        let smallest = rectangles.iter().min_by(|a, b| area(a).total_cmp(&area(b))).unwrap();
        assert_eq!(smallest.fill, brightness.ramp.last().copied());
        assert!((brightness.range.1 * area(smallest) - 1.0).abs() < 1e-12);
    }
}
