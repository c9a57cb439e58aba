//! Defaults and validation of `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` of Services.
//!
//! The cluster is single-stack with the family [`FAMILY`]. [`default_ip_families`] runs before cluster IPs
//! are allocated. Validation calls [`check`].

use serde_json::{Value, json};

use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// The IP family of cluster IPs.
const FAMILY: &str = "IPv4";

const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/// Sets policy and families of a new service, or of one that replaces `old`.
///
/// Returns validation errors of the given values. In this case the service is rejected before allocation.
pub fn default_ip_families(service: &mut Value, old: Option<&Value>) -> ErrorList {
    if service.str_at("spec.type") == "ExternalName" || old.is_some_and(|old| keeps_dual_stack(service, old))
    {
        return ErrorList::new();
    }
    default_policy(service, old);
    let errors = check(service);
    if !errors.is_empty() {
        return errors;
    }
    let mut errors = old.map(|old| release_secondary(service, old)).unwrap_or_default();
    errors.extend(too_many_for_single_stack(service));
    errors.extend(infer_families(service));
    if !errors.is_empty() {
        return errors;
    }
    if is_manual(service) {
        // Manual endpoints may use families that the cluster does not have.
        default_manual_families(service);
        return errors;
    }
    if service.str_at("spec.ipFamilyPolicy") == "RequireDualStack" {
        errors.push(policy_error(service, "this cluster is not configured for dual-stack services"));
    }
    let path = Path::new("spec").child("ipFamilies");
    for (index, family) in service.list_at("spec.ipFamilies").iter().enumerate() {
        if family != FAMILY {
            errors.push(FieldError::invalid(
                &path.index(index),
                family.clone(),
                "not configured on this cluster",
            ));
        }
    }
    if errors.is_empty() && service.list_at("spec.ipFamilies").is_empty() {
        service.set_at("spec.ipFamilies", json!([FAMILY]));
    }
    errors
}

/// Validates cluster IPs, families and policy.
pub(crate) fn check(service: &Value) -> ErrorList {
    if service.str_at("spec.type") == "ExternalName" {
        return ErrorList::new();
    }
    let spec = Path::new("spec");
    let (ips_path, families_path) = (spec.child("clusterIPs"), spec.child("ipFamilies"));
    let ip = service.str_at("spec.clusterIP");
    let ips = service.list_at("spec.clusterIPs");
    let families = service.list_at("spec.ipFamilies");
    let about_ips =
        |detail: &str| FieldError::invalid(&ips_path, service.at("spec.clusterIPs").clone(), detail);
    let mut errors = ErrorList::new();

    match ips.first() {
        None if !ip.is_empty() => errors.push(FieldError::required(&ips_path, "")),
        Some(_) if ip.is_empty() => errors.push(about_ips("must be empty when `clusterIP` is not specified")),
        Some(first) if first != ip => errors.push(about_ips("first value must match `clusterIP`")),
        _ => {}
    }
    for (index, family) in families.iter().enumerate() {
        if family != "IPv4" && family != "IPv6" {
            errors.push(FieldError::not_supported(
                &families_path.index(index),
                family.clone(),
                &["IPv4", "IPv6"],
            ));
        }
        if families[..index].contains(family) {
            errors.push(FieldError::duplicate(&families_path.index(index), family.clone()));
        }
    }
    let policy = service.at("spec.ipFamilyPolicy");
    if policy.as_str().is_some_and(|policy| !POLICIES.contains(&policy)) {
        errors.push(FieldError::not_supported(&spec.child("ipFamilyPolicy"), policy.clone(), &POLICIES));
    }

    let mut unreadable = false;
    for (index, ip) in ips.iter().enumerate() {
        let ip = ip.as_str().unwrap_or_default();
        if index == 0 && ip == "None" {
            if ips.len() > 1 {
                unreadable = true;
                errors.push(about_ips("'None' must be the first and only value"));
            }
            continue;
        }
        for message in names::legacy_ip(ip, true) {
            unreadable = true;
            errors.push(FieldError::invalid(&ips_path.index(index), ip, message));
        }
    }
    if ips.len() > 2 {
        errors.push(about_ips("may only hold up to 2 values"));
    }
    if unreadable {
        return errors;
    }
    let found: Vec<&str> = ips.iter().map(|ip| family_of(ip.as_str().unwrap_or_default())).collect();
    if ips.len() > 1 && !(found.contains(&"IPv4") && found.contains(&"IPv6")) {
        errors.push(about_ips("may specify no more than one IP for each IP family"));
    }
    if !is_headless(service) {
        for (index, (family, found)) in families.iter().zip(&found).enumerate() {
            let family = family.as_str().unwrap_or_default();
            if matches!(family, "IPv4" | "IPv6") && family != *found {
                let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
                errors.push(FieldError::invalid(&ips_path.index(index), ips[index].clone(), detail));
            }
        }
    }
    errors
}

