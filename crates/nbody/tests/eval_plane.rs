//! `nbody eval` with the kernels log, harmonic and vortex from end to end.

use crate::common::{Folder, code, random, stderr};

fn near(values: &[f64], expected: &[f64]) -> bool {
    values.len() == expected.len() && values.iter().zip(expected).all(|(v, e)| (v - e).abs() < 1e-13)
}

#[test]
fn one_source_and_one_target() {
    let folder = Folder::with(&[("s.csv", "x,y,q\n0,0,2\n"), ("t.csv", "x,y\n1,0\n"), ("far.csv", "x,y\n0,2\n")]);
    for options in ["", "--method direct", "--method fmm", "--precision f32", "--precision f64"] {
        let run =
            |kernel: &str, t: &str| folder.table(&format!("--kernel {kernel} --sources s.csv --targets {t} {options}"));
        let (header, rows) = run("log", "t.csv");
        assert!(header == "potential,ex,ey" && near(&rows[0], &[0.0, -2.0, 0.0]), "{options}: {rows:?}");
        let (header, rows) = run("harmonic", "t.csv");
        assert!(header == "re,im" && near(&rows[0], &[-2.0, 0.0]), "{options}: {rows:?}");
        let (_, rows) = run("log", "far.csv");
        assert!(rows[0].iter().zip([2.0 * 2f64.ln(), 0.0, -1.0]).all(|(v, e)| (v - e).abs() < 1e-6), "{rows:?}");
        // 2/(0 − 2i) = i.
        assert!(near(&run("harmonic", "far.csv").1[0], &[0.0, 1.0]));
    }
}

#[test]
fn imaginary_strengths() {
    let folder = Folder::with(&[("s.csv", "x,y,q,qi\n0,0,2,3\n"), ("t.csv", "x,y\n0,1\n")]);
    let (_, rows) = folder.table("--kernel harmonic --sources s.csv --targets t.csv");
    // (2 + 3i)/(−i) = i (2 + 3i) = −3 + 2i.
    assert!(near(&rows[0], &[-3.0, 2.0]), "{rows:?}");
    let out = folder.eval("--kernel log --sources s.csv --targets t.csv");
    assert!(
        code(&out) == 65 && stderr(&out).contains("s.csv: strengths of the kernel log are real"),
        "{}",
        stderr(&out)
    );
}

#[test]
fn own_pairs_and_coincident_points() {
    let folder = Folder::with(&[("s.csv", "x,y,q\n0,0,1\n0,0,10\n2,0,100\n")]);
    let (_, rows) = folder.table("--kernel log --sources s.csv --quiet");
    let log2 = 2f64.ln();
    for (row, expected) in rows.iter().zip([[100.0 * log2, 50.0], [100.0 * log2, 50.0], [11.0 * log2, -5.5]]) {
        assert!((row[0] - expected[0]).abs() < 1e-12 && (row[1] - expected[1]).abs() < 1e-12, "{rows:?}");
    }
    let out = folder.eval("--kernel log --sources s.csv");
    assert!(stderr(&out).contains("1 pair of sources is at the same place"), "{}", stderr(&out));
    // Blobs: the pair has its finite potential log ε − 1/2, and nobody sees itself.
    let (_, rows) = folder.table("--kernel log --sources s.csv --softening algebraic:0.001");
    let center = 1e-3f64.ln() - 0.5;
    assert!((rows[0][0] - (100.0 * log2 + 10.0 * center)).abs() < 1e-9, "{rows:?}");
    assert!((rows[2][0] - 11.0 * log2).abs() < 1e-9, "{rows:?}");
}

