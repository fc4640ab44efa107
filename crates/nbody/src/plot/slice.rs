//! Slices through the vorticity of a flow on a grid: its size |ω| at up to four times, in one plane.
//!
//! The plane goes through the center of the vorticity at the first time, or where next to none is there through its
//! largest value, across the axis for which it meets most of it. All pictures show the part of it that has vorticity.

use std::collections::HashMap;

use fmm_core::grid::BLOCK;

use super::space::{SIDE, scale_bar};
use crate::figure::color;
use crate::figure::{Axis, Brightness, Content, Panel, Rgb};
use crate::files::cells::{Cells, Magnitude};
use crate::messages::short;

/// The part of the largest |ω| that is shown at least.
const FAINT: f64 = 0.02;

/// A plane through the center meets at least this part of what one through the largest value does.
const CENTRAL: f64 = 0.1;

/// Blocks by level and place.
struct Index<'a> {
    field: &'a Magnitude,
    by_place: HashMap<(usize, [i64; 3]), &'a Cells>,
}

impl<'a> Index<'a> {
    fn new(field: &'a Magnitude) -> Self {
        let by_place = field.blocks.iter().map(|b| ((b.level, b.first.map(|f| f / BLOCK as i64)), b)).collect();
        Index { field, by_place }
    }

    /// Center, volume and value of every cell that no finer one covers.
    fn cells(&self) -> impl Iterator<Item = ([f64; 3], f64, f64)> + '_ {
        let refined = |b: &Cells| self.by_place.contains_key(&(b.level + 1, b.first.map(|f| 2 * f / BLOCK as i64)));
        self.field.blocks.iter().filter(move |b| !refined(b)).flat_map(move |b| {
            let h = self.field.spacing[b.level];
            b.values.iter().enumerate().map(move |(c, v)| {
                let cell = [c % BLOCK, c / BLOCK % BLOCK, c / (BLOCK * BLOCK)];
                let at = |k: usize| self.field.corner[k] + (b.first[k] as f64 + cell[k] as f64 + 0.5) * h;
                (std::array::from_fn(at), h.powi(3), *v)
            })
        })
    }

    /// The value of the finest cell about a place; 0 outside of all.
    fn at(&self, x: [f64; 3]) -> f64 {
        for (level, h) in self.field.spacing.iter().enumerate().rev() {
            let cell: [i64; 3] = std::array::from_fn(|k| ((x[k] - self.field.corner[k]) / h).floor() as i64);
            if let Some(block) = self.by_place.get(&(level, cell.map(|c| c.div_euclid(BLOCK as i64)))) {
                let [i, j, k] = cell.map(|c| c.rem_euclid(BLOCK as i64) as usize);
                return block.values[i + BLOCK * (j + BLOCK * k)];
            }
        }
        0.0
    }
}

/// The plane of all pictures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plane {
    /// The axes to the right and upwards, and the one across which it lies.
    pub axes: [usize; 3],
    /// The middle of the pictures in space.
    pub center: [f64; 3],
    /// Their side.
    pub side: f64,
    /// The largest value of all cells.
    pub highest: f64,
}

impl Plane {
    /// The plane for the fields of a run at several times; `None` without vorticity.
    pub fn of(fields: &[&Magnitude]) -> Option<Self> {
        Plane::of_indices(&fields.iter().map(|f| Index::new(f)).collect::<Vec<_>>())
    }

    fn of_indices(fields: &[Index]) -> Option<Self> {
        // A flow that starts at rest has no vorticity at first.
        let first = fields.iter().find(|f| f.cells().any(|c| c.2 > 0.0))?;
        let (mut sums, mut peak) = ([0.0; 4], ([0.0; 3], 0.0));
        for (x, volume, value) in first.cells() {
            sums[3] += value * volume;
            (0..3).for_each(|k| sums[k] += value * volume * x[k]);
            if value > peak.1 {
                peak = (x, value);
            }
        }
        if sums[3] <= 0.0 {
            return None;
        }
        let best = |middle: [f64; 3]| {
            let mut met = [0.0; 3];
            for (x, volume, value) in first.cells() {
                let reach = 0.5 * volume.cbrt();
                (0..3).filter(|&k| (x[k] - middle[k]).abs() <= reach).for_each(|k| met[k] += value * reach * reach);
            }
            // Of equals that across y: most rings have their axis along z.
            let across = [0, 2].into_iter().fold(1, |best, k| if met[k] > 1.01 * met[best] { k } else { best });
            (met[across], across, middle)
        };
        let [central, highest] = [std::array::from_fn(|k| sums[k] / sums[3]), peak.0].map(best);
        let (_, across, middle) = if central.0 < CENTRAL * highest.0 { highest } else { central };
        let axes = [[1, 2, 0], [0, 2, 1], [0, 1, 2]][across];
        let highest =
            fields.iter().flat_map(|f| &f.field.blocks).flat_map(|b| &b.values).fold(0.0, |a: f64, v| a.max(*v));
        let mut ends = [(f64::INFINITY, f64::NEG_INFINITY); 3];
        for (x, _, _) in fields.iter().flat_map(|f| f.cells()).filter(|c| c.2 > FAINT * highest) {
            for (end, x) in ends.iter_mut().zip(x) {
                *end = (end.0.min(x), end.1.max(x));
            }
        }
        let widest = axes[..2].iter().map(|&k| ends[k].1 - ends[k].0).fold(0.0, f64::max);
        let side = 1.3 * widest.max(first.field.spacing.first().copied()?);
        let mut center = ends.map(|(low, high)| 0.5 * (low + high));
        center[across] = middle[across];
        Some(Plane { axes, center, side, highest })
    }

