//! One operator on all threads, with its share of the peak of as many cores, or on a GPU with its share of that one's peak.

use std::time::Instant;

use fmm_core::workload::{Work, peak};
use fmm_core::{Error, Precision};
use fmm_cuda::{Buffer, DeviceWork, Gpu};

use super::place_of;
use super::rate_table::family;
use crate::lines::{figure, lines, numbers};
use crate::measure::{Context, spread};
use crate::record::Record;
use crate::suite::{Case, Sweep, Work as CaseWork};
use fmm::Device;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::{Failure, code};

/// Columns of these records.
pub const COLUMNS: &[(&str, &str)] = &[
    ("operator", "operator"),
    ("order", "p"),
    ("n", "N"),
    ("device", "device"),
    ("threads", "threads"),
    ("seconds", "s"),
    ("rate", "a second"),
    ("gflops", "GFLOP/s"),
    ("fraction", "of the peak"),
];

/// What is measured: its name, order, size, and how it is made.
pub struct Kernel {
    /// The name in records.
    pub name: &'static str,
    /// Terms along an axis.
    pub order: usize,
    /// How many units of work.
    pub n: usize,
    /// Makes the work.
    pub make: Box<dyn Fn() -> Box<dyn Work>>,
}

/// The case of a kernel on the cores of this machine.
pub fn case(kernel: Kernel, threads: usize) -> Case {
    let key = format!("cpu/{}/p{}/n{}/{threads}t", kernel.name, kernel.order, kernel.n);
    let weight = 0.3 + 1e-7 * kernel.n as f64;
    Case { key, weight, work: CaseWork::Other(Box::new(move |context| measure(&kernel, threads, context))) }
}

fn measure(kernel: &Kernel, threads: usize, context: &mut Context) -> Result<Option<Record>, Failure> {
    if context.stopped() {
        return Ok(None);
    }
    let limits = context.limits;
    let mut work = (kernel.make)();
    let (operations, units) = (work.operations() as f64, work.units());
    let mut seconds = vec![];
    context.threads(threads, || {
        std::hint::black_box(work.run());
        let begun = Instant::now();
        while seconds.is_empty() || (seconds.len() < limits.samples && begun.elapsed().as_secs_f64() < limits.budget) {
            let start = Instant::now();
            std::hint::black_box(work.run());
            seconds.push(start.elapsed().as_secs_f64());
        }
    })?;
    let mut record = Record::default();
    spread(&mut record, &mut seconds);
    let (time, peak) = (record.number("seconds"), peak(Precision::F64, limits.budget.min(0.02)) * threads as f64);
    record.set("operator", kernel.name).set("order", kernel.order).set("n", units).set("precision", "f64");
    record.set("device", "cpu").set("threads", threads).set("operations", operations / units as f64);
    record.set("rate", units as f64 / time).set("gflops", operations / time / 1e9);
    record.set("peak_gflops", peak / 1e9).set("fraction", operations / time / peak);
    context.machine(&mut record, Device::Cpu);
    Ok(Some(record))
}

/// What is measured on a GPU.
pub struct DeviceKernel {
    /// The name in records.
    pub name: &'static str,
    /// Terms along an axis.
    pub order: usize,
    /// How many units of work.
    pub n: usize,
    /// Numbers of double precision that a sum copies to the device for it, and back.
    pub copied: [usize; 2],
    /// Makes the work.
    #[expect(clippy::type_complexity, reason = "a function of a GPU")]
    pub make: Box<dyn Fn(&Gpu) -> Result<Box<dyn DeviceWork>, Error>>,
}

/// The case of a kernel on the GPU of this number.
pub fn device_case(kernel: DeviceKernel, ordinal: u32) -> Case {
    let key = format!("cuda:{ordinal}/{}/p{}/n{}", kernel.name, kernel.order, kernel.n);
    let weight = 0.5 + 1e-6 * kernel.n as f64;
    Case { key, weight, work: CaseWork::Other(Box::new(move |context| measure_device(&kernel, ordinal, context))) }
}

