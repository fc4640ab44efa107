//! The sum of each kernel, on the cores or on a GPU.

use fmm_core::gauss::{self, Axes, Dimension, Route};
use fmm_core::planar;
use fmm_core::solve::Quantity;
use fmm_core::{Choice, Complex64, Error as Refused, Method, Precision, Settings, StageTimes, WithHessian};

use fmm_cuda::team::{self, Opened};

use crate::device::{Place, loaded};
use crate::{Device, Error, Evaluation, Family, Note, Points, Problem, Seconds};

/// The sum that `problem` asks for, without exclusions.
pub(crate) fn sum(place: &mut Place, problem: &Problem, points: &Points) -> Result<Evaluation, Error> {
    match problem.kernel.family() {
        Family::Radial | Family::Vortex => in_space(place, problem, points),
        Family::Plane(kernel) => in_plane(place, problem, kernel, points),
        Family::Gauss(sigma) => match points.dimension {
            1 => of_gaussians::<1>(place, problem, points, sigma),
            2 => of_gaussians::<2>(place, problem, points, sigma),
            _ => of_gaussians::<3>(place, problem, points, sigma),
        },
    }
}

/// The sum that an executor has done.
struct Summed {
    potential: Vec<f64>,
    field: Vec<[f64; 3]>,
    hessian: Vec<[f64; 6]>,
    error: Vec<f64>,
    choice: Choice,
    coincident_pairs: u64,
}

type OnGpus<'a> = &'a mut dyn FnMut(&mut [Opened], &mut StageTimes) -> Result<Summed, Refused>;
type OnCores<'a> = &'a mut dyn FnMut(&mut StageTimes) -> Result<Summed, Refused>;

/// Sums `pairs` pairs on `device`: that of `place`, or the cores where no GPU can do the sum.
fn sum_on(place: &mut Place, device: Device, pairs: f64, gpus: OnGpus, cores: OnCores) -> Result<Evaluation, Error> {
    let mut times = StageTimes::with_cancel(place.cancel.clone());
    let (sum, device, note) = match place.gpus_for(device, pairs)? {
        [] => (cores(&mut times), Device::Cpu, None),
        opened => (gpus(opened, &mut times), Device::of(opened), loaded(&opened[0].gpu)),
    };
    note.into_iter().for_each(&mut place.note);
    let Summed { potential, field, hessian, error, choice, coincident_pairs } = sum?;
    let seconds = Seconds::default();
    Ok(Evaluation { potential, field, hessian, error, choice, device, coincident_pairs, errors: None, times, seconds })
}

fn pairs(points: &Points) -> f64 {
    points.sources.len() as f64 * points.at().len() as f64
}

/// 1/r and its relatives, and vortices.
fn in_space(place: &mut Place, problem: &Problem, points: &Points) -> Result<Evaluation, Error> {
    let (settings, sources, targets) = (&problem.in_space(), points.sources, points.targets);
    // The targets of a check are drawn by the estimated errors, where the place has them.
    let errors = settings.errors || problem.sample > 0;
    let with_errors = &Settings { errors, ..settings.clone() };
    let quantity = match points.strengths {
        [_, _, _] => Quantity::Velocity,
        _ if problem.hessian => Quantity::Hessian,
        _ => Quantity::Potential,
    };
    let summed = |WithHessian { sum, hessian }| {
        let fmm_core::Evaluation { potential, field, error, choice, coincident_pairs } = sum;
        Summed { potential, field, hessian, error, choice, coincident_pairs }
    };
    let alone = |sum| WithHessian { sum, hessian: vec![] };
    sum_on(
        place,
        place.device.able(settings, false, quantity),
        pairs(points),
        &mut |opened, times| {
            let settings = if quantity == Quantity::Potential { with_errors } else { settings };
            let host = (sources, points.strengths, targets);
            team::evaluate_host(opened, team::PAYS, settings, host, quantity, times).map(summed)
        },
        &mut |times| {
            let settings = with_errors;
            let found = match (quantity, points.strengths) {
                (_, &[x, y, z]) => fmm_core::biot_savart(settings, sources, [x, y, z], targets, times).map(alone),
                (Quantity::Hessian, q) => fmm_core::evaluate_hessian(settings, sources, q[0], targets, times),
                (_, q) => fmm_core::evaluate(settings, sources, q[0], targets, times).map(alone),
            };
            found.map(summed)
        },
    )
}

