//! One flat record a case, appended at once to a file of JSON lines, so that an interrupted sweep keeps what it has.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value};

use nbody_sim::failure::Failure;

/// A case and what was measured: names and numbers, nothing nested.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record(pub Map<String, Value>);

impl Record {
    /// Adds a value under a name; what is null is left out.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        if !value.is_null() {
            self.0.insert(name.into(), value);
        }
        self
    }

    /// A number; NaN where there is none.
    pub fn number(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// A text; empty where there is none.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the name is there and true.
    pub fn is(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// The file of the records.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    records: Vec<Record>,
    keys: HashSet<String>,
}

impl Store {
    /// Opens `path`: anew, or with `resume` to go on after its last whole line.
    ///
    /// # Errors
    /// 74 for a file that holds records already and is neither to be resumed nor overwritten (`force`), that another process
    /// writes, or that cannot be written; 65 where its lines are no records.
    pub fn open(path: &Path, resume: bool, force: bool) -> Result<Self, Failure> {
        let cannot =
            |what: &str, e: std::io::Error| Failure::new(74, format!("{}: cannot {what}: {e}", path.display()));
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(|e| cannot("create its folder", e))?;
        }
        let options = OpenOptions::new().create(true).append(true).read(true).clone();
        let file = options.open(path).map_err(|e| cannot("write", e))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| Failure::new(74, format!("{}: another process is writing it", path.display())))?;
        let bytes = fs::read(path).map_err(|e| cannot("read", e))?;
        if !bytes.is_empty() && !resume && !force {
            let line = format!(
                "{}: there are records already; go on with --resume, overwrite with --force, or name another folder with --out",
                path.display()
            );
            return Err(Failure::new(74, line));
        }
        // A line without its end was being written when the process died.
        let whole = if resume { bytes.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1) } else { 0 };
        file.set_len(whole as u64).map_err(|e| cannot("shorten", e))?;
        let records = parse(path, &bytes[..whole])?;
        let keys = records.iter().map(|r| r.text("case").to_string()).collect();
        Ok(Store { path: path.to_owned(), file, records, keys })
    }

    /// What was measured so far, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Whether there is a record of this case.
    pub fn holds(&self, case: &str) -> bool {
        self.keys.contains(case)
    }

    /// Appends a record, in one write, and sees it to the disk.
    ///
    /// # Errors
    /// 74 where it cannot be written.
    pub fn append(&mut self, record: Record) -> Result<(), Failure> {
        let line = format!("{}\n", Value::Object(record.0.clone()));
        let cannot = |e| Failure::new(74, format!("{}: cannot write: {e}", self.path.display()));
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()).map_err(cannot)?;
        self.keys.insert(record.text("case").into());
        self.records.push(record);
        Ok(())
    }
}

/// Reads a file of records.
///
/// # Errors
/// 66 where there is none, 65 where a line is no record.
pub fn read(path: &Path) -> Result<Vec<Record>, Failure> {
    let bytes = fs::read(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Failure::new(66, format!("{}: no such file", path.display())),
        _ => Failure::new(74, format!("{}: cannot read: {e}", path.display())),
    })?;
    parse(path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Record>, Failure> {
    let text = std::str::from_utf8(bytes);
    let bad = |line: usize, why: String| Failure::new(65, format!("{}: line {line}: {why}", path.display()));
    let lines = text.map_err(|e| bad(1, format!("not text: {e}")))?.lines().enumerate();
    lines
        .map(|(i, line)| match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(map)) if map.get("suite").is_some_and(Value::is_string) && map.contains_key("case") => {
                Ok(Record(map))
            }
            Ok(_) => Err(bad(i + 1, "not a record of a benchmark: it needs suite and case".into())),
            Err(e) => Err(bad(i + 1, format!("not a record of a benchmark: {e}"))),
        })
        .collect()
}

/// The records as CSV: one column a name, in the order in which names first appear.
///
/// # Errors
/// 70 if the crate that writes CSV refuses.
pub fn csv(records: &[Record]) -> Result<Vec<u8>, Failure> {
    let mut names: Vec<&str> = vec![];
    for name in records.iter().flat_map(|r| r.0.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let refused = |e: String| Failure::new(70, format!("cannot write CSV: {e}"));
    let mut out = csv::Writer::from_writer(vec![]);
    out.write_record(&names).map_err(|e| refused(e.to_string()))?;
    for record in records {
        let text = |name: &&str| match record.0.get(*name) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        out.write_record(names.iter().map(text)).map_err(|e| refused(e.to_string()))?;
    }
    out.into_inner().map_err(|e| refused(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(case: &str, n: f64) -> Record {
        let mut record = Record::default();
        record.set("suite", "test").set("case", case).set("n", n).set("left_out", Value::Null);
        record
    }

    #[test]
    fn a_broken_last_line_is_dropped_and_the_rest_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/a.jsonl");
        let mut store = Store::open(&path, false, false).unwrap();
        store.append(record("a", 1.0)).unwrap();
        store.append(record("b", 2.0)).unwrap();
        assert_eq!(Store::open(&path, true, false).unwrap_err().code, 74, "a second process");
        drop(store);
        assert_eq!(Store::open(&path, false, false).unwrap_err().code, 74);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], b"{\"suite\": \"te"].concat()).unwrap();
        assert_eq!(read(&path).unwrap_err().code, 65);
        let store = Store::open(&path, true, false).unwrap();
        assert_eq!(store.records(), [record("a", 1.0), record("b", 2.0)]);
        assert!(store.holds("b") && !store.holds("c"));
        drop(store);
        assert_eq!(fs::read(&path).unwrap(), whole);
        assert!(Store::open(&path, false, true).unwrap().records().is_empty());
    }

    #[test]
    fn csv_has_every_name_once() {
        let mut with_more = record("a, b", 1.0);
        with_more.set("more", true);
        let text = String::from_utf8(csv(&[record("c", 0.5), with_more]).unwrap()).unwrap();
        assert_eq!(text, "case,n,suite,more\nc,0.5,test,\n\"a, b\",1.0,test,true\n");
    }
}
