//! `cargo xtask bench`: builds the measurements in release and runs them.
//!
//! Owns no measurement: `kubewright-bench` knows its suites, this only passes the arguments on, so that there
//! is one command to remember.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::ci::fetch;

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask bench                      every suite
  cargo xtask bench server               one suite
  cargo xtask bench --json rows.json     also write the rows as JSON

Compare rows of one run only: the peers run on the same machine in the same minutes.")]
pub struct BenchArgs {
    /// The suite to run; all of them if left out
    pub suite: Option<String>,
    /// Also write the rows to FILE, as a list of JSON objects
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Runs `kubewright-bench` in release with the same arguments.
pub fn run(args: &BenchArgs) -> Result<()> {
    // The suite `dev` builds a scaffolded project offline.
    fetch::packages(&crate::repo_root()?, fetch::WORKSPACE)?;
    let mut bench = command(args);
    let status = bench.status().context("start cargo")?;
    ensure!(status.success(), "the measurements failed ({status}); see the messages above");
    Ok(())
}

fn command(args: &BenchArgs) -> Command {
    let mut command = crate::cargo();
    command.args(["run", "--release", "--package", "kubewright-bench", "--"]);
    command.args(&args.suite);
    if let Some(file) = &args.json {
        command.arg("--json").arg(file);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(args: &BenchArgs) -> Vec<String> {
        command(args).get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn suite_and_file_are_passed_on() {
        let args = BenchArgs { suite: Some("server".into()), json: Some("rows.json".into()) };
        assert!(words(&args).ends_with(&["--".into(), "server".into(), "--json".into(), "rows.json".into()]));
    }

    #[test]
    fn without_arguments_the_program_chooses_all_suites() {
        let args = BenchArgs { suite: None, json: None };
        assert_eq!(words(&args).last().map(String::as_str), Some("--"));
    }
}
