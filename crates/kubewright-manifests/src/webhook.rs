//! Generates webhook configurations like controller-gen, and APIServices.
//!
//! Invalid declarations are written as declared. The [linter](crate::lint) applies the API server's
//! validation and reports the source location.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::declare::Webhook;
use crate::inventory::ApiServiceDeclared;
use crate::rbac::canonical_group;

/// The default name of the mutating webhook configuration.
pub const MUTATING: &str = "mutating-webhook-configuration";
/// The default name of the validating webhook configuration.
pub const VALIDATING: &str = "validating-webhook-configuration";
/// The Service of the operator's webhook server.
pub const SERVICE: &str = "webhook-service";
/// The namespace of the Service, which kustomize replaces.
pub const NAMESPACE: &str = "system";

/// The webhook configurations: mutating ones first, then by name. Webhooks are sorted by name.
pub fn configurations<'a>(webhooks: impl IntoIterator<Item = &'a Webhook>) -> Vec<Value> {
    let mut by_configuration: BTreeMap<(bool, &str), Vec<&Webhook>> = BTreeMap::new();
    for webhook in webhooks {
        by_configuration.entry((!webhook.mutating, configuration(webhook))).or_default().push(webhook);
    }
    by_configuration
        .into_iter()
        .map(|((validating, name), mut webhooks)| {
            webhooks.sort_by(|one, other| (&one.name, &one.item).cmp(&(&other.name, &other.item)));
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": if validating { "ValidatingWebhookConfiguration" } else { "MutatingWebhookConfiguration" },
                "metadata": { "name": name },
                "webhooks": webhooks.into_iter().map(to_value).collect::<Vec<_>>(),
            })
        })
        .collect()
}

/// The APIServices, by name. The API server forwards requests for their groups to the operator's webhook server.
pub fn api_services(declared: &[ApiServiceDeclared]) -> Vec<Value> {
    let mut declared: Vec<&ApiServiceDeclared> = declared.iter().collect();
    declared.sort();
    let api_service = |api: &ApiServiceDeclared| {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": { "name": api.name() },
            "spec": {
                "group": api.group,
                // As the API server registers the groups of CRDs.
                "groupPriorityMinimum": 1000,
                "service": { "name": SERVICE, "namespace": NAMESPACE },
                "version": api.version,
                "versionPriority": 100,
            },
        })
    };
    declared.into_iter().map(api_service).collect()
}

/// Where the API server reaches the operator's webhook server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint<'a> {
    /// A Service.
    Service {
        /// Namespace of the Service.
        namespace: &'a str,
        /// Name of the Service.
        name: &'a str,
    },
    /// An address outside of the cluster: a manager that runs on the developer's machine.
    Url {
        /// Scheme, host and port: `https://127.0.0.1:9443`.
        base: &'a str,
        /// The CA certificates that the API server trusts, as PEM.
        ca: &'a str,
    },
}

/// The default endpoint, as kustomize finds it.
pub const DEFAULT_ENDPOINT: Endpoint<'static> = Endpoint::Service { namespace: NAMESPACE, name: SERVICE };

impl Endpoint<'_> {
    fn client_config(self, path: &str) -> Value {
        match self {
            Self::Service { namespace, name } => {
                json!({ "service": { "name": name, "namespace": namespace, "path": path } })
            }
            Self::Url { base, ca } => {
                json!({ "url": format!("{base}{path}"), "caBundle": base64::engine::general_purpose::STANDARD.encode(ca) })
            }
        }
    }
}

/// [`configurations`] of webhooks that the operator serves at an endpoint. The names of the configurations get a prefix, so
/// that they do not replace those of an operator that is deployed in the same cluster.
pub fn configurations_at<'a>(
    webhooks: impl IntoIterator<Item = &'a Webhook>,
    endpoint: Endpoint<'_>,
    prefix: &str,
) -> Vec<Value> {
    let mut configurations = configurations(webhooks);
    for configuration in &mut configurations {
        let name = format!("{prefix}{}", configuration["metadata"]["name"].as_str().unwrap_or_default());
        configuration["metadata"]["name"] = name.into();
        redirect(configuration, endpoint);
    }
    configurations
}

