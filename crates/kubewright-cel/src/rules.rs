//! Validation rules of custom resources: `x-kubernetes-validations`.
//!
//! [`RuleSet`] is what a version of a custom resource is validated with; [`Compiler`] is what a definition is
//! checked with when it is created. A rule that looks at `oldSelf` runs only where an old value can be found,
//! and rules stop for good when their work costs too much.

mod checked;
mod compile;
mod correlate;
mod validate;

use serde_json::Value as Json;

pub use self::checked::{CompiledRule, Rules};
use self::compile::Node;
use self::correlate::Correlation;
use self::validate::Validation;
use super::RUNTIME_BUDGET;
use super::schema::Schema;
use kubewright_apimachinery::field::{ErrorList, Path};

/// All rules of a schema, compiled.
#[derive(Debug)]
pub struct RuleSet {
    schema: Schema,
    root: Option<Node>,
}

/// What rules found.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Broken rules, in the order in which they were found.
    pub errors: ErrorList,
    /// Rules that were broken already and still are: only said, since the value did not change.
    pub warnings: Vec<String>,
}

impl RuleSet {
    /// Compiles the rules of `openAPIV3Schema`, the schema of a whole resource. What does not compile is told
    /// when an object is validated.
    pub fn compile(schema: &Json) -> Self {
        Self::of(Schema::root(schema))
    }

    fn of(schema: Schema) -> Self {
        let root = if schema.has_rules() { Node::compile(&schema, &schema) } else { None };
        Self { schema, root }
    }

    /// Whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Validates an object that is about to be created, or to replace `old`.
    pub fn validate(&self, object: &Json, old: Option<&Json>) -> Outcome {
        let correlation = Correlation::root(&self.schema, object, old);
        self.run(object, old, &Path::root(), correlation)
    }

    fn run(&self, object: &Json, old: Option<&Json>, path: &Path, correlation: Correlation<'_>) -> Outcome {
        let mut validation = Validation::new(RUNTIME_BUDGET);
        if let Some(root) = &self.root {
            validation.node(root, &self.schema, path, object, old, correlation);
        }
        validation.outcome
    }
}

/// Compiles rules for the check of definitions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compiler;

impl Rules for Compiler {
    fn compile(&self, schema: &Json, resource_root: bool) -> Vec<CompiledRule> {
        let schema = if resource_root { Schema::root(schema) } else { Schema::part(schema) };
        compile::described(&schema)
    }

    fn evaluate(&self, schema: &Json, value: &Json, resource_root: bool, path: &Path) -> ErrorList {
        let schema = if resource_root { Schema::root(schema) } else { Schema::part(schema) };
        let rules = RuleSet::of(schema);
        let kept = rules.run(value, Some(value), path, Correlation::default()).errors;
        if kept.is_empty() { rules.run(value, None, path, Correlation::default()).errors } else { kept }
    }
}

#[cfg(test)]
mod tests;
