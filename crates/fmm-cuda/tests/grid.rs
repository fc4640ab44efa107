//! The Poisson solver on grids with a device: direct sums and expansions against the solver on the cores and sums as the formulas stand, and the same
//! bits in every run.

use crate::common::{errors, gpu};
use fmm_core::grid::{Block, CELLS, Green, Grid, Ring, Rings, Solution, Solve, Solver};
use fmm_core::{Error, Precision, StageTimes};
use fmm_cuda::grid::fields::CudaFields;
use fmm_cuda::grid::{CudaSolver, Expanding};

/// Blocks of three levels.
fn nested() -> Grid {
    let coarse = Grid::uniform([-0.1, 0.2, 0.0], 1.2, 2);
    let (first, rest) = coarse.blocks().split_first().unwrap();
    let (inner, outer) = first.children().split_last().map(|(i, o)| (*i, o.to_vec())).unwrap();
    let blocks: Vec<Block> = rest.iter().copied().chain(outer).chain(inner.children()).collect();
    Grid::new([-0.1, 0.2, 0.0], 1.2, 2, blocks)
}

/// One in `every` cells has some vorticity.
fn scattered(grid: &Grid, every: usize) -> Vec<[f64; 3]> {
    let number = |i: usize| (i as f64 * 0.754_877_666_246_692_8 + 0.3).fract() - 0.5;
    let some = |i: usize| {
        if i % every == 5 % every { [0, 1, 2].map(|k| number(3 * i + k)) } else { [0.0; 3] }
    };
    (0..grid.cells()).map(some).collect()
}

fn device() -> Option<CudaSolver> {
    Some(CudaSolver::new(gpu()?, Solver::default(), Expanding::Device).unwrap())
}

fn on_device(
    device: &mut CudaSolver,
    (solver, expanding): (Solver, Expanding),
    grid: &Grid,
    field: &[[f64; 3]],
) -> (Solution, StageTimes) {
    let mut times = StageTimes::default();
    device.configure(solver, expanding).unwrap();
    let solution = device.solve(grid, field, &mut times).unwrap();
    (solution, times)
}

fn on_cores(solver: Solver, grid: &Grid, field: &[[f64; 3]]) -> Solution {
    solver.solve(grid, field, &mut StageTimes::default()).unwrap()
}

/// |a − b| in the rms of |b|: rms, and the largest. A cell may itself be next to nothing.
fn apart(found: &[[f64; 3]], expected: &[[f64; 3]]) -> [f64; 2] {
    let square = |v: [f64; 3]| v.iter().map(|v| v * v).sum::<f64>();
    let size = (expected.iter().map(|&v| square(v)).sum::<f64>() / expected.len() as f64).sqrt();
    let each = found.iter().zip(expected).map(|(a, b)| square(std::array::from_fn(|k| a[k] - b[k])).sqrt() / size);
    let (mut sum, mut worst) = (0.0, 0.0);
    for e in each {
        assert!(e.is_finite());
        sum += e * e;
        worst = f64::max(worst, e);
    }
    [(sum / found.len() as f64).sqrt(), worst]
}

#[test]
fn direct_sums_are_those_of_the_cores() {
    let Some(mut device) = device() else { return };
    for (grid, every) in [(nested(), 97), (Grid::uniform([1e3, -3.0, 0.0], 1.0, 3), 7)] {
        let field = scattered(&grid, every);
        for green in [Green::Singular, Green::Regularised] {
            let solver = Solver { green, theta: 0.0, precision: Precision::F64, ..Solver::default() };
            let (found, times) = on_device(&mut device, (solver, Expanding::Cores), &grid, &field);
            let expected = on_cores(solver, &grid, &field);
            assert_eq!(found.work, expected.work);
            for (a, b) in [(&found.psi, &expected.psi), (&found.velocity, &expected.velocity)] {
                let [rms, worst] = apart(a, b);
                assert!(rms < 2e-14 && worst < 1e-12, "{green:?} {every}: {rms:e} {worst:e}");
            }
            assert_eq!((times.calls(fmm_core::Stage::P2P), times.calls(fmm_core::Stage::M2P)), (1, 0));
        }
    }
}

