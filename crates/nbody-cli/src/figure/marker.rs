//! Markers of lines: one for each color, so that lines differ in grey too.

/// How many there are.
pub const COUNT: usize = 7;

/// The corners of a marker about its point, in pixels.
pub fn shape(number: usize) -> Vec<(i32, i32)> {
    match number % COUNT {
        0 => ring(16, 0.0, 7.0),
        1 => ring(4, 45.0, 10.0),
        2 => ring(3, 0.0, 11.0),
        3 => ring(4, 0.0, 10.0),
        4 => ring(3, 180.0, 11.0),
        5 => cross(3, 9),
        _ => ring(5, 0.0, 9.0),
    }
}

/// Corners at equal distances, the first of them so many degrees to the right of the top.
fn ring(corners: u32, from: f64, radius: f64) -> Vec<(i32, i32)> {
    let at = |k: u32| (from + 360.0 * f64::from(k) / f64::from(corners)).to_radians().sin_cos();
    let round = |v: f64| v.round() as i32;
    (0..corners).map(at).map(|(sin, cos)| (round(radius * sin), round(-radius * cos))).collect()
}

/// A plus sign: half the width of its arms, and half its height.
fn cross(a: i32, b: i32) -> Vec<(i32, i32)> {
    let arm = [(-a, -b), (a, -b), (a, -a)];
    // A quarter turn for each arm.
    (0..4).flat_map(|turns| arm.map(|corner| (0..turns).fold(corner, |(x, y), _| (-y, x)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_differ_and_are_about_their_point() {
        for a in 0..COUNT {
            let corners = shape(a);
            assert!(corners.iter().all(|c| c.0.abs() <= 11 && c.1.abs() <= 11) && corners.len() >= 3, "{corners:?}");
            for b in 0..a {
                assert_ne!(corners, shape(b), "{a} {b}");
            }
        }
        assert_eq!(cross(1, 2)[..4], [(-1, -2), (1, -2), (1, -1), (2, -1)]);
    }
}
