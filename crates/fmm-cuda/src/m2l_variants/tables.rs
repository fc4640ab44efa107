//! The tables of the variants of M2L: operators, groups of offsets, blocks of rotations, and multipoles.

use rayon::prelude::*;

use super::view::MEMBERS;

/// Offsets −3 to 3 along each axis, x fastest.
pub fn offsets() -> impl IndexedParallelIterator<Item = [i32; 3]> {
    (0..343usize).into_par_iter().map(|k| [k % 7, k / 7 % 7, k / 49].map(|c| c as i32 - 3))
}

/// I_l^m to `degree` of a place, m ≥ 0 at l(l + 1)/2 + m; zeros at the origin.
pub fn irregular(degree: usize, x: [f64; 3]) -> Vec<[f64; 2]> {
    let place = |l: usize, m: usize| l * (l + 1) / 2 + m;
    let mut all = vec![[0.0; 2]; (degree + 1) * (degree + 2) / 2];
    let r2 = x.iter().map(|c| c * c).sum::<f64>();
    if r2 == 0.0 {
        return all;
    }
    for m in 0..=degree {
        all[place(m, m)] = if m == 0 {
            [1.0 / r2.sqrt(), 0.0]
        } else {
            let ([a, b], f) = (all[place(m - 1, m - 1)], -(2.0 * m as f64 - 1.0) / r2);
            [f * (x[0] * a - x[1] * b), f * (x[0] * b + x[1] * a)]
        };
        for l in m + 1..=degree {
            let f = (2 * l - 1) as f64 * x[2];
            let below = if l > m + 1 { all[place(l - 2, m)] } else { [0.0; 2] };
            let g = ((l - 1) * (l - 1)) as f64 - (m * m) as f64;
            let one = all[place(l - 1, m)];
            all[place(l, m)] = std::array::from_fn(|k| (f * one[k] - g * below[k]) / r2);
        }
    }
    all
}

/// For each octant its groups, those of one member first, then of two, four and eight: how many members, and of each
/// the offset plus 3, three bits an axis, and from bit 16 on the signs that make its operator of that of the offset
/// without signs: of real and of imaginary parts, by the parities of the order and of degree and order.
pub fn groups() -> (Vec<u32>, Vec<[i32; 3]>) {
    let far = |o: &[i32; 3]| o.iter().any(|c| c.abs() > 1);
    let mut bases: Vec<[i32; 3]> = (0..64).map(|k| [k % 4, k / 4 % 4, k / 16]).filter(far).collect();
    // Offsets of 1 and 2 lie on both sides of a cell, those of 3 on one.
    bases.sort_by_key(|o| o.iter().filter(|&&c| c == 1 || c == 2).count());
    let mut all = vec![];
    for octant in 0..8 {
        let lies = |o: &[i32; 3]| {
            (0..3).all(|d| if octant >> d & 1 == 0 { (-2..=3).contains(&o[d]) } else { (-3..=2).contains(&o[d]) })
        };
        for base in &bases {
            let mirrors = (0..8).filter(|f| (0..3).all(|d| f >> d & 1 == 0 || base[d] > 0));
            let members: Vec<u32> = mirrors
                .map(|f: i32| {
                    (f, std::array::from_fn::<i32, 3, _>(|d| if f >> d & 1 == 1 { -base[d] } else { base[d] }))
                })
                .filter(|(_, o)| lies(o))
                .map(|(f, o)| {
                    let (fx, fy, fz) = (f & 1, f >> 1 & 1, f >> 2 & 1);
                    let signs = (0..4).fold(0, |signs, which| {
                        let (m, lm) = (which & 1, which >> 1);
                        let (re, im) = ((fx & m) ^ (fz & lm), (fx & (m ^ 1)) ^ fy ^ (fz & lm));
                        signs | re << which | im << (4 + which)
                    });
                    ((o[0] + 3) | (o[1] + 3) << 3 | (o[2] + 3) << 6 | signs << 16) as u32
                })
                .collect();
            all.push(members.len() as u32);
            all.extend((0..MEMBERS).map(|k| members.get(k).copied().unwrap_or(0)));
        }
    }
    (all, bases)
}

