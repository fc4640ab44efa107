//! Scenarios: messages of mistakes, the reference of the keys, and what is written back.

use std::path::Path;

use nbody::scenario::{Override, Scenario};

/// Compares the message of every `tests/mistakes/NAME.toml` with `NAME.txt`; UPDATE_EXPECTED=1
/// writes `NAME.txt`.
#[test]
fn mistakes_are_told_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    names.sort();
    assert!(names.len() >= 12, "only {} mistakes found", names.len());
    let mut differing = vec![];
    for path in names {
        let text = std::fs::read_to_string(&path).unwrap();
        // The first line may hold options: "#! --set key=value".
        let sets: Vec<_> = text.lines().filter_map(|l| l.strip_prefix("#! --set ")).map(Override::set).collect();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Err(problems) = Scenario::parse(name, text, None, &sets) else { panic!("{name} was accepted") };
        let message = format!("exit code {}\n{}", problems.code(), problems.render(false));
        let expected = path.with_extension("txt");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(&expected, &message).unwrap();
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        if message != expected {
            differing.push(format!("{name}: expected\n{expected}\nbut found\n{message}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

#[test]
fn every_key_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let keys = Scenario::known_keys();
    assert!(keys.len() > 30, "{keys:?}");
    let sections = [
        "run",
        "units",
        "force",
        "external",
        "grid",
        "flow",
        "boundary",
        "short_range",
        "thermostat",
        "solver",
        "time",
        "output",
        "verify",
    ];
    for key in keys.iter().filter(|k| !sections.contains(&k.as_str())) {
        assert!(docs.contains(&format!("`{key}`")), "docs/scenario.md does not mention `{key}`");
    }
    // And nothing is documented that the parser does not know.
    let rows = docs.lines().filter_map(|l| l.strip_prefix("| `")).filter_map(|l| l.split('|').next());
    for key in rows.flat_map(|cell| cell.split('`')).filter(|k| k.contains('.') && !k.contains([' ', '/'])) {
        let file = [".hdf", ".toml", ".json", ".csv", ".series"].iter().any(|e| key.ends_with(e));
        assert!(file || keys.contains(key), "docs/scenario.md documents `{key}`, which the parser does not know");
    }
}

#[test]
fn resolved_scenarios_are_the_same_scenario() {
    let text = r#"
        title = "two \"spheres\""
        [run]
        seed = 7
        [units]
        system = "md"
        [force]
        law = "coulomb"
        softening = { kernel = "spline", length = "20 pm" }
        [[particles]]
        model = "uniform-sphere"
        n = 1e3
        charge = -3
        velocity_dispersion = 0.25
        position = [1, 2.5, "1 um"]
        [[particles]]
        model = "uniform-sphere"
        n = 10
        charge = "2 e"
        [solver]
        theta = 0.4
        order = 9
        [time]
        integrator = "yoshida4"
        dt = "2 fs"
        end = 0.3
        [output]
        every = 0.1
        fields = ["charge", "position"]
        precision = "f32"
    "#;
    let first = Scenario::parse("a.toml", text.into(), None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
    assert_eq!((first.steps, first.snapshot_every, first.groups[0].position), (150, 50, [1.0, 2.5, 1000.0]));
    let resolved = first.resolved(None, 1010);
    let again = Scenario::parse("b.toml", resolved.clone(), None, &[]);
    let again = again.unwrap_or_else(|p| panic!("{}", p.render(false)));
    assert_eq!(Scenario { text: resolved, ..first }, again);
}

#[test]
fn every_model_and_field_is_written_back() {
    let time = "[time]\ndt = 'auto'\neta = 0.3\nend = 2\n[output]\nevery = 0.5\n";
    let soft = "softening = { kernel = 'p1', length = 0.1 }\n";
    let gravity = "[external]\npotential = 'logarithmic-halo'\nvelocity = 2\ncore_radius = 0.1\nflattening = 0.7\n\
                   position = [1, 2, 3]\n[[particles]]\nmodel = 'hernquist'\nn = 10\nscale_radius = 2\nrotation = [1, 2, 3]\n\
                   [[particles]]\nmodel = 'nfw'\nn = 10\nconcentration = 5\n\
                   [[particles]]\nmodel = 'cold-collapse'\nn = 10\ncusp = 1\n\
                   [[particles]]\nmodel = 'galaxy'\nn = 17\nbulge_share = 0.3\ntoomre_q = 1.1\ndisc_height = 0.2\nhalo_mass = 3\n\
                   [[particles]]\nmodel = 'kepler'\ncompanion_mass = 0.1\neccentricity = 0.2\n\
                   [[particles]]\nmodel = 'figure-eight'\nsize = 2\n";
    let coulomb = "[external]\npotential = 'point-mass'\ncharge = -2\n\
                   [[particles]]\nmodel = 'uniform-cube'\nn = 10\ncharge = 1\nside = 2\nvelocity_dispersion = 0.1\n\
                   [[particles]]\nmodel = 'crystal'\nlattice = 'ZnS'\ncells = 3\ncharge = 2\npartner_mass = 5\nsurface = 'whole'\n";
    let uniform =
        "[external]\npotential = 'uniform-field'\nfield = [0, 0, -9.81]\n[[particles]]\nmodel = 'plummer'\nn = 3\n";
    for (law, body) in [("gravity", gravity), ("coulomb", coulomb), ("gravity", uniform)] {
        let text = format!("[force]\nlaw = '{law}'\n{soft}{body}{time}");
        let first = Scenario::parse("a.toml", text, None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
        assert!(first.external.is_some() && first.auto_step == Some(0.3));
        let resolved = first.resolved(None, 1);
        let again = Scenario::parse("a.toml", resolved.clone(), None, &[]);
        let again = again.unwrap_or_else(|p| panic!("{}", p.render(false)));
        assert_eq!(Scenario { text: resolved, ..first }, again);
    }
}

#[test]
fn options_override_and_groups_have_numbers() {
    let text = "[[particles]]\nmodel = 'plummer'\nn = 10\n[time]\ndt = 0.1\nend = 1\n";
    let sets = ["particles.0.n=1e2", "solver.method=direct", "time.end = 2.0", "output.directory='a b'"];
    let scenario = Scenario::parse("a.toml", text.into(), None, &sets.map(Override::set));
    let scenario = scenario.unwrap_or_else(|p| panic!("{}", p.render(false)));
    assert_eq!((scenario.steps, scenario.settings.method.name()), (20, "direct"));
    assert_eq!(scenario.directory, Path::new("a b"));
    assert!(matches!(scenario.groups[0].model, nbody::scenario::Model::Plummer { n: 100, .. }));
}

#[test]
fn hostile_texts_are_refused_quickly() {
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in [deep, "\u{0}".repeat(1000), "[[particles]]\n".repeat(10_000), "a.".repeat(50_000)] {
        assert!(Scenario::parse("hostile.toml", text, None, &[]).is_err());
    }
}
