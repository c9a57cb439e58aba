//! Validation of defaults: each must be valid for its schema.

use serde_json::{Value, json};

use super::super::schema::Schema;
use super::demands::Demands;
use crate::custom::{self, Malformed};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path, aggregate};
use kubewright_apimachinery::json;
use kubewright_cel::rules::Rules;

/// Validates all defaults of a structural schema.
pub(super) fn validate(
    schema: Schema<'_>,
    demands: &Demands<'_>,
    rules: &dyn Rules,
    path: &Path,
) -> ErrorList {
    // The root is a resource even if not marked as embedded.
    let mut root = schema.0.clone();
    if let Value::Object(root) = &mut root {
        root.insert("x-kubernetes-embedded-resource".to_owned(), true.into());
    }
    let mut walk =
        Walk { pruned: demands.pruned_defaults, rules, steps: Vec::new(), errors: ErrorList::new() };
    walk.schema(Schema(&root), &root, false, path);
    walk.errors
}

/// Whether a default contains fields that its schema does not declare.
pub(super) fn has_unknown_fields(schema: Schema<'_>) -> bool {
    schema.any(&mut |schema| {
        let Ok(compiled) = custom::Schema::compile(schema.0) else { return false };
        schema.default().is_some_and(|value| !is_pruned(&compiled, value))
    })
}

fn is_pruned(schema: &custom::Schema, value: &Value) -> bool {
    custom::prune_paths(schema, &mut value.clone(), schema.embedded_resource).is_empty()
}

/// A step of the path from a resource to a value.
enum Step {
    Child(String),
    Index,
}

struct Walk<'a> {
    pruned: bool,
    rules: &'a dyn Rules,
    /// The path from the innermost resource.
    steps: Vec<Step>,
    errors: ErrorList,
}

impl Walk<'_> {
    /// `resource` is the schema of the innermost resource; `inside_meta` is set below its `apiVersion`,
    /// `kind` and `metadata`.
    fn schema(&mut self, schema: Schema<'_>, resource: &Value, inside_meta: bool, path: &Path) {
        if schema.is_embedded() {
            let outer = std::mem::take(&mut self.steps);
            self.value(schema, schema.0, false, path);
            self.parts(schema, schema.0, false, path);
            self.steps = outer;
        } else {
            self.value(schema, resource, inside_meta, path);
            self.parts(schema, resource, inside_meta, path);
        }
    }

    fn parts(&mut self, schema: Schema<'_>, resource: &Value, inside_meta: bool, path: &Path) {
        // Values of maps cannot have defaults.
        if let Some(item) = schema.item() {
            self.steps.push(Step::Index);
            self.schema(item, resource, inside_meta, &path.child("items"));
            self.steps.pop();
        }
        for (name, property) in schema.properties() {
            let is_meta = schema.is_embedded() && matches!(name, "metadata" | "apiVersion" | "kind");
            self.steps.push(Step::Child(name.to_owned()));
            self.schema(property, resource, inside_meta || is_meta, &path.child("properties").key(name));
            self.steps.pop();
        }
    }

    fn value(&mut self, schema: Schema<'_>, resource: &Value, inside_meta: bool, path: &Path) {
        let Some(value) = schema.default() else { return };
        let path = path.child("default");
        // Schemas that do not compile are rejected elsewhere.
        let Ok(compiled) = custom::Schema::compile(schema.0) else { return };
        if inside_meta {
            let Ok(resource) = custom::Schema::compile(resource) else { return };
            let found = metadata(&resource, &self.surrounded(value), true, &Path::root());
            if !found.is_empty() {
                let detail = format!("must result in valid metadata: {}", aggregate(&found));
                self.errors.push(FieldError::invalid_printed(&path, printed(value), detail));
                return;
            }
        } else {
            if self.pruned && !is_pruned(&compiled, value) {
                let detail = "must not have unknown fields";
                self.errors.push(FieldError::invalid_printed(&path, printed(value), detail));
            }
            let found = metadata(&compiled, value, schema.is_embedded(), &path);
            if !found.is_empty() {
                self.errors.extend(found);
                return;
            }
        }
        let found = custom::validate_at(&compiled, value, &path);
        if !found.is_empty() {
            self.errors.extend(found);
            return;
        }
        self.errors.extend(self.rules.evaluate(schema.0, value, schema.is_embedded(), &path));
    }

    /// Wraps a value in a resource that contains nothing else.
    fn surrounded(&self, value: &Value) -> Value {
        let mut object = value.clone();
        for step in self.steps.iter().rev() {
            object = match step {
                Step::Child(name) => json!({ name.as_str(): object }),
                Step::Index => json!([object]),
            };
        }
        if let Value::Object(object) = &mut object {
            object.entry("kind").or_insert_with(|| "Validation".into());
            object.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        }
        object
    }
}

/// Validates the metadata of a resource and of its embedded resources.
fn metadata(schema: &custom::Schema, value: &Value, whole_object: bool, path: &Path) -> ErrorList {
    match custom::coerce_metadata(schema, &mut value.clone(), path, whole_object, Malformed::Refuse) {
        Err(error) => vec![error],
        Ok(_) => custom::validate_metadata(schema, value, path, whole_object),
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => kubewright_apimachinery::field::quote(text),
        other => json::to_string(other),
    }
}
