//! The kernels' text, without a GPU: the structs are the host's, and every kernel is there.

use std::collections::HashSet;

use fmm_core::grid::Green;
use fmm_cuda::grid::workload::direct_instructions;
use fmm_cuda::{LAYOUTS, MISSING, MODULES};

include!(concat!(env!("OUT_DIR"), "/ptx.rs"));

/// Whether there are kernels to look at; a missing compiler fails where `NBODY_REQUIRE_NVCC` is 1.
fn compiled() -> bool {
    if let Some(why) = MISSING {
        assert!(std::env::var("NBODY_REQUIRE_NVCC").as_deref() != Ok("1"), "NBODY_REQUIRE_NVCC = 1, and {why}");
        eprintln!("skipped: no kernels ({why})");
    }
    MISSING.is_none()
}

/// The array `name` of a PTX text, where there is one: `.global .align 4 .b8 name[72] = {0, 1, 0,
/// 0, …};`, with the zero bytes at the end left out, or `.u32 name[18] = {…}`.
fn array(text: &str, name: &str) -> Option<Vec<usize>> {
    let mark = format!(" {name}[");
    let line = text.lines().find(|l| l.contains(&mark))?;
    let size: usize = line.split(['[', ']']).nth(1)?.parse().ok()?;
    let mut numbers: Vec<usize> =
        line.split(['{', '}']).nth(1)?.split(',').map(|n| n.trim().parse().unwrap()).collect();
    numbers.resize(size, 0);
    let words = numbers.chunks(4).map(|b| (0..4).map(|i| b[i] << (8 * i)).sum());
    Some(if line.contains(".b8") { words.collect() } else { numbers })
}

#[test]
fn host_and_device_lay_structs_out_alike() {
    let mut compared = HashSet::new();
    for (module, capability, text) in PTX {
        let found = LAYOUTS.iter().filter_map(|(name, expected)| Some((name, expected, array(text, name)?)));
        let mut arrays = 0;
        for (name, expected, found) in found {
            assert_eq!(found, *expected, "{name} in {module}.{capability}");
            compared.insert(name);
            arrays += 1;
        }
        assert!(arrays > 0, "{module}.{capability} has no layout");
    }
    assert_eq!(compiled(), !MODULES.is_empty());
    assert!(!compiled() || compared.len() == LAYOUTS.len(), "only {compared:?} are in a module");
}

/// The bound of direct sums on grids, which `docs/performance/grid.md` names: 19 a pair, and eight for the eight points of a column.
#[test]
fn direct_sums_on_grids_have_their_instructions() {
    let counted = [Green::Regularised, Green::Singular].map(direct_instructions);
    let expected = if compiled() { [Some(20.0), Some(17.0)] } else { [None, None] };
    assert_eq!(counted, expected);
}

