//! Encodes routes as one OpenAPI v2 (Swagger) document.
//!
//! Repeated parameters are published once and referenced, under names that upstream derives from their
//! content. This keeps documents small. Parameters that old versions of kubectl look for are inlined.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::route::{Body, Parameter, PathRoutes, Place, Route, by_path};
use super::schema::Schemas;
use super::v3::{extensions, reason};
use super::{KUBERNETES_VERSION, object};
use kubewright_apimachinery::json;

/// The document of these operations.
pub(super) fn document(routes: Vec<Route>, mut schemas: Schemas<'_>) -> Value {
    let mut shared = Shared::default();
    let paths: Map<String, Value> = by_path(routes)
        .into_iter()
        .map(|(path, routes)| (path, path_item(routes, &mut schemas, &mut shared)))
        .collect();
    let bearer = json!({
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    });
    object([
        ("swagger", "2.0".into()),
        ("info", json!({ "title": "Kubernetes", "version": KUBERNETES_VERSION })),
        ("paths", paths.into()),
        ("definitions", schemas.finish().into()),
        ("parameters", shared.parameters.into()),
        ("securityDefinitions", object([("BearerToken", bearer)])),
        ("security", json!([{ "BearerToken": [] }])),
    ])
}

fn path_item(path: PathRoutes, schemas: &mut Schemas<'_>, shared: &mut Shared) -> Value {
    let mut item = Map::new();
    if !path.shared.is_empty() {
        let parameters = path.shared.iter().map(|parameter| shared.parameter(parameter)).collect();
        item.insert("parameters".to_owned(), parameters);
    }
    for route in path.routes {
        item.insert(route.method.to_owned(), operation(route, schemas, shared));
    }
    Value::Object(item)
}

fn operation(route: Route, schemas: &mut Schemas<'_>, shared: &mut Shared) -> Value {
    let mut operation = Map::new();
    operation.insert("description".to_owned(), route.description.into());
    operation.insert("operationId".to_owned(), route.operation_id.into());
    operation.insert("tags".to_owned(), Value::Array(vec![route.tag.into()]));
    operation.insert("schemes".to_owned(), json!(["https"]));
    if !route.consumes.is_empty() {
        operation.insert("consumes".to_owned(), route.consumes.into());
    }
    operation.insert("produces".to_owned(), route.produces.into());
    // Sorted by name; `body` comes first.
    let mut parameters: Vec<Value> = Vec::new();
    if let Some(body) = &route.body {
        parameters.push(shared.body(body, schemas));
    }
    parameters.extend(route.parameters.iter().map(|parameter| shared.parameter(parameter)));
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), parameters.into());
    }
    let mut responses = Map::new();
    for (code, model) in &route.responses {
        let mut response = Map::new();
        response.insert("description".to_owned(), reason(*code).into());
        if let Some(model) = model {
            response.insert("schema".to_owned(), schemas.refer(model).into());
        }
        responses.insert(code.to_string(), Value::Object(response));
    }
    responses.insert("401".to_owned(), object([("description", "Unauthorized".into())]));
    operation.insert("responses".to_owned(), Value::Object(responses));
    extensions(&mut operation, route.kubernetes);
    Value::Object(operation)
}

/// Parameters that operations reference.
#[derive(Default)]
struct Shared {
    parameters: Map<String, Value>,
    /// Parameters that are already published.
    known: Vec<(Parameter, Value)>,
}

impl Shared {
    fn parameter(&mut self, parameter: &Parameter) -> Value {
        // The description of `name` contains the kind, and old versions of kubectl look for the other two.
        if matches!(parameter.name, "name" | "fieldValidation" | "dryRun") {
            return value_of(parameter);
        }
        if let Some((_, reference)) = self.known.iter().find(|(known, _)| known == parameter) {
            return reference.clone();
        }
        let reference = self.add(parameter.name, &text_of(parameter), value_of(parameter));
        self.known.push((parameter.clone(), reference.clone()));
        reference
    }

