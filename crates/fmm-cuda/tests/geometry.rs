//! Trees and lists of the device against those of the CPU, element by element.

use crate::common::{gpu, plummer, uniform};
use cust::memory::DevicePointer;
use fmm_core::accuracy::Spread;
use fmm_core::lists::{Classes, Lists, Rule, Space};
use fmm_core::tree::{Cube, Tree};
use fmm_cuda::geometry::{DeviceLists, DeviceTree, Survey, Work};
use fmm_cuda::view::{CELLS, NONE};
use fmm_cuda::{Buffer, Gpu, Points as OnDevice};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

type Points = Vec<[f64; 3]>;

/// A Plummer sphere and one ten times smaller at the given `distance`.
fn two_clusters(n: usize, distance: f64) -> Points {
    let mut points = plummer(n / 2, 11).position;
    points.extend(plummer(n - n / 2, 12).position.iter().map(|x| [0.1 * x[0] + distance, 0.1 * x[1], 0.1 * x[2]]));
    points
}

fn surface(n: usize) -> Points {
    let mut points = plummer(n, 13).position;
    points.iter_mut().for_each(|x| {
        let r = x.iter().map(|c| c * c).sum::<f64>().sqrt();
        *x = x.map(|c| c / r);
    });
    points
}

fn line(n: usize) -> Points {
    let mut rng = StdRng::seed_from_u64(14);
    (0..n).map(|_| rng.random::<f64>()).map(|t| [t, 0.3, -2.0 * t]).collect()
}

/// Every tenth body twice, and one place more often than a leaf holds.
fn copies(n: usize) -> Points {
    let mut points = uniform(n, -0.5, 15).position;
    for i in (0..n - 1).step_by(10) {
        points[i + 1] = points[i];
    }
    points[0] = [0.0; 3];
    points[1] = [-0.0, 0.0, 0.0];
    points.extend([[0.125, 0.25, 0.375]; 700]);
    points
}

/// Bodies of which `crowd` share a cell of a level that keys are not sorted to in passes over all.
fn crowd(n: usize, crowd: usize) -> Points {
    let mut points = uniform(n, -0.5, 16).position;
    points[n - crowd..].iter_mut().for_each(|x| *x = x.map(|c| 0.3 + 1e-5 * c));
    points
}

fn sets() -> Vec<(&'static str, Points)> {
    let uniform = |n| uniform(n, 0.0, 10).position;
    let mut sets: Vec<(&str, Points)> =
        [0, 1, 2, 7, 31, 33, 255, 257, 4095, 4096, 4097].map(|n| ("a few", uniform(n))).to_vec();
    sets.extend([
        ("uniform", uniform(100_000)),
        ("plummer", plummer(200_000, 10).position),
        ("two clusters", two_clusters(60_000, 30.0)),
        ("surface", surface(30_000)),
        ("line", line(30_000)),
        ("far from the origin", uniform(5000).into_iter().map(|x| x.map(|c| 1e6 + c)).collect()),
        ("copies", copies(9000)),
        ("a few in one cell", crowd(5000, 60)),
        ("a crowd in one cell", crowd(5000, 400)),
    ]);
    sets
}

fn tree_of(gpu: &Gpu, work: &mut Work, points: &Points, cube: Cube<3>, leaf_size: usize) -> DeviceTree {
    gpu.enter().unwrap();
    let mut position = Buffer::new();
    position.upload(points.as_flattened()).unwrap();
    gpu.settle().unwrap();
    let mut tree = DeviceTree::default();
    tree.build(gpu, work, &position, cube, leaf_size).unwrap();
    tree
}

