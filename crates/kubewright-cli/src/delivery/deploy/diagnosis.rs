//! Explains why a Deployment is not available: conditions, Pods, events and logs.

use std::fmt::{self, Display, Write as _};

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, LogParams};

use super::failing::{Problem, problems};
use crate::dev::api_error;
use crate::ui::escape;

/// The annotation with the number of a ReplicaSet.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Lines of a log, and events of an object.
const LINES: i64 = 20;
const EVENTS: usize = 5;

/// The container of the operator, unless the Pod names another default container.
const CONTAINER: &str = "manager";
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The Pods whose events and logs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Pods that report a problem. Others may still be starting.
    Failing,
    /// All Pods that are not ready.
    NotReady,
}

/// What is wrong with the Pods of a Deployment's current ReplicaSet.
#[derive(Debug, Default)]
pub(super) struct Diagnosis {
    /// Conditions of the Deployment that report failures.
    conditions: Vec<String>,
    /// Events of the ReplicaSet, if it has no Pods.
    events: Vec<String>,
    pods: Vec<Failing>,
}

/// A Pod that is not ready.
#[derive(Debug)]
struct Failing {
    name: String,
    phase: String,
    problems: Vec<Problem>,
    /// Why it has no node.
    unscheduled: Option<String>,
    events: Vec<String>,
    log: Vec<String>,
}

impl Diagnosis {
    /// Reads the state of a Deployment's Pods.
    pub(super) async fn of(client: &kube::Client, deployment: &Deployment, detail: Detail) -> Result<Self> {
        let namespace = deployment.namespace().unwrap_or_default();
        let status = deployment.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let conditions = conditions
            .iter()
            .filter(|condition| condition.type_ == "ReplicaFailure" && condition.status == "True")
            .map(|it| {
                format!(
                    "{}: {}",
                    it.reason.clone().unwrap_or_default(),
                    it.message.clone().unwrap_or_default()
                )
            })
            .collect();
        let mut found = Self { conditions, ..Self::default() };
        let Some(replica_set) = current(client, &namespace, deployment).await? else { return Ok(found) };
        let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let pods =
            api.list(&selected(deployment)).await.map_err(api_error).context("cannot list the Pods")?;
        let uid = replica_set.uid();
        for pod in pods.items.into_iter().filter(|pod| is_owned(pod.owner_references(), uid.as_deref())) {
            if let Some(failing) = Failing::of(client, &namespace, &pod, detail).await {
                found.pods.push(failing);
            }
        }
        if found.pods.is_empty() {
            found.events = events(client, &namespace, uid.as_deref()).await;
        }
        Ok(found)
    }

    /// A problem that does not resolve without a change.
    pub(super) fn final_problem(&self) -> Option<String> {
        let problems = self.pods.iter().flat_map(|pod| pod.problems.iter().map(move |it| (pod, it)));
        let (pod, problem) = problems.into_iter().find(|(_, problem)| problem.is_final)?;
        Some(format!("container {} of Pod {}: {}", problem.container, pod.name, problem.reason))
    }
}

impl Failing {
    /// `None` if the Pod is ready.
    async fn of(client: &kube::Client, namespace: &str, pod: &Pod, detail: Detail) -> Option<Self> {
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        if conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True") {
            return None;
        }
        let unscheduled = conditions
            .iter()
            .find(|it| it.type_ == "PodScheduled" && it.status == "False")
            .and_then(|it| it.message.clone());
        let problems = problems(pod);
        let (mut events, mut log) = (Vec::new(), Vec::new());
        if detail == Detail::NotReady || unscheduled.is_some() || !problems.is_empty() {
            events = self::events(client, namespace, pod.uid().as_deref()).await;
            log = self::log(client, namespace, pod, problems.first()).await;
        }
        let phase = status.and_then(|status| status.phase.clone()).unwrap_or_default();
        Some(Self { name: pod.name_any(), phase, problems, unscheduled, events, log })
    }
}

/// The ReplicaSet with the highest revision.
async fn current(
    client: &kube::Client,
    namespace: &str,
    deployment: &Deployment,
) -> Result<Option<ReplicaSet>> {
    let api: Api<ReplicaSet> = Api::namespaced(client.clone(), namespace);
    let all =
        api.list(&selected(deployment)).await.map_err(api_error).context("cannot list the ReplicaSets")?;
    let owner = deployment.uid();
    let owned = all.items.into_iter().filter(|it| is_owned(it.owner_references(), owner.as_deref()));
    Ok(owned.max_by_key(|it| it.annotations().get(REVISION).and_then(|text| text.parse::<u64>().ok())))
}

fn is_owned(
    owners: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference],
    uid: Option<&str>,
) -> bool {
    owners.iter().any(|owner| Some(owner.uid.as_str()) == uid)
}

