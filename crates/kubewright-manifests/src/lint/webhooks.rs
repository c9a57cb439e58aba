//! Findings about declared webhooks.
//!
//! Validates each webhook in a separate configuration, so that errors can be mapped to arguments of
//! `#[webhook]`. Names are compared across all webhooks.

use std::collections::BTreeMap;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::webhook::MANAGER_LABEL;
use serde_json::Value;

use super::{Finding, server};
use crate::declare::{Handler, Webhook};
use crate::inventory::Inventory;
use crate::webhook::{configuration, configurations};

/// Checks every webhook.
pub(super) fn check(inventory: &Inventory) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut names: BTreeMap<(bool, &str, &str), &Webhook> = BTreeMap::new();
    for webhook in inventory.webhooks() {
        findings.extend(address(webhook));
        findings.extend(lock_ups(webhook, inventory));
        for refusal in configurations([webhook]).iter().flat_map(server::refusals) {
            let (code, field, help) = traced(refusal.field.trim_start_matches("webhooks[0]."));
            findings.push(Finding::error(code, &webhook.item, refusal.message, help).at(field));
        }
        let key = (webhook.mutating, configuration(webhook), webhook.name.as_str());
        if let Some(other) = names.insert(key, webhook) {
            let message = format!(
                "`{}` is also the name of {} ({}:{}): the API server rejects a configuration with duplicate names",
                webhook.name, other.item.path, other.item.file, other.item.line
            );
            let help = "give each webhook a unique name, such as `mguestbook.example.com` and `vguestbook.example.com`";
            findings.push(Finding::error("KW401", &webhook.item, message, help).at("name"));
        }
    }
    findings.extend(inventory.handlers().filter_map(|handler| unregistered(handler, inventory)));
    findings
}

/// Checks that exactly one of `path` and `url` is set.
fn address(webhook: &Webhook) -> Option<Finding> {
    let message = match (webhook.path.as_str(), webhook.url.as_str()) {
        ("", "") => "neither `path` nor `url` is set, so the API server cannot send requests",
        (_, "") | ("", _) => return None,
        _ => {
            "`path` and `url` are mutually exclusive: `path` is on the operator's server, `url` on another one"
        }
    };
    let help = "set either `path`, such as `/validate-guestbook-example-com-v1-guestbook`, or `url`";
    Some(Finding::error("KW403", &webhook.item, message, help).at("path"))
}

/// A webhook that rejects objects the operator needs can prevent the operator from starting. Then the configuration must
/// be deleted manually.
fn lock_ups(webhook: &Webhook, inventory: &Inventory) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !webhook.failure_policy.eq_ignore_ascii_case("fail") {
        return findings;
    }
    let has = |list: &[String], word: &str| list.iter().any(|it| it == word || it == "*");
    let is_selective = webhook.object_selector.is_some() || !webhook.match_conditions.is_empty();
    let everything = has(&webhook.groups, "*") && webhook.resources.iter().any(|it| it == "*" || it == "*/*");
    if everything && webhook.groups.iter().any(|group| group == "*") && !is_selective {
        let message = "it matches every resource, and with `failure_policy = fail` all writes in the cluster fail while \
                       the operator is down";
        let help = "name groups and resources, add `object_selector` or `match_conditions`, or write `failure_policy = ignore`";
        findings.push(Finding::error("KW414", &webhook.item, message, help).at("resources"));
        return findings;
    }
    let excludes = excludes_operators(webhook.namespace_selector.as_ref());
    let vital = NEEDED.iter().find(|(group, plural, scope)| {
        has(&webhook.groups, group)
            && (has(&webhook.resources, plural) || webhook.resources.iter().any(|it| it == "*/*"))
            && !(excludes && *scope == Scope::InNamespace)
    });
    if let Some((_, plural, scope)) = vital
        && !is_selective
    {
        let message = format!(
            "the operator needs {plural} to start, and a webhook for {plural} without a selector can reject the \
             operator's own; the cluster cannot recover without manual intervention"
        );
        let help = match scope {
            Scope::InNamespace => {
                "leave `namespace_selector` out to exclude kube-system and the operator's namespace, or add `object_selector`"
            }
            Scope::Cluster => {
                "add `object_selector` or `match_conditions`: `namespace_selector` has no effect on cluster-scoped resources"
            }
        };
        findings.push(Finding::error("KW415", &webhook.item, message, help).at("namespace_selector"));
    } else if webhook.namespace_selector.is_some()
        && !excludes
        && !is_selective
        && inventory.webhooks.contains(webhook)
    {
        let message = "`namespace_selector` does not exclude the operator's own namespace: an object there cannot be \
                       written while the operator is down";
        let help = format!(
            "add {{ key: \"{}\", operator: \"NotIn\", values: [\"{}\"] }}, or leave `namespace_selector` out",
            MANAGER_LABEL.0, MANAGER_LABEL.1
        );
        findings.push(Finding::error("KW416", &webhook.item, message, help).at("namespace_selector"));
    }
    findings
}

/// Whether a namespace selector applies to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// It is namespaced, or a Namespace, which the selector matches by its own labels.
    InNamespace,
    /// It is cluster-scoped. The webhook is called whatever the selector says.
    Cluster,
}

