//! The command line, as typed.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::suites::cluster::Work;
use crate::suites::{SUITES, Suite};

/// Measures kubewright beside its peers; `cargo xtask bench` builds and runs this
#[derive(Debug, Parser)]
#[command(
    after_help = "Compare rows of one run only: the peers run on the same machine in the same minutes."
)]
pub(crate) struct Args {
    /// The suite to run; all of them if left out
    #[arg(value_parser = PossibleValuesParser::new(SUITES.iter().map(|suite| suite.name)))]
    suite: Option<String>,
    /// Also write the rows to FILE, as a list of JSON objects
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// How often everything is measured; the median is shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Starts one server in this process and prints how many nanoseconds that took
    #[arg(long, hide = true)]
    pub(crate) first_start: bool,
    /// Starts many environments in this process and prints how many bytes of memory it has then
    #[arg(long, hide = true)]
    pub(crate) environments: bool,
    /// Runs one cluster in this process and prints the figures of it as JSON
    #[arg(long, hide = true, value_name = "WORK")]
    pub(crate) cluster: Option<Work>,
}

impl Args {
    /// The suites that were asked for.
    pub(crate) fn suites(&self) -> impl Iterator<Item = &'static Suite> {
        SUITES.iter().filter(|suite| self.suite.as_ref().is_none_or(|wanted| wanted == suite.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_suite_is_answered_with_those_that_are_there() {
        let error = Args::try_parse_from(["kubewright-bench", "nosuch"]).unwrap_err();
        insta::assert_snapshot!(error, @"
        error: invalid value 'nosuch' for '[SUITE]'
          [possible values: facts, server, custom, runtime, envtest, cluster, dev]

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
    fn no_round_is_no_measurement() {
        assert!(Args::try_parse_from(["kubewright-bench", "--rounds", "0"]).is_err());
    }
}
