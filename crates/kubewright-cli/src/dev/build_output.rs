//! The standard error of cargo: forwards it, and reads progress and the first error from it.
//!
//! cargo always prints its progress bar, because its numbers are needed. The bar is forwarded only to a terminal that
//! shows nothing else.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::page::Feed;
use crate::ui::Ui;

/// Number of lines of the first error to keep.
const ERROR_LINES: usize = 80;
/// Width of a progress bar that is not shown.
const HIDDEN_WIDTH: u16 = 200;
const ANOTHER_CARGO: &str = "another cargo, such as that of rust-analyzer, builds in the same target directory, and \
                             this build waits for it. To avoid this, set rust-analyzer's `cargo.targetDir` to true, or \
                             run `dev` with its own CARGO_TARGET_DIR";
/// Erases a line; cargo prints it before a line that replaces the bar.
const ERASE: &str = "\x1b[K";

/// The first error of the compiler, without colors.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstError(Arc<Mutex<Capture>>);

#[derive(Debug, Default)]
struct Capture {
    lines: Vec<String>,
    is_complete: bool,
}

impl FirstError {
    /// The error; empty if there is none.
    pub(super) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lines.join("\n")
    }

    /// An error starts with `error` and ends with an empty line.
    fn read(&self, line: &str) {
        let mut capture = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let starts = line.starts_with("error: ") || line.starts_with("error[");
        if capture.is_complete || (capture.lines.is_empty() && !starts) {
            return;
        }
        let is_end = line.trim().is_empty() || capture.lines.len() >= ERROR_LINES;
        if is_end || (starts && !capture.lines.is_empty()) {
            capture.is_complete = true;
        } else {
            capture.lines.push(line.to_owned());
        }
    }
}

/// Whether the user was advised about another cargo that holds the lock of the target directory.
#[derive(Debug, Clone, Default)]
pub(super) struct LockAdvice(Arc<AtomicBool>);

impl LockAdvice {
    /// Whether a line of cargo asks for the advice. True once.
    fn is_due(&self, line: &str) -> bool {
        let lock = line.trim_start().strip_prefix("Blocking waiting for file lock on ");
        // Locks of the package cache are short, and shared by all target directories.
        let is_target =
            lock.is_some_and(|lock| !lock.starts_with("package cache") && !lock.contains("registry"));
        is_target && !self.0.swap(true, Ordering::Relaxed)
    }
}

/// How the output of cargo is forwarded.
pub(super) struct Output {
    shows_bar: bool,
    first_error: FirstError,
    lock_advice: LockAdvice,
    ui: Ui,
    feed: Feed,
}

impl Output {
    /// Sets up cargo's output. The bar is shown if `alone` and standard error is a terminal.
    pub(super) fn prepare(
        command: &mut Command,
        alone: bool,
        lock_advice: LockAdvice,
        ui: &Ui,
        feed: Feed,
    ) -> Self {
        let shows_bar = alone && !ui.is_quiet() && std::io::stderr().is_terminal();
        let width = if shows_bar { terminal_width() } else { HIDDEN_WIDTH };
        command
            .stderr(std::process::Stdio::piped())
            .env("CARGO_TERM_PROGRESS_WHEN", "always")
            .env("CARGO_TERM_PROGRESS_WIDTH", width.to_string())
            .env("CARGO_TERM_COLOR", if ui.colors_errors() { "always" } else { "never" });
        Self { shows_bar, first_error: FirstError::default(), lock_advice, ui: ui.clone(), feed }
    }

    pub(super) fn first_error(&self) -> FirstError {
        self.first_error.clone()
    }

    /// Forwards until the end of the stream.
    pub(super) async fn forward(self, mut stream: impl AsyncRead + Unpin) {
        let mut pending = Vec::new();
        let mut chunk = [0; 8192];
        while let Ok(length @ 1..) = stream.read(&mut chunk).await {
            pending.extend_from_slice(&chunk[..length]);
            while let Some(end) = pending.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                let line: Vec<u8> = pending.drain(..=end).collect();
                self.line(&String::from_utf8_lossy(&line));
            }
        }
        if !pending.is_empty() {
            self.line(&String::from_utf8_lossy(&pending));
        }
    }

    fn line(&self, line: &str) {
        let plain = anstream::adapter::strip_str(line).to_string();
        if let Some((done, total, current)) = progress(&plain) {
            self.feed.progress(done, total, current);
            if self.shows_bar {
                print(line);
            }
            return;
        }
        self.first_error.read(plain.trim_end());
        if self.lock_advice.is_due(&plain) {
            self.ui.note(ANOTHER_CARGO);
        }
        if self.shows_bar {
            print(line);
        } else {
            // Only the bar needs them.
            let line = line.replace(ERASE, "");
            if !line.trim_matches('\r').is_empty() {
                print(&line);
            }
        }
    }
}

fn print(text: &str) {
    // Without standard error there is nowhere to report this.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Reads `Building [====>   ] 142/201: kube-core, kube-client`.
fn progress(line: &str) -> Option<(u64, u64, &str)> {
    let bar = line.trim_start().strip_prefix("Building [")?;
    let (_, numbers) = bar.split_once(']')?;
    let (numbers, current) = numbers.split_once(':').unwrap_or((numbers, ""));
    let (done, total) = numbers.trim().split_once('/')?;
    Some((done.parse().ok()?, total.parse().ok()?, current.trim()))
}

fn terminal_width() -> u16 {
    rustix::termios::tcgetwinsize(std::io::stderr()).map_or(80, |size| size.ws_col.max(20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_progress_bar_are_read() {
        assert_eq!(
            progress("    Building [====>      ] 142/201: kube-core, http...\r"),
            Some((142, 201, "kube-core, http..."))
        );
        assert_eq!(progress("    Building [=======> ] 3/4\r"), Some((3, 4, "")));
        assert_eq!(progress("   Compiling kube v5.0.0"), None);
    }

    #[test]
    fn the_advice_about_another_cargo_is_due_once() {
        let advice = LockAdvice::default();
        assert!(!advice.is_due("   Compiling kube v5.0.0\n"));
        assert!(!advice.is_due("    Blocking waiting for file lock on package cache\n"));
        assert!(advice.is_due("    Blocking waiting for file lock on build directory\n"));
        // Later builds share it.
        assert!(!advice.clone().is_due("    Blocking waiting for file lock on artifact directory\n"));
    }

    #[test]
    fn the_first_error_ends_with_an_empty_line() {
        let first = FirstError::default();
        for line in [
            "   Compiling view v0.1.0",
            "warning: unused variable",
            "",
            "error[E0308]: mismatched types",
            "  --> src/main.rs:4:5",
            "   |",
            "",
            "error: could not compile `view` (bin \"view\") due to 1 previous error",
        ] {
            first.read(line);
        }
        assert_eq!(first.text(), "error[E0308]: mismatched types\n  --> src/main.rs:4:5\n   |");
    }

    #[test]
    fn without_a_compiler_error_it_is_that_of_cargo() {
        let first = FirstError::default();
        first.read("error: failed to parse manifest at `Cargo.toml`");
        first.read("error: another one");
        assert_eq!(first.text(), "error: failed to parse manifest at `Cargo.toml`");
    }
}
