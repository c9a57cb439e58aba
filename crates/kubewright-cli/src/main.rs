//! The `kubewright` binary: parse, run, report, exit. Under another name it runs another program
//! ([`binaries`]).
//!
//! Exit status: 0 on success, 1 if a command failed, 2 for wrong arguments. All output goes through
//! [`ui::Ui`], which decides on color and verbosity.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod binaries;
mod cli;
mod commands;
mod control_plane;
mod conversion;
mod delivery;
mod descriptions;
mod dev;
mod error;
mod log_output;
mod migration;
mod output;
mod project;
mod scaffold;
mod secret_file;
mod signals;
mod ui;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::ColorChoice;
use mimalloc::MiMalloc;

use crate::binaries::Binary;
use crate::ui::{Ui, Verbosity};

/// Objects are trees of small allocations, created and dropped with every write: see
/// docs/adr/0006-allocator.md.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().collect();
    let (ui, result) = match Binary::called(args.first()) {
        None => kubewright(&args),
        Some(binary) => {
            let ui = Ui::new(ColorChoice::Auto, Verbosity::Normal);
            let result = binary.run(&args[1..], &ui);
            (ui, result)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => error::report(&failure, &ui),
    }
}

fn kubewright(args: &[OsString]) -> (Ui, anyhow::Result<()>) {
    match cli::parse(args) {
        Ok(cli) => {
            let ui = Ui::new(cli.global.color, cli.global.verbosity());
            let result = commands::run(cli.command, &ui);
            (ui, result)
        }
        Err(answer) => (Ui::new(cli::color_in(args), Verbosity::Normal), Err(answer.into())),
    }
}
