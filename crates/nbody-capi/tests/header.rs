//! The header and the Fortran module say what the library has.

use std::fs;

use crate::common::{CRATE, Link, Place, succeed, text, there_is};

#[test]
fn header_is_that_of_the_sources() {
    let config = cbindgen::Config::from_file(format!("{CRATE}/cbindgen.toml")).unwrap();
    // The modules of lib.rs are read with it.
    let builder = cbindgen::Builder::new().with_config(config).with_src(format!("{CRATE}/src/lib.rs"));
    let mut fresh = vec![];
    builder.generate().unwrap().write(&mut fresh);
    if text("include/nbody.h").as_bytes() != fresh {
        let place = format!("{}/nbody.h", env!("CARGO_TARGET_TMPDIR"));
        fs::write(&place, &fresh).unwrap();
        panic!("include/nbody.h is not that of src/; the new one is {place}");
    }
}

/// The members of a structure in C: names, and whether each is a pointer or of which type.
fn members_in_c(name: &str) -> Vec<(String, String)> {
    let header = text("include/nbody.h");
    let body = header.split(&format!("typedef struct {name} {{")).nth(1).unwrap().split("\n}").next().unwrap();
    let lines = body.lines().map(str::trim).filter(|line| line.ends_with(';'));
    let member = |line: &str| {
        let (kind, name) = line.trim_end_matches(';').rsplit_once(' ').unwrap();
        let pointer = name.starts_with('*');
        let kind = if pointer { "ptr" } else { kind.trim_end_matches("_t") };
        (name.trim_start_matches('*').replace('[', "(").replace(']', ")"), kind.to_string())
    };
    lines.map(member).collect()
}

fn members_in_fortran(name: &str) -> Vec<(String, String)> {
    let module = text("include/nbody.f90");
    let body = module.split(&format!("type, bind(c) :: {name}\n")).nth(1).unwrap().split("end type").next().unwrap();
    let member = |line: &str| {
        let (kind, name) = line.trim().split_once(" :: ").unwrap();
        let kind = kind.split("(c_").nth(1).unwrap().trim_end_matches(')');
        (name.to_string(), kind.trim_end_matches("_t").to_string())
    };
    body.lines().filter(|line| line.contains(" :: ")).map(member).collect()
}

#[test]
fn fortran_module_has_the_members_and_codes_of_the_header() {
    for name in ["nbody_options", "nbody_result"] {
        let members = members_in_c(name);
        assert!(members.len() > 10, "{members:?}");
        assert_eq!(members_in_fortran(name), members);
    }
    let header = text("include/nbody.h");
    let mut codes = 0;
    for line in header.lines().filter_map(|line| line.strip_prefix("#define NBODY_")) {
        let Some((name, code)) = line.split_once(' ') else { continue };
        codes += 1;
        let parameter = format!("integer(c_int), parameter, public :: NBODY_{name} = {code}\n");
        assert!(text("include/nbody.f90").contains(&parameter), "{parameter}");
    }
    assert_eq!(codes, 6);
}

#[test]
fn structures_have_one_size_in_c_and_fortran() {
    let place = Place::new();
    let expected = format!("{} {}", size_of::<nbody_capi::NbodyOptions>(), size_of::<nbody_capi::NbodyResult>());
    assert_eq!(place.run_c("sizes.c", Link::Shared).trim(), expected);
    if there_is("gfortran") {
        let program = place.compile(&["gfortran"], &["include/nbody.f90", "tests/c/sizes.f90"], Link::Shared);
        let printed = succeed(&mut place.command(&program), &[]);
        assert_eq!(printed.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    }
}
