//! Every scenario of `scenarios/`, run at a reduced size: it shows what its first lines say.

use std::f64::consts::PI;
use std::path::{Path, PathBuf};
use std::process::Command;

use nbody::files::snapshot::{self, Snapshot};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// The files that a run left.
struct Run(tempfile::TempDir);

impl Run {
    /// Runs `scenarios/NAME.toml` with each of `sets` laid over it.
    fn of(name: &str, sets: &[&str]) -> Run {
        let out = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nbody"));
        command.arg("run").arg(folder().join(format!("{name}.toml"))).arg("-q").arg("--out").arg(out.path());
        sets.iter().for_each(|set| {
            command.args(["--set", set]);
        });
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        Run(out)
    }

    /// A column of `diagnostics.csv`.
    fn column(&self, name: &str) -> Vec<f64> {
        crate::common::column(self.0.path(), name)
    }

    /// The largest |dE/E0|, which must not be 0 where something moved.
    fn drift(&self) -> f64 {
        self.column("energy_error").iter().fold(0.0, |m, d| m.max(d.abs()))
    }

    /// The last snapshot.
    fn last(&self) -> Snapshot {
        let mut names: Vec<PathBuf> = std::fs::read_dir(self.0.path()).unwrap().map(|e| e.unwrap().path()).collect();
        names.retain(|p| p.file_name().unwrap().to_str().unwrap().starts_with("snap_"));
        names.sort();
        snapshot::read(names.last().unwrap()).unwrap()
    }
}

fn length(v: &[f64; 3]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// The tests below; `every_scenario_is_told_and_tested` compares them with the folder.
const TESTED: [&str; 25] = [
    "adapting-rings",
    "binary-in-cluster",
    "cold-collapse",
    "colliding-rings",
    "coulomb-explosion",
    "figure-eight",
    "flat-collapse",
    "galaxy-merger",
    "leapfrogging-rings",
    "million",
    "molten-salt",
    "nacl",
    "planets",
    "plasma-oscillation",
    "plummer",
    "ring-diffusion",
    "sphere-100",
    "sphere-550",
    "sphere-levels",
    "sphere-steady",
    "tidal-stream",
    "torus",
    "vortex-merger",
    "vortex-patch",
    "vortex-rings",
];

#[test]
fn every_scenario_is_told_and_tested() {
    let mut names: Vec<String> = vec![];
    for path in std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap().path()) {
        if path.extension().is_some_and(|e| e == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let opening: Vec<&str> = text.lines().take_while(|l| l.starts_with('#')).collect();
            let opening = opening.join("\n");
            for words in ["What it shows:", "What to look for:"] {
                assert!(opening.contains(words), "{}: no \"{words}\" in its first lines", path.display());
            }
            names.push(path.file_stem().unwrap().to_str().unwrap().into());
        }
    }
    names.sort();
    assert_eq!(names, TESTED);
}

#[test]
fn vortex_rings() {
    // The rings span 16 cells at first, which is too coarse; twice as fine they err by what their order says.
    let error = |sets: &[&str], field: &str| {
        let run = Run::of("vortex-rings", sets);
        crate::common::json(&run.0.path().join("run.json"))["errors"][field]["rms"].as_f64().unwrap()
    };
    let adapted = error(&["grid.finest=64"], "stream");
    let corrected = error(&["grid.finest=64", "solver.correction=true"], "stream");
    assert!((0.1..0.2).contains(&adapted) && (0.05..0.1).contains(&corrected), "{adapted} {corrected}");
}

#[test]
fn colliding_rings() {
    // Coarser, and only the first of it.
    let small = ["grid.n=64", "time.end=0.04", "vorticity.0.core=0.08", "vorticity.1.core=0.08"];
    let run = Run::of("colliding-rings", &small);
    let (energy, enstrophy, circulation) =
        (run.column("energy_error"), run.column("enstrophy"), run.column("circulation_below"));
    assert!(energy.len() == 5 && energy.iter().all(|e| e.abs() < 1e-2), "{energy:?}");
    assert!(
        enstrophy[4] > enstrophy[0] && circulation.iter().all(|c| (c - circulation[0]).abs() < 1e-3),
        "{enstrophy:?} {circulation:?}"
    );
}

