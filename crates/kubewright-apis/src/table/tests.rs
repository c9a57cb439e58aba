//! Tests of tables that concern several kinds.

use serde_json::{Value, json};

use super::*;
use crate::facts::resources;
use crate::testing::{CREATED, NOW, row};

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
