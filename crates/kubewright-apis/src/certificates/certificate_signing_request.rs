//! CertificateSigningRequest.

mod strategy;
mod table;
mod validation;

use serde_json::{Value, json};

use crate::kinds::KindRules;
use crate::registry::{RegistryRules, Stamp};
use crate::reset_fields::ResetFields;
use crate::selectable::{Refusal, Selectable, texts};
use crate::strategy::keep;
use kubewright_apimachinery::meta::Check::{New, Update};
use kubewright_apimachinery::meta::NameRule;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    group: "certificates.k8s.io",
    kind: "CertificateSigningRequest",
    prepare_create: strategy::prepare_create,
    prepare_update: |new, old| {
        keep(new, old, "spec");
        keep(new, old, "status");
    },
    prepare_subresource: |subresource, new, old| match subresource {
        "approval" => strategy::prepare_approval(new, old),
        "status" => {
            keep(new, old, "spec");
            strategy::prepare_status(new, old);
        }
        _ => {}
    },
    name: |_| NameRule::Any,
    kube_finalizers: true,
    update_checks: &[New, Update],
    subresource_checks: |_| &[New, Update],
    validate: validation::create,
    validate_update: |new, old| validation::update("", new, old),
    validate_subresource: validation::update,
    reset_fields: |subresource| {
        Some(ResetFields::These(match subresource {
            "" => &[&["spec"], &["status"]],
            "status" => &[&["spec"], &["status", "conditions"]],
            "approval" => &[&["spec"], &["status", "certificate"]],
            _ => return None,
        }))
    },
    selectable: Some(&Selectable {
        fields: texts!("metadata.name", "spec.signerName"),
        refusal: Refusal::Plain,
    }),
    cells: table::cells,
    registry: RegistryRules { stamp, ..RegistryRules::DEFAULT },
    ..KindRules::DEFAULT
};

/// Sets the requesting user of a new object, and the missing times of conditions.
fn stamp(new: &mut Value, old: Option<&Value>, write: &Stamp<'_>) {
    if old.is_none() {
        let user = write.user;
        new.set_at("spec.username", user.name);
        new.set_at("spec.uid", user.uid);
        new.set_at("spec.groups", user.groups.to_vec());
        if user.extra.is_empty() {
            new.remove_at("spec.extra");
        } else {
            new.set_at("spec.extra", json!(user.extra));
        }
    }
    for condition in new.list_mut("status.conditions").into_iter().flatten() {
        condition.default_at("lastUpdateTime", write.time());
        condition.default_at("lastTransitionTime", write.time());
    }
}

#[cfg(test)]
mod tests;
