//! Conserved quantities and extent of a set of particles, in sums whose bits do not depend on the number of threads.

pub mod radii;

use fmm_core::comm::{Comm, blocked_sums};
use fmm_core::math::cross;
pub use fmm_core::totals::Extent;
use fmm_core::totals::{degrees_of_freedom, kinetic_about_center};
use fmm_core::{ForceReport, Totals};

/// Particles of one sum; N rows everywhere.
#[derive(Debug, Clone, Copy)]
pub struct State<'a> {
    /// Positions.
    pub position: &'a [[f64; 3]],
    /// Velocities.
    pub velocity: &'a [[f64; 3]],
    /// Masses.
    pub mass: &'a [f64],
    /// Masses for gravity, charges for Coulomb.
    pub strength: &'a [f64],
    /// Potential energy per unit of strength, from all other particles.
    pub potential: &'a [f64],
    /// The same of an external field; empty where there is none.
    pub external: &'a [f64],
    /// Accelerations; empty for vortices.
    pub acceleration: &'a [[f64; 3]],
}

/// Sums over all particles, in the scenario's units.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Diagnostics {
    /// Whether these are the sums of vortices in the plane: then T = 0, W = Σ Γ ψ/2 is their Hamiltonian −1/(4π) Σ Γ_i Γ_j log r, P their linear
    /// impulse Σ Γ x and L_z their angular impulse Σ Γ |x|².
    pub vortices: bool,
    /// T = Σ m v²/2.
    pub kinetic: f64,
    /// W = Σ q (φ/2 + φ_external): each pair once, the external field wholly.
    pub potential: f64,
    /// P = Σ m v.
    pub momentum: [f64; 3],
    /// L = Σ m x × v about the origin.
    pub angular_momentum: [f64; 3],
    /// Clausius' virial Σ m x·a, which is W where nothing is softened.
    pub clausius: f64,
    /// Centers and Lagrangian radii.
    pub extent: Extent,
    /// Further quantities of ions in a periodic box.
    pub ions: Option<Ions>,
    /// Those of vortex particles in space: then T = Σ α·ψ/2 is the energy of the flow at density 1, W = 0, P the impulse
    /// ½ Σ x × α, L the angular impulse ⅓ Σ x × (x × α), and centers and radii are weighed by |α|.
    pub vorticity: Option<Vorticity>,
}

/// Sums over vortex particles in space, of strength α and volume V.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Vorticity {
    /// Σ α.
    pub total: [f64; 3],
    /// Σ α·u.
    pub helicity: f64,
    /// Σ |α|²/V, that is ∫ ω²; 0 where no particle has a volume.
    pub enstrophy: f64,
}

/// Sums over ions in a periodic box.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ions {
    /// 2T/((3N − 3) k_B), with T about the center of mass: a bath that acts on each ion moves that too.
    pub temperature: f64,
    /// (2T + W_Coulomb + Σ d·f of short-range pairs)/(3V).
    pub pressure: f64,
    /// Σ q x of positions that have never been wrapped.
    pub dipole: [f64; 3],
    /// The energy of short-range forces, which is a part of the potential energy.
    pub short_range: f64,
}

impl Diagnostics {
    /// Sums over the particles of `s`, which are at home on this rank, and those of the other ranks: the same on all of them,
    /// with the bits of a single one.
    pub fn of(comm: &dyn Comm, s: State<'_>) -> Self {
        let sums = blocked_sums(comm, s.mass.len(), |i| {
            let outside = s.external.get(i).copied().unwrap_or(0.0);
            let (m, [x, y, z], [u, v, w], a) = (s.mass[i], s.position[i], s.velocity[i], s.acceleration[i]);
            [
                0.5 * m * (u * u + v * v + w * w),
                s.strength[i] * (0.5 * s.potential[i] + outside),
                m * u,
                m * v,
                m * w,
                m * (y * w - z * v),
                m * (z * u - x * w),
                m * (x * v - y * u),
                m * (x * a[0] + y * a[1] + z * a[2]),
            ]
        });
        let [kinetic, potential, px, py, pz, lx, ly, lz, clausius] = sums;
        let (momentum, angular_momentum) = ([px, py, pz], [lx, ly, lz]);
        let extent = radii::extent(comm, s.position, s.mass);
        Diagnostics { kinetic, potential, momentum, angular_momentum, clausius, extent, ..Diagnostics::default() }
    }

