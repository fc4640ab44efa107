//! A vortex ring whose stream function is known: what solvers are measured with.
//!
//! About an axis n, with the distance r from it and z along it: Ψ = f(t) e_θ, t = √((r − R)² + z²)/a and
//! f = f₀ exp(c − c/(1 − t²)) for t < 1, else 0. All derivatives vanish at t = 1, so the ring is smooth and ends. With a = R, c = 20
//! it is the ring of van Rees et al. (2014), whose c₁ is f₀ e^c.

/// A ring about an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ring {
    /// Its center.
    pub center: [f64; 3],
    /// Direction of its axis, of length 1; the ring moves this way where `peak` is positive.
    pub axis: [f64; 3],
    /// R, the radius of the core's circle.
    pub radius: f64,
    /// a ≤ R, beyond which there is no vorticity.
    pub core: f64,
    /// f₀, the stream function on the core's circle.
    pub peak: f64,
    /// c, how steeply the core falls off.
    pub steepness: f64,
}

impl Ring {
    /// The ring of the paper: a = R, c = 20, c₁ = 2²⁷.
    pub fn of_paper(center: [f64; 3], axis: [f64; 3], radius: f64) -> Self {
        let peak = 2f64.powi(27) * (-20f64).exp();
        Ring { center, axis, radius, core: radius, peak, steepness: 20.0 }
    }

    /// Where `x` lies: r, z and the unit vectors r̂ and e_θ; `None` outside the core.
    fn place(&self, x: [f64; 3]) -> Option<Place> {
        let n = self.axis;
        let d: [f64; 3] = std::array::from_fn(|k| x[k] - self.center[k]);
        let z = d[0] * n[0] + d[1] * n[1] + d[2] * n[2];
        let out: [f64; 3] = std::array::from_fn(|k| d[k] - z * n[k]);
        let r = (out[0] * out[0] + out[1] * out[1] + out[2] * out[2]).sqrt();
        let t2 = ((r - self.radius).powi(2) + z * z) / (self.core * self.core);
        // The core does not reach the axis, but rounding may.
        (t2 < 1.0 && r > 0.0).then(|| {
            let radial = out.map(|o| o / r);
            let around: [f64; 3] = std::array::from_fn(|k| {
                let (a, b) = ((k + 1) % 3, (k + 2) % 3);
                n[a] * radial[b] - n[b] * radial[a]
            });
            Place { r, z, t2, radial, around }
        })
    }

    /// f, f'/t and f'' at t².
    fn profile(&self, t2: f64) -> [f64; 3] {
        let (c, u) = (self.steepness, 1.0 - t2);
        let f = self.peak * (c - c / u).exp();
        let first = -2.0 * c * f / (u * u);
        let second = f * (4.0 * c * c * t2 / (u * u * u * u) - 2.0 * c * (1.0 + 3.0 * t2) / (u * u * u));
        [f, first, second]
    }

    /// Ψ at `x`.
    pub fn stream(&self, x: [f64; 3]) -> [f64; 3] {
        self.place(x).map_or([0.0; 3], |p| {
            let f = self.profile(p.t2)[0];
            p.around.map(|e| f * e)
        })
    }

    /// u = ∇ × Ψ at `x`.
    pub fn velocity(&self, x: [f64; 3]) -> [f64; 3] {
        self.place(x).map_or([0.0; 3], |p| {
            let ([f, first, _], a2) = (self.profile(p.t2), self.core * self.core);
            let (out, along) = (-first * p.z / a2, f / p.r + first * (p.r - self.radius) / a2);
            std::array::from_fn(|k| out * p.radial[k] + along * self.axis[k])
        })
    }

    /// ω = −∇²Ψ at `x`.
    pub fn vorticity(&self, x: [f64; 3]) -> [f64; 3] {
        self.place(x).map_or([0.0; 3], |p| {
            let ([f, first, second], a2) = (self.profile(p.t2), self.core * self.core);
            let w = -(second + first) / a2 - first * (p.r - self.radius) / (a2 * p.r) + f / (p.r * p.r);
            p.around.map(|e| w * e)
        })
    }
}

/// A place within the core.
struct Place {
    r: f64,
    z: f64,
    /// t².
    t2: f64,
    /// r̂.
    radial: [f64; 3],
    /// e_θ.
    around: [f64; 3],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ∂_d of a vector field, by differences of sixth order.
    fn derivative(f: impl Fn([f64; 3]) -> [f64; 3], x: [f64; 3], d: usize, h: f64) -> [f64; 3] {
        let at = |steps: f64| {
            let mut y = x;
            y[d] += steps * h;
            f(y)
        };
        let [a, b, c] = [1.0, 2.0, 3.0].map(|s| (at(s), at(-s)));
        std::array::from_fn(|k| (45.0 * (a.0[k] - a.1[k]) - 9.0 * (b.0[k] - b.1[k]) + (c.0[k] - c.1[k])) / (60.0 * h))
    }

    fn curl(f: impl Fn([f64; 3]) -> [f64; 3], x: [f64; 3], h: f64) -> [f64; 3] {
        let d = [0, 1, 2].map(|d| derivative(&f, x, d, h));
        [d[1][2] - d[2][1], d[2][0] - d[0][2], d[0][1] - d[1][0]]
    }

    #[test]
    fn velocity_and_vorticity_are_curls() {
        let tilted = [2.0 / 3.0, -1.0 / 3.0, 2.0 / 3.0];
        for (axis, core) in [([0.0, 0.0, 1.0], 0.125), ([1.0, 0.0, 0.0], 0.125), (tilted, 0.08)] {
            let ring = Ring { core, ..Ring::of_paper([0.5, 0.4, 0.6], axis, 0.125) };
            let mut inside = 0;
            for i in 0..400 {
                let at = |k: usize| ((i * 7919 + k * 104_729) % 1009) as f64 / 1009.0 * 0.5 - 0.25;
                let x = std::array::from_fn(|k| ring.center[k] + at(k));
                let (u, w) = (curl(|x| ring.stream(x), x, 1e-4), curl(|x| ring.velocity(x), x, 1e-4));
                inside += usize::from(ring.vorticity(x) != [0.0; 3]);
                for k in 0..3 {
                    assert!(
                        (u[k] - ring.velocity(x)[k]).abs() < 1e-6 * ring.peak / 0.01,
                        "{u:?} {:?}",
                        ring.velocity(x)
                    );
                    assert!((w[k] - ring.vorticity(x)[k]).abs() < 1e-6 * ring.peak / 1e-4, "{w:?}");
                }
            }
            assert!(inside > 20, "{inside}");
        }
    }

    #[test]
    fn axes_are_those_of_the_paper() {
        let ring = Ring::of_paper([0.0; 3], [1.0, 0.0, 0.0], 0.125);
        assert!((ring.peak - 0.276_643_356_263).abs() < 1e-12);
        let psi = ring.stream([0.0, 0.125, 0.0]);
        assert!((psi[2] - ring.peak).abs() < 1e-15 && psi[0] == 0.0 && psi[1] == 0.0, "{psi:?}");
        let psi = Ring::of_paper([0.0; 3], [0.0, 0.0, 1.0], 0.125).stream([0.0, 0.125, 0.0]);
        assert!((psi[0] + ring.peak).abs() < 1e-15, "{psi:?}");
        assert_eq!(ring.vorticity([0.0; 3]), [0.0; 3]);
    }
}
