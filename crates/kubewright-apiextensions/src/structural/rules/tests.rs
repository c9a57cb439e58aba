//! Validation rules as users write them.

use kubewright_apimachinery::field::aggregate;
use kubewright_cel::rules::{Compiler, Rules as _};
use serde_json::{Value as Json, json};

use super::*;

fn rules(spec: &Json) -> RuleSet {
    Structural::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap().rules()
}

fn errors(spec: &Json, new: Json, old: Option<Json>) -> String {
    let rules = rules(spec);
    let object =
        |spec: Json| json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"}, "spec": spec});
    let old = old.map(object);
    let found = rules.validate(&object(new), old.as_ref());
    if found.errors.is_empty() { String::new() } else { aggregate(&found.errors) }
}

#[test]
fn a_violated_rule_is_reported() {
    let spec = json!({"type": "object", "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.a < 3"}, {"rule": "self.a != 7", "message": "no seven", "fieldPath": ".a"}]});
    assert_eq!(errors(&spec, json!({"a": 1}), None), "");
    assert_eq!(errors(&spec, json!({"a": 4}), None), "spec: Invalid value: failed rule: self.a < 3");
    assert_eq!(
        errors(&spec, json!({"a": 7}), None),
        "[spec: Invalid value: failed rule: self.a < 3, spec.a: Invalid value: no seven]"
    );
    assert_eq!(
        errors(&spec, json!({}), None),
        "[spec: Invalid value: \"object\": no such key: a evaluating rule: self.a < 3, \
         spec: Invalid value: \"object\": no such key: a evaluating rule: no seven]"
    );
}

#[test]
fn transition_rules_run_only_with_an_old_value() {
    let spec = json!({"type": "object", "properties": {
        "s": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
              "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v"}]}}}});
    assert_eq!(errors(&spec, json!({"s": "a"}), None), "");
    assert_eq!(
        errors(&spec, json!({"s": "b"}), Some(json!({"s": "a"}))),
        "spec.s: Invalid value: \"b\": failed rule: self == oldSelf"
    );
    let new = json!({"l": [{"k": "b", "v": 1}, {"k": "a", "v": 1}]});
    let old = json!({"l": [{"k": "a", "v": 2}]});
    assert_eq!(errors(&spec, new, Some(old)), "spec.l[1]: Invalid value: failed rule: self.v >= oldSelf.v");
}

#[test]
fn an_unchanged_violation_is_only_a_warning() {
    let spec = json!({"type": "object", "properties": {"s": {"type": "string",
        "x-kubernetes-validations": [{"rule": "self.size() < 3"}]}, "n": {"type": "integer"}}});
    let rules = rules(&spec);
    let (old, new) = (json!({"spec": {"s": "long", "n": 1}}), json!({"spec": {"s": "long", "n": 2}}));
    let found = rules.validate(&new, Some(&old));
    assert!(found.errors.is_empty());
    assert_eq!(found.warnings, ["spec.s: Invalid value: \"long\": failed rule: self.size() < 3"]);
}

#[test]
fn a_rule_that_exceeds_the_cost_limit_is_stopped() {
    let spec = json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": [
            {"rule": "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"}, {"rule": "false"}]});
    let items: Vec<i64> = (0..200).collect();
    assert_eq!(
        errors(&spec, json!({"l": items}), None),
        "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation \
         rules will be run due to call cost exceeds limit for rule: \
         self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"
    );
}

#[test]
fn crd_validation_gets_compile_errors_and_costs() {
    let spec = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.c == 1"}, {"rule": "self.a"}, {"rule": "oldSelf.a > 1", "messageExpression": "'x' + self.b"}, {"rule": "self.b == int('x')"}]});
    let found = Compiler.compile((&Structural::parse(&spec).unwrap()).into(), false);
    assert_eq!(
        found[0].error.as_deref(),
        Some("compilation failed: ERROR: <input>:1:5: undefined field 'c'\n | self.c == 1\n | ....^")
    );
    assert_eq!(found[1].error.as_deref(), Some("cel expression must evaluate to a bool"));
    assert!(found[2].error.is_none() && found[2].uses_old_self && found[2].max_cost == 3);
    assert_eq!(found[2].message_expression, Some(Ok(314_575)));
}
