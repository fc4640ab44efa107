//! Pictures of the particles of a run at up to four times: the projected density on a logarithmic scale, or single
//! dots where they are few.
//!
//! All pictures show the same square, seen along the axis on which the particles spread least (z, if none is much
//! thinner). The square leaves out the outermost few percent, which would make the rest a dot.

use crate::figure::color::{self, BACKGROUND, GROUPS};
use crate::figure::{Axis, Brightness, Content, Panel, Rgb};
use crate::files::snapshot::Snapshot;
use crate::messages::short;
use crate::times::TimeUnit;

/// Pixels on a side of a picture.
pub const SIDE: usize = 420;
/// Fewer particles are drawn one by one.
const DOTS: usize = 300;
/// From this many on the outermost may lie outside.
const MANY: usize = 1000;
/// The part that may lie outside at each end of an axis.
const TAIL: f64 = 0.02;
/// Decades of density between black and white.
const DECADES: f64 = 4.0;
/// An axis is thin if the particles spread along it this much less than along the others.
const THIN: f64 = 0.6;

/// What the pictures of a run are made of.
pub struct Subject {
    /// Numbers of particles of the groups, with names; rows are in their order.
    pub groups: Vec<(String, usize)>,
    /// Whether charges, not masses, are what the particles have.
    pub charged: bool,
    /// The unit of lengths; empty for pure numbers.
    pub length: &'static str,
    /// The unit of masses.
    pub mass: &'static str,
    /// The unit of times.
    pub time: TimeUnit,
}

/// The square that all pictures show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// The axes to the right and upwards, and the one along which it is seen.
    pub axes: [usize; 3],
    /// The middle in space.
    pub center: [f64; 3],
    /// Its side.
    pub side: f64,
}

impl View {
    /// The square for these snapshots; `None` without particles.
    pub fn of(snapshots: &[Snapshot]) -> Option<Self> {
        let ends: [(f64, f64); 3] = std::array::from_fn(|k| {
            snapshots
                .iter()
                .filter(|s| !s.position.is_empty())
                .map(|s| ends(s, k))
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (low, high)| (a.min(low), b.max(high)))
        });
        let span = ends.map(|(low, high)| high - low);
        if !span.iter().all(|s| *s >= 0.0 && s.is_finite()) {
            return None;
        }
        let thin = |k: usize| (0..3).all(|j| j == k || span[k] < THIN * span[j]);
        let axes = if thin(0) {
            [1, 2, 0]
        } else if thin(1) {
            [0, 2, 1]
        } else {
            [0, 1, 2]
        };
        let center = ends.map(|(low, high)| 0.5 * low + 0.5 * high);
        let widest = span[axes[0]].max(span[axes[1]]);
        let side = 1.15 * if widest > 0.0 { widest } else { center.iter().fold(1.0, |a: f64, c| a.max(c.abs())) };
        Some(View { axes, center, side })
    }

    /// How far a place is from the left and the top, over the side.
    fn place(&self, x: &[f64; 3]) -> [f64; 2] {
        let across = |i: usize| (x[self.axes[i]] - self.center[self.axes[i]]) / self.side;
        [0.5 + across(0), 0.5 - across(1)]
    }
}

/// Where the particles of a snapshot begin and end along an axis, without the outermost if they are many.
fn ends(s: &Snapshot, axis: usize) -> (f64, f64) {
    let mut along: Vec<f64> = s.position.iter().map(|x| x[axis]).collect();
    let last = along.len() - 1;
    let out = if along.len() < MANY || s.box_size > 0.0 { 0 } else { (TAIL * last as f64) as usize };
    let mut at = |i: usize| *along.select_nth_unstable_by(i, f64::total_cmp).1;
    (at(out), at(last - out))
}

