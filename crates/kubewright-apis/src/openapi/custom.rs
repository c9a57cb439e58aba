//! Operations and schemas of one served version of a CRD.
//!
//! Upstream has a separate builder for custom resources. It differs from that of built-in kinds in content
//! types, `resourceVersion` on reads, and the lack of deprecated watches.

use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use super::route::{
    Body, DELETE_OPTIONS, JSON, Kubernetes, Model, PATCH, Parameter, Route, STATUS, YAML, operation_id,
    title, with_article,
};
use super::schema::{Form, Schemas, describe};
use super::v2_schema::to_v2;

const OBJECT: &[&str] = &[JSON, YAML];
const PATCHES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
const KINDS: &str = "x-kubernetes-group-version-kind";

/// One served version of a CustomResourceDefinition.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomVersion<'a> {
    /// The API group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The plural name in URLs.
    pub plural: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The kind of lists.
    pub list_kind: &'a str,
    /// Whether the resource is namespaced.
    pub namespaced: bool,
    /// Whether it has the `status` subresource.
    pub status: bool,
    /// Whether it has the `scale` subresource.
    pub scale: bool,
    /// `spec.preserveUnknownFields` of the CRD.
    pub preserve_unknown_fields: bool,
    /// The published schema in OpenAPI v3, if the version has one.
    pub schema: Option<Map<String, Value>>,
    /// The JSON paths of `selectableFields`.
    pub selectable_fields: Vec<&'a str>,
}

