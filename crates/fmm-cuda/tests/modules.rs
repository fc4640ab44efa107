//! Modules of kernels are loaded when they are used, on a device.

use std::thread;

use fmm_core::{Method, Settings, Softening, StageTimes};
use fmm_cuda::{Gpu, MODULES, evaluate};

use crate::common::{gpu, uniform};

/// Sums some bodies at themselves.
fn sum(gpu: &Gpu, method: Method) -> Vec<[f64; 3]> {
    let p = uniform(5_000, 0.0, 1);
    let settings = Settings { method, softening: Softening::Plummer(1e-2), tolerance: 1e-4, ..Settings::default() };
    evaluate(gpu, &settings, &p.position, &p.strength, None, &mut StageTimes::default()).unwrap().field
}

#[test]
fn an_open_device_has_loaded_no_module_and_a_direct_sum_loads_what_it_needs() {
    let Some(gpu) = gpu() else { return };
    assert!(gpu.loaded().is_empty(), "{:?}", gpu.loaded());
    sum(&gpu, Method::Direct);
    let direct = gpu.loaded();
    assert!(direct.contains(&"p2p") && direct.len() <= 6, "{direct:?}");
    assert!(!direct.iter().any(|name| ["m2l", "near", "tree", "translate"].contains(name)), "{direct:?}");
    assert!(gpu.loading().as_secs_f64() > 0.0);
    sum(&gpu, Method::Direct);
    assert_eq!(gpu.loaded(), direct, "a second sum needs the same");
    sum(&gpu, Method::Fmm);
    let both = gpu.loaded();
    assert!(direct.len() < both.len() && both.len() < MODULES.len(), "{both:?}");
}

#[test]
fn threads_that_launch_at_once_share_the_modules() {
    let Some(gpu) = gpu() else { return };
    let fields: Vec<_> = thread::scope(|scope| {
        let sums: Vec<_> = (0..4).map(|_| scope.spawn(|| sum(&gpu, Method::Direct))).collect();
        sums.into_iter().map(|sum| sum.join().unwrap()).collect()
    });
    assert!(fields.iter().all(|field| *field == fields[0]));
    assert!(gpu.loaded().len() <= 6, "{:?}", gpu.loaded());
}
