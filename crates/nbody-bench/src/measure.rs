//! One whole force evaluation, timed and checked: the particles lie where they are summed, tree and lists are inside.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fmm_core::planar::{Blob, levels};
use fmm_core::{Error, Method, ParticleStore, Particles, Precision, Settings, Stage, StageTimes};
use fmm_cuda::Description;
use serde_json::Value;

use super::bodies::{Bodies, SAMPLED};
use super::load::Load;
use super::machine;
use super::norm::Norm;
use super::record::Record;
use super::sets::{self, Set};
use fmm::{Device, Kernel, Reference};
use nbody_cli::signals::Stop;
use nbody_sim::failure::Failure;

/// A sum to measure.
#[derive(Debug, Clone)]
pub struct Sum {
    /// What is summed.
    pub kernel: Kernel,
    /// How the particles lie.
    pub set: Set,
    /// Its width, instead of the usual one.
    pub sigma: Option<f64>,
    /// How many they are.
    pub n: usize,
    /// Where: a device, never [`Device::Auto`].
    pub device: Device,
    /// Threads of the CPU.
    pub threads: usize,
    /// How; never [`Method::Auto`].
    pub method: Method,
    /// The relative error that must be kept.
    pub tolerance: f64,
    /// The norm of that error.
    pub norm: Norm,
    /// The arithmetic.
    pub precision: Precision,
    /// Order of the expansions, instead of the one that the tolerance implies.
    pub order: Option<usize>,
    /// Opening angle, likewise.
    pub theta: Option<f64>,
    /// Largest number of particles in a leaf, likewise.
    pub leaf_size: Option<usize>,
}

impl Sum {
    /// What the sum is, in a record.
    pub fn tell(&self, record: &mut Record) {
        record.set("set", self.set.name()).set("n", self.n).set("device", self.device.to_string());
        if self.kernel != Kernel::Laplace {
            record.set("kernel", self.kernel.name());
        }
        record.set("sigma", self.sigma.map_or(Value::Null, Value::from));
        record.set("method", self.method.name()).set("tolerance", self.tolerance).set("threads", self.threads);
        if self.norm != Norm::Rms {
            record.set("norm", self.norm.name());
        }
    }
}

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Samples.
    pub samples: usize,
    /// Seconds after which no further sample is begun.
    pub budget: f64,
}

/// What stays between cases.
pub struct Context {
    /// How long to measure.
    pub limits: Limits,
    commit: Option<&'static str>,
    stop: Option<Stop>,
    gpus: Vec<Description>,
    pools: HashMap<usize, Arc<rayon::ThreadPool>>,
    bodies: Option<(Which, Arc<Bodies>)>,
}

/// What particles are of: kernel, set, width and number.
type Which = (Kernel, Set, Option<f64>, usize);

/// Short sums are sampled until this many seconds have elapsed: the clock and the start of threads
/// scatter.
const LEAST: f64 = 0.1;
/// The most samples, as multiples of those asked for.
const MOST: usize = 20;

/// How often a tolerance that was missed is asked for more strictly.
const TRIES: usize = 4;

impl Context {
    /// Nothing measured yet.
    pub fn new(limits: Limits, commit: Option<&'static str>, stop: Option<Stop>) -> Self {
        let gpus = fmm_cuda::devices().unwrap_or_default();
        Context { limits, commit, stop, gpus, pools: HashMap::new(), bodies: None }
    }

