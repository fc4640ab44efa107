//! `[grid]` itself: a cube, and how many cells it has.

use fmm_core::grid::BLOCK;
use fmm_core::grid::blocks::DEEPEST;
use fmm_core::grid::wavelet::Thresholds;

use super::super::document::Item;
use super::super::reader::{Range, Section};

/// Cells a side, at most: 2³² cells in all are more than can be numbered.
pub(super) const MOST: i64 = 1 << 20;

/// The cells of a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Resolution {
    /// So many cells a side.
    Uniform(u32),
    /// From so many cells a side, to as fine as the thresholds ask for.
    Adapted(u32, Thresholds),
}

impl Resolution {
    /// h at the finest level of a domain with this side.
    pub fn spacing(&self, side: f64) -> f64 {
        match self {
            Resolution::Uniform(n) => side / f64::from(*n),
            Resolution::Adapted(n, t) => side / (f64::from(*n) * 2f64.powi(i32::from(t.finest))),
        }
    }
}

/// Names of the components of ω.
pub(super) const COMPONENTS: [(&str, usize); 3] = [("x", 0), ("y", 1), ("z", 2)];

/// `[grid]`.
pub(super) struct Cells {
    pub corner: [f64; 3],
    pub side: f64,
    /// `None` if a mistake left a hole.
    pub resolution: Option<Resolution>,
    /// The component of ω that is solved for alone.
    pub component: Option<usize>,
}

/// Reads it; `flows` where there is a `[time]`.
pub(super) fn read(mut s: Section<'_>, flows: bool) -> Cells {
    let component = s.choice("component", &COMPONENTS);
    if component.is_some() && flows {
        let message = "grid.component is of one solution, and the scenario has a [time]".to_string();
        s.mistake("component", message, "one component of ω is no flow", None);
    }
    let corner = s.numbers("corner").unwrap_or_default();
    let side = s.number("side", Range::SIDE).unwrap_or(1.0);
    // A number of cells that blocks divide.
    let cells = |s: &mut Section<'_>, key: &'static str| {
        let n = s.integer(key, BLOCK as i64, MOST)?;
        if n % BLOCK as i64 != 0 {
            let message = format!("{} = {n} is no multiple of {BLOCK}, the cells of a block", s.full(key));
            let (below, above) = (n - n % BLOCK as i64, n - n % BLOCK as i64 + BLOCK as i64);
            s.mistake(key, message, format!("for example {below} or {above}"), None);
            return None;
        }
        Some(n as u32)
    };
    let uniform = cells(&mut s, "n");
    let (coarsest, finest) = (cells(&mut s, "coarsest"), cells(&mut s, "finest"));
    let refinement = s.number("refinement", Range::NOT_NEGATIVE).unwrap_or(1e-2);
    let compression = s.number("compression", Range::NOT_NEGATIVE).unwrap_or(1e-4);
    if compression > refinement {
        let message = "grid.compression is above grid.refinement".to_string();
        s.mistake("compression", message, "what is joined would be split again", None);
    }
    // An option may put a uniform grid in the place of keys that come before it, and not of those after it.
    let source = |item: Option<&Item>| item.map(|i| i.span.source);
    let of_n = source(s.item("n"));
    for key in ["coarsest", "finest", "refinement", "compression"] {
        if of_n.is_some() && source(s.item(key)) >= of_n {
            let message = format!("grid.{key} has no effect on the uniform grid of grid.n");
            s.mistake(key, message, "grid.n is given", Some(format!("leave out either n or {key}")));
        }
    }
    let resolution = if s.has("n") {
        uniform.map(Resolution::Uniform)
    } else if !s.has("finest") {
        s.missing("finest", "the cells a side where the grid is finest, or n for a uniform grid: finest = 256");
        None
    } else if s.has("coarsest") && coarsest.is_none() {
        None
    } else {
        finest.and_then(|finest| {
            // Blocks halve from the coarsest level on.
            let coarsest = coarsest.unwrap_or((finest >> (finest / BLOCK as u32).trailing_zeros()).max(BLOCK as u32));
            let levels = (finest / coarsest).trailing_zeros();
            if coarsest << levels != finest || levels > u32::from(DEEPEST) {
                let message = format!("grid.finest = {finest} is not grid.coarsest = {coarsest} doubled some times");
                s.mistake("finest", message, "each level has cells of half the side", None);
                return None;
            }
            if levels == 0 {
                let message = format!("grid.finest = {finest} has no coarser level");
                // Half of it must be whole blocks.
                let two = 2 * BLOCK as u32;
                let allowed = match finest / two * two {
                    0 => format!("allowed: multiples of {two}, for example {two}"),
                    below if below < finest => {
                        format!("allowed: multiples of {two}, for example {below} or {}", below + two)
                    }
                    _ => format!("grid.coarsest = {coarsest}; allowed: {} or another half of it", finest / 2),
                };
                s.mistake("finest", message, allowed, Some(format!("or give n = {finest} for a uniform grid")));
                return None;
            }
            Some(Resolution::Adapted(coarsest, Thresholds { refinement, compression, finest: levels as u8 }))
        })
    };
    s.close();
    Cells { corner, side, resolution, component }
}
