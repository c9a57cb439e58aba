//! `kubewright help`: the help of a command, for those who do not think of `--help`.
//!
//! Ours instead of clap's, which takes no flags, not even `--help`.

use std::iter;

use anyhow::Result;
use clap::Parser;

use crate::cli::Cli;
use crate::cli::examples::examples;

const EXAMPLES: &[(&str, &str)] = &[
    ("Print help for kubewright", "kubewright help"),
    ("Print help for a command", "kubewright help completion"),
];

/// Print help for kubewright or a command
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Command, such as `version`
    command: Vec<String>,
}

/// Always fails, with clap's answer to `--help`: that is how clap hands out help.
pub(crate) fn run(args: &Args) -> Result<()> {
    let words = args.command.iter().map(String::as_str);
    Cli::try_parse_from(iter::once("kubewright").chain(words).chain(iter::once("--help")))?;
    Ok(())
}
