//! CEL environments of admission: match conditions of webhooks, and admission policies.
//!
//! `object`, `oldObject` and `params` are dynamic. `request` and `namespaceObject` have declared fields.
//! `authorizer` checks permissions.

mod type_check;

use kubewright_cel::{CompileError, Env, Program, Type};
use serde_json::Value;

pub use type_check::{ExpressionWarning, type_check};

use crate::openapi::cel_schema;

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";

const COMPOSED: &str = "kubernetes.variables";

/// The variables of admission, with `params` if the policy has a paramKind.
pub fn environment(has_params: bool) -> Env {
    environment_without_authorizer(has_params)
        .with_object(AUTHORIZER, fields([("requestResource", Type::object(RESOURCE_CHECK))]))
        .with_variable("authorizer", Type::object(AUTHORIZER))
}

/// Like [`environment`], but without `authorizer`. For messages and audit annotations.
pub fn environment_without_authorizer(has_params: bool) -> Env {
    let env = with_request(with_namespace(Env::new()))
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn);
    if has_params { env.with_variable("params", Type::Dyn) } else { env }
}

/// Compiles the expressions of a policy. Each variable is available to the expressions after it.
#[derive(Debug)]
pub struct PolicyEnvironment {
    conditions: Env,
    texts: Env,
    variables: Vec<(String, Type)>,
}

impl PolicyEnvironment {
    /// Creates an environment without variables.
    pub fn new(has_params: bool) -> Self {
        let mut environment = Self {
            conditions: environment(has_params),
            texts: environment_without_authorizer(has_params),
            variables: Vec::new(),
        };
        environment.publish();
        environment
    }

    /// Creates an environment in which `object`, `oldObject` and `params` have the types of OpenAPI schemas.
    fn typed(object: (&str, &Value), params: Option<(&str, &Value)>) -> Self {
        // The numbers make the type names unique if both objects have the same kind.
        let name = |kind: &str, number: u8| format!("{kind}{number}");
        let mut env = environment(params.is_some()).with_resource(
            &["object", "oldObject"],
            &name(object.0, 1),
            cel_schema(object.1),
        );
        if let Some((kind, schema)) = params {
            env = env.with_resource(&["params"], &name(kind, 2), cel_schema(schema));
        }
        let mut environment = Self { conditions: env.clone(), texts: env, variables: Vec::new() };
        environment.publish();
        environment
    }

    /// Compiles the next variable and declares it. If it does not compile, it has a dynamic type.
    pub fn variable(&mut self, name: &str, expression: &str) -> Result<Program, CompileError> {
        let program = Program::compile(&self.conditions, expression, None);
        let of = program.as_ref().map_or(Type::Dyn, |program| composed(program.result_type()));
        self.variables.push((name.to_owned(), of));
        self.publish();
        program
    }

    fn publish(&mut self) {
        for env in [&mut self.conditions, &mut self.texts] {
            *env = std::mem::take(env)
                .with_object(COMPOSED, self.variables.iter().cloned())
                .with_variable("variables", Type::object(COMPOSED));
        }
    }

    /// The environment of conditions and validations.
    pub fn conditions(&self) -> &Env {
        &self.conditions
    }

    /// Compiles the expression of a validation or match condition.
    pub fn condition(&self, expression: &str) -> Result<Program, CompileError> {
        Program::compile(&self.conditions, expression, Some(&Type::Bool))
    }

    /// Compiles a mutation that returns a list of JSON patch operations.
    pub fn json_patch(&self, expression: &str) -> Result<Program, CompileError> {
        let env = self.conditions.clone().with_patch_types();
        Program::compile(&env, expression, Some(&Type::list(Type::object("JSONPatch"))))
    }

    /// Compiles a mutation that returns an apply configuration.
    pub fn apply_configuration(&self, expression: &str) -> Result<Program, CompileError> {
        let env = self.conditions.clone().with_patch_types();
        Program::compile(&env, expression, Some(&Type::object("Object")))
    }

    /// Compiles a message expression.
    pub fn message(&self, expression: &str) -> Result<Program, CompileError> {
        Program::compile(&self.texts, expression, Some(&Type::String))
    }

    /// Compiles the value of an audit annotation: a string or null.
    pub fn annotation(&self, expression: &str) -> Result<Program, CompileError> {
        let program = Program::compile(&self.texts, expression, None)?;
        match program.result_type() {
            Type::String | Type::Null => Ok(program),
            found => Err(CompileError::ResultTypes { wanted: "[string null_type]", found: found.clone() }),
        }
    }
}

