//! A cube of an ionic crystal.
//!
//! With Evjen's weights (Phys. Rev. 39 (1932) 675) ions on faces, edges and corners count 1/2, 1/4
//! and 1/8: the cube is a whole number of neutral cells. For NaCl the potential at its center then
//! converges to Madelung's constant over the spacing. For CsCl and ZnS −(2π/3) Σ q r²/V of the cell
//! is added to it: the potential of the dipole layer that the surface of any finite crystal has.

use super::Initial;
use crate::scenario::models::{Lattice, Surface};

/// Sites of a cell in quarters of its side: those of the first ion, then those of its partner.
type Sites = (&'static [[u32; 3]], &'static [[u32; 3]]);

const FACE_CENTERED: [[u32; 3]; 4] = [[0, 0, 0], [0, 2, 2], [2, 0, 2], [2, 2, 0]];

impl Lattice {
    fn sites(self) -> Sites {
        match self {
            Lattice::NaCl => (&FACE_CENTERED, &[[2, 0, 0], [0, 2, 0], [0, 0, 2], [2, 2, 2]]),
            Lattice::CsCl => (&[[0, 0, 0]], &[[2, 2, 2]]),
            Lattice::ZnS => (&FACE_CENTERED, &[[1, 1, 1], [1, 3, 3], [3, 1, 3], [3, 3, 1]]),
        }
    }

    /// Side of the cell over the distance of nearest neighbours.
    pub fn side(self) -> f64 {
        match self {
            Lattice::NaCl => 2.0,
            Lattice::CsCl => 2.0 / 3f64.sqrt(),
            Lattice::ZnS => 4.0 / 3f64.sqrt(),
        }
    }
}

/// `cells`³ cells centered on the origin, at rest. Ions on the corners have `charge` and the first of the masses, the
/// others −`charge` and the second; both are weighted likewise.
pub fn cube(lattice: Lattice, cells: usize, spacing: f64, charge: f64, masses: [f64; 2], surface: Surface) -> Initial {
    let (first, partner) = lattice.sites();
    let edge = 4 * cells as u32;
    let quarter = 0.25 * lattice.side() * spacing;
    let place = |i: u32| (f64::from(i) - 0.5 * f64::from(edge)) * quarter;
    let mut ions = Initial::default();
    for corner in
        (0..(cells + 1).pow(3)).map(|i| [i / (cells + 1).pow(2), i / (cells + 1) % (cells + 1), i % (cells + 1)])
    {
        for (sites, sign, mass) in [(first, 1.0, masses[0]), (partner, -1.0, masses[1])] {
            for site in sites {
                let at: [u32; 3] = std::array::from_fn(|k| 4 * corner[k] as u32 + site[k]);
                let last = if surface == Surface::Periodic { edge - 1 } else { edge };
                if at.iter().any(|&i| i > last) {
                    continue;
                }
                let outside = at.iter().filter(|&&i| i == 0 || i == edge).count() as i32;
                let weight = if surface == Surface::Evjen { 0.5f64.powi(outside) } else { 1.0 };
                ions.position.push(at.map(place));
                ions.velocity.push([0.0; 3]);
                ions.mass.push(weight * mass);
                ions.charge.push(sign * weight * charge);
            }
        }
    }
    ions
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    /// Potential at the central ion times the spacing, over its charge.
    fn center(lattice: Lattice, cells: usize) -> (usize, f64) {
        let spacing = 0.7;
        let ions = cube(lattice, cells, spacing, 2.0, [1.0, 3.0], Surface::Evjen);
        let r = |x: &[f64; 3]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let potential = ions.position.iter().zip(&ions.charge).filter(|(x, _)| r(x) > 0.0).map(|(x, q)| q / r(x));
        assert!(ions.charge.iter().sum::<f64>().abs() < 1e-9, "not neutral");
        (ions.len(), potential.sum::<f64>() * spacing / 2.0)
    }

    #[test]
    fn ions_are_counted_before_they_are_there() {
        for (_, lattice) in Lattice::NAMES {
            for cells in [1, 2, 5] {
                for (name, surface) in Surface::NAMES {
                    let ions = cube(lattice, cells, 1.0, 1.0, [1.0; 2], surface).len() as u64;
                    assert_eq!(lattice.ions(cells as u64, surface), ions, "{} {cells} {name}", lattice.name());
                }
            }
        }
    }

    #[test]
    fn rock_salt_has_madelungs_constant() {
        let (n, found) = center(Lattice::NaCl, 16);
        assert_eq!(n, 33 * 33 * 33);
        assert!((found + 1.747_564_594_633_182).abs() < 1e-6, "{found}");
    }

    #[test]
    fn the_others_have_theirs_beside_the_surface() {
        // Σ q r² of the cell is 3/4 a² for both, of the volume a³.
        for (lattice, madelung, sites) in
            [(Lattice::CsCl, 1.762_674_773_070_988_4, 35), (Lattice::ZnS, 1.638_055_053_388_789_4, 95)]
        {
            assert_eq!(center(lattice, 2).0, sites);
            let (_, found) = center(lattice, 16);
            let exact = -madelung - PI / 2.0 / lattice.side();
            // The cube's corners and edges are felt as the inverse square of its size.
            let (error, smaller) = ((found - exact).abs(), (center(lattice, 8).1 - exact).abs());
            assert!(error < 2e-3 && (3.8..4.2).contains(&(smaller / error)), "{}: {found}", lattice.name());
        }
    }
}
