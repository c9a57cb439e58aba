//! Findings about webhooks that are declared.
//!
//! Each webhook is put into a configuration of its own and shown to the API server's rules; errors lead back to the
//! argument of `#[webhook]` that they come from. Names are compared across all.

use std::collections::BTreeMap;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::webhook::MANAGER_LABEL;
use serde_json::Value;

use super::{Finding, server};
use crate::declarations::Declarations;
use crate::declare::{Handler, Webhook};
use crate::webhook::{configuration, configurations};

/// Looks at every webhook.
pub(super) fn check(declarations: &Declarations) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut names: BTreeMap<(bool, &str, &str), &Webhook> = BTreeMap::new();
    for webhook in declarations.webhooks() {
        findings.extend(address(webhook));
        findings.extend(lock_ups(webhook, declarations));
        for refusal in configurations([webhook]).iter().flat_map(server::refusals) {
            let (code, field, help) = traced(refusal.field.trim_start_matches("webhooks[0]."));
            findings.push(Finding::error(code, &webhook.item, refusal.message, help).at(field));
        }
        let key = (webhook.mutating, configuration(webhook), webhook.name.as_str());
        if let Some(other) = names.insert(key, webhook) {
            let message = format!(
                "`{}` is already the name of {} ({}:{}): the API server refuses a configuration that has it twice",
                webhook.name, other.item.path, other.item.file, other.item.line
            );
            let help = "give each webhook a name of its own, as `mguestbook.example.com` and `vguestbook.example.com`";
            findings.push(Finding::error("KW401", &webhook.item, message, help).at("name"));
        }
    }
    findings.extend(declarations.handlers().filter_map(|handler| unregistered(handler, declarations)));
    findings
}

/// The server sees a Service or a URL; which was meant is known here alone.
fn address(webhook: &Webhook) -> Option<Finding> {
    let message = match (webhook.path.as_str(), webhook.url.as_str()) {
        ("", "") => "without `path` or `url` the API server does not know where to send requests",
        (_, "") | ("", _) => return None,
        _ => "`path` is of the operator's own server, and `url` of another: only one can be meant",
    };
    let help = "give either `path`, as `/validate-guestbook-example-com-v1-guestbook`, or `url`";
    Some(Finding::error("KW403", &webhook.item, message, help).at("path"))
}

/// A webhook that refuses what the operator needs to run keeps the operator from answering it: nothing works until the
/// configuration is deleted by hand.
fn lock_ups(webhook: &Webhook, declarations: &Declarations) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !webhook.failure_policy.eq_ignore_ascii_case("fail") {
        return findings;
    }
    let has = |list: &[String], word: &str| list.iter().any(|it| it == word || it == "*");
    let is_selective = webhook.object_selector.is_some() || !webhook.match_conditions.is_empty();
    let everything = has(&webhook.groups, "*") && webhook.resources.iter().any(|it| it == "*" || it == "*/*");
    if everything && webhook.groups.iter().any(|group| group == "*") && !is_selective {
        let message = "it is called for every resource, and `failure_policy = fail` refuses all writes of the cluster \
                       while the operator is down";
        let help = "name groups and resources, add `object_selector` or `match_conditions`, or write `failure_policy = ignore`";
        findings.push(Finding::error("KW414", &webhook.item, message, help).at("resources"));
        return findings;
    }
    let vital =
        NEEDED.iter().find(|(group, plural)| has(&webhook.groups, group) && has(&webhook.resources, plural));
    if let Some((_, plural)) = vital
        && !is_selective
        && !excludes_operators(webhook.namespace_selector.as_ref())
    {
        let message = format!(
            "the operator needs {plural} to start, and a webhook for them without a selector can refuse its own: the \
             cluster cannot recover by itself"
        );
        let help = "leave `namespace_selector` out to exclude kube-system and the operator's namespace, or add `object_selector`";
        findings.push(Finding::error("KW415", &webhook.item, message, help).at("namespace_selector"));
    } else if webhook.namespace_selector.is_some()
        && !excludes_operators(webhook.namespace_selector.as_ref())
        && !is_selective
        && declarations.webhooks.contains(webhook)
    {
        let message = "`namespace_selector` does not exclude the operator's own namespace: an object there cannot be \
                       written while the operator is down";
        let help = format!(
            "add {{ key: \"{}\", operator: \"NotIn\", values: [\"{}\"] }}, or leave `namespace_selector` out",
            MANAGER_LABEL.0, MANAGER_LABEL.1
        );
        findings.push(Finding::warning("KW416", &webhook.item, message, help).at("namespace_selector"));
    }
    findings
}

