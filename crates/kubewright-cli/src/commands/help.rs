//! `kubewright help`: prints the help of a command.
//!
//! It replaces clap's own `help`, which accepts no flags, not even `--help`.

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

/// Always fails with clap's help error, which is how clap returns help text.
pub(crate) fn run(args: &Args) -> Result<()> {
    let words = args.command.iter().map(String::as_str);
    Cli::try_parse_from(iter::once("kubewright").chain(words).chain(iter::once("--help")))?;
    Ok(())
}
