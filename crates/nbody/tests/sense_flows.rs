//! Rings that the cells of a grid cannot hold, and flows that lose their energy: reported, and with `--strict` a failure.

use std::fs;
use std::path::Path;

use crate::common::{Folder, code, stderr};

const RING: &str = r#"
[grid]
corner = [-0.5, -0.5, -0.5]
n = 32
[[vorticity]]
model = "vortex-ring"
center = [0, 0, 0]
radius = 0.15
core = 0.06
circulation = 0.1
[time]
dt = 0.01
end = 0.02
[output]
diagnostics_every = 0.01
"#;

/// The exit code of a strict run and its messages, with keys set.
fn strict(text: &str, sets: &[&str]) -> (i32, String) {
    let folder = Folder::new(text);
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let out = folder.case(&[&["--strict", "-q"], &sets[..]].concat());
    (code(&out), stderr(&out))
}

/// The scenario without steps.
fn still() -> String {
    RING.split("[time]").next().unwrap().to_string()
}

#[test]
fn a_ring_that_cells_hold_makes_sense() {
    for text in [RING, &still()] {
        assert_eq!(strict(text, &[]), (0, String::new()));
        assert_eq!(strict(text, &["vorticity.0.core=0.0469"]).0, 0);
    }
}

#[test]
fn cores_thinner_than_cells_are_reported_with_what_the_grid_holds() {
    // Of a flow at its start and at its end.
    for (text, count) in [(RING, 2), (&still(), 1)] {
        let (code, text) = strict(text, &["vorticity.0.core=0.04", "vorticity.0.center=[0, 0, 0.01]"]);
        let says = "vorticity.0.core = 0.04 is less than 1.5 of the smallest cells, which are 0.03125 wide: the grid holds 100 %";
        assert!(
            code == 1 && text.contains(says) && text.contains("allowed: 0.04688 or more, or a larger grid.n"),
            "{text}"
        );
        assert_eq!(text.matches("nbody: warning: ").count(), count, "{text}");
    }
    // On a plane between cells, which do not see it.
    let (code, text) = strict(RING, &["vorticity.0.core=0.004", "time.end=0.01"]);
    assert!(code == 1 && text.contains("the grid holds 0 % of its vorticity"), "{text}");
    // Another profile, as wide as a Gaussian of 0.125/sqrt(20).
    let text = still()
        .replace("vortex-ring", "ring")
        .replace("circulation = 0.1\n", "")
        .replace("core = 0.06", "core = 0.125");
    let (code, text) = strict(&text, &[]);
    assert!(code == 1 && text.contains("vorticity.0: core/sqrt(steepness) = 0.02795 is less than 1.5"), "{text}");
}

#[test]
fn rings_outside_of_the_domain_are_reported() {
    let ring = |center: &str| {
        format!("[[vorticity]]\nmodel = \"vortex-ring\"\nradius = 0.15\ncore = 0.06\ncenter = {center}\n")
    };
    let with = |text: &str, center: &str| text.replacen("[[vorticity]]", &format!("{}[[vorticity]]", ring(center)), 1);
    let (code, text) = strict(&with(RING, "[2, 0, 0]"), &[]);
    let says = "vorticity.0 reaches from x = 1.73 to 2.27, and the domain from -0.5 to 0.5: the grid holds 0 % of its vorticity";
    assert!(code == 1 && text.contains(says), "{text}");
    // Half of it: a solution without steps takes what there is.
    let (code, text) = strict(&with(&still(), "[0, 0.5, 0]"), &[]);
    assert!(
        code == 1 && text.contains("vorticity.0 reaches from y = 0.23 to 0.77") && text.contains("holds 50 %"),
        "{text}"
    );
}

#[test]
fn rings_that_coarse_cells_do_not_see_are_reported() {
    let text = still().replace("n = 32", "finest = 128\ncoarsest = 16\nrefinement = 0.5\ncompression = 0.1");
    let ring = ["vorticity.0.radius=0.031", "vorticity.0.core=0.0125", "vorticity.0.center=[0, 0, 0.0]"];
    let (code, text) = strict(&text, &ring);
    assert!(code == 1 && text.contains("a smaller grid.refinement, or a larger grid.coarsest"), "{text}");
}

#[test]
fn an_energy_that_changes_is_reported_where_the_flow_keeps_it() {
    let sets = ["time.cutoff=0.1", "time.dt=0.2", "output.diagnostics_every=0.2", "time.end=0.6"];
    let (code, text) = strict(RING, &sets);
    assert!(code == 1 && text.contains("the energy is off by ") && text.contains("(--strict)"), "{text}");
    let viscous = strict(RING, &[&sets[..], &["time.viscosity=1e-4"]].concat());
    assert_eq!(viscous, (0, String::new()));
}

#[test]
fn a_resumed_flow_remembers_what_its_grid_holds() {
    let folder = Folder::new(&RING.replace("core = 0.06", "core = 0.004"));
    assert_eq!(code(&folder.case(&["-q", "--out", "a", "--steps", "1"])), 0);
    let out = folder.run(&["--resume", "a", "--strict", "-q"]);
    assert!(code(&out) == 1 && stderr(&out).contains("the grid holds 0 % of its vorticity"), "{}", stderr(&out));
}

#[test]
fn scenarios_hold_their_rings() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut seen = 0;
    for entry in fs::read_dir(scenarios).unwrap() {
        let path = entry.unwrap().path();
        let is_flow = path.extension().is_some_and(|e| e == "toml")
            && fs::read_to_string(&path).unwrap().contains("\n[[vorticity]]\n");
        if is_flow {
            let folder = Folder::with(&[]);
            let out = folder.run(&[path.to_str().unwrap(), "--dry-run"]);
            assert!(code(&out) == 0 && !stderr(&out).contains("warning"), "{}: {}", path.display(), stderr(&out));
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen}");
}
