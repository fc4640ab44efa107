//! Each operator alone, on data that stay in the cache: what the benchmarks time.
//!
//! Operations are counted by running the same text with vectors that count (see
//! [`counted`](crate::math::counted)), so that no formula can fall behind the code; products with matrices count 2 n² for n coefficients, without the padding. The peak is that of
//! independent multiply-adds in registers, measured with the same vectors.

use std::sync::Arc;

use super::far::{Gather, Shift, Spread, Translate};
use super::near::{Meet, Scratch};
use super::sorted::Buffer;
use crate::expansion::dense::{Multiply, Operators};
use crate::expansion::{Expansion, Spherical};
use crate::kernel::{FAR, PairRelation, Softening};
use crate::lists::ByClass;
use crate::lists::Classes;
use crate::math::Real;
use crate::math::counted::count;
use crate::math::simd::{Task, dispatch};
use crate::settings::Precision;
use crate::workload::Work;

/// An operator of the FMM for 1/r.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// Particles to particles of other leaves.
    P2P,
    /// Particles to a multipole.
    P2M,
    /// Multipoles to those of parents.
    M2M,
    /// Multipoles to local expansions, by rotations.
    M2lRotation,
    /// Multipoles to local expansions, by products with matrices.
    M2lMatrix,
    /// Local expansions to those of children.
    L2L,
    /// A local expansion at particles.
    L2P,
    /// A multipole at particles.
    M2P,
    /// Particles to a local expansion.
    P2L,
}

impl Operator {
    /// All of them, in the order of tables.
    pub const ALL: [Operator; 9] = [
        Operator::P2P,
        Operator::P2M,
        Operator::M2M,
        Operator::M2lRotation,
        Operator::M2lMatrix,
        Operator::L2L,
        Operator::L2P,
        Operator::M2P,
        Operator::P2L,
    ];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Operator::P2P => "P2P",
            Operator::P2M => "P2M",
            Operator::M2M => "M2M",
            Operator::M2lRotation => "M2L by rotations",
            Operator::M2lMatrix => "M2L by matrices",
            Operator::L2L => "L2L",
            Operator::L2P => "L2P",
            Operator::M2P => "M2P",
            Operator::P2L => "P2L",
        }
    }

    /// What one unit of its work is.
    pub const fn unit(self) -> &'static str {
        match self {
            Operator::P2P => "pair",
            Operator::P2M | Operator::L2P | Operator::M2P | Operator::P2L => "particle",
            Operator::M2M | Operator::M2lRotation | Operator::M2lMatrix | Operator::L2L => "translation",
        }
    }

    /// Whether it is made for this order.
    pub fn exists(self, order: usize) -> bool {
        (1..=30).contains(&order) && (self != Operator::M2lMatrix || order <= MAX_MATRIX_ORDER)
    }

    /// Whether its work depends on the order of the expansions.
    pub fn has_order(self) -> bool {
        self != Operator::P2P
    }
}

/// Particles of a leaf.
const LEAF: usize = 64;
/// Sources that a leaf meets at once.
const SOURCES: usize = 512;
/// Pairs of cells of one offset.
const PAIRS: usize = 64;
/// Offsets whose matrices are used in turn.
const OFFSETS: usize = 16;
/// The highest order for which matrices are made: their memory grows as p⁴.
pub const MAX_MATRIX_ORDER: usize = 12;

/// The work of `operator` at `order`, in double precision or single; none where it does not [exist](Operator::exists).
pub fn work(operator: Operator, order: usize, precision: Precision) -> Option<Box<dyn Work>> {
    // Here and not where it is asked for, so that the kernels are compiled once.
    match precision {
        Precision::F32 => Workload::<f32>::new(operator, order).map(|w| Box::new(w) as Box<dyn Work>),
        _ => Workload::<f64>::new(operator, order).map(|w| Box::new(w) as Box<dyn Work>),
    }
}

struct Workload<T> {
    operator: Operator,
    order: usize,
    expansion: Spherical<T>,
    operators: Option<Arc<Operators<T>>>,
    /// Particles and the sums at them.
    scratch: Scratch<T, 3>,
    pairs: ByClass,
    sources: Vec<T>,
    targets: Vec<T>,
}

/// Numbers in ±1/2 that look random and are always the same.
fn scattered(i: usize) -> f64 {
    (i as f64 * 0.754_877_666_246_692_8 + 0.3).fract() - 0.5
}

