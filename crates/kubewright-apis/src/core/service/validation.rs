//! Validation of Services.
//!
//! Cluster IPs and node ports are already allocated; their ranges were checked by the allocator.

use std::collections::HashSet;

use serde_json::Value;

use super::ip_families::{self, is_headless};
use super::strategy::{externally_accessible, needs_health_check};
use crate::validation::network::{app_protocol, balancer_hostname, endpoint_ip, port_number, protocol};
use kubewright_apimachinery::field::{ErrorKind, ErrorList, FieldError, Path, printed};
use kubewright_apimachinery::meta::{self, invalid};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

const MAX_AFFINITY_TIMEOUT: i64 = 86_400;
const MAY_NOT_CHANGE: &str = "may not change once set";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const NOT_FOR_EXTERNAL_NAME: &str = "may not be set for ExternalName services";

pub(super) fn create(service: &Value) -> ErrorList {
    let mut errors = ErrorList::from_iter(topology(service));
    errors.extend(by_type(service));
    let ports = service.list_at("spec.ports");
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        errors.extend(service_port(port, &mut seen, ports.len() > 1, &spec("ports").index(index)));
    }
    errors.extend(meta::labels(service.at("spec.selector"), &spec("selector")));
    errors.extend(session_affinity(service));
    errors.extend(ip_families::check(service));
    for (index, ip) in service.list_at("spec.externalIPs").iter().enumerate() {
        let (ip, path) = (ip.as_str().unwrap_or_default(), spec("externalIPs").index(index));
        let messages = names::legacy_ip(ip, true);
        if messages.is_empty() {
            errors.extend(endpoint_ip(ip, &path));
        }
        errors.extend(invalid(&path, ip, messages));
    }
    errors.extend(required_one_of(
        service.at("spec.type"),
        &spec("type"),
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    ));
    errors.extend(node_ports(service));
    errors.extend(duplicate_ports(service));
    errors.extend(source_ranges(service));
    let balanced = is_load_balancer(service);
    if service.has("spec.allocateLoadBalancerNodePorts") != balanced {
        errors.push(if balanced {
            FieldError::required(&Path::new("allocateLoadBalancerNodePorts"), "")
        } else {
            FieldError::forbidden(&spec("allocateLoadBalancerNodePorts"), ONLY_LOAD_BALANCER)
        });
    }
    errors.extend(load_balancer_class(service));
    errors.extend(external_traffic(service));
    errors.extend(internal_traffic(service));
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    errors.extend(one_of(service.at("spec.trafficDistribution"), &spec("trafficDistribution"), &known));
    errors
}

pub(super) fn update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_name = |service: &Value| service.str_at("spec.type") == "ExternalName";
    if !is_name(new) && !is_name(old) {
        errors.extend(cluster_ips_update(new, old));
        errors.extend(ip_families_update(new, old));
    }
    if is_load_balancer(new) && is_load_balancer(old) {
        let (class, before) = (new.at("spec.loadBalancerClass"), old.at("spec.loadBalancerClass"));
        if class != before {
            errors.push(FieldError::invalid(&spec("loadBalancerClass"), class.clone(), MAY_NOT_CHANGE));
        }
    }
    // Upstream validates the class twice on update, so errors occur twice.
    errors.extend(load_balancer_class(new));
    let port = |service: &Value| service.int_at("spec.healthCheckNodePort").unwrap_or_default();
    if needs_health_check(new) && needs_health_check(old) && port(new) != port(old) {
        errors.push(FieldError::forbidden(&spec("healthCheckNodePort"), meta::IMMUTABLE));
    }
    errors.extend(create(new));
    errors
}

