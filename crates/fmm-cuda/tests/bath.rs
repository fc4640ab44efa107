//! Heat that particles on the device exchange with a bath, against the formulas on the cores.

use crate::common::{gpu, uniform};
use fmm_core::bath::{HeatExchange, Kind};
use fmm_core::random::Stream;
use fmm_core::{ParticleStore, Settings};
use fmm_cuda::CudaStore;

#[test]
fn velocities_after_an_exchange_are_those_of_the_cores() {
    let Some(_) = gpu() else { return };
    for n in [1, 2, 255, 5000] {
        let mut particles = uniform(n, 0.0, 81);
        // A center of mass that moves.
        particles.velocity.iter_mut().for_each(|v| v[1] += 3.0);
        let masses: Vec<f64> = (0..n).map(|i| 1.0 + (i % 7) as f64).collect();
        for mass in [&masses, &particles.strength] {
            for (kind, first) in [(Kind::Langevin, 0), (Kind::Langevin, 12_345), (Kind::Rescale, 0)] {
                let numbers = Stream::new(17, (1 << 40) + 5).after(first);
                let exchange = HeatExchange { kind, energy: 2.0, kept: 0.3, numbers, mass };
                let mut store = CudaStore::new(gpu().unwrap(), Settings::default()).unwrap();
                store.upload(&particles).unwrap();
                let mut expected = particles.velocity.clone();
                for _ in 0..2 {
                    exchange.apply(&mut expected);
                    store.exchange_heat(&exchange).unwrap();
                }
                let found = store.particles().unwrap();
                assert_eq!(found.position, particles.position);
                assert_eq!(expected == particles.velocity, n == 1 && kind == Kind::Rescale, "{kind:?} of {n}");
                // Sums in another order, of which the motion of the center of mass is taken away.
                let most = if kind == Kind::Rescale { 1e-12 } else { 1e-14 };
                let largest = expected.as_flattened().iter().fold(1.0, |m: f64, v| m.max(v.abs()));
                for (a, b) in found.velocity.as_flattened().iter().zip(expected.as_flattened()) {
                    assert!((a - b).abs() < most * largest, "{kind:?} of {n}: {a} {b}");
                }
            }
        }
    }
}
