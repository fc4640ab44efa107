//! Properties that hold for every input, tried with inputs that nobody thought of: trees divide, lists meet everything once,
//! translations are exact or within their bound, sums keep their tolerance.

use std::collections::HashMap;

use fmm_core::cpu::execute;
use fmm_core::expansion::{Count, Expansion, Spherical};
use fmm_core::kernel::{Points, Sums};
use fmm_core::lists::Classes;
use fmm_core::math::Number;
use fmm_core::math::simd::{Task, Vector, dispatch};
use fmm_core::plan::OctreePlan;
use fmm_core::tree::{Cube, Tree};
use fmm_core::{Choice, Family, Method, Precision, Settings, Softening, StageTimes, evaluate};
use proptest::collection::vec;
use proptest::prelude::*;
use testkit::space::Reference;

/// A coordinate: of any size, on a coarse grid (so that points coincide and lie on the faces of
/// cells), or one of a few neighboring numbers.
fn coordinate() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1.0..1.0f64,
        2 => (-8i32..=8).prop_map(|i| f64::from(i) / 8.0),
        1 => (-300i32..20, -1.0..1.0f64).prop_map(|(e, m)| m * 2f64.powi(e)),
        1 => (0u32..4).prop_map(|k| f64::from_bits(0.5f64.to_bits() + u64::from(k))),
    ]
}

fn point() -> impl Strategy<Value = [f64; 3]> {
    [coordinate(), coordinate(), coordinate()]
}