    /// Whether a signal asked to end.
    pub fn stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::requested)
    }

    /// The description of machine and program, in a record.
    pub fn machine(&self, record: &mut Record, device: Device) {
        let gpu = device.gpu().and_then(|n| self.gpus.iter().find(|g| g.ordinal == n));
        machine::describe(record, gpu, self.commit);
    }

    /// Runs `work` in a pool of so many threads.
    ///
    /// # Errors
    /// 71 where they cannot be started.
    pub fn threads<R: Send>(&mut self, threads: usize, work: impl FnOnce() -> R + Send) -> Result<R, Failure> {
        let pool = match self.pools.entry(threads) {
            Entry::Occupied(pool) => pool.into_mut(),
            Entry::Vacant(place) => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let failed = |e| Failure::new(71, format!("cannot start {threads} worker threads: {e}"));
                place.insert(Arc::new(pool.map_err(failed)?))
            }
        };
        Ok(pool.install(work))
    }

    /// The particles of a set; those of the last call are kept.
    ///
    /// # Errors
    /// 71 where threads cannot be started.
    pub fn bodies(&mut self, kernel: Kernel, set: Set, sigma: Option<f64>, n: usize) -> Result<Arc<Bodies>, Failure> {
        let wanted = (kernel, set, sigma, n);
        if let Some((which, bodies)) = &self.bodies
            && *which == wanted
        {
            return Ok(bodies.clone());
        }
        self.bodies = None;
        let flat = kernel.plane().is_some();
        let position = if flat { set.flat_points(n, sigma) } else { set.points(n, sigma) };
        let strength = if flat { sets::signed(n) } else { vec![1.0 / n as f64; n] };
        let sample = (SAMPLED / n).clamp(256, 1000);
        let cores = crate::cores();
        let reference = self.threads(cores, || Reference::new(kernel, &position, &strength, sample))?;
        let direction =
            |i: usize| [0, 1, 2].map(|d| if flat && d == 2 { 0.0 } else { ((i * 3 + d) as f64 * 0.618).fract() - 0.5 });
        let velocity = (0..n).map(direction).collect();
        let particles = Particles { position, velocity, strength, coupling: vec![-1.0; n], ..Particles::default() };
        let cores = self.pools[&cores].clone();
        let bodies = Arc::new(Bodies { particles, reference, kernel, cores, larger: OnceLock::new() });
        self.bodies = Some((wanted, bodies.clone()));
        Ok(bodies)
    }

    /// Measures a sum: its record, without suite and case. The tolerance is asked for more strictly until the measured error keeps it,
    /// unless the order is given. None where a signal came.
    ///
    /// # Errors
    /// What the sum refuses.
    pub fn sum(&mut self, sum: &Sum) -> Result<Option<Record>, Failure> {
        let bodies = self.bodies(sum.kernel, sum.set, sum.sigma, sum.n)?;
        let mut record = Record::default();
        let work =
            |record: &mut Record, limits, stopped: &dyn Fn() -> bool| measure(sum, &bodies, limits, stopped, record);
        if !self.timed(sum.threads, &mut record, work)? {
            return Ok(None);
        }
        self.machine(&mut record, sum.device);
        Ok(Some(record))
    }

    /// Runs `work`, which measures and asks whether a signal came, in a pool of so many threads, and notes
    /// what else kept the machine busy.
    ///
    /// # Errors
    /// Those of `work`; 71 where threads cannot be started.
    pub fn timed<R: Send>(
        &mut self,
        threads: usize,
        record: &mut Record,
        work: impl FnOnce(&mut Record, Limits, &dyn Fn() -> bool) -> Result<R, Failure> + Send,
    ) -> Result<R, Failure> {
        let (limits, stop) = (self.limits, self.stop.take());
        let load = Load::begin();
        let stopped = || stop.as_ref().is_some_and(Stop::requested);
        let measured = self.threads(threads, || work(record, limits, &stopped));
        self.stop = stop;
        load.note(record);
        measured?
    }
}

