//! Verbs, API groups and resources of Kubernetes.
//!
//! Checks the names in attributes against these lists. For other groups only the syntax of resource names is
//! checked.

use crate::names::is_dns_subdomain;
use crate::nearest::{did_you_mean, nearest};

/// Verbs of resource rules.
pub(crate) const VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "use",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
    "attest",
    "proxy",
    "request-serviceaccounts-token-audience",
    "*",
];

/// Verbs with a suffix after a colon.
pub(crate) const VERB_PREFIXES: &[&str] =
    &["impersonate", "impersonate-on", "associated-node", "arbitrary-node"];

/// Verbs of non-resource URLs: HTTP methods.
pub(crate) const URL_VERBS: &[&str] = &["get", "head", "post", "put", "patch", "delete", "options", "*"];

const SUBRESOURCES: &[&str] = &[
    "approval",
    "attach",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "exec",
    "finalize",
    "finalizers",
    "log",
    "portforward",
    "proxy",
    "resize",
    "scale",
    "status",
    "token",
];

/// Built-in groups without a dot. Groups of CRDs always have one.
const DOTLESS: &[&str] = &["apps", "autoscaling", "batch", "extensions", "policy", "core"];

/// Group, plural, singular and the short name, if any.
const RESOURCES: &[(&str, &str, &str, &str)] = &[
    ("", "bindings", "binding", ""),
    ("", "componentstatuses", "componentstatus", "cs"),
    ("", "configmaps", "configmap", "cm"),
    ("", "endpoints", "endpoints", "ep"),
    ("", "events", "event", "ev"),
    ("", "limitranges", "limitrange", "limits"),
    ("", "namespaces", "namespace", "ns"),
    ("", "nodes", "node", "no"),
    ("", "persistentvolumeclaims", "persistentvolumeclaim", "pvc"),
    ("", "persistentvolumes", "persistentvolume", "pv"),
    ("", "pods", "pod", "po"),
    ("", "podtemplates", "podtemplate", ""),
    ("", "replicationcontrollers", "replicationcontroller", "rc"),
    ("", "resourcequotas", "resourcequota", "quota"),
    ("", "secrets", "secret", ""),
    ("", "serviceaccounts", "serviceaccount", "sa"),
    ("", "services", "service", "svc"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies", "mutatingadmissionpolicy", ""),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", "mutatingadmissionpolicybinding", ""),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "mutatingwebhookconfiguration", ""),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "validatingadmissionpolicy", ""),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicybinding",
        "",
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "validatingwebhookconfiguration", ""),
    ("apiextensions.k8s.io", "customresourcedefinitions", "customresourcedefinition", "crd"),
    ("apiregistration.k8s.io", "apiservices", "apiservice", ""),
    ("apps", "controllerrevisions", "controllerrevision", ""),
    ("apps", "daemonsets", "daemonset", "ds"),
    ("apps", "deployments", "deployment", "deploy"),
    ("apps", "replicasets", "replicaset", "rs"),
    ("apps", "statefulsets", "statefulset", "sts"),
    ("authentication.k8s.io", "selfsubjectreviews", "selfsubjectreview", ""),
    ("authentication.k8s.io", "tokenreviews", "tokenreview", ""),
    ("authorization.k8s.io", "localsubjectaccessreviews", "localsubjectaccessreview", ""),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectaccessreview", ""),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "selfsubjectrulesreview", ""),
    ("authorization.k8s.io", "subjectaccessreviews", "subjectaccessreview", ""),
    ("autoscaling", "horizontalpodautoscalers", "horizontalpodautoscaler", "hpa"),
    ("batch", "cronjobs", "cronjob", "cj"),
    ("batch", "jobs", "job", ""),
    ("certificates.k8s.io", "certificatesigningrequests", "certificatesigningrequest", "csr"),
    ("coordination.k8s.io", "leases", "lease", ""),
    ("discovery.k8s.io", "endpointslices", "endpointslice", ""),
    ("events.k8s.io", "events", "event", "ev"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", "flowschema", ""),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "prioritylevelconfiguration", ""),
    ("networking.k8s.io", "ingressclasses", "ingressclass", ""),
    ("networking.k8s.io", "ingresses", "ingress", "ing"),
    ("networking.k8s.io", "ipaddresses", "ipaddress", "ip"),
    ("networking.k8s.io", "networkpolicies", "networkpolicy", "netpol"),
    ("networking.k8s.io", "servicecidrs", "servicecidr", ""),
    ("node.k8s.io", "runtimeclasses", "runtimeclass", ""),
    ("policy", "poddisruptionbudgets", "poddisruptionbudget", "pdb"),
    ("rbac.authorization.k8s.io", "clusterrolebindings", "clusterrolebinding", ""),
    ("rbac.authorization.k8s.io", "clusterroles", "clusterrole", ""),
    ("rbac.authorization.k8s.io", "rolebindings", "rolebinding", ""),
    ("rbac.authorization.k8s.io", "roles", "role", ""),
    ("resource.k8s.io", "deviceclasses", "deviceclass", ""),
    ("resource.k8s.io", "resourceclaims", "resourceclaim", ""),
    ("resource.k8s.io", "resourceclaimtemplates", "resourceclaimtemplate", ""),
    ("resource.k8s.io", "resourceslices", "resourceslice", ""),
    ("scheduling.k8s.io", "priorityclasses", "priorityclass", "pc"),
    ("storage.k8s.io", "csidrivers", "csidriver", ""),
    ("storage.k8s.io", "csinodes", "csinode", ""),
    ("storage.k8s.io", "csistoragecapacities", "csistoragecapacity", ""),
    ("storage.k8s.io", "storageclasses", "storageclass", "sc"),
    ("storage.k8s.io", "volumeattachments", "volumeattachment", ""),
    ("storage.k8s.io", "volumeattributesclasses", "volumeattributesclass", "vac"),
];

