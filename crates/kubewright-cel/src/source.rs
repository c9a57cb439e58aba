//! The source text of an expression and its errors.
//!
//! Formats positions and errors exactly like cel-go, because users match on the text. Offsets count
//! characters, not bytes.

use std::fmt;

/// Maximum number of errors in a message. The rest is only counted.
const MAX_SHOWN: usize = 100;

/// The source text as characters, with the start offsets of its lines.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    chars: Vec<char>,
    lines: Vec<usize>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut lines = vec![0];
        lines.extend(chars.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(i, _)| i + 1));
        Self { chars, lines }
    }

    pub(crate) fn chars(&self) -> &[char] {
        &self.chars
    }

    fn location(&self, offset: usize) -> Location {
        let line = self.lines.partition_point(|start| *start <= offset);
        Location { line, column: offset - self.lines[line - 1] }
    }

    fn line(&self, number: usize) -> Option<String> {
        let start = *self.lines.get(number.checked_sub(1)?)?;
        let end = self.lines.get(number).map_or(self.chars.len(), |next| next - 1);
        Some(self.chars[start..end].iter().collect())
    }
}

/// A line, counted from 1, and a column, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Location {
    line: usize,
    column: usize,
}

/// An error in an expression.
#[derive(Debug, Clone)]
struct Issue {
    /// `None` where cel-go reports no position.
    location: Option<Location>,
    message: String,
}

/// The errors of an expression, in the order of their discovery.
#[derive(Debug, Clone)]
pub(crate) struct Issues {
    source: Source,
    found: Vec<Issue>,
}

impl Issues {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, found: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn report(&mut self, offset: usize, message: impl Into<String>) {
        let location = Some(self.source.location(offset));
        self.found.push(Issue { location, message: message.into() });
    }

    pub(crate) fn report_nowhere(&mut self, message: impl Into<String>) {
        self.found.push(Issue { location: None, message: message.into() });
    }

    fn show(&self, issue: &Issue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(location) = issue.location else {
            return write!(f, "ERROR: <input>:-1:0: {}", issue.message);
        };
        write!(f, "ERROR: <input>:{}:{}: {}", location.line, location.column + 1, issue.message)?;
        let Some(line) = self.source.line(location.line) else { return Ok(()) };
        write!(f, "\n | {}\n | ", line.replace('\t', " "))?;
        let mut chars = line.chars();
        for c in chars.by_ref().take(location.column) {
            f.write_str(if c.len_utf8() > 1 { "．" } else { "." })?;
        }
        f.write_str(if chars.next().is_some_and(|c| c.len_utf8() > 1) { "＾" } else { "^" })
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<&Issue> = self.found.iter().collect();
        sorted.sort_by_key(|issue| issue.location);
        for (i, issue) in sorted.iter().take(MAX_SHOWN).enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            self.show(issue, f)?;
        }
        if sorted.len() > MAX_SHOWN {
            write!(f, "\n{} more errors were truncated", sorted.len() - MAX_SHOWN)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_points_at_its_column() {
        let mut issues = Issues::new(Source::new("a &&\n\tbé.x"));
        issues.report(8, "second");
        issues.report(0, "first");
        assert_eq!(
            issues.to_string(),
            "ERROR: <input>:1:1: first\n | a &&\n | ^\nERROR: <input>:2:4: second\n |  bé.x\n | ..．^"
        );
    }

    #[test]
    fn errors_beyond_a_hundred_are_only_counted() {
        let mut issues = Issues::new(Source::new("x"));
        for _ in 0..102 {
            issues.report(0, "no");
        }
        assert!(issues.to_string().ends_with("\n2 more errors were truncated"));
    }
}
