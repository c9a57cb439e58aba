//! `kubewright create`: adds APIs and webhooks to a project.

mod api;
mod webhook;

use anyhow::Result;

use crate::cli::examples::examples;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Add a kind and its controller", "kubewright create api --group shop --version v1 --kind Order"),
    (
        "Add a validating webhook",
        "kubewright create webhook --group shop --version v1 --kind Order --programmatic-validation",
    ),
];

/// Scaffold a Kubernetes API or webhook
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Api(Box<api::Args>),
    Webhook(Box<webhook::Args>),
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    match &args.what {
        What::Api(args) => api::run(args, ui),
        What::Webhook(args) => webhook::run(args, ui),
    }
}
