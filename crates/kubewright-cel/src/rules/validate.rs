//! Evaluation of the rules of a schema on an object.
//!
//! The errors have upstream's order: rules of a value first, then those of its children.

use serde_json::Value as Json;

use super::Outcome;
use super::compile::{Compiled, Node};
use super::correlate::{Correlation, old_items};
use crate::data;
use crate::error::EvalError;
use crate::eval::Evaluation;
use crate::program::{Bindings, Program};
use crate::schema::{Rule, Schema};
use crate::value::{Evaluated, Value};
use crate::{PER_CALL_LIMIT, RUNTIME_BUDGET};
use kubewright_apimachinery::field::{ErrorKind, FieldError, Path, quote};

/// Maximum length of the result of a `messageExpression`.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The budget is exhausted; no more rules run.
pub(super) struct Stopped;

/// The validation of one object.
pub(super) struct Validation {
    budget: i64,
    /// The limit of a validation that must not use much CPU time.
    cheap: Option<u64>,
    pub(super) outcome: Outcome,
}

impl Validation {
    pub(super) fn new() -> Self {
        Self { budget: RUNTIME_BUDGET, cheap: None, outcome: Outcome::default() }
    }

    /// A validation that stops at this cost.
    pub(super) fn within(cost: u64) -> Self {
        let budget = i64::try_from(cost).unwrap_or(i64::MAX).min(RUNTIME_BUDGET);
        Self { budget, cheap: Some(cost.min(PER_CALL_LIMIT)), outcome: Outcome::default() }
    }

    fn eval<'a>(&self, program: &'a Program, bindings: &Bindings<'a>) -> Evaluation<'a> {
        match self.cheap {
            Some(limit) => program.eval_cheaply(bindings, limit),
            None => program.eval(bindings, PER_CALL_LIMIT),
        }
    }

