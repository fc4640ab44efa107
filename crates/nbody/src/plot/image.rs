//! SVG to PNG, with the embedded font only: the picture is the same on every machine.
//!
//! Pictures of pixels are drawn below the SVG, not by it: decoders of image files are not compiled in.

use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use resvg::tiny_skia::{Color, FilterQuality, IntSize, Pixmap, PixmapPaint, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use super::draw::Picture;
use super::panels::Placed;

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    Arc::new(fonts)
});

/// The bytes of a PNG file, one pixel for each unit of the SVG.
///
/// # Errors
/// Why the SVG cannot be drawn.
pub fn png(picture: &Picture) -> Result<Vec<u8>, String> {
    let options = Options { fontdb: FONTS.clone(), font_family: "DejaVu Sans".into(), ..Options::default() };
    let tree = Tree::from_str(&picture.foreground(), &options).map_err(|e| e.to_string())?;
    let size = tree.size().to_int_size();
    let mut page = Pixmap::new(size.width(), size.height()).ok_or("a picture without pixels")?;
    page.fill(Color::WHITE);
    let paint = PixmapPaint { quality: FilterQuality::Bilinear, ..PixmapPaint::default() };
    for placed in &picture.pixels {
        let scale = placed.length as f32 / placed.side as f32;
        let place = Transform::from_row(scale, 0.0, 0.0, scale, placed.corner.0 as f32, placed.corner.1 as f32);
        page.draw_pixmap(0, 0, pixmap(placed)?.as_ref(), &paint, place, None);
    }
    resvg::render(&tree, Transform::identity(), &mut page.as_mut());
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
pub fn element(placed: &Placed) -> Result<String, String> {
    let png = pixmap(placed)?.encode_png().map_err(|e| e.to_string())?;
    let (x, y) = placed.corner;
    let length = placed.length;
    let place = format!("x=\"{x}\" y=\"{y}\" width=\"{length}\" height=\"{length}\"");
    Ok(format!("\n<image {place} href=\"data:image/png;base64,{}\"/>", STANDARD.encode(png)))
}
