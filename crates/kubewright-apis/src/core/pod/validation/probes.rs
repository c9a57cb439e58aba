//! Validation of probes and lifecycle hooks.

use serde_json::Value;

use super::checks;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Handlers of probes and hooks. `tcpSocket` hooks are valid although no kubelet runs them.
const PROBE_ACTIONS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
const HOOK_ACTIONS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];

/// Validates hooks and probes. `grace` is the termination grace period of the pod.
pub(super) fn hooks_and_probes(container: &Value, grace: Option<i64>, path: &Path, errors: &mut ErrorList) {
    for name in ["postStart", "preStop"] {
        let hook = container.at("lifecycle").at(name);
        if !hook.is_null() {
            handler(hook, &HOOK_ACTIONS, grace, &path.child("lifecycle").child(name), errors);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container.has(name) {
            probe(container.at(name), name, &path.child(name), errors);
        }
    }
}

fn probe(probe: &Value, name: &str, path: &Path, errors: &mut ErrorList) {
    handler(probe, &PROBE_ACTIONS, None, path, errors);
    for name in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        checks::non_negative(probe, name, path, errors);
    }
    let grace_path = path.child("terminationGracePeriodSeconds");
    let grace = probe.int_at("terminationGracePeriodSeconds");
    if let Some(seconds @ ..=0) = grace {
        errors.push(FieldError::invalid(&grace_path, seconds, "must be greater than 0"));
    }
    if name == "readinessProbe" {
        if let Some(seconds) = grace {
            errors.push(FieldError::invalid(&grace_path, seconds, "must not be set for readinessProbes"));
        }
        return;
    }
    let threshold = probe.int_at("successThreshold").unwrap_or_default();
    if threshold != 1 {
        errors.push(FieldError::invalid(&path.child("successThreshold"), threshold, "must be 1"));
    }
}

fn handler(handler: &Value, actions: &[&str], grace: Option<i64>, path: &Path, errors: &mut ErrorList) {
    let mut found = false;
    for name in actions {
        let action = handler.at(name);
        if action.is_null() {
            continue;
        }
        let path = path.child(name);
        if found {
            errors.push(FieldError::forbidden(&path, "may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match *name {
            "exec" if action.list_at("command").is_empty() => {
                errors.push(FieldError::required(&path.child("command"), ""));
            }
            "httpGet" => http_get(action, &path, errors),
            "tcpSocket" | "grpc" => checks::port(action.at("port"), &path.child("port"), errors),
            "sleep" => sleep(action, grace, &path, errors),
            _ => {}
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn http_get(action: &Value, path: &Path, errors: &mut ErrorList) {
    checks::required(action, "path", path, errors);
    checks::port(action.at("port"), &path.child("port"), errors);
    let scheme = action.str_at("scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        errors.push(FieldError::not_supported(&path.child("scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    for header in action.list_at("httpHeaders") {
        let name = header.str_at("name");
        checks::named(name, names::http_header_name(name), &path.child("httpHeaders"), errors);
    }
}

fn sleep(action: &Value, grace: Option<i64>, path: &Path, errors: &mut ErrorList) {
    let seconds = action.int_at("seconds").unwrap_or_default();
    if let Some(grace) = grace
        && !(0..=grace).contains(&seconds)
    {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(FieldError::invalid(path, seconds, detail));
    }
}
