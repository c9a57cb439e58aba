//! Pod garbage collection.
//!
//! Deletes pods on missing nodes, terminating pods on nodes that are out of service, and the oldest finished
//! pods beyond a limit. A node counts as missing only after a quarantine and a read from the API server,
//! because the caches of nodes and pods are not synchronized.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::{
    Context, Delete, Key, KeyReconciler, ListOptions, Manager, Outcome, Patch, Reconciler, RegisterError,
    Result,
};
use serde_json::json;

use crate::eviction::disrupted;
use crate::{kubelet, pod};

/// How long a node must be missing.
const QUARANTINE: Duration = Duration::from_secs(40);
/// Maximum number of finished pods that are kept.
const ENDED_KEPT: usize = 12_500;
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Index of finished pods.
const ENDED: &str = "status.ended";
const YES: &str = "true";

/// Registers the pod garbage collection controllers.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    kubelet::index(manager)?;
    let tainted = Predicate::<Node>::new(|event| match (event.old(), event.new_object()) {
        (Some(old), Some(new)) => is_out_of_service(&old) != is_out_of_service(&new),
        _ => true,
    });
    let moved = Predicate::<Pod>::new(|event| match (event.old(), event.new_object()) {
        (Some(old), Some(new)) => {
            kubelet::node_name(&old) != kubelet::node_name(&new)
                || pod::is_terminating(&old) != pod::is_terminating(&new)
        }
        (_, new) => new.is_some(),
    });
    manager
        .controller_with(Orphans::default(), Watch::new().filter(tainted))
        .named("pod-garbage-collector")
        .watches_with::<Pod>(Watch::new().filter(moved), |pod, cache| {
            let Some(name) = kubelet::node_name(pod) else { return Vec::new() };
            let key = Key::cluster(name);
            let node = cache.get::<Node>(&key).ok().flatten();
            node.is_none_or(|node| is_out_of_service(&node)).then_some(key).into_iter().collect()
        })
        .register()?;
    let has_ended = |pod: &Pod| pod::is_terminal(pod);
    manager
        .cache()
        .index::<Pod>(ENDED, move |pod| has_ended(pod).then(|| YES.to_owned()).into_iter().collect())?;
    let ends = Predicate::<Pod>::new(move |event| {
        let was = event.old().is_some_and(|pod| has_ended(&pod));
        !was && event.new_object().is_some_and(|pod| has_ended(&pod))
    });
    manager
        .key_controller("pod-garbage-collector-ended", Ended)
        .watches_with::<Pod>(Watch::new().filter(ends), |_, _| vec![Key::cluster("ended")])
        .register()
}

/// Since when nodes of pods have been missing.
#[derive(Default)]
struct Orphans(Mutex<BTreeMap<String, Timestamp>>);

impl Orphans {
    fn missing_since(&self, node: &str, now: Timestamp) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(node.to_owned()).or_insert(now)
    }

    fn forget(&self, node: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(node);
    }
}

impl Reconciler for Orphans {
    type Object = Node;

    async fn reconcile(&self, node: &Node, cx: &Context) -> Result<Outcome> {
        self.forget(cx.key().name());
        if is_out_of_service(node) && !is_ready(node) {
            for pod in pods_of(cx).await?.iter().filter(|pod| pod::is_terminating(pod)) {
                delete(pod, cx).await?;
            }
        }
        Ok(Outcome::done())
    }

    async fn deleted(&self, key: &Key, cx: &Context) -> Result<Outcome> {
        let pods = pods_of(cx).await?;
        if pods.is_empty() {
            self.forget(key.name());
            return Ok(Outcome::done());
        }
        let now = cx.now();
        if let Some(left) = pod::until(self.missing_since(key.name(), now), QUARANTINE, now) {
            return Ok(Outcome::requeue_after(left));
        }
        if cx.client().uncached().get_opt::<Node>(key).await?.is_none() {
            for pod in &pods {
                orphaned(pod, cx).await?;
            }
        }
        self.forget(key.name());
        Ok(Outcome::done())
    }
}

/// The pods of the reconciled node.
async fn pods_of(cx: &Context) -> Result<Vec<Arc<Pod>>> {
    Ok(cx.client().list::<Pod>(&ListOptions::all().field(kubelet::NODE_NAME, cx.key().name())).await?)
}

fn is_out_of_service(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    taints.iter().any(|taint| taint.key == OUT_OF_SERVICE)
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Marks a pod on a missing node as failed and deletes it.
async fn orphaned(pod: &Pod, cx: &Context) -> Result<()> {
    if !pod::is_terminal(pod) {
        let condition = disrupted("DeletionByPodGC", "PodGC: node no longer exists", cx.now());
        let patch = json!({ "status": { "phase": "Failed", "conditions": [condition] } });
        ignore_not_found(cx.client().status().patch(pod, &Patch::strategic(patch)).await)?;
    }
    delete(pod, cx).await
}

async fn delete(pod: &Pod, cx: &Context) -> Result<()> {
    let how = Delete::new().grace_period(0).uid(pod.metadata.uid.clone().unwrap_or_default());
    ignore_not_found(cx.client().delete_with(pod, &how).await)?;
    Ok(())
}

struct Ended;

impl KeyReconciler for Ended {
    async fn reconcile(&self, _: &Key, cx: &Context) -> Result<Outcome> {
        let ended = cx.client().list::<Pod>(&ListOptions::all().field(ENDED, YES)).await?;
        for pod in excess(&ended, ENDED_KEPT) {
            delete(pod, cx).await?;
        }
        Ok(Outcome::done())
    }
}

/// The oldest finished pods beyond the limit.
fn excess(ended: &[Arc<Pod>], kept: usize) -> Vec<&Pod> {
    let surplus = ended.len().saturating_sub(kept);
    if surplus == 0 {
        return Vec::new();
    }
    let mut ended: Vec<&Pod> = ended.iter().map(|pod| &**pod).collect();
    ended.sort_by_cached_key(|pod| {
        (pod::created(pod.metadata.creation_timestamp.as_ref()), pod.metadata.name.clone())
    });
    ended.truncate(surplus);
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_finished_pods_beyond_the_limit_are_deleted() {
        let pod = |name: &str, second: i64| -> Arc<Pod> {
            let created = Timestamp::from_second(second).unwrap().to_string();
            let pod = json!({ "metadata": { "name": name, "creationTimestamp": created } });
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        let pods = [pod("c", 3), pod("a", 1), pod("d", 3), pod("b", 2)];
        let names = |kept| -> Vec<&str> {
            excess(&pods, kept).iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
        };
        assert_eq!(names(4), Vec::<&str>::new());
        assert_eq!(names(1), ["a", "b", "c"]);
    }
}
