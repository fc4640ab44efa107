//! `nbody eval` from end to end: files in and out, own pairs, messages, exit codes, JSON, the check.

use std::fs;
use std::process::Command;

use crate::common::{Folder, code, random, rows, stderr};
use nbody::files::npy::{self, Npy};
use nbody::files::snapshot::{self, Field, Float, Layout, Snapshot};
use serde_json::Value;

fn cloud(n: usize) -> String {
    let r = random(4 * n);
    let row = |v: &[f64]| format!("{},{},{},{}\n", v[0], v[1], v[2], v[3] + 0.1);
    format!("x,y,z,q\n{}", r.chunks(4).map(row).collect::<String>())
}

#[test]
fn one_source_and_one_target() {
    for (sources, targets) in [("x,y,z,q\n0,0,0,2\n", "x,y,z\n1,0,0\n"), ("q,x\n2,0\n", "x\n1\n")] {
        let folder = Folder::with(&[("s.csv", sources), ("t.csv", targets)]);
        for options in ["", "--precision f64", "--method direct", "--method fmm", "--method treecode --precision f32"] {
            let (header, values) = folder.table(&format!("--sources s.csv --targets t.csv {options}"));
            assert_eq!((header.as_str(), values.len()), ("potential,ex,ey,ez", 1));
            let expected = [2.0, 2.0, 0.0, 0.0];
            assert!(values[0].iter().zip(expected).all(|(v, e)| (v - e).abs() < 1e-14), "{options}: {values:?}");
        }
    }
}

#[test]
fn names_in_any_order_and_ids_in_front() {
    let sources = "# made by hand\n\nname,q,y,x\nA,2,0,0\n";
    let targets = "y,note,id,x\n0,far,18446744073709551615,4\n\n# near\n1,near,3,0\n";
    let folder = Folder::with(&[("s.csv", sources), ("t.csv", targets)]);
    let out = folder.eval("--sources s.csv --targets t.csv --precision f64");
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.starts_with("id,potential,ex,ey,ez\n18446744073709551615,"), "{text}");
    let expected = [[0.5, 0.125, 0.0, 0.0], [2.0, 0.0, 2.0, 0.0]];
    for (row, expected) in rows(&text).1.iter().zip(expected) {
        assert!(row[1..].iter().zip(expected).all(|(v, e)| (v - e).abs() < 1e-14), "{text}");
    }
    assert!(text.ends_with('\n') && text.lines().nth(2).unwrap().starts_with("3,"), "{text}");
}

#[test]
fn own_pairs() {
    // Two at one place, and a third elsewhere.
    let folder = Folder::with(&[("s.csv", "x,y,z,q\n0,0,0,1\n0,0,0,10\n2,0,0,100\n")]);
    let own = "--sources s.csv --precision f64";
    let with = "--sources s.csv --targets s.csv --precision f64";
    let potential = |words: &str| -> Vec<f64> { folder.table(words).1.iter().map(|r| r[0]).collect() };
    // Unsoftened, a pair at distance 0 adds 0, no matter which source it is.
    let near = |a: &[f64], b: [f64; 3]| a.len() == 3 && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12 * b);
    for words in [own, with] {
        assert!(near(&potential(words), [50.0, 50.0, 5.5]), "{:?}", potential(words));
    }
    // Softened it adds q/ε, and only without --targets a row skips itself.
    let far = 1.0 / 4.25f64.sqrt();
    let found = potential(&format!("{own} --softening plummer:0.5"));
    assert!(near(&found, [20.0 + 100.0 * far, 2.0 + 100.0 * far, 11.0 * far]), "{found:?}");
    let found = potential(&format!("{with} --softening plummer:0.5"));
    assert!(near(&found, [22.0 + 100.0 * far, 22.0 + 100.0 * far, 200.0 + 11.0 * far]), "{found:?}");
    // One warning with the count, and none where the pairs do contribute.
    let warning = |words: &str| stderr(&folder.eval(&format!("{words} --device cpu")));
    assert!(warning(own).contains("warning: 1 pair of sources is at the same place"), "{}", warning(own));
    assert!(warning(with).contains("warning: 5 pairs of a target and a source are"), "{}", warning(with));
    assert_eq!(warning(with).lines().count(), 1);
    assert_eq!(warning(&format!("{with} --quiet")), "");
    assert_eq!(warning(&format!("{with} --softening p1:0.5")), "");
}

