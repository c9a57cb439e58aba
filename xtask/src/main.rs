//! `cargo xtask`: parses the arguments and calls a function of the library.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{api, bench, ci, facts, prose, screenshots, soak, tidy};

/// Development tasks of the kubewright repository
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    arg_required_else_help = true,
    after_help = "\
Examples:
  cargo xtask ci                         all checks that must pass before a merge
  cargo xtask ci --only clippy           a single step
  cargo xtask api                        list the public API of the facade
  cargo xtask tidy                       repository rules that no other tool checks
  cargo xtask bench --json rows.json     all benchmarks, also as JSON
  cargo xtask soak --hours 8             randomized tests on all cores
  cargo xtask facts --check              check that the tables of built-in kinds are up to date"
)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every check: format, lints, tidy, docs and all tests
    Ci(ci::CiArgs),
    /// List the public API of kubewright and kubewright-envtest in their public-api.txt
    Api(api::ApiArgs),
    /// Check dependency edges, file headers, links and forbidden text
    Tidy(tidy::TidyArgs),
    /// Run the benchmarks against comparable projects
    Bench(bench::BenchArgs),
    /// Run the randomized tests of the runtime for hours, on all cores
    Soak(soak::SoakArgs),
    /// Take screenshots of the `kubewright dev` page
    Screenshots(screenshots::ScreenshotsArgs),
    /// Print random comments, or all log messages or error texts, for a language review
    Prose(prose::ProseArgs),
    /// Generate the tables of built-in Kubernetes kinds from registry packages
    #[command(after_help = "\
Examples:
  cargo xtask facts                      rewrite the tables
  cargo xtask facts --check              fail if the tables differ from the packages")]
    Facts(facts::FactsArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Ci(args) => ci::run(&args),
        Chore::Api(args) => api::run(&args),
        Chore::Tidy(args) => tidy::run(&args),
        Chore::Bench(args) => bench::run(&args),
        Chore::Soak(args) => soak::run(&args),
        Chore::Screenshots(args) => screenshots::run(&args),
        Chore::Prose(args) => prose::run(&args),
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
