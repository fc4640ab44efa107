//! Flows past bodies through the program: forces in `diagnostics.csv`, resumed to the same bits, and what is refused.
#![cfg(unix)]

use std::fs;

use crate::common::{Folder, code, column, gpu, json, outputs};
use nbody::files::checkpoint::{self, State};

const SPHERE: &str = r#"
title = "sphere"
[grid]
corner = [-1.25, -1.5, -1.5]
side = 3.0
n = 48
[flow]
inflow = [1, 0, 0]
ramp = 0.08
[[bodies]]
shape = "sphere"
center = [0, 0, 0]
radius = 0.25
[[bodies]]
shape = "box"
center = [0.1, 0, 0.45]
sides = [0.3, 0.3, 0.3]
rotation = [0, 0, 20]
spin = [0, 0, 2]
[solver]
order = 3
theta = 0.7
device = "cpu"
[time]
integrator = "rk2"
remeshing = "m6"
viscosity = 0.005
dt = "auto"
end = 0.12
[output]
directory = "out"
fields = ["vorticity", "velocity"]
every = 0.04
diagnostics_every = 0.04
"#;

#[test]
fn forces_on_bodies_are_columns_and_resumed_ones_have_the_same_bits() {
    let folder = Folder::new(SPHERE);
    folder.done(&["case.toml", "--out", "whole", "--threads", "2", "-q"]);
    let whole = folder.path("whole");
    let force = |name: &str| column(&whole, name);
    let (drag, impulse) = (force("force_x"), force("impulse_force_x"));
    // While the stream grows, and after.
    assert!(drag.len() == 4 && drag[0] == 0.0 && drag[2] > drag[3] && drag[3] > 0.1, "{drag:?}");
    assert!(drag.iter().zip(&impulse).all(|(a, b)| (a - b).abs() <= 0.05 * a.abs() + 1e-3), "{drag:?} {impulse:?}");
    // The parts are the whole, and the box that turns feels it.
    let parts: Vec<f64> = force("body0_force_x").iter().zip(force("body1_force_x")).map(|(a, b)| a + b).collect();
    assert!(drag.iter().zip(&parts).all(|(a, b)| (a - b).abs() < 1e-12), "{drag:?} {parts:?}");
    assert!(force("body1_moment_z")[1] < 0.0, "{:?}", force("body1_moment_z"));
    let run = json(&whole.join("run.json"));
    assert_eq!(run["bodies"][0]["force"][0].as_f64(), force("body0_force_x").last().copied());
    // Within the ramp, at its end, and after it.
    folder.done(&["case.toml", "--out", "parts", "--threads", "1", "-q", "--steps", "1"]);
    folder.done(&["--resume", "parts", "--threads", "2", "-q", "--steps", "1"]);
    folder.done(&["case.toml", "--resume", "--out", "parts", "--threads", "1", "-q"]);
    for name in ["diagnostics.csv", "grid_000001.hdf", "grid_000003.hdf"] {
        let [a, b] = ["whole", "parts"].map(|d| fs::read(folder.path(d).join(name)).unwrap());
        assert!(a == b, "{name} differs");
    }
    assert_eq!(run["bodies"], json(&folder.path("parts/run.json"))["bodies"]);
    // What was chosen for the steps is written as numbers.
    let resolved = fs::read_to_string(folder.path("whole/scenario.resolved.toml")).unwrap();
    for line in ["dt = 0.04", "lagrangian_cfl = 0.25", "penalty = 100.0", "spin = [0.0, 0.0, 2.0]"] {
        assert!(resolved.contains(line), "{line}: {resolved}");
    }
    let plot = folder.command(&["plot", "whole"]).output().unwrap();
    let svg = fs::read_to_string(folder.path("whole/plots/forces.svg")).unwrap_or_default();
    for words in ["x, penalisation", "z, change of impulse", "force on all bodies"] {
        assert!(svg.contains(words), "{words}: {}", outputs(&plot));
    }
    // Without energy at the start there is no relative error, and the picture lies where vorticity is later.
    let table = fs::read_to_string(folder.path("whole/diagnostics.csv")).unwrap();
    assert!(table.lines().skip(1).all(|line| line.split(',').nth(3) == Some("")), "{table}");
    let shown = folder.command(&["paraview", "whole"]).output().unwrap();
    assert_eq!(code(&shown), 0, "{}", outputs(&shown));
    let other = folder.run(&["case.toml", "--resume", "--out", "parts", "-q", "--set", "bodies.0.radius=0.2"]);
    assert!(code(&other) == 65 && outputs(&other).contains("bodies.0.radius: 0.25 in the checkpoint, 0.2 now"));
}