#[test]
fn what_direct_sums_have_no_use_for_is_said() {
    let folder = Folder::with(&[("s.csv", "x,y,z,q\n0,0,0,1\n2,0,0,100\n")]);
    let said =
        |words: &str| stderr(&folder.eval(&format!("--sources s.csv --device cpu --order 5 --leaf-size 9 {words}")));
    let direct = said("--method direct");
    let lines = ["order", "leaf-size"].map(|name| format!("nbody: warning: --{name} has no effect on direct sums"));
    assert!(direct.lines().eq(lines), "{direct}");
    assert_eq!(said("--method direct --quiet"), "");
    assert_eq!(said("--method fmm"), "");
}

#[test]
fn nothing_to_sum_and_nowhere_to_sum_it() {
    let files = [("none.csv", "x,y,z,q\n"), ("one.csv", "x,y,z,q\n1,2,3,4\n"), ("two.csv", "x,y,z\n0,0,0\n5,5,5\n")];
    let folder = Folder::with(&files);
    for check in ["", "--check"] {
        let table = |words: &str| folder.table(&format!("{words} {check}"));
        let header = "potential,ex,ey,ez".to_string();
        assert_eq!(table("--sources one.csv --targets none.csv"), (header.clone(), vec![]));
        assert_eq!(table("--sources none.csv"), (header.clone(), vec![]));
        assert_eq!(table("--sources none.csv --targets two.csv"), (header.clone(), vec![vec![0.0; 4]; 2]));
        assert_eq!(table("--sources one.csv"), (header, vec![vec![0.0; 4]]));
    }
}

#[test]
fn every_way_in_and_out_gives_the_same_bits() {
    let n = 300;
    let folder = Folder::with(&[("s.csv", &cloud(n))]);
    let r = random(4 * n);
    let positions: Vec<f64> = r.chunks(4).flat_map(|v| v[..3].to_vec()).collect();
    let q: Vec<f64> = r.chunks(4).map(|v| v[3] + 0.1).collect();
    let plain = |name: &str, values: &[f64], width| {
        let mut bytes = vec![];
        npy::write(&mut bytes, values, width).unwrap();
        fs::write(folder.path(name), bytes).unwrap();
    };
    plain("s.npy", &positions, 3);
    plain("q.npy", &q, 1);
    let s = Snapshot {
        id: (0..n as u64).collect(),
        position: positions.chunks(3).map(|x| [x[0], x[1], x[2]]).collect(),
        velocity: vec![[0.0; 3]; n],
        mass: q.clone(),
        ..Snapshot::default()
    };
    let layout = |fields: &[Field]| Layout { fields: fields.to_vec(), precision: Float::F64 };
    snapshot::write(&folder.path("mass.hdf"), &s, &layout(&[])).unwrap();
    let charged = Snapshot { mass: vec![9.0; n], charge: Some(q), ..s };
    snapshot::write(&folder.path("charge.hdf"), &charged, &layout(&[Field::Charge])).unwrap();
    let (header, expected) = folder.table("--sources s.csv");
    assert_eq!((header.as_str(), expected.len()), ("potential,ex,ey,ez", n));
    assert_eq!(folder.table("--sources s.npy --strengths q.npy").1, expected);
    // Snapshots have ids.
    let with_ids: Vec<Vec<f64>> = expected.iter().enumerate().map(|(i, r)| [&[i as f64], &r[..]].concat()).collect();
    for name in ["mass.hdf", "charge.hdf"] {
        assert_eq!(folder.table(&format!("--sources {name}")), ("id,potential,ex,ey,ez".into(), with_ids.clone()));
    }
    // At separate targets single precision keeps coordinates in two parts, so only the digits of the tolerance agree.
    for (got, wanted) in folder.table("--sources s.csv --targets s.npy").1.iter().zip(&expected) {
        for (g, w) in got.iter().zip(wanted) {
            assert!(
                (g - w).abs() <= 1e-5 * wanted[1..].iter().fold(w.abs(), |m, x| m.max(x.abs())),
                "{got:?} {wanted:?}"
            );
        }
    }
    // Out.
    for name in ["o.csv", "o.npy", "o.hdf"] {
        let out = folder.eval(&format!("--sources mass.hdf --output {name}"));
        assert_eq!((code(&out), out.stdout.len()), (0, 0), "{name}: {}", stderr(&out));
    }
    assert_eq!(rows(&fs::read_to_string(folder.path("o.csv")).unwrap()).1, with_ids);
    let columns = ["id", "potential", "ex", "ey", "ez"];
    let Npy::Table(t) = npy::read(&folder.path("o.npy"), &columns).unwrap() else { panic!("no table") };
    let file = hdf5::File::open(folder.path("o.hdf")).unwrap();
    assert_eq!(file.dataset("id").unwrap().read_raw::<u64>().unwrap(), t.id().unwrap());
    for (k, name) in columns.into_iter().enumerate().skip(1) {
        let expected: Vec<f64> = with_ids.iter().map(|r| r[k]).collect();
        assert_eq!(t.column(name).unwrap(), expected, "{name}");
        for place in [name.to_string(), format!("VTKHDF/PointData/{name}")] {
            assert_eq!(file.dataset(&place).unwrap().read_raw::<f64>().unwrap(), expected, "{place}");
        }
    }
    // A structured array is an input too.
    let mut bytes = vec![];
    let column = |k: usize| -> Vec<f64> { r.chunks(4).map(|v| v[k] + if k == 3 { 0.1 } else { 0.0 }).collect() };
    let [x, y, z, q] = [0, 1, 2, 3].map(column);
    let named = [("z", &z), ("q", &q), ("x", &x), ("y", &y)].map(|(n, v)| (n, nbody::files::csv::Column::Float(v)));
    npy::write_table(&mut bytes, &named).unwrap();
    fs::write(folder.path("table.npy"), bytes).unwrap();
    assert_eq!(folder.table("--sources table.npy").1, expected);
}

