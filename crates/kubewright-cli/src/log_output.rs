//! Logs of the server programs on standard error, which never block a request.
//!
//! If the reader of a pipe stops reading, lines are dropped until there is space again. Their number is logged then.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use kubewright_runtime::logs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::control_plane;
use crate::ui::Ui;

/// A pipe that is writable has space for this many bytes (`PIPE_BUF`). Longer lines are cut.
const MAX_LINE: usize = 4096;

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Sends the logs of this process to standard error.
pub(crate) fn install(ui: &Ui) -> Result<()> {
    let subscriber = logs::subscriber(&control_plane::log_options(ui), || Stderr)
        .context("cannot install the log subscriber")?;
    tracing::subscriber::set_global_default(subscriber).context("cannot install the log subscriber")
}

/// Standard error. Each write is one line.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Before the check: otherwise another thread could use the space.
        let mut stderr = io::stderr().lock();
        if !is_writable() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return Ok(line.len());
        }
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            stderr.write_all(
                format!("{dropped} log lines were dropped, because standard error was not read\n").as_bytes(),
            )?;
            if !is_writable() {
                DROPPED.fetch_add(1, Ordering::Relaxed);
                return Ok(line.len());
            }
        }
        if line.len() > MAX_LINE {
            stderr.write_all(&line[..MAX_LINE - 1])?;
            stderr.write_all(b"\n")?;
        } else {
            stderr.write_all(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a line can be written without blocking. Files are always writable.
fn is_writable() -> bool {
    let stderr = io::stderr();
    let mut descriptors = [PollFd::new(&stderr, PollFlags::OUT)];
    match poll(&mut descriptors, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => descriptors[0].revents().contains(PollFlags::OUT),
        Err(_) => false,
    }
}
