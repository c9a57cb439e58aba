//! Interface between CRD validation and the CEL compiler.
//!
//! CRD validation walks the schema and knows where rules are and how often they can run. Implementations of
//! [`Rules`] compile the rules and estimate their costs.

use serde_json::Value;

use crate::schema::Schema;
use kubewright_apimachinery::field::{ErrorList, Path};

/// A compiler of `x-kubernetes-validations`.
pub trait Rules {
    /// Compiles the rules of one schema, without its subschemas. Returns a result for each rule, in order.
    /// `resource_root` is set if the values are whole objects.
    fn compile(&self, schema: Schema, resource_root: bool) -> Vec<CompiledRule>;

    /// Checks a default value against the rules of its schema and all subschemas: first as an unchanged
    /// value, then, if there are no errors, as a newly set one.
    fn evaluate(&self, schema: Schema, value: &Value, resource_root: bool, path: &Path) -> ErrorList;
}

/// The result of compiling a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledRule {
    /// The compile error of `rule`, in upstream's wording.
    pub error: Option<String>,
    /// The estimated cost of one evaluation of `rule`.
    pub max_cost: u64,
    /// The maximum number of values of this schema in one object, if no `maxItems` or `maxProperties` limits
    /// it.
    pub max_cardinality: u64,
    /// Whether `rule` uses `oldSelf`.
    pub uses_old_self: bool,
    /// The estimated cost of `messageExpression`, or its compile error; `None` if it is not set.
    pub message_expression: Option<Result<u64, String>>,
}
