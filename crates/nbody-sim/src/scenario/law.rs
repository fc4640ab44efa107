//! `[force]`: the law, its softening and the pairs that do not interact.

use std::path::Path;

use fmm_core::Softening;
use fmm_core::planar::Blob;

use super::Law;
use super::document::{Item, Value};
use super::reader::{Range, Section};
use crate::units::{Dimension, System};

/// What takes the place of the bare kernel.
#[derive(Clone, Copy)]
pub(super) struct Softened {
    /// In space.
    pub space: Softening,
    /// In the plane, for a run there.
    pub plane: Option<Blob>,
}

impl Softened {
    /// A kernel of length 1 with another length.
    fn with_length(self, length: f64) -> Self {
        Softened { space: self.space.with_length(length), plane: self.plane.map(|blob| blob.scaled(length)) }
    }

    pub(super) fn length(&self) -> f64 {
        self.plane.map_or(self.space.length(), Blob::length)
    }
}

/// Reads `[force]`: the law, what softens it, and the pairs that it leaves out.
pub(super) fn force(
    mut s: Section<'_>,
    units: System,
    plane: bool,
    folder: Option<&Path>,
) -> (Law, Softened, Vec<[usize; 2]>) {
    let law = s.choice("law", &Law::NAMES).unwrap_or_default();
    let (constant, others) = match law {
        // Pure numbers.
        Law::Vortex => (Some(1.0), "nbody"),
        Law::Gravity => (units.gravity(), "nbody, si, astro, solar or galactic"),
        Law::Coulomb => (units.electric(), "nbody, si or md"),
    };
    if constant.is_none() {
        let message = format!("force.law = \"{}\" does not go with units.system = \"{}\"", law.name(), units.name());
        s.mistake("law", message, "no constant in these units", Some(format!("choose units.system = {others}")));
    }
    if let Some(Value::Float(_) | Value::Integer(_) | Value::String(_)) = s.item("softening").map(|i| &i.value) {
        let name = if plane { "algebraic" } else { "plummer" };
        let help = format!("write it with its kernel: softening = {{ kernel = \"{name}\", length = 0.1 }}");
        s.mistake(
            "softening",
            "force.softening is a length without a kernel".into(),
            "a table is expected",
            Some(help),
        );
        return (law, Softened { space: Softening::None, plane: plane.then_some(Blob::Point) }, vec![]);
    }
    let mut k = s.section("softening");
    let in_space = Softening::SOFTENED.map(|kernel| (kernel.name(), Softened { space: kernel, plane: None }));
    let in_plane = Blob::ALL.map(|blob| (blob.name(), Softened { space: Softening::None, plane: Some(blob) }));
    let kernels = if plane { &in_plane[..] } else { &in_space[..] };
    let none = kernels[0].1;
    // Vortices in space have cores, of one kernel.
    let cored = law == Law::Vortex && !plane;
    let kernel = k.choice("kernel", kernels);
    let range = if cored && k.has("kernel") { Range::POSITIVE } else { Range::NOT_NEGATIVE };
    let length = k.quantity("length", Dimension::Length, units, range);
    // A mistake in the length, or a key that is missing, is noted already.
    let noted = match kernel {
        Some(kernel) => length.is_none() && (k.has("length") || kernel.length() > 0.0),
        None => k.has("length") && !k.has("kernel"),
    };
    let softening = match (kernel, length) {
        (Some(kernel), Some(length)) => kernel.with_length(length),
        (Some(kernel), None) => {
            if kernel.length() > 0.0 && !k.has("length") {
                let name = kernels[1].0;
                k.missing("length", &format!("for example softening = {{ kernel = \"{name}\", length = 0.01 }}"));
            }
            none
        }
        (None, Some(_)) if !k.has("kernel") => {
            let names: Vec<&str> = kernels.iter().map(|(name, _)| *name).collect();
            let names = if cored { "p1".into() } else { names.join(", ") };
            k.missing("kernel", &format!("the length is that of a kernel, one of: {names}"));
            none
        }
        _ => none,
    };
    k.close();
    if cored && !noted && !matches!(softening.space, Softening::P1(length) if length > 0.0) {
        let help = "for example softening = { kernel = \"p1\", length = 0.1 }, at least the distance of neighbors";
        let message = "vortices in space have cores, and force.softening gives them none".to_string();
        s.mistake("softening", message, "allowed: the kernel p1 with a length above 0", Some(help.into()));
    }
    let softening = screened(&mut s, law, softening, units);
    let exclusions = exclusions(&mut s, law, plane, folder);
    s.close();
    (law, softening, exclusions)
}

