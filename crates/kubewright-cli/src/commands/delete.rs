//! `kubewright delete`: takes back what `kubewright create` added.

use std::path::PathBuf;

use anyhow::Result;

use super::change::{How, change, open, required};
use crate::cli::examples::examples;
use crate::scaffold::add;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] =
    &[("Take back a kind", "kubewright delete api --group shop --version v1 --kind Order")];
const EXAMPLES_OF_API: &[(&str, &str)] = &[
    ("See what would go", "kubewright delete api --group shop --version v1 --kind Order --dry-run"),
    (
        "Take it back, with what you wrote into its files",
        "kubewright delete api --group shop --version v1 --kind Order --force",
    ),
];

/// Take back what was added to a project
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Api(Api),
}

/// Take back a version of a kind, with its controllers
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES_OF_API))]
struct Api {
    /// Group of the kind
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,

    /// Version
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// Kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Folder of the project
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    project: PathBuf,

    #[command(flatten)]
    how: How,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let What::Api(args) = &args.what;
    let (root, project) = open(&args.project)?;
    let command = ["delete", "api"];
    let group = required("group", args.group.as_ref(), "shop", &command, ui)?;
    let version = required("version", args.version.as_ref(), "v1", &command, ui)?;
    let kind = required("kind", args.kind.as_ref(), "Order", &command, ui)?;
    let changed = add::remove(&project, &group, &version, &kind)?;
    change(&root, &changed.before, &changed.after, args.how, ui)?;
    Ok(())
}
