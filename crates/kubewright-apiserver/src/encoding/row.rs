//! Items of lists in another view than the complete object: rows of Tables and PartialObjectMetadata.
//!
//! A row needs few fields of its object, and managedFields are the largest part of most objects. So rows are rendered
//! from the stored JSON: metadata is copied, and only the rest is parsed for the cells. Objects that are stored in
//! another version are decoded.

mod raw;

use std::sync::Arc;

use kubewright_apimachinery::json;
use kubewright_apis::table;
use kubewright_structured_merge::packed;
use serde_json::Value;

use super::body::Render;
use super::response::{self, Include, View};
use crate::registry::resource::Resource;
use crate::storage::StoredObject;
use raw::Raw;

/// Renders an item of a list in this view.
pub(crate) fn render(resource: Arc<Resource>, view: View, now: i64) -> Render {
    Box::new(move |version| {
        let mut out = Vec::with_capacity(version.json.len());
        let stored = resource.is_storage_form() && !response::hides_annotations(&resource);
        match (view, Raw::of(&version.json).filter(|_| stored)) {
            (View::Whole, _) => return response::whole(&resource, version),
            (View::Metadata(api) | View::MetadataList(api), Some(raw)) => {
                metadata(&mut out, raw.metadata, api);
            }
            (View::Metadata(api) | View::MetadataList(api), None) => {
                let object = response::packed(&resource, version);
                packed::write_to(&mut out, &response::metadata_of(&resource, &object, api));
            }
            (View::Table(api, include), Some(raw)) => match raw.without_managed_fields() {
                Some(object) => stored_row(&mut out, &resource, version, &raw, api, include, &object, now),
                None => decoded_row(&mut out, &resource, version, api, include, now),
            },
            (View::Table(api, include), None) => decoded_row(&mut out, &resource, version, api, include, now),
        }
        out.into()
    })
}

/// PartialObjectMetadata with metadata as JSON.
fn metadata(out: &mut Vec<u8>, metadata: &[u8], api: &str) {
    out.extend_from_slice(b"{\"apiVersion\":\"meta.k8s.io/");
    out.extend_from_slice(api.as_bytes());
    out.extend_from_slice(b"\",\"kind\":\"PartialObjectMetadata\",\"metadata\":");
    out.extend_from_slice(metadata);
    out.push(b'}');
}

/// The row of an object in its storage version. `object` is the object without managedFields.
#[expect(clippy::too_many_arguments, reason = "the parts of one row")]
fn stored_row(
    out: &mut Vec<u8>,
    resource: &Resource,
    version: &StoredObject,
    raw: &Raw<'_>,
    api: &str,
    include: Include,
    object: &Value,
    now: i64,
) {
    cells(out, resource, object, now);
    match include {
        Include::Nothing => out.extend_from_slice(b"null"),
        Include::Metadata => metadata(out, raw.metadata, api),
        Include::Object => out.extend_from_slice(&response::whole(resource, version)),
    }
    out.push(b'}');
}

/// The row of an object that is stored in another version.
fn decoded_row(
    out: &mut Vec<u8>,
    resource: &Resource,
    version: &StoredObject,
    api: &str,
    include: Include,
    now: i64,
) {
    let object = response::packed(resource, version);
    cells(out, resource, &object, now);
    match include {
        Include::Nothing => out.extend_from_slice(b"null"),
        Include::Metadata => packed::write_to(out, &response::metadata_of(resource, &object, api)),
        Include::Object => packed::write_to(out, &object),
    }
    out.push(b'}');
}

/// The start of a row, up to its object.
fn cells(out: &mut Vec<u8>, resource: &Resource, object: &Value, now: i64) {
    out.extend_from_slice(b"{\"cells\":");
    json::write_to(out, &Value::Array(resource.strategy.cells(object, now)));
    if let Some(conditions) = table::row_conditions(resource.gvk(), object) {
        out.extend_from_slice(b",\"conditions\":");
        json::write_to(out, &conditions);
    }
    out.extend_from_slice(b",\"object\":");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::storage::Expect;
    use crate::{ApiServer, Options};

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    /// The row of a fully decoded object, as `GET` of one object as a Table has it.
    #[test]
    fn a_rendered_row_equals_the_row_of_the_decoded_object() {
        let server = ApiServer::new(Options::default());
        let registry = server.stages.resources.current();
        let pod = json!({
            "metadata": {"name": "a", "namespace": "default", "labels": {"x": "quote \" and \\ and {"},
                "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Succeeded", "conditions": []},
        });
        let map = json!({"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "{[\"", "l": ""}});
        let set = json!({
            "metadata": {"name": "a", "namespace": "default",
                "annotations": {"deprecated.daemonset.template.generation": "1"}},
            "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        });
        for (storage, object) in [("pods", pod), ("configmaps", map), ("apps/daemonsets", set)] {
            let resource = registry.stored(storage).unwrap();
            let version = server
                .stages
                .objects
                .put_without_steps(resource, "default/a", Expect::Absent, object)
                .unwrap();
            let decoded = response::object(resource, &version);
            for include in [Include::Nothing, Include::Metadata, Include::Object] {
                let row = render(resource.clone(), View::Table("v1", include), 100)(&version);
                let table = response::transformed(resource, View::Table("v1", include), &decoded, 100);
                assert_eq!(parsed(&row), table["rows"][0], "{storage} {include:?}");
            }
            let metadata = render(resource.clone(), View::MetadataList("v1"), 100)(&version);
            assert_eq!(parsed(&metadata), response::metadata_of(resource, &decoded, "v1"), "{storage}");
        }
    }
}