/// Whether `clusterIP` is `None`.
pub(crate) fn is_headless(service: &Value) -> bool {
    matches!(service.list_at("spec.clusterIPs"), [ip] if ip == "None")
}

/// Whether a dual-stack service stays unchanged. A service with `PreferDualStack` is not converted unless
/// requested.
fn keeps_dual_stack(service: &Value, old: &Value) -> bool {
    let old_policy = old.at("spec.ipFamilyPolicy");
    service.str_at("spec.ipFamilyPolicy") == "PreferDualStack"
        && (old_policy.is_null() || old_policy == "PreferDualStack")
        && matches!(service.str_at("spec.type"), "ClusterIP" | "NodePort" | "LoadBalancer")
        && same(service, old, "spec.type")
        && same(service, old, "spec.clusterIPs")
        && same(service, old, "spec.ipFamilies")
}

fn default_policy(service: &mut Value, old: Option<&Value>) {
    let policy = match old.map(|old| old.str_at("spec.ipFamilyPolicy")) {
        Some(policy) if !policy.is_empty() => policy,
        _ if is_manual(service) => "RequireDualStack",
        _ => "SingleStack",
    };
    service.default_at("spec.ipFamilyPolicy", policy);
}

/// Releases the secondary address and family when the policy changes to single-stack.
fn release_secondary(service: &mut Value, old: &Value) -> ErrorList {
    let lists = [("spec.clusterIPs", "cluster IP"), ("spec.ipFamilies", "IP family")];
    let mut errors = ErrorList::new();
    for (list, noun) in lists {
        let given = service.list_at(list).len();
        if service.str_at("spec.ipFamilyPolicy") == "SingleStack" {
            if given > 1 && same(service, old, list) {
                service.list_mut(list).into_iter().for_each(|list| list.truncate(1));
            }
        } else if given != 0 && given < old.list_at(list).len() {
            errors.push(policy_error(
                service,
                &format!("must be 'SingleStack' to release the secondary {noun}"),
            ));
        }
    }
    errors
}

fn too_many_for_single_stack(service: &Value) -> ErrorList {
    let lists = [("spec.clusterIPs", "cluster IPs"), ("spec.ipFamilies", "IP families")];
    let single = service.str_at("spec.ipFamilyPolicy") == "SingleStack";
    let two = lists.into_iter().filter(|(list, _)| single && service.list_at(list).len() == 2);
    two.map(|(_, noun)| {
        let detail =
            format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {noun} are specified");
        policy_error(service, &detail)
    })
    .collect()
}

/// Sets the families of requested addresses.
fn infer_families(service: &mut Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut families = service.list_at("spec.ipFamilies").to_vec();
    let given = families.len();
    for (index, ip) in service.list_at("spec.clusterIPs").iter().enumerate() {
        let ip = ip.as_str().unwrap_or_default();
        if ip == "None" {
            break;
        }
        if index < families.len() {
            continue;
        }
        let family = family_of(ip);
        if family == FAMILY {
            families.push(family.into());
        } else {
            let path = Path::new("spec").child("clusterIPs").index(index);
            let detail = format!("{family} is not configured on this cluster");
            errors.push(FieldError::invalid(&path, service.at("spec.clusterIPs").clone(), detail));
        }
    }
    if families.len() > given {
        service.set_at("spec.ipFamilies", families);
    }
    errors
}

/// Whether a headless service has no selector, so that its endpoints are managed manually.
fn is_manual(service: &Value) -> bool {
    service.str_at("spec.clusterIP") == "None" && service.map_at("spec.selector").is_empty()
}

fn default_manual_families(service: &mut Value) {
    let mut families = service.list_at("spec.ipFamilies").to_vec();
    if families.is_empty() {
        families.push(FAMILY.into());
    }
    if families.len() < 2 && service.str_at("spec.ipFamilyPolicy") != "SingleStack" {
        families.push(if families[0] == "IPv4" { "IPv6" } else { "IPv4" }.into());
    }
    service.set_at("spec.ipFamilies", families);
}

