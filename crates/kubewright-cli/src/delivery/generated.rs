//! Trees of generated files that users may edit, such as the Helm chart.
//!
//! A tree is merged as the scaffold is: its last rendering is recorded in .kubewright/, and a new rendering is
//! merged with the user's changes. Conflicts are marked as in git.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, anyhow};

use crate::error::Hint as _;
use crate::project::{Project, read, write};
use crate::scaffold::base::{self, Base};
use crate::scaffold::{Outcome, Rendering, Step, Update, diff};
use crate::ui::Ui;

/// What to do with a tree.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct How {
    /// Fail if the files are out of date, without writing them
    #[arg(long, conflicts_with_all = ["dry_run", "force"])]
    pub(crate) check: bool,

    /// Print the changes without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Discard your changes, and restore files that you removed
    #[arg(long)]
    pub(crate) force: bool,
}

/// A tree of generated files.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The command that generates it, for messages.
    pub(crate) command: &'static str,
    /// Path of the record.
    pub(crate) record: &'static str,
    pub(crate) files: Rendering,
}

impl Tree {
    /// Checks, prints or writes the changes.
    pub(crate) fn carry_out(&self, project: &Project, how: How, ui: &Ui) -> Result<()> {
        let disk = |path: &str| read(project.root(), path);
        let base = disk(self.record)?.map(|text| Base::read_from(self.record, &text)).transpose()?;
        let base = base.unwrap_or_else(|| Base { kubewright: String::new(), files: BTreeMap::new() });
        let update = if how.force {
            self.replaced(&base, disk)?
        } else {
            Update::new(&base, &self.files, self.record, disk)?
        };
        let changed = update.steps.iter().any(|step| !base::is_record(&step.path));
        if how.check {
            return self.check(&update, changed || self.is_unrecorded(&base, &update), ui);
        }
        if how.dry_run {
            return ui.print(diff(&update.steps).as_bytes());
        }
        let steps: Vec<_> = update.steps.iter().map(|step| (step.path.clone(), step.after.clone())).collect();
        write(project.root(), &steps)?;
        self.report(&update, ui)
    }

    /// Replaces all files by the new rendering.
    fn replaced(&self, base: &Base, disk: impl Fn(&str) -> Result<Option<String>>) -> Result<Update> {
        let mut update = Update::default();
        for file in self.files.values() {
            let there = disk(&file.path)?;
            if there.as_ref() != Some(&file.text) {
                update.steps.push(Step {
                    path: file.path.clone(),
                    before: there,
                    after: Some(file.text.clone()),
                });
                update.outcomes.push((file.path.clone(), Outcome::Updated));
            }
        }
        for old in base.files.iter().filter(|(id, _)| !self.files.contains_key(*id)).map(|(_, old)| old) {
            if let Some(there) = disk(&old.path)? {
                update.steps.push(Step { path: old.path.clone(), before: Some(there), after: None });
                update.outcomes.push((old.path.clone(), Outcome::Removed));
            }
        }
        let (record, there) = (Base::of(&self.files, |_| true).to_text(), disk(self.record)?);
        if there.as_ref() != Some(&record) {
            update.record(self.record, there, &record);
        }
        Ok(update)
    }

    /// Whether the record differs in more than the version of kubewright.
    fn is_unrecorded(&self, base: &Base, update: &Update) -> bool {
        let record = update.steps.iter().find(|step| base::is_record(&step.path));
        let record = record.and_then(|step| step.after.as_deref());
        let recorded = record.and_then(|text| Base::read_from(self.record, text).ok());
        recorded.is_some_and(|recorded| recorded.files != base.files)
    }

    fn check(&self, update: &Update, stale: bool, ui: &Ui) -> Result<()> {
        if !stale {
            ui.note(&format!("{} files up to date", self.files.len()));
            return Ok(());
        }
        ui.print(diff(&update.steps).as_bytes())?;
        let paths: Vec<&str> = update.steps.iter().map(|step| step.path.as_str()).collect();
        Err(anyhow!("out of date: {}", paths.join(", ")))
            .hint(format!("run `kubewright {}` and commit the result", self.command))
    }

    /// One line per file. Fails if there are conflicts.
    fn report(&self, update: &Update, ui: &Ui) -> Result<()> {
        let mut text = String::new();
        let mut kept = false;
        for (path, outcome) in &update.outcomes {
            let what = match outcome {
                Outcome::Added | Outcome::Updated => "wrote",
                Outcome::Merged => "merged",
                Outcome::Conflict(_) => "conflict",
                Outcome::Removed => "removed",
                Outcome::LeftOut => "skipped (you removed it):",
                Outcome::Kept => {
                    kept = true;
                    "kept (you changed it):"
                }
            };
            let _ = writeln!(text, "{what} {path}");
        }
        ui.print(text.as_bytes())?;
        if text.is_empty() {
            ui.note(&format!("{} files unchanged", self.files.len()));
        }
        if kept {
            ui.note(&format!(
                "files that kubewright did not write are kept; `kubewright {} --force` replaces them",
                self.command
            ));
        }
        match update.conflicts() {
            0 => Ok(()),
            marked => {
                let places = if marked == 1 { "1 place".to_owned() } else { format!("{marked} places") };
                Err(anyhow!("merge conflicts: {places} marked with <<<<<<< and >>>>>>>"))
                    .hint(format!("resolve the conflicts, then run `kubewright {}` again", self.command))
            }
        }
    }
}