/// The blocks that exchange x and z, row by row: of the real and the imaginary parts of multipoles, and of local
/// expansions.
pub fn swaps(p: usize) -> [Vec<f64>; 4] {
    let mut out: [Vec<f64>; 4] = Default::default();
    // B_n^{m,l} at [m + n][l + n].
    let mut b = vec![vec![1.0]];
    for n in 0..=p as i32 {
        if n > 0 {
            let last = |m: i32, l: i32| -> f64 {
                let inside = m.abs() < n && l.abs() < n;
                if inside { b[(m + n - 1) as usize][(l + n - 1) as usize] } else { 0.0 }
            };
            let entry = |m: i32, l: i32| match l {
                _ if l == n => -last(m, n - 1) + 0.5 * (last(m + 1, n - 1) + last(m - 1, n - 1)),
                _ if l == -n => last(m, 1 - n) + 0.5 * (last(m + 1, 1 - n) + last(m - 1, 1 - n)),
                _ => 0.5 * (last(m + 1, l) - last(m - 1, l)),
            };
            b = (-n..=n).map(|m| (-n..=n).map(|l| entry(m, l)).collect()).collect();
        }
        let at = |m: i32, l: i32| b[(m + n) as usize][(l + n) as usize];
        for m in 0..=n {
            for l in 0..=n {
                let sign = if l % 2 == 0 { 1.0 } else { -1.0 };
                let (there, back) = if l == 0 { (0.0, 0.0) } else { (sign * at(m, -l), sign * at(-l, m)) };
                out[0].push(at(m, l) + there);
                out[1].push(at(m, l) - there);
                out[2].push(at(l, m) + back);
                out[3].push(at(l, m) - back);
            }
        }
    }
    out
}

/// Coefficients of the size that bodies make.
pub fn multipoles_of(p: usize, cells: usize) -> Vec<f64> {
    let mut sizes = vec![];
    let mut size = 1.0;
    for l in 0..=p {
        size /= l.max(1) as f64;
        (0..=l).for_each(|m| sizes.extend([size, if m == 0 { 0.0 } else { size }]));
    }
    let numbers = (0..cells * sizes.len()).into_par_iter();
    numbers.map(|i| sizes[i % sizes.len()] * (((i * 7919 + 13) % 10_007) as f64 / 5003.5 - 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::m2l_variants::view::GROUPS;

    #[test]
    fn groups_are_of_one_two_four_and_eight() {
        let (groups, bases) = groups();
        assert_eq!(bases.len(), GROUPS);
        for octant in groups.chunks(GROUPS * (1 + MEMBERS)) {
            let sizes: Vec<u32> = octant.chunks(1 + MEMBERS).map(|g| g[0]).collect();
            let of = |size| sizes.iter().filter(|&&s| s == size).count();
            assert_eq!([1, 2, 4, 8].map(of), [7, 21, 21, 7]);
            assert!(sizes.is_sorted(), "{sizes:?}");
        }
    }

    #[test]
    fn tables_are_those_of_the_formulas() {
        let all = irregular(4, [0.3, -0.4, 1.2]);
        let expected = [
            (2, 1, [-0.290_875_400_290_337, 0.387_833_867_053_782]),
            (4, 3, [1.390_164_634_978_85, 0.522_796_956_744_183]),
        ];
        for (l, m, value) in expected {
            let found = all[l * (l + 1) / 2 + m];
            assert!((0..2).all(|k| (found[k] - value[k]).abs() < 1e-12), "{l} {m} {found:?}");
        }
        // B_3^{0,l} for l = −3 … 3: 2.5, 0, −0.5, 0, 0.5, 0, −2.5, folded onto l ≥ 0.
        let [re, im, ..] = swaps(3);
        let start = 1 + 4 + 9;
        assert_eq!((&re[start..start + 4], &im[start..start + 4]), (&[0.0, 1.0, 0.0, -5.0][..], &[0.0; 4][..]));
    }
}
