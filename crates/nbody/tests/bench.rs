//! `nbody bench` from end to end at toy size: every suite, its records and figures, interruption and refusals.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nbody"));
    command.current_dir(folder).args(arguments);
    command
}

fn messages(output: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("panicked"), "{text}");
    text
}

fn ok(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", messages(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn fails(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = command(folder, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", messages(&output));
    messages(&output)
}

fn records(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn cases(records: &[Value]) -> Vec<String> {
    records.iter().map(|r| r["case"].as_str().unwrap().to_string()).collect()
}

/// A preset of few and small cases for each suite.
const TOY: &str = "n = 3000\nsmallest = 500\ntolerances = [1e-3]\nsets = [\"uniform\", \"plummer\"]\norders = [2, 5]\n\
                   thetas = [0.866, 0.5]\nleaves = [20, 100]\nthreads = [1, 2]\nsamples = 2\nbudget = 0.05\n";

/// Whether a conclusion is drawn, or refused because other tests keep the machine busy or times scatter.
fn concludes(text: &str, sentence: &str) -> bool {
    let refused = ["Warning: other programs kept up to", "overlap: which is faster is not known"];
    text.contains(sentence) || refused.iter().any(|r| text.contains(r))
}

/// Suite, number of records, figures, words that each figure holds, words of the summary.
type Suite = (&'static str, usize, &'static [&'static str], &'static [&'static str], &'static str);

/// Runs each suite at toy size with `more` options, the last of which names the folder of its results.
fn each_measures(folder: &tempfile::TempDir, suites: &[Suite], more: &[&str]) {
    for &(suite, count, figures, words, sentence) in suites {
        let arguments = ["bench", suite, "--device", "cpu", "--config", "toy.toml", "--csv", "--quiet"];
        let text = ok(folder.path(), &[&arguments[..], more].concat());
        assert!(concludes(&text, sentence) && text.contains("| ---"), "{suite}: {text}");
        let out = |name: String| folder.path().join(more[more.len() - 1]).join(name);
        let records = records(&out(format!("{suite}.jsonl")));
        assert_eq!(records.len(), count, "{suite}: {:?}", cases(&records));
        for record in &records {
            assert!(record["commit"].is_string() || record["version"].is_string(), "{record}");
            assert!(record["seconds"].as_f64().unwrap() > 0.0 && record["simd"].is_string(), "{record}");
            let measured = record["rms"].is_f64() && record["l2"].is_f64() && record["sample"].is_u64();
            assert!(measured || record["fraction"].is_f64(), "{record}");
            assert!(!record.as_object().unwrap().values().any(|v| v.is_object() || v.is_array()), "{record}");
        }
        let csv = fs::read_to_string(out(format!("{suite}.csv"))).unwrap();
        assert_eq!(csv.lines().count(), count + 1);
        for name in figures {
            let svg = fs::read_to_string(out(format!("{name}.svg"))).unwrap();
            for word in words {
                assert!(svg.contains(word), "{name} lacks {word}");
            }
            assert!(svg.contains("nbody 0"), "{name}: no machine in the caption");
            let png = fs::read(out(format!("{name}.png"))).unwrap();
            assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 15_000, "{name}: {}", png.len());
        }
    }
}

#[test]
fn every_suite_measures_and_draws_its_series() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("toy.toml"), TOY).unwrap();
    let suites: [Suite; 10] = [
        (
            "crossover",
            24,
            &["crossover-uniform-1e-3", "crossover-plummer-1e-3"],
            &["direct on cpu", "treecode on cpu", "fmm on cpu", "particles N"],
            "at N = 3000 fmm on cpu",
        ),
        ("stages", 2, &["stages-uniform", "stages-plummer"], &["P2P", "M2L", "others", "0.001"], "of which"),
        (
            "operators",
            62,
            &["operators-f32", "operators-f64"],
            &["M2L by rotations, p = 5", "M2L by matrices, p = 2", "P2P", "multiply-adds alone", " %"],
            "nearest to the peak is",
        ),
        (
            "accuracy",
            8,
            &["accuracy-uniform", "accuracy-plummer"],
            &["θ = 0.866", "θ = 0.500", "order p"],
            "smallest error",
        ),
        ("leafsize", 6, &["leafsize-uniform"], &["chosen at cpu", "most particles in a leaf", "0.001"], "leaves of"),
        (
            "distributions",
            8,
            &["distributions-1e-3"],
            &["uniform, cpu", "plummer, cpu"],
            "times the time of the uniform set",
        ),
        ("threads", 4, &["threads"], &["uniform, 0.001", "plummer, 0.001, ideal", "threads"], "2 threads are"),
        (
            "m2l2d",
            32,
            &["m2l2d-p2", "m2l2d-p5-f32"],
            &["M2L, p = ", "cpu, 1 thread", "cpu, 2 threads"],
            "translations a second",
        ),
        (
            "gauss",
            48,
            &["gauss-hermite-p2", "gauss-hermite-p5-f32", "gauss-taylor-p5"],
            &["series, p = ", "evaluations a second"],
            "points a second",
        ),
        ("tune", 42, &[], &[], "[errors]"),
    ];
    each_measures(&folder, &suites, &["--out", "out"]);
    // The same in the plane, and what there is there alone.
    let suites: [Suite; 5] = [
        ("crossover", 16, &["crossover-uniform-1e-3"], &["direct on cpu", "fmm on cpu"], "at N = 3000 fmm on cpu"),
        ("stages", 2, &["stages-uniform"], &["P2P", "M2L", "others"], "of which"),
        ("leafsize", 6, &["leafsize-uniform"], &["chosen at cpu", "0.001"], "leaves of"),
        (
            "distributions",
            8,
            &["distributions-1e-3"],
            &["uniform, cpu", "plummer, cpu"],
            "times the time of the uniform set",
        ),
        (
            "shifts",
            8,
            &["shifts-uniform-cpu", "shifts-uniform-sum"],
            &["harmonic, cpu", "order p"],
            "M2L is at its best at p = ",
        ),
    ];
    fs::write(folder.path().join("toy.toml"), TOY.replace("0.866", "0.8")).unwrap();
    each_measures(&folder, &suites, &["--kernel", "harmonic", "--out", "flat"]);
    for record in records(&folder.path().join("flat/shifts.jsonl")) {
        let value = |name: &str| record[name].as_f64().unwrap();
        assert!(value("m2l_ns") > 1.0 && value("m2m_ns") > 1.0 && value("m2l_shifts") > 100.0, "{record}");
        assert!(record["kernel"] == "harmonic" && value("l2") < 0.1, "{record}");
    }
    let table = fs::read_to_string(folder.path().join("out/m2l2d-table.md")).unwrap();
    assert!(table.matches("| p | number | 1 cores, a second | 2 cores, a second |").count() == 2, "{table}");
    assert!(table.contains("\nM2L, f32\n") && table.contains("\nM2L, f64\n"), "{table}");
    let curves = fs::read_to_string(folder.path().join("out/operators-curves-cpu.svg")).unwrap();
    assert!(["P2P", "M2P", "M2L", "GFLOP/s", "particles N"].iter().all(|w| curves.contains(w)), "{curves}");
    // Drawn again from the records alone: the same picture.
    let first = fs::read(folder.path().join("out/threads.svg")).unwrap();
    ok(folder.path(), &["plot", "out/threads.jsonl", "--out", "again"]);
    assert!(fs::read(folder.path().join("again/threads.svg")).unwrap() == first);
    let constants: toml::Table = fs::read_to_string(folder.path().join("out/constants.toml")).unwrap().parse().unwrap();
    assert!(constants["f64"]["pair"].is_float() && constants["errors"]["clustered"].as_array().unwrap().len() == 2);
}

