//! Match conditions in CEL, and the `authorizer` variable.

use kubewright_apimachinery::object::Fields as _;
use kubewright_cel::{
    self as cel, AuthorizationCheck, AuthorizationDecision, Authorizer, Bindings, MATCH_CONDITIONS_BUDGET,
    PER_CALL_LIMIT, Program, ResourceCheck, Type,
};
use serde_json::Value;

use crate::admission::{Attributes, Cluster};
use crate::authn::User;
use crate::authz::{Action, ActionOn, Authz};

/// The match conditions of one webhook or policy.
#[derive(Debug)]
pub(crate) struct Conditions {
    conditions: Vec<Condition>,
    fails_open: bool,
}

#[derive(Debug)]
struct Condition {
    expression: String,
    program: Result<Program, String>,
}

/// The result of match conditions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Matched {
    Yes,
    No,
    /// Evaluation failed, and the failure policy is `Fail`.
    Failed(String),
}

impl Conditions {
    /// Compiles conditions. The environment is created only if there are conditions.
    pub(crate) fn compile(
        conditions: &[Value],
        environment: impl FnOnce() -> cel::Env,
        fails_open: bool,
    ) -> Self {
        let env = (!conditions.is_empty()).then(environment);
        let compile = |condition: &Value| {
            let expression = condition.str_at("expression").trim().to_owned();
            let program = match &env {
                Some(env) => {
                    Program::compile(env, &expression, Some(&Type::Bool)).map_err(|error| error.to_string())
                }
                None => Err(String::new()),
            };
            Condition { expression, program }
        };
        Self { conditions: conditions.iter().map(compile).collect(), fails_open }
    }

    /// The composed variables that the conditions use.
    pub(crate) fn composed_variables(&self) -> impl Iterator<Item = &str> {
        let programs = self.conditions.iter().filter_map(|condition| condition.program.as_ref().ok());
        programs.flat_map(Program::composed_variables)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Evaluates all conditions: a false condition takes precedence over errors.
    pub(crate) fn evaluate(&self, bindings: &Bindings<'_>) -> Matched {
        let mut remaining = MATCH_CONDITIONS_BUDGET;
        let mut errors = Vec::new();
        let mut matches = true;
        for condition in &self.conditions {
            let program = match &condition.program {
                Ok(program) => program,
                Err(error) => {
                    errors.push(format!("compilation error: {error}"));
                    continue;
                }
            };
            let found = program.eval(bindings, PER_CALL_LIMIT);
            remaining = remaining.saturating_sub(i64::try_from(found.cost).unwrap_or(i64::MAX));
            if remaining < 0 {
                let why = "validation failed due to running out of cost budget, no further validation rules \
                           will be run";
                return self.failure(why.to_owned());
            }
            match found.value {
                Ok(cel::Value::Bool(true)) => {}
                Ok(_) => matches = false,
                Err(error) => {
                    errors.push(format!("expression '{}' resulted in error: {error}", condition.expression));
                }
            }
        }
        if !matches {
            return Matched::No;
        }
        match errors.as_slice() {
            [] => Matched::Yes,
            [only] => self.failure(only.clone()),
            several => self.failure(format!("[{}]", several.join(", "))),
        }
    }

    fn failure(&self, why: String) -> Matched {
        if self.fails_open { Matched::No } else { Matched::Failed(why) }
    }
}

/// The authorizer for the user of a request.
pub(crate) struct Authorization<'a> {
    authz: &'a Authz,
    user: &'a User,
    resource: ResourceCheck,
}

impl<'a> Authorization<'a> {
    pub(crate) fn new(cluster: &'a Cluster, attributes: &'a Attributes<'_>) -> Self {
        let resource = ResourceCheck {
            group: attributes.resource.group().to_owned(),
            resource: attributes.resource.plural().to_owned(),
            subresource: attributes.subresource.to_owned(),
            namespace: attributes.namespace.to_owned(),
            name: attributes.name.to_owned(),
        };
        Self { authz: cluster.authz(), user: attributes.user, resource }
    }
}

impl std::fmt::Debug for Authorization<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorization").field("user", &self.user.name).finish_non_exhaustive()
    }
}

impl Authorizer for Authorization<'_> {
    fn decide(
        &self,
        service_account: Option<(&str, &str)>,
        check: &AuthorizationCheck,
    ) -> AuthorizationDecision {
        let account = service_account.map(|(namespace, name)| {
            let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
            User::authenticated(format!("system:serviceaccount:{namespace}:{name}"), groups)
        });
        let user = account.as_ref().unwrap_or(self.user);
        let combined;
        let action = match check {
            AuthorizationCheck::Path { path, verb } => Action { verb, on: ActionOn::Path(path) },
            AuthorizationCheck::Resource { resource, verb } => {
                combined = if resource.subresource.is_empty() {
                    resource.resource.clone()
                } else {
                    format!("{}/{}", resource.resource, resource.subresource)
                };
                let on = ActionOn::Resource {
                    group: &resource.group,
                    resource: &combined,
                    namespace: &resource.namespace,
                    name: &resource.name,
                };
                Action { verb, on }
            }
        };
        let decision = self.authz.decide(user, action);
        AuthorizationDecision { allowed: decision.allowed, reason: decision.reason, error: None }
    }

    fn request_resource(&self) -> ResourceCheck {
        self.resource.clone()
    }
}
