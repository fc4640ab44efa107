//! The examples compile without a warning and do what they say.

use std::fs;

use crate::common::{C99, CRATE, Link, Place, succeed, there_is};

const CPP: [&str; 5] = ["c++", "-std=c++11", "-pedantic", "-x", "c++"];
const FORTRAN: [&str; 2] = ["gfortran", "-std=f2018"];

fn run(compiler: &[&str], files: &[&str], link: Link) -> String {
    let place = Place::new();
    let program = place.compile(compiler, files, link);
    succeed(&mut place.command(&program), &[])
}

/// Runs an example in C and in C++, with the shared and with the static library.
fn run_all(file: &str) -> Vec<String> {
    let compilers: &[&[&str]] = if there_is("c++") { &[&C99, &CPP] } else { &[&C99] };
    let of = |compiler: &[&str]| [Link::Shared, Link::Static].map(|link| run(compiler, &[file], link));
    compilers.iter().flat_map(|compiler| of(compiler)).collect()
}

#[test]
fn sum_in_c_prints_the_energy() {
    for printed in run_all("examples/c/sum.c") {
        // Half the mean of 1/r over pairs of points of a cube of side 1, 1.88.
        let energy: f64 = printed.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!((-0.97..-0.91).contains(&energy), "{printed}");
        assert!(printed.contains("error of the forces, rms: "), "{printed}");
    }
}

#[test]
fn solver_in_c_shares_a_solver_between_threads() {
    for printed in run_all("examples/c/solver.c") {
        assert_eq!(printed, "4 threads, 0 failed\n");
    }
}

#[test]
fn sum_in_fortran_prints_the_energy() {
    if !there_is("gfortran") {
        return;
    }
    for link in [Link::Shared, Link::Static] {
        let printed = run(&FORTRAN, &["include/nbody.f90", "examples/c/sum.f90"], link);
        let energy: f64 = printed.trim_start_matches("energy").split(',').next().unwrap().trim().parse().unwrap();
        assert!((-0.97..-0.91).contains(&energy), "{printed}");
    }
}

/// The first block of docs/c.md in this language.
fn documented(language: &str) -> String {
    let page = fs::read_to_string(format!("{CRATE}/../../docs/c.md")).unwrap();
    let block = page.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap();
    block.to_string()
}

#[test]
fn first_sums_of_the_guide_run() {
    // At distance 2 a mass of 1, at distance 1 a mass of 2 from the origin, softened by 0.01.
    let expected = [2.0 / 4.0001f64.powf(1.5), 2.0 / 1.0001f64.powf(1.5), 0.0];
    let languages: [(&str, &str, &[&str], &[&str]); 2] =
        [("c", "first.c", &C99, &[]), ("fortran", "first.f90", &FORTRAN, &["include/nbody.f90"])];
    for (language, file, compiler, files) in languages {
        if !there_is(compiler[0]) {
            continue;
        }
        let place = Place::new();
        let source = place.path().join(file);
        fs::write(&source, documented(language)).unwrap();
        let files = [files, &[source.to_str().unwrap()]].concat();
        let program = place.compile(compiler, &files, Link::Shared);
        let printed = succeed(&mut place.command(&program), &[]);
        let numbers: Vec<f64> =
            printed.split(':').nth(1).unwrap().split_whitespace().map(|x| x.parse().unwrap()).collect();
        let near = |(a, b): (&f64, f64)| (a - b).abs() < 1e-5;
        assert!(numbers.len() == 3 && numbers.iter().zip(expected).all(near), "{printed}");
    }
}
