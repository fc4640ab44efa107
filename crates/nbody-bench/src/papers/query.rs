//! A number read from the records of a run: which records, which of their numbers, and which of these.

use serde::Deserialize;
use toml::{Table, Value};

use crate::lines::{Crossing, crossing, overlap};
use crate::record::Record;

/// How a number follows from records.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Which of the numbers.
    pub pick: Pick,
    /// The name of the number in a record.
    pub field: String,
    /// A number of the same record that it is divided by.
    #[serde(default)]
    pub per: Option<String>,
    /// Names and values that a record must have. `cuda` and `cpu` are devices of any number.
    #[serde(default, rename = "where")]
    pub only: Table,
    /// Divides by the number of records that have these values instead, at the same place.
    #[serde(default)]
    pub over: Option<Table>,
    /// The place of a record, along which curves run.
    #[serde(default = "size")]
    pub along: String,
    /// Multiplies the result.
    #[serde(default = "one")]
    pub times: f64,
}

fn size() -> String {
    "n".into()
}

fn one() -> f64 {
    1.0
}

/// Which of several numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// That of the last place.
    Last,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The place of the largest.
    PlaceOfMax,
    /// The place of the smallest.
    PlaceOfMin,
    /// The place from which on the numbers are less than those of `over`.
    Crossing,
}

impl Query {
    /// The number, and the records that it follows from; none where a record is missing.
    pub fn number<'a>(&self, records: &'a [Record]) -> Option<(f64, Vec<&'a Record>)> {
        let mut upper = self.curve(records, &self.only);
        let lower = self.over.as_ref().map(|over| {
            let mut wanted = self.only.clone();
            wanted.extend(over.clone());
            self.curve(records, &wanted)
        });
        if self.pick == Pick::Crossing {
            let lower = lower?;
            // Where error bars overlap, neither is known to be less.
            let known = |place: f64| {
                let at = |curve: &[Point<'a>]| curve.iter().find(|p| p.place == place).map(|p| p.record);
                at(&upper).zip(at(&lower)).is_some_and(|(a, b)| !overlap(a, b))
            };
            let places: Vec<f64> = upper.iter().map(|p| p.place).filter(|&p| known(p)).collect();
            let points = |curve: &[Point<'_>]| {
                let kept = curve.iter().filter(|p| places.contains(&p.place));
                kept.map(|p| (p.place, p.value)).collect::<Vec<_>>()
            };
            let Some(Crossing::At(place)) = crossing(&points(&lower), &points(&upper)) else { return None };
            return Some((self.times * place, upper.iter().chain(&lower).map(|p| p.record).collect()));
        }
        let mut others = vec![];
        if let Some(lower) = &lower {
            upper = upper
                .into_iter()
                .filter_map(|p| {
                    let other = lower.iter().find(|o| o.place == p.place)?;
                    others.push((p.place, other.record));
                    Some(Point { value: p.value / other.value, ..p })
                })
                .collect();
        }
        let last = upper.len().checked_sub(1)?;
        let of = |better: fn(f64, f64) -> bool| {
            (1..=last).fold(0, |best, i| if better(upper[i].value, upper[best].value) { i } else { best })
        };
        let at = match self.pick {
            Pick::Last | Pick::Crossing => last,
            Pick::Max | Pick::PlaceOfMax => of(|a, b| a > b),
            Pick::Min | Pick::PlaceOfMin => of(|a, b| a < b),
        };
        let value = match self.pick {
            Pick::PlaceOfMax | Pick::PlaceOfMin => upper[at].place,
            _ => upper[at].value,
        };
        let from = others.iter().filter(|o| o.0 == upper[at].place).map(|o| o.1);
        Some((self.times * value, [upper[at].record].into_iter().chain(from).collect()))
    }

    /// Whether both curves are there, which then do not cross.
    pub fn does_not_cross(&self, records: &[Record]) -> bool {
        let over = self.over.as_ref().map(|over| self.only.clone().into_iter().chain(over.clone()).collect());
        let there = |wanted: &Table| !self.curve(records, wanted).is_empty();
        self.pick == Pick::Crossing && there(&self.only) && over.is_some_and(|o| there(&o))
    }

    /// Whether it is about a GPU.
    pub fn needs_gpu(&self) -> bool {
        let tables = [Some(&self.only), self.over.as_ref()];
        tables.into_iter().flatten().any(|t| t.get("device").is_some_and(|d| d.as_str() == Some("cuda")))
    }

    /// The numbers of the records with these values, in order of their places; of several at one place the smallest.
    fn curve<'a>(&self, records: &'a [Record], wanted: &Table) -> Vec<Point<'a>> {
        let mut all: Vec<Point<'a>> = vec![];
        for record in records.iter().filter(|r| wanted.iter().all(|(k, v)| has(r, k, v))) {
            let divided = self.per.as_ref().map_or(1.0, |per| record.number(per));
            let (place, value) = (record.number(&self.along), record.number(&self.field) / divided);
            if place.is_finite() && value.is_finite() {
                all.push(Point { place, value, record });
            }
        }
        all.sort_by(|a, b| (a.place, a.value).partial_cmp(&(b.place, b.value)).unwrap_or(std::cmp::Ordering::Equal));
        all.dedup_by(|b, a| a.place == b.place);
        all
    }
}

