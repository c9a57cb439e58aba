//! Drops fields of features that are disabled by default in this version.

use serde_json::Value;

use kubewright_apimachinery::object::Fields as _;

/// Drops scheduling groups, stop signals, and projected trust bundles and certificates.
pub(super) fn drop_from_spec(spec: &mut Value) {
    spec.remove_at("schedulingGroup");
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.list_mut(kind).into_iter().flatten() {
            container.remove_at("lifecycle.stopSignal");
        }
    }
    for volume in spec.list_mut("volumes").into_iter().flatten() {
        for source in volume.list_mut("projected.sources").into_iter().flatten() {
            source.remove_at("clusterTrustBundle");
            source.remove_at("podCertificate");
        }
    }
}
