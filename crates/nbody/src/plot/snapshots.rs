//! The figure `particles` of a run: its snapshots, or the vorticity on its grid, at up to four times.

use std::path::Path;

use super::slice;
use super::space::{self, Subject};
use crate::convert::source::INDEX;
use crate::failure::Failure;
use crate::figure::Content;
use crate::files::FileError;
use crate::files::cells::{self, Magnitude};
use crate::files::series::{Entry, Series};
use crate::files::snapshot::{self, Snapshot};
use crate::times::TimeUnit;
use crate::units::{Dimension, System};

/// Times that are shown.
const TIMES: usize = 4;

/// Checks that the folder of a run is there.
///
/// # Errors
/// 66 where nothing or a file is.
pub fn need_folder(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    let why = if path.exists() { "a file, and no run directory" } else { "no such run directory" };
    Err(Failure::new(66, format!("{}: {why}", path.display())))
}

/// What a run shows at these times.
pub enum Shown {
    /// Particles.
    Particles(Vec<Snapshot>),
    /// The vorticity on a grid, with its times.
    Vorticity(Vec<(f64, Magnitude)>),
}

impl Shown {
    /// Reads a run; `None` without snapshots, or where all were moved away. Of some that were, it warns. Fields on a grid without
    /// vorticity are an empty list.
    ///
    /// # Errors
    /// Files that are damaged.
    pub fn read(run: &Path) -> Result<Option<Self>, Failure> {
        let entries = match Series::read(&run.join(INDEX)) {
            Err(FileError::Missing { .. }) => return Ok(None),
            series => series?.entries().to_vec(),
        };
        let named = entries.len();
        let there: Vec<Entry> = entries.into_iter().filter(|e| run.join(&e.name).exists()).collect();
        if there.is_empty() {
            return Ok(None);
        }
        if there.len() < named {
            crate::console::tell(format_args!(
                "nbody: warning: {}: {} of {named} snapshots that {INDEX} names are not there",
                run.display(),
                named - there.len()
            ));
        }
        let entries = chosen(&there);
        let read = if entries.first().is_some_and(|e| e.name.starts_with("grid_")) {
            let field = |e: &Entry| Ok(cells::magnitude(&run.join(&e.name), "vorticity")?.map(|f| (e.time, f)));
            let fields: Result<Option<Vec<_>>, FileError> = entries.iter().map(field).collect();
            fields.map(|fields| Shown::Vorticity(fields.unwrap_or_default()))
        } else {
            let snapshots: Result<Vec<_>, FileError> =
                entries.iter().map(|e| snapshot::read(&run.join(&e.name))).collect();
            snapshots.map(Shown::Particles)
        };
        Ok(Some(read?))
    }

    /// The figure, with a title; `None` where there is nothing to show.
    pub fn figure(self, groups: Vec<(String, usize)>, units: System) -> Option<(String, Content)> {
        let last = |times: &mut dyn Iterator<Item = f64>| times.fold(0.0, |a: f64, t| a.max(t.abs()));
        match self {
            Shown::Vorticity(fields) => {
                let time = TimeUnit::of(units, last(&mut fields.iter().map(|f| f.0)));
                let labelled: Vec<_> =
                    fields.into_iter().map(|(t, field)| (format!("t = {}", time.text(t)), field)).collect();
                let (content, what) = slice::figure(&labelled)?;
                Some((format!("Vorticity |ω|, {what}"), content))
            }
            Shown::Particles(snapshots) => {
                let time = TimeUnit::of(units, last(&mut snapshots.iter().map(|s| s.time)));
                let charged = snapshots.iter().any(|s| s.charge.is_some());
                let [length, mass] = [Dimension::Length, Dimension::Mass].map(|d| units.unit(d));
                let subject = Subject { groups, charged, length, mass, time };
                let (content, along) = space::figure(&snapshots, &subject)?;
                Some((format!("Particles, seen along {along}"), content))
            }
        }
    }
}

/// At most [`TIMES`] entries, the first and the last among them, and as many steps of output between each two.
fn chosen(all: &[Entry]) -> Vec<Entry> {
    let n = TIMES.min(all.len());
    (0..n).map(|i| all[i * (all.len() - 1) / n.saturating_sub(1).max(1)].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_time_are_shown() {
        let entries: Vec<Entry> = (0..11).map(|i| Entry { name: i.to_string(), time: f64::from(i) }).collect();
        let times = |n: usize| chosen(&entries[..n]).iter().map(|e| e.time).collect::<Vec<_>>();
        assert_eq!(times(11), [0.0, 3.0, 6.0, 10.0]);
        assert_eq!((times(4), times(2), times(1)), (vec![0.0, 1.0, 2.0, 3.0], vec![0.0, 1.0], vec![0.0]));
        assert!(times(0).is_empty());
    }
}