#[test]
fn adapting_rings() {
    // Coarser, and one step.
    let small = ["grid.finest=96", "time.end=0.01", "output.every=0.01", "time.integrator=rk2"];
    let sums = ["solver.order=3", "solver.theta=0.8", "time.remeshing=m4"];
    let cores = ["vorticity.0.core=0.08", "vorticity.1.core=0.08"];
    let run = Run::of("adapting-rings", &[&small[..], &sums, &cores].concat());
    let [energy, circulation, impulse] =
        ["energy_error", "circulation_below", "impulse_z"].map(|name| run.column(name));
    assert!(energy.len() == 2 && energy[1].abs() < 1e-2 && impulse[1].abs() < 1e-3, "{energy:?} {impulse:?}");
    assert!((circulation[1] - circulation[0]).abs() < 2e-3, "{circulation:?}");
    // Sums of this order and theta err by a percent.
    let error = run.column("velocity_error");
    assert!(error.len() == 2 && error.iter().all(|e| (1e-3..3e-2).contains(e)), "{error:?}");
}

#[test]
fn ring_diffusion() {
    let run = Run::of("ring-diffusion", &["grid.n=48", "time.end=0.1", "output.every=0.1"]);
    let [energy, enstrophy, impulse] = ["energy", "enstrophy", "impulse_z"].map(|name| run.column(name));
    let mean = (0..5).map(|i| 0.5 * (enstrophy[i] + enstrophy[i + 1])).sum::<f64>() / 5.0;
    let (lost, expected) = (energy[0] - energy[5], 0.002 * mean * 0.1);
    assert!(lost > 0.0 && (lost / expected - 1.0).abs() < 0.08, "{lost} {expected}");
    // The core widens from σ² = 0.0036 to 0.0044.
    assert!((enstrophy[5] / enstrophy[0] - 0.82).abs() < 0.03, "{enstrophy:?}");
    assert!((impulse[5] / impulse[0] - 1.0).abs() < 2e-3, "{impulse:?}");
}

#[test]
fn spheres() {
    // Coarser, and the start.
    let small = ["grid.n=48", "time.end=0.3125", "output.every=0.3125", "bodies.0.center=[0.5,0,0]"];
    let run = Run::of("sphere-100", &small);
    let [drag, impulse, side] = ["force_x", "impulse_force_x", "force_y"].map(|name| run.column(name));
    assert!(drag[1] > 3.0 * drag[10] && drag[10] > 0.4, "{drag:?}");
    assert!((impulse[10] / drag[10] - 1.0).abs() < 0.05 && side[10].abs() < 1e-3, "{drag:?} {impulse:?} {side:?}");
    // The stream has no part in the error of the sums, which are none before there is vorticity.
    let error = run.column("velocity_error");
    assert!(error[0] == 0.0 && error[1..].iter().all(|e| (1e-5..3e-3).contains(e)), "{error:?}");
    // Of the large one its steps alone.
    let few = ["grid.n=48", "time.end=0.04", "output.every=0.04", "bodies.0.center=[0.5,0,0]"];
    let run = Run::of("sphere-550", &few);
    assert!(run.column("force_x")[2] > 1.0, "{:?}", run.column("force_x"));
    // Blocks around the sphere alone are split at first.
    let run = Run::of("sphere-levels", &["time.end=0.125", "output.every=0.125"]);
    let [drag, impulse] = ["force_x", "impulse_force_x"].map(|name| run.column(name)[1]);
    assert!(drag > 0.7 && (impulse / drag - 1.0).abs() < 0.05, "{drag} {impulse}");
    let (cells, blocks) = (run.column("cells")[0], 8.0 * 4096.0);
    assert!((blocks..8.0 * blocks).contains(&cells), "{cells}");
    let few = ["time.end=0.0625", "output.every=0.0625", "output.diagnostics_every=0.03125", "solver.order=3"];
    let run = Run::of("sphere-steady", &few);
    assert!(run.column("force_x")[2] > 1.0, "{:?}", run.column("force_x"));
}

#[test]
fn torus() {
    let run = Run::of("torus", &["time.end=0.125", "output.every=0.125"]);
    let [drag, impulse, side] = ["force_x", "impulse_force_x", "force_y"].map(|name| run.column(name));
    assert!(drag[1] > 2.0 * drag[4] && drag[4] > 0.2, "{drag:?}");
    assert!(
        (impulse[4] / drag[4] - 1.0).abs() < 0.05 && side[4].abs() < 1e-2 * drag[4],
        "{drag:?} {impulse:?} {side:?}"
    );
    let resolved = std::fs::read_to_string(run.0.path().join("scenario.resolved.toml")).unwrap();
    assert!(resolved.contains("# 1280 triangles, volume 0.2155"), "{resolved}");
}