/// The squares of these distances underflow in units of the extent of the set.
#[test]
fn pairs_next_to_nothing_apart_are_no_coincident_ones() {
    let close = "x,y,q,qi\n0,0,1,2\n0,1e-160,3,4\n1,1,0,0\n";
    let wide = "x,y,q\n1e200,0,1\n0,0,1\n0,1,1\n1,1,2\n";
    let blobs = "x,y,q\n0,0,-1\n0,1e-160,-1\n1,0,0\n";
    let folder = Folder::with(&[("close.csv", close), ("wide.csv", wide), ("blobs.csv", blobs)]);
    for method in ["direct", "fmm"] {
        let rows = |kernel: &str, file: &str| {
            folder.table(&format!("--kernel {kernel} --sources {file} --method {method} --quiet --check")).1
        };
        // (3 + 4i)/(i 1e-160) = (4 − 3i) 1e160, and −(1 + 2i)/(i 1e-160).
        let near = |v: f64, e: f64| (v - e).abs() <= 1e-14 * e.abs();
        let harmonic = rows("harmonic", "close.csv");
        assert!(near(harmonic[0][0], 4e160) && near(harmonic[0][1], -3e160), "{method}: {harmonic:?}");
        assert!(near(harmonic[1][0], -2e160) && near(harmonic[1][1], 1e160), "{method}: {harmonic:?}");
        // Sums around (0, 0): log r of 1e200, 1 and sqrt 2.
        let log = rows("log", "wide.csv");
        assert!(near(log[1][0], 200.0 * 10f64.ln() + 2f64.ln()), "{method}: {log:?}");
        assert!(near(log[1][1], 1.0) && near(log[1][2], 2.0), "{method}: {log:?}");
    }
    // Beyond what one unit of length can hold.
    std::fs::write(folder.path("lost.csv"), "x,y,q\n1e200,0,1\n0,1e-150,1\n0,0,1\n").unwrap();
    std::fs::write(folder.path("harmless.csv"), "x,y,q\n5e-309,0.5,1\n0,0,1\n1,1,1\n").unwrap();
    assert_eq!(code(&folder.eval("--kernel log --sources harmless.csv --check")), 0);
    let out = folder.eval("--kernel log --sources lost.csv");
    assert!(code(&out) == 65 && stderr(&out).contains("less than 1e-300 of the extent 1e200"), "{}", stderr(&out));
    // Blobs far smaller than the set: at a distance of 1e-5 σ the field is r/(2σ²), and of the algebraic one 2r/ε².
    for (core, expected) in [("gaussian", 5e149), ("algebraic", 2e150)] {
        let (_, rows) = folder.table(&format!("--kernel log --sources blobs.csv --softening {core}:1e-155 --check"));
        assert!((rows[1][2] / expected - 1.0).abs() < 1e-9 && rows[0][2] == -rows[1][2], "{core}: {rows:?}");
    }
}

#[test]
fn a_file_without_y_is_no_plane() {
    let folder = Folder::with(&[("s.csv", "x,q\n0,1\n1,1\n"), ("t.csv", "x\n0\n"), ("p.csv", "x,y,q\n0,0,1\n")]);
    for words in ["--sources s.csv", "--sources p.csv --targets t.csv"] {
        let out = folder.eval(&format!("--kernel harmonic {words}"));
        let line = ".csv: no column y, which the kernel harmonic needs";
        assert!(code(&out) == 65 && stderr(&out).contains(line), "{}", stderr(&out));
    }
}

#[test]
fn blobs_and_what_they_are_for() {
    let folder = Folder::with(&[("s.csv", "x,y,q\n0,0,1\n"), ("t.csv", "x,y\n0.3,0\n5,0\n")]);
    let field = |core: &str| -> Vec<f64> {
        let words = format!("--kernel log --sources s.csv --targets t.csv --tolerance 1e-9 --softening {core} --check");
        folder.table(&words).1.iter().map(|r| -r[1]).collect()
    };
    let algebraic = 0.3 * (0.09 + 2.0 * 0.25) / (0.09f64 + 0.25).powi(2);
    let gaussian = (1.0 - (-0.09f64 / 0.5).exp()) / 0.3;
    assert!((field("algebraic:0.5")[0] - algebraic).abs() < 1e-13, "{:?}", field("algebraic:0.5"));
    assert!((field("gaussian:0.5")[0] - gaussian).abs() < 1e-13 && (field("gaussian:0.5")[1] - 0.2).abs() < 1e-14);
    for (kernel, core) in [("log", "plummer:1"), ("laplace", "gaussian:1"), ("vortex", "plummer:1")] {
        let out = folder.eval(&format!("--kernel {kernel} --sources s.csv --softening {core}"));
        assert!(code(&out) == 2 && stderr(&out).contains("allowed: none"), "{kernel}: {}", stderr(&out));
    }
    assert_eq!(code(&folder.eval("--kernel log --sources s.csv --method treecode")), 2);
    assert_eq!(code(&folder.eval("--kernel log --sources s.csv --device cuda")), 69);
}

