//! Labels of the rendered manifests: all objects have the same ones, and selectors select.

use serde_json::{Map, Value};

use super::super::webhooks;
use super::*;
use crate::project::project_file::WebhookCerts;

/// Files that `kubewright manifests` generates as controller-gen does, without labels. kustomize adds them.
const GENERATED: [&str; 7] = [
    "config/crd/bases/",
    "config/rbac/debug_page_reader_role.yaml",
    "config/rbac/leader_election_role.yaml",
    "config/rbac/metrics_",
    "config/rbac/role.yaml",
    "config/rbac/webhook_certificates_role.yaml",
    "config/webhook/manifests.yaml",
];

fn variants() -> Vec<ProjectFile> {
    let one = with(&project(), &order());
    let core = Request { resource: Some(false), ..request("apps", "v1", "Deployment") };
    let hooks = webhooks::Request {
        group: "sales".into(),
        version: "v1".into(),
        kind: "Order".into(),
        types: webhooks::WebhookTypes { defaulting: true, validation: true, conversion: false },
        ..webhooks::Request::default()
    };
    let mut hooked = webhooks::add(&one, &hooks).unwrap().after;
    let self_signed = hooked.clone();
    hooked.set_webhook_certs(WebhookCerts::CertManager);
    let namespaced = ProjectFile { namespaced: true, multigroup: true, ..with(&one, &core) };
    vec![project(), one, namespaced, self_signed, hooked]
}

/// The Kubernetes objects of a project with their files.
fn objects(files: &Disk) -> Vec<(&str, Value)> {
    let mut found = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with("config/")) {
        if Path::new(path).extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(text).unwrap_or_else(|it| panic!("{path}: {it}"));
        // Patches and kustomize's own files are no objects.
        let is_object =
            |object: &Value| object["metadata"]["name"].is_string() && !path.ends_with("_patch.yaml");
        found.extend(objects.into_iter().filter(is_object).map(|object| (path.as_str(), object)));
    }
    found
}

fn labels(object: &Value, pointer: &str) -> Map<String, Value> {
    object.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
}

#[test]
fn all_objects_have_the_labels_of_the_project() {
    for project in variants() {
        let files = files(&project);
        let default: Value = serde_saphyr::from_str(&files["config/default/kustomization.yaml"]).unwrap();
        let expected = labels(&default, "/labels/0/pairs");
        assert_eq!(expected["app.kubernetes.io/name"], "shop");
        assert_eq!(expected.len(), 2);
        let objects = objects(&files);
        assert!(objects.len() > 10, "{}", objects.len());
        for (path, object) in objects {
            let actual = labels(&object, "/metadata/labels");
            if GENERATED.iter().any(|start| path.starts_with(start)) && actual.is_empty() {
                continue;
            }
            for (label, value) in &expected {
                assert_eq!(actual.get(label), Some(value), "{label} in {path}");
            }
        }
    }
}

#[test]
fn selectors_select_the_manager_and_its_service() {
    for project in variants() {
        let files = files(&project);
        let objects = objects(&files);
        let find = |kind: &str, name: &str| {
            let is =
                |(_, object): &&(&str, Value)| object["kind"] == kind && object["metadata"]["name"] == name;
            &objects.iter().find(is).unwrap_or_else(|| panic!("no {kind} {name}")).1
        };
        let pods = labels(find("Deployment", "controller-manager"), "/spec/template/metadata/labels");
        let service = labels(find("Service", "controller-manager-metrics-service"), "/metadata/labels");
        let mut selectors = 0;
        for (path, object) in &objects {
            let (selector, of) = match object["kind"].as_str().unwrap_or_default() {
                "Deployment" => ("/spec/selector/matchLabels", &pods),
                "Service" => ("/spec/selector", &pods),
                "NetworkPolicy" => ("/spec/podSelector/matchLabels", &pods),
                "ServiceMonitor" => ("/spec/selector/matchLabels", &service),
                _ => continue,
            };
            let selector = labels(object, selector);
            assert!(!selector.is_empty(), "{path}");
            for (label, value) in &selector {
                assert_eq!(of.get(label), Some(value), "{label} in {path}");
            }
            selectors += 1;
        }
        // Deployment, metrics Service, NetworkPolicy and ServiceMonitor.
        assert!(selectors >= 4, "{selectors}");
    }
}
