//! External potentials: circular orbits have their periods, energies their values, through the program.

use std::f64::consts::PI;
use std::fs;

use crate::common::{Folder, column};
use nbody::files::snapshot::{self, Snapshot};

/// Runs one body in `potential`; returns the first and the last snapshot, and lines of (total energy, energy_error).
fn run(body: &str, potential: &str, law: &str, time: &str) -> (Snapshot, Snapshot, Vec<(f64, f64)>) {
    let header = if law == "coulomb" { "x,y,z,vx,vy,vz,mass,charge" } else { "x,y,z,vx,vy,vz,mass" };
    let text = format!(
        "[force]\nlaw = '{law}'\n[external]\n{potential}\n[[particles]]\nmodel = 'file'\npath = 'body.csv'\n[time]\n{time}\n\
         [output]\ndirectory = 'out'\n"
    );
    let folder = Folder::new(&text);
    fs::write(folder.path("body.csv"), format!("{header}\n{body}\n")).unwrap();
    folder.done(&["case.toml", "-q"]);
    let read = |i: usize| snapshot::read(&folder.path(&format!("out/snap_{i:06}.hdf"))).unwrap();
    let columns = |name| column(&folder.path("out"), name);
    (read(0), read(1), columns("total").into_iter().zip(columns("energy_error")).collect())
}

/// A circular orbit of radius 2 about (1, 0, 0) with the circular velocity `v`, for one period: where it ends, and
/// its energies.
fn circle(v: f64, potential: &str, integrator: &str) -> (Snapshot, Snapshot, Vec<(f64, f64)>) {
    let (period, steps) = (2.0 * PI * 2.0 / v, 2000.0);
    let time = format!("integrator = '{integrator}'\ndt = {:?}\nend = {period:?}", period / steps);
    let (first, last, energies) = run(&format!("3,0,0,0,{v:?},0,0.5"), potential, "gravity", &time);
    // The phase of the leapfrog is late or early by (2π)³/(24 · 2000²) · 2 at most; a wrong period would show more.
    let missed = (0..3).map(|k| (first.position[0][k] - last.position[0][k]).powi(2)).sum::<f64>().sqrt();
    let bound = if integrator == "yoshida4" { 1e-8 } else { 5e-5 };
    assert!(missed < bound, "{potential} {integrator}: {missed}");
    assert!(energies.iter().all(|(_, drift)| drift.abs() < 1e-5), "{energies:?}");
    (first, last, energies)
}

#[test]
fn a_circle_around_a_point_mass() {
    for (core, r) in [(0.0, 2.0f64), (1.5, 2.5)] {
        let v = (3.0 * 4.0 / (r * r * r)).sqrt();
        let potential = format!("potential = 'point-mass'\nmass = 3\nposition = [1, 0, 0]\ncore_radius = {core}");
        for integrator in ["leapfrog-kdk", "leapfrog-dkd", "yoshida4"] {
            let (first, _, energies) = circle(v, &potential, integrator);
            assert!((first.potential.unwrap()[0] + 3.0 / r).abs() < 1e-12);
            assert!((energies[0].0 - 0.5 * (0.5 * v * v - 3.0 / r)).abs() < 1e-12, "{energies:?}");
        }
    }
}

#[test]
fn a_circle_in_a_logarithmic_halo() {
    // v_c² = v0² R²/(R² + r_c²).
    let v = (4.0 * 4.0 / 4.25f64).sqrt();
    let potential =
        "potential = 'logarithmic-halo'\nvelocity = 2\nposition = [1, 0, 0]\ncore_radius = 0.5\nflattening = 0.8";
    let (first, _, energies) = circle(v, potential, "yoshida4");
    let phi = 2.0 * (4.25f64 / 0.25).ln();
    assert!((first.potential.unwrap()[0] - phi).abs() < 1e-12);
    assert!((energies[0].0 - 0.5 * (0.5 * v * v + phi)).abs() < 1e-12, "{energies:?}");
    assert!((first.acceleration.unwrap()[0][0] + v * v / 2.0).abs() < 1e-12);
}

#[test]
fn small_swings_across_a_flattened_halo() {
    // Near the center ω_z = v0/(r_c q): a period along z returns to the start.
    let period: f64 = 2.0 * PI * 0.5 * 0.8 / 2.0;
    let time = format!("dt = {:?}\nend = {period:?}", period / 1000.0);
    let potential = "potential = 'logarithmic-halo'\nvelocity = 2\ncore_radius = 0.5\nflattening = 0.8";
    let (_, last, _) = run("0,0,1e-4,0,0,0,1", potential, "gravity", &time);
    assert!((last.position[0][2] - 1e-4).abs() < 1e-8, "{:?}", last.position);
}

#[test]
fn a_throw_in_a_uniform_field() {
    // x = v t + g t²/2, which leapfrogs follow exactly.
    let potential = "potential = 'uniform-field'\nfield = [0, 0, -10]";
    let (_, last, energies) = run("1,0,5,2,0,10,2", potential, "gravity", "dt = 0.125\nend = 2");
    assert!((0..3).all(|k| (last.position[0][k] - [5.0, 0.0, 5.0][k]).abs() < 1e-12), "{:?}", last.position);
    // T = 104, m g z = 100.
    assert!(energies.iter().all(|(e, _)| (e - 204.0).abs() < 1e-10), "{energies:?}");
}

#[test]
fn fields_act_on_charges() {
    // a = q E/m = −3/2 · 4; the point of the charge −1/2 attracts the charge 3 of the mass 2 at the distance 2.
    let potential = "potential = 'uniform-field'\nfield = [0, 4, 0]";
    let (_, last, energies) = run("1,0,0,0,0,0,2,-3", potential, "coulomb", "dt = 0.5\nend = 1");
    assert!((last.position[0][1] + 3.0).abs() < 1e-12, "{:?}", last.position);
    assert!(energies.iter().all(|(e, _)| e.abs() < 1e-12), "{energies:?}");
    let potential = "potential = 'point-mass'\ncharge = -0.5";
    let (first, last, energies) = run("2,0,0,0,0,0,2,3", potential, "coulomb", "dt = 0.001\nend = 0.1");
    assert!((first.acceleration.unwrap()[0][0] + 3.0 * 0.5 / 2.0 / 4.0).abs() < 1e-12);
    assert!(last.position[0][0] < 2.0 && (energies[0].0 + 0.75).abs() < 1e-12, "{energies:?}");
}
