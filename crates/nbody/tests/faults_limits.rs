//! Limits and walls: of file sizes, memory, outputs that nobody takes, folders that go away, scenarios that lead elsewhere.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::faults::missing;
use crate::common::{Folder, code, outputs, stderr};
use nbody::files::checkpoint;

const SMALL: &str = r#"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 300
[time]
dt = 0.01
end = 0.5
[output]
every = 0.1
diagnostics_every = 0.01
"#;

#[test]
fn the_limit_of_file_sizes_is_an_error_in_every_file() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "whole", "-q"]);
    // In blocks of 512 bytes: less than the scenario, the diagnostics, a snapshot, and more than all.
    for (blocks, words) in [(0, "write"), (8, "cannot write"), (40, "cannot write"), (1000, "")] {
        let _ = fs::remove_dir_all(folder.path("a"));
        let run = ["run", "case.toml", "--out", "a", "-q"];
        let output = folder.limited(&format!("ulimit -f {blocks}"), &run).output().unwrap();
        let expected = if words.is_empty() { 0 } else { 74 };
        assert_eq!(code(&output), expected, "{blocks} blocks: {}", outputs(&output));
        assert!(outputs(&output).contains(words), "{blocks} blocks: {}", outputs(&output));
        assert_eq!(crate::common::faults::temporaries(&folder.path("a")), [""; 0], "{blocks} blocks");
    }
    // A table that grows line by line comes to the limit in the middle of a run, which goes on from its checkpoint.
    let long = ["--until", "1", "--set", "output.every=1", "--set", "output.checkpoint_wall='1s'"];
    folder.done(&[&["case.toml", "--out", "w", "-q"][..], &long].concat());
    folder.done(&[&["case.toml", "--out", "b", "-q", "--steps", "20"][..], &long[2..]].concat());
    let output = folder.limited("ulimit -f 40", &["run", "--resume", "b", "-q", "--until", "1"]).output().unwrap();
    assert!(
        code(&output) == 74 && outputs(&output).contains("To go on from there:\nnbody run --resume b"),
        "{}",
        outputs(&output)
    );
    folder.done(&["--resume", "b", "-q", "--until", "1"]);
    assert_eq!(crate::common::faults::differing(&folder.path("w"), &folder.path("b")), [""; 0]);
}

#[test]
fn outputs_that_nobody_takes() {
    let folder = Folder::new(SMALL);
    fs::write(folder.path("p.csv"), "x,y,z,q\n0,0,0,1\n1,0,0,1\n").unwrap();
    folder.done(&["case.toml", "--out", "r", "-q"]);
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        command.current_dir(folder.path("")).args(["-c", line, env!("CARGO_BIN_EXE_nbody")]).output().unwrap()
    };
    // A full standard output is an error for every kind of output.
    let results = [
        "run case.toml --out a",
        "run case.toml --out b --json",
        "run case.toml --dry-run",
        "eval --sources p.csv",
        "info r",
        "check r --hash",
        "check r --json",
        "--version",
        "--help",
        "run --help",
        "man",
        "completions bash",
    ];
    for words in results {
        let output = shell(&format!("\"$0\" {words} >/dev/full"));
        let text = stderr(&output);
        assert!(code(&output) == 74 && text.contains("standard output"), "{words}: {} {text}", code(&output));
        // A reader that closes early is no error, and there is no message.
        let output = shell(&format!("\"$0\" {words} | true; exit ${{PIPESTATUS:-0}}"));
        assert!(!stderr(&output).contains("panicked") && !stderr(&output).contains("cannot"), "{}", outputs(&output));
    }
    // What nobody hears of is done all the same.
    for (i, target) in ["/dev/full", "&-"].into_iter().enumerate() {
        let output = shell(&format!("\"$0\" run case.toml --out c{i} -v 2>{target} >/dev/null"));
        assert_eq!(code(&output), 0, "stderr to {target}");
        assert_eq!(crate::common::faults::differing(&folder.path("r"), &folder.path(&format!("c{i}"))), [""; 0]);
        let output = shell(&format!("\"$0\" run absent.toml 2>{target}"));
        assert_eq!(code(&output), 66, "stderr to {target}");
        let output = shell(&format!("\"$0\" run --no-such-option 2>{target}"));
        assert_eq!(code(&output), 2, "stderr to {target}");
    }
    let closed = shell("\"$0\" run case.toml --out d >&- 2>&-");
    assert_eq!(code(&closed), 0, "both outputs closed");
}

