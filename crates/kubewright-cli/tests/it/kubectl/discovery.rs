//! What kubectl asks a server about itself.

use serde_json::Value;

use super::cluster::Cluster;

#[test]
fn version_names_the_release_that_the_server_is_compatible_with() {
    let cluster = Cluster::start();
    let version: Value = serde_json::from_str(&cluster.kubectl("version -o json").result()).expect("JSON");
    let server = &version["serverVersion"];
    assert_eq!((&server["major"], &server["minor"]), (&"1".into(), &"36".into()), "{version:#}");
    assert!(server["gitVersion"].as_str().is_some_and(|version| version.starts_with("v1.36.")), "{version:#}");
}

#[test]
fn cluster_info_names_the_address() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.kubectl("cluster-info"), @"");
}

#[test]
fn api_versions_lists_every_group() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.kubectl("api-versions"), @"");
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
    "), @"");
}

#[test]
fn every_resource_that_can_be_listed_is_listed() {
    let cluster = Cluster::start();
    let names = cluster.kubectl("api-resources --verbs=list -o name").result();
    let names: Vec<&str> = names.lines().collect();
    let tables = cluster.kubectl(&format!("get {} -A", names.join(","))).to_string();
    // What is there from the start is the server's business, how it is shown is kubectl's.
    let heads: String =
        tables.lines().filter(|line| line.starts_with("NAME") || line.starts_with("---")).flat_map(|line| [line, "\n"]).collect();
    insta::assert_snapshot!(heads, @"");
    for name in names {
        cluster.kubectl(&format!("get --raw {}", path_of(&cluster, name))).result();
    }
}

/// Where a resource is, as `get -v=6` logs it.
fn path_of(cluster: &Cluster, name: &str) -> String {
    let log = cluster.kubectl(&format!("get {name} -A -v=6")).log();
    let url = log
        .split(|character: char| character.is_whitespace() || character == '"')
        .filter_map(|word| word.strip_prefix(&cluster.url))
        .find(|path| path.contains("limit="));
    url.unwrap_or_else(|| panic!("no list in {log}")).to_owned()
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
    "), @"");
    let namespaces: Value =
        serde_json::from_str(&cluster.kubectl("get --raw /api/v1/namespaces").result()).expect("JSON");
    assert_eq!(namespaces["kind"], "NamespaceList");

    let raw = "create --raw /api/v1/namespaces/default/configmaps -f -";
    let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"},"data":{"colour":"blue"}}"#;
    let created: Value = serde_json::from_str(&cluster.feed(raw, object).result()).expect("JSON");
    assert_eq!(created["data"]["colour"], "blue", "{created:#}");
    let raw = "replace --raw /api/v1/namespaces/default/configmaps/raw -f -";
    let replaced: Value = serde_json::from_str(&cluster.feed(raw, &object.replace("blue", "red")).result()).expect("JSON");
    assert_eq!(replaced["data"]["colour"], "red", "{replaced:#}");
    cluster.kubectl("delete --raw /api/v1/namespaces/default/configmaps/raw").result();
    insta::assert_snapshot!(cluster.kubectl("get configmaps"), @"");
}

#[test]
fn top_says_that_there_are_no_metrics() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        top pods
        top nodes
    "), @"");
}
