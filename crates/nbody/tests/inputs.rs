//! Tables as others write them: what is no file, and columns with other names.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Folder, code, stderr, told};

const RUN: &str = "[[particles]]\nmodel = \"file\"\npath = \"s.csv\"\n[time]\ndt = 0.01\nend = 0.01\n";

#[test]
fn pipes_are_refused_at_once() {
    let folder = Folder::with(&[("t.csv", "x,y,z,q\n0,0,0,1\n1,0,0,1\n")]);
    for name in ["p.csv", "p.npy"] {
        assert!(Command::new("mkfifo").arg(folder.path(name)).status().unwrap().success());
        let mut commands = vec![format!("info {name}"), format!("convert {name} o.csv --force")];
        // CSV may come from another program through a pipe, which waits for it.
        if name == "p.npy" {
            commands.extend(["--sources", "--sources t.csv --targets"].map(|o| format!("eval {o} {name}")));
        }
        for words in commands {
            let begun = Instant::now();
            let mut child = folder.command(&words.split(' ').collect::<Vec<_>>()).spawn().unwrap();
            while child.try_wait().unwrap().is_none() {
                if begun.elapsed() > Duration::from_secs(30) {
                    child.kill().unwrap();
                    panic!("{words} waits for a writer");
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            let status = child.wait().unwrap();
            assert!(status.code().is_some_and(|c| c == 65 || c == 2), "{words}: {status}");
        }
        let folder = Folder::new(&RUN.replace("s.csv", name));
        assert!(Command::new("mkfifo").arg(folder.path(name)).status().unwrap().success());
        let out = folder.case(&[]);
        assert!(code(&out) == 66 && stderr(&out).contains("not a regular file"), "{}", told(&out));
    }
}

#[test]
fn velocities_by_other_names_are_not_dropped() {
    for names in ["v_x,v_y,v_z", "velx,vely,velz", "vel_x,vel_y,vel_z", "Velocity-X,Velocity-Y,Velocity-Z"] {
        let folder = Folder::new(RUN);
        std::fs::write(folder.path("s.csv"), format!("x,y,z,{names},mass\n0,0,0,1,2,3,1\n1,0,0,4,5,6,1\n")).unwrap();
        let out = folder.case(&[]);
        assert!(code(&out) == 65 && stderr(&out).contains("did you mean vx"), "{names}: {}", told(&out));
    }
    // Next to columns that are read, others may be called anything.
    let folder = Folder::new(RUN);
    std::fs::write(folder.path("s.csv"), "x,y,z,vx,vy,vz,v_x,mass\n0,0,0,1,2,3,9,1\n1,0,0,4,5,6,9,1\n").unwrap();
    let out = folder.case(&[]);
    assert_eq!(code(&out), 0, "{}", told(&out));
}

#[test]
fn the_id_of_a_run_does_not_depend_on_its_folder() {
    let id = || {
        let folder = Folder::new(RUN);
        std::fs::write(folder.path("s.csv"), "x,y,z,mass\n0,0,0,1\n1,0,0,1\n").unwrap();
        folder.done(&["case.toml", "--out", "out", "-q"]);
        let text = std::fs::read_to_string(folder.path("out/diagnostics.csv")).unwrap();
        text.lines().next().unwrap().rsplit(',').next().unwrap().to_string()
    };
    let first = id();
    assert!(first.starts_with("run_") && first == id(), "{first}");
}
