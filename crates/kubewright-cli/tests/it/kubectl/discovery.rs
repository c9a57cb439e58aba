//! Discovery commands of kubectl.

use serde_json::Value;

use super::cluster::Cluster;

#[test]
fn version_prints_the_server_version() {
    let cluster = Cluster::start();
    let version: Value = serde_json::from_str(&cluster.kubectl("version -o json").output()).expect("JSON");
    let server = &version["serverVersion"];
    assert_eq!((&server["major"], &server["minor"]), (&"1".into(), &"36".into()), "{version:#}");
    assert!(
        server["gitVersion"].as_str().is_some_and(|version| version.starts_with("v1.36.")),
        "{version:#}"
    );
}

#[test]
fn cluster_info_prints_the_address() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.kubectl("cluster-info"), @"
    Kubernetes control plane is running at https://SERVER

    To further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.
    ");
}

#[test]
fn api_versions_lists_every_group() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.kubectl("api-versions"), @"
    admissionregistration.k8s.io/v1
    apiextensions.k8s.io/v1
    apiregistration.k8s.io/v1
    apps/v1
    authentication.k8s.io/v1
    authorization.k8s.io/v1
    autoscaling/v1
    autoscaling/v2
    batch/v1
    certificates.k8s.io/v1
    coordination.k8s.io/v1
    discovery.k8s.io/v1
    events.k8s.io/v1
    flowcontrol.apiserver.k8s.io/v1
    networking.k8s.io/v1
    node.k8s.io/v1
    policy/v1
    rbac.authorization.k8s.io/v1
    resource.k8s.io/v1
    scheduling.k8s.io/v1
    storage.k8s.io/v1
    v1
    ");
}

#[test]
fn api_resources_lists_names_scopes_verbs_and_categories() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        api-resources --api-group=apps -o wide
        api-resources --api-group=batch
        api-resources --categories=all -o name
        api-resources --namespaced=false --verbs=delete -o name --api-group=
        api-resources --verbs=create --api-group=authorization.k8s.io
    "), @"
    $ kubectl api-resources --api-group=apps -o wide
    NAME                  SHORTNAMES   APIVERSION   NAMESPACED   KIND                 VERBS                                                        CATEGORIES
    controllerrevisions                apps/v1      true         ControllerRevision   create,delete,deletecollection,get,list,patch,update,watch
    daemonsets            ds           apps/v1      true         DaemonSet            create,delete,deletecollection,get,list,patch,update,watch   all
    deployments           deploy       apps/v1      true         Deployment           create,delete,deletecollection,get,list,patch,update,watch   all
    replicasets           rs           apps/v1      true         ReplicaSet           create,delete,deletecollection,get,list,patch,update,watch   all
    statefulsets          sts          apps/v1      true         StatefulSet          create,delete,deletecollection,get,list,patch,update,watch   all
    $ kubectl api-resources --api-group=batch
    NAME       SHORTNAMES   APIVERSION   NAMESPACED   KIND
    cronjobs   cj           batch/v1     true         CronJob
    jobs                    batch/v1     true         Job
    $ kubectl api-resources --categories=all -o name
    pods
    replicationcontrollers
    services
    daemonsets.apps
    deployments.apps
    replicasets.apps
    statefulsets.apps
    horizontalpodautoscalers.autoscaling
    cronjobs.batch
    jobs.batch
    $ kubectl api-resources --namespaced=false --verbs=delete -o name --api-group=
    namespaces
    nodes
    persistentvolumes
    $ kubectl api-resources --verbs=create --api-group=authorization.k8s.io
    NAME                        SHORTNAMES   APIVERSION                NAMESPACED   KIND
    localsubjectaccessreviews                authorization.k8s.io/v1   true         LocalSubjectAccessReview
    selfsubjectaccessreviews                 authorization.k8s.io/v1   false        SelfSubjectAccessReview
    selfsubjectrulesreviews                  authorization.k8s.io/v1   false        SelfSubjectRulesReview
    subjectaccessreviews                     authorization.k8s.io/v1   false        SubjectAccessReview
    ");
}

