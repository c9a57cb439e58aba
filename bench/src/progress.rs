//! What is going on, on standard error: one line that is written over on a terminal, lines elsewhere.

use std::io::{IsTerminal as _, Write as _};

/// Tells what is being measured.
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

    /// Makes room for the table.
    pub(crate) fn clear(&self) {
        if self.terminal {
            Self::write("\r\x1b[K");
        }
    }

    fn write(text: &str) {
        // Without a standard error there is nobody to tell.
        let mut stderr = std::io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}
