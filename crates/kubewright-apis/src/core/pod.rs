//! Pod, and the pod templates of other kinds.

pub(crate) mod defaults;
mod lifecycle;
pub(crate) mod quota;
pub(crate) mod strategy;
mod table;
pub(crate) mod validation;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::reset_fields::ResetFields;
use crate::selectable::Read::{Flag, Nothing, PodIp, Text};
use crate::selectable::{NAME, NAMESPACE, Refusal, Selectable};
use kubewright_apimachinery::field::ErrorList;
use kubewright_apimachinery::meta::Check::{New, Update};

pub(crate) const RULES: KindRules = KindRules {
    kind: "Pod",
    defaults: defaults::pod,
    prepare_create: strategy::prepare_create,
    prepare_update: strategy::prepare_update,
    prepare_subresource: strategy::prepare_subresource,
    warnings: strategy::warnings,
    update_checks: &[Update, New],
    subresource_checks: |subresource| match subresource {
        "resize" => &[New],
        "ephemeralcontainers" => &[Update, New],
        _ => &[Update],
    },
    validate: validation::create,
    validate_update: validation::update::pod,
    validate_subresource: |subresource, new, old| match subresource {
        "status" => validation::status::update(new, old),
        "ephemeralcontainers" => validation::update::ephemeral_containers(new, old),
        "resize" => validation::resize::resize(new, old),
        _ => ErrorList::new(),
    },
    reset_fields: |subresource| {
        Some(match subresource {
            "status" => ResetFields::These(&[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ]),
            "ephemeralcontainers" => ResetFields::AllBut(&[&["spec", "ephemeralContainers"]]),
            "resize" => ResetFields::AllBut(&[
                &["spec", "containers", "*", "resources"],
                &["spec", "containers", "*", "resizePolicy"],
            ]),
            _ => return None,
        })
    },
    selectable: Some(&Selectable {
        fields: &[
            (NAME, Text(NAME)),
            (NAMESPACE, Text(NAMESPACE)),
            ("spec.nodeName", Text("spec.nodeName")),
            // The name of `spec.nodeName` before v1.
            ("spec.host", Text("spec.nodeName")),
            ("spec.restartPolicy", Text("spec.restartPolicy")),
            ("spec.schedulerName", Text("spec.schedulerName")),
            ("spec.serviceAccountName", Text("spec.serviceAccountName")),
            ("spec.hostNetwork", Flag("spec.hostNetwork")),
            ("status.phase", Text("status.phase")),
            ("status.podIP", PodIp),
            ("status.podIPs", Nothing),
            ("status.nominatedNodeName", Text("status.nominatedNodeName")),
        ],
        refusal: Refusal::Plain,
    }),
    cells: table::cells,
    cell_paths: Some(table::CELL_PATHS),
    row_conditions: table::row_conditions,
    quota: Some(&quota::QUOTA),
    registry: RegistryRules {
        stamp: lifecycle::stamp,
        grace_period: lifecycle::grace_period,
        marks_before_removal: true,
        returns_deleted: true,
        ..RegistryRules::DEFAULT
    },
    ..super::GROUP
};

#[cfg(test)]
mod tests;
