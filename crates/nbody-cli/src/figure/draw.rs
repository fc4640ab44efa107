//! Figures as SVG: dark on white, in colors that the color-blind can distinguish, with the legend
//! outside the plot.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use tiny_skia::Pixmap;

use super::axis::{Scale, coordinate};
use super::image::Picture;
use super::marker;
use super::page::{
    Area, Drawn, FAINT, FONT, MARGIN, TEXT, WIDTH, register_fonts, style, to_text, width, wrapped, write,
};
use super::panels::{BAR, Panels, draw_ramp, rgb};
use super::sheet::{SVG_SIZE, Sheet};
use super::thin::thin;
use super::{Axis, Brightness, Content, Figure, Line, Rgb};

/// Height of all figures but pictures of space, which need what they need, and rectangles.
const HEIGHT: i32 = 1000;
/// Height of rectangles, which are over axes of the same scale.
const SQUARE_HEIGHT: i32 = 1560;
/// Points of a line that are marked one by one, at most.
const MARKED: usize = 60;
/// Points of a line beyond which it looks the same.
const MOST_POINTS: usize = 4000;

const GRID: RGBColor = RGBColor(0xd4, 0xd4, 0xd4);
const FINE_GRID: RGBColor = RGBColor(0xee, 0xee, 0xee);

/// Okabe and Ito's colours, without yellow, which is too light on white.
const PALETTE: [RGBColor; marker::COUNT] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x00, 0x00),
];

/// Places of the palette on which dark text is read best.
const LIGHT: [usize; 3] = [3, 4, 5];

/// Draws a figure.
///
/// # Errors
/// What the drawing crate reports.
pub fn picture(figure: &Figure) -> Result<Picture, String> {
    register_fonts();
    let caption = wrapped(&figure.caption, 21, WIDTH - 2 * MARGIN);
    let subtitle = wrapped(&figure.subtitle, 24, WIDTH - 2 * MARGIN);
    let foot = 26 + 28 * caption.len() as i32;
    let top = 84 + 32 * subtitle.len() as i32 + 12;
    let height = match (&figure.content, panels(figure)) {
        (_, Some(panels)) => top + panels.height() + 12 + foot,
        (Content::Rectangles { .. }, _) => SQUARE_HEIGHT,
        _ => HEIGHT,
    };
    let mut text = String::new();
    let mut pixels = vec![];
    let mut ink = Pixmap::new(WIDTH as u32, height as u32).ok_or("a picture without pixels")?;
    {
        let mut svg = SVGBackend::with_string(&mut text, (WIDTH as u32, height as u32));
        svg.draw_rect((0, 0), (WIDTH, height), &WHITE.filled(), true).map_err(to_text)?;
        let area = Sheet { svg, ink: &mut ink }.into_drawing_area();
        head(&area, &figure.title, &subtitle)?;
        let bottom = height - foot;
        for (i, line) in caption.iter().enumerate() {
            let at = (MARGIN, bottom + 8 + 28 * i as i32);
            write(&area, line, at, 21, FAINT, Pos::new(HPos::Left, VPos::Top))?;
        }
        let (_, rest) = area.split_vertically(top);
        let (middle, _) = rest.split_vertically(bottom - top - 12);
        match &figure.content {
            Content::Lines { x, y, lines, marks } => draw_lines(&middle, x, y, lines, marks)?,
            Content::Bars { x, bars } => {
                let bars: Vec<Bar> = bars.iter().map(|(n, l, t)| (n.clone(), vec![*l], t.clone())).collect();
                draw_bars(&middle, x, &bars, &[])?;
            }
            Content::Stacked { x, parts, bars } => {
                // Parts beyond the colors have them again, striped.
                let line = |(k, p): (usize, &String)| Line { dashed: k >= PALETTE.len(), ..Line::new(p, vec![]) };
                let names: Vec<Line> = parts.iter().enumerate().map(line).collect();
                let (_, rest) = middle.split_vertically(legend(&middle, &names)?);
                draw_bars(&rest, x, bars, parts)?;
            }
            Content::Rectangles { x, y, rectangles, names, brightness } => {
                draw_rectangles(&middle, [x, y], rectangles, names, brightness.as_ref())?;
            }
            Content::Panels { .. } => {
                if let Some(panels) = panels(figure) {
                    pixels = panels.draw(&middle)?;
                }
            }
        }
        area.present().map_err(to_text)?;
    }
    // The first element is the white page.
    let background = text.find("/>").map_or(0, |i| i + 2);
    Ok(Picture { text, background, pixels, ink })
}

fn panels(figure: &Figure) -> Option<Panels<'_>> {
    match &figure.content {
        Content::Panels { panels, bar, brightness, names } => {
            Some(Panels { panels, bar, brightness: brightness.as_ref(), names })
        }
        _ => None,
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let (low, high) = self.range;
        let share = (value - low) / (high - low);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { self.minor.clone() } else { self.major.clone() }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.0..self.range.1
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        self.label(*value)
    }
}