#[test]
fn direct_sums_are_those_of_the_formulas() {
    let Some(mut device) = device() else { return };
    let (grid, field) = (nested(), scattered(&nested(), 97));
    let cells: Vec<u32> = (0..grid.cells() as u32).filter(|i| i % 1999 == 3 || i % 9700 == 5).collect();
    for green in [Green::Singular, Green::Regularised] {
        let solver = Solver { green, theta: 0.0, ..Solver::default() };
        let (found, _) = on_device(&mut device, (solver, Expanding::Device), &grid, &field);
        let (psi, velocity) = solver.direct_at(&grid, &field, &cells);
        let some = |f: &[[f64; 3]]| -> Vec<[f64; 3]> { cells.iter().map(|&i| f[i as usize]).collect() };
        for (a, b) in [(some(&found.psi), psi), (some(&found.velocity), velocity)] {
            let (rms, worst) = errors(&a, &b);
            assert!(rms < 1e-13 && worst < 5e-12, "{green:?}: {rms:e} {worst:e}");
        }
    }
}

#[test]
fn expansions_on_either_are_those_of_the_cores() {
    let Some(mut device) = device() else { return };
    let grid = nested();
    let field = scattered(&grid, 41);
    for green in [Green::Singular, Green::Regularised] {
        for (order, theta) in [(1, 0.5), (6, 0.5), (7, 0.4), (12, 0.3), (30, 0.6)] {
            let usual = Solver { green, order, theta, leaf_size: 64, split: Some(24), ..Solver::default() };
            let solver = Solver { precision: Precision::F64, ..usual };
            let expected = on_cores(solver, &grid, &field);
            assert!(expected.work.indirect > 0);
            for expanding in [Expanding::Cores, Expanding::Device] {
                let (found, _) = on_device(&mut device, (solver, expanding), &grid, &field);
                assert_eq!(found.work, expected.work);
                for (a, b) in [(&found.psi, &expected.psi), (&found.velocity, &expected.velocity)] {
                    let [rms, worst] = apart(a, b);
                    assert!(rms < 2e-13 && worst < 1e-11, "{green:?} {order} {expanding:?}: {rms:e} {worst:e}");
                }
            }
        }
    }
}

#[test]
fn the_split_is_chosen_told_and_taken_back() {
    let Some(mut solver) = device() else { return };
    let rings = Rings(vec![Ring::of_paper([0.5; 3], [0.0, 0.6, 0.8], 0.25)]);
    let grid = Grid::uniform([0.0; 3], 1.0, 4);
    let field = grid.sample(&rings);
    let usual = Solver { leaf_size: 64, ..Solver::default() };
    solver.configure(usual, Expanding::Cores).unwrap();
    let first = solver.solve(&grid, &field, &mut StageTimes::default()).unwrap();
    let (split, rates) = (solver.settings().split, solver.rates().unwrap());
    assert_eq!(split, Some(first.work.split));
    assert!(rates.direct > 1e8 && rates.indirect > 1e6, "{rates:?}");
    // A second sum has the same split and result, and so has a solver that is given this split.
    assert!(solver.solve(&grid, &field, &mut StageTimes::default()).unwrap() == first);
    let (again, _) = on_device(&mut solver, (Solver { split, ..usual }, Expanding::Cores), &grid, &field);
    assert!(again == first);
    // Another split moves work, and errors stay what they are.
    let exact = on_cores(Solver { theta: 0.0, precision: Precision::F64, ..usual }, &grid, &field);
    for split in [0, 30, 100_000] {
        let with = (Solver { split: Some(split), ..usual }, Expanding::Cores);
        let (s, _) = on_device(&mut solver, with, &grid, &field);
        assert_eq!((s.work.split, s.work.indirect == 0), (split, split == 100_000));
        assert!(apart(&s.psi, &exact.psi)[0] < 1e-4 && apart(&s.velocity, &exact.velocity)[0] < 1e-3);
    }
}

