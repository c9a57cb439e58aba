//! The output of [`init`](super::init): stderr, and a copy of each line for the debug page.

use std::io::{self, Write};
use std::sync::OnceLock;

/// Receives the lines.
type Copy = Box<dyn Fn(&str) + Send + Sync>;

/// For the whole process, as the subscriber of [`init`](super::init) is.
static COPY: OnceLock<Copy> = OnceLock::new();

/// Calls a function with every line that is written to stderr from now on. The first call counts. The function must not
/// block and must not log.
pub fn copy_lines(copy: impl Fn(&str) + Send + Sync + 'static) {
    let _ = COPY.set(Box::new(copy));
}

/// Stderr, with copies.
pub(super) struct Stderr(io::Stderr);

impl Stderr {
    pub(super) fn new() -> Self {
        Self(io::stderr())
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    /// Each line is one call.
    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        if let (Some(copy), Ok(line)) = (COPY.get(), str::from_utf8(line)) {
            copy(line.trim_end());
        }
        self.0.write_all(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
