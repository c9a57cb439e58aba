//! Warnings that workloads share.

use serde_json::Value;

use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Warnings about the name of a new workload, followed by those about a changed spec.
pub(crate) fn warnings(
    new: &Value,
    old: Option<&Value>,
    of_spec: impl FnOnce() -> Vec<String>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(name(new.str_at("metadata.name")));
    }
    warnings.extend(changed_spec(new, old, of_spec));
    warnings
}

/// Warnings about the spec. An unchanged spec causes no new warnings.
pub(crate) fn changed_spec(
    new: &Value,
    old: Option<&Value>,
    of_spec: impl FnOnce() -> Vec<String>,
) -> Vec<String> {
    let changed = old.is_none_or(|old| new.at("metadata.generation") != old.at("metadata.generation"));
    if changed { of_spec() } else { Vec::new() }
}

fn name(name: &str) -> Option<String> {
    let messages = names::dns1123_label(name);
    (!messages.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
             label is recommended: [{}]",
            messages.join(" ")
        )
    })
}
