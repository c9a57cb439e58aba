//! MutatingAdmissionPolicy: modifies objects with JSON patches or apply configurations from CEL expressions.

use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::json;
use kubewright_apimachinery::patch::{JsonPatch, JsonPatchError};
use kubewright_apimachinery::status::{ApiError, Cause};
use kubewright_structured_merge::{self as apply, Schema};
use serde_json::Value;

use super::policy::{Binding, Input, Patch, Policy, collect, param_resource};
use super::validating_admission_policy::{Policies, namespace_object};
use super::webhook::{Authorization, Invocation, Versioned, admission_request, in_version};
use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};
use crate::off_worker::off_worker;

pub(super) struct MutatingAdmissionPolicy;

impl Plugin for MutatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "MutatingAdmissionPolicy"
    }

    fn handles(&self, operation: Operation) -> bool {
        // A deletion has no object to mutate.
        operation != Operation::Delete
    }

    fn admit<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        notes: &'a mut Notes,
    ) -> Admission<'a> {
        match cluster.webhooks().mutating_policies.relevant(cluster, attributes) {
            Some(policies) => Admission::Pending(Box::pin(dispatch(cluster, policies, attributes, notes))),
            None => Admission::ALLOWED,
        }
    }
}

/// One evaluation of a policy with one parameter.
struct Run<'a> {
    policy: &'a Policy,
    binding: &'a Binding,
    invocation: Invocation,
    params: Value,
}

impl Run<'_> {
    /// A unique key of the evaluation.
    fn uid(&self) -> String {
        use kubewright_apimachinery::object::Fields as _;
        let params = &self.params;
        let (namespace, name) = (params.str_at("metadata.namespace"), params.str_at("metadata.name"));
        format!("{}/{}/{namespace}/{name}", self.policy.name, self.binding.name)
    }
}

/// Why a policy denies a request.
struct Denial {
    message: String,
    reason: &'static str,
}

impl Denial {
    /// A configuration error.
    fn configuration(message: String) -> Self {
        Self { message, reason: "Forbidden" }
    }

    /// An error of a match condition or mutation.
    fn evaluation(run: &Run<'_>, why: &str) -> Self {
        let (policy, binding) = (&run.policy.name, &run.binding.name);
        let message = format!("policy '{policy}' with binding '{binding}' denied request: {why}");
        Self { message, reason: "Invalid" }
    }
}

async fn dispatch(
    cluster: &Cluster,
    policies: Policies,
    attributes: &mut Attributes<'_>,
    notes: &mut Notes,
) -> Result<(), ApiError> {
    let bindings = cluster.webhooks().mutating_policy_bindings.get(cluster);
    let mut denials: Vec<Denial> = Vec::new();
    let mut runs = Vec::new();
    for policy in policies.iter().flat_map(|(_, policies)| policies.iter()) {
        let all = bindings.iter().flat_map(|(_, bindings)| bindings.iter());
        let bindings: Vec<&Binding> = all.filter(|binding| binding.policy == policy.name).collect();
        if !bindings.is_empty() {
            let errors = plan(cluster, policy, &bindings, attributes, &mut runs).await;
            if !policy.fails_open {
                denials.extend(errors.into_iter().map(Denial::configuration));
            }
        }
    }
    let again = notes.reinvocation.again;
    if again {
        notes.reinvocation.policies().begin_again(&attributes.object);
    }
    for run in &runs {
        let errors = apply_policy(cluster, run, attributes, notes).await?;
        if !run.policy.fails_open {
            denials.extend(errors.iter().map(|why| Denial::evaluation(run, why)));
        }
    }
    notes.reinvocation.policies().finish(&attributes.object);
    let Some(first) = denials.first() else { return Ok(()) };
    let mut error = attributes.forbidden("");
    error.message.clone_from(&first.message);
    error.reason = first.reason.into();
    let cause =
        |denial: Denial| Cause { reason: String::new(), message: denial.message, field: String::new() };
    error.details.get_or_insert_default().causes = denials.into_iter().map(cause).collect();
    Err(error)
}

/// Adds the evaluations of a policy. Returns configuration errors in upstream's wording.
async fn plan<'a>(
    cluster: &Cluster,
    policy: &'a Policy,
    bindings: &[&'a Binding],
    attributes: &Attributes<'_>,
    runs: &mut Vec<Run<'a>>,
) -> Vec<String> {
    let of_policy = |why: &str| {
        format!("policy {} denied request: failed to configure policy: {why}", quote(&policy.name))
    };
    let of_binding = |binding: &Binding, why: &str| {
        format!(
            "policy '{}' with binding '{}' denied request: failed to configure binding: {why}",
            policy.name, binding.name
        )
    };
    let invocation = match policy.criteria.matches(cluster, attributes) {
        Ok(Some(invocation)) => invocation,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![of_policy(&error.message)],
    };
    let params_of = match param_resource(cluster, policy) {
        Ok(resource) => resource,
        Err(why) => return vec![of_policy(&why)],
    };
    let mut errors = Vec::new();
    let mut is_convertible = false;
    for binding in bindings {
        match binding.criteria.matches(cluster, attributes) {
            Ok(Some(_)) => {}
            Ok(None) => continue,
            Err(error) => {
                errors.push(of_binding(binding, &error.message));
                continue;
            }
        }
        // Each mutation converts the object that it gets. An object that cannot be converted is reported before
        // the first mutation.
        if !is_convertible {
            if let Err(why) = Versioned::new(cluster, attributes, &invocation).await {
                errors.push(of_policy(&why));
                continue;
            }
            is_convertible = true;
        }
        match collect(cluster, params_of.as_deref(), &binding.param_ref, attributes.namespace) {
            Ok(params) => runs.extend(params.into_iter().map(|params| Run {
                policy,
                binding,
                invocation: invocation.clone(),
                params,
            })),
            Err(why) => errors.push(of_binding(binding, &why)),
        }
    }
    errors
}

