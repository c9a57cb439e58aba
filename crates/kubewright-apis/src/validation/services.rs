//! Validation of Service, Endpoints, EndpointSlice and the kinds of networking.k8s.io.
//!
//! Upstream tolerates unchanged values that older servers accepted. This is not needed here, because all
//! stored objects passed this validation.

mod addresses;
mod endpoints;
mod ingress;
mod network_policy;
mod service;

#[cfg(test)]
mod tests;

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn create(gvk: Gvk<'_>, object: &Value) -> ErrorList {
    match gvk.kind {
        "Service" => service::create(object),
        "Endpoints" => endpoints::endpoints(object),
        "EndpointSlice" => endpoints::slice(object),
        "Ingress" => ingress::create(object),
        "IngressClass" => ingress::class(object),
        "NetworkPolicy" => network_policy::policy(object),
        "IPAddress" => addresses::ip_address(object),
        "ServiceCIDR" => addresses::service_cidr(object),
        _ => ErrorList::new(),
    }
}

pub(super) fn update(gvk: Gvk<'_>, new: &Value, old: &Value) -> ErrorList {
    match gvk.kind {
        "Service" => service::update(new, old),
        "Endpoints" => endpoints::endpoints(new),
        "EndpointSlice" => endpoints::slice_update(new, old),
        "Ingress" => ingress::spec(new),
        "IngressClass" => ingress::class_update(new, old),
        "NetworkPolicy" => network_policy::policy(new),
        "IPAddress" => addresses::ip_address_update(new, old),
        "ServiceCIDR" => addresses::service_cidr_update(new, old),
        _ => ErrorList::new(),
    }
}

pub(super) fn update_subresource(gvk: Gvk<'_>, subresource: &str, new: &Value, _old: &Value) -> ErrorList {
    match (gvk.kind, subresource) {
        ("Service", "status") => service::status(new),
        ("Ingress", "status") => ingress::status(new),
        _ => ErrorList::new(),
    }
}

/// Validates the protocol of a port.
fn protocol(port: &Value, path: &Path) -> Option<FieldError> {
    let path = path.child("protocol");
    match port.str_at("protocol") {
        "" => Some(FieldError::required(&path, "")),
        protocol if PROTOCOLS.contains(&protocol) => None,
        protocol => Some(FieldError::not_supported(&path, protocol, &PROTOCOLS)),
    }
}

/// Validates `appProtocol`, which has the format of a label key.
fn app_protocol(port: &Value, path: &Path) -> ErrorList {
    let Some(protocol) = port.at("appProtocol").as_str() else { return ErrorList::new() };
    meta::invalid(&path.child("appProtocol"), protocol, names::label_key(protocol)).collect()
}

/// Validates the range of a port number.
fn port_number(number: i64, path: &Path) -> impl Iterator<Item = FieldError> {
    names::port_number(number).into_iter().map(move |message| FieldError::invalid(path, number, message))
}

/// Validates that an address of endpoints, or an external IP, is routable.
fn endpoint_ip(value: &str, path: &Path) -> ErrorList {
    let Some(ip) = names::parse_ip_sloppy(value) else {
        return vec![FieldError::invalid(path, value, "must be a valid IP address")];
    };
    let ip = ip.to_canonical();
    let (link_local, link_local_multicast) = match ip {
        std::net::IpAddr::V4(ip) => (ip.is_link_local(), matches!(ip.octets(), [224, 0, 0, _])),
        std::net::IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    let unspecified = format!("may not be unspecified ({value})");
    let rules = [
        (ip.is_unspecified(), unspecified.as_str()),
        (ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (link_local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ];
    let broken = rules.into_iter().filter(|(broken, _)| *broken);
    broken.map(|(_, detail)| FieldError::invalid(path, value, detail)).collect()
}

/// Validates that a host in the status of a load balancer is a DNS name, not an address.
fn balancer_hostname(host: &str, path: &Path) -> ErrorList {
    if host.is_empty() {
        return ErrorList::new();
    }
    let mut errors: ErrorList = meta::invalid(path, host, names::dns1123_subdomain(host)).collect();
    if names::parse_ip_sloppy(host).is_some() {
        errors.push(FieldError::invalid(path, host, "must be a DNS name, not an IP address"));
    }
    errors
}
