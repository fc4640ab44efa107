//! Runs in a periodic box: wrapped snapshots, energies, resumption, ions with a bath, refusals.

use std::path::{Path, PathBuf};

use crate::common::{Folder, code, column, outputs};
use nbody::files::snapshot::{self, Snapshot};

/// A cluster that leaves the box through one side and comes back through the other.
const CLUSTER: &str = r#"
[force]
softening = { kernel = "spline", length = 0.05 }
[[particles]]
model = "plummer"
n = 300
scale_radius = 0.3
position = [3.8, 0.1, 2.0]
velocity = [2.0, -1.0, 0.0]
[boundary]
kind = "periodic"
side = [4.0, 4.0, 5.0]
[solver]
tolerance = 1e-6
[time]
dt = 0.005
end = 0.5
[output]
every = 0.25
diagnostics_every = 0.05
"#;

fn snapshots(run: &Path) -> Vec<Snapshot> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(run).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.file_name().unwrap().to_str().unwrap().starts_with("snap_"));
    names.sort();
    names.iter().map(|name| snapshot::read(name).unwrap()).collect()
}

#[test]
fn a_cluster_goes_through_the_walls() {
    let folder = Folder::new(CLUSTER);
    for method in ["direct", "fmm"] {
        folder.done(&["case.toml", "--out", method, "-q", "--set", &format!("solver.method={method}")]);
        let run = folder.path(method);
        let drift = column(&run, "energy_error").iter().fold(0.0, |m: f64, e| m.max(e.abs()));
        assert!((1e-12..1e-3).contains(&drift), "{method}: {drift}");
        for s in snapshots(&run) {
            for x in &s.position {
                assert!((0..3).all(|d| (0.0..[4.0, 4.0, 5.0][d]).contains(&x[d])), "{x:?}");
            }
        }
        // Σ m v is conserved. The center of mass is reported as if there were no walls.
        assert!(column(&run, "momentum_x").iter().all(|p| (p - 2.0).abs() < 1e-5), "{method}");
        assert!((column(&run, "center_of_mass_x").pop().unwrap() - 4.8).abs() < 1e-5, "{method}");
    }
    // The same cluster elsewhere in the box moves alike.
    let moved = ["--set", "particles.0.position=[1,2,3]", "--set", "solver.method=fmm"];
    folder.done(&[&["case.toml", "--out", "moved", "-q"], &moved[..]].concat());
    let energies = [folder.path("fmm"), folder.path("moved")].map(|run| column(&run, "total").pop().unwrap());
    assert!((energies[0] / energies[1] - 1.0).abs() < 1e-5, "{energies:?}");
}

#[test]
fn a_run_that_is_resumed_finds_the_same() {
    let folder = Folder::new(CLUSTER);
    folder.done(&["case.toml", "--out", "whole", "-q"]);
    folder.done(&["case.toml", "--out", "parts", "-q", "--until", "0.25"]);
    folder.done(&["--resume", "parts", "--until", "0.5", "-q"]);
    let last = |run| snapshots(&folder.path(run)).pop().unwrap();
    assert!(last("whole").position == last("parts").position && last("whole").velocity == last("parts").velocity);
}

const SALT: &str = r#"
[units]
system = "md"
[force]
law = "coulomb"
[[particles]]
model = "crystal"
cells = 2
spacing = 0.3
charge = 1
mass = 22.98977
partner_mass = 35.453
surface = "periodic"
position = [0.02, 0.03, 0.04]
[boundary]
kind = "periodic"
side = 1.2
[time]
dt = 0.002
end = 0.0
"#;