fn same_tree(found: &Tree<3>, expected: &Tree<3>, what: &str) {
    assert_eq!(found.level_start, expected.level_start, "{what}: level_start");
    assert!(found.order == expected.order, "{what}: order");
    assert!(found.bodies == expected.bodies, "{what}: bodies");
    assert!(found.children == expected.children, "{what}: children");
    assert!(found.parent == expected.parent, "{what}: parent");
    assert!(found.octant == expected.octant, "{what}: octant");
    assert!(found.center == expected.center, "{what}: center");
    assert!(found.leaves == expected.leaves, "{what}: leaves");
    assert_eq!(found.coincident_pairs, expected.coincident_pairs, "{what}: coincident pairs");
    assert_eq!((found.side, found.leaf_size), (expected.side, expected.leaf_size), "{what}");
}

fn same_lists(found: &Lists, expected: &Lists, what: &str) {
    let of = |l: &Lists| [l.m2l.clone(), l.m2p.clone(), l.p2l.clone(), l.p2p.clone()];
    for ((name, f), e) in ["m2l", "m2p", "p2l", "p2p"].iter().zip(of(found)).zip(of(expected)) {
        assert!(f.start == e.start, "{what}: starts of {name}");
        assert!(f.items == e.items, "{what}: pairs of {name}");
    }
}

/// Rules of all kinds: wide and narrow, with and without softening, with large and small leaves.
fn rules(extent: f64) -> Vec<Rule> {
    let rule = |separation2: f64, min_distance: f64, m2l: usize, bodies: usize| Rule {
        most_near: 0,
        separation2,
        point_separation2: Rule::point_separation2_of(separation2),
        min_distance,
        m2l_min_pairs: m2l,
        m2p_min_bodies: bodies,
        p2l_min_bodies: bodies,
    };
    vec![rule(4.0 - 1e-12, 0.0, 0, 1), rule(4.0 - 1e-12, 0.0, 300, 60), rule(9.5, 0.03 * extent, 40, 10)]
}

/// Tiles of one level and octant, padded with no cell: two of each octant in turn.
fn tiles_of(tree: &Tree<3>) -> (Vec<u32>, Vec<usize>) {
    let (mut cells, mut starts) = (vec![], vec![0]);
    for level in 0..tree.levels() {
        let of_octant = |octant| tree.level(level).filter(move |&c| tree.octant[c] == octant).map(|c| c as u32);
        let octants: Vec<Vec<u32>> = (0..8).map(|octant| of_octant(octant).collect()).collect();
        for round in 0..octants.iter().map(Vec::len).max().unwrap_or(0).div_ceil(2 * CELLS) {
            for tile in octants.iter().flat_map(|o| o.chunks(CELLS).skip(2 * round).take(2)) {
                cells.extend_from_slice(tile);
                cells.resize(cells.len().next_multiple_of(CELLS), NONE);
            }
        }
        starts.push(cells.len() / CELLS);
    }
    (cells, starts)
}

/// Cube, sample and tiles are the host's, number by number.
#[test]
fn surveys_and_tiles_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let (mut work, mut survey) = (Work::default(), Survey::default());
    let mut sets = sets();
    // More bodies than are in a sample.
    sets.push(("many", plummer(150_001, 23).position));
    for (name, points) in sets {
        let what = format!("{name}, {} bodies", points.len());
        gpu.enter().unwrap();
        let mut position = Buffer::new();
        position.upload(points.as_flattened()).unwrap();
        gpu.settle().unwrap();
        let n = points.len();
        let device = OnDevice { position: position.pointer(), strength: DevicePointer::null(), n };
        let cube = Cube::around(&[&points]);
        assert_eq!(survey.cube(&gpu, &[device]).unwrap(), cube, "{what}");
        let expected = Spread::of(&points, &cube);
        assert_eq!(survey.spread(&gpu, &mut work, device, cube, true).unwrap(), expected, "{what}");
        if n > 0 {
            assert!(expected.pairs > 0 || n < 100, "{what}: {expected:?}");
        }
        let expected = Tree::octree(&points, cube, 20);
        let tree = tree_of(&gpu, &mut work, &points, cube, 20);
        let (cells, starts) = tiles_of(&expected);
        gpu.finish().unwrap();
        assert!(tree.tiles.cells.download().unwrap() == cells, "{what}");
        assert_eq!(tree.tiles.level_start(), starts, "{what}");
    }
}

