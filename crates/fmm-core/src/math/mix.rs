//! Numbers without a pattern.

/// A number for each other number, without a pattern: the finalizer of SplitMix64 (Steele, Lea & Flood 2014).
pub fn mix(k: u64) -> u64 {
    let mut z = (k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
