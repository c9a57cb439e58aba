//! ValidatingAdmissionPolicy: rejects, warns about or audits requests that violate CEL expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Cause};
use serde_json::{Value, json};

use super::policy::{Binding, Decision, Input, Policy, collect, param_resource};
use super::webhook::{Authorization, Entries, Invocation, Versioned, admission_request, namespace_labels};
use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};
use crate::off_worker::off_worker;
use crate::storage::StoredObject;

/// Maximum length of an audit annotation.
const MAX_ANNOTATION: usize = 10 * 1024;

pub(super) struct ValidatingAdmissionPolicy;

impl Plugin for ValidatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn handles(&self, _operation: Operation) -> bool {
        true
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        notes: &'a mut Notes,
    ) -> Admission<'a> {
        match cluster.webhooks().policies.relevant(cluster, attributes) {
            Some(policies) => Admission::Pending(Box::pin(dispatch(policies, cluster, attributes, notes))),
            None => Admission::ALLOWED,
        }
    }
}

pub(super) type Policies = Arc<Entries<Policy>>;

async fn dispatch(
    policies: Policies,
    cluster: &Cluster,
    attributes: &Attributes<'_>,
    notes: &mut Notes,
) -> Result<(), ApiError> {
    let bindings = cluster.webhooks().policy_bindings.get(cluster);
    let mut request = PolicyRequest { cluster, attributes, bindings: &bindings, denied: None };
    for policy in policies.iter().flat_map(|(_, policies)| policies.iter()) {
        request.apply(policy, notes).await?;
    }
    request.denied.map_or(Ok(()), Err)
}

/// The evaluations of a policy with one binding.
struct Run<'a> {
    policy: &'a Policy,
    binding: &'a Binding,
    invocation: &'a Invocation,
    versioned: &'a Versioned,
}

struct PolicyRequest<'a, 'b> {
    cluster: &'a Cluster,
    attributes: &'a Attributes<'b>,
    bindings: &'a [(Arc<StoredObject>, Arc<[Binding]>)],
    /// The first rejection.
    denied: Option<ApiError>,
}

impl PolicyRequest<'_, '_> {
    async fn apply(&mut self, policy: &Policy, notes: &mut Notes) -> Result<(), ApiError> {
        let all = self.bindings.iter().flat_map(|(_, bindings)| bindings.iter());
        let bindings: Vec<&Binding> = all.filter(|binding| binding.policy == policy.name).collect();
        if bindings.is_empty() {
            return Ok(());
        }
        let invocation = match policy.criteria.matches(self.cluster, self.attributes) {
            Ok(Some(invocation)) => invocation,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.misconfigured(policy, None, &error.message);
                return Ok(());
            }
        };
        let params_of = match param_resource(self.cluster, policy) {
            Ok(resource) => resource,
            Err(why) => {
                self.misconfigured(policy, None, &why);
                return Ok(());
            }
        };
        let mut versioned = None;
        let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binding in bindings {
            match binding.criteria.matches(self.cluster, self.attributes) {
                Ok(Some(_)) => {}
                Ok(None) => continue,
                Err(error) => {
                    self.misconfigured(policy, Some(binding), &error.message);
                    continue;
                }
            }
            let namespace = self.attributes.namespace;
            let params = match collect(self.cluster, params_of.as_deref(), &binding.param_ref, namespace) {
                Ok(params) => params,
                Err(why) => {
                    self.misconfigured(policy, Some(binding), &why);
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            // Converted once for all bindings.
            let versioned = match &versioned {
                Some(versioned) => versioned,
                None => match Versioned::new(self.cluster, self.attributes, &invocation).await {
                    Ok(converted) => versioned.insert(converted),
                    Err(why) => {
                        let why = format!("failed to convert object version: {why}");
                        self.misconfigured(policy, Some(binding), &why);
                        continue;
                    }
                },
            };
            let run = Run { policy, binding, invocation: &invocation, versioned };
            self.evaluate(&run, &params, &mut annotations, notes)?;
        }
        for (key, values) in annotations {
            notes.audit_annotations.insert(format!("{}/{key}", policy.name), values.join(", "));
        }
        Ok(())
    }

    fn evaluate(
        &mut self,
        run: &Run<'_>,
        params: &[Value],
        annotations: &mut BTreeMap<String, Vec<String>>,
        notes: &mut Notes,
    ) -> Result<(), ApiError> {
        let Run { policy, binding, invocation, versioned } = *run;
        let attributes = self.attributes;
        let request = admission_request(attributes, invocation);
        let namespace = namespace_object(self.cluster, attributes)?;
        let authorization = Authorization::new(self.cluster, attributes);
        for params in params {
            let input = Input {
                object: &versioned.object,
                old_object: &versioned.old_object,
                request: &request,
                params,
                namespace: &namespace,
                authorization: &authorization,
            };
            let found = off_worker(|| policy.evaluate(&input));
            for decision in &found.denied {
                self.act(policy, binding, decision, notes);
            }
            for why in found.failed_annotations {
                self.deny(policy, Some(binding), &why, "Invalid");
            }
            for (key, mut value) in found.annotations {
                value.truncate(value.floor_char_boundary(MAX_ANNOTATION));
                let values = annotations.entry(key).or_default();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        Ok(())
    }

    /// Performs the binding's actions for a failed validation.
    fn act(&mut self, policy: &Policy, binding: &Binding, decision: &Decision, notes: &mut Notes) {
        for action in &binding.actions {
            match action.as_str() {
                "Deny" => self.deny(policy, Some(binding), &decision.message, &decision.reason),
                "Warn" => notes.warn(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                    policy.name, binding.name, decision.message
                )),
                "Audit" => {
                    let failure = json!([{
                        "message": decision.message, "policy": policy.name, "binding": binding.name,
                        "expressionIndex": decision.index, "validationActions": binding.actions,
                    }]);
                    let key = "validation.policy.admission.k8s.io/validation_failure";
                    notes.audit_annotations.insert(key.to_owned(), failure.to_string());
                }
                _ => {}
            }
        }
    }

    /// Denies the request because of a misconfigured policy, unless the policy fails open.
    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        if !policy.fails_open {
            let what = if binding.is_some() { "binding" } else { "policy" };
            self.deny(policy, binding, &format!("failed to configure {what}: {why}"), "Invalid");
        }
    }

    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str, reason: &str) {
        if self.denied.is_some() {
            return;
        }
        let with = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let message = format!("ValidatingAdmissionPolicy '{}'{with} denied request: {why}", policy.name);
        let mut error = self.attributes.forbidden(&message);
        error.code = match reason {
            "Forbidden" => 403,
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        error.reason = reason.to_owned().into();
        let cause = Cause { reason: String::new(), message, field: String::new() };
        error.details.get_or_insert_default().causes.push(cause);
        self.denied = Some(error);
    }
}

/// The request's namespace for expressions; null for cluster-scoped objects and Namespaces.
pub(super) fn namespace_object(cluster: &Cluster, attributes: &Attributes<'_>) -> Result<Value, ApiError> {
    let is_namespace = attributes.kind.kind == "Namespace" && attributes.kind.group.is_empty();
    if attributes.namespace.is_empty() || is_namespace {
        return Ok(Value::Null);
    }
    namespace_labels(cluster, attributes.namespace)?;
    let mut namespace = cluster.get("namespaces", "", attributes.namespace).unwrap_or_default();
    for hidden in ["managedFields", "ownerReferences", "selfLink"] {
        namespace.object_mut("metadata").remove(hidden);
    }
    Ok(namespace)
}
