//! A sum whose particles several ranks share, read and written by the first of them.

use fmm_core::comm::{Comm, collected, exchanged, gathered};
use fmm_core::ranks::{Ranks, share};
use fmm_core::{Evaluation as Sums, StageTimes};

use crate::{Device, Error, Evaluation, Family, Points, Problem, Seconds, coincident};

/// Checks that ranks can sum `problem`: 1/r and its relatives in open space, of sources at themselves, on the cores.
///
/// # Errors
/// [`Error::Request`] with the first parameter that they cannot serve.
pub fn check(problem: &Problem, device: Device) -> Result<(), Error> {
    let refused = |parameter, why: &str| Err(Error::Request { parameter, why: why.into() });
    match problem {
        p if !matches!(p.kernel.family(), Family::Radial) => {
            refused("kernel", "ranks sum laplace and yukawa; nbody eval sums all kernels")
        }
        p if p.settings.boundary.periodic().is_some() => {
            refused("periodic", "ranks sum in open space; nbody eval sums in periodic boxes")
        }
        p if p.hessian => refused("hessian", "ranks give no second derivatives"),
        p if p.sample > 0 => refused("check", "ranks measure no errors for you; nbody eval does"),
        p if !p.exclusions.is_empty() => refused("exclusions", "ranks know no exclusions; nbody eval does"),
        _ if !matches!(device, Device::Auto | Device::Cpu) => refused("device", "ranks sum on the cores"),
        _ => problem.check(),
    }
}

/// The sum of `problem` over the sources that the first rank has; the other ranks have no `points`. The first rank gets all of
/// it, with the bits of [`Solver::evaluate`](crate::Solver::evaluate) on the cores.
///
/// # Errors
/// Those of [`check`] and of a sum, on all ranks; of the points, as [`Points`] says, and [`Error::Overflow`], on the first alone.
///
/// # Panics
/// If another rank than the first has points.
pub fn evaluate(ranks: &mut Ranks, problem: &Problem, points: Option<&Points>) -> Result<Option<Evaluation>, Error> {
    check(problem, Device::Cpu)?;
    let comm = ranks.comm();
    assert_eq!(points.is_some(), comm.rank() == 0, "the first rank has the points");
    let checked = points.map_or(Ok(()), |points| match points.targets {
        None => points.check(problem),
        Some(_) => Err(Error::Request { parameter: "targets", why: "ranks sum at the sources".into() }),
    });
    if gathered(comm, &[u64::from(checked.is_err())]).contains(&1) {
        // The first rank has the reason; the others only learn that there is one.
        checked?;
        return Ok(None);
    }
    let (position, strength) = scattered(comm, points);
    let mut times = StageTimes::default();
    let begun = std::time::Instant::now();
    let sums = ranks.evaluate(&problem.in_space(), &position, &strength, &mut times)?;
    let seconds = Seconds { sum: begun.elapsed().as_secs_f64(), ..Seconds::default() };
    let Sums { potential, field, error, choice, coincident_pairs } = sums;
    let [potential, field, error] =
        [&potential[..], field.as_flattened(), &error].map(|values| collected(comm, values));
    let field = field.chunks_exact(3).map(|e| [e[0], e[1], e[2]]).collect();
    let Some(points) = points else { return Ok(None) };
    let (device, hessian) = (Device::Cpu, vec![]);
    let coincident_pairs = coincident::pairs(problem, points, coincident_pairs);
    let sum =
        Evaluation { potential, field, hessian, error, choice, device, coincident_pairs, errors: None, times, seconds };
    sum.check_finite(problem.kernel, points)?;
    Ok(Some(sum))
}

/// The share of each rank in the points of the first.
fn scattered(comm: &dyn Comm, points: Option<&Points>) -> (Vec<[f64; 3]>, Vec<f64>) {
    let count = gathered(comm, &[points.map_or(0, |p| p.sources.len() as u64)])[0] as usize;
    let row = |points: &Points, i: usize| {
        let [x, y, z] = points.sources[i];
        [x, y, z, points.strengths[0][i]]
    };
    let of =
        |rank: usize| points.map_or(vec![], |points| share(count, rank, comm.size()).map(|i| row(points, i)).collect());
    let to: Vec<Vec<[f64; 4]>> = (0..comm.size()).map(of).collect();
    let mut from = exchanged(comm, &to);
    from.swap_remove(0).into_iter().map(|[x, y, z, q]| ([x, y, z], q)).unzip()
}

#[cfg(test)]
mod tests {
    use fmm_core::comm::run;
    use fmm_core::{Method, Settings};

    use super::*;
    use crate::{Kernel, Solver};

    #[test]
    fn the_first_rank_has_the_sum_of_a_single_process() {
        let n = 40_000;
        let x: Vec<[f64; 3]> = (0..n).map(|i| [0.618, 0.755, 0.569].map(|a| (i as f64 * a).fract())).collect();
        let (q, kernels) = (vec![1.0; n], [Kernel::Laplace, Kernel::Yukawa(0.5)]);
        for kernel in kernels {
            let settings = Settings { method: Method::Fmm, tolerance: 1e-3, errors: true, ..Settings::default() };
            let problem = Problem { settings, ..Problem::new(kernel) };
            let columns: [&[f64]; 1] = [&q];
            let points = Points::in_space(&x, &columns);
            let whole = Solver::new(Device::Cpu).evaluate(&problem, &points).unwrap();
            let of_ranks = run(3, |comm| {
                evaluate(&mut Ranks::new(comm), &problem, (comm.rank() == 0).then_some(&points)).unwrap()
            });
            let [first, rest @ ..] = &of_ranks.unwrap()[..] else { panic!("three ranks") };
            let first = first.as_ref().unwrap();
            assert!(first.field == whole.field && first.potential == whole.potential && first.error == whole.error);
            assert_eq!((&first.choice, first.coincident_pairs), (&whole.choice, whole.coincident_pairs));
            assert!(rest.iter().all(Option::is_none));
        }
    }

    #[test]
    fn what_ranks_cannot_do_is_refused_by_name() {
        let refused = |problem: Problem, device| match check(&problem, device) {
            Err(Error::Request { parameter, .. }) => parameter,
            other => panic!("{other:?}"),
        };
        let problem = Problem::new(Kernel::Laplace);
        assert!(check(&problem, Device::Auto).is_ok());
        assert_eq!(refused(Problem::new(Kernel::Vortex), Device::Cpu), "kernel");
        assert_eq!(refused(Problem { hessian: true, ..problem.clone() }, Device::Cpu), "hessian");
        assert_eq!(refused(Problem { sample: 9, ..problem.clone() }, Device::Cpu), "check");
        assert_eq!(refused(problem, Device::Cuda(0)), "device");
    }
}
