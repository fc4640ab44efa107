//! What a choice depends on: how many bodies, how they lie, which signs they have.

use rayon::prelude::*;

use super::FEW_PAIRS;
use crate::guard::FLOOR;
use crate::math::CollectVec;
use crate::mesh::recipe::Rates;
use crate::settings::{Method, Settings};
use crate::tree::Cube;
use crate::tree::key::{levels_per_key, morton};

/// What the choice depends on besides the settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Number of sources.
    pub sources: usize,
    /// Number of targets.
    pub targets: usize,
    /// How the sources lie and which signs they have.
    pub kind: Kind,
    /// How many times more bodies a body sees around it than if they filled the cube evenly: 1 for a filled cube, 1.9 for a ball.
    pub crowding: f64,
    /// Side of the leaves where the sources are dense (the tenth part that has the smallest).
    pub dense_leaf: f64,
    /// Side of the cube around all bodies.
    pub side: f64,
    /// The largest strength over the smallest that is not zero.
    pub strength_range: f64,
    /// What sums with a mesh cost, if the place and what is asked for know them.
    pub mesh: Option<Rates>,
    /// How strong fields are in a box, where some were summed beforehand: see [`Problem::field_of`].
    pub field: Option<f64>,
}

impl Problem {
    /// The problem of `sources` with these columns of strengths at `targets` points, in `cube`.
    pub fn of<const D: usize>(sources: &[[f64; D]], columns: &[&[f64]], targets: usize, cube: &Cube<D>) -> Self {
        Problem::new(sources.len(), targets, Strengths::of(columns), &Spread::of(sources, cube), cube)
    }

    /// The same problem, from statistics of the bodies alone. The bodies need not be in host
    /// memory.
    pub fn new<const D: usize>(
        sources: usize,
        targets: usize,
        strengths: Strengths,
        spread: &Spread<D>,
        cube: &Cube<D>,
    ) -> Self {
        Problem {
            sources,
            targets,
            kind: Kind::of(strengths, spread),
            crowding: spread.crowding(),
            dense_leaf: cube.side * 0.5f64.powi(spread.dense_level as i32),
            side: cube.side,
            strength_range: strengths.largest / strengths.smallest,
            mesh: None,
            field: None,
        }
    }

    /// The same problem for bodies with periodic images. The background cancels most of the forces
    /// in a filled box, so what remains is small compared with the errors.
    pub fn in_box(self) -> Self {
        let kind = if self.kind == Kind::Filling { Kind::Cancelling } else { self.kind };
        Problem { kind, ..self }
    }

    /// How strong fields of this size are, where a thousandth of a largest term is the least that counts: in units of
    /// those of ions up to a quarter of a spacing from the places of a lattice, over the rms strength and the square of
    /// the spacing. Of rms and of the mean that relative errors have the smaller.
    pub fn field_of(fields: &[[f64; 3]], largest: &[f64], volume: f64, strengths: &[f64]) -> f64 {
        let (n, largest_strength) = (strengths.len() as f64, strengths.iter().fold(0.0, |m: f64, q| m.max(q.abs())));
        // The rms of strengths that may have any size.
        let rms = largest_strength * (strengths.iter().map(|q| (q / largest_strength).powi(2)).sum::<f64>() / n).sqrt();
        let spacing = (volume / n).cbrt();
        let in_units = |c: f64| c * spacing / rms * spacing;
        let square = |(e, largest): (&[f64; 3], &f64)| {
            let e2: f64 = e.iter().map(|&c| in_units(c).powi(2)).sum();
            e2.max(FLOOR * in_units(*largest).powi(2))
        };
        let squares: Vec<f64> = fields.iter().zip(largest).map(square).collect();
        let root_mean =
            |of: fn(f64) -> f64| (squares.iter().map(|&e2| of(e2)).sum::<f64>() / squares.len() as f64).sqrt();
        (root_mean(|e2| e2) / IONS[0]).min(1.0 / root_mean(f64::recip) / IONS[1])
    }

