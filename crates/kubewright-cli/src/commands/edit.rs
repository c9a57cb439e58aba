//! `kubewright edit`: changes project settings and the files that depend on them.

mod api;

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::ArgAction;

use super::change::{How, change, open};
use super::kubebuilder;
use crate::cli::examples::examples;
use crate::error::Hint as _;
use crate::project::project_file::{ProjectFile, WebhookCerts};
use crate::scaffold::add::{self, Changed};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Switch to the multigroup layout", "kubewright edit --multigroup"),
    ("Watch only the operator's namespace", "kubewright edit --namespaced"),
    ("Enable the Prometheus ServiceMonitor", "kubewright edit --prometheus"),
    ("Change the storage version", "kubewright edit api --group shop --kind Order --storage-version v2"),
    ("Use cert-manager for the webhook certificate", "kubewright edit --webhook-certs cert-manager"),
    ("Preview the changes", "kubewright edit --network-policy --dry-run"),
];

/// Update the project configuration
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES), args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Use one directory per API group
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    multigroup: Option<bool>,

    /// Watch only the operator's namespace, with Roles instead of ClusterRoles
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespaced: Option<bool>,

    /// Deploy the ServiceMonitor in config/prometheus
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    prometheus: Option<bool>,

    /// Deploy the NetworkPolicy in config/network-policy
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    network_policy: Option<bool>,

    /// Source of the webhook serving certificate
    #[arg(long, value_name = "MODE", value_enum)]
    webhook_certs: Option<WebhookCerts>,

    /// Project directory
    #[arg(long, value_name = "DIR", default_value = ".")]
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
    let (root, before) = open(&args.project, ui)?;
    let asked = [args.multigroup, args.namespaced, args.prometheus, args.network_policy];
    if asked.iter().all(Option::is_none) && args.webhook_certs.is_none() {
        return Err(anyhow!("nothing to change")).hint("see `kubewright edit --help`");
    }
    let mut after = before.clone();
    after.multigroup = args.multigroup.unwrap_or(before.multigroup);
    after.namespaced = args.namespaced.unwrap_or(before.namespaced);
    for (name, value) in [("prometheus", args.prometheus), ("networkPolicy", args.network_policy)] {
        if let Some(value) = value {
            after.set(name, value.into());
        }
    }
    if let Some(certs) = args.webhook_certs {
        after.set_webhook_certs(certs);
    }
    add::check_project(&after)?;
    let changed = Changed { before, after, copied: None };
    if !change(&root, &changed, args.how, ui)? {
        return Ok(());
    }
    let Changed { before, after, .. } = &changed;
    if before.multigroup != after.multigroup {
        ui.note("update imports of moved modules (crate::api, crate::controllers) in your own files");
    }
    let webhooks = after.resources.iter().any(|resource| resource.webhooks().is_some());
    // With webhooks, a namespaced operator keeps its ClusterRole, with fewer rules.
    if before.namespaced != after.namespaced && !(after.namespaced && webhooks) {
        ui.note(&old_roles(after));
    }
    if let Some(certs) = args.webhook_certs {
        ui.note(certificates(certs, webhooks));
    }
    Ok(())
}

/// How to provide the webhook serving certificate.
fn certificates(certs: WebhookCerts, webhooks: bool) -> &'static str {
    if !webhooks {
        return "this project has no webhooks yet; add one with `kubewright create webhook`";
    }
    match certs {
        WebhookCerts::SelfSigned => "the manager issues its own certificate; no other component is needed",
        WebhookCerts::CertManager => "cert-manager must be installed before `make deploy`",
        WebhookCerts::Files => {
            "create the Secret webhook-server-cert with tls.crt and tls.key in the operator's namespace, and set its CA \
             as `caBundle` in the webhook configurations and CRDs"
        }
        WebhookCerts::None => "the API server requires TLS for webhooks: terminate it in a proxy",
    }
}

/// How to remove the roles of the previous scope. `make undeploy` would also delete the CRDs and all custom
/// resources.
fn old_roles(project: &ProjectFile) -> String {
    let name = &project.project_name;
    let (role, scope) = if project.namespaced {
        ("clusterrole", String::new())
    } else {
        ("role", format!(" -n {name}-system"))
    };
    format!(
        "on clusters with the operator, run `make deploy`, then delete the old role: `kubectl delete{scope} \
         {role}binding/{name}-manager-rolebinding {role}/{name}-manager-role`"
    )
}
