//! Compares strategies with recordings of kube-apiserver v1.36.

use serde_json::{Value, json};

use super::pod_template_warnings;
use crate::strategy::{prepare_create, prepare_subresource, prepare_update, warnings};
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::gvk::Gvk;

fn gvk(kind: &str) -> Gvk<'_> {
    Gvk { group: "", version: "v1", kind }
}

fn pod(spec: &Value) -> Value {
    json!({"metadata": {"name": "p", "generation": 1}, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}})
}

#[test]
fn the_status_of_a_new_pod_is_reset_to_pending() {
    let mut object = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running"}});
    prepare_create(gvk("Pod"), &mut object);
    assert_eq!(object["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    assert_eq!(object["metadata"]["generation"], 1);
}

#[test]
fn a_pod_with_scheduling_gates_gets_a_condition() {
    let mut object = json!({"spec": {"schedulingGates": [{"name": "a"}]}});
    prepare_create(gvk("Pod"), &mut object);
    assert_eq!(
        object["status"]["conditions"],
        json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }])
    );
}

#[test]
fn label_keys_become_requirements() {
    let constraint = json!({"labelSelector": {}, "matchLabelKeys": ["app", "absent"]});
    let mut object =
        json!({"metadata": {"labels": {"app": "a"}}, "spec": {"topologySpreadConstraints": [constraint]}});
    prepare_create(gvk("Pod"), &mut object);
    assert_eq!(
        object["spec"]["topologySpreadConstraints"][0]["labelSelector"],
        json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]})
    );
}

#[test]
fn an_app_armor_annotation_becomes_a_field_and_a_warning() {
    let key = "container.apparmor.security.beta.kubernetes.io/c";
    let mut object = json!({"metadata": {"name": "p", "annotations": {key: "unconfined"}}, "spec": {"containers": [{"name": "c"}]}});
    prepare_create(gvk("Pod"), &mut object);
    assert_eq!(
        object["spec"]["containers"][0]["securityContext"],
        json!({"appArmorProfile": {"type": "Unconfined"}})
    );
    let expected = format!(
        "metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
    );
    assert_eq!(warnings(gvk("Pod"), &object, None), [expected]);
}

#[test]
fn an_update_keeps_the_status_and_increments_the_generation() {
    let old = pod(&json!({"nodeName": ""}));
    let mut new = old.clone();
    new["status"] = json!({});
    prepare_update(gvk("Pod"), &mut new, &old);
    assert_eq!(new, old);
    new["spec"]["activeDeadlineSeconds"] = json!(3);
    prepare_update(gvk("Pod"), &mut new, &old);
    assert_eq!(new["metadata"]["generation"], 2);
}

#[test]
fn a_status_update_keeps_everything_but_labels() {
    let old = pod(&json!({"nodeName": "n"}));
    let mut new = json!({
        "metadata": {"name": "p", "labels": {"a": "b"}, "ownerReferences": [{}]},
        "spec": {}, "status": {"phase": "Failed"},
    });
    prepare_subresource(gvk("Pod"), "status", &mut new, &old);
    assert_eq!(
        new,
        json!({
            "metadata": {"name": "p", "generation": 1, "labels": {"a": "b"}}, "spec": {"nodeName": "n"},
            "status": {"phase": "Failed", "qosClass": "BestEffort"},
        })
    );
}

#[test]
fn a_condition_keeps_its_observed_generation() {
    let mut old = pod(&json!({}));
    old["status"]["conditions"] = json!([{"type": "Ready", "observedGeneration": 3}]);
    let mut new = old.clone();
    new["status"]["conditions"] = json!([{"type": "Ready"}, {"type": "Ready"}]);
    prepare_subresource(gvk("Pod"), "status", &mut new, &old);
    assert_eq!(
        new["status"]["conditions"],
        json!([{"type": "Ready", "observedGeneration": 3}, {"type": "Ready"}])
    );
}