fn points(most: usize) -> impl Strategy<Value = Vec<[f64; 3]>> {
    let scaled = (vec(point(), 0..most), prop_oneof![Just(1.0), Just(1e-20), Just(1e30)]);
    scaled.prop_map(|(set, scale): (Vec<[f64; 3]>, f64)| set.into_iter().map(|x| x.map(|c| c * scale)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trees_divide(set in points(400), leaf_size in 1usize..20) {
        let cube = Cube::around(&[&set]);
        let tree = Tree::octree(&set, cube, leaf_size);
        // The order is one of all bodies.
        let mut order = tree.order.clone();
        order.sort_unstable();
        prop_assert!(order.iter().enumerate().all(|(i, &o)| i == o as usize) && order.len() == set.len());
        let level_of = tree.level_of();
        for cell in 0..tree.len() {
            let (bodies, half) = (tree.body_range(cell), tree.half(level_of[cell].into()));
            // A cell holds its bodies.
            for &i in &tree.order[bodies.clone()] {
                for d in 0..3 {
                    let away = (set[i as usize][d] - tree.center[cell][d]).abs();
                    prop_assert!(away <= half * (1.0 + 1e-9) + 1e-15 * cube.side, "cell {cell}: {away} of {half}");
                }
            }
            // Children share out what their parent holds, in its order, and none is empty.
            let children = tree.child_range(cell);
            let mut next = bodies.start;
            for child in children.clone() {
                prop_assert_eq!((tree.parent[child] as usize, level_of[child]), (cell, level_of[cell] + 1));
                prop_assert!(tree.body_range(child).start == next && tree.count(child) > 0);
                next = tree.body_range(child).end;
            }
            prop_assert!(children.is_empty() || next == bodies.end);
            // An over-full leaf is one place.
            if tree.is_leaf(cell) && tree.count(cell) > leaf_size {
                let first = set[tree.order[bodies.start] as usize];
                prop_assert!(tree.order[bodies].iter().all(|&i| set[i as usize] == first));
            }
        }
        // Leaves follow each other and leave nothing out.
        let mut next = 0;
        for &leaf in &tree.leaves {
            prop_assert!(tree.is_leaf(leaf as usize) && tree.body_range(leaf as usize).start == next);
            next = tree.body_range(leaf as usize).end;
        }
        prop_assert_eq!(next, set.len());
        let mut places: HashMap<[u64; 3], u64> = HashMap::new();
        set.iter().for_each(|x| *places.entry(x.map(|c| (c + 0.0).to_bits())).or_default() += 1);
        prop_assert_eq!(tree.coincident_pairs, places.values().map(|n| n * (n - 1) / 2).sum::<u64>());
    }

    #[test]
    fn lists_meet_everything_once(
        sources in points(300),
        targets in prop::option::of(points(100)),
        leaf_size in 1usize..30,
        theta in 0.3..1.0f64,
        method in prop_oneof![Just(Method::Direct), Just(Method::Treecode), Just(Method::Fmm)],
    ) {
        let choice = Choice {
            method, precision: Precision::F64, expansion: Some(Family::Spherical), order: Some(3), theta: Some(theta), leaf_size,
        };
        let (times, at) = (&mut StageTimes::default(), targets.as_deref());
        let cube = Cube::around(&[&sources, at.unwrap_or(&[])]);
        let plan = OctreePlan::new(&Settings::default(), choice, cube, &sources, at, times);
        let count = Count { side: plan.targets.side };
        let sums = execute::<f64, _, _, 3>(&count, &count, &plan, &sources, &vec![1.0; sources.len()], at, times);
        let own = if at.is_none() { 1.0 } else { 0.0 };
        prop_assert_eq!(sums.len(), at.unwrap_or(&sources).len());
        for s in sums {
            prop_assert_eq!(s.potential, sources.len() as f64 - own);
        }
    }

    #[test]
    fn translations_are_exact_or_within_their_bound(
        sources in vec(([-1.0..1.0f64, -1.0..1.0f64, -1.0..1.0f64], -1.0..1.0f64), 1..12),
        target in [-1.0..1.0f64, -1.0..1.0f64, -1.0..1.0f64],
        (source_octant, target_octant, p) in (0u8..8, 0u8..8, 1usize..14),
        class in any::<prop::sample::Index>(),
    ) {
        let (of_sources, charges): (Vec<[f64; 3]>, Vec<f64>) = sources.into_iter().unzip();
        let classes = Classes::<3>::new(4.0);
        let far: Vec<u32> = (0..classes.len() as u32).filter(|&c| classes.offset(c).iter().map(|o| o * o).sum::<i32>() >= 4).collect();
        let class = far[class.index(far.len())];
        let offset = classes.offset(class);
        let expansion = Spherical::<f64>::new(p, classes);
        let seen = dispatch(Chain { expansion, of_sources: &of_sources, charges: &charges, target, source_octant, target_octant, class });
        let size: f64 = charges.iter().map(|q| q.abs()).sum();
        let most = |v: &[f64]| v.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        prop_assert!(most(&seen.m2m) <= 1e-12 * size, "M2M {:e}", most(&seen.m2m));
        prop_assert!(seen.l2l.abs() <= 1e-11 * size, "L2L {:e}", seen.l2l);
        // Sources lie in a child, the target in another: spheres of √3/2 around centers with a
        // distance of at
        let apart = seen.apart;
        let radii = 2.0 * 3f64.sqrt();
        if apart > radii {
            let bound = size / (apart - radii) * (radii / apart).powi(p as i32 + 1);
            prop_assert!(seen.m2l.abs() <= bound, "M2L of order {p} across {offset:?}: {:e} of {bound:e}", seen.m2l);
        }
    }

    #[test]
    fn sums_keep_their_tolerance(
        set in vec(point(), 2..300),
        signs in any::<bool>(),
        tolerance in prop_oneof![Just(1e-2), Just(1e-5), Just(1e-8)],
        method in prop_oneof![Just(Method::Auto), Just(Method::Treecode), Just(Method::Fmm)],
        softening in prop_oneof![Just(Softening::None), Just(Softening::Plummer(0.05)), Just(Softening::Spline(0.1)), Just(Softening::P1(0.02))],
    ) {
        let q: Vec<f64> = (0..set.len()).map(|i| if signs && i % 2 == 1 { -1.0 } else { 1.0 }).collect();
        let settings = Settings { method, softening, tolerance, ..Settings::default() };
        let sum = evaluate(&settings, &set, &q, None, &mut StageTimes::default()).unwrap();
        prop_assert!(sum.potential.iter().chain(sum.field.as_flattened()).all(|v| v.is_finite()));
        let error = Reference::new(&set, &q, None, softening, set.len()).errors(&sum.potential, &sum.field).rms;
        prop_assert!(error <= tolerance, "{error:e} for {tolerance:e}");
    }
}

/// How many inputs are tried: more with PROPTEST_CASES.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64)
}

/// Sources in a child of one cell seen from a child of another, by all translations on the way. The half side of the cells is 1.
struct Chain<'a> {
    expansion: Spherical<f64>,
    of_sources: &'a [[f64; 3]],
    charges: &'a [f64],
    /// In units of the target's child.
    target: [f64; 3],
    source_octant: u8,
    target_octant: u8,
    class: u32,
}