#[test]
fn papers_are_compared_on_one_page_and_in_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "papers", "--device", "cpu", "--out", "papers", "--quiet"];
    let text = ok(folder.path(), &arguments);
    assert!(text.contains("need a GPU and were not run"), "{text}");
    let out = folder.path().join("papers");
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    let mut figures = 0;
    for source in page.split("<img src=\"").skip(1) {
        let path = source.split('"').next().unwrap();
        assert!(fs::read_to_string(out.join(path)).unwrap().contains("nbody 0"), "{path}");
        figures += 1;
    }
    for figure in [
        "yokota-stages/stages-uniform",
        "goude-mesh/mesh-normal-sigma0.1-256",
        "goude-mesh/mesh-normal-sigma0.1-256-density",
        "goude-points-in-a-box/leafsize-uniform-relative",
        "goude-order/shifts-uniform-cpu",
        "goude-best-box/shifts-uniform-best",
        "goude-width/distributions-1e-6-sigma",
    ] {
        assert!(page.contains(&format!("<img src=\"{figure}.svg\"")), "{figure}");
    }
    assert!(figures >= 5 && page.contains("needs a GPU: not run"), "{figures} figures");
    let table = fs::read_to_string(out.join("papers.csv")).unwrap();
    let rows = table.lines().count() - 1;
    assert!(rows == page.matches("<tr><td>").count() && table.contains(",measured,"), "{rows}");
    // What the records lack would be a mistake in the data of the papers.
    assert!(!table.contains("not found"), "{table}");
    // A single run is repeated with its preset, and with --resume nothing is measured again.
    let preset = fs::read_to_string(out.join("yokota-stages/preset.toml")).unwrap();
    assert!(preset.parse::<toml::Table>().unwrap()["n"].as_float() == Some(2e4), "{preset}");
    let before = fs::read(out.join("yokota-stages/stages.jsonl")).unwrap();
    assert!(fails(folder.path(), &arguments, 74).contains("--resume"));
    ok(folder.path(), &[&arguments[..], &["--resume"]].concat());
    assert_eq!(fs::read(out.join("yokota-stages/stages.jsonl")).unwrap(), before);
    // Sizes do not mix.
    let text = fails(folder.path(), &[&arguments[..], &["--resume", "--size", "full"]].concat(), 65);
    assert!(text.contains("another --size") && text.contains("--force"), "{text}");
}