    fn body(&mut self, body: &Body, schemas: &mut Schemas<'_>) -> Value {
        let schema = schemas.refer(&body.model);
        let reference = schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
        let required = if body.required { ",\"required\":true" } else { "" };
        let text = format!(
            "{{\"name\":\"body\",\"in\":\"body\"{required},\"schema\":{{\"$ref\":\"{reference}\"}}}}"
        );
        let generic = reference.starts_with("#/definitions/io.k8s.apimachinery");
        let mut value = Map::new();
        value.insert("name".to_owned(), "body".into());
        value.insert("in".to_owned(), "body".into());
        if body.required {
            value.insert("required".to_owned(), true.into());
        }
        value.insert("schema".to_owned(), Value::Object(schema));
        if generic { self.add("body", &text, Value::Object(value)) } else { Value::Object(value) }
    }

    /// Publishes a parameter if needed and returns a reference to it.
    fn add(&mut self, name: &str, text: &str, value: Value) -> Value {
        let mut unique = format!("{name}-{}", short_hash(text));
        let mut attempt = 0;
        while self.parameters.get(&unique).is_some_and(|other| *other != value) {
            attempt += 1;
            unique = format!("{name}-{attempt}");
        }
        let reference = object([("$ref", format!("#/parameters/{unique}").into())]);
        self.parameters.entry(unique).or_insert(value);
        reference
    }
}

fn place_of(parameter: &Parameter) -> &'static str {
    match parameter.place {
        Place::Path => "path",
        Place::Query => "query",
    }
}

fn value_of(parameter: &Parameter) -> Value {
    let mut value = Map::new();
    if !parameter.description.is_empty() {
        value.insert("description".to_owned(), parameter.description.as_ref().into());
    }
    value.insert("name".to_owned(), parameter.name.into());
    value.insert("in".to_owned(), place_of(parameter).into());
    if parameter.place == Place::Path {
        value.insert("required".to_owned(), true.into());
    }
    value.insert("type".to_owned(), parameter.ty.into());
    value.insert("uniqueItems".to_owned(), true.into());
    Value::Object(value)
}

/// The parameter as JSON in Go's field order. Its name is derived from this.
fn text_of(parameter: &Parameter) -> String {
    let mut text = format!("{{\"uniqueItems\":true,\"type\":\"{}\"", parameter.ty);
    if !parameter.description.is_empty() {
        text.push_str(",\"description\":");
        text.push_str(&json::to_string(&parameter.description.as_ref().into()));
    }
    let required = if parameter.place == Place::Path { ",\"required\":true" } else { "" };
    let (name, place) = (parameter.name, place_of(parameter));
    text + &format!(",\"name\":\"{name}\",\"in\":\"{place}\"{required}}}")
}

/// FNV-1, with six bytes encoded as URL-safe base64. The crate `fnv` has FNV-1a only.
fn short_hash(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte));
    URL_SAFE_NO_PAD.encode(&hash.to_be_bytes()[..6])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::NoDescriptions;
    use crate::openapi::group_versions::CrossRegistered;
    use crate::openapi::route::{DELETE_OPTIONS, PATCH};
    use crate::openapi::schema::Form;

    #[test]
    fn shared_parameters_have_upstreams_names() {
        let mut shared = Shared::default();
        let mut schemas = Schemas::new(Form::V2, CrossRegistered::Everywhere, &NoDescriptions);
        let name = |value: Value| value["$ref"].as_str().unwrap().to_owned();
        assert_eq!(name(shared.parameter(&Parameter::namespace())), "#/parameters/namespace-vgWSWtn3");
        let body = |model, required| Body { model, required };
        assert_eq!(
            name(shared.body(&body(DELETE_OPTIONS, false), &mut schemas)),
            "#/parameters/body-2Y1dVQaQ"
        );
        assert_eq!(name(shared.body(&body(PATCH, true), &mut schemas)), "#/parameters/body-78PwaGsr");
        assert_eq!(shared.parameters.len(), 3);
    }

    #[test]
    fn parameters_that_kubectl_checks_are_inlined() {
        let mut shared = Shared::default();
        for parameter in Parameter::of_options("PatchOptions") {
            let value = shared.parameter(&parameter);
            let inline = value.get("$ref").is_none();
            assert_eq!(inline, matches!(parameter.name, "dryRun" | "fieldValidation"), "{}", parameter.name);
        }
    }
}
