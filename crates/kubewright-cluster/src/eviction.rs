//! Taint-based eviction: deletes pods that do not tolerate a `NoExecute` taint of their node, or whose
//! toleration has expired.
//!
//! The toleration time starts when this controller first sees the taint, because taints need not have a
//! timestamp. These start times are its only state.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition, Taint};
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::{
    Context, Delete, Key, ListOptions, Manager, Outcome, Patch, Reconciler, RegisterError, Result,
};
use serde_json::json;

use crate::node::whole;
use crate::scheduler::{tolerates, tolerations};
use crate::{kubelet, pod};

/// Registers the taint eviction controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    kubelet::index(manager)?;
    let tainted = Predicate::<Node>::new(|event| match (event.old(), event.new_object()) {
        (Some(old), Some(new)) => taints(&old) != taints(&new),
        _ => true,
    });
    let moved = Predicate::<Pod>::new(|event| match (event.old(), event.new_object()) {
        (Some(old), Some(new)) => {
            kubelet::node_name(&old) != kubelet::node_name(&new) || tolerations(&old) != tolerations(&new)
        }
        (_, new) => new.is_some(),
    });
    manager
        .controller_with(Evictions::default(), Watch::new().filter(tainted))
        .named("taint-eviction")
        .watches_with::<Pod>(Watch::new().filter(moved), |pod, cache| {
            let Some(name) = kubelet::node_name(pod) else { return Vec::new() };
            let key = Key::cluster(name);
            let node = cache.get::<Node>(&key).ok().flatten();
            node.filter(|node| !taints(node).is_empty()).map(|_| key).into_iter().collect()
        })
        .register()
}

/// Since when pods tolerate the taints of their node only temporarily, by node and pod UID.
#[derive(Default)]
struct Evictions(Mutex<BTreeMap<String, Since>>);

type Since = BTreeMap<String, Timestamp>;

impl Evictions {
    fn knows(&self, node: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(node)
    }

    /// Removes and returns the state of a node.
    fn take(&self, node: &str) -> Since {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(node).unwrap_or_default()
    }

    fn remember(&self, node: &str, since: Since) {
        if !since.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(node.to_owned(), since);
        }
    }
}

impl Reconciler for Evictions {
    type Object = Node;

    async fn reconcile(&self, node: &Node, cx: &Context) -> Result<Outcome> {
        let (name, now, taints) = (cx.key().name(), cx.now(), taints(node));
        if taints.is_empty() && !self.knows(name) {
            return Ok(Outcome::done());
        }
        let pods = cx.client().list::<Pod>(&ListOptions::all().field(kubelet::NODE_NAME, name)).await?;
        let mut before = self.take(name);
        let (mut since, mut wake, mut doomed) = (Since::new(), None::<Duration>, Vec::new());
        for pod in pods.iter().filter(|pod| !pod::is_terminating(pod)) {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let known = before.remove(&uid);
            let left = match toleration_time(pod, &taints) {
                TolerationTime::Endless => {
                    if known.is_some() {
                        record_event(pod, "Cancelling deletion of Pod", cx);
                    }
                    continue;
                }
                TolerationTime::For(time) => {
                    let begun = *since.entry(uid).or_insert(known.unwrap_or(now));
                    pod::until(begun, time, now)
                }
            };
            match left {
                Some(left) => wake = Some(wake.map_or(left, |wake| wake.min(left))),
                None => doomed.push(pod),
            }
        }
        self.remember(name, since);
        for pod in doomed {
            evict(pod, cx).await?;
        }
        Ok(wake.map_or(Outcome::done(), Outcome::requeue_after))
    }

    async fn deleted(&self, key: &Key, _: &Context) -> Result<Outcome> {
        self.take(key.name());
        Ok(Outcome::done())
    }
}

/// The `NoExecute` taints of a node.
fn taints(node: &Node) -> Vec<Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    taints.iter().filter(|taint| taint.effect == "NoExecute").cloned().collect()
}

/// How long a pod tolerates taints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TolerationTime {
    Endless,
    For(Duration),
}

/// How long a pod tolerates all of these taints. For each taint the first matching toleration counts.
fn toleration_time(pod: &Pod, taints: &[Taint]) -> TolerationTime {
    let mut least = TolerationTime::Endless;
    for taint in taints {
        let Some(toleration) = tolerations(pod).iter().find(|it| tolerates(it, taint)) else {
            return TolerationTime::For(Duration::ZERO);
        };
        if let Some(seconds) = toleration.toleration_seconds {
            let time = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            least = match least {
                TolerationTime::For(least) => TolerationTime::For(least.min(time)),
                TolerationTime::Endless => TolerationTime::For(time),
            };
        }
    }
    least
}

/// Sets the DisruptionTarget condition and deletes the pod.
async fn evict(pod: &Pod, cx: &Context) -> Result<()> {
    record_event(pod, "Marking for deletion Pod", cx);
    let condition =
        disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", cx.now());
    let patch = Patch::strategic(json!({ "status": { "conditions": [condition] } }));
    if ignore_not_found(cx.client().status().patch(pod, &patch).await)?.is_some() {
        let how = Delete::new().uid(pod.metadata.uid.clone().unwrap_or_default());
        ignore_not_found(cx.client().delete_with(pod, &how).await)?;
    }
    Ok(())
}

/// The DisruptionTarget condition.
pub(crate) fn disrupted(reason: &str, message: &str, now: Timestamp) -> PodCondition {
    PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(whole(now)),
        ..PodCondition::default()
    }
}

fn record_event(pod: &Pod, what: &str, cx: &Context) {
    let [namespace, name] =
        [&pod.metadata.namespace, &pod.metadata.name].map(|name| name.as_deref().unwrap_or_default());
    cx.events()
        .normal(pod, "TaintManagerEviction")
        .action("Evict")
        .note(format_args!("{what} {namespace}/{name}"));
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_pod_stays_while_it_tolerates_every_taint() {
        let taint = |key: &str| -> Taint {
            serde_json::from_value(json!({ "key": key, "effect": "NoExecute" })).unwrap()
        };
        let toleration = |key: &str, seconds: Value| json!({ "key": key, "operator": "Exists", "tolerationSeconds": seconds });
        let of = |tolerations: Value, taints: &[Taint]| {
            let pod = json!({ "spec": { "containers": [], "tolerations": tolerations } });
            toleration_time(&serde_json::from_value(pod).unwrap(), taints)
        };
        let (a, b) = (taint("a"), taint("b"));
        let both = [a.clone(), b];
        assert_eq!(of(json!([]), &[]), TolerationTime::Endless);
        assert_eq!(of(json!([]), &both), TolerationTime::For(Duration::ZERO));
        assert_eq!(
            of(json!([toleration("a", json!(null))]), std::slice::from_ref(&a)),
            TolerationTime::Endless
        );
        assert_eq!(of(json!([toleration("a", json!(null))]), &both), TolerationTime::For(Duration::ZERO));
        let some = json!([toleration("a", json!(30)), toleration("b", json!(20)), toleration("b", json!(5))]);
        assert_eq!(of(some, &both), TolerationTime::For(Duration::from_secs(20)));
        assert_eq!(of(json!([toleration("a", json!(-1))]), &[a]), TolerationTime::For(Duration::ZERO));
    }
}