#[test]
fn the_largest_error_is_kept_or_named_where_a_preset_asks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let preset = "kernel = \"harmonic\"\nn = 3000\nsmallest = 3000\nsets = [\"normal\"]\nsamples = 1\nbudget = 0\n\
                  norm = \"max\"\ntolerances = [1e-6, 2e-14]\n";
    fs::write(folder.path().join("toy.toml"), preset).unwrap();
    let text = ok(
        folder.path(),
        &["bench", "distributions", "--config", "toy.toml", "--device", "cpu", "--quiet", "--out", "out"],
    );
    let records = records(&folder.path().join("out/distributions.jsonl"));
    let max = |r: &Value| r["max"].as_f64().unwrap();
    assert!(records.len() == 2 && records.iter().all(|r| r["norm"] == "max"), "{records:?}");
    assert!(records[0]["kept"] == true && max(&records[0]) <= 1e-6, "{}", records[0]);
    assert!(records[1]["kept"] == false && max(&records[1]) > 2e-14, "{}", records[1]);
    assert!(text.contains("norm max") && text.matches(" not kept)").count() == 1, "{text}");
    let svg = fs::read_to_string(folder.path().join("out/distributions-1e-6.svg")).unwrap();
    assert!(svg.contains("largest relative force error at most 1e-6"), "{svg}");
    fs::write(folder.path().join("bad.toml"), preset.replace("max", "l1")).unwrap();
    let text = fails(folder.path(), &["bench", "distributions", "--config", "bad.toml"], 65);
    assert!(text.contains("bad.toml: norm = \"l1\" is not allowed; allowed: rms, max"), "{text}");
}

#[test]
fn boxes_of_the_plane_are_counted_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let text = ok(folder.path(), &["bench", "mesh", "--set", "uniform", "--out", "out", "--quiet"]);
    assert!(text.contains("uniform, 256 boxes: one box has M2L with"), "{text}");
    let records = records(&folder.path().join("out/mesh.jsonl"));
    assert_eq!(cases(&records), ["uniform/n11520/4levels"]);
    let count = |name: &str| records[0][name].as_u64().unwrap();
    // The box itself is the only one without an operator; the neighbors are among the direct ones.
    assert_eq!(["m2l", "direct", "swapped", "coarser"].map(count).iter().sum::<u64>(), 255, "{}", records[0]);
    assert!((8..40).contains(&count("direct")) && count("m2l") > 20, "{}", records[0]);
    for (end, words) in
        [("", ["the box", "direct", "M2L"]), ("-density", ["1 / area of the box", "256 boxes", "nbody 0"])]
    {
        let svg = fs::read_to_string(folder.path().join(format!("out/mesh-uniform-256{end}.svg"))).unwrap();
        assert!(words.iter().all(|w| svg.contains(w)), "{svg}");
        // The page, the rectangles and their outlines.
        assert!(svg.matches("<rect").count() > 256, "{}", svg.matches("<rect").count());
    }
    fails(folder.path(), &["bench", "mesh", "--kernel", "laplace"], 2);
    fails(folder.path(), &["bench", "mesh", "--device", "cuda"], 2);
}

