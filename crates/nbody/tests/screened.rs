//! Screened charges, exp(−κr)/r: `eval --kernel yukawa:KAPPA` and `force.screening_length`.

use crate::common::{Folder, code, column, outputs, stderr};

/// Charges of both signs in a cube of side 1.
fn ions(n: usize) -> String {
    let numbers = crate::common::random(4 * n);
    let rows = numbers.chunks(4).map(|x| format!("{},{},{},{}\n", x[0], x[1], x[2], if x[3] < 0.5 { 1 } else { -1 }));
    format!("x,y,z,q\n{}", rows.collect::<String>())
}

#[test]
fn one_source_and_one_target() {
    let folder = Folder::with(&[("s.csv", "x,y,z,q\n0,0,0,3\n"), ("t.csv", "x,y,z\n0,2,0\n")]);
    for options in ["", "--method direct", "--method fmm", "--method treecode", "--precision f32"] {
        let (header, rows) = folder.table(&format!("--kernel yukawa:0.7 --sources s.csv --targets t.csv {options}"));
        // 3 exp(−1.4)/2, and (1 + 1.4) of it over the distance.
        let k = 1.5 * f64::exp(-1.4);
        let expected = [k, 0.0, 2.4 * k / 2.0, 0.0];
        assert_eq!(header, "potential,ex,ey,ez");
        assert!(rows[0].iter().zip(expected).all(|(v, e)| (v - e).abs() < 1e-6), "{options}: {rows:?}");
    }
}

#[test]
fn every_method_keeps_its_tolerance_and_zero_is_laplace() {
    let folder = Folder::with(&[("s.csv", &ions(3000))]);
    for kappa in ["0.1", "10", "300"] {
        for method in ["direct", "treecode", "fmm"] {
            for tolerance in ["1e-3", "1e-8"] {
                let words =
                    format!("--kernel yukawa:{kappa} --sources s.csv --method {method} --tolerance {tolerance}");
                let out = folder.eval(&format!("{words} --check=3000 --output o.csv"));
                assert_eq!(code(&out), 0, "{words}: {}", outputs(&out));
            }
        }
    }
    let table = |kernel: &str| folder.table(&format!("--kernel {kernel} --sources s.csv --tolerance 1e-6"));
    assert_eq!(table("yukawa:0"), table("laplace"));
    assert_eq!(table("yukawa:-0"), table("laplace"));
}

#[test]
fn what_has_no_meaning_is_refused() {
    let folder = Folder::with(&[("s.csv", &ions(10))]);
    for (words, part) in [
        ("--kernel yukawa", "yukawa:KAPPA"),
        ("--kernel yukawa:", "not a number"),
        ("--kernel yukawa:-1", "0 to 1e100"),
        ("--kernel yukawa:nan", "0 to 1e100"),
        ("--kernel yukawa:1 --softening plummer:0.1", "--softening"),
        ("--kernel yukawa:1 --periodic 1", "--periodic"),
    ] {
        let out = folder.eval(&format!("{words} --sources s.csv"));
        assert!(code(&out) == 2 && stderr(&out).contains(part), "{words}: {}", stderr(&out));
    }
}

const PLASMA: &str = r#"
[force]
law = "coulomb"
screening_length = 0.4
[[particles]]
model = "file"
path = "ions.csv"
[time]
dt = 1e-4
end = 0.01
[solver]
tolerance = 1e-8
device = "cpu"
[verify]
every = 1e-3
action = "stop"
[output]
diagnostics_every = 1e-3
"#;

