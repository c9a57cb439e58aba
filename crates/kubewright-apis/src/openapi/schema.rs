//! Schemas of the built-in types, from the facts table.
//!
//! [`Schemas`] contains exactly the types that were referenced, and their own references. v2 differs from v3
//! in three ways: no defaults, references may have siblings, and no `oneOf`.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use super::group_versions::CrossRegistered;
use super::object;
use super::route::Model;
use crate::facts::{self, Field, FieldType, Merge, Patch, Type};

/// The OpenAPI version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    V2,
    V3,
}

impl Form {
    /// A reference to the schema with this published name.
    pub(super) fn reference(self, name: &str) -> Map<String, Value> {
        let prefix = match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        };
        Map::from_iter([("$ref".to_owned(), Value::String(format!("{prefix}{name}")))])
    }

    /// Moves a reference with siblings into an `allOf` in v3, which does not allow siblings.
    pub(super) fn settle(self, mut schema: Map<String, Value>) -> Value {
        if self == Self::V3
            && schema.len() > 1
            && let Some(reference) = schema.remove("$ref")
        {
            schema.insert("allOf".to_owned(), Value::Array(vec![object([("$ref", reference)])]));
        }
        Value::Object(schema)
    }
}

/// The schemas of a document.
pub(super) struct Schemas<'a> {
    pub(super) form: Form,
    pub(super) descriptions: &'a dyn Descriptions,
    cross_registered: CrossRegistered,
    done: Map<String, Value>,
    pending: Vec<&'static str>,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(
        form: Form,
        cross_registered: CrossRegistered,
        descriptions: &'a dyn Descriptions,
    ) -> Self {
        Self { form, descriptions, cross_registered, done: Map::new(), pending: Vec::new() }
    }

    /// A reference to a model, which becomes part of the document.
    pub(super) fn refer(&mut self, model: &Model) -> Map<String, Value> {
        match model {
            Model::Type(name) => self.refer_type(name),
            Model::Named(name) => self.form.reference(name),
            Model::Text => Map::from_iter([("type".to_owned(), "string".into())]),
        }
    }

    /// A reference to a type of the table or to a leaf, by its short name.
    pub(super) fn refer_type(&mut self, short: &'static str) -> Map<String, Value> {
        let name = published_name(short);
        let reference = self.form.reference(&name);
        if !self.done.contains_key(&name) {
            // A placeholder prevents infinite recursion in recursive types.
            self.done.insert(name, Value::Null);
            self.pending.push(short);
        }
        reference
    }

    /// Adds a schema that is not in the table. An existing schema is kept.
    pub(super) fn insert(&mut self, name: String, schema: Value) {
        self.done.entry(name).or_insert(schema);
    }

    /// All referenced schemas.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        while let Some(short) = self.pending.pop() {
            let name = published_name(short);
            let mut schema = match Leaf::named(short) {
                Some(leaf) => leaf.schema(self.form),
                None => facts::type_named(short).map_or(Value::Null, |ty| self.of_type(ty, &name)),
            };
            if let Value::Object(schema) = &mut schema {
                describe(schema, self.descriptions.of_type(&name));
            }
            self.done.insert(name, schema);
        }
        self.done
    }

    /// The schema of a type with the published name `name`.
    fn of_type(&mut self, ty: &'static Type, name: &str) -> Value {
        let mut schema = Map::new();
        if !ty.any {
            schema.insert("type".to_owned(), "object".into());
        }
        if !ty.fields.is_empty() {
            let texts = self.descriptions;
            let property = |field: &Field| {
                let text = texts.of_field(name, field.name);
                (field.name.to_owned(), self.property(ty, field, text))
            };
            let properties = ty.fields.iter().map(property).collect();
            schema.insert("properties".to_owned(), Value::Object(properties));
            let required: Vec<_> = ty.fields.iter().filter(|f| f.required).map(|f| f.name).collect();
            if !required.is_empty() {
                schema.insert("required".to_owned(), required.into());
            }
        }
        if let Some(kinds) = self.kinds(ty) {
            schema.insert("x-kubernetes-group-version-kind".to_owned(), kinds);
        }
        if ty.atomic {
            schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
        }
        if let Some(unions) = ty.unions.and_then(|text| serde_json::from_str(text).ok()) {
            schema.insert("x-kubernetes-unions".to_owned(), unions);
        }
        Value::Object(schema)
    }

    fn kinds(&self, ty: &Type) -> Option<Value> {
        let kind = ty.name.rsplit('.').next().unwrap_or_default();
        let (group, version) = ty.kind_of?.split_once('/')?;
        Some(match ty.name {
            "meta.v1.DeleteOptions" | "meta.v1.WatchEvent" => self.cross_registered.kinds(kind),
            _ => json!([{ "group": group, "version": version, "kind": kind }]),
        })
    }

    fn property(&mut self, ty: &Type, field: &Field, text: Option<&str>) -> Value {
        let mut schema = self.of_field(&field.ty);
        let values = match extra(ty, field).and_then(|mark| mark.strip_prefix("enum\t")) {
            Some(values) => values.split('|').collect(),
            None => field.enum_values.to_vec(),
        };
        if !values.is_empty() {
            enumerate(&mut schema, &values);
        }
        // The description does not list the enum values of list elements.
        let has_enum = schema.contains_key("enum");
        let text =
            text.map(|text| if has_enum { with_values(text, &values).into() } else { Cow::Borrowed(text) });
        describe(&mut schema, text.as_deref());
        if self.form == Form::V3
            && let Some(default) = default_of(ty, field)
        {
            schema.insert("default".to_owned(), default);
        }
        merge_marks(&mut schema, field);
        patch_marks(&mut schema, field.patch);
        self.form.settle(schema)
    }

    fn of_field(&mut self, ty: &FieldType) -> Map<String, Value> {
        let leaf = |ty: &str, format: &str| {
            let mut schema = Map::from_iter([("type".to_owned(), ty.into())]);
            if !format.is_empty() {
                schema.insert("format".to_owned(), format.into());
            }
            schema
        };
        match ty {
            FieldType::String => leaf("string", ""),
            FieldType::Bool => leaf("boolean", ""),
            FieldType::Int32 => leaf("integer", "int32"),
            FieldType::Int64 => leaf("integer", "int64"),
            FieldType::Number => leaf("number", "double"),
            FieldType::Bytes => leaf("string", "byte"),
            FieldType::Quantity => self.refer_type(Leaf::Quantity.short()),
            FieldType::IntOrString => self.refer_type(Leaf::IntOrString.short()),
            FieldType::Time => self.refer_type(Leaf::Time.short()),
            FieldType::MicroTime => self.refer_type(Leaf::MicroTime.short()),
            FieldType::FieldsV1 => self.refer_type(Leaf::FieldsV1.short()),
            FieldType::Raw => self.refer_type(Leaf::Raw.short()),
            FieldType::Json => self.refer_type(Leaf::Json.short()),
            FieldType::Object(of) => self.refer_type(of.name()),
            FieldType::List(of) => {
                let mut schema = leaf("array", "");
                schema.insert("items".to_owned(), self.of_element(of));
                schema
            }
            FieldType::Map(of) => {
                let mut schema = leaf("object", "");
                schema.insert("additionalProperties".to_owned(), self.of_element(of));
                schema
            }
        }
    }

    fn of_element(&mut self, ty: &FieldType) -> Value {
        let mut schema = self.of_field(ty);
        if self.form == Form::V3
            && let Some(default) = zero(ty)
        {
            schema.insert("default".to_owned(), default);
        }
        self.form.settle(schema)
    }
}

