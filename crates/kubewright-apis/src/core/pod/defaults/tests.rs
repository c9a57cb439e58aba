//! Compares defaults with recordings of kube-apiserver v1.36.

use serde_json::{Value, json};

use crate::defaults::apply;
use kubewright_apimachinery::gvk::Gvk;

fn defaulted(kind: &str, mut object: Value) -> Value {
    apply(Gvk { group: "", version: "v1", kind }, &mut object);
    object
}

#[test]
fn a_plain_pod_gets_all_defaults() {
    let pod =
        defaulted("Pod", json!({"spec": {"containers": [{"name": "c", "image": "nginx", "resources": {}}]}}));
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{
                "name": "c", "image": "nginx", "imagePullPolicy": "Always", "resources": {},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
        })
    );
}

#[test]
fn a_template_gets_fewer_defaults_than_a_pod() {
    let limits = json!({"limits": {"cpu": "1"}});
    let template = json!({"spec": {"containers": [{"name": "c", "resources": limits}]}});
    let template = defaulted("PodTemplate", json!({"template": template}));
    let spec = &template["template"]["spec"];
    assert_eq!(spec["dnsPolicy"], "ClusterFirst");
    assert_eq!(spec.get("enableServiceLinks"), None);
    assert_eq!(spec["containers"][0]["resources"], limits);
}

#[test]
fn requests_default_to_limits() {
    let resources = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}});
    let pod = defaulted("Pod", json!({"spec": {"containers": [{"name": "c", "resources": resources}]}}));
    assert_eq!(
        pod["spec"]["containers"][0]["resources"]["requests"],
        json!({"cpu": "100m", "memory": "1Gi"})
    );
}

#[test]
fn probes_hooks_variables_and_ports_have_defaults() {
    let pod = defaulted(
        "Pod",
        json!({"spec": {"hostNetwork": true, "containers": [{
            "name": "c", "image": "a:1",
            "ports": [{"containerPort": 80}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "readinessProbe": {"grpc": {"port": 1}, "periodSeconds": 3},
            "lifecycle": {"preStop": {"httpGet": {"port": "x"}}},
        }]}}),
    );
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["ports"], json!([{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]));
    assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
    assert_eq!(
        container["livenessProbe"],
        json!({
            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
            "successThreshold": 1, "failureThreshold": 3,
        })
    );
    assert_eq!(container["readinessProbe"]["grpc"], json!({"port": 1, "service": ""}));
    assert_eq!(container["readinessProbe"]["periodSeconds"], 3);
    assert_eq!(container["lifecycle"]["preStop"]["httpGet"]["scheme"], "HTTP");
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
}

#[test]
fn volumes_get_defaults_and_a_source() {
    let token = json!({"serviceAccountToken": {"path": "t"}});
    let pod = defaulted(
        "Pod",
        json!({"spec": {"volumes": [
            {"name": "none"}, {"name": "s", "secret": {"secretName": "x"}}, {"name": "h", "hostPath": {"path": "/"}},
            {"name": "p", "projected": {"sources": [token]}}, {"name": "i", "image": {"reference": "a:1"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ]}}),
    );
    assert_eq!(
        pod["spec"]["volumes"],
        json!([
            {"name": "none", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}},
            {"name": "h", "hostPath": {"path": "/", "type": ""}},
            {"name": "p", "projected": {
                "defaultMode": 420, "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
            }},
            {"name": "i", "image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}},
        ])
    );
}

#[test]
fn service_account_and_service_account_name_are_synchronized() {
    let pod = defaulted("Pod", json!({"spec": {"serviceAccount": "a"}}));
    assert_eq!(pod["spec"]["serviceAccountName"], "a");
    let pod = defaulted("Pod", json!({"spec": {"serviceAccount": "a", "serviceAccountName": "b"}}));
    assert_eq!(pod["spec"]["serviceAccount"], "b");
}

#[test]
fn pod_ip_and_pod_ips_are_synchronized() {
    let pod = defaulted("Pod", json!({"status": {"podIP": "10.0.0.1"}}));
    assert_eq!(pod["status"]["podIPs"], json!([{"ip": "10.0.0.1"}]));
    let pod =
        defaulted("Pod", json!({"status": {"podIP": "x", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}]}}));
    assert_eq!(pod["status"]["podIPs"], json!([{"ip": "x"}]));
    let pod = defaulted("Pod", json!({"status": {"podIPs": [{"ip": "10.0.0.1"}]}}));
    assert_eq!(pod["status"]["podIP"], "10.0.0.1");
}

#[test]
fn defaulting_is_idempotent() {
    let once =
        defaulted("Pod", json!({"spec": {"containers": [{"name": "c", "image": "nginx"}], "volumes": [{}]}}));
    assert_eq!(defaulted("Pod", once.clone()), once);
}
