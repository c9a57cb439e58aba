//! Webhook definitions: the webhooks of config/webhook, which OLM installs with its own Service and certificate.

use serde_json::{Value, json};

use crate::delivery::rendered::{Object, Rendered};

/// The port of the Service that OLM creates.
const SERVICE_PORT: u64 = 443;
/// The default port of the webhook server.
const TARGET_PORT: u64 = 9443;
/// The path of conversions, if the CRD does not set one.
const CONVERT: &str = "/convert";

/// Whether an object is the Service of webhooks.
pub(super) fn is_service(object: &Object, objects: &Rendered) -> bool {
    object.kind() == "Service"
        && services(objects).any(|service| {
            service["name"] == object.name() && service["namespace"].as_str() == object.namespace()
        })
}

/// The Services that webhooks refer to.
fn services(objects: &Rendered) -> impl Iterator<Item = &Value> {
    let admission = objects
        .objects
        .iter()
        .filter(|it| it.kind().ends_with("WebhookConfiguration"))
        .flat_map(|it| it.value()["webhooks"].as_array().into_iter().flatten())
        .map(|webhook| &webhook["clientConfig"]["service"]);
    let conversion = objects
        .of_kind("CustomResourceDefinition")
        .filter_map(|it| it.value().pointer("/spec/conversion/webhook/clientConfig/service"));
    admission.chain(conversion).filter(|service| service.is_object())
}

/// All webhooks that the manager serves.
pub(super) fn definitions(objects: &Rendered, manager: &Object) -> Vec<Value> {
    let port = target_port(manager);
    let mut definitions = Vec::new();
    for (kind, of) in [
        ("MutatingWebhookConfiguration", "MutatingAdmissionWebhook"),
        ("ValidatingWebhookConfiguration", "ValidatingAdmissionWebhook"),
    ] {
        let webhooks =
            objects.of_kind(kind).flat_map(|it| it.value()["webhooks"].as_array().into_iter().flatten());
        for webhook in webhooks.filter(|it| it["clientConfig"]["service"].is_object()) {
            let mut definition = json!({
                "type": of,
                "admissionReviewVersions": webhook["admissionReviewVersions"],
                "containerPort": SERVICE_PORT,
                "deploymentName": manager.name(),
                "generateName": webhook["name"],
                "sideEffects": webhook["sideEffects"],
                "targetPort": port,
                "webhookPath": webhook["clientConfig"]["service"]["path"],
            });
            // OLM sets the namespace selector from the OperatorGroup.
            for field in [
                "failurePolicy",
                "matchPolicy",
                "objectSelector",
                "reinvocationPolicy",
                "rules",
                "timeoutSeconds",
            ] {
                if !webhook[field].is_null() {
                    definition[field] = webhook[field].clone();
                }
            }
            definitions.push(definition);
        }
    }
    for definition in objects.of_kind("CustomResourceDefinition") {
        let Some(webhook) = definition.value().pointer("/spec/conversion/webhook") else { continue };
        let service = &webhook["clientConfig"]["service"];
        let singular = definition.value()["spec"]["names"]["singular"].as_str().unwrap_or_default();
        definitions.push(json!({
            "type": "ConversionWebhook",
            "admissionReviewVersions": webhook["conversionReviewVersions"],
            "containerPort": SERVICE_PORT,
            "conversionCRDs": [definition.name()],
            "deploymentName": manager.name(),
            "generateName": format!("c{singular}.kb.io"),
            "sideEffects": "None",
            "targetPort": port,
            "webhookPath": service["path"].as_str().unwrap_or(CONVERT),
        }));
    }
    definitions
}

fn target_port(manager: &Object) -> u64 {
    let mut ports = manager.containers().flat_map(|it| it["ports"].as_array().into_iter().flatten());
    let port = ports.find(|port| port["name"] == "webhook-server");
    port.and_then(|port| port["containerPort"].as_u64()).unwrap_or(TARGET_PORT)
}
