//! The only place that prints.
//!
//! Results go to standard output, messages to standard error. Color is decided here for each of the two:
//! `--color`, then `NO_COLOR`, then `CLICOLOR_FORCE`, then whether it is a terminal. External text is escaped
//! ([`escape()`]), so that a file or a server cannot send control sequences to the terminal.

mod escape;
mod progress;
pub(crate) mod style;

pub(crate) use crate::ui::escape::escape;
pub(crate) use crate::ui::progress::{Progress, megabytes};

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, IsTerminal, Write};

use anstream::AutoStream;
use anyhow::{Context, Result};
use clap::ColorChoice;

use crate::error::Hint;

/// How many messages to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Results and errors only.
    Quiet,
    Normal,
    Verbose,
}

/// The terminal, or what replaces it.
#[derive(Clone, Debug)]
pub(crate) struct Ui {
    color: anstream::ColorChoice,
    verbosity: Verbosity,
}

impl Ui {
    pub(crate) fn new(color: ColorChoice, verbosity: Verbosity) -> Self {
        let color = match color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        Self { color, verbosity }
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbosity >= Verbosity::Verbose
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Whether standard output is a terminal.
    #[expect(clippy::unused_self, reason = "output state belongs to the Ui")]
    pub(crate) fn prints_to_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Prints a result unchanged.
    ///
    /// Fails with [`OutputClosed`] if standard output is closed.
    #[expect(clippy::unused_self, reason = "only code with a Ui prints")]
    pub(crate) fn print(&self, result: &[u8]) -> Result<()> {
        write_result(&mut io::stdout().lock(), result)
    }

    /// Prints a styled result; styles are stripped if color is off.
    pub(crate) fn print_styled(&self, result: &str) -> Result<()> {
        write_result(&mut AutoStream::new(io::stdout().lock(), self.color), result.as_bytes())
    }

    /// Prints styled text to standard error; styles are stripped if color is off.
    pub(crate) fn print_styled_error(&self, text: &str) {
        // Without standard error there is nowhere to report this.
        let _ = AutoStream::new(io::stderr().lock(), self.color).write_all(text.as_bytes());
    }

    /// Whether standard error is colored.
    pub(crate) fn colors_errors(&self) -> bool {
        AutoStream::new(io::stderr(), self.color).current_choice() != anstream::ColorChoice::Never
    }

    /// Prints a note, unless quiet.
    pub(crate) fn note(&self, note: &str) {
        if self.verbosity > Verbosity::Quiet {
            let label = style::NOTE;
            self.print_styled_error(&format!("{label}note:{label:#} {}\n", escape(note)));
        }
    }

    /// Prints a warning, unless quiet.
    pub(crate) fn warn(&self, warning: &str) {
        if self.verbosity > Verbosity::Quiet {
            let label = style::CAUSE;
            self.print_styled_error(&format!("{label}warning:{label:#} {}\n", escape(warning)));
        }
    }
}

/// Standard output was closed by its reader, such as `head`.
///
/// A separate type, because other broken pipes, such as that of a connection, are failures.
#[derive(Debug)]
pub(crate) struct OutputClosed;

impl Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl std::error::Error for OutputClosed {}

fn write_result(stdout: &mut impl Write, result: &[u8]) -> Result<()> {
    match stdout.write_all(result).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        Err(error) => Err(error)
            .context("cannot write to standard output")
            .hint("check for free disk space, or redirect the output"),
    }
}