/// Title and subtitle.
fn head(area: &Area, title: &str, subtitle: &[String]) -> Drawn<()> {
    let bold = (FONT, 34.0 * SVG_SIZE).into_font().style(FontStyle::Bold).color(&TEXT);
    let style = bold.pos(Pos::new(HPos::Left, VPos::Top));
    area.draw(&Text::new(title.to_string(), (MARGIN, 32), style)).map_err(to_text)?;
    for (i, line) in subtitle.iter().enumerate() {
        write(area, line, (MARGIN, 84 + 32 * i as i32), 24, FAINT, Pos::new(HPos::Left, VPos::Top))?;
    }
    Ok(())
}

/// One row of names above the plot, broken where it is full; lines of one name have one entry. Returns where it ends.
fn legend(area: &Area, lines: &[Line]) -> Drawn<i32> {
    const SAMPLE: i32 = 56;
    let (mut x, mut y) = (MARGIN, 20);
    for (i, line) in lines.iter().enumerate() {
        if lines[..i].iter().any(|before| before.name == line.name) {
            continue;
        }
        let needed = SAMPLE + 12 + width(&line.name, 25) + 44;
        if x + needed > WIDTH - MARGIN && x > MARGIN {
            (x, y) = (MARGIN, y + 38);
        }
        let color = color_of(i, line);
        let pieces: &[(i32, i32)] = if line.dashed { &[(0, 14), (21, 35), (42, 56)] } else { &[(0, SAMPLE)] };
        for (a, b) in pieces {
            area.draw(&PathElement::new([(x + a, y), (x + b, y)], color.stroke_width(4))).map_err(to_text)?;
        }
        if !line.dashed && (1..=MARKED).contains(&line.points.len()) {
            let at = |&(a, b): &(i32, i32)| (x + SAMPLE / 2 + a, y + b);
            let shape = Polygon::new(marker::shape(number(i, line)).iter().map(at).collect::<Vec<_>>(), color.filled());
            area.draw(&shape).map_err(to_text)?;
        }
        write(area, &line.name, (x + SAMPLE + 12, y), 25, TEXT, Pos::new(HPos::Left, VPos::Center))?;
        x += needed;
    }
    Ok(y + 30)
}

/// The number of the color and the marker of a line.
fn number(place: usize, line: &Line) -> usize {
    line.color.unwrap_or(place) % PALETTE.len()
}

fn color_of(place: usize, line: &Line) -> RGBColor {
    PALETTE[number(place, line)]
}

fn draw_lines(area: &Area, x: &Axis, y: &Axis, lines: &[Line], marks: &[(f64, String)]) -> Drawn<()> {
    // A single line is named by the vertical axis.
    let top = if lines.len() > 1 { legend(area, lines)? } else { 0 };
    let (_, area) = area.split_vertically(top);
    let all = || lines.iter().flat_map(|l| &l.points);
    let sx = Scale::of(all().map(|p| p.0), x.log, false);
    let spread = || lines.iter().flat_map(|l| &l.spread).flat_map(|s| [s.0, s.1]);
    let sy = Scale::of(all().map(|p| p.1).chain(spread()), y.log, false);
    let ends = sy.range;
    let widest = sy.major.iter().map(|&m| width(&sy.label(m), 25)).max().unwrap_or(0);
    let mut chart = ChartBuilder::on(&area)
        .margin_top(16)
        .margin_right(MARGIN)
        .margin_left(MARGIN - 8)
        .x_label_area_size(84)
        .y_label_area_size(widest + 76)
        .build_cartesian_2d(sx, sy)
        .map_err(to_text)?;
    chart
        .configure_mesh()
        .bold_line_style(GRID.stroke_width(1))
        .light_line_style(FINE_GRID.stroke_width(1))
        .axis_style(TEXT.stroke_width(2))
        .label_style(style(25, TEXT))
        .axis_desc_style(style(27, TEXT))
        .x_desc(&x.label)
        .y_desc(&y.label)
        .draw()
        .map_err(to_text)?;
    for (at, name) in marks {
        let Some(at) = coordinate(*at, x.log) else { continue };
        let dots = DashedLineSeries::new([(at, ends.0), (at, ends.1)], 3, 7, FAINT.stroke_width(2));
        chart.draw_series(dots).map_err(to_text)?;
        let text = style(22, FAINT).pos(Pos::new(HPos::Right, VPos::Top)).transform(FontTransform::Rotate270);
        chart.draw_series([Text::new(name.clone(), (at, ends.1), text)]).map_err(to_text)?;
    }
    for (i, line) in lines.iter().enumerate() {
        let color = color_of(i, line);
        for (&(a, _), &(low, high)) in line.points.iter().zip(&line.spread) {
            let ends = (coordinate(a, x.log), coordinate(low, y.log), coordinate(high, y.log));
            if let (Some(a), Some(low), Some(high)) = ends {
                chart.draw_series([PathElement::new([(a, low), (a, high)], color.stroke_width(3))]).map_err(to_text)?;
            }
        }
        let place = |&(a, b): &(f64, f64)| Some((coordinate(a, x.log)?, coordinate(b, y.log)?));
        let points: Vec<(f64, f64)> = thin(&line.points, MOST_POINTS).iter().filter_map(place).collect();
        if line.dashed {
            let dashes = DashedLineSeries::new(points.iter().copied(), 14, 9, color.stroke_width(3));
            chart.draw_series(dashes).map_err(to_text)?;
        } else {
            chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(4))).map_err(to_text)?;
        }
        // Few points are marked; a line of one point would not be visible.
        if points.len() <= MARKED && !line.dashed {
            let shape = marker::shape(number(i, line));
            let marks = points.iter().map(|&p| EmptyElement::at(p) + Polygon::new(shape.clone(), color.filled()));
            chart.draw_series(marks).map_err(to_text)?;
        }
    }
    Ok(())
}

