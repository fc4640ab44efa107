//! Morton keys: the path from a cell down to a body, one octant of D bits a level.

/// Levels that one 64-bit key resolves in D dimensions.
pub const fn levels_per_key(dimension: usize) -> u32 {
    (63 / dimension) as u32
}

/// The key of point `x` inside the cube with the given lower `corner` and `side`.
///
/// The most significant octant is the coarsest; bit d of an octant says in which half of axis d the
/// point lies. Points outside the cube get the key of the nearest cell.
///
/// Where the faces of cells are exact numbers, as in [`Cube::around`](super::Cube::around), the key
/// is exact as well. A body may be so close to a face that its difference to the corner rounds to
/// the face: it still gets the side on which it lies, and smaller cells can separate it from bodies
/// on the other side.
#[inline]
pub fn morton<const D: usize>(x: &[f64; D], corner: &[f64; D], side: f64) -> u64 {
    let levels = levels_per_key(D);
    let cells = (1u64 << levels) as f64;
    let width = side / cells;
    let mut key = 0;
    for d in 0..D {
        let i = ((x[d] - corner[d]) / side * cells).clamp(0.0, cells - 1.0) as u64;
        // Only ever rounded up to a face: what lies beyond it is a number.
        let below = i > 0 && x[d] < corner[d] + i as f64 * width;
        key |= spread::<D>(i - u64::from(below)) << d;
    }
    key
}

/// The octant at `level` (1 is just below the root of the key).
#[inline]
pub fn octant<const D: usize>(key: u64, level: u32) -> u8 {
    let shift = (levels_per_key(D) - level) * D as u32;
    ((key >> shift) & ((1 << D) - 1)) as u8
}

/// Moves bit i of `x` to bit D·i.
#[inline]
fn spread<const D: usize>(mut x: u64) -> u64 {
    match D {
        2 => {
            x &= 0x7fff_ffff;
            x = (x | x << 16) & 0x0000_ffff_0000_ffff;
            x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
            x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
            x = (x | x << 2) & 0x3333_3333_3333_3333;
            (x | x << 1) & 0x5555_5555_5555_5555
        }
        3 => {
            x &= 0x1f_ffff;
            x = (x | x << 32) & 0x001f_0000_0000_ffff;
            x = (x | x << 16) & 0x001f_0000_ff00_00ff;
            x = (x | x << 8) & 0x100f_00f0_0f00_f00f;
            x = (x | x << 4) & 0x10c3_0c30_c30c_30c3;
            (x | x << 2) & 0x1249_2492_4924_9249
        }
        _ => (0..levels_per_key(D)).map(|bit| (x >> bit & 1) << (bit * D as u32)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octants_are_read_back_from_the_key() {
        // x = 5/8 + a little: binary 0.101; y = 3/8: 0.011; z = 6/8: 0.110.
        let key = morton(&[0.63, 0.38, 0.76], &[0.0; 3], 1.0);
        assert_eq!([1, 2, 3].map(|l| octant::<3>(key, l)), [0b101, 0b110, 0b011]);
        let key = morton(&[0.63, 0.38], &[0.0; 2], 1.0);
        assert_eq!([1, 2, 3].map(|l| octant::<2>(key, l)), [0b01, 0b10, 0b11]);
    }

    #[test]
    fn a_point_beside_a_face_is_on_its_own_side() {
        for away in [1e-17, 1e-40, 1e-300] {
            let sides = [-away, 0.0, away].map(|x| octant::<3>(morton(&[x, -x, 0.25], &[-0.5; 3], 1.0), 1));
            assert_eq!(sides, [0b110, 0b111, 0b101]);
            assert_eq!(octant::<2>(morton(&[-away; 2], &[-0.5; 2], 1.0), 2), 0b11);
        }
    }

    #[test]
    fn spreading_by_masks_equals_spreading_bit_by_bit() {
        for x in [0, 1, 0x15_5555, 0x1f_ffff, 0x12_3456] {
            assert_eq!(spread::<3>(x), (0..21).map(|b| (x >> b & 1) << (3 * b)).sum::<u64>());
            assert_eq!(spread::<2>(x), (0..31).map(|b| (x >> b & 1) << (2 * b)).sum::<u64>());
        }
    }

    #[test]
    fn points_outside_get_the_nearest_cell() {
        assert_eq!(morton(&[-1.0, 2.0, 0.5], &[0.0; 3], 1.0), morton(&[0.0, 0.999_999_9, 0.5], &[0.0; 3], 1.0));
    }
}
