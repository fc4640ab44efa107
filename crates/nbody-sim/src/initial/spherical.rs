//! Spheres in equilibrium with isotropic velocities, from their density by Eddington's formula (Eddington 1916; Binney
//! & Tremaine 2008, eq. 4.46): with ψ = −φ,
//!
//! f(E) = 1/(√8 π²) d/dE ∫₀^E dρ/dψ dψ/√(E − ψ).
//!
//! The potential may be that of the sphere and of other masses together, and softened. Densities, masses and potentials are tables
//! on a logarithmic grid of radii; between two radii dρ/dψ is taken as linear in ψ, and the integral then is a sum of
//! square roots. For Hernquist's sphere f agrees with the closed form to 1e-4.

use std::f64::consts::PI;

use fmm_core::Softening;

use super::{Initial, softened};
use fmm_core::random::{Dice, Stream};

/// The form of a density, with x = r/a.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Profile {
    /// ρ ∝ (1 + x²)^(−5/2) (Plummer 1911), where softening takes the closed form of its distribution function away.
    Plummer,
    /// ρ = M a/(2π r (r + a)³) (Hernquist 1990).
    Hernquist,
    /// ρ ∝ sech(x/c)/(x (1 + x)²): Navarro, Frenk & White (1996) with the smooth edge of McMillan & Dehnen (2007), as
    /// the mass of theirs is infinite and a sharp edge is no equilibrium.
    Nfw {
        /// c.
        concentration: f64,
    },
}

/// Radii of the grid within a factor of ten.
const PER_DECADE: i32 = 400;
/// Decades below the scale radius: a fraction of 1e-8 of the mass lies within.
const BELOW: i32 = 4;

impl Profile {
    /// Density in units of M/a³, not normalised but for Hernquist's.
    fn density(self, x: f64) -> f64 {
        match self {
            Profile::Plummer => (1.0 + x * x).powf(-2.5),
            Profile::Hernquist => 1.0 / (2.0 * PI * x * (1.0 + x).powi(3)),
            Profile::Nfw { concentration } => 1.0 / (x * (1.0 + x).powi(2) * (x / concentration).cosh()),
        }
    }

    /// d ln ρ/d ln r.
    fn slope(self, x: f64) -> f64 {
        match self {
            Profile::Plummer => -5.0 * x * x / (1.0 + x * x),
            Profile::Hernquist => -1.0 - 3.0 * x / (1.0 + x),
            Profile::Nfw { concentration: c } => -1.0 - 2.0 * x / (1.0 + x) - x / c * (x / c).tanh(),
        }
    }

    /// The radius, in scale radii, beyond which nothing is sampled: the last 0.2 % of Hernquist's mass would make a tree
    /// so wide that its cells could not resolve the cusp.
    fn edge(self) -> f64 {
        match self {
            Profile::Plummer | Profile::Hernquist => 1e3,
            Profile::Nfw { concentration } => 40.0 * concentration,
        }
    }
}

/// A sphere with its distribution function, as tables over radii in increasing order.
#[derive(Debug, Clone)]
pub struct Spherical {
    total: f64,
    ln_r: Vec<f64>,
    /// Mass within r, of the sphere itself.
    mass: Vec<f64>,
    /// −φ of everything, decreasing.
    psi: Vec<f64>,
    /// f(ψ(r)).
    f: Vec<f64>,
    /// The largest v² f(ψ(r) − v²/2)/v_escape².
    peak: Vec<f64>,
}

