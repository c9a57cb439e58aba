//! Which rules apply: all to a new CRD; on update only those that the stored CRD meets.

use std::collections::HashSet;

use serde_json::Value;

use super::super::conditions;
use super::super::schema::Schema;
use super::super::spec::{Spec, Version, root, same};
use super::{columns, conversion, default_values, extensions, openapi, structural};
use crate::Structural;
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::object::Fields as _;

/// The rules from which stored CRDs may be exempt.
pub(super) struct Demands<'a> {
    /// At least one review version must be known.
    pub(super) known_review_version: bool,
    /// Every version must have a schema.
    pub(super) schema: bool,
    /// Types must be valid OpenAPI types.
    pub(super) valid_types: bool,
    /// Schemas must be structural.
    pub(super) structural: bool,
    /// Defaults must not contain unknown fields.
    pub(super) pruned_defaults: bool,
    /// Items of sets must be atomic.
    pub(super) atomic_sets: bool,
    /// Keys of lists of type `map` must be required or have defaults, and items must not be nullable.
    pub(super) map_keys: bool,
    /// The CA bundle must be valid.
    pub(super) ca_bundle: bool,
    /// The versions whose schema did not change: cost limits do not apply to them.
    pub(super) unchanged: HashSet<&'a str>,
    /// The versions that may keep too many selectable fields. The empty name stands for the whole CRD.
    pub(super) many_selectable: HashSet<&'a str>,
}

impl<'a> Demands<'a> {
    pub(super) fn of_new() -> Self {
        Self {
            known_review_version: true,
            schema: true,
            valid_types: true,
            structural: true,
            pruned_defaults: true,
            atomic_sets: true,
            map_keys: true,
            // Not used before creation, and a controller may fill it in later.
            ca_bundle: false,
            unchanged: HashSet::new(),
            many_selectable: HashSet::new(),
        }
    }

    pub(super) fn of_update(new: &Spec<'a>, old_object: &Value, old: &Spec<'_>) -> Self {
        let old_conversion = old.raw.at("conversion");
        Self {
            known_review_version: conversion::knows_version_or_none(old_conversion),
            schema: old.validation.and_then(root).is_some()
                || old.versions.iter().all(|version| version.schema.and_then(root).is_some()),
            valid_types: !old.has_schema(&mut |schema| {
                !schema.kind().is_empty() && !openapi::TYPES.contains(&schema.kind())
            }),
            structural: old.schemas().all(is_structural),
            pruned_defaults: !old
                .schemas()
                .filter(|schema| is_structural(*schema))
                .filter_map(|schema| Structural::parse(schema.0).ok())
                .any(|schema| default_values::has_unknown_fields(&schema)),
            atomic_sets: !old.has_schema(&mut |schema| extensions::non_atomic_set(schema).is_some()),
            map_keys: !old.has_schema(&mut |schema| !extensions::map_keys(schema, &Path::root()).is_empty()),
            ca_bundle: conditions::is_true(old_object, "Established")
                && conversion::ca_bundle_problem(old_conversion.str_at("webhook.clientConfig.caBundle"))
                    .is_none(),
            unchanged: new
                .versions
                .iter()
                .map(Version::name)
                .filter(|name| {
                    let (new, old) = (new.schema_of(name), old.schema_of(name));
                    new.zip(old).is_some_and(|(new, old)| same(new, old))
                })
                .collect(),
            many_selectable: many_selectable(new, old),
        }
    }
}

fn is_structural(schema: Schema<'_>) -> bool {
    structural::unsupported(schema).is_none() && structural::validate(schema, &Path::root()).is_empty()
}

fn many_selectable<'a>(new: &Spec<'a>, old: &Spec<'_>) -> HashSet<&'a str> {
    let kept = |new: &[Value], old: &[Value]| old.len() > columns::MAX_SELECTABLE && new == old;
    let versions = new.versions.iter().filter(|version| {
        old.versions
            .iter()
            .any(|known| known.name() == version.name() && kept(version.selectable, known.selectable))
    });
    let top = kept(new.selectable, old.selectable).then_some("");
    versions.map(Version::name).chain(top).collect()
}
