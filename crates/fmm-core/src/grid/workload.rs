//! The least that direct sums and expansions at points of bricks can take: vector instructions, counted by running the same text with
//! vectors that count (see [`counted`](crate::math::counted)), over the rate at which a core issues them.

use super::far::{Evaluate, Expansions};
use super::green::Green;
use super::near::{CHUNK, Meet, SUMS, Scratch};
use super::plan::{POINTS, SIDE};
use crate::Precision;
use crate::math::Real;
use crate::math::counted::instructions;

/// Vector instructions, of which each does its work for all lanes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Instructions {
    /// Of a pair of a point and a source that acts directly.
    pub direct: f64,
    /// Of a pair of a point and a node that acts by its expansion.
    pub indirect: f64,
}

impl Instructions {
    /// With this Green's function, order and precision (not `Auto`).
    pub fn of(green: Green, order: usize, precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::counted::<f32>(green, order),
            _ => Self::counted::<f64>(green, order),
        }
    }

    fn counted<T: Real>(green: Green, order: usize) -> Self {
        let at = std::array::from_fn(|d| std::array::from_fn(|i| T::from_f64(1.0 + (i + 2 * d) as f64)));
        let at: [[T; SIDE]; 3] = at;
        let mut scratch = Scratch::default();
        let direct = instructions(Meet::example(green, CHUNK, &at, &mut scratch));
        let (expansions, mut sums) = (Expansions::example(order), vec![T::ZERO; SUMS]);
        let indirect = instructions(Evaluate { expansions: &expansions, node: 0, at: &at, sums: &mut sums });
        Instructions { direct: direct as f64 / (CHUNK * POINTS) as f64, indirect: indirect as f64 / POINTS as f64 }
    }
}
