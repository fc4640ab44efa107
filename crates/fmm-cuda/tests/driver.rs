//! Binding the driver at run time, with drivers made for the purpose: the test runs itself again with each of them.

use std::path::Path;
use std::process::Command;

use fmm_cuda::{Unavailable, devices, load};

/// What the child prints: the answers of `load` and `devices`.
#[test]
#[ignore = "run by the other tests, with a driver of theirs"]
fn child() {
    println!("load: {:?}", load());
    println!("again: {}", load() == load());
    println!("devices: {}", devices().map_or_else(|e| e.to_string(), |d| format!("{d:?}")));
}

/// Compiles `source` to a `libcuda.so.1` and lets the child find it there.
fn with_driver(name: &str, source: Option<&str>) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    if let Some(source) = source {
        std::fs::write(folder.join("driver.c"), source).unwrap();
        let output = folder.join("libcuda.so.1");
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(output).arg(folder.join("driver.c")).status();
        assert!(compiled.unwrap().success());
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "driver::child", "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", &folder)
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    String::from_utf8(child.stdout).unwrap()
}

/// A driver in C with all functions; `special` replaces some.
fn driver(functions: &[&str], special: &str) -> String {
    let plain = functions
        .iter()
        .filter(|f| !special.contains(&format!("{f}(")))
        .map(|f| format!("int {f}() {{ return 999; }}\n"));
    plain.chain([special.to_string()]).collect()
}

#[test]
fn a_driver_without_a_function_is_told_by_its_name() {
    let text = with_driver("old", Some("int cuInit(unsigned flags) { return 0; }"));
    assert!(text.contains("load: Err(MissingFunction(\"cu") && text.contains("again: true"), "{text}");
    assert!(text.contains("the NVIDIA driver lacks the function cu"), "{text}");
}

#[test]
fn calls_go_through_to_the_driver() {
    let functions: Vec<&str> = fmm_cuda::FUNCTIONS.to_vec();
    let text =
        with_driver("empty", Some(&driver(&functions, "int cuInit(unsigned flags) { return flags == 0 ? 100 : 1; }")));
    assert!(text.contains("load: Ok(())") && text.contains("devices: the NVIDIA driver shows no GPU"), "{text}");
    let special = "#include <string.h>\n\
        int cuInit(unsigned flags) { return 0; }\n\
        int cuDeviceGetCount(int *n) { *n = 2; return 0; }\n\
        int cuDeviceGet(int *device, int n) { *device = n + 10; return 0; }\n\
        int cuDeviceGetName(char *name, int length, int device) { memset(name, 0, length); strcpy(name, device == 11 ? \"second\" : \"first\"); return 0; }\n\
        int cuDeviceTotalMem_v2(unsigned long *bytes, int device) { *bytes = 1000 + device; return 0; }\n\
        int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute; return 0; }\n";
    let text = with_driver("two", Some(&driver(&functions, special)));
    assert!(
        text.contains("ordinal: 1, name: \"second\", capability: (75, 76), memory: 1011, multiprocessors: 16"),
        "{text}"
    );
}

#[test]
fn a_machine_without_a_driver_says_so() {
    if load().is_ok() {
        return;
    }
    assert!(matches!(load(), Err(Unavailable::NoDriver(_))));
    let text = with_driver("none", None);
    assert!(text.contains("load: Err(NoDriver(") && text.contains("no NVIDIA driver: libcuda.so.1"), "{text}");
}
