//! Kinds of files that particles of a run come from, by the ending of the name.

use std::path::Path;

/// What reads a file of particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Comma-separated values.
    Csv,
    /// A NumPy array.
    Npy,
    /// A snapshot in HDF5: ours, or in GADGET's format.
    Hdf5,
    /// A snapshot of tipsy.
    Tipsy,
}

impl Kind {
    /// All endings, with the kind of each.
    pub const ENDINGS: [(&str, Kind); 7] = [
        ("csv", Kind::Csv),
        ("npy", Kind::Npy),
        ("hdf", Kind::Hdf5),
        ("hdf5", Kind::Hdf5),
        ("h5", Kind::Hdf5),
        ("tipsy", Kind::Tipsy),
        ("std", Kind::Tipsy),
    ];

    /// The kind that the ending of a name stands for.
    pub fn of(path: &Path) -> Option<Kind> {
        let ending = path.extension()?.to_str()?;
        Kind::ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, kind)| *kind)
    }

    /// Whether it has named columns, of particles or of anything else.
    pub fn is_table(self) -> bool {
        match self {
            Kind::Csv | Kind::Npy => true,
            Kind::Hdf5 | Kind::Tipsy => false,
        }
    }

    /// The endings of the kinds that `wanted` takes, each after `before`, as in `.csv, .npy`.
    pub fn endings(before: &str, wanted: fn(Kind) -> bool) -> String {
        let names = Kind::ENDINGS.iter().filter(|(_, kind)| wanted(*kind)).map(|(name, _)| format!("{before}{name}"));
        names.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_name_their_kinds() {
        assert_eq!(Kind::of(Path::new("a/b.std")), Some(Kind::Tipsy));
        assert_eq!([Kind::of(Path::new("csv")), Kind::of(Path::new("a.CSV"))], [None; 2]);
        assert_eq!(Kind::endings("", Kind::is_table), "csv, npy");
        assert_eq!(Kind::endings(".", |_| true), ".csv, .npy, .hdf, .hdf5, .h5, .tipsy, .std");
    }
}
