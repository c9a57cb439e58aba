//! `kubectl get`: tables, the other outputs, selectors and pages.

use serde_json::Value;

use super::cluster::Cluster;
use super::objects::{NODE, PODS, SETTINGS_AND_WEB};

#[test]
fn get_shows_the_columns_of_a_kind_and_more_of_them_when_wide() {
    let cluster = Cluster::with(&[NODE, PODS, SETTINGS_AND_WEB].join("---\n"));
    insta::assert_snapshot!(cluster.session("
        get pods
        get pods -o wide
        get deployments
        get deployment web -o wide
        get configmap settings
        get services
        get nodes -o wide
        get namespaces
    "), @"");
}

#[test]
fn get_shows_labels_as_columns_and_sorts_and_leaves_out_the_head() {
    let cluster = Cluster::with(PODS);
    insta::assert_snapshot!(cluster.session("
        get pods --show-labels
        get pods -L app,tier
        get pods --sort-by={.metadata.labels.tier} --no-headers
    "), @"");
}

#[test]
fn get_all_shows_every_kind_of_the_category() {
    let cluster = Cluster::with(&[PODS, SETTINGS_AND_WEB].join("---\n"));
    insta::assert_snapshot!(cluster.session("
        get all
        get all -A
        get all -n kube-public
    "), @"");
}

#[test]
fn get_prints_names_paths_and_columns_of_choice() {
    let cluster = Cluster::with(PODS);
    insta::assert_snapshot!(cluster.session("
        get pods -o name
        get pod a -o jsonpath={.spec.containers[0].image}{\"\\n\"}
        get pods -o jsonpath={.items[*].metadata.name}{\"\\n\"}
        get pods -o custom-columns=POD:.metadata.name,IMAGES:.spec.containers[*].image,NODE:.spec.nodeName
        get pods -o go-template={{range.items}}{{.metadata.name}}/{{.status.phase}}{{\"\\n\"}}{{end}}
    "), @"");
}

#[test]
fn get_prints_an_object_as_yaml_with_its_defaults() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.kubectl("get configmap settings -o yaml"), @"");
    insta::assert_snapshot!(cluster.kubectl("get deployment web -o yaml"), @"");
}

#[test]
fn get_prints_a_list_as_json_that_parses() {
    let cluster = Cluster::with(PODS);
    let list: Value = serde_json::from_str(&cluster.kubectl("get pods -o json").result()).expect("JSON");
    assert_eq!((&list["kind"], &list["apiVersion"]), (&"List".into(), &"v1".into()));
    let names: Vec<&str> =
        list["items"].as_array().expect("items").iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(list["items"].as_array().expect("items").iter().all(|pod| pod["kind"] == "Pod"), "{list:#}");
}

#[test]
fn get_selects_by_labels_and_by_fields() {
    let cluster = Cluster::with(PODS);
    insta::assert_snapshot!(cluster.session("
        get pods -o name -l app=web
        get pods -o name -l app=web,tier!=front
        get pods -o name -l 'tier in (front, back)'
        get pods -o name -l !tier
        get pods -o name --field-selector metadata.name=b
        get pods -o name --field-selector spec.nodeName=worker
        get pods -o name --field-selector spec.nodeName!=worker,metadata.name!=a
        get pods -A -o name --field-selector status.phase=Running
        get pods -l app=none
        get pods --field-selector spec.colour=blue
        get pods -l 'app in web'
    "), @"");
}

#[test]
fn get_reads_a_long_list_in_pages() {
    let cluster = Cluster::with(PODS);
    let answer = cluster.kubectl("get pods --chunk-size=2 -v=6");
    insta::assert_snapshot!(cluster.kubectl("get pods --chunk-size=2"), @"");
    let log = answer.log();
    let pages = log.lines().filter(|line| line.contains("/pods?") && line.contains("limit=2"));
    assert_eq!(pages.count(), 2, "{log}");
    insta::assert_snapshot!(cluster.session("
        get pods --chunk-size=1 -o name
        get pods --chunk-size=1 -o name -l app=web
        get clusterroles --chunk-size=7 -o name --field-selector metadata.name=cluster-admin
    "), @"");
}

#[test]
fn get_takes_several_kinds_and_names_at_once() {
    let cluster = Cluster::with(&[PODS, SETTINGS_AND_WEB].join("---\n"));
    insta::assert_snapshot!(cluster.session("
        get pod/a deployment/web
        get po a c -o name
        get deploy.apps,deployments.v1.apps -o name
        get configmaps,pods -l app=web -o name
        get pod a nope --ignore-not-found -o name
    "), @"");
}
