//! What the first of several ranks has all of them do with the particles of a run: one order after the other.

use std::ops::Range;

use fmm_core::comm::{Comm, from_first};
use fmm_core::{Kept, KeptMesh, Precision, Weights};

use crate::files::snapshot::{Field, Float, Layout};

/// One order.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Takes the share of the particles of a scenario whose home is the rank; text and particles follow.
    Begin,
    /// Sets whether the next sums have potentials.
    WantPotential(bool),
    /// Goes on with what an earlier part of the run has kept.
    Recall(Option<Kept>),
    /// Sums the forces unless they belong to the positions.
    Refresh,
    /// Makes the step with this number.
    Step {
        /// Counted from 1.
        number: u64,
        /// Whether its forces have potentials.
        potential: bool,
    },
    /// Sums diagnostics.
    Diagnose,
    /// Makes a copy of the present state with these fields, which the next three orders are about.
    Stage(Vec<Field>),
    /// Checks that it can be written so.
    Check(Layout),
    /// Finds its extent.
    Bounds,
    /// Sends these rows of one of its fields to the first rank.
    Rows(Field, Range<usize>),
    /// Leaves the run.
    End,
}

/// An order as ranks send it: its number, and what it says.
type Words = [u64; 13];

const PRECISIONS: [Precision; 4] = [Precision::Auto, Precision::F32, Precision::Mixed, Precision::F64];

impl Order {
    /// Gives this order to all ranks.
    pub fn give(&self, comm: &dyn Comm) {
        from_first(comm, &[self.words()]);
    }

    /// The order that the first rank gives.
    pub fn taken(comm: &dyn Comm) -> Order {
        Order::read(from_first::<Words>(comm, &[])[0])
    }

    fn words(&self) -> Words {
        let mut words = [0; 13];
        let mut put = |values: &[u64]| words[..values.len()].copy_from_slice(values);
        match self {
            Order::Begin => put(&[0]),
            Order::WantPotential(wanted) => put(&[1, u64::from(*wanted)]),
            Order::Recall(None) => put(&[2, 0]),
            Order::Recall(Some(kept)) => {
                let mesh = kept.mesh.map_or([0; 5], |KeptMesh { order, error, weights: Weights([a, b, c]) }| {
                    [order as u64, error.to_bits(), a.to_bits(), b.to_bits(), c.to_bits()]
                });
                let choice = [
                    2,
                    1,
                    u64::from(kept.direct),
                    kept.target_error.to_bits(),
                    PRECISIONS.iter().position(|p| *p == kept.precision).unwrap_or(0) as u64,
                    kept.leaf_size.map_or(0, |size| size as u64 + 1),
                    u64::from(kept.sums),
                    u64::from(kept.patience),
                ];
                put(&[&choice[..], &mesh].concat());
            }
            Order::Refresh => put(&[3]),
            Order::Step { number, potential } => put(&[4, *number, u64::from(*potential)]),
            Order::Diagnose => put(&[5]),
            Order::Stage(fields) => put(&[6, mask(fields)]),
            Order::Check(layout) => put(&[7, mask(&layout.fields), u64::from(layout.precision == Float::F64)]),
            Order::Bounds => put(&[8]),
            Order::Rows(field, rows) => put(&[9, mask(&[*field]), rows.start as u64, rows.end as u64]),
            Order::End => put(&[10]),
        }
        words
    }

    fn read(words: Words) -> Order {
        let [number, a, b, c, d, e, f, g, order, mesh @ ..] = words;
        match number {
            0 => Order::Begin,
            1 => Order::WantPotential(a == 1),
            2 if a == 0 => Order::Recall(None),
            2 => Order::Recall(Some(Kept {
                direct: b == 1,
                target_error: f64::from_bits(c),
                precision: PRECISIONS[d as usize],
                leaf_size: e.checked_sub(1).map(|size| size as usize),
                sums: f as u32,
                patience: g as u32,
                mesh: (order > 0).then(|| {
                    let [error, weights @ ..] = mesh.map(f64::from_bits);
                    KeptMesh { order: order as usize, error, weights: Weights(weights) }
                }),
            })),
            3 => Order::Refresh,
            4 => Order::Step { number: a, potential: b == 1 },
            5 => Order::Diagnose,
            6 => Order::Stage(fields(a)),
            7 => Order::Check(Layout { fields: fields(a), precision: if b == 1 { Float::F64 } else { Float::F32 } }),
            8 => Order::Bounds,
            9 => Order::Rows(Field::ALL[a.trailing_zeros() as usize], b as usize..c as usize),
            _ => Order::End,
        }
    }
}

/// Fields as bits.
fn mask(fields: &[Field]) -> u64 {
    Field::ALL.iter().enumerate().filter(|(_, field)| fields.contains(field)).map(|(k, _)| 1 << k).sum()
}

fn fields(mask: u64) -> Vec<Field> {
    Field::ALL.into_iter().enumerate().filter(|(k, _)| mask >> k & 1 == 1).map(|(_, field)| field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_given() {
        let kept = |precision, leaf_size| Kept {
            direct: true,
            target_error: 3e-5,
            precision,
            leaf_size,
            sums: 5,
            patience: 8,
            mesh: leaf_size.map(|_| KeptMesh { order: 7, error: 1e-5, weights: Weights([0.1, 1.0 / 3.0, 0.0]) }),
        };
        let layout = |precision| Layout { fields: vec![Field::Velocity, Field::ForceError], precision };
        let mut orders = vec![
            Order::Begin,
            Order::WantPotential(true),
            Order::WantPotential(false),
            Order::Recall(None),
            Order::Refresh,
            Order::Step { number: u64::MAX, potential: true },
            Order::Step { number: 1, potential: false },
            Order::Diagnose,
            Order::Stage(vec![Field::Potential, Field::Acceleration]),
            Order::Check(layout(Float::F32)),
            Order::Check(layout(Float::F64)),
            Order::Bounds,
            Order::End,
        ];
        orders.extend(PRECISIONS.map(|p| Order::Recall(Some(kept(p, Some(77))))));
        orders.push(Order::Recall(Some(kept(Precision::F32, None))));
        orders.extend(Field::ALL.map(|field| Order::Rows(field, 3..70_000)));
        for order in orders {
            assert_eq!(Order::read(order.words()), order);
        }
    }
}
