//! Rows of recorded objects, and of states that only controllers create.

use serde_json::{Value, json};

use super::*;
use crate::facts::resources;

/// 2024-01-01T01:00:00Z, one hour after the creation of the objects in these tests.
const NOW: i64 = 1_704_070_800;
const CREATED: &str = "2024-01-01T00:00:00Z";

/// The cells of an object named `o` that was created an hour ago.
fn row(api_version: &str, kind: &str, parts: Value) -> Value {
    let mut object = parts;
    object.set_at("apiVersion", api_version);
    object.set_at("kind", kind);
    object.default_at("metadata.name", "o");
    object.default_at("metadata.creationTimestamp", CREATED);
    let gvk = Gvk::of(&object);
    let found = cells(gvk, &object, NOW);
    if let Some(paths) = cell_paths(gvk) {
        let paths: Vec<Vec<&str>> = paths.iter().map(|path| path.split('.').collect()).collect();
        let part = only(&object, &paths.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert_eq!(cells(gvk, &part, NOW), found, "{kind}: cell_paths lacks a path");
        assert_eq!(row_conditions(gvk, &part), row_conditions(gvk, &object), "{kind}");
    }
    Value::Array(found)
}

/// The fields at these paths.
fn only(value: &Value, paths: &[&[&str]]) -> Value {
    match value {
        _ if paths.iter().any(|path| path.is_empty()) => value.clone(),
        Value::Object(fields) => {
            let kept = fields.iter().filter_map(|(name, value)| {
                let below: Vec<&[&str]> =
                    paths.iter().filter(|path| path[0] == name).map(|path| &path[1..]).collect();
                (!below.is_empty()).then(|| (name.clone(), only(value, &below)))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| only(item, paths)).collect()),
        scalar => scalar.clone(),
    }
}

/// READY, STATUS and RESTARTS of a pod with one container and one init container.
fn pod(status: &Value) -> [String; 3] {
    pod_with(json!({"status": status}))
}

fn pod_with(parts: Value) -> [String; 3] {
    let mut parts = parts;
    parts.default_at("spec", json!({"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}));
    let cells = row("v1", "Pod", parts);
    [1, 2, 3].map(|at| cells[at].as_str().unwrap().to_owned())
}

#[test]
fn every_kind_with_columns_has_a_cell_for_each() {
    for resource in resources().iter().filter(|resource| resource.verbs.contains(&"list")) {
        let gvk = Gvk { group: resource.group, version: resource.version, kind: resource.kind };
        let cells = cells(gvk, &json!({}), NOW);
        let columns = column_definitions(resource.group, resource.version, resource.plural);
        // Upstream has a cell for the age without a column.
        let surplus = usize::from(resource.kind == "IPAddress");
        assert_eq!(cells.len(), columns.len() + surplus, "{}", resource.plural);
        for (cell, column) in cells.iter().zip(&columns) {
            let is_expected = match column.str_at("type") {
                "integer" => cell.is_i64() || cell.is_u64(),
                "date" => cell.is_string(),
                // SUSPEND of a CronJob is a string.
                "boolean" => cell.is_boolean() || resource.kind == "CronJob",
                _ => cell.is_string() || cell.is_number() || cell.is_boolean(),
            };
            assert!(is_expected, "{}: {} is {cell}", resource.plural, column.str_at("name"));
        }
    }
}

#[test]
fn kinds_without_columns_show_their_creation_time() {
    assert_eq!(row("rbac.authorization.k8s.io/v1", "Role", json!({})), json!(["o", CREATED]));
    let gvk = Gvk { group: "", version: "v1", kind: "LimitRange" };
    assert_eq!(cells(gvk, &json!({}), NOW), [json!(""), json!("0001-01-01T00:00:00Z")]);
    let names: Vec<Value> =
        column_definitions("x", "v1", "none").iter().map(|c| c.at("name").clone()).collect();
    assert_eq!(names, ["Name", "Created At"]);
}

#[test]
fn a_running_pod_shows_its_node_and_ip() {
    let cells = row(
        "v1",
        "Pod",
        json!({
            "spec": {"containers": [{}, {}], "nodeName": "n", "readinessGates": [{"conditionType": "g"}, {"conditionType": "h"}]},
            "status": {
                "phase": "Running",
                "podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}],
                "conditions": [{"type": "g", "status": "True"}],
                "containerStatuses": [
                    {"ready": true, "restartCount": 2, "state": {"running": {}},
                     "lastState": {"terminated": {"finishedAt": "2024-01-01T00:55:00Z"}}},
                    {"ready": false, "restartCount": 1, "state": {"running": {}}},
                ],
            },
        }),
    );
    let expected = json!(["o", "1/2", "Running", "3 (5m ago)", "60m", "10.0.0.1", "n", "<none>", "1/2"]);
    assert_eq!(cells, expected);
}

#[test]
fn a_waiting_pod_shows_the_reason() {
    let waiting = json!({"phase": "Pending", "containerStatuses": [
        {"restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
    ]});
    assert_eq!(pod(&waiting), ["0/1", "CrashLoopBackOff", "7"]);
    let gated =
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]});
    assert_eq!(pod(&gated), ["0/1", "SchedulingGated", "0"]);
    assert_eq!(pod(&json!({"phase": "Failed", "reason": "Evicted"})), ["0/1", "Evicted", "0"]);
}

#[test]
fn a_terminated_pod_shows_the_reason() {
    let ended = |terminated: Value| {
        let [_, status, _] = pod(&json!({"containerStatuses": [{"state": {"terminated": terminated}}]}));
        status
    };
    assert_eq!(ended(json!({"reason": "OOMKilled", "exitCode": 137})), "OOMKilled");
    assert_eq!(ended(json!({"exitCode": 3})), "ExitCode:3");
    assert_eq!(ended(json!({"exitCode": 137, "signal": 9})), "Signal:9");
}

#[test]
fn a_pod_with_a_completed_and_a_running_container_is_running() {
    let half_done = |ready: &str| {
        let [_, status, _] = pod(&json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [
                {"state": {"terminated": {"reason": "Completed"}}},
                {"ready": true, "state": {"running": {}}},
            ],
        }));
        status
    };
    assert_eq!(half_done("True"), "Running");
    assert_eq!(half_done("False"), "NotReady");
}

#[test]
fn an_initializing_pod_shows_its_progress() {
    let init = |state: Value| {
        let [_, status, restarts] = pod(&json!({
            "phase": "Pending",
            "initContainerStatuses": [{"name": "i", "restartCount": 4, "state": state}],
            "containerStatuses": [{"name": "c", "restartCount": 9, "state": {"waiting": {"reason": "PodInitializing"}}}],
        }));
        [status, restarts]
    };
    assert_eq!(init(json!({"running": {}})), ["Init:0/1", "4"]);
    assert_eq!(init(json!({"waiting": {"reason": "PodInitializing"}})), ["Init:0/1", "4"]);
    assert_eq!(init(json!({"waiting": {"reason": "ImagePullBackOff"}})), ["Init:ImagePullBackOff", "4"]);
    assert_eq!(init(json!({"terminated": {"exitCode": 2}})), ["Init:ExitCode:2", "4"]);
    assert_eq!(init(json!({"terminated": {"exitCode": 2, "reason": "Error"}})), ["Init:Error", "4"]);
    assert_eq!(init(json!({"terminated": {"exitCode": 0}})), ["PodInitializing", "9"]);
}

#[test]
fn sidecars_count_as_containers() {
    let cells = pod_with(json!({
        "spec": {"initContainers": [{"name": "s", "restartPolicy": "Always"}], "containers": [{"name": "c"}]},
        "status": {
            "phase": "Running",
            "initContainerStatuses": [{"name": "s", "started": true, "ready": true, "restartCount": 2}],
            "containerStatuses": [{"name": "c", "ready": true, "restartCount": 1, "state": {"running": {}}}],
        },
    }));
    assert_eq!(cells, ["2/2", "Running", "3"]);
}

#[test]
fn a_deleted_pod_is_terminating_unless_it_has_completed() {
    let deleted = |status: Value| {
        let [_, status, _] = pod_with(json!({"metadata": {"deletionTimestamp": CREATED}, "status": status}));
        status
    };
    assert_eq!(deleted(json!({"phase": "Running"})), "Terminating");
    assert_eq!(deleted(json!({"phase": "Succeeded"})), "Succeeded");
    assert_eq!(deleted(json!({"phase": "Running", "reason": "NodeLost"})), "Unknown");
}

#[test]
fn rows_of_completed_pods_have_a_condition() {
    let pod = Gvk { group: "", version: "v1", kind: "Pod" };
    let conditions = row_conditions(pod, &json!({"status": {"phase": "Failed"}})).unwrap();
    assert_eq!(
        conditions,
        json!([{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}])
    );
    assert!(row_conditions(pod, &json!({"status": {"phase": "Running"}})).is_none());
    assert!(
        row_conditions(Gvk { kind: "Namespace", ..pod }, &json!({"status": {"phase": "Failed"}})).is_none()
    );
}

#[test]
fn workloads_show_replicas_containers_and_selectors() {
    let spec = json!({
        "replicas": 2,
        "selector": {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "b", "operator": "In", "values": ["y", "x"]}]},
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}], "nodeSelector": {"a": "b"}}},
    });
    let status = json!({"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1});
    let parts = json!({"spec": spec, "status": status});
    assert_eq!(
        row("apps/v1", "Deployment", parts.clone()),
        json!(["o", "1/2", 2, 1, "60m", "c,d", "i,j", "app=a,b in (x,y)"])
    );
    assert_eq!(
        row("apps/v1", "ReplicaSet", parts.clone()),
        json!(["o", 2, 2, 1, "60m", "c,d", "i,j", "app=a,b in (x,y)"])
    );
    assert_eq!(row("apps/v1", "StatefulSet", parts.clone()), json!(["o", "1/2", "60m", "c,d", "i,j"]));
    assert_eq!(
        row("apps/v1", "DaemonSet", parts),
        json!(["o", 0, 0, 0, 0, 0, "a=b", "60m", "c,d", "i,j", "app=a,b in (x,y)"])
    );
    let rc = row("v1", "ReplicationController", json!({"spec": {"replicas": 1, "selector": {"app": "a"}}}));
    assert_eq!(rc, json!(["o", 1, 0, 0, "60m", "", "", "app=a"]));
}

#[test]
fn a_controller_revision_shows_its_controller() {
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": true});
    let parts = json!({"metadata": {"ownerReferences": [owner]}, "revision": 3});
    assert_eq!(row("apps/v1", "ControllerRevision", parts), json!(["o", "statefulset.apps/s", 3, "60m"]));
}

#[test]
fn jobs_show_their_status_and_completions() {
    let job = |spec: Value, status: Value| {
        let cells = row("batch/v1", "Job", json!({"spec": spec, "status": status}));
        [1, 2, 3].map(|at| cells[at].as_str().unwrap().to_owned())
    };
    assert_eq!(job(json!({"completions": 3}), json!({})), ["Running", "0/3", ""]);
    let started = json!({"startTime": CREATED, "succeeded": 1});
    assert_eq!(job(json!({"parallelism": 2}), started.clone()), ["Running", "1/1 of 2", "60m"]);
    assert_eq!(job(json!({"parallelism": 1}), started), ["Running", "1/1", "60m"]);
    let complete = json!({
        "startTime": CREATED, "completionTime": "2024-01-01T00:00:30Z", "succeeded": 1,
        "conditions": [{"type": "Suspended", "status": "False"}, {"type": "Complete", "status": "True"}],
    });
    assert_eq!(job(json!({"completions": 1}), complete), ["Complete", "1/1", "30s"]);
}

#[test]
fn cron_jobs_show_their_schedule() {
    let parts = json!({
        "spec": {"schedule": "* * * * *", "suspend": false, "timeZone": "Etc/UTC"},
        "status": {"active": [{}], "lastScheduleTime": "2024-01-01T00:59:00Z"},
    });
    assert_eq!(
        row("batch/v1", "CronJob", parts),
        json!(["o", "* * * * *", "Etc/UTC", "False", 1, "60s", "60m", "", "", "<none>"])
    );
}

#[test]
fn autoscalers_show_current_and_target_metrics() {
    let targets = |metrics: Value, current: Value| {
        let parts =
            json!({"spec": {"metrics": metrics, "maxReplicas": 3}, "status": {"currentMetrics": current}});
        row("autoscaling/v2", "HorizontalPodAutoscaler", parts)[2].as_str().unwrap().to_owned()
    };
    assert_eq!(targets(json!([]), json!([])), "<none>");
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}});
    let cpu_now =
        json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}});
    assert_eq!(targets(json!([cpu]), json!([])), "cpu: <unknown>/50%");
    assert_eq!(targets(json!([cpu]), json!([cpu_now])), "cpu: 7%/50%");
    let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "1k"}}});
    let pods_now = json!({"type": "Pods", "pods": {"current": {"averageValue": "5"}}});
    assert_eq!(targets(json!([pods, cpu]), json!([pods_now, cpu_now])), "5/1k, cpu: 7%/50%");
    assert_eq!(targets(json!([pods, cpu, cpu]), json!([])), "<unknown>/1k, cpu: <unknown>/50% + 1 more...");
    let external = json!({"type": "External", "external": {"target": {"averageValue": "2"}}});
    assert_eq!(targets(json!([external]), json!([])), "<unknown>/2 (avg)");
    let object = json!({"type": "Object", "object": {"target": {"value": "2"}}});
    let object_now = json!({"type": "Object", "object": {"current": {"value": "1"}}});
    assert_eq!(targets(json!([object]), json!([object_now])), "1/2");
    assert_eq!(targets(json!([{"type": "New"}]), json!([])), "<unknown type>");
}