/// The kernel of charges that others screen, where a screening length is given.
fn screened(s: &mut Section<'_>, law: Law, softening: Softened, units: System) -> Softened {
    const KEY: &str = "screening_length";
    let Some(length) = s.quantity(KEY, Dimension::Length, units, Range::SCREENING) else { return softening };
    if law != Law::Coulomb || softening.plane.is_some() {
        let help = "set force.law = \"coulomb\", in space";
        s.mistake(KEY, format!("{} is for charges in space", s.full(KEY)), "there are none here", Some(help.into()));
    } else if softening.space != Softening::None {
        let help = "leave one of the two out";
        let message = format!("{} does not go with force.softening", s.full(KEY));
        s.mistake(KEY, message, "charges are softened already", Some(help.into()));
    }
    Softened { space: Softening::Yukawa(length), ..softening }
}

/// Pairs of ids, as a table in a file or in the scenario itself, which is how a checkpoint has them.
fn exclusions(s: &mut Section<'_>, law: Law, plane: bool, folder: Option<&Path>) -> Vec<[usize; 2]> {
    const KEY: &str = "exclusions";
    let Some(item) = s.item(KEY) else { return vec![] };
    if law != Law::Coulomb || plane {
        let help = "set force.law = \"coulomb\", in space";
        s.mistake(KEY, format!("{} is for charges in space", s.full(KEY)), "there are none here", Some(help.into()));
        return vec![];
    }
    let expected = "the name of a table with columns i and j, or pairs [[0, 1], [3, 7]], is expected";
    let pairs = match &item.value {
        Value::String(given) if given.is_empty() => {
            s.mistake(KEY, format!("{} is the empty name", s.full(KEY)), expected, None);
            return vec![];
        }
        Value::String(given) => {
            let path = folder.unwrap_or(Path::new("")).join(given);
            // A device or a pipe may never end, or never begin.
            if path.exists() && !path.is_file() {
                s.absent(KEY, 66, format!("{} is no file", path.display()), "this table", None);
                return vec![];
            }
            let read = crate::exclusions::read(&path, MOST_IDS, "id");
            let pairs = read.unwrap_or_else(|failure| {
                let line = failure.render(false).trim_start_matches("nbody: ").trim_end().to_string();
                s.absent(KEY, failure.code, line, "this table", None);
                vec![]
            });
            // The resolved scenario has them all, and must be one that can be read.
            let digits = |i: usize| i.checked_ilog10().unwrap_or(0) as usize + 1;
            let bytes: usize = pairs.iter().map(|[i, j]| digits(*i) + digits(*j) + "[, ], ".len()).sum();
            if bytes > MOST_BYTES {
                let line = format!("{}: {} pairs take {bytes} bytes in a scenario", s.full(KEY), pairs.len());
                s.mistake(KEY, line, format!("allowed: {MOST_BYTES} bytes, some 60000 pairs"), None);
            }
            return pairs;
        }
        Value::Array(pairs) => pairs,
        other => {
            s.mistake(KEY, format!("{} is {}; {expected}", s.full(KEY), other.kind()), expected, None);
            return vec![];
        }
    };
    let pair = |item: &Item| {
        let Value::Array(two) = &item.value else { return None };
        let id = |item: &Item| match item.value {
            Value::Integer(Some(i)) => usize::try_from(i).ok().filter(|i| *i < MOST_IDS),
            _ => None,
        };
        match two.as_slice() {
            [a, b] => Some([id(a)?, id(b)?]).filter(|[a, b]| a != b),
            _ => None,
        }
    };
    let found: Option<Vec<[usize; 2]>> = pairs.iter().map(pair).collect();
    let Some(found) = found else {
        let message = format!("{}: not every entry is a pair of two different ids", s.full(KEY));
        let help = format!("ids are whole numbers from 0 to {}", MOST_IDS - 1);
        s.mistake(KEY, message, expected, Some(help));
        return vec![];
    };
    fmm::in_order(found).unwrap_or_else(|[a, b]| {
        s.mistake(KEY, format!("{}: the pair {a}, {b} is given twice", s.full(KEY)), "each pair once", None);
        vec![]
    })
}

/// Ids are below.
const MOST_IDS: usize = u32::MAX as usize;
/// What the pairs of a table may take of the megabyte of a scenario.
const MOST_BYTES: usize = 1_000_000;
