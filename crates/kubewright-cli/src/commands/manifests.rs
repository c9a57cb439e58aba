//! `kubewright manifests`: generates files under config/ from a compiled operator.
//!
//! It builds the operator, runs its binary to get the inventory, and passes that to kubewright-manifests.
//! Nothing is written if there is an error, and only changed files are written.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kubewright_manifests::files::Changes;

use crate::cli::examples::examples;
use crate::error::Hint as _;
use crate::project::{Manifests, Project, manifests};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Generate the manifests", "kubewright manifests"),
    ("Fail in CI if the manifests are out of date", "kubewright manifests --check"),
    ("Preview the changes with a cargo feature enabled", "kubewright manifests --dry-run -- --features beta"),
];

/// Generate CRDs, RBAC rules and webhook configurations
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// Fail if the files are out of date, without writing them
    #[arg(long, conflicts_with_all = ["dry_run", "prune"])]
    check: bool,

    /// Print the changes without writing them
    #[arg(long)]
    dry_run: bool,

    /// Remove generated files that are no longer produced
    #[arg(long)]
    prune: bool,

    /// Operator binary, if the package has several
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,

    /// Truncate CRD descriptions to this many characters; 0 omits them
    #[arg(long, value_name = "N")]
    max_description_length: Option<usize>,

    /// File with a comment header for each manifest
    #[arg(long, value_name = "FILE")]
    header_file: Option<PathBuf>,

    /// Arguments for cargo, after `--`
    #[arg(value_name = "CARGO_ARGS", last = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let project = Project::find(&args.project)?;
    let header = match &args.header_file {
        Some(file) => {
            fs::read_to_string(file).with_context(|| format!("cannot read the header {}", file.display()))?
        }
        None => String::new(),
    };
    let inventory = project.inventory(args.bin.as_deref(), &args.cargo, ui)?;
    let options = manifests::Options {
        max_description_length: args.max_description_length,
        header: &header,
        prune: args.prune,
    };
    let manifests = project.manifests(&inventory, &options)?;
    manifests.print_findings(ui)?;
    if args.check {
        return check(&project, &manifests.changes, ui);
    }
    if args.dry_run {
        return ui.print_styled(&diff(&project, &manifests.changes, args.prune)?);
    }
    write(&project, &manifests, args.prune, ui)
}

fn check(project: &Project, changes: &Changes, ui: &Ui) -> Result<()> {
    if changes.is_empty() {
        ui.note(&format!("{} up to date", count(changes.unchanged.len())));
        return Ok(());
    }
    ui.print_styled(&diff(project, changes, true)?)?;
    let stale = changes.stale.iter().map(String::as_str);
    let paths: Vec<&str> = changes.write.keys().map(String::as_str).chain(stale).collect();
    Err(anyhow::anyhow!("out of date: {}", paths.join(", ")))
        .hint("run `kubewright manifests` (with --prune to remove stale files) and commit the result")
}

/// The changes as a unified diff.
fn diff(project: &Project, changes: &Changes, prune: bool) -> Result<String> {
    let mut text = String::new();
    let removed = changes.stale.iter().filter(|_| prune).map(|path| (path, ""));
    let written = changes.write.iter().map(|(path, new)| (path, new.as_str()));
    for (path, new) in written.chain(removed) {
        let old = match fs::read(project.root().join(path)) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        };
        let before = if old.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
        let after = if new.is_empty() { "/dev/null".to_owned() } else { format!("b/{path}") };
        let lines = similar::TextDiff::from_lines(old.as_deref().unwrap_or_default(), new);
        let _ = write!(text, "{}", lines.unified_diff().header(&before, &after));
    }
    Ok(text)
}

fn write(project: &Project, manifests: &Manifests, prune: bool, ui: &Ui) -> Result<()> {
    manifests.write(project, prune)?;
    let changes = &manifests.changes;
    let stale: &[String] = if prune { &changes.stale } else { &[] };
    let mut lines = String::new();
    for path in changes.write.keys() {
        let _ = writeln!(lines, "wrote {path}");
    }
    for path in stale {
        let _ = writeln!(lines, "removed {path}");
    }
    ui.print(lines.as_bytes())?;
    if lines.is_empty() {
        ui.note(&format!("{} unchanged", count(changes.unchanged.len())));
    }
    Ok(())
}

fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}
