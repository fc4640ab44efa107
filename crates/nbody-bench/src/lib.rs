//! `nbody bench`: figures of the literature and answers to "which method, where", measured on the machine at hand.
//!
//! A suite gives cases. Each case becomes one flat record, appended at once to `<suite>.jsonl`
//! ([`record`]). Figures, table and sentences are made of records alone, so that `nbody plot
//! FILE.jsonl` can make them again. A suite is a file of `suites` and a preset in `configs/`; the
//! other modules do not depend on which suites there are. docs/benchmarks.md describes the method.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

mod arguments;
mod bodies;
mod charges;
mod hockney;
mod lines;
mod load;
mod machine;
mod measure;
mod norm;
mod papers;
pub mod preset;
pub mod record;
mod runner;
mod scratch;
mod sets;
mod suite;
mod suites;
mod table;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub use arguments::{Bench, EXAMPLES};

use arguments::{Chosen, Keep, Options};
use measure::{Context, Limits};
use preset::Preset;
use record::{Record, Store};
use suite::{Places, Suite, Sweep};

use fmm::Kernel;
use fmm::{Device, Team};
use nbody_cli::signals::Stop;
use nbody_cli::{console, figure};
use nbody_sim::failure::Failure;
use nbody_sim::files::atomic;
use nbody_sim::terminal;

/// The folder of the results where none is named.
const FOLDER: &str = "out/bench";

/// Measures a suite, or what the papers show, and writes records, which name the `commit` of the program,
/// figures and a table.
///
/// # Errors
/// 2 and 65 for what is asked, 66 for a preset that is not there, 69 for a device that is not there, 74 for files that cannot be written,
/// 75 where a signal came: what was measured is kept.
pub fn bench(arguments: &Bench, commit: Option<&'static str>) -> Result<(), Failure> {
    let (name, options) = match arguments.chosen() {
        Chosen::Suite(name, options) => (name, options),
        Chosen::Papers(options) => return papers::papers(options, commit),
    };
    let suite = suites::named(name).ok_or_else(|| Failure::new(2, format!("{name}: no such suite")))?;
    let sweep = sweep(suite, options)?;
    let mut context = Context::new(Limits { samples: 1, budget: 0.0 }, commit, Some(Stop::install()?));
    let folder = options.out.clone().unwrap_or_else(|| FOLDER.into());
    let (store, mut files) = measure(suite, &sweep, &mut context, &folder, options.keep)?;
    let mut text =
        format!("{}\n", table::markdown(store.records(), suite.columns, terminal::columns(&std::io::stdout())));
    match load::warning(store.records()) {
        Some(warning) => {
            let _ = writeln!(text, "{warning}");
        }
        None => (suite.summary)(store.records()).iter().for_each(|sentence| {
            let _ = writeln!(text, "{sentence}");
        }),
    }
    if options.csv {
        files.insert(1, folder.join(format!("{}.csv", suite.name)));
        atomic::replace(&files[1], &record::csv(store.records())?)?;
    }
    text.push('\n');
    for file in files {
        let _ = writeln!(text, "wrote {}", file.display());
    }
    console::print(&text)
}

/// Measures what a suite makes of a sweep: its records, and the files of these, further texts and figures.
fn measure(
    suite: &Suite,
    sweep: &Sweep,
    context: &mut Context,
    folder: &Path,
    Keep { resume, force, quiet }: Keep,
) -> Result<(Store, Vec<PathBuf>), Failure> {
    context.limits = Limits { samples: sweep.preset.samples as usize, budget: sweep.preset.budget };
    let path = folder.join(format!("{}.jsonl", suite.name));
    let mut store = Store::open(&path, resume, force)?;
    same_machine(&path, store.records(), context, force)?;
    let cases = (suite.cases)(sweep)?;
    if !runner::run(suite, cases, context, &mut store, quiet)? {
        let line = format!(
            "stopped; {} records are in {}: go on with the same command and --resume, or draw them with nbody plot {}",
            store.records().len(),
            path.display(),
            path.display()
        );
        return Err(Failure::new(75, line));
    }
    let mut files = vec![path];
    for (name, content) in (suite.texts)(store.records()) {
        files.push(folder.join(name));
        atomic::replace(&files[files.len() - 1], content.as_bytes())?;
    }
    files.extend(draw(store.records(), folder)?);
    Ok((store, files))
}

