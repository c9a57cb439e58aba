//! Validation of every schema node in a CRD.
//!
//! CEL rules (`x-kubernetes-validations`) are compiled only if the schema and its subschemas have no other
//! errors, and their errors are reported last.

use super::super::schema::{Additional, Items, Schema};
use super::demands::Demands;
use super::extensions;
use super::rules::{self, TotalCost};
use crate::Structural;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_cel::rules::Rules;

/// The types of OpenAPI v3.
pub(super) const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Validates a schema and its subschemas. Compiles the rules of `parsed`, the same schema, if it is valid so far.
pub(super) fn validate(
    schema: Schema<'_>,
    demands: &Demands<'_>,
    rules: &dyn Rules,
    parsed: Option<&Structural>,
    suppress_cost: bool,
    path: &Path,
) -> ErrorList {
    let mut walk = Walk { demands, rules, suppress_cost, total: TotalCost::default() };
    let place = Place {
        is_root: true,
        inside_meta: false,
        no_defaults: None,
        uncorrelatable: None,
        occurrences: Occurrences::AtMost(1),
        parsed,
    };
    let found = walk.schema(schema, &place, path);
    let mut errors = found.schema;
    errors.extend(found.rules);
    errors.extend(walk.total.errors(path));
    errors
}

/// Errors of schemas and of CEL rules.
#[derive(Default)]
struct Found {
    schema: ErrorList,
    rules: ErrorList,
}

impl Found {
    fn extend(&mut self, other: Self) {
        self.schema.extend(other.schema);
        self.rules.extend(other.rules);
    }
}

/// How often a schema can occur in one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrences {
    AtMost(u64),
    Unbounded,
}

/// The context of a schema node.
#[derive(Clone)]
struct Place<'a> {
    is_root: bool,
    /// Below `apiVersion`, `kind` or `metadata` of an object.
    inside_meta: bool,
    /// Why defaults are not allowed here.
    no_defaults: Option<String>,
    /// The first ancestor list whose items cannot be correlated, so that `oldSelf` is not available.
    uncorrelatable: Option<Path>,
    occurrences: Occurrences,
    /// `None` if rules are not compiled.
    parsed: Option<&'a Structural>,
}

impl<'a> Place<'a> {
    /// The context of a schema below `allOf`, `anyOf`, `oneOf` or `not`.
    fn quantified(&self) -> Self {
        Self { is_root: false, parsed: None, ..self.clone() }
    }

    /// The context of a subschema of `schema`, which `parsed` finds.
    fn part(
        &self,
        schema: Schema<'_>,
        parsed: impl FnOnce(&'a Structural) -> Option<&'a Structural>,
    ) -> Self {
        let occurrences = match (self.occurrences, max_elements(schema)) {
            (Occurrences::AtMost(most), Occurrences::AtMost(times)) => {
                Occurrences::AtMost(most.saturating_mul(times))
            }
            _ => Occurrences::Unbounded,
        };
        Self { is_root: false, occurrences, parsed: self.parsed.and_then(parsed), ..self.clone() }
    }

    fn without_identity(mut self, path: &Path) -> Self {
        self.uncorrelatable.get_or_insert_with(|| path.clone());
        self
    }
}

/// The maximum number of elements of a value.
fn max_elements(schema: Schema<'_>) -> Occurrences {
    let limit = match schema.kind() {
        "object" if schema.additional_properties().is_some() => "maxProperties",
        "array" => "maxItems",
        _ => return Occurrences::AtMost(1),
    };
    match schema.get(limit).and_then(serde_json::Value::as_i64) {
        Some(most) => Occurrences::AtMost(u64::try_from(most).unwrap_or_default()),
        None => Occurrences::Unbounded,
    }
}

struct Walk<'a> {
    demands: &'a Demands<'a>,
    rules: &'a dyn Rules,
    suppress_cost: bool,
    total: TotalCost,
}

