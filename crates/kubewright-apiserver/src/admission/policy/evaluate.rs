//! Evaluates the expressions of a policy for a request.
//!
//! All expressions of one evaluation share a cost budget. Variables are evaluated once, and only if an
//! expression uses them.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_cel::{self as cel, Bindings, EvalError, PER_CALL_LIMIT, Program, RUNTIME_BUDGET};
use serde_json::Value;

use super::compiled::{Compiled, Policy, Validation};
use crate::admission::webhook::{Authorization, Matched};

/// Maximum length of a message from `messageExpression`.
const MAX_MESSAGE: usize = 5 * 1024;

pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The variables available to expressions.
pub(crate) struct Input<'a> {
    pub(crate) object: &'a Value,
    pub(crate) old_object: &'a Value,
    pub(crate) request: &'a Value,
    pub(crate) params: &'a Value,
    pub(crate) namespace: &'a Value,
    pub(crate) authorization: &'a Authorization<'a>,
}

/// A failed validation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Index in `spec.validations`.
    pub(crate) index: usize,
    pub(crate) message: String,
    pub(crate) reason: String,
}

/// The result of evaluating a policy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Evaluated {
    pub(crate) denied: Vec<Decision>,
    /// Failed audit annotations: they deny the request regardless of the binding's actions.
    pub(crate) failed_annotations: Vec<String>,
    /// Audit annotations, by key.
    pub(crate) annotations: Vec<(String, String)>,
}

impl Policy {
    /// Evaluates the policy with one parameter.
    pub(crate) fn evaluate(&self, input: &Input<'_>) -> Evaluated {
        let bindings = self.bindings(input);
        match self.conditions.evaluate(&bindings.0) {
            Matched::Yes => {}
            Matched::No => return Evaluated::default(),
            Matched::Failed(why) => return self.failure(0, why),
        }
        let mut budget = Budget::new(&bindings.1);
        let mut results = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            results.push(match budget.eval(&validation.program, &validation.expression, &bindings.0) {
                Ok(value) => Ok(matches!(value, cel::Value::Bool(true))),
                Err(Failure::Expression(why)) => Err(why),
                Err(Failure::Budget) => return self.failure(0, OUT_OF_BUDGET.to_owned()),
            });
        }
        let messages = self.messages(budget.remaining(), &bindings.0);
        let mut found = Evaluated::default();
        for (index, (validation, result)) in self.validations.iter().zip(results).enumerate() {
            let why = match (result, &messages) {
                (Err(why), _) => why,
                (Ok(_), Err(why)) => format!("failed messageExpression: {why}"),
                (Ok(true), Ok(_)) => continue,
                (Ok(false), Ok(messages)) => {
                    let message = validation.message(&messages[index]);
                    found.denied.push(Decision { index, message, reason: validation.reason.clone() });
                    continue;
                }
            };
            found.denied.extend(self.failure(index, why).denied);
        }
        match self.annotate(&bindings, &mut found) {
            Ok(()) => found,
            Err(why) => self.failure(0, why),
        }
    }

    /// Evaluates the message expressions of all validations, because upstream counts the cost of all of them.
    /// Without an expression, or if it fails, a message is empty.
    fn messages<'a>(
        &'a self,
        mut budget: Budget<'a>,
        bindings: &Bindings<'a>,
    ) -> Result<Vec<String>, &'static str> {
        let message = |validation: &'a Validation| {
            let Some(program) = &validation.message_program else { return Ok(String::new()) };
            match budget.eval(program, &validation.expression, bindings) {
                Ok(cel::Value::String(text)) => Ok(text.trim().to_owned()),
                Ok(_) | Err(Failure::Expression(_)) => Ok(String::new()),
                Err(Failure::Budget) => Err(OUT_OF_BUDGET),
            }
        };
        self.validations.iter().map(message).collect()
    }

    /// Evaluates the audit annotations. Fails if they exceed the budget.
    fn annotate(
        &self,
        bindings: &(Bindings<'_>, BTreeMap<&str, u64>),
        found: &mut Evaluated,
    ) -> Result<(), String> {
        let mut budget = Budget::new(&bindings.1);
        for annotation in &self.annotations {
            match budget.eval(&annotation.program, &annotation.expression, &bindings.0) {
                Ok(cel::Value::String(text)) if !text.trim().is_empty() => {
                    found.annotations.push((annotation.key.clone(), text.trim().to_owned()));
                }
                Err(Failure::Budget) => return Err(OUT_OF_BUDGET.to_owned()),
                Err(Failure::Expression(why)) if !self.fails_open => found.failed_annotations.push(why),
                Ok(_) | Err(Failure::Expression(_)) => {}
            }
        }
        Ok(())
    }

    /// An evaluation error. It denies the request unless the policy fails open.
    fn failure(&self, index: usize, message: String) -> Evaluated {
        let mut found = Evaluated::default();
        if !self.fails_open {
            found.denied.push(Decision { index, message, reason: "Invalid".to_owned() });
        }
        found
    }

    /// The variables available to expressions, including used composed variables with their costs.
    pub(super) fn bindings<'a>(&'a self, input: &Input<'a>) -> (Bindings<'a>, BTreeMap<&'a str, u64>) {
        let base = Bindings::new()
            .with("object", cel::Value::from(input.object))
            .with("oldObject", cel::Value::from(input.old_object))
            .with("request", cel::Value::from(input.request))
            .with("params", cel::Value::from(input.params))
            .with("namespaceObject", cel::Value::from(input.namespace))
            .with("authorizer", cel::Value::Authorization(cel::Authorization::new(input.authorization)));
        let used = self.used_variables();
        let mut values: Vec<(&str, Result<cel::Value<'a>, EvalError>)> = Vec::new();
        let mut costs = BTreeMap::new();
        for (name, program) in self.variables.iter().filter(|(name, _)| used.contains(name.as_str())) {
            let failed = |how: &str, why: String| {
                EvalError::Failed(format!("composited variable {name:?} fails to {how}: {why}").into())
            };
            let value = match program {
                Err(why) => Err(failed("compile", why.clone())),
                Ok(program) => {
                    let bindings = base.clone().with_composed(values.clone());
                    let found = program.eval(&bindings, PER_CALL_LIMIT);
                    costs.insert(name.as_str(), found.cost);
                    found.value.map_err(|error| failed("evaluate", error.to_string()))
                }
            };
            values.push((name, value));
        }
        (base.with_composed(values), costs)
    }

    /// The composed variables that expressions use, directly or through other variables.
    fn used_variables(&self) -> BTreeSet<&str> {
        let programs = self.validations.iter().map(|validation| &validation.program);
        let messages = self.validations.iter().filter_map(|validation| validation.message_program.as_ref());
        let annotations = self.annotations.iter().map(|annotation| &annotation.program);
        let mutations = self.mutations.iter().map(|mutation| &mutation.program);
        let all = programs
            .chain(messages)
            .chain(annotations)
            .chain(mutations)
            .filter_map(|program| program.as_ref().ok());
        let mut used: BTreeSet<&str> =
            all.flat_map(Program::composed_variables).chain(self.conditions.composed_variables()).collect();
        // A variable can only refer to earlier variables.
        for (name, program) in self.variables.iter().rev() {
            if let (true, Ok(program)) = (used.contains(name.as_str()), program) {
                used.extend(program.composed_variables());
            }
        }
        used
    }
}