#[test]
fn no_dependence_on_the_number_of_threads() {
    let folder = Folder::with(&[("s.csv", &cloud(5000))]);
    let run =
        |threads| folder.eval(&format!("--sources s.csv --method fmm --tolerance 1e-3 --threads {threads}")).stdout;
    assert!(run(1).len() > 5000);
    assert_eq!(run(1), run(3));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let folder = Folder::with(&[
        ("s.csv", "x,y,z,q\n1,0,0,2\n"),
        ("nan.csv", "x,y,z,q\n0,0,0,2\n0,nan,0,2\n"),
        ("inf.csv", "x,y,z,q\n0,0,0,-inf\n"),
        ("word.csv", "x,y,z,q\n0,0,zero,1\n"),
        ("noq.csv", "x,y,z,m\n0,0,0,2\n"),
        ("nox.csv", "y,z,q\n0,0,2\n"),
        ("plane.csv", "x,y\n1,2\n"),
        ("twice.csv", "id,x,y,z\n7,0,0,0\n8,0,0,1\n7,0,0,2\n"),
        ("empty.csv", ""),
        ("text.npy", "x,y\n1,2\n"),
        ("text.hdf", "x,y\n1,2\n"),
        ("q.csv", "q\n1\n2\n"),
    ]);
    let mut bytes = vec![];
    npy::write(&mut bytes, &[1.0, 2.0, 3.0], 3).unwrap();
    fs::write(folder.path("p.npy"), &bytes).unwrap();
    bytes.clear();
    npy::write(&mut bytes, &[1.0, 2.0, 3.0, 4.0], 4).unwrap();
    fs::write(folder.path("wide.npy"), &bytes).unwrap();
    for name in ["d.csv", "d.npy", "d.hdf"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    for (words, expected, message) in [
        ("--sources d.csv", 66, "d.csv: is a folder; a file is expected"),
        ("--sources d.npy", 66, "d.npy: is a folder; a file is expected"),
        ("--sources d.hdf", 66, "d.hdf: is a folder; a file is expected"),
        ("--sources nan.csv", 65, "nan.csv: line 3, column y: \"nan\" is not finite"),
        ("--sources inf.csv", 65, "inf.csv: line 2, column q: \"-inf\" is not finite"),
        ("--sources word.csv", 65, "word.csv: line 2, column z: \"zero\" is not a number"),
        ("--sources noq.csv", 65, "noq.csv: there is no column q; the columns are: x, y, z, m"),
        ("--sources nox.csv", 65, "nox.csv: there is no column x"),
        ("--sources empty.csv", 65, "empty.csv: empty"),
        ("--sources text.npy", 65, "not an .npy file"),
        ("--sources text.hdf", 65, "not an HDF5 file"),
        ("--sources s.csv --targets plane.csv", 65, "plane.csv: positions have x, y, those of s.csv x, y, z"),
        ("--sources s.csv --targets twice.csv", 65, "twice.csv: two rows have the id 7"),
        ("--sources s.csv --targets nan.csv", 65, "nan.csv: line 3, column y"),
        ("--sources p.npy", 65, "p.npy: an array of positions has no q; give it with --strengths"),
        ("--sources p.npy --strengths q.csv", 65, "q.csv: 2 strengths for 1 sources"),
        ("--sources wide.npy --strengths q.csv", 65, "wide.npy: an array of 1 rows of 4 numbers"),
        ("--sources gone.csv", 66, "gone.csv: no such file"),
        ("--sources s.csv --output gone/o.csv", 74, "gone/o.csv: there is no folder gone"),
        ("--sources s.csv --output .", 74, "is a folder"),
        ("--sources s.csv --output o.txt", 2, "must end in .csv, .npy or .hdf"),
        (
            "--sources s.csv --output d.npy/../s.csv",
            2,
            "--output d.npy/../s.csv: --sources is this file, which would be lost",
        ),
        ("--sources p.npy --strengths q.csv --output q.csv", 2, "--strengths is this file"),
        ("--sources s.csv --targets nan.csv --output nan.csv", 2, "--targets is this file"),
        ("--sources s.csv --exclusions noq.csv --output noq.csv", 2, "--exclusions is this file"),
        ("--sources s.csv --output /dev/full", 74, "/dev/full: cannot write"),
        ("--sources s.csv --json", 2, "--output"),
        ("--targets s.csv", 2, "--sources"),
        ("--sources s.csv --tolerance 0", 2, "1e-14 to 0.1"),
        ("--sources s.csv --tolerance 1e-6 --precision f32", 2, "f32"),
        ("--sources s.csv --softening plummer:-1", 2, "0 or more"),
        ("--sources s.csv --softening plummer", 2, "plummer:0.01"),
        ("--sources s.csv --softening cubic:1", 2, "allowed: none, plummer:E, spline:E, p1:E"),
        ("--sources s.csv --softening hybrid:0", 2, "with the length E, 0 or more; \"hybrid\" is none of these"),
        ("--sources s.csv --softening p1:x", 2, "the length \"x\" of p1 is not a number; allowed: 0 or more"),
        ("--sources s.csv --theta 1.5", 2, "0.2 to 1"),
        ("--sources s.csv --order 31", 2, "1 to 30"),
        ("--sources s.csv --leaf-size 0", 2, "1 to 1000000"),
        ("--sources s.csv --threads 0", 2, "1..=1024"),
        ("--sources s.csv --method tree", 2, "treecode"),
        ("--sources s.csv --kernel yukawa", 2, "yukawa:KAPPA"),
        ("--sources s.csv --kernel coulomb", 2, "laplace"),
        ("--sources s.csv --device gpu", 2, "cuda:N"),
        ("--sources s.csv --device cuda:4711", 69, "device = cuda:4711: "),
        ("--sources s.csv --check=0", 2, "1 or more"),
    ] {
        let out = folder.eval(words);
        assert_eq!(code(&out), expected, "{words}: {}", stderr(&out));
        assert!(stderr(&out).contains(message), "{words}: {}", stderr(&out));
        assert!(out.stdout.is_empty(), "{words}");
    }
}

#[test]
fn a_file_that_is_there_is_replaced_only_by_a_whole_one() {
    let folder = Folder::with(&[("s.csv", &cloud(100)), ("o.csv", "old"), ("bad.csv", "x,q\n0,nan\n")]);
    assert_eq!(code(&folder.eval("--sources bad.csv --output o.csv")), 65);
    assert_eq!(fs::read_to_string(folder.path("o.csv")).unwrap(), "old");
    assert_eq!(code(&folder.eval("--sources s.csv --output o.csv")), 0);
    assert_eq!(fs::read_to_string(folder.path("o.csv")).unwrap().lines().count(), 101);
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 3);
}

