//! `kubewright edit api`: changes settings of one kind.

use std::path::PathBuf;

use anyhow::{Result, anyhow};

use crate::cli::examples::examples;
use crate::commands::change::{How, Which, change, open, required};
use crate::error::Hint as _;
use crate::scaffold::add;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Change the storage version", "kubewright edit api --group shop --kind Order --storage-version v2"),
    (
        "Preview the changes",
        "kubewright edit api --group shop --version v2 --kind Order --storage-version --dry-run",
    ),
];

/// Change the storage version of a kind
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,

    /// New storage version [default: the value of --version]
    #[arg(long, value_name = "VERSION", num_args = 0..=1, default_missing_value = "")]
    storage_version: Option<String>,

    /// Project directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,

    #[command(flatten)]
    how: How,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let (root, project) = open(&args.project, ui)?;
    let command = &["edit", "api"];
    let group = required("group", args.which.group.as_ref(), "shop", command, ui)?;
    let kind = required("kind", args.which.kind.as_ref(), "Order", command, ui)?;
    let Some(version) = &args.storage_version else {
        return Err(anyhow!("nothing to change")).hint("set --storage-version");
    };
    let version = if version.is_empty() {
        required("version", args.which.version.as_ref(), "v2", command, ui)?
    } else {
        version.clone()
    };
    let changed = add::store(&project, &group, &kind, &version)?;
    if changed.before == changed.after {
        ui.note(&format!("{version} is already the storage version of {kind}"));
        return Ok(());
    }
    if change(&root, &changed, args.how, ui)? {
        ui.note(
            "existing objects stay in the old storage version until they are rewritten: after `make manifests install`, run \
             `kubewright migrate --all`",
        );
    }
    Ok(())
}
