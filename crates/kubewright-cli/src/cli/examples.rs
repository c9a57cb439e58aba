//! The section of a command's help that clap does not write itself.

use std::fmt::Write;

use clap::builder::StyledStr;

use crate::ui::style;

/// The section `Examples:` of a command: what one wants, and the line to type for it.
pub(crate) fn examples(examples: &[(&str, &str)]) -> StyledStr {
    let (header, literal) = (style::HEADER, style::LITERAL);
    let mut text = format!("{header}Examples:{header:#}");
    for (index, (what, line)) in examples.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        write!(text, "{gap}\n  # {what}\n  {literal}{line}{literal:#}").expect("a String takes all text");
    }
    StyledStr::from(text)
}
