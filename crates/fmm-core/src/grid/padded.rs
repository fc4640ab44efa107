//! A block with cells around it, on a grid of one level.

use super::blocks::{BLOCK, Block, CELLS, Grid, join, split};

/// Cells beyond a block that remeshing reaches; differences reach two.
pub const REACH: usize = 3;
/// Cells along a side of a block with these.
pub const WIDE: usize = BLOCK + 2 * REACH;

/// The place of a cell in a padded block, counted from its first.
pub fn wide_place([i, j, k]: [usize; 3]) -> usize {
    i + WIDE * (j + WIDE * k)
}

/// The values of a block and of [`REACH`] cells beyond; zero where there is no block of its level.
pub fn padded(grid: &Grid, field: &[[f64; 3]], block: Block) -> Vec<[f64; 3]> {
    padded_by(grid, field, block, REACH)
}

/// The same with `reach` cells beyond, up to a block.
pub fn padded_by(grid: &Grid, field: &[[f64; 3]], block: Block, reach: usize) -> Vec<[f64; 3]> {
    const SIDE: i64 = BLOCK as i64;
    // Blocks around are looked up once, not for each cell: the block itself is the 14th.
    let around: [Option<usize>; 27] = std::array::from_fn(|n| grid.number(neighbor(block, n)));
    let across = BLOCK + 2 * reach;
    let mut wide = vec![[0.0; 3]; across * across * across];
    for (n, value) in wide.iter_mut().enumerate() {
        let cell = [n % across, n / across % across, n / (across * across)].map(|i| i as i64 - reach as i64);
        let [x, y, z] = cell.map(|c| (c.div_euclid(SIDE) + 1) as usize);
        if let Some(b) = around[x + 3 * (y + 3 * z)] {
            *value = field[b * CELLS + join(cell.map(|c| c.rem_euclid(SIDE)))];
        }
    }
    wide
}

/// Neighbor `n` of 27 of a block, of its level; those below 0 wrap to where no block is.
pub fn neighbor(block: Block, n: usize) -> Block {
    let offset = [n % 3, n / 3 % 3, n / 9];
    let index = std::array::from_fn(|d| block.index[d].wrapping_add(offset[d] as u32).wrapping_sub(1));
    Block { level: block.level, index }
}

/// Whether cell `c` of a block is at most `reach` cells away from one of these of its 27 neighbors.
pub fn is_within(reach: usize, neighbors: &[bool; 27], c: usize) -> bool {
    let cell = split(c).map(|i| i as usize);
    (0..27).filter(|&n| neighbors[n]).any(|n| {
        let offset = [n % 3, n / 3 % 3, n / 9];
        (0..3).all(|d| match offset[d] {
            0 => cell[d] < reach,
            2 => cell[d] + reach >= BLOCK,
            _ => true,
        })
    })
}

impl Grid {
    /// Which of the 27 neighbors of a block, of its level, lie in larger blocks of the grid or have
    /// been split; `None` if there is none.
    pub fn other_levels(&self, block: Block) -> Option<[bool; 27]> {
        let is = |n: usize| {
            let near = neighbor(block, n);
            if near.index.iter().any(|&i| i >= self.base() << block.level) {
                return false;
            }
            let larger = || near.parent().is_some_and(|p| self.number(p).is_some());
            let smaller = || near.children().into_iter().any(|c| self.number(c).is_some());
            self.number(near).is_none() && (larger() || smaller())
        };
        let others = std::array::from_fn(is);
        others.contains(&true).then_some(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_values_are_those_of_the_cells_around() {
        let blocks = [[0, 0, 0], [1, 0, 0], [1, 1, 0]].map(|index| Block { level: 0, index });
        let grid = Grid::new([0.0; 3], 1.0, 2, blocks.to_vec());
        let field: Vec<[f64; 3]> = (0..grid.cells()).map(|i| grid.center_of(i / CELLS, i % CELLS)).collect();
        let first = blocks[0];
        for (reach, across) in [(REACH, WIDE), (6, BLOCK + 12)] {
            let wide = padded_by(&grid, &field, first, reach);
            for (n, value) in wide.into_iter().enumerate() {
                let cell = [n % across, n / across % across, n / (across * across)].map(|i| i as i64 - reach as i64);
                let there = cell[2] < 16 && cell.iter().all(|&c| c >= 0) && (cell[1] < 16 || cell[0] >= 16);
                let expected = if there { grid.center(first, cell) } else { [0.0; 3] };
                assert_eq!(value, expected, "{cell:?}");
            }
        }
    }
}
