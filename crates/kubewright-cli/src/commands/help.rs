//! `kubewright help`: the help of a command, for those who do not think of `--help`.
//!
//! Ours instead of clap's, which takes no flags, not even `--help`.

use std::iter;

use anyhow::Result;
use clap::Parser;

use crate::cli::Cli;
use crate::cli::examples::examples;

const EXAMPLES: &[(&str, &str)] = &[
    ("Print what kubewright can do", "kubewright help"),
    ("Print what a command does", "kubewright help completion"),
];

/// Print the help of kubewright, or of one of its commands
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// The command, such as `version`
    command: Vec<String>,
}

/// Always fails, with clap's answer to `--help`: that is how clap hands out help.
pub(crate) fn run(args: &Args) -> Result<()> {
    let words = args.command.iter().map(String::as_str);
    Cli::try_parse_from(iter::once("kubewright").chain(words).chain(iter::once("--help")))?;
    Ok(())
}
