//! Runs of vortex particles in space: what they conserve, known motions, restarts, files, refusals.

use std::f64::consts::PI;
use std::fs;

use crate::common::{Folder, code, column, stderr};
use nbody::files::snapshot;

/// A ring of about a thousand particles.
const RING: &str = r#"
[force]
law = "vortex"
softening = { kernel = "p1", length = 0.2 }
[[particles]]
model = "vortex-ring"
circulation = 1.0
core = 0.3
spacing = 0.2
[solver]
tolerance = 1e-5
[time]
dt = 0.1
end = 1
[output]
every = 0.5
diagnostics_every = 0.1
[verify]
sample = 50
action = "stop"
"#;

/// The largest change of a column from its first value.
fn change(run: &std::path::Path, name: &str) -> f64 {
    let values = column(run, name);
    values.iter().map(|v| (v - values[0]).abs()).fold(0.0, f64::max)
}

#[test]
fn a_ring_moves_along_its_axis_and_keeps_what_is_conserved() {
    let folder = Folder::new(RING);
    let mut ways = vec![];
    for scheme in ["rk4", "midpoint"] {
        folder.done(&["case.toml", "-q", "--out", scheme, "--set", &format!("time.integrator={scheme}")]);
        let out = folder.path(scheme);
        let impulse = column(&out, "impulse_z")[0];
        // π Γ (R² + σ²/2).
        assert!((impulse / (PI * 1.045) - 1.0).abs() < 0.02, "{impulse}");
        for name in ["impulse_x", "impulse_y", "impulse_z", "angular_impulse_z"] {
            assert!(change(&out, name) < 2e-3 * impulse, "{scheme}: {name} changes by {:e}", change(&out, name));
        }
        for name in ["vorticity_x", "vorticity_y", "vorticity_z", "helicity"] {
            let largest = column(&out, name).iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            assert!(largest < 1e-4, "{scheme}: {name} {largest:e}");
        }
        assert!(change(&out, "energy_error") < 5e-3, "{:e}", change(&out, "energy_error"));
        assert!(column(&out, "force_error").iter().all(|e| *e < 1e-5));
        let height = column(&out, "center_of_vorticity_z");
        ways.push(height[height.len() - 1] - height[0]);
    }
    // Γ/(4πR) (log(8R/σ) − 0.558) for a thin ring with a Gaussian core; the cores of the particles, √(1/2) 0.2 wide or so, add to
    // σ² = 0.09, and the ring is not thin.
    let thin = ((8.0 / f64::sqrt(0.09 + 0.04)).ln() - 0.558) / (4.0 * PI);
    assert!(ways.iter().all(|way| (way / thin - 1.0).abs() < 0.1), "{ways:?} {thin}");
    assert!((ways[0] / ways[1] - 1.0).abs() < 1e-3, "{ways:?}");
}

#[test]
fn rings_turn_with_their_group() {
    let folder = Folder::new(RING);
    let set = "particles.0.rotation=[0, 90, 0]";
    folder.done(&["case.toml", "-q", "--out", "a", "--set", set, "--set", "time.end=0"]);
    // z is turned to x.
    let [x, y, z] = ["impulse_x", "impulse_y", "impulse_z"].map(|name| column(&folder.path("a"), name)[0]);
    assert!((x / (PI * 1.045) - 1.0).abs() < 0.02 && y.abs() < 1e-12 && z.abs() < 1e-12, "{x} {y} {z}");
}

#[test]
fn viscosity_takes_energy_by_enstrophy() {
    let folder = Folder::new(&RING.replace("end = 1", "end = 1\nviscosity = 0.01").replace("core = 0.3", "core = 0.4"));
    folder.done(&["case.toml", "-q", "--out", "a"]);
    let out = folder.path("a");
    let [energy, enstrophy] = ["energy", "enstrophy"].map(|name| column(&out, name));
    let taken: f64 = enstrophy.windows(2).map(|w| 0.1 * 0.01 * 0.5 * (w[0] + w[1])).sum();
    let lost = energy[0] - energy[energy.len() - 1];
    // Cores and exchanges are wide: both are smoother than the vorticity of the particles, by a quarter.
    assert!((0.6..1.05).contains(&(lost / taken)), "{lost} {taken}");
    assert!(enstrophy.windows(2).all(|w| w[1] < w[0]), "{enstrophy:?}");
    for name in ["impulse_z", "vorticity_x", "vorticity_y", "vorticity_z"] {
        assert!(change(&out, name) < 2e-3 * column(&out, "impulse_z")[0], "{name}: {:e}", change(&out, name));
    }
}

