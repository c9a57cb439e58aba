//! Command-line arguments.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::suites::cluster::Work;
use crate::suites::{SUITES, Suite};

/// Runs the benchmarks of kubewright; use `cargo xtask bench` to build and run it
#[derive(Debug, Parser)]
#[command(
    after_help = "Compare only rows of the same run: peers run on the same machine at about the same time."
)]
pub(crate) struct Args {
    /// The suite to run [default: all suites]
    #[arg(value_parser = PossibleValuesParser::new(SUITES.iter().map(|suite| suite.name)))]
    suite: Option<String>,
    /// Also write the rows to FILE as a JSON array
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Number of rounds; the table shows the median
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Start one server in this process and print the duration in nanoseconds
    #[arg(long, hide = true)]
    pub(crate) first_start: bool,
    /// Start many environments in this process and print its memory in bytes
    #[arg(long, hide = true)]
    pub(crate) environments: bool,
    /// Run one cluster in this process and print its figures as JSON
    #[arg(long, hide = true, value_name = "WORK")]
    pub(crate) cluster: Option<Work>,
}

impl Args {
    /// The selected suites.
    pub(crate) fn suites(&self) -> impl Iterator<Item = &'static Suite> {
        SUITES.iter().filter(|suite| self.suite.as_ref().is_none_or(|wanted| wanted == suite.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_suite_is_rejected_with_the_valid_ones() {
        let error = Args::try_parse_from(["kubewright-bench", "nosuch"]).unwrap_err();
        insta::assert_snapshot!(error, @"
        error: invalid value 'nosuch' for '[SUITE]'
          [possible values: facts, server, hostile, custom, runtime, webhooks, envtest, cluster, dev, page, delivery]

        For more information, try '--help'.
        ");
    }

    #[test]
    fn without_a_suite_all_of_them_run() {
        let args = Args::try_parse_from(["kubewright-bench"]).unwrap();
        assert_eq!(args.suites().count(), SUITES.len());
        let args = Args::try_parse_from(["kubewright-bench", "facts"]).unwrap();
        assert_eq!(args.suites().map(|suite| suite.name).collect::<Vec<_>>(), ["facts"]);
    }

    #[test]
    fn zero_rounds_are_rejected() {
        assert!(Args::try_parse_from(["kubewright-bench", "--rounds", "0"]).is_err());
    }
}
