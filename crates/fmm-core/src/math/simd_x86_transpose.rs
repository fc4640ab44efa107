//! Rows and columns of whole vectors exchanged. No closures in here: they are compiled without the extension unless
//! they happen to be inlined, and then hand every vector over in memory.
//!
//! All `unsafe` here has one reason: an intrinsic may run only where the processor has the extension. Only the
//! vectors of `simd_x86.rs` call these functions, which exist nowhere else.

use std::arch::x86_64::*;

use super::{D256, D512, S256, S512};

/// # Safety
/// The processor has AVX-512 F.
#[inline(always)]
pub(super) unsafe fn transpose_d512(rows: &mut [D512; 8]) {
    unsafe {
        let r = *rows;
        for odd in 0..2 {
            // Pairs of rows, then quarters: column 2j + odd of a pair is quarter j.
            let mut t = [r[0].0; 4];
            for i in 0..4 {
                let (a, b) = (r[2 * i].0, r[2 * i + 1].0);
                t[i] = if odd == 0 { _mm512_unpacklo_pd(a, b) } else { _mm512_unpackhi_pd(a, b) };
            }
            let low = (_mm512_shuffle_f64x2::<0x44>(t[0], t[1]), _mm512_shuffle_f64x2::<0x44>(t[2], t[3]));
            let high = (_mm512_shuffle_f64x2::<0xee>(t[0], t[1]), _mm512_shuffle_f64x2::<0xee>(t[2], t[3]));
            rows[odd] = D512(_mm512_shuffle_f64x2::<0x88>(low.0, low.1));
            rows[2 + odd] = D512(_mm512_shuffle_f64x2::<0xdd>(low.0, low.1));
            rows[4 + odd] = D512(_mm512_shuffle_f64x2::<0x88>(high.0, high.1));
            rows[6 + odd] = D512(_mm512_shuffle_f64x2::<0xdd>(high.0, high.1));
        }
    }
}

/// # Safety
/// The processor has AVX-512 F.
#[inline(always)]
pub(super) unsafe fn transpose_s512(rows: &mut [S512; 16]) {
    unsafe {
        let r = *rows;
        for column in 0..4 {
            // Four rows together: column 4j + `column` of them is quarter j.
            let mut t = [r[0].0; 4];
            for i in 0..4 {
                let (a, b, c, d) = (r[4 * i].0, r[4 * i + 1].0, r[4 * i + 2].0, r[4 * i + 3].0);
                let (ab, cd) = if column < 2 {
                    (_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d))
                } else {
                    (_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d))
                };
                let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
                t[i] = _mm512_castpd_ps(if column % 2 == 0 {
                    _mm512_unpacklo_pd(ab, cd)
                } else {
                    _mm512_unpackhi_pd(ab, cd)
                });
            }
            let low = (_mm512_shuffle_f32x4::<0x44>(t[0], t[1]), _mm512_shuffle_f32x4::<0x44>(t[2], t[3]));
            let high = (_mm512_shuffle_f32x4::<0xee>(t[0], t[1]), _mm512_shuffle_f32x4::<0xee>(t[2], t[3]));
            rows[column] = S512(_mm512_shuffle_f32x4::<0x88>(low.0, low.1));
            rows[4 + column] = S512(_mm512_shuffle_f32x4::<0xdd>(low.0, low.1));
            rows[8 + column] = S512(_mm512_shuffle_f32x4::<0x88>(high.0, high.1));
            rows[12 + column] = S512(_mm512_shuffle_f32x4::<0xdd>(high.0, high.1));
        }
    }
}

/// Rows and columns of four registers of four lanes exchanged.
///
/// # Safety
/// The processor has AVX.
#[inline(always)]
unsafe fn four([a, b, c, d]: [__m256d; 4]) -> [__m256d; 4] {
    unsafe {
        let (low, high) = (
            (_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d)),
            (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d)),
        );
        [
            _mm256_permute2f128_pd::<0x20>(low.0, low.1),
            _mm256_permute2f128_pd::<0x20>(high.0, high.1),
            _mm256_permute2f128_pd::<0x31>(low.0, low.1),
            _mm256_permute2f128_pd::<0x31>(high.0, high.1),
        ]
    }
}

/// # Safety
/// The processor has AVX.
#[inline(always)]
pub(super) unsafe fn transpose_d256(rows: &mut [D256; 8]) {
    unsafe {
        let r = *rows;
        let a = four([r[0].0, r[1].0, r[2].0, r[3].0]);
        let b = four([r[4].0, r[5].0, r[6].0, r[7].0]);
        let c = four([r[0].1, r[1].1, r[2].1, r[3].1]);
        let d = four([r[4].1, r[5].1, r[6].1, r[7].1]);
        for k in 0..4 {
            rows[k] = D256(a[k], b[k]);
            rows[4 + k] = D256(c[k], d[k]);
        }
    }
}

/// Rows and columns of eight registers of eight lanes exchanged.
///
/// # Safety
/// The processor has AVX.
#[inline(always)]
unsafe fn eight(r: [__m256; 8]) -> [__m256; 8] {
    unsafe {
        let mut out = r;
        for column in 0..4 {
            // Four rows together: column `column` of them, and column 4 + `column`, are the halves.
            let mut t = [r[0]; 2];
            for i in 0..2 {
                let (a, b, c, d) = (r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]);
                let (ab, cd) = if column < 2 {
                    (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d))
                } else {
                    (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d))
                };
                let (ab, cd) = (_mm256_castps_pd(ab), _mm256_castps_pd(cd));
                t[i] = _mm256_castpd_ps(if column % 2 == 0 {
                    _mm256_unpacklo_pd(ab, cd)
                } else {
                    _mm256_unpackhi_pd(ab, cd)
                });
            }
            out[column] = _mm256_permute2f128_ps::<0x20>(t[0], t[1]);
            out[4 + column] = _mm256_permute2f128_ps::<0x31>(t[0], t[1]);
        }
        out
    }
}

/// # Safety
/// The processor has AVX.
#[inline(always)]
pub(super) unsafe fn transpose_s256(rows: &mut [S256; 16]) {
    unsafe {
        let r = *rows;
        let a = eight([r[0].0, r[1].0, r[2].0, r[3].0, r[4].0, r[5].0, r[6].0, r[7].0]);
        let b = eight([r[8].0, r[9].0, r[10].0, r[11].0, r[12].0, r[13].0, r[14].0, r[15].0]);
        let c = eight([r[0].1, r[1].1, r[2].1, r[3].1, r[4].1, r[5].1, r[6].1, r[7].1]);
        let d = eight([r[8].1, r[9].1, r[10].1, r[11].1, r[12].1, r[13].1, r[14].1, r[15].1]);
        for k in 0..8 {
            rows[k] = S256(a[k], b[k]);
            rows[8 + k] = S256(c[k], d[k]);
        }
    }
}
