//! The two files of a drawn figure: the page, pictures of pixels, and what is drawn above them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tiny_skia::{Color, FilterQuality, IntSize, Pixmap, PixmapPaint, Transform};

use super::panels::Placed;

/// A figure that is drawn.
pub struct Picture {
    /// The text of the SVG file without pixels.
    pub text: String,
    /// Where the background ends in it and all else begins.
    pub background: usize,
    /// Pictures of pixels, which lie between the two.
    pub pixels: Vec<Placed>,
    /// All but background and pixels, drawn.
    pub ink: Pixmap,
}

impl Picture {
    /// The text of the SVG file.
    ///
    /// # Errors
    /// Where pixels cannot be packed.
    pub fn svg(&self) -> Result<String, String> {
        let (below, above) = self.text.split_at(self.background);
        let images = self.pixels.iter().map(element).collect::<Result<String, String>>()?;
        Ok(format!("{below}{images}{above}"))
    }
}

/// The bytes of a PNG file, one pixel for each unit of the SVG.
///
/// # Errors
/// Where there is nothing to draw on.
pub fn png(picture: &Picture) -> Result<Vec<u8>, String> {
    let mut page = Pixmap::new(picture.ink.width(), picture.ink.height()).ok_or("a picture without pixels")?;
    page.fill(Color::WHITE);
    let paint = PixmapPaint { quality: FilterQuality::Bilinear, ..PixmapPaint::default() };
    for placed in &picture.pixels {
        let scale = placed.length as f32 / placed.side as f32;
        let place = Transform::from_row(scale, 0.0, 0.0, scale, placed.corner.0 as f32, placed.corner.1 as f32);
        page.draw_pixmap(0, 0, pixmap(placed)?.as_ref(), &paint, place, None);
    }
    page.draw_pixmap(0, 0, picture.ink.as_ref(), &PixmapPaint::default(), Transform::identity(), None);
    page.encode_png().map_err(|e| e.to_string())
}

fn pixmap(placed: &Placed) -> Result<Pixmap, String> {
    let bytes = placed.pixels.iter().flat_map(|[r, g, b]| [*r, *g, *b, 255]).collect();
    let size = u32::try_from(placed.side).ok().and_then(|side| IntSize::from_wh(side, side));
    size.and_then(|size| Pixmap::from_vec(bytes, size)).ok_or_else(|| "a picture without pixels".to_string())
}

/// The SVG element with these pixels.
///
/// # Errors
/// Where they cannot be packed.
fn element(placed: &Placed) -> Result<String, String> {
    let png = pixmap(placed)?.encode_png().map_err(|e| e.to_string())?;
    let (x, y) = placed.corner;
    let length = placed.length;
    let place = format!("x=\"{x}\" y=\"{y}\" width=\"{length}\" height=\"{length}\"");
    Ok(format!("\n<image {place} href=\"data:image/png;base64,{}\"/>", STANDARD.encode(png)))
}
