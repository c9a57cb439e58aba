//! Progress on standard error: a single updated line on a terminal, one line per step otherwise.

use std::io::{IsTerminal as _, Write as _};

/// Prints the current step.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal() }
    }

    pub(crate) fn say(&self, what: &str) {
        let (begin, end) = if self.terminal { ("\r\x1b[K", "") } else { ("", "\n") };
        Self::write(&format!("{begin}measuring {what} ...{end}"));
    }

    /// Clears the line before the table is printed.
    pub(crate) fn clear(&self) {
        if self.terminal {
            Self::write("\r\x1b[K");
        }
    }

    fn write(text: &str) {
        // A failed write to standard error cannot be reported.
        let mut stderr = std::io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}
