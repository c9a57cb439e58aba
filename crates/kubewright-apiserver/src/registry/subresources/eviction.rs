//! `pods/eviction`: a deletion that respects PodDisruptionBudgets.
//!
//! The pod gets the condition `DisruptionTarget` before it is deleted.
//!
//! A budget's status has the number of allowed disruptions. An eviction decrements it and records the pod in
//! one write, so concurrent evictions cannot use the same one. The disruption controller recalculates the
//! number afterwards.

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use kubewright_apimachinery::status::{ApiError, Cause, Qualified};
use kubewright_apimachinery::{json, time, types};
use serde_json::{Value, json};

use super::Subresources;
use crate::admission::Notes;
use crate::after_commit::AfterCommit;
use crate::encoding::body::Body;
use crate::encoding::negotiate::negotiate_without_tables;
use crate::encoding::request_body::{self, Media};
use crate::encoding::response;
use crate::fieldmanager::FieldManager;
use crate::registry::delete::{TRIES, check_preconditions};
use crate::registry::resource::Resource;
use crate::registry::strategy::BuiltIn;
use crate::registry::write::{MODIFIED, WriteRequest};
use crate::request::Request;
use crate::request::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::storage::Expect;

const EVICTION: Gvk<'static> = Gvk { group: "policy", version: "v1", kind: "Eviction" };
/// Maximum number of evicted pods that the disruption controller has not processed yet.
const MAX_DISRUPTED: usize = 2000;