impl Spherical {
    /// A sphere of total mass `mass` and scale radius `a`, in its own field, softened, and that of `others`, the mass of
    /// anything else within a radius.
    pub fn new(
        profile: Profile,
        (mass, a): (f64, f64),
        gravity: f64,
        softening: Softening,
        others: impl Fn(f64) -> f64,
    ) -> Self {
        let count = ((profile.edge().log10() + f64::from(BELOW)) * f64::from(PER_DECADE)) as i32;
        let x: Vec<f64> =
            (0..=count).map(|i| 10f64.powf(f64::from(i) / f64::from(PER_DECADE) - f64::from(BELOW))).collect();
        let step = std::f64::consts::LN_10 / f64::from(PER_DECADE);
        let ln_r: Vec<f64> = x.iter().map(|x| (x * a).ln()).collect();
        let mut rho: Vec<f64> = x.iter().map(|&x| profile.density(x)).collect();
        // M(r) = ∫ 4π ρ r³ d ln r by Simpson's rule; within the first radius the density is a power.
        let shell = |x: f64| 4.0 * PI * profile.density(x) * x.powi(3);
        let mut within = vec![shell(x[0]) / (3.0 + profile.slope(x[0]))];
        for pair in x.windows(2) {
            let middle = (pair[0] * pair[1]).sqrt();
            let more = step / 6.0 * (shell(pair[0]) + 4.0 * shell(middle) + shell(pair[1]));
            within.push(within[within.len() - 1] + more);
        }
        let last = within[within.len() - 1];
        let unit = if profile == Profile::Hernquist { mass } else { mass / last };
        within.iter_mut().for_each(|m| *m *= unit);
        rho.iter_mut().for_each(|rho| *rho *= unit / a.powi(3));
        let r: Vec<f64> = x.iter().map(|x| x * a).collect();
        let own = softened::pulling(softening, &r, &within);
        let pull: Vec<f64> = r.iter().zip(&own).map(|(&r, &m)| gravity * (m + others(r)) / r).collect();
        // ψ(r) = ∫_r^∞ G M/r d ln r.
        let mut psi = pull.clone();
        for i in (0..psi.len() - 1).rev() {
            psi[i] = psi[i + 1] + 0.5 * step * (pull[i] + pull[i + 1]);
        }
        let slopes = x.iter().map(|&x| -profile.slope(x));
        let g: Vec<f64> = slopes.zip(&rho).zip(&pull).map(|((s, rho), pull)| s * rho / pull).collect();
        let f = eddington(&psi, &g);
        let mut sphere = Spherical { total: mass, ln_r, mass: within, psi, f, peak: vec![] };
        let largest = |&psi: &f64| (1..100).map(|k| sphere.speeds(psi, f64::from(k) / 100.0)).fold(0.0, f64::max);
        sphere.peak = sphere.psi.iter().map(largest).collect();
        sphere
    }

    /// Relative density of speeds q v_escape where −φ is `psi`.
    fn speeds(&self, psi: f64, q: f64) -> f64 {
        q * q * self.distribution(psi * (1.0 - q * q))
    }

    /// f(E).
    fn distribution(&self, energy: f64) -> f64 {
        let after = self.psi.partition_point(|&p| p > energy);
        let (Some(i), true) = (after.checked_sub(1), after < self.psi.len()) else {
            // Beyond the first radius f hardly changes; beyond the last there is nothing.
            return if after == 0 { self.f[0] } else { 0.0 };
        };
        let t = (self.psi[i] / energy).ln() / (self.psi[i] / self.psi[after]).ln();
        // Powers of the energy between the radii.
        self.f[i] * (self.f[after] / self.f[i]).powf(t)
    }

    /// `n` particles with momentum zero, about the origin. The center of mass is left where the sample has it: that of
    /// the few particles far out, it would take the cusp away from the origin.
    pub fn sample(&self, stream: Stream, n: usize) -> Initial {
        Initial::at_rest(stream.sample(n, |dice| self.particle(dice)), self.total)
    }