/// `points` with the first D coordinates.
fn flat<const D: usize>(points: &[[f64; 3]]) -> Vec<[f64; D]> {
    points.iter().map(|x| std::array::from_fn(|d| x[d])).collect()
}

/// `vectors` with zeros beyond the first D components.
fn in_three<const D: usize>(vectors: Vec<[f64; D]>) -> Vec<[f64; 3]> {
    vectors.iter().map(|e| std::array::from_fn(|d| e.get(d).copied().unwrap_or(0.0))).collect()
}

/// Log and harmonic, of points or blobs.
fn in_plane(
    place: &mut Place,
    problem: &Problem,
    kernel: planar::Kernel,
    points: &Points,
) -> Result<Evaluation, Error> {
    let complex = |points: &[[f64; 3]]| points.iter().map(|x| Complex64::new(x[0], x[1])).collect::<Vec<_>>();
    let (sources, targets) = (complex(points.sources), points.targets.map(complex));
    let strengths: Vec<Complex64> = match points.strengths {
        [re, im] => re.iter().zip(*im).map(|(&re, &im)| Complex64 { re, im }).collect(),
        columns => columns[0].iter().map(|&q| q.into()).collect(),
    };
    let (settings, blob) = (&problem.settings, problem.blob);
    let plane = planar::Problem::new(settings, kernel, blob, &sources, &strengths, targets.as_deref())?;
    let device = match place.device.able(settings, true, Quantity::Potential) {
        Device::Auto if plane.request.may_underflow => {
            if !place.device.on_cores(pairs(points)) {
                (place.note)(Note::TooClose);
            }
            Device::Cpu
        }
        device => device,
    };
    let summed = |sum: fmm_core::Evaluation<Complex64>| Summed {
        potential: sum.potential,
        field: sum.field.iter().map(|e| [e.re, e.im, 0.0]).collect(),
        hessian: vec![],
        error: sum.error,
        choice: sum.choice,
        coincident_pairs: sum.coincident_pairs,
    };
    sum_on(
        place,
        device,
        pairs(points),
        &mut |opened, times| fmm_cuda::planar::evaluate(&opened[0].gpu, &plane, times).map(summed),
        &mut |times| planar::evaluate_problem(&plane, times).map(summed),
    )
}

/// Gaussians along D axes.
fn of_gaussians<const D: usize>(
    place: &mut Place,
    problem: &Problem,
    points: &Points,
    sigma: f64,
) -> Result<Evaluation, Error>
where
    Axes<D>: Dimension<D>,
{
    let (s, strengths) = (&problem.settings, &points.strengths[..1]);
    let route = if s.method == Method::Direct { Some(Route::All) } else { None };
    let settings = &gauss::Settings { tolerance: s.tolerance, gradient: true, route, ..gauss::Settings::new(sigma) };
    let (sources, targets) = (&flat::<D>(points.sources)[..], points.targets.map(flat::<D>));
    let (targets, precision) = (targets.as_deref(), s.precision);
    let summed = |(sum, precision): (gauss::Evaluation<D>, Precision)| {
        let gauss::Evaluation { potential, field, choice, .. } = sum;
        Summed {
            hessian: vec![],
            error: vec![],
            potential: potential.into_iter().next().unwrap_or_default(),
            field: in_three(field.into_iter().next().unwrap_or_default()),
            choice: Choice {
                method: if route.is_some() { Method::Direct } else { Method::Fmm },
                precision,
                expansion: None,
                order: choice.order,
                theta: None,
                leaf_size: choice.fullest,
            },
            coincident_pairs: 0,
        }
    };
    let on_gpu = fmm_cuda::gauss::Problem { settings, precision, sources, strengths, targets };
    sum_on(
        place,
        place.device,
        pairs(points),
        &mut |opened, times| fmm_cuda::gauss::evaluate(&opened[0].gpu, &on_gpu, times).map(summed),
        &mut |times| {
            if precision == Precision::F32 {
                return Err(Refused::Unsupported(
                    "precision: with kernel gauss on the cores allowed: auto, f64".into(),
                ));
            }
            let sum = gauss::evaluate(settings, sources, strengths, targets, times)?;
            Ok(summed((sum, Precision::F64)))
        },
    )
}