/// Points the webhooks of a configuration that reference a Service at an endpoint.
pub fn redirect(configuration: &mut Value, endpoint: Endpoint<'_>) {
    for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
        let path = webhook.pointer("/clientConfig/service/path").and_then(Value::as_str);
        if let Some(config) = path.map(|path| endpoint.client_config(path)) {
            webhook["clientConfig"] = config;
        }
    }
}

/// The path of conversion reviews.
pub const CONVERT_PATH: &str = "/convert";

/// `spec.conversion` of a CRD whose versions the operator converts.
pub fn conversion(endpoint: Endpoint<'_>) -> Value {
    json!({
        "strategy": "Webhook",
        "webhook": { "clientConfig": endpoint.client_config(CONVERT_PATH), "conversionReviewVersions": ["v1"] },
    })
}

/// The name of a webhook's configuration.
pub(crate) fn configuration(webhook: &Webhook) -> &str {
    match (webhook.configuration.as_str(), webhook.mutating) {
        ("", true) => MUTATING,
        ("", false) => VALIDATING,
        (name, _) => name,
    }
}

fn to_value(webhook: &Webhook) -> Value {
    let mut value = Map::new();
    let mut set = |name: &str, field: Value| {
        let is_empty = match &field {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if !is_empty {
            value.insert(name.to_owned(), field);
        }
    };
    set("admissionReviewVersions", review_versions(webhook));
    set("clientConfig", client_config(webhook));
    set("failurePolicy", word(&webhook.failure_policy, &["Fail", "Ignore"]));
    set("matchConditions", json!(webhook.match_conditions));
    set("matchPolicy", word(&webhook.match_policy, &["Exact", "Equivalent"]));
    set("name", webhook.name.as_str().into());
    set("namespaceSelector", json!(webhook.namespace_selector));
    set("objectSelector", json!(webhook.object_selector));
    set("reinvocationPolicy", word(&webhook.reinvocation_policy, &["Never", "IfNeeded"]));
    set("rules", rules(webhook));
    set("sideEffects", word(&webhook.side_effects, &["None", "NoneOnDryRun", "Some", "Unknown"]));
    set("timeoutSeconds", json!(webhook.timeout_seconds));
    value.into()
}

/// Defaults to `v1`, the only version that the runtime and current clusters support.
fn review_versions(webhook: &Webhook) -> Value {
    if webhook.admission_review_versions.is_empty() {
        json!(["v1"])
    } else {
        json!(webhook.admission_review_versions)
    }
}

fn client_config(webhook: &Webhook) -> Value {
    if !webhook.url.is_empty() {
        return json!({ "url": webhook.url });
    }
    let or = |text: &str, usual: &str| if text.is_empty() { usual.to_owned() } else { text.to_owned() };
    let mut service = json!({
        "name": or(&webhook.service_name, SERVICE),
        "namespace": or(&webhook.service_namespace, NAMESPACE),
        "path": webhook.path,
    });
    if let Some(port) = webhook.service_port {
        service["port"] = port.into();
    }
    json!({ "service": service })
}

fn rules(webhook: &Webhook) -> Value {
    let groups: Vec<&str> = webhook.groups.iter().map(|group| canonical_group(group)).collect();
    let operations: Vec<Value> = webhook
        .verbs
        .iter()
        .map(|verb| word(verb, &["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]))
        .collect();
    json!([{
        "apiGroups": groups,
        "apiVersions": webhook.versions,
        "operations": operations,
        "resources": webhook.resources,
    }])
}

/// A value in the API's spelling. Unknown values are kept, so that the API server rejects them.
fn word(given: &str, known: &[&str]) -> Value {
    let known = known.iter().copied().find(|known| known.eq_ignore_ascii_case(given));
    known.unwrap_or(given).into()
}

#[cfg(test)]
mod tests;