struct Point<'a> {
    place: f64,
    value: f64,
    record: &'a Record,
}

fn has(record: &Record, name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) if name == "device" => record.text(name).split(':').next() == Some(text),
        Value::String(text) => record.text(name) == text,
        Value::Integer(number) => record.number(name) == *number as f64,
        Value::Float(number) => record.number(name) == *number,
        Value::Boolean(wanted) => record.is(name) == *wanted,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let mut all = vec![];
        for (device, method, times) in [
            ("cpu", "direct", [1.0, 100.0, 10_000.0]),
            ("cpu", "fmm", [5.0, 50.0, 500.0]),
            ("cuda:0", "fmm", [1.0, 2.0, 5.0]),
        ] {
            for (n, seconds) in [1e3, 1e4, 1e5].into_iter().zip(times) {
                let mut record = Record::default();
                record.set("device", device).set("method", method).set("n", n).set("seconds", seconds);
                all.push(record.set("stage_P2P", 0.4 * seconds).clone());
            }
        }
        all
    }

    fn asked(text: &str) -> Option<f64> {
        let query: Query = toml::from_str(text).unwrap();
        query.number(&records()).map(|(value, _)| value)
    }

    #[test]
    fn numbers_are_those_of_the_records_that_are_meant() {
        let fmm = "field = 'seconds'\nwhere = { device = 'cpu', method = 'fmm' }\n";
        assert_eq!(asked(&format!("pick = 'last'\n{fmm}")), Some(500.0));
        assert_eq!(asked(&format!("pick = 'min'\n{fmm}")), Some(5.0));
        assert_eq!(asked(&format!("pick = 'max'\n{fmm}over = {{ device = 'cuda' }}")), Some(100.0));
        assert_eq!(asked(&format!("pick = 'place-of-min'\n{fmm}over = {{ device = 'cuda' }}")), Some(1e3));
        assert_eq!(asked(&format!("pick = 'last'\n{fmm}over = {{ method = 'direct' }}\ntimes = 100")), Some(5.0));
        let crossing = asked(&format!("pick = 'crossing'\n{fmm}over = {{ method = 'direct' }}")).unwrap();
        assert!((crossing / 1e3 - 10f64.powf(5f64.ln() / 10f64.ln())).abs() < 1e-9, "{crossing}");
        // Bars that overlap at 1e4 leave the line between 1e3 and 1e5.
        let mut close = records();
        close[1].set("seconds_low", 40.0).set("seconds_high", 110.0);
        let query: Query = toml::from_str(&format!("pick = 'crossing'\n{fmm}over = {{ method = 'direct' }}")).unwrap();
        let (further, _) = query.number(&close).unwrap();
        let share = 5f64.ln() / (5f64.ln() + 20f64.ln());
        assert!((further / 1e3 - 100f64.powf(share)).abs() < 1e-9, "{further}");
        let never = "pick = 'crossing'\nfield = 'seconds'\nwhere = { device = 'cuda' }\nover = { device = 'cpu', method = 'fmm' }";
        let query: Query = toml::from_str(never).unwrap();
        assert!(query.number(&records()).is_none() && query.does_not_cross(&records()) && !query.does_not_cross(&[]));
        let share = asked("pick = 'last'\nfield = 'stage_P2P'\nper = 'seconds'\nwhere = { n = 10000 }\ntimes = 100");
        assert_eq!(share, Some(40.0));
        assert_eq!(asked("pick = 'last'\nfield = 'seconds'\nwhere = { method = 'treecode' }"), None);
    }
}