    /// The same over vortex particles in space with strengths `vorticity`, volumes as masses, and α·ψ in `s.potential`.
    pub fn of_vorticity(comm: &dyn Comm, s: State<'_>, vorticity: &[[f64; 3]]) -> Self {
        let sums = blocked_sums(comm, vorticity.len(), |i| {
            let (a, u) = (vorticity[i], s.velocity[i]);
            let moment = cross(s.position[i], a);
            let second = cross(s.position[i], moment);
            let square = a.iter().map(|a| a * a).sum::<f64>();
            let along = (0..3).map(|k| a[k] * u[k]).sum();
            let enstrophy = if s.mass[i] > 0.0 { square / s.mass[i] } else { 0.0 };
            let [ax, ay, az] = a;
            let ([mx, my, mz], [sx, sy, sz]) = (moment, second);
            [0.5 * s.potential[i], ax, ay, az, mx, my, mz, sx, sy, sz, along, enstrophy]
        });
        let [kinetic, ax, ay, az, mx, my, mz, sx, sy, sz, helicity, enstrophy] = sums;
        let size: Vec<f64> = vorticity.iter().map(|a| a.iter().map(|a| a * a).sum::<f64>().sqrt()).collect();
        Diagnostics {
            kinetic,
            momentum: [mx, my, mz].map(|m| 0.5 * m),
            angular_momentum: [sx, sy, sz].map(|s| s / 3.0),
            extent: radii::extent(comm, s.position, &size),
            vorticity: Some(Vorticity { total: [ax, ay, az], helicity, enstrophy }),
            ..Diagnostics::default()
        }
    }

    /// The same over vortices with circulations in `s.strength` and the stream function in `s.potential`.
    pub fn of_vortices(comm: &dyn Comm, s: State<'_>) -> Self {
        let sums = blocked_sums(comm, s.strength.len(), |i| {
            let (g, [x, y, _]) = (s.strength[i], s.position[i]);
            [0.5 * g * s.potential[i], g * x, g * y, g * (x * x + y * y)]
        });
        let [potential, px, py, lz] = sums;
        let (momentum, angular_momentum) = ([px, py, 0.0], [0.0, 0.0, lz]);
        let extent = radii::extent(comm, s.position, s.mass);
        Diagnostics { vortices: true, potential, momentum, angular_momentum, extent, ..Diagnostics::default() }
    }

    /// From what the store has summed, where potential energies are `sign` times what it calls interaction, of vortices or of particles with
    /// masses. There is no external field.
    pub fn from_totals(totals: &Totals, sign: f64, vortices: bool) -> Self {
        let &Totals { kinetic, interaction, momentum, angular_momentum, clausius, extent, .. } = totals;
        let potential = sign * interaction;
        if vortices {
            let ([x, y, _], second) = (totals.first_moment, totals.second_moment);
            let (momentum, angular_momentum) = ([x, y, 0.0], [0.0, 0.0, second]);
            return Diagnostics { vortices, potential, momentum, angular_momentum, extent, ..Diagnostics::default() };
        }
        Diagnostics { kinetic, potential, momentum, angular_momentum, clausius, extent, ..Diagnostics::default() }
    }

    /// The same sums for `n` particles in a box of `volume`. `report` has what acts in addition to
    /// Coulomb's law or gravity; `ions` has k_B, Σ m and Σ q x if the particles are ions.
    pub fn in_box(self, volume: f64, n: usize, report: ForceReport, ions: Option<(f64, f64, [f64; 3])>) -> Self {
        // Σ m x·a depends on which images are taken; the virial of 1/r with its images is its energy.
        let clausius = self.potential + report.virial;
        let ions = ions.map(|(boltzmann, mass, dipole)| {
            let kinetic = kinetic_about_center(self.kinetic, self.momentum, mass);
            Ions {
                temperature: 2.0 * kinetic / (degrees_of_freedom(n).max(1.0) * boltzmann),
                pressure: (2.0 * kinetic + clausius) / (3.0 * volume),
                dipole,
                short_range: report.energy,
            }
        });
        Diagnostics { potential: self.potential + report.energy, clausius, ions, ..self }
    }

    /// E = T + W.
    pub fn total(&self) -> f64 {
        self.kinetic + self.potential
    }