#[test]
fn an_autoscaler_in_v1_has_the_same_row() {
    let spec = json!({
        "scaleTargetRef": {"kind": "Deployment", "name": "d"},
        "minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
    });
    assert_eq!(
        row(
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            json!({"spec": spec, "status": {"currentReplicas": 2}})
        ),
        json!(["o", "Deployment/d", "cpu: <unknown>/50%", "1", 3, 2, "60m"])
    );
}

#[test]
fn services_show_their_addresses_and_ports() {
    let ports = json!([{"port": 80, "nodePort": 30001, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]);
    let service = |ty: &str, spec: Value, ingress: Value| {
        let mut parts = json!({"spec": spec, "status": {"loadBalancer": {"ingress": ingress}}});
        parts.set_at("spec.type", ty);
        row("v1", "Service", parts)
    };
    assert_eq!(
        service(
            "LoadBalancer",
            json!({"clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"a": "b"}}),
            json!([])
        ),
        json!(["o", "LoadBalancer", "10.0.0.1", "<pending>", "80:30001/TCP,53/UDP", "60m", "a=b"])
    );
    let external = |ty: &str, spec: Value, ingress: Value| service(ty, spec, ingress)[3].clone();
    let ingress = json!([{"ip": "192.0.2.9"}, {"hostname": "h"}, {"ip": "192.0.2.1"}]);
    assert_eq!(external("LoadBalancer", json!({}), ingress.clone()), "192.0.2.1,192.0.2.9,h");
    assert_eq!(
        external("LoadBalancer", json!({"externalIPs": ["1.1.1.1"]}), ingress),
        "192.0.2.1,192.0.2.9,h,1.1.1.1"
    );
    assert_eq!(
        external("ClusterIP", json!({"externalIPs": ["1.1.1.1", "2.2.2.2"]}), json!([])),
        "1.1.1.1,2.2.2.2"
    );
    assert_eq!(external("ExternalName", json!({"externalName": "example.org"}), json!([])), "example.org");
}

#[test]
fn long_lists_of_endpoints_are_truncated() {
    let subset = json!({"addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}], "ports": [{"port": 80}, {"port": 443}]});
    assert_eq!(
        row("v1", "Endpoints", json!({"subsets": [subset]})),
        json!(["o", "192.0.2.1:80,[2001:db8::1]:80,192.0.2.1:443 + 1 more...", "60m"])
    );
    assert_eq!(row("v1", "Endpoints", json!({})), json!(["o", "<none>", "60m"]));
    let slice = json!({
        "addressType": "IPv4",
        "ports": [{"port": 80}, {"name": "all"}, {}],
        "endpoints": [{"addresses": ["a", "b"]}, {"addresses": ["c", "d", "e"]}],
    });
    assert_eq!(
        row("discovery.k8s.io/v1", "EndpointSlice", slice),
        json!(["o", "IPv4", "80,all,*", "a,b,c + 2 more...", "60m"])
    );
}

#[test]
fn an_ingress_shows_its_first_hosts() {
    let hosts = |hosts: &[&str]| {
        let rules: Vec<Value> = hosts.iter().map(|host| json!({"host": host})).collect();
        row("networking.k8s.io/v1", "Ingress", json!({"spec": {"rules": rules}}))[2].clone()
    };
    assert_eq!(hosts(&[]), "*");
    assert_eq!(hosts(&["a", "", "b"]), "a,b");
    assert_eq!(hosts(&["a", "b", "c"]), "a,b,c");
    assert_eq!(hosts(&["a", "b", "c", ""]), "a,b,c + 1 more...");
}

#[test]
fn network_kinds_show_their_references() {
    let parameters =
        json!({"spec": {"controller": "c", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}}});
    assert_eq!(row("networking.k8s.io/v1", "IngressClass", parameters), json!(["o", "c", "K.g/n", "60m"]));
    let parent =
        json!({"spec": {"parentRef": {"group": "g", "resource": "r", "namespace": "n", "name": "p"}}});
    assert_eq!(row("networking.k8s.io/v1", "IPAddress", parent), json!(["o", "r.g/n/p", "60m"]));
    let cidrs = json!({"spec": {"cidrs": ["10.0.0.0/24", "fd00::/64"]}});
    assert_eq!(
        row("networking.k8s.io/v1", "ServiceCIDR", cidrs),
        json!(["o", "10.0.0.0/24,fd00::/64", "60m"])
    );
}

#[test]
fn a_node_shows_its_status_roles_and_system() {
    let parts = json!({
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "x", "node-role.kubernetes.io/": ""}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.2.3", "osImage": "Linux", "kernelVersion": "5", "architecture": "amd64"},
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
        },
    });
    assert_eq!(
        row("v1", "Node", parts),
        json!([
            "o",
            "Ready,SchedulingDisabled",
            "worker,x",
            "60m",
            "v1.2.3",
            "192.0.2.1",
            "<none>",
            "Linux",
            "5 (amd64)",
            "<unknown>"
        ])
    );
    assert_eq!(
        row("v1", "Node", json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}))[1],
        "NotReady"
    );
    assert_eq!(row("v1", "Node", json!({}))[1], "Unknown");
}