/// The pictures, with the axis along which they are seen; `None` without particles.
pub fn figure(snapshots: &[Snapshot], subject: &Subject) -> Option<(Content, &'static str)> {
    let view = View::of(snapshots)?;
    let colored = coloring(snapshots, subject);
    let names = if colored.names.len() > 1 { colored.names.clone() } else { vec![] };
    let most = snapshots.iter().map(|s| s.id.len()).max().unwrap_or(0);
    let labels = snapshots.iter().map(|s| subject.time.text(s.time)).map(|t| format!("t = {t}"));
    let along = ["x", "y", "z"][view.axes[2]];
    let bar = scale_bar(view.side, subject.length);
    if most < DOTS {
        let dots = |s: &Snapshot| -> Vec<([f64; 2], Rgb)> {
            s.position.iter().enumerate().map(|(i, x)| (view.place(x), colored.color(s, i))).collect()
        };
        let panels = labels.zip(snapshots).map(|(label, s)| Panel { label, side: 0, pixels: vec![], dots: dots(s) });
        return Some((Content::Panels { panels: panels.collect(), bar, brightness: None, names }, along));
    }
    let maps: Vec<Vec<Vec<f64>>> = snapshots.iter().map(|s| densities(s, &view, &colored, subject)).collect();
    let totals: Vec<Vec<f64>> = maps.iter().map(|m| total(m)).collect();
    let highest = totals.iter().flatten().fold(0.0, |a: f64, v| a.max(*v));
    if highest <= 0.0 {
        return None;
    }
    let lowest = highest * 10f64.powf(-DECADES);
    let level = |v: f64| if v > 0.0 { 1.0 + (v / highest).log10() / DECADES } else { 0.0 };
    let single = names.is_empty();
    let pixels = |map: &[Vec<f64>], total: &[f64]| -> Vec<Rgb> {
        let pixel = |i: usize| match (single, total[i] > 0.0) {
            (_, false) => BACKGROUND,
            (true, _) => color::ramp(level(total[i])),
            (false, _) => {
                let mixed = |k: usize| {
                    map.iter().zip(&colored.names).map(|(m, (_, c))| m[i] * f64::from(c[k])).sum::<f64>() / total[i]
                };
                color::glow(std::array::from_fn(mixed), level(total[i]))
            }
        };
        (0..total.len()).map(pixel).collect()
    };
    let panels = labels.zip(maps.iter().zip(&totals)).map(|(label, (map, total))| Panel {
        label,
        side: SIDE,
        pixels: pixels(map, total),
        dots: vec![],
    });
    let what = if subject.charged { ("number of particles per area", "1") } else { ("surface density", subject.mass) };
    let label = match subject.length {
        "" => format!("{} (N-body units)", what.0),
        length => format!("{} ({}/{length}²)", what.0, what.1),
    };
    let shade = |i: u32| match single {
        true => color::ramp(f64::from(i) / 63.0),
        false => color::glow([200.0; 3], f64::from(i) / 63.0),
    };
    let brightness =
        Brightness { axis: Axis::log(label), range: (lowest, highest), ramp: (0..64).map(shade).collect() };
    let panels = panels.collect();
    Some((Content::Panels { panels, bar, brightness: Some(brightness), names }, along))
}

/// Which color a particle has.
struct Coloring {
    /// Names and colors.
    names: Vec<(String, Rgb)>,
    /// The first row after each group; empty where the sign of the charge decides.
    ends: Vec<usize>,
}

impl Coloring {
    fn kind(&self, s: &Snapshot, row: usize) -> usize {
        if self.ends.is_empty() {
            return usize::from(self.names.len() > 1 && s.charge.as_ref().is_some_and(|q| q[row] < 0.0));
        }
        self.ends.partition_point(|&end| end <= row).min(self.names.len() - 1)
    }

    fn color(&self, s: &Snapshot, row: usize) -> Rgb {
        self.names[self.kind(s, row)].1
    }
}

/// Charges of both signs have a color each; else groups have.
fn coloring(snapshots: &[Snapshot], subject: &Subject) -> Coloring {
    let any =
        |test: fn(f64) -> bool| snapshots.iter().any(|s| s.charge.as_ref().is_some_and(|q| q.iter().any(|q| test(*q))));
    if subject.charged && any(|q| q > 0.0) && any(|q| q < 0.0) {
        let names = vec![("positive".to_string(), GROUPS[0]), ("negative".to_string(), GROUPS[1])];
        return Coloring { names, ends: vec![] };
    }
    let n: usize = subject.groups.iter().map(|g| g.1).sum();
    let known = subject.groups.len() <= GROUPS.len() && snapshots.iter().all(|s| s.id.len() == n);
    if !known || subject.groups.len() < 2 {
        return Coloring { names: vec![(String::new(), GROUPS[0])], ends: vec![] };
    }
    let mut end = 0;
    let mut ends = vec![];
    for (_, n) in &subject.groups {
        end += n;
        ends.push(end);
    }
    let names = subject.groups.iter().zip(GROUPS).map(|((name, _), color)| (name.clone(), color)).collect();
    Coloring { names, ends }
}

/// Mass (or number) per area in each pixel, for each color, smoothed by a Gaussian about as wide as
/// the mean distance between particles in the picture.
fn densities(s: &Snapshot, view: &View, colored: &Coloring, subject: &Subject) -> Vec<Vec<f64>> {
    let mut maps = vec![vec![0.0; SIDE * SIDE]; colored.names.len()];
    let area = (view.side / SIDE as f64).powi(2);
    let mut seen = 0usize;
    for (row, x) in s.position.iter().enumerate() {
        let [i, j] = view.place(x).map(|p| (p * SIDE as f64).floor());
        let inside = |p: f64| (0.0..SIDE as f64).contains(&p);
        if inside(i) && inside(j) {
            seen += 1;
            let weight = if subject.charged { 1.0 } else { s.mass[row] };
            maps[colored.kind(s, row)][j as usize * SIDE + i as usize] += weight / area;
        }
    }
    let width = (0.4 * SIDE as f64 / (seen.max(1) as f64).sqrt()).clamp(0.7, 9.0);
    maps.iter().map(|map| blurred(map, width)).collect()
}

