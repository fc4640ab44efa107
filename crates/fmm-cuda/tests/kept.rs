//! Memory and tables that one sum leaves for the next: results are those of a first sum.

use crate::common::{gpu, plummer, uniform};
use fmm_core::solve::Quantity;
use fmm_core::{Boundary, Method, PeriodicBox, Precision, Settings, Softening, StageTimes, WithHessian};
use fmm_cuda::{DeviceSums, Gpu, Host};

fn sum(gpu: &Gpu, sums: &mut DeviceSums, settings: &Settings, host: Host, quantity: Quantity) -> WithHessian {
    sums.evaluate_host(gpu, settings, host, quantity, &mut StageTimes::default()).unwrap()
}

#[test]
fn a_sum_after_others_is_a_first_sum() {
    let Some(gpu) = gpu() else { return };
    let (large, small) = (plummer(20_000, 80), uniform(3000, 0.0, 81));
    let elsewhere = uniform(500, 0.0, 82).position;
    let charges: Vec<f64> = (0..3000).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let vortices: [&[f64]; 3] = [&charges, &small.strength, &charges];
    let of = |method, precision| Settings { method, precision, ..Settings::default() };
    let fmm = of(Method::Fmm, Precision::F32);
    let boxed = Settings { boundary: Boundary::Periodic(PeriodicBox::cube(1.0)), ..fmm.clone() };
    let softened = Settings { softening: Softening::Plummer(0.01), ..of(Method::Treecode, Precision::F64) };
    let all: Host = (&large.position, &[&large.strength], None);
    let few: Host = (&small.position, &[&charges], None);
    let mut kept = DeviceSums::default();
    for (k, (settings, host, quantity)) in [
        (&fmm, all, Quantity::Hessian),
        (&fmm, few, Quantity::Potential),
        (&fmm, (&small.position[..], &vortices[..], Some(&elsewhere[..])), Quantity::Velocity),
        (&boxed, few, Quantity::Potential),
        (&softened, (&small.position, &[&charges], Some(&elsewhere)), Quantity::Hessian),
        (&of(Method::Direct, Precision::F32), few, Quantity::Potential),
        (&of(Method::Direct, Precision::F64), few, Quantity::Hessian),
        (&boxed, few, Quantity::Potential),
        (&fmm, all, Quantity::Potential),
        (&fmm, (&[], &[&[]], None), Quantity::Potential),
        (&fmm, all, Quantity::Hessian),
    ]
    .into_iter()
    .enumerate()
    {
        let first = sum(&gpu, &mut DeviceSums::default(), settings, host, quantity);
        assert_eq!(sum(&gpu, &mut kept, settings, host, quantity), first, "sum {k}");
    }
}