    /// Position and velocity of a particle.
    pub fn particle(&self, dice: &mut Dice) -> ([f64; 3], [f64; 3]) {
        let last = self.mass.len() - 1;
        let within = dice.uniform() * self.mass[last];
        let i = self.mass.partition_point(|&m| m < within).clamp(1, last) - 1;
        let t = ((within / self.mass[i]).ln() / (self.mass[i + 1] / self.mass[i]).ln()).max(0.0);
        let mix = |v: &[f64]| v[i] + t * (v[i + 1] - v[i]);
        let (r, psi) = (mix(&self.ln_r).exp(), mix(&self.psi));
        // The peaks were found at points: 1.1 covers what lies between them.
        let most = 1.1 * self.peak[i].max(self.peak[i + 1]);
        let q = loop {
            let (q, y) = (dice.uniform(), most * dice.uniform());
            if y < self.speeds(psi, q) {
                break q;
            }
        };
        (dice.direction(r), dice.direction(q * (2.0 * psi).sqrt()))
    }
}

/// f at the values `psi`, in decreasing order, of −φ, where dρ/dψ is `g`. Never below the smallest positive number:
/// a density for which Eddington's formula gives a negative f has no isotropic equilibrium there.
fn eddington(psi: &[f64], g: &[f64]) -> Vec<f64> {
    let last = psi.len() - 1;
    let at = |j: usize| {
        let root = |i: usize| (psi[j] - psi[i]).sqrt();
        let tail = 2.0 * g[last] / (psi[j].sqrt() + root(last));
        let parts = (j..last).map(|i| 2.0 * (g[i] - g[i + 1]) / (root(i) + root(i + 1)));
        ((parts.sum::<f64>() + tail) / (8f64.sqrt() * PI * PI)).max(f64::MIN_POSITIVE)
    };
    (0..=last).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(x: &[f64; 3]) -> f64 {
        x.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// The fraction within r is binomial: five standard deviations of it.
    fn check_fraction(p: &Initial, r: f64, exact: f64) {
        let n = p.len() as f64;
        let measured = p.position.iter().filter(|x| length(x) < r).count() as f64 / n;
        let bound = 5.0 * (exact * (1.0 - exact) / n).sqrt();
        assert!((measured - exact).abs() < bound, "{measured} within {r}, not {exact}; bound {bound}");
    }

    /// One component's dispersion between two radii, with its sampling error.
    fn dispersion(p: &Initial, from: f64, to: f64) -> (f64, f64) {
        let inside = p.position.iter().zip(&p.velocity).filter(|(x, _)| (from..to).contains(&length(x)));
        let v2: Vec<f64> = inside.map(|(_, v)| length(v).powi(2) / 3.0).collect();
        let mean = v2.iter().sum::<f64>() / v2.len() as f64;
        (mean, mean * (2.0 / (3.0 * v2.len() as f64)).sqrt())
    }

    /// σ² of Jeans' equation, ∫_r^∞ ρ G M/r² dr/ρ, by midpoints in ln r.
    fn jeans(r: f64, density: impl Fn(f64) -> f64, mass: impl Fn(f64) -> f64) -> f64 {
        let h = 1e-3;
        let term = |i: i32| {
            let s = r * ((f64::from(i) + 0.5) * h).exp();
            h * density(s) * mass(s) / s
        };
        (0..9000).map(term).sum::<f64>() / density(r)
    }

    #[test]
    fn distribution_of_hernquist_is_the_closed_form() {
        let sphere = Spherical::new(Profile::Hernquist, (1.0, 1.0), 1.0, Softening::None, |_| 0.0);
        for e in [0.02f64, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97] {
            // Hernquist 1990, eq. 17.
            let bracket =
                (1.0 - 2.0 * e) * (8.0 * e * e - 8.0 * e - 3.0) + 3.0 * e.sqrt().asin() / (e * (1.0 - e)).sqrt();
            let exact = e.sqrt() / (1.0 - e).powi(2) * bracket / (2f64.sqrt() * (2.0 * PI).powi(3));
            let found = sphere.distribution(e);
            assert!((found / exact - 1.0).abs() < 1e-3, "f({e}) = {found}, not {exact}");
        }
    }

    #[test]
    fn hernquist_has_its_radii_dispersions_and_energies() {
        let (n, gravity, mass, a) = (100_000, 2.0, 3.0, 0.5);
        let sphere = Spherical::new(Profile::Hernquist, (mass, a), gravity, Softening::None, |_| 0.0);
        let p = sphere.sample(Stream::new(4, 1), n);
        // Within the edge at 1000 a.
        for x in [0.1, 0.5, 1.0 + 2f64.sqrt(), 9.0] {
            check_fraction(&p, x * a, (x / (1.0 + x) * 1.001).powi(2));
        }
        for r in [0.3f64, 1.0, 4.0] {
            let (found, error) = dispersion(&p, 0.9 * a * r, 1.1 * a * r);
            let polynomial = r / (1.0 + r) * (25.0 + 52.0 * r + 42.0 * r * r + 12.0 * r.powi(3));
            let exact = (12.0 * r * (1.0 + r).powi(3) * ((1.0 + r) / r).ln() - polynomial) / 12.0;
            let found = found / (gravity * mass / a);
            // The shell is 20 % wide, which shifts the mean of the dispersion by less than 2 %.
            let bound = 5.0 * error / (gravity * mass / a) + 0.02 * exact;
            assert!((found - exact).abs() < bound, "σ²({r}) = {found}, not {exact}; bound {bound}");
        }
        // 2T = −W = G M²/(6a); v² has a standard deviation below its mean.
        let v2 = p.velocity.iter().map(|v| length(v).powi(2)).sum::<f64>() / n as f64;
        let exact = gravity * mass / (6.0 * a);
        assert!((v2 / exact - 1.0).abs() < 5.0 / (n as f64).sqrt(), "⟨v²⟩ = {v2}, not {exact}");
        assert!((p.mass.iter().sum::<f64>() - mass).abs() < 1e-9);
    }

    #[test]
    fn nfw_has_its_radii_and_is_in_virial_equilibrium() {
        let (n, c) = (100_000, 8.0);
        let sphere = Spherical::new(Profile::Nfw { concentration: c }, (1.0, 1.0), 1.0, Softening::None, |_| 0.0);
        let p = sphere.sample(Stream::new(4, 1), n);
        // By midpoints in r, another way than the table's.
        let raw = |r: f64| 1.0 / (r * (1.0 + r).powi(2) * (r / c).cosh());
        let h = 1e-3;
        let within = |r: f64| -> f64 {
            let midpoints = (0..(r / h) as i32).map(|i| (f64::from(i) + 0.5) * h);
            midpoints.map(|s| 4.0 * PI * s * s * raw(s) * h).sum()
        };
        let total = within(200.0);
        for r in [0.1, 1.0, 4.0, 8.0, 16.0] {
            check_fraction(&p, r, within(r) / total);
        }
        // Far inside the edge the masses are in the ratio of the closed form m(x) = ln(1 + x) − x/(1 + x).
        let closed = |x: f64| (1.0 + x).ln() - x / (1.0 + x);
        assert!((within(0.5) / within(0.1) / (closed(0.5) / closed(0.1)) - 1.0).abs() < 2e-3);
        let table: Vec<f64> = (0..2000).map(|i| within(0.05 * f64::from(i)) / total).collect();
        let mass = |r: f64| table.get((r / 0.05) as usize).copied().unwrap_or(1.0);
        for r in [1.0, 5.0] {
            let (found, error) = dispersion(&p, 0.9 * r, 1.1 * r);
            let exact = jeans(r, raw, mass);
            assert!((found - exact).abs() < 5.0 * error + 0.03 * exact, "σ²({r}) = {found}, Jeans {exact} ± {error}");
        }
        // The virial of the smooth field: Σ v² = Σ G M(r)/r.
        let v2 = p.velocity.iter().map(|v| length(v).powi(2)).sum::<f64>() / n as f64;
        let virial = p.position.iter().map(|x| mass(length(x)) / length(x).max(0.1)).sum::<f64>() / n as f64;
        assert!((v2 / virial - 1.0).abs() < 0.02, "2T = {v2}, −W = {virial}");
    }
}