    /// The target error at which tables of random charges, or of ions if `ions`, have `target_error` of this problem.
    pub(super) fn table_error(&self, target_error: f64, ions: bool) -> f64 {
        let Some(field) = self.field.filter(|f| f.is_finite()) else { return target_error };
        let field = if ions { field } else { field / RANDOM };
        target_error * (FIELD_SHARE * field).clamp(0.02, 50.0)
    }

    /// Whether fields at a few targets are summed before anything is chosen: not where all may be summed directly.
    pub fn is_worth_a_look(&self, settings: &Settings) -> bool {
        settings.guarded().is_some() && settings.method != Method::Direct && self.pairs() > FEW_PAIRS
    }

    /// Pairs of a source and a target.
    pub fn pairs(&self) -> f64 {
        self.sources as f64 * self.targets as f64
    }

    /// The same problem where sums with a mesh are known, too.
    pub fn with_mesh(self, mesh: Option<Rates>) -> Self {
        Problem { mesh, ..self }
    }
}

/// What the choice depends on of all strengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Strengths {
    /// Whether there are both signs.
    pub mixed: bool,
    /// The largest |q|; 0 without strengths.
    pub largest: f64,
    /// The smallest |q| that is not zero; infinite if all are.
    pub smallest: f64,
}

impl Strengths {
    /// Those of a set with one column or several. Sums of several are vector products, whose terms cancel
    /// for strengths of any sign.
    pub fn of(columns: &[&[f64]]) -> Self {
        Strengths::of_columns(columns.iter().map(|column| Strengths::of_column(column)))
    }

    /// The same of what is known of each column.
    pub fn of_columns(columns: impl Iterator<Item = Strengths>) -> Self {
        let join = |a: Strengths, b: Strengths| Strengths {
            mixed: true,
            largest: a.largest.max(b.largest),
            smallest: a.smallest.min(b.smallest),
        };
        columns.reduce(join).unwrap_or(Strengths { mixed: false, largest: 0.0, smallest: f64::INFINITY })
    }

    /// Those of one column.
    pub fn of_column(strengths: &[f64]) -> Self {
        let of = |q: &f64| (*q > 0.0, *q < 0.0, q.abs(), if *q == 0.0 { f64::INFINITY } else { q.abs() });
        let join =
            |a: (bool, bool, f64, f64), b: (bool, bool, f64, f64)| (a.0 | b.0, a.1 | b.1, a.2.max(b.2), a.3.min(b.3));
        let none = || (false, false, 0.0, f64::INFINITY);
        let (plus, minus, largest, smallest) = strengths.par_iter().map(of).reduce(none, join);
        Strengths { mixed: plus && minus, largest, smallest }
    }
}

/// How a sample of the bodies lies, which stands for the whole set: every [`Spread::step`]th, from the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread<const D: usize> {
    /// Number of bodies of the sample.
    pub count: usize,
    /// Smallest coordinates; infinite without bodies.
    pub low: [f64; D],
    /// Largest coordinates.
    pub high: [f64; D],
    /// Σ b (b − 1) over the bodies b of each of [`Spread::DIVISIONS`]^D equal bins of the cube.
    pub pairs: u64,
    /// The level of the cells that hold some hundred bodies, where bodies are dense: of nine tenths of all bodies it is no deeper.
    pub dense_level: u32,
}

impl<const D: usize> Spread<D> {
    /// Bins along an axis.
    pub const DIVISIONS: usize = 16;

    /// Every how many bodies of `n` are in the sample.
    pub fn step(n: usize) -> usize {
        n.div_ceil(1 << 16).max(1)
    }

    /// The distance in the sorted sample of keys between two bodies that are compared. The sample
    /// has every `step`th body, and about a hundred bodies of the set lie between the two. The
    /// leading bits that their keys share give the cell that holds both.
    pub fn apart(step: usize) -> usize {
        (100 / step).max(4)
    }

    /// The first level by which nine tenths of the compared pairs have their deepest common cell.
    /// `levels[l]` is the number of pairs that share a cell of level l and none below.
    pub fn dense_level(levels: &[u64]) -> u32 {
        let all: u64 = levels.iter().sum();
        let mut before = 0;
        let reached = levels.iter().position(|&here| {
            before += here;
            before > all * 9 / 10
        });
        reached.unwrap_or(0) as u32
    }

