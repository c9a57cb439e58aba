//! `cargo xtask bench`: builds `kubewright-bench` in release mode and runs it with the given arguments.
//!
//! The measurements themselves are in `kubewright-bench`.

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

Compare only rows of the same run: peers run on the same machine at about the same time.")]
pub struct BenchArgs {
    /// The suite to run [default: all suites]
    pub suite: Option<String>,
    /// Also write the rows to FILE as a JSON array
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Runs `kubewright-bench` in release mode with the same arguments.
pub fn run(args: &BenchArgs) -> Result<()> {
    // The suite `dev` builds a scaffolded project offline.
    fetch::packages(&crate::repo_root()?, fetch::WORKSPACE)?;
    let mut bench = command(args);
    let status = bench.status().context("start cargo")?;
    ensure!(status.success(), "the benchmarks failed ({status}); see the messages above");
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
    fn suite_and_json_file_are_passed_to_the_bench_program() {
        let args = BenchArgs { suite: Some("server".into()), json: Some("rows.json".into()) };
        assert!(words(&args).ends_with(&["--".into(), "server".into(), "--json".into(), "rows.json".into()]));
    }

    #[test]
    fn without_arguments_no_suite_is_passed() {
        let args = BenchArgs { suite: None, json: None };
        assert_eq!(words(&args).last().map(String::as_str), Some("--"));
    }
}
