//! Node selection and pod templates of a DaemonSet.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};

use crate::history::REVISION;
use crate::kubelet;
use crate::replicaset::from_template;
use crate::scheduler::{selects, untolerated};

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const GENERATION: &str = "pod-template-generation";
/// The taints that all daemon pods tolerate.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// The taint that daemon pods with host network also tolerate.
const NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Whether the set runs a pod on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eligibility {
    /// The node should run a pod.
    ShouldRun,
    /// The node gets no new pod, but an existing one may stay.
    MayContinue,
    /// The node must not run a pod.
    MustNotRun,
}

/// The pod that the set creates, without a node.
pub(super) fn daemon(set: &DaemonSet, hash: &str) -> Pod {
    let mut pod = from_template(set, set.spec.as_ref().map(|spec| &spec.template));
    let labels = pod.metadata.labels.get_or_insert_default();
    let generation = set.metadata.annotations.as_ref().and_then(|it| it.get(TEMPLATE_GENERATION));
    labels.extend(generation.map(|generation| (GENERATION.to_owned(), generation.clone())));
    labels.insert(REVISION.to_owned(), hash.to_owned());
    tolerate(pod.spec.get_or_insert_default());
    pod
}

fn tolerate(spec: &mut PodSpec) {
    let network = (spec.host_network == Some(true)).then_some(NETWORK);
    let own = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        // Removes `tolerationSeconds` of an equal toleration.
        let same = own.iter_mut().find(|it| {
            (&it.key, &it.effect, &it.operator, &it.value)
                == (&toleration.key, &toleration.effect, &toleration.operator, &toleration.value)
        });
        match same {
            Some(same) => *same = toleration,
            None => own.push(toleration),
        }
    }
}

/// Whether a node should run `daemon`.
pub(super) fn eligibility(daemon: &Pod, node: &Node) -> Eligibility {
    let pinned = kubelet::node_name(daemon);
    if pinned.is_some_and(|pinned| node.metadata.name.as_deref() != Some(pinned)) || !selects(daemon, node) {
        Eligibility::MustNotRun
    } else if untolerated(daemon, node, &["NoSchedule", "NoExecute"]).is_none() {
        Eligibility::ShouldRun
    } else if untolerated(daemon, node, &["NoExecute"]).is_none() {
        Eligibility::MayContinue
    } else {
        Eligibility::MustNotRun
    }
}

/// The pod for a node, with a node affinity that only this node matches.
pub(super) fn for_node(daemon: &Pod, node: &str) -> Pod {
    let mut pod = daemon.clone();
    let name = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![name]), ..NodeSelectorTerm::default() };
    let affinity = pod.spec.get_or_insert_default().affinity.get_or_insert_default();
    affinity.node_affinity.get_or_insert_default().required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
    pod
}

/// The node that a pod is bound to or created for.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let affinity = || pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref();
    let terms = || affinity()?.required_during_scheduling_ignored_during_execution.as_ref();
    let fields = terms().into_iter().flat_map(|it| &it.node_selector_terms);
    let mut fields = fields.flat_map(|term| term.match_fields.iter().flatten());
    kubelet::node_name(pod).or_else(|| {
        let name = fields.find(|field| field.key == "metadata.name" && field.operator == "In")?;
        name.values.as_ref()?.first().map(String::as_str)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn made(spec: &Value) -> Pod {
        let set = json!({
            "metadata": { "name": "log", "uid": "1", "annotations": { TEMPLATE_GENERATION: "3" } },
            "spec": { "selector": {}, "template": { "metadata": { "labels": { "app": "log" } }, "spec": spec } },
        });
        daemon(&serde_json::from_value(set).unwrap(), "x")
    }

    fn node(taints: &Value) -> Node {
        let node = json!({
            "metadata": { "name": "a", "labels": { "disk": "ssd" } }, "spec": { "taints": taints },
        });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_node_is_eligible_if_selected_and_its_taints_are_tolerated() {
        let plain = made(&json!({ "containers": [] }));
        let of = |daemon: &Pod, taints: &Value| eligibility(daemon, &node(taints));
        assert_eq!(of(&plain, &json!([])), Eligibility::ShouldRun);
        let own = |effect: &str| json!([{ "key": "own", "effect": effect }]);
        assert_eq!(of(&plain, &own("NoSchedule")), Eligibility::MayContinue);
        assert_eq!(of(&plain, &own("NoExecute")), Eligibility::MustNotRun);
        assert_eq!(of(&plain, &own("PreferNoSchedule")), Eligibility::ShouldRun);
        for (key, effect) in TOLERATED {
            assert_eq!(
                of(&plain, &json!([{ "key": key, "effect": effect }])),
                Eligibility::ShouldRun,
                "{key}"
            );
        }
        let network = json!([{ "key": NETWORK.0, "effect": NETWORK.1 }]);
        assert_eq!(of(&plain, &network), Eligibility::MayContinue);
        assert_eq!(
            of(&made(&json!({ "containers": [], "hostNetwork": true })), &network),
            Eligibility::ShouldRun
        );
        let chosen = |disk: &str| made(&json!({ "containers": [], "nodeSelector": { "disk": disk } }));
        assert_eq!(of(&chosen("ssd"), &json!([])), Eligibility::ShouldRun);
        assert_eq!(of(&chosen("hdd"), &json!([])), Eligibility::MustNotRun);
        assert_eq!(
            of(&made(&json!({ "containers": [], "nodeName": "b" })), &json!([])),
            Eligibility::MustNotRun
        );
    }

    #[test]
    fn a_pod_is_created_for_one_node_and_keeps_other_affinity() {
        let wide = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "disk", "operator": "Exists" }] },
        ] } });
        let pod = for_node(&made(&json!({ "containers": [], "affinity": { "nodeAffinity": wide } })), "a");
        assert_eq!(node_of(&pod), Some("a"));
        let pod = serde_json::to_value(pod).unwrap();
        let required =
            &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(
            *required,
            json!({ "nodeSelectorTerms": [
                { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["a"] }] },
            ] })
        );
        let labels = json!({ "app": "log", "controller-revision-hash": "x", "pod-template-generation": "3" });
        assert_eq!(pod["metadata"]["labels"], labels);
    }
}