/// Built-in resources without which an operator does not start.
const NEEDED: &[(&str, &str)] = &[
    ("", "pods"),
    ("", "services"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "serviceaccounts"),
    ("", "namespaces"),
    ("", "nodes"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("coordination.k8s.io", "leases"),
    ("discovery.k8s.io", "endpointslices"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
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
fn unregistered(handler: &Handler, declarations: &Declarations) -> Option<Finding> {
    if declarations.webhooks.iter().any(|webhook| webhook.item == handler.item) {
        return None;
    }
    let name = handler.item.path.rsplit("::").next().unwrap_or_default();
    let message = format!("`{name}` has #[webhook] and is not registered: the API server never calls it");
    let help =
        "register it before the manager runs, as `manager.validator(...)?` in src/registry.rs, or remove it";
    Some(Finding::error("KW413", &handler.item, message, help))
}

/// The code, the argument and the remedy for a field of a webhook that is refused.
fn traced(field: &str) -> (&'static str, &'static str, &'static str) {
    let is = |name: &str| {
        field == name || field.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    let found = TRACES.iter().find(|(name, ..)| is(name));
    found.map_or(("KW400", "", "write a webhook that an API server accepts"), |(_, code, argument, help)| {
        (code, argument, help)
    })
}

/// Fields as the server names them, longer paths first where one is in another; then the code, the argument of
/// `#[webhook]` and the remedy.
const TRACES: &[(&str, &str, &str, &str)] = &[
    ("name", "KW402", "name", "write a domain with at least three labels, as `vguestbook.example.com`"),
    (
        "clientConfig.service.path",
        "KW403",
        "path",
        "write a path from the root, as `/validate-guestbook-example-com-v1-guestbook`",
    ),
    ("timeoutSeconds", "KW404", "timeout_seconds", "write 1 to 30; without it, the API server waits 10 s"),
    (
        "reinvocationPolicy",
        "KW405",
        "reinvocation_policy",
        "write `never` or `ifNeeded` for a mutating webhook, and nothing for a validating one: those run once, after \
         all mutating ones",
    ),
    (
        "sideEffects",
        "KW406",
        "side_effects",
        "write `side_effects = \"none\"`, or `\"noneOnDryRun\"` if the webhook looks at `dryRun`",
    ),
    (
        "rules[0].operations",
        "KW407",
        "verbs",
        "write `verbs = \"create, update\"`: create, update, delete, connect or `*`",
    ),
    ("rules[0].apiGroups", "KW407", "groups", "name groups; the core group is `\"\"`, and `*` is all"),
    ("rules[0].apiVersions", "KW407", "versions", "name versions, as `versions = \"v1\"`; `*` is all"),
    (
        "rules[0].resources",
        "KW407",
        "resources",
        "name plurals, as `resources = \"guestbooks\"`; `*` stands alone",
    ),
    (
        "matchConditions",
        "KW408",
        "match_conditions",
        "write CEL that is true or false, over `object`, `oldObject`, `request` and `namespaceObject`, each with a \
         name of its own",
    ),
    ("failurePolicy", "KW409", "failure_policy", "write `fail` or `ignore`"),
    ("matchPolicy", "KW409", "match_policy", "write `exact` or `equivalent`"),
    ("admissionReviewVersions", "KW410", "admission_review_versions", "write `v1`, or leave it out"),
    ("namespaceSelector", "KW411", "namespace_selector", "write a LabelSelector"),
    ("objectSelector", "KW411", "object_selector", "write a LabelSelector"),
    ("clientConfig.url", "KW412", "url", "write an address such as `https://hooks.example.com/validate`"),
    ("clientConfig.service.port", "KW412", "service_port", "write a port, 1 to 65535"),
    ("metadata.name", "KW400", "configuration", "write a name such as `guestbook-webhooks`"),
];
