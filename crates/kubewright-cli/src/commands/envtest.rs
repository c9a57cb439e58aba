//! `kubewright envtest`: support for tests written for Go's envtest.

pub(crate) mod assets;

use anyhow::Result;
use clap::Subcommand;

use crate::cli::examples::examples;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[(
    "Run the tests of a Go operator with kubewright",
    r#"eval "$(kubewright envtest assets bin/k8s)" && go test ./..."#,
)];

/// Prepare assets for Go's envtest
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Assets(assets::Args),
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    match &args.command {
        Command::Assets(args) => assets::run(args, ui),
    }
}
