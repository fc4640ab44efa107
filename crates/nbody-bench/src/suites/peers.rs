//! Other codes that are installed, on the same particles in the same run. Each is compared with
//! ours at an error that is no larger.
//!
//! The codes are those of `rivals.py`: FMM3D (`fmm3dpy`), pytreegrav and REBOUND, and in the plane
//! FMM2D (`fmm2dpy`); `scripts/peers` installs them. kifmm of crates.io is not compared: version
//! 2.0.0 lacks sources that its own build needs. Errors of both are measured against one direct
//! sum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fmm_core::{Method, Precision};
use serde_json::Value;

use super::suite;
use crate::bodies::Bodies;
use crate::lines::{distinct, figure, lines, numbers};
use crate::measure::{Context, Limits, Sum, spread};
use crate::norm::Norm;
use crate::record::Record;
use crate::scratch::Scratch;
use crate::sets::Set;
use crate::suite::{Case, Places, Suite, Sweep, Work};
use crate::table::significant;
use fmm::Device;
use fmm::{Errors, Kernel};
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;

/// The suite.
pub const SUITE: Suite = Suite {
    plane: Some(include_str!("../../../../configs/bench-plane-peers.toml")),
    places: Places::Cores,
    columns: &[
        ("set", "set"),
        ("n", "N"),
        ("threads", "threads"),
        ("rival", "rival"),
        ("rival_version", "version"),
        ("setting", "setting"),
        ("rival_seconds", "its s"),
        ("rival_rms", "its rms"),
        ("rival_l2", "its L2"),
        ("seconds", "our s"),
        ("rms", "our rms"),
        ("l2", "our L2"),
        ("ratio", "ratio"),
        ("seconds_all", "our s, all cores"),
    ],
    ..suite("peers", include_str!("../../../../configs/bench-peers.toml"), cases, figures, summary)
};

/// A rival: its name, whether it has threads, and its settings.
type Rival = (&'static str, bool, &'static [f64]);

/// FMM3D by its eps, which is not its error; pytreegrav by its angle, negative with quadrupoles; REBOUND by its angle.
const RIVALS: [Rival; 3] =
    [("FMM3D", false, &[0.1, 1e-2, 1e-4, 1e-7]), ("pytreegrav", true, &[0.4, -0.6]), ("REBOUND", false, &[0.3])];

/// In the plane, by its eps, of which its error is a hundredth.
const RIVALS_IN_PLANE: [Rival; 1] = [("FMM2D", true, &[1e-2, 1e-3, 1e-5, 1e-8])];

/// Codes in no registry: seconds for potential and force on one thread (1T) or two (2T) of an
/// AVX-512 Xeon at 2.5 GHz, with their L2 errors.
const ELSEWHERE: [(&str, f64, &str); 4] = [
    ("uniform", 1e5, "falcON 0.53 s 1T (1.1e-3); exafmm-t 0.44 s 2T (2e-5), 0.58 s 2T (2.6e-7), 1.14 s 2T (8e-11)"),
    ("plummer", 1e5, "falcON 0.67 s 1T (1.2e-3); exafmm-t 0.77 s 2T (2.2e-5), 0.86 s 2T (2.8e-7), 2.85 s 2T (9e-11)"),
    ("uniform", 1e6, "falcON 6.0 s 1T (8e-4); exafmm-t 4.7 s 2T (3.9e-5), 5.5 s 2T (4.8e-7), 12.3 s 2T (1.7e-10)"),
    ("plummer", 1e6, "falcON 5.3 s 1T (8.6e-4); exafmm-t 6.3 s 2T (5e-5), 8.3 s 2T (6e-7), 24 s 2T (2.4e-10)"),
];

/// Of the smaller error of a rival: tolerances from the loosest, the first that keeps both of its errors is ours.
const LADDER: [f64; 9] = [4.0, 2.8, 2.0, 1.4, 1.0, 0.7, 0.5, 0.3, 0.1];

