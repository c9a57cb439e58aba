//! Pod templates and their ReplicaSets.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kubewright_runtime::owner::set_controller_reference;

use super::revision;
use crate::{hash, pod};

const HASH: &str = "pod-template-hash";

/// The template of a ReplicaSet without the pod-template-hash label.
fn plain(template: Option<&PodTemplateSpec>) -> PodTemplateSpec {
    let mut template = template.cloned().unwrap_or_default();
    if let Some(meta) = &mut template.metadata
        && let Some(labels) = &mut meta.labels
    {
        labels.remove(HASH);
        if labels.is_empty() {
            meta.labels = None;
        }
    }
    template
}

/// The oldest ReplicaSet with the Deployment's template.
pub(super) fn current(deployment: &Deployment, sets: &[ReplicaSet]) -> Option<ReplicaSet> {
    let wanted = plain(deployment.spec.as_ref().map(|spec| &spec.template));
    let same = sets.iter().filter(|set| is_of(set, &wanted));
    same.min_by_key(|set| age(set)).cloned()
}

/// Sort key of ReplicaSets: creation time, then name.
pub(super) fn age(set: &ReplicaSet) -> (jiff::Timestamp, String) {
    (pod::created(set.metadata.creation_timestamp.as_ref()), set.metadata.name.clone().unwrap_or_default())
}

/// Whether a ReplicaSet has the Deployment's template.
pub(super) fn is_current(deployment: &Deployment, set: &ReplicaSet) -> bool {
    is_of(set, &plain(deployment.spec.as_ref().map(|spec| &spec.template)))
}

fn is_of(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    plain(set.spec.as_ref().and_then(|spec| spec.template.as_ref())) == *template
}

/// The hash of a template and the collision count.
fn hash_of(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    // Cannot fail: the template was deserialized before.
    let mut bytes = serde_json::to_vec(template).unwrap_or_default();
    bytes.extend(collisions.map(i32::to_le_bytes).into_iter().flatten());
    hash::encode(hash::fnv1a(&bytes))
}

/// The ReplicaSet for the Deployment's template, with zero replicas.
pub(super) fn new_set(deployment: &Deployment, number: i64) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = hash_of(&spec.template, collisions);
    let mut template = spec.template;
    let meta = template.metadata.get_or_insert_default();
    meta.labels.get_or_insert_default().insert(HASH.to_owned(), hash.clone());
    let labels = meta.labels.clone();
    let mut match_labels: BTreeMap<String, String> = spec.selector.match_labels.unwrap_or_default();
    match_labels.insert(HASH.to_owned(), hash.clone());
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let mut set = ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            namespace: deployment.metadata.namespace.clone(),
            labels,
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(0),
            min_ready_seconds: spec.min_ready_seconds,
            selector: LabelSelector { match_labels: Some(match_labels), ..spec.selector },
            template: Some(template),
        }),
        status: None,
    };
    // Cannot fail: the ReplicaSet is new and in the same namespace.
    let _ = set_controller_reference(deployment, &mut set);
    set.metadata.annotations = Some(revision::annotations(deployment, &set, number));
    set
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(image: &str) -> Deployment {
        serde_json::from_value(json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "1" },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": image }] },
                },
            },
        }))
        .unwrap()
    }

    #[test]
    fn name_labels_and_selector_contain_the_template_hash() {
        let set = new_set(&deployment("web:1"), 1);
        let name = set.metadata.name.clone().unwrap();
        let hash = name.strip_prefix("web-").unwrap();
        assert_eq!(set.metadata.labels.as_ref().unwrap()[HASH], hash);
        let spec = set.spec.as_ref().unwrap();
        assert_eq!(spec.selector.match_labels.as_ref().unwrap()[HASH], hash);
        assert_eq!(
            spec.template.as_ref().unwrap().metadata.as_ref().unwrap().labels.as_ref().unwrap()[HASH],
            hash
        );
        assert!(is_current(&deployment("web:1"), &set));
        assert!(!is_current(&deployment("web:2"), &set));
    }

    #[test]
    fn each_template_and_collision_count_has_its_own_hash() {
        let name = |deployment: &Deployment| new_set(deployment, 1).metadata.name.unwrap();
        let mut one = deployment("web:1");
        let plain = name(&one);
        assert_eq!(plain, name(&deployment("web:1")));
        assert_ne!(plain, name(&deployment("web:2")));
        one.status.get_or_insert_default().collision_count = Some(1);
        assert_ne!(plain, name(&one));
        assert!(is_current(&one, &new_set(&one, 1)), "the hash is no part of what is compared");
    }
}