#[test]
fn a_crystal_has_its_constant_everywhere() {
    let folder = Folder::new(SALT);
    folder.done(&["case.toml", "--out", "salt", "-q"]);
    let salt = snapshots(&folder.path("salt")).pop().unwrap();
    let charge = salt.charge.unwrap();
    assert_eq!((charge.len(), salt.box_size), (64, 1.2));
    for (p, q) in salt.potential.unwrap().iter().zip(&charge) {
        let constant = -p * q * 0.3 / 138.935_457_644;
        assert!((constant / 1.747_564_594_633_182_1 - 1.0).abs() < 1e-9, "{constant}");
    }
    // 2T + W over 3V, and cold.
    let (pressure, energy) =
        (column(&folder.path("salt"), "pressure")[0], column(&folder.path("salt"), "potential")[0]);
    assert!((pressure * 3.0 * 1.2f64.powi(3) / energy - 1.0).abs() < 1e-12 && pressure < 0.0);
    assert_eq!(column(&folder.path("salt"), "temperature"), [0.0]);
}

const MOLTEN: &str = r#"
[short_range]
kind = "lennard-jones"
sigma = 0.2159538
epsilon = 1.4754533
partner_sigma = 0.4830453
partner_epsilon = 0.0534924
cutoff = 0.6
[thermostat]
kind = "langevin"
temperature = 1000.0
time = 0.02
until = 0.1
[verify]
sample = 64
every = 0.1
"#;

#[test]
fn ions_take_the_temperature_of_their_bath_and_then_keep_their_energy() {
    let folder = Folder::new(&format!("{SALT}{MOLTEN}"));
    let time = ["--set", "time.end=0.3", "--set", "output.diagnostics_every=0.01", "--set", "output.every=0.1"];
    for kind in ["langevin", "rescale"] {
        let set = format!("thermostat.kind={kind}");
        let extra = if kind == "rescale" { "particles.0.velocity=[1,0,0]" } else { "particles.0.velocity=[0,0,0]" };
        folder.done(&[&["case.toml", "--out", kind, "-q", "--set", &set, "--set", extra][..], &time].concat());
        let run = folder.path(kind);
        let (total, kinetic, momentum) = (column(&run, "total"), column(&run, "kinetic"), column(&run, "momentum_x"));
        // Half the heat goes into the bonds of the crystal.
        if kind == "langevin" {
            let hot = column(&run, "temperature")[8..].iter().sum::<f64>() / 23.0;
            assert!((500.0..1500.0).contains(&hot), "{hot}");
            assert!((total[10] - total[0]).abs() > 0.5 * kinetic[10], "heat came in");
        } else {
            // What all ions do together is no heat.
            assert!(momentum.iter().all(|p| (p / momentum[0] - 1.0).abs() < 1e-6), "{momentum:?}");
        }
        for (e, t) in total[10..].iter().zip(&kinetic[10..]) {
            assert!((e - total[10]).abs() < 0.02 * t, "{kind}: {e} {} of {t}", total[10]);
        }
        assert!(column(&run, "short_range_energy").iter().all(|e| e.is_finite() && *e != 0.0));
        assert!(column(&run, "force_error").iter().all(|e| *e < 1e-4));
    }
    folder.done(&[&["case.toml", "--out", "parts", "-q", "--until", "0.06"][..], &time[2..]].concat());
    folder.done(&["--resume", "parts", "--until", "0.3", "-q"]);
    let last = |run| snapshots(&folder.path(run)).pop().unwrap();
    assert_eq!(last("langevin").velocity, last("parts").velocity);
}

/// Of ions at rest the pressure is −dU/dV, also where pairs are softened.
#[test]
fn the_pressure_is_the_slope_of_the_energy() {
    let folder = Folder::new(SALT);
    let of = |length: f64, stretch: f64| {
        let sets = [
            format!("particles.0.spacing={:?}", 0.33 * stretch),
            format!("boundary.side={:?}", 1.32 * stretch),
            format!("force.softening={{kernel=\"spline\",length={length}}}"),
        ];
        let sets: Vec<&str> = sets.iter().flat_map(|s| ["--set", s.as_str()]).collect();
        let fixed = ["--set", "particles.0.cells=2", "--set", "solver.method=direct", "--set", "time.end=0.002"];
        folder.done(&[&["case.toml", "--out", "p", "-q", "--force"], &fixed[..], &sets].concat());
        ["total", "kinetic", "pressure"].map(|name| column(&folder.path("p"), name)[0])
    };
    // Nearest neighbours are closer than 2.8 of the longer length.
    for length in [0.1, 0.2] {
        let ([_, kinetic, pressure], [more, ..], [less, ..]) =
            (of(length, 1.0), of(length, 1.0 + 1e-4), of(length, 1.0 - 1e-4));
        let volume = |stretch: f64| (1.32 * stretch).powi(3);
        let slope = (more - less) / (volume(1.0 + 1e-4) - volume(1.0 - 1e-4));
        assert!(kinetic == 0.0 && (pressure / -slope - 1.0).abs() < 1e-6, "{length}: {pressure} {slope}");
    }
}

