//! The scenario as a tree of values, each knowing the file or `--set` and the place that it came from.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use crate::mistake::{Mistake, Source, Span};

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Item {
    /// The value.
    pub value: Value,
    /// Its place; for a table that of its header.
    pub span: Span,
}

/// A TOML value.
#[derive(Debug, Clone)]
pub enum Value {
    /// Keys with their places, and values.
    Table(Vec<(Key, Item)>),
    /// A list, or an array of tables.
    Array(Vec<Item>),
    /// Text.
    String(String),
    /// A whole number; `None` where it does not fit 64 bits.
    Integer(Option<i64>),
    /// A real number.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A date or a time: no key takes one.
    Datetime,
}

impl Value {
    /// What messages call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Table(_) => "a table",
            Value::Array(_) => "a list",
            Value::String(_) => "a string",
            Value::Integer(None) => "a whole number of more than 64 bits",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Boolean(_) => "true or false",
            Value::Datetime => "a date",
        }
    }
}

/// A key and where it stands.
#[derive(Debug, Clone)]
pub struct Key {
    /// The name.
    pub name: String,
    /// Its place.
    pub span: Span,
}

/// Parses the text of source number `source`.
///
/// # Errors
/// Everything that is not TOML, each with its place.
pub fn parse(text: &str, source: usize) -> Result<Item, Vec<Mistake>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let range = table.span();
        let value = convert(DeValue::Table(table.into_inner()), source);
        return Ok(Item { value, span: Span { source, range } });
    }
    let mistake = |e: &toml::de::Error| Mistake {
        message: "this is not TOML".into(),
        label: e.message().to_string(),
        span: e.span().map(|range| Span { source, range }),
        help: None,
        code: 65,
    };
    Err(errors.iter().map(mistake).collect())
}

fn convert(value: DeValue<'_>, source: usize) -> Value {
    let span = |range| Span { source, range };
    match value {
        DeValue::String(s) => Value::String(s.into_owned()),
        DeValue::Integer(i) => Value::Integer(i64::from_str_radix(i.as_str(), i.radix()).ok()),
        DeValue::Float(f) => Value::Float(f.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(b) => Value::Boolean(b),
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Array(list) => {
            let item = |v: toml::Spanned<DeValue<'_>>| {
                let range = v.span();
                Item { value: convert(v.into_inner(), source), span: span(range) }
            };
            Value::Array(list.into_iter().map(item).collect())
        }
        DeValue::Table(table) => {
            let entry = |(k, v): (toml::Spanned<std::borrow::Cow<'_, str>>, toml::Spanned<DeValue<'_>>)| {
                let key = Key { span: span(k.span()), name: k.into_inner().into_owned() };
                let range = v.span();
                (key, Item { value: convert(v.into_inner(), source), span: span(range) })
            };
            Value::Table(table.into_iter().map(entry).collect())
        }
    }
}

/// A key that the command line overrides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The option, as messages name it: `--set`, `--until`.
    pub option: &'static str,
    /// `key=value`.
    pub text: String,
}

impl Override {
    /// That of `--set key=value`.
    pub fn set(text: impl Into<String>) -> Self {
        Override { option: "--set", text: text.into() }
    }
}

/// Reads an override.
///
/// A value that is no TOML but a bare word is taken as a string, so that `--set solver.method=fmm` needs no quotes
/// that a shell would eat.
///
/// # Errors
/// A text that is not `key=value`.
pub fn parse_override(over: &Override, source: usize) -> (Source, Result<Item, Vec<Mistake>>) {
    let named = |text: &str| Source { name: over.option.into(), text: text.to_string() };
    let option = over.text.as_str();
    let Some((key, value)) = option.split_once('=') else {
        let mistake = Mistake {
            message: "--set needs key=value".into(),
            label: "there is no '=' here".into(),
            span: Some(Span { source, range: 0..option.len() }),
            help: Some("for example --set solver.tolerance=1e-6".into()),
            code: 65,
        };
        return (named(option), Err(vec![mistake]));
    };
    let value = value.trim();
    // A word, or a number with a unit such as 5 Myr, needs no quotes.
    let word = value.starts_with(|c: char| c.is_ascii_alphabetic() || "./_".contains(c))
        && !["true", "false", "inf", "nan"].contains(&value);
    let quantity = value.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && value.ends_with(char::is_alphabetic)
        && format!("v={value}").parse::<toml::Table>().is_err();
    let bare = (word || quantity) && !value.contains(['"', '\'', '\\', '\n']);
    let text = if bare { format!("{key}=\"{value}\"") } else { option.to_string() };
    let parsed = parse(&text, source);
    (named(&text), parsed)
}

/// Lays `over` over `base`: tables key by key, everything else replaced. A table over an array addresses its items
/// by their number from 0 (`particles.0.n`).
///
/// # Errors
/// A number that names no item of the array.
pub fn merge(base: &mut Item, over: Item) -> Result<(), Mistake> {
    match (&mut base.value, over.value) {
        (Value::Table(entries), Value::Table(new)) => {
            for (key, item) in new {
                match entries.iter_mut().find(|(k, _)| k.name == key.name) {
                    Some((_, old)) => merge(old, item)?,
                    None => entries.push((key, item)),
                }
            }
        }
        // An empty table names no item: it takes the place of the list, and is refused there.
        (Value::Array(items), Value::Table(new)) if !new.is_empty() => {
            for (key, item) in new {
                let count = items.len();
                let Some(old) = key.name.parse::<usize>().ok().and_then(|i| items.get_mut(i)) else {
                    return Err(Mistake {
                        message: format!("'{}' names no item of this list", key.name),
                        label: format!("the list has {count}, numbered from 0"),
                        span: Some(key.span),
                        help: Some("for example --set particles.0.n=1000 for the first group".into()),
                        code: 65,
                    });
                };
                merge(old, item)?;
            }
        }
        (slot, value) => {
            *slot = value;
            base.span = over.span;
        }
    }
    Ok(())
}

/// Every key of a resolved scenario with its value, as `section.key`.
pub fn values(text: &str) -> BTreeMap<String, String> {
    fn walk(name: &str, item: &Item, all: &mut BTreeMap<String, String>) {
        let inside = |key: &str| if name.is_empty() { key.to_string() } else { format!("{name}.{key}") };
        match &item.value {
            Value::Table(entries) => entries.iter().for_each(|(k, v)| walk(&inside(&k.name), v, all)),
            Value::Array(list) if list.iter().any(|i| matches!(i.value, Value::Table(_))) => {
                list.iter().enumerate().for_each(|(i, v)| walk(&inside(&i.to_string()), v, all));
            }
            value => drop(all.insert(name.to_string(), shown(value))),
        }
    }
    let mut all = BTreeMap::new();
    // What the program wrote itself it can read.
    if let Ok(root) = parse(text, 0) {
        walk("", &root, &mut all);
    }
    all
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(s) => format!("\"{s}\""),
        Value::Integer(i) => i.map_or(value.kind().into(), |i| i.to_string()),
        Value::Float(x) => format!("{x:?}"),
        Value::Boolean(b) => b.to_string(),
        Value::Array(list) => format!("[{}]", list.iter().map(|i| shown(&i.value)).collect::<Vec<_>>().join(", ")),
        Value::Table(_) | Value::Datetime => value.kind().into(),
    }
}
