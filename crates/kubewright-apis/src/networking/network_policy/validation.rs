//! Validation of NetworkPolicies.

use std::net::IpAddr;

use serde_json::Value;

use crate::validation::label_selector;
use crate::validation::network::port_number;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::invalid;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn policy(policy: &Value) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = label_selector::validate(policy.at("spec.podSelector"), &path.child("podSelector"));
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in policy.at("spec").list_at(direction).iter().enumerate() {
            let path = path.child(direction).index(index);
            for (index, item) in rule.list_at("ports").iter().enumerate() {
                errors.extend(port(item, &path.child("ports").index(index)));
            }
            for (index, item) in rule.list_at(peers).iter().enumerate() {
                errors.extend(peer(item, &path.child(peers).index(index)));
            }
        }
    }
    let (types, types_path) = (policy.list_at("spec.policyTypes"), path.child("policyTypes"));
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(&types_path, types.to_vec(), detail));
        return errors;
    }
    for (index, kind) in types.iter().enumerate() {
        if kind != "Ingress" && kind != "Egress" {
            let path = types_path.index(index);
            errors.push(FieldError::not_supported(&path, kind.clone(), &["Ingress", "Egress"]));
        }
    }
    errors
}

fn port(port: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(protocol) = port.at("protocol").as_str()
        && !matches!(protocol, "TCP" | "UDP" | "SCTP")
    {
        errors.push(FieldError::not_supported(&path.child("protocol"), protocol, &["TCP", "UDP", "SCTP"]));
    }
    let (end, end_path) = (port.int_at("endPort"), path.child("endPort"));
    let without = |end: i64, why: &str| {
        FieldError::invalid(&end_path, end, format!("may not be specified when `port` is {why}"))
    };
    match port.at("port") {
        Value::Null => errors.extend(end.map(|end| without(end, "not specified"))),
        Value::String(name) => {
            errors.extend(end.map(|end| without(end, "non-numeric")));
            errors.extend(invalid(&path.child("port"), name, names::port_name(name)));
        }
        number => {
            let start = number.as_i64().unwrap_or_default();
            errors.extend(port_number(start, &path.child("port")));
            if let Some(end) = end {
                if end < start {
                    // Upstream prints the start here.
                    let detail = "must be greater than or equal to `port`";
                    errors.push(FieldError::invalid(&end_path, start, detail));
                }
                errors.extend(port_number(end, &end_path));
            }
        }
    }
    errors
}

fn peer(peer: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut selectors = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if peer.has(field) {
            selectors += 1;
            errors.extend(label_selector::validate(peer.at(field), &path.child(field)));
        }
    }
    let block = peer.at("ipBlock");
    if !block.is_null() {
        errors.extend(ip_block(block, &path.child("ipBlock")));
        if selectors > 0 {
            errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
        }
    } else if selectors == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    }
    errors
}

fn ip_block(block: &Value, path: &Path) -> ErrorList {
    let (cidr, cidr_path) = (block.str_at("cidr"), path.child("cidr"));
    if cidr.is_empty() {
        return vec![FieldError::required(&cidr_path, "")];
    }
    let mut errors: ErrorList = invalid(&cidr_path, cidr, names::legacy_cidr(cidr, true)).collect();
    let Some(network) = names::parse_cidr_sloppy(cidr) else { return errors };
    for (index, except) in block.list_at("except").iter().enumerate() {
        let (except, path) = (except.as_str().unwrap_or_default(), path.child("except").index(index));
        errors.extend(invalid(&path, except, names::legacy_cidr(except, true)));
        if names::parse_cidr_sloppy(except).is_some_and(|except| !is_strict_subset(except, network)) {
            errors.push(FieldError::invalid(&path, except, "must be a strict subset of `cidr`"));
        }
    }
    errors
}

fn is_strict_subset((part, part_length): (IpAddr, u8), (whole, whole_length): (IpAddr, u8)) -> bool {
    let same_prefix = |difference: u128, bits: u8| {
        difference.checked_shr(u32::from(bits - whole_length)).is_none_or(|rest| rest == 0)
    };
    part_length > whole_length
        && match (part, whole) {
            (IpAddr::V4(part), IpAddr::V4(whole)) => {
                same_prefix(u128::from(part.to_bits() ^ whole.to_bits()), 32)
            }
            (IpAddr::V6(part), IpAddr::V6(whole)) => same_prefix(part.to_bits() ^ whole.to_bits(), 128),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_must_be_within_their_block() {
        let strict = |part, whole| {
            let read = |cidr| names::parse_cidr_sloppy(cidr).expect("valid CIDR");
            is_strict_subset(read(part), read(whole))
        };
        assert!(strict("10.1.0.0/16", "10.0.0.0/8"));
        assert!(strict("10.1.0.0/16", "0.0.0.0/0"));
        assert!(strict("2001:db8::/64", "::/0"));
        assert!(!strict("10.0.0.0/8", "10.0.0.0/8"));
        assert!(!strict("11.0.0.0/16", "10.0.0.0/8"));
        assert!(!strict("2001:db8::/64", "0.0.0.0/0"));
    }
}
