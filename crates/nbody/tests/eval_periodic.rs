//! `nbody eval --periodic`: sums over images from end to end.

use crate::common::{Folder, code, random, rows, stderr};
use serde_json::Value;

/// Ions of alternating sign in a box of these sides.
fn ions(n: usize, side: [f64; 3]) -> String {
    let r = random(3 * n);
    let row = |(i, v): (usize, &[f64])| {
        let q = if i % 2 == 0 { 1 } else { -1 };
        format!("{},{},{},{q}\n", v[0] * side[0], v[1] * side[1], v[2] * side[2])
    };
    format!("x,y,z,q\n{}", r.chunks(3).enumerate().map(row).collect::<String>())
}

/// Of a unit charge in its images and their background (Nijboer & de Wette 1957).
const ONE: f64 = -2.837_297_479_480_619_6;

#[test]
fn one_charge_and_its_images() {
    let folder = Folder::with(&[("one.csv", "x,y,z,q\n0.2,7,-3,1\n")]);
    let (header, values) = folder.table("--sources one.csv --periodic 1");
    assert_eq!(header, "potential,ex,ey,ez");
    assert!((values[0][0] - ONE).abs() < 1e-13 && values[0][1..].iter().all(|e| e.abs() < 1e-13), "{values:?}");
    for method in ["direct", "treecode", "fmm"] {
        let (_, values) =
            folder.table(&format!("--sources one.csv --periodic 2,2,2 --method {method} --tolerance 1e-9"));
        assert!((values[0][0] - ONE / 2.0).abs() < 1e-9, "{method}: {values:?}");
        assert!(values[0][1..].iter().all(|e| e.abs() < 1e-9), "{method}: {values:?}");
    }
    // A target in the place of an image of the source sees the same.
    let folder = Folder::with(&[("one.csv", "x,y,z,q\n0.25,0.5,0.5,1\n"), ("t.csv", "x,y,z\n3.25,-4.5,0.5\n")]);
    let out = folder.eval("--sources one.csv --targets t.csv --periodic 1");
    assert!((rows(&String::from_utf8_lossy(&out.stdout)).1[0][0] - ONE).abs() < 1e-13);
    assert!(stderr(&out).contains("1 pair of a target and a source is at the same place"), "{}", stderr(&out));
}

#[test]
fn salt_has_its_constant_and_no_net_force() {
    let n = 8;
    let places = (0..n * n * n).map(|k| [k % n, k / n % n, k / n / n]);
    let row = |x: [i32; 3]| format!("{},{},{},{}\n", x[0], x[1], x[2], 1 - 2 * (x.iter().sum::<i32>() % 2));
    let text: String = places.map(row).collect();
    let folder = Folder::with(&[("salt.csv", &format!("x,y,z,q\n{text}"))]);
    let run = |words: &str| {
        let out = folder.eval(&format!("--sources salt.csv --periodic {n} --json --output f.csv --check {words}"));
        assert_eq!(code(&out), 0, "{words}: {}", stderr(&out));
        serde_json::from_slice::<Value>(&out.stdout).unwrap()
    };
    let constant = 1.747_564_594_633_182_1;
    for (words, within) in
        [("--method direct", 1e-12), ("--method fmm --tolerance 1e-5", 1e-5), ("--method treecode", 1e-4)]
    {
        let report = run(words);
        let energy = report["energy"].as_f64().unwrap();
        assert!((energy / (-0.5 * constant * 512.0) - 1.0).abs() < within, "{words}: {report}");
        assert!(report["check"]["potential"].as_f64().unwrap() < within, "{words}: {report}");
        assert!(report["net_force"].as_f64().unwrap() < 512.0 * within, "{words}: {report}");
        assert_eq!(
            (&report["periodic"], &report["surroundings"]),
            (&serde_json::json!([8.0, 8.0, 8.0]), &"tinfoil".into())
        );
    }
}

#[test]
fn every_method_keeps_its_tolerance_in_any_surroundings() {
    let side = [4.0, 3.0, 2.5];
    let folder = Folder::with(&[("ions.csv", &ions(1500, side))]);
    for surroundings in ["tinfoil", "vacuum", "78.5"] {
        for method in ["treecode", "fmm", "direct"] {
            let out = folder.eval(&format!(
                "--sources ions.csv --periodic 4,3,2.5 --surroundings {surroundings} --method {method} --tolerance 1e-6 --check --output f.csv"
            ));
            assert_eq!(code(&out), 0, "{method} {surroundings}: {}", stderr(&out));
        }
    }
    let potential =
        |words: &str| folder.table(&format!("--sources ions.csv --periodic 4,3,2.5 --method direct {words}")).1;
    let (foil, vacuum, medium) = (potential(""), potential("--surroundings vacuum"), potential("--surroundings 78.5"));
    // −2c D with c = 2π/((2ε + 1) V): fields differ by the same vector everywhere, in a known ratio.
    for (f, (v, m)) in foil.iter().zip(vacuum.iter().zip(&medium)) {
        for d in 1..4 {
            assert!(((v[d] - f[d]) - (vacuum[0][d] - foil[0][d])).abs() < 1e-10);
            assert!(((v[d] - f[d]) * 3.0 - (m[d] - f[d]) * 158.0).abs() < 1e-9);
        }
    }
    assert!((vacuum[0][1] - foil[0][1]).abs() > 1e-6);
}

