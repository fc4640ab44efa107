//! Cells with vorticity, and their octree.

use rayon::prelude::*;

use super::blocks::{CELLS, Grid};
use super::green::Green;
use crate::math::CollectVec;
use crate::math::scale::strength_scale;
use crate::tree::{Cube, Tree};

/// Cells with vorticity, as they follow each other in the grid: what is known before there is a tree.
pub struct Cells {
    /// Their numbers in the grid.
    pub number: Vec<u32>,
    /// Centers.
    pub center: Vec<[f64; 3]>,
    /// ω h³ times [`scale`](Cells::scale).
    pub strength: Vec<[f64; 3]>,
    /// ε²; zero for the singular kernel.
    pub core2: Vec<f64>,
    /// A power of two.
    pub scale: f64,
}

/// Vorticity below this part of the largest counts as none: single precision would not hold it.
const NEGLIGIBLE: f64 = 1e-30;

impl Cells {
    /// The numbers of the cells whose `vorticity` acts: all that is neither zero nor below 1e-30 of the largest.
    pub fn numbers(vorticity: &[[f64; 3]]) -> Vec<u32> {
        let largest = |w: &[f64; 3]| w.iter().fold(0.0, |m: f64, w| m.max(w.abs()));
        let least = NEGLIGIBLE * vorticity.par_iter().map(largest).reduce(|| 0.0, f64::max);
        let acts = |w: &[f64; 3]| *w != [0.0; 3] && largest(w) >= least;
        let by_block: Vec<Vec<u32>> = vorticity
            .par_chunks(CELLS)
            .enumerate()
            .map(|(b, w)| (0..CELLS).filter(|&c| acts(&w[c])).map(|c| (b * CELLS + c) as u32).collect())
            .collect_vec();
        by_block.into_iter().flatten().collect()
    }

    /// The cells of `grid` where `vorticity` is not zero.
    pub fn new(grid: &Grid, vorticity: &[[f64; 3]], green: Green) -> Self {
        let number = Cells::numbers(vorticity);
        let center = |&cell: &u32| grid.center_of(cell as usize / CELLS, cell as usize % CELLS);
        let spacing = |cell: u32| grid.spacing(grid.blocks()[cell as usize / CELLS].level);
        let strength = |&cell: &u32| {
            let volume = spacing(cell).powi(3);
            vorticity[cell as usize].map(|w| w * volume)
        };
        let mut strength: Vec<[f64; 3]> = number.par_iter().map(strength).collect_vec();
        let scale = strength_scale(strength.as_flattened());
        strength.par_iter_mut().for_each(|q| *q = q.map(|q| q * scale));
        Cells {
            center: number.par_iter().map(center).collect_vec(),
            core2: number.par_iter().map(|&cell| green.core(spacing(cell)).powi(2)).collect_vec(),
            number,
            strength,
            scale,
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.number.len()
    }

    /// Whether there is no vorticity.
    pub fn is_empty(&self) -> bool {
        self.number.is_empty()
    }
}

/// Cells with vorticity in the order of their tree.
pub struct Sources {
    /// The tree; its `order` is sorted place → place among the [`Cells`].
    pub tree: Tree<3>,
    /// Centers, one array an axis.
    pub x: [Vec<f64>; 3],
    /// ω h³ times [`scale`](Sources::scale), one array a component.
    pub strength: [Vec<f64>; 3],
    /// ε²; zero for the singular kernel.
    pub core2: Vec<f64>,
    /// A power of two.
    pub scale: f64,
    /// Largest distance of a source from the center of each cell of the tree.
    pub radius: Vec<f64>,
    /// Largest ε in each cell of the tree.
    pub core: Vec<f64>,
}

impl Sources {
    /// The cells of `grid` where `vorticity` is not zero, with at most `leaf_size` in a leaf.
    pub fn new(grid: &Grid, vorticity: &[[f64; 3]], green: Green, leaf_size: usize) -> Self {
        Sources::of(grid, &Cells::new(grid, vorticity, green), leaf_size)
    }

    /// `cells` of `grid` in a tree with at most `leaf_size` in a leaf.
    pub fn of(grid: &Grid, cells: &Cells, leaf_size: usize) -> Self {
        let tree = Tree::octree(&cells.center, Cube { corner: grid.corner(), side: grid.side() }, leaf_size);
        let sorted = |of: &[[f64; 3]], d: usize| tree.order.par_iter().map(|&i| of[i as usize][d]).collect_vec();
        let mut sources = Sources {
            x: [0, 1, 2].map(|d| sorted(&cells.center, d)),
            strength: [0, 1, 2].map(|d| sorted(&cells.strength, d)),
            core2: tree.order.par_iter().map(|&i| cells.core2[i as usize]).collect_vec(),
            scale: cells.scale,
            radius: vec![],
            core: vec![],
            tree,
        };
        let largest = |cell: usize| {
            let (c, mut radius2, mut core2) = (sources.tree.center[cell], 0.0f64, 0.0f64);
            for i in sources.tree.body_range(cell) {
                let d = [0, 1, 2].map(|d| sources.x[d][i] - c[d]);
                radius2 = radius2.max(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
                core2 = core2.max(sources.core2[i]);
            }
            (radius2.sqrt(), core2.sqrt())
        };
        let (mut radius, mut core) = (vec![], vec![]);
        (0..sources.tree.len()).into_par_iter().map(largest).unzip_into_vecs(&mut radius, &mut core);
        (sources.radius, sources.core) = (radius, core);
        sources
    }

    /// Gives the sources the strengths of other `cells`, whose numbers and centers are the same.
    pub fn strengthen(&mut self, cells: &Cells) {
        let sorted = |d: usize| self.tree.order.par_iter().map(|&i| cells.strength[i as usize][d]).collect_vec();
        self.strength = [0, 1, 2].map(sorted);
        self.scale = cells.scale;
    }

    /// Number of sources.
    pub fn len(&self) -> usize {
        self.core2.len()
    }

    /// Whether there is no vorticity.
    pub fn is_empty(&self) -> bool {
        self.core2.is_empty()
    }
}
