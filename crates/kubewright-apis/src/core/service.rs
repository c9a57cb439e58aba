//! Service.
//!
//! The server allocates cluster IPs and node ports after [`strategy`] and before [`validation`], starting with
//! [`ip_families`].

mod defaults;
pub(crate) mod ip_families;
mod quota;
pub(crate) mod strategy;
pub(crate) mod table;
mod validation;
pub(crate) mod warnings;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::selectable::{Refusal, Selectable, texts};
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::meta::{Check, NameRule};

pub(crate) const RULES: KindRules = KindRules {
    kind: "Service",
    defaults: defaults::service,
    prepare_create: strategy::prepare_create,
    prepare_update: strategy::prepare_update,
    warnings: |new, _| warnings::service(new),
    name: |_| NameRule::DnsLabel,
    update_checks: &[Check::Update, Check::New],
    validate: validation::create,
    validate_update: validation::update,
    validate_subresource: |subresource, new, _| match subresource {
        "status" => validation::status(new),
        _ => ErrorList::new(),
    },
    selectable: Some(&Selectable {
        fields: texts!("metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"),
        refusal: Refusal::Plain,
    }),
    cells: table::cells,
    quota: Some(&quota::QUOTA),
    registry: RegistryRules {
        creates_on_update: true,
        returns_deleted: true,
        etcd_name: Some("services/specs"),
        ..RegistryRules::DEFAULT
    },
    ..super::GROUP
};

#[cfg(test)]
mod tests;
