//! Typed access to the keys of a section. Every mistake is noted and reading goes on, so that all are reported.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::document::{Item, Key, Value};
use crate::messages::nearest;
use crate::messages::number;
use crate::mistake::{Mistake, Span};
use crate::units::{Dimension, System};

/// The largest angle of a rotation in degrees: beyond, its last bits are parts of a turn.
pub const TURNED: f64 = 1e6;

/// The numbers that a key takes.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    low: f64,
    /// The largest.
    pub high: f64,
    /// Whether `low` itself is allowed.
    closed: bool,
    /// As messages name it.
    text: &'static str,
}

impl Range {
    /// Any finite number.
    pub const FINITE: Range = Range { low: f64::MIN, high: f64::MAX, closed: true, text: "a finite number" };
    /// x > 0.
    pub const POSITIVE: Range = Range { low: 0.0, high: f64::MAX, closed: false, text: "above 0 and finite" };
    /// x ≥ 0.
    pub const NOT_NEGATIVE: Range = Range { low: 0.0, high: f64::MAX, closed: true, text: "0 or more, and finite" };
    /// Masses and lengths of models: their densities and energies are numbers as well.
    pub const SIZE: Range = Range { low: 1e-60, high: 1e60, closed: true, text: "1e-60 to 1e60" };
    /// Screening length of charges: sums in space have no numbers for a shorter one.
    pub const SCREENING: Range =
        Range { low: 1e-100, high: f64::MAX, closed: true, text: "1e-100 or more, and finite" };
    /// Relative force error.
    pub const TOLERANCE: Range = Range { low: 1e-14, high: 0.1, closed: true, text: "1e-14 to 0.1" };
    /// Side of a periodic box.
    pub const SIDE: Range = Range { low: 1e-60, high: 1e60, closed: true, text: "1e-60 to 1e60" };
    /// What a periodic box is in.
    pub const DIELECTRIC: Range = Range { low: 1.0, high: 1e300, closed: true, text: "1 or more" };
    /// Opening angle.
    pub const THETA: Range = Range { low: 0.2, high: 1.0, closed: true, text: "0.2 to 1" };
    /// Opening angle in the plane.
    pub const THETA_PLANE: Range = Range { low: 0.2, high: 0.8, closed: true, text: "0.2 to 0.8 in the plane" };
    /// Opening angle of bricks of a grid; 0 is the direct sum.
    pub const THETA_GRID: Range = Range { low: 0.0, high: 0.9, closed: true, text: "0 to 0.9" };
    /// Distance of expansions in smoothing lengths.
    pub const GUARD: Range = Range { low: 0.0, high: 1000.0, closed: true, text: "0 to 1000" };
    /// ν of vortices.
    pub const VISCOSITY: Range = Range { low: 0.0, high: 1e100, closed: true, text: "0 to 1e100" };
    /// Part of the largest vorticity that counts as none.
    pub const CUTOFF: Range = Range { low: 0.0, high: 0.1, closed: true, text: "0 to 0.1" };
    /// Strength of the penalisation of a body over a step, λ dt.
    pub const PENALTY: Range = Range { low: 1.0, high: 1e12, closed: true, text: "1 to 1e12" };
    /// The largest dt |∇u| of a step.
    pub const LAGRANGIAN: Range = Range { low: 0.01, high: 1.0, closed: true, text: "0.01 to 1" };
    /// How a ring's core falls off.
    pub const STEEPNESS: Range = Range { low: 1.0, high: 300.0, closed: true, text: "1 to 300" };
    /// Ratio −2T/W of a model.
    pub const VIRIAL: Range = Range { low: 0.0, high: 10.0, closed: true, text: "0 to 10" };

    /// Factor of the automatic step.
    pub const ETA: Range = Range { low: 0.0, high: 1.0, closed: false, text: "above 0, at most 1" };
    /// Eccentricity of an ellipse.
    pub const ECCENTRICITY: Range = Range { low: 0.0, high: 0.999, closed: true, text: "0 to 0.999" };
    /// A part of a whole.
    pub const SHARE: Range = Range { low: 0.0, high: 1.0, closed: true, text: "0 to 1" };
    /// Exponent of a density ρ ∝ r^(−x) whose sphere has a finite energy.
    pub const CUSP: Range = Range { low: 0.0, high: 2.4, closed: true, text: "0 to 2.4" };
    /// Edge of a halo in scale radii.
    pub const CONCENTRATION: Range = Range { low: 1.0, high: 1000.0, closed: true, text: "1 to 1000" };
    /// Axis ratio of an ellipse.
    pub const AXIS_RATIO: Range = Range { low: 0.01, high: 1.0, closed: true, text: "0.01 to 1" };
    /// Flattening of an ellipsoid.
    pub const FLATTENING: Range = Range { low: 0.0, high: 10.0, closed: false, text: "above 0, at most 10" };