impl CustomVersion<'_> {
    /// The path of the version's document in the index of `/openapi/v3`.
    pub(super) fn document_path(&self) -> String {
        format!("apis/{}/{}", self.group, self.version)
    }

    /// The schema name with the reversed group, such as `com.example.stable.v1.CronTab`.
    fn schema_name(&self, kind: &str) -> String {
        let group: Vec<_> = self.group.rsplit('.').collect();
        format!("{}.{}.{kind}", group.join("."), self.version)
    }

    /// Adds the schemas of the kind and its list.
    pub(super) fn add_schemas(&self, schemas: &mut Schemas<'_>) {
        schemas.refer_type("meta.v1.ObjectMeta");
        let form = schemas.form;
        let type_meta = type_meta(schemas.descriptions);
        schemas.insert(self.schema_name(self.kind), self.kind_schema(form, &type_meta));
        schemas.insert(self.schema_name(self.list_kind), self.list_schema(form, type_meta));
    }

    fn kind_schema(&self, form: Form, type_meta: &Map<String, Value>) -> Value {
        let unknown_fields = self.preserve_unknown_fields
            || self
                .schema
                .as_ref()
                .is_some_and(|schema| is_true(schema, "x-kubernetes-preserve-unknown-fields"));
        let mut schema = match (self.schema.clone(), form) {
            (Some(schema), Form::V3) => with_meta(schema, form, type_meta),
            // If a v2 schema has properties, kubectl rejects unknown fields.
            (Some(mut schema), Form::V2) if !unknown_fields => {
                to_v2(&mut schema);
                with_meta(schema, form, type_meta)
            }
            _ => Map::from_iter([("type".to_owned(), "object".into())]),
        };
        schema.insert(KINDS.to_owned(), json!([self.group_version_kind(self.kind)]));
        self.add_selectable_fields(&mut schema);
        Value::Object(schema)
    }

    fn list_schema(&self, form: Form, mut properties: Map<String, Value>) -> Value {
        let items = form.reference(&self.schema_name(self.kind));
        let description = format!("List of {}. More info: {CONVENTIONS}", self.plural);
        properties.insert(
            "items".to_owned(),
            json!({ "description": description, "type": "array", "items": items }),
        );
        let mut metadata = form.reference("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta");
        let description = format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds");
        metadata.insert("description".to_owned(), description.into());
        properties.insert("metadata".to_owned(), form.settle(metadata));
        let mut schema = Map::new();
        let description = format!("{} is a list of {}", self.list_kind, self.kind);
        schema.insert("description".to_owned(), description.into());
        schema.insert("type".to_owned(), "object".into());
        schema.insert("required".to_owned(), json!(["items"]));
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema.insert(KINDS.to_owned(), json!([self.group_version_kind(self.list_kind)]));
        self.add_selectable_fields(&mut schema);
        Value::Object(schema)
    }

    fn group_version_kind(&self, kind: &str) -> Value {
        json!({ "group": self.group, "version": self.version, "kind": kind })
    }

    fn add_selectable_fields(&self, schema: &mut Map<String, Value>) {
        if self.selectable_fields.is_empty() {
            return;
        }
        let path = |path: &&str| json!({ "fieldPath": path.strip_prefix('.').unwrap_or(path) });
        let fields: Value = self.selectable_fields.iter().map(path).collect();
        schema.insert("x-kubernetes-selectable-fields".to_owned(), fields);
    }

    /// The operations of this version.
    pub(super) fn routes(&self) -> Vec<Route> {
        let own = Model::Named(self.schema_name(self.kind));
        let list = Model::Named(self.schema_name(self.list_kind));
        let scale = Model::Type("autoscaling.v1.Scale");
        let prefix = format!("/apis/{}/{}", self.group, self.version);
        let within = if self.namespaced { "/namespaces/{namespace}" } else { "" };
        let root = format!("{prefix}{within}/{}", self.plural);
        let mut routes = Vec::new();
        if self.namespaced {
            let everywhere = format!("{prefix}/{}", self.plural);
            let mut route = self.route(&everywhere, "", Verb::List, &list);
            let name = format!("{}ForAllNamespaces", self.kind);
            route.operation_id = operation_id("list", self.group, self.version, &name).0;
            routes.push(route);
        }
        routes.push(self.route(&root, "", Verb::List, &list));
        routes.push(self.route(&root, "", Verb::Create, &own));
        routes.push(self.route(&root, "", Verb::DeleteCollection, &STATUS));
        let item = format!("{root}/{{name}}");
        routes.push(self.route(&item, "", Verb::Delete, &STATUS));
        let subresources = [(true, "", &own), (self.status, "status", &own), (self.scale, "scale", &scale)];
        for (_, subresource, model) in subresources.into_iter().filter(|(there, ..)| *there) {
            let path = match subresource {
                "" => item.clone(),
                _ => format!("{item}/{subresource}"),
            };
            for verb in [Verb::Read, Verb::Replace, Verb::Patch] {
                routes.push(self.route(&path, subresource, verb, model));
            }
        }
        routes
    }

    fn route(&self, path: &str, subresource: &str, verb: Verb, model: &Model) -> Route {
        let facts = verb.facts();
        let namespaced = if self.namespaced { "Namespaced" } else { "" };
        let name = format!("{}{namespaced}{}{}", facts.id.1, self.kind, title(subresource));
        let (operation_id, tag) = operation_id(facts.id.0, self.group, self.version, &name);
        let mut parameters = vec![Parameter::pretty()];
        if path.contains("{namespace}") {
            parameters.push(Parameter::namespace());
        }
        if path.contains("{name}") {
            parameters.push(Parameter::name_of(self.kind));
        }
        parameters.extend(Parameter::of_options(facts.options));
        let body = match verb {
            Verb::Create | Verb::Replace => Some(Body { model: model.clone(), required: true }),
            Verb::Patch => Some(Body { model: PATCH, required: true }),
            Verb::Delete => Some(Body { model: DELETE_OPTIONS, required: false }),
            Verb::List | Verb::Read | Verb::DeleteCollection => None,
        };
        Route {
            path: path.to_owned(),
            method: facts.method,
            description: self.description(verb, subresource).into(),
            operation_id,
            tag,
            kubernetes: Some(Kubernetes {
                action: facts.action,
                group: self.group.to_owned(),
                version: self.version.to_owned(),
                kind: self.kind.to_owned(),
            }),
            parameters,
            body,
            consumes: if verb == Verb::Patch { PATCHES } else { OBJECT },
            produces: OBJECT,
            responses: facts.responses.iter().map(|code| (*code, Some(model.clone()))).collect(),
        }
    }

    fn description(&self, verb: Verb, subresource: &str) -> String {
        let kind = self.kind;
        let of = match subresource {
            "" => String::new(),
            _ => format!("{subresource} of "),
        };
        match verb {
            Verb::List => format!("list objects of kind {kind}"),
            Verb::Create => format!("create {}", with_article(kind)),
            Verb::Delete => format!("delete {}", with_article(kind)),
            Verb::DeleteCollection => format!("delete collection of {kind}"),
            Verb::Read => format!("read {of}the specified {kind}"),
            Verb::Replace => format!("replace {of}the specified {kind}"),
            Verb::Patch => format!("partially update {of}the specified {kind}"),
        }
    }
}

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    List,
    Create,
    DeleteCollection,
    Read,
    Replace,
    Patch,
    Delete,
}

