//! The page of every figure: its width, margins and inks, and the texts on it.

use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::Pos;
use plotters::style::{FontStyle, register_font};

use super::sheet::{SVG_SIZE, Sheet};

/// Width in units of the SVG, which are pixels of the PNG.
pub const WIDTH: i32 = 1600;
/// Left and right edge of all text.
pub const MARGIN: i32 = 48;
/// The font that the PNG is drawn with, and its like for browsers.
pub const FONT: &str = "DejaVu Sans, Verdana, sans-serif";

pub const TEXT: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub const FAINT: RGBColor = RGBColor(0x55, 0x55, 0x55);

pub type Area<'a> = DrawingArea<Sheet<'a>, Shift>;
pub type Drawn<T> = Result<T, String>;

pub fn to_text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// For the widths of texts; the PNG has the same font.
pub fn register_fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A font that cannot be read would show as an error of the first text.
        let _ = register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
        let _ = register_font(FONT, FontStyle::Bold, dejavu::sans::bold());
    });
}

/// `size` in pixels of an em.
pub fn style(size: i32, color: RGBColor) -> TextStyle<'static> {
    (FONT, f64::from(size) * SVG_SIZE).into_font().color(&color)
}

/// Writes a text of `size` pixels.
pub fn write(area: &Area, text: &str, at: (i32, i32), size: i32, color: RGBColor, pos: Pos) -> Drawn<()> {
    area.draw(&Text::new(text.to_string(), at, style(size, color).pos(pos))).map_err(to_text)
}

/// Width of a text in pixels.
pub fn width(text: &str, size: i32) -> i32 {
    let style = style(size, TEXT);
    // An estimate serves where the font has no glyph.
    style.font.layout_box(text).map_or(size * text.chars().count() as i32 / 2, |((a, _), (b, _))| b - a)
}

/// Lines of at most `most` pixels, broken between words.
pub fn wrapped(text: &str, size: i32, most: i32) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= most => *line = format!("{line} {word}"),
            _ => lines.push(word.to_string()),
        }
    }
    lines
}