    /// The range in words.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// Whether a key takes `x`.
    pub fn contains(&self, x: f64) -> bool {
        x <= self.high && (x > self.low || (self.closed && x == self.low))
    }
}

/// What a reading collects: mistakes, and every key that was asked for.
#[derive(Debug, Default)]
pub struct Notes {
    /// Mistakes, in order of discovery.
    pub mistakes: RefCell<Vec<Mistake>>,
    /// Full names of all keys known to the parser (`time.dt`, `particles.n`).
    pub known: RefCell<BTreeSet<String>>,
}

impl Notes {
    /// Notes a mistake.
    pub fn add(&self, span: Option<&Span>, message: String, label: impl Into<String>, help: Option<String>) {
        let mistake = Mistake { message, label: label.into(), span: span.cloned(), help, code: 65 };
        self.mistakes.borrow_mut().push(mistake);
    }
}

/// Keys that are compared with those that exist: searching takes its time, and nobody reads so many.
const SEARCHED: usize = 50;

/// A section of the scenario being read.
pub struct Section<'a> {
    notes: &'a Notes,
    /// Name in messages: `time`, `particles.0`; empty for the top level.
    name: String,
    item: Option<&'a Item>,
    asked: Vec<&'static str>,
    /// Misspelt keys that a message has named already.
    misspelt: RefCell<Vec<&'a str>>,
}

impl<'a> Section<'a> {
    /// The section in `item`, or an empty one where the scenario has none.
    pub fn new(notes: &'a Notes, name: impl Into<String>, item: Option<&'a Item>) -> Self {
        let name = name.into();
        let item = item.filter(|i| {
            let table = matches!(i.value, Value::Table(_));
            if !table {
                notes.add(
                    Some(&i.span),
                    format!("'{name}' is {}, not a section", i.value.kind()),
                    "a section is expected",
                    None,
                );
            }
            table
        });
        Section { notes, name, item, asked: vec![], misspelt: RefCell::default() }
    }

