//! `kubewright migrate`: rewrites stored custom resources in the storage version.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kubewright_runtime::connect;

use crate::cli::examples::examples;
use crate::control_plane;
use crate::migration::{self, Migration};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Migrate a CRD after its storage version changed", "kubewright migrate orders.shop.example.com"),
    ("List the CRDs that need migration", "kubewright migrate --dry-run"),
    ("Migrate all CRDs of another cluster", "kubewright migrate --all --context staging"),
];

/// Migrate stored custom resources to the storage version
///
/// A CRD lists in status.storedVersions every version that objects may be stored in. A version can be removed
/// from the CRD only when it is not listed. This command rewrites every object without changes, which stores
/// it in the storage version, and then updates status.storedVersions. It can be interrupted and repeated.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Names of CRDs, such as orders.shop.example.com
    #[arg(value_name = "CRD", required_unless_present_any = ["all", "dry_run"])]
    crds: Vec<String>,

    /// Migrate every CRD that lists more than its storage version
    #[arg(long, conflicts_with = "crds")]
    all: bool,

    /// Print what would be migrated
    #[arg(long)]
    dry_run: bool,

    /// Path to the kubeconfig [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let source = connect::Source { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
    control_plane::runtime()?.block_on(async {
        let config = connect::infer(&source).await.context("cannot load the kubeconfig")?;
        let options = connect::Options {
            user_agent: connect::user_agent("kubewright-migrate", env!("CARGO_PKG_VERSION")),
            ..connect::Options::default()
        };
        let client = connect::client(config, options).context("cannot connect to the cluster")?;
        let found = migration::find(&client, &args.crds).await?;
        if found.is_empty() {
            ui.note("nothing to migrate: every CRD lists only its storage version");
        }
        for migration in found {
            let Migration { name, storage, stored } = &migration;
            let from = stored.join(", ");
            if args.dry_run {
                ui.print(format!("{name}: stored versions {from}; storage version {storage}\n").as_bytes())?;
                continue;
            }
            let written =
                migration.run(&client, |count| ui.note(&format!("{name}: {count} objects"))).await?;
            ui.print(format!("{name}: {written} objects migrated to {storage}\n").as_bytes())?;
        }
        Ok(())
    })
}
