//! What expressions of admission may name: match conditions of webhooks, and policies.
//!
//! `object`, `oldObject` and `params` are what they are; `request` and `namespaceObject` have declared fields.
//! An `authorizer` is not declared: asking for permissions is not part of these rules yet.

use super::env::Env;
use super::types::Type;

/// The variables of admission, with `params` if the policy has them.
pub fn environment(has_params: bool) -> Env {
    let env = with_request(with_namespace(Env::new()))
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn);
    if has_params { env.with_variable("params", Type::Dyn) } else { env }
}

fn fields<const N: usize>(fields: [(&str, Type); N]) -> impl IntoIterator<Item = (String, Type)> {
    fields.map(|(name, of)| (name.to_owned(), of))
}

fn with_request(env: Env) -> Env {
    let strings = || Type::list(Type::String);
    let object = Type::object;
    let version = [("group", Type::String), ("version", Type::String)];
    let kind = fields([version[0].clone(), version[1].clone(), ("kind", Type::String)]);
    let resource = fields([version[0].clone(), version[1].clone(), ("resource", Type::String)]);
    let user = fields([
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", strings()),
        ("extra", Type::map(Type::String, strings())),
    ]);
    let request = fields([
        ("kind", object("kubernetes.GroupVersionKind")),
        ("resource", object("kubernetes.GroupVersionResource")),
        ("subResource", Type::String),
        ("requestKind", object("kubernetes.GroupVersionKind")),
        ("requestResource", object("kubernetes.GroupVersionResource")),
        ("requestSubResource", Type::String),
        ("name", Type::String),
        ("namespace", Type::String),
        ("operation", Type::String),
        ("userInfo", object("kubernetes.UserInfo")),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ]);
    env.with_object("kubernetes.GroupVersionKind", kind)
        .with_object("kubernetes.GroupVersionResource", resource)
        .with_object("kubernetes.UserInfo", user)
        .with_object("kubernetes.AdmissionRequest", request)
        .with_variable("request", object("kubernetes.AdmissionRequest"))
}

fn with_namespace(env: Env) -> Env {
    let strings = || Type::list(Type::String);
    let labels = || Type::map(Type::String, Type::String);
    let object = Type::object;
    let condition = fields([
        ("status", Type::String),
        ("type", Type::String),
        ("lastTransitionTime", Type::Timestamp),
        ("message", Type::String),
        ("reason", Type::String),
    ]);
    let metadata = fields([
        ("name", Type::String),
        ("generateName", Type::String),
        ("namespace", Type::String),
        ("labels", labels()),
        ("annotations", labels()),
        ("UID", Type::String),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("resourceVersion", Type::String),
        ("finalizers", strings()),
    ]);
    let status = fields([
        ("conditions", Type::list(object("kubernetes.NamespaceCondition"))),
        ("phase", Type::String),
    ]);
    let namespace = fields([
        ("metadata", object("kubernetes.NamespaceMetadata")),
        ("spec", object("kubernetes.NamespaceSpec")),
        ("status", object("kubernetes.NamespaceStatus")),
    ]);
    env.with_object("kubernetes.NamespaceSpec", fields([("finalizers", strings())]))
        .with_object("kubernetes.NamespaceCondition", condition)
        .with_object("kubernetes.NamespaceStatus", status)
        .with_object("kubernetes.NamespaceMetadata", metadata)
        .with_object("kubernetes.Namespace", namespace)
        .with_variable("namespaceObject", object("kubernetes.Namespace"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cel::{Bindings, Program, Value};

    fn error(text: &str) -> String {
        Program::compile(&environment(false), text, Some(&Type::Bool)).unwrap_err().to_string()
    }

    #[test]
    fn a_condition_sees_the_request_and_the_object() {
        let text =
            "request.userInfo.username != 'bob' && !('free' in object.metadata.?annotations.orValue({}))";
        let program = Program::compile(&environment(false), text, Some(&Type::Bool)).unwrap();
        let (request, object) =
            (json!({"userInfo": {"username": "al"}}), json!({"metadata": {"annotations": {"free": ""}}}));
        let bindings =
            Bindings::new().with("request", Value::from(&request)).with("object", Value::from(&object));
        assert!(matches!(program.eval(&bindings, 1000).value, Ok(Value::Bool(false))));
    }

    #[test]
    fn mistakes_are_told_as_upstream_tells_them() {
        assert_eq!(error("1"), "must evaluate to bool but got int");
        assert_eq!(
            error("params.x == 1"),
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^"
        );
        assert!(error("request.nosuch").contains("undefined field 'nosuch'"));
    }
}