/// Draws the figures of records of any suites. Returns the paths of the files.
///
/// # Errors
/// 70 where drawing fails, 74 where a file cannot be written.
pub fn draw(records: &[Record], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut figures = vec![];
    for name in lines::distinct(records, "suite") {
        let here: Vec<Record> = records.iter().filter(|r| r.text("suite") == name).cloned().collect();
        let Some(suite) = suites::named(&name) else { continue };
        for (end, figure) in (suite.figures)(&here) {
            let name = if end.is_empty() { name.clone() } else { format!("{name}-{end}") };
            figures.push((name, figure));
        }
    }
    figure::write(&figures, folder)
}

/// The preset with the options laid over it.
fn sweep(suite: &Suite, options: &Options) -> Result<Sweep, Failure> {
    let flat = options.kernel.as_deref().is_some_and(|k| k.parse().is_ok_and(|k: Kernel| k.plane().is_some()));
    if flat && suite.plane.is_none() {
        return Err(Failure::new(2, format!("{}: this suite is of 1/r alone; leave --kernel out", suite.name)));
    }
    let built_in = || match suite.plane.filter(|_| flat) {
        Some(plane) => Preset::parse(&format!("configs/bench-plane-{}.toml", suite.name), plane),
        None => Preset::parse(&format!("configs/bench-{}.toml", suite.name), suite.preset),
    };
    let mut preset = options.config.as_deref().map_or_else(built_in, Preset::load)?;
    preset.kernel = options.kernel.clone().or(preset.kernel);
    if preset.kernel().plane().is_none() && suite.plane == Some(suite.preset) {
        let line = format!("{}: this suite is of the kernels log and harmonic; choose one with --kernel", suite.name);
        return Err(Failure::new(2, line));
    }
    if preset.kernel().plane().is_some() && suite.plane.is_none() {
        return Err(Failure::new(
            2,
            format!("{}: this suite is of 1/r alone, not of {}", suite.name, preset.kernel().name()),
        ));
    }
    let number = |option: Option<usize>, key: &mut f64| *key = option.map_or(*key, |v| v as f64);
    number(options.n, &mut preset.n);
    number(options.smallest, &mut preset.smallest);
    number(options.samples, &mut preset.samples);
    // Of teams it is the number for each of them.
    if options.smallest.is_some() && preset.smallest > preset.n && suite.places != Places::Teams {
        let line = format!("--smallest {} is above --n {}; allowed: 2 to --n", preset.smallest, preset.n);
        return Err(Failure::new(2, line));
    }
    preset.budget = options.budget.unwrap_or(preset.budget);
    if let Some(tolerance) = options.tolerance {
        preset.tolerances = vec![tolerance];
    }
    if let Some(set) = &options.set {
        preset.sets = vec![set.clone()];
    }
    preset.check("the options").map_err(|failure| Failure { code: 2, ..failure })?;
    let devices = match options.device {
        Some(Device::Cuda(_)) if suite.places == Places::Cores => {
            return Err(Failure::new(2, format!("{}: this suite is of the CPU alone; leave --device out", suite.name)));
        }
        Some(team @ Device::Team(_)) if suite.places != Places::Teams => {
            return Err(Failure::new(2, format!("{}: this suite is of one GPU, not of {team}", suite.name)));
        }
        None | Some(Device::Auto) if suite.places == Places::Teams => vec![Device::Team(Team::All)],
        None | Some(Device::Auto) if suite.places == Places::All => available(),
        None | Some(Device::Auto) => vec![Device::Cpu],
        Some(device) => vec![device],
    };
    Ok(Sweep {
        preset,
        devices,
        threads: options.threads.map_or_else(cores, usize::from),
        python: options.python.clone(),
    })
}

/// The number of cores.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The cores, and the first GPU if there is one that can be used.
fn available() -> Vec<Device> {
    let gpus = fmm_cuda::devices().unwrap_or_default();
    let gpu = gpus.first().filter(|_| fmm_cuda::MISSING.is_none()).map(|g| Device::Cuda(g.ordinal));
    [Device::Cpu].into_iter().chain(gpu).collect()
}

/// Refuses to go on with the records of another machine or program, unless `force`.
fn same_machine(path: &Path, records: &[Record], context: &Context, force: bool) -> Result<(), Failure> {
    let mut here = Record::default();
    context.machine(&mut here, Device::Cpu);
    for record in records.iter().filter(|_| !force) {
        for name in ["cpu", "cores", "simd", "version", "commit"] {
            let (there, here) = (record.0.get(name), here.0.get(name));
            if there != here {
                let shown = |v: Option<&serde_json::Value>| v.map_or("nothing".into(), ToString::to_string);
                let line = format!(
                    "{}: a record has {name} = {}, and here it is {}; measure anew with --force or in another folder with --out",
                    path.display(),
                    shown(there),
                    shown(here)
                );
                return Err(Failure::new(65, line));
            }
        }
    }
    Ok(())
}
