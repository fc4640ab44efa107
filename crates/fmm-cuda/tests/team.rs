//! GPUs that share sums. A GPU may be in a team more than once, so that one is enough to see that the bits are the same for
//! every number of shares; where there are several, teams of all of them are compared too.

use std::sync::Mutex;

use fmm_core::bath::{HeatExchange, Kind};
use fmm_core::forces::Forces;
use fmm_core::random::Stream;
use fmm_core::solve::Quantity;
use fmm_core::{
    Cancel, Error, Method, ParticleStore, Particles, PeriodicBox, Precision, Settings, Softening, StageTimes,
    WithHessian,
};
use fmm_cuda::team::{self, Opened, TeamStore};
use fmm_cuda::{CudaStore, devices};

use crate::common::{FOIL, LONG, gpu, in_box, plummer, uniform};

/// Numbers of GPUs: one, some shares on one, all.
fn teams() -> Option<Vec<Vec<u32>>> {
    gpu()?;
    let all: Vec<u32> = (0..devices().unwrap().len() as u32).collect();
    let mut teams = vec![vec![0], vec![0; 2], vec![0; 5]];
    if all.len() > 1 {
        teams.push(all);
    }
    Some(teams)
}

fn opened(ordinals: &[u32]) -> Vec<Opened> {
    team::open(ordinals).unwrap().into_iter().map(Opened::new).collect()
}