/// False where a signal came.
fn measure(
    sum: &Sum,
    bodies: &Bodies,
    limits: Limits,
    stopped: &dyn Fn() -> bool,
    record: &mut Record,
) -> Result<bool, Failure> {
    let mut settings = Settings {
        method: sum.method,
        tolerance: sum.tolerance,
        precision: sum.precision,
        order: sum.order,
        theta: sum.theta,
        leaf_size: sum.leaf_size,
        ..Settings::default()
    };
    let mut tries = 1;
    let (mut store, first, errors, kept) = loop {
        let mut store = fmm::store(
            sum.device,
            &settings,
            sum.kernel.plane().map(|k| (k, Blob::Point)),
            sum.n,
            Default::default(),
            &mut |_| {},
        )?;
        store.upload(&bodies.particles).map_err(refused)?;
        let start = Instant::now();
        store.forces(&mut StageTimes::default()).map_err(refused)?;
        let first = start.elapsed().as_secs_f64();
        let field = store.field().map_err(refused)?.1;
        let given = settings.order.is_some();
        let errors =
            if given { bodies.reference.errors(&field) } else { bodies.errors(&field, sum.norm, sum.tolerance) };
        let kept = sum.norm.keeps(sum.kernel, &errors, sum.tolerance);
        if kept || given || tries == TRIES || stopped() {
            break (store, first, errors, kept);
        }
        tries += 1;
        settings.tolerance = sum.norm.stricter(settings.tolerance, &errors, sum.tolerance).max(Settings::TIGHTEST);
    };
    let Some((mut seconds, times)) = samples(store.as_mut(), limits, stopped)? else { return Ok(false) };
    sum.tell(record);
    record.set("asked", settings.tolerance).set("first_seconds", first);
    spread(record, &mut seconds);
    record.set("rms", errors.rms).set("p99", errors.p99).set("max", errors.max).set("l2", errors.l2);
    record.set("sample", errors.sample).set("kept", kept);
    if let Some(choice) = store.choice() {
        record.set("precision", choice.precision.name()).set("leaf", choice.leaf_size);
        record.set("order", choice.order.map_or(Value::Null, Value::from));
        record.set("theta", choice.theta.map_or(Value::Null, Value::from));
    }
    if let (Some(choice), true) = (store.choice(), sum.kernel.plane().is_some()) {
        // Boxes of the plane are split in four at each level, all of them.
        let boxes = (1u64 << (2 * levels(sum.n, sum.n, choice.leaf_size))) as f64;
        record.set("per_box", sum.n as f64 / boxes);
    }
    if sum.device != Device::Cpu {
        copies(record, store.as_mut(), bodies)?;
    }
    for stage in Stage::ALL.into_iter().filter(|&s| times.seconds(s) > 0.0) {
        record.set(&format!("stage_{}", stage.name()), times.seconds(stage) / seconds.len() as f64);
    }
    Ok(true)
}