impl<T: Real> Workload<T> {
    fn new(operator: Operator, order: usize) -> Option<Self> {
        if !operator.exists(order) {
            return None;
        }
        let classes = Classes::new(4.0);
        let expansion = Spherical::new(order, classes);
        let n = Expansion::<T, 3>::len(&expansion);
        let make = || Spherical::<f64>::new(order, classes);
        let classes_of_pairs: Vec<u32> = match operator {
            // Octants of the parent.
            Operator::M2M | Operator::L2L => (0..8).collect(),
            _ => (0..classes.len() as u32)
                .filter(|&c| classes.offset(c).iter().any(|o| o.abs() > 1))
                .step_by(classes.len() / OFFSETS)
                .collect(),
        };
        let cells = 0..PAIRS as u32;
        // Four half sides away is no neighbour.
        let leaf = |count: usize, away: bool| {
            let mut points = Buffer::default();
            for i in 0..count {
                let x = [0, 1, 2].map(|d| scattered(3 * i + d) + if away && d == 0 { 4.0 } else { 0.0 });
                points.push_one(x, scattered(i) + 1.0, &[0.0; 3], 1.0);
            }
            points
        };
        let mut scratch = Scratch {
            targets: leaf(LEAF, matches!(operator, Operator::P2P | Operator::M2P)),
            sources: leaf(SOURCES, operator == Operator::P2L),
            ..Scratch::default()
        };
        scratch.totals.reset(LEAF);
        scratch.nearest.resize(LEAF, T::from_f64(FAR));
        Some(Workload {
            operator,
            order,
            operators: (operator == Operator::M2lMatrix).then(|| Operators::shared(order, classes, make)),
            expansion,
            scratch,
            pairs: ByClass::new(classes.len().max(8), || {
                let of = |&c| cells.clone().map(move |t| (c, t, (t * 7 + c) % PAIRS as u32));
                classes_of_pairs.iter().flat_map(of)
            }),
            sources: (0..n * PAIRS).map(|i| T::from_f64(scattered(i))).collect(),
            targets: vec![T::ZERO; n * PAIRS],
        })
    }
}

impl<T: Real> Work for Workload<T> {
    fn units(&self) -> usize {
        match self.operator {
            Operator::P2P => LEAF * SOURCES,
            Operator::P2M | Operator::P2L => SOURCES,
            Operator::L2P | Operator::M2P => LEAF,
            Operator::M2M | Operator::L2L | Operator::M2lMatrix | Operator::M2lRotation => self.pairs.len(),
        }
    }

    fn operations(&mut self) -> u64 {
        let n = (self.order + 1) * (self.order + 1);
        match self.operator {
            Operator::M2lMatrix => (2 * n * n * self.units()) as u64,
            _ => {
                let mut operations = Operations(0);
                self.hand(&mut operations);
                operations.0
            }
        }
    }

    fn run(&mut self) -> f64 {
        self.hand(&mut Best);
        (self.scratch.totals.sums().potential[0] + self.targets[0]).to_f64()
    }
}

/// What is done with the task of an operator. Tasks are those of sums, compiled once for both.
trait Use<T: Real> {
    fn take<K: Task<T>>(&mut self, task: K);
}

/// Runs it with the best instructions of this machine.
struct Best;

impl<T: Real> Use<T> for Best {
    fn take<K: Task<T>>(&mut self, task: K) {
        dispatch(task);
    }
}

/// Counts its operations.
struct Operations(u64);

impl<T: Real> Use<T> for Operations {
    fn take<K: Task<T>>(&mut self, task: K) {
        self.0 = count(task);
    }
}

impl<T: Real> Workload<T> {
    /// Hands the task of the operator on.
    fn hand(&mut self, user: &mut impl Use<T>) {
        let Workload { operator, order, expansion, operators, scratch, pairs, sources, targets } = self;
        let (n, expansion) = ((*order + 1) * (*order + 1), &*expansion);
        let (unit, local) = (1.0, matches!(operator, Operator::P2L | Operator::L2P));
        let shift = match operator {
            Operator::M2M => Shift::M2M,
            Operator::L2L => Shift::L2L,
            _ => Shift::M2L,
        };
        match operator {
            Operator::P2P => user.take(Meet { kernel: &Softening::None, unit, relation: PairRelation::Apart, scratch }),
            Operator::P2M | Operator::P2L => {
                user.take(Gather {
                    expansion,
                    sources: &scratch.sources,
                    local,
                    unit,
                    coefficients: &mut targets[..n],
                });
            }
            Operator::L2P | Operator::M2P => {
                user.take(Spread { expansion, local, unit, coefficients: &sources[..n], scratch });
            }
            Operator::M2lMatrix => {
                let operators = operators.as_deref().expect("made for this operator");
                user.take(Multiply { operators, pairs, sources, targets });
            }
            Operator::M2M | Operator::L2L | Operator::M2lRotation => {
                user.take(Translate { expansion, shift, level: 3, pairs, sources, first_source: 0, targets });
            }
        }
    }
}
