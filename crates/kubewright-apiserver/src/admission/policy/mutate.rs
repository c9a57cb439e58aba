//! Evaluates the mutations of a policy.

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use super::compiled::{Mutation, Policy};
use super::evaluate::{Budget, Failure, Input, OUT_OF_BUDGET};
use crate::admission::webhook::Matched;

/// The result of a mutation.
pub(crate) enum Patch {
    /// JSON patch operations.
    Json(Value),
    /// An apply configuration, with `apiVersion` and `kind`.
    Apply(Value),
}

impl Policy {
    /// Whether the policy's match conditions hold. Fails if a condition cannot be evaluated.
    pub(crate) fn is_concerned(&self, input: &Input<'_>) -> Result<bool, String> {
        match self.conditions.evaluate(&self.bindings(input).0) {
            Matched::Yes => Ok(true),
            Matched::No => Ok(false),
            Matched::Failed(why) => Err(why),
        }
    }

    /// Evaluates one mutation.
    pub(crate) fn patch(&self, mutation: &Mutation, input: &Input<'_>) -> Result<Patch, String> {
        let bindings = self.bindings(input);
        let mut budget = Budget::new(&bindings.1);
        let value = match budget.eval(&mutation.program, &mutation.expression, &bindings.0) {
            Ok(value) => {
                value.check_type_names().map_err(|why| format!("type mismatch: {why}"))?;
                value.to_json().map_err(|error| error.to_string())?
            }
            Err(Failure::Budget) => return Err(OUT_OF_BUDGET.to_owned()),
            Err(Failure::Expression(why)) => return Err(why),
        };
        if mutation.is_json_patch {
            return Ok(Patch::Json(value));
        }
        let mut configuration = value;
        for field in ["apiVersion", "kind"] {
            configuration.set_at(field, input.object.str_at(field));
        }
        Ok(Patch::Apply(configuration))
    }
}
