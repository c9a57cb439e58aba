//! Fields that are lost between versions.
//!
//! Without a conversion webhook, the API server only changes `apiVersion` and drops fields that the storage
//! version does not have. So a field of a served version that the storage version lacks is accepted but not
//! stored.

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use crate::declare::Item;
use crate::lint::Finding;

/// Maximum number of paths in a finding.
const SHOWN: usize = 10;

/// Compares the storage version with all other served versions. `item` returns the type of a version.
pub(super) fn check<'a>(definition: &Value, item: impl Fn(&str) -> &'a Item) -> Vec<Finding> {
    let versions = definition.list_at("spec.versions");
    let converts = !matches!(definition.str_at("spec.conversion.strategy"), "" | "None");
    let Some(stored) = versions.iter().find(|version| version.bool_at("storage")) else { return Vec::new() };
    if converts {
        return Vec::new();
    }
    let (kind, stored_name) = (definition.str_at("spec.names.kind"), stored.str_at("name"));
    let served = versions.iter().filter(|version| version.bool_at("served") && !version.bool_at("storage"));
    served
        .filter_map(|version| {
            let schema = "schema.openAPIV3Schema";
            let mut lost = Vec::new();
            compare(version.at(schema), stored.at(schema), false, "", &mut lost);
            let name = version.str_at("name");
            let shown = lost.iter().take(SHOWN).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
            let more = if lost.len() > SHOWN {
                format!(" and {} more", lost.len() - SHOWN)
            } else {
                String::new()
            };
            (!lost.is_empty()).then(|| {
                Finding::error(
                    "KW215",
                    item(stored_name),
                    format!(
                        "the storage version {kind} {stored_name} lacks {shown}{more} of the served version {name}: without \
                         conversion, these fields of {name} objects are dropped on write"
                    ),
                    format!(
                        "add the fields to {stored_name}; or make {name} the storage version, with `storage = false` in the `#[kube(...)]` \
                         of {stored_name}; or stop serving {name} when no client needs it"
                    ),
                )
            })
        })
        .collect()
}

/// Collects the paths of `served` that `stored` lacks. Of a missing subtree, only its root.
///
/// `in_open_list` is whether `stored` is the item of a list that preserves unknown fields: then the item does, too. In
/// every other place, the fields that a preserving schema specifies are pruned like all others.
fn compare(served: &Value, stored: &Value, in_open_list: bool, path: &str, lost: &mut Vec<String>) {
    let keeps_unknown = in_open_list || preserves(stored);
    if preserves(served) && !keeps_unknown {
        lost.push(join(path, "*"));
    }
    for (name, property) in served.map_at("properties") {
        // apiVersion, kind and metadata are the same in all versions.
        if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let path = join(path, name);
        match stored.map_at("properties").get(name) {
            Some(stored) => compare(property, stored, false, &path, lost),
            // All names are kept; check the value schema.
            None if stored.has("additionalProperties") => {
                compare(property, stored.at("additionalProperties"), false, &path, lost);
            }
            None if keeps_unknown => {}
            None => lost.push(path),
        }
    }
    let (items, of_stored) = (served.at("items"), stored.at("items"));
    if items.is_object() && of_stored.is_object() {
        compare(items, of_stored, keeps_unknown, &format!("{path}[]"), lost);
    }
    let values = served.at("additionalProperties");
    if values.is_object() {
        let path = format!("{path}[*]");
        if stored.has("additionalProperties") {
            compare(values, stored.at("additionalProperties"), false, &path, lost);
        } else if !keeps_unknown {
            lost.push(path);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn preserves(schema: &Value) -> bool {
    schema.bool_at("x-kubernetes-preserve-unknown-fields")
}