#[test]
fn volumes_show_their_claim_and_class() {
    let volume = json!({
        "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany", "ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "new",
            "claimRef": {"namespace": "n", "name": "c"}, "volumeMode": "Filesystem",
        },
        "status": {"phase": "Bound"},
    });
    assert_eq!(
        row("v1", "PersistentVolume", volume),
        json!(["o", "1Gi", "RWO,ROX", "Retain", "Bound", "n/c", "old", "<unset>", "", "60m", "Filesystem"])
    );
    let claim = json!({
        "metadata": {"deletionTimestamp": CREATED},
        "spec": {"volumeName": "v", "storageClassName": "s"},
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOncePod"]},
    });
    assert_eq!(
        row("v1", "PersistentVolumeClaim", claim),
        json!(["o", "Terminating", "v", "0", "RWOP", "s", "<unset>", "60m", "<unset>"])
    );
    let class = json!({"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"});
    assert_eq!(
        row("storage.k8s.io/v1", "StorageClass", class),
        json!(["o (default)", "p", "Delete", "Immediate", false, "60m"])
    );
}

#[test]
fn an_event_shows_its_age_and_object() {
    let event = json!({
        "firstTimestamp": CREATED, "lastTimestamp": "2024-01-01T00:59:50Z", "count": 3, "type": "Normal", "reason": "R",
        "message": " M\n", "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "f"},
        "source": {"component": "c", "host": "h"},
    });
    assert_eq!(
        row("v1", "Event", event),
        json!(["10s", "Normal", "R", "pod/p", "f", "c, h", "M", "60m", 3, "o"])
    );
    let series = json!({
        "eventTime": "2024-01-01T00:00:00.500000Z", "type": "Normal", "reason": "R", "note": "N",
        "regarding": {"kind": "Node"}, "reportingController": "c", "reportingInstance": "i",
        "series": {"count": 5, "lastObservedTime": "2024-01-01T00:59:00.000000Z"},
    });
    assert_eq!(
        row("events.k8s.io/v1", "Event", series),
        json!(["60s", "Normal", "R", "node", "", "c, i", "N", "60m", 5, "o"])
    );
    assert_eq!(row("v1", "Event", json!({}))[0], "<unknown>");
    assert_eq!(row("v1", "Event", json!({}))[8], 1);
}