impl Subresources {
    /// Deletes a pod if its PodDisruptionBudget allows it.
    pub(super) async fn evict(
        &self,
        request: &Request,
        resource: &Resource,
        namespace: &str,
        name: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, ApiError> {
        let format = negotiate_without_tables(request, resource, "")?;
        let options = WriteOptions::read(&request.query, WriteKind::Create)?;
        let ty = types::find("policy.v1.Eviction").ok_or_else(|| ApiError::internal("no Eviction"))?;
        let media = request_body::media(request)?;
        let (media, body) = match as_v1(media, body)? {
            Some(body) => (Media::Json, body),
            None => (media, body.clone()),
        };
        let decoded = request_body::decode_as(EVICTION, ty.get(), media, &body)?;
        let eviction = decoded.value;
        if eviction.str_at("metadata.name") != name {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let manager = FieldManager::of(request);
        let write = WriteRequest {
            resource,
            namespace,
            name,
            subresource: "eviction",
            user: &request.user,
            manager: &manager,
            options: &options,
        };
        let mut notes = Notes::of(request);
        let eviction = self
            .writes
            .admit_subresource(&write, &BuiltIn::of_subresource(EVICTION, ty), eviction, &mut notes)
            .await?;
        check_dry_run(request, &eviction)?;
        let mut delete = DeleteOptions::from_body(eviction.at("deleteOptions"))?;
        delete.dry_run |= options.dry_run;
        self.evict_pod(resource, namespace, name, &delete)?;
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        let mut response = response::answer_value(StatusCode::CREATED, format.encoding, &status);
        response::warn(&mut response, &notes.warnings);
        Ok(response)
    }

    /// Deletes a pod, after its budget if it needs one.
    fn evict_pod(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        let with_version = |pod: &Value| DeleteOptions {
            resource_version: Some(pod.str_at("metadata.resourceVersion").to_owned()),
            ..options.clone()
        };
        let has_version = options.resource_version.is_some();
        for _ in 0..TRIES {
            let pod = self.writes.objects.latest(resource, namespace, name)?.object();
            let ended = matches!(pod.str_at("status.phase"), "Succeeded" | "Failed")
                || pod.has("metadata.deletionTimestamp");
            if ended {
                return self.mark_and_delete(resource, namespace, name, options.clone());
            }
            if pod.str_at("status.phase") == "Pending" {
                // The pod may become ready meanwhile, and would then need a budget.
                let options = if has_version { options.clone() } else { with_version(&pod) };
                match self.mark_and_delete(resource, namespace, name, options) {
                    Err(error) if error.code == 409 && !has_version => continue,
                    done => return done,
                }
            }
            return match self.use_budget(namespace, &pod, options.dry_run)? {
                Budget::Used => self.mark_and_delete(resource, namespace, name, options.clone()),
                // The pod may become ready meanwhile.
                Budget::Skipped { name: budget } => {
                    match self.mark_and_delete(resource, namespace, name, with_version(&pod)) {
                        Err(error) if error.code == 409 && !has_version => Err(in_process(&budget)),
                        done => done,
                    }
                }
            };
        }
        Err(ApiError::conflict(resource.qualified(), name, MODIFIED))
    }

    /// Sets the condition of an evicted pod and deletes it.
    fn mark_and_delete(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        mut options: DeleteOptions,
    ) -> Result<(), ApiError> {
        let mut after = AfterCommit::default();
        let marked = if options.dry_run {
            Ok(())
        } else {
            self.mark(resource, namespace, name, &mut options, &mut after)
        };
        let deleted = marked.and_then(|()| {
            self.writes.objects.delete_object(resource, namespace, name, &options, &mut after)
        });
        self.writes.steps.run(after);
        deleted.map(drop)
    }

    /// Sets the condition of an evicted pod. As upstream, no field manager owns it. A resourceVersion in the
    /// preconditions becomes that of the marked pod.
    fn mark(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        options: &mut DeleteOptions,
        after: &mut AfterCommit,
    ) -> Result<(), ApiError> {
        let objects = &self.writes.objects;
        let now = time::format_rfc3339(self.writes.clock().now());
        for _ in 0..TRIES {
            let current = objects.latest(resource, namespace, name)?;
            let old = response::object(resource, &current);
            check_preconditions(resource, name, &old, options)?;
            let mut new = old.clone();
            set_disruption_target(&mut new, &now);
            resource.strategy.canonicalize(&mut new)?;
            if new == old {
                return Ok(());
            }
            if let Ok(version) = objects.put(resource, &current.key, Expect::At(current.revision), new, after)
            {
                if let Some(expected) = &mut options.resource_version {
                    *expected = version.revision.to_string();
                }
                return Ok(());
            }
        }
        Err(ApiError::conflict(resource.qualified(), name, MODIFIED))
    }

    /// Uses one allowed disruption of the pod's budget, if there is one.
    fn use_budget(&self, namespace: &str, pod: &Value, dry_run: bool) -> Result<Budget, ApiError> {
        let registry = self.writes.objects.registry();
        let Some(resource) = registry.find("policy", "v1", "poddisruptionbudgets") else {
            return Ok(Budget::Used);
        };
        loop {
            let listing =
                self.writes.objects.storage().list(&resource.storage, &format!("{namespace}/"), None);
            let budgets: Vec<_> = listing
                .into_iter()
                .flat_map(|listing| listing.items)
                .map(|version| (response::object(resource, &version), version.revision))
                .filter(|(budget, _)| covers(budget, pod))
                .collect();
            if budgets.len() > 1 {
                return Err(ApiError::internal(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
            let Some((mut budget, revision)) = budgets.into_iter().next() else { return Ok(Budget::Used) };
            if needs_none(&budget, pod) {
                return Ok(Budget::Skipped { name: budget.str_at("metadata.name").to_owned() });
            }
            check(&budget)?;
            if dry_run {
                return Ok(Budget::Used);
            }
            take_one(&mut budget, pod.str_at("metadata.name"), self.writes.clock().now());
            let key = resource.key(namespace, budget.str_at("metadata.name"));
            // On a conflict, check the changed budget again.
            let mut after = AfterCommit::default();
            if self.writes.objects.put(resource, &key, Expect::At(revision), budget, &mut after).is_ok() {
                self.writes.steps.run(after);
                return Ok(Budget::Used);
            }
        }
    }
}

/// The budget of an evicted pod.
enum Budget {
    /// A disruption was used, or the pod has no budget.
    Used,
    /// The pod is not ready and needs no disruption of its budget.
    Skipped { name: String },
}

/// Checks that the dry-run options of query and body are equal if both are set.
fn check_dry_run(request: &Request, eviction: &Value) -> Result<(), ApiError> {
    let query: Vec<&str> = request.query.all("dryRun").filter(|value| !value.is_empty()).collect();
    let body = eviction.list_at("deleteOptions.dryRun");
    let body: Vec<&str> = body.iter().filter_map(Value::as_str).collect();
    if query.is_empty() || body.is_empty() || query == body {
        return Ok(());
    }
    let why = format!(
        "Non-matching dry-run options in request and content: [{}] and [{}]",
        query.join(" "),
        body.join(" ")
    );
    Err(ApiError::new(500, "", why))
}

fn set_disruption_target(pod: &mut Value, now: &str) {
    let mut condition = json!({
        "type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    });
    let mut conditions = pod.list_at("status.conditions").to_vec();
    match conditions.iter_mut().find(|existing| existing.str_at("type") == "DisruptionTarget") {
        Some(existing) => {
            if existing.str_at("status") == "True" {
                condition.set_at("lastTransitionTime", existing.at("lastTransitionTime").clone());
            }
            *existing = condition;
        }
        None => conditions.push(condition),
    }
    pod.set_at("status.conditions", conditions);
}

/// Converts an Eviction of `policy/v1beta1`, which is still accepted, to `policy/v1`.
fn as_v1(media: Media, body: &Bytes) -> Result<Option<Bytes>, ApiError> {
    let (text, _) = request_body::to_json(media, body)?;
    let Ok(parsed) = json::parse(&text, json::ParseOptions::default()) else { return Ok(None) };
    let mut eviction = parsed.value;
    if Gvk::of(&eviction) != (Gvk { version: "v1beta1", ..EVICTION }) {
        return Ok(None);
    }
    eviction.set_at("apiVersion", EVICTION.api_version());
    Ok(Some(json::to_vec(&eviction).into()))
}

fn covers(budget: &Value, pod: &Value) -> bool {
    budget.has("spec.selector")
        && LabelSelector::from_object(budget.at("spec.selector"))
            .is_ok_and(|selector| selector.matches(pod.at("metadata.labels")))
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object.list_at("status.conditions").iter().find(|condition| condition.str_at("type") == kind)
}

/// Whether an unhealthy pod may be evicted although no disruption is allowed.
fn needs_none(budget: &Value, pod: &Value) -> bool {
    if condition(pod, "Ready").is_some_and(|ready| ready.str_at("status") == "True") {
        return false;
    }
    let number = |path: &str| budget.int_at(path).unwrap_or_default();
    let desired = number("status.desiredHealthy");
    budget.str_at("spec.unhealthyPodEvictionPolicy") == "AlwaysAllow"
        || (desired > 0 && number("status.currentHealthy") >= desired)
}

/// The error for an eviction that would violate a budget.
fn refuse(why: String) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let reason = "DisruptionBudget".to_owned();
    let cause = Cause { reason, message: why, field: String::new() };
    ApiError::new(429, "TooManyRequests", message).with_causes(vec![cause])
}

/// The error if the budget or the pod changes meanwhile.
fn in_process(budget: &str) -> ApiError {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    refuse(why).with_retry_after(10)
}

/// Fails if the budget allows no disruption.
fn check(budget: &Value) -> Result<(), ApiError> {
    let name = budget.str_at("metadata.name");
    let number = |path: &str| budget.int_at(path).unwrap_or_default();
    if number("status.observedGeneration") < number("metadata.generation") {
        return Err(in_process(name));
    }
    let what = Qualified { group: "policy", name: "poddisruptionbudget" };
    let allowed = number("status.disruptionsAllowed");
    if allowed < 0 {
        return Err(ApiError::forbidden(what, name, "pdb disruptions allowed is negative"));
    }
    if budget.map_at("status.disruptedPods").len() > MAX_DISRUPTED {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(what, name, why));
    }
    if allowed > 0 {
        return Ok(());
    }
    let failed =
        condition(budget, "DisruptionAllowed").filter(|condition| condition.str_at("reason") == "SyncFailed");
    Err(refuse(match failed {
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            condition.str_at("message")
        ),
        None => format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number("status.desiredHealthy"),
            number("status.currentHealthy")
        ),
    }))
}

fn take_one(budget: &mut Value, pod: &str, now: i64) {
    let left = budget.int_at("status.disruptionsAllowed").unwrap_or_default() - 1;
    let now = time::format_rfc3339(now);
    budget.set_at("status.disruptionsAllowed", left);
    budget.object_mut("status.disruptedPods").insert(pod.to_owned(), now.as_str().into());
    if left > 0 {
        return;
    }
    let generation = budget.int_at("status.observedGeneration").unwrap_or_default();
    let mut conditions = budget.list_at("status.conditions").to_vec();
    for condition in &mut conditions {
        if condition.str_at("type") == "DisruptionAllowed" && condition.str_at("status") == "True" {
            condition.set_at("status", "False");
            condition.set_at("reason", "InsufficientPods");
            condition.set_at("observedGeneration", generation);
            condition.set_at("lastTransitionTime", now.as_str());
        }
    }
    budget.set_at("status.conditions", conditions);
}
