//! Runs in the plane: conserved quantities, known motions, restarts, files.

use std::f64::consts::PI;
use std::fs;

use crate::common::{Folder, code, column, outputs};
use nbody::files::snapshot;

/// Two patches that merge, in few vortices.
const MERGER: &str = r#"
[run]
dimensions = 2
[force]
law = "vortex"
[[particles]]
model = "vortex-patch"
n = 60
circulation = 3.141592653589793
position = [-1.3, 0.2, 0]
[[particles]]
model = "vortex-patch"
n = 60
circulation = 3.141592653589793
position = [1.3, 0.2, 0]
[solver]
tolerance = 1e-11
[time]
dt = 0.02
end = 4
[output]
every = 0.5
diagnostics_every = 0.1
[verify]
sample = 30
action = "stop"
"#;

/// The largest change of a column from its first value.
fn change(run: &std::path::Path, name: &str) -> f64 {
    let values = column(run, name);
    values.iter().map(|v| (v - values[0]).abs()).fold(0.0, f64::max)
}

#[test]
fn vortices_keep_their_invariants() {
    let folder = Folder::new(MERGER);
    for (scheme, limit) in [("rk4", 1e-8), ("midpoint", 1e-4)] {
        folder.done(&["case.toml", "-q", "--out", scheme, "--set", &format!("time.integrator={scheme}")]);
        let out = folder.path(scheme);
        for name in ["hamiltonian", "impulse_x", "impulse_y", "angular_impulse"] {
            let size = column(&out, name)[0].abs().max(1.0);
            assert!(change(&out, name) < limit * size, "{scheme}: {name} changes by {:e}", change(&out, name));
        }
        // Something moves all the while, by more than rounding.
        assert!(change(&out, "hamiltonian") > 1e-15);
        assert!(column(&out, "force_error").iter().all(|e| *e < 1e-11));
        // Γ total 2π at (0, 0.2).
        assert!((column(&out, "impulse_y")[0] - 0.4 * PI).abs() < 1e-10);
        assert!(column(&out, "center_of_vorticity_y").iter().all(|y| (y - 0.2).abs() < 1e-8));
    }
}

