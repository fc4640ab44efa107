//! The command line of `nbody eval`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fmm::names::{self, METHODS, PRECISIONS};
use fmm::{Device, Kernel, Problem};
use fmm_core::planar::{self, Blob};
use fmm_core::{Boundary, Method, PeriodicBox, Precision, Settings, Softening, Surroundings, Uniform};

use nbody_cli::options::{allowed, number, tolerance, whole};

use super::Options;
use crate::messages;

/// Options of `nbody eval`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Sources: .csv with a header (x, y, z and q; any order, other columns are ignored), .npy, or a snapshot (.hdf)
    #[arg(long, value_name = "FILE")]
    sources: PathBuf,
    /// Strengths of the sources, where their file is an .npy of positions only
    #[arg(long, value_name = "FILE")]
    strengths: Option<PathBuf>,
    /// Where the field is wanted; without it at the sources themselves, none of which then sees itself
    #[arg(long, value_name = "FILE")]
    targets: Option<PathBuf>,
    /// What is summed: laplace (1/r), yukawa:KAPPA (exp(-KAPPA r)/r, KAPPA 0 to 1e100), log or harmonic (in the plane, x and y), vortex (Biot-Savart, strengths wx, wy, wz), gauss:SIGMA
    /// (exp(-r^2/(2 SIGMA^2)) along the axes of the files, own pairs included; SIGMA 1e-150 to 1e150)
    #[arg(long, value_name = "KERNEL", default_value = "laplace")]
    kernel: Kernel,
    /// How it is summed; auto chooses by cost
    #[arg(long, default_value = "auto", value_parser = named(&METHODS, Method::name))]
    method: Method,
    /// Relative error of the field, rms and L2 (in the plane L2; of gauss the largest error over the sum of |q|): 1e-14 to 0.1; order, opening angle and leaf size follow from it
    #[arg(long, value_name = "T", default_value = "1e-4", value_parser = tolerance)]
    tolerance: f64,
    /// Arithmetic of the sum
    #[arg(long, default_value = "auto", value_parser = named(&PRECISIONS, Precision::name))]
    precision: Precision,
    /// none, plummer:E, spline:E (E is epsilon, h = 2.8 E) or p1:E, E 0 or more; in the plane none, algebraic:E or gaussian:E
    #[arg(long, value_name = "SOFTENING", default_value = "none", value_parser = softening)]
    softening: (Softening, Blob),
    /// Images of every source without end: the side of a cubic box, or three sides; direct sums are Ewald's, a charge that is not zero has a
    /// uniform background
    #[arg(long, value_name = "L|Lx,Ly,Lz", value_parser = sides)]
    periodic: Option<[f64; 3]>,
    /// What all images are embedded in: tinfoil (a conductor: the potential has average zero), vacuum, or a medium's dielectric constant,
    /// 1 or more
    #[arg(long, value_name = "tinfoil|vacuum|EPS", default_value = "tinfoil", requires = "periodic", value_parser = surroundings)]
    surroundings: Surroundings,
    /// Pairs of sources that do not see each other (their nearest images, in a periodic box): .csv with columns i and j, rows of the sources
    /// counted from 0
    #[arg(long, value_name = "FILE", conflicts_with = "targets")]
    exclusions: Option<PathBuf>,
    /// Expert: order of the expansions, 1 to 30, in the plane to 60
    #[arg(long, value_name = "P", value_parser = order)]
    order: Option<usize>,
    /// Expert: opening angle, 0.2 to 1, in the plane to 0.8
    #[arg(long, value_name = "THETA", value_parser = theta)]
    theta: Option<f64>,
    /// Expert: most particles in a leaf, 1 to 1000000
    #[arg(long, value_name = "S", value_parser = leaf_size)]
    leaf_size: Option<usize>,
    /// Expert: a tree whose leaves are all on this level, 0 to 10, instead of one that follows the particles; with method fmm
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u8).range(0..=10), conflicts_with_all = ["theta", "leaf_size"])]
    depth: Option<u8>,
    /// Expert: with --depth, cells are near whose offsets are at most this along every axis, 1 or 2
    #[arg(long, value_name = "W", default_value = "1", requires = "depth", value_parser = clap::value_parser!(u8).range(1..=2))]
    separation: u8,
    /// Worker threads, 1 to 1024 [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Where the sum is done
    #[arg(long, default_value = "auto", value_name = Device::NAMES)]
    device: Device,
    /// Compare SAMPLE targets [1000 if not said] with the direct sum in f64, drawn by their estimated errors where there are
    /// estimates; exit code 1 if the tolerance is missed
    #[arg(long, value_name = "SAMPLE", num_args = 0..=1, require_equals = true, default_missing_value = "1000",
          value_parser = sample)]
    check: Option<usize>,
    /// Add a column `error`: the estimated size of the error of each row; all kernels but
    /// gauss on the cores, laplace and yukawa on a GPU
    #[arg(long)]
    errors: bool,
    /// One JSON object on stdout: what was chosen, seconds, errors; needs --output
    #[arg(long, requires = "output")]
    json: bool,
    /// Output: .csv, .npy (structured) or .hdf; without it CSV on stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// No warnings, and no errors of a check that passes
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Also tell what was chosen and where the time went
    #[arg(short, long)]
    verbose: bool,
}

