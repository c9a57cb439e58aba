//! Validation of `metadata` of built-in kinds: the name rule of each kind, and how often its strategy checks
//! it.
//!
//! The checks are those of [`kubewright_apimachinery::meta`].

use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::meta::{self, Rules};
use serde_json::Value;

use crate::kinds::{self, KindRules};

/// Validates metadata on creation, after the name has been generated.
pub fn create(gvk: Gvk<'_>, namespaced: bool, object: &Value) -> ErrorList {
    meta::create(&rules(kinds::rules(gvk), object), namespaced, object)
}

/// Validates metadata of an object that replaces `old`.
pub fn update(gvk: Gvk<'_>, namespaced: bool, new: &Value, old: &Value) -> ErrorList {
    let rules = rules(kinds::rules(gvk), new);
    meta::update(&rules, rules.update, namespaced, new, old)
}

/// Validates metadata on an update of a subresource.
pub fn update_subresource(
    gvk: Gvk<'_>,
    subresource: &str,
    namespaced: bool,
    new: &Value,
    old: &Value,
) -> ErrorList {
    let kind = kinds::rules(gvk);
    meta::update(&rules(kind, new), (kind.subresource_checks)(subresource), namespaced, new, old)
}

fn rules(kind: &KindRules, object: &Value) -> Rules {
    Rules { name: (kind.name)(object), kube_finalizers: kind.kube_finalizers, update: kind.update_checks }
}

#[cfg(test)]
mod tests;
