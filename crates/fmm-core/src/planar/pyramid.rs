//! The balanced pyramid: every box is split twice at the median, so that all boxes of a level hold equally many points.

use rayon::prelude::*;

use crate::math::CollectVec;

/// Boxes in level order, box i of a level with the children 4i to 4i + 3 of the next, over points in the order of the leaves.
///
/// All arrays are a pure function of the points: a median split goes by (coordinate, index), and the points of a leaf are in the order
/// of their indices. A device that has sorted the points along both axes builds the same.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pyramid {
    /// The last level: 4^levels leaves.
    pub levels: usize,
    /// Indices of the points in the order of the leaves. `[points]`
    pub order: Vec<u32>,
    /// Coordinates in that order. `[points]` each
    pub x: [Vec<f64>; 2],
    /// First point and one past the last. `[boxes]`
    pub points: Vec<[u32; 2]>,
    /// Centers of the bounding rectangles. `[boxes]` each
    pub center: [Vec<f64>; 2],
    /// Largest distance of a point from the center, and at least 2^−30 of the parent's: nothing is smaller than that to those who
    /// ask for a distance. `[boxes]`
    pub radius: Vec<f64>,
    /// Exponent of the unit of the expansions, the power of two at or above the radius. `[boxes]`
    pub exponent: Vec<i32>,
}

/// A radius below this part of the parent's counts as this part.
const SMALLEST: f64 = 1.0 / (1u64 << 30) as f64;

/// Points that are worth a task of their own.
const TASK: usize = 4096;

#[derive(Clone, Copy)]
struct Point {
    x: [f64; 2],
    index: u32,
}

/// A box before it finds its place in the arrays.
#[derive(Clone, Copy, Default)]
struct Box {
    points: [u32; 2],
    center: [f64; 2],
    radius: f64,
}

impl Pyramid {
    /// The number of boxes of all levels before `level`.
    pub const fn first(level: usize) -> usize {
        ((1 << (2 * level)) - 1) / 3
    }

    /// The boxes of a level.
    pub fn level(&self, level: usize) -> std::ops::Range<usize> {
        Self::first(level)..Self::first(level + 1)
    }

    /// The boxes of the last level.
    pub fn leaves(&self) -> std::ops::Range<usize> {
        self.level(self.levels)
    }

    /// Number of boxes.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Never: there is a root.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The places of a box's points.
    pub fn range(&self, cell: usize) -> std::ops::Range<usize> {
        self.points[cell][0] as usize..self.points[cell][1] as usize
    }

    /// The number of a box's points.
    pub fn count(&self, cell: usize) -> usize {
        (self.points[cell][1] - self.points[cell][0]) as usize
    }

    /// The unit of a box's expansions.
    pub fn unit(&self, cell: usize) -> f64 {
        power(self.exponent[cell])
    }

    /// The pyramid of `points`, whose coordinates are multiplied by `scale`.
    pub fn new(points: &[[f64; 2]], scale: f64, levels: usize) -> Self {
        let place = |(i, x): (usize, &[f64; 2])| Point { x: x.map(|c| c * scale), index: i as u32 };
        let mut bodies: Vec<Point> = points.par_iter().enumerate().map(place).collect_vec();
        let mut boxes = vec![Box::default(); Self::first(levels + 1)];
        // One slice a level, divided in four at each split, so that every task owns what it writes.
        let mut rest = &mut boxes[..];
        let mut slices = vec![];
        for level in 0..=levels {
            let (head, tail) = rest.split_at_mut(1 << (2 * level));
            slices.push(head);
            rest = tail;
        }
        split(&mut bodies, 0, slices);
        let mut tree = Pyramid {
            levels,
            order: bodies.par_iter().map(|b| b.index).collect_vec(),
            x: [0, 1].map(|d| bodies.par_iter().map(|b| b.x[d]).collect_vec()),
            points: boxes.iter().map(|b| b.points).collect(),
            center: [0, 1].map(|d| boxes.iter().map(|b| b.center[d]).collect()),
            radius: boxes.iter().map(|b| b.radius).collect(),
            exponent: vec![],
        };
        if tree.radius[0] == 0.0 {
            tree.radius[0] = 1.0;
        }
        for cell in 1..tree.len() {
            tree.radius[cell] = tree.radius[cell].max(SMALLEST * tree.radius[(cell - 1) / 4]);
        }
        tree.exponent = tree.radius.iter().map(|&r| exponent_above(r)).collect();
        tree
    }
}

