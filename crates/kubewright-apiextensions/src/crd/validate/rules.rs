//! Validation of `x-kubernetes-validations`: structure, compilation results and costs.

use serde_json::Value;

use super::super::fieldpath;
use super::super::printed;
use super::super::schema::Schema;
use super::openapi::Occurrences;
use super::structural;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel::rules::CompiledRule;

/// Maximum estimated cost of one expression.
const EXPRESSION_LIMIT: u64 = 10_000_000;
/// Maximum estimated cost of all expressions of a schema.
const TOTAL_LIMIT: u64 = 100_000_000;
/// Number of most expensive expressions that the error lists.
const NAMED: usize = 4;

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Validates the structure of a schema's rules.
pub(super) fn validate(schema: Schema<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, rule) in schema.rules().iter().enumerate() {
        let path = path.child("x-kubernetes-validations").index(i);
        let text = rule.str_at("rule").trim();
        let message = rule.str_at("message");
        let message_path = path.child("message");
        if text.is_empty() {
            errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(&message_path, message, "must be non-empty if specified"));
        } else if has_line_breaks(message.trim()) {
            errors.push(FieldError::invalid(&message_path, message, "must not contain line breaks"));
        } else if has_line_breaks(text) && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(&message_path, detail));
        }
        let expression = rule.str_at("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(&path.child("messageExpression"), detail));
        }
        if let Some(reason) = rule.at("reason").as_str()
            && !REASONS.contains(&reason)
        {
            errors.push(FieldError::not_supported(&path.child("reason"), reason, &REASONS));
        }
        errors.extend(field_path(rule.str_at("fieldPath"), schema, &path.child("fieldPath")));
    }
    errors
}

fn field_path(value: &str, schema: Schema<'_>, path: &Path) -> ErrorList {
    let problems = [
        ("must be non-empty if specified", value.trim().is_empty()),
        ("must not contain line breaks", has_line_breaks(value)),
        // There is no information about a schema that is not structural.
        (
            "must be a valid path",
            fieldpath::resolve(value, schema.0).is_err() && structural::unsupported(schema).is_none(),
        ),
    ];
    let found = problems.into_iter().filter(|(_, found)| *found && !value.is_empty());
    found.map(|(problem, _)| FieldError::invalid(path, value, problem)).collect()
}

fn has_line_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// The rules of one schema and their context.
pub(super) struct Rules<'a> {
    pub(super) schema: Schema<'a>,
    pub(super) occurrences: Occurrences,
    pub(super) uncorrelatable: Option<&'a Path>,
    /// The schema did not change: cost limits do not apply.
    pub(super) suppress_cost: bool,
}

impl Rules<'_> {
    /// Reports the compilation results of the rules.
    pub(super) fn validate(
        &self,
        compiled: &[CompiledRule],
        total: &mut TotalCost,
        path: &Path,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        for (i, (rule, compiled)) in self.schema.rules().iter().zip(compiled).enumerate() {
            let path = path.child("x-kubernetes-validations").index(i);
            self.rule(rule, compiled, total, &path, &mut errors);
            self.message_expression(rule, compiled, total, &path, &mut errors);
            if compiled.uses_old_self {
                if let Some(uncorrelatable) = self.uncorrelatable {
                    errors.push(FieldError::invalid(
                        &path.child("rule"),
                        rule.str_at("rule"),
                        format!(
                            "oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
                        ),
                    ));
                }
            } else if let Some(optional) = rule.at("optionalOldSelf").as_bool() {
                let detail = "may not be set if oldSelf is not used in rule";
                errors.push(FieldError::invalid(&path.child("optionalOldSelf"), optional, detail));
            }
        }
        errors
    }

    fn rule(
        &self,
        rule: &Value,
        compiled: &CompiledRule,
        total: &mut TotalCost,
        path: &Path,
        errors: &mut ErrorList,
    ) {
        let path = path.child("rule");
        let times = match self.occurrences {
            Occurrences::AtMost(times) => times,
            Occurrences::Unbounded => compiled.max_cardinality,
        };
        let cost = compiled.max_cost.saturating_mul(times);
        if !self.suppress_cost && cost > EXPRESSION_LIMIT {
            let detail = cost_message("estimated rule cost", cost, EXPRESSION_LIMIT);
            errors.push(FieldError::forbidden(&path, detail));
        }
        total.add(&path, cost);
        if let Some(error) = &compiled.error {
            errors.push(FieldError::invalid_printed(&path, printed::rule(rule), error.as_str()));
        }
    }

    fn message_expression(
        &self,
        rule: &Value,
        compiled: &CompiledRule,
        total: &mut TotalCost,
        path: &Path,
        errors: &mut ErrorList,
    ) {
        let path = path.child("messageExpression");
        match &compiled.message_expression {
            None => {}
            Some(Err(error)) => {
                errors.push(FieldError::invalid_printed(&path, printed::rule(rule), error.as_str()));
            }
            Some(Ok(cost)) => {
                if !self.suppress_cost && *cost > EXPRESSION_LIMIT {
                    let detail = cost_message("estimated messageExpression cost", *cost, EXPRESSION_LIMIT);
                    errors.push(FieldError::forbidden(&path, detail));
                }
                total.add(&path, *cost);
            }
        }
    }
}

/// The total cost of the rules of a schema.
#[derive(Default)]
pub(super) struct TotalCost {
    total: u64,
    /// The most expensive expressions, in descending order.
    expensive: Vec<(Path, u64)>,
}

impl TotalCost {
    fn add(&mut self, path: &Path, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.expensive.push((path.clone(), cost));
            self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.expensive.truncate(NAMED);
        }
    }

    /// The errors if the schema at `path` is too expensive.
    pub(super) fn errors(&self, path: &Path) -> ErrorList {
        if self.total <= TOTAL_LIMIT {
            return ErrorList::new();
        }
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: ErrorList =
            self.expensive.iter().map(|(path, _)| FieldError::forbidden(path, detail)).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, cost_message(what, self.total, TOTAL_LIMIT)));
        errors
    }
}

fn cost_message(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "only shown in a message")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, \
         and maxLength where arrays, maps, and strings are declared)"
    )
}
