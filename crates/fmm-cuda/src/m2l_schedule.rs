//! The M2L schedule: which operators apply to targets of each octant, in which slot, and which of them share a matrix.

use fmm_core::lists::Classes;

use crate::view::NONE;

/// The offsets between cells for which M2L is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offsets {
    /// The rule's.
    pub separation2: f64,
    /// Whether cells can be near that are well separated by the rule: by softening, or by the lists of a textbook.
    pub nearer: bool,
    /// Their numbers.
    pub classes: Classes<3>,
}

/// The axes whose mirrors change the sign of each coefficient: Re A_l^m and Im A_l^m are even or odd in x, y and z.
pub fn signs(order: usize) -> Vec<u8> {
    let mut all = vec![];
    for l in 0..=order {
        for k in 0..=2 * l {
            let m = k.div_ceil(2);
            let imaginary = m > 0 && k % 2 == 0;
            let x = (m + usize::from(imaginary)) % 2;
            let z = (l + m) % 2;
            all.push((x | usize::from(imaginary) << 1 | z << 2) as u8);
        }
    }
    all
}

/// The operators of M2L for targets of each octant, in the order in which they are applied. A slot
/// is a place in this order.
pub struct M2lSchedule {
    /// Index of the matrix; bits 29 to 31: the axes along which it is mirrored. `[8][slots]`
    pub operators: Vec<u32>,
    /// The slot of a class at targets of an octant, or [`NONE`]. `[8][classes]`
    pub slot_of: Vec<u32>,
    /// The offsets of the matrices, no component negative.
    pub bases: Vec<[i32; 3]>,
}

impl M2lSchedule {
    /// The schedule for `offsets`.
    pub fn new(offsets: Offsets) -> Self {
        let Offsets { separation2, nearer, classes } = offsets;
        // As the traversal has it: in longest sides, for cells whose squared diagonal is so many times a cube's.
        let aspect = classes.aspect();
        let separation2 = separation2 * aspect.iter().map(|a| a * a).sum::<f64>() / 3.0;
        let square = |o: [i32; 3]| (0..3).map(|d| (f64::from(o[d]) * aspect[d]).powi(2)).sum::<f64>();
        // Children of cells that are not separated.
        let meets = |octant: i32, o: [i32; 3]| {
            let parents = std::array::from_fn(|d| (o[d] + (octant >> d & 1)).div_euclid(2));
            square(o) >= separation2 && classes.hold_children(parents) && (nearer || square(parents) < separation2)
        };
        let mut bases: Vec<[i32; 3]> = vec![];
        let mut of_octant = vec![vec![]; 8];
        for class in 0..classes.len() as u32 {
            let offset = classes.offset(class);
            let octants: Vec<u32> = (0..8).filter(|&octant| meets(octant as i32, offset)).collect();
            if octants.is_empty() {
                continue;
            }
            let base = offset.map(i32::abs);
            let place = bases.iter().position(|b| *b == base).unwrap_or_else(|| {
                bases.push(base);
                bases.len() - 1
            });
            let mirrors = (0..3).map(|d| u32::from(offset[d] < 0) << d).sum::<u32>();
            let along = (0..3).map(|d| u32::from(offset[d] != 0) << d).sum::<u32>();
            for octant in octants {
                // Targets of mirrored octants meet mirrored offsets: the mirrors that lead to the offset's counterpart
                // at octant 0.
                let from_first = mirrors ^ octant & along;
                of_octant[octant as usize].push((from_first, place as u32, mirrors, class));
            }
        }
        let slots = of_octant.iter().map(Vec::len).max().unwrap_or(0);
        let mut operators = vec![0; 8 * slots];
        let mut slot_of = vec![NONE; 8 * classes.len()];
        for (octant, mine) in of_octant.iter_mut().enumerate() {
            // Operators of one mirror side by side, and in one slot one matrix for all octants.
            mine.sort_unstable();
            for (slot, &(_, place, mirrors, class)) in mine.iter().enumerate() {
                operators[octant * slots + slot] = mirrors << 29 | place;
                slot_of[octant * classes.len() + class as usize] = slot as u32;
            }
        }
        M2lSchedule { operators, slot_of, bases }
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::expansion::{Spherical, Translation, matrix};
    use fmm_core::lists::{Rule, Space};

    use super::*;

    fn offsets(separation2: f64) -> Offsets {
        Offsets { separation2, nearer: false, classes: Classes::new(separation2) }
    }

    #[test]
    fn targets_of_every_octant_meet_189_operators_of_56_matrices() {
        let slots = M2lSchedule::new(offsets(4.0));
        assert_eq!((slots.operators.len(), slots.bases.len()), (8 * 189, 56));
        assert_eq!(slots.slot_of.iter().filter(|s| **s != NONE).count(), 8 * 189);
    }

    /// The warps of a block, whose targets may be of different octants, read one copy of a slot's matrix.
    #[test]
    fn a_slot_has_one_matrix_for_all_octants() {
        let space = Space::periodic([3.0, 1.0, 2.0], &Rule::classical());
        let long = Offsets { separation2: 4.0, nearer: false, classes: Classes::of_space(4.0, &space) };
        let all = [offsets(3.0), offsets(4.0), offsets(9.0), long];
        for offsets in all.into_iter().chain(all.map(|offsets| Offsets { nearer: true, ..offsets })) {
            let M2lSchedule { operators, .. } = M2lSchedule::new(offsets);
            let slots = operators.len() / 8;
            for (at, operator) in operators.iter().enumerate() {
                assert_eq!(
                    operator & 0x1fff_ffff,
                    operators[at % slots] & 0x1fff_ffff,
                    "{offsets:?} slot {}",
                    at % slots
                );
            }
        }
    }

    /// Mirrored matrices are those of the CPU's operator for every class.
    #[test]
    fn mirrors_change_only_signs() {
        let p = 4;
        let n = (p + 1) * (p + 1);
        let offsets = offsets(4.0);
        let (slots, signs) = (M2lSchedule::new(offsets), signs(p));
        let expansion = Spherical::<f64>::new(p, offsets.classes);
        for octant in 0..8 {
            for class in 0..offsets.classes.len() {
                let slot = slots.slot_of[octant * offsets.classes.len() + class];
                if slot == NONE {
                    continue;
                }
                let operator = slots.operators[octant * 189 + slot as usize];
                let axes = (operator >> 29) as u8;
                let base = slots.bases[(operator & 0x1fff_ffff) as usize];
                let shared = matrix(&expansion, Translation::M2L(offsets.classes.class(base)));
                let own = matrix(&expansion, Translation::M2L(class as u32));
                let sign = |k: usize| if (signs[k] & axes).count_ones() % 2 == 1 { -1.0 } else { 1.0 };
                let largest = own.iter().fold(0.0f64, |a, x| a.max(x.abs()));
                for j in 0..n {
                    for k in 0..n {
                        let mirrored = sign(j) * sign(k) * shared[j * n + k];
                        assert!((mirrored - own[j * n + k]).abs() < 1e-13 * largest, "{class} {j} {k}");
                    }
                }
            }
        }
    }
}
