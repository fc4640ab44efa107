//! The page and the table of `nbody bench papers`: every figure with the paper's number next to ours.

use std::fmt::Write as _;

use super::catalog::Catalog;
use super::{Found, Outcome};
use crate::record::Record;
use crate::table::significant;
use nbody_sim::failure::Failure;

const STYLE: &str = "body{font:16px/1.45 sans-serif;color:#222;max-width:70rem;margin:2rem auto;padding:0 1rem}\
    table{border-collapse:collapse;margin:.6rem 0 1.6rem;width:100%}\
    th,td{border:1px solid #ccc;padding:.3rem .5rem;text-align:left;vertical-align:top}\
    th{background:#f2f2f2}img{width:100%;max-width:56rem}code{font-size:.9em}.none{color:#777}";

/// The processor, or the GPU, that some numbers were measured on, and whether one of them was extrapolated.
pub fn machine(records: &[&Record]) -> String {
    let mut all: Vec<String> = vec![];
    for record in records {
        let name = match record.text("gpu") {
            "" if record.number("threads").is_finite() => {
                let (threads, ending) =
                    (record.number("threads"), if record.number("threads") == 1.0 { "" } else { "s" });
                format!("{}, {threads} thread{ending}", record.text("cpu"))
            }
            "" => record.text("cpu").to_string(),
            gpu => gpu.to_string(),
        };
        if !all.contains(&name) {
            all.push(name);
        }
    }
    let guessed = if records.iter().any(|r| r.is("extrapolated")) { ", extrapolated" } else { "" };
    all.join(" and ") + guessed
}

/// The text in the column of our number.
fn ours(found: &Found<'_>) -> String {
    match &found.outcome {
        Outcome::Number(number, _) if *number >= 1e5 => format!("{number:.2e} {}", found.row.unit).trim_end().into(),
        Outcome::Number(number, _) => format!("{} {}", significant(*number), found.row.unit).trim_end().into(),
        Outcome::Figure => "drawn".into(),
        Outcome::NoCrossing => "no crossing at the N of this run".into(),
        Outcome::NeedsGpu => "needs a GPU: not run".into(),
        Outcome::Missing => "not found in this run's records".into(),
        Outcome::Absent if found.row.command.is_some() => "by a command of its own".into(),
        Outcome::Absent => "not reproduced".into(),
    }
}

/// What repeats the row.
fn command<'a>(found: &'a Found<'_>) -> Option<&'a str> {
    found.done.map(|done| &done.command[..]).or(found.row.command.as_deref())
}

/// Our number over the paper's.
fn ratio(found: &Found<'_>) -> Option<f64> {
    match (&found.outcome, found.row.value) {
        (Outcome::Number(number, _), Some(value)) => Some(number / value),
        _ => None,
    }
}

