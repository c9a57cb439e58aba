//! Styles of help, notes and errors; the same as cargo's.

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;

pub(crate) const HEADER: Style = AnsiColor::BrightGreen.on_default().bold();
pub(crate) const LITERAL: Style = AnsiColor::BrightCyan.on_default().bold();
pub(crate) const PLACEHOLDER: Style = AnsiColor::Cyan.on_default();
pub(crate) const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
pub(crate) const CAUSE: Style = AnsiColor::BrightYellow.on_default().bold();
pub(crate) const HINT: Style = AnsiColor::BrightCyan.on_default().bold();
pub(crate) const NOTE: Style = AnsiColor::BrightGreen.on_default().bold();

/// Styles of clap's output.
pub(crate) const HELP: Styles = Styles::styled()
    .header(HEADER)
    .usage(HEADER)
    .literal(LITERAL)
    .placeholder(PLACEHOLDER)
    .error(ERROR)
    .valid(HINT)
    .invalid(CAUSE);
