//! The machine that the program runs on.

use std::fs;

use fmm_core::math::simd::Level;
use serde_json::{Value, json};

/// The machine as `run.json` notes it.
pub fn host(threads: usize) -> Value {
    json!({
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "cpu": cpu_model(),
        "simd": Level::detect().name(),
        "threads": threads,
    })
}

/// Name of the processor.
pub fn cpu_model() -> Option<String> {
    value_of(&fs::read_to_string("/proc/cpuinfo").ok()?, "model name")
}

/// The value after `key` and a colon, in the first line that begins so.
fn value_of(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find(|l| l.trim_start().starts_with(key))?;
    let value = line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(value).filter(|v| !v.is_empty())
}

#[cfg(test)]
mod tests {
    use super::value_of;

    #[test]
    fn values_are_found() {
        let text = "processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\n";
        assert_eq!(value_of(text, "model name").as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(value_of(text, "Model"), None);
    }
}
