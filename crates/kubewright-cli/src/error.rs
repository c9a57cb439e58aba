//! The only place that prints errors: what failed, why, and what to do.
//!
//! A command returns its error with a context that says what failed; the causes follow from the chain. A
//! [`Hint`] travels with the error from any depth and does not change the error otherwise.

use std::error::Error as StdError;
use std::fmt::{self, Display, Write};
use std::process::ExitCode;

use anstyle::Style;
use anyhow::{Error, Result};

use crate::ui::{OutputClosed, Ui, escape, style};

/// Attaches advice to an error.
pub(crate) trait Hint {
    fn hint(self, advice: impl Into<String>) -> Self;
}

impl Hint for Error {
    fn hint(self, advice: impl Into<String>) -> Self {
        Self::new(Hinted { advice: advice.into(), error: self })
    }
}

impl<T> Hint for Result<T> {
    fn hint(self, advice: impl Into<String>) -> Self {
        self.map_err(|error| error.hint(advice))
    }
}

/// Prints an error and returns the exit code.
///
/// clap's errors, which include help and the version, are printed as clap does.
pub(crate) fn report(failure: &Error, ui: &Ui) -> ExitCode {
    if is_satisfied(failure) {
        return ExitCode::SUCCESS;
    }
    let Some(answer) = failure.downcast_ref::<clap::Error>() else {
        ui.print_styled_error(&render(failure));
        return ExitCode::FAILURE;
    };
    let text = answer.render().ansi().to_string();
    if answer.use_stderr() {
        ui.print_styled_error(&text);
    } else if let Err(failure) = ui.print_styled(&text) {
        return report(&failure, ui);
    }
    u8::try_from(answer.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Whether the command stopped only because standard output was closed, which is not a failure even under
/// `pipefail`.
fn is_satisfied(failure: &Error) -> bool {
    failure.is::<OutputClosed>()
}

/// An error with advice. It displays as the inner error and has its causes.
#[derive(Debug)]
struct Hinted {
    advice: String,
    error: Error,
}

impl Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.error, f)
    }
}

impl StdError for Hinted {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}

/// Renders an error as it is printed.
pub(crate) fn render(failure: &Error) -> String {
    let mut text = String::new();
    let mut last = failure.to_string();
    push(&mut text, style::ERROR, "error:", &last);
    for cause in failure.chain().skip(1).map(ToString::to_string) {
        // Many libraries repeat the cause in their own message.
        if !last.ends_with(&cause) {
            push(&mut text, style::CAUSE, "  cause:", &cause);
        }
        last = cause;
    }
    for advice in failure.chain().filter_map(advice) {
        push(&mut text, style::HINT, "  hint:", advice);
    }
    text
}

fn advice<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a str> {
    error.downcast_ref::<Hinted>().map(|hinted| hinted.advice.as_str())
}

/// Appends a labeled message. Further lines are indented, so that they cannot be mistaken for our labels.
fn push(text: &mut String, label_style: Style, label: &str, message: &str) {
    let indent = " ".repeat(label.len() + 1);
    let message = message.trim_end().lines().map(escape).collect::<Vec<_>>().join(&format!("\n{indent}"));
    writeln!(text, "{label_style}{label}{label_style:#} {message}").expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use std::io;

    use anstream::adapter::strip_str;
    use anyhow::{Context, anyhow};

    use super::*;

    fn plain(failure: &Error) -> String {
        strip_str(&render(failure)).to_string()
    }

    #[test]
    fn an_error_prints_what_failed_then_the_causes() {
        let failure = Error::new(io::Error::from(io::ErrorKind::PermissionDenied))
            .context("cannot read PROJECT")
            .context("cannot add the API");
        insta::assert_snapshot!(plain(&failure), @"
        error: cannot add the API
          cause: cannot read PROJECT
          cause: permission denied
        ");
    }

    #[test]
    fn hints_of_any_depth_are_printed_last() {
        let failure = anyhow!("no PROJECT here")
            .hint("run `kubewright init` first")
            .context("cannot add the API")
            .hint("run it in the project directory");
        insta::assert_snapshot!(plain(&failure), @"
        error: cannot add the API
          cause: no PROJECT here
          hint: run it in the project directory
          hint: run `kubewright init` first
        ");
    }

    #[test]
    fn a_hint_does_not_hide_the_cause_below_it() {
        let failure = Error::new(io::Error::from(io::ErrorKind::NotFound)).context("cannot read PROJECT");
        insta::assert_snapshot!(plain(&failure.hint("run `kubewright init` first")), @"
        error: cannot read PROJECT
          cause: entity not found
          hint: run `kubewright init` first
        ");
    }

    #[test]
    fn a_cause_that_the_message_repeats_is_not_printed_again() {
        let failure: Error = Err::<(), _>(anyhow!("connection refused"))
            .context("cannot reach the server: connection refused")
            .unwrap_err();
        insta::assert_snapshot!(plain(&failure), @"error: cannot reach the server: connection refused");
    }

    #[test]
    fn control_characters_are_escaped() {
        let failure = anyhow!("server said \x1b[2J\x1b]0;owned\x07").context("bad\rname \u{202e}txt");
        insta::assert_snapshot!(plain(&failure), @r"
        error: bad\rname \u{202e}txt
          cause: server said \u{1b}[2J\u{1b}]0;owned\u{7}
        ");
    }

    #[test]
    fn further_lines_are_indented() {
        let failure = anyhow!("line 3:\r\nhint: run rm\n\n").context("cannot read\nerror: nothing");
        insta::assert_snapshot!(plain(&failure), @"
        error: cannot read
               error: nothing
          cause: line 3:
                 hint: run rm
        ");
    }

    #[test]
    fn labels_are_colored_and_messages_are_not() {
        let failure = anyhow!("inside").context("outside").hint("try");
        insta::assert_snapshot!(render(&failure).escape_debug(), @r"\u{1b}[1m\u{1b}[91merror:\u{1b}[0m outside\n\u{1b}[1m\u{1b}[93m  cause:\u{1b}[0m inside\n\u{1b}[1m\u{1b}[96m  hint:\u{1b}[0m try\n");
    }

    #[test]
    fn only_a_closed_standard_output_is_ignored() {
        assert!(is_satisfied(&Error::new(OutputClosed).context("cannot list")));
        let connection = Error::new(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(!is_satisfied(&connection.context("cannot watch")));
    }
}
