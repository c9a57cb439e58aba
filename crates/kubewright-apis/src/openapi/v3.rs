//! Encodes routes as OpenAPI v3.

use serde_json::{Map, Value, json};

use super::route::{Body, Kubernetes, Parameter, PathRoutes, Place, Route, by_path};
use super::schema::Schemas;
use super::{KUBERNETES_VERSION, object};

/// A document of built-in operations.
pub(super) fn builtin(routes: Vec<Route>, mut schemas: Schemas<'_>) -> Value {
    let paths = paths(routes, &mut schemas);
    let mut components = Map::new();
    let schemas = schemas.finish();
    if !schemas.is_empty() {
        components.insert("schemas".to_owned(), Value::Object(schemas));
    }
    components.insert(
        "securitySchemes".to_owned(),
        json!({ "BearerToken": {
            "type": "apiKey",
            "description": "Bearer Token authentication",
            "name": "authorization",
            "in": "header",
        } }),
    );
    object([
        ("openapi", "3.0.0".into()),
        ("info", json!({ "title": "Kubernetes", "version": KUBERNETES_VERSION })),
        ("paths", paths.into()),
        ("components", components.into()),
    ])
}

/// A document of custom resources.
pub(super) fn custom(routes: Vec<Route>, mut schemas: Schemas<'_>) -> Value {
    let paths = paths(routes, &mut schemas);
    object([
        ("openapi", "3.0.0".into()),
        ("info", json!({ "title": "Kubernetes CRD Swagger", "version": "v0.1.0" })),
        ("paths", paths.into()),
        ("components", object([("schemas", schemas.finish().into())])),
    ])
}

fn paths(routes: Vec<Route>, schemas: &mut Schemas<'_>) -> Map<String, Value> {
    by_path(routes).into_iter().map(|(path, routes)| (path, path_item(routes, schemas))).collect()
}

fn path_item(path: PathRoutes, schemas: &mut Schemas<'_>) -> Value {
    let mut item = Map::new();
    if !path.shared.is_empty() {
        item.insert("parameters".to_owned(), path.shared.iter().map(parameter).collect());
    }
    for route in path.routes {
        item.insert(route.method.to_owned(), operation(route, schemas));
    }
    Value::Object(item)
}

fn operation(route: Route, schemas: &mut Schemas<'_>) -> Value {
    let mut operation = Map::new();
    operation.insert("description".to_owned(), route.description.into());
    operation.insert("operationId".to_owned(), route.operation_id.into());
    operation.insert("tags".to_owned(), Value::Array(vec![route.tag.into()]));
    if !route.parameters.is_empty() {
        operation.insert("parameters".to_owned(), route.parameters.iter().map(parameter).collect());
    }
    if let Some(Body { model, required }) = &route.body {
        let mut body = Map::new();
        body.insert("content".to_owned(), content(route.consumes, &schemas.refer(model)));
        if *required {
            body.insert("required".to_owned(), true.into());
        }
        operation.insert("requestBody".to_owned(), Value::Object(body));
    }
    let mut responses = Map::new();
    for (code, model) in &route.responses {
        let mut response = Map::new();
        response.insert("description".to_owned(), reason(*code).into());
        if let Some(model) = model {
            response.insert("content".to_owned(), content(route.produces, &schemas.refer(model)));
        }
        responses.insert(code.to_string(), Value::Object(response));
    }
    responses.insert("401".to_owned(), object([("description", "Unauthorized".into())]));
    operation.insert("responses".to_owned(), Value::Object(responses));
    extensions(&mut operation, route.kubernetes);
    Value::Object(operation)
}

/// Adds the action and kind extensions, which v2 and v3 have in common.
pub(super) fn extensions(operation: &mut Map<String, Value>, kubernetes: Option<Kubernetes>) {
    if let Some(Kubernetes { action, group, version, kind }) = kubernetes {
        operation.insert("x-kubernetes-action".to_owned(), action.into());
        operation.insert(
            "x-kubernetes-group-version-kind".to_owned(),
            object([("group", group.into()), ("version", version.into()), ("kind", kind.into())]),
        );
    }
}

/// The reason phrase of a status code.
pub(super) fn reason(code: u16) -> &'static str {
    match code {
        201 => "Created",
        202 => "Accepted",
        _ => "OK",
    }
}

fn content(types: &[&str], schema: &Map<String, Value>) -> Value {
    let media = |ty: &&str| ((*ty).to_owned(), object([("schema", schema.clone().into())]));
    types.iter().map(media).collect::<Map<_, _>>().into()
}

fn parameter(parameter: &Parameter) -> Value {
    let mut value = Map::new();
    if !parameter.description.is_empty() {
        value.insert("description".to_owned(), parameter.description.as_ref().into());
    }
    value.insert("name".to_owned(), parameter.name.into());
    let place = match parameter.place {
        Place::Path => "path",
        Place::Query => "query",
    };
    value.insert("in".to_owned(), place.into());
    if parameter.place == Place::Path {
        value.insert("required".to_owned(), true.into());
    }
    value.insert("schema".to_owned(), object([("type", parameter.ty.into()), ("uniqueItems", true.into())]));
    Value::Object(value)
}