/// The type of a variable as other expressions see it: objects and types of libraries are dynamic.
fn composed(of: &Type) -> Type {
    match of {
        Type::List(item) => Type::list(composed(item)),
        Type::Map(key, value) => Type::map(composed(key), composed(value)),
        Type::Object(_) | Type::Opaque(..) | Type::Type(_) | Type::Param(_) | Type::Error => Type::Dyn,
        simple => simple.clone(),
    }
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
    use kubewright_cel::{
        Authorization, AuthorizationCheck, AuthorizationDecision, Authorizer, Bindings, ResourceCheck, Value,
    };

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

    #[derive(Debug)]
    struct OnlyPods;

    impl Authorizer for OnlyPods {
        fn decide(&self, account: Option<(&str, &str)>, check: &AuthorizationCheck) -> AuthorizationDecision {
            let allowed = match check {
                AuthorizationCheck::Path { path, verb } => path == "/healthz" && verb == "get",
                AuthorizationCheck::Resource { resource, .. } => {
                    resource.resource == "pods" && resource.namespace == "here"
                }
            };
            let allowed = allowed && account.is_none_or(|account| account == ("ns", "robot"));
            AuthorizationDecision { allowed, reason: "rules".to_owned(), error: None }
        }

        fn request_resource(&self) -> ResourceCheck {
            ResourceCheck {
                resource: "pods".to_owned(),
                namespace: "here".to_owned(),
                ..ResourceCheck::default()
            }
        }
    }

    #[test]
    fn a_condition_can_use_the_authorizer() {
        let eval = |text: &str| {
            let program = Program::compile(&environment(false), text, Some(&Type::Bool)).unwrap();
            let authorizer = Value::Authorization(Authorization::new(&OnlyPods));
            let found = program.eval(&Bindings::new().with("authorizer", authorizer), u64::MAX);
            (matches!(found.value, Ok(Value::Bool(true))), found.cost)
        };
        let pods = "authorizer.group('').resource('pods').namespace('here').check('get')";
        assert_eq!(eval(&format!("{pods}.allowed()")), (true, 350_005));
        assert!(eval(&format!("{pods}.reason() == 'rules' && !{pods}.errored()")).0);
        assert!(eval("authorizer.requestResource.check('delete').allowed()").0);
        assert!(eval("authorizer.path('/healthz').check('get').allowed()").0);
        assert!(eval("authorizer.serviceAccount('ns', 'robot').requestResource.check('get').allowed()").0);
        assert!(!eval("authorizer.serviceAccount('ns', 'other').requestResource.check('get').allowed()").0);
        assert!(!eval("authorizer.group('').resource('secrets').check('get').allowed()").0);
    }

    #[test]
    fn mutations_construct_objects_and_patches() {
        let environment = PolicyEnvironment::new(false);
        let object = json!({"metadata": {"name": "a/b"}});
        let eval = |program: Program| {
            let bindings = Bindings::new().with("object", Value::from(&object));
            program.eval(&bindings, 1000).value.unwrap().to_json().unwrap()
        };
        let text = "Object{metadata: Object.metadata{labels: Object.metadata.labels{a: string(1 + 1)}}}";
        assert_eq!(
            eval(environment.apply_configuration(text).unwrap()),
            json!({"metadata": {"labels": {"a": "2"}}})
        );
        let text = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey(object.metadata.name), \
                    value: Object.metadata.labels{a: 'x'}}]";
        assert_eq!(
            eval(environment.json_patch(text).unwrap()),
            json!([{"op": "add", "path": "/metadata/labels/a~1b", "value": {"a": "x"}}])
        );
        let error = environment.json_patch("[JSONPatch{nosuch: 1}]").unwrap_err().to_string();
        assert!(error.contains("undefined field 'nosuch'"), "{error}");
        let error = environment.condition("Object{a: 1} == null").unwrap_err().to_string();
        assert!(error.contains("undeclared reference to 'Object'"), "{error}");
    }

    #[test]
    fn compile_errors_equal_those_of_kube_apiserver() {
        assert_eq!(error("1"), "must evaluate to bool but got int");
        assert_eq!(
            error("params.x == 1"),
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^"
        );
        assert!(error("request.nosuch").contains("undefined field 'nosuch'"));
    }
}
