//! The description of the machine in every record.

use fmm_cuda::Description;
use serde_json::Value;

use super::record::Record;
use nbody_cli::machine::cpu_model;

/// Adds what is known of the machine and of the program, which is of this `commit`.
pub fn describe(record: &mut Record, gpu: Option<&Description>, commit: Option<&str>) {
    record.set("cpu", cpu_model().map_or(Value::Null, Value::from));
    record.set("cores", crate::cores());
    record.set("simd", fmm_core::math::simd::Level::detect().name());
    record.set("os", std::env::consts::OS);
    record.set("version", env!("CARGO_PKG_VERSION"));
    record.set("commit", commit.map_or(Value::Null, Value::from));
    if let Some(gpu) = gpu {
        record.set("gpu", gpu.name.as_str());
        record.set("driver", driver().map_or(Value::Null, Value::from));
    }
}

/// The version of NVIDIA's kernel driver.
fn driver() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version = |w: &&str| w.contains('.') && w.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_string)
}

/// The machines of some records, for a caption; several where several measured.
pub fn caption(records: &[Record]) -> String {
    let mut all: Vec<String> = vec![];
    for record in records {
        let mut parts = vec![];
        if !record.text("gpu").is_empty() {
            parts.push(record.text("gpu").to_string());
            parts.extend(Some(record.text("driver")).filter(|d| !d.is_empty()).map(|d| format!("driver {d}")));
        }
        let cores = record.number("cores");
        parts.push(format!("{}, {cores} cores, {}", record.text("cpu"), record.text("simd")));
        let commit = record.text("commit");
        let commit = if commit.is_empty() { String::new() } else { format!(" ({commit})") };
        parts.push(format!("nbody {}{commit}", record.text("version")));
        let text = parts.join(", ");
        // One machine with and without its GPU is one machine.
        if all.iter().any(|a| a.ends_with(&text)) {
            continue;
        }
        all.retain(|a| !text.ends_with(a.as_str()));
        all.push(text);
    }
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_once() {
        let mut plain = Record::default();
        describe(&mut plain, None, None);
        let gpu = Description { ordinal: 0, name: "Card".into(), capability: (9, 0), memory: 1, multiprocessors: 1 };
        let mut with = Record::default();
        describe(&mut with, Some(&gpu), None);
        let caption = caption(&[plain.clone(), with, plain]);
        assert!(caption.starts_with("Card") && caption.matches("nbody ").count() == 1, "{caption}");
    }
}