pub(super) fn status(service: &Value) -> ErrorList {
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let ingresses = service.list_at("status.loadBalancer.ingress");
    if !is_load_balancer(service) && !ingresses.is_empty() {
        return vec![FieldError::forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'")];
    }
    let mut errors = ErrorList::new();
    for (index, ingress) in ingresses.iter().enumerate() {
        let path = path.index(index);
        let ip = ingress.str_at("ip");
        if !ip.is_empty() {
            errors.extend(invalid(&path.child("ip"), ip, names::legacy_ip(ip, true)));
        }
        let mode_path = path.child("ipMode");
        match (ingress.at("ipMode").as_str(), ip.is_empty()) {
            (None, false) => {
                errors.push(FieldError::required(&mode_path, "must be specified when `ip` is set"));
            }
            (Some(_), true) => {
                errors.push(FieldError::forbidden(&mode_path, "may not be specified when `ip` is not set"));
            }
            (Some(mode), false) if mode != "VIP" && mode != "Proxy" => {
                errors.push(FieldError::not_supported(&mode_path, mode, &["Proxy", "VIP"]));
            }
            _ => {}
        }
        errors.extend(balancer_hostname(ingress.str_at("hostname"), &path.child("hostname")));
    }
    errors
}

fn topology(service: &Value) -> Option<FieldError> {
    let annotations = service.map_at("metadata.annotations");
    let (mode, hints) = (annotations.get(TOPOLOGY_MODE)?, annotations.get(TOPOLOGY_HINTS)?);
    let path = Path::new("metadata").child("annotations").key(TOPOLOGY_MODE);
    let detail = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
    (mode != hints).then(|| FieldError::invalid(&path, mode.clone(), detail))
}

/// Validates fields that depend on the type.
fn by_type(service: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = service.str_at("spec.type");
    let headless = is_headless(service);
    if service.list_at("spec.ports").is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&spec("ports"), ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&spec("clusterIPs").index(0), "None", detail));
        }
        "ExternalName" => {
            for (field, absent) in [
                ("clusterIPs", service.list_at("spec.clusterIPs").is_empty()),
                ("ipFamilies", service.list_at("spec.ipFamilies").is_empty()),
                ("ipFamilyPolicy", !service.has("spec.ipFamilyPolicy")),
            ] {
                if !absent {
                    errors.push(FieldError::forbidden(&spec(field), NOT_FOR_EXTERNAL_NAME));
                }
            }
            // A trailing dot marks a fully qualified name.
            let name = service.str_at("spec.externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errors.push(FieldError::required(&spec("externalName"), ""));
            } else {
                errors.extend(invalid(&spec("externalName"), name, names::dns1123_subdomain(name)));
            }
        }
        _ => {}
    }
    errors
}

