//! Resource usage and quota scopes of pods.

use serde_json::Value;

use crate::quota::{Amounts, Quota, add, amounts, whole};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::time;

pub(super) const QUOTA: Quota =
    Quota { measures: is_compute, usage: Some(pod_usage), is_in_scope, ..Quota::counted("pods") };

/// Resources whose plain name is an alias of `requests.<name>`.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const REQUESTS: &str = "requests.";
const LIMITS: &str = "limits.";
const HUGE_PAGES: &str = "hugepages-";

/// Whether a resource name of a quota refers to a pod resource.
fn is_compute(name: &str) -> bool {
    let bare = name.strip_prefix(REQUESTS).unwrap_or(name);
    COMPUTE.contains(&bare)
        || bare.starts_with(HUGE_PAGES)
        || name.strip_prefix(LIMITS).is_some_and(|limit| COMPUTE.contains(&limit))
        || (bare != name && is_extended(bare))
}

fn is_extended(resource: &str) -> bool {
    resource.contains('/') && !resource.contains("kubernetes.io/")
}

/// The usage of a pod in addition to the object count. Terminated pods, and pods past their deletion
/// deadline, use nothing.
fn pod_usage(pod: &Value, now: i64) -> Amounts {
    let mut used = Amounts::new();
    let ended = matches!(pod.str_at("status.phase"), "Succeeded" | "Failed");
    let deleted = time::parse_rfc3339(pod.str_at("metadata.deletionTimestamp"));
    let grace = pod.int_at("metadata.deletionGracePeriodSeconds");
    let overdue = deleted.zip(grace).is_some_and(|(at, grace)| now > at.saturating_add(grace));
    if ended || overdue {
        return used;
    }
    used.insert("pods".to_owned(), whole(1));
    for (resource, much) in asked(pod, "requests") {
        if COMPUTE.contains(&&*resource) || resource.starts_with(HUGE_PAGES) {
            used.insert(format!("{REQUESTS}{resource}"), much.clone());
            used.insert(resource, much);
        } else if is_extended(&resource) {
            used.insert(format!("{REQUESTS}{resource}"), much);
        }
    }
    for (resource, much) in asked(pod, "limits") {
        if COMPUTE.contains(&&*resource) {
            used.insert(format!("{LIMITS}{resource}"), much);
        }
    }
    used
}

/// The requests or limits of a pod: the sum of containers and sidecars, or the largest init container.
fn asked(pod: &Value, what: &str) -> Amounts {
    let of = |container: &Value| amounts(&container.at("resources")[what]);
    let mut together = Amounts::new();
    for container in pod.list_at("spec.containers") {
        add(&mut together, &of(container));
    }
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in pod.list_at("spec.initContainers") {
        if container.str_at("restartPolicy") == "Always" {
            add(&mut sidecars, &of(container));
            most(&mut peak, &sidecars);
        } else {
            let mut now = sidecars.clone();
            add(&mut now, &of(container));
            most(&mut peak, &now);
        }
    }
    add(&mut together, &sidecars);
    most(&mut together, &peak);
    // Pod-level resources take precedence over those of containers.
    together.extend(amounts(&pod.at("spec.resources")[what]));
    let mut overhead = amounts(pod.at("spec.overhead"));
    if what == "limits" {
        // Overhead only counts toward limits that are set.
        overhead.retain(|resource, _| together.contains_key(resource));
    }
    add(&mut together, &overhead);
    together
}

fn most(peak: &mut Amounts, other: &Amounts) {
    for (resource, much) in other {
        if peak.get(resource).is_none_or(|peak| peak < much) {
            peak.insert(resource.clone(), much.clone());
        }
    }
}

/// Resources of the quota for which some container of the pod has no request or limit.
pub fn missing_requests<'a>(names: impl IntoIterator<Item = &'a str>, pod: &Value) -> Vec<&'a str> {
    let containers = || pod.list_at("spec.containers").iter().chain(pod.list_at("spec.initContainers"));
    let mut missing: Vec<&str> = names
        .into_iter()
        .filter(|name| {
            let (what, resource) = match name.split_once('.') {
                Some((what @ ("requests" | "limits"), resource)) => (what, resource),
                _ => ("requests", *name),
            };
            let as_a_whole = &pod.at("spec.resources")[what][resource];
            matches!(resource, "cpu" | "memory")
                && as_a_whole.is_null()
                && containers().any(|container| container.at("resources")[what][resource].is_null())
        })
        .collect();
    missing.sort_unstable();
    missing
}

