//! Event of events.k8s.io, a strict view of the Event of the core group.

use serde_json::Value;

use crate::core::event::{convert, table, validation};
use crate::kinds::KindRules;
use crate::registry::{GarbageCollection, RegistryRules};
use crate::selectable::{Refusal, Selectable, texts};
use crate::table::row::Row;

pub(crate) const RULES: KindRules = KindRules {
    group: "events.k8s.io",
    kind: "Event",
    kube_finalizers: true,
    validate: |event| validation::create(true, event),
    validate_update: |new, old| validation::update(true, new, old),
    selectable: Some(&Selectable {
        fields: texts!(
            "metadata.name",
            "metadata.namespace",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type"
        ),
        refusal: Refusal::Plain,
    }),
    cells,
    convert: Some(convert::to_events),
    registry: RegistryRules {
        creates_on_update: true,
        garbage_collection: GarbageCollection::Unsupported,
        ..RegistryRules::DEFAULT
    },
    ..KindRules::DEFAULT
};

fn cells(row: &Row<'_>) -> Vec<Value> {
    let object = &convert::to_core(row.object.clone());
    table::cells(&Row { object, now: row.now })
}

#[cfg(test)]
mod tests;
