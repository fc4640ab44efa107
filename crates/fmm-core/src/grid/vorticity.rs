//! Vorticity that a grid is made for: rings, or values on the cells of a uniform grid.

use std::collections::HashMap;

use super::ring::Ring;
use crate::Error;

/// ω as a function of place and resolution.
pub trait Vorticity: Sync {
    /// ω of the cube with this center and side.
    fn cell(&self, center: [f64; 3], side: f64) -> [f64; 3];
}

/// Rings, which add up. Values are those at the centers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rings(pub Vec<Ring>);

impl Rings {
    fn sum(&self, of: impl Fn(&Ring) -> [f64; 3]) -> [f64; 3] {
        self.0.iter().map(of).fold([0.0; 3], |a, b| std::array::from_fn(|k| a[k] + b[k]))
    }

    /// Ψ at `x`.
    pub fn stream(&self, x: [f64; 3]) -> [f64; 3] {
        self.sum(|r| r.stream(x))
    }

    /// u at `x`.
    pub fn velocity(&self, x: [f64; 3]) -> [f64; 3] {
        self.sum(|r| r.velocity(x))
    }
}

impl Vorticity for Rings {
    fn cell(&self, center: [f64; 3], _: f64) -> [f64; 3] {
        self.sum(|r| r.vorticity(center))
    }
}

/// A vortex ring with a Gaussian core, which moves by itself along its axis: ω = Γ/(πσ²) (exp(−((r − R)² + z²)/σ²) − exp(−((r + R)² + z²)/σ²)) e_θ.
/// The second term lets it vanish on the axis. Thin rings move at Γ/(4πR) (log(8R/σ) − 0.558) (Saffman 1970).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianRing {
    /// Its center.
    pub center: [f64; 3],
    /// Direction of its axis, of length 1; it moves this way where the circulation is positive.
    pub axis: [f64; 3],
    /// R.
    pub radius: f64,
    /// σ.
    pub core: f64,
    /// Γ.
    pub circulation: f64,
}

impl Vorticity for GaussianRing {
    fn cell(&self, x: [f64; 3], _: f64) -> [f64; 3] {
        let n = self.axis;
        let d: [f64; 3] = std::array::from_fn(|k| x[k] - self.center[k]);
        let z = d[0] * n[0] + d[1] * n[1] + d[2] * n[2];
        let out: [f64; 3] = std::array::from_fn(|k| d[k] - z * n[k]);
        let r = (out[0] * out[0] + out[1] * out[1] + out[2] * out[2]).sqrt();
        if r == 0.0 {
            return [0.0; 3];
        }
        let s2 = self.core * self.core;
        let part = |r: f64| (-(r * r + z * z) / s2).exp();
        let size = self.circulation / (std::f64::consts::PI * s2) * (part(r - self.radius) - part(r + self.radius));
        std::array::from_fn(|k| {
            let (a, b) = ((k + 1) % 3, (k + 2) % 3);
            size * (n[a] * out[b] - n[b] * out[a]) / r
        })
    }
}

/// Vorticities that add up.
pub struct Parts(pub Vec<Box<dyn Vorticity>>);

impl Vorticity for Parts {
    fn cell(&self, center: [f64; 3], side: f64) -> [f64; 3] {
        let mut sum = [0.0; 3];
        for part in &self.0 {
            let w = part.cell(center, side);
            (0..3).for_each(|k| sum[k] += w[k]);
        }
        sum
    }
}

/// One component, 0 to 2, of another vorticity; the other two are zero.
pub struct Component(pub usize, pub Box<dyn Vorticity>);

impl Vorticity for Component {
    fn cell(&self, center: [f64; 3], side: f64) -> [f64; 3] {
        only(self.0, self.1.cell(center, side))
    }
}

/// One component of a vector; the other two are zero.
pub fn only(component: usize, vector: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| if k == component { vector[k] } else { 0.0 })
}

/// Values at the cells of a uniform grid; zero where none is given. Larger cells have the mean, smaller ones what they lie in.
#[derive(Debug, Clone)]
pub struct Sampled {
    corner: [f64; 3],
    side: f64,
    cells: u32,
    /// Means over cubes of 2^k cells, finest first: from the index to the sum over the cells there are, divided by the number of all.
    levels: Vec<HashMap<[u32; 3], [f64; 3]>>,
}

