//! Admission plugins: defaults, rejections, and enabling and disabling them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_apiserver::{AdmissionPlugins, ApiServer, Options};
use serde_json::{Value, json};

use crate::exchange::{apply, send, send_with};
use crate::world::{options, server};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(spec: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}

async fn label_default(server: &ApiServer, labels: Value) -> crate::exchange::Answer {
    send(server, "PATCH", "/api/v1/namespaces/default", &json!({"metadata": {"labels": labels}})).await
}

#[tokio::test]
async fn pod_security_rejects_pods_that_violate_the_namespace_level() {
    let server = server();
    send(&server, "POST", PODS, &pod(&json!({"hostNetwork": true}))).await;
    let labelled = label_default(&server, json!({"pod-security.kubernetes.io/enforce": "baseline"})).await;
    assert_eq!(
        labelled.warnings(),
        [
            "299 - \"existing pods in namespace \\\"default\\\" violate the new PodSecurity enforce level \\\"baseline:latest\\\"\"",
            "299 - \"p: host namespaces\"",
        ]
    );
    let bogus = label_default(&server, json!({"pod-security.kubernetes.io/warn": "none"})).await;
    assert_eq!(bogus.status, 422, "{}", bogus.text);
    let mut privileged = pod(&json!({}));
    privileged["metadata"]["name"] = "q".into();
    privileged["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    let refused = send(&server, "POST", PODS, &privileged).await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.message(),
        "pods \"q\" is forbidden: violates PodSecurity \"baseline:latest\": privileged (container \"c\" must not set \
         securityContext.privileged=true)"
    );
    // A level with an older version uses the checks of that version.
    label_default(
        &server,
        json!({
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/enforce-version": "v1.7",
        }),
    )
    .await;
    let refused = send(&server, "POST", PODS, &privileged).await;
    assert!(refused.message().contains("restricted:v1.7"), "{}", refused.message());
    assert!(!refused.message().contains("allowPrivilegeEscalation"), "{}", refused.message());
}

#[tokio::test]
async fn pod_security_warns_about_pod_templates_and_admits_them() {
    let server = server();
    label_default(&server, json!({"pod-security.kubernetes.io/warn": "restricted"})).await;
    let job = json!({
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    });
    let created = send(&server, "POST", "/apis/batch/v1/namespaces/default/jobs", &job).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let warnings = created.warnings();
    assert!(
        warnings[0].contains("would violate PodSecurity \\\"restricted:latest\\\": allowPrivilegeEscalation")
    );
}

#[tokio::test]
async fn a_limit_range_sets_defaults_and_enforces_its_bounds() {
    let server = server();
    let range = json!({
        "metadata": {"name": "r"},
        "spec": {"limits": [{
            "type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"},
            "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "6"},
        }]},
    });
    let made = send(&server, "POST", "/api/v1/namespaces/default/limitranges", &range).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let created = send(&server, "POST", PODS, &pod(&json!({}))).await;
    assert_eq!(
        created.body["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}})
    );
    assert_eq!(
        created.body["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let mut large = pod(&json!({}));
    large["metadata"]["name"] = "q".into();
    large["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": "2"}, "requests": {"cpu": "100m"}});
    let refused = send(&server, "POST", PODS, &large).await;
    assert_eq!(
        refused.message(),
        "pods \"q\" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, cpu max limit to request ratio \
         per Container is 6, but provided ratio is 20.000000]"
    );
}