#[test]
fn runs_go_on_to_the_same_bytes_with_any_number_of_threads() {
    let folder =
        Folder::new(&RING.replace("end = 1", "end = 0.6\nviscosity = 0.01").replace("every = 0.5", "every = 0.2"));
    folder.done(&["case.toml", "-q", "--out", "whole", "--threads", "1"]);
    folder.done(&["case.toml", "-q", "--out", "parts", "--threads", "3", "--until", "0.3"]);
    folder.done(&["--resume", "parts", "-q", "--threads", "2", "--until", "0.6"]);
    for name in ["snap_000000.hdf", "snap_000003.hdf", "diagnostics.csv", "run.hdf.series"] {
        let [whole, parts] = ["whole", "parts"].map(|run| fs::read(folder.path(run).join(name)).unwrap());
        assert!(whole == parts, "{name} differs");
    }
}

#[test]
fn snapshots_hold_vorticity_and_are_taken_as_a_start() {
    let folder = Folder::new(RING);
    folder.done(&["case.toml", "-q", "--out", "a", "--until", "0.5"]);
    let last = folder.path("a/snap_000001.hdf");
    let s = snapshot::read(&last).unwrap();
    let vorticity = s.vorticity.as_ref().unwrap();
    assert!(s.mass.iter().all(|v| (v - 0.008).abs() < 1e-15) && s.charge.is_none() && s.acceleration.is_none());
    // A ring turns about its axis: α is azimuthal, and u is upwards inside.
    let through: f64 = (0..s.id.len())
        .map(|i| {
            let (x, a) = (s.position[i], vorticity[i]);
            (x[0] * a[1] - x[1] * a[0]) / (2.0 * PI * (x[0] * x[0] + x[1] * x[1]))
        })
        .sum();
    assert!((through - 1.0).abs() < 0.02, "{through}");
    let fastest = (0..s.id.len()).map(|i| s.velocity[i][2]).fold(f64::NEG_INFINITY, f64::max);
    assert!(fastest > 0.3, "{fastest}");
    // Going on from the file, and from the table made of it, is going on with the run.
    folder.done(&["case.toml", "-q", "--out", "b", "--until", "1"]);
    fs::copy(&last, folder.path("start.hdf")).unwrap();
    let from = |path: &str| {
        let group = format!("model = \"file\"\npath = \"{path}\"\n");
        let start = RING.find("model").unwrap();
        let end = RING.find("[solver]").unwrap();
        RING.replace(&RING[start..end], &group).replace("end = 1", "end = 0.5")
    };
    let header = "x,y,z,wx,wy,wz,volume\n".to_string();
    let rows = (0..s.id.len()).map(|i| {
        let (x, a) = (s.position[i], vorticity[i]);
        format!("{:?},{:?},{:?},{:?},{:?},{:?},{:?}\n", x[0], x[1], x[2], a[0], a[1], a[2], s.mass[i])
    });
    fs::write(folder.path("start.csv"), header + &rows.collect::<String>()).unwrap();
    let whole = snapshot::read(&folder.path("b/snap_000002.hdf")).unwrap();
    let convert = folder.command(&["convert", "start.hdf", "start.hdf5"]).output().unwrap();
    assert_eq!(code(&convert), 0, "{}", stderr(&convert));
    for path in ["start.hdf", "start.csv", "start.hdf5"] {
        fs::write(folder.path("next.toml"), from(path)).unwrap();
        folder.done(&["next.toml", "-q", "--out", "c", "--force"]);
        let next = snapshot::read(&folder.path("c/snap_000001.hdf")).unwrap();
        assert!(next.position == whole.position && next.vorticity == whole.vorticity, "{path}");
    }
    // Sums of the command take the same strengths.
    let sums = |path: &str| folder.table(&format!("--sources {path} --kernel vortex --softening p1:0.2")).1;
    let (of_snapshot, of_table) = (sums("start.hdf"), sums("start.csv"));
    let velocity = |row: &Vec<f64>| row[row.len() - 3..].to_vec();
    assert!(of_snapshot.len() == s.id.len() && of_snapshot.iter().map(velocity).eq(of_table.iter().map(velocity)));
    fs::write(folder.path("masses.toml"), "[[particles]]\nmodel = 'plummer'\nn = 10\n[time]\ndt = 0.01\nend = 0\n")
        .unwrap();
    folder.done(&["masses.toml", "-q", "--out", "masses"]);
    let out = folder.eval("--sources masses/snap_000000.hdf --kernel vortex --softening p1:0.2");
    assert!(code(&out) == 65 && stderr(&out).contains("a snapshot without vorticity"), "{}", stderr(&out));
}

