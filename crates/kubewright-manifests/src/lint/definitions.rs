//! Findings about CustomResourceDefinitions.
//!
//! The API server's rules see the merged definition, as a cluster would; the version that an error is in leads to the
//! Rust type. What a server accepts and nobody wants is looked for besides: columns that stay empty, keywords that are
//! dropped, definitions that `kubectl apply` cannot write.

mod paths;
mod place;
mod schemas;
mod versions;

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use self::place::Place;
use super::server::{self, Refusal};
use super::{Finding, Level};
use crate::declarations::Declarations;
use crate::declare::{Item, Kind};

/// What all annotations of an object may take, names and values together.
const ANNOTATIONS: usize = 262_144;
/// Where `kubectl apply` keeps what was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Looks at every definition.
pub(super) fn check(declarations: &Declarations, definitions: &[(String, Value)]) -> Vec<Finding> {
    let whole = declarations.whole();
    let mut findings = Vec::new();
    for (_, definition) in definitions {
        let of = Origin::of(declarations, definition, &whole);
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

/// Whether a refusal says again what another one says of its cause.
fn follows(refusal: &Refusal, all: &[Refusal]) -> bool {
    let is_too_dear = |other: &Refusal| other.message.contains("cost exceeds budget");
    // The first version's name stands in the spec as well, and the status is made from the spec.
    refusal.field == "spec.version"
        || refusal.field.starts_with("status.")
        // A rule that is too dear by itself makes the sum too dear.
        || refusal.message.contains("cost total") && all.iter().any(is_too_dear)
}

/// A definition, and the types that it comes from.
struct Origin<'a> {
    definition: &'a Value,
    kinds: Vec<&'a Kind>,
    /// Where nothing else is known.
    whole: &'a Item,
}

impl<'a> Origin<'a> {
    fn of(declarations: &'a Declarations, definition: &'a Value, whole: &'a Item) -> Self {
        let name = |definition: &Value| {
            let spec = definition.at("spec");
            (spec.str_at("group").to_owned(), spec.str_at("names.plural").to_owned())
        };
        let kinds = declarations.kinds().filter(|kind| name(&kind.definition) == name(definition)).collect();
        Self { definition, kinds, whole }
    }

    /// The type of a version; of the stored one for what all have in common.
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
        // Unknown keywords are looked for in the whole schema: the decoder looks at parts of it.
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

    /// kubectl writes a copy of what it applies into an annotation.
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
                    "the definition {} takes {size} bytes in the annotation that `kubectl apply` keeps it in, and \
                     annotations may have {ANNOTATIONS}",
                    self.definition.str_at("metadata.name")
                ),
                "apply it with `kubectl apply --server-side`, or shorten the descriptions",
            )
        })
    }
}

/// The code and the remedy for what a server refuses.
fn explained(place: &Place, refusal: &Refusal) -> (&'static str, &'static str) {
    let Place { rest, in_schema, .. } = place;
    let message = refusal.message.as_str();
    if *in_schema {
        return if message.contains("rule cost") || message.contains("messageExpression cost") {
            (
                "KW203",
                "bound what the rule goes through, with a length or a number of items on the lists, maps and strings \
                 above it, or write a rule that does less",
            )
        } else if rest.starts_with("x-kubernetes-validations") {
            (
                "KW202",
                "write CEL that compiles against the schema; `self` is the value that the rule stands at, and `has()` \
                 asks for optional fields",
            )
        } else if rest.starts_with("x-kubernetes-list")
            || rest.starts_with("x-kubernetes-map")
            || message.contains("x-kubernetes-list")
        {
            (
                "KW205",
                "let the keys of the list be fields of its items that are required or have a default, and no more than \
                 scalars; items of a set are scalars or atomic",
            )
        } else if rest.starts_with("default") {
            ("KW204", "write a default that the schema itself accepts")
        } else if rest.starts_with("pattern") {
            ("KW209", "write a regular expression of Go's RE2: it has no look-around and no back-references")
        } else {
            (
                "KW201",
                "every field needs one type that is known outside `anyOf` and its like; for what has none, use an \
                 int-or-string, an untyped value that preserves unknown fields, or a struct with optional fields",
            )
        };
    }
    let field = refusal.field.as_str();
    if field.contains("additionalPrinterColumns") {
        (
            "KW207",
            "write a path that starts with a dot and a type of string, integer, number, boolean or date",
        )
    } else if field.contains("subresources") || field.contains("selectableFields") {
        ("KW211", "write the path of a field that the schema has: `.spec.replicas`")
    } else if field.starts_with("spec.versions") {
        ("KW212", "let exactly one version be stored, and give each a name of its own, as `v1beta1`")
    } else if ["metadata.name", "spec.group", "spec.names", "spec.scope"]
        .iter()
        .any(|name| field.starts_with(name))
    {
        (
            "KW210",
            "write names as Kubernetes has them: a group with a dot, plurals in lower case, kinds in CamelCase",
        )
    } else {
        ("KW200", "change the type so that an API server accepts its definition")
    }
}