#[test]
fn the_poisson_solver_is_measured_beside_a_convolution() {
    let folder = tempfile::tempdir().unwrap();
    let preset = "n = 64\nsmallest = 32\ntolerances = [1e-3]\nsets = [\"uniform\"]\norders = [4]\nthetas = [0.5, 0.8]\n\
                  leaves = [256]\nsamples = 1\nbudget = 0.05\n";
    fs::write(folder.path().join("toy.toml"), preset).unwrap();
    let place = ["--device", "cpu", "--threads", "2"];
    let arguments = [&["bench", "poisson", "--config", "toy.toml", "--quiet", "--out", "out"][..], &place].concat();
    let text = ok(folder.path(), &arguments);
    for words in ["vector instructions that", "Hockney's convolution", "leaves of 256: 2 threads are"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let records = records(&folder.path().join("out/poisson.jsonl"));
    assert_eq!(records.len(), 10, "{:?}", cases(&records));
    // The flow goes on from case to case, and its wake grows.
    let flow: Vec<&Value> = records.iter().filter(|r| r["method"] == "sphere").collect();
    assert_eq!(flow.iter().map(|r| r["step"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 6, 9, 12]);
    assert!(flow.iter().all(|r| r["rate"].as_f64() > Some(1e6) && r["sums"].as_u64() >= Some(3)), "{flow:?}");
    assert!(flow[3]["pairs"].as_f64() > flow[0]["pairs"].as_f64(), "{flow:?}");
    let of = |method: &str, n: u64| {
        records.iter().find(|r| r["method"] == method && r["n"] == n).unwrap_or_else(|| panic!("{method} {n}"))
    };
    let value = |r: &Value, name: &str| r[name].as_f64().unwrap();
    for n in [32, 64] {
        let (tree, rival) = (of("treecode", n), of("hockney", n));
        // Both have the error of the kernel, and u of the rival that of its differences as well.
        let ratio = value(tree, "psi_error") / value(rival, "psi_error");
        assert!((0.97..1.03).contains(&ratio), "{ratio}");
        assert!(value(tree, "u_error") > 0.1 && value(rival, "u_error") > 0.1);
        for name in ["fraction_direct", "fraction_indirect"] {
            assert!((0.0..1.5).contains(&value(tree, name)) || n == 32, "{tree}");
        }
        assert!(value(tree, "bytes") > 1e6 && value(rival, "bytes") > 1e6);
    }
    for name in ["poisson-stages", "poisson-theta", "poisson-rival", "poisson-threads", "poisson-flow"] {
        assert!(fs::read_to_string(folder.path().join(format!("out/{name}.svg"))).unwrap().contains("nbody 0"));
    }
    for (arguments, exit) in [(&["--n", "100"][..], 2), (&["--device", "cuda:99"], 69)] {
        fails(
            folder.path(),
            &[&["bench", "poisson", "--config", "toy.toml", "--out", "other"], arguments].concat(),
            exit,
        );
    }
}

#[test]
fn long_direct_sums_are_extrapolated_and_drawn_dashed() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "--n", "20k", "--device", "cpu", "--budget", "1e-6", "--smallest", "1e3", "--quiet"];
    ok(folder.path(), &arguments);
    let records = records(&folder.path().join("out/bench/crossover.jsonl"));
    let guessed: Vec<&Value> = records.iter().filter(|r| r["extrapolated"] == true).collect();
    assert!(!guessed.is_empty() && guessed.iter().all(|r| r["extrapolated_from"] == 1000 && r["method"] != "fmm"));
    let svg = fs::read_to_string(folder.path().join("out/bench/crossover-uniform-1e-3.svg")).unwrap();
    assert!(svg.contains("direct on cpu") && svg.contains("extrapolated"));
}