fn total(maps: &[Vec<f64>]) -> Vec<f64> {
    (0..SIDE * SIDE).map(|i| maps.iter().map(|m| m[i]).sum()).collect()
}

/// The map under a Gaussian of `width` pixels.
fn blurred(map: &[f64], width: f64) -> Vec<f64> {
    let reach = (4.0 * width).ceil() as isize;
    let weights: Vec<f64> = (-reach..=reach).map(|d| (-0.5 * (d as f64 / width).powi(2)).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let mut from = map.to_vec();
    for stride in [1, SIDE] {
        let mut to = vec![0.0; SIDE * SIDE];
        for (i, value) in from.iter().enumerate().filter(|(_, v)| **v > 0.0) {
            let at = (i / stride % SIDE) as isize;
            for (k, weight) in weights.iter().enumerate() {
                let d = k as isize - reach;
                if (0..SIDE as isize).contains(&(at + d)) {
                    to[(i as isize + d * stride as isize) as usize] += value * weight / sum;
                }
            }
        }
        from = to;
    }
    from
}

/// A round length of at most a third of the side: over the side, and as text.
pub fn scale_bar(side: f64, unit: &str) -> (f64, String) {
    let most = side / 3.0;
    let power = 10f64.powf(most.log10().floor());
    let length = [5.0, 2.0, 1.0].into_iter().map(|m| m * power).find(|l| *l <= most).unwrap_or(power);
    (length / side, format!("{} {unit}", short(length)).trim_end().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::System;

    fn subject(groups: &[usize], charged: bool) -> Subject {
        let groups = groups.iter().enumerate().map(|(i, n)| (format!("group {i}"), *n)).collect();
        Subject { groups, charged, length: "kpc", mass: "Msun", time: TimeUnit::of(System::Galactic, 1.0) }
    }

    /// `n` particles on a square of side 2 about (5, 0) in the plane x, z, of mass 1, 3 each.
    fn square(n: usize) -> Snapshot {
        let unit = |i: usize, step: f64| (i as f64 * step).fract() * 2.0 - 1.0;
        Snapshot {
            id: (0..n as u64).collect(),
            position: (0..n).map(|i| [5.0 + unit(i, 0.618_033_988_7), 0.01, unit(i, 0.754_877_666_2)]).collect(),
            mass: vec![3.0; n],
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_thin_set_is_seen_from_its_flat_side_and_its_density_is_that_of_the_set() {
        let n = 40_000;
        let (content, along) = figure(&[square(n)], &subject(&[n], false)).unwrap();
        assert_eq!(along, "y");
        let Content::Panels { panels, bar, brightness, names } = content else { panic!() };
        assert!(names.is_empty() && panels[0].dots.is_empty());
        let brightness = brightness.unwrap();
        assert_eq!(brightness.axis.label, "surface density (Msun/kpc²)");
        let expected = 3.0 * n as f64 / 4.0;
        // Some five particles lie under a pixel's Gaussian.
        assert!((1.0..4.0).contains(&(brightness.range.1 / expected)), "{:?} {expected}", brightness.range);
        // The square is bright, its surroundings are not.
        let at = |x: usize, y: usize| panels[0].pixels[y * SIDE + x];
        assert!(at(SIDE / 2, SIDE / 2)[0] > 200, "{:?}", at(SIDE / 2, SIDE / 2));
        assert_eq!(at(2, 2), BACKGROUND);
        assert_eq!(bar.1, "0.5 kpc");
    }

    #[test]
    fn groups_and_signs_of_charges_have_colors_of_their_own() {
        let (content, _) = figure(&[square(200)], &subject(&[150, 50], false)).unwrap();
        let Content::Panels { panels, names, .. } = content else { panic!() };
        assert_eq!(names.iter().map(|n| n.0.as_str()).collect::<Vec<_>>(), ["group 0", "group 1"]);
        assert_eq!((panels[0].dots[149].1, panels[0].dots[150].1), (GROUPS[0], GROUPS[1]));
        let mut ions = square(4);
        ions.charge = Some(vec![1.0, -1.0, 1.0, -1.0]);
        let (content, _) = figure(&[ions], &subject(&[4], true)).unwrap();
        let Content::Panels { panels, names, .. } = content else { panic!() };
        assert_eq!((names[0].0.as_str(), names[1].0.as_str()), ("positive", "negative"));
        assert_eq!((panels[0].dots[2].1, panels[0].dots[3].1), (GROUPS[0], GROUPS[1]));
    }

    #[test]
    fn nothing_and_one_point_are_no_trouble() {
        assert!(figure(&[Snapshot::default()], &subject(&[0], false)).is_none());
        let one = Snapshot { id: vec![0], position: vec![[0.0; 3]], mass: vec![1.0], ..Snapshot::default() };
        let Some((Content::Panels { panels, .. }, "z")) = figure(&[one], &subject(&[1], false)) else { panic!() };
        assert_eq!(panels[0].dots[0].0, [0.5, 0.5]);
    }
}
