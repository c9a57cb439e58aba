//! `kubewright edit`: settings of a project, and the files that follow from them.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::ArgAction;

use super::change::{How, change, open};
use crate::cli::examples::examples;
use crate::error::Hint as _;
use crate::scaffold::add;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Give each group a folder, and move the files there", "kubewright edit --multigroup"),
    ("Watch the operator's own namespace only", "kubewright edit --namespaced"),
    ("Have Prometheus read the metrics", "kubewright edit --prometheus"),
    ("See what would change", "kubewright edit --network-policy --dry-run"),
];

/// Change how a project is laid out, and what config/default deploys
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Give each group of kinds a folder of its own, or not
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    multigroup: Option<bool>,

    /// Watch the operator's own namespace only, with Roles instead of ClusterRoles, or all namespaces
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespaced: Option<bool>,

    /// Deploy the ServiceMonitor of config/prometheus, or not
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    prometheus: Option<bool>,

    /// Deploy the NetworkPolicy of config/network-policy, or not
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    network_policy: Option<bool>,

    /// Folder of the project
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    project: PathBuf,

    #[command(flatten)]
    how: How,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let (root, before) = open(&args.project)?;
    let asked = [args.multigroup, args.namespaced, args.prometheus, args.network_policy];
    if asked.iter().all(Option::is_none) {
        return Err(anyhow!("nothing to change")).hint("`kubewright edit --help` lists what can be");
    }
    let mut after = before.clone();
    after.multigroup = args.multigroup.unwrap_or(before.multigroup);
    after.namespaced = args.namespaced.unwrap_or(before.namespaced);
    for (name, value) in [("prometheus", args.prometheus), ("networkPolicy", args.network_policy)] {
        if let Some(value) = value {
            after.set(name, value.into());
        }
    }
    add::check_project(&after)?;
    if !change(&root, &before, &after, args.how, ui)? {
        return Ok(());
    }
    if before.multigroup != after.multigroup {
        ui.note("files of your own that name moved modules (crate::api, crate::controllers) are left to you");
    }
    if before.namespaced != after.namespaced {
        ui.note("a cluster that has the operator keeps the roles of before: `make undeploy` there first");
    }
    Ok(())
}