#[test]
fn the_check_passes_on_many_points() {
    let r = random(8 * 3000);
    let row = |v: &[f64]| v.iter().take(6).map(|c| (c - 0.5).to_string()).collect::<Vec<_>>().join(",");
    let text: String = r.chunks(8).map(|v| row(v) + "\n").collect();
    let plane = format!("x,y,q,qi,wx,wy\n{text}");
    let space = format!("x,y,z,wx,wy,wz\n{text}");
    let folder = Folder::with(&[("p.csv", &plane), ("s.csv", &space), ("real.csv", &plane.replace("qi", "other"))]);
    for (kernel, file) in [("harmonic", "p.csv"), ("log", "real.csv"), ("vortex", "s.csv")] {
        for tolerance in ["1e-3", "1e-6", "1e-10"] {
            let words = format!("--kernel {kernel} --sources {file} --method fmm --tolerance {tolerance} --check=3000");
            let out = folder.eval(&words);
            assert!(code(&out) == 0 && stderr(&out).contains("kept"), "{words}: {}", stderr(&out));
        }
    }
    // Too low an order misses it, and says so.
    let out = folder.eval("--kernel log --sources real.csv --method fmm --order 3 --tolerance 1e-6 --check");
    assert!(code(&out) == 1 && stderr(&out).contains("is missed"), "{}", stderr(&out));
    let json = folder
        .eval("--kernel vortex --sources s.csv --softening p1:0.01 --tolerance 1e-4 --check --json --output u.npy");
    assert!(
        code(&json) == 0 && String::from_utf8_lossy(&json.stdout).contains("\"kernel\":\"vortex\""),
        "{}",
        stderr(&json)
    );
    assert!(folder.path("u.npy").exists());
}

#[test]
fn vortex_particles_turn_their_neighbours() {
    let strength = 4.0 * std::f64::consts::PI;
    let folder = Folder::with(&[
        ("s.csv", &format!("x,y,z,wx,wy,wz\n0,0,0,0,0,{strength}\n")),
        ("t.csv", "x,y,z\n1,0,0\n0,2,0\n0,0,1\n"),
    ]);
    let (header, rows) = folder.table("--kernel vortex --sources s.csv --targets t.csv");
    assert_eq!(header, "ux,uy,uz");
    for (row, u) in rows.iter().zip([[0.0, 1.0, 0.0], [-0.25, 0.0, 0.0], [0.0; 3]]) {
        assert!(near(row, &u), "{rows:?}");
    }
    let (_, rows) = folder.table("--kernel vortex --sources s.csv --targets t.csv --softening p1:1 --tolerance 1e-9");
    assert!((rows[0][1] - 3.5 / 2f64.powf(2.5)).abs() < 1e-14, "{rows:?}");
}

#[test]
fn the_plane_has_two_axes() {
    let folder = Folder::with(&[("s.csv", "x,y,z,q\n0,0,7,2\n"), ("t.csv", "x,y\n1,0\n"), ("line.csv", "x\n1\n")]);
    // A column z is one that the kernel does not need.
    assert!(near(&folder.table("--kernel harmonic --sources s.csv --targets t.csv").1[0], &[-2.0, 0.0]));
    let out = folder.eval("--kernel harmonic --sources s.csv --targets line.csv");
    assert!(code(&out) == 65 && stderr(&out).contains("line.csv: no column y"), "{}", stderr(&out));
}
