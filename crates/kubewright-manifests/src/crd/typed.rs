//! Generates the CRD of a Rust type.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::crd::v1::CustomResourceExt;
use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use super::inline::Definitions;
use super::structural::{self, Found};
use super::{Options, nulls, validators};
use crate::declare::{Declared, Item, Kind};
use crate::lint::{Finding, Level};

/// The CRD of a type and its findings.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// A CustomResourceDefinition with one version.
    pub definition: Value,
    /// Findings about the schema. If one is an error, do not use the CRD.
    pub findings: Vec<Finding>,
}

impl Described {
    /// The CRD as a type of k8s-openapi.
    pub fn to_typed(&self) -> Result<CustomResourceDefinition, serde_json::Error> {
        serde_json::from_value(self.definition.clone())
    }

    /// Whether a cluster would reject the CRD or drop parts of it.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Error)
    }
}

/// Generates the CRD of a kind.
pub fn of<T: CustomResourceExt + JsonSchema>() -> Described {
    with::<T>(Options::default())
}

/// Like [`of`], with options.
pub fn with<T: CustomResourceExt + JsonSchema>(options: Options) -> Described {
    let mut found = Vec::new();
    let generated = Generated {
        read: generate::<T>(Contract::Deserialize, false),
        written: generate::<T>(Contract::Serialize, false),
        inlined: generate::<T>(Contract::Deserialize, true).root,
    };
    let (schema, tagged) = schema(generated, options, &mut found);
    let mut definition = quietly(|| T::crd()).map_or_else(
        |panic| {
            // An enum problem is the cause and already reported with its path.
            if !found.iter().any(|known| known.code == "KW105") {
                found.extend(kube_panicked(&panic, tagged));
            }
            bare::<T>()
        },
        |crd| serde_json::to_value(crd).unwrap_or_default(),
    );
    let kind = definition.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default();
    definition["spec"]["names"]["listKind"] = format!("{kind}List").into();
    definition["spec"]["versions"][0]["schema"] = json!({ "openAPIV3Schema": schema });
    let findings = found.into_iter().map(finding).collect();
    Described { definition, findings }
}

/// A version of a kind for [`merge`](super::merge()). `item` is the source location of its findings.
pub fn kind<T: CustomResourceExt + JsonSchema>(item: Item) -> Kind {
    let Described { definition, mut findings } = of::<T>();
    for finding in &mut findings {
        finding.item = item.clone();
    }
    Kind { item, definition, findings }
}

/// The declaration that [`crds!`](crate::crds) registers.
pub fn declared<T: CustomResourceExt + JsonSchema>(item: Item) -> Declared {
    Declared::Kind(kind::<T>(item))
}

/// Declares kinds, so that `kubewright manifests` writes their CRDs:
///
/// ```
/// # mod api { pub mod v1 {
/// # use kube::CustomResource;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
/// # #[kube(group = "example.com", version = "v1", kind = "Book", namespaced)]
/// # pub struct BookSpec { pages: i32 }
/// # }}
/// kubewright_manifests::crds!(api::v1::Book);
/// # let declared = kubewright_manifests::declare::all();
/// # assert!(declared[0].item().path.ends_with("::api::v1::Book"), "{declared:?}");
/// ```
#[macro_export]
macro_rules! crds {
    ($($kind:path),+ $(,)?) => {$(
        $crate::declare::submit! {
            $crate::declare::Declaration::new(|| {
                $crate::crd::declared::<$kind>($crate::declare::Item {
                    file: ::core::file!().into(),
                    line: ::core::line!(),
                    path: ::core::concat!(::core::module_path!(), "::", ::core::stringify!($kind)).into(),
                })
            })
        }
    )+};
}

/// The schemas of a type from schemars.
struct Generated {
    /// For deserialization. This becomes the CRD schema.
    read: Types,
    /// For serialization.
    written: Types,
    /// For deserialization, with all types inlined.
    inlined: Value,
}

struct Types {
    root: Value,
    others: Map<String, Value>,
}

fn generate<T: JsonSchema>(contract: Contract, inline: bool) -> Types {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.contract = contract;
        settings.inline_subschemas = inline;
    });
    let mut generator = settings.into_generator();
    let root = T::json_schema(&mut generator).to_value();
    Types { root, others: generator.take_definitions(false) }
}

