//! Command-line flags in Go's syntax.
//!
//! Supports `--name=value` and `--name value`, with one dash or two. Unknown flags are kept and reported,
//! never rejected; the argument after an unknown flag is its value unless it is a flag itself.

use std::ffi::OsString;
use std::fmt::Write as _;

use anyhow::{Result, anyhow, bail};

use crate::error::Hint as _;
use crate::ui::Ui;

/// A supported flag.
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// Placeholder of the value in the help; empty for a switch.
    pub(super) value: &'static str,
    pub(super) effect: Effect,
    pub(super) help: &'static str,
}

/// How a flag is handled.
pub(super) enum Effect {
    /// It is used.
    Used,
    /// Ignored silently if it has this value, which is the fixed behavior; other values are reported.
    Already(&'static str),
    /// Ignored silently with any value.
    Nothing,
}

/// A program with its flags and its help text.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) flags: &'static [Flag],
}

/// A parsed command line.
#[derive(Debug)]
pub(super) enum Asked {
    Help,
    Version,
    Run(Given),
}

/// The flags of a command line, last occurrence first.
#[derive(Debug)]
pub(super) struct Given(Vec<(String, String)>);

impl Given {
    /// All values of a repeatable flag, in command-line order.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.0.iter().rev().filter(move |(given, _)| given == name);
        values.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The value of a flag, if it was given and is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(given, _)| given == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// The values of a comma-separated list flag, over all its occurrences.
    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        let given = self.0.iter().rev().filter(|(given, _)| given == name);
        let values = given.flat_map(|(_, value)| value.split(','));
        values.map(str::trim).filter(|value| !value.is_empty()).collect()
    }
}

impl Program {
    pub(super) fn parse(&self, args: &[OsString]) -> Result<Asked> {
        let mut given = Vec::new();
        let mut args = args.iter().map(|arg| arg.to_string_lossy().into_owned()).peekable();
        while let Some(arg) = args.next() {
            let flag = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'));
            let Some(flag) = flag.filter(|flag| !flag.is_empty()) else {
                bail!("\"{}\" does not take any arguments, got {arg:?}", self.name);
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            match (name, &value) {
                ("help" | "h", None) => return Ok(Asked::Help),
                ("version", None) => return Ok(Asked::Version),
                _ => {}
            }
            let value = match (value, self.known(name)) {
                (Some(value), _) => value,
                (None, Some(known)) if known.value.is_empty() => "true".to_owned(),
                (None, Some(_)) => args.next().ok_or_else(|| {
                    anyhow!("flag needs an argument: --{name}").hint(format!("use --{name}=VALUE"))
                })?,
                (None, None) => {
                    args.next_if(|next| next == "-" || !next.starts_with('-')).unwrap_or_default()
                }
            };
            given.push((name.to_owned(), value));
        }
        given.reverse();
        Ok(Asked::Run(Given(given)))
    }

    fn known(&self, name: &str) -> Option<&Flag> {
        self.flags.iter().find(|flag| flag.name == name)
    }

    /// Warns about ignored flags, in one line.
    pub(super) fn warn_ignored(&self, given: &Given, ui: &Ui) {
        let mut names: Vec<String> = given
            .0
            .iter()
            .filter(|(name, value)| match self.known(name).map(|flag| &flag.effect) {
                Some(Effect::Already(so)) => value != so,
                Some(Effect::Used | Effect::Nothing) => false,
                None => true,
            })
            .map(|(name, _)| format!("--{name}"))
            .collect();
        names.sort();
        names.dedup();
        if !names.is_empty() {
            ui.warn(&format!("kubewright's {} ignores {}", self.name, names.join(", ")));
        }
    }

    /// The help text, with one line per flag.
    pub(super) fn help(&self) -> String {
        let left = |flag: &Flag| format!("      --{} {}", flag.name, flag.value);
        let width = self.flags.iter().map(|flag| left(flag).len()).max().unwrap_or_default();
        let mut text = format!(
            "{}\n\nUsage:\n  {} [flags]\n\nFlags (others are accepted and ignored):\n",
            self.about, self.name
        );
        for flag in self.flags {
            writeln!(text, "{:width$}  {}", left(flag), flag.help).expect("writing to a String cannot fail");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program {
        name: "server",
        about: "A server.",
        flags: &[
            Flag { name: "port", value: "N", effect: Effect::Used, help: "where" },
            Flag { name: "open", value: "", effect: Effect::Already("true"), help: "for all" },
        ],
    };

    fn parse(line: &str) -> Result<Asked> {
        PROGRAM.parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn given(line: &str) -> Given {
        match parse(line).unwrap() {
            Asked::Run(given) => given,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn values_follow_an_equals_sign_or_a_space_and_the_last_one_wins() {
        assert_eq!(given("--port=1 --port 2").get("port"), Some("2"));
        assert_eq!(given("-port 3").get("port"), Some("3"));
        assert_eq!(given("--port=").get("port"), None);
        assert_eq!(given("--port=1 --port 2").all("port").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(given("--open --port 4").get("open"), Some("true"));
    }

    #[test]
    fn list_flags_accumulate_over_occurrences() {
        let given = given("--names=a,b --port 1 --names c, --names=");
        assert_eq!(given.list("names"), ["a", "b", "c"]);
        assert_eq!(given.list("none"), [""; 0]);
    }

    #[test]
    fn an_unknown_flag_takes_the_next_argument_unless_it_is_a_flag() {
        let given = given("--v 2 --feature-gates --port 5 --audit-log-path -");
        assert_eq!(given.get("audit-log-path"), Some("-"));
        assert_eq!(
            (given.get("v"), given.get("feature-gates"), given.get("port")),
            (Some("2"), None, Some("5"))
        );
    }

    #[test]
    fn positional_arguments_and_missing_values_are_rejected() {
        assert_eq!(
            parse("start").unwrap_err().to_string(),
            "\"server\" does not take any arguments, got \"start\""
        );
        assert_eq!(parse("--port").unwrap_err().to_string(), "flag needs an argument: --port");
    }

    #[test]
    fn help_has_one_line_per_flag() {
        assert!(matches!(parse("--port 1 --help").unwrap(), Asked::Help));
        insta::assert_snapshot!(PROGRAM.help(), @"
        A server.

        Usage:
          server [flags]

        Flags (others are accepted and ignored):
              --port N  where
              --open    for all
        ");
    }
}