#[test]
fn standard_output_that_ends() {
    let folder = Folder::with(&[("s.csv", &cloud(20_000))]);
    let shell = |line: &str| {
        let line = line.replace(
            "EVAL",
            &format!("{} eval --sources s.csv --tolerance 0.01 --device cpu", env!("CARGO_BIN_EXE_nbody")),
        );
        Command::new("bash").current_dir(folder.path("")).args(["-c", &line]).output().unwrap()
    };
    // A reader that has seen enough is no error; a full disk is.
    let out = shell("set -o pipefail; EVAL | head -1");
    assert_eq!((code(&out), stderr(&out)), (0, String::new()));
    let out = shell("EVAL > /dev/full");
    assert!(code(&out) == 74 && stderr(&out).contains("standard output"), "{}", stderr(&out));
}

#[test]
fn json_tells_everything() {
    let folder = Folder::with(&[("s.csv", &cloud(6000)), ("t.csv", &cloud(10))]);
    let json = |words: &str| -> (i32, Value, String) {
        let out = folder.eval(&format!("{words} --json --output o.csv"));
        (code(&out), serde_json::from_slice(&out.stdout).unwrap(), stderr(&out))
    };
    let (end, v, messages) =
        json("--sources s.csv --method fmm --order 9 --theta 0.7 --leaf-size 50 --threads 2 --check=200");
    assert_eq!((end, messages.as_str()), (0, ""));
    assert_eq!((&v["n_sources"], &v["n_targets"]), (&Value::from(6000), &Value::from(6000)));
    assert_eq!((&v["method"], &v["order"], &v["theta"]), (&"fmm".into(), &9.into(), &0.7.into()));
    assert_eq!((&v["leaf_size"], &v["precision"]), (&50.into(), &"f32".into()));
    assert_eq!((&v["device"], &v["threads"]), (&"cpu".into(), &2.into()));
    let seconds = |name: &str| v["seconds"][name].as_f64().unwrap_or_else(|| panic!("{name}: {v}"));
    let stages = ["tree", "lists", "P2M", "M2M", "M2L", "L2L", "L2P", "P2P"].map(seconds).iter().sum::<f64>();
    assert!(stages > 0.0 && stages <= seconds("evaluate"), "{v}");
    assert!(seconds("read") > 0.0 && seconds("write") > 0.0);
    let check = |name: &str| v["check"][name].as_f64().unwrap_or_else(|| panic!("{name}: {v}"));
    assert!(0.0 < check("median") && check("median") <= check("p99") && check("p99") <= check("max"));
    assert!(check("rms") < 1e-4 && check("l2") < 1e-4 && check("l2") > 0.0);
    // A target that is drawn several times is compared once.
    assert!((100.0..=200.0).contains(&check("sample")) && check("floored") == 0.0, "{v}");
    for (norm, interval) in [("rms", "rms_interval"), ("l2", "l2_interval")] {
        let [low, high] = [0, 1].map(|k| v["check"][interval][k].as_f64().unwrap());
        // A few draws that differ much leave no lower end.
        assert!(0.0 <= low && low < check(norm) && check(norm) < high && high < 2.0 * check(norm), "{v}");
    }
    assert_eq!((&v["check"]["kept"], &v["check"]["may_miss"]), (&true.into(), &false.into()));
    assert_eq!(rows(&fs::read_to_string(folder.path("o.csv")).unwrap()).1.len(), 6000);
    // What does not apply is null.
    let (_, v, _) = json("--sources s.csv --targets t.csv --method direct");
    assert_eq!(
        (&v["n_targets"], &v["order"], &v["theta"], &v["check"]),
        (&10.into(), &Value::Null, &Value::Null, &Value::Null)
    );
}

