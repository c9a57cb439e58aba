//! Findings about webhooks that are declared.
//!
//! Each webhook is put into a configuration of its own and shown to the API server's rules; errors lead back to the
//! argument of `#[webhook]` that they come from. Names are compared across all.

use std::collections::BTreeMap;

use super::{Finding, server};
use crate::declarations::Declarations;
use crate::declare::Webhook;
use crate::webhook::{configuration, configurations};

/// Looks at every webhook.
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
                "`{}` is already the name of {} ({}:{}): the API server refuses a configuration that has it twice",
                webhook.name, other.item.path, other.item.file, other.item.line
            );
            let help = "give each webhook a name of its own, as `mguestbook.example.com` and `vguestbook.example.com`";
            findings.push(Finding::error("KW401", &webhook.item, message, help).at("name"));
        }
    }
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

/// A webhook that nothing answers refuses every request that it is for, unless its failure policy says otherwise.
fn unserved(webhook: &Webhook, declarations: &Declarations) -> Option<Finding> {
    if webhook.path.is_empty() || declarations.served_webhooks.contains(&webhook.path) {
        return None;
    }
    let message = format!(
        "no handler is registered for `{}`: the API server would call it, get no answer, and refuse every {} of {}",
        webhook.path,
        webhook.verbs.join(" and "),
        webhook.resources.join(", "),
    );
    let help = "this release does not serve webhooks: take the attribute out, or give the `url` of a server that does";
    Some(Finding::error("KW413", &webhook.item, message, help).at("path"))
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
