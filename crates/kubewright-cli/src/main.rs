//! The binary `kubewright`: parse, run, report, exit.
//!
//! Exit status: 0 on success, 1 when a command failed, 2 when the arguments were wrong. Nothing here or below
//! prints except through [`ui::Ui`], which is where colour and quietness are decided.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod commands;
mod descriptions;
mod error;
mod output;
mod ui;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use crate::ui::{Ui, Verbosity};

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().collect();
    let (ui, result) = match cli::parse(&args) {
        Ok(cli) => {
            let ui = Ui::new(cli.global.color, cli.global.verbosity());
            let result = commands::run(cli.command, &ui);
            (ui, result)
        }
        Err(answer) => (Ui::new(cli::color_in(&args), Verbosity::Normal), Err(answer.into())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => error::report(&failure, &ui),
    }
}