/// The sphere and the box on two levels: cells of a sixteenth around them, and of an eighth elsewhere.
fn on_levels() -> String {
    let levels = "finest = 96\ncoarsest = 48\nrefinement = 20\ncompression = 2\n";
    let text = SPHERE.replace("n = 48\n", levels).replace("side = 3.0", "side = 6.0");
    text.replace("corner = [-1.25, -1.5, -1.5]", "corner = [-2.5, -3, -3]")
}

#[test]
fn bodies_on_several_levels_are_resumed_to_the_same_bits() {
    let folder = Folder::new(&on_levels());
    folder.done(&["case.toml", "--out", "whole", "--threads", "2", "-q"]);
    folder.done(&["case.toml", "--out", "parts", "--threads", "1", "-q", "--steps", "2"]);
    folder.done(&["case.toml", "--resume", "--out", "parts", "--threads", "2", "-q"]);
    for name in ["diagnostics.csv", "grid_000001.hdf", "grid_000003.hdf"] {
        let [a, b] = ["whole", "parts"].map(|d| fs::read(folder.path(d).join(name)).unwrap());
        assert!(a == b, "{name} differs");
    }
    let whole = folder.path("whole");
    let (drag, impulse) = (column(&whole, "force_x"), column(&whole, "impulse_force_x"));
    assert!(drag.iter().zip(&impulse).all(|(a, b)| (a - b).abs() <= 0.05 * a.abs() + 1e-3), "{drag:?} {impulse:?}");
    let last = checkpoint::latest(&whole).ok().flatten().map(|l| l.checkpoint.state);
    let Some(State::Flow(flow)) = last else { panic!("no flow") };
    let [coarse, fine] = [0, 1].map(|level| flow.blocks.iter().filter(|b| b.level == level).count());
    assert!(coarse > 0 && fine > 0 && coarse + fine == flow.blocks.len(), "{coarse} {fine}");
}

/// A flow that bodies have not moved yet is not solved, and has chosen no split.
#[test]
fn a_split_is_kept_from_where_it_is_chosen() {
    if gpu().is_none() {
        return;
    }
    let rarely = SPHERE.replace("0.04", "0.12").replace("dt = \"auto\"", "dt = 0.04").replace("\"cpu\"", "\"hybrid\"");
    let folder = Folder::new(&rarely);
    let split = || json(&folder.path("out/run.json"))["solver"]["split"].as_u64().unwrap();
    folder.done(&["case.toml", "-q", "--steps", "1"]);
    let first = split();
    folder.done(&["--resume", "out", "-q"]);
    assert!(first > 0 && split() == first, "{first} {}", split());
}

/// The triangles of the box of `SPHERE`, ten times as large and about (1, 2, 3).
fn box_of_triangles() -> String {
    let corner = |n: usize| [0, 1, 2].map(|d| [1.0, 2.0, 3.0][d] + [-1.5, 1.5][n >> d & 1]);
    let quads = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
    let mut text = "solid box\n".to_string();
    for [a, b, c, d] in quads {
        for triangle in [[a, b, c], [a, c, d]] {
            text.push_str("facet normal 0 0 0\nouter loop\n");
            triangle.map(corner).iter().for_each(|[x, y, z]| text.push_str(&format!("vertex {x} {y} {z}\n")));
            text.push_str("endloop\nendfacet\n");
        }
    }
    text + "endsolid box\n"
}

/// The second body of `SPHERE` from a file.
const OF_A_FILE: &str = "shape = \"surface\"\ncenter = [0.1, 0, 0.45]\npath = \"box.stl\"\nscale = 0.1";

fn with_surface() -> (String, Folder) {
    let text = SPHERE.replace("shape = \"box\"\ncenter = [0.1, 0, 0.45]\nsides = [0.3, 0.3, 0.3]", OF_A_FILE);
    let folder = Folder::new(&text);
    fs::write(folder.path("box.stl"), box_of_triangles()).unwrap();
    (text, folder)
}

