//! Several versions of a kind, in one definition.
//!
//! Each version comes with a definition that has it alone. What they say of the kind must be the same; what they say of
//! themselves (served, stored, deprecated) is kept. The order in which they come does not matter.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::declarations::{ConversionDeclared, Declarations};
use crate::declare::{Item, Kind};
use crate::lint::{Finding, Level};
use crate::webhook;

/// A definition of a kind with all of its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// What its file is called: `<group>_<plural>.yaml`, as kubebuilder has it.
    pub file: String,
    /// The CustomResourceDefinition.
    pub definition: Value,
    /// Where its versions were declared.
    pub items: Vec<Item>,
}

/// What became of declared kinds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// By the names of their files.
    pub definitions: Vec<Definition>,
    /// Those of the kinds, and what does not go together.
    pub findings: Vec<Finding>,
}

/// Merges the versions of each kind; they are in the order of their names, as controller-gen has them.
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
        // What the stored version says of the kind is what counts; the others say the same.
        let stored = kinds.iter().position(is_stored).unwrap_or(0);
        let mut definition = kinds.swap_remove(stored).definition;
        definition["spec"]["versions"] = versions;
        merged.definitions.push(Definition { file, definition, items });
    }
    merged
}

/// The CRDs of everything that an operator declares, with the conversions that it registered.
pub fn merge_all(declarations: &Declarations) -> Merged {
    let mut merged = merge(declarations.kinds().cloned().collect());
    for made in &mut merged.definitions {
        let spec = &made.definition["spec"];
        let converts = |it: &ConversionDeclared| {
            spec["group"] == it.group.as_str() && spec["names"]["kind"] == it.kind.as_str()
        };
        if declarations.conversions.iter().any(converts) {
            made.definition["spec"]["conversion"] = webhook::conversion(webhook::DEFAULT_ENDPOINT);
        }
    }
    merged
}

/// What the file of a definition is called: `<group>_<plural>.yaml`.
pub fn file_name(definition: &Value) -> String {
    let text = |pointer| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
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
            format!("no version of {kind} is the one that is stored"),
            "leave out `storage = false` in the `#[kube(...)]` of the version that etcd is to hold",
        ),
        [_, others @ ..] => {
            for other in others {
                find(
                    "KW120",
                    &other.item,
                    format!(
                        "{kind} {} is to be stored, and so is {}: only one version can be",
                        version_name(other),
                        version_name(stored[0])
                    ),
                    "write `storage = false` in the `#[kube(...)]` of every version but the one that etcd is to hold",
                );
            }
        }
    }
    for (one, other) in kinds.iter().zip(&kinds[1..]) {
        if version_name(one) == version_name(other) {
            find(
                "KW121",
                &other.item,
                format!(
                    "{kind} {} is declared twice, the other time by {}",
                    version_name(other),
                    one.item.path
                ),
                "name each version in one `crds!` only, or give one of the types another `version`",
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
                    format!("{kind} {this} and {that} do not agree in {name}, which all versions share"),
                    &format!("write the same `{attribute}` in the `#[kube(...)]` of every version"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