/// 2^e for exponents of normal numbers.
pub fn power(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// The exponent of the power of two at or above `x`, within the normal numbers.
pub fn exponent_above(x: f64) -> i32 {
    let e = ((x.to_bits() >> 52) as i32 - 1023).clamp(-1000, 1000);
    if power(e) < x { e + 1 } else { e }
}

/// Fills the boxes of these points, one slice a level; `first` is the place of the first point.
fn split(points: &mut [Point], first: u32, mut levels: Vec<&mut [Box]>) {
    let own = levels.remove(0);
    let (low, high) = bounds(points);
    own[0] = measure(points, first, low, high);
    if levels.is_empty() {
        points.sort_unstable_by_key(|p| p.index);
        return;
    }
    let n = points.len();
    let (left, right) = halve(points, (low, high));
    let [left_bounds, right_bounds] = [bounds(left), bounds(right)];
    let middle = left.len();
    let (a, b) = halve(left, left_bounds);
    let (c, d) = halve(right, right_bounds);
    let starts = [0, a.len(), middle, middle + c.len()].map(|s| first + s as u32);
    let mut parts: [Vec<&mut [Box]>; 4] = Default::default();
    for level in levels {
        let quarter = level.len() / 4;
        for (part, slice) in parts.iter_mut().zip(level.chunks_exact_mut(quarter)) {
            part.push(slice);
        }
    }
    let [pa, pb, pc, pd] = parts;
    let first_half = || {
        both(n / 2, || split(a, starts[0], pa), || split(b, starts[1], pb));
    };
    both(n, first_half, || both(n / 2, || split(c, starts[2], pc), || split(d, starts[3], pd)));
}

/// Two pieces of work on `n` points together.
fn both(n: usize, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
    if n > TASK {
        rayon::join(a, b);
    } else {
        a();
        b();
    }
}

/// Splits at the median, across the longer side.
fn halve(points: &mut [Point], (low, high): ([f64; 2], [f64; 2])) -> (&mut [Point], &mut [Point]) {
    let middle = points.len() / 2;
    if middle > 0 {
        if high[0] - low[0] >= high[1] - low[1] {
            points.select_nth_unstable_by(middle, order::<0>);
        } else {
            points.select_nth_unstable_by(middle, order::<1>);
        }
    }
    points.split_at_mut(middle)
}

/// By a coordinate, then the index: no two points are equal.
///
/// The first question has nearly always the same answer, so that the processor guesses no comparison.
fn order<const D: usize>(a: &Point, b: &Point) -> std::cmp::Ordering {
    if a.x[D] != b.x[D] {
        return if a.x[D] < b.x[D] { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
    }
    a.index.cmp(&b.index)
}

fn bounds(points: &[Point]) -> ([f64; 2], [f64; 2]) {
    let grow = |(mut low, mut high): ([f64; 2], [f64; 2]), p: &Point| {
        for d in 0..2 {
            low[d] = if p.x[d] < low[d] { p.x[d] } else { low[d] };
            high[d] = if p.x[d] > high[d] { p.x[d] } else { high[d] };
        }
        (low, high)
    };
    points.iter().fold(([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]), grow)
}

fn measure(points: &[Point], first: u32, low: [f64; 2], high: [f64; 2]) -> Box {
    if points.is_empty() {
        return Box { points: [first, first], ..Box::default() };
    }
    let center = [0, 1].map(|d| 0.5 * low[d] + 0.5 * high[d]);
    // In units in which squares stay in the range of numbers.
    let unit = power(exponent_above((high[0] - low[0]).max(high[1] - low[1])));
    let half = [0, 1].map(|d| (0.5 * high[d] - 0.5 * low[d]) / unit);
    let radius = (half[0] * half[0] + half[1] * half[1]).sqrt() * unit;
    Box { points: [first, first + points.len() as u32], center, radius }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::coincident_pairs;

    fn points(n: usize) -> Vec<[f64; 2]> {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..n).map(|_| [next(), 0.1 * next()]).collect()
    }

    #[test]
    fn boxes_are_balanced_and_hold_their_points() {
        for n in [0, 1, 3, 100, 1000] {
            let points = points(n);
            let tree = Pyramid::new(&points, 1.0, 3);
            assert_eq!(tree.len(), 85);
            let mut seen = tree.order.clone();
            seen.sort_unstable();
            assert_eq!(seen, (0..n as u32).collect::<Vec<_>>());
            let leaves = tree.leaves().map(|leaf| &tree.order[tree.range(leaf)]);
            assert!(leaves.into_iter().all(<[u32]>::is_sorted));
            for level in 0..=3 {
                let cells = tree.level(level);
                let mut next = 0;
                for cell in cells {
                    assert_eq!(tree.points[cell][0], next);
                    next = tree.points[cell][1];
                    assert!(tree.count(cell).abs_diff(n >> (2 * level)) <= 1, "{n} {level} {}", tree.count(cell));
                    for i in tree.range(cell) {
                        let d = [0, 1].map(|d| tree.x[d][i] - tree.center[d][cell]);
                        // Centers are rounded like coordinates.
                        assert!(d[0].hypot(d[1]) <= tree.radius[cell] + 1e-15);
                        assert_eq!([tree.x[0][i], tree.x[1][i]], points[tree.order[i] as usize]);
                    }
                    assert!(tree.radius[cell] <= tree.unit(cell) && tree.unit(cell) < 2.0 * tree.radius[cell]);
                }
                assert_eq!(next as usize, n);
            }
        }
    }

    #[test]
    fn a_flat_set_is_split_along_its_length() {
        let tree = Pyramid::new(&points(1000), 1.0, 1);
        let mut x: Vec<f64> = tree.level(1).map(|c| tree.center[0][c]).collect();
        x.sort_by(f64::total_cmp);
        assert!((0..4).all(|k| (x[k] - (0.125 + 0.25 * k as f64)).abs() < 0.02), "{x:?}");
    }

    #[test]
    fn points_at_one_place() {
        let tree = Pyramid::new(&[[0.5, -2.0]; 100], 1.0, 2);
        assert_eq!(coincident_pairs(&[[0.5, -2.0]; 100]), 4950);
        assert!(tree.radius.iter().all(|&r| r > 0.0));
        assert_eq!(tree.order, Pyramid::new(&[[0.5, -2.0]; 100], 1.0, 2).order);
    }
}