#[test]
fn killed_and_resumed_gives_every_record_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("toy.toml"), TOY.replace("n = 3000", "n = 20000").replace("0.05", "0.2")).unwrap();
    let arguments = ["bench", "--device", "cpu", "--config", "toy.toml", "--out", "a", "--quiet"];
    let path = folder.path().join("a/crossover.jsonl");
    let mut child = command(folder.path(), &arguments).spawn().unwrap();
    let begun = Instant::now();
    while fs::read_to_string(&path).map_or(0, |t| t.lines().count()) < 4 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no records");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // As if it had died in the middle of a line.
    let mut text = fs::read_to_string(&path).unwrap();
    let whole = text.matches('\n').count();
    text.push_str("{\"suite\": \"crosso");
    fs::write(&path, &text).unwrap();
    let before: Vec<Value> = text.lines().take(whole).map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(fails(folder.path(), &arguments, 74).contains("--resume"));
    ok(folder.path(), &[&arguments[..], &["--resume"]].concat());
    let resumed = records(&path);
    assert_eq!(resumed[..before.len()], before, "what was there has changed");
    ok(folder.path(), &["bench", "--device", "cpu", "--config", "toy.toml", "--out", "b", "--quiet"]);
    let straight = records(&folder.path().join("b/crossover.jsonl"));
    assert_eq!(cases(&resumed), cases(&straight));
    let mut once = cases(&resumed);
    once.sort();
    once.dedup();
    assert_eq!(once.len(), resumed.len());
    // Errors depend on no clock.
    for (a, b) in
        resumed.iter().zip(&straight).filter(|(a, b)| a["extrapolated"].is_null() && b["extrapolated"].is_null())
    {
        assert_eq!((&a["rms"], &a["order"]), (&b["rms"], &b["order"]), "{}", a["case"]);
    }
    // Nothing is left to do: nothing changes.
    let done = fs::read(&path).unwrap();
    ok(folder.path(), &[&arguments[..], &["--resume"]].concat());
    assert_eq!(fs::read(&path).unwrap(), done);
    // Records of another machine do not mix with ours.
    let other = String::from_utf8(done).unwrap().replacen("\"cores\":", "\"cores\":9", 1);
    fs::write(&path, other).unwrap();
    let text = fails(folder.path(), &[&arguments[..], &["--resume"]].concat(), 65);
    assert!(text.contains("cores = 9") && text.contains("--force"), "{text}");
}

#[test]
fn ctrl_c_keeps_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "leafsize", "--n", "20000", "--samples", "1000", "--budget", "2", "--device", "cpu"];
    let child = command(folder.path(), &arguments).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let path = folder.path().join("out/bench/leafsize.jsonl");
    let begun = Instant::now();
    while fs::metadata(&path).map_or(0, |m| m.len()) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no records");
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = messages(&output);
    assert_eq!(output.status.code(), Some(75), "{text}");
    assert!(text.contains("--resume") && text.contains("nbody plot"), "{text}");
    assert!(!records(&path).is_empty());
    ok(folder.path(), &["plot", "out/bench/leafsize.jsonl"]);
    assert!(folder.path().join("out/bench/leafsize-uniform.png").exists());
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bad = |text: &str| fs::write(folder.path().join("bad.toml"), text).unwrap();
    for (arguments, code, words) in [
        (&["--n", "1.5"][..], 2, "--n"),
        (&["--n", "ten"], 2, "not a number"),
        (&["--n", "1"], 2, "n = 1 is not allowed; allowed: a whole number from 2 to 4e9"),
        (&["--n", "5e9"], 2, "n = 5000000000 is not allowed"),
        (&["--tolerance", "0.5"], 2, "outside 1e-14 to 0.1"),
        (&["--samples", "0"], 2, "samples = 0 is not allowed; allowed: a whole number from 1 to 1000"),
        (&["--budget", "-1"], 2, "budget = -1 is not allowed; allowed: 0 to 86400 seconds"),
        (&["--threads", "0"], 2, "1..=1024"),
        (&["--set", "cube"], 2, "possible values"),
        (&["--device", "gpu"], 2, "allowed: auto, cpu, cuda"),
        (&["threads", "--device", "cuda"], 2, "the CPU alone"),
        (&["threads", "--kernel", "log"], 2, "of 1/r alone"),
        (&["--kernel", "vortex"], 2, "possible values: laplace, log, harmonic"),
        (&["shifts", "--kernel", "laplace"], 2, "kernels log and harmonic"),
        (&["--device", "cuda:99"], 69, "cuda:99"),
        (&["m2l", "--n", "1000", "--device", "cpu"], 65, "n counts translations"),
        (&["nothing"], 2, "nothing"),
        (&["--config", "missing.toml"], 66, "missing.toml"),
        (&["--config", "bad.toml"], 65, "bad.toml: orders = 99 is not allowed; allowed: whole numbers from 1 to 30"),
    ] {
        bad(&TOY.replace("[2, 5]", "[99]"));
        let text = fails(folder.path(), &[&["bench"], arguments].concat(), code);
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
    fails(folder.path(), &["plot", "missing.jsonl"], 66);
    fs::write(folder.path().join("a.jsonl"), "{}\n").unwrap();
    assert!(fails(folder.path(), &["plot", "a.jsonl"], 65).contains("line 1"));
    fs::write(folder.path().join("a.jsonl"), "").unwrap();
    assert!(fails(folder.path(), &["plot", "a.jsonl"], 66).contains("nothing to plot"));
}

