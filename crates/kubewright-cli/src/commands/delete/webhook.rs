//! `kubewright delete webhook`: removes webhooks.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use crate::cli::examples::examples;
use crate::commands::change::{How, Which, change, open, read};
use crate::project::project_file::ProjectFile;
use crate::scaffold::webhooks::{self, Removal, Sorts};
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
];

/// Delete the selected webhooks of a kind, or all
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    sorts: Sorts,

    /// Spoke versions to remove, comma-separated [default: all]
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    spoke: Vec<String>,

    /// Project directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,

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
        sorts: args.sorts,
        spoke: args.spoke.iter().map(|spoke| spoke.trim().to_owned()).collect(),
        force: args.how.force,
    };
    let served = served(&root, &project, &removal)?;
    let changed = webhooks::remove(&project, &removal, &served)?;
    change(&root, &changed, args.how, ui)?;
    Ok(())
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