/// Rectangles in a square plot; both axes have the same range.
fn draw_rectangles(
    area: &Area,
    axes: [&Axis; 2],
    rectangles: &[super::Rectangle],
    names: &[(String, Rgb)],
    brightness: Option<&Brightness>,
) -> Drawn<()> {
    let mut left = MARGIN;
    for (name, color) in names {
        let ends = [(left, 6), (left + 28, 34)];
        area.draw(&Rectangle::new(ends, rgb(*color).filled())).map_err(to_text)?;
        area.draw(&Rectangle::new(ends, FAINT.stroke_width(1))).map_err(to_text)?;
        write(area, name, (left + 40, 20), 25, TEXT, Pos::new(HPos::Left, VPos::Center))?;
        left += 40 + width(name, 25) + 44;
    }
    let (w, h) = area.dim_in_pixel();
    let below = if brightness.is_some() { BAR } else { 0 };
    let (_, rest) = area.split_vertically(if names.is_empty() { 0 } else { 50 });
    let (plot, _) = rest.split_vertically(h as i32 - below - if names.is_empty() { 0 } else { 50 });
    let scale = Scale::of(rectangles.iter().flat_map(|r| [r.low, r.high]).flatten(), false, false);
    let widest = scale.major.iter().map(|&m| width(&scale.label(m), 25)).max().unwrap_or(0);
    let [label_x, label_y] = [84, widest + 76];
    let side = (plot.dim_in_pixel().1 as i32 - 16 - label_x).min(w as i32 - 2 * MARGIN - label_y);
    let sides = (w as i32 - side - label_y) / 2;
    let mut chart = ChartBuilder::on(&plot)
        .margin_top(16)
        .margin_left(sides)
        .margin_right(w as i32 - side - label_y - sides)
        .x_label_area_size(label_x)
        .y_label_area_size(label_y)
        .build_cartesian_2d(scale.clone(), scale)
        .map_err(to_text)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(TEXT.stroke_width(2))
        .label_style(style(25, TEXT))
        .axis_desc_style(style(27, TEXT))
        .x_desc(&axes[0].label)
        .y_desc(&axes[1].label)
        .draw()
        .map_err(to_text)?;
    for r in rectangles {
        let ends = [(r.low[0], r.low[1]), (r.high[0], r.high[1])];
        if let Some(fill) = r.fill {
            chart.draw_series([Rectangle::new(ends, rgb(fill).filled())]).map_err(to_text)?;
        }
        chart.draw_series([Rectangle::new(ends, FAINT.stroke_width(1))]).map_err(to_text)?;
    }
    if let Some(brightness) = brightness {
        draw_ramp(area, brightness, h as i32 - below + 12)?;
    }
    Ok(())
}

/// Name, lengths of its parts, and the text at its end.
type Bar = (String, Vec<f64>, String);

