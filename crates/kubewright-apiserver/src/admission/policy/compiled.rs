//! Compiled admission policies.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apis::admission::PolicyEnvironment;
use kubewright_cel::Program;
use serde_json::Value;

use crate::admission::Attributes;
use crate::admission::webhook::{Compile, Conditions, Criteria, is_exempt_from_policies};

/// A program or its compile error.
pub(super) type Compiled = Result<Program, String>;

/// A ValidatingAdmissionPolicy or MutatingAdmissionPolicy.
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) criteria: Criteria,
    /// `failurePolicy: Ignore`.
    pub(crate) fails_open: bool,
    /// `apiVersion` and `kind` of the parameters.
    pub(crate) param_kind: Option<(String, String)>,
    pub(super) conditions: Conditions,
    pub(super) variables: Vec<(String, Compiled)>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
    /// Of a MutatingAdmissionPolicy only.
    pub(crate) mutations: Vec<Mutation>,
    /// `reinvocationPolicy: IfNeeded`.
    pub(crate) reinvocable: bool,
}

/// One of `spec.mutations`.
pub(crate) struct Mutation {
    pub(super) expression: String,
    pub(super) program: Compiled,
    pub(super) is_json_patch: bool,
}

/// One of `spec.validations`.
pub(super) struct Validation {
    pub(super) expression: String,
    pub(super) program: Compiled,
    pub(super) message: String,
    pub(super) message_program: Option<Compiled>,
    /// `reason`; defaults to `Invalid`.
    pub(super) reason: String,
}

/// One of `spec.auditAnnotations`.
pub(super) struct Annotation {
    pub(super) key: String,
    pub(super) expression: String,
    pub(super) program: Compiled,
}

impl Compile for Policy {
    fn compile(object: &Value) -> Vec<Self> {
        let spec = object.at("spec");
        let text = |value: &Value, field: &str| value.str_at(field).to_owned();
        let fails_open = spec.str_at("failurePolicy") == "Ignore";
        let mut environment = PolicyEnvironment::new(spec.has("paramKind"));
        let variables: Vec<(String, Compiled)> = spec
            .list_at("variables")
            .iter()
            .map(|variable| {
                let (name, expression) = (variable.str_at("name"), variable.str_at("expression"));
                let program = environment.variable(name, expression).map_err(|error| error.to_string());
                (name.to_owned(), program)
            })
            .collect();
        let validation = |validation: &Value| {
            let message = validation.str_at("messageExpression");
            let reason = validation.str_at("reason");
            Validation {
                expression: text(validation, "expression"),
                program: environment
                    .condition(validation.str_at("expression"))
                    .map_err(|error| error.to_string()),
                message: validation.str_at("message").trim().to_owned(),
                message_program: (!message.trim().is_empty())
                    .then(|| environment.message(message).map_err(|error| error.to_string())),
                reason: if reason.is_empty() { "Invalid" } else { reason }.to_owned(),
            }
        };
        let annotation = |annotation: &Value| Annotation {
            key: text(annotation, "key"),
            expression: text(annotation, "valueExpression"),
            program: environment
                .annotation(annotation.str_at("valueExpression"))
                .map_err(|error| error.to_string()),
        };
        let mutation = |mutation: &Value| {
            let is_json_patch = mutation.str_at("patchType") == "JSONPatch";
            let expression =
                if is_json_patch { "jsonPatch.expression" } else { "applyConfiguration.expression" };
            let expression = mutation.str_at(expression);
            let program = if is_json_patch {
                environment.json_patch(expression)
            } else {
                environment.apply_configuration(expression)
            };
            Mutation {
                expression: expression.to_owned(),
                program: program.map_err(|error| error.to_string()),
                is_json_patch,
            }
        };
        vec![Self {
            mutations: spec.list_at("mutations").iter().map(mutation).collect(),
            reinvocable: spec.str_at("reinvocationPolicy") == "IfNeeded",
            name: text(object, "metadata.name"),
            criteria: Criteria::of_match_resources(spec.at("matchConstraints")),
            fails_open,
            param_kind: spec
                .has("paramKind")
                .then(|| (text(spec, "paramKind.apiVersion"), text(spec, "paramKind.kind"))),
            conditions: Conditions::compile(
                spec.list_at("matchConditions"),
                || environment.conditions().clone(),
                fails_open,
            ),
            validations: spec.list_at("validations").iter().map(validation).collect(),
            annotations: spec.list_at("auditAnnotations").iter().map(annotation).collect(),
            variables,
        }]
    }

    fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    fn is_exempt(attributes: &Attributes<'_>) -> bool {
        is_exempt_from_policies(attributes)
    }
}