    /// −2T/Σ m x·a: 1 in equilibrium; 0 where there is no virial.
    pub fn virial_ratio(&self) -> f64 {
        if self.clausius == 0.0 { 0.0 } else { -2.0 * self.kinetic / self.clausius }
    }

    /// (E − E₀)/|E₀|, or E − E₀ where E₀ = 0.
    pub fn drift_from(&self, first: &Diagnostics) -> f64 {
        let (e, e0) = (self.total(), first.total());
        if e0 == 0.0 { e } else { (e - e0) / e0.abs() }
    }

    /// Names and values, in the order of the columns of `diagnostics.csv` after step and time.
    pub fn named(&self, first: &Diagnostics) -> Vec<(&'static str, f64)> {
        let ([px, py, pz], [lx, ly, lz]) = (self.momentum, self.angular_momentum);
        let Extent { center_of_mass: [cx, cy, cz], density_center: [dx, dy, dz], lagrangian: [r10, r50, r90] } =
            self.extent;
        if self.vortices {
            return vec![
                ("hamiltonian", self.potential),
                ("hamiltonian_error", self.drift_from(first)),
                ("impulse_x", px),
                ("impulse_y", py),
                ("angular_impulse", lz),
                ("center_of_vorticity_x", cx),
                ("center_of_vorticity_y", cy),
                ("density_center_x", dx),
                ("density_center_y", dy),
                ("lagrangian_10", r10),
                ("lagrangian_50", r50),
                ("lagrangian_90", r90),
            ];
        }
        if let Some(Vorticity { total: [wx, wy, wz], helicity, enstrophy }) = self.vorticity {
            return vec![
                ("energy", self.kinetic),
                ("energy_error", self.drift_from(first)),
                ("impulse_x", px),
                ("impulse_y", py),
                ("impulse_z", pz),
                ("angular_impulse_x", lx),
                ("angular_impulse_y", ly),
                ("angular_impulse_z", lz),
                ("vorticity_x", wx),
                ("vorticity_y", wy),
                ("vorticity_z", wz),
                ("helicity", helicity),
                ("enstrophy", enstrophy),
                ("center_of_vorticity_x", cx),
                ("center_of_vorticity_y", cy),
                ("center_of_vorticity_z", cz),
                ("lagrangian_10", r10),
                ("lagrangian_50", r50),
                ("lagrangian_90", r90),
            ];
        }
        let mut all = vec![
            ("kinetic", self.kinetic),
            ("potential", self.potential),
            ("total", self.total()),
            ("energy_error", self.drift_from(first)),
            ("momentum_x", px),
            ("momentum_y", py),
            ("momentum_z", pz),
            ("angular_momentum_x", lx),
            ("angular_momentum_y", ly),
            ("angular_momentum_z", lz),
            ("virial_ratio", self.virial_ratio()),
            ("center_of_mass_x", cx),
            ("center_of_mass_y", cy),
            ("center_of_mass_z", cz),
            ("density_center_x", dx),
            ("density_center_y", dy),
            ("density_center_z", dz),
            ("lagrangian_10", r10),
            ("lagrangian_50", r50),
            ("lagrangian_90", r90),
        ];
        if let Some(ions) = self.ions {
            let [x, y, z] = ions.dipole;
            all.extend([("temperature", ions.temperature), ("pressure", ions.pressure)]);
            all.extend([("dipole_x", x), ("dipole_y", y), ("dipole_z", z), ("short_range_energy", ions.short_range)]);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::comm::Solo;

    use super::*;

    #[test]
    fn two_bodies_on_a_circle() {
        // Unit masses at x = ±1/2, G = 1: v² = 1/2 each, T = 1/2, W = -1.
        let v = 0.5f64.sqrt();
        let state = State {
            position: &[[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]],
            velocity: &[[0.0, v, 0.0], [0.0, -v, 0.0]],
            mass: &[1.0; 2],
            strength: &[1.0; 2],
            potential: &[-1.0; 2],
            external: &[],
            acceleration: &[[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
        };
        let d = Diagnostics::of(&Solo, state);
        assert!((d.kinetic - 0.5).abs() < 1e-15 && d.potential == -1.0 && d.momentum == [0.0; 3]);
        assert!((d.angular_momentum[2] - v).abs() < 1e-15 && (d.virial_ratio() - 1.0).abs() < 1e-15);
    }
}