impl Sampled {
    /// `vorticity` at `position`, which are centers of the `cells`³ cells of the cube.
    ///
    /// # Errors
    /// [`Error::Unsupported`] that names the row whose place is no center of a cell, or that of an earlier row.
    pub fn new(
        (corner, side): ([f64; 3], f64),
        cells: u32,
        position: &[[f64; 3]],
        vorticity: &[[f64; 3]],
    ) -> Result<Self, Error> {
        let h = side / f64::from(cells);
        let mut finest = HashMap::with_capacity(position.len());
        for (row, (x, w)) in position.iter().zip(vorticity).enumerate() {
            let place: [f64; 3] = std::array::from_fn(|d| (x[d] - corner[d]) / h - 0.5);
            let index = place.map(f64::round);
            let on = |d: usize| (place[d] - index[d]).abs() <= 1e-3 && index[d] >= 0.0 && index[d] < f64::from(cells);
            if !(0..3).all(on) {
                let [x, y, z] = x;
                return Err(Error::Unsupported(format!(
                    "row {row}: ({x}, {y}, {z}) is no center of a cell of the grid with {cells} cells a side"
                )));
            }
            if finest.insert(index.map(|i| i as u32), *w).is_some() {
                let [x, y, z] = x;
                return Err(Error::Unsupported(format!("row {row}: the cell at ({x}, {y}, {z}) has a value already")));
            }
        }
        let mut levels = vec![finest];
        let mut across = cells;
        while across > 1 && across.is_multiple_of(2) {
            across /= 2;
            let below = &levels[levels.len() - 1];
            let mut rows: Vec<_> = below.iter().collect();
            // Sums in one order, which does not depend on the order of the table.
            rows.sort_unstable_by_key(|r| *r.0);
            let mut means: HashMap<[u32; 3], [f64; 3]> = HashMap::new();
            for (index, w) in rows {
                let mean = means.entry(index.map(|i| i / 2)).or_default();
                (0..3).for_each(|k| mean[k] += w[k] / 8.0);
            }
            levels.push(means);
        }
        Ok(Sampled { corner, side, cells, levels })
    }
}

impl Vorticity for Sampled {
    fn cell(&self, center: [f64; 3], side: f64) -> [f64; 3] {
        let h = self.side / f64::from(self.cells);
        let level = ((side / h).log2().round().max(0.0) as usize).min(self.levels.len() - 1);
        let width = h * f64::from(1 << level);
        let index: [f64; 3] = std::array::from_fn(|d| ((center[d] - self.corner[d]) / width).floor());
        if index.iter().any(|&i| i < 0.0) {
            return [0.0; 3];
        }
        self.levels[level].get(&index.map(|i| i as u32)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_cells_have_the_mean() {
        let at = [[0.125, 0.125, 0.125], [0.375, 0.125, 0.125], [0.875, 0.875, 0.875]];
        let w = [[8.0, 0.0, 1.0], [16.0, 0.0, 0.0], [0.0, 2.0, 0.0]];
        let field = Sampled::new(([0.0; 3], 1.0), 4, &at, &w).unwrap();
        assert_eq!(field.cell(at[1], 0.25), w[1]);
        assert_eq!(field.cell([0.25; 3], 0.5), [3.0, 0.0, 0.125]);
        assert_eq!(field.cell([0.5; 3], 1.0), [24.0 / 64.0, 2.0 / 64.0, 1.0 / 64.0]);
        assert_eq!(field.cell([0.4, 0.1, 0.1], 0.125), w[1]);
        assert_eq!(field.cell([-0.1, 0.1, 0.1], 0.25), [0.0; 3]);
        for bad in [[0.2, 0.125, 0.125], [1.125, 0.125, 0.125], at[0]] {
            let error = Sampled::new(([0.0; 3], 1.0), 4, &[at[0], bad], &w[..2]).unwrap_err();
            assert!(error.to_string().starts_with("row 1: "), "{error}");
        }
    }
}
