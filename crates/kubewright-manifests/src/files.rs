//! The generated files of a project.
//!
//! A [`Plan`] is the desired state of the files; [`Plan::against`] compares it with the disk. This module
//! does no I/O. The same declarations give the same bytes, so a second run changes nothing.

mod kustomization;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::inventory::Inventory;
use crate::lint::Finding;
use crate::{rbac, webhook, yaml};

/// The directory of CRDs.
pub const DEFINITIONS: &str = "config/crd/bases";
/// The file of the operator's roles.
pub const ROLES: &str = "config/rbac/role.yaml";
/// The file of the leader election role.
pub const LEADER_ELECTION: &str = "config/rbac/leader_election_role.yaml";
/// The file of the metrics authorization role.
pub const METRICS_AUTH: &str = "config/rbac/metrics_auth_role.yaml";
/// The file of the metrics reader role.
pub const METRICS_READER: &str = "config/rbac/metrics_reader_role.yaml";
/// The file of the debug page reader role.
pub const DEBUG_PAGE_READER: &str = "config/rbac/debug_page_reader_role.yaml";
/// The file of the webhook certificates role.
pub const WEBHOOK_CERTIFICATES: &str = "config/rbac/webhook_certificates_role.yaml";
/// The file of webhook configurations and APIServices.
pub const WEBHOOKS: &str = "config/webhook/manifests.yaml";
/// The file with the transformers that keep Roles in the namespaces that the code declares.
pub const ROLE_NAMESPACES: &str = "config/default/role_namespaces.yaml";
/// The kustomization that deploys the operator. It lists [`ROLE_NAMESPACES`], and is otherwise not generated.
pub const KUSTOMIZATION: &str = "config/default/kustomization.yaml";
/// All files except CRDs.
pub const FIXED: &[&str] = &[
    ROLES,
    LEADER_ELECTION,
    METRICS_AUTH,
    METRICS_READER,
    DEBUG_PAGE_READER,
    WEBHOOK_CERTIFICATES,
    ROLE_NAMESPACES,
    WEBHOOKS,
];

/// File contents by path relative to the project root, with `/`.
pub type Files = BTreeMap<String, String>;

/// The desired files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    files: Files,
}

/// The difference between a plan and the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New or changed files.
    pub write: Files,
    /// Paths of unchanged files.
    pub unchanged: Vec<String>,
    /// Paths of files that are no longer generated. They are only removed on request.
    pub stale: Vec<String>,
}

impl Plan {
    /// Plans the files of an operator. `definitions` are its CRDs with file names. `header` is the first text
    /// of each file and is converted to comments if needed.
    pub fn new(inventory: &Inventory, crds: &[(String, Value)], header: &str) -> Self {
        let mut files = Files::new();
        let mut add = |path: String, documents: &[Value]| {
            if !documents.is_empty() {
                files.insert(path, text(header, documents));
            }
        };
        for (name, definition) in crds {
            add(format!("{DEFINITIONS}/{name}"), std::slice::from_ref(definition));
        }
        let roles = rbac::Placed::new(rbac::roles(&rbac::rules(inventory)), &inventory.namespaces);
        add(ROLES.to_owned(), &roles.objects);
        add(ROLE_NAMESPACES.to_owned(), &roles.transformers);
        for (path, role) in [
            (LEADER_ELECTION, rbac::leader_election_role(inventory)),
            (METRICS_AUTH, rbac::metrics_auth_role(inventory)),
            (METRICS_READER, rbac::metrics_reader_role(inventory)),
            (DEBUG_PAGE_READER, rbac::debug_page_reader_role(inventory)),
            (WEBHOOK_CERTIFICATES, rbac::webhook_certificates_role(inventory)),
        ] {
            add(path.to_owned(), role.as_slice());
        }
        let mut webhooks = webhook::configurations(inventory.webhooks());
        webhooks.extend(webhook::api_services(&inventory.api_services));
        add(WEBHOOKS.to_owned(), &webhooks);
        Self { files }
    }

    /// The planned files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Compares the plan with the files on disk. Only considers paths that this module could have generated.
    pub fn against(&self, disk: &Files) -> Changes {
        let mut changes = Changes::default();
        for (path, text) in &self.files {
            if disk.get(path) == Some(text) {
                changes.unchanged.push(path.clone());
            } else {
                changes.write.insert(path.clone(), text.clone());
            }
        }
        if let Some(text) = disk.get(KUSTOMIZATION) {
            let wanted = kustomization::with_transformer(text, self.files.contains_key(ROLE_NAMESPACES));
            if wanted != *text {
                changes.write.insert(KUSTOMIZATION.to_owned(), wanted);
            }
        }
        let stale = disk.keys().filter(|path| is_generated(path) && !self.files.contains_key(*path));
        changes.stale = stale.cloned().collect();
        changes
    }
}

impl Changes {
    /// Whether there is nothing to write and nothing stale.
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && self.stale.is_empty()
    }

    /// Findings about stale files.
    pub fn findings(&self, inventory: &Inventory) -> Vec<Finding> {
        let finding = |path: &String| {
            let (message, help) = match path.as_str() {
                ROLES => ("the operator declares no RBAC rules", "declare them with `#[rbac]`"),
                WEBHOOKS => ("the operator declares no webhooks", "declare them with `#[webhook]`"),
                ROLE_NAMESPACES => (
                    "the operator needs no Role in another namespace",
                    "declare one with `#[rbac(namespace = ..)]`",
                ),
                LEADER_ELECTION | METRICS_AUTH | METRICS_READER | DEBUG_PAGE_READER
                | WEBHOOK_CERTIFICATES => {
                    ("the operator does not need these permissions", "keep it if something else needs them")
                }
                _ => (
                    "no kind of the operator produces this file: it was renamed or removed, or is not in `crds!`, \
                     and the file would still be applied",
                    "add the kind to `crds!`",
                ),
            };
            let help = format!("remove the file, or {help}");
            Finding::warning("KW501", &inventory.whole(), format!("{path}: {message}"), help)
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