#[test]
fn a_surface_of_a_file_is_the_body_that_it_encloses() {
    let (_, folder) = with_surface();
    folder.done(&["case.toml", "--out", "surface", "-q"]);
    fs::write(folder.path("box.toml"), SPHERE).unwrap();
    folder.done(&["box.toml", "--out", "box", "-q"]);
    for name in ["force_x", "body1_force_x", "body1_force_z", "body1_moment_z", "enstrophy"] {
        let [a, b] = ["surface", "box"].map(|d| column(&folder.path(d), name));
        let largest = b.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-9 * largest), "{name}: {a:?} {b:?}");
    }
    let resolved = fs::read_to_string(folder.path("surface/scenario.resolved.toml")).unwrap();
    for line in ["origin = [1.0, 2.0, 3.0]", "# 12 triangles, volume 0.027", "box.stl"] {
        assert!(resolved.contains(line), "{line}: {resolved}");
    }
}

#[test]
fn a_run_past_a_surface_goes_on_with_the_same_one() {
    let (_, folder) = with_surface();
    folder.done(&["case.toml", "--out", "whole", "-q"]);
    folder.done(&["case.toml", "--out", "parts", "-q", "--steps", "1"]);
    // From another folder, where the name alone says nothing.
    let elsewhere = folder.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let on = folder.command(&["run", "--resume", "../parts", "-q", "--steps", "1"]).current_dir(&elsewhere).output();
    assert_eq!(code(&on.unwrap()), 0);
    let stopped = |words: &str, expected: i32, more: &[&str]| {
        let out = folder.run(&[&["--resume", "parts", "-q"], more].concat());
        assert!(code(&out) == expected && outputs(&out).contains(words), "{words}: {}", outputs(&out));
    };
    fs::rename(folder.path("box.stl"), folder.path("moved.stl")).unwrap();
    stopped("box.stl: no such file", 66, &[]);
    // Turned: as large as before.
    let turned = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        ["vertex", x, y, z] => format!("vertex {z} {x} {y}"),
        _ => line.to_string(),
    };
    let other = box_of_triangles().lines().map(turned).collect::<Vec<_>>().join("\n");
    fs::write(folder.path("box.stl"), other).unwrap();
    stopped("is not that of the surface", 65, &[]);
    stopped("is not that of the surface", 65, &["--force"]);
    folder.done(&["--resume", "parts", "-q", "--until", "0.12", "--set", "bodies.1.path=moved.stl"]);
    for name in ["diagnostics.csv", "grid_000003.hdf"] {
        let [a, b] = ["whole", "parts"].map(|d| fs::read(folder.path(d).join(name)).unwrap());
        assert!(a == b, "{name} differs");
    }
}

#[test]
fn surfaces_that_cannot_be_bodies_are_refused() {
    let (text, folder) = with_surface();
    let open = box_of_triangles().replacen("vertex -0.5 0.5 1.5", "vertex -0.5 0.5 1.25", 1);
    fs::write(folder.path("open.stl"), open).unwrap();
    fs::write(folder.path("table.csv"), "x,y,z\n1,2,3\n").unwrap();
    for (set, words, expected) in [
        ("bodies.1.path=none.stl", "none.stl: no such file", 66),
        ("bodies.1.path=open.stl", "is no closed surface: ", 65),
        ("bodies.1.path=table.csv", "table.csv: is no STL file", 65),
        ("bodies.1.path=.", "is a folder", 66),
        ("bodies.1.scale=0", "bodies.1.scale = 0 is outside its range", 65),
        ("bodies.1.scale=1e-3", "bodies.1.path is of a body that is 0.003 wide, less than four cells", 65),
        ("bodies.1.scale=1e60", "box.stl: with the scale 1e60 the surface reaches", 65),
        ("bodies.1.origin=[1,2]", "bodies.1.origin", 65),
        ("bodies.1.digest=abc", "bodies.1.digest = \"abc\" is not that of the surface", 65),
        ("bodies.1.sides=[1,1,1]", "unknown key 'sides'", 65),
    ] {
        let out = folder.run(&["case.toml", "--dry-run", "--set", set]);
        assert!(code(&out) == expected && outputs(&out).contains(words), "{set}: {}", outputs(&out));
    }
    fs::write(folder.path("case.toml"), text.replace("path = \"box.stl\"\n", "")).unwrap();
    let out = folder.run(&["case.toml", "--dry-run"]);
    assert!(code(&out) == 65 && outputs(&out).contains("an STL file with a closed surface"), "{}", outputs(&out));
}

