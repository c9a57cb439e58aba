//! The manifests of an operator: what it declares, as files, beside those that are on disk.
//!
//! Making them changes nothing; [`Manifests::write`] writes what changed, all of it or nothing, and never where something
//! is wrong with what the operator declares.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use kubewright_manifests::crd;
use kubewright_manifests::declarations::Declarations;
use kubewright_manifests::files::{self, Changes, Files, Plan};
use kubewright_manifests::lint::{self, Finding, Level};
use serde_json::Value;

use super::{Project, Writes};
use crate::ui::{Ui, escape, style};

/// How manifests are made.
#[derive(Debug, Default)]
pub(crate) struct Options<'a> {
    /// Descriptions in CRDs are cut after so many characters.
    pub(crate) max_description_length: Option<usize>,
    /// A text that each file begins with, as comments.
    pub(crate) header: &'a str,
    /// Whether files that nothing produces any more are removed, and so no finding.
    pub(crate) prune: bool,
}

/// The manifests of an operator, and what was found while they were made.
#[derive(Debug)]
pub(crate) struct Manifests {
    /// CustomResourceDefinitions, each with its file.
    pub(crate) definitions: Vec<(String, Value)>,
    pub(crate) changes: Changes,
    /// What they were made from.
    pub(crate) declarations: Declarations,
    findings: Vec<Finding>,
}

impl Project {
    /// The manifests that what an operator declares asks for.
    pub(crate) fn manifests(&self, declarations: &Declarations, options: &Options<'_>) -> Result<Manifests> {
        let (definitions, mut findings) = definitions(declarations, options.max_description_length);
        let changes = Plan::new(declarations, &definitions, options.header).against(&disk(self.root())?);
        findings.extend(lint::check(declarations, &definitions));
        for (file, source) in self.sources()? {
            // What cargo has compiled can be read; a file that it has not is nobody's.
            findings.extend(crd::dropped_validators(&file, &source).unwrap_or_default());
        }
        if !options.prune {
            findings.extend(changes.findings(declarations));
        }
        lint::sort(&mut findings);
        Ok(Manifests { definitions, changes, declarations: declarations.clone(), findings })
    }
}

impl Manifests {
    /// What was found, as it is shown; empty if nothing was.
    pub(crate) fn findings(&self) -> String {
        self.findings.iter().map(shown).collect()
    }

    /// Shows what was found. It is a failure if there is an error among it.
    pub(crate) fn tell(&self, ui: &Ui) -> Result<()> {
        ui.print_styled_error(&self.findings());
        self.check()
    }

    /// Whether something is wrong with what the operator declares.
    pub(crate) fn check(&self) -> Result<()> {
        let errors = self.findings.iter().filter(|finding| finding.level == Level::Error).count();
        if errors > 0 {
            let what = if errors == 1 { "an error".to_owned() } else { format!("{errors} errors") };
            bail!("{what} in what the operator declares; nothing was written");
        }
        Ok(())
    }

    /// Writes the files that changed. With `prune`, those that nothing produces any more are removed.
    pub(crate) fn write(&self, project: &Project, prune: bool) -> Result<()> {
        self.check()?;
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

/// The definitions of all kinds with their files, and what was found while they were made.
fn definitions(declarations: &Declarations, longest: Option<usize>) -> (Vec<(String, Value)>, Vec<Finding>) {
    let crd::Merged { definitions, findings } = crd::merge_all(declarations);
    let definitions = definitions.into_iter().map(|mut made| {
        if let Some(longest) = longest {
            crd::limit_descriptions(&mut made.definition, longest);
        }
        (made.file, made.definition)
    });
    (definitions.collect(), findings)
}

/// The files that could have come from an earlier run.
fn disk(root: &Path) -> Result<Files> {
    let mut found = Files::new();
    let mut paths: Vec<String> = files::FIXED.iter().map(ToString::to_string).collect();
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
            // What is no text is not ours, and is written over where it stands in our way.
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
    let mut told = format!("{label}{head}{label:#} {rest}\n");
    for line in lines {
        told.extend([&line, "\n"]);
    }
    told
}