/// A bath that acts on each ion drives their center of mass too, which is no heat: of 8 ions it would be an eighth.
#[test]
fn few_ions_have_the_temperature_of_their_bath_and_may_scatter() {
    let bath = MOLTEN.replace("1000.0", "300.0").replace("until = 0.1\n", "").replace("time = 0.02", "time = 0.01");
    let bath = bath.split("[verify]").next().unwrap().replace("cutoff = 0.6", "cutoff = 0.33");
    let folder = Folder::new(&format!("{SALT}{bath}"));
    let set = |s: &'static str| ["--set", s];
    let sets = [
        set("particles.0.cells=1"),
        set("particles.0.spacing=0.33"),
        set("boundary.side=0.66"),
        set("solver.method=direct"),
        set("time.dt=0.0005"),
        set("time.end=4"),
        set("output.every=4"),
        set("output.diagnostics_every=0.005"),
    ];
    folder.done(&[&["case.toml", "--out", "few", "-q", "--strict"], sets.as_flattened()].concat());
    let all = column(&folder.path("few"), "temperature");
    let mean = all[100..].iter().sum::<f64>() / (all.len() - 100) as f64;
    assert!((285.0..315.0).contains(&mean), "{mean}");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let folder = Folder::new(SALT);
    for (set, wanted) in [
        ("boundary.surroundings=vacuum", ""),
        ("boundary.side=[1.2,1.2]", "2 components"),
        ("boundary.surroundings=0.5", "allowed: 1 or more"),
        ("boundary.kind=open", "boundary.side has no effect in open space"),
        ("run.dimensions=2", "periodic boxes are in space"),
        ("solver.device=cuda:4711", "device = cuda:4711: "),
    ] {
        let output = folder.case(&["--out", "a", "-q", "--force", "--set", set]);
        let (code, text) = (code(&output), outputs(&output));
        let expected = if wanted.is_empty() {
            0
        } else if set.starts_with("solver") {
            69
        } else {
            65
        };
        assert!(code == expected && text.contains(wanted), "{set}: {code} {text}");
    }
    let charged =
        folder.case(&["--out", "b", "--set", "boundary.surroundings=vacuum", "--set", "particles.0.surface=whole"]);
    assert!(
        code(&charged) == 65 && outputs(&charged).contains("boundary.surroundings: the strengths add up"),
        "{}",
        outputs(&charged)
    );
    let molten = Folder::new(&format!("{SALT}{MOLTEN}"));
    for (set, wanted) in [
        ("short_range.cutoff=0.7", "reaches beyond half of the box"),
        ("force.law=gravity", "is for ions in a periodic box"),
        ("particles.0.charge=0", "charges of zero"),
    ] {
        let output = molten.case(&["--out", "a", "-q", "--force", "--set", set]);
        assert!(code(&output) == 65 && outputs(&output).contains(wanted), "{set}: {}", outputs(&output));
    }
    // One mistake: a box without its side is a box.
    let folder = Folder::new(&format!("{SALT}{MOLTEN}"));
    let text = outputs(&folder.case(&["--out", "a", "-q", "--set", "boundary.side=0"]));
    assert!(text.contains("boundary.side = 0 is outside its range") && !text.contains("mistakes"), "{text}");
}
