//! Multi-indices n = (n1, n2, n3) of degree |n| ≤ p, degree by degree.

/// The multi-indices and how they follow from each other.
#[derive(Debug, Clone)]
pub struct Indices {
    /// The indices; those of degree ≤ k come first, [`count`]`(k)` of them.
    pub all: Vec<[usize; 3]>,
    /// For each index but the first: an axis with n_axis > 0, and the place of n − e_axis.
    pub below: Vec<(usize, usize)>,
    place: Vec<usize>,
    width: usize,
}

/// Number of multi-indices of degree ≤ `p`.
pub const fn count(p: usize) -> usize {
    (p + 1) * (p + 2) * (p + 3) / 6
}

impl Indices {
    /// All of degree ≤ `p`.
    pub fn new(p: usize) -> Self {
        let width = p + 1;
        let mut this = Indices { all: vec![], below: vec![], place: vec![usize::MAX; width.pow(3)], width };
        for degree in 0..=p {
            for a in (0..=degree).rev() {
                for b in (0..=degree - a).rev() {
                    let n = [a, b, degree - a - b];
                    let axis = n.iter().position(|&k| k > 0).unwrap_or(0);
                    let mut less = n;
                    less[axis] = less[axis].saturating_sub(1);
                    this.place[(n[0] * width + n[1]) * width + n[2]] = this.all.len();
                    this.below.push((axis, this.place(less)));
                    this.all.push(n);
                }
            }
        }
        this
    }

    /// The place of `n`, which must be of degree ≤ p.
    pub fn place(&self, n: [usize; 3]) -> usize {
        self.place[(n[0] * self.width + n[1]) * self.width + n[2]]
    }

    /// The place of n + e_axis, if its degree is ≤ p.
    pub fn above(&self, k: usize, axis: usize) -> Option<usize> {
        let mut n = self.all[k];
        n[axis] += 1;
        (n.iter().sum::<usize>() < self.width).then(|| self.place(n))
    }

    /// The place of n − `by`·e_axis, if there is one.
    pub fn less(&self, k: usize, axis: usize, by: usize) -> Option<usize> {
        let mut n = self.all[k];
        n[axis] = n[axis].checked_sub(by)?;
        Some(self.place(n))
    }

    /// |n|.
    pub fn degree(&self, k: usize) -> usize {
        self.all[k].iter().sum()
    }

    /// n!.
    pub fn factorial(&self, k: usize) -> f64 {
        self.all[k].iter().map(|&n| (1..=n).map(|i| i as f64).product::<f64>()).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_come_degree_by_degree_and_find_their_neighbours() {
        let i = Indices::new(6);
        assert_eq!(i.all.len(), count(6));
        for k in 0..i.all.len() {
            assert_eq!(i.place(i.all[k]), k);
            assert!(k < count(i.degree(k)) && (i.degree(k) == 0 || k >= count(i.degree(k) - 1)));
            for axis in 0..3 {
                assert_eq!(i.above(k, axis).map(|a| i.less(a, axis, 1)), i.above(k, axis).map(|_| Some(k)));
            }
        }
        assert_eq!(i.factorial(i.place([3, 2, 1])), 12.0);
    }
}