fn measure_device(kernel: &DeviceKernel, ordinal: u32, context: &mut Context) -> Result<Option<Record>, Failure> {
    if context.stopped() {
        return Ok(None);
    }
    let text = |e: Error| Failure::new(code(&e), e.to_string());
    let gpu = Gpu::open(ordinal).map_err(|e| Failure::new(69, e.to_string()))?;
    let work = (kernel.make)(&gpu).map_err(text)?;
    let (begun, limits, mut seconds) = (Instant::now(), context.limits, vec![]);
    // The first fills caches and wakes clocks.
    work.run(&gpu).map_err(text)?;
    while seconds.is_empty() || (seconds.len() < limits.samples && begun.elapsed().as_secs_f64() < limits.budget) {
        seconds.push(work.run(&gpu).map_err(text)?.as_secs_f64());
    }
    let mut record = Record::default();
    spread(&mut record, &mut seconds);
    let peak = fmm_cuda::peak(&gpu, work.precision()).map_err(text)?;
    let (time, units) = (record.number("seconds"), work.units());
    let rate = work.operations() * units as f64 / time;
    record.set("operator", kernel.name).set("order", kernel.order).set("n", units);
    record.set("precision", work.precision().name());
    record.set("device", Device::Cuda(ordinal).to_string()).set("operations", work.operations());
    record.set("rate", units as f64 / time).set("gflops", rate / 1e9);
    record.set("peak_gflops", peak / 1e9).set("fraction", rate / peak);
    if kernel.copied != [0; 2] {
        let [up, down] = copies(&gpu, kernel.copied).map_err(text)?;
        record.set("copy_to_device", up).set("copy_to_host", down);
        record.set("gigabytes", 8e-9 * kernel.copied.iter().sum::<usize>() as f64 / time);
    }
    context.machine(&mut record, Device::Cuda(ordinal));
    Ok(Some(record))
}

/// Seconds of a copy of so many numbers to the device, and back: the shortest of five.
fn copies(gpu: &Gpu, [up, down]: [usize; 2]) -> Result<[f64; 2], Error> {
    gpu.enter()?;
    let (from, mut there, mut back) = (vec![0.5; up], Buffer::<f64>::new(), Buffer::<f64>::new());
    back.upload(&vec![0.5; down])?;
    let mut least = [f64::INFINITY; 2];
    for _ in 0..5 {
        let start = Instant::now();
        there.upload(&from)?;
        least[0] = least[0].min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        std::hint::black_box(back.download()?);
        least[1] = least[1].min(start.elapsed().as_secs_f64());
    }
    Ok(least)
}

/// The numbers of threads of a sweep: those of its preset that the machine has, or all cores.
pub fn threads(sweep: &Sweep) -> Vec<usize> {
    let listed = sweep.preset.threads.iter().map(|&t| t as usize).filter(|&t| t <= sweep.threads);
    let listed: Vec<usize> = listed.collect();
    if listed.is_empty() { vec![sweep.threads] } else { listed }
}

fn name(record: &Record) -> String {
    let place = if record.text("device") == "cpu" { String::new() } else { format!(", {}", record.text("device")) };
    format!("{}, p = {}{place}", record.text("operator"), record.number("order"))
}

/// The rates against the size, a figure for each operator and order: threads of the cores, and versions on a GPU.
pub fn figures(records: &[Record], title: &str, of: &str, unit: &str) -> Vec<(String, Figure)> {
    let mut all = vec![];
    let mut families: Vec<&str> = records.iter().map(family).collect();
    families.sort_unstable();
    families.dedup();
    let version = |r: &Record| match r.text("operator").split_once(", ") {
        Some((_, version)) => format!("{}, {version}", place_of(r)),
        None => place_of(r),
    };
    for wanted in &families {
        for order in numbers(records, "order") {
            let like = |r: &&Record| family(r) == *wanted && r.number("order") == order;
            let here: Vec<Record> = records.iter().filter(like).cloned().collect();
            if here.is_empty() {
                continue;
            }
            let content = Content::Lines {
                x: Axis::log(format!("number of {unit}")),
                y: Axis::log(format!("{unit} a second")),
                lines: lines(&here, "n", "rate", version),
                marks: vec![],
            };
            let first = wanted.split(' ').next().unwrap_or_default().to_lowercase();
            let end = if families.len() > 1 { format!("{first}-p{order}") } else { format!("p{order}") };
            all.push((end, figure(&here, title, format!("{wanted}, p = {order}; {of}, f64"), content)));
        }
    }
    all
}

/// The best of each operator and order.
pub fn summary(records: &[Record], unit: &str) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for record in records.iter().map(name) {
        if !names.contains(&record) {
            names.push(record);
        }
    }
    let best = |wanted: &String| {
        let here = records.iter().filter(|r| name(r) == *wanted);
        here.max_by(|a, b| a.number("rate").total_cmp(&b.number("rate")))
    };
    let sentence = |r: &Record| {
        let cores =
            if r.text("device") == "cpu" { format!(" on {} threads", r.number("threads")) } else { String::new() };
        let (rate, fraction) = (r.number("rate"), 100.0 * r.number("fraction"));
        format!("{}: {rate:.3e} {unit} a second at best, {fraction:.0} % of the measured peak{cores}.", name(r))
    };
    names.iter().filter_map(best).map(sentence).collect()
}