#[test]
fn bodies_that_do_not_fit_are_refused_by_their_keys() {
    let folder = Folder::new(SPHERE);
    for (set, words) in [
        ("bodies.0.radius=0.1", "bodies.0.radius is of a body that is 0.2 wide, less than four cells"),
        ("bodies.0.radius=-1", "bodies.0.radius = -1 is outside its range"),
        ("bodies.0.center=[1.5,0,0]", "allowed: 1 or more from each face of the cube"),
        ("bodies.0.shape=ball", "bodies.0.shape = \"ball\" is unknown"),
        ("bodies.0.sides=[1,1,1]", "unknown key 'sides'"),
        ("bodies.1.sides=[0.3,0,0.3]", "bodies.1.sides has a length of 0"),
        ("bodies.1.spin=2", "three numbers"),
        ("bodies.1.spin=[0,0,1e300]", "allowed: -1e60 to 1e60"),
        ("flow.inflow=[-1e61,0,0]", "flow.inflow has -1e61 in it"),
        ("flow.inflow=[1,2]", "flow.inflow has 2 components"),
        ("flow.ramp=-0.1", "flow.ramp = -0.1 is outside its range"),
        ("flow.penalty=0.5", "allowed: 1 to 1e12"),
        ("flow.outflow=1", "unknown key 'outflow'"),
        ("time.lagrangian_cfl=2", "allowed: 0.01 to 1"),
        ("bodies=3", "each body has its own header"),
        ("bodies.1.center=[0.1,0,0.2]", "bodies.0 and bodies.1 overlap at time 0"),
    ] {
        let out = folder.case(&["--set", set]);
        assert!(code(&out) == 65 && outputs(&out).contains(words), "{set}: {}", outputs(&out));
    }
    // They meet in the second step.
    let out = folder.case(&["--set", "bodies.1.velocity=[0,0,-2]", "--out", "overlap"]);
    assert!(code(&out) != 0 && outputs(&out).contains("bodies 0 and 1 overlap; keep them"), "{}", outputs(&out));
    // The same again would fail again: it goes on with another value, and with blocks for the body
    // where it is then.
    let words = "with another value:\nnbody run --resume overlap --force --set KEY=VALUE\n";
    assert!(outputs(&out).ends_with(words), "{}", outputs(&out));
    let sets = ["--set", "bodies.1.center=[0.1,0,-0.45]", "--set", "bodies.1.velocity=[0,0,0]"];
    folder.done(&[&["--resume", "overlap", "-q", "--force", "--steps", "1"], &sets[..]].concat());
    let text = SPHERE.replace("dt = \"auto\"", "dt = 0.04");
    fs::write(folder.path("long.toml"), text).unwrap();
    let out = folder.run(&["long.toml", "--set", "flow.inflow=[700,0,0]"]);
    for words in [
        "long.toml",
        "time.dt = 0.04 is longer than bodies allow",
        "allowed: up to 0.0001783, the time in which the stream passes a body by 2 of the smallest cells",
    ] {
        assert!(code(&out) == 65 && outputs(&out).contains(words), "{words}: {}", outputs(&out));
    }
    // Whole steps go from one output to the next.
    let text = SPHERE.replace("every = 0.04\n", "").replace("diagnostics_", "");
    fs::write(folder.path("silent.toml"), text).unwrap();
    let out = folder.run(&["silent.toml", "--out", "silent"]);
    assert!(code(&out) == 65 && outputs(&out).contains("needs output.diagnostics_every"), "{}", outputs(&out));
    let text = SPHERE.split("[time]").next().unwrap();
    fs::write(folder.path("still.toml"), text).unwrap();
    let out = folder.run(&["still.toml"]);
    assert!(code(&out) == 65 && outputs(&out).contains("'bodies' is of flows that go on"), "{}", outputs(&out));
    assert!(!folder.path("out").exists());
}
