//! What the server refuses reaches the terminal in the server's words.

use super::cluster::Cluster;
use super::objects::{SETTINGS, SETTINGS_AND_WEB};

const CREATE: &str = "create --validate=false -f -";

#[test]
fn what_is_not_there_is_not_found() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        get pod nope
        get deployment nope -n nowhere
        get namespace nope
        describe pod nope
        label pod nope a=b
        scale deployment nope --replicas=1
        get nonsense
    "), @"");
    insta::assert_snapshot!(cluster.feed("create --validate=false -n nowhere -f -", SETTINGS), @"");
}

#[test]
fn what_is_invalid_is_explained_field_by_field() {
    let cluster = Cluster::start();
    let web = SETTINGS_AND_WEB.split("---\n").nth(1).expect("two documents");
    insta::assert_snapshot!(cluster.feed(CREATE, &SETTINGS.replace("settings", "Not_Valid")), @"");
    insta::assert_snapshot!(cluster.feed(CREATE, &web.replace("matchLabels: {app: web}", "matchLabels: {app: other}")), @"");
    insta::assert_snapshot!(cluster.feed(CREATE, &web.replace("containerPort: 80", "containerPort: 80000").replace("image: nginx:1.27", "imagePullPolicy: Never")), @"");
    insta::assert_snapshot!(cluster.feed(CREATE, &web.replace("replicas: 2", "replicas: two")), @"");
}

#[test]
fn what_cannot_change_is_named() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session(r#"
        patch deployment web --type=merge -p '{"spec":{"selector":{"matchLabels":{"app":"other"}},"template":{"metadata":{"labels":{"app":"other"}}}}}'
        patch configmap settings --type=merge -p '{"metadata":{"name":"other"}}'
        patch service kubernetes --type=merge -p '{"spec":{"clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"]}}'
        patch deployment web -p nonsense
    "#), @"");
}

#[test]
fn unknown_and_duplicate_fields_are_refused_or_warned_of() {
    let cluster = Cluster::start();
    // kubectl asks for this itself once it has seen in the OpenAPI document that the server can.
    let create = "create --raw /api/v1/namespaces/default/configmaps?fieldValidation=Strict -f -";
    let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dta":{"x":"y"}}"#;
    insta::assert_snapshot!(cluster.feed(create, object), @"");
    let answer = cluster.feed(&create.replace("Strict", "Warn"), object).log();
    insta::assert_snapshot!(answer, @"");
}

#[test]
fn a_conflict_asks_to_try_again() {
    let cluster = Cluster::with(SETTINGS);
    insta::assert_snapshot!(cluster.session(r#"
        patch configmap settings --type=merge -p '{"metadata":{"resourceVersion":"1"},"data":{"colour":"red"}}'
        label configmap settings a=b --resource-version=1
    "#), @"");
}

#[test]
fn what_is_deprecated_is_warned_of() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        get componentstatuses -o name
        get endpoints -o name
    "), @"");
}
