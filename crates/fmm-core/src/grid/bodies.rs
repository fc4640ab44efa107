//! Solid bodies in a flow: where they are, how they move, and how much of a cell is theirs.
//!
//! A body is a sphere, an ellipsoid, a box or any other form with a signed distance. It is still, or
//! moves and turns at constant rates. Its mask falls over two cells from 1 to 0 at the surface: χ =
//! ½ (1 − s − sin(πs)/π), s = 1 + d/h with the signed distance d from the surface (Gazzola et al.
//! 2011, who have s = d/h). Penalisation stops the fluid wherever χ is above 1/(λ dt), which with
//! s = d/h would be a body larger by a cell on all sides.

use std::any::Any;
use std::f64::consts::PI;
use std::fmt::Debug;
use std::sync::Arc;

use crate::math::cross;

/// A form that is given by its signed distance, in a frame of its own: the body's center is the
/// origin. Two of them are equal where they are the same object.
pub trait Solid: Any + Debug + Send + Sync {
    /// The distance of `x` from the surface, negative inside: exact, near and far.
    fn distance(&self, x: [f64; 3]) -> f64;

    /// The depth of its deepest point.
    fn depth(&self) -> f64;

    /// The radius of the sphere about the origin that holds it.
    fn extent(&self) -> f64;
}

impl PartialEq for dyn Solid {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

/// The form of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Of this radius.
    Sphere(f64),
    /// Of these half axes, along x, y and z before it is turned.
    Ellipsoid([f64; 3]),
    /// Of these sides.
    Box([f64; 3]),
    /// Any other.
    Solid(Arc<dyn Solid>),
}

/// A body.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// Its form.
    pub shape: Shape,
    /// Its center at time 0.
    pub center: [f64; 3],
    /// How it is turned at time 0: about x, then y, then z, in degrees.
    pub rotation: [f64; 3],
    /// The velocity of its center.
    pub velocity: [f64; 3],
    /// Its angular velocity, about its center.
    pub spin: [f64; 3],
}

/// The uniform flow far away.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Inflow {
    /// Its velocity from the time `ramp` on.
    pub velocity: [f64; 3],
    /// Until then it grows linearly from 0; 0 for an impulsive start.
    pub ramp: f64,
}

impl Inflow {
    /// The velocity at a time.
    pub fn at(&self, time: f64) -> [f64; 3] {
        let part = if time < self.ramp { time / self.ramp } else { 1.0 };
        self.velocity.map(|v| part * v)
    }
}

/// A body at one time.
#[derive(Debug, Clone)]
pub struct Pose {
    body: Body,
    /// Its center.
    pub center: [f64; 3],
    /// Rows: the body's own axes.
    axes: [[f64; 3]; 3],
}

impl Body {
    /// Where it is at a time.
    pub fn at(&self, time: f64) -> Pose {
        let center = std::array::from_fn(|d| self.center[d] + time * self.velocity[d]);
        let mut axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        for (d, &angle) in self.rotation.iter().enumerate() {
            let about = std::array::from_fn(|k| f64::from(u8::from(k == d)));
            axes = axes.map(|a| turned(a, about, angle.to_radians()));
        }
        let rate = length(self.spin);
        if rate > 0.0 {
            let about = self.spin.map(|s| s / rate);
            axes = axes.map(|a| turned(a, about, rate * time));
        }
        Pose { body: self.clone(), center, axes }
    }

    /// The shortest of its radius or half widths: the depth of its deepest point.
    pub fn narrowest(&self) -> f64 {
        match &self.shape {
            Shape::Sphere(r) => *r,
            Shape::Ellipsoid(a) => a.iter().copied().fold(f64::INFINITY, f64::min),
            Shape::Box(s) => s.iter().copied().fold(f64::INFINITY, f64::min) / 2.0,
            Shape::Solid(solid) => solid.depth(),
        }
    }

    /// The radius of the sphere about its center that holds it.
    pub fn extent(&self) -> f64 {
        match &self.shape {
            Shape::Sphere(r) => *r,
            Shape::Ellipsoid(a) => a.iter().copied().fold(0.0, f64::max),
            Shape::Box(s) => length(*s) / 2.0,
            Shape::Solid(solid) => solid.extent(),
        }
    }
}

