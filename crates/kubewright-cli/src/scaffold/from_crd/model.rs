//! Converts schemas to Rust types, together with the schema that the types produce.
//!
//! Both are created in one pass, so that they cannot diverge. What a type cannot express is reported with its
//! path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::item::{Enum, Field, Item, Presence, Struct, tidy};
use super::marks::{Mark, marks};
use super::shared::{self, Key};
use super::{idents, known};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// The pattern that distinguishes a Quantity from other int-or-string fields.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The types of a kind.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) items: Vec<Item>,
    /// Imported types, with their modules.
    pub(super) uses: BTreeSet<String>,
    /// What cannot be expressed, with its path.
    pub(super) lost: Vec<String>,
    names: BTreeSet<String>,
    kind: String,
    /// Names of types shared by several fields.
    shared: BTreeMap<Key, String>,
    /// Shared types that are generated already.
    made: BTreeMap<Key, Typed>,
    /// Documentation of the next type.
    doc: Option<String>,
}

/// The type of a value.
#[derive(Clone, Debug)]
struct Typed {
    rust: String,
    said: Map<String, Value>,
    marks: Vec<Mark>,
    has_default: bool,
    /// Whether it is a generated type, which can have a doc comment.
    named: bool,
}

impl Typed {
    fn new(rust: &str, said: &Value) -> Self {
        let said = said.as_object().cloned().unwrap_or_default();
        Self { rust: rust.to_owned(), said, marks: Vec::new(), has_default: true, named: false }
    }
}

impl Model {
    /// Creates a model for a kind, reserving its type names.
    pub(super) fn new(kind: &str) -> Self {
        let own = ["", "Spec", "Status", "List"].map(|end| format!("{kind}{end}"));
        Self { names: own.into_iter().collect(), kind: kind.to_owned(), ..Self::default() }
    }

    /// Names the types that occur more than once in spec and status.
    pub(super) fn share(&mut self, schemas: &[&Value]) {
        for (key, end) in shared::find(schemas) {
            let name = idents::unique(format!("{}{end}", self.kind), "", &mut self.names);
            self.shared.insert(key, name);
        }
    }

    /// Generates a type, or returns the shared one of another field.
    fn named(
        &mut self,
        schema: &Map<String, Value>,
        prefix: &str,
        doc: Option<&str>,
        make: impl FnOnce(&mut Self, &str) -> Typed,
    ) -> Typed {
        let key = shared::key(schema, doc);
        if let Some(known) = self.made.get(&key) {
            return known.clone();
        }
        let Some(name) = self.shared.get(&key).cloned() else {
            let name = idents::unique(prefix.to_owned(), "", &mut self.names);
            return make(self, &name);
        };
        let typed = make(self, &name);
        self.made.insert(key, typed.clone());
        typed
    }

    /// Generates the struct of an object under a fixed name. Returns the resulting schema.
    pub(super) fn root(
        &mut self,
        schema: &Map<String, Value>,
        name: &str,
        prefix: &str,
        path: &str,
    ) -> Map<String, Value> {
        let at = self.items.len();
        let mut said = self.object(schema, name, prefix, path).said;
        if let (Item::Struct(made), Some(Value::String(text))) =
            (&mut self.items[at], schema.get("description"))
        {
            let text = tidy(text);
            said.insert("description".to_owned(), text.clone().into());
            made.doc = Some(text);
        }
        said
    }

    /// Finds a generated struct.
    pub(super) fn find(&self, name: &str) -> Option<&Struct> {
        self.items.iter().find_map(|item| match item {
            Item::Struct(found) if found.name == name => Some(found),
            _ => None,
        })
    }

    fn lose(&mut self, path: &str, what: &str) {
        self.lost.push(format!("{what} of {path}"));
    }