#[test]
fn runs_go_on_to_the_same_bytes_with_any_number_of_threads() {
    let gravity = r#"
[run]
dimensions = 2
[force]
softening = { kernel = "algebraic", length = 0.05 }
[[particles]]
model = "uniform-disc"
n = 600
virial_ratio = 0.5
[solver]
method = "fmm"
[time]
dt = 0.02
end = 0.6
[output]
every = 0.2
"#;
    let fmm = MERGER.replace("[solver]", "[solver]\nmethod = \"fmm\"").replace("end = 4", "end = 0.6");
    for text in [gravity, &fmm, &fmm.replace("dt = 0.02", "dt = 0.02\nintegrator = \"midpoint\"")] {
        let folder = Folder::new(text);
        folder.done(&["case.toml", "-q", "--out", "whole", "--threads", "1"]);
        folder.done(&["case.toml", "-q", "--out", "parts", "--threads", "3", "--until", "0.3"]);
        folder.done(&["--resume", "parts", "-q", "--threads", "2", "--until", "0.6"]);
        let names = fs::read_dir(folder.path("whole")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let data: Vec<String> =
            names.filter(|n| n.starts_with("snap_") || n == "diagnostics.csv" || n == "run.hdf.series").collect();
        assert!(data.len() >= 4, "{data:?}");
        for name in data {
            let [whole, parts] = ["whole", "parts"].map(|run| fs::read(folder.path(run).join(&name)).unwrap());
            assert!(whole == parts, "{name} differs");
        }
    }
}

#[test]
fn snapshots_lie_in_the_plane() {
    let folder = Folder::new(MERGER);
    folder.done(&["case.toml", "-q", "--out", "a", "--until", "0.5"]);
    let s = snapshot::read(&folder.path("a/snap_000001.hdf")).unwrap();
    assert!(s.id.len() == 120 && s.position.iter().chain(&s.velocity).all(|x| x[2] == 0.0));
    // Velocities are those of the flow: two patches of circulation π turn counterclockwise about (0, 0.2).
    let spin: f64 =
        (0..120).map(|i| s.position[i][0] * s.velocity[i][1] - (s.position[i][1] - 0.2) * s.velocity[i][0]).sum();
    // Σ Γ x × u = Σ_{i<j} Γ_i Γ_j/(2π), and Γ = 2π/120 each.
    let expected = 2.0 * PI / 120.0 * (120.0 * 119.0 / 2.0) / (2.0 * PI);
    assert!((spin / expected - 1.0).abs() < 1e-9, "{spin} {expected}");
    assert!(s.acceleration.is_none() && s.charge.unwrap().iter().all(|g| (g - PI / 60.0).abs() < 1e-15));
    // And a run begins from a snapshot as from a table.
    let from = |path: &str| {
        format!(
            "[run]\ndimensions = 2\n[force]\nlaw = \"vortex\"\n[[particles]]\nmodel = \"file\"\npath = \"{path}\"\n[time]\ndt = 1\nend = 0\n"
        )
    };
    fs::write(folder.path("b.toml"), from("a/snap_000001.hdf")).unwrap();
    folder.done(&["b.toml", "-q", "--out", "b"]);
    let again = snapshot::read(&folder.path("b/snap_000000.hdf")).unwrap();
    assert_eq!(again.position, s.position);
    fs::write(folder.path("c.csv"), "x,y,circulation\n0,0,1\n1,0,-2\n").unwrap();
    fs::write(folder.path("c.toml"), from("c.csv")).unwrap();
    folder.done(&["c.toml", "-q", "--out", "c"]);
    let table = snapshot::read(&folder.path("c/snap_000000.hdf")).unwrap();
    // The second turns at the place of the first with −2/(2π), downwards at −x: upwards.
    assert!((table.velocity[0][1] - 1.0 / PI).abs() < 1e-12 && table.mass == [1.0, 2.0], "{table:?}");
}

#[test]
fn files_outside_the_plane_are_refused() {
    let folder = Folder::new(
        "[run]\ndimensions = 2\n[[particles]]\nmodel = \"file\"\npath = \"a.csv\"\n[time]\ndt = 1\nend = 0\n",
    );
    for (text, what) in [
        ("x,y,z,mass\n0,0,0,1\n1,0,0.5,1\n", "z = 0.5 of particle 1; allowed with run.dimensions = 2: 0"),
        ("x,y,vx,vy,vz,mass\n0,0,0,0,1,1\n", "vz = 1 of particle 0; allowed with run.dimensions = 2: 0"),
        ("x,mass\n0,1\n", "a run in the plane needs the columns x and y"),
        ("x,y\n0,1\n", "there is no column mass or m"),
    ] {
        fs::write(folder.path("a.csv"), text).unwrap();
        let output = folder.case(&["--out", "out"]);
        assert!(code(&output) == 65 && outputs(&output).contains(what), "{text}: {}", outputs(&output));
    }
}

#[test]
fn a_dry_run_and_a_step_too_long_are_told() {
    let folder = Folder::new(MERGER);
    let output = folder.case(&["--dry-run"]);
    assert!(code(&output) == 0 && outputs(&output).contains("dimensions = 2"), "{}", outputs(&output));
    let output = folder.case(&[
        "-q",
        "--out",
        "a",
        "--set",
        "time.integrator=midpoint",
        "--set",
        "time.dt=4",
        "--set",
        "output.every=4",
        "--set",
        "output.diagnostics_every=4",
    ]);
    assert!(
        code(&output) == 70 && outputs(&output).contains("the midpoint rule does not converge with steps of 4"),
        "{}",
        outputs(&output)
    );
}

#[test]
fn viscosity_spreads_blobs() {
    // Two blobs of one circulation at one place carry a third without any: a Lamb-Oseen vortex around which it turns.
    let text = r#"
[run]
dimensions = 2
[force]
law = "vortex"
softening = { kernel = "gaussian", length = 0.3 }
[[particles]]
model = "file"
path = "blobs.csv"
[solver]
tolerance = 1e-10
[time]
dt = 0.05
end = 4
viscosity = 0.05
[output]
every = 2
diagnostics_every = 0.5
[verify]
action = "stop"
"#;
    let folder = Folder::with(&[("case.toml", text), ("blobs.csv", "x,y,circulation\n0,0,3\n0,0,3\n1,0,0\n")]);
    folder.done(&["case.toml", "-q", "--out", "whole"]);
    // θ' = Γ/(2π r²) (1 − exp(−r²/(2σ²))) with σ² = 0.09 + 0.1 t and r = 1, by Simpson's rule.
    let rate = |t: f64| 6.0 / (2.0 * PI) * (1.0 - (-1.0 / (2.0 * (0.09 + 0.1 * t))).exp());
    let parts = 400;
    let h = 4.0 / f64::from(parts);
    let weight = |i: i32| if i == 0 || i == parts { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    let angle: f64 = (0..=parts).map(|i| weight(i) * rate(h * f64::from(i))).sum::<f64>() * h / 3.0;
    let s = snapshot::read(&folder.path("whole/snap_000002.hdf")).unwrap();
    let [x, y, _] = s.position[2];
    assert!((x.hypot(y) - 1.0).abs() < 1e-6, "{x} {y}");
    let apart = (y.atan2(x) - angle).rem_euclid(2.0 * PI);
    assert!(apart.min(2.0 * PI - apart) < 1e-5, "{apart} {angle}");
    // [verify] measures with the blobs of the time.
    assert!(column(&folder.path("whole"), "force_error").iter().all(|e| *e < 1e-10));
    folder.done(&["case.toml", "-q", "--out", "parts", "--until", "1.5"]);
    folder.done(&["--resume", "parts", "-q", "--until", "4"]);
    for name in ["snap_000002.hdf", "diagnostics.csv"] {
        let [whole, parts] = ["whole", "parts"].map(|run| fs::read(folder.path(run).join(name)).unwrap());
        assert!(whole == parts, "{name} differs");
    }
    for (from, to, says) in [
        ("gaussian", "algebraic", "widens Gaussian blobs"),
        ("length = 0.3", "length = 0", "widens Gaussian blobs"),
        ("law = \"vortex\"", "law = \"gravity\"", "time.viscosity is for vortices"),
    ] {
        let folder = Folder::with(&[("case.toml", &text.replace(from, to)), ("blobs.csv", "x,y,circulation\n0,0,3\n")]);
        let output = folder.case(&["-q"]);
        assert!(code(&output) == 65 && outputs(&output).contains(says), "{to}: {}", outputs(&output));
    }
}
