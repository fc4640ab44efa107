//! Bodies in the order of their keys, those of one key in their own order.
//!
//! Leading bits first, on all cores: each pass shares a set out among the values of its next bits, until what has the same bits
//! fits the nearest caches, where a comparison sort of single words ends it. The passes keep the order of equal keys, so the
//! result does not depend on the threads.

use rayon::prelude::*;

use crate::math::CollectVec;

/// A body and its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, bytemuck::Zeroable)]
pub struct Item {
    /// Along the curve.
    pub key: u64,
    /// In the caller's order.
    pub index: u32,
}

/// Sets of no more are sorted by comparison.
const FEW: usize = 1 << 11;
const FEW_BITS: u32 = FEW.trailing_zeros();

/// Bits of a pass, at most: more parts than pages that the translation buffers know are slow to write.
const PASS: u32 = 10;

/// What one task shares out.
const SHARE: usize = 1 << 16;

/// Sorts items, whose indices ascend, by the low `bits` of their keys.
pub fn by_key(items: &mut [Item], bits: u32) {
    let mut other = bytemuck::zeroed_vec::<Item>(if items.len() <= FEW { 0 } else { items.len() });
    sort(items, &mut other, bits, true);
}

/// Sorts what lies in `here` by the low `bits` of the keys, into itself or else into `there`.
fn sort(here: &mut [Item], there: &mut [Item], bits: u32, stays: bool) {
    if here.len() <= FEW || bits == 0 {
        let to = if stays { None } else { Some(there) };
        return sort_few(here, to, bits);
    }
    let pass = PASS.min(bits).min(here.len().ilog2() - FEW_BITS + 3);
    let (rest, parts) = (bits - pass, 1usize << pass);
    let part = |item: &Item| (item.key >> rest) as usize & (parts - 1);
    let counts: Vec<Vec<usize>> = here
        .par_chunks(SHARE)
        .map(|share| {
            let mut counts = vec![0; parts];
            share.iter().for_each(|item| counts[part(item)] += 1);
            counts
        })
        .collect_vec();
    let sizes: Vec<usize> = (0..parts).map(|p| counts.iter().map(|c| c[p]).sum()).collect();
    let mut places: Vec<Vec<_>> = counts.iter().map(|_| Vec::with_capacity(parts)).collect();
    let mut free = &mut *there;
    for p in 0..parts {
        for (share, places) in counts.iter().zip(&mut places) {
            let (taken, others) = std::mem::take(&mut free).split_at_mut(share[p]);
            places.push(taken.iter_mut());
            free = others;
        }
    }
    here.par_chunks(SHARE).zip(places).for_each(|(share, mut places)| {
        for item in share {
            *places[part(item)].next().expect("as many places as were counted") = *item;
        }
    });
    let (mut here, mut there) = (here, there);
    let mut pairs = Vec::with_capacity(parts);
    for size in sizes.into_iter().filter(|&size| size > 0) {
        let (a, b);
        (a, here) = here.split_at_mut(size);
        (b, there) = there.split_at_mut(size);
        pairs.push((a, b));
    }
    pairs.into_par_iter().for_each(|(here, there)| sort(there, here, rest, !stays));
}

/// Sorts few items by the low `bits` of their keys; with no bits they are sorted.
fn sort_few(items: &mut [Item], to: Option<&mut [Item]>, bits: u32) {
    if bits == 0 || items.len() < 2 {
        if let Some(to) = to {
            to.copy_from_slice(items);
        }
        return;
    }
    if bits + FEW_BITS > u64::BITS {
        items.sort_unstable();
        if let Some(to) = to {
            to.copy_from_slice(items);
        }
        return;
    }
    // Bits and place in one word.
    let mask = (1u64 << bits) - 1;
    let mut words: Vec<u64> =
        items.iter().zip(0..).map(|(item, place)| (item.key & mask) << FEW_BITS | place).collect();
    words.sort_unstable();
    let sorted = |from: &[Item], to: &mut [Item]| {
        for (item, word) in to.iter_mut().zip(&words) {
            *item = from[*word as usize & (FEW - 1)];
        }
    };
    match to {
        Some(to) => sorted(items, to),
        None => {
            let from = items.to_vec();
            sorted(&from, items);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// Against the library's sort, on one thread and on three.
    fn compare(keys: impl Iterator<Item = u64>) {
        let items: Vec<Item> = keys.zip(0..).map(|(key, index)| Item { key, index }).collect();
        let mut expected = items.clone();
        expected.sort_unstable();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut sorted = items.clone();
            pool.install(|| by_key(&mut sorted, 63));
            assert!(sorted == expected, "{} keys on {threads} threads", items.len());
        }
    }

    #[test]
    fn keys_of_any_spread_are_sorted_and_equal_ones_keep_their_order() {
        let mut rng = StdRng::seed_from_u64(1);
        for n in [0, 1, 2, FEW, FEW + 1, 100_000, 300_000] {
            compare((0..n).map(|_| rng.random::<u64>() >> 1));
            compare((0..n).map(|_| rng.random::<u64>() >> rng.random_range(1..=63)));
            compare((0..n).map(|_| rng.random_range(0..5)));
        }
        compare((0..50_000).map(|_| 7));
        compare((0..50_000).rev());
    }
}