#[test]
fn a_quota_shows_its_usage() {
    let status = json!({"hard": {"pods": "5", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "3"}});
    assert_eq!(
        row("v1", "ResourceQuota", json!({"status": status})),
        json!(["o", "cpu: 0/1, pods: 3/5", "limits.cpu: 0/2", "60m"])
    );
}

#[test]
fn bindings_show_their_subjects() {
    let parts = json!({
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "User", "name": "v"}, {"kind": "ServiceAccount", "name": "s"}],
    });
    assert_eq!(
        row("rbac.authorization.k8s.io/v1", "RoleBinding", parts),
        json!(["o", "Role/r", "60m", "u, v", "", "/s"])
    );
}

#[test]
fn certificate_signing_requests_show_their_conditions() {
    let parts = json!({
        "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
        "status": {"conditions": [{"type": "Approved"}], "certificate": "eA=="},
    });
    assert_eq!(
        row("certificates.k8s.io/v1", "CertificateSigningRequest", parts),
        json!(["o", "60m", "s", "u", "60m", "Approved,Issued"])
    );
}

#[test]
fn admission_policies_show_their_parameters() {
    let group = "admissionregistration.k8s.io/v1";
    let policy =
        json!({"spec": {"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}});
    assert_eq!(row(group, "ValidatingAdmissionPolicy", policy), json!(["o", 1, "v1/ConfigMap", "60m"]));
    let binding = |params: Value| {
        let parts = json!({"spec": {"policyName": "p", "paramRef": params}});
        row(group, "ValidatingAdmissionPolicyBinding", parts)[2].clone()
    };
    assert_eq!(binding(json!(null)), "<unset>");
    assert_eq!(binding(json!({"name": "n"})), "*/n");
    assert_eq!(binding(json!({"name": "n", "namespace": "s"})), "s/n");
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}]});
    assert_eq!(
        binding(json!({"selector": selector})),
        "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{\
         LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
    );
}

