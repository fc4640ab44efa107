//! Figures, as SVG and PNG, without Python and without fonts of the system.

pub mod axis;
pub mod color;
mod draw;
mod image;
mod marker;
mod page;
mod panels;
mod sheet;
mod thin;

use std::path::{Path, PathBuf};

use nbody_sim::failure::Failure;
use nbody_sim::files::atomic;

/// Endings of the two files of a figure.
pub const ENDINGS: [&str; 2] = ["svg", "png"];

/// A figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What it shows, in a few words.
    pub title: String,
    /// What was computed.
    pub subtitle: String,
    /// The machine and the program; long texts are broken into lines.
    pub caption: String,
    /// The data.
    pub content: Content,
}

/// The data of a figure.
#[derive(Debug, Clone)]
pub enum Content {
    /// Lines over two axes.
    Lines {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// At least one, with at least one point each.
        lines: Vec<Line>,
        /// Places on the horizontal axis that are marked, with a name.
        marks: Vec<(f64, String)>,
    },
    /// Horizontal bars of several parts, one below the other.
    Stacked {
        /// What their length means.
        x: Axis,
        /// Names of the parts, in their order in every bar.
        parts: Vec<String>,
        /// Name, length of each part, and the text at its end.
        bars: Vec<(String, Vec<f64>, String)>,
    },
    /// Horizontal bars from 0, one below the other.
    Bars {
        /// What their length means.
        x: Axis,
        /// Name, length, and the text at its end.
        bars: Vec<(String, f64, String)>,
    },
    /// Square pictures of space, all of the same part of it, in rows of at most three.
    Panels {
        /// At least one.
        panels: Vec<Panel>,
        /// Length of the scale bar over the side of a picture, and its text.
        bar: (f64, String),
        /// What the brightness means; none where only places are shown.
        brightness: Option<Brightness>,
        /// Names of colors.
        names: Vec<(String, Rgb)>,
    },
    /// Rectangles of the plane, over two axes of the same scale and range.
    Rectangles {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// At least one; later ones are drawn over earlier ones.
        rectangles: Vec<Rectangle>,
        /// Names of colors.
        names: Vec<(String, Rgb)>,
        /// What the brightness means, where colors are values.
        brightness: Option<Brightness>,
    },
}

/// A rectangle of the plane, drawn with an outline.
#[derive(Debug, Clone, PartialEq)]
pub struct Rectangle {
    /// The smallest x and y.
    pub low: [f64; 2],
    /// The largest x and y.
    pub high: [f64; 2],
    /// The color inside; none for an outline alone.
    pub fill: Option<Rgb>,
}

/// Red, green and blue.
pub type Rgb = [u8; 3];

/// A picture of space at one time.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The time with its unit.
    pub label: String,
    /// Pixels on a side.
    pub side: usize,
    /// `side`² pixels, row by row from the top.
    pub pixels: Vec<Rgb>,
    /// Single particles: how far from the left and the top, over the side, and their color.
    pub dots: Vec<([f64; 2], Rgb)>,
}

/// The colors of a quantity.
#[derive(Debug, Clone)]
pub struct Brightness {
    /// The quantity with its unit.
    pub axis: Axis,
    /// Its values at both ends.
    pub range: (f64, f64),
    /// Colors from one end to the other.
    pub ramp: Vec<Rgb>,
}

/// An axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What is along it, with its unit in parentheses.
    pub label: String,
    /// Logarithmic; values that are not above 0 are then left out.
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Axis { label: label.into(), log: false }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Axis { label: label.into(), log: true }
    }
}

/// A line.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// Dashed, for what is derived from other data.
    pub dashed: bool,
    /// The ends of the error bar of each point; empty where there are none.
    pub spread: Vec<(f64, f64)>,
    /// The number of its colour, where that is not its place: what belongs together looks alike.
    pub color: Option<usize>,
}

impl Line {
    /// A line without error bars, in the colour of its place.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Line { name: name.into(), points, dashed: false, spread: vec![], color: None }
    }

    /// The same, dashed.
    pub fn dashed(self) -> Self {
        Line { dashed: true, ..self }
    }
}

/// Writes figures with their names, as SVG and PNG each; returns the paths of the files.
///
/// # Errors
/// 70 where drawing fails, 74 where figures cannot be written.
pub fn write<N: AsRef<str>>(figures: &[(N, Figure)], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut written = vec![];
    if !figures.is_empty() && !folder.as_os_str().is_empty() {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::new(74, format!("{}: cannot create the folder: {e}", folder.display())))?;
    }
    for (name, figure) in figures {
        let name = name.as_ref();
        let failed = |e: String| Failure::new(70, format!("{name}: cannot be drawn: {e}"));
        let picture = draw::picture(figure).map_err(failed)?;
        let svg = picture.svg().map_err(failed)?;
        let png = image::png(&picture).map_err(failed)?;
        for (ending, bytes) in ENDINGS.into_iter().zip([svg.as_bytes(), &png[..]]) {
            let path = folder.join(format!("{name}.{ending}"));
            atomic::replace(&path, bytes)?;
            written.push(path);
        }
    }
    Ok(written)
}
