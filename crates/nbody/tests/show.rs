//! What a run looks like: the figure of its particles, the script for ParaView, units in yt and pynbody, the tutorial.

use std::fs;
use std::path::Path;
use std::process::Command;

use tiny_skia::Pixmap;

use crate::common::{Folder, code, outputs, python};

/// Two clusters of stars for 500 Myr.
const CLUSTERS: &str = "
title = \"Two clusters\"
[units]
system = \"galactic\"
[force]
softening = { kernel = \"plummer\", length = 0.3 }
[[particles]]
model = \"plummer\"
n = 300
mass = 1e9
position = [-3.0, 0.0, 0.0]
[[particles]]
model = \"plummer\"
n = 200
mass = 1e9
position = [3.0, 0.0, 0.0]
[time]
dt = \"2 Myr\"
end = \"500 Myr\"
[output]
every = \"100 Myr\"
";

fn ok(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.command(arguments).output().unwrap();
    assert_eq!(code(&output), 0, "{arguments:?}: {}", outputs(&output));
    outputs(&output)
}

/// Colors of the picture that are neither white nor gray.
fn colors(folder: &Folder, name: &str) -> usize {
    let page = Pixmap::decode_png(&fs::read(folder.path(name)).unwrap()).unwrap();
    let colored = |c: &[u8]| c[..3].iter().max().unwrap() - c[..3].iter().min().unwrap() > 40;
    page.data().chunks_exact(4).filter(|c| colored(c)).count()
}

#[test]
fn times_and_energies_of_a_run_are_shown_in_units() {
    let folder = Folder::new(CLUSTERS);
    let summary = ok(&folder, &["run", "case.toml", "--out", "run"]);
    assert!(summary.contains("250 to time 500 Myr\n"), "{summary}");
    let energy = summary.lines().find(|l| l.starts_with("  energy")).unwrap();
    assert!(energy.contains(" Msun (km/s)², dE/E0 "), "{energy}");
    let ratio = summary.lines().find(|l| l.starts_with("  virial ratio")).unwrap();
    assert!(ratio.len() <= "  virial ratio  0.0001234".len(), "{ratio}");
}

#[test]
fn the_figure_of_particles_shows_density_groups_times_and_a_scale() {
    let folder = Folder::new(CLUSTERS);
    ok(&folder, &["run", "case.toml", "--out", "run", "-q"]);
    ok(&folder, &["plot", "run"]);
    let svg = fs::read_to_string(folder.path("run/plots/particles.svg")).unwrap();
    assert_eq!(svg.matches("<image ").count(), 4);
    for words in [
        "Particles, seen along ",
        "t = 0 Myr",
        "t = 500 Myr",
        " kpc\n",
        "surface density (Msun/kpc²)",
        "group 0: plummer, 300 particles",
        "group 1: plummer, 200 particles",
    ] {
        assert!(svg.contains(words), "{words} is missing");
    }
    // Both clusters are there, in pixels of their colors.
    assert!(colors(&folder, "run/plots/particles.png") > 20_000);
    // The time axes of the other figures have the same unit.
    assert!(fs::read_to_string(folder.path("run/plots/energy_error.svg")).unwrap().contains("time (Myr)"));
}

#[test]
fn the_figure_of_a_flow_is_a_slice_of_its_vorticity() {
    let folder = Folder::with(&[]);
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/vortex-rings.toml");
    ok(&folder, &["run", scenario.to_str().unwrap(), "--set", "grid.n=32", "--out", "run", "-q"]);
    ok(&folder, &["plot", "run"]);
    let svg = fs::read_to_string(folder.path("run/plots/particles.svg")).unwrap();
    assert!(svg.contains("Vorticity |ω|, slice at ") && svg.matches("<image ").count() == 1);
    assert!(colors(&folder, "run/plots/particles.png") > 20_000);

    ok(&folder, &["paraview", "run"]);
    let set = ["--set", "grid.n=16", "--set", "output.fields=['velocity']"];
    ok(&folder, &[&["run", scenario.to_str().unwrap(), "--out", "bare", "-q"], &set[..]].concat());
    let bare = folder.command(&["paraview", "bare"]).output().unwrap();
    assert!(code(&bare) == 66 && outputs(&bare).contains("they have it where output.fields has"), "{}", outputs(&bare));
    let Some(mut python) = python(".venv", "check_script.py") else { return };
    let output = python.arg(folder.path("run/open_in_paraview.py")).arg("grid").output().unwrap();
    assert!(output.status.success(), "{}", outputs(&output));
}

#[test]
fn the_script_for_paraview_shows_particles_in_logarithmic_colors() {
    let folder = Folder::new(CLUSTERS);
    ok(&folder, &["run", "case.toml", "--out", "run \"a\"", "-q"]);
    ok(&folder, &["paraview", "run \"a\""]);
    let Some(mut python) = python(".venv", "check_script.py") else { return };
    let output = python.arg(folder.path("run \"a\"/open_in_paraview.py")).arg("particles").output().unwrap();
    assert!(output.status.success(), "{}", outputs(&output));
    let missing = folder.command(&["paraview", "nowhere"]).output().unwrap();
    assert_eq!(code(&missing), 66);
}

#[test]
fn yt_and_pynbody_read_units_and_time_without_help() {
    let folder = Folder::new(CLUSTERS);
    ok(&folder, &["run", "case.toml", "--out", "run", "-q"]);
    for file in ["run/snap_000005.hdf", "five.hdf5"] {
        if file == "five.hdf5" {
            ok(&folder, &["convert", "run/snap_000005.hdf", file]);
        }
        let Some(mut python) = python(".venv", "check_units.py") else { return };
        let output = python.arg(folder.path(file)).arg(folder.path("yt.png")).output().unwrap();
        assert!(output.status.success(), "{file}: {}", outputs(&output));
    }
}

#[test]
fn the_sum_of_the_readme_works_from_the_root_of_a_clone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let line = readme.lines().find(|l| l.contains("nbody eval --sources")).unwrap();
    let words = line.split('>').next().unwrap().split_whitespace().skip(1);
    let output = Command::new(env!("CARGO_BIN_EXE_nbody")).args(words).current_dir(root).output().unwrap();
    assert_eq!(code(&output), 0, "{line}: {}", outputs(&output));
    assert!(String::from_utf8_lossy(&output.stdout).lines().count() > 100);
}