/// Built-in resources without which an operator does not start.
const NEEDED: &[(&str, &str, Scope)] = &[
    ("", "nodes", Scope::Cluster),
    ("rbac.authorization.k8s.io", "clusterroles", Scope::Cluster),
    ("rbac.authorization.k8s.io", "clusterrolebindings", Scope::Cluster),
    ("apiextensions.k8s.io", "customresourcedefinitions", Scope::Cluster),
    ("", "pods", Scope::InNamespace),
    ("", "services", Scope::InNamespace),
    ("", "secrets", Scope::InNamespace),
    ("", "configmaps", Scope::InNamespace),
    ("", "serviceaccounts", Scope::InNamespace),
    ("", "namespaces", Scope::InNamespace),
    ("apps", "deployments", Scope::InNamespace),
    ("apps", "replicasets", Scope::InNamespace),
    ("coordination.k8s.io", "leases", Scope::InNamespace),
    ("discovery.k8s.io", "endpointslices", Scope::InNamespace),
];

/// Whether a selector leaves out the operator's namespace: by its label, by its name, or since it selects by a label that
/// namespaces do not have by themselves.
fn excludes_operators(selector: Option<&Value>) -> bool {
    let Some(selector) = selector else { return false };
    if selector.at("matchLabels").as_object().is_some_and(|labels| !labels.is_empty()) {
        return true;
    }
    selector.list_at("matchExpressions").iter().any(|expression| match expression.str_at("operator") {
        "NotIn" => {
            let values = expression.list_at("values");
            match expression.str_at("key") {
                key if key == MANAGER_LABEL.0 => values.iter().any(|value| value == MANAGER_LABEL.1),
                // kube-system alone is not the operator's namespace.
                "kubernetes.io/metadata.name" => values.iter().any(|value| value != "kube-system"),
                _ => false,
            }
        }
        "DoesNotExist" => expression.str_at("key") == MANAGER_LABEL.0,
        _ => true,
    })
}

/// A handler that is not registered is neither served nor in the manifest. Its author believes that the rule is enforced.
fn unregistered(handler: &Handler, inventory: &Inventory) -> Option<Finding> {
    if inventory.webhooks.iter().any(|webhook| webhook.item == handler.item) {
        return None;
    }
    let name = handler.item.path.rsplit("::").next().unwrap_or_default();
    let message = format!("`{name}` has #[webhook] but is not registered, so the API server never calls it");
    let help =
        "register it before the manager runs, as `manager.validator(...)?` in src/registry.rs, or remove it";
    Some(Finding::error("KW413", &handler.item, message, help))
}

/// The code, the argument and the fix for an invalid field of a webhook.
fn traced(field: &str) -> (&'static str, &'static str, &'static str) {
    let is = |name: &str| {
        field == name || field.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    let found = TRACES.iter().find(|(name, ..)| is(name));
    found.map_or(
        ("KW400", "", "change the webhook so that the API server accepts it"),
        |(_, code, argument, help)| (code, argument, help),
    )
}

/// Field prefixes in errors, longer ones first, with the code, the argument of `#[webhook]` and the fix.
const TRACES: &[(&str, &str, &str, &str)] = &[
    (
        "name",
        "KW402",
        "name",
        "use a domain name with at least three labels, such as `vguestbook.example.com`",
    ),
    (
        "clientConfig.service.path",
        "KW403",
        "path",
        "use an absolute path such as `/validate-guestbook-example-com-v1-guestbook`",
    ),
    ("timeoutSeconds", "KW404", "timeout_seconds", "use 1 to 30; the default is 10 seconds"),
    (
        "reinvocationPolicy",
        "KW405",
        "reinvocation_policy",
        "use `never` or `ifNeeded` for a mutating webhook, and remove it from a validating one, which runs once after \
         all mutating webhooks",
    ),
    (
        "sideEffects",
        "KW406",
        "side_effects",
        "write `side_effects = \"none\"`, or `\"noneOnDryRun\"` if the webhook respects `dryRun`",
    ),
    (
        "rules[0].operations",
        "KW407",
        "verbs",
        "write `verbs = \"create, update\"`: create, update, delete, connect or `*`",
    ),
    ("rules[0].apiGroups", "KW407", "groups", "add groups; the core group is `\"\"`, and `*` matches all"),
    (
        "rules[0].apiVersions",
        "KW407",
        "versions",
        "add versions, such as `versions = \"v1\"`; `*` matches all",
    ),
    (
        "rules[0].resources",
        "KW407",
        "resources",
        "add plurals, such as `resources = \"guestbooks\"`; `*` must be the only one",
    ),
    (
        "matchConditions",
        "KW408",
        "match_conditions",
        "use boolean CEL expressions over `object`, `oldObject`, `request` and `namespaceObject`, each with a \
         unique name",
    ),
    ("failurePolicy", "KW409", "failure_policy", "use `fail` or `ignore`"),
    ("matchPolicy", "KW409", "match_policy", "use `exact` or `equivalent`"),
    ("admissionReviewVersions", "KW410", "admission_review_versions", "use `v1`, or remove it"),
    ("namespaceSelector", "KW411", "namespace_selector", "use a valid LabelSelector"),
    ("objectSelector", "KW411", "object_selector", "use a valid LabelSelector"),
    ("clientConfig.url", "KW412", "url", "use a URL such as `https://hooks.example.com/validate`"),
    ("clientConfig.service.port", "KW412", "service_port", "use a port from 1 to 65535"),
    ("metadata.name", "KW400", "configuration", "use a name such as `guestbook-webhooks`"),
];
