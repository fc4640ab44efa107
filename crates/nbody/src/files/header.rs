//! The attributes of a snapshot that other programs look for: `/Header`, `/Parameters`, `/Config` and `/Diagnostics`.
//!
//! - GADGET's readers need every attribute of `/Header`; they take `BoxSize` 0 for open space.
//! - pynbody and GADGET-4 look for units in `/Parameters`. Without `Time_GYR` pynbody takes the time for the age of a
//!   universe, and with `HubbleParam` there it would divide lengths and masses by h.
//! - yt assumes kpc, 1e10 Msun and km/s for GADGET files and ignores their units. It reads the
//!   units of AREPO files, which it recognizes by an attribute of `/Config`.

use hdf5::File;
use hdf5::types::FixedAscii;
use ndarray::ArrayView2;

use super::hdf::{put_attr, put_attrs, put_group};
use super::run_id;
use nbody_sim::files::rows::Rows;
use nbody_sim::files::snapshot::{Float, Layout, Snapshot, Units};

/// 1e9 years of 365.25 days.
const SECONDS_PER_GYR: f64 = 3.155_76e16;

/// The value of `/Config` `AMR`, whose name alone matters to yt.
const CONFIG: &str = "no AMR here: yt reads the units of files with this attribute";

/// Writes all attributes of a snapshot, whose arrays are `rows`.
pub(super) fn put(file: &File, s: &Snapshot, rows: &dyn Rows, layout: &Layout) -> hdf5::Result<()> {
    let header = put_group(file, "Header")?;
    let counts = [0, rows.count() as u32, 0, 0, 0, 0];
    put_attrs(&header, "NumPart_ThisFile", &counts)?;
    put_attrs(&header, "NumPart_Total", &counts)?;
    put_attrs(&header, "NumPart_Total_HighWord", &[0u32; 6])?;
    put_attrs(&header, "MassTable", &[0f64; 6])?;
    let units = [
        ("UnitLength_in_cm", s.units.length_cm),
        ("UnitMass_in_g", s.units.mass_g),
        ("UnitVelocity_in_cm_per_s", s.units.velocity_cm_per_s),
    ];
    let numbers = [
        ("Time", s.time),
        ("BoxSize", s.box_size),
        ("Redshift", 0.0),
        ("Omega0", 0.0),
        ("OmegaLambda", 0.0),
        ("HubbleParam", 1.0),
    ];
    for (name, value) in numbers.into_iter().chain(units) {
        put_attr(&header, name, value)?;
    }
    if let Some(corners) = rows.bounds().and_then(bounding_box) {
        let corners = ArrayView2::from(&corners[..]);
        header.new_attr_builder().with_data(corners).create("BoundingBox")?;
    }
    put_attr(&header, "NumFilesPerSnapshot", 1i32)?;
    put_attr(&header, "Flag_DoublePrecision", i32::from(layout.precision == Float::F64))?;
    put_attr(&header, "Code", FixedAscii::<5>::from_ascii("nbody").map_err(|e| e.to_string())?)?;
    s.run.map_or(Ok(()), |run| run_id::put(run, &header))?;

    let parameters = put_group(file, "Parameters")?;
    // In N-body units it means as little as they do.
    let gyr = s.time * s.units.length_cm / s.units.velocity_cm_per_s / SECONDS_PER_GYR;
    for (name, value) in units.into_iter().chain([("Time_GYR", gyr)]) {
        put_attr(&parameters, name, value)?;
    }
    // Pure numbers get their units from the user of yt, which it would overwrite with those of the file.
    if s.units != Units::default() {
        let config = put_group(file, "Config")?;
        put_attr(&config, "AMR", FixedAscii::<64>::from_ascii(CONFIG).map_err(|e| e.to_string())?)?;
    }
    let diagnostics = put_group(file, "Diagnostics")?;
    s.diagnostics.iter().try_for_each(|(name, value)| put_attr(&diagnostics, name, *value))
}

/// Two opposite corners of a cube about the particles, whose least and largest coordinates are given, larger by 5 % on each
/// side; none where its corners are not finite.
fn bounding_box([low, high]: [[f64; 3]; 2]) -> Option<[[f64; 3]; 2]> {
    let farthest = low.iter().chain(&high).fold(0.0, |a: f64, x| a.max(x.abs()));
    let side = (0..3).fold(0.0, |a: f64, k| a.max(high[k] - low[k]));
    // A cube about one point has a side that its coordinates can resolve.
    let half = 0.55 * if side > 1e-6 * farthest { side } else { farthest.max(f64::MIN_POSITIVE) };
    let corner = |sign: f64| std::array::from_fn(|k| 0.5 * low[k] + 0.5 * high[k] + sign * half);
    let corners: [[f64; 3]; 2] = [corner(-1.0), corner(1.0)];
    corners.as_flattened().iter().all(|x| x.is_finite()).then_some(corners)
}

#[cfg(test)]
mod tests {
    use super::bounding_box;

    #[test]
    fn a_bounding_box_holds_all_particles_with_space_on_each_side() {
        assert_eq!(bounding_box([[-f64::MAX, 0.0, 0.0], [f64::MAX, 0.0, 0.0]]), None);
        let flat = bounding_box([[0.0, 0.0, 7.0], [4.0, 20.0, 7.0]]).unwrap();
        assert_eq!(flat, [[-9.0, -1.0, -4.0], [13.0, 21.0, 18.0]]);
        for lonely in [[0.0; 3], [1e9, 0.0, 0.0]] {
            let [low, high] = bounding_box([lonely; 2]).unwrap();
            assert!((0..3).all(|k| low[k] < lonely[k] && lonely[k] < high[k]), "{low:?} {high:?}");
        }
    }
}
