//! The command line as typed.
//!
//! Each command is one variant of [`Command`] and one file in [`crate::commands`] with its arguments, help
//! and code. This module only parses.

pub(crate) mod examples;
#[cfg(test)]
mod workflows;

use std::ffi::OsString;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{ArgAction, Args, ColorChoice, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::cli::examples::examples;
use crate::commands::{
    apiserver, build_installer, bundle, chart, completion, create, delete, deploy, dev, edit, envtest, help,
    image, init, manifests, migrate, scorecard, undeploy, update, version,
};
use crate::ui::{Verbosity, style};

const EXAMPLES: &[(&str, &str)] = &[
    ("Create a project in the current directory", "kubewright init --domain example.com"),
    ("Add a kind and its controller", "kubewright create api --group shop --version v1 --kind Order"),
    ("Run the operator, and rebuild it on each save", "kubewright dev"),
    ("Build, push and deploy", "kubewright deploy --tag registry.example.com/shop:v1"),
    ("Start a Kubernetes API server", "kubewright apiserver --port 6443"),
    ("Generate CRDs and RBAC rules", "kubewright manifests"),
    ("Print version information", "kubewright version"),
    ("Enable shell completion", "source <(kubewright completion bash)"),
    ("Print help for a command", "kubewright help version"),
];

/// Build, test and run Kubernetes operators in Rust, with an embedded Kubernetes API server
#[derive(Debug, Parser)]
#[command(
    name = "kubewright",
    version = version::line(),
    styles = style::HELP,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = examples(EXAMPLES),
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands. Each is documented at its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Apiserver(apiserver::Args),
    BuildInstaller(build_installer::Args),
    Bundle(bundle::Args),
    Chart(chart::Args),
    Completion(completion::Args),
    Create(create::Args),
    Delete(delete::Args),
    Deploy(deploy::Args),
    Dev(dev::Args),
    Edit(edit::Args),
    Envtest(envtest::Args),
    Image(image::Args),
    Init(init::Args),
    Manifests(manifests::Args),
    Migrate(migrate::Args),
    Scorecard(scorecard::Args),
    Undeploy(undeploy::Args),
    Update(update::Args),
    Version(version::Args),
    Help(help::Args),
}

/// Arguments of every command, accepted before or after its name.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Use color: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub(crate) color: ColorChoice,

    /// Print results and errors only
    #[arg(short, long, global = true)]
    quiet: bool,

    /// Increase verbosity (repeatable)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

impl GlobalArgs {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match self.verbose {
            0 if self.quiet => Verbosity::Quiet,
            0 => Verbosity::Normal,
            1.. => Verbosity::Verbose,
        }
    }
}

/// Parses the arguments. The error is what clap prints instead: a usage error, help or the version.
pub(crate) fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let cli = Cli::try_parse_from(args)?;
    // clap does not detect a conflict between an argument before the subcommand and one after it.
    if cli.global.quiet && cli.global.verbose > 0 {
        let conflict = "the argument '--quiet' cannot be used with '--verbose'";
        return Err(Cli::command().error(ErrorKind::ArgumentConflict, conflict));
    }
    Ok(cli)
}

/// The command for completion scripts, which also complete the arguments of `help`.
pub(crate) fn command_for_completion() -> clap::Command {
    let command = Cli::command();
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let names = PossibleValuesParser::new(names);
    command.mut_subcommand("help", |help| help.mut_arg("command", |arg| arg.value_parser(names)))
}

/// Finds `--color` in arguments that did not parse, for help and usage errors.
pub(crate) fn color_in(args: &[OsString]) -> ColorChoice {
    let mut choice = ColorChoice::Auto;
    let mut args = args.iter().map(|arg| arg.to_str().unwrap_or_default()).take_while(|arg| *arg != "--");
    while let Some(arg) = args.next() {
        let value = match arg.strip_prefix("--color") {
            Some("") => args.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        if let Some(Ok(said)) = value.map(|value| ColorChoice::from_str(value, false)) {
            choice = said;
        }
    }
    choice
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    /// Every command with its path, root first.
    fn all_commands() -> Vec<(String, clap::Command)> {
        fn walk(path: &str, command: &clap::Command, found: &mut Vec<(String, clap::Command)>) {
            for command in command.get_subcommands() {
                walk(&format!("{path} {}", command.get_name()), command, found);
            }
            found.push((path.to_owned(), command.clone()));
        }
        let mut found = Vec::new();
        walk("kubewright", &Cli::command(), &mut found);
        found.reverse();
        found
    }

    fn after_help(command: &clap::Command) -> String {
        command
            .get_after_help()
            .map(|text| strip_str(&text.ansi().to_string()).to_string())
            .unwrap_or_default()
    }

    /// The kubewright calls in an example: `source <(kubewright a b)` contains `kubewright a b`.
    fn calls(help: &str) -> Vec<Vec<String>> {
        help.replace(" \\\n", "")
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .filter_map(|line| line.find("kubewright ").map(|start| &line[start..]))
            .filter_map(|call| call.split(['|', '>', ')']).next())
            .map(|call| call.split_whitespace().map(str::to_owned).collect())
            .collect()
    }

    #[test]
    fn examples_are_not_wrapped_at_80_columns() {
        for (path, command) in all_commands() {
            for line in after_help(&command).lines() {
                assert!(line.chars().count() <= 80, "`{path}`: clap wraps the example line {line:?}");
            }
        }
    }

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_description_and_examples_that_parse() {
        for (path, command) in all_commands() {
            assert!(command.get_about().is_some(), "`{path}` has no description");
            let help = after_help(&command);
            assert!(help.starts_with("Examples:\n"), "`{path}` has no examples");
            let calls = calls(&help);
            assert!(!calls.is_empty(), "no example of `{path}` calls kubewright");
            for call in calls {
                if let Err(answer) = Cli::try_parse_from(&call) {
                    panic!("`{path}` has an example that does not parse: {}\n{answer}", call.join(" "));
                }
            }
        }
    }

    #[test]
    fn the_color_is_found_in_arguments_that_do_not_parse() {
        let color = |line: &str| color_in(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(color("kubewright nonsense"), ColorChoice::Auto);
        assert_eq!(color("kubewright --color always nonsense"), ColorChoice::Always);
        assert_eq!(color("kubewright nonsense --color=never"), ColorChoice::Never);
        assert_eq!(color("kubewright --color=never --color purple"), ColorChoice::Never);
        assert_eq!(color("kubewright --colors=never"), ColorChoice::Auto);
        assert_eq!(color("kubewright -- --color=never"), ColorChoice::Auto);
        assert_eq!(color("kubewright --color"), ColorChoice::Auto);
    }
}