/// The page.
pub fn html(catalog: &Catalog, found: &[Found<'_>], full: bool, warning: Option<&str>) -> String {
    let mut text = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(text, "<title>Five papers, measured here</title>\n<style>{STYLE}</style>\n</head>\n<body>");
    let size = if full { "full size" } else { "toy size: ratios to the papers mean little" };
    let _ = writeln!(
        text,
        "<h1>Five papers, measured here</h1>\n<p>Papers' numbers are quoted with their hardware; ours were measured in \
         this run, at {size}. <a href=\"papers.csv\">papers.csv</a> has the same rows.</p>"
    );
    if let Some(warning) = warning {
        let _ = writeln!(text, "<p><strong>{}</strong></p>", escape(warning));
    }
    for paper in &catalog.papers {
        let rows: Vec<&Found<'_>> = found.iter().filter(|f| std::ptr::eq(f.paper, paper)).collect();
        let _ = writeln!(
            text,
            "<h2>{}</h2>\n<p>{} Hardware: {}.</p>",
            escape(&paper.name),
            escape(&paper.source),
            escape(&paper.hardware)
        );
        let mut items: Vec<&str> = vec![];
        for item in rows.iter().map(|f| &f.row.item[..]) {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        for item in items {
            let here: Vec<&&Found<'_>> = rows.iter().filter(|f| f.row.item == item).collect();
            let _ = writeln!(text, "<h3>{}, {}</h3>", escape(&paper.name), escape(item));
            let mut shown: Vec<&str> = vec![];
            for f in &here {
                if let Some(figure) = f.figure().filter(|figure| !shown.contains(figure)) {
                    let _ = writeln!(text, "<p><img src=\"{}\" alt=\"{}\"></p>", escape(figure), escape(&f.row.shows));
                    shown.push(figure);
                }
            }
            text += "<table>\n<tr><th>quantity</th><th>paper</th><th>this run</th><th>ours / paper</th>\
                     <th>what differs</th></tr>\n";
            here.iter().for_each(|f| row(&mut text, f));
            text += "</table>\n";
            if let Some(first) = here.iter().find(|f| command(f).is_some()) {
                let place = if first.done.is_some() { ", in this folder" } else { "" };
                let command = escape(command(first).unwrap_or_default());
                let _ = writeln!(text, "<p>Command{place}: <code>{command}</code></p>");
            }
        }
    }
    text + "</body>\n</html>\n"
}

fn row(text: &mut String, found: &Found<'_>) {
    let class = match found.outcome {
        Outcome::Number(..) | Outcome::Figure => "",
        _ => " class=\"none\"",
    };
    let on = match &found.outcome {
        Outcome::Number(_, machine) => format!("<br><small>{}</small>", escape(machine)),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "<tr><td>{}</td><td>{}</td><td{class}>{}{on}</td><td>{}</td><td>{}</td></tr>",
        escape(&found.row.shows),
        escape(&found.row.paper),
        escape(&ours(found)),
        ratio(found).map_or(String::new(), significant),
        escape(&found.row.differs)
    );
}

/// The table: a line for each row of the page.
///
/// # Errors
/// 70 if the crate that writes CSV refuses.
pub fn csv(found: &[Found<'_>]) -> Result<Vec<u8>, Failure> {
    let refused = |e: String| Failure::new(70, format!("cannot write CSV: {e}"));
    let mut out = csv::Writer::from_writer(vec![]);
    let names = [
        "paper",
        "item",
        "quantity",
        "paper_says",
        "paper_number",
        "unit",
        "paper_hardware",
        "status",
        "our_number",
        "our_hardware",
        "ratio",
        "difference",
        "command",
        "file",
    ];
    out.write_record(names).map_err(|e| refused(e.to_string()))?;
    for f in found {
        let (number, machine) = match &f.outcome {
            Outcome::Number(number, machine) => (format!("{number}"), machine.clone()),
            _ => Default::default(),
        };
        let status = match f.outcome {
            Outcome::Number(..) => "measured".to_string(),
            _ => ours(f),
        };
        let line = [
            f.paper.name.clone(),
            f.row.item.clone(),
            f.row.shows.clone(),
            f.row.paper.clone(),
            f.row.value.map_or(String::new(), |v| format!("{v}")),
            f.row.unit.clone(),
            f.paper.hardware.clone(),
            status,
            number,
            machine,
            ratio(f).map_or(String::new(), |v| format!("{v}")),
            f.row.differs.clone(),
            command(f).unwrap_or_default().to_string(),
            f.figure().unwrap_or_default().to_string(),
        ];
        out.write_record(line).map_err(|e| refused(e.to_string()))?;
    }
    out.into_inner().map_err(|e| refused(e.to_string()))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::Done;

    #[test]
    fn rows_say_what_was_measured_and_what_needs_a_gpu() {
        let catalog = Catalog::load().unwrap();
        let paper = &catalog.papers[0];
        let row = paper.rows.iter().find(|r| r.value.is_some()).unwrap();
        let done = Done {
            records: vec![],
            figures: vec![format!("run/{}.svg", row.figure.as_ref().unwrap())],
            command: "nbody bench x".into(),
        };
        let found = |outcome| Found { paper, row, outcome, done: Some(&done) };
        let all = [found(Outcome::Number(2.0 * row.value.unwrap(), "A <CPU>".into())), found(Outcome::NeedsGpu)];
        let page = html(&catalog, &all, false, Some("Warning: busy."));
        assert!(
            page.contains("toy size")
                && page.contains("Warning: busy.")
                && page.contains("needs a GPU: not run")
                && page.contains("A &lt;CPU&gt;")
        );
        assert!(page.contains("<td>2.00</td>") && page.matches("<img ").count() == 1, "{page}");
        // A row without a run may have a command of its own.
        let with = catalog.papers.iter().flat_map(|p| p.rows.iter().map(move |r| (p, r)));
        let with = with.filter(|(_, r)| r.command.is_some()).map(|(paper, row)| Found {
            paper,
            row,
            outcome: Outcome::Absent,
            done: None,
        });
        let with: Vec<Found<'_>> = with.collect();
        let page = html(&catalog, &with, false, None);
        assert!(page.contains("by a command of its own") && page.contains("<code>scripts/ncu-m2l</code>"), "{page}");
        assert!(!page.contains("in this folder") && !page.contains("not reproduced"), "{page}");
        let text = String::from_utf8(csv(&with).unwrap()).unwrap();
        assert_eq!(text.matches(",scripts/ncu-m2l,").count(), with.len(), "{text}");
        let text = String::from_utf8(csv(&all).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 3 && lines[1].contains(",measured,") && lines[2].contains("needs a GPU"), "{text}");
    }
}