fn schema(generated: Generated, options: Options, found: &mut Vec<Found>) -> (Value, Vec<String>) {
    let Generated { read, written, inlined } = generated;
    let [(mut schema, recursive), (written, _)] = [read, written].map(|types| {
        let mut definitions = Definitions::new(types.others, options);
        let mut root = types.root;
        definitions.follow(&mut root);
        (root, definitions.recursive)
    });
    for name in recursive {
        found.push(Found {
            code: "KW106",
            warning: false,
            field: String::new(),
            message: format!("the type {name} is recursive, which CRD schemas cannot represent"),
            help: "put `#[schemars(transform = schema::any())]` on the recursive field".to_owned(),
        });
    }
    nulls::compare(&schema, &written, "", found);
    let tagged = structural::settle(&mut schema, found);
    validators::copy(&inlined, &mut schema);
    complete_root(&mut schema);
    (schema, tagged)
}

/// Adds `apiVersion`, `kind` and `metadata`.
fn complete_root(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    // kube's default description of a type without documentation.
    if map
        .get("description")
        .and_then(Value::as_str)
        .is_some_and(|text| text.starts_with("Auto-generated derived type"))
    {
        map.remove("description");
    }
    if let Value::Object(properties) = map.entry("properties").or_insert_with(|| json!({})) {
        for (name, description) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            properties.insert(name.to_owned(), json!({ "type": "string", "description": description }));
        }
        properties.insert("metadata".to_owned(), json!({ "type": "object" }));
    }
}

// Upstream's standard descriptions.
const API_VERSION: &str = "\
APIVersion defines the versioned schema of this representation of an object.
Servers should convert recognized schemas to the latest internal value, and
may reject unrecognized values.
More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "\
Kind is a string value representing the REST resource this object represents.
Servers may infer this from the endpoint the client submits requests to.
Cannot be updated.
In CamelCase.
More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

fn finding(found: Found) -> Finding {
    Finding {
        code: found.code.to_owned(),
        level: if found.warning { Level::Warning } else { Level::Error },
        item: Item::default(),
        field: found.field,
        message: found.message,
        help: found.help,
    }
}

/// Findings for a panic of kube's derive. Its columns and subresources are only available together with its
/// schema.
fn kube_panicked(panic: &str, tagged: Vec<String>) -> Vec<Found> {
    let found = |field, message, help: &str| Found {
        code: "KW109",
        warning: false,
        field,
        message,
        help: help.to_owned(),
    };
    if tagged.is_empty() {
        let said = panic.get(..panic.floor_char_boundary(200)).unwrap_or_default();
        let message = format!("kube's derive panics on this kind: {said}");
        // schemars does not convert `true` inside map values.
        let help = if said.contains("boolean `true`") {
            "put `#[schemars(transform = schema::preserve_unknown_fields())]` on the field with `Value` in a map"
        } else {
            "put `#[schemars(transform = schema::any())]` on the field that causes it"
        };
        return vec![found(String::new(), message, help)];
    }
    let message = "kube's derive panics on an internally tagged enum";
    let help = "put `#[schemars(transform = schema::union())]` on the enum, next to `#[serde(tag = ...)]`";
    tagged.into_iter().map(|field| found(field, message.to_owned(), help)).collect()
}

/// The CRD properties of a kind that are available without kube's derive.
fn bare<T: CustomResourceExt>() -> Value {
    let kind = T::api_resource();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": T::crd_name() },
        "spec": {
            "group": kind.group,
            "names": { "kind": kind.kind, "plural": kind.plural, "singular": kind.kind.to_lowercase() },
            "scope": "Namespaced",
            "versions": [{ "name": kind.version, "served": true, "storage": true }],
        },
    })
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Returns the panic message if `make` panics. The panic is reported as a finding and therefore not printed.
fn quietly<T>(make: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                hook(panic);
            }
        }));
    });
    QUIET.set(true);
    let made = catch_unwind(AssertUnwindSafe(make));
    QUIET.set(false);
    made.map_err(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().copied().unwrap_or_default().to_owned(),
    })
}
