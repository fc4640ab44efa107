//! What a figure shows, apart from how it is drawn.

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
    },
    /// Horizontal bars from 0, one below the other.
    Bars {
        /// What their length means.
        x: Axis,
        /// Name, length, and the text at its end.
        bars: Vec<(String, f64, String)>,
    },
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
}
