//! Readiness of a sample and all objects that it owns.
//!
//! Owner references are followed through workload kinds and the operator's kinds. Objects are only read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::Value;

use super::api_error::api_error;
use super::crds::CustomKind;
use super::report::count;
use super::samples::{Placed, api};
use crate::readiness::{self, Readiness};

/// Pods and the built-in kinds that create them.
const WORKLOADS: &[(&str, &str)] = &[
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
];

/// The state of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SampleStatus {
    /// Kind and name of the sample.
    pub(crate) sample: String,
    /// What makes it ready, or what is missing.
    pub(crate) text: String,
    pub(crate) is_ready: bool,
}

/// Evaluates the samples with the objects that they own. A sample without a status is not ready if `expects_status`.
pub(crate) async fn evaluate(
    client: &kube::Client,
    samples: &[Placed],
    kinds: &[CustomKind],
    expects_status: bool,
) -> Result<Vec<SampleStatus>> {
    let mut found = Vec::new();
    let mut listed: BTreeMap<Option<String>, Vec<Value>> = BTreeMap::new();
    for sample in samples {
        let object = sample.api(client).get_opt(&sample.name).await.map_err(api_error);
        let object = object.with_context(|| format!("cannot read {sample}"))?;
        let Some(object) = object.map(|object| value(&object, &sample.resource)) else {
            let text = "not found in the cluster".to_owned();
            found.push(SampleStatus { sample: sample.to_string(), text, is_ready: false });
            continue;
        };
        if !listed.contains_key(&sample.namespace) {
            let others = list(client, sample.namespace.as_deref(), kinds).await?;
            listed.insert(sample.namespace.clone(), others);
        }
        let others = listed.get(&sample.namespace).map(Vec::as_slice).unwrap_or_default();
        let has_status = kinds.iter().any(|kind| {
            kind.has_status && kind.kind == sample.resource.kind && kind.group == sample.resource.group
        });
        let owned = owned(&object, others);
        found.push(status(sample.to_string(), &object, &owned, has_status && expects_status));
    }
    Ok(found)
}

/// The APIs to watch for changes that affect the samples.
pub(crate) fn places(
    client: &kube::Client,
    samples: &[Placed],
    kinds: &[CustomKind],
) -> impl Iterator<Item = Api<DynamicObject>> {
    let mut places = BTreeMap::new();
    for sample in samples {
        let parts = parts(sample.namespace.as_deref(), kinds).into_iter();
        let parts = parts.map(|(resource, namespace)| api(client, namespace, &resource));
        for place in parts.chain([sample.api(client)]) {
            places.insert(place.resource_url().to_owned(), place);
        }
    }
    places.into_values()
}

/// All objects that a sample may own.
async fn list(client: &kube::Client, namespace: Option<&str>, kinds: &[CustomKind]) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for (resource, namespace) in parts(namespace, kinds) {
        let objects = match api(client, namespace, &resource).list(&ListParams::default()).await {
            // On an existing cluster some kinds may be forbidden or missing.
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => continue,
            listed => {
                listed.map_err(api_error).with_context(|| format!("cannot list {}", resource.plural))?
            }
        };
        found.extend(objects.items.iter().map(|object| value(object, &resource)));
    }
    Ok(found)
}

/// The kinds that a sample may own, with the namespace to list; `None` lists all.
fn parts<'a>(namespace: Option<&'a str>, kinds: &[CustomKind]) -> Vec<(ApiResource, Option<&'a str>)> {
    let built_in = WORKLOADS.iter().map(|(api_version, kind)| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        (ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)), namespace)
    });
    // Any version will do: it is the same object.
    let mut known = BTreeSet::new();
    let ours = kinds.iter().filter(|kind| known.insert((&kind.group, &kind.kind))).map(|kind| {
        let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        // Cluster-scoped objects need a list over all namespaces.
        (ApiResource::from_gvk_with_plural(&gvk, &kind.plural), None)
    });
    built_in.chain(ours).collect()
}

/// List items have no apiVersion and kind, so they are added.
fn value(object: &DynamicObject, resource: &ApiResource) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value["apiVersion"] = resource.api_version.as_str().into();
    value["kind"] = resource.kind.as_str().into();
    value
}

/// The objects owned directly and transitively.
fn owned<'a>(object: &Value, others: &'a [Value]) -> Vec<&'a Value> {
    let mut by_owner: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for other in others {
        for owner in other["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
            by_owner.entry(owner["uid"].as_str().unwrap_or_default()).or_default().push(other);
        }
    }
    let uid = |object: &'a Value| object["metadata"]["uid"].as_str().unwrap_or_default();
    let root = object["metadata"]["uid"].as_str().unwrap_or_default();
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([root]);
    let mut left = VecDeque::from([root]);
    while let Some(owner) = left.pop_front() {
        for child in by_owner.get(owner).into_iter().flatten() {
            if seen.insert(uid(child)) {
                left.push_back(uid(child));
                found.push(*child);
            }
        }
    }
    found
}

fn readiness(object: &Value, expects_status: bool) -> Readiness {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = object["kind"].as_str().unwrap_or_default();
    if expects_status {
        readiness::expecting_status(group, kind, object)
    } else {
        readiness::of(group, kind, object)
    }
}

fn status(sample: String, object: &Value, owned: &[&Value], expects_status: bool) -> SampleStatus {
    let found = readiness(object, expects_status);
    if !found.is_ready() {
        return SampleStatus { sample, text: found.reason, is_ready: false };
    }
    for part in owned {
        let found = readiness(part, false);
        if !found.is_ready() {
            let [kind, name] =
                [&part["kind"], &part["metadata"]["name"]].map(|text| text.as_str().unwrap_or("?"));
            let text = format!("{kind} {name}: {}", found.reason);
            return SampleStatus { sample, text, is_ready: false };
        }
    }
    let mut text = if found.reason.is_empty() { "applied".to_owned() } else { found.reason };
    let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
    for part in owned {
        *parts.entry(part["kind"].as_str().unwrap_or_default()).or_default() += 1;
    }
    for (kind, number) in parts {
        let _ = write!(text, ", {} ready", count(number, kind));
    }
    SampleStatus { sample, text, is_ready: true }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, uid: &str, owner: &str, status: &Value) -> Value {
        let api_version = if kind == "Pod" { "v1" } else { "x.example.com/v1" };
        json!({
            "apiVersion": api_version, "kind": kind, "status": status,
            "metadata": { "name": uid, "uid": uid, "ownerReferences": [{ "uid": owner }] }
        })
    }

    #[test]
    fn a_sample_waits_for_all_objects_that_it_owns() {
        let sample = object("View", "view", "", &json!({}));
        let running = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        let mut others = vec![
            object("Pod", "mine", "part", &json!({ "phase": "Pending" })),
            object("Part", "part", "view", &json!({})),
            object("Pod", "theirs", "other", &json!({ "phase": "Pending" })),
        ];
        let found = status("View view".to_owned(), &sample, &owned(&sample, &others), true);
        assert_eq!((found.is_ready, found.text.as_str()), (false, "Pod mine: phase is Pending"));
        others[0]["status"] = running;
        let found = status("View view".to_owned(), &sample, &owned(&sample, &others), true);
        assert_eq!((found.is_ready, found.text.as_str()), (true, "applied, 1 Part ready, 1 Pod ready"));
    }
}