/// Sets the description. Without a text there is no `description`.
pub(super) fn describe(schema: &mut Map<String, Value>, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        schema.insert("description".to_owned(), text.into());
    }
}

/// Appends the enum values to the description, as upstream does. Their meanings are not included.
fn with_values(text: &str, values: &[&str]) -> String {
    let mut text = format!("{text}\n\nPossible enum values:");
    for value in values {
        text.extend(["\n - `\"", value, "\"`"]);
    }
    text
}

/// Sets the enum, on the element schema of a list or map.
fn enumerate(schema: &mut Map<String, Value>, values: &[&str]) {
    let element = if schema.contains_key("items") { "items" } else { "additionalProperties" };
    let holder = match schema.get_mut(element) {
        Some(Value::Object(element)) => element,
        _ => schema,
    };
    holder.insert("enum".to_owned(), values.into());
}

fn merge_marks(schema: &mut Map<String, Value>, field: &Field) {
    // Bytes are a list in Go.
    let list = matches!(field.ty, FieldType::List(_) | FieldType::Bytes);
    let (mark, value) = match (&field.merge, list) {
        (Merge::Unset, _) => return,
        (Merge::Atomic, true) => ("x-kubernetes-list-type", "atomic"),
        (Merge::Atomic, false) => ("x-kubernetes-map-type", "atomic"),
        (Merge::Granular, _) => ("x-kubernetes-map-type", "granular"),
        (Merge::Set, _) => ("x-kubernetes-list-type", "set"),
        (Merge::Map(keys), _) => {
            schema.insert("x-kubernetes-list-map-keys".to_owned(), keys.as_ref().into());
            ("x-kubernetes-list-type", "map")
        }
    };
    schema.insert(mark.to_owned(), value.into());
}