#[tokio::test]
async fn a_pod_gets_its_service_account_if_the_plugin_is_enabled() {
    let off = server();
    let created = send(&off, "POST", PODS, &pod(&json!({}))).await;
    assert_eq!(created.status, 201, "off by default: {}", created.text);

    let admission =
        AdmissionPlugins { enable: vec!["ServiceAccount".to_owned()], ..AdmissionPlugins::default() };
    let server = ApiServer::new(Options { admission, ..options() });
    let refused = send(&server, "POST", PODS, &pod(&json!({}))).await;
    assert_eq!(
        refused.message(),
        "pods \"p\" is forbidden: error looking up service account default/default: serviceaccount \"default\" not found"
    );
    let account = json!({"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "pull"}]});
    send(&server, "POST", "/api/v1/namespaces/default/serviceaccounts", &account).await;
    let created = send(&server, "POST", PODS, &pod(&json!({}))).await;
    let spec = &created.body["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "pull"}]));
    let volume = spec["volumes"][0]["name"].as_str().unwrap();
    assert!(volume.starts_with("kube-api-access-"), "{volume}");
    assert_eq!(
        spec["containers"][0]["volumeMounts"],
        json!([{"name": volume, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
    );
}

#[tokio::test]
async fn a_plugin_can_be_disabled() {
    let admission =
        AdmissionPlugins { disable: vec!["NamespaceLifecycle".to_owned()], ..AdmissionPlugins::default() };
    let server = ApiServer::new(Options { admission, ..options() });
    let map = json!({"metadata": {"name": "a"}});
    assert_eq!(send(&server, "POST", "/api/v1/namespaces/none/configmaps", &map).await.status, 201);
    let on = crate::world::server();
    assert_eq!(send(&on, "POST", "/api/v1/namespaces/none/configmaps", &map).await.status, 404);
}

#[tokio::test]
async fn a_runtime_class_sets_overhead_and_scheduling() {
    let server = server();
    let class = json!({
        "metadata": {"name": "kata"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
    });
    send(&server, "POST", "/apis/node.k8s.io/v1/runtimeclasses", &class).await;
    let created = send(&server, "POST", PODS, &pod(&json!({"runtimeClassName": "kata"}))).await;
    assert_eq!(created.body["spec"]["overhead"], json!({"cpu": "250m"}), "{}", created.text);
    assert_eq!(created.body["spec"]["nodeSelector"], json!({"vm": "yes"}));
    let mut missing = pod(&json!({"runtimeClassName": "none"}));
    missing["metadata"]["name"] = "q".into();
    let refused = send(&server, "POST", PODS, &missing).await;
    assert_eq!(refused.message(), "pods \"q\" is forbidden: pod rejected: RuntimeClass \"none\" not found");
}

#[tokio::test]
async fn a_claim_grows_only_if_it_is_bound_and_its_class_allows_it() {
    let server = server();
    let class = json!({"metadata": {"name": "gold"}, "provisioner": "p", "allowVolumeExpansion": true});
    send(&server, "POST", "/apis/storage.k8s.io/v1/storageclasses", &class).await;
    let claim = json!({
        "metadata": {"name": "c"},
        "spec": {"storageClassName": "gold", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let path = "/api/v1/namespaces/default/persistentvolumeclaims";
    send(&server, "POST", path, &claim).await;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let one = format!("{path}/c");
    // Validation rejects it before admission.
    assert_eq!(send(&server, "PATCH", &one, &larger).await.status, 422);
    send(&server, "PATCH", &format!("{one}/status"), &json!({"status": {"phase": "Bound"}})).await;
    assert_eq!(send(&server, "PATCH", &one, &larger).await.status, 200);
    let forbids = json!({"allowVolumeExpansion": false});
    send(&server, "PATCH", "/apis/storage.k8s.io/v1/storageclasses/gold", &forbids).await;
    let refused =
        send(&server, "PATCH", &one, &json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}})).await;
    assert_eq!(
        refused.message(),
        "persistentvolumeclaims \"c\" is forbidden: only dynamically provisioned pvc can be resized and the storageclass \
         that provisions the pvc must support resize"
    );
}

#[tokio::test]
async fn a_bound_pod_gets_the_topology_labels_of_its_node() {
    let server = server();
    let node =
        json!({"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z", "other": "x"}}});
    send(&server, "POST", "/api/v1/nodes", &node).await;
    send(&server, "POST", PODS, &pod(&json!({}))).await;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let bound = send(&server, "POST", &format!("{PODS}/p/binding"), &binding).await;
    assert_eq!(bound.status, 201, "{}", bound.text);
    let read = send(&server, "GET", &format!("{PODS}/p"), &Value::Null).await;
    assert_eq!(read.body["metadata"]["labels"], json!({"topology.kubernetes.io/zone": "z"}));
}

#[tokio::test]
async fn a_binding_with_an_outdated_resource_version_is_rejected() {
    let server = server();
    send(&server, "POST", PODS, &pod(&json!({}))).await;
    let binding = |metadata: Value| json!({"metadata": metadata, "target": {"kind": "Node", "name": "n"}});
    let path = format!("{PODS}/p/binding");
    let refused = send(&server, "POST", &path, &binding(json!({"name": "p", "resourceVersion": "1"}))).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert!(refused.message().contains("Precondition failed: ResourceVersion in precondition: 1,"));
    let refused = send(&server, "POST", &path, &binding(json!({"name": "p", "uid": "other"}))).await;
    assert!(refused.message().contains("Precondition failed: UID in precondition: other,"));
}

#[tokio::test]
async fn an_eviction_of_the_older_version_is_accepted() {
    let server = server();
    send(&server, "POST", PODS, &pod(&json!({}))).await;
    let eviction = json!({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "p"}});
    let evicted = send(&server, "POST", &format!("{PODS}/p/eviction"), &eviction).await;
    assert_eq!(evicted.status, 201, "{}", evicted.text);
    let other = json!({"apiVersion": "policy/v2", "kind": "Eviction", "metadata": {"name": "p"}});
    assert_eq!(send(&server, "POST", &format!("{PODS}/p/eviction"), &other).await.status, 400);
}

/// Creates a Pod that runs on a node.
async fn run_pod(server: &ApiServer, name: &str, resources: &Value) {
    let mut pod = pod(&json!({"nodeName": "n"}));
    pod["metadata"] = json!({"name": name, "labels": {"app": "a"}});
    pod["spec"]["containers"][0]["resources"] = resources.clone();
    let created = send(server, "POST", PODS, &pod).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let running = json!({"status": {"phase": "Running"}});
    assert_eq!(send(server, "PATCH", &format!("{PODS}/{name}/status"), &running).await.status, 200);
}

#[tokio::test]
async fn a_negative_grace_period_of_a_pod_is_one_second() {
    let server = server();
    let mut pod = pod(&json!({"nodeName": "n", "terminationGracePeriodSeconds": -1}));
    pod["metadata"]["name"] = "p".into();
    assert_eq!(send(&server, "POST", PODS, &pod).await.status, 201);
    let deleted = send(&server, "DELETE", &format!("{PODS}/p"), &Value::Null).await;
    assert_eq!(deleted.body["metadata"]["deletionGracePeriodSeconds"], 1, "{}", deleted.text);
    assert_eq!(deleted.body["metadata"]["deletionTimestamp"], "2026-01-01T00:00:01Z");
}

fn eviction(options: &Value) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": options})
}

#[tokio::test]
async fn an_evicted_pod_has_the_disruption_target_condition() {
    let server = server();
    run_pod(&server, "p", &json!({})).await;
    let path = format!("{PODS}/p/eviction");
    let read = async || send(&server, "GET", &format!("{PODS}/p"), &Value::Null).await.body;
    let before = read().await;
    assert_eq!(send(&server, "POST", &path, &eviction(&json!({"dryRun": ["All"]}))).await.status, 201);
    assert_eq!(read().await, before, "a dry run changes nothing");
    let evicted = send(&server, "POST", &path, &eviction(&Value::Null)).await;
    assert_eq!(evicted.status, 201, "{}", evicted.text);
    let after = read().await;
    assert!(after["metadata"]["deletionTimestamp"].is_string(), "{after}");
    let conditions = after["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").unwrap();
    assert_eq!(
        condition,
        &json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    );
    assert_eq!(after["metadata"]["managedFields"], before["metadata"]["managedFields"]);
}

#[tokio::test]
async fn the_preconditions_of_an_eviction_apply_to_the_pod_before_its_condition_is_set() {
    let server = server();
    run_pod(&server, "p", &json!({})).await;
    let path = format!("{PODS}/p/eviction");
    let version =
        send(&server, "GET", &format!("{PODS}/p"), &Value::Null).await.body["metadata"]["resourceVersion"]
            .clone();
    let refused =
        send(&server, "POST", &path, &eviction(&json!({"preconditions": {"resourceVersion": "1"}}))).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let evicted =
        send(&server, "POST", &path, &eviction(&json!({"preconditions": {"resourceVersion": version}})))
            .await;
    assert_eq!(evicted.status, 201, "{}", evicted.text);
}

#[tokio::test]
async fn an_eviction_with_different_dry_run_options_is_rejected() {
    let server = server();
    run_pod(&server, "p", &json!({})).await;
    let path = format!("{PODS}/p/eviction?dryRun=All&dryRun=All");
    let refused = send(&server, "POST", &path, &eviction(&json!({"dryRun": ["All"]}))).await;
    assert_eq!(refused.status, 500, "{}", refused.text);
    assert_eq!(refused.message(), "Non-matching dry-run options in request and content: [All All] and [All]");
}

#[tokio::test]
async fn a_resize_is_charged_to_the_quota() {
    let server = server();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "800m"}}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    assert_eq!(send(&server, "POST", quotas, &quota).await.status, 201);
    // The quota controller does not run.
    let status = json!({"status": {"hard": {"requests.cpu": "800m"}, "used": {"requests.cpu": "0"}}});
    assert_eq!(send(&server, "PATCH", &format!("{quotas}/q/status"), &status).await.status, 200);
    run_pod(&server, "p", &json!({"requests": {"cpu": "500m"}})).await;
    let resize =
        |cpu: &str| json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}});
    let path = format!("{PODS}/p/resize");
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    let refused = send_with(&server, "PATCH", &path, &strategic, resize("900m").to_string()).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert_eq!(
        refused.message(),
        "pods \"p\" is forbidden: exceeded quota: q, requested: requests.cpu=400m, used: requests.cpu=500m, limited: \
         requests.cpu=800m"
    );
    let resized = send_with(&server, "PATCH", &path, &strategic, resize("700m").to_string()).await;
    assert_eq!(resized.status, 200, "{}", resized.text);
    let charged = send(&server, "GET", &format!("{quotas}/q"), &Value::Null).await;
    assert_eq!(charged.body["status"]["used"]["requests.cpu"], "700m");
}

