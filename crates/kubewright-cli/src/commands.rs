//! The commands, one file each: arguments, help and a thin `run` over the crates that do the work.
//!
//! A command gets its arguments and a [`Ui`] and returns its error. It never exits the process or prints
//! other than through the [`Ui`].

pub(crate) mod apiserver;
pub(crate) mod build_installer;
pub(crate) mod bundle;
mod change;
pub(crate) mod chart;
pub(crate) mod completion;
pub(crate) mod create;
pub(crate) mod delete;
mod dependency;
pub(crate) mod deploy;
pub(crate) mod dev;
pub(crate) mod edit;
pub(crate) mod envtest;
pub(crate) mod help;
pub(crate) mod image;
pub(crate) mod init;
mod kubebuilder;
pub(crate) mod manifests;
pub(crate) mod migrate;
pub(crate) mod scorecard;
pub(crate) mod undeploy;
pub(crate) mod update;
pub(crate) mod version;

use anyhow::Result;

use crate::cli::Command;
use crate::ui::Ui;

pub(crate) fn run(command: Command, ui: &Ui) -> Result<()> {
    match command {
        Command::Apiserver(args) => apiserver::run(&args, ui),
        Command::BuildInstaller(args) => build_installer::run(&args, ui),
        Command::Bundle(args) => bundle::run(&args, ui),
        Command::Chart(args) => chart::run(&args, ui),
        Command::Completion(args) => completion::run(&args, ui),
        Command::Create(args) => create::run(&args, ui),
        Command::Delete(args) => delete::run(&args, ui),
        Command::Deploy(args) => deploy::run(&args, ui),
        Command::Dev(args) => dev::run(args, ui),
        Command::Edit(args) => edit::run(&args, ui),
        Command::Envtest(args) => envtest::run(&args, ui),
        Command::Image(args) => image::run(&args, ui),
        Command::Init(args) => init::run(&args, ui),
        Command::Manifests(args) => manifests::run(&args, ui),
        Command::Migrate(args) => migrate::run(&args, ui),
        Command::Scorecard(args) => scorecard::run(&args, ui),
        Command::Undeploy(args) => undeploy::run(&args, ui),
        Command::Update(args) => update::run(&args, ui),
        Command::Version(args) => version::run(&args, ui),
        Command::Help(args) => help::run(&args),
    }
}