#[test]
fn trees_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let mut work = Work::default();
    for (name, points) in sets() {
        let cube = Cube::around(&[&points]);
        for leaf_size in [1, 20, 64, 300] {
            let what = format!("{name}, {} bodies, leaves of {leaf_size}", points.len());
            let tree = tree_of(&gpu, &mut work, &points, cube, leaf_size);
            let expected = Tree::octree(&points, cube, leaf_size);
            assert_eq!(tree.on_host(), expected.levels() > 22, "{what}");
            same_tree(&tree.download().unwrap(), &expected, &what);
        }
    }
}

#[test]
fn lists_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let mut work = Work::default();
    let mut lists = DeviceLists::default();
    for (name, points) in sets() {
        let cube = Cube::around(&[&points]);
        let leaf_size = if points.len() > 50_000 { 40 } else { 8 };
        let tree = tree_of(&gpu, &mut work, &points, cube, leaf_size);
        let own = tree.download().unwrap();
        for rule in rules(cube.side) {
            let what = format!("{name}, {} bodies, {rule:?}", points.len());
            let classes = Classes::new(rule.separation2);
            lists.fmm(&gpu, &mut work, &Space::open(cube.side), &tree, &tree, rule, classes).unwrap();
            same_lists(&lists.download().unwrap(), &Lists::fmm(&own, &own, rule, classes), &what);
            lists.treecode(&gpu, &mut work, &Space::open(cube.side), &tree, &tree, rule).unwrap();
            same_lists(&lists.download().unwrap(), &Lists::treecode(&own, &own, rule), &format!("treecode, {what}"));
        }
    }
}

#[test]
fn targets_apart_from_the_sources_have_a_tree_of_their_own() {
    let Some(gpu) = gpu() else { return };
    let mut work = Work::default();
    let mut lists = DeviceLists::default();
    let some: Points = plummer(30_000, 16).position.into_iter().map(|x| x.map(|c| 0.2 * c + 0.3)).collect();
    let many = uniform(50_000, 0.0, 17).position;
    for (targets, sources) in [(&some, &many), (&many, &some), (&some, &vec![]), (&vec![], &some)] {
        let cube = Cube::around(&[targets, sources]);
        let own = [targets, sources].map(|points| tree_of(&gpu, &mut work, points, cube, 30));
        let [t, s] = [targets, sources].map(|points| Tree::octree(points, cube, 30));
        for (own, tree) in own.iter().zip([&t, &s]) {
            same_tree(&own.download().unwrap(), tree, "targets or sources");
        }
        for rule in rules(cube.side) {
            let classes = Classes::new(rule.separation2);
            lists.fmm(&gpu, &mut work, &Space::open(cube.side), &own[0], &own[1], rule, classes).unwrap();
            same_lists(&lists.download().unwrap(), &Lists::fmm(&t, &s, rule, classes), &format!("{rule:?}"));
            lists.treecode(&gpu, &mut work, &Space::open(cube.side), &own[0], &own[1], rule).unwrap();
            same_lists(&lists.download().unwrap(), &Lists::treecode(&t, &s, rule), &format!("treecode, {rule:?}"));
        }
    }
}

