//! The schema of a custom resource, compiled for server-side apply.
//!
//! Keeps the parts of a structural schema that affect ownership: types, list types, list map keys with their
//! defaults, map types, and where unknown fields are allowed. Compile it once per version of a CRD.

use std::sync::LazyLock;

use serde_json::Value;

use super::schema::{Atom, Fields, Keys, List, Map, Relation, Scalar, Ty};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::types::{self, Merge, Type};

static OBJECT_META: LazyLock<Option<&'static Type>> =
    LazyLock::new(|| types::type_named("meta.v1.ObjectMeta"));

/// A compiled schema.
#[derive(Debug)]
pub struct Structural {
    root: Node,
}

impl Structural {
    /// Compiles `openAPIV3Schema`, which must be structural. `preserve_unknown_fields` is
    /// `spec.preserveUnknownFields` of the CRD.
    pub fn compile(schema: &Value, preserve_unknown_fields: bool) -> Self {
        let preserve = preserve_unknown_fields || schema.bool_at("x-kubernetes-preserve-unknown-fields");
        Self { root: Node { map: Some(Box::new(compile_map(schema, preserve, true))), ..Node::default() } }
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }
}

/// The possible shapes of a value.
#[derive(Debug, Default)]
pub(crate) struct Node {
    scalar: Option<Scalar>,
    list: Option<Box<ListNode>>,
    map: Option<Box<MapNode>>,
}

#[derive(Debug)]
struct ListNode {
    element: Ref,
    /// `None`: atomic. Empty: a set.
    keys: Option<Box<[Box<str>]>>,
}

#[derive(Debug)]
pub(crate) struct MapNode {
    /// Sorted by name.
    fields: Vec<(Box<str>, Property)>,
    element: Option<Ref>,
    atomic: bool,
}

#[derive(Debug)]
pub(crate) struct Property {
    ty: Ref,
    pub(crate) default: Option<Value>,
}

#[derive(Debug)]
enum Ref {
    Deduced,
    Untyped,
    ObjectMeta,
    Node(Node),
}

impl Node {
    pub(crate) fn atom(&self) -> Atom<'_> {
        Atom {
            scalar: self.scalar,
            list: self.list.as_deref().map(|list| List {
                element: list.element.ty(),
                relation: match list.keys.as_deref() {
                    None => Relation::Atomic,
                    Some([]) => Relation::Set,
                    Some(keys) => Relation::Keys(Keys::Owned(keys)),
                },
            }),
            map: self.map.as_deref().map(|map| Map {
                fields: if map.fields.is_empty() { Fields::None } else { Fields::Custom(map) },
                element: map.element.as_ref().map(Ref::ty),
                atomic: map.atomic,
            }),
        }
    }
}

impl MapNode {
    pub(crate) fn field(&self, name: &str) -> Option<&Property> {
        let at = self.fields.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        Some(&self.fields[at].1)
    }

    fn set_field(&mut self, name: &str, ty: Ref) {
        let property = Property { ty, default: None };
        match self.fields.binary_search_by(|(own, _)| (**own).cmp(name)) {
            Ok(at) => self.fields[at].1 = property,
            Err(at) => self.fields.insert(at, (name.into(), property)),
        }
    }

    /// Adds `apiVersion`, `kind` and `metadata`, which every object has.
    fn add_object_fields(&mut self) {
        let text = || Ref::Node(Node { scalar: Some(Scalar::String), ..Node::default() });
        self.set_field("apiVersion", text());
        self.set_field("kind", text());
        self.set_field("metadata", Ref::ObjectMeta);
    }
}

impl Property {
    pub(crate) fn ty(&self) -> Ty<'_> {
        self.ty.ty()
    }
}

impl Ref {
    fn ty(&self) -> Ty<'_> {
        match self {
            Self::Deduced => Ty::Deduced,
            Self::Untyped => Ty::Untyped,
            Self::ObjectMeta => match *OBJECT_META {
                Some(ty) => Ty::Object { ty, merge: &Merge::Unset },
                None => Ty::Deduced,
            },
            Self::Node(node) => Ty::Custom(node),
        }
    }
}

/// `preserve` is inherited: all fields below an object that preserves unknown fields do too.
fn compile(schema: &Value, preserve: bool) -> Node {
    let preserve = preserve || schema.bool_at("x-kubernetes-preserve-unknown-fields");
    let embedded = schema.bool_at("x-kubernetes-embedded-resource");
    match schema.str_at("type") {
        "" => Node {
            scalar: Some(Scalar::Untyped),
            list: Some(Box::new(compile_list(schema, preserve))),
            map: Some(Box::new(compile_map(schema, preserve, embedded))),
        },
        "object" => Node { map: Some(Box::new(compile_map(schema, preserve, embedded))), ..Node::default() },
        "array" => Node { list: Some(Box::new(compile_list(schema, preserve))), ..Node::default() },
        "integer" | "number" => Node { scalar: Some(Scalar::Numeric), ..Node::default() },
        "boolean" => Node { scalar: Some(Scalar::Boolean), ..Node::default() },
        "string" if matches!(schema.str_at("format"), "" | "byte") => {
            Node { scalar: Some(Scalar::String), ..Node::default() }
        }
        _ => Node { scalar: Some(Scalar::Untyped), ..Node::default() },
    }
}

fn compile_list(schema: &Value, preserve: bool) -> ListNode {
    let keys = match schema.str_at("x-kubernetes-list-type") {
        "set" => Some(Box::default()),
        "map" => Some(
            schema
                .list_at("x-kubernetes-list-map-keys")
                .iter()
                .filter_map(|key| key.as_str().map(Box::from))
                .collect(),
        ),
        _ => None,
    };
    let element = match schema.at("items") {
        Value::Object(_) => Ref::Node(compile(schema.at("items"), preserve)),
        _ => Ref::Untyped,
    };
    ListNode { element, keys }
}

/// `resource`: the object has `apiVersion`, `kind` and `metadata` even if undeclared.
fn compile_map(schema: &Value, preserve: bool, resource: bool) -> MapNode {
    let properties = schema.map_at("properties");
    let mut fields: Vec<(Box<str>, Property)> = properties
        .iter()
        .map(|(name, schema)| {
            let default = Some(schema.at("default")).filter(|value| !value.is_null()).cloned();
            (name.as_str().into(), Property { ty: Ref::Node(compile(schema, preserve)), default })
        })
        .collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    let element = match schema.at("additionalProperties") {
        below @ Value::Object(_) => Some(Ref::Node(compile(below, preserve))),
        Value::Bool(allowed) => allowed.then_some(Ref::Deduced),
        _ => (preserve || (properties.is_empty() && !resource)).then_some(Ref::Deduced),
    };
    let mut map = MapNode { fields, element, atomic: schema.str_at("x-kubernetes-map-type") == "atomic" };
    if resource {
        map.add_object_fields();
    }
    map
}