#[test]
fn the_check_finds_what_it_should() {
    let folder = Folder::with(&[("s.csv", &cloud(3000)), ("t.csv", &cloud(500))]);
    // The tolerance is kept, and stderr reports it in addition to the values.
    for softening in ["none", "plummer:0.1", "spline:0.1", "p1:0.1"] {
        for targets in ["", "--targets t.csv"] {
            let words = format!("--sources s.csv {targets} --softening {softening} --method direct --precision f64");
            let out = folder.eval(&format!("{words} --tolerance 1e-12 --check"));
            assert_eq!(code(&out), 0, "{words}: {}", stderr(&out));
            // Of 500 targets all are compared, and nothing is estimated.
            let message = stderr(&out);
            assert_eq!(message.contains("500 targets compared"), !targets.is_empty(), "{message}");
            assert_eq!(message.contains("95 % within"), targets.is_empty(), "{message}");
            assert!(stderr(&out).contains("kept") && out.stdout.len() > 500);
        }
    }
    // An order far too low for the tolerance: it is missed, a message says so, the exit code is 1,
    // and the values are written all the same.
    let low = "--sources s.csv --method fmm --tolerance 1e-8 --order 2 --check=100";
    let out = folder.eval(low);
    assert_eq!(code(&out), 1);
    assert!(stderr(&out).contains("the tolerance 1e-8 is missed: rms "), "{}", stderr(&out));
    assert_eq!(rows(&String::from_utf8(out.stdout).unwrap()).1.len(), 3000);
    let out = folder.eval(&format!("{low} --json --output o.csv"));
    let v: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(code(&out) == 1 && v["check"]["rms"].as_f64().unwrap() > 1e-8, "{v}");
}

