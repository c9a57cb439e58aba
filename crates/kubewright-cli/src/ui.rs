//! The one place that prints.
//!
//! Results go to standard output, everything said beside them to standard error. Colour is decided here, for
//! each of the two: `--color` first, then `NO_COLOR`, then `CLICOLOR_FORCE`, then whether it is a terminal.
//! Text from outside is escaped here ([`escape()`]), so that a file or a server cannot drive the terminal.

mod escape;
pub(crate) mod style;

pub(crate) use crate::ui::escape::escape;

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, IsTerminal, Write};

use anstream::AutoStream;
use anyhow::{Context, Result};
use clap::ColorChoice;

use crate::error::Hint;

/// How much is said beside the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Results and errors only.
    Quiet,
    Normal,
    Verbose,
}

/// The terminal, or whatever is in its place.
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

    /// Whether a person looks at the results, rather than a program.
    #[expect(clippy::unused_self, reason = "where the results go is the Ui's to know")]
    pub(crate) fn prints_to_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Prints a result, byte for byte.
    ///
    /// Fails with [`OutputClosed`] when nobody reads any more.
    #[expect(clippy::unused_self, reason = "whoever prints has to hold the Ui")]
    pub(crate) fn print(&self, result: &[u8]) -> Result<()> {
        write_result(&mut io::stdout().lock(), result)
    }

    /// Prints a result that has colours, or has them taken out.
    pub(crate) fn print_styled(&self, result: &str) -> Result<()> {
        write_result(&mut AutoStream::new(io::stdout().lock(), self.color), result.as_bytes())
    }

    /// Prints to standard error what has colours, or has them taken out.
    pub(crate) fn print_styled_error(&self, text: &str) {
        // When standard error is closed there is nobody left to tell.
        let _ = AutoStream::new(io::stderr().lock(), self.color).write_all(text.as_bytes());
    }

    /// Says something beside the results, unless the user wants quiet.
    pub(crate) fn note(&self, note: &str) {
        if self.verbosity > Verbosity::Quiet {
            let label = style::NOTE;
            self.print_styled_error(&format!("{label}note:{label:#} {}\n", escape(note)));
        }
    }

    /// Says what may not be as the user thinks, unless the user wants quiet.
    pub(crate) fn warn(&self, warning: &str) {
        if self.verbosity > Verbosity::Quiet {
            let label = style::CAUSE;
            self.print_styled_error(&format!("{label}warning:{label:#} {}\n", escape(warning)));
        }
    }
}

/// Whoever reads our results has gone, as `head` does when it has seen enough.
///
/// Its own type, because any other broken pipe, such as that of a connection, is a failure.
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
