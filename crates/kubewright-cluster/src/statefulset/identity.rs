//! Identity of StatefulSet pods: name, labels, hostname and storage, derived from the ordinal.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::owner::{remove_owner_reference, set_controller_reference};

use crate::history::{self, REVISION};
use crate::replicaset::from_template;

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

pub(super) fn name_of(set: &StatefulSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// The ordinal of a pod, if its name belongs to the set.
pub(super) fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let digits = pod.metadata.name.as_deref()?.strip_prefix(name_of(set))?.strip_prefix('-')?;
    digits.parse().ok().filter(|_| digits.bytes().all(|it| it.is_ascii_digit()))
}

/// The pod-name and pod-index labels.
pub(super) fn labels(set: &StatefulSet, ordinal: i32) -> [(String, String); 2] {
    [
        (POD_NAME.to_owned(), format!("{}-{ordinal}", name_of(set))),
        (POD_INDEX.to_owned(), ordinal.to_string()),
    ]
}

/// Whether a pod has the labels of its ordinal.
pub(super) fn is_labelled(set: &StatefulSet, pod: &Pod) -> bool {
    let wanted = ordinal(set, pod).map(|ordinal| labels(set, ordinal));
    wanted.into_iter().flatten().all(|(label, value)| history::label(pod, &label) == Some(&value))
}

/// The pod with an ordinal, from the template of a revision.
pub(super) fn pod(
    set: &StatefulSet,
    ordinal: i32,
    template: &PodTemplateSpec,
    revision: &ControllerRevision,
) -> Pod {
    let mut pod = from_template(set, Some(template));
    let name = format!("{}-{ordinal}", name_of(set));
    pod.metadata.generate_name = None;
    pod.metadata.name = Some(name.clone());
    let own = pod.metadata.labels.get_or_insert_default();
    own.extend(labels(set, ordinal));
    own.insert(REVISION.to_owned(), history::name(revision).to_owned());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain = set.spec.as_ref().and_then(|spec| spec.service_name.clone()).filter(|it| !it.is_empty());
    let mut volumes: Vec<Volume> = templates(set)
        .iter()
        .map(|claim| Volume {
            name: claim.metadata.name.clone().unwrap_or_default(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(set, claim, ordinal),
                ..PersistentVolumeClaimVolumeSource::default()
            }),
            ..Volume::default()
        })
        .collect();
    let others = spec.volumes.take().unwrap_or_default();
    let claimed: Vec<String> = volumes.iter().map(|volume| volume.name.clone()).collect();
    volumes.extend(others.into_iter().filter(|volume| !claimed.contains(&volume.name)));
    spec.volumes = (!volumes.is_empty()).then_some(volumes);
    pod
}

/// The claims of the pod with an ordinal.
pub(super) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let matched = set.spec.as_ref().and_then(|spec| spec.selector.match_labels.clone()).unwrap_or_default();
    let claim = |template: &PersistentVolumeClaim| {
        let mut labels = template.metadata.labels.clone().unwrap_or_default();
        labels.extend(matched.clone());
        PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: Some(claim_name(set, template, ordinal)),
                namespace: set.metadata.namespace.clone(),
                labels: Some(labels),
                annotations: template.metadata.annotations.clone(),
                ..ObjectMeta::default()
            },
            spec: template.spec.clone(),
            status: None,
        }
    };
    templates(set).iter().map(claim).collect()
}

fn templates(set: &StatefulSet) -> &[PersistentVolumeClaim] {
    set.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_deref()).unwrap_or_default()
}

fn claim_name(set: &StatefulSet, template: &PersistentVolumeClaim, ordinal: i32) -> String {
    format!("{}-{}-{ordinal}", template.metadata.name.as_deref().unwrap_or_default(), name_of(set))
}

/// Sets the owner references of a claim according to the retention policy: the set, its pod, or none. With
/// `whenScaled: Delete`, an excess pod owns its claims, so that they are deleted with it. Other owner
/// references stay.
pub(super) fn with_owners(
    set: &StatefulSet,
    pod: &Pod,
    is_spare: bool,
    claim: &PersistentVolumeClaim,
) -> PersistentVolumeClaim {
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    let deletes = |when: Option<&String>| when.is_some_and(|when| when == "Delete");
    let goes_with_pod = is_spare && deletes(policy.and_then(|policy| policy.when_scaled.as_ref()));
    let goes_with_set = !goes_with_pod && deletes(policy.and_then(|policy| policy.when_deleted.as_ref()));
    let mut owned = claim.clone();
    if !goes_with_pod {
        remove_owner_reference(pod, &mut owned);
    }
    if !goes_with_set {
        remove_owner_reference(set, &mut owned);
    }
    let taken = if goes_with_pod {
        set_controller_reference(pod, &mut owned)
    } else if goes_with_set {
        set_controller_reference(set, &mut owned)
    } else {
        Ok(())
    };
    if taken.is_ok() { owned } else { claim.clone() }
}

