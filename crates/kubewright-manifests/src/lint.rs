//! Lints manifests before they reach a cluster.
//!
//! Each finding has a code, a source location, a reason and a fix. Runs the API server's validation on the
//! generated objects and maps errors to the declarations.

mod crds;
mod rules;
mod server;
mod webhooks;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::declare::Item;
use crate::inventory::Inventory;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A warning. The manifests are written.
    Warning,
    /// A cluster would reject the object or drop parts of it. Nothing is written.
    Error,
}

/// A problem with a declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `KW` and three digits. docs/lints.md documents each code.
    pub code: String,
    /// The severity.
    pub level: Level,
    /// The source location.
    pub item: Item,
    /// The field, such as `spec.replicas`; empty for the whole item.
    pub field: String,
    /// The problem and its effect.
    pub message: String,
    /// The fix.
    pub help: String,
}

impl Finding {
    /// Creates an error.
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

    /// Creates a warning.
    pub fn warning(
        code: impl Into<String>,
        item: &Item,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { level: Level::Warning, ..Self::error(code, item, message, help) }
    }

    /// Sets the field.
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

/// For example `error[KW201] src/api/v1.rs:12 guestbook::v1::Guestbook spec.items: ...`, with the fix below.
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

/// The code of the finding about an operator that declares nothing.
pub const NOTHING_DECLARED: &str = "KW502";

/// Checks all declarations of an operator and its merged CRDs with file names. Findings are sorted by
/// location and unique.
pub fn check(inventory: &Inventory, crds: &[(String, Value)]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = inventory.kinds().flat_map(|kind| kind.findings.clone()).collect();
    if inventory.declared.is_empty() && inventory.controllers.is_empty() {
        findings.push(nothing_declared(inventory));
    }
    findings.extend(crds::check(inventory, crds));
    findings.extend(rules::check(inventory));
    findings.extend(webhooks::check(inventory));
    sort(&mut findings);
    findings
}

/// Sorts findings and removes duplicates.
pub fn sort(findings: &mut Vec<Finding>) {
    findings.sort_by(|one, other| {
        let key = |finding: &Finding| {
            (finding.item.clone(), finding.field.clone(), finding.code.clone(), finding.message.clone())
        };
        key(one).cmp(&key(other))
    });
    findings.dedup();
}

/// The highest severity.
pub fn worst(findings: &[Finding]) -> Option<Level> {
    findings.iter().map(|finding| finding.level).max()
}

fn nothing_declared(inventory: &Inventory) -> Finding {
    Finding::error(
        NOTHING_DECLARED,
        &inventory.whole(),
        "the operator declares nothing: no kind, RBAC rule, webhook or controller. The linker drops a library \
         that is never referenced, including its attributes",
        "reference the library in main.rs, as in the scaffold, and register a controller before `manager.run()`",
    )
}

#[cfg(test)]
mod tests;