/// Applies all mutations of a policy. Returns errors that are subject to the failure policy.
async fn apply_policy(
    cluster: &Cluster,
    run: &Run<'_>,
    attributes: &mut Attributes<'_>,
    notes: &mut Notes,
) -> Result<Vec<String>, ApiError> {
    let before = attributes.unpacked();
    if before.is_null() {
        return Ok(Vec::new());
    }
    let uid = run.uid();
    let mut errors = Vec::new();
    for (index, mutation) in run.policy.mutations.iter().enumerate() {
        let patch = {
            let Versioned { object, old_object } =
                Versioned::new(cluster, attributes, &run.invocation).await.map_err(ApiError::internal)?;
            let request = admission_request(attributes, &run.invocation);
            let namespace = namespace_object(cluster, attributes)?;
            let authorization = Authorization::new(cluster, attributes);
            let input = Input {
                object: &object,
                old_object: &old_object,
                request: &request,
                params: &run.params,
                namespace: &namespace,
                authorization: &authorization,
            };
            if index == 0 {
                match off_worker(|| run.policy.is_concerned(&input)) {
                    Ok(true) => {}
                    Ok(false) => return Ok(errors),
                    Err(why) => return Ok(vec![why]),
                }
                if notes.reinvocation.again && !notes.reinvocation.policies().is_pending(&uid) {
                    return Ok(errors);
                }
            }
            match off_worker(|| run.policy.patch(mutation, &input)) {
                Ok(patch) => patched(attributes, &run.invocation, object, &patch)?,
                Err(why) => Err(why),
            }
        };
        match patch {
            Ok(patched) => {
                let object = in_version(cluster, attributes, patched, attributes.kind)
                    .await
                    .map_err(|why| ApiError::internal(format!("failed to convert object: {why}")))?;
                attributes.replace(object)?;
            }
            Err(why) => errors.push(why),
        }
    }
    if attributes.unpacked() != before {
        notes.reinvocation.policies().require_previous();
        notes.reinvocation.changed();
    }
    if run.policy.reinvocable {
        notes.reinvocation.policies().ran(&uid);
    }
    Ok(errors)
}

/// Applies a patch. The inner error is subject to the failure policy.
fn patched(
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    object: Value,
    patch: &Patch,
) -> Result<Result<Value, String>, ApiError> {
    match patch {
        Patch::Json(operations) => {
            let patched =
                JsonPatch::decode(&json::to_vec(operations)).map(|patch| patch.apply(object.clone()));
            Ok(match patched {
                Ok(Ok(patched)) => Ok(decoded(attributes, invocation, patched)?),
                // A failed `test` operation skips the patch.
                Ok(Err(JsonPatchError::TestFailed { .. })) => Ok(object),
                Ok(Err(error)) => Err(format!("JSON Patch: {error}")),
                Err(error) => Err(error.to_string()),
            })
        }
        Patch::Apply(configuration) => {
            let api_version = configuration.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let merged = match attributes.strategy.versions().schema(api_version) {
                Ok(schema) => merged(schema, object, configuration),
                Err(error) => Err(error.to_string()),
            };
            Ok(merged.map_err(|why| format!("error applying patch: {why}")))
        }
    }
}

/// Decodes the result of a JSON patch. Undeclared fields are errors, except in custom resources.
fn decoded(
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    mut patched: Value,
) -> Result<Value, ApiError> {
    let strategy = invocation.strategy(attributes);
    if !strategy.is_unstructured() {
        let undeclared = strategy.decode_value(&mut patched).map_err(ApiError::internal)?;
        if !undeclared.is_empty() {
            let why = format!("strict decoding error: {}", undeclared.join(", "));
            return Err(ApiError::internal(why));
        }
    }
    Ok(patched)
}

/// Merges an apply configuration that conforms to the schema and sets no atomic values.
fn merged(schema: Schema<'_>, object: Value, configuration: &Value) -> Result<Value, String> {
    apply::check(schema, configuration)
        .map_err(|why| format!("failed to convert patch object to typed object: {why}"))?;
    let atomics = apply::atomics(schema, configuration);
    if atomics.is_empty() {
        return Ok(apply::merge(schema, object, configuration));
    }
    Err(format!(
        "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
        atomics.join(", ")
    ))
}
