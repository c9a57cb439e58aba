//! DefaultIngressClass: an Ingress without a class gets the default IngressClass.

use kubewright_apimachinery::object::Fields as _;

use super::default_storage_class::default_class;
use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
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
        let ingress = &attributes.object;
        let has_class = ingress.has("spec.ingressClassName")
            || ingress.map_at("metadata.annotations").contains_key("kubernetes.io/ingress.class");
        if attributes.is_for("networking.k8s.io", "ingresses") && !has_class {
            let classes = cluster.list("networking.k8s.io/ingressclasses", "");
            if let Some(name) = default_class(&classes, "ingressclass.kubernetes.io/is-default-class") {
                attributes.object.set_at("spec.ingressClassName", name);
            }
        }
        Admission::ALLOWED
    }
}
