//! The text of `diagnostics.csv`: its first line, and what of it stays where a run goes on.

use crate::files::run_id::RunId;

/// The first line: the columns, and an empty one whose name is the run's id.
pub fn header(columns: &str, id: Option<RunId>) -> String {
    id.map_or(columns.to_string(), |id| format!("{columns},{}", id.column()))
}

/// A table that goes on.
#[derive(Debug, PartialEq)]
pub struct Rewound {
    /// Its text.
    pub text: String,
    /// The time of its last line.
    pub last: Option<f64>,
}

/// The table with the lines whose times `keeps` allows, without one that a crash has truncated. Of
/// columns at the end that an older version did not write, the cells of its lines are empty. `None`
/// for a table with other columns.
pub fn rewound(text: &str, columns: &str, id: Option<RunId>, keeps: impl Fn(f64) -> bool) -> Option<Rewound> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default().trim_end();
    let known = first.strip_suffix(&header("", id))?;
    let lacking = columns.strip_prefix(known).filter(|more| more.is_empty() || more.starts_with(','))?;
    let empty = ",".repeat(lacking.matches(',').count());
    let (mut text, mut last) = (header(columns, id) + "\n", None);
    for line in lines.filter_map(|l| l.strip_suffix('\n')) {
        let time = line.split(',').nth(1).and_then(|t| t.parse().ok()).unwrap_or(f64::INFINITY);
        if keeps(time) {
            text.extend([line, &empty, "\n"]);
            last = Some(time);
        }
    }
    Some(Rewound { text, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str, columns: &str, id: Option<RunId>) -> Option<(String, Option<f64>)> {
        rewound(text, columns, id, |t| t <= 1.0).map(|r| (r.text, r.last))
    }

    #[test]
    fn later_lines_and_truncated_ones_go() {
        let text = "step,time,a\n0,0.0,1\n1,1.0,2\n2,2.0,3\n3,0.5";
        let kept = "step,time,a\n0,0.0,1\n1,1.0,2\n".to_string();
        assert_eq!(times(text, "step,time,a", None), Some((kept, Some(1.0))));
        assert_eq!(times("step,time,a\n", "step,time,a", None), Some(("step,time,a\n".into(), None)));
    }

    #[test]
    fn columns_that_an_older_version_did_not_write_are_empty() {
        let id = RunId::parse(&"7".repeat(16));
        let name = id.unwrap().column();
        let kept = format!("step,time,a,b,{name}\n0,0.0,1,,\n");
        assert_eq!(times(&format!("step,time,a,{name}\n0,0.0,1,\n"), "step,time,a,b", id), Some((kept, Some(0.0))));
        let kept = "step,time,a,b\n0,0.0,1,\n".to_string();
        assert_eq!(times("step,time,a\n0,0.0,1\n", "step,time,a,b", None), Some((kept, Some(0.0))));
    }

    #[test]
    fn tables_with_other_columns_are_refused() {
        let id = RunId::parse(&"7".repeat(16));
        for (found, id) in [
            ("step,time,c", None),
            ("step,time,a,b", None),
            ("step,tim", None),
            ("step,time,a", id),
            ("step,time,a,run_8888888888888888", id),
        ] {
            assert_eq!(times(&format!("{found}\n0,0.0,1\n"), "step,time,a", id), None, "{found}");
        }
    }
}