impl Pose {
    /// The distance of `x` from the surface, negative inside; of an ellipsoid to first order.
    pub fn distance(&self, x: [f64; 3]) -> f64 {
        let from = difference(x, self.center);
        let own = self.axes.map(|a| dot(a, from));
        match &self.body.shape {
            Shape::Sphere(r) => length(own) - r,
            Shape::Ellipsoid(a) => {
                let once = length([0, 1, 2].map(|d| own[d] / a[d]));
                let twice = length([0, 1, 2].map(|d| own[d] / (a[d] * a[d])));
                if twice > 0.0 { once * (once - 1.0) / twice } else { -self.body.narrowest() }
            }
            Shape::Box(s) => {
                let beyond = [0, 1, 2].map(|d| own[d].abs() - s[d] / 2.0);
                let inside = beyond.into_iter().fold(f64::NEG_INFINITY, f64::max).min(0.0);
                length(beyond.map(|b| b.max(0.0))) + inside
            }
            Shape::Solid(solid) => solid.distance(own),
        }
    }

    /// χ of all cells of side `h` whose centers lie within `radius` of `x`, where it is the same for
    /// them because the surface is elsewhere: 0 or 1.
    pub fn mask_of_ball(&self, x: [f64; 3], radius: f64, h: f64) -> Option<f64> {
        // The distance from an ellipsoid is no distance far away.
        if matches!(self.body.shape, Shape::Ellipsoid(_)) {
            return None;
        }
        // Rounding of a distance must not matter.
        let (distance, radius) = (self.distance(x), radius + 0.01 * h);
        if distance > radius { Some(0.0) } else { (distance < -radius - 2.0 * h).then_some(1.0) }
    }

    /// χ of a cell of side `h` at `x`.
    pub fn mask(&self, x: [f64; 3], h: f64) -> f64 {
        let s = 1.0 + self.distance(x) / h;
        if s >= 1.0 {
            0.0
        } else if s <= -1.0 {
            1.0
        } else {
            0.5 * (1.0 - s - (PI * s).sin() / PI)
        }
    }

    /// The velocity of the body at `x`.
    pub fn velocity(&self, x: [f64; 3]) -> [f64; 3] {
        let turning = cross(self.body.spin, difference(x, self.center));
        std::array::from_fn(|k| self.body.velocity[k] + turning[k])
    }