type Case = (&'static str, Particles, Settings, Quantity);

fn cases() -> Vec<Case> {
    let mut ions = uniform(20_000, 0.0, 5);
    ions.strength = testkit::sets::alternating(20_000);
    let long = |softening| {
        let cell = PeriodicBox { side: LONG, surroundings: FOIL };
        Settings { method: Method::Fmm, softening, ..in_box(cell) }
    };
    let mut in_long = uniform(20_000, 0.0, 6);
    in_long.position.iter_mut().for_each(|x| (0..3).for_each(|k| x[k] *= LONG[k]));
    let with = |method, tolerance| Settings { method, tolerance, ..Settings::default() };
    let fmm = |tolerance| with(Method::Fmm, tolerance);
    let potential = Quantity::Potential;
    let softened = Settings { softening: Softening::Spline(0.02), ..fmm(1e-4) };
    let screened = Settings { softening: Softening::Yukawa(0.5), ..fmm(1e-4) };
    let vortex = Settings { softening: Softening::P1(0.01), ..fmm(1e-4) };
    vec![
        ("uniform", uniform(50_000, 0.0, 1), fmm(1e-3), potential),
        ("estimated errors", plummer(30_000, 2), Settings { errors: true, ..fmm(1e-5) }, potential),
        ("double precision", plummer(20_000, 3), Settings { precision: Precision::F64, ..fmm(1e-9) }, potential),
        ("treecode", plummer(20_000, 4), with(Method::Treecode, 1e-4), potential),
        ("ions", ions, fmm(1e-6), potential),
        ("softened", plummer(20_000, 7), softened, potential),
        ("screened", uniform(20_000, 0.0, 8), screened, potential),
        ("box", in_long, long(Softening::None), potential),
        ("vortices", uniform(10_000, 0.0, 9), vortex, Quantity::Velocity),
        ("second derivatives", uniform(5000, 0.0, 10), fmm(1e-3), Quantity::Hessian),
        ("few", uniform(3, 0.0, 11), fmm(1e-3), potential),
        ("direct", uniform(3000, 0.0, 12), with(Method::Direct, 1e-3), potential),
    ]
}

fn sum(team: &mut [Opened], case: &Case, targets: Option<&[[f64; 3]]>) -> Result<WithHessian, Error> {
    sum_where_it_pays(team, SHARED, case, targets)
}

/// Nanoseconds of a sum from which on GPUs share it: all sums, and none.
const SHARED: f64 = 0.0;
const ALONE: f64 = f64::INFINITY;

fn sum_where_it_pays(
    team: &mut [Opened],
    pays: f64,
    case: &Case,
    targets: Option<&[[f64; 3]]>,
) -> Result<WithHessian, Error> {
    let (_, p, settings, quantity) = case;
    let columns = vec![&p.strength[..]; if *quantity == Quantity::Velocity { 3 } else { 1 }];
    team::evaluate_host(team, pays, settings, (&p.position, &columns, targets), *quantity, &mut StageTimes::default())
}

#[test]
fn teams_give_the_bits_of_one_gpu() {
    let Some(teams) = teams() else { return };
    let mut all: Vec<_> = teams.iter().map(|ordinals| opened(ordinals)).collect();
    let elsewhere: Vec<[f64; 3]> = uniform(7000, 0.2, 20).position;
    for case in cases() {
        for targets in [None, Some(&elsewhere[..])].into_iter().take(if case.0 == "box" { 1 } else { 2 }) {
            let (one, others) = all.split_first_mut().unwrap();
            let wanted = sum(one, &case, targets).unwrap();
            assert!(!wanted.sum.field.is_empty(), "{}", case.0);
            for (team, ordinals) in others.iter_mut().zip(&teams[1..]) {
                // The second with other shares than the first.
                for pays in [SHARED, SHARED, ALONE, SHARED] {
                    let found = sum_where_it_pays(team, pays, &case, targets).unwrap();
                    let what = format!("{} on {ordinals:?}", case.0);
                    assert_eq!(found.sum.choice, wanted.sum.choice, "{what}");
                    assert_eq!(found.sum.field, wanted.sum.field, "{what}");
                    assert_eq!(found.sum.potential, wanted.sum.potential, "{what}");
                    assert_eq!(found.sum.error, wanted.sum.error, "{what}");
                    assert_eq!(found.hessian, wanted.hessian, "{what}");
                }
            }
        }
    }
}

/// Positions and totals after some steps.
fn after_steps(
    ordinals: &[u32],
    pays: f64,
    settings: &Settings,
    particles: &Particles,
) -> (Particles, Vec<f64>, String) {
    let store = |gpu| CudaStore::new(gpu, settings.clone()).unwrap().with_forces(Forces::default());
    let mut store = TeamStore::new(team::open(ordinals).unwrap().into_iter().map(store).collect(), pays);
    store.upload(particles).unwrap();
    let (mut kept, times) = (None, &mut StageTimes::default());
    for step in 0..6 {
        kept = store.forces_kept(kept, times).unwrap();
        if step == 3 {
            for kind in [Kind::Langevin, Kind::Rescale] {
                let (numbers, mass) = (Stream::new(3, 7), &particles.strength);
                store.exchange_heat(&HeatExchange { kind, energy: 1e-5, kept: 0.5, numbers, mass }).unwrap();
            }
        }
        store.kick(1e-3, times).unwrap();
        store.drift(1e-3, times).unwrap();
    }
    store.check().unwrap();
    store.forces_kept(kept, times).unwrap();
    let copied = store.copy().unwrap()().unwrap();
    assert_eq!(store.field().unwrap(), (copied.potential.clone(), copied.field));
    (store.particles().unwrap(), copied.potential, format!("{:?}", store.totals(&particles.strength).unwrap()))
}

#[test]
fn steps_of_teams_have_the_bits_of_one_gpu() {
    let Some(teams) = teams() else { return };
    let particles = plummer(20_000, 13);
    for tolerance in [1e-3, 1e-6] {
        let settings = Settings { method: Method::Fmm, tolerance, ..Settings::default() };
        let wanted = after_steps(&teams[0], SHARED, &settings, &particles);
        assert_ne!(wanted.0.position, particles.position);
        let shared = teams[1..].iter().map(|ordinals| (ordinals, SHARED));
        for (ordinals, pays) in shared.chain([(&teams[1], ALONE)]) {
            let found = after_steps(ordinals, pays, &settings, &particles);
            assert_eq!((found.0.position, found.0.velocity), (wanted.0.position.clone(), wanted.0.velocity.clone()));
            assert_eq!((found.1, found.2), (wanted.1.clone(), wanted.2.clone()), "{ordinals:?}");
        }
    }
}

#[test]
fn what_one_gpu_refuses_a_team_refuses_and_goes_on() {
    let Some(teams) = teams() else { return };
    let good: Case = ("", uniform(5000, 0.0, 14), Settings::default(), Quantity::Potential);
    let tight = Settings { method: Method::Fmm, precision: Precision::F32, tolerance: 1e-9, ..Settings::default() };
    let bad: Case = ("", plummer(5000, 15), tight, Quantity::Potential);
    let mut one = opened(&teams[0]);
    let why = sum(&mut one, &bad, None).map(|_| ()).unwrap_err();
    for ordinals in &teams[1..] {
        let mut team = opened(ordinals);
        for _ in 0..2 {
            assert_eq!(sum(&mut team, &bad, None).map(|_| ()), Err(why.clone()));
            assert!(sum(&mut team, &good, None).is_ok());
        }
        // The flag is seen by the GPUs at different times.
        let large = uniform(400_000, 0.0, 16);
        let cancel = Cancel::new();
        let ended = Mutex::new(None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let settings = Settings { method: Method::Fmm, tolerance: 1e-9, ..Settings::default() };
                let host = (&large.position[..], &[&large.strength[..]][..], None);
                let times = &mut StageTimes::with_cancel(cancel.clone());
                let done = team::evaluate_host(&mut team, SHARED, &settings, host, Quantity::Potential, times);
                *ended.lock().unwrap() = Some(done.map(|_| ()));
            });
            std::thread::sleep(std::time::Duration::from_millis(30));
            cancel.set();
        });
        let ended = ended.into_inner().unwrap().unwrap();
        assert!(matches!(ended, Ok(()) | Err(Error::Cancelled)), "{ended:?}");
        assert!(sum(&mut team, &good, None).is_ok());
    }
}
