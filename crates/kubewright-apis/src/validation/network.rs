//! Validation of ports, protocols and addresses of Services, endpoints and Ingresses.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Validates the protocol of a port.
pub(crate) fn protocol(port: &Value, path: &Path) -> Option<FieldError> {
    let path = path.child("protocol");
    match port.str_at("protocol") {
        "" => Some(FieldError::required(&path, "")),
        protocol if PROTOCOLS.contains(&protocol) => None,
        protocol => Some(FieldError::not_supported(&path, protocol, &PROTOCOLS)),
    }
}

/// Validates `appProtocol`, which has the format of a label key.
pub(crate) fn app_protocol(port: &Value, path: &Path) -> ErrorList {
    let Some(protocol) = port.at("appProtocol").as_str() else { return ErrorList::new() };
    meta::invalid(&path.child("appProtocol"), protocol, names::label_key(protocol)).collect()
}

/// Validates the range of a port number.
pub(crate) fn port_number(number: i64, path: &Path) -> impl Iterator<Item = FieldError> {
    names::port_number(number).into_iter().map(move |message| FieldError::invalid(path, number, message))
}

/// Validates that an address of endpoints, or an external IP, is routable.
pub(crate) fn endpoint_ip(value: &str, path: &Path) -> ErrorList {
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
pub(crate) fn balancer_hostname(host: &str, path: &Path) -> ErrorList {
    if host.is_empty() {
        return ErrorList::new();
    }
    let mut errors: ErrorList = meta::invalid(path, host, names::dns1123_subdomain(host)).collect();
    if names::parse_ip_sloppy(host).is_some() {
        errors.push(FieldError::invalid(path, host, "must be a DNS name, not an IP address"));
    }
    errors
}
