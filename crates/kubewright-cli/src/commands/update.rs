//! `kubewright update`: merges the scaffold of this version into a project.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

use super::change::{open, read, write};
use super::dependency::KubewrightArgs;
use crate::cli::examples::examples;
use crate::error::Hint as _;
use crate::project::project_file::{self, ProjectFile};
use crate::scaffold::base::{self, Base};
use crate::scaffold::{Outcome, Update, diff, render};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Preview the changes", "kubewright update --dry-run"),
    ("Update the project", "kubewright update"),
    (
        "Depend on git instead of a local checkout",
        "kubewright update --kubewright-git https://github.com/kubewright/kubewright",
    ),
];

/// Update the project to the current scaffold with a three-way merge
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// Print the changes without writing them
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    kubewright: KubewrightArgs,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let (root, mut project) = open(&args.project, ui)?;
    let disk = |path: &str| read(&root, path);
    let base = disk(base::PATH)?.map(|text| Base::read(&text)).transpose()?;
    let version = env!("CARGO_PKG_VERSION");
    project.set_cli_version(version);
    let dependency = args.kubewright.dependency(&root)?;
    let base = if let Some(base) = base {
        base
    } else {
        let base = adopted(&root, &project)?;
        let scaffold = format!("the scaffold of {version}, which later updates merge with");
        if args.dry_run {
            ui.note(&format!("{} is missing; the update would record {scaffold}", base::PATH));
        } else {
            write(&root, &[(base::PATH.to_owned(), Some(base.to_text()))])?;
            ui.note(&format!("{} was missing and now records {scaffold}", base::PATH));
        }
        if dependency.is_none() {
            return Ok(());
        }
        base
    };
    let mut options = base.options();
    if let Some(dependency) = dependency {
        options.dependency = dependency;
    }
    let after = render(&project, &options);
    let mut update = Update::new(&base, &after, base::PATH, disk)?;
    if let Some(record) = after.get(project_file::PATH) {
        let there = disk(project_file::PATH)?;
        if there.as_ref() != Some(&record.text) {
            update.record(project_file::PATH, there, &record.text);
        }
    }
    if update.steps.is_empty() {
        ui.note(&format!("already up to date with kubewright {version}"));
        return Ok(());
    }
    if args.dry_run {
        ui.print(diff(&update.steps).as_bytes())?;
    } else {
        let steps = update.steps.iter().map(|step| (step.path.clone(), step.after.clone()));
        write(&root, &steps.collect::<Vec<_>>())?;
        ui.print(summary(&update).as_bytes())?;
    }
    match update.conflicts() {
        0 if args.dry_run => Ok(()),
        0 => {
            ui.note(&format!(
                "Updated from {} to {version}. Next: run `make manifests test`",
                base.kubewright
            ));
            Ok(())
        }
        marked => {
            let places = if marked == 1 { "1 place".to_owned() } else { format!("{marked} places") };
            Err(anyhow!("merge conflicts: {places} marked with <<<<<<< and >>>>>>>"))
                .hint("resolve the conflicts, then run `make manifests test`")
        }
    }
}

/// The record of a project without one. All differences to the current scaffold are the user's changes.
fn adopted(root: &Path, project: &ProjectFile) -> Result<Base> {
    let rendering = render(project, &Base::adopted(read(root, "Cargo.toml")?).options());
    Ok(Base::of(&rendering, |file| root.join(&file.path).exists()))
}

/// One line per file.
fn summary(update: &Update) -> String {
    let mut text = String::new();
    for (path, outcome) in &update.outcomes {
        let what = match outcome {
            Outcome::Added => "added",
            Outcome::Updated => "updated",
            Outcome::Merged => "merged",
            Outcome::Conflict(_) => "conflict",
            Outcome::Removed => "removed",
            Outcome::LeftOut => "skipped (you removed it):",
            Outcome::Kept => "kept (you changed it):",
        };
        let _ = writeln!(text, "{what} {path}");
    }
    text
}
