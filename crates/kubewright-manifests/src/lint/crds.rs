//! Findings about CustomResourceDefinitions.
//!
//! Runs the API server's validation on the merged CRD. The version in an error determines the Rust type. Also
//! checks for problems that the API server accepts: empty printer columns, dropped keywords, and CRDs that
//! are too large for `kubectl apply`.

mod paths;
mod place;
mod schemas;
mod versions;

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use self::place::Place;
use super::server::{self, Refusal};
use super::{Finding, Level};
use crate::declare::{Item, Kind};
use crate::inventory::Inventory;

/// Maximum total size of an object's annotations.
const ANNOTATIONS: usize = 262_144;
/// Annotation in which `kubectl apply` stores the applied object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Checks all CRDs.
pub(super) fn check(inventory: &Inventory, crds: &[(String, Value)]) -> Vec<Finding> {
    let whole = inventory.whole();
    let mut findings = Vec::new();
    for (_, definition) in crds {
        let of = Origin::of(inventory, definition, &whole);
        let refusals = server::refusals(definition);
        let own = refusals.iter().filter(|refusal| !follows(refusal, &refusals));
        findings.extend(own.filter_map(|refusal| of.refused(refusal)));
        findings.extend(of.size());
        findings.extend(versions::check(definition, |version| of.item(Some(version))));
        for version in definition.list_at("spec.versions") {
            let item = of.item(Some(version.str_at("name")));
            findings.extend(schemas::check(definition, version, item));
            findings.extend(paths::check(version, item));
        }
    }
    findings
}

/// Whether an error is a consequence of another one.
fn follows(refusal: &Refusal, all: &[Refusal]) -> bool {
    let is_too_dear = |other: &Refusal| other.message.contains("cost exceeds budget");
    // `spec.version` repeats the name of the first version, and the status is derived from the spec.
    refusal.field == "spec.version"
        || refusal.field.starts_with("status.")
        // A single rule that exceeds the budget also makes the total exceed it.
        || refusal.message.contains("cost total") && all.iter().any(is_too_dear)
}

/// A CRD and the types that it was generated from.
struct Origin<'a> {
    definition: &'a Value,
    kinds: Vec<&'a Kind>,
    /// Used if no other item is known.
    whole: &'a Item,
}

impl<'a> Origin<'a> {
    fn of(inventory: &'a Inventory, definition: &'a Value, whole: &'a Item) -> Self {
        let name = |definition: &Value| {
            let spec = definition.at("spec");
            (spec.str_at("group").to_owned(), spec.str_at("names.plural").to_owned())
        };
        let kinds = inventory.kinds().filter(|kind| name(&kind.definition) == name(definition)).collect();
        Self { definition, kinds, whole }
    }

    /// The type of a version, or of the storage version for common properties.
    fn item(&self, version: Option<&str>) -> &'a Item {
        let storage = || {
            let versions = self.definition.list_at("spec.versions");
            versions.iter().find(|version| version.bool_at("storage")).map(|version| version.str_at("name"))
        };
        let wanted = version.or_else(storage);
        let of_version = self.kinds.iter().find(|kind| {
            let versions = kind.definition.list_at("spec.versions");
            versions.iter().any(|version| Some(version.str_at("name")) == wanted)
        });
        of_version.or(self.kinds.first()).map_or(self.whole, |kind| &kind.item)
    }

    fn refused(&self, refusal: &Refusal) -> Option<Finding> {
        let place = Place::of(&refusal.field);
        // Unknown keywords are searched in the whole schema, because the decoder checks only parts of it.
        if refusal.is_unknown && place.in_schema {
            return None;
        }
        let version = place.version.and_then(|i| self.definition.list_at("spec.versions").get(i));
        let item = self.item(version.map(|version| version.str_at("name")));
        let (code, help) = explained(&place, refusal);
        let message = if place.rest.is_empty() {
            refusal.message.clone()
        } else {
            format!("{}: {}", place.rest, refusal.message)
        };
        Some(Finding::error(code, item, message, help).at(place.field))
    }

    /// Checks the size of the CRD in kubectl's annotation.
    fn size(&self) -> Option<Finding> {
        let annotations = self.definition.map_at("metadata.annotations");
        let others: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
        let size = self.definition.to_string().len() + 1 + LAST_APPLIED.len() + others;
        (size > ANNOTATIONS).then(|| Finding {
            level: Level::Warning,
            ..Finding::error(
                "KW208",
                self.item(None),
                format!(
                    "the CRD {} needs {size} bytes in the annotation of `kubectl apply`, but \
                     annotations are limited to {ANNOTATIONS} bytes",
                    self.definition.str_at("metadata.name")
                ),
                "apply it with `kubectl apply --server-side`, or shorten the descriptions",
            )
        })
    }
}

/// The code and the fix for an error of the API server.
fn explained(place: &Place, refusal: &Refusal) -> (&'static str, &'static str) {
    let Place { rest, in_schema, .. } = place;
    let message = refusal.message.as_str();
    if *in_schema {
        return if message.contains("rule cost") || message.contains("messageExpression cost") {
            (
                "KW203",
                "limit the lists, maps and strings that the rule evaluates with a maximum length or number of items, \
                 or simplify the rule",
            )
        } else if rest.starts_with("x-kubernetes-validations") {
            (
                "KW202",
                "write CEL that compiles against the schema; `self` is the value with the rule, and `has()` \
                 checks optional fields",
            )
        } else if rest.starts_with("x-kubernetes-list")
            || rest.starts_with("x-kubernetes-map")
            || message.contains("x-kubernetes-list")
        {
            (
                "KW205",
                "list map keys must be scalar fields that are required or have a default; \
                 items of a set must be scalar or atomic",
            )
        } else if rest.starts_with("default") {
            ("KW204", "use a default that is valid for the schema")
        } else if rest.starts_with("pattern") {
            ("KW209", "use Go's RE2 syntax, which has no look-around and no back-references")
        } else {
            (
                "KW201",
                "every field needs exactly one type outside of `anyOf`, `oneOf` and `allOf`; otherwise use an \
                 int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields",
            )
        };
    }
    let field = refusal.field.as_str();
    if field.contains("additionalPrinterColumns") {
        ("KW207", "use a path that starts with a dot, and the type string, integer, number, boolean or date")
    } else if field.contains("subresources") || field.contains("selectableFields") {
        ("KW211", "use the path of an existing field, such as `.spec.replicas`")
    } else if field.starts_with("spec.versions") {
        (
            "KW212",
            "make exactly one version the storage version, and give each a unique name such as `v1beta1`",
        )
    } else if ["metadata.name", "spec.group", "spec.names", "spec.scope"]
        .iter()
        .any(|name| field.starts_with(name))
    {
        ("KW210", "use Kubernetes' naming: a group with a dot, lower-case plurals, kinds in CamelCase")
    } else {
        ("KW200", "change the type so that the API server accepts its CRD")
    }
}