#[test]
fn molten_salt() {
    let small = ["particles.0.cells=3", "boundary.side=1.9116", "thermostat.until=0.2", "time.end=0.4"];
    let run = Run::of("molten-salt", &[&small[..], &["output.every=0.2", "output.diagnostics_every=0.02"]].concat());
    let (temperature, total, kinetic) = (run.column("temperature"), run.column("total"), run.column("kinetic"));
    let mean = temperature[10..].iter().sum::<f64>() / 11.0;
    assert!((700.0..1900.0).contains(&mean), "{mean}");
    // Without the bath the energy stays.
    assert!(total[10..].iter().all(|e| (e - total[10]).abs() < 0.01 * kinetic[10]), "{total:?}");
    let salt = run.last();
    assert!(
        salt.position.as_flattened().iter().all(|x| (0.0..1.9116).contains(x)) && salt.charge.unwrap().len() == 216
    );
}

#[test]
fn planets() {
    let run = Run::of("planets", &["time.end='36.5 d'"]);
    assert!((1e-16..1e-9).contains(&run.drift()), "{}", run.drift());
}

#[test]
fn plummer() {
    let run = Run::of("plummer", &["particles.0.n=2000", "time.end=0.5"]);
    assert!((1e-9..1e-3).contains(&run.drift()), "{}", run.drift());
    // The noise of T of 2000 stars is 2 %.
    assert!(run.column("virial_ratio").iter().all(|q| (q - 1.0).abs() < 0.1));
}

#[test]
fn cold_collapse() {
    let run = Run::of("cold-collapse", &["particles.0.n=1000", "time.dt=0.004", "output.diagnostics_every=0.1"]);
    let ratio = run.column("virial_ratio");
    assert!((ratio[0] - 0.05).abs() < 0.01, "{}", ratio[0]);
    // It collapses at 1.11, and has settled at 4.
    let peak = (0..ratio.len()).max_by(|&a, &b| ratio[a].total_cmp(&ratio[b])).unwrap();
    assert!(ratio[peak] > 1.3 && (10..=16).contains(&peak), "{} at {peak}", ratio[peak]);
    // The escapers' motion is part of it.
    assert!((1.2..1.7).contains(&ratio[40]) && (ratio[40] - ratio[30]).abs() < 0.1, "{ratio:?}");
    assert!((1e-9..3e-2).contains(&run.drift()), "{}", run.drift());
}

#[test]
fn flat_collapse() {
    let run = Run::of("flat-collapse", &["particles.0.n=1000", "time.dt=0.01", "output.diagnostics_every=0.1"]);
    let ratio = run.column("virial_ratio");
    assert!((ratio[0] - 0.02).abs() < 0.005, "{}", ratio[0]);
    // It collapses as a whole at 1.253.
    let peak = (0..ratio.len()).max_by(|&a, &b| ratio[a].total_cmp(&ratio[b])).unwrap();
    assert!(ratio[peak] > 2.0 && (12..=14).contains(&peak), "{} at {peak}", ratio[peak]);
    // Nothing escapes: the virial ratio swings about 1.
    let late = ratio[ratio.len() - 25..].iter().sum::<f64>() / 25.0;
    assert!((late - 1.0).abs() < 0.1, "{late}");
    assert!((1e-9..3e-2).contains(&run.drift()), "{}", run.drift());
}

#[test]
fn vortex_merger() {
    let run = Run::of("vortex-merger", &["particles.0.n=150", "particles.1.n=150", "time.end=32"]);
    let error = run.column("hamiltonian_error").iter().fold(0.0, |m: f64, e| m.max(e.abs()));
    assert!((1e-15..1e-8).contains(&error), "{error:e}");
    // The distance of half of the vorticity from the middle is that of the centers at first; then the patches are one.
    let radius = run.column("lagrangian_50");
    let last = radius.iter().rev().take(20).sum::<f64>() / 20.0;
    assert!(radius[0] > 1.3 && last < 1.2, "{} {last}", radius[0]);
}