    /// `section.key` as messages name it.
    pub fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_string() } else { format!("{}.{key}", self.name) }
    }

    /// Notes a mistake at the value of `key`, or at the section where the key is absent.
    pub fn mistake(&self, key: &str, message: String, label: impl Into<String>, help: Option<String>) {
        let span = self.find(key).or(self.item).map(|i| &i.span);
        self.notes.add(span, message, label, help);
    }

    /// Notes that what `key` names is not there, with the exit code for that.
    pub fn absent(&self, key: &str, code: u8, message: String, label: impl Into<String>, help: Option<String>) {
        self.mistake(key, message, label, help);
        if let Some(mistake) = self.notes.mistakes.borrow_mut().last_mut() {
            mistake.code = code;
        }
    }

    fn find(&self, key: &str) -> Option<&'a Item> {
        let Value::Table(entries) = &self.item?.value else { return None };
        entries.iter().find(|(k, _)| k.name == key).map(|(_, v)| v)
    }

    /// The item of `key`, which becomes known.
    pub fn item(&mut self, key: &'static str) -> Option<&'a Item> {
        let section: Vec<&str> =
            self.name.split('.').filter(|p| p.parse::<usize>().is_err() && !p.is_empty()).collect();
        let full = section.into_iter().chain([key]).collect::<Vec<_>>().join(".");
        self.notes.known.borrow_mut().insert(full);
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.find(key)
    }

    /// Whether the scenario has this key.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Notes that a required key is missing, or misspelt.
    pub fn missing(&self, key: &str, help: &str) {
        let (label, span) = match (self.misspelt_as(key), self.item) {
            (Some(found), _) => {
                self.misspelt.borrow_mut().push(&found.name);
                (format!("did you mean '{key}'?"), Some(&found.span))
            }
            (None, Some(item)) => (format!("'{key}' belongs here"), Some(&item.span)),
            (None, None) => (String::new(), None),
        };
        self.notes.add(span, format!("{} is missing", self.full(key)), label, Some(help.to_string()));
    }

    /// The key of the scenario that is most like `key` and that nobody has asked for.
    fn misspelt_as(&self, key: &str) -> Option<&'a Key> {
        const ALIKE: f64 = 0.6;
        let Value::Table(entries) = &self.item?.value else { return None };
        let score = |k: &Key| strsim::normalized_damerau_levenshtein(&k.name.to_lowercase(), key);
        let unasked = entries.iter().map(|(k, _)| k).filter(|k| !self.asked.contains(&k.name.as_str()));
        unasked
            .take(SEARCHED)
            .map(|k| (score(k), k))
            .filter(|(s, _)| *s > ALIKE)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, k)| k)
    }

    fn wrong_type(&self, key: &str, item: &Item, expected: &str) {
        let message = format!("{} is {}; {expected} is expected", self.full(key), item.value.kind());
        let help = match &item.value {
            Value::String(s) if expected.contains("number") && s.trim().parse::<f64>().is_ok() => {
                Some(format!("write it without quotes: {key} = {}", s.trim()))
            }
            _ => None,
        };
        self.notes.add(Some(&item.span), message, format!("{expected} is expected"), help);
    }

    fn check(&self, key: &str, item: &Item, x: f64, range: Range) -> Option<f64> {
        if range.contains(x) {
            return Some(x);
        }
        let message = format!("{} = {} is outside its range", self.full(key), number(x));
        self.notes.add(Some(&item.span), message, format!("allowed: {}", range.text), None);
        None
    }

    /// A number.
    pub fn number(&mut self, key: &'static str, range: Range) -> Option<f64> {
        let item = self.item(key)?;
        self.number_in(key, item, range)
    }

    fn number_in(&self, key: &str, item: &Item, range: Range) -> Option<f64> {
        match item.value {
            Value::Float(x) => self.check(key, item, x, range),
            Value::Integer(Some(i)) => self.check(key, item, i as f64, range),
            Value::Integer(None) => {
                let message = format!("{} is {}", self.full(key), item.value.kind());
                let help = "write it with an exponent, such as 1e20".to_string();
                self.notes.add(Some(&item.span), message, format!("allowed: {}", range.text), Some(help));
                None
            }
            _ => {
                self.wrong_type(key, item, "a number");
                None
            }
        }
    }

    /// A number in the scenario's units, or a string such as `"0.25 d"` that is converted to them.
    pub fn quantity(&mut self, key: &'static str, dimension: Dimension, units: System, range: Range) -> Option<f64> {
        let item = self.item(key)?;
        let Value::String(text) = &item.value else {
            if matches!(item.value, Value::Float(_) | Value::Integer(_)) {
                return self.number_in(key, item, range);
            }
            self.wrong_type(key, item, "a number, or a string with a unit,");
            return None;
        };
        match units.convert(text, dimension) {
            Ok(x) => self.check(key, item, x, range),
            Err(_) if text.trim().parse::<f64>().is_ok() => {
                self.wrong_type(key, item, "a number");
                None
            }
            Err(why) => {
                let message = format!("{} = \"{text}\" cannot be read as {}", self.full(key), dimension.name());
                self.notes.add(Some(&item.span), message, why, Some(units.quantity_help(dimension)));
                None
            }
        }
    }

    /// A whole number from `low` to `high`; `1e6` counts as one.
    pub fn integer(&mut self, key: &'static str, low: i64, high: i64) -> Option<i64> {
        let item = self.item(key)?;
        let value = match item.value {
            Value::Integer(i) => i,
            Value::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 => Some(x as i64),
            Value::Float(x) => {
                let message = format!("{} = {} is not a whole number", self.full(key), number(x));
                self.notes.add(Some(&item.span), message, format!("allowed: whole numbers from {low} to {high}"), None);
                return None;
            }
            _ => {
                self.wrong_type(key, item, "a whole number");
                return None;
            }
        };
        if let Some(i) = value.filter(|i| (low..=high).contains(i)) {
            return Some(i);
        }
        let shown = value.map_or("(more than 64 bits)".to_string(), |i| i.to_string());
        let message = format!("{} = {shown} is outside its range", self.full(key));
        self.notes.add(Some(&item.span), message, format!("allowed: {low} to {high}"), None);
        None
    }

    /// Text.
    pub fn string(&mut self, key: &'static str) -> Option<String> {
        let item = self.item(key)?;
        if let Value::String(s) = &item.value {
            return Some(s.clone());
        }
        self.wrong_type(key, item, "a string");
        None
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let item = self.item(key)?;
        if let Value::Boolean(b) = item.value {
            return Some(b);
        }
        self.wrong_type(key, item, "true or false");
        None
    }

    /// One of a few names, each with its meaning.
    pub fn choice<T: Copy>(&mut self, key: &'static str, names: &[(&'static str, T)]) -> Option<T> {
        let item = self.item(key)?;
        let Value::String(s) = &item.value else {
            self.wrong_type(key, item, "a string");
            return None;
        };
        self.name_in(&self.full(key), item, s, names)
    }

    /// The value of a string that is parsed.
    pub fn parsed<T: std::str::FromStr>(&mut self, key: &'static str, allowed: &str) -> Option<T> {
        let item = self.item(key)?;
        let Value::String(text) = &item.value else {
            self.wrong_type(key, item, "a string");
            return None;
        };
        let value = text.parse().ok();
        if value.is_none() {
            self.mistake(key, format!("{} = \"{text}\" is unknown", self.full(key)), allowed, None);
        }
        value
    }

    fn name_in<T: Copy>(&self, full: &str, item: &Item, s: &str, names: &[(&'static str, T)]) -> Option<T> {
        if let Some((_, value)) = names.iter().find(|(n, _)| n == &s) {
            return Some(*value);
        }
        let all: Vec<&str> = names.iter().map(|(n, _)| *n).collect();
        let label = match nearest(&s.to_lowercase(), &all) {
            Some(n) => format!("did you mean \"{n}\"?"),
            None => "unknown name".into(),
        };
        let help = format!("allowed: {}", all.join(", "));
        self.notes.add(Some(&item.span), format!("{full} = \"{s}\" is unknown"), label, Some(help));
        None
    }

    /// A list of names without repetition.
    pub fn choices<T: Copy>(&mut self, key: &'static str, names: &[(&'static str, T)]) -> Option<Vec<T>> {
        let item = self.item(key)?;
        let Value::Array(list) = &item.value else {
            self.wrong_type(key, item, "a list of strings");
            return None;
        };
        let (mut seen, mut values) = (BTreeSet::new(), vec![]);
        for entry in list {
            let Value::String(s) = &entry.value else {
                self.wrong_type(key, entry, "a string");
                return None;
            };
            if !seen.insert(s) {
                let message = format!("{} names \"{s}\" twice", self.full(key));
                self.notes.add(Some(&entry.span), message, "repeated here", None);
                return None;
            }
            values.push(self.name_in(&self.full(key), entry, s, names)?);
        }
        Some(values)
    }

    /// Three quantities.
    pub fn vector(&mut self, key: &'static str, dimension: Dimension, units: System) -> Option<[f64; 3]> {
        self.three(key, Some((dimension, units)))
    }

    /// Three numbers.
    pub fn numbers(&mut self, key: &'static str) -> Option<[f64; 3]> {
        self.three(key, None)
    }

    /// Three numbers from −`most` to `most`.
    pub fn numbers_up_to(&mut self, key: &'static str, most: f64) -> Option<[f64; 3]> {
        let numbers = self.numbers(key)?;
        if let Some(bad) = numbers.iter().find(|n| n.abs() > most) {
            let message = format!("{} has {} in it", self.full(key), number(*bad));
            self.mistake(key, message, format!("allowed: -{most:e} to {most:e}"), None);
            return None;
        }
        Some(numbers)
    }

    fn three(&mut self, key: &'static str, convert: Option<(Dimension, System)>) -> Option<[f64; 3]> {
        let item = self.item(key)?;
        let Value::Array(list) = &item.value else {
            self.wrong_type(key, item, "a list of three numbers");
            return None;
        };
        if list.len() != 3 {
            let message = format!("{} has {} components", self.full(key), list.len());
            self.notes.add(Some(&item.span), message, "three are expected: [x, y, z]", None);
            return None;
        }
        let mut v = [0.0; 3];
        for (x, entry) in v.iter_mut().zip(list) {
            *x = match (&entry.value, convert) {
                (Value::String(text), Some((dimension, units))) => match units.convert(text, dimension) {
                    Ok(x) => self.check(key, entry, x, Range::FINITE)?,
                    Err(why) => {
                        let message = format!("{}: \"{text}\" cannot be read as {}", self.full(key), dimension.name());
                        self.notes.add(Some(&entry.span), message, why, Some(units.quantity_help(dimension)));
                        return None;
                    }
                },
                _ => self.number_in(key, entry, Range::FINITE)?,
            };
        }
        Some(v)
    }

    /// A subsection or inline table.
    pub fn section(&mut self, key: &'static str) -> Section<'a> {
        let full = self.full(key);
        Section::new(self.notes, full, self.item(key))
    }

    /// Reports every key that nobody asked for. `elsewhere` are keys that exist, with the reason why not here.
    pub fn close(self) {
        let Some(Item { value: Value::Table(entries), .. }) = self.item else { return };
        let misspelt = self.misspelt.into_inner();
        let named = |k: &str| self.asked.contains(&k) || misspelt.contains(&k);
        let unknown = entries.iter().filter(|(k, _)| !named(&k.name));
        for (i, (key, _)) in unknown.enumerate() {
            let place = if self.name.is_empty() { "the scenario".into() } else { format!("[{}]", self.name) };
            let near = if i < SEARCHED { nearest(&key.name.to_lowercase(), &self.asked) } else { None };
            let label = match near {
                Some(n) => format!("did you mean '{n}'?"),
                None => "unknown key".into(),
            };
            let help = format!("{place} takes: {}", self.asked.join(", "));
            self.notes.add(Some(&key.span), format!("unknown key '{}' in {place}", key.name), label, Some(help));
        }
    }
}