struct VerbFacts {
    method: &'static str,
    action: &'static str,
    /// The parts of the operation ID before the group and after the version.
    id: (&'static str, &'static str),
    options: &'static str,
    responses: &'static [u16],
}

impl Verb {
    fn facts(self) -> VerbFacts {
        let (method, action, id, options, responses): (_, _, _, _, &[u16]) = match self {
            Self::List => ("get", "list", ("list", ""), "ListOptions", &[200]),
            Self::Create => ("post", "post", ("create", ""), "CreateOptions", &[200, 201, 202]),
            Self::DeleteCollection => {
                ("delete", "deletecollection", ("delete", "collection"), "ListOptions", &[200])
            }
            Self::Read => ("get", "get", ("read", ""), "GetOptions", &[200]),
            Self::Replace => ("put", "put", ("replace", ""), "UpdateOptions", &[200, 201]),
            Self::Patch => ("patch", "patch", ("patch", ""), "PatchOptions", &[200]),
            Self::Delete => ("delete", "delete", ("delete", ""), "DeleteOptions", &[200, 202]),
        };
        VerbFacts { method, action, id, options, responses }
    }
}

fn is_true(schema: &Map<String, Value>, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

/// The properties `apiVersion` and `kind`.
fn type_meta(descriptions: &dyn Descriptions) -> Map<String, Value> {
    let property = |name: &str| {
        let mut schema = Map::from_iter([("type".to_owned(), "string".into())]);
        // These descriptions are the same for all kinds.
        describe(&mut schema, descriptions.of_field("io.k8s.apimachinery.pkg.apis.meta.v1.Status", name));
        (name.to_owned(), Value::Object(schema))
    };
    ["apiVersion", "kind"].into_iter().map(property).collect()
}

fn object_meta(form: Form) -> Value {
    let mut schema = form.reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    let description = format!("Standard object's metadata. More info: {CONVENTIONS}#metadata");
    schema.insert("description".to_owned(), description.into());
    form.settle(schema)
}

/// Adds `apiVersion`, `kind` and `metadata` to a schema.
fn with_meta(
    mut schema: Map<String, Value>,
    form: Form,
    type_meta: &Map<String, Value>,
) -> Map<String, Value> {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.extend(type_meta.clone());
        properties.insert("metadata".to_owned(), object_meta(form));
    }
    add_embedded(&mut schema, form);
    schema
}

/// Adds `apiVersion`, `kind` and `metadata` to embedded resources.
fn add_embedded(schema: &mut Map<String, Value>, form: Form) {
    for (_, of) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Value::Object(of) = of {
            add_embedded(of, form);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(of)) = schema.get_mut(key) {
            add_embedded(of, form);
        }
    }
    let hidden = form == Form::V2 && is_true(schema, "x-kubernetes-preserve-unknown-fields");
    if !is_true(schema, "x-kubernetes-embedded-resource") || hidden {
        return;
    }
    if let Value::Object(properties) = schema.entry("properties").or_insert_with(|| json!({})) {
        let version = format!(
            "apiVersion defines the versioned schema of this representation of an object. More info: \
             {CONVENTIONS}#resources"
        );
        let kind = format!(
            "kind is a string value representing the type of this object. In CamelCase. More info: \
             {CONVENTIONS}#types-kinds"
        );
        properties.insert("apiVersion".to_owned(), json!({ "description": version, "type": "string" }));
        properties.insert("kind".to_owned(), json!({ "description": kind, "type": "string" }));
        properties.insert("metadata".to_owned(), object_meta(form));
    }
    if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
    }
}