#[tokio::test]
async fn a_certificate_request_gets_its_creator_from_create_and_apply() {
    let server = server();
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = rcgen::CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
    let request = STANDARD.encode(pem);
    let csr = |name: &str| {
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": {
                "request": request, "signerName": "example.com/s", "usages": ["client auth"],
                "username": "somebody-else", "groups": ["system:masters"],
            },
        })
    };
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let posted = send(&server, "POST", path, &csr("a")).await;
    let applied = apply(&server, &format!("{path}/b"), &csr("b")).await;
    for answer in [posted, applied] {
        assert_eq!(answer.status, 201, "{}", answer.text);
        assert_eq!(answer.body["spec"]["username"], "admin");
        assert_eq!(answer.body["spec"]["groups"], json!(["system:masters", "system:authenticated"]));
    }
}

#[tokio::test]
async fn a_custom_resource_with_a_built_in_kind_name_is_not_changed() {
    let server = server();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "metadata": {"name": "certificatesigningrequests.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"kind": "CertificateSigningRequest", "plural": "certificatesigningrequests"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    send(&server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "a", "annotations": {"deprecated.daemonset.template.generation": "1"}},
        "spec": {"username": "me", "finalizers": ["mine"]},
    });
    let path = "/apis/example.com/v1/certificatesigningrequests";
    let created = send(&server, "POST", path, &object).await;
    assert_eq!(created.body["spec"], object["spec"], "{}", created.text);
    // Only Namespaces have finalizers in their spec.
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    send(&server, "PATCH", &format!("{path}/a"), &hold).await;
    send(&server, "DELETE", &format!("{path}/a"), &Value::Null).await;
    send(&server, "PATCH", &format!("{path}/a"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(send(&server, "GET", &format!("{path}/a"), &Value::Null).await.status, 404);
}

/// Only the DaemonSets of `apps` lose the annotation of their template generation in PartialObjectMetadata.
#[tokio::test]
async fn a_custom_daemon_set_keeps_its_annotations() {
    let server = server();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "metadata": {"name": "daemonsets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"kind": "DaemonSet", "plural": "daemonsets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&server, "POST", crds, &definition).await.status, 201);
    let annotations = json!({"deprecated.daemonset.template.generation": "1"});
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "DaemonSet", "metadata": {"name": "a", "annotations": annotations},
    });
    let path = "/apis/example.com/v1/daemonsets";
    let created = send(&server, "POST", path, &object).await;
    assert_eq!(created.body["metadata"]["annotations"], annotations, "{}", created.text);
    let accept = ("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let partial = send_with(&server, "GET", &format!("{path}/a"), &[accept], "").await;
    assert_eq!(partial.body["kind"], "PartialObjectMetadata");
    assert_eq!(partial.body["metadata"]["annotations"], annotations);

    let pod =
        json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let built_in = json!({
        "metadata": {"name": "a", "annotations": annotations},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pod},
    });
    let path = "/apis/apps/v1/namespaces/default/daemonsets";
    assert_eq!(send(&server, "POST", path, &built_in).await.status, 201);
    let partial = send_with(&server, "GET", &format!("{path}/a"), &[accept], "").await;
    assert_eq!(partial.body["metadata"]["annotations"], Value::Null);
}