    /// Runs the rules of `node` and its descendants.
    pub(super) fn node(
        &mut self,
        node: &Node,
        schema: &Schema,
        path: &Path,
        object: &Json,
        old: Option<&Json>,
        correlation: Correlation<'_>,
    ) -> Result<(), Stopped> {
        if object.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(node, schema, path, object, old, correlation)?;
        for all_of in &node.all_of {
            self.node(all_of, schema, path, object, old, correlation.of_all_of())?;
        }
        match object {
            Json::Array(items) => {
                let (Some(inner), Some(of)) = (&node.items, &schema.items) else { return Ok(()) };
                let old = old.and_then(Json::as_array).map_or(&[] as &[_], Vec::as_slice);
                let old = old_items(schema, old, items);
                let correlations = correlation.items(items.len());
                for (i, ((item, old), correlation)) in items.iter().zip(old).zip(correlations).enumerate() {
                    self.node(inner, of, &path.index(i), item, old, correlation)?;
                }
            }
            Json::Object(entries) => {
                let is_correlatable =
                    matches!(schema.map_type.as_deref(), None | Some("granular" | "atomic"));
                let old = old.and_then(Json::as_object).filter(|_| is_correlatable);
                if let (Some(inner), Some(of)) = (&node.additional, &schema.additional) {
                    for (key, value) in entries {
                        let old = old.and_then(|old| old.get(key));
                        self.node(inner, of, &path.key(key), value, old, correlation.key(key))?;
                    }
                }
                for (name, value) in entries {
                    let of = schema.declared().and_then(|declared| declared.get(name));
                    if let (Some(inner), Some(of)) = (node.properties.get(name), of) {
                        let old = old.and_then(|old| old.get(name));
                        self.node(inner, of, &path.child(name), value, old, correlation.key(name))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rules(
        &mut self,
        node: &Node,
        schema: &Schema,
        path: &Path,
        object: &Json,
        old: Option<&Json>,
        correlation: Correlation<'_>,
    ) -> Result<(), Stopped> {
        if node.rules.is_empty() {
            return Ok(());
        }
        if self.budget <= 0 {
            return self.stop(path, schema, OUT_OF_BUDGET.to_owned());
        }
        let new = data::value(object, Some(schema));
        let old_value = old.map(|old| data::value(old, Some(schema)));
        for compiled in &node.rules {
            let program = match &compiled.program {
                None => continue,
                Some(Ok(program)) => program,
                Some(Err(problem)) => {
                    self.report(path, schema, format!("rule compile error: {problem}"));
                    continue;
                }
            };
            let is_optional = compiled.rule.optional_old_self == Some(true);
            if compiled.uses_old_self && old.is_none() && !is_optional {
                continue;
            }
            let bindings = bindings(&new, old_value.as_ref(), is_optional);
            let found = match bindings {
                Ok(bindings) => {
                    let found = self.eval(program, &bindings);
                    self.spend(found.cost, path, schema)?;
                    let is_true = found.value.map(|value| matches!(value, Value::Bool(true)));
                    is_true.map(|is_true| if is_true { None } else { Some(bindings) })
                }
                Err(error) => Err(error),
            };
            match found {
                Ok(None) => {}
                Ok(Some(bindings)) => {
                    let value =
                        (schema.type_name != "object" && schema.type_name != "array").then_some(object);
                    self.broken(compiled, &bindings, path, schema, value, correlation)?;
                }
                Err(error) => self.failed(&compiled.rule, &error, path, schema)?,
            }
        }
        Ok(())
    }

    /// Subtracts the cost of a rule from the budget.
    fn spend(&mut self, cost: u64, path: &Path, schema: &Schema) -> Result<(), Stopped> {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                Ok(())
            }
            _ => self.stop(path, schema, OUT_OF_BUDGET.to_owned()),
        }
    }

    /// Reports a rule whose evaluation failed.
    fn failed(
        &mut self,
        rule: &Rule,
        error: &EvalError,
        path: &Path,
        schema: &Schema,
    ) -> Result<(), Stopped> {
        let name = named(rule);
        let text = error.to_string();
        if text.starts_with("no such overload") {
            self.report(
                path,
                schema,
                format!(
                    "'{text}': call arguments did not match a supported operator, function or macro signature \
                     for rule: {name}"
                ),
            );
        } else if *error == EvalError::CostLimitExceeded {
            let problem = format!(
                "'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"
            );
            return self.stop(path, schema, problem);
        } else {
            self.report(path, schema, format!("{text} evaluating rule: {name}"));
        }
        Ok(())
    }

    /// Reports a violated rule.
    fn broken(
        &mut self,
        compiled: &Compiled,
        bindings: &Bindings<'_>,
        path: &Path,
        schema: &Schema,
        value: Option<&Json>,
        correlation: Correlation<'_>,
    ) -> Result<(), Stopped> {
        let path = match &compiled.field_path {
            Some(below) if !below.is_empty() => path.child(below),
            _ => path.clone(),
        };
        let ratchet = !compiled.uses_old_self && correlation.is_unchanged();
        let mut detail = None;
        if let Some(Ok(message)) = &compiled.message {
            match self.message(message, &compiled.rule.message_expression, bindings) {
                Ok(text) => detail = text,
                Err(problem) => {
                    let error = FieldError::invalid(&path, schema.type_name.as_str(), problem);
                    self.add(error, ratchet);
                    return Err(Stopped);
                }
            }
        }
        let rule = &compiled.rule;
        let detail = detail.unwrap_or_else(|| {
            if rule.message.is_empty() {
                format!("failed rule: {}", named(rule))
            } else {
                rule.message.trim().to_owned()
            }
        });
        self.add(broken_error(rule, &path, value, detail), ratchet);
        Ok(())
    }

    /// Evaluates a `messageExpression`. Returns `None` if the result is unusable, and an error if the budget
    /// is exhausted.
    fn message(
        &mut self,
        program: &Program,
        text: &str,
        bindings: &Bindings<'_>,
    ) -> Result<Option<String>, String> {
        let found = self.eval(program, bindings);
        match i64::try_from(found.cost) {
            Ok(cost) if cost <= self.budget => self.budget -= cost,
            _ => {
                return Err("messageExpression evaluation failed due to running out of cost budget, \
                            no further validation rules will be run"
                    .to_owned());
            }
        }
        match found.value {
            Ok(Value::String(message)) => {
                let message = message.trim();
                let is_usable =
                    !message.is_empty() && message.len() <= MAX_MESSAGE_BYTES && !message.contains('\n');
                Ok(is_usable.then(|| message.to_owned()))
            }
            Err(EvalError::CostLimitExceeded) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                quote(text)
            )),
            _ => Ok(None),
        }
    }

    fn report(&mut self, path: &Path, schema: &Schema, problem: String) {
        self.outcome.errors.push(FieldError::invalid(path, schema.type_name.as_str(), problem));
    }

    fn stop(&mut self, path: &Path, schema: &Schema, problem: String) -> Result<(), Stopped> {
        self.report(path, schema, problem);
        Err(Stopped)
    }

    fn add(&mut self, error: FieldError, as_warning: bool) {
        if as_warning {
            self.outcome.warnings.push(error.to_string());
        } else {
            self.outcome.errors.push(error);
        }
    }
}

fn bindings<'a>(
    new: &Evaluated<'a>,
    old: Option<&Evaluated<'a>>,
    is_optional: bool,
) -> Result<Bindings<'a>, EvalError> {
    let bindings = Bindings::new().with("self", new.clone()?);
    Ok(match old {
        Some(old) if is_optional => bindings.with("oldSelf", Value::some(old.clone()?)),
        Some(old) => bindings.with("oldSelf", old.clone()?),
        None if is_optional => bindings.with("oldSelf", Value::Optional(None)),
        None => bindings,
    })
}

/// The rule as error messages name it.
fn named(rule: &Rule) -> &str {
    if rule.message.is_empty() { rule.expression.trim() } else { rule.message.trim() }
}

fn broken_error(rule: &Rule, path: &Path, value: Option<&Json>, detail: String) -> FieldError {
    let with_value = |kind, detail| FieldError {
        kind,
        field: path.to_string(),
        value: value.map(kubewright_apimachinery::field::printed),
        detail,
    };
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
        Some("FieldValueRequired") => FieldError::required(path, detail),
        Some("FieldValueDuplicate") => with_value(ErrorKind::Duplicate, String::new()),
        _ => with_value(ErrorKind::Invalid, detail),
    }
}
