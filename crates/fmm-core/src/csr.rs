//! Rows of variable length in one array (compressed sparse rows).

use std::ops::Range;

/// Rows of entries, one row a target, so that every target is written by its owner alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Csr<T> {
    /// First entry of each row, and one past the last entry. `[rows + 1]`
    pub start: Vec<u64>,
    /// The entries of all rows. `[start[rows]]`
    pub items: Vec<T>,
}

impl<T> Csr<T> {
    /// The entries of a row.
    pub fn row(&self, row: usize) -> &[T] {
        &self.items[self.range(row)]
    }

    /// The places of a row among the entries.
    pub fn range(&self, row: usize) -> Range<usize> {
        self.start[row] as usize..self.start[row + 1] as usize
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    /// The number of entries of all rows.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether all rows are empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<T: Clone> From<Vec<Vec<T>>> for Csr<T> {
    fn from(rows: Vec<Vec<T>>) -> Self {
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len() as u64;
            Some(*end)
        });
        Csr { start: std::iter::once(0).chain(ends).collect(), items: rows.concat() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_given() {
        let csr = Csr::from(vec![vec![3, 1], vec![], vec![7]]);
        assert_eq!((csr.start.as_slice(), csr.rows(), csr.len()), (&[0, 2, 2, 3][..], 3, 3));
        assert_eq!([csr.row(0), csr.row(1), csr.row(2)], [&[3, 1][..], &[], &[7]]);
        assert!(Csr::<u32>::default().is_empty() && Csr::<u32>::default().rows() == 0);
    }
}
