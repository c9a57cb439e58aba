//! Findings about declared webhooks.
//!
//! Validates each webhook in a separate configuration, so that errors can be mapped to arguments of
//! `#[webhook]`. Names are compared across all webhooks.

use std::collections::BTreeMap;

use super::{Finding, server};
use crate::declarations::Declarations;
use crate::declare::Webhook;
use crate::webhook::{configuration, configurations};

/// Checks every webhook.
pub(super) fn check(declarations: &Declarations) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut names: BTreeMap<(bool, &str, &str), &Webhook> = BTreeMap::new();
    for webhook in declarations.webhooks() {
        findings.extend(address(webhook));
        findings.extend(unserved(webhook, declarations));
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
    let help = "give either `path`, as `/validate-guestbook-example-com-v1-guestbook`, or `url`";
    Some(Finding::error("KW403", &webhook.item, message, help).at("path"))
}

/// Checks that a handler is registered. Otherwise all matching requests are rejected, unless the failure
/// policy is `ignore`.
fn unserved(webhook: &Webhook, declarations: &Declarations) -> Option<Finding> {
    if webhook.path.is_empty() || declarations.served_webhooks.contains(&webhook.path) {
        return None;
    }
    let message = format!(
        "no handler is registered for `{}`: calls of the API server would fail, and it would reject every {} of {}",
        webhook.path,
        webhook.verbs.join(" and "),
        webhook.resources.join(", "),
    );
    let help =
        "this release does not serve webhooks; remove the attribute, or set the `url` of another server";
    Some(Finding::error("KW413", &webhook.item, message, help).at("path"))
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