fn patch_marks(schema: &mut Map<String, Value>, patch: Patch) {
    let strategy = match patch {
        Patch { merge: true, retain_keys: true, .. } => "merge,retainKeys",
        Patch { merge: true, .. } => "merge",
        Patch { retain_keys: true, .. } => "retainKeys",
        Patch { replace: true, .. } => "replace",
        Patch { .. } => return,
    };
    schema.insert("x-kubernetes-patch-strategy".to_owned(), strategy.into());
    if let Some(key) = patch.key {
        schema.insert("x-kubernetes-patch-merge-key".to_owned(), key.into());
    }
}

/// The content of `openapi.txt`: entries by type and field, sorted.
static EXTRA: LazyLock<Vec<((&str, &str), &str)>> = LazyLock::new(|| {
    let lines = include_str!("../../facts/openapi.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (ty, rest) = line.split_once('\t')?;
            let (field, mark) = rest.split_once('\t')?;
            Some(((ty, field), mark))
        })
        .collect()
});

fn extra(ty: &Type, field: &Field) -> Option<&'static str> {
    let at = EXTRA.binary_search_by_key(&(ty.name, field.name), |(key, _)| *key).ok()?;
    Some(EXTRA[at].1)
}

/// The published default: that of the table, or the zero value if Go always writes the field.
fn default_of(ty: &Type, field: &Field) -> Option<Value> {
    if let Some(text) = field.default {
        return serde_json::from_str(text).ok();
    }
    let stated = || extra(ty, field) == Some("zero");
    ((field.always && !field.pointer) || stated()).then(|| zero(&field.ty)).flatten()
}

/// Go's zero value of scalars and structs. Types with custom JSON have none.
fn zero(ty: &FieldType) -> Option<Value> {
    match ty {
        FieldType::String => Some("".into()),
        FieldType::Bool => Some(false.into()),
        FieldType::Int32 | FieldType::Int64 | FieldType::Number => Some(0.into()),
        FieldType::Object(of) if !of.get().any => Some(Value::Object(Map::new())),
        _ => None,
    }
}

/// Types that are letters in the table and separate schemas in a document.
#[derive(Clone, Copy)]
enum Leaf {
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    FieldsV1,
    Raw,
    Json,
}

impl Leaf {
    const ALL: [Self; 7] = [
        Self::Quantity,
        Self::IntOrString,
        Self::Time,
        Self::MicroTime,
        Self::FieldsV1,
        Self::Raw,
        Self::Json,
    ];

