//! Tables that would be misread or would hang the program: refused at once, or read with a warning.
#![cfg(unix)]

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::common::{Folder, code, outputs};

const CASE: &str = "[[particles]]\nmodel = 'file'\npath = 'p.csv'\n[time]\ndt = 0.01\nend = 0.01\n";
const POINTS: &str = "x,y,z,q\n0,0,0,1\n1,0,0,1\n";

/// The program under `timeout`: code 124 where it hangs.
fn limited(folder: &Folder, words: &str) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60", env!("CARGO_BIN_EXE_nbody")]).args(words.split_whitespace());
    command.current_dir(folder.path("")).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn named_pipes_and_devices_are_refused_at_once() {
    let folder = Folder::with(&[("e.csv", POINTS), ("case.toml", CASE)]);
    for ending in ["csv", "npy", "hdf", "tipsy"] {
        let name = format!("f.{ending}");
        assert!(Command::new("mkfifo").arg(folder.path(&name)).status().unwrap().success());
        let mut commands = vec![format!("info {name}"), format!("convert {name} out.hdf")];
        if ending != "tipsy" {
            commands.push(format!("eval --sources {name}"));
            commands.push(format!("eval --sources e.csv --targets {name}"));
        }
        if ["csv", "npy"].contains(&ending) {
            commands.push(format!("eval --sources e.csv --strengths {name}"));
        }
        if ending == "csv" {
            commands.push(format!("eval --sources e.csv --exclusions {name}"));
        }
        for command in commands {
            let output = limited(&folder, &command);
            assert!(code(&output) == 65 && outputs(&output).contains("is a pipe"), "{command}: {}", outputs(&output));
        }
        let output = limited(&folder, &format!("run case.toml --out a --set particles.0.path={name}"));
        assert!(code(&output) == 65 && outputs(&output).contains("is a pipe"), "{name}: {}", outputs(&output));
    }
    std::os::unix::fs::symlink("/dev/zero", folder.path("zero.csv")).unwrap();
    let output = limited(&folder, "run case.toml --out a --set particles.0.path=zero.csv");
    assert!(code(&output) == 65 && outputs(&output).contains("is a device"), "{}", outputs(&output));
}

#[test]
fn the_pipes_of_a_shell_are_read() {
    let folder = Folder::with(&[("e.csv", POINTS)]);
    let script = format!("cat e.csv | '{}' eval --sources /dev/stdin", env!("CARGO_BIN_EXE_nbody"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
    assert!(code(&output) == 0 && output.stdout == folder.eval("--sources e.csv").stdout, "{}", outputs(&output));
}

/// Each name of an attribute or an array was compared with all of them.
#[test]
fn many_attributes_and_arrays_take_linear_time() {
    let folder = Folder::with(&[("p.csv", "x,y,z,mass\n0,0,0,1\n1,0,0,1\n")]);
    for (name, attributes, arrays) in [("attributes.hdf", 4000, 0), ("arrays.hdf", 0, 8000)] {
        assert_eq!(code(&limited(&folder, &format!("convert p.csv {name}"))), 0);
        let file = hdf5::File::open_rw(folder.path(name)).unwrap();
        let header = file.group("Header").unwrap();
        for i in 0..attributes {
            header.new_attr::<f64>().create(format!("a{i}").as_str()).unwrap().write_scalar(&1.0).unwrap();
        }
        let group = file.create_group("more").unwrap();
        for i in 0..arrays {
            group.new_dataset::<u8>().shape(1).create(format!("d{i}").as_str()).unwrap().write(&[1u8]).unwrap();
        }
        // The file stays locked for as long as one of them is open.
        drop((header, group));
        file.close().unwrap();
        for command in ["info", "check"] {
            // Seconds of a processor, which other programs do not take.
            let limited = format!("ulimit -t 10; '{}' {command} {name}", env!("CARGO_BIN_EXE_nbody"));
            let output = Command::new("sh").args(["-c", &limited]).current_dir(folder.path("")).output().unwrap();
            assert_eq!(code(&output), 0, "{command} {name}: {}", outputs(&output));
        }
    }
}

#[test]
fn velocities_by_another_name_are_not_dropped() {
    let folder = Folder::with(&[("case.toml", CASE)]);
    let run = |names: &str| {
        fs::write(folder.path("p.csv"), format!("x,y,z,{names},mass\n0,0,0,1,0,0,1\n1,0,0,-1,0,0,1\n")).unwrap();
        folder.case(&["--out", "a", "--force"])
    };
    for (names, meant) in [
        ("v_x,v_y,v_z", "vx"),
        ("velx,vely,velz", "vx"),
        ("vel_x,vel_y,vel_z", "vx"),
        ("vel-x,vel-y,vel-z", "vx"),
        ("velocity_x,velocity_y,velocity_z", "vx"),
        ("vx_kms,vy_kms,vz_kms", "vx"),
        ("vx,v_y,vz", "vy"),
    ] {
        let output = run(names);
        assert!(
            code(&output) == 65 && outputs(&output).contains(&format!("did you mean {meant}?")),
            "{}",
            outputs(&output)
        );
    }
    // Names that nobody can guess are worth a warning.
    let warning = "no columns vx, vy, vz: its particles start at rest; not read: u, v, w";
    for more in [&[][..], &["--dry-run"]] {
        fs::write(folder.path("p.csv"), "x,y,z,u,v,w,mass\n0,0,0,1,0,0,1\n1,0,0,-1,0,0,1\n").unwrap();
        let output = folder.case(&[&["--out", "a", "--force"], more].concat());
        assert!(code(&output) == 0 && outputs(&output).matches(warning).count() == 1, "{}", outputs(&output));
    }
    fs::write(folder.path("p.csv"), "x,y,z,mass\n0,0,0,1\n1,0,0,1\n").unwrap();
    assert!(!outputs(&folder.case(&["--out", "a", "--force"])).contains("warning: p.csv"));
    assert!(!outputs(&run("vx,vy,vz")).contains("at rest"));
}

#[test]
fn units_in_comments_are_read_or_refused() {
    let case = format!("[units]\nsystem = 'galactic'\n{CASE}");
    let folder = Folder::with(&[("case.toml", &case)]);
    let table = "x,y,z,mass\n0,0,0,1\n1,0,0,1\n";
    let units = "# unit_length_cm = 3e21\n# unit_mass_g = 2e33\n# unit_velocity_cm_per_s = 1e5\n";
    let named = ["--set", "particles.0.units={length='pc'}"];
    for (text, says) in [
        (format!("{table}{units}"), "below the header"),
        (format!("# Unit_Length_in_cm = 3.08e18\n{table}"), "state them above the header as # unit_length_cm = "),
        (format!("#units: pc, km/s, Msun\n{table}"), "state them above the header as # unit_length_cm = "),
    ] {
        fs::write(folder.path("p.csv"), &text).unwrap();
        for output in [
            folder.case(&["--out", "a", "--force", "-q"]),
            folder.command(&["convert", "p.csv", "p.hdf", "--force"]).output().unwrap(),
            folder.command(&["info", "p.csv"]).output().unwrap(),
        ] {
            assert!(code(&output) == 65 && outputs(&output).contains(says), "{text}: {}", outputs(&output));
        }
        // With units in the scenario nothing is read in silence, unless the table states others.
        let output = folder.case(&[&["--out", "a", "--force", "-q"], &named[..]].concat());
        assert_eq!(code(&output), if says.starts_with("below") { 65 } else { 0 }, "{text}: {}", outputs(&output));
    }
}
