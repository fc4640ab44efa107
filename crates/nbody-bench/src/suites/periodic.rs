//! Charges in periodic boxes: mesh, FMM and Ewald's sum against N and tolerance, the program's own choice between them,
//! and OpenMM's particle mesh Ewald where it is installed. All errors are measured in the same run.

use std::cell::RefCell;
use std::fs;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use fmm_core::{Boundary, Error, KeptMesh, Method, ParticleStore, Particles, PeriodicBox, Settings, StageTimes};
use serde_json::Value;

use super::periodic_figures::{OPENMM, figures, summary};
use super::suite;
use crate::charges::{Charged, Charges};
use crate::measure::{Context, Limits, refused, samples, spread};
use crate::record::Record;
use crate::scratch::Scratch;
use crate::suite::{Case, Suite, Sweep, Work};
use fmm::{Device, Kernel, Points, Problem, Reference};
use nbody_sim::failure::Failure;

/// The suite.
pub const SUITE: Suite = Suite {
    columns: &[
        ("set", "set"),
        ("n", "N"),
        ("device", "device"),
        ("threads", "threads"),
        ("method", "method"),
        ("tolerance", "tolerance"),
        ("chosen", "chosen"),
        ("precision", "precision"),
        ("order", "p"),
        ("leaf", "leaf"),
        ("seconds", "s"),
        ("step_seconds", "s a step"),
        ("rms", "rms"),
        ("l2", "L2"),
        ("net_force", "|ΣF|/Σ|F|"),
    ],
    ..suite("periodic", include_str!("../../../../configs/bench-periodic.toml"), cases, figures, summary)
};

/// What is compared; `auto` is what the program takes of the others.
const METHODS: [Method; 4] = [Method::Mesh, Method::Fmm, Method::Direct, Method::Auto];

/// Ewald's sum has no more charges, on the cores and on a GPU: it grows as N^1.5.
const DIRECT_MOST: [usize; 2] = [30_000, 300_000];

/// Its `ewaldErrorTolerance`: its errors are some fifth of it, and no less than some 1e-5 on its CPU platform.
const TOLERANCES: [f64; 4] = [3e-3, 5e-4, 1e-4, 1e-5];

/// Targets at which errors are measured.
const SAMPLE: usize = 500;

/// Steps are timed where a round of them takes less than so many budgets.
const STEPS: f64 = 4.0;

/// One measurement.
#[derive(Clone)]
struct Measurement {
    charges: Charges,
    n: usize,
    device: Device,
    threads: usize,
    tolerance: f64,
    /// None: OpenMM's.
    method: Option<Method>,
    python: String,
}

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let python = sweep.python.as_ref().map_or("python3".into(), |p| p.display().to_string());
    let last = Rc::new(Last::default());
    let mut all = vec![];
    for n in sweep.preset.sizes() {
        for charges in sweep.preset.charges() {
            for &device in &sweep.devices {
                let most = DIRECT_MOST[usize::from(device != Device::Cpu)];
                let mut add = |method: Option<Method>, tolerance: f64| {
                    let name = method.map_or(OPENMM, Method::name);
                    let threads = sweep.threads;
                    let what = Measurement { charges, n, device, threads, tolerance, method, python: python.clone() };
                    let key = format!("{device}/{name}/n{n}/{tolerance:e}/{threads}t/{}", charges.name());
                    let last = last.clone();
                    let work = Work::Other(Box::new(move |context| measure(&what, &last, context)));
                    all.push(Case { key, weight: 0.5 + 3e-5 * n as f64, work });
                };
                for (k, &tolerance) in sweep.preset.tolerances.iter().enumerate() {
                    // Ewald's sum has all digits, and expansions do not serve long boxes.
                    let fits = |m: &Method| match m {
                        Method::Direct => k == 0 && n <= most,
                        Method::Fmm => charges != Charges::Long,
                        _ => true,
                    };
                    METHODS.into_iter().filter(fits).for_each(|m| add(Some(m), tolerance));
                }
                TOLERANCES.into_iter().for_each(|tolerance| add(None, tolerance));
            }
        }
    }
    Ok(all)
}

/// Charges of the last case: the next one often has the same.
type Last = RefCell<Option<(Charges, usize, Arc<Truth>)>>;

fn measure(what: &Measurement, last: &Last, context: &mut Context) -> Result<Option<Record>, Failure> {
    let set = truth(what, last, context)?;
    let mut record = Record::default();
    record.set("set", what.charges.name()).set("n", set.particles.len()).set("device", what.device.to_string());
    record.set("threads", what.threads).set("tolerance", what.tolerance);
    record.set("method", what.method.map_or(OPENMM, Method::name));
    context.machine(&mut record, what.device);
    let measured = match what.method {
        Some(method) => ours(what, method, &set, context, &mut record)?,
        None => openmm(what, &set, context.limits, &mut record)?,
    };
    Ok((!context.stopped() && measured).then_some(record))
}

