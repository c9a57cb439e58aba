//! `kubewright delete webhook`: removes webhooks.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use kubewright_runtime::connect;
use serde_json::Value;

use crate::cli::examples::examples;
use crate::commands::change::{How, Which, change, open, read};
use crate::control_plane;
use crate::conversion::{self, Converted};
use crate::error::Hint as _;
use crate::project::project_file::ProjectFile;
use crate::scaffold::webhooks::{self, Removal, WebhookTypes};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Delete all webhooks of a kind", "kubewright delete webhook --group shop --version v1 --kind Order"),
    (
        "Delete only the validating webhook",
        "kubewright delete webhook --group shop --version v1 --kind Order --programmatic-validation",
    ),
    (
        "Remove one version from the conversion",
        "kubewright delete webhook --group shop --version v1 --kind Order --conversion --spoke v2",
    ),
    (
        "Remove the conversion also from the CRD in a cluster",
        "kubewright delete webhook --group shop --version v1 --kind Order --conversion --context staging",
    ),
];

/// Delete the selected webhooks of a kind, or all
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    types: WebhookTypes,

    /// Spoke versions to remove, comma-separated [default: all]
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    spoke: Vec<String>,

    /// Project directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// Kubeconfig of a cluster whose CRD is changed too
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context of that cluster
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    #[command(flatten)]
    how: How,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let (root, project) = open(&args.project, ui)?;
    let [group, version, kind] = args.which.ask(&["delete", "webhook"], ui)?;
    let removal = Removal {
        group,
        version,
        kind,
        types: args.types,
        spoke: args.spoke.iter().map(|spoke| spoke.trim().to_owned()).collect(),
        force: args.how.force,
    };
    let served = served(&root, &project, &removal)?;
    let changed = webhooks::remove(&project, &removal, &served)?;
    let converted = webhooks::converted_crd(&changed, &removal);
    let change = |changed| -> Result<bool> {
        let is_written = change(&root, changed, args.how, ui)?;
        let emptied = webhooks::emptied_configurations(changed);
        if is_written && !emptied.is_empty() {
            ui.note(&emptied_by_hand(&project.project_name, &emptied));
        }
        Ok(is_written)
    };
    let Some(crd) = converted else {
        change(&changed)?;
        return Ok(());
    };
    if args.kubeconfig.is_none() && args.context.is_none() {
        if change(&changed)? {
            ui.note(&by_hand(&crd));
        }
        return Ok(());
    }
    let source = connect::Source { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
    let user_agent = connect::user_agent("kubewright-delete", env!("CARGO_PKG_VERSION"));
    control_plane::runtime()?.block_on(async {
        let config = connect::infer(&source).await.context("cannot load the kubeconfig")?;
        let options = connect::Options { user_agent, ..connect::Options::default() };
        let client = connect::client(config, options).context("cannot connect to the cluster")?;
        let converted = Converted::find(&client, &crd).await?;
        if let Some(converted) = &converted {
            check(converted, &crd, args.how.force)?;
        }
        // The cluster is checked before files are written, and changed after that.
        if change(&changed)?
            && let Some(converted) = converted
        {
            converted.remove(&client).await?;
            ui.note(&format!("the conversion of the CRD {crd} was set to None in the cluster"));
        }
        Ok(())
    })
}

/// Refuses to remove a conversion that the cluster still needs.
fn check(converted: &Converted, crd: &str, force: bool) -> Result<()> {
    converted.check_stored()?;
    if converted.served.len() > 1 && !force {
        let served = converted.served.join(", ");
        return Err(anyhow!(
            "the cluster serves {crd} as {served}; without conversion, fields that differ would be lost"
        ))
        .hint("serve only one version and run `make install` first, or use --force");
    }
    Ok(())
}

/// What the user does in each cluster before the CRD without conversion is applied.
fn by_hand(crd: &str) -> String {
    format!(
        "before `make install` or `make deploy`, in each cluster with this CRD:
  1. check that status.storedVersions has only the storage version:
     kubectl get crd {crd} -o jsonpath='{{.status.storedVersions}}'
     otherwise run: kubewright migrate {crd}
  2. remove the conversion together with the injected CA, which another field manager owns:
     {}
`delete webhook --context NAME` does both",
        conversion::command(crd)
    )
}

/// What the user does in each cluster after the last webhook of a configuration was deleted.
fn emptied_by_hand(project: &str, configurations: &[(&str, &str)]) -> String {
    let commands: Vec<String> = configurations
        .iter()
        .map(|(resource, name)| format!("  kubectl delete {resource} {project}-{name}"))
        .collect();
    format!(
        "in each cluster with this operator, `kubewright deploy` deletes the webhook configuration. After `make deploy`, \
         delete it, or the API server rejects writes because the webhook does not exist:
{}",
        commands.join("\n")
    )
}

/// The versions that the kind's CRD serves. Without a CRD file, all versions of the project.
fn served(root: &Path, project: &ProjectFile, removal: &Removal) -> Result<Vec<String>> {
    let Some((path, versions)) = webhooks::crd_of(project, removal) else { return Ok(Vec::new()) };
    let crd: Option<Value> = read(root, &path)?.and_then(|text| serde_saphyr::from_str(&text).ok());
    let Some(crd) = crd else { return Ok(versions) };
    let in_crd = crd.pointer("/spec/versions").and_then(Value::as_array).cloned().unwrap_or_default();
    let served = in_crd.iter().filter(|version| version["served"] == true);
    Ok(served.filter_map(|version| version["name"].as_str().map(str::to_owned)).collect())
}