    /// Whether the body comes nearer than `reach` to a ball; it may be said of one that it passes by.
    pub fn meets(&self, center: [f64; 3], radius: f64, reach: f64) -> bool {
        let limit = radius + reach;
        // The distance from an ellipsoid is no distance far away.
        match self.body.shape {
            Shape::Ellipsoid(_) => length(difference(center, self.center)) < limit + self.body.extent(),
            _ => self.distance(center) < limit,
        }
    }
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|d| a[d] - b[d])
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn length(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

/// `v` turned by `angle` about a direction of length 1 (Rodrigues).
fn turned(v: [f64; 3], about: [f64; 3], angle: f64) -> [f64; 3] {
    let ((s, c), along, across) = (angle.sin_cos(), dot(v, about), cross(about, v));
    std::array::from_fn(|k| c * v[k] + s * across[k] + (1.0 - c) * along * about[k])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sphere by its distance.
    #[derive(Debug)]
    struct Ball(f64);

    impl Solid for Ball {
        fn distance(&self, x: [f64; 3]) -> f64 {
            length(x) - self.0
        }

        fn depth(&self) -> f64 {
            self.0
        }

        fn extent(&self) -> f64 {
            self.0
        }
    }

    fn still(shape: Shape) -> Body {
        Body { shape, center: [0.1, -0.2, 0.3], rotation: [0.0; 3], velocity: [0.0; 3], spin: [0.0; 3] }
    }

    /// The volume that is stopped with λ dt = 1e4: Σ λ dt χ/(1 + λ dt χ) h³ over cells around the center.
    fn volume(body: &Body, time: f64, h: f64) -> f64 {
        let (pose, n) = (body.at(time), (1.2 * body.extent() / h) as i64);
        let mut sum = 0.0;
        for i in -n..n {
            for j in -n..n {
                for k in -n..n {
                    let at = [i, j, k].map(|i| (i as f64 + 0.5) * h);
                    let strength = 1e4 * pose.mask(std::array::from_fn(|d| pose.center[d] + at[d]), h);
                    sum += strength / (1.0 + strength);
                }
            }
        }
        sum * h * h * h
    }

    #[test]
    fn what_is_stopped_has_the_volume_of_the_body() {
        let turned =
            Body { rotation: [17.0, 29.0, -11.0], spin: [0.0, 2.0, 1.0], ..still(Shape::Box([0.5, 0.3, 0.4])) };
        for (body, expected) in [
            (still(Shape::Sphere(0.25)), 4.0 / 3.0 * PI * 0.25f64.powi(3)),
            (still(Shape::Ellipsoid([0.3, 0.2, 0.25])), 4.0 / 3.0 * PI * 0.015),
            (turned, 0.06),
            (still(Shape::Solid(Arc::new(Ball(0.25)))), 4.0 / 3.0 * PI * 0.25f64.powi(3)),
        ] {
            let found = volume(&body, 0.7, 0.02);
            assert!((found / expected - 1.0).abs() < 0.03, "{body:?}: {found} {expected}");
        }
    }

    #[test]
    fn cells_far_from_the_surface_have_one_mask() {
        let (h, radius) = (0.02, 0.03);
        for shape in [Shape::Sphere(0.25), Shape::Box([0.5, 0.3, 0.4]), Shape::Solid(Arc::new(Ball(0.25)))] {
            let pose = Body { rotation: [17.0, 29.0, -11.0], ..still(shape) }.at(0.0);
            let mut found = [0; 3];
            for n in 0..1000 {
                let along = |d: u32| (n / 10i32.pow(d) % 10 - 5) as f64 * 0.08;
                let x = [along(0), along(1), along(2)];
                let near = [[radius, 0.0, 0.0], [0.0, -radius, 0.0], [0.0, 0.0, radius], [0.0; 3]];
                let masks = near.map(|d| pose.mask(std::array::from_fn(|k| x[k] + d[k]), h));
                match pose.mask_of_ball(x, radius, h) {
                    None => found[2] += 1,
                    Some(mask) => {
                        assert_eq!(masks, [mask; 4], "{pose:?} {x:?}");
                        found[mask as usize] += 1;
                    }
                }
            }
            assert!(found.iter().all(|&f| f > 5), "{found:?}");
        }
    }

    #[test]
    fn bodies_move_and_turn() {
        let body = Body { velocity: [1.0, 0.0, 0.0], spin: [0.0, 0.0, PI], ..still(Shape::Box([0.4, 0.2, 0.2])) };
        let pose = body.at(0.5);
        assert!((pose.center[0] - 0.6).abs() < 1e-15 && pose.center[1] == -0.2);
        // After a quarter of a turn the long side is along y.
        let at = |d: [f64; 3]| pose.distance(std::array::from_fn(|k| pose.center[k] + d[k]));
        assert!((at([0.15, 0.0, 0.0]) - 0.05).abs() < 1e-12 && (at([0.0, 0.15, 0.0]) + 0.05).abs() < 1e-12);
        let u = pose.velocity([0.6, 0.3, 0.3]);
        assert!((u[0] - (1.0 - 0.5 * PI)).abs() < 1e-12 && u[1].abs() < 1e-12, "{u:?}");
        // About x first, then about z: what was z becomes −y, and then x.
        let twice = Body { rotation: [90.0, 0.0, 90.0], ..still(Shape::Box([0.1, 0.1, 0.8])) }.at(0.0);
        assert!(twice.distance([0.1 + 0.3, -0.2, 0.3]) < 0.0);
        let ramped = Inflow { velocity: [2.0, 0.0, -1.0], ramp: 0.5 };
        assert_eq!((ramped.at(0.0), ramped.at(0.25), ramped.at(3.0)), ([0.0; 3], [1.0, 0.0, -0.5], [2.0, 0.0, -1.0]));
        assert_eq!(Inflow { ramp: 0.0, ..ramped }.at(0.0), [2.0, 0.0, -1.0]);
    }
}
