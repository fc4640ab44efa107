//! A list of named facts, printed for people or as JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Named facts under a title.
#[derive(Debug, Clone)]
pub struct Facts {
    title: String,
    list: Vec<(&'static str, Value, String)>,
}

impl Facts {
    /// None yet.
    pub fn new(title: impl Into<String>) -> Self {
        Facts { title: title.into(), list: vec![] }
    }

    /// Adds a fact whose text is its value.
    pub fn add(&mut self, name: &'static str, value: Value) {
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Null => "unknown".into(),
            other => other.to_string(),
        };
        self.list.push((name, value, text));
    }

    /// Adds a fact with a text of its own.
    pub fn add_as(&mut self, name: &'static str, value: Value, text: impl Into<String>) {
        self.list.push((name, value, text.into()));
    }

    /// Lines for people.
    pub fn text(&self) -> String {
        let width = self.list.iter().map(|(n, ..)| n.len()).max().unwrap_or(0);
        let mut text = format!("{}\n", self.title);
        for (name, _, value) in &self.list {
            let name = name.replace('_', " ");
            for (i, line) in value.lines().enumerate() {
                let _ = writeln!(text, "  {:width$}  {line}", if i == 0 { name.as_str() } else { "" });
            }
        }
        text
    }

    /// One JSON object on one line.
    pub fn json(&self) -> String {
        let object: Map<String, Value> = self.list.iter().map(|(n, v, _)| (n.to_string(), v.clone())).collect();
        format!("{}\n", Value::Object(object))
    }
}
