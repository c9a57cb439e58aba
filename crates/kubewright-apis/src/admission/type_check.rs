//! Type checks of a ValidatingAdmissionPolicy against the schemas of the kinds that it matches.
//!
//! Admission compiles the expressions with a dynamic `object`, because a policy can match several kinds. Here each
//! expression is compiled once per kind. The results are warnings for `status.typeChecking`; they do not affect
//! admission.

use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_cel::{CompileError, Program};
use serde_json::Value;

use super::PolicyEnvironment;

/// One of `status.typeChecking.expressionWarnings`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// The path of the expression.
    pub field_ref: String,
    /// One paragraph per kind, with cel-go's messages.
    pub warning: String,
}

/// Checks the validations of a policy. `types` are the kinds that it matches, sorted, with their schemas. `params` is the
/// schema of its paramKind, which is dynamic if the schema is not known. Schemas must not have references.
pub fn type_check(
    spec: &Value,
    types: &[(Gvk<'_>, Value)],
    params: Option<&Value>,
) -> Vec<ExpressionWarning> {
    let params = spec.has("paramKind").then(|| {
        let kind = spec.str_at("paramKind.kind");
        (kind, params.unwrap_or(&Value::Null))
    });
    let checkers: Vec<(Gvk<'_>, PolicyEnvironment)> = types
        .iter()
        .map(|(gvk, schema)| {
            let mut environment = PolicyEnvironment::typed((gvk.kind, schema), params);
            for variable in spec.list_at("variables") {
                // A variable that does not compile is dynamic. Its error is not reported.
                let _ = environment.variable(variable.str_at("name"), variable.str_at("expression"));
            }
            (*gvk, environment)
        })
        .collect();
    let mut warnings = Vec::new();
    for (index, validation) in spec.list_at("validations").iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let expression = validation.str_at(field);
            if expression.is_empty() {
                continue;
            }
            let found: Vec<String> = checkers
                .iter()
                .filter_map(|(gvk, environment)| check(*gvk, environment, expression))
                .collect();
            if !found.is_empty() {
                let field_ref = format!("spec.validations[{index}].{field}");
                warnings.push(ExpressionWarning { field_ref, warning: found.join("\n") });
            }
        }
    }
    warnings
}

fn check(gvk: Gvk<'_>, environment: &PolicyEnvironment, expression: &str) -> Option<String> {
    // Programs are not instantiated, and every result type is accepted.
    let Err(CompileError::Invalid(error)) = Program::compile(environment.conditions(), expression, None)
    else {
        return None;
    };
    let Gvk { group, version, kind } = gvk;
    Some(format!("{group}/{version}, Kind={kind}: {error}\n"))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "tests pass literals")]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(properties: Value) -> Value {
        json!({ "type": "object", "properties": properties })
    }

    fn deployment(schema: Value) -> [(Gvk<'static>, Value); 1] {
        [(Gvk { group: "apps", version: "v1", kind: "Deployment" }, schema)]
    }

    fn warnings(spec: Value, schema: Value) -> Vec<(String, String)> {
        let checked = type_check(&spec, &deployment(schema), None);
        checked.into_iter().map(|it| (it.field_ref, it.warning)).collect()
    }

    fn validation(expression: &str) -> Value {
        json!({ "validations": [{ "expression": expression }] })
    }

    #[test]
    fn an_undefined_field_is_reported_as_upstream_does() {
        let schema = object(json!({ "bar": { "type": "string" } }));
        assert_eq!(
            warnings(validation("object.foo == 'bar'"), schema),
            [(
                "spec.validations[0].expression".to_owned(),
                "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'foo'\n | object.foo == 'bar'\n | \
                 ......^\n"
                    .to_owned()
            )]
        );
    }

    #[test]
    fn expressions_that_fit_the_schema_have_no_warnings() {
        let schema = || {
            object(json!({ "foo": { "type": "string" }, "spec": object(json!({
            "text": { "type": "string" }, "any": { "type": "object", "additionalProperties": true },
        })) }))
        };
        for expression in [
            "object.foo == 'bar' && oldObject.foo != object.foo",
            "has(object.spec.text) && object.metadata.name == 'a' && object.kind == 'Deployment'",
            "authorizer.group('').resource('endpoints').check('create').allowed()",
            "namespaceObject.metadata.name == request.namespace",
        ] {
            assert_eq!(warnings(validation(expression), schema()), [], "{expression}");
        }
        assert_eq!(
            warnings(validation("object.anything"), json!({})),
            [],
            "a schema without a type is dynamic"
        );
    }

    #[test]
    fn messages_and_variables_are_checked() {
        let spec = json!({
            "variables": [
                { "name": "name", "expression": "'something'" },
                { "name": "broken", "expression": "object.nosuch" },
                { "name": "spec", "expression": "object.spec" },
            ],
            "validations": [
                { "expression": "variables.name == object.foo", "messageExpression": "object.foo + 'x'" },
                { "expression": "variables.nosuch" },
                { "expression": "variables.broken == 1 && variables.spec.anything" },
            ],
        });
        let schema = object(json!({ "foo": { "type": "integer" }, "spec": object(json!({})) }));
        let found = warnings(spec, schema);
        let fields: Vec<&str> = found.iter().map(|(field, _)| field.as_str()).collect();
        let first = ["spec.validations[0].expression", "spec.validations[0].messageExpression"];
        assert_eq!(fields, [first[0], first[1], "spec.validations[1].expression"]);
        assert!(
            found[0].1.contains("found no matching overload for '_==_' applied to '(string, int)'"),
            "{found:?}"
        );
        assert!(
            found[1].1.contains("found no matching overload for '_+_' applied to '(int, string)'"),
            "{found:?}"
        );
        assert!(found[2].1.contains("undefined field 'nosuch'"), "{found:?}");
    }

    #[test]
    fn params_have_the_type_of_their_kind_if_it_is_known() {
        let mut spec = validation("object.foo == params.bar");
        let types = deployment(object(json!({ "foo": { "type": "string" } })));
        let found = type_check(&spec, &types, None);
        assert!(found[0].warning.contains("undeclared reference to 'params'"), "{found:?}");
        spec["paramKind"] = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
        assert_eq!(type_check(&spec, &types, None), []);
        let params =
            object(json!({ "data": { "type": "object", "additionalProperties": { "type": "string" } } }));
        let found = type_check(&spec, &types, Some(&params));
        assert!(found[0].warning.contains("undefined field 'bar'"), "{found:?}");
    }

    #[test]
    fn each_kind_has_its_own_paragraph() {
        let pod = Gvk { group: "", version: "v1", kind: "Pod" };
        let [deployment] = deployment(object(json!({})));
        let found = type_check(&validation("object.foo"), &[(pod, object(json!({}))), deployment], None);
        let caret = "undefined field 'foo'\n | object.foo\n | ......^\n";
        assert_eq!(
            found[0].warning,
            format!(
                "/v1, Kind=Pod: ERROR: <input>:1:7: {caret}\napps/v1, Kind=Deployment: ERROR: <input>:1:7: {caret}"
            )
        );
    }
}
