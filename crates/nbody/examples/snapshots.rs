//! Writes three snapshots of a rotating ring and their index into a folder: `cargo run --example snapshots -- FOLDER`.
//!
//! It shows how a program of yours can write files that ParaView, VTK, yt and pynbody open; the checks of these
//! readers use it.

use std::path::Path;
use std::process::ExitCode;

use nbody::files::FileError;
use nbody::files::series::Series;
use nbody::files::snapshot::{self, Field, Float, Layout, Snapshot, Units};

const N: usize = 1000;

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            error.exit_code().into()
        }
    }
}

fn write(folder: &Path) -> Result<(), FileError> {
    let mut series = Series::new(folder.join("run.hdf.series"));
    let layout = Layout { fields: Field::ALL.to_vec(), precision: Float::F32 };
    for step in 0..3 {
        let time = 0.25 * step as f64;
        let name = format!("snap_{step:06}.hdf");
        snapshot::write(&folder.join(&name), &ring(time, step), &layout)?;
        series.add(&name, time)?;
    }
    Ok(())
}

/// A ring of radius 1 that turns with angular velocity 1.
fn ring(time: f64, step: u64) -> Snapshot {
    let angle = |i: usize| std::f64::consts::TAU * i as f64 / N as f64 + time;
    let rows = |f: &dyn Fn(f64) -> [f64; 3]| (0..N).map(|i| f(angle(i))).collect::<Vec<_>>();
    Snapshot {
        time,
        step,
        id: (0..N as u64).collect(),
        position: rows(&|a| [a.cos(), a.sin(), 0.0]),
        velocity: rows(&|a| [-a.sin(), a.cos(), 0.0]),
        mass: vec![0.125; N],
        charge: Some((0..N).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect()),
        potential: Some(vec![-1.0; N]),
        acceleration: Some(rows(&|a| [-a.cos(), -a.sin(), 0.0])),
        force_error: Some(vec![1e-7; N]),
        vorticity: Some(rows(&|a| [-a.sin(), a.cos(), 0.0])),
        // Astronomical units, solar masses and years.
        units: Units { length_cm: 1.495978707e13, mass_g: 1.98840987e33, velocity_cm_per_s: 4.740470463e5 },
        box_size: 0.0,
        diagnostics: vec![("kinetic".into(), 0.0625 * N as f64)],
        run: None,
    }
}
