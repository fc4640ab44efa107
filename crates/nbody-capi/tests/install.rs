//! scripts/capi installs what pkg-config and the linker look for.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::common::{CRATE, built, succeed, there_is};

/// A folder that scripts/capi has installed the libraries of this build into.
fn installed() -> TempDir {
    let prefix = TempDir::new().unwrap();
    let script = format!("{CRATE}/../../scripts/capi");
    succeed(Command::new(script).arg(prefix.path()).arg("--built").arg(built()), &[]);
    prefix
}

#[test]
fn installed_library_is_found_by_pkg_config_and_at_run_time() {
    let prefix = installed();
    let at = |path: &str| prefix.path().join(path);
    let version = env!("CARGO_PKG_VERSION");
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    assert_eq!(fs::read_link(at("lib/libnbody.so")).unwrap().to_str(), Some(&*format!("libnbody.so.{major}")));
    assert!(at(&format!("lib/libnbody.so.{version}")).is_file());
    if there_is("readelf") {
        let dynamic = succeed(Command::new("readelf").arg("-d").arg(at("lib/libnbody.so")), &[]);
        assert!(dynamic.contains(&format!("soname: [libnbody.so.{major}]")), "{dynamic}");
        assert!(dynamic.contains("NODELETE"), "{dynamic}");
    }
    if !there_is("pkg-config") {
        return;
    }
    let flags = |options: &[&str]| {
        let mut command = Command::new("pkg-config");
        let text = succeed(command.args(options).arg("nbody").env("PKG_CONFIG_PATH", at("lib/pkgconfig")), &[]);
        text.split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(flags(&["--modversion"]), [version]);
    assert_eq!(flags(&["--variable=fortran"]), [at("include/nbody.f90").to_str().unwrap()]);
    let example = format!("{CRATE}/examples/c/sum.c");
    let compile = |flags: Vec<String>| {
        let program = at("sum");
        succeed(Command::new("cc").arg(&example).args(flags).arg("-o").arg(&program), &[]);
        program
    };
    let shared = compile(flags(&["--cflags", "--libs"]));
    let printed = succeed(Command::new(&shared).env("LD_LIBRARY_PATH", at("lib")), &[]);
    assert!(printed.starts_with("energy -0.9"), "{printed}");
    // The linker takes the static library where there is no other.
    fs::remove_file(at("lib/libnbody.so")).unwrap();
    let fixed = compile(flags(&["--static", "--cflags", "--libs"]));
    assert!(succeed(&mut Command::new(&fixed), &[]).starts_with("energy -0.9"));
}

#[test]
fn shared_library_exports_its_functions_only() {
    if !there_is("nm") {
        return;
    }
    let library = built().join("libnbody_capi.so");
    let table = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library), &[]);
    let mut names: Vec<&str> = table.lines().filter_map(|line| line.split_whitespace().last()).collect();
    names.sort_unstable();
    let expected = [
        "nbody_evaluate",
        "nbody_last_error",
        "nbody_options_init",
        "nbody_solver_free",
        "nbody_solver_new",
        "nbody_solver_run",
        "nbody_version",
    ];
    assert_eq!(names, expected);
}
