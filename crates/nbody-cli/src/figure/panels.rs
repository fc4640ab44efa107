//! Square pictures of space on a page: time at the top, scale bar at the bottom, names of colors above, their meaning below.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::{Scale, coordinate};
use super::color::BACKGROUND;
use super::page::{Area, Drawn, FAINT, MARGIN, TEXT, WIDTH, to_text, width, write};
use super::{Brightness, Panel, Rgb};

/// Between two pictures.
const GAP: i32 = 20;
/// Height of a row of names.
const NAME_ROW: i32 = 44;
/// Height of the bar of colors with its labels.
pub const BAR: i32 = 140;
/// On black.
const LIGHT: RGBColor = RGBColor(0xf0, 0xf0, 0xf0);

/// Pixels and their place on the page.
pub struct Placed {
    /// Left and top.
    pub corner: (i32, i32),
    /// Length on the page.
    pub length: i32,
    /// Pixels on a side.
    pub side: usize,
    /// Row by row from the top.
    pub pixels: Vec<Rgb>,
}

/// What is drawn.
pub struct Panels<'a> {
    /// The pictures.
    pub panels: &'a [Panel],
    /// The scale bar, as in [`Content::Panels`](super::Content::Panels).
    pub bar: &'a (f64, String),
    /// Likewise.
    pub brightness: Option<&'a Brightness>,
    /// Likewise.
    pub names: &'a [(String, Rgb)],
}

impl Panels<'_> {
    /// Pictures in a row.
    fn columns(&self) -> i32 {
        match self.panels.len() {
            4 => 2,
            n => n.clamp(1, 3) as i32,
        }
    }

    /// The side of a picture.
    fn side(&self) -> i32 {
        let columns = self.columns();
        ((WIDTH - 2 * MARGIN - (columns - 1) * GAP) / columns).min(900)
    }

    /// Where each name stands, and the height of all.
    fn name_places(&self) -> (Vec<(i32, i32)>, i32) {
        let (mut x, mut y) = (MARGIN, NAME_ROW / 2);
        let mut places = vec![];
        for (name, _) in self.names {
            let needed = 34 + width(name, 25) + 44;
            if x + needed > WIDTH - MARGIN && x > MARGIN {
                (x, y) = (MARGIN, y + NAME_ROW);
            }
            places.push((x, y));
            x += needed;
        }
        (places, if self.names.is_empty() { 0 } else { y + NAME_ROW / 2 })
    }

    /// The height of all.
    pub fn height(&self) -> i32 {
        let rows = (self.panels.len() as i32 + self.columns() - 1) / self.columns();
        let bar = if self.brightness.is_some() { BAR } else { GAP };
        self.name_places().1 + rows * (self.side() + GAP) + bar
    }

    /// Draws all but the pixels, and returns these.
    pub fn draw(&self, area: &Area) -> Drawn<Vec<Placed>> {
        let (places, mut y) = self.name_places();
        for ((name, color), &(x, y)) in self.names.iter().zip(&places) {
            let dot = Circle::new((x + 12, y), 11, rgb(*color).filled());
            area.draw(&dot).map_err(to_text)?;
            write(area, name, (x + 34, y), 25, TEXT, Pos::new(HPos::Left, VPos::Center))?;
        }
        let (columns, side) = (self.columns(), self.side());
        let left = (WIDTH - columns * side - (columns - 1) * GAP) / 2;
        let (base_x, base_y) = area.get_base_pixel();
        let mut placed = vec![];
        for (row, panels) in self.panels.chunks(columns as usize).enumerate() {
            for (column, panel) in panels.iter().enumerate() {
                let corner = (left + column as i32 * (side + GAP), y + row as i32 * (side + GAP));
                if panel.pixels.is_empty() {
                    let ends = [corner, (corner.0 + side, corner.1 + side)];
                    area.draw(&Rectangle::new(ends, rgb(BACKGROUND).filled())).map_err(to_text)?;
                } else {
                    let corner = (corner.0 + base_x, corner.1 + base_y);
                    placed.push(Placed { corner, length: side, side: panel.side, pixels: panel.pixels.clone() });
                }
                self.label(area, panel, corner, side)?;
            }
        }
        y += (self.panels.len() as i32 + columns - 1) / columns * (side + GAP);
        if let Some(brightness) = self.brightness {
            draw_ramp(area, brightness, y)?;
        }
        Ok(placed)
    }

    /// The particles of a picture, its time and its scale bar.
    fn label(&self, area: &Area, panel: &Panel, (x, y): (i32, i32), side: i32) -> Drawn<()> {
        for ([across, down], color) in &panel.dots {
            let inside = |p: f64| (0.0..=1.0).contains(&p);
            if inside(*across) && inside(*down) {
                let at = |from: i32, p: f64| from + (p * f64::from(side)).round() as i32;
                let dot = Circle::new((at(x, *across), at(y, *down)), 6, rgb(*color).filled());
                area.draw(&dot).map_err(to_text)?;
            }
        }
        write(area, &panel.label, (x + 20, y + 18), 26, LIGHT, Pos::new(HPos::Left, VPos::Top))?;
        let (share, text) = self.bar;
        let (from, low) = (x + 20, y + side - 24);
        let ends = [(from, low), (from + (share * f64::from(side)).round() as i32, low)];
        area.draw(&PathElement::new(ends, LIGHT.stroke_width(4))).map_err(to_text)?;
        write(area, text, (from, low - 12), 24, LIGHT, Pos::new(HPos::Left, VPos::Bottom))
    }
}

/// The colors from one end of the quantity to the other, with ticks.
pub fn draw_ramp(area: &Area, brightness: &Brightness, y: i32) -> Drawn<()> {
    let (length, left) = (900, (WIDTH - 900) / 2);
    let n = brightness.ramp.len() as i32;
    for (i, color) in brightness.ramp.iter().enumerate() {
        let at = |i: i32| left + length * i / n;
        let ends = [(at(i as i32), y), (at(i as i32 + 1), y + 26)];
        area.draw(&Rectangle::new(ends, rgb(*color).filled())).map_err(to_text)?;
    }
    let axis = &brightness.axis;
    let ends = [brightness.range.0, brightness.range.1];
    let scale = Scale::of(ends.into_iter(), axis.log, false);
    let ends = ends.map(|v| coordinate(v, axis.log).unwrap_or(0.0));
    let inside = |t: &&f64| (ends[0]..=ends[1]).contains(*t);
    for &tick in scale.major.iter().filter(inside) {
        let at = left + (f64::from(length) * (tick - ends[0]) / (ends[1] - ends[0])).round() as i32;
        area.draw(&PathElement::new([(at, y + 26), (at, y + 34)], TEXT.stroke_width(2))).map_err(to_text)?;
        write(area, &scale.label(tick), (at, y + 40), 24, TEXT, Pos::new(HPos::Center, VPos::Top))?;
    }
    write(area, &axis.label, (WIDTH / 2, y + 78), 26, FAINT, Pos::new(HPos::Center, VPos::Top))
}

pub fn rgb([r, g, b]: Rgb) -> RGBColor {
    RGBColor(r, g, b)
}