#[test]
fn a_run_directory_that_goes_away_is_told() {
    let folder = Folder::new(SMALL);
    let arguments = ["case.toml", "--out", "a", "-q", "--until", "1000", "--set", "output.checkpoint_wall='1s'"];
    let mut child = folder.command(&["run"]).args(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !folder.path("a/snap_000001.hdf").is_file() {
        assert!(begun.elapsed().as_secs() < 60, "the run does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::rename(folder.path("a"), folder.path("elsewhere")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(74));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut text).unwrap();
    assert!(text.starts_with("nbody: a") && text.contains("cannot"), "{text}");
    // Missing and read-only places, before anything is computed.
    fs::write(folder.path("file"), "").unwrap();
    assert_eq!(code(&folder.case(&["--out", "file/a"])), 74);
    assert_eq!(code(&folder.case(&["--resume", "--out", "absent"])), 66);
    assert_eq!(code(&folder.case(&["--out", "/proc/nbody"])), 74);
    let elsewhere = folder.case(&["--resume", "a", "--out", "b"]);
    assert_eq!(code(&elsewhere), 2);
    assert!(outputs(&elsewhere).contains("--out b: a run goes on in its own directory, a"), "{}", outputs(&elsewhere));
}

#[test]
fn memory_that_is_limited_is_told_before_or_in_the_middle() {
    let folder = Folder::new(SMALL);
    // A million particles do not fit into the 400 MB that the process may have, which is known beforehand.
    for limit in ["ulimit -v 400000", "ulimit -d 400000"] {
        let run = ["run", "case.toml", "--out", "a", "-q", "--set", "particles.0.n=1e6", "--threads", "1"];
        let output = folder.limited(limit, &run).output().unwrap();
        assert_eq!(code(&output), 71, "{limit}: {}", outputs(&output));
        assert!(outputs(&output).contains("1000000 particles need"), "{}", outputs(&output));
        assert!(!folder.path("a").exists(), "{limit}");
    }
    // Nobody knows beforehand what a table holds: there memory ends in the middle.
    let table: String = (0..200_000).map(|i| format!("{i},0,0,1\n")).collect();
    fs::write(folder.path("p.csv"), format!("x,y,z,q\n{table}")).unwrap();
    let eval = ["eval", "--sources", "p.csv", "--output", "o.csv", "--tolerance", "1e-6", "--threads", "1"];
    let mut ends = vec![];
    for megabytes in [20, 30, 40, 60, 80] {
        let output = folder.limited(&format!("ulimit -d {}", 1024 * megabytes), &eval).output().unwrap();
        let text = outputs(&output);
        assert!(matches!(code(&output), 0 | 71), "{megabytes} MB: {} {text}", code(&output));
        assert!(code(&output) == 0 || text.contains("out of memory") || text.contains("cannot start"), "{text}");
        ends.push(code(&output));
    }
    assert!(ends.contains(&71), "{ends:?}");
}

#[test]
fn scenarios_write_where_they_are_run() {
    let outside = Folder::new("");
    let place = outside.path("x").display().to_string();
    let folder = Folder::new(SMALL);
    symlink(outside.path(""), folder.path("link")).unwrap();
    fs::create_dir(folder.path("deeper")).unwrap();
    for name in ["../x", "../../x", &place, "link/x", "deeper/../../x", ".."] {
        fs::write(folder.path("case.toml"), format!("{SMALL}directory = '{name}'\n")).unwrap();
        for more in [&[][..], &["--dry-run"], &["--resume"]] {
            let output = folder.case(more);
            let text = outputs(&output);
            assert!(code(&output) == 65, "{name} {more:?}: {} {text}", code(&output));
            assert!(text.contains(&format!("output.directory = \"{name}\"")) && text.contains("--out"), "{text}");
        }
    }
    assert_eq!(fs::read_dir(outside.path("")).unwrap().count(), 1, "nothing was written outside");
    // An explicit option allows it.
    folder.done(&["case.toml", "-q", "--out", "link/x"]);
    folder.done(&["case.toml", "-q", "--set", &format!("output.directory='{place}2'")]);
    folder.done(&["--resume", &place, "-q", "--until", "0.6"]);
    // Inside there is nothing to say.
    fs::write(folder.path("case.toml"), format!("{SMALL}directory = 'deeper/in/it'\n")).unwrap();
    folder.done(&["case.toml", "-q"]);
    assert!(folder.path("deeper/in/it/run.json").is_file());
}

/// A command on something hostile: refused with 65 within 256 MB and five seconds of processor time.
fn refused(folder: &Folder, arguments: &[&str]) -> String {
    // The slowest case takes 0.8 s; work that grows with the square of the size takes minutes. More time ends by a
    // signal.
    let output = folder.limited("ulimit -d 262144; ulimit -t 5", arguments).output().unwrap();
    let text = outputs(&output);
    assert_eq!(code(&output), 65, "{arguments:?}: {}", &text[..text.len().min(400)]);
    assert!(text.len() < 20_000, "{arguments:?}: {} bytes", text.len());
    text
}

#[test]
fn hostile_scenarios_are_refused_in_little_time_and_memory() {
    let folder = Folder::new(SMALL);
    let large: [(&str, Vec<u8>); 9] = [
        ("10 MB of keys", (0..700_000).flat_map(|i| format!("k{i} = {i}\n").into_bytes()).collect()),
        ("a megabyte of keys", (0..60_000).flat_map(|i| format!("key{i} = {i}\n").into_bytes()).collect()),
        ("a megabyte of tables", (0..60_000).flat_map(|i| format!("[[p{i}]]\n").into_bytes()).collect()),
        ("nested lists", format!("a = {}", "[".repeat(1_000_000)).into_bytes()),
        ("nested tables", format!("a = {}", "{b = ".repeat(200_000)).into_bytes()),
        ("nested names", format!("[{}a]\n", "a.".repeat(200_000)).into_bytes()),
        ("a long text", format!("title = \"{}", "x".repeat(1_000_000)).into_bytes()),
        ("a long number", format!("a = {}", "9".repeat(1_000_000)).into_bytes()),
        ("no text", b"title = \"\xff\xfe\"\n".to_vec()),
    ];
    for (name, bytes) in large {
        fs::write(folder.path("case.toml"), bytes).unwrap();
        let text = refused(&folder, &["run", "case.toml"]);
        println!("{name}: {}", text.lines().next().unwrap_or_default());
    }
    fs::write(folder.path("case.toml"), SMALL).unwrap();
    for n in ["2147483649", "4294967295", "4294967297", "9223372036854775807", "9223372036854775808", "-1", "0"] {
        let output = folder.case(&["--out", "a", "--set", &format!("particles.0.n={n}")]);
        assert!(matches!(code(&output), 65 | 71), "{n}: {} {}", code(&output), outputs(&output));
        assert!(outputs(&output).contains(n) && !folder.path("a").exists(), "{n}: {}", outputs(&output));
    }
}

#[test]
fn hostile_files_are_refused_in_little_time_and_memory() {
    let folder = Folder::new(SMALL);
    // Made by h5py, for readers_bad.rs.
    let Some(mut python) = crate::common::python(".venv", "bad_snapshots.py") else {
        return missing("h5py, which makes hostile HDF5 files");
    };
    assert!(python.arg(folder.path("")).status().unwrap().success());
    for name in ["huge", "bomb", "never_filled", "external_storage", "external_link", "soft_link", "virtual", "lzf"] {
        let file = format!("{name}.hdf5");
        for command in ["check", "info", "convert", "run"] {
            let set = format!("particles=[{{model='file',path='{file}'}}]");
            let arguments: &[&str] = match command {
                "convert" => &["convert", &file, "o.csv"],
                "run" => &["run", "case.toml", "--out", "a", "--set", &set],
                _ => &[command, &file],
            };
            let text = refused(&folder, arguments);
            assert!(text.contains(&file), "{name}: {text}");
            assert!(!folder.path("o.csv").exists() && !folder.path("a").exists());
        }
    }
}

#[test]
fn hostile_tables_are_refused_in_little_time_and_memory() {
    let folder = Folder::new(SMALL);
    let npy = |header: &str, data: usize| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        [bytes, header.as_bytes().to_vec(), vec![0; data]].concat()
    };
    let array = |shape: &str| npy(&format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"), 64);
    let files: [(&str, Vec<u8>); 8] = [
        ("huge.npy", array("(2305843009213693951, 3)")),
        ("overflow.npy", array("(9223372036854775807, 9223372036854775807)")),
        ("negative.npy", array("(-1, 3)")),
        ("long.npy", npy(&"(".repeat(60_000), 0)),
        ("line.csv", [b"x,y,z,q\n".to_vec(), vec![b'1'; 10_000_000]].concat()),
        ("columns.csv", [b"x,y,z,q".to_vec(), b",a".repeat(1_000_000), b"\n1\n".to_vec()].concat()),
        ("quotes.csv", [b"x,y,z,q\n".to_vec(), b"\"".repeat(1_000_001)].concat()),
        ("zeros.csv", vec![0; 1_000_000]),
    ];
    for (name, bytes) in files {
        fs::write(folder.path(name), bytes).unwrap();
        let text = refused(&folder, &["eval", "--sources", name, "--output", "o.csv"]);
        assert!(text.contains(name), "{name}: {text}");
        println!("{name}: {}", text.lines().next().unwrap_or_default());
    }
}

#[test]
fn a_later_state_is_the_newest_though_its_steps_are_fewer() {
    // --force allows a longer step; the numbers of steps then fall.
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "a", "-q", "--until", "0.2"]);
    folder.done(&[
        "case.toml",
        "--resume",
        "--out",
        "a",
        "-q",
        "--until",
        "0.4",
        "--force",
        "--set",
        "time.dt=0.05",
        "--set",
        "output.diagnostics_every=0.05",
    ]);
    let found = checkpoint::latest(&folder.path("a")).unwrap().unwrap().checkpoint;
    assert_eq!((found.step, found.time), (8, 0.4));
    let output = folder.command(&["check", "a"]).output().unwrap();
    assert!(outputs(&output).contains("at step 8, time 0.4"), "{}", outputs(&output));
    // The newest is now the other file of the two.
    folder.done(&["--resume", "a", "-q", "--until", "0.5"]);
    let output = folder.command(&["check", "a"]).output().unwrap();
    assert!(outputs(&output).contains("from checkpoint.1.hdf at step 10, time 0.5"), "{}", outputs(&output));
}

/// What a shell without arrays would not tell.
#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "r", "-q"]);
    for words in [&["check", "r", "--hash"][..], &["run", "case.toml", "--out", "s", "--json"], &["--help"]] {
        let mut child = folder.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(code(&output) == 0 && output.stderr.is_empty(), "{words:?}: {} {}", code(&output), outputs(&output));
    }
}