impl Validation {
    /// The message of a failed validation. `evaluated` is the result of `messageExpression`.
    fn message(&self, evaluated: &str) -> String {
        let is_usable = |text: &str| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
        if is_usable(evaluated) {
            evaluated.to_owned()
        } else if !self.message.is_empty() {
            self.message.clone()
        } else {
            format!("failed expression: {}", self.expression.trim())
        }
    }
}

pub(super) enum Failure {
    Budget,
    Expression(String),
}

/// The remaining cost budget of a policy's expressions.
pub(super) struct Budget<'a> {
    remaining: i64,
    costs: &'a BTreeMap<&'a str, u64>,
    /// Variables whose cost is already counted.
    counted: BTreeSet<&'a str>,
}

impl<'a> Budget<'a> {
    pub(super) fn new(costs: &'a BTreeMap<&'a str, u64>) -> Self {
        Self { remaining: RUNTIME_BUDGET, costs, counted: BTreeSet::new() }
    }

    /// What remains, for other expressions. They evaluate variables again.
    fn remaining(&self) -> Self {
        Self { remaining: self.remaining, costs: self.costs, counted: BTreeSet::new() }
    }

    pub(super) fn eval<'b>(
        &mut self,
        program: &'b Compiled,
        expression: &str,
        bindings: &Bindings<'b>,
    ) -> Result<cel::Value<'b>, Failure>
    where
        'b: 'a,
    {
        let program =
            program.as_ref().map_err(|why| Failure::Expression(format!("compilation error: {why}")))?;
        let found = program.eval(bindings, PER_CALL_LIMIT);
        let mut cost = found.cost;
        for name in program.composed_variables() {
            if self.counted.insert(name) {
                cost = cost.saturating_add(self.costs.get(name).copied().unwrap_or_default());
            }
        }
        self.remaining = self.remaining.saturating_sub(i64::try_from(cost).unwrap_or(i64::MAX));
        if self.remaining < 0 {
            return Err(Failure::Budget);
        }
        found.value.map_err(|error| {
            Failure::Expression(format!("expression '{expression}' resulted in error: {error}"))
        })
    }
}
