//! The commented scenarios that the program carries.

use std::path::Path;

use crate::failure::{Failure, Report};

/// Name and contents of each file of the folder `scenarios`.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// A scenario that the program carries.
#[derive(Debug, Clone, Copy)]
pub struct Carried {
    /// Its name, which is the file's without `.toml`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl Carried {
    /// The first line of the comment at its head.
    pub fn description(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }

    /// The files that it names and the program carries too (a table of particles).
    pub fn companions(&self) -> impl Iterator<Item = (&'static str, &'static [u8])> {
        let text = self.text;
        let quoted = move |name: &str| text.contains(&format!("\"{name}\""));
        FILES.iter().copied().filter(move |(name, _)| !name.ends_with(".toml") && quoted(name))
    }
}

/// All scenarios, by name.
pub fn all() -> impl Iterator<Item = Carried> {
    FILES.iter().filter_map(|(file, bytes)| {
        Some(Carried { name: file.strip_suffix(".toml")?, text: std::str::from_utf8(bytes).ok()? })
    })
}

/// The failure of a scenario file that is not there, with the way to one of that name that the
/// program carries.
pub fn point_to(mut failure: Failure, path: &Path) -> Failure {
    let name = path.file_stem().unwrap_or_default();
    if let (Report::Line(line), Some(s)) = (&mut failure.report, all().find(|s| s.name == name))
        && !path.exists()
    {
        line.push_str(&format!("; the program carries one: nbody init {} && nbody run {0}.toml", s.name));
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_folder_is_carried_and_described() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let files = std::fs::read_dir(folder).unwrap().filter(|e| e.as_ref().unwrap().path().is_file()).count();
        assert_eq!(FILES.len(), files);
        assert!(all().count() >= 2);
        for s in all() {
            assert!(s.text.starts_with('#') && s.description().ends_with('.'), "{}: {}", s.name, s.description());
        }
    }

    #[test]
    fn a_scenario_brings_the_files_that_it_names() {
        let planets = all().find(|s| s.name == "planets").unwrap();
        let names: Vec<&str> = planets.companions().map(|(n, _)| n).collect();
        assert_eq!(names, ["planets.csv"]);
    }
}