#[test]
fn flow_schemas_are_sorted_by_matching_precedence() {
    let flow = |name: &str, precedence: i64| json!({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}});
    let (a, b, c) = (flow("a", 9), flow("b", 1), flow("c", 9));
    let mut rows = [&c, &a, &b];
    sort_rows(Gvk { group: "flowcontrol.apiserver.k8s.io", version: "v1", kind: "FlowSchema" }, &mut rows);
    assert_eq!(rows, [&b, &a, &c]);
    sort_rows(Gvk { group: "", version: "v1", kind: "Pod" }, &mut rows);
    assert_eq!(rows, [&b, &a, &c]);
}

#[test]
fn priority_levels_show_numbers_if_set() {
    let parts = json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}});
    assert_eq!(
        row("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", parts),
        json!(["o", "Limited", 5, "<none>", "<none>", "<none>", "60m"])
    );
}

#[test]
fn an_api_service_shows_why_it_is_unavailable() {
    let service = |condition: Value| {
        let parts = json!({"spec": {"service": {"namespace": "n", "name": "s"}}, "status": {"conditions": [condition]}});
        row("apiregistration.k8s.io/v1", "APIService", parts)
    };
    assert_eq!(
        service(json!({"type": "Available", "status": "False", "reason": "MissingEndpoints"})),
        json!(["o", "n/s", "False (MissingEndpoints)", "60m"])
    );
    assert_eq!(service(json!({"type": "Available", "status": "True", "reason": "Passed"}))[2], "True");
    assert_eq!(
        row("apiregistration.k8s.io/v1", "APIService", json!({})),
        json!(["o", "Local", "Unknown", "60m"])
    );
}

#[test]
fn a_scale_has_its_own_columns() {
    let parts = json!({"spec": {"replicas": 8}, "status": {"replicas": 4}});
    assert_eq!(row("autoscaling/v1", "Scale", parts), json!(["o", 8, 4, "60m"]));
    let columns = scale_column_definitions();
    let names: Vec<&str> = columns.iter().map(|column| column.str_at("name")).collect();
    assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
    assert!(columns.iter().all(|column| column.str_at("format").is_empty()));
}
