//! PodTopologyLabels: a pod gets the zone and region labels of the node that it is bound to.

use kubewright_apimachinery::object::Fields as _;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !attributes.resource.group().is_empty() || attributes.resource.plural() != "pods" {
            return Admission::ALLOWED;
        }
        let node = match (attributes.subresource, attributes.object.str_at("target.kind")) {
            ("", _) => attributes.object.str_at("spec.nodeName"),
            ("binding", "Node") => attributes.object.str_at("target.name"),
            _ => "",
        };
        if node.is_empty() {
            return Admission::ALLOWED;
        }
        let Some(node) = cluster.get("nodes", "", node) else { return Admission::ALLOWED };
        for label in ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"] {
            if let Some(value) = node.map_at("metadata.labels").get(label) {
                attributes.object.object_mut("metadata.labels").insert(label.to_owned(), value.clone());
            }
        }
        Admission::ALLOWED
    }
}