fn service_port<'a>(
    port: &'a Value,
    seen: &mut HashSet<&'a str>,
    name_required: bool,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let (name, name_path) = (port.str_at("name"), path.child("name"));
    if !name.is_empty() {
        errors.extend(invalid(&name_path, name, names::dns1123_label(name)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
    } else if name_required {
        errors.push(FieldError::required(&name_path, ""));
    }
    errors.extend(port_number(port.int_at("port").unwrap_or_default(), &path.child("port")));
    errors.extend(protocol(port, path));
    let target_path = path.child("targetPort");
    match port.at("targetPort") {
        Value::String(name) => errors.extend(invalid(&target_path, name, names::port_name(name))),
        number => errors.extend(port_number(number.as_i64().unwrap_or_default(), &target_path)),
    }
    errors.extend(app_protocol(port, path));
    errors
}

fn session_affinity(service: &Value) -> ErrorList {
    let affinity = service.at("spec.sessionAffinity");
    let known = ["ClientIP", "None"];
    let mut errors = ErrorList::from_iter(required_one_of(affinity, &spec("sessionAffinity"), &known));
    let config = spec("sessionAffinityConfig");
    match affinity.as_str() {
        Some("ClientIP") => {
            let client = config.child("clientIP");
            let timeout = client.child("timeoutSeconds");
            let value = service.int_at("spec.sessionAffinityConfig.clientIP.timeoutSeconds");
            if let Some(seconds) = value {
                if !(1..=MAX_AFFINITY_TIMEOUT).contains(&seconds) {
                    let detail = format!("must be greater than 0 and less than {MAX_AFFINITY_TIMEOUT}");
                    errors.push(FieldError::invalid(&timeout, seconds, detail));
                }
            } else {
                let missing = if !service.has("spec.sessionAffinityConfig") {
                    &config
                } else if !service.has("spec.sessionAffinityConfig.clientIP") {
                    &client
                } else {
                    &timeout
                };
                errors.push(FieldError::required(missing, "when session affinity type is ClientIP"));
            }
        }
        Some("None") if service.has("spec.sessionAffinityConfig") => {
            errors.push(FieldError::forbidden(&config, "must not be set when session affinity is None"));
        }
        _ => {}
    }
    errors
}

fn node_ports(service: &Value) -> ErrorList {
    let ports = service.list_at("spec.ports");
    let mut errors = ErrorList::new();
    let named =
        || ports.iter().enumerate().filter(|(_, port)| port.int_at("nodePort").is_some_and(|port| port != 0));
    if service.str_at("spec.type") == "ClusterIP" {
        let detail = "may not be used when `type` is 'ClusterIP'";
        let at = |index| spec("ports").index(index).child("nodePort");
        errors.extend(named().map(|(index, _)| FieldError::forbidden(&at(index), detail)));
    }
    let mut seen = HashSet::new();
    for (index, port) in named() {
        if !seen.insert((port.at("nodePort"), port.at("protocol"))) {
            let path = spec("ports").index(index).child("nodePort");
            errors.push(FieldError::duplicate(&path, port.at("nodePort").clone()));
        }
    }
    errors
}

fn duplicate_ports(service: &Value) -> ErrorList {
    let ports = service.list_at("spec.ports");
    let mut seen = HashSet::new();
    let again =
        ports.iter().enumerate().filter(|(_, port)| !seen.insert((port.at("port"), port.at("protocol"))));
    let error = |(index, port): (usize, &Value)| FieldError {
        kind: ErrorKind::Duplicate,
        field: spec("ports").index(index).to_string(),
        // Upstream prints a port with only the compared fields.
        value: Some(format!(
            r#"{{"Name":"","Protocol":{},"AppProtocol":null,"Port":{},"TargetPort":0,"NodePort":0}}"#,
            printed(port.at("protocol")),
            port.at("port")
        )),
        detail: String::new(),
    };
    again.map(error).collect()
}

/// Validates the allowed source ranges, in the field or in the deprecated annotation.
fn source_ranges(service: &Value) -> ErrorList {
    let ranges = service.list_at("spec.loadBalancerSourceRanges");
    let annotation = service.map_at("metadata.annotations").get(SOURCE_RANGES).and_then(Value::as_str);
    let mut errors = ErrorList::new();
    let mut check = |path: &Path, range: &str| {
        let range = range.trim();
        errors.extend(invalid(path, range, names::legacy_cidr(range, true)));
    };
    let path = if !ranges.is_empty() {
        let path = spec("LoadBalancerSourceRanges");
        for (index, range) in ranges.iter().enumerate() {
            check(&path.index(index), range.as_str().unwrap_or_default());
        }
        path
    } else if let Some(list) = annotation {
        let path = Path::new("metadata").child("annotations").key(SOURCE_RANGES);
        if !list.trim().is_empty() {
            list.split(',').for_each(|range| check(&path, range));
        }
        path
    } else {
        return errors;
    };
    if !is_load_balancer(service) {
        errors.insert(0, FieldError::forbidden(&path, ONLY_LOAD_BALANCER));
    }
    errors
}

fn load_balancer_class(service: &Value) -> ErrorList {
    let Some(class) = service.at("spec.loadBalancerClass").as_str() else { return ErrorList::new() };
    let path = spec("loadBalancerClass");
    if is_load_balancer(service) {
        invalid(&path, class, names::label_key(class)).collect()
    } else {
        vec![FieldError::forbidden(&path, ONLY_LOAD_BALANCER)]
    }
}

fn external_traffic(service: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (policy, path) = (service.at("spec.externalTrafficPolicy"), spec("externalTrafficPolicy"));
    if externally_accessible(service) {
        errors.extend(required_one_of(policy, &path, &["Cluster", "Local"]));
    } else if policy.as_str().is_some_and(|policy| !policy.is_empty()) {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&path, policy.clone(), detail));
    }
    let (port, path) =
        (service.int_at("spec.healthCheckNodePort").unwrap_or_default(), spec("healthCheckNodePort"));
    match (needs_health_check(service), port) {
        (false, 0) => {}
        (false, port) => {
            let detail =
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(&path, port, detail));
        }
        (true, 0) => errors.push(FieldError::required(&path, "")),
        (true, port) => errors.extend(port_number(port, &path)),
    }
    errors
}

