//! The generated manifests of an operator, compared with the files on disk.
//!
//! Generating changes nothing. [`Manifests::write`] writes the changed files, all or none, and only if there
//! are no errors.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use kubewright_manifests::crd;
use kubewright_manifests::files::{self, Changes, Files, Plan};
use kubewright_manifests::inventory::Inventory;
use kubewright_manifests::lint::{self, Finding, Level};
use serde_json::Value;

use super::{LockedRoot, Project, Writes};
use crate::ui::{Ui, escape, style};

/// Generation options.
#[derive(Debug, Default)]
pub(crate) struct Options<'a> {
    /// Truncate CRD descriptions to this length.
    pub(crate) max_description_length: Option<usize>,
    /// Comment header of each file.
    pub(crate) header: &'a str,
    /// Whether stale files are removed instead of reported.
    pub(crate) prune: bool,
}

/// The manifests of an operator, with findings.
#[derive(Debug)]
pub(crate) struct Manifests {
    /// CustomResourceDefinitions, each with its file.
    pub(crate) crds: Vec<(String, Value)>,
    pub(crate) changes: Changes,
    /// The roles on disk before the change; empty if there were none.
    pub(crate) previous_roles: String,
    /// The inventory that they were generated from.
    pub(crate) inventory: Inventory,
    findings: Vec<Finding>,
}

impl Project {
    /// Generates the manifests for an inventory.
    pub(crate) fn manifests(&self, inventory: &Inventory, options: &Options<'_>) -> Result<Manifests> {
        let (crds, mut findings) = crds(inventory, options.max_description_length);
        let mut disk = disk(self.root())?;
        let changes = Plan::new(inventory, &crds, options.header).against(&disk);
        let previous_roles = disk.remove(files::ROLES).unwrap_or_default();
        findings.extend(lint::check(inventory, &crds));
        if self.is_empty() {
            findings.retain(|finding| finding.code != lint::NOTHING_DECLARED);
        }
        for (file, source) in self.sources()? {
            // Compiled sources parse; files that do not parse are not part of the build.
            findings.extend(crd::dropped_validators(&file, &source).unwrap_or_default());
        }
        if !options.prune {
            findings.extend(changes.findings(inventory));
        }
        lint::sort(&mut findings);
        Ok(Manifests { crds, changes, previous_roles, inventory: inventory.clone(), findings })
    }
}

impl Manifests {
    /// The findings as text; empty if there are none.
    pub(crate) fn findings(&self) -> String {
        self.findings.iter().map(shown).collect()
    }

    /// Prints the findings. Fails if one is an error.
    pub(crate) fn print_findings(&self, ui: &Ui) -> Result<()> {
        ui.print_styled_error(&self.findings());
        self.check()
    }

    /// Fails if a finding is an error.
    pub(crate) fn check(&self) -> Result<()> {
        let errors = self.findings.iter().filter(|finding| finding.level == Level::Error).count();
        if errors > 0 {
            let what = if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") };
            bail!("{what} in the operator's inventory; nothing was written");
        }
        Ok(())
    }

    /// Writes the changed files. With `prune`, removes stale ones.
    pub(crate) fn write(&self, project: &Project, prune: bool) -> Result<()> {
        self.check()?;
        // A command that gets the lock removes staged files.
        let _lock = LockedRoot::lock_quietly(project.root())?;
        let mut writes = Writes::new(project.root());
        for (path, text) in &self.changes.write {
            writes.write(path, text)?;
        }
        for path in self.changes.stale.iter().filter(|_| prune) {
            writes.remove(path);
        }
        writes.commit()
    }
}

/// The CRDs with their files, and the findings.
fn crds(inventory: &Inventory, longest: Option<usize>) -> (Vec<(String, Value)>, Vec<Finding>) {
    let crd::Merged { crds, findings } = crd::merge_all(inventory);
    let crds = crds.into_iter().map(|mut made| {
        if let Some(longest) = longest {
            crd::limit_descriptions(&mut made.crd, longest);
        }
        (made.file, made.crd)
    });
    (crds.collect(), findings)
}

/// The files on disk that may come from an earlier run.
fn disk(root: &Path) -> Result<Files> {
    let mut found = Files::new();
    let fixed = files::FIXED.iter().chain([&files::KUSTOMIZATION]);
    let mut paths: Vec<String> = fixed.map(ToString::to_string).collect();
    match fs::read_dir(root.join(files::DEFINITIONS)) {
        Ok(entries) => {
            for entry in entries {
                let entry = entry.with_context(|| format!("cannot read {}", files::DEFINITIONS))?;
                if let Some(name) = entry.file_name().to_str() {
                    paths.push(format!("{}/{name}", files::DEFINITIONS));
                }
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", files::DEFINITIONS)),
    }
    for path in paths {
        match fs::read_to_string(root.join(&path)) {
            Ok(text) => {
                found.insert(path, text);
            }
            // Binary files are not ours, and are overwritten.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        }
    }
    Ok(found)
}

fn shown(finding: &Finding) -> String {
    let label = match finding.level {
        Level::Error => style::ERROR,
        Level::Warning => style::CAUSE,
    };
    let text = finding.to_string();
    let mut lines = text.lines().map(escape);
    let first = lines.next().unwrap_or_default();
    let (head, rest) = first.split_once(' ').unwrap_or((&first, ""));
    let mut text = format!("{label}{head}{label:#} {rest}\n");
    for line in lines {
        text.extend([&line, "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::ColorChoice;

    use super::*;
    use crate::ui::Verbosity;

    /// A locked project has no staged files of another command.
    #[test]
    fn manifests_are_written_while_other_commands_lock_the_project() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        let project = Project::find(folder.path()).unwrap();
        let ui = Ui::new(ColorChoice::Never, Verbosity::Quiet);
        let files = |number: usize| {
            let names = (0..20).map(|file| (format!("config/{file}.yaml"), number.to_string()));
            Changes { write: names.collect(), ..Changes::default() }
        };
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for number in 0..100 {
                    let manifests = Manifests {
                        crds: Vec::new(),
                        changes: files(number),
                        previous_roles: String::new(),
                        inventory: Inventory::new("operator"),
                        findings: Vec::new(),
                    };
                    manifests.write(&project, false).unwrap();
                }
            });
            while !writer.is_finished() {
                drop(LockedRoot::lock(project.root(), &ui).unwrap());
            }
        });
        assert_eq!(fs::read_to_string(folder.path().join("config/7.yaml")).unwrap(), "99");
    }
}
