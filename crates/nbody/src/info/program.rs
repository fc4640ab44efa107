//! What the program itself is and where it runs.

use std::sync::OnceLock;

use fmm_core::math::simd::Level;
use nbody_cli::machine::cpu_model;
use serde_json::json;

use super::facts::Facts;

/// The commit that the program was built from, with `-dirty` where the sources differed; none outside a checkout.
pub fn commit() -> Option<&'static str> {
    Some(env!("NBODY_COMMIT")).filter(|c| !c.is_empty())
}

/// Version of the HDF5 library.
pub fn hdf5_version() -> String {
    let (major, minor, patch) = hdf5::library_version();
    format!("{major}.{minor}.{patch}")
}

/// What `nbody --version` prints after the name.
pub fn version() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{} (commit {}, HDF5 {}, SIMD {}, {})",
            env!("CARGO_PKG_VERSION"),
            commit().unwrap_or("unknown"),
            hdf5_version(),
            Level::detect().name(),
            if fmm_cuda::MISSING.is_some() { "no GPU kernels" } else { "GPU kernels" }
        )
    })
}

/// Facts on the program and its machine.
pub fn facts() -> Facts {
    let mut facts = Facts::new(format!("nbody {}", env!("CARGO_PKG_VERSION")));
    facts.add("version", json!(env!("CARGO_PKG_VERSION")));
    facts.add_as("commit", json!(commit()), commit().unwrap_or("unknown: not built from a checkout of the project"));
    facts.add("hdf5", json!(hdf5_version()));
    let lowered = std::env::var_os("NBODY_SIMD").map_or("", |_| " (NBODY_SIMD is set)");
    let simd = Level::detect().name();
    facts.add_as("simd", json!(simd), format!("{simd}{lowered}"));
    facts.add_as("cpu", json!(cpu_model()), cpu_model().unwrap_or_else(|| "unknown".into()));
    facts.add("target", json!(format!("{} {}", std::env::consts::ARCH, std::env::consts::OS)));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    facts.add_as("threads", json!(threads), format!("{threads} (as many as a run takes by default)"));
    add_gpus(&mut facts);
    facts
}

/// The GPUs that can be used, or why there is none.
fn add_gpus(facts: &mut Facts) {
    let kernels = fmm_cuda::MISSING.map(|why| fmm_cuda::Unavailable::NoKernels(why).to_string());
    let found = fmm_cuda::devices();
    let described = |g: &fmm_cuda::Description| {
        json!({ "device": format!("cuda:{}", g.ordinal), "name": g.name, "memory_bytes": g.memory,
                "compute_capability": format!("{}.{}", g.capability.0, g.capability.1) })
    };
    let text = |g: &fmm_cuda::Description| {
        let memory = g.memory as f64 / f64::from(1 << 30);
        format!(
            "cuda:{} {} ({memory:.0} GiB, compute capability {}.{})",
            g.ordinal, g.name, g.capability.0, g.capability.1
        )
    };
    let present = found.as_deref().unwrap_or_default();
    let list = present.iter().map(text).collect::<Vec<_>>().join(", ");
    let reason = kernels.or(found.as_ref().err().map(ToString::to_string));
    let usable = if reason.is_none() { present } else { &[] };
    let json = json!({
        "usable": usable.iter().map(described).collect::<Vec<_>>(),
        "present": present.iter().map(|g| &g.name).collect::<Vec<_>>(),
        "reason": reason,
    });
    let text = match (&reason, list.is_empty()) {
        (None, _) => list,
        (Some(why), true) => format!("none usable: {why}"),
        (Some(why), false) => format!("none usable: {why}; present and unused: {list}"),
    };
    facts.add_as("gpus", json, text);
}
