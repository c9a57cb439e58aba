//! CertificateSigningRequest.

mod strategy;
mod table;
mod validation;

use crate::kinds::KindRules;
use crate::reset_fields::ResetFields;
use crate::selectable::{Refusal, Selectable, texts};
use crate::strategy::keep;
use kubewright_apimachinery::meta::Check::{New, Update};
use kubewright_apimachinery::meta::NameRule;

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
    ..KindRules::DEFAULT
};

#[cfg(test)]
mod tests;
