//! `cargo xtask`: reads the arguments and calls the chore.
//!
//! Owns the command line's shape and the exit status; every chore is a function of the library.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{bench, ci, facts, soak, tidy};

/// Chores of the kubewright repository
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    arg_required_else_help = true,
    after_help = "\
Examples:
  cargo xtask ci                         everything that must pass before a merge
  cargo xtask ci --only clippy           one step of it
  cargo xtask tidy                       the rules of this repo that no other tool checks
  cargo xtask bench --json rows.json     all measurements, also as JSON
  cargo xtask soak --hours 8             the randomized tests, on all cores
  cargo xtask facts --check              is the table of built-in kinds up to date?"
)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every check: format, lints, tidy, docs and all tests
    Ci(ci::CiArgs),
    /// Check dependency edges, file headers, links and forbidden text
    Tidy(tidy::TidyArgs),
    /// Measure kubewright beside its peers
    Bench(bench::BenchArgs),
    /// Run the randomized tests of the runtime for hours, on all cores
    Soak(soak::SoakArgs),
    /// Derive the table of built-in Kubernetes kinds from registry packages
    #[command(after_help = "\
Examples:
  cargo xtask facts                      rewrite the table
  cargo xtask facts --check              fail if the table differs from the packages")]
    Facts(facts::FactsArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Ci(args) => ci::run(&args),
        Chore::Tidy(args) => tidy::run(&args),
        Chore::Bench(args) => bench::run(&args),
        Chore::Soak(args) => soak::run(&args),
        Chore::Facts(args) => facts::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