/// Clusters so distant that a key resolves neither: the host makes their tree.
#[test]
fn what_keys_do_not_resolve_goes_through_the_host() {
    let Some(gpu) = gpu() else { return };
    let mut work = Work::default();
    let points = two_clusters(2000, 1e9);
    let cube = Cube::around(&[&points]);
    let tree = tree_of(&gpu, &mut work, &points, cube, 20);
    assert!(tree.on_host());
    let expected = Tree::octree(&points, cube, 20);
    assert!(expected.levels() > 22);
    same_tree(&tree.download().unwrap(), &expected, "1e9 apart");
    let mut lists = DeviceLists::default();
    for rule in rules(1.0) {
        let classes = Classes::new(rule.separation2);
        lists.fmm(&gpu, &mut work, &Space::open(cube.side), &tree, &tree, rule, classes).unwrap();
        same_lists(&lists.download().unwrap(), &Lists::fmm(&expected, &expected, rule, classes), &format!("{rule:?}"));
    }
    // Leaves large enough need no keys beyond.
    let tree = tree_of(&gpu, &mut work, &points, cube, 1000);
    assert!(!tree.on_host());
    same_tree(&tree.download().unwrap(), &Tree::octree(&points, cube, 1000), "1e9 apart, large leaves");
}

/// Memory that is too small at first grows, and what is there from another set is used again.
#[test]
fn memory_grows_and_is_used_again() {
    let Some(gpu) = gpu() else { return };
    gpu.enter().unwrap();
    let mut work = Work::default();
    let (mut tree, mut lists, mut position) = (DeviceTree::default(), DeviceLists::default(), Buffer::new());
    let rule = Rule { m2p_min_bodies: 1, p2l_min_bodies: 1, ..rules(1.0)[0] };
    let classes = Classes::new(rule.separation2);
    // A chain of cells with one child each has far more cells than bodies.
    let chain: Points = (0..300).map(|k| [0.5 + 1e-6 * f64::from(k % 3), f64::from(k / 3) * 0.01, 0.0]).collect();
    for points in [
        uniform(40, 0.0, 18).position,
        chain,
        uniform(20_000, 0.0, 19).position,
        line(50),
        plummer(30_000, 20).position,
    ] {
        let cube = Cube::around(&[&points]);
        position.upload(points.as_flattened()).unwrap();
        gpu.settle().unwrap();
        tree.build(&gpu, &mut work, &position, cube, 1).unwrap();
        let expected = Tree::octree(&points, cube, 1);
        same_tree(&tree.download().unwrap(), &expected, &format!("{} bodies", points.len()));
        lists.fmm(&gpu, &mut work, &Space::open(cube.side), &tree, &tree, rule, classes).unwrap();
        same_lists(
            &lists.download().unwrap(),
            &Lists::fmm(&expected, &expected, rule, classes),
            &format!("{} bodies", points.len()),
        );
    }
}

/// A narrow rule leaves far more to the next level than there is room for at first, on several levels.
#[test]
fn a_traversal_without_enough_room_starts_again() {
    let Some(gpu) = gpu() else { return };
    let mut work = Work::default();
    let points = uniform(6000, 0.0, 22).position;
    let cube = Cube::around(&[&points]);
    let tree = tree_of(&gpu, &mut work, &points, cube, 8);
    let expected = Tree::octree(&points, cube, 8);
    let rule = Rule { separation2: 30.0, ..rules(1.0)[0] };
    let classes = Classes::new(rule.separation2);
    let mut lists = DeviceLists::default();
    for _ in 0..2 {
        lists.fmm(&gpu, &mut work, &Space::open(cube.side), &tree, &tree, rule, classes).unwrap();
        same_lists(&lists.download().unwrap(), &Lists::fmm(&expected, &expected, rule, classes), "narrow");
    }
}

#[test]
fn repeats_have_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    let mut work = Work::default();
    let points = plummer(300_000, 21).position;
    let cube = Cube::around(&[&points]);
    let mut lists = DeviceLists::default();
    let rule = rules(1.0)[1];
    let mut first = None;
    for _ in 0..20 {
        let tree = tree_of(&gpu, &mut work, &points, cube, 50);
        lists
            .fmm(&gpu, &mut work, &Space::open(cube.side), &tree, &tree, rule, Classes::new(rule.separation2))
            .unwrap();
        let now = (tree.download().unwrap(), lists.download().unwrap());
        let first = first.get_or_insert_with(|| now.clone());
        assert!(*first == now);
    }
}
