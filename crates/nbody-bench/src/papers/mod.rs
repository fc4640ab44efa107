//! `nbody bench papers`: all suites that reproduce a figure or table of a paper, in one folder, with a
//! page and a table that compare.

mod catalog;
mod page;
mod query;

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use crate::arguments::{Keep, PapersOptions, Size};
use crate::load;
use crate::measure::{Context, Limits};
use crate::preset::Preset;
use crate::record::Record;
use crate::suite::Sweep;
use crate::{available, measure};
use catalog::{Catalog, Paper, Row, Run};
use fmm::Device;
use nbody_cli::console;
use nbody_cli::signals::Stop;
use nbody_sim::failure::Failure;
use nbody_sim::files::atomic;

/// The folder of the results where none is named.
const FOLDER: &str = "out/bench/papers";
/// The page and the table.
const FILES: [&str; 2] = ["index.html", "papers.csv"];

/// What a run left.
struct Done {
    records: Vec<Record>,
    /// Paths of its figures, from the page.
    figures: Vec<String>,
    /// Repeats it.
    command: String,
}

/// A row with what this run found.
struct Found<'a> {
    paper: &'a Paper,
    row: &'a Row,
    outcome: Outcome,
    done: Option<&'a Done>,
}

impl Found<'_> {
    /// The path of the row's figure, if it was drawn.
    fn figure(&self) -> Option<&str> {
        path(self.done?, self.row.figure.as_ref()?)
    }
}

/// What this run has for a row.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    /// A number, and the machine that it was measured on.
    Number(f64, String),
    /// A figure without a number of the paper.
    Figure,
    /// Curves that do not cross at the N of this run.
    NoCrossing,
    /// Nothing, because it needs a GPU.
    NeedsGpu,
    /// The records have no such number.
    Missing,
    /// The program does not measure it.
    Absent,
}

/// Measures what all papers show, and writes the page and the table.
///
/// # Errors
/// Those of [`bench`](crate::bench).
pub fn papers(options: &PapersOptions, commit: Option<&'static str>) -> Result<(), Failure> {
    let catalog = Catalog::load()?;
    // The cores are what speed-ups of a GPU are of.
    let devices = match options.device {
        None | Some(Device::Auto) => available(),
        Some(Device::Cpu) => vec![Device::Cpu],
        Some(team @ Device::Team(_)) => {
            return Err(Failure::new(2, format!("papers: the figures are of one GPU, not of {team}")));
        }
        Some(gpu) => vec![Device::Cpu, gpu],
    };
    let full = options.size.map_or(devices.len() > 1, |size| size == Size::Full);
    let folder = options.out.clone().unwrap_or_else(|| FOLDER.into());
    let threads = options.threads.map_or_else(crate::cores, usize::from);
    let mut context = Context::new(Limits { samples: 1, budget: 0.0 }, commit, Some(Stop::install()?));
    let (mut done, mut times) = (HashMap::new(), String::new());
    for run in catalog.papers.iter().flat_map(|p| &p.runs) {
        let text = run.preset(full)?;
        let preset = Preset::parse(&run.name, &text)?;
        let alone = run.gpu && devices.len() > 1;
        let devices = devices.iter().copied().filter(|&d| !(alone && d == Device::Cpu)).collect();
        let sweep = Sweep { preset, devices, threads, python: None };
        let start = Instant::now();
        done.insert(run.name.clone(), reproduce(run, &text, &sweep, &mut context, &folder, options.keep)?);
        times += &format!("{:8.1} s  {}\n", start.elapsed().as_secs_f64(), run.name);
    }
    let found: Vec<Found<'_>> = catalog
        .papers
        .iter()
        .flat_map(|paper| paper.rows.iter().map(move |row| (paper, row)))
        .map(|(paper, row)| {
            let done = row.run.as_ref().and_then(|name| done.get(name));
            Found { paper, row, outcome: outcome(row, done), done }
        })
        .collect();
    let records: Vec<Record> = done.values().flat_map(|d| d.records.iter().cloned()).collect();
    let warning = load::warning(&records);
    let page = page::html(&catalog, &found, full, warning.as_deref());
    let contents = [page.into_bytes(), page::csv(&found)?];
    for (name, content) in FILES.into_iter().zip(contents) {
        atomic::replace(&folder.join(name), &content)?;
    }
    let numbers = found.iter().filter(|f| matches!(f.outcome, Outcome::Number(..))).count();
    let gpu = found.iter().filter(|f| f.outcome == Outcome::NeedsGpu).count();
    let needs = if gpu > 0 { format!(", {gpu} need a GPU and were not run") } else { String::new() };
    let mut text =
        format!("{} figures, tables and numbers: {numbers} compared with the papers'{needs}\n\n", found.len());
    text += &format!("{times}\n");
    if let Some(warning) = warning {
        text += &format!("{warning}\n\n");
    }
    for name in FILES {
        text += &format!("wrote {}\n", folder.join(name).display());
    }
    console::print(&text)
}

/// Measures a run, in a folder of its name with its preset.
fn reproduce(
    run: &Run,
    preset: &str,
    sweep: &Sweep,
    context: &mut Context,
    out: &Path,
    keep: Keep,
) -> Result<Done, Failure> {
    let (suite, folder) = (run.suite()?, out.join(&run.name));
    let command = format!("nbody bench {} --config {}/preset.toml", run.suite, run.name);
    // Records of two presets would be drawn as one.
    let path = folder.join("preset.toml");
    let there = std::fs::read_to_string(&path).ok();
    if keep.resume && there.as_ref().is_some_and(|there| there != preset) {
        let line = format!(
            "{}: the records there are of another --size or version; measure anew with --force alone or in another folder with --out",
            path.display()
        );
        return Err(Failure::new(65, line));
    }
    if there.is_none() || keep.force {
        let cannot = |e| Failure::new(74, format!("{}: cannot create the folder: {e}", folder.display()));
        std::fs::create_dir_all(&folder).map_err(cannot)?;
        atomic::replace(&path, preset.as_bytes())?;
    }
    let (store, files) = measure(suite, sweep, context, &folder, keep)?;
    let name = |path: &Path| Some(format!("{}/{}", run.name, path.file_name()?.to_str()?));
    let figures = files.iter().filter(|p| p.extension().is_some_and(|e| e == "svg"));
    Ok(Done { records: store.records().to_vec(), figures: figures.filter_map(|p| name(p)).collect(), command })
}

fn outcome(row: &Row, done: Option<&Done>) -> Outcome {
    let Some(done) = done else { return Outcome::Absent };
    let gpu = done.records.iter().any(|r| !r.text("gpu").is_empty());
    let drawn = || row.figure.as_ref().is_some_and(|figure| path(done, figure).is_some());
    match &row.ours {
        _ if row.gpu && !gpu => Outcome::NeedsGpu,
        Some(query) => match query.number(&done.records) {
            Some((number, records)) => Outcome::Number(number, page::machine(&records)),
            None if query.does_not_cross(&done.records) => Outcome::NoCrossing,
            None if !gpu && query.needs_gpu() => Outcome::NeedsGpu,
            None => Outcome::Missing,
        },
        None if drawn() => Outcome::Figure,
        None if !gpu => Outcome::NeedsGpu,
        None => Outcome::Missing,
    }
}

/// The path of a figure of a run.
fn path<'a>(done: &'a Done, figure: &str) -> Option<&'a str> {
    let wanted = format!("/{figure}.svg");
    done.figures.iter().find(|path| path.ends_with(&wanted)).map(String::as_str)
}
