//! The command line of `nbody bench`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

use super::preset::Preset;
use super::sets::Set;
use fmm::Device;
use nbody_cli::options::{tolerance, whole};

/// Printed below the options.
pub const EXAMPLES: &str = "\
Examples:
  nbody bench --n 1e6 --device cpu
  nbody bench --n 1e7 --device cuda
  nbody bench operators --csv
  nbody bench leafsize --kernel harmonic
  nbody bench papers
  nbody bench stages --n 1e7 --tolerance 1e-5 --out out/stages --resume

Records go to out/bench/SUITE.jsonl, one line a case as soon as it is measured; nbody plot FILE.jsonl draws them again.

Exit codes: 0 done, 2 wrong option, 65 wrong preset or records, 66 no such preset, 69 no such GPU, 71 out of memory, 74 files cannot be
written, 75 stopped by a signal, to go on with --resume; docs/benchmarks.md explains the suites";

/// Options of `nbody bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "SUITE", subcommand_help_heading = "Suites")]
pub struct Bench {
    #[command(subcommand)]
    suite: Option<Which>,
    #[command(flatten)]
    options: Options,
}

impl Bench {
    /// What is asked for; the suite `crossover` where none is named.
    pub(super) fn chosen(&self) -> Chosen<'_> {
        let (name, options) = match &self.suite {
            Some(Which::Papers(o)) => return Chosen::Papers(o),
            None => ("crossover", &self.options),
            Some(Which::Crossover(o)) => ("crossover", o),
            Some(Which::Stages(o)) => ("stages", o),
            Some(Which::Operators(o)) => ("operators", o),
            Some(Which::Accuracy(o)) => ("accuracy", o),
            Some(Which::Leafsize(o)) => ("leafsize", o),
            Some(Which::Distributions(o)) => ("distributions", o),
            Some(Which::Shifts(o)) => ("shifts", o),
            Some(Which::Threads(o)) => ("threads", o),
            Some(Which::Scaling(o)) => ("scaling", o),
            Some(Which::M2l(o)) => ("m2l", o),
            Some(Which::M2l2d(o)) => ("m2l2d", o),
            Some(Which::Gauss(o)) => ("gauss", o),
            Some(Which::Mesh(o)) => ("mesh", o),
            Some(Which::Peers(o)) => ("peers", o),
            Some(Which::Periodic(o)) => ("periodic", o),
            Some(Which::Poisson(o)) => ("poisson", o),
            Some(Which::Tune(o)) => ("tune", o),
        };
        Chosen::Suite(name, options)
    }
}

/// A suite with its options, or all that reproduce the papers.
pub(super) enum Chosen<'a> {
    Suite(&'static str, &'a Options),
    Papers(&'a PapersOptions),
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Time against N for direct sum, treecode and FMM, and where they cross: Yokota & Barba, Fig. 5; in the plane
    /// Goude & Engblom, Fig. 6, and with a GPU Figs. 7 and 8
    Crossover(Options),
    /// Where the time goes, by stage, for treecode and FMM: Yokota & Barba, Fig. 6; in the plane Goude & Engblom, Table 1
    Stages(Options),
    /// GFLOP/s of each operator: alone next to the measured peak, and in whole sums against N: Yokota & Barba, Fig. 7
    Operators(Options),
    /// Error against the order and the opening angle
    Accuracy(Options),
    /// Time against the size of leaves; with `boxes` in the preset, against the points in a box: Goude & Engblom, Fig. 3,
    /// and with a GPU Fig. 2
    Leafsize(Options),
    /// Time by the shape of the set: Goude & Engblom, Fig. 9, and with several `sigmas` in the preset Fig. 10
    Distributions(Options),
    /// Times of the shifts in the plane against the order: Goude & Engblom, Fig. 4, and with `boxes` and several `leaves` in
    /// the preset Fig. 5
    Shifts(Options),
    /// Strong scaling: the same sum on more threads
    Threads(Options),
    /// Several GPUs: the same sum on more of them, and sums that grow with them
    Scaling(Options),
    /// M2L in space alone against the order, on all cores and in several ways on a GPU: Kohnke et al., Figs. 15, 16, 18,
    /// 19a, 21 and 23
    #[command(name = "m2l")]
    M2l(Options),
    /// M2L in the plane alone, in both precisions, and on a GPU in the versions of Cruz, Layton & Barba: their Tables 2 and 3
    #[command(name = "m2l2d")]
    M2l2d(Options),
    /// Series of the fast Gauss transform alone, those of Hermite functions in both precisions: Cruz, Layton & Barba, Tables
    /// 4 and 5
    Gauss(Options),
    /// The boxes of the tree in the plane as pictures: Goude & Engblom, Fig. 1
    Mesh(Options),
    /// Other codes that are installed, at the same measured error: FMM3D, pytreegrav, REBOUND; in
    /// the plane FMM2D (scripts/peers installs them)
    Peers(Options),
    /// Charges in periodic boxes (rock salt, water, a droplet, a box of 10:1:1): mesh, FMM and Ewald's sum, and OpenMM's PME if
    /// it is installed, by N, tolerance and measured error
    Periodic(Options),
    /// The Poisson solver on grids, --n cells a side: van Rees et al., Figs. 3 to 5 and Table 1,
    /// and Hockney's convolution for comparison
    Poisson(Options),
    /// All suites that reproduce a figure or table of the five papers, in one folder with a page and a
    /// table that compare the papers' numbers with those measured here
    Papers(PapersOptions),
    /// For maintainers: the constants of the cost model and the tables of errors, as text to paste
    Tune(Options),
}

