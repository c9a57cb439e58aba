//! Validation of IPAddresses and ServiceCIDRs.

use serde_json::Value;

use kubewright_apimachinery::field::{ErrorList, FieldError, Path, printed};
use kubewright_apimachinery::meta::{IMMUTABLE, invalid};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn ip_address(address: &Value) -> ErrorList {
    let path = Path::new("spec").child("parentRef");
    let parent = address.at("spec.parentRef");
    if parent.is_null() {
        return vec![FieldError::required(&path, "")];
    }
    let mut errors = ErrorList::new();
    let group = parent.str_at("group");
    if !group.is_empty() {
        errors.extend(invalid(&path.child("group"), group, names::dns1123_subdomain(group)));
    }
    for (field, required) in [("resource", true), ("name", true), ("namespace", false)] {
        let (value, path) = (parent.str_at(field), path.child(field));
        if !value.is_empty() {
            errors.extend(invalid(&path, value, names::path_segment_name(value)));
        } else if required {
            errors.push(FieldError::required(&path, ""));
        }
    }
    errors
}

pub(super) fn ip_address_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ip_address(new);
    let parent = new.at("spec.parentRef");
    if parent != old.at("spec.parentRef") {
        let path = Path::new("spec").child("parentRef");
        errors.push(FieldError::invalid_printed(&path, printed_parent(parent), IMMUTABLE));
    }
    errors
}

pub(super) fn service_cidr(object: &Value) -> ErrorList {
    let (cidrs, path) = (object.list_at("spec.cidrs"), Path::new("spec").child("cidrs"));
    if cidrs.is_empty() {
        return vec![FieldError::required(&path, "at least one CIDR required")];
    }
    if cidrs.len() > 2 {
        let spec = format!(r#"{{"CIDRs":{}}}"#, object.at("spec.cidrs"));
        return vec![FieldError::invalid_printed(&path, spec, "may only hold up to 2 values")];
    }
    let mut errors = ErrorList::new();
    for (index, cidr) in cidrs.iter().enumerate() {
        let cidr = cidr.as_str().unwrap_or_default();
        errors.extend(invalid(&path.index(index), cidr, names::cidr(cidr)));
    }
    let is_ipv4 = |cidr: &Value| {
        let (ip, _) = names::parse_cidr_sloppy(cidr.as_str()?)?;
        Some(ip.to_canonical().is_ipv4())
    };
    if let [first, second] = cidrs
        && let (Some(first), Some(second)) = (is_ipv4(first), is_ipv4(second))
        && first == second
    {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(&path, cidrs.to_vec(), detail));
    }
    errors
}

pub(super) fn service_cidr_update(new: &Value, old: &Value) -> ErrorList {
    let path = Path::new("spec").child("cidrs");
    let (cidrs, before) = (new.list_at("spec.cidrs"), old.list_at("spec.cidrs"));
    // The only allowed change is to add a second family.
    let joins = before.len() == 1 && cidrs.len() == 2;
    if cidrs.len() != before.len() && !joins {
        return vec![FieldError::invalid(&path, new.at("spec.cidrs").clone(), IMMUTABLE)];
    }
    let changed = cidrs.iter().zip(before).enumerate().filter(|(_, (cidr, before))| cidr != before);
    let mut errors: ErrorList = changed
        .map(|(index, (cidr, _))| FieldError::invalid(&path.index(index), cidr.clone(), IMMUTABLE))
        .collect();
    if joins {
        errors.extend(service_cidr(new));
    }
    errors
}

/// A parent reference as printed from upstream's internal type.
fn printed_parent(parent: &Value) -> String {
    if parent.is_null() {
        return "null".to_owned();
    }
    let member = |name: &str, field: &str| format!("\"{name}\":{}", printed(&parent.str_at(field).into()));
    let members =
        [("Group", "group"), ("Resource", "resource"), ("Namespace", "namespace"), ("Name", "name")];
    format!("{{{}}}", members.map(|(name, field)| member(name, field)).join(","))
}
