//! Schemas without references, as type checking of policies needs them.

use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel::rules::{Keywords, Schema};
use serde_json::{Map, Value, json};

/// The prefix of references in a v3 document.
const SCHEMAS: &str = "#/components/schemas/";

/// The schema of a kind in a v3 document, with its references replaced by the schemas that they name. A reference to a
/// schema that contains it becomes an object without properties. `None` if the document does not have the kind.
pub fn resolved_schema(document: &Value, gvk: Gvk<'_>) -> Option<Value> {
    let schemas = document["components"]["schemas"].as_object()?;
    let is_kind = |kind: &Value| {
        kind["group"] == gvk.group && kind["version"] == gvk.version && kind["kind"] == gvk.kind
    };
    let (name, schema) = schemas.iter().find(|(_, schema)| {
        schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.iter().any(is_kind))
    })?;
    Some(resolve(schema, schemas, &mut vec![name.as_str()]))
}

fn resolve<'a>(schema: &'a Value, schemas: &'a Map<String, Value>, within: &mut Vec<&'a str>) -> Value {
    let Some(name) = reference(schema) else { return resolve_parts(schema, schemas, within) };
    let Some(schema) = schemas.get(name).filter(|_| !within.contains(&name)) else {
        return json!({ "type": "object" });
    };
    within.push(name);
    let resolved = resolve_parts(schema, schemas, within);
    within.pop();
    resolved
}

fn resolve_parts<'a>(schema: &'a Value, schemas: &'a Map<String, Value>, within: &mut Vec<&'a str>) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let mut resolved = Map::new();
    for (name, value) in fields {
        let value = match (name.as_str(), value) {
            ("description", _) => continue,
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter();
                properties.map(|(name, schema)| (name.clone(), resolve(schema, schemas, within))).collect()
            }
            ("items" | "additionalProperties", Value::Object(_)) => resolve(value, schemas, within),
            _ => value.clone(),
        };
        resolved.insert(name.clone(), value);
    }
    // Built-in types have the format, custom resources the extension.
    if schema["format"] == "int-or-string" {
        resolved.insert("x-kubernetes-int-or-string".to_owned(), true.into());
    }
    Value::Object(resolved)
}

/// The name of the schema that `schema` refers to. A reference with a description or a default is within `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    let own = schema["$ref"].as_str().and_then(|path| path.strip_prefix(SCHEMAS));
    own.or_else(|| schema["allOf"].as_array()?.iter().find_map(reference))
}

/// The types of a schema without references. Rules and limits are not read, because they do not affect types.
pub(crate) fn cel_schema(schema: &Value) -> Schema {
    let below = |name: &str| {
        schema.get(name).filter(|schema| schema.is_object()).map(|schema| Box::new(cel_schema(schema)))
    };
    let properties = schema.map_at("properties").iter();
    Schema::from(Keywords {
        type_name: schema.str_at("type").to_owned(),
        format: schema.str_at("format").to_owned(),
        int_or_string: schema.bool_at("x-kubernetes-int-or-string"),
        embedded_resource: schema.bool_at("x-kubernetes-embedded-resource"),
        items: below("items"),
        properties: properties.map(|(name, schema)| (name.clone(), cel_schema(schema))).collect(),
        additional: below("additionalProperties"),
        ..Keywords::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::{NoDescriptions, v3_document};

    #[test]
    fn references_are_replaced_and_recursion_ends() {
        let document = v3_document("apis/apps/v1", &[], &NoDescriptions).unwrap();
        let gvk = Gvk { group: "apps", version: "v1", kind: "Deployment" };
        let schema = resolved_schema(&document, gvk).unwrap();
        assert!(!schema.to_string().contains("$ref"));
        let spec = &schema["properties"]["spec"]["properties"];
        assert_eq!(spec["replicas"]["type"], "integer");
        let rolling = &spec["strategy"]["properties"]["rollingUpdate"]["properties"];
        assert_eq!(rolling["maxSurge"]["x-kubernetes-int-or-string"], true);
        assert_eq!(resolved_schema(&document, Gvk { kind: "None", ..gvk }), None);

        let document = v3_document("apis/apiextensions.k8s.io/v1", &[], &NoDescriptions).unwrap();
        let gvk = Gvk { group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition" };
        let schema = resolved_schema(&document, gvk).unwrap();
        let version = &schema["properties"]["spec"]["properties"]["versions"]["items"]["properties"];
        let root = &version["schema"]["properties"]["openAPIV3Schema"]["properties"];
        assert_eq!(root["not"], json!({ "type": "object" }));
    }
}
