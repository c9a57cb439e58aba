//! Filters: why a pod does not fit on a node. The first failing filter decides; the texts are upstream's.

use std::fmt;

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration,
};

use super::affinity::Neighbours;
use super::nodes::{NodeInfo, PodInfo};
use super::spread::Spread;

const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Why a pod does not fit on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unfit {
    Unschedulable,
    Taint { key: String, value: String },
    NodeAffinity,
    Ports,
    TooManyPods,
    Insufficient(String),
    Spread,
    SpreadLabel,
    PodAffinity,
    PodAntiAffinity,
    AvoidedByOthers,
}

impl Unfit {
    /// Whether preemption could help.
    pub(super) fn preemption_could_help(&self) -> bool {
        !matches!(
            self,
            Self::Unschedulable
                | Self::Taint { .. }
                | Self::NodeAffinity
                | Self::SpreadLabel
                | Self::PodAffinity
        )
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unschedulable => "node(s) were unschedulable",
            Self::Taint { key, value } => {
                return write!(f, "node(s) had untolerated taint {{{key}: {value}}}");
            }
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::TooManyPods => "Too many pods",
            Self::Insufficient(resource) => return write!(f, "Insufficient {resource}"),
            Self::Spread => "node(s) didn't match pod topology spread constraints",
            Self::SpreadLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::AvoidedByOthers => "node(s) didn't satisfy existing pods anti-affinity rules",
        })
    }
}

/// Runs the filters; empty if the pod fits. Only insufficient resources can have several reasons.
pub(super) fn check(
    pod: &Pod,
    info: &PodInfo,
    node_info: &NodeInfo,
    neighbours: &Neighbours,
    spread: &Spread,
) -> Vec<Unfit> {
    let node = &node_info.node;
    let one = |refusal| vec![refusal];
    if is_unschedulable(pod, node) {
        return one(Unfit::Unschedulable);
    }
    if let Some(taint) = untolerated(pod, node, &["NoSchedule", "NoExecute"]) {
        let value = taint.value.clone().unwrap_or_default();
        return one(Unfit::Taint { key: taint.key.clone(), value });
    }
    if !selects(pod, node) {
        return one(Unfit::NodeAffinity);
    }
    if !info.shape.ports.is_empty()
        && node_info.pods.values().any(|other| !other.shape.ports.is_disjoint(&info.shape.ports))
    {
        return one(Unfit::Ports);
    }
    let missing = missing(info, node_info);
    if !missing.is_empty() {
        return missing;
    }
    spread.check(node).or_else(|| neighbours.check(node)).map(one).unwrap_or_default()
}

fn missing(info: &PodInfo, node_info: &NodeInfo) -> Vec<Unfit> {
    let mut missing = Vec::new();
    let places = node_info.has.get("pods").copied().unwrap_or_default();
    if i64::try_from(node_info.pods.len()).unwrap_or(i64::MAX) >= places {
        missing.push(Unfit::TooManyPods);
    }
    for (resource, amount) in info.shape.requests.iter() {
        let (has, used) = (node_info.has.get(resource), node_info.used.get(resource));
        let free = has.copied().unwrap_or_default() - used.copied().unwrap_or_default();
        if amount > 0 && amount > free {
            missing.push(Unfit::Insufficient(resource.to_owned()));
        }
    }
    missing
}

fn is_unschedulable(pod: &Pod, node: &Node) -> bool {
    if node.spec.as_ref().is_none_or(|spec| spec.unschedulable != Some(true)) {
        return false;
    }
    let taint = Taint { key: UNSCHEDULABLE.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
    !tolerations(pod).iter().any(|toleration| tolerates(toleration, &taint))
}

/// The first taint with one of these effects that the pod does not tolerate.
pub(crate) fn untolerated<'a>(pod: &Pod, node: &'a Node, effects: &[&str]) -> Option<&'a Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let mut taints = taints.iter().filter(|taint| effects.contains(&taint.effect.as_str()));
    taints.find(|taint| !tolerations(pod).iter().any(|toleration| tolerates(toleration, taint)))
}

/// The tolerations of a pod.
pub(crate) fn tolerations(pod: &Pod) -> &[Toleration] {
    pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default()
}

/// Whether a toleration matches a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().filter(|effect| !effect.is_empty());
    let key = toleration.key.as_deref().filter(|key| !key.is_empty());
    let of_it = effect.is_none_or(|effect| effect == taint.effect) && key.is_none_or(|key| key == taint.key);
    let (own, its) =
        (toleration.value.as_deref().unwrap_or_default(), taint.value.as_deref().unwrap_or_default());
    let number = |text: &str| text.parse::<i64>();
    let same = match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => own == its,
        "Gt" => matches!((number(its), number(own)), (Ok(its), Ok(own)) if its > own),
        "Lt" => matches!((number(its), number(own)), (Ok(its), Ok(own)) if its < own),
        _ => false,
    };
    of_it && same
}

/// Whether a node matches the node selector and the required node affinity of a pod.
pub(crate) fn selects(pod: &Pod, node: &Node) -> bool {
    let Some(spec) = &pod.spec else { return true };
    let labels = node.metadata.labels.as_ref();
    let selected =
        spec.node_selector.iter().flatten().all(|(label, value)| {
            labels.and_then(|labels| labels.get(label)).is_some_and(|own| own == value)
        });
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required: Option<&NodeSelector> =
        affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
    selected && required.is_none_or(|it| it.node_selector_terms.iter().any(|term| term_selects(term, node)))
}

/// Whether a node matches a term. An empty term matches nothing.
pub(super) fn term_selects(term: &NodeSelectorTerm, node: &Node) -> bool {
    let (labels, fields) = (term.match_expressions.as_deref(), term.match_fields.as_deref());
    let (labels, fields) = (labels.unwrap_or_default(), fields.unwrap_or_default());
    let label = |name: &String| node.metadata.labels.as_ref()?.get(name);
    let field = |name: &String| node.metadata.name.as_ref().filter(|_| name == "metadata.name");
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|wanted| requirement(wanted, label(&wanted.key)))
        && fields.iter().all(|wanted| requirement(wanted, field(&wanted.key)))
}

/// Whether the value of a label or field, if there is one, meets a requirement.
fn requirement(wanted: &NodeSelectorRequirement, own: Option<&String>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let compare = |by: fn(&i64, &i64) -> bool| {
        let own = own.and_then(|own| own.parse::<i64>().ok());
        let than = values.first().and_then(|value| value.parse::<i64>().ok());
        own.zip(than).is_some_and(|(own, than)| by(&own, &than))
    };
    match wanted.operator.as_str() {
        "In" => own.is_some_and(|own| values.contains(own)),
        "NotIn" => own.is_none_or(|own| !values.contains(own)),
        "Exists" => own.is_some(),
        "DoesNotExist" => own.is_none(),
        "Gt" => compare(i64::gt),
        "Lt" => compare(i64::lt),
        _ => false,
    }
}
