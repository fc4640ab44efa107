//! Colors of pictures of space: from black over a color to white.

use super::Rgb;

/// Behind everything.
pub const BACKGROUND: Rgb = [6, 6, 12];

/// Colors of groups that the color-blind distinguish on black.
pub const GROUPS: [Rgb; 6] =
    [[255, 140, 50], [70, 150, 255], [80, 205, 140], [235, 120, 190], [240, 215, 90], [150, 130, 255]];

/// Matplotlib's "inferno" at equal distances.
const INFERNO: [Rgb; 6] = [[6, 6, 12], [72, 12, 107], [149, 38, 103], [221, 81, 58], [251, 165, 10], [252, 255, 164]];

/// Shades between the ends of a ramp: enough for the eye, and PNG compresses them well.
const SHADES: f64 = 63.0;

/// The color of one quantity at `t` from 0 to 1.
pub fn ramp(t: f64) -> Rgb {
    along(&INFERNO, t)
}

/// From the background over `color` to white.
pub fn glow(color: [f64; 3], t: f64) -> Rgb {
    let color = color.map(|c| c.round() as u8);
    along(&[BACKGROUND, color.map(|c| c / 2), color, color.map(|c| 255 - (255 - c) / 4)], t)
}

/// The color at `t` from 0 to 1 along stops at equal distances.
fn along(stops: &[Rgb], t: f64) -> Rgb {
    // What is no number is dark.
    let t = if t.is_nan() { 0.0 } else { t.clamp(0.0, 1.0) };
    let t = (t * SHADES).round() / SHADES * (stops.len() - 1) as f64;
    let first = (t as usize).min(stops.len() - 2);
    let share = t - first as f64;
    std::array::from_fn(|k| {
        let (a, b) = (f64::from(stops[first][k]), f64::from(stops[first + 1][k]));
        (a + share * (b - a)).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_go_from_the_background_to_light() {
        assert_eq!((ramp(0.0), ramp(1.0), ramp(f64::NAN)), (BACKGROUND, INFERNO[5], BACKGROUND));
        assert_eq!(ramp(7.0), INFERNO[5]);
        let light = |c: Rgb| c.map(u32::from).iter().sum::<u32>();
        for group in GROUPS {
            let steps: Vec<u32> = (0..=20).map(|i| light(glow(group.map(f64::from), f64::from(i) / 20.0))).collect();
            assert!(steps.is_sorted() && steps[20] > 500, "{steps:?}");
        }
    }
}
