//! Event of the core group, and what it shares with the Event of events.k8s.io.
//!
//! Both are views of the same stored object.

pub(crate) mod convert;
pub(crate) mod table;
pub(crate) mod validation;

use crate::kinds::KindRules;
use crate::registry::{GarbageCollection, RegistryRules};
use crate::selectable::Read::{Either, Text};
use crate::selectable::{NAME, NAMESPACE, Refusal, Selectable};
use kubewright_apimachinery::meta::NameRule;

pub(crate) const RULES: KindRules = KindRules {
    kind: "Event",
    name: |_| NameRule::PathSegment,
    // The legacy strategy does not validate metadata.
    kube_finalizers: false,
    update_checks: &[],
    validate: |event| validation::create(false, event),
    validate_update: |new, old| validation::update(false, new, old),
    selectable: Some(&Selectable {
        fields: &[
            (NAME, Text(NAME)),
            (NAMESPACE, Text(NAMESPACE)),
            ("involvedObject.kind", Text("involvedObject.kind")),
            ("involvedObject.namespace", Text("involvedObject.namespace")),
            ("involvedObject.name", Text("involvedObject.name")),
            ("involvedObject.uid", Text("involvedObject.uid")),
            ("involvedObject.apiVersion", Text("involvedObject.apiVersion")),
            ("involvedObject.resourceVersion", Text("involvedObject.resourceVersion")),
            ("involvedObject.fieldPath", Text("involvedObject.fieldPath")),
            ("reason", Text("reason")),
            ("reportingComponent", Text("reportingComponent")),
            ("source", Either("source.component", "reportingComponent")),
            ("type", Text("type")),
        ],
        refusal: Refusal::Plain,
    }),
    cells: table::cells,
    convert: Some(convert::to_core),
    registry: RegistryRules {
        creates_on_update: true,
        garbage_collection: GarbageCollection::Unsupported,
        ..RegistryRules::DEFAULT
    },
    ..super::GROUP
};

#[cfg(test)]
mod tests;
