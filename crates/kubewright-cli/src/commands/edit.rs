//! `kubewright edit`: settings of a project, and the files that follow from them.

mod api;

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::ArgAction;

use super::change::{How, change, open};
use super::kubebuilder;
use crate::cli::examples::examples;
use crate::error::Hint as _;
use crate::project::project_file::ProjectFile;
use crate::scaffold::add::{self, Changed};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Give each group a folder, and move the files there", "kubewright edit --multigroup"),
    ("Watch the operator's own namespace only", "kubewright edit --namespaced"),
    ("Have Prometheus read the metrics", "kubewright edit --prometheus"),
    (
        "Store objects in another version",
        "kubewright edit api --group shop --kind Order --storage-version v2",
    ),
    ("See what would change", "kubewright edit --network-policy --dry-run"),
];

/// Change how a project is laid out, and what config/default deploys
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES), args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

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
    kubebuilder: kubebuilder::Global,

    #[command(flatten)]
    how: How,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Api(api::Args),
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    if let Some(What::Api(args)) = &args.what {
        return api::run(args, ui);
    }
    args.kubebuilder.note(ui);
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
    let changed = Changed { before, after, copied: None };
    if !change(&root, &changed, args.how, ui)? {
        return Ok(());
    }
    let Changed { before, after, .. } = &changed;
    if before.multigroup != after.multigroup {
        ui.note("files of your own that name moved modules (crate::api, crate::controllers) are left to you");
    }
    if before.namespaced != after.namespaced {
        ui.note(&old_roles(after));
    }
    Ok(())
}

/// How to remove the roles of an operator that watched other namespaces. `make undeploy` would also delete the CRDs,
/// and with them every object.
fn old_roles(project: &ProjectFile) -> String {
    let name = &project.project_name;
    let (role, scope) = if project.namespaced {
        ("clusterrole", String::new())
    } else {
        ("role", format!(" -n {name}-system"))
    };
    format!(
        "where the operator runs, `make deploy` again, then remove its old role: `kubectl delete{scope} \
         {role}binding/{name}-manager-rolebinding {role}/{name}-manager-role`"
    )
}