/// What each step missed.
struct Seen {
    /// Coefficients through M2M less those of P2M.
    m2m: Vec<f64>,
    /// Potential through L2L less that before it.
    l2l: f64,
    /// Potential less the direct sum.
    m2l: f64,
    /// Distance of the centers of the cells.
    apart: f64,
}

/// The numbers, padded to whole vectors with the last one.
fn padded(values: impl Iterator<Item = f64>, fill: Option<f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    let last = fill.unwrap_or(values[values.len() - 1]);
    values.resize(values.len().next_multiple_of(f64::WIDTH), last);
    values
}

impl Task<f64> for Chain<'_> {
    type Out = Seen;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Seen {
        let (e, n) = (&self.expansion, Expansion::<f64, 3>::len(&self.expansion));
        let corner = |octant: u8, d: usize| if octant >> d & 1 == 1 { 0.5 } else { -0.5 };
        let q = padded(self.charges.iter().copied(), Some(0.0));
        let multipole = |place: &dyn Fn(&[f64; 3], usize) -> f64| {
            let x: [Vec<f64>; 3] = std::array::from_fn(|d| padded(self.of_sources.iter().map(|x| place(x, d)), None));
            let mut m = vec![0.0; n];
            e.p2m::<V>(Points { x: [&x[0], &x[1], &x[2]], q: &q }, &mut m);
            m
        };
        let in_parent = |x: &[f64; 3], d: usize| corner(self.source_octant, d) + 0.5 * x[d];
        let (child, parent) = (multipole(&|x, d| x[d]), multipole(&in_parent));
        let lanes = |m: &[f64]| m.iter().map(|&c| V::splat(c)).collect::<Vec<V>>();
        let first = |lanes: &[V]| -> Vec<f64> {
            let one = |v: &V| {
                let mut all = vec![0.0; f64::WIDTH];
                v.store(&mut all);
                all[0]
            };
            lanes.iter().map(one).collect()
        };
        let (mut moved, mut scratch) = (lanes(&child), vec![]);
        e.m2m(self.source_octant, &mut moved, &mut scratch);
        let m2m = first(&moved).iter().zip(&parent).map(|(a, b)| a - b).collect();
        e.m2l(self.class, 0, &mut moved, &mut scratch);
        let potential = |local: &[V], at: [f64; 3]| {
            let x: [Vec<f64>; 3] = at.map(|c| vec![c; f64::WIDTH]);
            let (mut p, mut f) = (vec![0.0; f64::WIDTH], [(); 3].map(|()| vec![0.0; f64::WIDTH]));
            let [a, b, c] = &mut f;
            let mut sums = Sums { potential: &mut p, field: [a, b, c] };
            e.l2p::<V>(&first(local), Points { x: [&x[0], &x[1], &x[2]], q: &[] }, &mut sums);
            p[0]
        };
        let at: [f64; 3] = std::array::from_fn(|d| corner(self.target_octant, d) + 0.5 * self.target[d]);
        let before = potential(&moved, at);
        e.l2l(self.target_octant, &mut moved, &mut scratch);
        // In units of a half side of 1/2.
        let after = 2.0 * potential(&moved, self.target);
        let offset = Classes::<3>::new(4.0).offset(self.class);
        let away: [f64; 3] = std::array::from_fn(|d| -2.0 * f64::from(offset[d]));
        let direct = |x: &[f64; 3]| {
            let square = |d: usize| (away[d] + at[d] - in_parent(x, d)).powi(2);
            1.0 / (0..3).map(square).sum::<f64>().sqrt()
        };
        let exact: f64 = self.of_sources.iter().zip(self.charges).map(|(x, q)| q * direct(x)).sum();
        let apart = away.iter().map(|c| c * c).sum::<f64>().sqrt();
        Seen { m2m, l2l: after - before, m2l: before - exact, apart }
    }
}
