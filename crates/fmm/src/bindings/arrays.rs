//! Flat arrays of numbers as points of the library.

use super::Failure;
use crate::{Error, ErrorKind, in_order};

/// Borrowed arrays of a caller, rows one after another.
#[derive(Debug, Clone, Copy)]
pub struct Arrays<'a> {
    /// Number of axes, 1 to 3.
    pub dimension: usize,
    /// Positions of the sources. `[n][dimension]`
    pub sources: &'a [f64],
    /// Columns of strengths. `[columns][n]`
    pub strengths: &'a [&'a [f64]],
    /// Positions of the targets; `None`: the sources. `[m][dimension]`
    pub targets: Option<&'a [f64]>,
    /// Pairs of sources that do not interact, counted from 0. `[pairs]`
    pub exclusions: &'a [[i64; 2]],
}

impl Arrays<'_> {
    /// Number of pairs of a source and a target.
    pub fn pairs(&self) -> f64 {
        let rows = |values: &[f64]| (values.len() / self.dimension) as f64;
        rows(self.sources) * rows(self.targets.unwrap_or(self.sources))
    }

    /// Number of sources and other targets.
    pub fn bodies(&self) -> usize {
        (self.sources.len() + self.targets.map_or(0, <[f64]>::len)) / self.dimension
    }

    /// The exclusions, checked and in order.
    ///
    /// # Errors
    /// [`Error::Request`] for an index that is no source's, and for a pair that is given twice.
    pub(super) fn excluded(&self) -> Result<Vec<[usize; 2]>, Error> {
        let refused = |why| Error::Request { parameter: "exclusions", why };
        let n = self.sources.len() / self.dimension;
        let index = |i: i64| {
            let known = usize::try_from(i).ok().filter(|&i| i < n);
            known.ok_or_else(|| refused(format!("{i} is not one of {n} sources, counted from 0")))
        };
        let pairs = self.exclusions.iter().map(|&[i, j]| Ok([index(i)?, index(j)?]));
        in_order(pairs.collect::<Result<_, Error>>()?)
            .map_err(|[i, j]| refused(format!("the pair {i}, {j} is given twice")))
    }

    /// The failure for values that are not finite, with the array and the row of the first.
    pub(super) fn not_finite(&self) -> Failure {
        let of = |name: &str, values: &[f64], width: usize| {
            let at = values.iter().position(|v| !v.is_finite())?;
            Some(format!("{name}: row {} (counted from 0) holds {}, which is not finite", at / width, values[at]))
        };
        let strengths = || self.strengths.iter().find_map(|column| of("strengths", column, 1));
        let found = of("sources", self.sources, self.dimension)
            .or_else(strengths)
            .or_else(|| self.targets.and_then(|t| of("targets", t, self.dimension)));
        Failure::Sum(ErrorKind::Data, found.unwrap_or_else(|| "a value is not finite".into()))
    }
}

/// Rows of three numbers: those of an array, or a copy with zeros beyond its columns.
pub(super) enum Rows<'a> {
    Borrowed(&'a [[f64; 3]]),
    Padded(Vec<[f64; 3]>),
}

impl<'a> Rows<'a> {
    pub fn of(values: &'a [f64], dimension: usize) -> Self {
        if dimension == 3 {
            return Rows::Borrowed(values.as_chunks().0);
        }
        let row = |row: &[f64]| std::array::from_fn(|d| row.get(d).copied().unwrap_or(0.0));
        Rows::Padded(values.chunks_exact(dimension).map(row).collect())
    }

    pub fn get(&self) -> &[[f64; 3]] {
        match self {
            Rows::Borrowed(rows) => rows,
            Rows::Padded(rows) => rows,
        }
    }
}

/// The first `width` components of each vector, one after another. `[m · width]`
pub fn components(field: Vec<[f64; 3]>, width: usize) -> Vec<f64> {
    match width {
        3 => field.into_flattened(),
        width => field.iter().flat_map(|e| e[..width].iter().copied()).collect(),
    }
}