#[test]
fn the_help_of_each_suite_names_its_figure() {
    let folder = tempfile::tempdir().unwrap();
    for (suite, figure) in [
        ("crossover", "Yokota & Barba, Fig. 5"),
        ("stages", "Yokota & Barba, Fig. 6"),
        ("operators", "Yokota & Barba, Fig. 7"),
        ("leafsize", "Goude & Engblom, Fig. 3"),
        ("distributions", "Goude & Engblom, Fig. 9"),
        ("shifts", "Goude & Engblom, Fig. 4"),
        ("m2l", "Kohnke et al., Figs. 15, 16"),
        ("mesh", "Goude & Engblom, Fig. 1"),
        ("papers", "five papers"),
        ("poisson", "van Rees et al., Figs. 3 to 5"),
    ] {
        let text = ok(folder.path(), &["bench", suite, "--help"]);
        // Lines are broken between words.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(figure), "{suite}: {text}");
    }
}

/// A Python in whose place a script says what a rival would: one that is absent, and one that sums exactly.
#[test]
fn rivals_are_compared_at_their_own_error_or_named_as_absent() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_nbody");
    // $4 is the rival, $5 its points, $8 where its field goes. The field is that of a coarse sum.
    let script = format!(
        "#!/bin/sh\n[ \"$4\" = FMM3D ] || exit 69\nexec python3 - \"$5\" \"$8-0\" {program} <<'END'\n\
         import struct, subprocess, sys, json\n\
         raw = open(sys.argv[1], 'rb').read()\nn = len(raw) // 24\nx = struct.unpack('<%dd' % (3 * n), raw)\n\
         rows = ['x,y,z,q'] + ['%r,%r,%r,%r' % (*x[3 * i:3 * i + 3], 1 / n) for i in range(n)]\n\
         open('s.csv', 'w').write('\\n'.join(rows) + '\\n')\n\
         out = subprocess.run([sys.argv[3], 'eval', '--sources', 's.csv', '--tolerance', '1e-3', '--method', 'fmm'], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()\n\
         names = out[0].split(',')\nat = [names.index(c) for c in ('ex', 'ey', 'ez')]\n\
         field = [-float(row.split(',')[k]) for row in out[1:] for k in at]\n\
         open(sys.argv[2], 'wb').write(struct.pack('<%dd' % len(field), *field))\n\
         print(json.dumps({{'setting': 0, 'version': '9.9', 'seconds': [1e3, 3e3, 2e3]}}))\nEND\n"
    );
    let python = folder.path().join("python");
    fs::write(&python, script).unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("toy.toml"), TOY.replace("smallest = 500", "smallest = 3000")).unwrap();
    let text = ok(folder.path(), &["bench", "peers", "--config", "toy.toml", "--python", "./python", "--quiet"]);
    assert!(concludes(&text, "REBOUND is absent") && concludes(&text, "the nearest rival is FMM3D"), "{text}");
    let records = records(&folder.path().join("out/bench/peers.jsonl"));
    let present: Vec<&Value> = records.iter().filter(|r| r["absent"].is_null()).collect();
    assert_eq!((present.len(), records.len()), (8, 18));
    for record in present {
        let value = |name: &str| record[name].as_f64().unwrap();
        assert!(value("rms") <= value("rival_rms") && value("l2") <= value("rival_l2"), "{record}");
        assert!(value("rival_rms") > 1e-6 && value("rival_rms") < 2e-3, "{record}");
        assert_eq!((value("rival_seconds"), value("rival_seconds_high")), (2e3, 3e3));
        assert!((value("ratio") - 2e3 / value("seconds")).abs() < 1e-9 * value("ratio"));
    }
    let svg = fs::read_to_string(folder.path().join("out/bench/peers-plummer-3000.svg")).unwrap();
    assert!(svg.contains("FMM3D 1T") && svg.contains("nbody 1T"));
    // A Python that is not there.
    let arguments = ["bench", "peers", "--config", "toy.toml", "--python", "./snake", "--out", "b", "--quiet"];
    assert!(fails(folder.path(), &arguments, 69).contains("--python"));
}