#[test]
fn none_and_tiny_strengths_are_vortices_too() {
    let group = |text: &str| {
        let (start, end) = (RING.find("model").unwrap(), RING.find("[solver]").unwrap());
        let scenario = RING.replace(&RING[start..end], "model = \"file\"\npath = \"a.csv\"\n");
        Folder::with(&[("case.toml", &scenario), ("a.csv", text)])
    };
    let none = group("x,y,z,wx,wy,wz\n");
    none.done(&["case.toml", "-q", "--out", "a"]);
    assert_eq!(snapshot::read(&none.path("a/snap_000002.hdf")).unwrap().vorticity, Some(vec![]));
    let tiny = group("x,y,z,wx,wy,wz\n0,0,0,0,0,1e-200\n1,0,0,0,0,1e-200\n");
    tiny.done(&["case.toml", "-q", "--out", "a"]);
    let s = snapshot::read(&tiny.path("a/snap_000000.hdf")).unwrap();
    // 1/(4π) (1 + 5/2 ε²)(1 + ε²)^(−5/2) with ε = 0.2.
    let speed = 1.1 * 1.04f64.powf(-2.5) / (4.0 * PI);
    assert!((s.velocity[1][1] / 1e-200 / speed - 1.0).abs() < 1e-6, "{:?}", s.velocity);
}

#[test]
fn energy_that_viscosity_cannot_give_is_reported() {
    let folder = Folder::new(&RING.replace("end = 1", "end = 100\nviscosity = 1e-4").replace("dt = 0.1", "dt = 50"));
    let sets = ["--set", "output.every=50", "--set", "output.diagnostics_every=50"];
    let output = folder.run(&[&["case.toml", "--out", "a", "--strict"][..], &sets].concat());
    let text = stderr(&output);
    assert!(code(&output) == 1 && text.contains("energy"), "{}: {text}", code(&output));
}

#[test]
fn what_vortices_in_space_cannot_be_is_refused() {
    let refused = |from: &str, to: &str| {
        let folder = Folder::new(&RING.replace(from, to));
        let output = folder.run(&["case.toml", "-q", "--out", "a"]);
        assert_eq!(code(&output), 65, "{to}");
        stderr(&output)
    };
    for (from, to, says) in [
        ("kernel = \"p1\"", "kernel = \"plummer\"", "vortices in space have cores"),
        ("length = 0.2", "length = 0", "force.softening.length = 0 is outside its range"),
        ("length = 0.2", "length = -1", "allowed: above 0 and finite"),
        ("length = 0.2", "length = \"x\"", "it begins with no number"),
        (
            "model = \"vortex-ring\"\ncirculation = 1.0\ncore = 0.3\nspacing = 0.2",
            "model = \"plummer\"\nn = 10",
            "has masses, no vorticity",
        ),
        ("core = 0.3", "core = 1.5", "core = 1.5 is above the radius"),
        ("spacing = 0.2", "spacing = 0.4", "spacing = 0.4 is above the core"),
        ("circulation = 1.0\n", "", "the circulation of the ring"),
        ("dt = 0.1", "dt = 0.1\nviscosity = -1", "0 to 1e100"),
        ("dt = 0.1", "dt = 0.1\nviscosity = 0.5", "allowed with this dt and softening: to 0.4"),
        ("core = 0.3", "core = 0", "particles.0.core = 0 is outside its range"),
        ("spacing = 0.2", "spacing = 1e-5", "makes too many particles"),
        ("dt = 0.1", "dt = \"auto\"", "vortices have none"),
        (
            "[output]",
            "[external]\npotential = \"uniform-field\"\nfield = [0, 0, 1]\n[output]",
            "do not act on vortices",
        ),
        ("[solver]", "[boundary]\nkind = \"periodic\"\nside = 4\n[solver]", "vortices in space have no images"),
        ("[output]", "[output]\nfields = [\"potential\"]", "the potential of vortices in space is a vector"),
        ("law = \"vortex\"", "law = \"gravity\"", "a vortex ring has vorticity, no masses"),
    ] {
        let text = refused(from, to);
        assert!(text.contains(says), "{to}: {text}");
        assert!(!to.starts_with("length") || text.contains("1 mistake;"), "{to}: {text}");
    }
    let folder = Folder::new(
        &RING.replace("core = 0.3\nspacing = 0.2", "core = 0.6\nspacing = 0.4").replace("end = 1", "end = 0"),
    );
    let output = folder.run(&["case.toml", "--out", "a"]);
    let text = stderr(&output);
    assert!(output.status.success() && text.contains("particles.0.spacing = 0.4 is above"), "{text}");
}
