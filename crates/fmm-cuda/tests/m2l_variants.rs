//! Every variant of M2L against the operator of the CPU, and the variants against each other.

use crate::common::gpu;
use fmm_core::expansion::{Spherical, Translation, matrix};
use fmm_core::lists::Classes;
use fmm_cuda::{DeviceWork, M2lVariant, M2lVariants};

/// The place of Re A_l^m among real coefficients.
fn real(l: usize, m: usize) -> usize {
    l * l + if m == 0 { 0 } else { 2 * m - 1 }
}

/// A cell's coefficients as real ones.
fn coefficients(all: &[f64], cell: usize, p: usize) -> Vec<f64> {
    let pairs = (p + 1) * (p + 2) / 2;
    let mut out = vec![0.0; (p + 1) * (p + 1)];
    for l in 0..=p {
        for m in 0..=l {
            let k = 2 * (cell * pairs + l * (l + 1) / 2 + m);
            out[real(l, m)] = all[k];
            if m > 0 {
                out[real(l, m) + 1] = all[k + 1];
            }
        }
    }
    out
}

#[test]
fn every_way_is_the_cpus_operator() {
    let Some(gpu) = gpu() else { return };
    let (depth, side) = (3, 8i32);
    for p in [1, 2, 5, 9, 14, 20] {
        let n = (p + 1) * (p + 1);
        let classes = Classes::new(4.0);
        let expansion = Spherical::<f64>::new(p, classes);
        let mut first: Option<Vec<f64>> = None;
        let variants = [
            M2lVariant::Naive,
            M2lVariant::Grouped,
            M2lVariant::Rotated,
            M2lVariant::Unified,
            M2lVariant::Sizes,
            M2lVariant::Launches,
        ];
        for variant in variants.into_iter().filter(|v| v.serves(gpu.description().capability)) {
            let variants = M2lVariants::<f64>::new(&gpu, variant, p, depth).unwrap();
            variants.run(&gpu).unwrap();
            let [locals, multipoles] = variants.results().unwrap();
            if variant == M2lVariant::Naive {
                // A cell of each octant, one of them at an edge.
                for cell in [0, 1 + 8 + 64, 5 + 6 * 8 + 3 * 64, 6 + 3 * 8 + 7 * 64i32] {
                    let at = [cell % side, cell / side % side, cell / side / side];
                    let mut expected = vec![0.0; n];
                    for k in 0..216 {
                        let d: [i32; 3] = [k % 6, k / 6 % 6, k / 36];
                        let o: [i32; 3] = std::array::from_fn(|i| d[i] - 2 - (at[i] & 1));
                        if o.iter().all(|c| c.abs() < 2) {
                            continue;
                        }
                        let from: [i32; 3] = std::array::from_fn(|i| (at[i] + o[i]).rem_euclid(side));
                        let source =
                            coefficients(&multipoles, (from[0] + side * (from[1] + side * from[2])) as usize, p);
                        let operator = matrix(&expansion, Translation::M2L(classes.class(o)));
                        for (j, m) in source.iter().enumerate() {
                            (0..n).for_each(|k| expected[k] += m * operator[j * n + k]);
                        }
                    }
                    let found = coefficients(&locals, cell as usize, p);
                    for l in 0..=p {
                        let size = expected[l * l..(l + 1) * (l + 1)].iter().fold(0.0, |s: f64, x| s.max(x.abs()));
                        for k in l * l..(l + 1) * (l + 1) {
                            let (a, b) = (found[k], expected[k]);
                            assert!((a - b).abs() <= 1e-10 * size, "p {p}, cell {cell}, {k}: {a:e} {b:e}");
                        }
                    }
                }
            }
            let pairs = (p + 1) * (p + 2) / 2;
            let same = |other: &Vec<f64>, limit: f64| {
                // By degree: higher ones are larger.
                for l in 0..=p {
                    let of = |all: &[f64], f: &mut dyn FnMut(f64, usize)| {
                        for cell in 0..512 {
                            for k in 2 * (cell * pairs + l * (l + 1) / 2)..2 * (cell * pairs + (l + 1) * (l + 2) / 2) {
                                f(all[k], k);
                            }
                        }
                    };
                    let (mut size, mut worst) = (0.0f64, 0.0f64);
                    of(other, &mut |x, _| size = size.max(x.abs()));
                    of(&locals, &mut |x, k| worst = worst.max((x - other[k]).abs()));
                    assert!(worst <= limit * size, "{variant:?} p {p} degree {l}: {worst:e} of {size:e}");
                }
            };
            match &first {
                None => first = Some(locals.clone()),
                Some(first) => same(first, 1e-9),
            }
            // In single precision likewise.
            let single = M2lVariants::<f32>::new(&gpu, variant, p, depth).unwrap();
            single.run(&gpu).unwrap();
            same(&single.results().unwrap()[0], 1e-3);
        }
    }
}

#[test]
fn kernels_of_each_size_add_up_to_the_groups() {
    let Some(gpu) = gpu() else { return };
    let variants = M2lVariants::<f64>::new(&gpu, M2lVariant::Sizes, 6, 3).unwrap();
    variants.run(&gpu).unwrap();
    let first = variants.results().unwrap();
    let parts = variants.parts(&gpu).unwrap();
    assert_eq!(
        parts.iter().map(|p| p.0).collect::<Vec<_>>(),
        ["groups of 1", "groups of 2", "groups of 4", "groups of 8"]
    );
    // Parts add to the sums once more; a run begins anew.
    variants.run(&gpu).unwrap();
    assert!(variants.results().unwrap() == first);
    assert!(variants.occupancy(&gpu).unwrap().is_none());
    let one = M2lVariants::<f64>::new(&gpu, M2lVariant::Naive, 6, 3).unwrap().occupancy(&gpu).unwrap();
    assert!(one.is_some_and(|o| o.threads == 128 && o.blocks > 0));
}

#[test]
fn launching_kernels_need_a_device_of_their_machine_code() {
    for (capability, serves) in [((8, 0), true), ((8, 9), true), ((9, 0), true), ((10, 0), false), ((12, 0), false)] {
        assert_eq!(M2lVariant::Launches.serves(capability), serves, "{capability:?}");
        assert!(M2lVariant::Naive.serves(capability));
    }
}