#[test]
fn every_resource_is_listed_with_its_columns() {
    let cluster = Cluster::start();
    let names = cluster.kubectl("api-resources --verbs=list -o name").result();
    let names: Vec<&str> = names.lines().collect();
    assert!(names.len() > 50, "{names:?}");
    let tables = cluster.kubectl(&format!("get {} -A", names.join(","))).to_string();
    // The headers of existing objects, and any errors.
    let heads: Vec<String> = tables
        .lines()
        .filter(|line| {
            ["NAME ", "NAMESPACE ", "Warning", "Error", "error"].iter().any(|head| line.starts_with(head))
        })
        .map(|line| line.trim_start_matches("NAMESPACE").split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    insta::assert_snapshot!(heads.join("\n"), @"
    NAME STATUS MESSAGE ERROR
    NAME DATA AGE
    NAME ENDPOINTS AGE
    NAME STATUS AGE
    NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE
    NAME SERVICE AVAILABLE AGE
    NAME HOLDER AGE
    NAME ADDRESSTYPE PORTS ENDPOINTS AGE
    NAME PRIORITYLEVEL MATCHINGPRECEDENCE DISTINGUISHERMETHOD AGE MISSINGPL
    NAME TYPE NOMINALCONCURRENCYSHARES QUEUES HANDSIZE QUEUELENGTHLIMIT AGE
    NAME PARENTREF
    NAME CIDRS AGE
    NAME ROLE AGE
    NAME CREATED AT
    NAME ROLE AGE
    NAME CREATED AT
    NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY
    Warning: v1 ComponentStatus is deprecated in v1.19+
    Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice
    ");
}

#[test]
fn raw_requests_reach_any_path() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        get --raw /healthz
        get --raw /livez
        get --raw /readyz
        get --raw /nope
        get --raw /api/v1/namespaces/default/configmaps/nope
    "), @r#"
    $ kubectl get --raw /healthz
    ok
    $ kubectl get --raw /livez
    ok
    $ kubectl get --raw /readyz
    ok
    $ kubectl get --raw /nope
    --- stderr
    Error from server (NotFound): the server could not find the requested resource
    --- exit status 1
    $ kubectl get --raw /api/v1/namespaces/default/configmaps/nope
    --- stderr
    Error from server (NotFound): configmaps "nope" not found
    --- exit status 1
    "#);
    let namespaces: Value =
        serde_json::from_str(&cluster.kubectl("get --raw /api/v1/namespaces").result()).expect("JSON");
    assert_eq!(namespaces["kind"], "NamespaceList");

    let raw = "create --raw /api/v1/namespaces/default/configmaps -f -";
    let object =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"},"data":{"colour":"blue"}}"#;
    let created: Value = serde_json::from_str(&cluster.feed(raw, object).result()).expect("JSON");
    assert_eq!(created["data"]["colour"], "blue", "{created:#}");
    let raw = "replace --raw /api/v1/namespaces/default/configmaps/raw -f -";
    let replaced: Value =
        serde_json::from_str(&cluster.feed(raw, &object.replace("blue", "red")).result()).expect("JSON");
    assert_eq!(replaced["data"]["colour"], "red", "{replaced:#}");
    cluster.kubectl("delete --raw /api/v1/namespaces/default/configmaps/raw").result();
    insta::assert_snapshot!(cluster.kubectl("get configmaps"), @"
    --- stderr
    No resources found in default namespace.
    ");
}

#[test]
fn top_reports_missing_metrics() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        top pods
        top nodes
    "), @"
    $ kubectl top pods
    --- stderr
    error: Metrics API not available
    --- exit status 1
    $ kubectl top nodes
    --- stderr
    error: Metrics API not available
    --- exit status 1
    ");
}