#[test]
fn vortex_patch() {
    let sets = ["particles.0.n=800", "force.softening.length=0.06", "time.end=14", "output.every=1"];
    let run = Run::of("vortex-patch", &sets);
    let error = run.column("hamiltonian_error").iter().fold(0.0, |m: f64, e| m.max(e.abs()));
    assert!((1e-15..1e-6).contains(&error), "{error:e}");
    // The long axis turns at ab/(a + b)² = 2/9: nearly half a turn by then. Blobs blur the edge, which slows it a little.
    let s = run.last();
    let moment = |f: &dyn Fn(&[f64; 3]) -> f64| s.position.iter().map(f).sum::<f64>() / s.id.len() as f64;
    let [xx, yy, xy] = [moment(&|x| x[0] * x[0]), moment(&|x| x[1] * x[1]), moment(&|x| x[0] * x[1])];
    let angle = 0.5 * (2.0 * xy).atan2(xx - yy) + PI;
    assert!((angle / (14.0 * 2.0 / 9.0) - 1.0).abs() < 0.03, "{angle}");
    // ⟨x²⟩ of the axes: a²/4 and b²/4 with a = √2.
    let spread = (0.25 * (xx - yy).powi(2) + xy * xy).sqrt();
    let ratio = ((0.5 * (xx + yy) - spread) / (0.5 * (xx + yy) + spread)).sqrt();
    assert!((ratio - 0.5).abs() < 0.03, "{ratio}");
}

#[test]
fn galaxy_merger() {
    let run = Run::of("galaxy-merger", &["particles.0.n=1500", "particles.1.n=1500", "time.end=2", "output.every=1"]);
    assert!((1e-9..1e-3).contains(&run.drift()), "{}", run.drift());
    let s = run.last();
    assert_eq!(s.id.len(), 3000);
    // They have come closer by 0.6 · 2 units each, and their momenta cancel.
    let center = |ids: std::ops::Range<usize>| ids.clone().map(|i| s.position[i][0]).sum::<f64>() / ids.len() as f64;
    let (left, right) = (center(0..600), center(1500..2100));
    assert!((-6.0..-5.5).contains(&left) && (left + right).abs() < 0.3, "{left} {right}");
    assert!(run.column("momentum_x").iter().all(|p| p.abs() < 1e-3));
    // The discs turn with the orbit: their angular momenta about their centers point upwards.
    let spin =
        |ids: std::ops::Range<usize>, c: f64| ids.map(|i| (s.position[i][0] - c) * s.velocity[i][1]).sum::<f64>();
    assert!(spin(0..600, left) > 0.0 && spin(1500..2100, right) > 0.0);
}

#[test]
fn leapfrogging_rings() {
    let coarse = ["particles.0.spacing=0.2", "particles.1.spacing=0.2", "force.softening.length=0.2"];
    let run = Run::of("leapfrogging-rings", &[&coarse[..], &["time.end=3", "output.every=1"]].concat());
    let s = run.last();
    let half = s.id.len() / 2;
    // Mean radius and height of each ring: both were as wide, 0.8 apart.
    let mean = |ids: std::ops::Range<usize>, f: &dyn Fn(&[f64; 3]) -> f64| {
        ids.clone().map(|i| f(&s.position[i])).sum::<f64>() / ids.len() as f64
    };
    let [behind, front] =
        [0..half, half..2 * half].map(|ids| [mean(ids.clone(), &|x| x[0].hypot(x[1])), mean(ids, &|x| x[2])]);
    assert!(behind[0] < 0.93 && front[0] > 1.04 && front[1] - behind[1] < 0.5, "{behind:?} {front:?}");
    let impulse = run.column("impulse_z");
    assert!(impulse.iter().all(|i| (i / impulse[0] - 1.0).abs() < 4e-3), "{impulse:?}");
    let energy = run.column("energy");
    assert!(energy.windows(2).all(|e| e[1] < e[0]), "{energy:?}");
}

#[test]
fn figure_eight() {
    let run = Run::of("figure-eight", &["time.end=6.325913985"]);
    let start = Run::of("figure-eight", &["time.end=0"]).last();
    let end = run.last();
    let moved = end.position.iter().zip(&start.position).map(|(a, b)| length(&[0, 1, 2].map(|k| a[k] - b[k])));
    let farthest = moved.fold(0.0, f64::max);
    assert!(farthest < 1e-6, "{farthest}");
    assert!((1e-16..1e-9).contains(&run.drift()), "{}", run.drift());
}

#[test]
fn binary_in_cluster() {
    let run = Run::of("binary-in-cluster", &["particles.1.n=100", "time.end=0.0625"]);
    let s = run.last();
    let distance = length(&[0, 1, 2].map(|k| s.position[0][k] - s.position[1][k]));
    // Between pericenter and apocenter, 0.007 and 0.013, unless a star came by.
    assert!((0.006..0.014).contains(&distance), "{distance}");
    assert!((1e-9..1e-2).contains(&run.drift()), "{}", run.drift());
}

