//! `nbody-mpi eval`: the same command, done by several ranks.
//!
//! The first rank reads the particles, deals them out, collects the sums and writes them, with the bytes that `nbody eval`
//! writes. Each rank sums at its own particles.

use fmm_core::comm::{Comm, gathered};
use fmm_core::ranks::{Ranks, Traffic};

use super::output::{self, Output};
use super::{Options, Points, Seconds, failure, report, timed};
use crate::console::tell;
use crate::failure::Failure;
use nbody_sim::ranks::agreed;

/// Sums on all ranks, and writes the sums on the first.
///
/// # Errors
/// Those of [`run`](super::run), on all ranks with the same code; the message is on the first.
pub fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.unwrap_or(0))
        .build()
        .map_err(|e| Failure::new(71, format!("rank {}: cannot start the worker threads: {e}", comm.rank())));
    let pool = agreed(comm, pool)?;
    let threads = pool.current_num_threads();
    pool.install(|| evaluate(comm, options, threads))
}

fn evaluate(comm: &dyn Comm, options: &Options, threads: usize) -> Result<(), Failure> {
    agreed(comm, fmm::ranks::check(&options.problem, options.device).map_err(failure))?;
    for (given, name) in [(options.exclusions.is_some(), "exclusions"), (options.targets.is_some(), "targets")] {
        if given {
            let line = format!("--{name}: ranks sum sources at themselves; nbody eval has --{name}");
            return agreed(comm, Err(Failure::new(2, line)));
        }
    }
    let first = comm.rank() == 0;
    let mut seconds = Seconds::default();
    // What cannot be written is refused before the work, not after it.
    let output = agreed(comm, if first { Output::of(options) } else { Ok(Output::Stdout) })?;
    let sources =
        if first { timed(&mut seconds.read, || super::read(options)).map(|read| Some(read.0)) } else { Ok(None) };
    let sources: Option<Points> = agreed(comm, sources)?;
    let columns: Vec<&[f64]> = sources.iter().flat_map(|s| s.strengths.iter().map(|q| &q[..])).collect();
    let points = sources.as_ref().map(|sources| fmm::Points {
        dimension: sources.dimension,
        sources: &sources.position,
        strengths: &columns,
        targets: None,
    });
    let mut ranks = Ranks::new(comm);
    let sum = fmm::ranks::evaluate(&mut ranks, &options.problem, points.as_ref()).map_err(failure);
    let sum = agreed(comm, sum)?;
    let received = gathered(comm, &[ranks.traffic().bytes() as u64]).into_iter().max().unwrap_or(0);
    let written = match (sum, sources.as_ref().zip(points.as_ref())) {
        (Some(mut sum), Some((sources, points))) => {
            if sum.coincident_pairs > 0 && !options.quiet {
                tell(format_args!("nbody-mpi: warning: {}", report::coincident(sum.coincident_pairs, false)));
            }
            if options.verbose {
                tell(format_args!("nbody-mpi: {}", summary(comm.size(), ranks.traffic(), received)));
            }
            let totals = report::Totals::of(options.problem.kernel, points, &sum);
            let columns = output::columns(options.problem.kernel, sources.dimension, &mut sum);
            timed(&mut seconds.write, || output.write(sources, &columns))
                .and_then(|()| report::Facts { options, points, sum: &sum, totals, threads, seconds }.print())
        }
        _ => Ok(()),
    };
    agreed(comm, written)
}

fn summary(ranks: usize, traffic: Traffic, received: u64) -> String {
    let Traffic { largest_share, .. } = traffic;
    format!(
        "{ranks} ranks; the largest share of the work is {largest_share:.3} of the mean; {received} bytes of the essential trees \
         of others into a rank, at most"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use fmm_core::comm::run as on_threads;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        eval: super::super::Arguments,
    }

    fn options(words: &[&str]) -> Options {
        Line::parse_from(std::iter::once("eval").chain(words.iter().copied())).eval.into()
    }

    fn codes(size: usize, words: &[&str]) -> Vec<u8> {
        let options = options(words);
        on_threads(size, |comm| run(comm, &options).map_or_else(|failure| failure.code, |()| 0)).unwrap()
    }

    #[test]
    fn ranks_write_the_bytes_of_a_single_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let rows = (0..20_000).map(|i| format!("{i},{},{},{}\n", (i * i) % 9973, (i * 7) % 5003, 1 + i % 3));
        std::fs::write(file("a.csv"), "x,y,z,q\n".to_string() + &rows.collect::<String>()).unwrap();
        for (ending, method) in [("csv", "auto"), ("npy", "treecode"), ("hdf", "fmm")] {
            let line = |out: &str| {
                ["--sources", &file("a.csv"), "--method", method, "--errors", "--output", out, "--quiet"]
                    .map(String::from)
            };
            let (one, three) = (file(&format!("one.{ending}")), file(&format!("three.{ending}")));
            super::super::run(&options(&line(&one).each_ref().map(|w| &w[..]))).unwrap();
            assert_eq!(codes(3, &line(&three).each_ref().map(|w| &w[..])), [0; 3]);
            let bytes = |name: &str| std::fs::read(Path::new(name)).unwrap();
            assert!(bytes(&one) == bytes(&three), "{ending}");
        }
    }

    #[test]
    fn all_ranks_fail_with_one_code() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(file("a.csv"), "x,y,z,q\n0,0,0,1\n1,nan,0,1\n").unwrap();
        std::fs::write(file("b.csv"), "x,y,z,q\n0,0,0,1\n1,0,0,1\n").unwrap();
        let (out, none, sources) = (file("out.csv"), file("none.csv"), file("b.csv"));
        assert_eq!(codes(2, &["--sources", &file("a.csv"), "--output", &out]), [65; 2]);
        assert_eq!(codes(2, &["--sources", &none, "--output", &out]), [66; 2]);
        assert_eq!(codes(2, &["--sources", &file("b.csv"), "--output", &file("no/out.csv")]), [74; 2]);
        for option in [["--targets", &none], ["--kernel", "vortex"], ["--periodic", "9"], ["--device", "cuda"]] {
            let words = [&["--sources", &sources[..], "--output", &out][..], &option[..]].concat();
            assert_eq!(codes(2, &words), [2; 2], "{option:?}");
        }
    }
}