/// Options of every suite.
#[derive(Debug, Args)]
pub struct Options {
    /// Particles; the most of a sweep. Whole, from 2 to 4e9; 1e7 and 10M are understood [default: the preset's]
    #[arg(long, value_name = "N", value_parser = whole)]
    pub n: Option<usize>,
    /// The fewest particles of a sweep [default: the preset's]
    #[arg(long, value_name = "N", value_parser = whole)]
    pub smallest: Option<usize>,
    /// What is summed: laplace is 1/r, log and harmonic are in the plane; with the preset for it [default:
    /// laplace; shifts, mesh: harmonic]
    #[arg(long, value_name = "KERNEL", value_parser = PossibleValuesParser::new(Preset::KERNELS.map(|k| k.name())))]
    pub kernel: Option<String>,
    /// Where: cpu, cuda or cuda:N, for scaling also cuda:N,cuda:M or cuda:all [default: every device that there is]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<Device>,
    /// Relative error that is kept, rms and L2 unless the preset has another `norm`: 1e-14 to 0.1 [default:
    /// the preset's]
    #[arg(long, value_name = "T", value_parser = tolerance)]
    pub tolerance: Option<f64>,
    /// How the particles lie [default: the preset's]
    #[arg(long, value_name = "SET", value_parser = PossibleValuesParser::new(Set::ALL.map(|s| s.0)))]
    pub set: Option<String>,
    /// Samples of each time, 1 to 1000 [default: the preset's]
    #[arg(long, value_name = "K", value_parser = whole)]
    pub samples: Option<usize>,
    /// Seconds after which a case takes no further sample, 0 to 86400 [default: the preset's]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub budget: Option<f64>,
    /// Worker threads, 1 to 1024 [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Another preset, a TOML file like those of configs/
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of records and figures; made if need be [default: out/bench]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write the records as CSV
    #[arg(long)]
    pub csv: bool,
    /// peers, periodic: the Python that has the other codes [default: python3]
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
    #[command(flatten)]
    pub keep: Keep,
}

/// Options of `nbody bench papers`.
#[derive(Debug, Args)]
pub struct PapersOptions {
    /// toy takes less than two minutes on two cores, full has the papers' sizes [default: full with a GPU, else toy]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Where: cpu; cuda or cuda:N, and the cores that speed-ups are of [default: every device that there is]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<Device>,
    /// Worker threads, 1 to 1024 [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Folder of page, table, records and figures; made if need be [default: out/bench/papers]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub keep: Keep,
}

/// What is done with files that are there, and with progress.
#[derive(Debug, Clone, Copy, Args)]
pub struct Keep {
    /// Go on with the records that are there: none is measured twice
    #[arg(long)]
    pub resume: bool,
    /// Overwrite records that are there; with --resume: go on although machine or program differ
    #[arg(long)]
    pub force: bool,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// How much `nbody bench papers` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// Less than two minutes on two cores.
    Toy,
    /// The papers' sizes.
    Full,
}
