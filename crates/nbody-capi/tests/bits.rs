//! A program in C gets the bits of the Rust library, for every kernel, boundary and argument.

use std::process::Command;

use fmm::{Device, Points, Solver, bindings};

use crate::common::{C99, Link, Place, bytes};

/// What is summed.
#[derive(Clone, Copy)]
struct Case {
    kernel: &'static str,
    softening: &'static str,
    method: &'static str,
    side: f64,
    dimension: usize,
    columns: usize,
    n: usize,
    /// None: at the sources.
    m: Option<usize>,
    pairs: &'static [[i64; 2]],
}

const PLAIN: Case = Case {
    kernel: "laplace",
    softening: "none",
    method: "auto",
    side: 0.0,
    dimension: 3,
    columns: 1,
    n: 700,
    m: None,
    pairs: &[],
};

const CASES: [Case; 17] = [
    PLAIN,
    Case { method: "fmm", ..PLAIN },
    Case { m: Some(300), method: "treecode", ..PLAIN },
    Case { softening: "plummer:0.02", ..PLAIN },
    Case { softening: "spline:0.02", method: "direct", ..PLAIN },
    Case { side: 1.5, ..PLAIN },
    Case { pairs: &[[1, 0], [5, 6], [699, 3]], ..PLAIN },
    Case { pairs: &[[1, 0], [5, 6]], side: 1.5, ..PLAIN },
    Case { kernel: "yukawa:2", pairs: &[[2, 1]], ..PLAIN },
    Case { kernel: "vortex", columns: 3, softening: "p1:0.1", ..PLAIN },
    Case { kernel: "log", dimension: 2, softening: "gaussian:0.1", ..PLAIN },
    Case { kernel: "harmonic", dimension: 2, columns: 2, m: Some(200), ..PLAIN },
    Case { kernel: "gauss:0.3", dimension: 1, ..PLAIN },
    Case { kernel: "gauss:0.3", dimension: 2, m: Some(100), ..PLAIN },
    Case { kernel: "gauss:0.3", dimension: 3, ..PLAIN },
    Case { n: 0, m: Some(5), ..PLAIN },
    Case { n: 5, m: Some(0), ..PLAIN },
];

/// Numbers from 0 to 1, the same in every run.
fn numbers(count: usize, state: &mut u64) -> Vec<f64> {
    let mut next = || {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count).map(|_| next()).collect()
}

impl Case {
    /// Sources, strengths and targets, row by row.
    fn arrays(&self) -> [Vec<f64>; 3] {
        let mut state = 1;
        let sources = numbers(self.n * self.dimension, &mut state);
        let strengths = numbers(self.n * self.columns, &mut state);
        [sources, strengths, numbers(self.m.unwrap_or(0) * self.dimension, &mut state)]
    }

    /// Potential (if the kernel has one), field and what else is known, by the library.
    fn expected(&self) -> Vec<u8> {
        let [sources, strengths, targets] = self.arrays();
        let row = |row: &[f64]| std::array::from_fn(|d| row.get(d).copied().unwrap_or(0.0));
        let rows = |values: &[f64]| values.chunks(self.dimension).map(row).collect::<Vec<[f64; 3]>>();
        let columns: Vec<Vec<f64>> =
            (0..self.columns).map(|k| strengths.chunks(self.columns).map(|row| row[k]).collect()).collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let (sources, targets) = (rows(&sources), self.m.map(|_| rows(&targets)));
        let request = bindings::Request {
            kernel: self.kernel,
            softening: self.softening,
            method: self.method,
            sides: (self.side > 0.0).then_some([self.side; 3]),
            tolerance: 1e-6,
            check: 50,
            ..Default::default()
        };
        let mut problem = request.options().unwrap().problem;
        let pairs = self.pairs.iter().map(|pair| pair.map(|i| i as usize));
        problem.exclusions = fmm::in_order(pairs.collect()).unwrap();
        let points =
            Points { dimension: self.dimension, sources: &sources, strengths: &columns, targets: targets.as_deref() };
        let sum = Solver::new(Device::Auto).evaluate(&problem, &points).unwrap();
        let width = problem.kernel.outputs(self.dimension).field.len();
        let mut all = sum.potential;
        all.extend(sum.field.iter().flat_map(|e| &e[..width]));
        let (choice, e) = (sum.choice, sum.errors.unwrap());
        all.extend([sum.coincident_pairs as f64, choice.order.unwrap_or(0) as f64, choice.theta.unwrap_or(0.0)]);
        // -1 for the cores.
        all.extend([choice.leaf_size as f64, -1.0, e.sample as f64, e.rms, e.median, e.p99, e.max, e.l2]);
        all.extend([e.potential.unwrap_or(0.0), e.floored as f64]);
        all.extend(e.rms_interval.into_iter().chain(e.l2_interval));
        let names = format!("{} {}\n", choice.method.name(), choice.precision.name());
        all.iter().flat_map(|x| x.to_ne_bytes()).chain(names.into_bytes()).collect()
    }

    /// What the program writes.
    fn run(&self, command: &mut Command, entry: &str) -> Vec<u8> {
        let width = if self.kernel.starts_with("gauss") { self.dimension } else { 3.min(self.dimension) };
        let m = self.m.map_or(-1, |m| m as i64);
        let numbers = [self.dimension, self.columns, width, self.n];
        command.args([self.kernel, self.softening, self.method]).arg(self.side.to_string());
        command.args(numbers.map(|n| n.to_string()));
        command.args([m.to_string(), self.pairs.len().to_string(), entry.to_string()]);
        let input = self.arrays().concat();
        let pairs = self.pairs.as_flattened();
        let input: Vec<u8> =
            input.iter().flat_map(|x| x.to_ne_bytes()).chain(pairs.iter().flat_map(|i| i.to_ne_bytes())).collect();
        bytes(command, &input)
    }
}

fn compare(compiler: &[&str], link: Link) {
    let place = Place::new();
    let program = place.compile(compiler, &["tests/c/bits.c"], link);
    for case in CASES {
        let expected = case.expected();
        for entry in ["evaluate", "solver"] {
            let found = case.run(&mut place.command(&program), entry);
            assert!(found == expected, "{entry} {} {} {}: other bits", case.kernel, case.softening, case.n);
        }
    }
}

#[test]
fn shared_library_has_the_bits_of_the_rust_library() {
    compare(&C99, Link::Shared);
}

#[test]
fn static_library_has_the_bits_of_the_rust_library() {
    compare(&C99, Link::Static);
}

#[test]
fn sanitizer_finds_nothing() {
    let place = Place::new();
    let sanitized = [&C99[..], &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]].concat();
    if !place.compiles_and_runs(&sanitized, "int main(void) { return 0; }") {
        eprintln!("skipped: cc has no sanitizers");
        return;
    }
    compare(&sanitized, Link::Shared);
    for file in ["attack.c", "sizes.c"] {
        let program = place.compile(&sanitized, &[&format!("tests/c/{file}")], Link::Shared);
        bytes(&mut place.command(&program), &[]);
    }
}
