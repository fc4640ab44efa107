//! `nbody eval --kernel gauss:SIGMA` from end to end.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn eval(folder: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nbody"));
    command.current_dir(folder).arg("eval").args(words.split_whitespace()).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Header and rows of a run that must succeed.
fn table(folder: &Path, words: &str) -> (String, Vec<Vec<f64>>) {
    let out = eval(folder, words);
    assert_eq!(out.status.code(), Some(0), "{words}: {}", told(&out));
    let text = String::from_utf8(out.stdout).unwrap();
    let mut lines = text.lines();
    let header = lines.next().unwrap().to_string();
    (header, lines.map(|l| l.split(',').map(|v| v.parse().unwrap()).collect()).collect())
}

fn near(values: &[f64], expected: &[f64], tolerance: f64) -> bool {
    values.len() == expected.len() && values.iter().zip(expected).all(|(v, e)| (v - e).abs() <= tolerance)
}

#[test]
fn one_source_and_one_target() {
    let folder = tempfile::tempdir().unwrap();
    let value = 1.213_061_319_425_266_8;
    for (axes, source, target, header, expected) in [
        ("x", "0", "1", "potential,ex", vec![value, value]),
        ("x,y", "0,0", "0,-1", "potential,ex,ey", vec![value, 0.0, -value]),
        ("x,y,z", "0,0,0", "0,0,1", "potential,ex,ey,ez", vec![value, 0.0, 0.0, value]),
    ] {
        fs::write(folder.path().join("s.csv"), format!("{axes},q\n{source},2\n")).unwrap();
        fs::write(folder.path().join("t.csv"), format!("{axes}\n{target}\n")).unwrap();
        for (options, tolerance) in [("--method direct", 1e-15), ("--method fmm --tolerance 1e-9", 2e-9), ("", 2e-4)] {
            let words = format!("--sources s.csv --targets t.csv --kernel gauss:1 {options}");
            let (names, rows) = table(folder.path(), &words);
            assert_eq!(names, header);
            assert!(rows.len() == 1 && near(&rows[0], &expected, tolerance), "{words}: {rows:?}");
        }
    }
}

#[test]
fn own_pairs_count_and_the_check_passes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.csv"), "x,y,q\n3,4,5\n3,4,2\n").unwrap();
    let (_, rows) = table(folder.path(), "--sources one.csv --kernel gauss:0.1");
    assert!(rows.iter().all(|r| near(r, &[7.0, 0.0, 0.0], 1e-3)), "{rows:?}");
    let mut text = "x,y,z,q\n".to_string();
    for i in 0..3000u32 {
        let part = |k: u32| f64::from(i.wrapping_mul(2_654_435_761).wrapping_mul(k) >> 8) / f64::from(1 << 24);
        text += &format!("{},{},{},{}\n", part(1), part(7), part(13), part(29) - 0.3);
    }
    fs::write(folder.path().join("many.csv"), text).unwrap();
    for tolerance in ["1e-3", "1e-6", "1e-10"] {
        let words =
            format!("--sources many.csv --kernel gauss:0.2 --tolerance {tolerance} --check --json --output o.csv");
        let out = eval(folder.path(), &words);
        assert_eq!(out.status.code(), Some(0), "{}", told(&out));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!((&json["kernel"], &json["method"]), (&"gauss:0.2".into(), &"fmm".into()));
        let worst = json["check"]["max"].as_f64().unwrap();
        assert!(worst > 0.0 && worst <= tolerance.parse().unwrap(), "{json}");
    }
}

#[test]
fn what_has_no_meaning_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.csv"), "x,q\n0,2\n").unwrap();
    for (words, part) in [
        ("--kernel gauss", "gauss:SIGMA"),
        ("--kernel gauss:", "not a number"),
        ("--kernel gauss:0", "1e-150 to 1e150"),
        ("--kernel gauss:-1", "1e-150 to 1e150"),
        ("--kernel gauss:nan", "1e-150 to 1e150"),
        ("--kernel gaus:1", "gauss:SIGMA"),
        ("--kernel gauss:1 --method treecode", "auto, direct, fmm"),
        ("--kernel gauss:1 --precision f32", "auto, f64"),
        ("--kernel gauss:1 --order 5", "--order"),
        ("--kernel gauss:1 --theta 0.5", "--theta"),
        ("--kernel gauss:1 --leaf-size 5", "--leaf-size"),
        ("--kernel gauss:1 --softening plummer:1", "--softening"),
    ] {
        let out = eval(folder.path(), &format!("--sources s.csv {words}"));
        assert_eq!(out.status.code(), Some(2), "{words}: {}", told(&out));
        assert!(told(&out).contains(part), "{words}: {}", told(&out));
    }
}

/// A kernel density estimate is such a sum: scipy's is the same.
#[test]
fn scipy_finds_the_same_density() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../.venv/bin/python");
    if !python.exists() {
        let what = "skipped: no .venv (scripts/setup --test makes it)";
        assert!(std::env::var_os("NBODY_REQUIRE_READERS").is_none_or(|v| v != "1"), "{what}");
        eprintln!("{what}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    command.arg(here.join("tests/python/check_density.py")).arg(env!("CARGO_BIN_EXE_nbody")).arg(folder.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", told(&output));
    assert!(text.lines().any(|l| l.starts_with("ok ")), "{text}");
}