#[test]
fn plasma_oscillation() {
    let sets = ["particles.0.n=1000", "particles.1.n=1000", "time.end=5", "output.every=0.05"];
    let run = Run::of("plasma-oscillation", &sets);
    let electrons = |s: &Snapshot| s.velocity[1000..].iter().map(|v| v[0]).sum::<f64>() / 1000.0;
    assert!(electrons(&run.last()) > 0.0);
    // The ions carry the other half of the momentum: the electrons' turns after half a period, π, later by the softening.
    let times = run.column("time");
    let speeds: Vec<f64> = (0..=100)
        .map(|i| electrons(&snapshot::read(&run.0.path().join(format!("snap_{i:06}.hdf"))).unwrap()))
        .collect();
    let turn = (1..=100).find(|&i| speeds[i - 1] < 0.0 && speeds[i] >= 0.0).unwrap();
    assert!((0.95 * PI..1.2 * PI).contains(&times[turn]), "the electrons turn at {}", times[turn]);
    assert!((1e-9..1e-2).contains(&run.drift()), "{}", run.drift());
}

#[test]
fn coulomb_explosion() {
    let run = Run::of("coulomb-explosion", &["particles.0.n=500", "time.end='0.25 ps'"]);
    let s = run.last();
    // x = R/R0 after t: t = R0/v (√(x(x − 1)) + ln(√x + √(x − 1))), v² = 2 k_e Q q/(m R0) with q/m of 500 ions of
    // 2 e and 8 u; the mean radius is 3/4 R.
    let v = (2.0 * 138.935457644 * 1000.0 / (4.0 * 10.0f64)).sqrt();
    let time = |x: f64| 10.0 / v * ((x * (x - 1.0)).sqrt() + (x.sqrt() + (x - 1.0).sqrt()).ln());
    let x = (0..100_000).map(|i| 1.0 + f64::from(i) * 1e-4).find(|&x| time(x) > 0.25).unwrap();
    let mean = s.position.iter().map(length).sum::<f64>() / 500.0;
    let start = Run::of("coulomb-explosion", &["particles.0.n=500", "time.end=0"]).last();
    let first = start.position.iter().map(length).sum::<f64>() / 500.0;
    assert!((first / 7.5 - 1.0).abs() < 5.0 * 0.26 / 500f64.sqrt(), "{first}");
    assert!((mean / first / x - 1.0).abs() < 0.03, "{} times larger, not {x}", mean / first);
    assert!((1e-12..1e-3).contains(&run.drift()), "{}", run.drift());
}

#[test]
fn nacl() {
    let run = Run::of("nacl", &[]);
    let s = run.last();
    assert_eq!((s.id.len(), s.step), (33 * 33 * 33, 0));
    let at = s.position.iter().position(|x| *x == [0.0; 3]).unwrap();
    let madelung = s.potential.as_ref().unwrap()[at];
    assert!((madelung + 1.7475646).abs() < 1e-6, "{madelung}");
    assert_eq!(
        std::fs::read_dir(run.0.path())
            .unwrap()
            .filter(|e| { e.as_ref().unwrap().file_name().to_str().unwrap().starts_with("snap_") })
            .count(),
        1
    );
}

#[test]
fn million() {
    let run = Run::of("million", &["particles.0.n=3000"]);
    assert!((1e-9..1e-3).contains(&run.drift()), "{}", run.drift());
    assert_eq!(run.last().step, 8);
}

#[test]
fn tidal_stream() {
    let run = Run::of("tidal-stream", &["particles.0.n=300", "time.end=100"]);
    let s = run.last();
    // The step was chosen, and divides the interval between the snapshots.
    assert!(s.step > 100 && s.step.is_multiple_of(10), "{}", s.step);
    assert!((1e-12..1e-4).contains(&run.drift()), "{}", run.drift());
    // The orbit is bound between the pericenter and 8 kpc, and the halo has taken up momentum.
    let r = length(&[0, 1, 2].map(|k| s.position.iter().map(|x| x[k]).sum::<f64>() / 300.0));
    assert!((2000.0..8000.0).contains(&r), "{r}");
    let p = run.column("momentum_y");
    assert!((p[0] / (2e4 * 110.0) - 1.0).abs() < 1e-6 && (p[p.len() - 1] / p[0] - 1.0).abs() > 0.1, "{p:?}");
}
