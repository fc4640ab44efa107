//! The translations of one block of target cells by their operator.

/// One translation: the target within the block, and the source cell.
pub type Shifted = (u32, u32);

/// Translations of a block, grouped by class (or octant). Pairs of a class keep the order in which
/// they came. A pair takes eight bytes, so that all pairs of a block fit the second-level cache
/// together with the coefficients.
#[derive(Debug, Default)]
pub struct ByClass {
    /// The class and the end of its pairs, for each class that has some.
    runs: Vec<(u32, usize)>,
    pairs: Vec<Shifted>,
}

impl ByClass {
    /// Of `classes` classes at most; `rows` gives class, target and source, the same ones whenever it is asked. A counting sort.
    pub fn new<I: Iterator<Item = (u32, u32, u32)>>(classes: usize, rows: impl Fn() -> I) -> Self {
        let mut place = vec![0; classes + 1];
        let mut count = 0;
        rows().for_each(|(class, ..)| {
            place[class as usize + 1] += 1;
            count += 1;
        });
        for c in 0..classes {
            place[c + 1] += place[c];
        }
        let mut pairs = vec![(0, 0); count];
        rows().for_each(|(class, target, source)| {
            let at = &mut place[class as usize];
            pairs[*at] = (target, source);
            *at += 1;
        });
        // Every place has moved on to the end of its class.
        let begun = |c: usize| if c == 0 { 0 } else { place[c - 1] };
        let runs = (0..classes).filter(|&c| place[c] > begun(c)).map(|c| (c as u32, place[c])).collect();
        ByClass { runs, pairs }
    }

    /// Each class that has pairs, with these.
    pub fn runs(&self) -> impl Iterator<Item = (u32, &[Shifted])> {
        let mut start = 0;
        self.runs.iter().map(move |&(class, end)| {
            let run = &self.pairs[start..end];
            start = end;
            (class, run)
        })
    }

    /// The number of translations.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_lie_together_and_pairs_keep_their_order() {
        let all = [(3, 0, 7), (1, 0, 8), (3, 1, 9), (0, 2, 5), (1, 2, 4)];
        let sorted = ByClass::new(5, || all.iter().copied());
        let runs: Vec<_> = sorted.runs().map(|(c, run)| (c, run.to_vec())).collect();
        assert_eq!(runs, [(0, vec![(2, 5)]), (1, vec![(0, 8), (2, 4)]), (3, vec![(0, 7), (1, 9)])]);
        assert!(sorted.len() == 5 && ByClass::new(5, || [].into_iter()).is_empty());
    }
}