fn internal_traffic(service: &Value) -> Option<FieldError> {
    let (policy, path) = (service.at("spec.internalTrafficPolicy"), spec("internalTrafficPolicy"));
    if policy.is_null() && matches!(service.str_at("spec.type"), "NodePort" | "LoadBalancer" | "ClusterIP") {
        return Some(FieldError::required(&path, ""));
    }
    one_of(policy, &path, &["Cluster", "Local"])
}

fn cluster_ips_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if is_headless(new) && is_headless(old) {
        return errors;
    }
    let (value, path) = (new.at("spec.clusterIPs"), spec("clusterIPs"));
    let (ips, before) = (new.list_at("spec.clusterIPs"), old.list_at("spec.clusterIPs"));
    let changed = |index| FieldError::invalid(&path.index(index), value.clone(), MAY_NOT_CHANGE);
    if ips.len() == before.len() {
        errors.extend((0..ips.len()).filter(|&index| ips[index] != before[index]).map(changed));
        return errors;
    }
    if ips.is_empty() {
        errors.push(FieldError::invalid(&path.index(0), value.clone(), "primary clusterIP can not be unset"));
    }
    if let (Some(first), Some(first_before)) = (ips.first(), before.first())
        && first != first_before
    {
        errors.push(changed(0));
    }
    if ips.len() == 1 && before.len() > 1 {
        errors.extend(released(new, "clusterIP"));
    }
    errors
}

fn ip_families_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if is_headless(new) || is_headless(old) {
        return errors;
    }
    let path = spec("ipFamilies").index(0);
    let (families, before) = (new.list_at("spec.ipFamilies"), old.list_at("spec.ipFamilies"));
    if families.len() == before.len() {
        let changed = families.iter().zip(before).filter(|(family, before)| family != before);
        let error = |_| FieldError::invalid(&path, new.at("spec.ipFamilies").clone(), MAY_NOT_CHANGE);
        errors.extend(changed.map(error));
        return errors;
    }
    if families.len() < before.len() && new.list_at("spec.clusterIPs").is_empty() {
        let detail = "primary ipFamily can not be unset";
        errors.push(FieldError::invalid(&path, new.at("spec.ipFamilies").clone(), detail));
    }
    if let (Some(first), Some(first_before)) = (families.first(), before.first())
        && first != first_before
    {
        // Upstream prints the addresses here.
        errors.push(FieldError::invalid(&path, new.at("spec.clusterIPs").clone(), MAY_NOT_CHANGE));
    }
    if families.len() == 1 && before.len() > 1 {
        errors.extend(released(new, "ipFamily"));
    }
    errors
}

/// Returns an error if the policy does not allow to release the secondary address or family.
fn released(new: &Value, noun: &str) -> Option<FieldError> {
    let policy = new.at("spec.ipFamilyPolicy");
    let detail = format!("must be set to 'SingleStack' when releasing the secondary {noun}");
    (policy != "SingleStack").then(|| FieldError::invalid(&spec("ipFamilyPolicy"), policy.clone(), detail))
}

fn required_one_of(value: &Value, path: &Path, known: &[&str]) -> Option<FieldError> {
    if value.as_str().unwrap_or_default().is_empty() {
        return Some(FieldError::required(path, ""));
    }
    one_of(value, path, known)
}

/// Returns an error if a value is set and not supported.
fn one_of(value: &Value, path: &Path, known: &[&str]) -> Option<FieldError> {
    let value = value.as_str()?;
    (!known.contains(&value)).then(|| FieldError::not_supported(path, value, known))
}

fn is_load_balancer(service: &Value) -> bool {
    service.str_at("spec.type") == "LoadBalancer"
}

fn spec(field: &str) -> Path {
    Path::new("spec").child(field)
}