fn truth(what: &Measurement, last: &Last, context: &mut Context) -> Result<Arc<Truth>, Failure> {
    if let Some((charges, n, truth)) = &*last.borrow()
        && (*charges, *n) == (what.charges, what.n)
    {
        return Ok(truth.clone());
    }
    let truth = Arc::new(context.threads(crate::cores(), || Truth::new(what.charges, what.n))?);
    *last.borrow_mut() = Some((what.charges, what.n, truth.clone()));
    Ok(truth)
}

/// Charges with the truth about them.
struct Truth {
    side: [f64; 3],
    particles: Particles,
    reference: Reference,
}

impl Truth {
    fn new(charges: Charges, n: usize) -> Self {
        let Charged { side, position, charge } = charges.of(n);
        let n = position.len();
        let boundary = Boundary::Periodic(PeriodicBox { side, ..PeriodicBox::cube(1.0) });
        let settings = Settings { boundary, ..Settings::default() };
        let problem = Problem { settings, ..Problem::new(Kernel::Laplace) };
        let columns = [&charge[..]];
        let chosen = (0..n).step_by(n.div_ceil(SAMPLE)).collect();
        let reference = Reference::at(&problem, &Points::in_space(&position, &columns), chosen);
        let velocity = (0..n).map(|i| [0, 1, 2].map(|d| ((i * 3 + d) as f64 * 0.618).fract() - 0.5)).collect();
        let particles =
            Particles { position, velocity, coupling: charge.clone(), strength: charge, ..Particles::default() };
        Truth { side, particles, reference }
    }

    fn note(&self, record: &mut Record, field: &[[f64; 3]]) {
        let errors = self.reference.errors(field);
        record.set("rms", errors.rms).set("l2", errors.l2).set("p99", errors.p99).set("max", errors.max);
        record.set("sample", errors.sample).set("net_force", net_force(field, &self.particles.strength));
    }
}

/// |Σ q e| over Σ |q e|.
fn net_force(field: &[[f64; 3]], charge: &[f64]) -> f64 {
    let length = |e: [f64; 3]| e.iter().map(|c| c * c).sum::<f64>().sqrt();
    let (mut net, mut whole) = ([0.0; 3], 0.0);
    for (e, q) in field.iter().zip(charge) {
        (0..3).for_each(|d| net[d] += q * e[d]);
        whole += q.abs() * length(*e);
    }
    length(net) / whole
}

/// Times a sum of ours, as a step of a run has it. False if a signal came.
fn ours(
    what: &Measurement,
    method: Method,
    set: &Arc<Truth>,
    context: &mut Context,
    record: &mut Record,
) -> Result<bool, Failure> {
    let boundary = Boundary::Periodic(PeriodicBox { side: set.side, ..PeriodicBox::cube(1.0) });
    let settings = Settings { method, tolerance: what.tolerance, boundary, ..Settings::default() };
    let n = set.particles.len();
    context.timed(what.threads, record, |record, limits, stopped| {
        let mut store = fmm::store(what.device, &settings, None, n, Default::default(), &mut |_| {})?;
        store.upload(&set.particles).map_err(refused)?;
        match store.forces(&mut StageTimes::default()) {
            // A method that does not serve a box, as the FMM the long ones.
            Err(e @ Error::Unsupported(_)) => {
                record.set("absent", true).set("why", e.to_string());
                return Ok(true);
            }
            done => done.map_err(refused)?,
        }
        set.note(record, &store.field().map_err(refused)?.1);
        let Some((mut seconds, _)) = samples(store.as_mut(), limits, stopped)? else { return Ok(false) };
        spread(record, &mut seconds);
        if let Some(choice) = store.choice() {
            record.set("chosen", choice.method.name()).set("precision", choice.precision.name());
            record.set("leaf", choice.leaf_size).set("order", choice.order.map_or(Value::Null, Value::from));
        }
        if f64::from(KeptMesh::EVERY) * record.number("seconds") < STEPS * limits.budget {
            record.set("step_seconds", step(store.as_mut(), limits)?);
        }
        Ok(true)
    })
}

