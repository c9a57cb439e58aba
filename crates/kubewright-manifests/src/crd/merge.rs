//! Merges the versions of a kind into one CRD.
//!
//! The input is one CRD per version. Common properties must be equal; properties of a version (served,
//! storage, deprecated) are kept. The result does not depend on the input order.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::declare::{Item, Kind};
use crate::inventory::{ConversionDeclared, Inventory};
use crate::lint::{Finding, Level};
use crate::webhook;

/// A CRD with all versions of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CrdFile {
    /// The file name `<group>_<plural>.yaml`, as in kubebuilder.
    pub file: String,
    /// The CustomResourceDefinition.
    pub crd: Value,
    /// The source locations of its versions.
    pub items: Vec<Item>,
}

/// The result of [`merge`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// Sorted by file name.
    pub crds: Vec<CrdFile>,
    /// Findings of the kinds, and conflicts between versions.
    pub findings: Vec<Finding>,
}

/// Merges the versions of each kind. Versions are sorted by name, as by controller-gen.
pub fn merge(kinds: Vec<Kind>) -> Merged {
    let mut merged = Merged::default();
    let mut named: BTreeMap<String, Vec<Kind>> = BTreeMap::new();
    for kind in kinds {
        merged.findings.extend(kind.findings.iter().cloned());
        named.entry(file_name(&kind.definition)).or_default().push(kind);
    }
    for (file, mut kinds) in named {
        kinds.sort_by(|one, other| {
            version_name(one).cmp(version_name(other)).then_with(|| one.item.cmp(&other.item))
        });
        check(&kinds, &mut merged.findings);
        let versions = kinds.iter().filter_map(|kind| version(kind).cloned()).collect();
        let items = kinds.iter().map(|kind| kind.item.clone()).collect();
        // Common properties are taken from the storage version; the others have the same.
        let stored = kinds.iter().position(is_stored).unwrap_or(0);
        let mut crd = kinds.swap_remove(stored).definition;
        crd["spec"]["versions"] = versions;
        merged.crds.push(CrdFile { file, crd, items });
    }
    merged
}

/// The CRDs of everything that an operator declares, with the conversions that it registered.
pub fn merge_all(inventory: &Inventory) -> Merged {
    let mut merged = merge(inventory.kinds().cloned().collect());
    for made in &mut merged.crds {
        let spec = &made.crd["spec"];
        let converts = |it: &ConversionDeclared| {
            spec["group"] == it.group.as_str() && spec["names"]["kind"] == it.kind.as_str()
        };
        if inventory.conversions.iter().any(converts) {
            made.crd["spec"]["conversion"] = webhook::conversion(webhook::DEFAULT_ENDPOINT);
        }
    }
    merged
}

/// The file name of a CRD: `<group>_<plural>.yaml`.
pub fn file_name(crd: &Value) -> String {
    let text = |pointer| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}_{}.yaml", text("/spec/group"), text("/spec/names/plural"))
}

fn version(kind: &Kind) -> Option<&Value> {
    kind.definition.pointer("/spec/versions/0")
}

fn version_name(kind: &Kind) -> &str {
    version(kind).and_then(|version| version["name"].as_str()).unwrap_or_default()
}

fn is_stored(kind: &Kind) -> bool {
    version(kind).is_some_and(|version| version["storage"] == true)
}

fn check(kinds: &[Kind], findings: &mut Vec<Finding>) {
    let Some(first) = kinds.first() else { return };
    let kind = first.definition.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default();
    let mut find = |code: &str, item: &Item, message: String, help: &str| {
        findings.push(Finding {
            code: code.to_owned(),
            level: Level::Error,
            item: item.clone(),
            field: String::new(),
            message,
            help: help.to_owned(),
        });
    };
    let stored: Vec<&Kind> = kinds.iter().filter(|kind| is_stored(kind)).collect();
    match stored.as_slice() {
        [_] => {}
        [] => find(
            "KW120",
            &first.item,
            format!("{kind} has no storage version"),
            "remove `storage = false` from the `#[kube(...)]` of the storage version",
        ),
        [_, others @ ..] => {
            for other in others {
                find(
                    "KW120",
                    &other.item,
                    format!(
                        "both {kind} {} and {} are storage versions, but only one version can be",
                        version_name(other),
                        version_name(stored[0])
                    ),
                    "write `storage = false` in the `#[kube(...)]` of every other version",
                );
            }
        }
    }
    for (one, other) in kinds.iter().zip(&kinds[1..]) {
        if version_name(one) == version_name(other) {
            find(
                "KW121",
                &other.item,
                format!("{kind} {} is declared twice, also by {}", version_name(other), one.item.path),
                "list each version in `crds!` once, or change the `version` of one of the types",
            );
        }
        for (what, attribute) in [
            ("/spec/scope", "namespaced"),
            ("/spec/names/kind", "kind"),
            ("/spec/names/singular", "singular"),
            ("/spec/names/shortNames", "shortname"),
            ("/spec/names/categories", "category"),
            ("/metadata/labels", "label"),
            ("/metadata/annotations", "annotation"),
        ] {
            if one.definition.pointer(what) != other.definition.pointer(what) {
                let name = what.rsplit('/').next().unwrap_or_default();
                let (this, that) = (version_name(one), version_name(other));
                find(
                    "KW122",
                    &other.item,
                    format!(
                        "{kind} {this} and {that} have different {name}, which must be the same in all versions"
                    ),
                    &format!("write the same `{attribute}` in the `#[kube(...)]` of every version"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
