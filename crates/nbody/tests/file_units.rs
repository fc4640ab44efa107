//! Units of files that particles come from: stated by the file, named by the scenario, never guessed.

use crate::common::{Folder, code, rows, stderr};

/// Two stars of one solar mass at a distance of 1 kpc, at rest relative to each other.
const TABLE: &str = "x,y,z,vx,vy,vz,mass\n0,0,0,0,0,0,1e10\n1,0,0,0,65,0,1e10\n";

fn scenario(system: &str, group: &str) -> String {
    format!(
        "[units]\nsystem = \"{system}\"\n[[particles]]\nmodel = \"file\"\n{group}\n[time]\ndt = 1e-3\nend = 2e-3\n[output]\nevery = 1e-3\n"
    )
}

/// The first snapshot of a run as CSV without comments: x, vy and mass of the second star.
fn second_star(folder: &Folder, out: &str) -> [f64; 3] {
    let snapshot = format!("{out}/snap_000000.hdf");
    let done = folder.command(&["convert", &snapshot, &format!("{out}.csv"), "--force"]).output().unwrap();
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let text = std::fs::read_to_string(folder.path(&format!("{out}.csv"))).unwrap();
    let table: String = text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let (header, values) = rows(&table);
    let place = |name: &str| header.split(',').position(|n| n == name).unwrap();
    ["x", "vy", "mass"].map(|name| values[1][place(name)])
}

#[test]
fn named_units_of_a_table_are_converted() {
    let group = "path = \"p.csv\"\nunits = { length = \"kpc\", velocity = \"km/s\", mass = \"Msun\" }";
    for (system, expected) in [("astro", [1000.0, 65.0, 1e10]), ("galactic", [1.0, 65.0, 1e10])] {
        let folder = Folder::with(&[("case.toml", &scenario(system, group)), ("p.csv", TABLE)]);
        folder.done(&["case.toml", "--out", "a", "-q"]);
        let found = second_star(&folder, "a");
        assert!(found.iter().zip(expected).all(|(f, e)| (f / e - 1.0).abs() < 1e-12), "{system}: {found:?}");
        // The resolved scenario says the same.
        std::fs::copy(folder.path("a/scenario.resolved.toml"), folder.path("again.toml")).unwrap();
        folder.done(&["again.toml", "--out", "b", "-q"]);
        assert_eq!(second_star(&folder, "b"), found);
    }
}

#[test]
fn a_table_that_states_its_units_is_converted_or_refused() {
    let folder = Folder::with(&[("p.csv", TABLE)]);
    let named = "path = \"p.csv\"\nunits = { length = \"kpc\", velocity = \"km/s\", mass = \"Msun\" }";
    std::fs::write(folder.path("case.toml"), scenario("galactic", named)).unwrap();
    folder.done(&["case.toml", "--out", "a", "-q"]);
    let written = second_star(&folder, "a");
    // `convert` has written a.csv with its units: other systems convert them, and pure numbers have no place for them.
    for (system, length) in [("galactic", 1.0), ("astro", 1000.0)] {
        std::fs::write(folder.path("case.toml"), scenario(system, "path = \"a.csv\"")).unwrap();
        folder.done(&["case.toml", "--out", system, "-q"]);
        let found = second_star(&folder, system);
        assert!((found[0] / (written[0] * length) - 1.0).abs() < 1e-12, "{system}: {found:?}");
    }
    for (system, group, words) in [
        ("nbody", "path = \"a.csv\"", "it has physical units"),
        ("astro", "path = \"a.csv\"\nunits = { length = \"pc\" }", "states its own units"),
        ("nbody", "path = \"p.csv\"\nunits = { length = \"pc\" }", "a run in pure numbers cannot convert units"),
        ("astro", "path = \"p.csv\"\nunits = { length = \"parsec\" }", "parsec"),
    ] {
        std::fs::write(folder.path("case.toml"), scenario(system, group)).unwrap();
        let refused = folder.case(&["--out", "refused"]);
        assert!(code(&refused) == 65 && stderr(&refused).contains(words), "{system} {group}: {}", stderr(&refused));
    }
    // Units that are stated in part, a mark of the byte order before them, comments that are none of units.
    let units = "# unit_length_cm = 3.085677581491367e21\n# unit_mass_g = 1.98841e33\n# unit_velocity_cm_per_s = 1e5\n";
    let run = |comments: &str, out: &str| {
        std::fs::write(folder.path("p.csv"), format!("{comments}{TABLE}")).unwrap();
        std::fs::write(folder.path("case.toml"), scenario("astro", "path = \"p.csv\"")).unwrap();
        folder.case(&["--out", out, "-q"])
    };
    assert_eq!(code(&run(&format!("\u{feff}{units}# time = 3 Gyr\n"), "mark")), 0);
    assert!((second_star(&folder, "mark")[0] / 1000.0 - 1.0).abs() < 1e-12);
    for part in
        ["# unit_length_cm = 1e21\n", "# unit_mass_g = 1e3\n", &units.replace("1e5", "-1"), &units.replace("1e5", "0")]
    {
        let refused = run(part, "part");
        assert!(
            code(&refused) == 65 && stderr(&refused).contains("all three are needed"),
            "{part}: {}",
            stderr(&refused)
        );
    }
    // Pure numbers, as convert writes them of a table without units, take the units that the scenario names.
    let pure = "# unit_length_cm = 1.0\n# unit_mass_g = 1.0\n# unit_velocity_cm_per_s = 1.0\n";
    std::fs::write(folder.path("p.csv"), format!("{pure}{TABLE}")).unwrap();
    std::fs::write(folder.path("case.toml"), scenario("astro", named)).unwrap();
    folder.done(&["case.toml", "--out", "pure", "-q"]);
    assert_eq!(second_star(&folder, "pure")[0], 1000.0);
}

#[test]
fn charges_are_not_guessed_from_units_of_mechanics() {
    let table = "# unit_length_cm = 1e-7\n# unit_mass_g = 1.66053906892e-24\n# unit_velocity_cm_per_s = 1e5\nx,y,z,mass,charge\n0,0,0,23,1\n1,0,0,35,-1\n";
    let case = format!(
        "[force]\nlaw = \"coulomb\"\n{}",
        scenario("si", "path = \"p.csv\"").replace("1e-3", "1e-18").replace("2e-3", "2e-18")
    );
    let folder = Folder::with(&[("case.toml", &case), ("p.csv", table)]);
    let refused = folder.case(&["--out", "a", "-q"]);
    assert!(code(&refused) == 65 && stderr(&refused).contains("say nothing of its charges"), "{}", stderr(&refused));
}
