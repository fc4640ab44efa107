//! Runs that make no sense, in any frame of reference, and starts that cannot make any.

use crate::common::{Folder, code, stderr};

const CLUSTER: &str = r#"
[[particles]]
model = "plummer"
n = 200
virial_ratio = 1.0
[time]
dt = 0.01
end = 0.05
[output]
diagnostics_every = 0.01
"#;

fn strict(text: &str) -> (i32, String) {
    let folder = Folder::new(text);
    let out = folder.case(&["--strict", "-q"]);
    (code(&out), stderr(&out))
}

#[test]
fn a_cluster_that_moves_makes_sense() {
    let softened = CLUSTER.replace(
        "[time]",
        "velocity = [10, 0, 0]\n[force]\nsoftening = { kernel = \"plummer\", length = 0.1 }\n[time]",
    );
    let (code, text) = strict(&softened);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn steps_that_are_too_long_are_seen_in_every_frame() {
    for velocity in ["[0, 0, 0]", "[30, 0, 0]"] {
        let moving = CLUSTER.replace("[time]", &format!("velocity = {velocity}\n[time]"));
        let (code, text) = strict(&moving.replace("0.01", "1").replace("0.05", "20"));
        assert!(code == 1 && text.contains("the energy is off by"), "{velocity}: {code} {text}");
    }
}

#[test]
fn strict_remembers_across_a_resume() {
    let folder = Folder::new(&CLUSTER.replace("0.01", "1").replace("0.05", "20"));
    let first = folder.case(&["-q", "--out", "out", "--steps", "15"]);
    // A warning is no progress, which -q leaves out.
    assert!(code(&first) == 0 && stderr(&first).contains("nbody: warning: "), "{}", stderr(&first));
    let out = folder.command(&["run", "--resume", "out", "--strict", "-q", "--until", "20"]).output().unwrap();
    assert!(code(&out) == 1 && stderr(&out).contains("the energy is off by"), "{}", stderr(&out));
    let again = folder.command(&["run", "--resume", "out", "--strict", "-q"]).output().unwrap();
    assert_eq!(code(&again), 1, "{}", stderr(&again));
}

#[test]
fn energies_that_are_nothing_in_the_plane_are_no_measure() {
    for law in ["vortex", "gravity"] {
        let scenario = format!(
            "[run]\ndimensions = 2\n[force]\nlaw = \"{law}\"\n[[particles]]\nmodel = \"file\"\npath = \"pair.csv\"\n\
             [time]\ndt = 0.01\nend = 0.3\n[output]\ndiagnostics_every = 0.01\n"
        );
        // The logarithm of their distance is 0.
        let strength = if law == "vortex" { "circulation" } else { "mass" };
        let table = format!("x,y,{strength}\n0,0,1\n1,0,1\n");
        let folder = Folder::with(&[("case.toml", &scenario), ("pair.csv", &table)]);
        let out = folder.case(&["--strict", "-q", "--out", "out"]);
        assert_eq!((code(&out), stderr(&out).as_str()), (0, ""), "{law}");
        assert!(folder.path("out/checkpoint.1.hdf").exists(), "{law}");
    }
}

#[test]
fn starts_without_meaning_are_refused_at_once() {
    let soft = |length: &str| format!("[force]\nsoftening = {{ kernel = \"plummer\", length = {length} }}\n{CLUSTER}");
    for model in ["plummer", "hernquist", "nfw"] {
        for length in ["1e5", "1e30", "1e100"] {
            let (code, text) = strict(&soft(length).replace("plummer\"\nn", &format!("{model}\"\nn")));
            assert!(code == 65 && text.contains("up to 1000 times"), "{model} {length}: {code} {text}");
        }
    }
    // At 1e12 the spacing of numbers is 1.2e-4, and a step goes 1e-3 far.
    let far = "[[particles]]\nmodel = \"kepler\"\nposition = [1e12, 0, 0]\n[time]\ndt = 1e-3\nend = 1\n";
    let (code, text) = strict(far);
    assert!(code == 65 && text.contains("particles.0.position") && text.contains("the steps"), "{code} {text}");
}

#[test]
fn close_pairs_beside_far_points_are_refused() {
    let folder = Folder::with(&[("s.csv", "x,y,z,q\n0,0,0,1\n1e-80,0,0,1\n1e76,0,0,1\n")]);
    let out = folder.eval("--sources s.csv");
    assert!(code(&out) == 65 && stderr(&out).contains("1e-98 of the largest coordinate"), "{}", stderr(&out));
}

#[test]
fn an_order_of_direct_sums_is_said_to_have_no_effect() {
    let said = |method: &str| {
        let (code, text) = strict(&format!("{CLUSTER}[solver]\nmethod = \"{method}\"\norder = 4\n"));
        assert_eq!(code, 0, "{text}");
        text
    };
    assert_eq!(said("direct"), "nbody: warning: solver.order has no effect with solver.method = \"direct\"\n");
    assert_eq!(said("fmm"), "");
}

/// Particles at the same place do not interact only where the kernel is infinite there.
#[test]
fn particles_at_one_place_are_no_matter_where_forces_are_softened() {
    let scenario = "[[particles]]\nmodel = \"file\"\npath = \"a.csv\"\n[time]\ndt = 0.1\nend = 0.1\n[force]\n";
    let softened = "softening = { kernel = \"plummer\", length = 0.1 }\n";
    for (force, warned) in [("", true), (softened, false)] {
        let text = format!("{scenario}{force}");
        let table = "x,y,z,mass\n0,0,0,1\n0,0,0,1\n1,0,0,1\n";
        let folder = crate::common::Folder::with(&[("case.toml", &text), ("a.csv", table)]);
        let out = folder.case(&["--out", "run"]);
        let message = crate::common::stderr(&out);
        assert!(out.status.success() && message.contains("the same place") == warned, "{force}: {message}");
    }
}
