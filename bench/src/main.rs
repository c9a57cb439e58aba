//! Runs benchmark suites and prints one table.
//!
//! A suite is a file in `suites/` that returns rows. A missed target does not fail the program, because
//! figures depend on the machine. See `README.md` of this crate.

mod args;
mod binary;
mod process;
mod progress;
mod row;
mod samples;
mod stopwatch;
mod suites;
mod table;

use std::fs;

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use mimalloc::MiMalloc;

use crate::args::Args;
use crate::progress::Progress;
use crate::row::Results;
use crate::suites::Bench;

/// The same allocator as the program `kubewright`, so that in-process figures are comparable.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(
        !cfg!(debug_assertions),
        "refusing to measure a debug build; run `cargo xtask bench`, which builds in release mode"
    );
    if args.first_start {
        println!("{}", suites::server::first_start().as_nanos());
        return Ok(());
    }
    if args.environments {
        println!("{}", suites::envtest::in_parallel(suites::envtest::PARALLEL)?);
        return Ok(());
    }
    if let Some(work) = args.cluster {
        println!("{}", serde_json::to_string(&suites::cluster::measure(work)?)?);
        return Ok(());
    }
    let bench = Bench { rounds: args.rounds, progress: Progress::new() };
    let mut all = Vec::new();
    for suite in args.suites() {
        let rows = (suite.run)(&bench).with_context(|| format!("run the suite `{}`", suite.name))?;
        all.push(Results { suite: suite.name, rows });
    }
    bench.progress.clear();
    print!("{}", table::render(&all));
    if let Some(file) = &args.json {
        let rows: Vec<_> = all.iter().flat_map(Results::to_json).collect();
        let text = serde_json::to_string_pretty(&rows)? + "\n";
        fs::write(file, text).with_context(|| format!("write the rows to {}", file.display()))?;
    }
    Ok(())
}
