//! Warnings about Services, endpoints and the kinds of networking.k8s.io.

use serde_json::{Map, Value};

use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Warnings on creation (`old` is none) or update.
pub(crate) fn warnings(gvk: Gvk<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    match gvk.kind {
        "Service" => service(new),
        "Endpoints" => endpoints(new),
        "EndpointSlice" => endpoint_slice(new, old.is_none()),
        "Ingress" if old.is_none() => ingress(new),
        "NetworkPolicy" => network_policy(new),
        _ => Vec::new(),
    }
}

fn service(service: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if annotations(service).contains_key(TOPOLOGY_HINTS) {
        warnings
            .push(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    let spec = Path::new("spec");
    let cluster_ip = service.str_at("spec.clusterIP");
    if !cluster_ip.is_empty() && cluster_ip != "None" {
        warnings.extend(about_ips(service.list_at("spec.clusterIPs"), &spec.child("clusterIPs")));
    }
    let balancer_ip = service.str_at("spec.loadBalancerIP");
    let external_ips = service.list_at("spec.externalIPs");
    if service.str_at("spec.type") == "ClusterIP" && cluster_ip == "None" {
        if !balancer_ip.is_empty() {
            warnings.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if !external_ips.is_empty() {
            warnings.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if service.str_at("spec.sessionAffinity") != "None" {
            warnings.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    if !external_ips.is_empty() {
        warnings.push("spec.externalIPs is deprecated".to_owned());
    }
    warnings.extend(about_ips(external_ips, &spec.child("externalIPs")));
    warnings.extend(names::ip_warnings("spec.loadBalancerIP", balancer_ip));
    for (index, range) in service.list_at("spec.loadBalancerSourceRanges").iter().enumerate() {
        let path = spec.child("loadBalancerSourceRanges").index(index);
        warnings.extend(names::cidr_warnings(path.as_str(), range.as_str().unwrap_or_default()));
    }
    let is_name = service.str_at("spec.type") == "ExternalName";
    if is_name && !external_ips.is_empty() {
        warnings.push(r#"spec.externalIPs is ignored when spec.type is "ExternalName""#.to_owned());
    }
    if !is_name && !service.str_at("spec.externalName").is_empty() {
        warnings.push(r#"spec.externalName is ignored when spec.type is not "ExternalName""#.to_owned());
    }
    if service.str_at("spec.trafficDistribution") == "PreferClose" {
        warnings.push(
            r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#.to_owned(),
        );
    }
    warnings
}

fn endpoints(object: &Value) -> Vec<String> {
    // Upstream skips objects of controllers, which only copy addresses.
    if is_managed_by(object, "endpoints.kubernetes.io/managed-by", &["endpoint-controller"]) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (index, subset) in object.list_at("subsets").iter().enumerate() {
        let path = Path::new("subsets").index(index);
        for list in ["addresses", "notReadyAddresses"] {
            for (index, address) in subset.list_at(list).iter().enumerate() {
                let path = path.child(list).index(index).child("ip");
                warnings.extend(names::ip_warnings(path.as_str(), address.str_at("ip")));
            }
        }
    }
    warnings
}

fn endpoint_slice(object: &Value, created: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if created && object.str_at("addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let controllers = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if is_managed_by(object, "endpointslice.kubernetes.io/managed-by", &controllers) {
        return warnings;
    }
    for (index, endpoint) in object.list_at("endpoints").iter().enumerate() {
        let path = Path::new("endpoints").index(index).child("addresses");
        warnings.extend(about_ips(endpoint.list_at("addresses"), &path));
    }
    warnings
}

fn ingress(ingress: &Value) -> Vec<String> {
    if annotations(ingress).contains_key(INGRESS_CLASS) && !ingress.has("spec.ingressClassName") {
        return vec![format!(
            "annotation \"{INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
        )];
    }
    Vec::new()
}

fn network_policy(policy: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in policy.at("spec").list_at(direction).iter().enumerate() {
            let path = Path::new("spec").child(direction).index(index).child(peers);
            for (index, peer) in rule.list_at(peers).iter().enumerate() {
                let path = path.index(index).child("ipBlock");
                let cidr = path.child("cidr");
                warnings.extend(names::cidr_warnings(cidr.as_str(), peer.str_at("ipBlock.cidr")));
                for (index, except) in peer.list_at("ipBlock.except").iter().enumerate() {
                    let path = path.child("except").index(index);
                    warnings.extend(names::cidr_warnings(path.as_str(), except.as_str().unwrap_or_default()));
                }
            }
        }
    }
    warnings
}

fn about_ips(ips: &[Value], path: &Path) -> Vec<String> {
    let about = |(index, ip): (usize, &Value)| {
        names::ip_warnings(path.index(index).as_str(), ip.as_str().unwrap_or_default())
    };
    ips.iter().enumerate().flat_map(about).collect()
}

fn annotations(object: &Value) -> &Map<String, Value> {
    object.map_at("metadata.annotations")
}

fn is_managed_by(object: &Value, label: &str, controllers: &[&str]) -> bool {
    let manager = object.map_at("metadata.labels").get(label).and_then(Value::as_str);
    manager.is_some_and(|manager| controllers.contains(&manager))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ignored_fields_of_a_service_cause_warnings() {
        let headless = json!({
            "apiVersion": "v1", "kind": "Service",
            "spec": {
                "type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"], "sessionAffinity": "ClientIP",
                "externalName": "example.com", "trafficDistribution": "PreferClose",
            },
        });
        assert_eq!(
            warnings(Gvk::of(&headless), &headless, None),
            [
                "spec.SessionAffinity is ignored for headless services",
                r#"spec.externalName is ignored when spec.type is not "ExternalName""#,
                r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#,
            ]
        );
    }

    #[test]
    fn a_new_ingress_class_annotation_causes_a_warning() {
        let ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"annotations": {"kubernetes.io/ingress.class": "nginx"}},
        });
        let gvk = Gvk::of(&ingress);
        assert_eq!(
            warnings(gvk, &ingress, None),
            [
                r#"annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead"#
            ]
        );
        assert!(warnings(gvk, &ingress, Some(&ingress)).is_empty());
    }

    #[test]
    fn non_canonical_addresses_cause_warnings() {
        let endpoints = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "subsets": [{"addresses": [{"ip": "2001:DB8::1"}], "notReadyAddresses": [{"ip": "192.0.2.1"}]}],
        });
        assert_eq!(
            warnings(Gvk::of(&endpoints), &endpoints, None),
            [
                r#"subsets[0].addresses[0].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")"#
            ]
        );
    }
}