/// One comparison.
#[derive(Clone)]
struct Match {
    kernel: Kernel,
    rival: &'static str,
    setting: f64,
    set: Set,
    n: usize,
    threads: usize,
    all: usize,
    python: PathBuf,
}

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let python = sweep.python.clone().unwrap_or_else(|| "python3".into());
    let threads: Vec<usize> = match &sweep.preset.threads[..] {
        [] if sweep.threads == 1 => vec![1],
        [] => vec![1, sweep.threads],
        given => given.iter().map(|&t| t as usize).collect(),
    };
    let kernel = sweep.preset.kernel();
    let rivals = if kernel.plane().is_some() { &RIVALS_IN_PLANE[..] } else { &RIVALS };
    let mut all = vec![];
    for n in sweep.preset.sizes() {
        for set in sweep.preset.sets.iter().filter_map(|s| Set::named(s)) {
            for &(rival, threaded, settings) in rivals {
                for &threads in &threads[..if threaded { threads.len() } else { 1 }] {
                    let threads = if threaded { threads } else { 1 };
                    for &setting in settings {
                        let python = python.clone();
                        let game = Match { kernel, rival, setting, set, n, threads, all: sweep.threads, python };
                        let end = kernel.plane().map_or(String::new(), |_| format!("/{}", kernel.name()));
                        let key = format!("{rival}/{setting}/n{n}/{}/{threads}t{end}", set.name());
                        let work = Work::Other(Box::new(move |context| compare(&game, context)));
                        all.push(Case { key, weight: 1.0 + 6e-5 * n as f64, work });
                    }
                }
            }
        }
    }
    Ok(all)
}

fn compare(game: &Match, context: &mut Context) -> Result<Option<Record>, Failure> {
    let bodies = context.bodies(game.kernel, game.set, None, game.n)?;
    let mut record = Record::default();
    record.set("set", game.set.name()).set("n", game.n).set("threads", game.threads).set("device", "cpu");
    if game.kernel.plane().is_some() {
        record.set("kernel", game.kernel.name());
    }
    record.set("rival", game.rival).set("setting", game.setting);
    context.machine(&mut record, Device::Cpu);
    let outcome = rival(game, &bodies, context.limits);
    // A signal ends the rival as well, which then has nothing to tell.
    if context.stopped() {
        return Ok(None);
    }
    let Some((errors, mut seconds, version)) = outcome? else {
        record.set("absent", true);
        return Ok(Some(record));
    };
    let mut its = Record::default();
    spread(&mut its, &mut seconds);
    record.set("rival_seconds", its.number("seconds")).set("rival_seconds_low", its.number("seconds_low"));
    record.set("rival_seconds_high", its.number("seconds_high")).set("rival_version", version);
    record.set("rival_rms", errors.rms).set("rival_l2", errors.l2).set("rival_p99", errors.p99);
    let sum = |threads: usize, tolerance: f64| Sum {
        kernel: game.kernel,
        set: game.set,
        sigma: None,
        n: game.n,
        device: Device::Cpu,
        threads,
        method: Method::Fmm,
        tolerance,
        norm: Norm::Rms,
        precision: Precision::Auto,
        order: None,
        theta: None,
        leaf_size: None,
    };
    let limits = context.limits;
    let mut ours = None;
    // In the plane L2 alone is what both are judged by.
    let flat = game.kernel.plane().is_some();
    let least = if flat { errors.l2 } else { errors.rms.min(errors.l2) };
    for factor in LADDER {
        let tolerance = (factor * least).clamp(fmm_core::Settings::TIGHTEST, 0.1);
        context.limits = Limits { samples: 1, budget: 0.0 };
        let tried = context.sum(&sum(game.all, tolerance));
        context.limits = limits;
        let Some(tried) = tried? else { return Ok(None) };
        if (flat || tried.number("rms") <= errors.rms) && tried.number("l2") <= errors.l2 {
            ours = Some(tolerance);
            break;
        }
    }
    let Some(tolerance) = ours else { return Ok(Some(record)) };
    let Some(mine) = context.sum(&sum(game.threads, tolerance))? else { return Ok(None) };
    let taken = ["seconds", "seconds_low", "seconds_high", "samples", "rms", "l2", "p99", "max", "sample", "precision"];
    for name in taken.into_iter().chain(["order", "leaf", "tolerance", "asked"]) {
        record.set(name, mine.0.get(name).cloned().unwrap_or_default());
    }
    record.set("ratio", its.number("seconds") / mine.number("seconds"));
    if game.all != game.threads {
        let Some(all) = context.sum(&sum(game.all, tolerance))? else { return Ok(None) };
        record.set("seconds_all", all.number("seconds")).set("threads_all", game.all);
    }
    Ok(Some(record))
}

