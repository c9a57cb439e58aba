//! What checking a definition asks of those who compile and evaluate rules.
//!
//! A definition says which rules there are, where they stand and how often they can run; what they mean and what
//! they cost is decided behind [`Rules`]. Schemas pass through as the user wrote them.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, Path};

/// A compiler of `x-kubernetes-validations`.
pub trait Rules {
    /// Compiles the rules of one schema, not of those inside: a result for each rule, in order. `resource_root`
    /// says that values of the schema are whole objects.
    fn compile(&self, schema: &Value, resource_root: bool) -> Vec<CompiledRule>;

    /// Checks a default value against the rules of its schema and of all schemas inside: as a value that stays what
    /// it is, and if nothing is wrong then also as one that is set for the first time.
    fn evaluate(&self, schema: &Value, value: &Value, resource_root: bool, path: &Path) -> ErrorList;
}

/// What is known of a rule once it was compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledRule {
    /// Why `rule` is no rule, as upstream words it.
    pub error: Option<String>,
    /// The estimated cost of one evaluation of `rule`.
    pub max_cost: u64,
    /// How often the schema can occur in one object when nothing bounds it.
    pub max_cardinality: u64,
    /// Whether `rule` looks at `oldSelf`.
    pub uses_old_self: bool,
    /// What became of `messageExpression`, if there is one: its estimated cost, or why it is none.
    pub message_expression: Option<Result<u64, String>>,
}