impl Walk<'_> {
    fn schema(&mut self, schema: Schema<'_>, place: &Place<'_>, path: &Path) -> Found {
        let mut found = Found { schema: self.keywords(schema, place, path), rules: ErrorList::new() };
        if schema.flag("uniqueItems") {
            found.schema.push(FieldError::forbidden(
                &path.child("uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ));
        }
        self.parts(schema, place, path, &mut found);
        found.schema.extend(extensions::validate(schema, self.demands, path));
        found.schema.extend(rules::validate(schema, path));
        if found.schema.is_empty()
            && !schema.rules().is_empty()
            && let Some(parsed) = place.parsed
        {
            let compiled = self.rules.compile(parsed.into(), place.is_root || schema.is_embedded());
            let rules = rules::Rules {
                schema,
                occurrences: place.occurrences,
                uncorrelatable: place.uncorrelatable.as_ref(),
                suppress_cost: self.suppress_cost,
            };
            found.rules.extend(rules.validate(&compiled, &mut self.total, path));
        }
        found
    }

    /// Rejects unsupported keywords, and keywords not allowed in this context.
    fn keywords(&self, schema: Schema<'_>, place: &Place<'_>, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        let kind = schema.kind();
        if self.demands.valid_types && !kind.is_empty() && !TYPES.contains(&kind) {
            errors.push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
        }
        if schema.default().is_some()
            && let Some(reason) = &place.no_defaults
        {
            errors.push(FieldError::forbidden(&path.child("default"), format!("must not be set {reason}")));
        }
        let unsupported = [
            ("id", !schema.text("id").is_empty()),
            ("additionalItems", schema.additional("additionalItems").is_some()),
            ("patternProperties", !schema.map("patternProperties").is_empty()),
            ("definitions", !schema.map("definitions").is_empty()),
            ("dependencies", schema.get("dependencies").is_some()),
            ("$ref", schema.get("$ref").is_some()),
        ];
        for (name, _) in unsupported.into_iter().filter(|(_, found)| *found) {
            errors.push(FieldError::forbidden(&path.child(name), format!("{name} is not supported")));
        }
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            errors.push(FieldError::forbidden(&path.child("type"), detail));
        }
        if let Some(Items::Each(each)) = schema.items()
            && !each.is_empty()
        {
            let detail = "items must be a schema object and not an array";
            errors.push(FieldError::forbidden(&path.child("items"), detail));
        }
        if place.inside_meta && schema.is_embedded() {
            let detail = "must not be used inside of resource meta";
            errors.push(FieldError::forbidden(&path.child("x-kubernetes-embedded-resource"), detail));
        }
        errors
    }

    fn parts(&mut self, schema: Schema<'_>, place: &Place<'_>, path: &Path, found: &mut Found) {
        if let Some(additional) = schema.additional_properties() {
            let path = path.child("additionalProperties");
            if !schema.map("properties").is_empty() && !matches!(additional, Additional::Allowed(true)) {
                let detail = "additionalProperties and properties are mutual exclusive";
                found.schema.push(FieldError::forbidden(&path, detail));
            }
            if let Additional::Schema(additional) = additional {
                let mut part = place.part(schema, Structural::additional_schema);
                if place.inside_meta {
                    part.no_defaults =
                        Some("inside additionalProperties applying to object metadata".to_owned());
                }
                found.extend(self.schema(additional, &part, &path));
            }
        }
        for (name, property) in schema.properties() {
            let mut part = place.part(schema, |parsed| parsed.properties.get(name));
            if (place.is_root || schema.is_embedded()) && matches!(name, "metadata" | "kind" | "apiVersion") {
                part.inside_meta = true;
                if place.is_root {
                    part.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            found.extend(self.schema(property, &part, &path.child("properties").key(name)));
        }
        if let Some(not) = schema.not() {
            found.extend(self.schema(not, &place.quantified(), &path.child("not")));
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            for (i, clause) in schema.list(name).enumerate() {
                found.extend(self.schema(clause, &place.quantified(), &path.child(name).index(i)));
            }
        }
        for (name, definition) in schema.map("definitions") {
            let path = path.child("definitions").key(name);
            found.extend(self.schema(Schema(definition), &place.quantified(), &path));
        }
        self.items(schema, place, path, found);
        for (name, dependency) in schema.map("dependencies").iter().filter(|(_, schema)| schema.is_object()) {
            let path = path.child("dependencies").key(name);
            found.extend(self.schema(Schema(dependency), &place.quantified(), &path));
        }
    }

    fn items(&mut self, schema: Schema<'_>, place: &Place<'_>, path: &Path, found: &mut Found) {
        let mut part = place.part(schema, |parsed| parsed.items.as_deref());
        // Only items of lists of type `map` can be correlated.
        if schema.list_type() != Some("map") {
            part = part.without_identity(path);
        }
        let path = path.child("items");
        match schema.items() {
            Some(Items::One(item)) => found.extend(self.schema(item, &part, &path)),
            Some(Items::Each(each)) => {
                for (i, item) in each.iter().enumerate() {
                    found.extend(self.schema(Schema(item), &part, &path.index(i)));
                }
            }
            None => {}
        }
    }
}
