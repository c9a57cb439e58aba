//! `kubewright undeploy`: removes what `kubewright deploy` applied.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::dev::duration;
use super::image;
use crate::cli::examples::examples;
use crate::delivery::deploy::{self, Removal, Target};
use crate::project::Project;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Remove the operator; CRDs with objects are kept", "kubewright undeploy --ignore-not-found"),
    ("Print what would be removed", "kubewright undeploy --dry-run"),
    ("Also delete all custom resources", "kubewright undeploy --delete-custom-resources"),
];

/// Remove the operator from a cluster; CRDs that have objects are kept
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// Kubeconfig [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Succeed if objects do not exist
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(default_value_t = false, action = clap::ArgAction::Set, hide_possible_values = true)]
    ignore_not_found: bool,

    /// Also delete CRDs that have objects, and these objects
    #[arg(long)]
    delete_custom_resources: bool,

    /// Timeout for the deletion of one object
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    timeout: Duration,

    /// Print what would be deleted
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let rendered = Project::find(&args.project)?.rendered()?;
    let removal = Removal {
        ignore_not_found: args.ignore_not_found || args.dry_run,
        with_custom_resources: args.delete_custom_resources,
        dry_run: args.dry_run,
        timeout: args.timeout,
    };
    image::runtime()?.block_on(async {
        let target = Target::connect(args.kubeconfig.clone(), args.context.clone()).await?;
        ui.note(&format!("removing from {}", target.shown()));
        deploy::remove(&target.client, &rendered, &removal, ui).await
    })
}
