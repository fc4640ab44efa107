//! One operator on all threads, with its share of the peak of as many cores, or on a GPU with its share of that one's
//! peak.

use std::time::Instant;

use fmm_core::workload::{Work, peak};
use fmm_core::{Error, Precision};
use fmm_cuda::{Buffer, DeviceReal, DeviceWork, Gpu};

use super::place_of;
use super::rate_table::{base, family};
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
    /// Of its numbers, single or double.
    pub precision: Precision,
    /// Makes the work.
    pub make: Box<dyn Fn() -> Box<dyn Work>>,
}

/// The case of a kernel on the cores of this machine.
pub fn case(kernel: Kernel, threads: usize) -> Case {
    let precision = kernel.precision.name();
    let key = format!("cpu/{}/{precision}/p{}/n{}/{threads}t", kernel.name, kernel.order, kernel.n);
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
    let (time, peak) = (record.number("seconds"), peak(kernel.precision, limits.budget.min(0.02)) * threads as f64);
    record.set("operator", kernel.name).set("order", kernel.order).set("n", units);
    record.set("precision", kernel.precision.name());
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
    /// Of its numbers, single or double.
    pub precision: Precision,
    /// Numbers that a sum copies to the device for it, and back, in the precision of the work.
    pub copied: [usize; 2],
    /// Makes the work.
    #[expect(clippy::type_complexity, reason = "a function of a GPU")]
    pub make: Box<dyn Fn(&Gpu) -> Result<Box<dyn DeviceWork>, Error>>,
}

/// The case of a kernel on the GPU of this number.
pub fn device_case(kernel: DeviceKernel, ordinal: u32) -> Case {
    let precision = kernel.precision.name();
    let key = format!("cuda:{ordinal}/{}/{precision}/p{}/n{}", kernel.name, kernel.order, kernel.n);
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
    let first = work.run(&gpu).map_err(text)?;
    while seconds.is_empty() || (seconds.len() < limits.samples && begun.elapsed().as_secs_f64() < limits.budget) {
        seconds.push(work.run(&gpu).map_err(text)?.as_secs_f64());
    }
    let mut record = Record::default();
    spread(&mut record, &mut seconds);
    record.set("first_seconds", first.as_secs_f64());
    for (part, took) in work.parts(&gpu).map_err(text)? {
        record.set(&format!("part_{part}"), took.as_secs_f64());
    }
    if let Some(occupancy) = work.occupancy(&gpu).map_err(text)? {
        record.set("occupancy", occupancy.share).set("limiter", occupancy.limiter.to_string());
        record.set("registers", occupancy.registers).set("shared_bytes", occupancy.shared);
        record.set("spilled_bytes", occupancy.local).set("block_threads", occupancy.threads);
    }
    let peak = fmm_cuda::peak(&gpu, work.precision()).map_err(text)?;
    let (time, units) = (record.number("seconds"), work.units());
    let rate = work.operations() * units as f64 / time;
    record.set("operator", kernel.name).set("order", kernel.order).set("n", units);
    record.set("precision", work.precision().name());
    record.set("device", Device::Cuda(ordinal).to_string()).set("operations", work.operations());
    record.set("rate", units as f64 / time).set("gflops", rate / 1e9);
    record.set("peak_gflops", peak / 1e9).set("fraction", rate / peak);
    if kernel.copied != [0; 2] {
        let single = work.precision() == Precision::F32;
        let copied = if single { copies::<f32>(&gpu, kernel.copied) } else { copies::<f64>(&gpu, kernel.copied) };
        let ([up, down], bytes) = (copied.map_err(text)?, if single { 4.0 } else { 8.0 });
        record.set("copy_to_device", up).set("copy_to_host", down);
        record.set("gigabytes", 1e-9 * bytes * kernel.copied.iter().sum::<usize>() as f64 / time);
    }
    context.machine(&mut record, Device::Cuda(ordinal));
    Ok(Some(record))
}

/// Seconds of a copy of so many numbers to the device, and back: the shortest of five.
fn copies<T: DeviceReal>(gpu: &Gpu, [up, down]: [usize; 2]) -> Result<[f64; 2], Error> {
    gpu.enter()?;
    let (from, mut there, mut back) = (vec![T::ONE; up], Buffer::<T>::new(), Buffer::<T>::new());
    back.upload(&vec![T::ONE; down])?;
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

/// The end of the name of the last of a paper's versions.
pub const LAST: &str = ", overlapped";

/// The two precisions of a table.
pub const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::F64];

/// The numbers of threads of a sweep: those of its preset that the machine has, or all cores.
pub fn threads(sweep: &Sweep) -> Vec<usize> {
    let listed = sweep.preset.threads.iter().map(|&t| t as usize).filter(|&t| t <= sweep.threads);
    let listed: Vec<usize> = listed.collect();
    if listed.is_empty() { vec![sweep.threads] } else { listed }
}

fn name(record: &Record) -> String {
    let place = if record.text("device") == "cpu" { String::new() } else { format!(", {}", record.text("device")) };
    let (operator, precision) = (record.text("operator"), record.text("precision"));
    // Names of versions may end with the precision.
    let operator = operator.trim_end_matches(precision).trim_end_matches(", ");
    format!("{operator}, {precision}, p = {}{place}", record.number("order"))
}

/// The rates against the size, a figure for each operator, precision and order: threads of the cores, and versions on
/// a GPU. Figures of single precision have it in their names.
pub fn figures(records: &[Record], title: &str, of: &str, unit: &str) -> Vec<(String, Figure)> {
    let mut all = vec![];
    let mut families: Vec<&str> = records.iter().map(family).collect();
    families.sort_unstable();
    families.dedup();
    let version = |r: &Record| match r.text("operator").split_once(", ") {
        Some((_, version)) => format!("{}, {version}", place_of(r)),
        None => place_of(r),
    };
    let others = families.iter().filter(|f| base(f) == **f).count();
    for wanted in &families {
        for (order, precision) in
            numbers(records, "order").into_iter().flat_map(|p| PRECISIONS.map(|precision| (p, precision.name())))
        {
            // The cores in single precision stand next to the last of the paper's versions.
            let last =
                |r: &Record| base(family(r)) == *wanted && precision == "f32" && r.text("operator").ends_with(LAST);
            let like = |r: &&Record| {
                let of_family = family(r) == *wanted || last(r);
                of_family && r.number("order") == order && r.text("precision") == precision
            };
            let here: Vec<Record> = records.iter().filter(like).cloned().collect();
            // A paper's versions at one size make no curve.
            let curve = base(wanted) == *wanted || numbers(&here, "n").len() > 1;
            if here.is_empty() || !curve {
                continue;
            }
            let content = Content::Lines {
                x: Axis::log(format!("number of {unit}")),
                y: Axis::log(format!("{unit} a second")),
                lines: lines(&here, "n", "rate", version),
                marks: vec![],
            };
            let first = wanted.split(' ').next().unwrap_or_default().to_lowercase();
            let end = match base(wanted) {
                other if other != *wanted => format!("versions-p{order}"),
                _ if others > 1 => format!("{first}-p{order}"),
                _ => format!("p{order}"),
            };
            let end = if precision == "f32" { format!("{end}-f32") } else { end };
            all.push((end, figure(&here, title, format!("{wanted}, p = {order}; {of}, {precision}"), content)));
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