fn selected(deployment: &Deployment) -> ListParams {
    let labels = deployment.spec.as_ref().and_then(|spec| spec.selector.match_labels.as_ref());
    let labels: Vec<String> =
        labels.into_iter().flatten().map(|(name, value)| format!("{name}={value}")).collect();
    ListParams::default().labels(&labels.join(","))
}

/// The last events of an object. They explain a failure; failing to list them is not an error.
async fn events(client: &kube::Client, namespace: &str, uid: Option<&str>) -> Vec<String> {
    let Some(uid) = uid else { return Vec::new() };
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let parameters = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let Ok(list) = api.list(&parameters).await else { return Vec::new() };
    let mut events = list.items;
    events.sort_by_key(|event| {
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        last.or_else(|| event.event_time.as_ref().map(|time| time.0))
    });
    let first = events.len().saturating_sub(EVENTS);
    let shown = |event: &Event| {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        format!("{} {}: {}", text(&event.type_), text(&event.reason), text(&event.message).trim())
    };
    events[first..].iter().map(shown).collect()
}

/// The end of the log of the failing container, or else of the operator's container.
async fn log(client: &kube::Client, namespace: &str, pod: &Pod, problem: Option<&Problem>) -> Vec<String> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let container = problem.map(|problem| problem.container.clone());
    let parameters = LogParams {
        container: container.or_else(|| default_container(pod)),
        previous: problem.is_some_and(|problem| problem.has_restarted),
        tail_lines: Some(LINES),
        ..LogParams::default()
    };
    // A container that never started has no log.
    let log = api.logs(&pod.name_any(), &parameters).await.unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

/// The container whose log is read by default. Without a container, log requests fail for Pods with sidecars.
fn default_container(pod: &Pod) -> Option<String> {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let named = |name: &str| containers.iter().find(|container| container.name == name);
    let annotated = pod.annotations().get(DEFAULT_CONTAINER).and_then(|name| named(name));
    let container = annotated.or_else(|| named(CONTAINER)).or_else(|| containers.first());
    container.map(|container| container.name.clone())
}

impl Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for condition in &self.conditions {
            let _ = writeln!(text, "{}", escape(condition));
        }
        list(&mut text, "", "events of the ReplicaSet", &self.events);
        for pod in &self.pods {
            let _ = writeln!(text, "Pod {}: {}", pod.name, pod.phase);
            for problem in &pod.problems {
                let line =
                    format!("container {}: {}: {}", problem.container, problem.reason, problem.message);
                let _ = writeln!(text, "  {}", escape(line.trim_end_matches([':', ' '])));
            }
            if let Some(reason) = &pod.unscheduled {
                let _ = writeln!(text, "  not scheduled: {}", escape(reason));
            }
            list(&mut text, "  ", "events", &pod.events);
            list(&mut text, "  ", "log", &pod.log);
        }
        f.write_str(&text)
    }
}

fn list(text: &mut String, indent: &str, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "{indent}{title}:");
    for line in lines {
        let _ = writeln!(text, "{indent}  {}", escape(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_log_is_that_of_the_operator_by_default() {
        let of = |annotation: &str, containers: &[&str]| {
            let containers: Vec<_> = containers.iter().map(|name| json!({ "name": name })).collect();
            let pod = json!({
                "metadata": { "annotations": { DEFAULT_CONTAINER: annotation } },
                "spec": { "containers": containers },
            });
            default_container(&serde_json::from_value(pod).unwrap())
        };
        assert_eq!(of("shop", &["proxy", "manager", "shop"]).as_deref(), Some("shop"));
        assert_eq!(of("gone", &["proxy", "manager"]).as_deref(), Some("manager"));
        assert_eq!(of("", &["proxy", "shop"]).as_deref(), Some("proxy"));
    }

    #[test]
    fn the_text_has_problems_events_and_logs() {
        let diagnosis = Diagnosis {
            conditions: vec!["FailedCreate: exceeded quota".to_owned()],
            pods: vec![Failing {
                name: "shop-1".to_owned(),
                phase: "Running".to_owned(),
                problems: vec![Problem {
                    container: "manager".to_owned(),
                    reason: "CrashLoopBackOff".to_owned(),
                    message: "back-off 10s".to_owned(),
                    is_final: true,
                    has_restarted: true,
                }],
                unscheduled: None,
                events: vec!["Warning BackOff: restarting".to_owned()],
                log: vec!["Error: no lease".to_owned()],
            }],
            ..Diagnosis::default()
        };
        insta::assert_snapshot!(diagnosis.to_string(), @"
        FailedCreate: exceeded quota
        Pod shop-1: Running
          container manager: CrashLoopBackOff: back-off 10s
          events:
            Warning BackOff: restarting
          log:
            Error: no lease
        ");
        assert_eq!(
            diagnosis.final_problem().as_deref(),
            Some("container manager of Pod shop-1: CrashLoopBackOff")
        );
    }
}
