//! The lines of the development loop: its own, and those of what runs in it, told apart.
//!
//! What the loop itself says goes to standard output, a label before each line as cargo has it. What the operator and
//! the cluster say goes to standard error, as cargo's own output does, each line behind the name of who said it.
//! Between `--quiet` and a failure nobody but the summary speaks.

use std::io;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Result;

use crate::error;
use crate::ui::{Ui, escape, style};

/// Says what the loop does.
#[derive(Debug)]
pub(crate) struct Report {
    ui: Ui,
}

impl Report {
    pub(crate) fn new(ui: Ui) -> Self {
        Self { ui }
    }

    /// A step that was made.
    pub(crate) fn step(&self, label: &str, text: &str) -> Result<()> {
        if self.ui.is_quiet() { Ok(()) } else { self.result(label, text) }
    }

    /// A line of the summary.
    pub(crate) fn result(&self, label: &str, text: &str) -> Result<()> {
        self.line(style::HEADER, label, text)
    }

    /// A step that failed without ending the loop.
    pub(crate) fn failed(&self, label: &str, text: &str) -> Result<()> {
        self.line(style::ERROR, label, text)
    }

    /// An error that does not end the loop, as it would be shown if it did.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        self.ui.print_styled_error(&error::render(error));
    }

    fn line(&self, label_style: Style, label: &str, text: &str) -> Result<()> {
        self.ui.print_styled(&format!("{label_style}{label:>12}{label_style:#} {}\n", escape(text)))
    }
}

/// Whose lines are passed on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Voice {
    Operator,
    /// The API server and the controllers in this process.
    Cluster,
}

impl Voice {
    /// Passes a line on.
    pub(crate) fn say(self, ui: &Ui, line: &str) {
        let (prefix, name) = match self {
            Self::Operator => (AnsiColor::Cyan.on_default(), "operator"),
            Self::Cluster => (AnsiColor::Magenta.on_default(), "cluster"),
        };
        ui.print_styled_error(&format!("{prefix}{name:>8} |{prefix:#} {}\n", escape(line)));
    }
}

/// Lines that are written to it are passed on.
pub(crate) struct Lines {
    pub(crate) ui: Ui,
    pub(crate) voice: Voice,
}

impl io::Write for Lines {
    /// Whoever logs here writes whole lines, each at once.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in String::from_utf8_lossy(bytes).lines() {
            self.voice.say(&self.ui, line);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A duration for people: two digits that mean something.
pub(crate) fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match duration.as_millis() {
        0 => "under 1 ms".to_owned(),
        millis @ 1..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{:.1} s", duration.as_secs_f64()),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// So many of something.
pub(crate) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let shown = |millis| shown(Duration::from_millis(millis));
        assert_eq!(shown(0), "under 1 ms");
        assert_eq!(shown(40), "40 ms");
        assert_eq!(shown(1940), "1.9 s");
        assert_eq!(shown(125_000), "2 min 5 s");
    }
}