    fn short(self) -> &'static str {
        match self {
            Self::Quantity => "api.resource.Quantity",
            Self::IntOrString => "util.intstr.IntOrString",
            Self::Time => "meta.v1.Time",
            Self::MicroTime => "meta.v1.MicroTime",
            Self::FieldsV1 => "meta.v1.FieldsV1",
            Self::Raw => "runtime.RawExtension",
            Self::Json => "apiextensions.v1.JSON",
        }
    }

    fn named(short: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|leaf| leaf.short() == short)
    }

    fn schema(self, form: Form) -> Value {
        match (self, form) {
            (Self::Quantity, Form::V3) => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
            (Self::Quantity, Form::V2) => json!({ "type": "string" }),
            (Self::IntOrString, Form::V3) => {
                json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
            }
            (Self::IntOrString, Form::V2) => json!({ "format": "int-or-string", "type": "string" }),
            (Self::Time | Self::MicroTime, _) => json!({ "format": "date-time", "type": "string" }),
            (Self::FieldsV1 | Self::Raw, _) => json!({ "type": "object" }),
            (Self::Json, _) => json!({}),
        }
    }
}

/// The published name of a type in the table, such as `io.k8s.api.core.v1.Pod`.
fn published_name(short: &str) -> String {
    let prefix = match short.split('.').next().unwrap_or_default() {
        "meta" => "io.k8s.apimachinery.pkg.apis.",
        "api" | "runtime" | "util" | "version" => "io.k8s.apimachinery.pkg.",
        "apiextensions" => "io.k8s.apiextensions-apiserver.pkg.apis.",
        "apiregistration" => "io.k8s.kube-aggregator.pkg.apis.",
        _ => "io.k8s.api.",
    };
    format!("{prefix}{short}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::NoDescriptions;

    fn schemas(form: Form, short: &'static str) -> Map<String, Value> {
        let mut schemas = Schemas::new(form, CrossRegistered::Everywhere, &NoDescriptions);
        schemas.refer_type(short);
        schemas.finish()
    }

    #[test]
    fn a_document_contains_exactly_the_referenced_schemas() {
        let names: Vec<_> = schemas(Form::V3, "core.v1.ConfigMap").keys().cloned().collect();
        assert_eq!(
            names,
            [
                "io.k8s.api.core.v1.ConfigMap",
                "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
                "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
                "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
                "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
                "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
            ]
        );
    }

    #[test]
    fn a_recursive_type_is_published_once() {
        let schemas = schemas(Form::V3, "apiextensions.v1.JSONSchemaProps");
        assert!(schemas.values().all(Value::is_object));
    }

    #[test]
    fn references_have_siblings_in_v2_and_move_into_all_of_in_v3() {
        let strategy = |form, short| {
            let spec = schemas(form, "apps.v1.DeploymentSpec");
            spec[short]["properties"]["strategy"].clone()
        };
        assert_eq!(
            strategy(Form::V3, "io.k8s.api.apps.v1.DeploymentSpec"),
            json!({
                "allOf": [{ "$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy" }],
                "default": {}, "x-kubernetes-patch-strategy": "retainKeys",
            })
        );
        assert_eq!(
            strategy(Form::V2, "io.k8s.api.apps.v1.DeploymentSpec"),
            json!({
                "$ref": "#/definitions/io.k8s.api.apps.v1.DeploymentStrategy",
                "x-kubernetes-patch-strategy": "retainKeys",
            })
        );
    }

    #[test]
    fn openapi_txt_is_sorted_and_refers_to_existing_fields() {
        assert!(EXTRA.is_sorted_by(|a, b| a.0 < b.0));
        for ((ty, field), mark) in EXTRA.iter() {
            let found = facts::type_named(ty).and_then(|ty| ty.field(field));
            let found = found.unwrap_or_else(|| panic!("{ty}.{field}"));
            assert!(*mark == "zero" && found.default.is_none() || mark.starts_with("enum\t"), "{ty}.{field}");
        }
    }

    #[test]
    fn the_enum_of_a_list_is_set_on_its_elements() {
        let spec = schemas(Form::V3, "networking.v1.NetworkPolicySpec");
        let types = &spec["io.k8s.api.networking.v1.NetworkPolicySpec"]["properties"]["policyTypes"];
        assert_eq!(types["items"], json!({ "type": "string", "default": "", "enum": ["Egress", "Ingress"] }));
        assert!(types.get("enum").is_none());
    }
}
