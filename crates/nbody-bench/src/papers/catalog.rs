//! What the papers measured, read from `configs/papers/`: runs of suites, and a row for each figure, table or number.
//!
//! The numbers of the papers are data with their source. Ours are never written there: a row has a
//! [`Query`] that reads the records of the run at hand.

use serde::Deserialize;
use toml::Table;

use super::query::Query;
use crate::preset::Preset;
use crate::suite::Suite;
use crate::suites;
use nbody_sim::failure::Failure;

/// The folder of the data in messages.
const NAME: &str = "configs/papers";
/// Files and contents, in the order of the page.
const FILES: [(&str, &str); 5] = [
    ("yokota-barba.toml", include_str!("../../../../configs/papers/yokota-barba.toml")),
    ("goude-engblom.toml", include_str!("../../../../configs/papers/goude-engblom.toml")),
    ("cruz-layton-barba.toml", include_str!("../../../../configs/papers/cruz-layton-barba.toml")),
    ("van-rees.toml", include_str!("../../../../configs/papers/van-rees.toml")),
    ("kohnke.toml", include_str!("../../../../configs/papers/kohnke.toml")),
];

/// All papers, in the order of the page.
#[derive(Debug)]
pub struct Catalog {
    /// The papers.
    pub papers: Vec<Paper>,
}

/// A paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Authors.
    pub name: String,
    /// Title, journal, year.
    pub source: String,
    /// Its processors.
    pub hardware: String,
    /// The suites that measure what it shows.
    #[serde(rename = "run")]
    pub runs: Vec<Run>,
    /// Its figures, tables and numbers.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// A suite with a preset.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its folder.
    pub name: String,
    /// The suite.
    pub suite: String,
    /// Whether the preset for kernels of the plane is meant.
    #[serde(default)]
    pub plane: bool,
    /// Whether the cores are left out where there is a GPU.
    #[serde(default)]
    pub gpu: bool,
    /// Keys of the preset that differ at either size.
    #[serde(default)]
    pub keys: Table,
    /// Keys that differ at toy size.
    #[serde(default)]
    pub toy: Table,
    /// Keys that differ at full size.
    #[serde(default)]
    pub full: Table,
}

/// A figure or table of a paper, or one number of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Which: "Fig. 5".
    pub item: String,
    /// The quantity, or what is drawn.
    pub shows: String,
    /// What the paper says, in words.
    pub paper: String,
    /// The paper's number, where it states one.
    #[serde(default)]
    pub value: Option<f64>,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// The run whose records and figures belong to it; none for what is not reproduced.
    #[serde(default)]
    pub run: Option<String>,
    /// The figure that is drawn of these records, without its ending.
    #[serde(default)]
    pub figure: Option<String>,
    /// Whether what the paper shows was measured on a GPU alone: a figure of cores is then none of it.
    #[serde(default)]
    pub gpu: bool,
    /// How our number follows from the records.
    #[serde(default)]
    pub ours: Option<Query>,
    /// The command that measures it in place of a run: it needs tools that bench does not.
    #[serde(default)]
    pub command: Option<String>,
    /// What differs in hardware or definition, or why there is no figure.
    pub differs: String,
}

impl Catalog {
    /// The papers of the program.
    ///
    /// # Errors
    /// 70 where the data that is compiled in is wrong.
    pub fn load() -> Result<Catalog, Failure> {
        let wrong = |name: &str, e: toml::de::Error| Failure::new(70, format!("{NAME}/{name}: {e}"));
        let read = |(name, text): (&str, &str)| toml::from_str(text).map_err(|e| wrong(name, e));
        Ok(Catalog { papers: FILES.into_iter().map(read).collect::<Result<_, _>>()? })
    }
}

impl Run {
    /// The suite.
    ///
    /// # Errors
    /// 70 for a name that no suite has.
    pub fn suite(&self) -> Result<&'static Suite, Failure> {
        let unknown = || Failure::new(70, format!("{NAME}: {}: no suite is named {}", self.name, self.suite));
        suites::named(&self.suite).ok_or_else(unknown)
    }

    /// The text of its preset: that of the suite with the keys of this run.
    ///
    /// # Errors
    /// 70 where the data that is compiled in is wrong.
    pub fn preset(&self, full: bool) -> Result<String, Failure> {
        let suite = self.suite()?;
        let wrong = |e: String| Failure::new(70, format!("{NAME}: {}: {e}", self.name));
        let text = if self.plane { suite.plane } else { Some(suite.preset) };
        let text = text.ok_or_else(|| wrong("the suite has no preset for the plane".into()))?;
        let mut table: Table = text.parse().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        let size: &Table = if full { &self.full } else { &self.toy };
        for (key, value) in self.keys.iter().chain(size) {
            table.insert(key.clone(), value.clone());
        }
        let text = table.to_string();
        Preset::parse(&self.name, &text).map_err(|e| wrong(e.render(false)))?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Sweep;
    use fmm::Device;

    #[test]
    fn every_row_names_a_run_and_every_run_has_cases_at_both_sizes() {
        let catalog = Catalog::load().unwrap();
        assert_eq!(catalog.papers.len(), 5);
        let mut names = vec![];
        for paper in &catalog.papers {
            for run in &paper.runs {
                assert!(!names.contains(&&run.name), "{}: two runs of one name", run.name);
                names.push(&run.name);
                for full in [false, true] {
                    let preset = Preset::parse(&run.name, &run.preset(full).unwrap()).unwrap();
                    let devices = vec![Device::Cpu, Device::Cuda(0)];
                    let sweep = Sweep { preset, devices, threads: 2, python: None };
                    assert!(!(run.suite().unwrap().cases)(&sweep).unwrap().is_empty(), "{}", run.name);
                }
            }
            for row in &paper.rows {
                let known = row.run.as_ref().is_none_or(|name| paper.runs.iter().any(|r| r.name == *name));
                assert!(known, "{}, {}: no such run", paper.name, row.item);
                assert!(row.run.is_none() || row.command.is_none(), "{}, {}: two commands", paper.name, row.item);
                assert!(row.run.is_some() || row.ours.is_none(), "{}, {}: of no run", paper.name, row.item);
                assert!(
                    row.ours.is_some() || row.value.is_none(),
                    "{}, {}: compared with nothing",
                    paper.name,
                    row.item
                );
                assert!(!row.differs.is_empty() && !row.paper.is_empty(), "{}, {}", paper.name, row.item);
            }
        }
    }
}
