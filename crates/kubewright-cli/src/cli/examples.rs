//! The examples section of a command's help, which clap does not provide.

use std::fmt::Write;

use clap::builder::StyledStr;

use crate::ui::style;

/// Renders the `Examples:` section: a description and a command line each.
pub(crate) fn examples(examples: &[(&str, &str)]) -> StyledStr {
    let (header, literal) = (style::HEADER, style::LITERAL);
    let mut text = format!("{header}Examples:{header:#}");
    for (index, (what, line)) in examples.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        write!(text, "{gap}\n  # {what}\n  {literal}{line}{literal:#}").expect("a String takes all text");
    }
    StyledStr::from(text)
}
