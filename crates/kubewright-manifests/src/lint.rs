//! What is wrong with manifests, before a cluster says so.
//!
//! Owns the findings: each has a code, the place in the operator's sources, the reason and the remedy. What a cluster
//! would refuse is not decided here: the rules of the API server are run over what was generated, and their errors are
//! traced back to what was declared.

mod definitions;
mod rules;
mod server;
mod webhooks;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::declarations::Declarations;
use crate::declare::Item;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth a look; the manifests are written.
    Warning,
    /// A cluster would refuse it, or lose what was meant; nothing is written.
    Error,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `KW` and three digits: docs/lints.md has a section for each.
    pub code: String,
    /// How bad it is.
    pub level: Level,
    /// Where it comes from.
    pub item: Item,
    /// The field within it, as `spec.replicas`; empty for the whole.
    pub field: String,
    /// What is wrong, and why that matters.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl Finding {
    /// Something that a cluster would refuse, or that loses what was meant.
    pub fn error(
        code: impl Into<String>,
        item: &Item,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            level: Level::Error,
            item: item.clone(),
            field: String::new(),
            message: message.into(),
            help: help.into(),
        }
    }

    /// Something that is worth a look.
    pub fn warning(
        code: impl Into<String>,
        item: &Item,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { level: Level::Warning, ..Self::error(code, item, message, help) }
    }

    /// Names the field.
    #[must_use]
    pub fn at(self, field: impl Into<String>) -> Self {
        Self { field: field.into(), ..self }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// As people read it: `error[KW201] src/api/v1.rs:12 guestbook::v1::Guestbook spec.items: ...`, and the remedy below.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.level, self.code)?;
        if !self.item.file.is_empty() {
            write!(f, " {}:{}", self.item.file, self.item.line)?;
        }
        for part in [&self.item.path, &self.field] {
            if !part.is_empty() {
                write!(f, " {part}")?;
            }
        }
        write!(f, ": {}", self.message.trim_end().replace('\n', "\n  "))?;
        if !self.help.is_empty() {
            write!(f, "\n  help: {}", self.help.trim_end().replace('\n', "\n  "))?;
        }
        Ok(())
    }
}

/// Looks at everything that an operator declares, and at the definitions that its kinds were merged into, with their
/// file names. Findings are sorted by place, and none is there twice.
pub fn check(declarations: &Declarations, definitions: &[(String, Value)]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = declarations.kinds().flat_map(|kind| kind.findings.clone()).collect();
    if declarations.declared.is_empty() && declarations.controllers.is_empty() {
        findings.push(nothing_declared(declarations));
    }
    findings.extend(definitions::check(declarations, definitions));
    findings.extend(rules::check(declarations));
    findings.extend(webhooks::check(declarations));
    sort(&mut findings);
    findings
}

/// Brings findings from several places into one order, and drops those that are there twice.
pub fn sort(findings: &mut Vec<Finding>) {
    findings.sort_by(|one, other| {
        let key = |finding: &Finding| {
            (finding.item.clone(), finding.field.clone(), finding.code.clone(), finding.message.clone())
        };
        key(one).cmp(&key(other))
    });
    findings.dedup();
}

/// The worst level of findings.
pub fn worst(findings: &[Finding]) -> Option<Level> {
    findings.iter().map(|finding| finding.level).max()
}

fn nothing_declared(declarations: &Declarations) -> Finding {
    Finding::error(
        "KW502",
        &declarations.whole(),
        "the operator declares nothing: no kind, no right, no webhook and no controller. The linker drops a library \
         that nothing refers to, and its attributes with it",
        "refer to the library from main.rs, as the scaffold does, and register a controller before `manager.run()`",
    )
}

#[cfg(test)]
mod tests;