/// Whether a claim is owned by a previous pod and will be deleted with it.
pub(super) fn is_leaving(claim: &PersistentVolumeClaim) -> bool {
    claim.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "Pod")
}

#[cfg(test)]
mod tests {
    use kubewright_runtime::owner::controller_of;
    use serde_json::json;

    use super::*;

    fn set(policy: &serde_json::Value) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": { "name": "db", "namespace": "default", "uid": "1" },
            "spec": {
                "serviceName": "peers",
                "selector": { "matchLabels": { "app": "db" } },
                "template": {},
                "persistentVolumeClaimRetentionPolicy": policy,
                "volumeClaimTemplates": [{ "metadata": { "name": "data", "labels": { "tier": "a" } } }],
            },
        }))
        .unwrap()
    }

    fn made() -> Pod {
        let template = json!({
            "metadata": { "labels": { "app": "db" } },
            "spec": { "containers": [], "volumes": [{ "name": "data" }, { "name": "tmp" }] },
        });
        let revision: ControllerRevision =
            serde_json::from_value(json!({ "metadata": { "name": "db-x" }, "revision": 1 })).unwrap();
        pod(&set(&json!({})), 2, &serde_json::from_value(template).unwrap(), &revision)
    }

    #[test]
    fn name_labels_hostname_and_claims_derive_from_the_ordinal() {
        let pod = serde_json::to_value(made()).unwrap();
        assert_eq!(pod["metadata"]["name"], "db-2");
        assert_eq!(
            pod["metadata"]["labels"],
            json!({ "app": "db", "apps.kubernetes.io/pod-index": "2", "controller-revision-hash": "db-x",
                "statefulset.kubernetes.io/pod-name": "db-2" })
        );
        assert_eq!((&pod["spec"]["hostname"], &pod["spec"]["subdomain"]), (&json!("db-2"), &json!("peers")));
        assert_eq!(
            pod["spec"]["volumes"],
            json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data-db-2" } }, { "name": "tmp" }])
        );
        let claim = claims(&set(&json!({})), 2).remove(0).metadata;
        assert_eq!(claim.name.as_deref(), Some("data-db-2"));
        assert_eq!(serde_json::to_value(claim.labels).unwrap(), json!({ "app": "db", "tier": "a" }));
    }

    #[test]
    fn only_names_with_an_ordinal_belong_to_the_set() {
        let ordinal = |name: &str| {
            let mut pod = Pod::default();
            pod.metadata.name = Some(name.to_owned());
            super::ordinal(&set(&json!({})), &pod)
        };
        assert_eq!((ordinal("db-0"), ordinal("db-12")), (Some(0), Some(12)));
        for other in ["db", "db-", "db-x", "db-+1", "dbx-1", "db-1-2", "other-1", "db-99999999999"] {
            assert_eq!(ordinal(other), None, "{other}");
        }
    }

    #[test]
    fn claim_owners_follow_the_retention_policy() {
        let mut pod = made();
        pod.metadata.uid = Some("2".to_owned());
        let owner = |deleted: &str, scaled: &str, is_spare: bool| {
            let set = set(&json!({ "whenDeleted": deleted, "whenScaled": scaled }));
            let mut claim = claims(&set, 2).remove(0);
            // Existing owner references of the set are replaced.
            set_controller_reference(&set, &mut claim).unwrap();
            let owned = with_owners(&set, &pod, is_spare, &claim);
            controller_of(&owned).map(|owner| owner.kind.clone())
        };
        assert_eq!(owner("Retain", "Retain", false), None);
        assert_eq!(owner("Retain", "Retain", true), None);
        assert_eq!(owner("Delete", "Retain", false).as_deref(), Some("StatefulSet"));
        assert_eq!(owner("Delete", "Retain", true).as_deref(), Some("StatefulSet"));
        assert_eq!(owner("Retain", "Delete", false), None);
        assert_eq!(owner("Retain", "Delete", true).as_deref(), Some("Pod"));
        assert_eq!(owner("Delete", "Delete", false).as_deref(), Some("StatefulSet"));
        assert_eq!(owner("Delete", "Delete", true).as_deref(), Some("Pod"));
    }
}