#[test]
fn a_run_conserves_its_energy_and_is_resumed() {
    let folder = Folder::new(PLASMA);
    let table = ions(300).replace(",q\n", ",q,mass\n");
    let table: Vec<String> = table
        .lines()
        .enumerate()
        .map(|(i, line)| if i == 0 { line.to_string() } else { format!("{},1,1", line.rsplit_once(',').unwrap().0) })
        .collect();
    std::fs::write(folder.path("ions.csv"), table.join("\n") + "\n").unwrap();
    folder.done(&["case.toml", "--out", "run", "-q"]);
    let errors = column(&folder.path("run"), "energy_error");
    assert!(errors.len() > 5 && errors.iter().all(|e| e.abs() < 1e-3), "{errors:?}");
    // The energy is that of exp(−r/λ)/r.
    let rows: Vec<Vec<f64>> = table[1..].iter().map(|l| l.split(',').map(|v| v.parse().unwrap()).collect()).collect();
    let mut expected = 0.0;
    for (i, a) in rows.iter().enumerate() {
        for b in &rows[..i] {
            let r = (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt();
            expected += a[3] * b[3] * (-r / 0.4).exp() / r;
        }
    }
    let potential = column(&folder.path("run"), "potential")[0];
    assert!((potential / expected - 1.0).abs() < 1e-6, "{potential} {expected}");
    let resolved = std::fs::read_to_string(folder.path("run/scenario.resolved.toml")).unwrap();
    assert!(resolved.contains("screening_length = 0.4"), "{resolved}");
    folder.done(&["case.toml", "--out", "half", "-q", "--steps", "50"]);
    folder.done(&["--resume", "half", "-q", "--until", "0.01"]);
    let bytes = |run: &str| std::fs::read(folder.path(&format!("{run}/diagnostics.csv"))).unwrap();
    assert_eq!(bytes("half"), bytes("run"));
}

#[test]
fn screening_goes_with_charges_in_open_space() {
    for (from, to, part) in [
        ("law = \"coulomb\"", "law = \"gravity\"", "charges in space"),
        ("screening_length = 0.4", "screening_length = 0", "screening_length"),
        ("screening_length = 0.4", "screening_length = 1e-200", "force.screening_length = 1e-200 is outside its range"),
        ("screening_length = 0.4", "screening_length = 1\nsoftening = { kernel = \"p1\", length = 1 }", "softening"),
        ("[time]", "[boundary]\nkind = \"periodic\"\nside = 2\n[time]", "open space"),
        ("[time]", "[boundary]\nkind = \"periodic\"\nside = 2\n[time]", "leave out force.screening_length"),
    ] {
        let folder = Folder::new(&PLASMA.replace(from, to));
        std::fs::write(folder.path("ions.csv"), "x,y,z,q,mass\n0,0,0,1,1\n1,0,0,-1,1\n").unwrap();
        let out = folder.case(&[]);
        assert!(code(&out) == 65 && stderr(&out).contains(part), "{to}: {}", stderr(&out));
    }
}

/// Screening leaves the kernel infinite at distance zero, so that pairs there are dropped, and reported.
#[test]
fn charges_at_one_place_are_reported_as_unscreened_ones() {
    let folder =
        Folder::with(&[("s.csv", &format!("x,y,z,q\n{}", "0,0,0,1\n".repeat(50))), ("t.csv", "x,y,z\n0,0,0\n")]);
    for kernel in ["laplace", "yukawa:1"] {
        for (targets, pairs) in [("", "1225 pairs"), ("--targets t.csv", "50 pairs")] {
            let out = folder.eval(&format!("--kernel {kernel} --sources s.csv {targets}"));
            assert!(code(&out) == 0 && stderr(&out).contains(pairs), "{kernel} {targets}: {}", stderr(&out));
        }
    }
    let softened = folder.eval("--softening plummer:0.1 --sources s.csv");
    assert!(code(&softened) == 0 && !stderr(&softened).contains("pairs"), "{}", stderr(&softened));
}

/// What the scenario asks for and no sum gives is a mistake of the scenario, with its keys, and no overflow.
#[test]
fn a_method_that_does_not_serve_is_no_overflow() {
    let folder = Folder::new(PLASMA);
    let rows: String = ions(3000).lines().skip(1).map(|row| format!("{row},1\n")).collect();
    std::fs::write(folder.path("ions.csv"), format!("x,y,z,q,mass\n{rows}")).unwrap();
    for more in [&[][..], &["--dry-run"]] {
        let set = ["--set", "force.screening_length=1e-4", "--set", "solver.method=fmm", "--out", "run", "--force"];
        let out = folder.case(&[&set[..], more].concat());
        let text = stderr(&out);
        assert_eq!(code(&out), 65, "{text}");
        for part in ["screening lengths from end to end", "solver.method = \"fmm\"", "force.screening_length = 0.0001"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("other units"), "{text}");
    }
}
