//! What `plotters` draws on: each element goes into the text of an SVG and onto the pixels of a PNG, which has the embedded
//! font only and so looks the same on every machine.

use std::io::Error;
use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, OutlineCurve, Point};
use plotters::prelude::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{FontStyle, FontTransform};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind};
use tiny_skia::{FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform};

/// The SVG gives texts 1/1.24 of the size that `plotters` knows.
pub const SVG_SIZE: f64 = 1.24;

type Drawn = Result<(), DrawingErrorKind<Error>>;

/// An SVG and the same as pixels, one for each unit.
pub struct Sheet<'a> {
    pub svg: SVGBackend<'a>,
    /// As large as the SVG; what nothing was drawn on stays transparent.
    pub ink: &'a mut Pixmap,
}

impl Sheet<'_> {
    fn fill(&mut self, path: Option<Path>, color: BackendColor, place: Transform) {
        // A path without extent shows nothing.
        if let Some(path) = path {
            self.ink.fill_path(&path, &paint(color), FillRule::Winding, place, None);
        }
    }

    fn stroke(&mut self, path: Option<Path>, color: BackendColor, width: u32) {
        if let Some(path) = path {
            let stroke = Stroke { width: width as f32, ..Stroke::default() };
            self.ink.stroke_path(&path, &paint(color), &stroke, Transform::identity(), None);
        }
    }
}

impl DrawingBackend for Sheet<'_> {
    type ErrorType = Error;

    fn get_size(&self) -> (u32, u32) {
        self.svg.get_size()
    }

    fn ensure_prepared(&mut self) -> Drawn {
        self.svg.ensure_prepared()
    }

    fn present(&mut self) -> Drawn {
        self.svg.present()
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> Drawn {
        self.fill(rectangle(at, (at.0 + 1, at.1 + 1)), color, Transform::identity());
        self.svg.draw_pixel(at, color)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.stroke(polygon(&[from, to], false), style.color(), style.stroke_width());
        self.svg.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S, fill: bool) -> Drawn {
        if fill {
            self.fill(rectangle(from, to), style.color(), Transform::identity());
        } else {
            self.stroke(rectangle(from, to), style.color(), 1);
        }
        self.svg.draw_rect(from, to, style, fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        let points: Vec<BackendCoord> = path.into_iter().collect();
        self.stroke(polygon(&points, false), style.color(), style.stroke_width());
        self.svg.draw_path(points, style)
    }

    fn draw_circle<S: BackendStyle>(&mut self, at: BackendCoord, radius: u32, style: &S, fill: bool) -> Drawn {
        let circle = PathBuilder::from_circle(at.0 as f32, at.1 as f32, radius as f32);
        if fill {
            self.fill(circle, style.color(), Transform::identity());
        } else {
            self.stroke(circle, style.color(), style.stroke_width());
        }
        self.svg.draw_circle(at, radius, style, fill)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Drawn {
        let points: Vec<BackendCoord> = path.into_iter().collect();
        self.fill(polygon(&points, true), style.color(), Transform::identity());
        self.svg.fill_polygon(points, style)
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let font = if matches!(style.style(), FontStyle::Bold) { &*BOLD } else { &*REGULAR };
        let size = (style.size() / SVG_SIZE) as f32;
        let (path, width) = outline(font, text, size);
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        // The base line, where the SVG has it; an x is half as high as the font.
        let base = match style.anchor().v_pos {
            VPos::Top => 0.76 * size,
            VPos::Center => 0.25 * size,
            VPos::Bottom => -0.25 * size,
        };
        let turn = match style.transform() {
            FontTransform::Rotate90 => 90.0,
            FontTransform::Rotate180 => 180.0,
            FontTransform::Rotate270 => 270.0,
            _ => 0.0,
        };
        let place = Transform::from_rotate(turn).post_translate(at.0 as f32, at.1 as f32).pre_translate(left, base);
        self.fill(path, style.color(), place);
        self.svg.draw_text(text, style, at)
    }
}

static REGULAR: LazyLock<FontRef<'static>> = LazyLock::new(|| embedded(dejavu::sans::regular()));
static BOLD: LazyLock<FontRef<'static>> = LazyLock::new(|| embedded(dejavu::sans::bold()));

fn embedded(bytes: &'static [u8]) -> FontRef<'static> {
    FontRef::try_from_slice(bytes).expect("the embedded font is whole")
}

/// The outline of a text whose base line begins at the origin, and its width.
fn outline(font: &FontRef<'_>, text: &str, size: f32) -> (Option<Path>, f32) {
    let scale = size / font.units_per_em().expect("a font of outlines has units");
    let mut path = PathBuilder::new();
    let (mut x, mut last) = (0.0, None);
    for letter in text.chars() {
        let glyph = font.glyph_id(letter);
        if let Some(last) = last {
            x += scale * font.kern_unscaled(last, glyph);
        }
        let at = |p: Point| (x + scale * p.x, -scale * p.y);
        let mut end = None;
        for curve in font.outline(glyph).into_iter().flat_map(|outline| outline.curves) {
            let (from, to) = match curve {
                OutlineCurve::Line(a, b) | OutlineCurve::Quad(a, _, b) | OutlineCurve::Cubic(a, _, _, b) => (a, b),
            };
            // Contours follow each other without a mark.
            if end != Some(from) {
                path.close();
                path.move_to(at(from).0, at(from).1);
            }
            let (px, py) = at(to);
            match curve {
                OutlineCurve::Line(..) => path.line_to(px, py),
                OutlineCurve::Quad(_, c, _) => path.quad_to(at(c).0, at(c).1, px, py),
                OutlineCurve::Cubic(_, c, d, _) => path.cubic_to(at(c).0, at(c).1, at(d).0, at(d).1, px, py),
            }
            end = Some(to);
        }
        path.close();
        x += scale * font.h_advance_unscaled(glyph);
        last = Some(glyph);
    }
    (path.finish(), x)
}

fn paint(color: BackendColor) -> Paint<'static> {
    let (r, g, b) = color.rgb;
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, (255.0 * color.alpha).round() as u8);
    paint
}

fn rectangle(from: BackendCoord, to: BackendCoord) -> Option<Path> {
    Rect::from_ltrb(from.0 as f32, from.1 as f32, to.0 as f32, to.1 as f32).map(PathBuilder::from_rect)
}

fn polygon(points: &[BackendCoord], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (i, &(x, y)) in points.iter().enumerate() {
        match i {
            0 => path.move_to(x as f32, y as f32),
            _ => path.line_to(x as f32, y as f32),
        }
    }
    if closed {
        path.close();
    }
    path.finish()
}
