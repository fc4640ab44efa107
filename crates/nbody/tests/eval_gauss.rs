//! `nbody eval --kernel gauss:SIGMA` from end to end.

use std::fs;

use crate::common::{Folder, python, stderr};

fn near(values: &[f64], expected: &[f64], tolerance: f64) -> bool {
    values.len() == expected.len() && values.iter().zip(expected).all(|(v, e)| (v - e).abs() <= tolerance)
}

#[test]
fn one_source_and_one_target() {
    let folder = Folder::with(&[]);
    let value = 1.213_061_319_425_266_8;
    for (axes, source, target, header, expected) in [
        ("x", "0", "1", "potential,ex", vec![value, value]),
        ("x,y", "0,0", "0,-1", "potential,ex,ey", vec![value, 0.0, -value]),
        ("x,y,z", "0,0,0", "0,0,1", "potential,ex,ey,ez", vec![value, 0.0, 0.0, value]),
    ] {
        fs::write(folder.path("s.csv"), format!("{axes},q\n{source},2\n")).unwrap();
        fs::write(folder.path("t.csv"), format!("{axes}\n{target}\n")).unwrap();
        for (options, tolerance) in [("--method direct", 1e-15), ("--method fmm --tolerance 1e-9", 2e-9), ("", 2e-4)] {
            let words = format!("--sources s.csv --targets t.csv --kernel gauss:1 {options}");
            let (names, rows) = folder.table(&words);
            assert_eq!(names, header);
            assert!(rows.len() == 1 && near(&rows[0], &expected, tolerance), "{words}: {rows:?}");
        }
    }
}

#[test]
fn own_pairs_count_and_the_check_passes() {
    let folder = Folder::with(&[]);
    fs::write(folder.path("one.csv"), "x,y,q\n3,4,5\n3,4,2\n").unwrap();
    let (_, rows) = folder.table("--sources one.csv --kernel gauss:0.1");
    assert!(rows.iter().all(|r| near(r, &[7.0, 0.0, 0.0], 1e-3)), "{rows:?}");
    let mut text = "x,y,z,q\n".to_string();
    for i in 0..3000u32 {
        let part = |k: u32| f64::from(i.wrapping_mul(2_654_435_761).wrapping_mul(k) >> 8) / f64::from(1 << 24);
        text += &format!("{},{},{},{}\n", part(1), part(7), part(13), part(29) - 0.3);
    }
    fs::write(folder.path("many.csv"), text).unwrap();
    for tolerance in ["1e-3", "1e-6", "1e-10"] {
        let words =
            format!("--sources many.csv --kernel gauss:0.2 --tolerance {tolerance} --check --json --output o.csv");
        let out = folder.eval(&words);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!((&json["kernel"], &json["method"]), (&"gauss:0.2".into(), &"fmm".into()));
        let worst = json["check"]["max"].as_f64().unwrap();
        assert!(worst > 0.0 && worst <= tolerance.parse().unwrap(), "{json}");
    }
}

#[test]
fn what_has_no_meaning_is_refused() {
    let folder = Folder::with(&[]);
    fs::write(folder.path("s.csv"), "x,q\n0,2\n").unwrap();
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
        let out = folder.eval(&format!("--sources s.csv {words}"));
        assert_eq!(out.status.code(), Some(2), "{words}: {}", stderr(&out));
        assert!(stderr(&out).contains(part), "{words}: {}", stderr(&out));
    }
}

/// A kernel density estimate is a sum of Gaussians: scipy's is the same.
#[test]
fn scipy_finds_the_same_density() {
    let Some(mut command) = python(".venv", "check_density.py") else { return };
    let folder = Folder::with(&[]);
    command.arg(env!("CARGO_BIN_EXE_nbody")).arg(folder.path(""));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(text.lines().any(|l| l.starts_with("ok ")), "{text}");
}
