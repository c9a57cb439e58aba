//! The files of a project that come from its declarations.
//!
//! A [`Plan`] is what should be on disk; [`Plan::against`] says what to do about what is. Nothing here reads or writes:
//! the same declarations give the same bytes, so a second run has nothing to do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::declarations::Declarations;
use crate::lint::Finding;
use crate::{rbac, webhook, yaml};

/// Where definitions are.
pub const DEFINITIONS: &str = "config/crd/bases";
/// Where the operator's roles are.
pub const ROLES: &str = "config/rbac/role.yaml";
/// Where the rights are that leader election needs.
pub const LEADER_ELECTION: &str = "config/rbac/leader_election_role.yaml";
/// Where the rights are to ask who may read metrics.
pub const METRICS_AUTH: &str = "config/rbac/metrics_auth_role.yaml";
/// Where the right to read metrics is.
pub const METRICS_READER: &str = "config/rbac/metrics_reader_role.yaml";
/// Where the permissions are that webhook certificates need.
pub const WEBHOOK_CERTIFICATES: &str = "config/rbac/webhook_certificates_role.yaml";
/// Where webhook configurations are.
pub const WEBHOOKS: &str = "config/webhook/manifests.yaml";
/// All files but definitions.
pub const FIXED: &[&str] =
    &[ROLES, LEADER_ELECTION, METRICS_AUTH, METRICS_READER, WEBHOOK_CERTIFICATES, WEBHOOKS];

/// The text of files, by their path from the root of the project, with `/` between names.
pub type Files = BTreeMap<String, String>;

/// What should be on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    files: Files,
}

/// What to do, so that it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files to write, new or changed.
    pub write: Files,
    /// Paths of files that are as they should be.
    pub unchanged: Vec<String>,
    /// Paths of files that nothing declared produces. They are left alone unless their removal is asked for.
    pub stale: Vec<String>,
}

impl Plan {
    /// Plans the files of an operator. `definitions` are its CustomResourceDefinitions with their file names; `header`
    /// is a text that each file begins with, which becomes comments where it is none.
    pub fn new(declarations: &Declarations, definitions: &[(String, Value)], header: &str) -> Self {
        let mut files = Files::new();
        let mut add = |path: String, documents: &[Value]| {
            if !documents.is_empty() {
                files.insert(path, text(header, documents));
            }
        };
        for (name, definition) in definitions {
            add(format!("{DEFINITIONS}/{name}"), std::slice::from_ref(definition));
        }
        add(ROLES.to_owned(), &rbac::roles(&rbac::rules(declarations)));
        for (path, role) in [
            (LEADER_ELECTION, rbac::leader_election_role(declarations)),
            (METRICS_AUTH, rbac::metrics_auth_role(declarations)),
            (METRICS_READER, rbac::metrics_reader_role(declarations)),
            (WEBHOOK_CERTIFICATES, rbac::webhook_certificates_role(declarations)),
        ] {
            add(path.to_owned(), role.as_slice());
        }
        add(WEBHOOKS.to_owned(), &webhook::configurations(declarations.webhooks()));
        Self { files }
    }

    /// The files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Compares with the files on disk. Only those that could have come from here are looked at: the rest of `disk`
    /// may be there or not.
    pub fn against(&self, disk: &Files) -> Changes {
        let mut changes = Changes::default();
        for (path, text) in &self.files {
            if disk.get(path) == Some(text) {
                changes.unchanged.push(path.clone());
            } else {
                changes.write.insert(path.clone(), text.clone());
            }
        }
        let stale = disk.keys().filter(|path| is_generated(path) && !self.files.contains_key(*path));
        changes.stale = stale.cloned().collect();
        changes
    }
}

impl Changes {
    /// Nothing is to be written, and nothing is left over.
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && self.stale.is_empty()
    }

    /// What is left over, for people.
    pub fn findings(&self, declarations: &Declarations) -> Vec<Finding> {
        let finding = |path: &String| {
            let (message, help) = match path.as_str() {
                ROLES => ("the operator declares no rights", "declare them with `#[rbac]`"),
                WEBHOOKS => ("the operator declares no webhooks", "declare them with `#[webhook]`"),
                LEADER_ELECTION | METRICS_AUTH | METRICS_READER | WEBHOOK_CERTIFICATES => {
                    ("the operator does not need these rights", "leave it to be, if something else does")
                }
                _ => (
                    "no kind of the operator produces this file: it was renamed or removed, or is not in `crds!`, \
                     and the file would still be applied",
                    "add the kind to `crds!`",
                ),
            };
            let help = format!("remove the file, or {help}");
            Finding::warning("KW501", &declarations.whole(), format!("{path}: {message}"), help)
        };
        self.stale.iter().map(finding).collect()
    }
}

fn is_generated(path: &str) -> bool {
    let definition = path.strip_prefix(DEFINITIONS).and_then(|rest| rest.strip_prefix('/'));
    let is_yaml = |name: &str| {
        !name.contains('/') && Path::new(name).extension().is_some_and(|is| is == "yaml" || is == "yml")
    };
    FIXED.contains(&path) || definition.is_some_and(is_yaml)
}

fn text(header: &str, documents: &[Value]) -> String {
    let mut text = String::new();
    for line in header.trim_end().lines() {
        let line = line.trim_end();
        let comment = if line.is_empty() || line.starts_with('#') { "" } else { "# " };
        let _ = writeln!(text, "{comment}{line}");
    }
    text + &yaml::documents(documents)
}

#[cfg(test)]
mod tests;
