//! Progress of a long step, on standard error.
//!
//! A terminal has one line that is rewritten. Other outputs, such as CI logs, get a line every few seconds,
//! and none for short steps.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use super::Ui;
use super::escape;

/// Time between updates on a terminal, and in logs.
const TERMINAL: Duration = Duration::from_millis(100);
const LOG: Duration = Duration::from_secs(5);

/// A step with a known number of bytes.
pub(crate) struct Progress {
    ui: Ui,
    label: String,
    total: u64,
    done: u64,
    is_terminal: bool,
    /// When the last update was printed.
    printed: Instant,
}

impl Progress {
    pub(crate) fn start(ui: &Ui, label: &str, total: u64) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let mut progress = Self {
            ui: ui.clone(),
            label: label.to_owned(),
            total,
            done: 0,
            is_terminal,
            printed: Instant::now(),
        };
        if is_terminal {
            progress.print();
        }
        progress
    }

    /// Adds bytes, and prints if the last update is old.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        let pause = if self.is_terminal { TERMINAL } else { LOG };
        if self.printed.elapsed() >= pause {
            self.print();
        }
    }

    /// Prints the final line.
    pub(crate) fn end(&mut self) {
        if self.ui.is_quiet() {
            return;
        }
        let line = format!("{}: {}", escape(&self.label), megabytes(self.total));
        let start = if self.is_terminal { "\r\x1b[K" } else { "" };
        self.ui.print_styled_error(&format!("{start}{line}\n"));
    }

    fn print(&mut self) {
        self.printed = Instant::now();
        if self.ui.is_quiet() {
            return;
        }
        let line = format!("{}: {} of {}", escape(&self.label), megabytes(self.done), megabytes(self.total));
        let text = if self.is_terminal { format!("\r\x1b[K{line}") } else { format!("{line}\n") };
        self.ui.print_styled_error(&text);
    }
}

/// A size in MB (millions of bytes), or in kB.
pub(crate) fn megabytes(bytes: u64) -> String {
    let (unit, name) = if bytes < 1_000_000 { (1_000, "kB") } else { (1_000_000, "MB") };
    let tenths = bytes * 10 / unit;
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(megabytes(512), "0.5 kB");
        assert_eq!(megabytes(9_140_000), "9.1 MB");
    }
}
