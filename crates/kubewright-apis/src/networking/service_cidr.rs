//! ServiceCIDR.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::reset_fields::ResetFields;
use crate::strategy::keep;
use crate::table::row::{Row, joined_list};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{Check, IMMUTABLE, invalid};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "ServiceCIDR",
    prepare_subresource: |subresource, new, old| {
        if subresource == "status" {
            keep(new, old, "spec");
            for field in
                ["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp", "generation"]
            {
                keep(new, old, &format!("metadata.{field}"));
            }
        }
    },
    update_checks: &[Check::Update],
    validate,
    validate_update,
    // Upstream misspells the group here, so it ignores nothing.
    reset_fields: |_| Some(ResetFields::These(&[])),
    cells,
    ..super::GROUP
};

fn validate(object: &Value) -> ErrorList {
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

fn validate_update(new: &Value, old: &Value) -> ErrorList {
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
        errors.extend(validate(new));
    }
    errors
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), joined_list(row.list("spec.cidrs"), ",").into(), row.age()]
}

#[cfg(test)]
mod tests;