#[test]
fn excluded_pairs_do_not_see_each_other() {
    let sources = "x,y,z,q\n0.1,0.5,0.5,1\n0.9,0.5,0.5,-2\n0.5,0.2,0.7,1\n";
    let folder = Folder::with(&[("s.csv", sources), ("p.csv", "# bonds\ni,j\n1,0\n")]);
    for (space, r, sign) in [("--periodic 1", 0.2, 1.0), ("", 0.8, -1.0)] {
        let words = format!("--sources s.csv --precision f64 {space}");
        let (all, left) = (folder.table(&words).1, folder.table(&format!("{words} --exclusions p.csv")).1);
        // The nearest image of 1 lies to the left of 0.
        for (i, q, side) in [(0, -2.0, sign), (1, 1.0, -sign)] {
            assert!((all[i][0] - left[i][0] - q / r).abs() < 1e-12, "{space} {i}");
            assert!((all[i][1] - left[i][1] - side * q / r / r).abs() < 1e-11, "{space} {i}: {all:?} {left:?}");
            assert!(all[i][2] == left[i][2] && all[i][3] == left[i][3]);
        }
        assert_eq!(all[2], left[2]);
    }
    for (pairs, wanted) in [
        ("i,j\n0,3\n", "p.csv: pair 1: 3 is no row of the sources; allowed: 0 to 2"),
        ("i,j\n0,1\n0.5,1\n", "pair 2: 0.5 is no row"),
        ("i,j\n0,1\n1,0\n", "the pair 0, 1 is given twice"),
        ("i,j\n2,2\n", "pair 1: 2 is paired with itself"),
        ("i,k\n0,1\n", "p.csv"),
    ] {
        std::fs::write(folder.path("p.csv"), pairs).unwrap();
        let out = folder.eval("--sources s.csv --exclusions p.csv");
        assert!(code(&out) == 65 && stderr(&out).contains(wanted), "{pairs:?}: {}", stderr(&out));
    }
}

#[test]
fn what_cannot_be_had_is_refused() {
    let folder = Folder::with(&[("s.csv", "x,y,z,q\n0,0,0,1\n0.5,0.5,0.5,1\n")]);
    for (words, exit, wanted) in [
        ("--periodic 0", 2, "side of the periodic box = 0 is outside 1e-60 to 1e60"),
        ("--periodic 1,2", 2, "allowed: the side of a cube, or three sides"),
        ("--periodic 1 --surroundings 0.5", 2, "dielectric constant of the surroundings = 0.5 is outside 1 or more"),
        ("--periodic 1 --surroundings air", 2, "allowed: tinfoil, vacuum, or a dielectric constant"),
        ("--surroundings vacuum", 2, "--periodic"),
        ("--periodic 1 --surroundings vacuum", 65, "a charged box has a potential in surroundings of tin foil alone"),
        ("--periodic 1 --softening plummer:0.1", 2, "take spline"),
        ("--periodic 1 --softening spline:0.3", 2, "1/5.6 of the shortest side"),
        ("--periodic 1 --kernel log", 2, "--periodic: the kernel log has none"),
        ("--periodic 1 --device cuda:4711", 69, "device = cuda:4711: "),
        ("--periodic 1 --method direct --precision f32", 2, "double precision"),
        ("--periodic 1,1,9 --method fmm", 2, "up to 4 times the shortest, not 9"),
    ] {
        let out = folder.eval(&format!("--sources s.csv {words}"));
        assert_eq!(code(&out), exit, "{words}: {}", stderr(&out));
        assert!(stderr(&out).contains(wanted), "{words}: {}", stderr(&out));
    }
}

/// Ewald's sum is in double precision, and expansions do not serve such a box.
#[test]
fn a_long_box_has_a_mesh_in_single_precision() {
    let folder = Folder::with(&[("ions.csv", &ions(1000, [10.0, 1.0, 1.0]))]);
    let out = folder
        .eval("--sources ions.csv --periodic 10,1,1 --precision f32 --tolerance 1e-3 --check --json --output f.csv");
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(report["method"] == "mesh" && report["check"]["rms"].as_f64().unwrap() <= 1e-3, "{report}");
}

#[test]
fn trees_of_one_depth() {
    let folder = Folder::with(&[("ions.csv", &ions(1000, [1.0; 3]))]);
    let run = |words: &str| {
        let out = folder.eval(&format!("--sources ions.csv --json --output f.csv --check {words}"));
        (code(&out), stderr(&out), serde_json::from_slice::<Value>(&out.stdout).unwrap_or_default())
    };
    for space in ["", "--periodic 1"] {
        let error =
            |words: &str| run(&format!("{space} --order 8 --depth 2 {words}")).2["check"]["l2"].as_f64().unwrap();
        assert!(error("--separation 2") < 0.5 * error(""), "{space}");
        let (code, said, report) = run(&format!("{space} --depth 2 --tolerance 1e-5"));
        assert!(code == 0 && report["depth"] == 2 && report["separation"] == 1, "{space}: {said} {report}");
    }
    for (words, wanted) in [
        ("--depth 11", "0..=10"),
        ("--depth 3 --separation 3", "1..=2"),
        ("--separation 2", "--depth"),
        ("--depth 2 --theta 0.5", "--theta"),
        ("--depth 2 --method treecode", "a depth goes with method fmm"),
        ("--depth 2 --kernel vortex", "--depth: the kernel vortex has none"),
    ] {
        let (code, said, _) = run(words);
        assert!(code == 2 && said.contains(wanted), "{words}: {said}");
    }
}

#[test]
fn the_bits_do_not_depend_on_threads() {
    let folder = Folder::with(&[("ions.csv", &ions(3000, [1.0; 3]))]);
    for method in ["fmm", "direct"] {
        let run = |threads: usize| {
            let words =
                format!("--sources ions.csv --periodic 1 --method {method} --tolerance 1e-4 --threads {threads}");
            folder.eval(&words).stdout
        };
        assert!(!run(1).is_empty() && run(1) == run(3), "{method}");
    }
}
