//! Mistakes in a model file, each shown with its line, a caret and what to do.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::limits::{MISTAKES, SHOWN_LINE, SHOWN_MESSAGE};

/// Byte range in the model file.
pub type Span = Range<usize>;

/// One mistake and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Where in the file; the caret points at its start.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A mistake without advice; add it with [`Diagnostic::help`].
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            help: None,
        }
    }

    /// Adds what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// All mistakes of one model file, with the text they point into.
#[derive(Debug, Clone)]
pub struct ModelError {
    /// The file's name as the user gave it.
    pub file: String,
    /// The file's text.
    pub text: String,
    /// The first of them, in the order of their place in the file; never empty.
    pub diagnostics: Vec<Diagnostic>,
}

impl ModelError {
    pub(crate) fn new(file: &str, text: &str, mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by_key(|d| d.span.start);
        // the learned and the true equations share much, and so their mistakes
        let mut once: Vec<Diagnostic> = Vec::new();
        for d in diagnostics {
            if once.len() < MISTAKES && !once.contains(&d) {
                once.push(d);
            }
        }
        Self {
            file: file.into(),
            text: text.into(),
            diagnostics: once,
        }
    }

    /// Line and column, both from 1, of a byte offset; columns count characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        (line, before[start..].chars().count() + 1)
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                writeln!(f, "\n")?;
            }
            let (line, column) = self.position(d.span.start);
            let source = self.text.lines().nth(line - 1).unwrap_or("");
            // of a line that is very long, the part that the mistake is in
            let skipped = if column <= SHOWN_LINE { 0 } else { column - 1 };
            let source: String = source.chars().skip(skipped).take(SHOWN_LINE).collect();
            let before = column - 1 - skipped;
            let available = source.chars().count().saturating_sub(before);
            let (end_line, end_column) = self.position(d.span.end);
            let width = if end_line == line {
                end_column.saturating_sub(column)
            } else {
                available
            };
            let margin = " ".repeat(line.to_string().len());
            writeln!(f, "error: {}", shortened(&d.message))?;
            writeln!(f, "{margin}--> {}:{line}:{column}", self.file)?;
            writeln!(f, "{margin} |")?;
            writeln!(f, "{line} | {source}")?;
            write!(
                f,
                "{margin} | {}{}",
                " ".repeat(before),
                "^".repeat(width.clamp(1, available.max(1)))
            )?;
            if let Some(help) = &d.help {
                write!(f, "\n{margin} = help: {}", shortened(help))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ModelError {}

/// A text that quotes a file may be as long as the file.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_MESSAGE) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_the_character_not_the_byte() {
        let text = "name = \"µ\"\nx = \"µ + y\"\n";
        let at = text.find("+ y").unwrap() + 2;
        let error = ModelError::new(
            "m.toml",
            text,
            vec![Diagnostic::new(at..at + 1, "unknown name `y`").help("define it")],
        );
        let shown = error.to_string();
        assert!(shown.contains("m.toml:2:10"), "{shown}");
        assert!(
            shown.contains("2 | x = \"µ + y\"\n  |          ^\n"),
            "{shown}"
        );
        assert!(shown.ends_with("= help: define it"), "{shown}");
    }
}