/// Printed below the options.
pub const EXAMPLES: &str = "\
Examples:
  nbody eval --sources stars.csv > field.csv
  nbody eval --sources ions.csv --targets grid.csv --tolerance 1e-8 --check
  nbody eval --sources salt.csv --periodic 4 --tolerance 1e-6 --check
  nbody eval --sources snap_000010.hdf --softening plummer:0.01 --check=5000 --json --output field.npy

Exit codes: 0 done, 1 the check missed the tolerance, 2 wrong option, 65 wrong data, 66 no such file, 69 no such GPU, 70 sums that are
not finite, 71 no memory for threads, 74 output cannot be written; docs/eval.md lists all columns";

impl From<Arguments> for Options {
    fn from(a: Arguments) -> Options {
        Options {
            sources: a.sources,
            strengths: a.strengths,
            targets: a.targets,
            problem: Problem {
                kernel: a.kernel,
                blob: a.softening.1,
                exclusions: vec![],
                sample: a.check.unwrap_or(0),
                hessian: false,
                settings: Settings {
                    softening: a.softening.0,
                    boundary: a.periodic.map_or(Boundary::Open, |side| {
                        Boundary::Periodic(PeriodicBox { side, surroundings: a.surroundings })
                    }),
                    method: a.method,
                    tolerance: a.tolerance,
                    precision: a.precision,
                    order: a.order,
                    theta: a.theta,
                    leaf_size: a.leaf_size,
                    uniform: a.depth.map(|depth| Uniform { depth: depth.into(), separation: a.separation.into() }),
                    errors: a.errors,
                },
            },
            exclusions: a.exclusions,
            threads: a.threads.map(usize::from),
            device: a.device,
            json: a.json,
            output: a.output,
            quiet: a.quiet,
            verbose: a.verbose,
        }
    }
}

/// A parser of one of `values` by its name.
fn named<T: Copy + Send + Sync + 'static>(
    values: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let parser = PossibleValuesParser::new(values.iter().map(|&v| name(v)));
    // The parser lets nothing else through.
    parser.map(move |given| values.iter().copied().find(|&v| name(v) == given).unwrap_or(values[0]))
}

/// One side of a cube, or three sides of a box.
fn sides(text: &str) -> Result<[f64; 3], String> {
    let parts = text.split(',').map(|part| number(part.trim())).collect::<Result<Vec<f64>, _>>()?;
    let side = match parts[..] {
        [side] => [side; 3],
        [x, y, z] => [x, y, z],
        _ => return Err("allowed: the side of a cube, or three sides as Lx,Ly,Lz".into()),
    };
    let boundary = Boundary::Periodic(PeriodicBox { side, surroundings: Surroundings::TinFoil });
    allowed(side, Settings { boundary, ..Settings::default() })
}

fn surroundings(text: &str) -> Result<Surroundings, String> {
    names::surroundings(text).map_err(refused)
}

/// The reason of the library, without the name of the option, which clap prints.
fn refused(e: fmm::Error) -> String {
    match e {
        fmm::Error::Request { why, .. } => why,
        fmm::Error::Sum(e) => messages::error(&e),
        e => e.to_string(),
    }
}

fn theta(text: &str) -> Result<f64, String> {
    let theta = number(text)?;
    allowed(theta, Settings { theta: Some(theta), ..Settings::default() })
}

fn order(text: &str) -> Result<usize, String> {
    // What each kernel allows of it is checked with the other settings.
    match whole(text)? {
        order @ 1..=planar::MAX_ORDER => Ok(order),
        order => Err(format!("order = {order} is outside 1 to {}", planar::MAX_ORDER)),
    }
}

fn leaf_size(text: &str) -> Result<usize, String> {
    let size = whole(text)?;
    allowed(size, Settings { leaf_size: Some(size), ..Settings::default() })
}

fn sample(text: &str) -> Result<usize, String> {
    match whole(text) {
        Ok(n @ 1..) => Ok(n),
        _ => Err("allowed: a whole number, 1 or more; as many as there are targets, or more, compares all".into()),
    }
}

fn softening(text: &str) -> Result<(Softening, Blob), String> {
    names::softening(text).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes() {
        assert_eq!(sides("2.5"), Ok([2.5; 3]));
        assert_eq!(sides("1, 2,3e2"), Ok([1.0, 2.0, 300.0]));
        for bad in ["", "1,2", "1,2,3,4", "0", "-1", "1,1,nan", "inf", "x"] {
            assert!(sides(bad).is_err(), "{bad}");
        }
    }
}
