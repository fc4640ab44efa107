//! Milliseconds that a GPU takes for keys, sort, cells and lists, and whether they are the CPU's.
//!
//! `cargo run --release --example tree_speed -- [N]...` prints one JSON object a line: medians of repeats by the device's clock,
//! and by the host's for tree and lists with everything between.

#[path = "../tests/common.rs"]
mod common;

use std::collections::BTreeMap;
use std::time::Instant;

use fmm_core::accuracy::{self, Problem};
use fmm_core::lists::{Classes, Lists, Space};
use fmm_core::tree::{Cube, Tree};
use fmm_core::{Method, Precision, Settings};
use fmm_cuda::geometry::{DeviceLists, DeviceTree, Work};
use fmm_cuda::{Buffer, Gpu};

const REPEATS: usize = 15;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sizes: Vec<usize> = std::env::args().skip(1).map(|n| n.parse()).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![1_000_000, 10_000_000];
    }
    let gpu = Gpu::open(0)?;
    eprintln!("{:?}", gpu.description());
    for n in sizes {
        for (set, particles) in [("uniform", common::uniform(n, 0.0, 1)), ("plummer", common::plummer(n, 1))] {
            for tolerance in [1e-3, 1e-5] {
                case(&gpu, n, set, &particles.position, &particles.strength, tolerance)?;
            }
        }
    }
    Ok(())
}

fn case(
    gpu: &Gpu,
    n: usize,
    set: &str,
    points: &[[f64; 3]],
    strength: &[f64],
    tolerance: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let settings = Settings { method: Method::Fmm, precision: Precision::F32, tolerance, ..Settings::default() };
    let cube = Cube::around(&[points]);
    let choice = accuracy::choose(&settings, Problem::of(points, &[strength], n, &cube))?;
    let rule = accuracy::rule(&settings, &choice);
    let classes = Classes::new(rule.separation2);
    gpu.enter()?;
    let mut position = Buffer::new();
    position.upload(points.as_flattened())?;
    let (mut work, mut tree, mut lists) = (Work::default(), DeviceTree::default(), DeviceLists::default());
    let mut stages: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let (mut tree_wall, mut wall) = (vec![], vec![]);
    for repeat in 0..REPEATS {
        gpu.finish()?;
        work.start_clock();
        let start = Instant::now();
        tree.build(gpu, &mut work, &position, cube, choice.leaf_size)?;
        let built = start.elapsed();
        lists.fmm(gpu, &mut work, &Space::open(cube.side), &tree, &tree, rule, classes)?;
        let all = start.elapsed();
        let marks = work.stop_clock(gpu)?;
        // The first has to find out how much memory is needed.
        if repeat > 0 {
            for (stage, ms) in marks {
                stages.entry(stage).or_default().push(ms);
            }
            tree_wall.push(built.as_secs_f64() * 1e3);
            wall.push(all.as_secs_f64() * 1e3);
        }
    }
    let own_tree = tree.download()?;
    let own_lists = lists.download()?;
    let cpu_tree = Tree::octree(points, cube, choice.leaf_size);
    let cpu_lists = Lists::fmm(&cpu_tree, &cpu_tree, rule, classes);
    let stages: Vec<String> = stages.into_iter().map(|(stage, ms)| format!("\"{stage}\": {:.4}", median(ms))).collect();
    println!(
        "{{\"n\": {n}, \"set\": \"{set}\", \"tolerance\": {tolerance:e}, \"leaf_size\": {}, \"cells\": {}, \"levels\": {}, \
         \"m2l\": {}, \"m2p\": {}, \"p2l\": {}, \"p2p\": {}, \"ms\": {{{}}}, \"tree_wall_ms\": {:.4}, \"wall_ms\": {:.4}, \
         \"tree_is_the_cpus\": {}, \"lists_are_the_cpus\": {}}}",
        choice.leaf_size,
        own_tree.len(),
        own_tree.levels(),
        own_lists.m2l.len(),
        own_lists.m2p.len(),
        own_lists.p2l.len(),
        own_lists.p2p.len(),
        stages.join(", "),
        median(tree_wall),
        median(wall),
        own_tree == cpu_tree,
        own_lists == cpu_lists
    );
    Ok(())
}
