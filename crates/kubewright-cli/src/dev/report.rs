//! Output lines of the development loop, the operator and the cluster.
//!
//! The loop's own lines go to standard output, each with a label in cargo's style. Lines of the operator and
//! the cluster go to standard error with a prefix, as does cargo's output. With `--quiet`, only the summary
//! and failures are printed.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Result;

use crate::error;
use crate::ui::{Ui, escape, style};

/// Prints the loop's lines.
#[derive(Debug)]
pub(crate) struct Report {
    ui: Ui,
}

impl Report {
    pub(crate) fn new(ui: Ui) -> Self {
        Self { ui }
    }

    /// Prints a completed step.
    pub(crate) fn step(&self, label: &str, text: &str) -> Result<()> {
        if self.ui.is_quiet() { Ok(()) } else { self.result(label, text) }
    }

    /// Prints a line of the summary.
    pub(crate) fn result(&self, label: &str, text: &str) -> Result<()> {
        self.line(style::HEADER, label, text)
    }

    /// Prints a failed step that does not end the loop.
    pub(crate) fn failed(&self, label: &str, text: &str) -> Result<()> {
        self.line(style::ERROR, label, text)
    }

    /// Prints an error that does not end the loop.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        self.ui.print_styled_error(&error::render(error));
    }

    /// Prints the findings about the manifests.
    pub(crate) fn findings(&self, findings: &str) {
        self.ui.print_styled_error(findings);
    }

    fn line(&self, label_style: Style, label: &str, text: &str) -> Result<()> {
        self.ui.print_styled(&format!("{label_style}{label:>12}{label_style:#} {}\n", escape(text)))
    }
}

/// The source of forwarded lines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Voice {
    Operator,
    /// The embedded API server and controllers.
    Cluster,
}

impl Voice {
    /// Prints a forwarded line.
    pub(crate) fn say(self, ui: &Ui, line: &str) {
        let (prefix, name) = match self {
            Self::Operator => (AnsiColor::Cyan.on_default(), "operator"),
            Self::Cluster => (AnsiColor::Magenta.on_default(), "cluster"),
        };
        ui.print_styled_error(&format!("{prefix}{name:>8} |{prefix:#} {}\n", escape(line)));
    }
}

/// Formats a duration.
pub(crate) fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match duration.as_millis() {
        0 => "under 1 ms".to_owned(),
        millis @ 1..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{:.1} s", duration.as_secs_f64()),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// A number with a noun.
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