#[tokio::test]
async fn custom_component_statuses_are_stored() {
    let server = server();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "metadata": {"name": "componentstatuses.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "ComponentStatus", "plural": "componentstatuses"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&server, "POST", crds, &definition).await.status, 201);
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "ComponentStatus", "metadata": {"name": "a"}});
    let path = "/apis/example.com/v1/namespaces/default/componentstatuses";
    let created = send(&server, "POST", path, &object).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let read = send(&server, "GET", &format!("{path}/a"), &Value::Null).await;
    assert_eq!(read.body["metadata"]["uid"], created.body["metadata"]["uid"], "{}", read.text);
}

#[tokio::test]
async fn duplicate_owner_references_are_removed_on_create_and_rejected_on_apply() {
    let server = server();
    let owner = json!({"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u"});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": [owner]},
    });
    let created = apply(&server, "/api/v1/namespaces/default/configmaps/a", &map).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let mut equal = map.clone();
    equal["metadata"]["name"] = "c".into();
    equal["metadata"]["ownerReferences"] = json!([owner, owner]);
    let applied = apply(&server, "/api/v1/namespaces/default/configmaps/c", &equal).await;
    // As upstream, an apply configuration must not have two entries with the same key.
    assert_eq!(applied.status, 500, "{}", applied.text);
    let expected = ".metadata.ownerReferences: duplicate entries for key [uid=\"u\"]";
    assert!(applied.message().ends_with(expected), "{}", applied.message());
    let twice = json!({
        "metadata": {"name": "b", "ownerReferences": [owner, owner]},
    });
    let posted = send(&server, "POST", "/api/v1/namespaces/default/configmaps", &twice).await;
    assert_eq!(posted.body["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    assert!(posted.warnings()[0].contains(".metadata.ownerReferences contains duplicate entries;"));
}
