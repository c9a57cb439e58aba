//! Table rows of built-in kinds, as printed by `kubectl get`.
//!
//! This module computes the cells. Column headers are facts in `facts/columns.txt`, and the server combines
//! both. Cells include those of `-o wide`. Numbers are JSON numbers where upstream has numbers, even in
//! columns of type string. Columns of custom resources are not handled here.

pub(crate) mod row;

use serde_json::{Value, json};

use crate::facts::{Column, columns};
use crate::kinds::rules;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;
use row::Row;
pub use row::age;

/// The cells of an object in the order of its [`column_definitions`]. `now` is a Unix time in seconds. Kinds
/// without their own columns have name and creation time.
pub fn cells(gvk: Gvk<'_>, object: &Value, now: i64) -> Vec<Value> {
    (rules(gvk).cells)(&Row { object, now })
}

/// The paths of all fields that [`cells`] and [`row_conditions`] read, for kinds with large objects. A path in a list
/// applies to its items. `None` for other kinds.
pub fn cell_paths(gvk: Gvk<'_>) -> Option<&'static [&'static str]> {
    rules(gvk).cell_paths
}

/// The paths of the cells of kinds with a Pod template and replicas.
pub(crate) const WORKLOAD_PATHS: &[&str] = &[
    "metadata.name",
    "metadata.creationTimestamp",
    "spec.replicas",
    "spec.selector",
    "spec.template.spec.containers.name",
    "spec.template.spec.containers.image",
    "spec.template.spec.nodeSelector",
    "status",
];

/// The `columnDefinitions` of a resource's Table. Resources without their own columns have `Name` and
/// `Created At`.
pub fn column_definitions(group: &str, version: &str, plural: &str) -> Vec<Value> {
    let own = columns(group, version, plural);
    // LimitRange is a kind without its own columns.
    let found = own.or_else(|| columns("", "v1", "limitranges")).unwrap_or_default();
    found.iter().map(definition).collect()
}

/// The `columnDefinitions` of the `scale` subresource of any resource.
pub fn scale_column_definitions() -> Vec<Value> {
    let replicas = |name, description: &str| json!({"name": name, "type": "integer", "format": "", "description": description, "priority": 0});
    let mut definitions = column_definitions("", "v1", "serviceaccounts");
    if let Some(name) = definitions.first_mut() {
        // Upstream has no format here.
        name.set_at("format", "");
    }
    let inner = [
        replicas("Desired", "replicas is the desired number of instances for the scaled object."),
        replicas("Available", "replicas is the actual number of observed instances of the scaled object."),
    ];
    definitions.splice(1..1, inner);
    definitions
}

/// The `conditions` of a row, which mark completed pods.
pub fn row_conditions(gvk: Gvk<'_>, object: &Value) -> Option<Value> {
    (rules(gvk).row_conditions)(object)
}

/// Sorts the objects of a list for the Table: FlowSchemas by matching precedence.
pub fn sort_rows(gvk: Gvk<'_>, objects: &mut [&Value]) {
    if let Some(sort_rows) = rules(gvk).sort_rows {
        sort_rows(objects);
    }
}

/// Whether the rows of a kind are sorted.
pub fn sorts_rows(gvk: Gvk<'_>) -> bool {
    rules(gvk).sort_rows.is_some()
}

/// The cells of a kind without its own columns.
pub(crate) fn name_and_creation(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), created_at(row.object)]
}

/// The cells of a kind whose only columns are name and age.
pub(crate) fn name_and_age(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.age()]
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.ty,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    })
}

/// The creation timestamp, or Go's zero time.
fn created_at(object: &Value) -> Value {
    let created = time::parse_rfc3339(object.str_at("metadata.creationTimestamp"));
    created.map_or_else(|| "0001-01-01T00:00:00Z".into(), |seconds| time::format_rfc3339(seconds).into())
}

#[cfg(test)]
mod tests;
