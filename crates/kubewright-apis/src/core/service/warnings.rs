//! Warnings about Services, and about lists of addresses.

use serde_json::Value;

use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

pub(super) fn service(service: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if service.map_at("metadata.annotations").contains_key(TOPOLOGY_HINTS) {
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

/// Warnings about addresses that are not in canonical form.
pub(crate) fn about_ips(ips: &[Value], path: &Path) -> Vec<String> {
    let about = |(index, ip): (usize, &Value)| {
        names::ip_warnings(path.index(index).as_str(), ip.as_str().unwrap_or_default())
    };
    ips.iter().enumerate().flat_map(about).collect()
}
