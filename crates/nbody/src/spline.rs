//! GADGET's cubic spline as its formula stands, for sums that judge others.

/// K at u = r/h, in units of 1/h (Springel, Yoshida & White 2001, Eq. 71, with the opposite sign); h is 2.8 times the softening length.
pub fn depth(u: f64) -> f64 {
    if u < 0.5 {
        14.0 / 5.0 + u * u * (u * u * (48.0 / 5.0 - 32.0 / 5.0 * u) - 16.0 / 3.0)
    } else if u < 1.0 {
        16.0 / 5.0 - 1.0 / (15.0 * u) + u * u * (u * (16.0 - u * (48.0 / 5.0 - 32.0 / 15.0 * u)) - 32.0 / 3.0)
    } else {
        1.0 / u
    }
}

/// −K'/r at u = r/h, in units of h^−3; h is 2.8 times the softening length.
pub fn slope(u: f64) -> f64 {
    if u < 0.5 {
        32.0 / 3.0 + u * u * (32.0 * u - 192.0 / 5.0)
    } else if u < 1.0 {
        64.0 / 3.0 - 48.0 * u + 192.0 / 5.0 * u * u - 32.0 / 3.0 * u.powi(3) - 1.0 / (15.0 * u.powi(3))
    } else {
        u.powi(-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_pieces_join() {
        for u in [0.5, 1.0f64] {
            let (below, above) = (slope(u * (1.0 - 1e-12)), slope(u));
            assert!((below / above - 1.0).abs() < 1e-10, "{u}: {below} {above}");
            let (below, above) = (depth(u * (1.0 - 1e-12)), depth(u));
            assert!((below / above - 1.0).abs() < 1e-10, "{u}: {below} {above}");
        }
        assert_eq!((slope(0.0), slope(2.0)), (32.0 / 3.0, 0.125));
    }
}