    /// How many times more bodies a body sees around it than if they filled the cube evenly, less the noise.
    pub fn crowding(&self) -> f64 {
        let (bins, n) = (Self::DIVISIONS.pow(D as u32) as f64, self.count as f64);
        self.pairs as f64 * bins / (n * n).max(1.0)
    }

    /// Of a set in `cube`.
    pub fn of(points: &[[f64; D]], cube: &Cube<D>) -> Self {
        let step = Self::step(points.len());
        let sample: Vec<[f64; D]> = points.iter().step_by(step).copied().collect();
        Self::of_sample(&sample, step, cube)
    }

    /// The same from every `step`th body alone.
    pub fn of_sample(sample: &[[f64; D]], step: usize, cube: &Cube<D>) -> Self {
        let mut bins = vec![0u64; Self::DIVISIONS.pow(D as u32)];
        let (mut low, mut high) = ([f64::INFINITY; D], [f64::NEG_INFINITY; D]);
        let divisions = Self::DIVISIONS as f64;
        for x in sample {
            let place = (0..D).fold(0, |place, d| {
                let i = ((x[d] - cube.corner[d]) / cube.side * divisions).clamp(0.0, divisions - 1.0);
                place * Self::DIVISIONS + i as usize
            });
            bins[place] += 1;
            for d in 0..D {
                (low[d], high[d]) = (low[d].min(x[d]), high[d].max(x[d]));
            }
        }
        let pairs = bins.iter().map(|b| b * b.saturating_sub(1)).sum();
        let mut keys: Vec<u64> = sample.par_iter().map(|x| morton(x, &cube.corner, cube.side)).collect_vec();
        keys.par_sort_unstable();
        let bits = levels_per_key(D) * D as u32;
        let mut levels = [0; 65];
        for (a, b) in keys.iter().zip(keys.iter().skip(Self::apart(step))) {
            levels[((a ^ b).leading_zeros() - (64 - bits)) as usize / D] += 1;
        }
        Spread { count: keys.len(), low, high, pairs, dense_level: Self::dense_level(&levels) }
    }
}

/// The rms of the fields of ions up to a quarter of a spacing from the places of a lattice, and (mean of 1/e²)^(−1/2), both
/// over strength and square of the spacing: measured at 8,000 ions (docs/performance.md).
const IONS: [f64; 2] = [1.2, 0.69];

/// (mean of 1/e²)^(−1/2) of such ions, as many in this volume, with this sum of the squares of their strengths.
pub fn field_of_ions(volume: f64, ions: usize, squares: f64) -> f64 {
    let spacing = (volume / ions as f64).cbrt();
    IONS[1] * (squares / ions as f64).sqrt() / spacing / spacing
}

/// The potential of such ions is about this: a strength over a spacing.
pub fn potential_of_ions(volume: f64, ions: usize, squares: f64) -> f64 {
    (squares / ions as f64).sqrt() / (volume / ions as f64).cbrt()
}

/// [`Problem::field_of`] random charges, which the table of the FMM was measured with: 3.3 over 0.69.
const RANDOM: f64 = 4.8;

/// The part of a strength found at a few targets that is relied on: those of others may be weaker. It is chosen, not measured.
const FIELD_SHARE: f64 = 0.7;

/// Classes of sets that err alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One sign, filling the cube about evenly.
    Filling,
    /// One sign, unevenly: clusters, surfaces.
    Clustered,
    /// Both signs: forces cancel, errors do not.
    Cancelling,
    /// In a plane or on a line along the axes, of one sign or of both: a few bodies feel next to nothing.
    Flat,
}

/// From this crowding on a set is crowded somewhere and thin elsewhere.
pub(super) const CROWDED: f64 = 3.0;

impl Kind {
    fn of<const D: usize>(strengths: Strengths, spread: &Spread<D>) -> Kind {
        let extents = || (0..D).map(|d| spread.high[d] - spread.low[d]);
        if extents().fold(f64::INFINITY, f64::min) < 0.02 * extents().fold(0.0, f64::max) {
            return Kind::Flat;
        }
        if strengths.mixed {
            return Kind::Cancelling;
        }
        if spread.crowding() < CROWDED { Kind::Filling } else { Kind::Clustered }
    }
}
