//! Charges that do not see each other: `force.exclusions`.

use crate::common::{Folder, code, column, outputs};

/// Two charges close to each other across the wall of a box, far from a third.
const THREE: &str = r#"
[units]
system = "md"
[force]
law = "coulomb"
exclusions = "pairs.csv"
[[particles]]
model = "file"
path = "ions.csv"
[time]
dt = 0.001
end = 0.01
[solver]
tolerance = 1e-10
[output]
diagnostics_every = 0.005
"#;

const IONS: &str = "id,x,y,z,mass,q\n0,0.1,1,1,1,1\n1,2.8,1,1,2,-1\n2,1.5,2.0,1.2,3,1\n3,1.4,0.4,2.1,3,-1\n";

const BOX: &str = "[boundary]\nkind = \"periodic\"\nside = 3.0\n";

const SHORT: &str = "[short_range]\nkind = \"lennard-jones\"\nsigma = 0.3\nepsilon = 1.0\ncutoff = 1.0\n";

fn folder(text: &str, pairs: &str) -> Folder {
    let folder = Folder::new(text);
    std::fs::write(folder.path("ions.csv"), IONS).unwrap();
    std::fs::write(folder.path("pairs.csv"), pairs).unwrap();
    folder
}

/// The energy at the start.
fn energy(text: &str, pairs: &str) -> f64 {
    let folder = folder(text, pairs);
    folder.done(&["case.toml", "--out", "run", "-q", "--set", "solver.device=cpu"]);
    column(&folder.path("run"), "potential")[0]
}

#[test]
fn pairs_see_neither_charge_nor_repulsion_and_energy_stays() {
    let k = 138.935_457_644;
    let without = THREE.replace("exclusions = \"pairs.csv\"\n", "");
    // In open space; and in a box between nearest images, whose distance is 0.3.
    for (end, r) in [("", 2.7), (BOX, 0.3)] {
        let (all, less) = (energy(&format!("{without}{end}"), ""), energy(&format!("{THREE}{end}"), "i,j\n1,0\n"));
        assert!((all - less + k / r).abs() < 1e-6, "{r}: {all} {less}");
    }
    let ions = format!("{BOX}{SHORT}");
    let (all, less) = (energy(&format!("{without}{ions}"), ""), energy(&format!("{THREE}{ions}"), "i,j\n0,1\n"));
    let lj = |r: f64| 4.0 * ((0.3f64 / r).powi(12) - (0.3f64 / r).powi(6));
    let slope = 4.0 * (-12.0 * 0.3f64.powi(12) + 6.0 * 0.3f64.powi(6));
    let pair = lj(0.3) - lj(1.0) - (0.3 - 1.0) * slope;
    assert!((all - less + k / 0.3 - pair).abs() < 1e-6, "{all} {less} {pair}");
    // Forces are the slopes of that energy, and a run that is broken off knows its pairs without their file.
    let folder = folder(&format!("{THREE}{ions}"), "i,j\n0,1\n2,3\n");
    folder.done(&["case.toml", "--out", "whole", "-q"]);
    let drift = column(&folder.path("whole"), "energy_error").iter().fold(0.0, |m: f64, e| m.max(e.abs()));
    assert!(drift < 1e-6, "{drift}");
    folder.done(&["case.toml", "--out", "parts", "-q", "--until", "0.005"]);
    std::fs::remove_file(folder.path("pairs.csv")).unwrap();
    folder.done(&["--resume", "parts", "--until", "0.01", "-q"]);
    let last = |run| column(&folder.path(run), "total").pop().unwrap();
    assert_eq!(last("whole").to_bits(), last("parts").to_bits());
}

#[test]
fn pairs_that_are_none_are_refused() {
    for (pairs, told_of) in [
        (
            "i,j\n0,4\n",
            "4 is no number of the 4 particles, which are counted from 0 in the order of their ids; allowed: 0 to 3",
        ),
        ("i,j\n0,0\n", "paired with itself"),
        ("i,j\n0,1\n1,0\n", "given twice"),
        ("i,k\n0,1\n", "j"),
        ("i,j\n0,1.5\n", "1.5 is no id; allowed: 0 to 4294967294"),
        ("i,j\n-1,2\n", "-1 is no id"),
    ] {
        let folder = folder(THREE, pairs);
        let out = folder.run(&["case.toml", "--out", "run", "-q"]);
        assert_eq!(code(&out), 65, "{pairs}");
        assert!(outputs(&out).contains(told_of), "{pairs}: {}", outputs(&out));
    }
    for (change, told_of) in [
        ("exclusions = [[0, 1], [2]]", "pair of two different ids"),
        ("exclusions = [[1e1, 2]]", "ids are whole numbers from 0 to"),
        ("exclusions = \"\"", "is the empty name"),
        ("exclusions = \"/dev/zero\"", "/dev/zero is no file"),
        ("exclusions = [[0, 1], [1, 0]]", "given twice"),
        ("exclusions = 7", "is expected"),
        ("exclusions = \"none.csv\"", "none.csv"),
    ] {
        let folder = folder(&THREE.replace("exclusions = \"pairs.csv\"", change), "i,j\n");
        let out = folder.run(&["case.toml", "--out", "run", "-q"]);
        assert!([65, 66].contains(&code(&out)), "{change}");
        assert!(outputs(&out).contains(told_of), "{change}: {}", outputs(&out));
    }
    // What a checkpoint could not hold, or nobody read again.
    let rows: String = (0..80_000).map(|i| format!("{i},{}\n", i + 100_000)).collect();
    let crowded = folder(THREE, &format!("i,j\n{rows}"));
    let out = crowded.run(&["case.toml", "--out", "run", "-q"]);
    assert!(code(&out) == 65 && outputs(&out).contains("allowed: 1000000 bytes"), "{}", outputs(&out));
    let gravity = THREE.replace("\"coulomb\"", "\"gravity\"").replace("\"md\"", "\"si\"");
    let folder = folder(&gravity, "i,j\n0,1\n");
    let out = folder.run(&["case.toml", "--out", "run", "-q"]);
    assert_eq!(code(&out), 65);
    assert!(outputs(&out).contains("force.exclusions is for charges in space"), "{}", outputs(&out));
}