#[test]
fn every_kernel_that_is_launched_is_there_once() {
    if !compiled() {
        return;
    }
    let mut names: Vec<String> = [
        "bounds_f64",
        "peak_f32",
        "peak_f64",
        "keys",
        "sort_bins",
        "sort_pass",
        "root",
        "split",
        "deepest",
        "coincident",
        "mark_leaves",
        "count_leaves",
        "place_leaves",
        "count_kinds",
        "end_levels",
        "fill_tiles",
        "survey_sample",
        "survey_join",
        "survey_levels",
        "lists_fmm",
        "lists_walk",
        "gather_f64",
        "reduce_f64",
        "advance_f64",
        "numbers_f64",
        "gather_tree_f64",
        "invert_order",
        "return_sums_f64",
        "add_velocity_f64",
        "m2l_table",
        "count_up",
        "error_norms_f32",
        "error_norms_f64",
        "error_pairs",
        "error_cells",
        "error_targets",
        "error_chunks",
        "error_rest",
        "error_starts",
        "error_draw",
        "guard_spread",
        "guard_join",
        "guard_count",
        "guard_choose",
        "guard_errors",
        "guard_repair",
        "guard_records",
        "parcel_count",
        "parcel_fill",
        "parcel_take",
        "cell_parts",
        "mark_needed",
        "gather_needed",
        "near_tasks",
        "near_bodies",
        "distance_keys",
        "lattice_keys",
        "mesh_arrange_f32",
        "mesh_arrange_f64",
        "mesh_coincident",
        "mesh_near_again_newton",
        "mesh_near_again_spline",
        "totals_sums",
        "totals_reach",
        "totals_first",
        "totals_sphere",
        "totals_next",
        "totals_chunks",
        "totals_chunk",
    ]
    .map(String::from)
    .to_vec();
    for softening in ["newton", "plummer", "p1", "spline", "yukawa"] {
        for potential in ["", "_potential"] {
            names.extend(["f32", "f64"].map(|real| format!("p2p_{softening}{potential}_{real}")));
            names.extend(["f32", "f64"].map(|real| format!("p2p_list_{softening}{potential}_{real}")));
        }
        names.push(format!("guard_{softening}_f64"));
    }
    for operator in ["p2m", "m2m", "p2l", "l2l", "l2p", "m2p"] {
        names.extend(["f32", "f64"].map(|real| format!("{operator}_spherical_{real}")));
    }
    for operator in ["p2m", "p2l", "l2p", "m2p"] {
        names.extend(["f32", "f64"].map(|real| format!("{operator}_cartesian_{real}")));
    }
    names.push("m2l_cartesian_f64".into());
    for operator in
        ["p2m", "m2m", "m2l_16", "m2l_64", "p2l", "l2l", "l2p", "m2p", "gather", "return", "join", "points_single"]
    {
        names.push(format!("planar_{operator}"));
    }
    names.extend([8, 12, 16].map(|terms| format!("planar_threads_{terms}")));
    for real in ["f32", "f64"] {
        for variant in ["naive", "grouped", "loads", "products", "rotated", "size1", "size2", "size4", "size8"] {
            names.push(format!("m2l_variants_{variant}_{real}"));
        }
        names.extend(["", "_join", "_child"].map(|step| format!("m2l_launches{step}_{real}")));
        names.extend(["diagonals", "rows", "shared", "reduced"].map(|v| format!("planar_version_{v}_{real}")));
        for terms in [8, 12, 16] {
            names.extend(["unrolled", "overlapped"].map(|v| format!("planar_version_{v}_{terms}_{real}")));
        }
    }
    names.extend([0, 5, 9, 12].map(|terms| format!("gauss_single_{terms}")));
    for kernel in ["newton", "spline"] {
        names.extend([8, 10, 12, 14, 16, 48].map(|terms| format!("mesh_near_{kernel}_f32_{terms}")));
        names.extend([12, 16, 20, 24, 48].map(|terms| format!("mesh_near_{kernel}_f64_{terms}")));
    }
    for step in ["z_forward", "y_forward", "x", "y_backward", "z_backward"] {
        names.extend(["f32", "f64"].map(|real| format!("mesh_{step}_{real}")));
    }
    for real in ["f32", "f64"] {
        for step in ["spread", "gather"] {
            names.extend((3..=16).map(|points| format!("mesh_{step}_{real}_{points}")));
        }
    }
    for kernel in ["harmonic", "log"] {
        names.extend((8..=32).step_by(4).map(|terms| format!("planar_pairs_{kernel}_{terms}")));
    }
    for step in [
        "keys",
        "ranks",
        "lists",
        "boxes",
        "split",
        "leaves",
        "connect",
        "swap",
        "flatten",
        "flow_begin",
        "flow",
        "flow_to",
    ] {
        names.push(format!("planar_{step}"));
    }
    for operator in ["bounds", "keys", "runs", "centers", "gather", "return", "p2m", "p2l", "join", "m2l", "scale"] {
        names.push(format!("gauss_{operator}"));
    }
    for operator in
        ["l2p", "l2p_full", "l2p_vast", "l2p_high", "m2p", "m2p_full", "m2p_high", "p2p_f32", "p2p_8", "p2p_13"]
    {
        names.extend(["", "_slope"].map(|slope| format!("gauss_{operator}{slope}")));
    }
    names.extend(
        ["sort", "p2p_singular", "p2p_regularised", "join", "m2p", "spread"].map(|step| format!("grid_{step}")),
    );
    for step in [
        "blend",
        "correct",
        "curl",
        "cut",
        "detail",
        "divergence",
        "fastest",
        "fill",
        "filled",
        "impulse",
        "laplacian",
        "largest",
        "motion",
        "paths",
        "pick",
        "project",
        "put",
        "shift",
        "steepest",
    ] {
        names.push(format!("field_{step}"));
    }
    for step in
        ["bounds", "count", "gather_m4", "gather_m6", "order", "reach", "scatter_m4", "scatter_m6", "sort", "starts"]
    {
        names.push(format!("remesh_{step}"));
    }
    names.extend(["count", "write"].map(|step| format!("seeds_{step}")));
    for blob in ["point", "algebraic", "gaussian"] {
        names.extend(["log", "real", "complex"].map(|pairs| format!("planar_p2p_{pairs}_{blob}")));
        names.extend(["log", "harmonic"].map(|kernel| format!("planar_all_{kernel}_{blob}")));
        names.push(format!("planar_sample_{blob}"));
    }
    for pairs in ["log_point", "log_algebraic", "real_algebraic", "complex_algebraic"] {
        names.push(format!("planar_p2p_single_{pairs}"));
    }
    names.extend(["f32", "split_f32", "half_f64", "f64"].map(|numbers| format!("m2l_pack_{numbers}")));
    names.extend(["m2l_parts_f32", "m2l_parts_f64"].map(String::from));
    names.extend([1, 2, 4, 5, 6].map(|tiles| format!("m2l_dense_f64_{tiles}")));
    names.extend([1, 2, 4, 5, 7, 8, 9].map(|tiles| format!("m2l_dense_half_f64_{tiles}")));
    for tiles in [1, 2, 4, 5, 7, 8, 9, 11, 13] {
        names.extend(["", "_split"].map(|split| format!("m2l_dense{split}_f32_{tiles}")));
    }
    let built: Vec<&str> = MODULES.iter().flat_map(|m| m.kernels).copied().collect();
    for name in &names {
        assert_eq!(built.iter().filter(|b| *b == name).count(), 1, "{name}");
    }
}

#[test]
fn kernels_are_named_as_in_the_ptx_of_every_capability() {
    for module in MODULES {
        let texts: Vec<_> = PTX.iter().filter(|text| text.0 == module.name).collect();
        assert_eq!(texts.iter().map(|text| text.1).collect::<Vec<_>>(), [80, 90], "{}", module.name);
        for (_, capability, text) in texts {
            let named = |name: &&&str| text.contains(&format!(".visible .entry {name}("));
            let found = (module.kernels.iter().filter(named).count(), text.matches(".visible .entry ").count());
            assert_eq!(found, (module.kernels.len(), module.kernels.len()), "{}.{capability}", module.name);
        }
    }
}