    /// |ω| in each pixel, row by row from the top.
    fn values(&self, field: &Index) -> Vec<f64> {
        let pixel = |i: usize| {
            let offset = |p: usize| ((p as f64 + 0.5) / SIDE as f64 - 0.5) * self.side;
            let mut x = self.center;
            x[self.axes[0]] += offset(i % SIDE);
            x[self.axes[1]] -= offset(i / SIDE);
            field.at(x)
        };
        (0..SIDE * SIDE).map(pixel).collect()
    }
}

/// The pictures, with what they show; `None` without vorticity. `fields` have a label each.
pub fn figure(fields: &[(String, Magnitude)]) -> Option<(Content, String)> {
    let indices: Vec<Index> = fields.iter().map(|(_, f)| Index::new(f)).collect();
    let plane = Plane::of_indices(&indices)?;
    let values: Vec<Vec<f64>> = indices.iter().map(|f| plane.values(f)).collect();
    let highest = values.iter().flatten().fold(0.0, |a: f64, v| a.max(*v));
    if highest <= 0.0 {
        return None;
    }
    let panels = fields.iter().zip(&values).map(|((label, _), values)| {
        let pixels: Vec<Rgb> = values.iter().map(|v| color::ramp(v / highest)).collect();
        Panel { label: label.clone(), side: SIDE, pixels, dots: vec![] }
    });
    let ramp = (0..64).map(|i| color::ramp(f64::from(i) / 63.0)).collect();
    let brightness = Brightness { axis: Axis::linear("vorticity |ω|"), range: (0.0, highest), ramp };
    let panels = panels.collect();
    let bar = scale_bar(plane.side, "");
    let across = ["x", "y", "z"][plane.axes[2]];
    // Rounding of the center is no place.
    let position = plane.center[plane.axes[2]];
    let position = if position.abs() < 1e-6 * plane.side { 0.0 } else { position };
    let what = format!("slice at {across} = {}", short(position));
    Some((Content::Panels { panels, bar, brightness: Some(brightness), names: vec![] }, what))
}

#[cfg(test)]
mod tests {
    use fmm_core::grid::CELLS;

    use super::*;

    /// One coarse block over [0, 1]³ with 1 in it, one of its eight parts refined, with 3.
    fn field() -> Magnitude {
        let block = |level, first, value| Cells { level, first, values: vec![value; CELLS] };
        let mut blocks = vec![block(0, [0; 3], 0.0)];
        blocks
            .extend((0..8).map(|i: i64| block(1, [i % 2, i / 2 % 2, i / 4].map(|k| 16 * k), f64::from(i == 5) * 3.0)));
        Magnitude { corner: [0.0; 3], spacing: vec![1.0 / 16.0, 1.0 / 32.0], blocks }
    }

    #[test]
    fn a_slice_meets_the_vorticity_where_it_is() {
        let field = field();
        let index = Index::new(&field);
        // The coarse block is refined everywhere.
        assert_eq!(index.cells().count(), 8 * CELLS);
        assert_eq!((index.at([0.7, 0.2, 0.8]), index.at([0.2, 0.2, 0.8]), index.at([1.5, 0.0, 0.0])), (3.0, 0.0, 0.0));
        let (content, what) = figure(&[("t = 0".into(), field)]).unwrap();
        assert_eq!(what, "slice at y = 0.25");
        let Content::Panels { panels, brightness, .. } = content else { panic!() };
        assert_eq!(brightness.unwrap().range, (0.0, 3.0));
        assert_eq!(panels[0].pixels[SIDE / 2 * SIDE + SIDE / 2], color::ramp(1.0));
        assert_eq!(panels[0].pixels[0], color::ramp(0.0));
    }

    /// Two cells at opposite corners, whose center is empty.
    #[test]
    fn a_slice_goes_through_the_largest_value_where_the_center_is_empty() {
        let mut values = vec![0.0; CELLS];
        [values[0], values[CELLS - 1]] = [1.0, 1.5];
        let blocks = vec![Cells { level: 0, first: [0; 3], values }];
        let field = Magnitude { corner: [0.0; 3], spacing: vec![1.0 / 16.0], blocks };
        let (_, what) = figure(&[("t = 0".into(), field)]).unwrap();
        assert_eq!(what, "slice at y = 0.9688");
    }
}
