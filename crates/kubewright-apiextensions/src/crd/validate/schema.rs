//! Validation of the schema of a version, or of all versions.

use serde_json::Value;

use super::super::printed::{self, SCHEMA_FIELDS};
use super::super::schema::Schema;
use super::super::spec::root;
use super::demands::Demands;
use super::{default_values, openapi, structural};
use crate::Structural;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_cel::rules::Rules;

/// The Go names of the fields allowed at the root of a schema with the status subresource. They allow the
/// status schema to be separated from the rest.
const ROOT_FIELDS: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// Options of schema validation.
pub(super) struct Checks<'a> {
    pub(super) demands: &'a Demands<'a>,
    pub(super) rules: &'a dyn Rules,
    /// Whether schemas must be structural, as required or because of features that they use.
    pub(super) structural: bool,
}

impl Checks<'_> {
    /// Validates a version's `schema` at `path`.
    pub(super) fn validate(
        &self,
        validation: Option<&Value>,
        has_status: bool,
        version: &str,
        path: &Path,
    ) -> ErrorList {
        let Some(schema) = validation.and_then(root) else { return ErrorList::new() };
        let path = path.child("openAPIV3Schema");
        let mut errors = ErrorList::new();
        if has_status {
            errors.extend(root_fields(schema, &path));
        }
        if schema.flag("nullable") {
            errors
                .push(FieldError::forbidden(&path.child("nullable"), "nullable cannot be true at the root"));
        }
        let mut unsupported = None;
        let mut parsed = None;
        if self.structural {
            unsupported = structural::unsupported(schema);
            if unsupported.is_none() {
                let mut found = structural::validate(schema, &path);
                if found.is_empty() {
                    parsed = Structural::parse(schema.0).ok();
                }
                if let Some(parsed) = &parsed {
                    found = default_values::validate(parsed, self.demands, self.rules, &path);
                }
                // Compile rules only if the schema is valid.
                parsed = parsed.filter(|_| found.is_empty());
                errors.extend(found);
            }
        }
        let suppress_cost = self.demands.unchanged.contains(version);
        let rules = parsed.as_ref();
        errors.extend(openapi::validate(schema, self.demands, self.rules, rules, suppress_cost, &path));
        if let Some(problem) = unsupported
            && errors.is_empty()
        {
            errors.push(FieldError::invalid(&path, "", problem));
        }
        errors
    }
}

fn root_fields(schema: Schema<'_>, path: &Path) -> Option<FieldError> {
    for (name, go, _) in SCHEMA_FIELDS {
        let Some(value) = schema.get(name) else { continue };
        let is_zero = matches!(value, Value::Bool(false)) && name != "x-kubernetes-preserve-unknown-fields"
            || value.as_str() == Some("")
                && !matches!(name, "$ref" | "x-kubernetes-list-type" | "x-kubernetes-map-type");
        if is_zero {
            continue;
        }
        if go == "Type" {
            if schema.kind() != "object" {
                return Some(FieldError::invalid(
                    &path.child("type"),
                    schema.kind(),
                    r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#,
                ));
            }
        } else if !ROOT_FIELDS.contains(&go) {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ROOT_FIELDS.join(" ")
            );
            return Some(FieldError::invalid_printed(path, printed::schema(schema.0), detail));
        }
    }
    None
}