    /// Generates the type of a value. `prefix` plus a field name is the name of a nested type.
    fn value(&mut self, schema: &Value, prefix: &str, path: &str) -> Typed {
        let empty = Map::new();
        let schema = schema.as_object().unwrap_or(&empty);
        let doc = self.doc.take();
        let is_on = |key: &str| schema.get(key) == Some(&Value::Bool(true));
        if let Some(known) = known::find(schema) {
            let rust = self.import(known.module, known.name);
            let mut typed = Typed { said: known.schema.clone(), ..Typed::new(&rust, &Value::Null) };
            for key in ["nullable", "default", "description"] {
                typed.said.remove(key);
            }
            if let Some(about) = known.schema.get("description") {
                typed.said.insert("description".to_owned(), about.clone());
            }
            return typed;
        }
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        if is_on(INT_OR_STRING) {
            return self.int_or_string(schema, path);
        }
        let (mut typed, form): (Typed, &[&str]) = match (text("type"), text("format")) {
            ("string", _) if is_enum(schema) => {
                let make = |model: &mut Self, name: &str| model.enumeration(schema, name, path);
                (self.named(schema, prefix, doc.as_deref(), make), &["enum"])
            }
            ("string", "date-time") => {
                let time = self.import("k8s_openapi::apimachinery::pkg::apis::meta::v1", "Time");
                let typed = Typed::new(&time, &json!({ "type": "string", "format": "date-time" }));
                (Typed { has_default: false, ..typed }, &["format"])
            }
            ("string", _) => (Typed::new("String", &json!({ "type": "string" })), &[]),
            ("boolean", _) => (Typed::new("bool", &json!({ "type": "boolean" })), &[]),
            ("integer", "int32") => {
                (Typed::new("i32", &json!({ "type": "integer", "format": "int32" })), &["format"])
            }
            ("integer", _) => {
                (Typed::new("i64", &json!({ "type": "integer", "format": "int64" })), &["format"])
            }
            ("number", "float") => {
                (Typed::new("f32", &json!({ "type": "number", "format": "float" })), &["format"])
            }
            ("number", _) => {
                (Typed::new("f64", &json!({ "type": "number", "format": "double" })), &["format"])
            }
            ("array", _) => (self.list(schema, prefix, path), &["items", "uniqueItems"]),
            ("object", _) if schema.contains_key("additionalProperties") => {
                (self.map(schema, prefix, path), &["additionalProperties"])
            }
            ("object", _) if !schema.contains_key("properties") && (is_on(PRESERVE) || is_on(EMBEDDED)) => {
                (self.any_object(is_on(EMBEDDED)), &[PRESERVE, EMBEDDED])
            }
            ("object", _) if !schema.contains_key("properties") && path.ends_with(".metadata") => {
                let meta = self.import("k8s_openapi::apimachinery::pkg::apis::meta::v1", "ObjectMeta");
                (Typed::new(&meta, &json!({ "type": "object" })), &[])
            }
            ("object", _) => {
                let make = |model: &mut Self, name: &str| model.object(schema, name, name, path);
                return self.named(schema, prefix, doc.as_deref(), make);
            }
            _ if schema.contains_key("properties") => {
                let make = |model: &mut Self, name: &str| model.object(schema, name, name, path);
                return self.named(schema, prefix, doc.as_deref(), make);
            }
            _ => (Typed::new("serde_json::Value", &json!({ PRESERVE: true })), &[PRESERVE]),
        };
        self.mark(&mut typed, schema, form, path);
        typed
    }

    /// Adds attributes for keywords that the type does not express.
    fn mark(&mut self, typed: &mut Typed, schema: &Map<String, Value>, form: &[&str], path: &str) {
        let form: Vec<&str> = form.iter().copied().chain(["type"]).collect();
        let made = marks(schema, &form);
        typed.marks.extend(made.marks);
        typed.said.extend(made.said);
        for key in made.lost {
            self.lose(path, &key);
        }
    }

    /// Imports a type. The name is qualified if a generated type could have the same name.
    fn import(&mut self, module: &str, name: &str) -> String {
        let path = format!("{module}::{name}");
        if name.starts_with(&self.kind) {
            return path;
        }
        self.uses.insert(path);
        name.to_owned()
    }

