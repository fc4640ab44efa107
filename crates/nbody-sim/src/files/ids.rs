//! Ids of particles, which must all be different.

/// An id that is there more than once.
pub fn repeated(id: &[u64]) -> Option<u64> {
    if id.windows(2).all(|w| w[0] < w[1]) {
        return None;
    }
    let mut sorted = id.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_any_order() {
        assert_eq!([&[][..], &[7], &[1, 2, 9], &[9, 1, 2]].map(repeated), [None; 4]);
        assert_eq!([&[3, 3][..], &[5, 1, 5], &[1, 2, 2, 9]].map(repeated), [Some(3), Some(5), Some(2)]);
    }
}