/// Errors, seconds and version of a rival; none if it is not installed.
fn rival(game: &Match, bodies: &Bodies, limits: Limits) -> Result<Option<(Errors, Vec<f64>, String)>, Failure> {
    let scratch = Scratch::new("peers")?;
    let worker = scratch.write("rivals.py", include_bytes!("../rivals.py"))?;
    let numbers: Vec<u8> = bodies.particles.position.iter().flatten().flat_map(|c| c.to_le_bytes()).collect();
    let points = scratch.write("points", &numbers)?;
    if game.kernel.plane().is_some() {
        let numbers: Vec<u8> = bodies.particles.strength.iter().flat_map(|q| q.to_le_bytes()).collect();
        scratch.write("strengths", &numbers)?;
    }
    let out = scratch.path("field");
    let mut command = Command::new(&game.python);
    command.args([Path::new("-W"), Path::new("ignore"), &worker, Path::new(game.rival), &points]);
    command.arg(game.threads.to_string()).arg(limits.budget.to_string()).arg(&out).arg(game.setting.to_string());
    let output = command.output().map_err(|e| {
        Failure::new(69, format!("{}: cannot be run: {e}; name another with --python", game.python.display()))
    })?;
    // What the worker says of a rival that cannot be imported.
    if output.status.code() == Some(69) {
        return Ok(None);
    }
    let failed = |why: &str| {
        let text = String::from_utf8_lossy(&output.stderr);
        Failure::new(70, format!("{} {why}: {}", game.rival, text.lines().last().unwrap_or("no reason given")))
    };
    // The other codes print lines of their own.
    let lines = output.stdout.split(|b| *b == b'\n').rev();
    let line = lines.into_iter().find_map(|line| serde_json::from_slice::<Value>(line).ok());
    let line = line.filter(Value::is_object).ok_or_else(|| failed("printed no times"))?;
    let seconds: Vec<f64> =
        line["seconds"].as_array().map(|a| a.iter().filter_map(Value::as_f64).collect()).unwrap_or_default();
    let bytes = fs::read(out.with_file_name("field-0")).map_err(|_| failed("left no field"))?;
    let numbers: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|b| -f64::from_le_bytes(*b)).collect();
    let field = numbers.as_chunks::<3>().0;
    if field.len() != game.n || seconds.is_empty() {
        return Err(failed("left a field of another size"));
    }
    let version = line["version"].as_str().unwrap_or_default().to_string();
    Ok(Some((bodies.reference.errors(field), seconds, version)))
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    let present: Vec<Record> = records.iter().filter(|r| !r.is("absent")).cloned().collect();
    for set in distinct(&present, "set") {
        for n in numbers(&present, "n") {
            let here: Vec<Record> =
                present.iter().filter(|r| r.text("set") == set && r.number("n") == n).cloned().collect();
            let threads = |r: &Record| format!("{}T", r.number("threads"));
            let mut all_lines =
                lines(&here, "rival_l2", "rival_seconds", |r| format!("{} {}", r.text("rival"), threads(r)));
            let first = all_lines.len();
            all_lines.extend(lines(&here, "l2", "seconds", |r| format!("nbody {}", threads(r))));
            for (i, line) in all_lines.iter_mut().enumerate().skip(first) {
                line.color = Some(i);
            }
            if all_lines.is_empty() {
                continue;
            }
            let content = Content::Lines {
                x: Axis::log("measured L2 error of the force"),
                y: Axis::log("time of one force evaluation (s)"),
                lines: all_lines,
                marks: vec![],
            };
            let subtitle = format!("{set}, N = {n}; T: threads");
            all.push((format!("{set}-{n}"), figure(&here, "Time against error, rivals and nbody", subtitle, content)));
        }
    }
    all
}

fn summary(records: &[Record]) -> Vec<String> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        for n in numbers(records, "n") {
            let here: Vec<&Record> = records.iter().filter(|r| r.text("set") == set && r.number("n") == n).collect();
            let flat = here.iter().any(|r| !r.text("kernel").is_empty());
            for threads in numbers(records, "threads") {
                let ratios = here.iter().filter(|r| r.number("ratio").is_finite() && r.number("threads") == threads);
                let Some(least) = ratios.min_by(|a, b| a.number("ratio").total_cmp(&b.number("ratio"))) else {
                    continue;
                };
                all.push(format!(
                    "{set}, N = {n}, {threads} {}: the nearest rival is {} at L2 {:.1e}; we are {} times as fast at L2 {:.1e}.",
                    if threads == 1.0 { "thread" } else { "threads" },
                    least.text("rival"),
                    least.number("rival_l2"),
                    significant(least.number("ratio")),
                    least.number("l2"),
                ));
            }
            for (_, _, figures) in ELSEWHERE.iter().filter(|(s, m, _)| !flat && *s == set && *m == n) {
                all.push(format!("{set}, N = {n}, in no registry and measured on another machine: {figures}."));
            }
        }
    }
    let absent: Vec<Record> = records.iter().filter(|r| r.is("absent")).cloned().collect();
    for rival in distinct(&absent, "rival") {
        all.push(format!("{rival} is absent: scripts/peers installs it."));
    }
    all
}