/// The fenced blocks of a page, with their languages.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut parts = page.split("```").skip(1).step_by(2);
    std::iter::from_fn(|| parts.next()).filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn the_tutorial_ends_with_a_picture() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let page = fs::read_to_string(page).unwrap();
    let folder = Folder::with(&[]);
    let mut commands = 0;
    for (language, block) in blocks(&page) {
        match language {
            "python" => {
                let few = block.replace("N = 2000", "N = 150");
                assert!(few != block, "the number of stars is not where the test looks for it");
                fs::write(folder.path("make_stars.py"), few).unwrap();
            }
            "toml" => fs::write(folder.path("stars.toml"), block).unwrap(),
            "sh" => {
                for line in block.lines().filter(|l| !l.starts_with('#')) {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    match words[..] {
                        ["python3", script] => {
                            let Some(python) = python(".venv", script) else { return };
                            // The interpreter alone: the script is that of the page.
                            let mut python = Command::new(python.get_program());
                            let output = python.arg(script).current_dir(folder.path("")).output().unwrap();
                            assert!(output.status.success(), "{}", outputs(&output));
                        }
                        ["nbody", ref arguments @ ..] => {
                            ok(&folder, arguments);
                        }
                        _ => panic!("the test does not know the command {line}"),
                    }
                    commands += 1;
                }
            }
            _ => {}
        }
    }
    assert!(commands >= 4, "{commands}");
    let svg = fs::read_to_string(folder.path("out/stars/plots/particles.svg")).unwrap();
    assert!(svg.contains("Myr") && svg.contains("kpc"));
}
