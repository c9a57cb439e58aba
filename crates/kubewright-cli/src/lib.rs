//! The command line of kubewright, as the `kubewright` binary runs it.
//!
//! Public is only what the binary and the tests in `tests/` need: [`run`] is the whole program, and [`Page`] is the
//! web UI of `kubewright dev`, which the tests serve without an operator. Nothing here is a stable API; operators
//! depend on the crate `kubewright`.
//!
//! - `cli` and `commands` parse the arguments, one file per command. `binaries` replaces both if the program is called
//!   as `kube-apiserver` or `etcd`.
//! - `project` reads and writes a project on disk, `scaffold` renders its files, `delivery` builds images, charts and
//!   bundles and deploys them, and `dev` is the development loop.
//! - `migration` and `conversion` change the CRDs and stored objects of a cluster.
//! - `readiness` decides whether an object is ready, for `dev`, its web UI and `deploy`.
//! - `control_plane` runs the API server in this process, with the `descriptions` of the built-in kinds.
//!
//! Exit status: 0 on success, 1 if a command failed, 2 for wrong arguments. All output goes through `ui`, which decides
//! on color and verbosity, and `error` prints errors with their hints.
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
mod readiness;
mod scaffold;
mod secret_file;
mod signals;
mod ui;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::ColorChoice;

use crate::binaries::Binary;
pub use crate::dev::{Feed, Page};
use crate::ui::{Ui, Verbosity};

/// Runs the program with its arguments, prints its error if it fails, and returns the exit status.
///
/// The first argument is the name that the program was called by. `kube-apiserver` and `etcd` select the binaries of
/// Go's envtest; every other name selects `kubewright`.
pub fn run(args: &[OsString]) -> ExitCode {
    let (ui, result) = match Binary::called(args.first()) {
        None => kubewright(args),
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
