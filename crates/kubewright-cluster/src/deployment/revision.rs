//! Revision annotations of ReplicaSets, which `kubectl rollout` reads.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::rolling;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations that a ReplicaSet does not copy from its Deployment.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];
/// Maximum length of the revision history annotation.
const LONGEST_HISTORY: usize = 2000;

/// The revision of a ReplicaSet; 0 if it has none.
pub(super) fn number(set: &ReplicaSet) -> i64 {
    annotation(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The next revision number.
pub(super) fn next(old: &[ReplicaSet]) -> i64 {
    old.iter().map(number).max().unwrap_or_default() + 1
}

/// A numeric annotation of a ReplicaSet.
pub(super) fn count(set: &ReplicaSet, name: &str) -> Option<i32> {
    annotation(set, name)?.parse().ok()
}

fn annotation<'a>(set: &'a ReplicaSet, name: &str) -> Option<&'a str> {
    set.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The annotations of the current ReplicaSet, with a revision of at least `number`. A ReplicaSet that becomes
/// current again also records its previous revision.
pub(super) fn annotations(
    deployment: &Deployment,
    set: &ReplicaSet,
    number: i64,
) -> BTreeMap<String, String> {
    let mut annotations = set.metadata.annotations.clone().unwrap_or_default();
    let theirs = deployment.metadata.annotations.iter().flatten();
    annotations.extend(
        theirs
            .filter(|(name, _)| !OWN.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    let before = annotations.get(REVISION).cloned();
    if self::number(set) < number {
        annotations.insert(REVISION.to_owned(), number.to_string());
        if let Some(before) = before {
            let history = annotations.get(HISTORY).filter(|history| !history.is_empty());
            let mut history = history.map_or(before.clone(), |history| format!("{history},{before}"));
            while history.len() > LONGEST_HISTORY {
                history = history.split_once(',').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
            }
            annotations.insert(HISTORY.to_owned(), history);
        }
    }
    if set.metadata.uid.is_none() {
        annotations.extend(sizes(deployment));
    }
    annotations
}

/// The desired-replicas and max-replicas annotations, used to detect scaling and to scale proportionally.
pub(super) fn sizes(deployment: &Deployment) -> [(String, String); 2] {
    let limits = rolling::Limits::of(deployment);
    [
        (DESIRED.to_owned(), limits.wanted.to_string()),
        (MAX.to_owned(), (limits.wanted + limits.surge).to_string()),
    ]
}

/// The ReplicaSets beyond the history limit, oldest first. Skips those with pods or an outdated status.
pub(super) fn excess<'a>(deployment: &Deployment, old: &'a [ReplicaSet]) -> Vec<&'a ReplicaSet> {
    let limit = deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { return Vec::new() };
    let mut sets: Vec<&ReplicaSet> =
        old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
    sets.sort_by_cached_key(|set| (number(set), super::template::age(set)));
    let surplus = sets.len().saturating_sub(limit);
    sets.truncate(surplus);
    sets.retain(|set| {
        let status = set.status.clone().unwrap_or_default();
        status.replicas == 0
            && rolling::size(set) == 0
            && set.metadata.generation <= status.observed_generation
    });
    sets
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(name: &str, revision: i64, replicas: i32) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": { "name": name, "uid": name, "generation": 1, "annotations": { REVISION: revision.to_string() } },
            "spec": { "replicas": replicas, "selector": {} },
            "status": { "replicas": replicas, "observedGeneration": 1 },
        }))
        .unwrap()
    }

    fn deployment(limit: i32) -> Deployment {
        serde_json::from_value(json!({
            "metadata": { "annotations": { "note": "x", REVISION: "7" } },
            "spec": { "replicas": 4, "revisionHistoryLimit": limit, "selector": {}, "template": {} },
        }))
        .unwrap()
    }

    #[test]
    fn a_rollback_gets_a_new_revision_and_a_history() {
        let annotations = annotations(&deployment(10), &set("a", 1, 0), 3);
        assert_eq!(annotations[REVISION], "3");
        assert_eq!(annotations[HISTORY], "1");
        assert_eq!(annotations["note"], "x");
        let mut again = set("a", 3, 0);
        again.metadata.annotations = Some(annotations);
        let annotations = super::annotations(&deployment(10), &again, 5);
        assert_eq!((annotations[REVISION].as_str(), annotations[HISTORY].as_str()), ("5", "1,3"));
        again.metadata.annotations = Some(annotations.clone());
        assert_eq!(super::annotations(&deployment(10), &again, 2), annotations, "it never goes back");
    }

    #[test]
    fn the_oldest_replica_sets_without_pods_are_deleted() {
        let sets = [set("c", 3, 0), set("a", 1, 0), set("b", 2, 1), set("d", 4, 0)];
        let names = |limit| -> Vec<String> {
            excess(&deployment(limit), &sets).iter().map(|set| set.metadata.name.clone().unwrap()).collect()
        };
        assert_eq!(names(4), Vec::<String>::new());
        assert_eq!(names(3), ["a"]);
        assert_eq!(names(1), ["a", "c"], "one still has a pod");
        assert_eq!(names(0), ["a", "c", "d"]);
        assert_eq!(next(&sets), 5);
    }
}
