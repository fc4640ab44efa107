//! A block with cells around it, on a grid of one level.

use super::blocks::{BLOCK, Block, Grid};

/// Cells beyond a block that remeshing reaches; differences reach two.
pub const REACH: usize = 3;
/// Cells along a side of a block with these.
pub const WIDE: usize = BLOCK + 2 * REACH;

/// The place of a cell in a padded block, counted from its first.
pub fn wide_place([i, j, k]: [usize; 3]) -> usize {
    i + WIDE * (j + WIDE * k)
}

/// The cells of a block and of its 26 neighbors, of its level, where there are blocks: of 27 the
/// block itself is the 14th.
pub type Around<'a, const N: usize> = [Option<&'a [[f64; N]]>; 27];

/// The values in a cube of `across`³ cells, the first of which is cell `first` of the block in the
/// middle; zero where there is no block.
pub fn cube<const N: usize>(around: &Around<N>, first: [i64; 3], across: usize) -> Vec<[f64; N]> {
    const SIDE: i64 = BLOCK as i64;
    // Along an axis: the first cell that a neighbor has in the cube, as the cube and as the
    // neighbor count, and how many it has.
    let part = |d: usize, offset: usize| {
        let begin = SIDE * (offset as i64 - 1);
        let (from, to) = (begin.max(first[d]), (begin + SIDE).min(first[d] + across as i64));
        ((from - first[d]) as usize, (from - begin) as usize, (to - from).max(0) as usize)
    };
    let mut values = bytemuck::zeroed_vec(across * across * across);
    for (n, cells) in around.iter().enumerate() {
        let Some(cells) = cells else { continue };
        let [x, y, z] = [part(0, n % 3), part(1, n / 3 % 3), part(2, n / 9)];
        if x.2 == 0 {
            continue;
        }
        for k in 0..z.2 {
            for j in 0..y.2 {
                let to = x.0 + across * (y.0 + j + across * (z.0 + k));
                let from = x.1 + BLOCK * (y.1 + j + BLOCK * (z.1 + k));
                values[to..to + x.2].copy_from_slice(&cells[from..from + x.2]);
            }
        }
    }
    values
}

/// The values of a block and of `reach` cells beyond, up to a block.
pub fn padded<const N: usize>(around: &Around<N>, reach: usize) -> Vec<[f64; N]> {
    cube(around, [-(reach as i64); 3], BLOCK + 2 * reach)
}

/// Neighbor `n` of 27 of a block, of its level; those below 0 wrap to where no block is.
pub fn neighbor(block: Block, n: usize) -> Block {
    let offset = [n % 3, n / 3 % 3, n / 9];
    let index = std::array::from_fn(|d| block.index[d].wrapping_add(offset[d] as u32).wrapping_sub(1));
    Block { level: block.level, index }
}

/// For each of a block's neighbors a bit: those that the cells of a block are at most `reach` cells
/// away from.
pub struct Within([[u32; BLOCK]; 3]);

impl Within {
    /// Up to a block.
    pub fn new(reach: usize) -> Self {
        let is_near = |offset: usize, i: usize| match offset {
            0 => i < reach,
            2 => i + reach >= BLOCK,
            _ => true,
        };
        let bits = |d: u32, i: usize| {
            let near = (0..27usize).filter(|n| is_near(n / 3usize.pow(d) % 3, i));
            near.map(|n| 1 << n).sum::<u32>()
        };
        Within([0, 1, 2].map(|d| std::array::from_fn(|i| bits(d, i))))
    }

    /// Whether cell `c` is that near to one of these neighbors.
    pub fn any(&self, neighbors: u32, c: usize) -> bool {
        let [i, j, k] = [c % BLOCK, c / BLOCK % BLOCK, c / (BLOCK * BLOCK)];
        neighbors & self.0[0][i] & self.0[1][j] & self.0[2][k] != 0
    }
}

impl Grid {
    /// A bit for each of the 27 neighbors of a block, of its level, that lies in a larger block of
    /// the grid or has been split.
    pub fn other_levels(&self, block: Block) -> u32 {
        let is = |n: usize| {
            let near = neighbor(block, n);
            if near.index.iter().any(|&i| i >= self.base() << block.level) {
                return false;
            }
            let larger = || near.parent().is_some_and(|p| self.number(p).is_some());
            let smaller = || near.children().into_iter().any(|c| self.number(c).is_some());
            self.number(near).is_none() && (larger() || smaller())
        };
        (0..27).filter(|&n| is(n)).map(|n| 1 << n).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::CELLS;
    use super::*;

    #[test]
    fn padded_values_are_those_of_the_cells_around() {
        let blocks = [[0, 0, 0], [1, 0, 0], [1, 1, 0]].map(|index| Block { level: 0, index });
        let grid = Grid::new([0.0; 3], 1.0, 2, blocks.to_vec());
        let field: Vec<[f64; 3]> = (0..grid.cells()).map(|i| grid.center_of(i / CELLS, i % CELLS)).collect();
        let first = blocks[0];
        for (reach, across) in [(REACH, WIDE), (6, BLOCK + 12)] {
            let cells = |n: usize| grid.number(neighbor(first, n)).map(|b| &field[b * CELLS..(b + 1) * CELLS]);
            let wide = padded(&std::array::from_fn(cells), reach);
            for (n, value) in wide.into_iter().enumerate() {
                let cell = [n % across, n / across % across, n / (across * across)].map(|i| i as i64 - reach as i64);
                let there = cell[2] < 16 && cell.iter().all(|&c| c >= 0) && (cell[1] < 16 || cell[0] >= 16);
                let expected = if there { grid.center(first, cell) } else { [0.0; 3] };
                assert_eq!(value, expected, "{cell:?}");
            }
        }
    }
}