/// Seconds of a step of a run, which begins each sum with what the last one has kept: the mean of whole rounds of
/// [`KeptMesh::EVERY`] steps.
fn step(store: &mut dyn ParticleStore, limits: Limits) -> Result<f64, Failure> {
    const WAY: f64 = 1e-6;
    let times = &mut StageTimes::default();
    let mut kept = store.forces_kept(None, times).map_err(refused)?;
    let (start, mut steps) = (Instant::now(), 0);
    loop {
        for _ in 0..KeptMesh::EVERY {
            store.kick(0.5 * WAY, times).map_err(refused)?;
            store.drift(WAY, times).map_err(refused)?;
            kept = store.forces_kept(kept, times).map_err(refused)?;
            store.kick(0.5 * WAY, times).map_err(refused)?;
        }
        store.check().map_err(refused)?;
        steps += KeptMesh::EVERY;
        let spent = start.elapsed().as_secs_f64();
        if spent >= limits.budget || steps >= 4 * KeptMesh::EVERY {
            return Ok(spent / f64::from(steps));
        }
    }
}

/// Times OpenMM's sum.
fn openmm(what: &Measurement, set: &Truth, limits: Limits, record: &mut Record) -> Result<bool, Failure> {
    let scratch = Scratch::new("periodic")?;
    let worker = scratch.write("pme.py", include_bytes!("../pme.py"))?;
    let bytes = |numbers: &[f64]| numbers.iter().flat_map(|c| c.to_le_bytes()).collect::<Vec<u8>>();
    let points = scratch.write("points", &bytes(set.particles.position.as_flattened()))?;
    let charges = scratch.write("charges", &bytes(&set.particles.strength))?;
    let out = scratch.path("field");
    let sides = set.side.map(|s| s.to_string()).join(",");
    let platform = if what.device == Device::Cpu { "CPU" } else { "CUDA" };
    let numbers = [what.threads.to_string(), limits.budget.to_string()];
    let mut command = Command::new(&what.python);
    command.arg(&worker).arg(&points).arg(&charges).args([&sides, platform]).args(numbers);
    let output = command.arg(&out).arg(what.tolerance.to_string()).output();
    let output = output
        .map_err(|e| Failure::new(69, format!("{}: cannot be run: {e}; name another with --python", what.python)))?;
    if output.status.code() == Some(69) {
        record.set("absent", true).set("why", "OpenMM is not installed");
        return Ok(true);
    }
    let line = serde_json::from_slice::<Value>(&output.stdout).ok();
    let Some(line) = line.filter(|_| output.status.success()) else {
        let text = String::from_utf8_lossy(&output.stderr);
        record.set("absent", true).set("why", text.lines().last().unwrap_or("no reason given"));
        return Ok(true);
    };
    let mut seconds: Vec<f64> =
        line["seconds"].as_array().map(|a| a.iter().filter_map(Value::as_f64).collect()).unwrap_or_default();
    spread(record, &mut seconds);
    record.set("chosen", format!("PME {}", line["mesh"].as_str().unwrap_or_default()));
    record.set("cutoff", line["cutoff"].clone()).set("rival_version", line["version"].clone());
    let bytes = fs::read(&out).map_err(|e| Failure::new(70, format!("OpenMM left no field: {e}")))?;
    let numbers: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    if numbers.len() != 3 * set.particles.len() {
        return Err(Failure::new(70, "OpenMM left a field of another size"));
    }
    set.note(record, numbers.as_chunks::<3>().0);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Preset;

    #[test]
    fn the_preset_of_gpus_is_one() {
        let text = include_str!("../../../../configs/bench-periodic-gpu.toml");
        assert_eq!(Preset::parse("gpu", text).unwrap().charges().len(), 4);
    }

    #[test]
    fn a_small_box_is_measured_by_every_method() {
        let (mut context, last) = (Context::new(Limits { samples: 1, budget: 0.0 }, None, None), Last::default());
        for method in METHODS {
            let what = Measurement {
                charges: Charges::Water,
                n: 600,
                device: Device::Cpu,
                threads: 1,
                tolerance: 1e-4,
                method: Some(method),
                python: String::new(),
            };
            let record = measure(&what, &last, &mut context).unwrap().unwrap();
            assert!(record.number("rms") <= 1e-4 && record.number("l2") <= 1e-4, "{record:?}");
            assert!(record.number("seconds") > 0.0 && record.number("net_force") < 1e-4, "{record:?}");
        }
        let long = Measurement {
            charges: Charges::Long,
            n: 600,
            device: Device::Cpu,
            threads: 1,
            tolerance: 1e-4,
            method: Some(Method::Fmm),
            python: String::new(),
        };
        assert!(measure(&long, &last, &mut context).unwrap().unwrap().is("absent"));
    }
}
