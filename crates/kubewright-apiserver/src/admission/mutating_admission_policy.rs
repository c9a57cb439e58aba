//! MutatingAdmissionPolicy: modifies objects with JSON patches or apply configurations from CEL expressions.

use kubewright_apimachinery::json;
use kubewright_apimachinery::patch::{JsonPatch, JsonPatchError};
use kubewright_apimachinery::status::{ApiError, Cause};
use kubewright_structured_merge::{self as apply};
use serde_json::Value;

use super::policy::{Binding, Input, Patch, Policy, collect};
use super::validating_admission_policy::{Policies, namespace_object};
use super::webhook::{Authorization, Invocation, admission_request, in_version};
use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};
use crate::off_worker::off_worker;

pub(super) struct MutatingAdmissionPolicy;

impl Plugin for MutatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "MutatingAdmissionPolicy"
    }

    fn handles(&self, _operation: Operation) -> bool {
        true
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

async fn dispatch(
    cluster: &Cluster,
    policies: Policies,
    attributes: &mut Attributes<'_>,
    notes: &mut Notes,
) -> Result<(), ApiError> {
    let bindings = cluster.webhooks().mutating_policy_bindings.get(cluster);
    let mut errors: Vec<String> = Vec::new();
    let mut runs = Vec::new();
    for policy in policies.iter().flat_map(|(_, policies)| policies.iter()) {
        let all = bindings.iter().flat_map(|(_, bindings)| bindings.iter());
        let bindings: Vec<&Binding> = all.filter(|binding| binding.policy == policy.name).collect();
        if !bindings.is_empty() {
            plan(cluster, policy, &bindings, attributes, &mut runs, &mut errors);
        }
    }
    let again = notes.reinvocation.again;
    if again {
        notes.reinvocation.policies().begin_again(&attributes.object);
    }
    for run in &runs {
        if let Err(why) = apply_policy(cluster, run, attributes, notes).await?
            && !run.policy.fails_open
        {
            errors.push(format!(
                "policy '{}' with binding '{}' denied request: {why}",
                run.policy.name, run.binding.name
            ));
        }
    }
    notes.reinvocation.policies().finish(&attributes.object);
    let Some(first) = errors.first() else { return Ok(()) };
    let mut error = attributes.forbidden("");
    error.message.clone_from(first);
    error.reason = "Invalid".into();
    let cause = |message: String| Cause { reason: String::new(), message, field: String::new() };
    error.details.get_or_insert_default().causes = errors.into_iter().map(cause).collect();
    Err(error)
}

/// Adds the evaluations of a policy.
fn plan<'a>(
    cluster: &Cluster,
    policy: &'a Policy,
    bindings: &[&'a Binding],
    attributes: &Attributes<'_>,
    runs: &mut Vec<Run<'a>>,
    errors: &mut Vec<String>,
) {
    let mut misconfigured = |binding: Option<&Binding>, why: &str| {
        if policy.fails_open {
            return;
        }
        errors.push(match binding {
            Some(binding) => format!(
                "policy '{}' with binding '{}' denied request: failed to configure binding: {why}",
                policy.name, binding.name
            ),
            None => format!("policy {:?} denied request: failed to configure policy: {why}", policy.name),
        });
    };
    let invocation = match policy.criteria.matches(cluster, attributes) {
        Ok(Some(invocation)) => invocation,
        Ok(None) => return,
        Err(error) => return misconfigured(None, &error.message),
    };
    for binding in bindings {
        match binding.criteria.matches(cluster, attributes) {
            Ok(Some(_)) => {}
            Ok(None) => continue,
            Err(error) => {
                misconfigured(Some(binding), &error.message);
                continue;
            }
        }
        match collect(cluster, policy.param_kind.as_ref(), &binding.param_ref, attributes.namespace) {
            Ok(params) => runs.extend(params.into_iter().map(|params| Run {
                policy,
                binding,
                invocation: invocation.clone(),
                params,
            })),
            Err(why) => misconfigured(Some(binding), &why),
        }
    }
}

/// Applies all mutations of a policy. The inner error is subject to the failure policy.
async fn apply_policy(
    cluster: &Cluster,
    run: &Run<'_>,
    attributes: &mut Attributes<'_>,
    notes: &mut Notes,
) -> Result<Result<(), String>, ApiError> {
    let before = attributes.unpacked();
    if before.is_null() {
        return Ok(Ok(()));
    }
    let uid = run.uid();
    let mut failed = Ok(());
    for (index, mutation) in run.policy.mutations.iter().enumerate() {
        let patch = {
            let kind = run.invocation.kind(attributes);
            let object = in_version(cluster, attributes, attributes.unpacked(), kind).await?;
            let old_object = in_version(cluster, attributes, attributes.unpacked_old(), kind).await?;
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
                    Ok(false) => return Ok(Ok(())),
                    Err(why) => return Ok(Err(why)),
                }
                if notes.reinvocation.again && !notes.reinvocation.policies().is_pending(&uid) {
                    return Ok(Ok(()));
                }
            }
            match off_worker(|| run.policy.patch(mutation, &input)) {
                Ok(patch) => patched(attributes, object, &patch),
                Err(why) => Err(why),
            }
        };
        match patch {
            Ok(patched) => {
                let object = in_version(cluster, attributes, patched, attributes.kind).await?;
                attributes.replace(object)?;
            }
            Err(why) => failed = Err(why),
        }
    }
    if attributes.unpacked() != before {
        notes.reinvocation.policies().require_previous();
        notes.reinvocation.changed();
    }
    if run.policy.reinvocable {
        notes.reinvocation.policies().ran(&uid);
    }
    Ok(failed)
}

fn patched(attributes: &Attributes<'_>, object: Value, patch: &Patch) -> Result<Value, String> {
    match patch {
        Patch::Json(operations) => {
            let patch = JsonPatch::decode(&json::to_vec(operations)).map_err(|error| error.to_string())?;
            match patch.apply(object.clone()) {
                Ok(patched) => Ok(patched),
                // A failed `test` operation skips the patch.
                Err(JsonPatchError::TestFailed { .. }) => Ok(object),
                Err(error) => Err(format!("JSON Patch: {error}")),
            }
        }
        Patch::Apply(configuration) => {
            let api_version = configuration.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let schema =
                attributes.strategy.versions().schema(api_version).map_err(|error| error.to_string())?;
            Ok(apply::merge(schema, object, configuration))
        }
    }
}