/// The seconds of each of several sums, and the times of all stages together. None where a signal came.
///
/// # Errors
/// What the sum refuses.
pub fn samples(
    store: &mut dyn ParticleStore,
    limits: Limits,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<(Vec<f64>, StageTimes)>, Failure> {
    let (mut seconds, mut spent, mut times) = (vec![], 0.0, StageTimes::default());
    let wanted = |taken: usize, spent: f64| {
        let more = taken < limits.samples || (spent < LEAST && taken < MOST * limits.samples);
        taken == 0 || (more && spent < limits.budget)
    };
    while wanted(seconds.len(), spent) {
        if stopped() {
            return Ok(None);
        }
        // Positions that no cache has seen, and the same sum.
        store.drift(1e-12, &mut StageTimes::default()).map_err(refused)?;
        store.check().map_err(refused)?;
        let start = Instant::now();
        store.forces(&mut times).map_err(refused)?;
        seconds.push(start.elapsed().as_secs_f64());
        spent += seconds[seconds.len() - 1];
    }
    Ok(Some((seconds, times)))
}

/// Seconds of a copy of the bodies to the device, and of one of the fields to the host: the shortest of
/// three, the first of which makes memory.
fn copies(record: &mut Record, store: &mut dyn ParticleStore, bodies: &Bodies) -> Result<(), Failure> {
    let [mut up, mut down] = [f64::INFINITY; 2];
    for _ in 0..3 {
        let start = Instant::now();
        store.upload(&bodies.particles).map_err(refused)?;
        up = up.min(start.elapsed().as_secs_f64());
        store.forces(&mut StageTimes::default()).map_err(refused)?;
        let start = Instant::now();
        store.field().map_err(refused)?;
        down = down.min(start.elapsed().as_secs_f64());
    }
    record.set("copy_to_device", up).set("copy_to_host", down);
    Ok(())
}

/// Median of some seconds, in a record, and the ends of their middle eight tenths (least and most of fewer than ten).
pub fn spread(record: &mut Record, seconds: &mut [f64]) {
    seconds.sort_by(f64::total_cmp);
    let n = seconds.len();
    let median = if n == 0 { f64::NAN } else { 0.5 * (seconds[(n - 1) / 2] + seconds[n / 2]) };
    let end = |i: usize| seconds.get(i).copied().unwrap_or(f64::NAN);
    record.set("seconds", median).set("samples", n);
    record.set("seconds_low", end(n / 10)).set("seconds_high", end(n.saturating_sub(1 + n / 10)));
}

/// An error of a sum as the end of a command.
pub fn refused(e: Error) -> Failure {
    let code = match e {
        Error::NotFinite { .. } => 70,
        _ => 65,
    };
    Failure::new(code, e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: Sum = Sum {
        kernel: Kernel::Laplace,
        set: Set::Plummer,
        sigma: None,
        n: 3000,
        device: Device::Cpu,
        threads: 1,
        method: Method::Fmm,
        tolerance: 1e-3,
        norm: Norm::Rms,
        precision: Precision::Auto,
        order: None,
        theta: None,
        leaf_size: None,
    };

    #[test]
    fn the_spread_is_that_of_the_samples() {
        let mut record = Record::default();
        spread(&mut record, &mut [3.0, 1.0, 2.0, 10.0]);
        let numbers = ["seconds", "seconds_low", "seconds_high", "samples"].map(|k| record.number(k));
        assert_eq!(numbers, [2.5, 1.0, 10.0, 4.0]);
        spread(&mut record, &mut (0..21).map(f64::from).collect::<Vec<_>>());
        assert_eq!(["seconds", "seconds_low", "seconds_high"].map(|k| record.number(k)), [10.0, 2.0, 18.0]);
    }

    #[test]
    fn the_largest_error_is_kept_where_the_norm_is_max() {
        let mut context = Context::new(Limits { samples: 1, budget: 0.0 }, None, None);
        let rms = Sum { kernel: Kernel::Harmonic, set: Set::Normal, sigma: Some(0.1), n: 5000, tolerance: 1e-6, ..SUM };
        let record = context.sum(&rms).unwrap().unwrap();
        assert!(record.is("kept") && record.number("max") > 1e-6, "L2 is kept, the largest error is not: {record:?}");
        let max = Sum { norm: Norm::Max, ..rms };
        let record = context.sum(&max).unwrap().unwrap();
        assert!(record.is("kept") && record.number("max") <= 1e-6 && record.number("asked") < 1e-6, "{record:?}");
        assert_eq!((record.text("norm"), record.number("tolerance")), ("max", 1e-6));
        // Beyond the accuracy of double precision: the record says so, and the sum ends nonetheless.
        let record = context.sum(&Sum { tolerance: 2e-14, ..max }).unwrap().unwrap();
        assert!(!record.is("kept") && record.number("l2") <= 2e-14 && record.number("max") > 2e-14, "{record:?}");
    }

    #[test]
    fn a_sum_is_measured_with_its_error() {
        let mut context = Context::new(Limits { samples: 3, budget: 1e9 }, None, None);
        let record = context.sum(&SUM).unwrap().unwrap();
        assert!(record.number("rms") > 1e-9 && record.number("rms") <= 1e-3 && record.is("kept"), "{record:?}");
        assert!((3.0..=60.0).contains(&record.number("samples")), "{record:?}");
        assert!(record.number("stage_P2P") < record.number("seconds_high"));
        assert!(record.text("norm").is_empty(), "{record:?}");
        // An order that is given is not changed, even if it misses the tolerance.
        let coarse = Sum { order: Some(2), tolerance: 1e-9, ..SUM };
        let record = context.sum(&coarse).unwrap().unwrap();
        assert!(!record.is("kept") && record.number("order") == 2.0 && record.number("asked") == 1e-9, "{record:?}");
    }
}