    fn int_or_string(&mut self, schema: &Map<String, Value>, path: &str) -> Typed {
        let mut said = json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }], INT_OR_STRING: true });
        if schema.get("pattern").is_some_and(|pattern| pattern == QUANTITY) {
            said["pattern"] = QUANTITY.into();
            let rust = self.import("k8s_openapi::apimachinery::pkg::api::resource", "Quantity");
            let mut typed = Typed::new(&rust, &said);
            self.mark(&mut typed, schema, &["anyOf", "allOf", "pattern", INT_OR_STRING], path);
            return typed;
        }
        let rust = self.import("k8s_openapi::apimachinery::pkg::util::intstr", "IntOrString");
        let mut typed = Typed::new(&rust, &said);
        self.mark(&mut typed, schema, &["anyOf", "allOf", INT_OR_STRING], path);
        typed
    }

    fn any_object(&mut self, embedded: bool) -> Typed {
        self.uses.insert("std::collections::BTreeMap".to_owned());
        let mut typed =
            Typed::new("BTreeMap<String, serde_json::Value>", &json!({ "type": "object", PRESERVE: true }));
        let marker = if embedded { "embedded_resource()" } else { "any()" };
        if embedded {
            typed.said.insert(EMBEDDED.to_owned(), true.into());
        }
        typed.marks.push(Mark::Marker(marker.to_owned()));
        typed
    }

    fn list(&mut self, schema: &Map<String, Value>, prefix: &str, path: &str) -> Typed {
        let items = schema.get("items").unwrap_or(&Value::Null);
        let items = self.inner(items, &idents::singular(prefix), &format!("{path}[]"), "items");
        Typed {
            rust: format!("Vec<{}>", items.rust),
            said: Map::from_iter([
                ("type".to_owned(), "array".into()),
                ("items".to_owned(), items.said.into()),
            ]),
            marks: items.marks,
            has_default: true,
            named: false,
        }
    }

    fn map(&mut self, schema: &Map<String, Value>, prefix: &str, path: &str) -> Typed {
        self.uses.insert("std::collections::BTreeMap".to_owned());
        let values = schema.get("additionalProperties").unwrap_or(&Value::Null);
        let values = self.inner(values, &idents::singular(prefix), &format!("{path}[*]"), "values");
        Typed {
            rust: format!("BTreeMap<String, {}>", values.rust),
            said: Map::from_iter([
                ("type".to_owned(), "object".into()),
                ("additionalProperties".to_owned(), values.said.into()),
            ]),
            marks: values.marks,
            has_default: true,
            named: false,
        }
    }

    /// The type of list items or map values. Their attributes go to the field.
    fn inner(&mut self, schema: &Value, prefix: &str, path: &str, wrapper: &str) -> Typed {
        let at = self.items.len();
        self.doc = schema.get("description").and_then(Value::as_str).map(str::to_owned);
        let mut typed = self.value(schema, prefix, path);
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            typed.rust = format!("Option<{}>", typed.rust);
            typed.marks.push(Mark::Marker("nullable()".to_owned()));
            typed.said.insert("nullable".to_owned(), true.into());
        }
        let mut marks = Vec::new();
        for mark in std::mem::take(&mut typed.marks) {
            match mark.within(wrapper) {
                Ok(mark) => marks.push(mark),
                Err(key) => {
                    typed.said.remove(&key);
                    self.lose(path, &key);
                }
            }
        }
        typed.marks = marks;
        if schema.get("default").is_some() {
            self.lose(path, "default");
        }
        if let (true, Some(text)) = (typed.named, schema.get("description").and_then(Value::as_str)) {
            let text = tidy(text);
            typed.said.insert("description".to_owned(), text.clone().into());
            // A shared type already has its documentation.
            match self.items.get_mut(at) {
                Some(Item::Struct(made)) => made.doc = Some(text),
                Some(Item::Enum(made)) => made.doc = Some(text),
                None => {}
            }
        }
        typed
    }

    fn enumeration(&mut self, schema: &Map<String, Value>, name: &str, path: &str) -> Typed {
        let values = schema.get("enum").and_then(Value::as_array);
        let values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
        let mut taken = BTreeSet::new();
        let variants = values
            .iter()
            .map(|value| (idents::unique(idents::part(value), "", &mut taken), (*value).to_owned()))
            .collect();
        let made = Enum { name: name.to_owned(), path: path.to_owned(), doc: None, variants };
        self.items.push(Item::Enum(made));
        let typed = Typed::new(name, &json!({ "type": "string", "enum": values }));
        Typed { has_default: false, named: true, ..typed }
    }

    /// Generates a struct. `prefix` starts the names of nested types.
    fn object(&mut self, schema: &Map<String, Value>, name: &str, prefix: &str, path: &str) -> Typed {
        let name = name.to_owned();
        let at = self.items.len();
        // Reserve the position: types of fields come after it.
        self.items.push(Item::Struct(Struct::default()));
        let open = schema.get(PRESERVE) == Some(&Value::Bool(true));
        let mut typed = Typed { named: true, ..Typed::new(&name, &json!({ "type": "object" })) };
        self.mark(&mut typed, schema, &["properties", "required", PRESERVE], path);
        let mut made = Struct {
            name,
            path: path.to_owned(),
            doc: None,
            marks: std::mem::take(&mut typed.marks),
            fields: Vec::new(),
            open,
            has_default: true,
        };
        let required: BTreeSet<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut taken = BTreeSet::from(["other".to_owned()]);
        if !open {
            taken.clear();
        }
        let (mut properties, mut always) = (Map::new(), Vec::new());
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("{path}.{name}");
            let ident = idents::field(name, &mut taken);
            let (field, said) =
                self.field(name, ident, field, required.contains(name.as_str()), prefix, &path);
            if matches!(field.presence, Presence::Always | Presence::OrNull) {
                always.push(name.as_str());
            }
            made.has_default &= field.has_default();
            properties.insert(name.clone(), said.into());
            made.fields.push(field);
        }
        if open {
            self.uses.insert("std::collections::BTreeMap".to_owned());
            typed.said.insert(PRESERVE.to_owned(), true.into());
        }
        for name in required.iter().filter(|name| !properties.contains_key(**name)) {
            self.lose(path, &format!("undefined required field {name}"));
        }
        if !properties.is_empty() {
            typed.said.insert("properties".to_owned(), properties.into());
        }
        if !always.is_empty() {
            always.sort_unstable();
            typed.said.insert("required".to_owned(), always.into());
        }
        typed.has_default = made.has_default;
        self.items[at] = Item::Struct(made);
        typed
    }

    fn field(
        &mut self,
        name: &str,
        ident: String,
        schema: &Value,
        required: bool,
        prefix: &str,
        path: &str,
    ) -> (Field, Map<String, Value>) {
        let type_name = format!("{prefix}{}", idents::part(name));
        let mut typed = self.value(schema, &type_name, path);
        let doc = schema.get("description").and_then(Value::as_str).map(tidy).filter(|doc| !doc.is_empty());
        if let Some(doc) = &doc {
            typed.said.insert("description".to_owned(), doc.clone().into());
        }
        let nullable = schema.get("nullable") == Some(&Value::Bool(true));
        if nullable {
            typed.marks.push(Mark::Marker("nullable()".to_owned()));
            typed.said.insert("nullable".to_owned(), true.into());
        }
        let default = schema.get("default").filter(|default| !default.is_null());
        let expression =
            default.filter(|_| !required && !nullable).and_then(|value| self.expression(&typed, value));
        let presence = match expression {
            Some(expression) => Presence::Otherwise(expression),
            None if required && nullable => Presence::OrNull,
            None if required => Presence::Always,
            None if typed.rust == "Vec<Condition>" && !nullable && default.is_none() => Presence::List,
            None => Presence::Maybe,
        };
        if let Some(default) = default {
            typed.said.insert("default".to_owned(), default.clone());
            if !matches!(presence, Presence::Otherwise(_)) {
                typed.marks.push(Mark::Keyword("default".to_owned(), default.clone()));
            }
        }
        let field = Field {
            ident,
            name: name.to_owned(),
            doc,
            rust: typed.rust,
            presence,
            marks: typed.marks,
            type_has_default: typed.has_default,
        };
        (field, typed.said)
    }

    /// A default as a Rust expression, for simple types.
    fn expression(&self, typed: &Typed, value: &Value) -> Option<String> {
        match (typed.rust.as_str(), value) {
            ("String", Value::String(text)) => Some(format!("{text:?}.to_owned()")),
            ("bool", Value::Bool(value)) => Some(value.to_string()),
            ("i32" | "i64", Value::Number(number)) if number.is_i64() => Some(number.to_string()),
            ("f32" | "f64", Value::Number(number)) => Some(format!("{:?}", number.as_f64()?)),
            (name, Value::String(text)) => self.items.iter().find_map(|item| match item {
                Item::Enum(made) if made.name == name => {
                    let variant = made.variants.iter().find(|(_, value)| value == text);
                    variant.map(|(variant, _)| format!("{name}::{variant}"))
                }
                _ => None,
            }),
            _ => None,
        }
    }
}

fn is_enum(schema: &Map<String, Value>) -> bool {
    schema
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_string))
}