/// Whether a pod matches a scope. `requirement` is the scope selector's expression, if any.
fn is_in_scope(pod: &Value, scope: &str, requirement: &Value) -> bool {
    match scope {
        "Terminating" => pod.int_at("spec.activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0),
        "NotTerminating" => !is_in_scope(pod, "Terminating", requirement),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = pod.str_at("spec.priorityClassName");
            let listed = requirement.list_at("values").iter().any(|value| value == class);
            match requirement.str_at("operator") {
                "In" => !class.is_empty() && listed,
                "NotIn" => class.is_empty() || !listed,
                "DoesNotExist" => class.is_empty(),
                _ => !class.is_empty(),
            }
        }
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        _ => false,
    }
}

fn is_best_effort(pod: &Value) -> bool {
    let mut all = pod.list_at("spec.containers").iter().chain(pod.list_at("spec.initContainers"));
    let asks = |resources: &Value| {
        ["requests", "limits"].into_iter().any(|what| {
            ["cpu", "memory"].into_iter().any(|resource| {
                Quantity::from_json(&resources[what][resource]).is_ok_and(|much| much.sign() > 0)
            })
        })
    };
    !asks(pod.at("spec.resources")) && !all.any(|container| asks(container.at("resources")))
}

fn reaches_other_namespaces(pod: &Value) -> bool {
    let crosses = |term: &Value| !term.list_at("namespaces").is_empty() || term.has("namespaceSelector");
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let affinity = &pod.at("spec.affinity")[kind];
        let hard = affinity.list_at("requiredDuringSchedulingIgnoredDuringExecution");
        let soft = affinity.list_at("preferredDuringSchedulingIgnoredDuringExecution");
        hard.iter().any(crosses) || soft.iter().any(|soft| crosses(soft.at("podAffinityTerm")))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::quota::usage;

    fn pod() -> Value {
        json!({ "spec": {
            "initContainers": [{ "resources": { "requests": { "cpu": "2" } } }],
            "containers": [
                { "resources": { "requests": { "cpu": "500m", "memory": "1Gi" }, "limits": { "cpu": "1" } } },
                { "resources": { "requests": { "cpu": "1", "memory": "1Gi", "example.com/gpu": "1" } } },
            ],
        } })
    }

    fn text(amounts: &Amounts) -> String {
        amounts.iter().map(|(name, much)| format!("{name}={much}")).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn a_pod_uses_its_requests_until_it_terminates() {
        assert_eq!(
            text(&usage("pods", &pod(), 0)),
            "count/pods=1,cpu=2,limits.cpu=1,memory=2Gi,pods=1,requests.cpu=2,requests.example.com/gpu=1,\
             requests.memory=2Gi"
        );
        let mut ended = pod();
        ended.set_at("status.phase", "Succeeded");
        assert_eq!(text(&usage("pods", &ended, 0)), "count/pods=1");
        let mut stuck = pod();
        stuck.set_at("metadata.deletionTimestamp", "1970-01-01T00:00:30Z");
        stuck.set_at("metadata.deletionGracePeriodSeconds", 30);
        assert!(usage("pods", &stuck, 60).contains_key("pods"));
        assert!(!usage("pods", &stuck, 61).contains_key("pods"));
    }

    #[test]
    fn every_container_must_request_the_resources_of_the_quota() {
        let names = ["requests.cpu", "memory", "limits.cpu", "pods", "ephemeral-storage"];
        assert_eq!(missing_requests(names, &pod()), ["limits.cpu", "memory"]);
    }

    #[test]
    fn quota_scopes_match_pods_by_their_spec() {
        let is_in = |pod: &Value, scope: &str| is_in_scope(pod, scope, &Value::Null);
        let plain = json!({ "spec": { "containers": [{}], "activeDeadlineSeconds": 5 } });
        assert!(is_in(&plain, "BestEffort") && is_in(&plain, "Terminating"));
        assert!(is_in(&pod(), "NotBestEffort") && is_in(&pod(), "NotTerminating"));
        let important = json!({ "spec": { "priorityClassName": "high" } });
        let high = json!({ "operator": "In", "values": ["high"] });
        assert!(
            is_in_scope(&important, "PriorityClass", &high) && !is_in_scope(&plain, "PriorityClass", &high)
        );
        assert!(!is_in(&plain, "CrossNamespacePodAffinity"));
    }
}