#[test]
fn repeats_have_the_same_bits() {
    let Some(mut solver) = device() else { return };
    let grid = nested();
    let field = scattered(&grid, 2);
    let settings = Solver { leaf_size: 100, split: Some(40), correction: true, ..Solver::default() };
    solver.configure(settings, Expanding::Cores).unwrap();
    let first = solver.solve(&grid, &field, &mut StageTimes::default()).unwrap();
    for repeat in 0..20 {
        assert!(solver.solve(&grid, &field, &mut StageTimes::default()).unwrap() == first, "{repeat}");
    }
    for expanding in [Expanding::Cores, Expanding::Device] {
        let mut run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| on_device(&mut solver, (settings, expanding), &grid, &field).0)
        };
        let one = run(1);
        assert!(one == run(3) && one.work.sources > 40_000);
        assert!(expanding == Expanding::Device || one == first);
    }
}

#[test]
fn solutions_of_a_flow_for_the_same_cells_share_a_plan_and_keep_their_bits() {
    // Here alone: its `solve` is not that of a solver.
    use fmm_core::grid::flow::FieldStore;
    let grid = nested();
    let times_of = |f: f64| scattered(&grid, 7).iter().map(|w| w.map(|w| f * w)).collect::<Vec<[f64; 3]>>();
    // Other cells have other lists.
    let fields = [times_of(1.0), times_of(-3.0), scattered(&grid, 8)];
    let settings = Solver { leaf_size: 100, split: Some(40), ..Solver::default() };
    for expanding in [Expanding::Cores, Expanding::Device] {
        let Some(mut solver) = device() else { return };
        let alone = fields.each_ref().map(|field| on_device(&mut solver, (settings, expanding), &grid, field).0);
        let mut store = CudaFields::new(solver);
        for (which, lists) in [(0, 1), (1, 0), (0, 0), (2, 1), (1, 1)] {
            let (vorticity, mut times) = (store.upload(fields[which].clone()).unwrap(), StageTimes::default());
            let Solution { psi, velocity, work } = store.solve(&grid, &vorticity, &mut times).unwrap();
            let [psi, velocity] = [psi, velocity].map(|field| store.download(&field).unwrap().into_owned());
            assert!(Solution { psi, velocity, work } == alone[which], "{expanding:?} {which}");
            assert_eq!(times.calls(fmm_core::Stage::Lists), lists, "{expanding:?} {which}");
        }
    }
}

#[test]
fn arrays_grow_and_shrink_from_one_to_the_next() {
    let Some(mut solver) = device() else { return };
    let settings = Solver { leaf_size: 64, split: Some(24), precision: Precision::F64, ..Solver::default() };
    solver.configure(settings, Expanding::Device).unwrap();
    for (grid, every) in [
        (Grid::uniform([0.0; 3], 1.0, 1), 7),
        (nested(), 5),
        (Grid::uniform([0.0; 3], 1e-30, 1), 100),
        (Grid::uniform([0.0; 3], 1e20, 2), 3),
        (Grid::uniform([0.0; 3], 1.0, 1), usize::MAX),
    ] {
        let field = scattered(&grid, every);
        let expected = on_cores(settings, &grid, &field);
        let found = solver.solve(&grid, &field, &mut StageTimes::default()).unwrap();
        assert_eq!(found.work, expected.work);
        if expected.work.sources > 1 {
            assert!(
                apart(&found.psi, &expected.psi)[0] < 1e-13 && apart(&found.velocity, &expected.velocity)[0] < 1e-13
            );
        }
    }
    let grid = Grid::uniform([0.0; 3], 1.0, 1);
    let none = solver.solve(&grid, &vec![[0.0; 3]; CELLS], &mut StageTimes::default()).unwrap();
    assert_eq!((none.work.sources, none.psi[17], none.velocity[17]), (0, [0.0; 3], [0.0; 3]));
    let mut broken = vec![[0.0; 3]; CELLS];
    broken[9][1] = f64::NAN;
    let refused = solver.solve(&grid, &broken, &mut StageTimes::default());
    assert!(matches!(refused, Err(Error::NotFinite { index: 9, .. })));
}
