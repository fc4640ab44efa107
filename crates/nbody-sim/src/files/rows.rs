//! Arrays of particles by ranges of their rows, so that nobody needs to have all of them.

use std::borrow::Cow;
use std::ops::Range;

use super::snapshot::{Field, Layout, Snapshot};

/// Particles in the order of their ids, in memory or on other ranks.
pub trait Rows {
    /// Number of particles.
    fn count(&self) -> usize;

    /// Whether the particles have this field.
    fn has(&self, field: Field) -> bool;

    /// Their ids in these rows.
    fn ids(&self, rows: Range<usize>) -> Cow<'_, [u64]>;

    /// The values of a field in these rows, the components of a particle one after the other.
    ///
    /// # Panics
    /// If the particles do not have it, or it has no floating-point numbers.
    fn floats(&self, field: Field, rows: Range<usize>) -> Cow<'_, [f64]>;

    /// Checks that all that `layout` wants can be written.
    ///
    /// # Errors
    /// What is wrong, as [`Snapshot::check`] says it.
    fn check(&self, layout: &Layout) -> Result<(), String>;

    /// The least and the largest coordinates; none without particles.
    fn bounds(&self) -> Option<[[f64; 3]; 2]> {
        let mut bounds = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
        for rows in pieces(self.count()) {
            for x in self.floats(Field::Position, rows).chunks_exact(3) {
                for k in 0..3 {
                    (bounds[0][k], bounds[1][k]) = (bounds[0][k].min(x[k]), bounds[1][k].max(x[k]));
                }
            }
        }
        (self.count() > 0).then_some(bounds)
    }
}

/// All of `count` rows, some at a time.
pub fn pieces(count: usize) -> impl Iterator<Item = Range<usize>> {
    const PIECE: usize = 1 << 16;
    (0..count).step_by(PIECE).map(move |start| start..count.min(start + PIECE))
}

impl Rows for Snapshot {
    fn count(&self) -> usize {
        self.id.len()
    }

    fn has(&self, field: Field) -> bool {
        field == Field::Id || self.floats(field).is_some()
    }

    fn ids(&self, rows: Range<usize>) -> Cow<'_, [u64]> {
        Cow::Borrowed(&self.id[rows])
    }

    fn floats(&self, field: Field, rows: Range<usize>) -> Cow<'_, [f64]> {
        let (values, width) = self.floats(field).expect("a field that is there");
        Cow::Borrowed(&values[rows.start * width..rows.end * width])
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        self.check(layout)
    }
}
