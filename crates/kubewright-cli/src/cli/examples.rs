//! The examples section of a command's help, which clap does not provide.

use std::fmt::Write;

use clap::builder::StyledStr;

use crate::ui::style;

/// Width of the section. clap wraps longer lines at the width of the terminal, without continuation characters, and
/// the pasted command would end at the first line.
const WIDTH: usize = 80;

/// Renders the `Examples:` section: a description and a command line each. Long command lines are continued with `\`, so
/// that they can be pasted.
pub(crate) fn examples(examples: &[(&str, &str)]) -> StyledStr {
    let (header, literal) = (style::HEADER, style::LITERAL);
    let mut text = format!("{header}Examples:{header:#}");
    for (index, (what, line)) in examples.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        write!(text, "{gap}\n  # {what}").expect("writing to a String cannot fail");
        for line in continued(line) {
            // Not the indentation: clap counts columns from the last line break within the same style.
            let command = line.trim_start();
            let indent = &line[..line.len() - command.len()];
            write!(text, "\n{indent}{literal}{command}{literal:#}").expect("writing to a String cannot fail");
        }
    }
    StyledStr::from(text)
}

/// The lines of a command, indented. It is broken before options only, which keeps them with their values.
fn continued(command: &str) -> Vec<String> {
    const END: &str = " \\";
    let mut lines = vec![" ".to_owned()];
    let mut rest = command;
    while !rest.is_empty() {
        let end = rest[1..].find(" -").map_or(rest.len(), |at| at + 1);
        let (part, later) = (rest[..end].trim_start(), &rest[end..]);
        let line = lines.last_mut().expect("there is a first line");
        let needed = part.len() + if later.is_empty() { 0 } else { END.len() };
        if line.len() > 1 && line.len() + 1 + needed > WIDTH {
            line.push_str(END);
            lines.push("     ".to_owned());
        }
        let line = lines.last_mut().expect("there is a first line");
        line.push(' ');
        line.push_str(part);
        rest = later;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_are_continued_before_an_option() {
        assert_eq!(continued("kubewright dev --fresh"), ["  kubewright dev --fresh"]);
        assert_eq!(
            continued(
                "kubewright create webhook --group shop --version v1 --kind Order --defaulting --programmatic-validation"
            ),
            [
                "  kubewright create webhook --group shop --version v1 --kind Order \\",
                "      --defaulting --programmatic-validation",
            ]
        );
    }
}
