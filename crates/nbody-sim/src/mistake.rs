//! Mistakes in a scenario, reported with the place underlined.

use std::ops::Range;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

use crate::terminal::{printable, width};

/// A place in one of the sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Index of the source: 0 is the file, the others are the `--set` options in their order.
    pub source: usize,
    /// Bytes of that source's text.
    pub range: Range<usize>,
}

/// A text that a scenario came from.
#[derive(Debug, Clone)]
pub struct Source {
    /// File name, or `--set`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong, with key and value.
    pub message: String,
    /// What is written under the place.
    pub label: String,
    /// The place; none for what no source mentions.
    pub span: Option<Span>,
    /// The way out.
    pub help: Option<String>,
    /// Exit code: 65, or 66 for a file that is not there, 69 for a device that is not there.
    pub code: u8,
}

/// All mistakes of a scenario.
#[derive(Debug, Clone)]
pub struct Mistakes {
    /// The file, then the `--set` options.
    pub sources: Vec<Source>,
    /// At least one.
    pub mistakes: Vec<Mistake>,
}

impl Mistakes {
    /// The exit code: 65 where any mistake is one of data.
    pub fn code(&self) -> u8 {
        self.mistakes.iter().map(|p| p.code).min().unwrap_or(65)
    }

    /// The report, one block a mistake, in the order of the file.
    pub fn render(&self, color: bool) -> String {
        let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width().map_or(WIDTH, |columns| columns.clamp(NARROWEST, WIDTH)))
            .with_break_words(false)
            .with_links(false);
        let mut text = String::new();
        // A text may be long, and have many mistakes.
        let sources: Vec<_> = self.sources.iter().map(|s| (printable(&s.name), printable(&s.text))).collect();
        for mistake in self.mistakes.iter().take(MOST) {
            let shown = mistake.span.as_ref().map(|s| {
                let (name, text) = &sources[s.source];
                let (text, place) = excerpt(text, &s.range);
                (NamedSource::new(name, text), place)
            });
            let (source, place) = shown.unzip();
            let [message, label] = [&mistake.message, &mistake.label].map(|t| clipped(&printable(t)));
            let help = mistake.help.as_deref().map(printable);
            let report = Report { message, label, help: help.as_deref(), source, place };
            if handler.render_report(&mut text, &report).is_err() {
                text.push_str(&report.message);
            }
        }
        if let more @ 1.. = self.mistakes.len().saturating_sub(MOST) {
            text.push_str(&format!("and {more} more\n"));
        }
        let name = &sources[0].0;
        match self.mistakes.len() {
            1 => text.push_str(&format!("{name}: 1 mistake; nothing was run\n")),
            n => text.push_str(&format!("{name}: {n} mistakes; nothing was run\n")),
        }
        text
    }
}

/// Columns of a report where there is no terminal, and at most.
const WIDTH: usize = 110;
/// Columns at least: miette takes a few for itself.
const NARROWEST: usize = 40;
/// Mistakes that are shown; of more, their number.
const MOST: usize = 20;
/// Bytes of a line that are shown whole.
const LONGEST: usize = 400;
/// Bytes shown of a longer line on each side of the place.
const AROUND: usize = 60;

/// The text with its overlong lines shortened, and the place in the shortened text. The line with
/// the place keeps what is around it, others keep their beginning. The numbers of lines do not
/// change.
fn excerpt(text: &str, place: &Range<usize>) -> (String, Range<usize>) {
    let (mut short, mut offset) = (String::new(), 0);
    let (mut start, mut end) = (None, None);
    for line in text.split_inclusive('\n') {
        let from = offset;
        offset += line.len();
        let inside = |at: usize| from <= at && (at < offset || offset == text.len());
        let window = match place.start.checked_sub(from).filter(|_| inside(place.start)) {
            _ if line.len() <= LONGEST => 0..line.len(),
            Some(p) => boundary(line, p.saturating_sub(AROUND))..boundary(line, p + AROUND),
            None => 0..boundary(line, 2 * AROUND),
        };
        short.push_str(if window.start > 0 { "…" } else { "" });
        let kept = short.len();
        short.push_str(&line[window.clone()]);
        // Where a place of the text is now; a place that was left out moves to the edge of what is
        // kept.
        let moved = |at: usize| inside(at).then(|| kept + (at - from).clamp(window.start, window.end) - window.start);
        start = start.or(moved(place.start));
        end = moved(place.end).or(end);
        if window.end < line.len() {
            short.push_str(if line.ends_with('\n') { "…\n" } else { "…" });
        }
    }
    let start = start.unwrap_or(short.len());
    (short, start..end.unwrap_or(start).max(start))
}

/// The start of a character at `at` or just before it.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// The text, or the beginning of one that is too long to be read.
fn clipped(text: &str) -> String {
    match text.len() {
        ..=LONGEST => text.to_string(),
        _ => format!("{}…", &text[..boundary(text, LONGEST)]),
    }
}

/// One mistake with its source, as `miette` wants it.
#[derive(Debug)]
struct Report<'a> {
    message: String,
    label: String,
    help: Option<&'a str>,
    source: Option<NamedSource<String>>,
    place: Option<Range<usize>>,
}

impl std::fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report<'_> {}

impl Diagnostic for Report<'_> {
    fn help<'b>(&'b self) -> Option<Box<dyn std::fmt::Display + 'b>> {
        self.help.map(|h| Box::new(h) as Box<dyn std::fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|s| s as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(Some(self.label.clone()), self.place.clone()?);
        Some(Box::new(std::iter::once(label)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlong_lines_are_cut_around_the_place() {
        let line = "é".repeat(5000);
        let text = format!("first = 1\n{line}HERE{line}\nlast = {line}\n");
        let at = text.find("HERE").unwrap_or_default();
        let (short, place) = excerpt(&text, &(at..at + 4));
        assert_eq!((&short[place.clone()], short.lines().count()), ("HERE", 3));
        assert!(short.len() < 500 && short.starts_with("first = 1\n…é"), "{short}");
        // A place that goes beyond what is shown ends with it.
        let (short, place) = excerpt(&text, &(at..text.len()));
        assert!(short[place].starts_with("HEREé"), "{short}");
        let whole = "a = 1\nb = é\n";
        assert_eq!(excerpt(whole, &(6..12)), (whole.to_string(), 6..12));
        assert_eq!(excerpt("", &(0..0)), (String::new(), 0..0));
    }

    #[test]
    fn a_report_has_an_end() {
        let text = "[".repeat(100_000);
        let mistake = |i| Mistake {
            message: text.clone(),
            label: text.clone(),
            span: Some(Span { source: 0, range: i..i + 1 }),
            help: None,
            code: 65,
        };
        let sources = vec![Source { name: "a.toml".into(), text: text.clone() }];
        let report = Mistakes { sources, mistakes: (0..100).map(mistake).collect() }.render(false);
        assert!(report.len() < 60_000 && report.contains("and 80 more"), "{} bytes", report.len());
    }
}
