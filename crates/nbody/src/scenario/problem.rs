//! What is wrong with a scenario, told with the place underlined.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

use super::document::Span;

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
pub struct Problem {
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
pub struct Problems {
    /// The file, then the `--set` options.
    pub sources: Vec<Source>,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl Problems {
    /// The exit code: 65 where any mistake is one of data.
    pub fn code(&self) -> u8 {
        self.problems.iter().map(|p| p.code).min().unwrap_or(65)
    }

    /// The report, one block a mistake, in the order of the file.
    pub fn render(&self, color: bool) -> String {
        let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(110).with_links(false);
        let mut text = String::new();
        for problem in &self.problems {
            let source = problem.span.as_ref().map(|s| &self.sources[s.source]);
            let report = Report { problem, source: source.map(|s| NamedSource::new(&s.name, s.text.clone())) };
            if handler.render_report(&mut text, &report).is_err() {
                text.push_str(&problem.message);
            }
        }
        let name = &self.sources[0].name;
        match self.problems.len() {
            1 => text.push_str(&format!("{name}: 1 mistake; nothing was run\n")),
            n => text.push_str(&format!("{name}: {n} mistakes; nothing was run\n")),
        }
        text
    }
}

/// One problem with its source, as `miette` wants it.
#[derive(Debug)]
struct Report<'a> {
    problem: &'a Problem,
    source: Option<NamedSource<String>>,
}

impl std::fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for Report<'_> {}

impl Diagnostic for Report<'_> {
    fn help<'b>(&'b self) -> Option<Box<dyn std::fmt::Display + 'b>> {
        self.problem.help.as_ref().map(|h| Box::new(h) as Box<dyn std::fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|s| s as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.problem.span.as_ref()?;
        let label = LabeledSpan::new_with_span(Some(self.problem.label.clone()), span.range.clone());
        Some(Box::new(std::iter::once(label)))
    }
}