/// Returns why an API group is invalid. The core group is `core` or empty.
pub(crate) fn wrong_group(group: &str) -> Option<String> {
    if matches!(group, "" | "*") || DOTLESS.contains(&group) {
        return None;
    }
    if let Some((group, _)) = group.split_once('/') {
        return Some(format!("a group must not contain a version: write `{group}`"));
    }
    let known = || RESOURCES.iter().map(|(group, ..)| *group).filter(|group| !group.is_empty());
    if !is_dns_subdomain(group) {
        let near = did_you_mean(group, known().chain(DOTLESS.iter().copied()));
        return Some(format!("`{group}` is not a valid API group: groups are lower-case domain names{near}"));
    }
    if !group.contains('.') {
        let first = known().find(|known| known.split('.').next() == Some(group));
        let near = match first {
            Some(known) => format!("; did you mean `{known}`?"),
            None => match did_you_mean(group, known().chain(DOTLESS.iter().copied())) {
                near if near.is_empty() => {
                    ": groups of custom resources contain a dot, such as `example.com`".to_owned()
                }
                near => near,
            },
        };
        return Some(format!("unknown group `{group}`{near}"));
    }
    // Third-party groups may resemble built-in ones, so only a distance of one counts as a typo.
    let near = known().find(|known| strsim::osa_distance(known, group) == 1)?;
    Some(format!("unknown group `{group}`; did you mean `{near}`?"))
}

/// Returns why a resource is invalid in these groups.
pub(crate) fn wrong_resource(resource: &str, groups: &[String]) -> Option<String> {
    let (base, below) = resource.split_once('/').unwrap_or((resource, ""));
    if resource.bytes().any(|letter| letter.is_ascii_uppercase()) {
        let lower = resource.to_ascii_lowercase();
        let (base, below) = lower
            .split_once('/')
            .map_or((&*lower, String::new()), |(base, below)| (base, format!("/{below}")));
        let meant = format!("{}{below}", plural(base));
        return Some(format!("resources are lower-case plurals; did you mean `{meant}`?"));
    }
    let lettered = |part: &str| part == "*" || is_dns_subdomain(part);
    if !lettered(base) || (resource.contains('/') && below.split('/').any(|part| !lettered(part))) {
        return Some(format!(
            "`{resource}` is not a valid resource: write a plural such as `pods`, or a subresource such as `pods/log`"
        ));
    }
    if base == "*" || !groups.iter().all(|group| RESOURCES.iter().any(|row| row.0 == *group)) {
        return None;
    }
    let with = |meant: &str| if below.is_empty() { meant.to_owned() } else { format!("{meant}/{below}") };
    let own = || RESOURCES.iter().filter(|row| groups.iter().any(|group| row.0 == *group));
    if own().any(|row| row.1 == base) {
        return wrong_subresource(base, below);
    }
    if let Some(row) = own().find(|row| row.2 == base || (row.3 == base && !base.is_empty())) {
        return Some(format!("unknown resource `{base}`; did you mean `{}`?", with(row.1)));
    }
    if let Some(row) = RESOURCES.iter().find(|row| row.1 == base || row.2 == base) {
        let wanted = if row.0.is_empty() { "\"\"" } else { row.0 };
        return Some(format!(
            "`{}` is in another group; write `groups = \"{}\"`",
            row.1,
            wanted.trim_matches('"')
        ));
    }
    let near = nearest(base, own().map(|row| row.1)).filter(|near| {
        let letters = if base.len() < 8 { 1 } else { 2 };
        strsim::osa_distance(near, base) <= letters
    })?;
    Some(format!("unknown resource `{base}`; did you mean `{}`?", with(near)))
}

