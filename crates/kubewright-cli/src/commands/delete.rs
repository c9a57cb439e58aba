//! `kubewright delete`: removes what `kubewright create` added.

mod webhook;

use std::path::PathBuf;

use anyhow::Result;

use super::change::{How, Which, change, open};
use crate::cli::examples::examples;
use crate::scaffold::add;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Delete an API", "kubewright delete api --group shop --version v1 --kind Order"),
    ("Delete its webhooks", "kubewright delete webhook --group shop --version v1 --kind Order"),
];
const EXAMPLES_OF_API: &[(&str, &str)] = &[
    ("Preview the changes", "kubewright delete api --group shop --version v1 --kind Order --dry-run"),
    (
        "Delete it, including files that you changed",
        "kubewright delete api --group shop --version v1 --kind Order --force",
    ),
];

/// Delete a Kubernetes API or webhook
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Api(Api),
    Webhook(webhook::Args),
}

/// Delete a version of a kind and its controllers
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES_OF_API))]
struct Api {
    #[command(flatten)]
    which: Which,

    /// Project directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,

    #[command(flatten)]
    how: How,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let args = match &args.what {
        What::Api(args) => args,
        What::Webhook(args) => return webhook::run(args, ui),
    };
    let (root, project) = open(&args.project, ui)?;
    let [group, version, kind] = args.which.ask(&["delete", "api"], ui)?;
    let changed = add::remove(&project, &group, &version, &kind)?;
    change(&root, &changed, args.how, ui)?;
    Ok(())
}
