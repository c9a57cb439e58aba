//! Validation rules of custom resources: `x-kubernetes-validations`.
//!
//! [`RuleSet`] validates custom resources of one version. [`Compiler`] checks the rules of a CRD when it is
//! created or updated. Transition rules (those that use `oldSelf`) run only if there is a correlatable old
//! value. When the cost budget is exhausted, no more rules run.

mod checked;
mod compile;
mod correlate;
mod validate;

use serde_json::Value as Json;

pub use self::checked::{CompiledRule, Rules};
use self::compile::Node;
use self::correlate::Correlation;
use self::validate::Validation;
pub use super::schema::{Keywords, Rule, Schema};
use kubewright_apimachinery::field::{ErrorList, Path};

/// The compiled rules of a schema.
#[derive(Debug)]
pub struct RuleSet {
    schema: Schema,
    root: Option<Node>,
}

/// The result of a validation.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Violated rules, in evaluation order.
    pub errors: ErrorList,
    /// Rules that the unchanged old value already violated (ratcheting).
    pub warnings: Vec<String>,
}

impl RuleSet {
    /// Compiles the rules of the root schema of a resource. Compile errors are reported when an object is validated.
    pub fn compile(schema: Schema) -> Self {
        Self::of(schema.into_resource())
    }

    fn of(schema: Schema) -> Self {
        let root = if schema.has_rules() { Node::compile(&schema, &schema) } else { None };
        Self { schema, root }
    }

    /// Whether the schema has no rules.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Validates an object that is created, or updated from `old`.
    pub fn validate(&self, object: &Json, old: Option<&Json>) -> Outcome {
        let correlation = Correlation::root(&self.schema, object, old);
        self.run(object, old, &Path::root(), correlation)
    }

    /// As [`RuleSet::validate`], if that costs at most `cost` and needs no pattern that may need much CPU time.
    pub fn validate_within(&self, cost: u64, object: &Json, old: Option<&Json>) -> Option<Outcome> {
        let correlation = Correlation::root(&self.schema, object, old);
        let mut validation = Validation::within(cost);
        if let Some(root) = &self.root {
            validation.node(root, &self.schema, &Path::root(), object, old, correlation).ok()?;
        }
        Some(validation.outcome)
    }

    fn run(&self, object: &Json, old: Option<&Json>, path: &Path, correlation: Correlation<'_>) -> Outcome {
        let mut validation = Validation::new();
        if let Some(root) = &self.root {
            // The error that stopped the validation is already reported.
            let _stopped = validation.node(root, &self.schema, path, object, old, correlation);
        }
        validation.outcome
    }
}

/// Compiles rules for the validation of CRDs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compiler;

impl Rules for Compiler {
    fn compile(&self, schema: Schema, resource_root: bool) -> Vec<CompiledRule> {
        compile::described(&if resource_root { schema.into_resource() } else { schema })
    }

    fn evaluate(&self, schema: Schema, value: &Json, resource_root: bool, path: &Path) -> ErrorList {
        let rules = RuleSet::of(if resource_root { schema.into_resource() } else { schema });
        let kept = rules.run(value, Some(value), path, Correlation::default()).errors;
        if kept.is_empty() { rules.run(value, None, path, Correlation::default()).errors } else { kept }
    }
}
