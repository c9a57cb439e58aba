//! `kubewright create webhook`: adds defaulting, validating and conversion webhooks.

use std::path::PathBuf;

use anyhow::Result;

use crate::cli::examples::examples;
use crate::commands::change::{How, Which, change, open};
use crate::commands::kubebuilder;
use crate::scaffold::add::External;
use crate::scaffold::webhooks::{self, Request, WebhookTypes};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    (
        "Add a defaulting and a validating webhook",
        "kubewright create webhook --group shop --version v1 --kind Order --defaulting --programmatic-validation",
    ),
    (
        "Add conversion between v1 (hub) and v2",
        "kubewright create webhook --group shop --version v1 --kind Order --conversion --spoke v2",
    ),
    (
        "Validate a built-in kind",
        "kubewright create webhook --group apps --version v1 --kind Deployment --programmatic-validation",
    ),
    (
        "Set a custom path",
        "kubewright create webhook --group shop --version v1 --kind Order --defaulting --defaulting-path /default-order",
    ),
    (
        "Preview the changes",
        "kubewright create webhook --group shop --version v1 --kind Order --defaulting --dry-run",
    ),
];

/// Scaffold webhooks: at least one of --defaulting, --programmatic-validation and --conversion
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    types: WebhookTypes,

    /// Spoke versions of the conversion, comma-separated
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    spoke: Vec<String>,

    /// Path of the defaulting webhook [default: /mutate-GROUP-VERSION-KIND]
    #[arg(long, value_name = "PATH")]
    defaulting_path: Option<String>,

    /// Path of the validating webhook [default: /validate-GROUP-VERSION-KIND]
    #[arg(long, value_name = "PATH")]
    validation_path: Option<String>,

    /// Plural resource name of an external kind [default: derived from the kind]
    #[arg(long, value_name = "NAME")]
    plural: Option<String>,

    /// Rust module of an external type, defined in another crate
    #[arg(long, value_name = "PATH", requires = "external_api_domain")]
    external_api_path: Option<String>,

    /// Domain of the external type's API group
    #[arg(long, value_name = "DOMAIN", requires = "external_api_path")]
    external_api_domain: Option<String>,

    /// Crate that defines the external type
    #[arg(long, value_name = "NAME@VERSION", requires = "external_api_path")]
    external_api_module: Option<String>,

    /// Project directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,

    #[command(flatten)]
    kubebuilder: kubebuilder::Webhook,

    #[command(flatten)]
    how: How,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<()> {
    args.kubebuilder.note(ui);
    let (root, project) = open(&args.project, ui)?;
    let [group, version, kind] = args.which.ask(&["create", "webhook"], ui)?;
    let external = args.external_api_path.as_ref().map(|path| External {
        path: path.clone(),
        domain: args.external_api_domain.clone().unwrap_or_default(),
        module: args.external_api_module.clone().unwrap_or_default(),
    });
    let request = Request {
        group,
        version,
        kind,
        plural: args.plural.clone(),
        types: args.types,
        spoke: args.spoke.iter().map(|spoke| spoke.trim().to_owned()).collect(),
        defaulting_path: args.defaulting_path.clone(),
        validation_path: args.validation_path.clone(),
        external,
        force: args.how.force,
    };
    let changed = webhooks::add(&project, &request)?;
    if changed.before == changed.after {
        ui.note(&format!("{} already has these webhooks; use --force to recreate their files", request.kind));
        return Ok(());
    }
    if !change(&root, &changed, args.how, ui)? {
        return Ok(());
    }
    if let Some(stored) = webhooks::stored_elsewhere(&changed.after, &request) {
        ui.note(&format!(
            "the hub is {}, but the storage version is {stored}: using the storage version as hub needs fewer conversions",
            request.version
        ));
    }
    ui.note("Next: edit the handlers and the fixtures, then run `make manifests test`");
    Ok(())
}