fn wrong_subresource(base: &str, below: &str) -> Option<String> {
    if below.is_empty() || below.contains('*') || SUBRESOURCES.contains(&below) {
        return None;
    }
    let near = nearest(below, SUBRESOURCES.iter().copied())?;
    Some(format!("unknown subresource `{below}`; did you mean `{base}/{near}`?"))
}

/// The plural of a lower-case kind. Plurals are returned unchanged.
fn plural(singular: &str) -> String {
    if let Some(row) = RESOURCES.iter().find(|row| row.2 == singular || row.1 == singular) {
        return row.1.to_owned();
    }
    match singular.as_bytes() {
        [.., b's'] => singular.to_owned(),
        [.., b'x' | b'z'] | [.., b'c' | b's', b'h'] => format!("{singular}es"),
        [.., b'y'] => format!("{}ies", &singular[..singular.len() - 1]),
        _ => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_resources_are_those_of_the_api_server() {
        let facts = concat!(env!("CARGO_MANIFEST_DIR"), "/../kubewright-apis/facts/resources.txt");
        let facts = std::fs::read_to_string(facts).unwrap();
        let rows: Vec<Vec<&str>> = facts
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split(' ').collect())
            .collect();
        let found = rows.iter().map(|columns| {
            let group = columns[0].split_once('/').unwrap().0;
            let short = columns[5].split(',').next().unwrap().trim_matches('-');
            (group, columns[1], columns[4], short)
        });
        assert_eq!(found.collect::<BTreeSet<_>>(), RESOURCES.iter().copied().collect());
        let below = rows.iter().flat_map(|columns| &columns[9..]).map(|part| part.split_once('=').unwrap().0);
        let unknown: Vec<&str> = below.filter(|name| !SUBRESOURCES.contains(name)).collect();
        assert_eq!(unknown, [""; 0]);
    }

    #[test]
    fn a_resource_is_looked_up_in_its_groups() {
        let wrong = |groups: &[&str], resource: &str| {
            let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
            wrong_resource(resource, &groups).unwrap_or_default()
        };
        for (groups, resource) in [
            (&["apps"][..], "deployments/status"),
            (&["", "apps"], "pods"),
            (&[""], "users"),
            (&[""], "*/scale"),
            (&["example.com"], "deployment"),
            (&["apps", "example.com"], "widgets"),
            (&["extensions"], "ingresses"),
            (&["*"], "anything/at-all"),
        ] {
            assert_eq!(wrong(groups, resource), "", "{groups:?} {resource}");
        }
        assert_eq!(
            wrong(&["apps"], "deployment/scale"),
            "unknown resource `deployment`; did you mean `deployments/scale`?"
        );
        assert_eq!(
            wrong(&["apps"], "deploymnets"),
            "unknown resource `deploymnets`; did you mean `deployments`?"
        );
        assert_eq!(wrong(&[""], "pods/logs"), "unknown subresource `logs`; did you mean `pods/log`?");
        assert_eq!(
            wrong(&[""], "deployments"),
            "`deployments` is in another group; write `groups = \"apps\"`"
        );
        assert_eq!(wrong(&["apps"], "pods"), "`pods` is in another group; write `groups = \"\"`");
        assert_eq!(
            wrong(&["x.y"], "Proxy/Status"),
            "resources are lower-case plurals; did you mean `proxies/status`?"
        );
    }

    #[test]
    fn a_group_is_known_or_has_a_dot() {
        for group in ["", "*", "core", "apps", "view.example.com", "metrics.k8s.io"] {
            assert_eq!(wrong_group(group), None, "{group}");
        }
        let near = |group: &str, meant: &str| {
            assert!(wrong_group(group).unwrap().ends_with(&format!("did you mean `{meant}`?")), "{group}");
        };
        near("app", "apps");
        near("rbac", "rbac.authorization.k8s.io");
        near("networking.k8s.oi", "networking.k8s.io");
        near("Apps", "apps");
        assert!(wrong_group("guestbook").unwrap().contains("a dot"));
        assert_eq!(wrong_group("apps/v1").unwrap(), "a group must not contain a version: write `apps`");
    }
}