/// `parts` are names that are written where they fit.
fn draw_bars(area: &Area, x: &Axis, bars: &[Bar], parts: &[String]) -> Drawn<()> {
    let scale = Scale::of(bars.iter().map(|b| b.1.iter().sum()), false, true);
    let names = bars.iter().map(|b| width(&b.0, 25)).max().unwrap_or(0);
    let texts = bars.iter().map(|b| width(&b.2, 25)).max().unwrap_or(0);
    let (w, h) = area.dim_in_pixel();
    let (left, right) = (MARGIN + names + 18, w as i32 - MARGIN - texts - 18);
    let (top, bottom) = (10, h as i32 - 100);
    let (low, high) = scale.range;
    let at = |v: f64| left + (f64::from(right - left) * (v - low) / (high - low)).round() as i32;
    for &tick in &scale.major {
        area.draw(&PathElement::new([(at(tick), top), (at(tick), bottom)], GRID.stroke_width(1))).map_err(to_text)?;
        let pos = Pos::new(HPos::Center, VPos::Top);
        write(area, &scale.label(tick), (at(tick), bottom + 12), 25, TEXT, pos)?;
    }
    let slot = (bottom - top) / bars.len().max(1) as i32;
    let thickness = (slot * 7 / 10).clamp(2, 56);
    for (i, (name, lengths, text)) in bars.iter().enumerate() {
        let middle = top + slot * i as i32 + slot / 2;
        let mut length = 0.0;
        for (k, part) in lengths.iter().enumerate() {
            let (from, to) = (at(length), at(length + part));
            let (high, low) = (middle - thickness / 2, middle + thickness / 2);
            let color = PALETTE[k % PALETTE.len()];
            area.draw(&Rectangle::new([(from, high), (to, low)], color.filled())).map_err(to_text)?;
            if k >= PALETTE.len() {
                for stripe in (from + 6..to - 3).step_by(12) {
                    let ends = [(stripe, high), (stripe + 4, low)];
                    area.draw(&Rectangle::new(ends, WHITE.filled())).map_err(to_text)?;
                }
            }
            // Neighbors differ in grey too.
            if to > from + 3 {
                area.draw(&PathElement::new([(to, high), (to, low)], WHITE.stroke_width(2))).map_err(to_text)?;
            }
            if let Some(name) = parts.get(k).filter(|n| k < PALETTE.len() && width(n, 20) + 12 < to - from) {
                let ink = if LIGHT.contains(&(k % PALETTE.len())) { TEXT } else { WHITE };
                write(area, name, ((from + to) / 2, middle), 20, ink, Pos::new(HPos::Center, VPos::Center))?;
            }
            length += part;
        }
        let length = &length;
        write(area, name, (left - 14, middle), 25, TEXT, Pos::new(HPos::Right, VPos::Center))?;
        // The grid does not run through the numbers.
        let behind = [(at(*length) + 6, middle - 17), (at(*length) + 18 + width(text, 25), middle + 17)];
        area.draw(&Rectangle::new(behind, WHITE.filled())).map_err(to_text)?;
        write(area, text, (at(*length) + 12, middle), 25, TEXT, Pos::new(HPos::Left, VPos::Center))?;
    }
    area.draw(&PathElement::new([(at(0.0), top), (at(0.0), bottom)], TEXT.stroke_width(2))).map_err(to_text)?;
    let middle = (left + right) / 2;
    write(area, &x.label, (middle, bottom + 54), 27, TEXT, Pos::new(HPos::Center, VPos::Top))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_have_their_colors_and_the_same_scale_on_both_axes() {
        let rectangle = |low, high, fill| crate::figure::Rectangle { low, high, fill };
        let content = Content::Rectangles {
            x: Axis::linear("x"),
            y: Axis::linear("y"),
            rectangles: vec![
                rectangle([0.0, 0.0], [1.0, 0.5], None),
                rectangle([0.25, 0.5], [0.5, 0.75], Some([0, 0, 0])),
                rectangle([0.5, 0.5], [1.0, 1.0], Some([1, 2, 250])),
            ],
            names: vec![("near".into(), [0, 0, 0])],
            brightness: None,
        };
        let figure = Figure { title: "Boxes".into(), subtitle: String::new(), caption: String::new(), content };
        let picture = picture(&figure).unwrap();
        assert!(picture.text.contains(">\nnear\n<") && picture.text.contains("#0102FA"), "{}", picture.text);
        // The extent of the blue pixels of the PNG: half of the plot in each direction.
        let blue = |&(_, p): &(usize, &tiny_skia::PremultipliedColorU8)| (p.red(), p.green(), p.blue()) == (1, 2, 250);
        let places = picture.ink.pixels().iter().enumerate().filter(blue).map(|(i, _)| (i % 1600, i / 1600));
        let (mut low, mut high) = ((usize::MAX, usize::MAX), (0, 0));
        for (x, y) in places {
            (low, high) = ((low.0.min(x), low.1.min(y)), (high.0.max(x), high.1.max(y)));
        }
        let (width, height) = (high.0 - low.0, high.1 - low.1);
        assert!(width > 500 && width.abs_diff(height) <= 2, "{width} x {height}");
        // The black one is at the left, its upper edge halfway down the blue one, and half as large.
        let at = |x: usize, y: usize| picture.ink.pixel(x as u32, y as u32).unwrap();
        let inside = at(low.0 - width / 4, high.1 - width / 4);
        assert_eq!((inside.red(), inside.alpha()), (0, 255));
        assert_eq!(at(low.0 - width / 4, high.1 - width * 3 / 4).alpha(), 0);
    }
}