#[test]
fn the_ephemeralcontainers_subresource_changes_nothing_else() {
    let old = pod(&json!({"nodeName": "n"}));
    let mut new = old.clone();
    new["spec"] = json!({"nodeName": "other", "ephemeralContainers": [{"name": "e"}]});
    new["metadata"]["labels"] = json!({"a": "b"});
    prepare_subresource(gvk("Pod"), "ephemeralcontainers", &mut new, &old);
    assert_eq!(new["spec"], json!({"nodeName": "n", "ephemeralContainers": [{"name": "e"}]}));
    assert_eq!(new["metadata"], json!({"name": "p", "generation": 2}));
}

#[test]
fn the_resize_subresource_only_changes_resources() {
    let old =
        pod(&json!({"containers": [{"name": "c", "image": "a", "resources": {"limits": {"cpu": "1"}}}]}));
    let mut new = old.clone();
    new["spec"]["containers"][0] = json!({"name": "c", "image": "b", "resources": {"limits": {"cpu": "2"}}});
    prepare_subresource(gvk("Pod"), "resize", &mut new, &old);
    assert_eq!(
        new["spec"]["containers"],
        json!([{"name": "c", "image": "a", "resources": {"limits": {"cpu": "2"}}}])
    );
}

#[test]
fn pod_templates_cause_warnings() {
    let template = json!({
        "metadata": {"annotations": {"security.alpha.kubernetes.io/sysctls": ""}},
        "spec": {
            "nodeSelector": {"beta.kubernetes.io/os": "linux"},
            "hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}],
            "terminationGracePeriodSeconds": -1,
            "containers": [
                {
                    "name": "a", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)2"}],
                    "resources": {"limits": {"memory": "1500m"}},
                    "ports": [{"name": "x", "containerPort": 80, "protocol": "TCP"}],
                },
                {"name": "b", "ports": [{"name": "x", "containerPort": 80, "protocol": "TCP", "hostIP": "10.0.0.1"}]},
            ],
            "volumes": [
                {"name": "g", "gitRepo": {}},
                {"name": "c", "configMap": {"name": "m", "items": [{"path": "a"}, {"path": "a/b"}]}},
                {"name": "p", "projected": {"sources": [
                    {"secret": {"name": "s", "items": [{"path": "t"}]}}, {"serviceAccountToken": {"path": "t"}}, {},
                ]}},
            ],
        },
    });
    let expected = [
        "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "spec.template.metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the \
         \"sysctls\" field instead",
        "spec.template.spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
        "volume \"c\" (ConfigMap \"m\"): overlapping paths: \"a/b\" with \"a\"",
        "volume \"p\" (Projected) has no sources provided",
        "volume \"p\" (Projected): overlapping paths: \"t\" (ServiceAccountToken) with \"t\" (Secret \"s\")",
        "spec.template.spec.hostAliases[1].ip: duplicate ip \"1.1.1.1\"",
        "spec.template.spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is invalid, must be \
         an integer",
        "spec.template.spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
        "spec.template.spec.containers[1].ports[0]: hostIP set without hostPort: {Name:x HostPort:0 ContainerPort:80 \
         Protocol:TCP HostIP:10.0.0.1}",
        "spec.template.spec.containers[1].ports[0]: overlapping port definition with spec.template.spec.containers[0].ports[0]",
        "spec.template.spec.containers[1].ports[0]: duplicate port name \"x\" with \
         spec.template.spec.containers[0].ports[0], services and probes that select ports by name will use \
         spec.template.spec.containers[0].ports[0]",
        "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be \
         treated as 1",
    ];
    assert_eq!(pod_template_warnings(&template, &Path::new("spec").child("template")), expected);
}

#[test]
fn a_name_that_is_not_a_dns_label_causes_a_warning() {
    let warnings = warnings(gvk("Pod"), &json!({"metadata": {"name": "a.b"}}), None);
    let expected = "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS \
        label is recommended: [must not contain dots]";
    assert_eq!(warnings, [expected]);
}