fn policy_error(service: &Value, detail: &str) -> FieldError {
    let path = Path::new("spec").child("ipFamilyPolicy");
    FieldError::invalid(&path, service.at("spec.ipFamilyPolicy").clone(), detail)
}

fn family_of(ip: &str) -> &'static str {
    match names::parse_ip_sloppy(ip) {
        Some(ip) if ip.to_canonical().is_ipv4() => "IPv4",
        Some(_) => "IPv6",
        None => "unknown",
    }
}

fn same(service: &Value, old: &Value, path: &str) -> bool {
    service.at(path) == old.at(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(spec: Value) -> Result<Value, Vec<String>> {
        update(spec, None)
    }

    fn update(spec: Value, old: Option<&Value>) -> Result<Value, Vec<String>> {
        let mut service = json!({});
        service.set_at("spec", spec);
        let errors = default_ip_families(&mut service, old);
        if errors.is_empty() {
            return Ok(json!([service.at("spec.ipFamilyPolicy"), service.at("spec.ipFamilies")]));
        }
        Err(errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_service_defaults_to_single_stack() {
        assert_eq!(create(json!({"type": "ClusterIP"})), Ok(json!(["SingleStack", ["IPv4"]])));
        assert_eq!(
            create(json!({"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"})),
            Ok(json!(["PreferDualStack", ["IPv4"]]))
        );
        assert_eq!(create(json!({"type": "ExternalName"})), Ok(json!([null, null])));
    }

    #[test]
    fn a_headless_service_without_selector_may_have_any_family() {
        let headless = json!({"type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"]});
        assert_eq!(create(headless.clone()), Ok(json!(["RequireDualStack", ["IPv4", "IPv6"]])));
        let mut selecting = headless.clone();
        selecting.set_at("selector", json!({"a": "b"}));
        assert_eq!(create(selecting), Ok(json!(["SingleStack", ["IPv4"]])));
        let mut ipv6 = headless;
        ipv6.set_at("ipFamilies", json!(["IPv6"]));
        ipv6.set_at("ipFamilyPolicy", "SingleStack");
        assert_eq!(create(ipv6), Ok(json!(["SingleStack", ["IPv6"]])));
    }

    #[test]
    fn families_that_the_cluster_does_not_have_are_rejected() {
        let refused = |spec: Value, message: &str| assert_eq!(create(spec), Err(vec![message.to_owned()]));
        refused(
            json!({"ipFamilies": ["IPv6"]}),
            r#"spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster"#,
        );
        refused(
            json!({"ipFamilyPolicy": "RequireDualStack"}),
            r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services"#,
        );
        refused(
            json!({"clusterIP": "fd00::1", "clusterIPs": ["fd00::1"]}),
            r#"spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster"#,
        );
        refused(
            json!({"clusterIP": "x", "clusterIPs": ["x"]}),
            r#"spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
        );
        refused(
            json!({"clusterIPs": ["10.0.0.7"]}),
            r#"spec.clusterIPs: Invalid value: ["10.0.0.7"]: must be empty when `clusterIP` is not specified"#,
        );
        refused(
            json!({"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7", "10.0.0.8"]}),
            r#"spec.clusterIPs: Invalid value: ["10.0.0.7","10.0.0.8"]: may specify no more than one IP for each IP family"#,
        );
        refused(
            json!({"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv6"]}),
            r#"spec.clusterIPs[0]: Invalid value: "10.0.0.7": expected an IPv6 value as indicated by `ipFamilies[0]`"#,
        );
        refused(
            json!({"ipFamilies": ["IPv4", "IPv6"]}),
            r#"spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"#,
        );
    }

    #[test]
    fn an_update_keeps_the_old_policy_and_families() {
        let old = json!({"spec": {"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4"]}});
        let new = json!({"type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"]});
        assert_eq!(update(new, Some(&old)), Ok(json!(["PreferDualStack", ["IPv4"]])));
    }

    #[test]
    fn the_secondary_family_is_released_only_with_single_stack() {
        let old = json!({"spec": {
            "type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"],
            "ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"],
        }});
        let mut new = old.at("spec").clone();
        new.set_at("ipFamilyPolicy", "SingleStack");
        assert_eq!(update(new.clone(), Some(&old)), Ok(json!(["SingleStack", ["IPv4"]])));
        new.set_at("ipFamilyPolicy", "RequireDualStack");
        new.set_at("ipFamilies", json!(["IPv4"]));
        assert_eq!(
            update(new, Some(&old)),
            Err(vec![
                r#"spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be 'SingleStack' to release the secondary IP family"#.to_owned()
            ])
        );
    }
}
