#![no_main]

#[path = "../targets.rs"]
#[allow(dead_code)]
mod targets;

#[path = "../survives.rs"]
mod survives;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if survives::library_survives(|| targets::checkpoint(data)) {
        targets::checkpoint(data);
    }
});