#[test]
fn a_check_says_where_the_tolerance_is_within_the_interval() {
    let folder = Folder::with(&[("s.csv", &cloud(4000))]);
    let check = |tolerance: f64, more: &str| {
        folder.eval(&format!(
            "--sources s.csv --method fmm --precision f64 --order 4 --check=60 --output o.csv --tolerance {tolerance:e} {more}"
        ))
    };
    let json = |tolerance| -> Value { serde_json::from_slice(&check(tolerance, "--json").stdout).unwrap() };
    let first = json(1e-2);
    let number = |v: &Value| v.as_f64().unwrap();
    let norm = |v: &Value, name: &str| (number(&v["check"][name]), number(&v["check"][&format!("{name}_interval")][1]));
    let (estimate, high) =
        ["rms", "l2"].map(|name| norm(&first, name)).into_iter().fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
    assert!(estimate > 0.0 && high > 1.01 * estimate, "{first}");
    let within = 0.5 * (estimate + high);
    let out = check(within, "");
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let words = "kept by the estimate, but an interval reaches above it; a larger sample, --check=600, says more";
    assert!(stderr(&out).contains(words), "{}", stderr(&out));
    let v = json(within);
    assert_eq!((&v["check"]["kept"], &v["check"]["may_miss"]), (&true.into(), &true.into()), "{v}");
    let out = check(1.5 * high, "");
    assert!(stderr(&out).ends_with(" kept\n"), "{}", stderr(&out));
    assert_eq!(code(&check(0.9 * estimate, "")), 1);
}

#[test]
fn a_crystal_is_judged_by_its_largest_pair() {
    // Every ion of the inner lattice has a field that is zero but for rounding.
    let mut text = "x,y,z,q\n".to_string();
    for i in -6i32..=6 {
        for j in -6i32..=6 {
            for k in -6i32..=6 {
                text += &format!("{i},{j},{k},{}\n", if (i + j + k) % 2 == 0 { 1 } else { -1 });
            }
        }
    }
    let folder = Folder::with(&[("s.csv", &text), ("t.csv", "x,y,z\n0,0,0\n")]);
    let words = "--sources s.csv --targets t.csv --method direct --precision f64 --tolerance 1e-10 --check --json --output o.csv";
    let out = folder.eval(words);
    let v: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((code(&out), &v["check"]["floored"]), (0, &1.into()), "{v} {}", stderr(&out));
}
