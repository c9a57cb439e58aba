//! Defaults of regular, init and ephemeral containers.

use serde_json::Value;

use super::{image, list, resources};
use kubewright_apimachinery::object::Fields as _;

pub(super) fn container(container: &mut Value) {
    if !container.has("imagePullPolicy") {
        let policy = image::pull_policy(container.str_at("image"));
        container.set_at("imagePullPolicy", policy);
    }
    container.default_at("terminationMessagePath", "/dev/termination-log");
    container.default_at("terminationMessagePolicy", "File");
    for port in list(container, "ports") {
        port.default_at("protocol", "TCP");
    }
    for variable in list(container, "env") {
        if let Some(source) = variable.at_mut("valueFrom.fieldRef") {
            field_selector(source);
        }
        if let Some(source) = variable.at_mut("valueFrom.fileKeyRef") {
            source.default_at("optional", false);
        }
    }
    resources::round_up(container, "resources.limits");
    resources::round_up(container, "resources.requests");
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(value) = container.at_mut(name) {
            probe(value);
        }
    }
    for name in ["lifecycle.postStart.httpGet", "lifecycle.preStop.httpGet"] {
        if let Some(action) = container.at_mut(name) {
            http_get(action);
        }
    }
}

/// Sets host ports to the container ports, for pods in the host network.
pub(super) fn host_ports(container: &mut Value) {
    for port in list(container, "ports") {
        let number = port.at("containerPort").clone();
        if !number.is_null() {
            port.default_at("hostPort", number);
        }
    }
}

/// Sets the default apiVersion `v1` of a fieldRef in a volume or environment variable.
pub(super) fn field_selector(selector: &mut Value) {
    selector.default_at("apiVersion", "v1");
}

fn probe(probe: &mut Value) {
    probe.default_at("timeoutSeconds", 1);
    probe.default_at("periodSeconds", 10);
    probe.default_at("successThreshold", 1);
    probe.default_at("failureThreshold", 3);
    if let Some(action) = probe.at_mut("httpGet") {
        http_get(action);
    }
    if let Some(action) = probe.at_mut("grpc") {
        action.default_at("service", "");
    }
}

fn http_get(action: &mut Value) {
    action.default_at("path", "/");
    action.default_at("scheme", "HTTP");
}
