//! Client-side `kubectl apply`, with the last-applied annotation.

use super::cluster::Cluster;
use super::objects::{SETTINGS, SETTINGS_AND_WEB};

#[test]
fn apply_creates_then_is_unchanged_then_configures() {
    let cluster = Cluster::start();
    let apply = "apply -f -";
    insta::assert_snapshot!(cluster.feed(apply, SETTINGS_AND_WEB), @"
    configmap/settings created
    deployment.apps/web created
    ");
    insta::assert_snapshot!(cluster.feed(apply, SETTINGS_AND_WEB), @"
    configmap/settings unchanged
    deployment.apps/web unchanged
    ");
    insta::assert_snapshot!(cluster.feed(apply, &SETTINGS_AND_WEB.replace("1.27", "1.28")), @"
    configmap/settings unchanged
    deployment.apps/web configured
    ");
    insta::assert_snapshot!(cluster.session("
        get deployment web -o jsonpath={.spec.template.spec.containers[*].image},{.metadata.generation}
    "), @"
    $ kubectl get deployment web -o jsonpath={.spec.template.spec.containers[*].image},{.metadata.generation}
    nginx:1.28,2
    ");
}

#[test]
fn apply_removes_dropped_fields_and_keeps_those_of_others() {
    let cluster = Cluster::start();
    let apply = "apply -f -";
    cluster.feed(apply, SETTINGS).result();
    cluster.kubectl("patch configmap settings -p {\"data\":{\"shape\":\"round\"}}").result();
    cluster.feed(apply, &SETTINGS.replace(", size: large", "")).result();
    insta::assert_snapshot!(cluster.kubectl("get configmap settings -o jsonpath={.data}"), @r#"{"colour":"blue","shape":"round"}"#);
}

#[test]
fn apply_merges_lists_by_their_keys() {
    let cluster = Cluster::start();
    let apply = "apply -f -";
    cluster.feed(apply, SETTINGS_AND_WEB).result();
    let sidecar = r#"{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"envoy"}]}}}}"#;
    cluster.kubectl(&format!("patch deployment web -p '{sidecar}'")).result();
    insta::assert_snapshot!(cluster.feed(apply, &SETTINGS_AND_WEB.replace("1.27", "1.28")), @"
    configmap/settings unchanged
    deployment.apps/web configured
    ");
    let ports = SETTINGS_AND_WEB.replace("1.27", "1.28").replace("containerPort: 80", "containerPort: 8080");
    insta::assert_snapshot!(cluster.feed(apply, &ports), @"
    configmap/settings unchanged
    deployment.apps/web configured
    ");
    insta::assert_snapshot!(cluster.session("
        get deployment web -o 'jsonpath={range .spec.template.spec.containers[*]}{.name}={.image} {end}'
        get deployment web -o jsonpath={.spec.template.spec.containers[*].ports}
    "), @r#"
    $ kubectl get deployment web -o 'jsonpath={range .spec.template.spec.containers[*]}{.name}={.image} {end}'
    sidecar=envoy web=nginx:1.28
    $ kubectl get deployment web -o jsonpath={.spec.template.spec.containers[*].ports}
    [{"containerPort":8080,"name":"http","protocol":"TCP"}]
    "#);
}

#[test]
fn apply_removes_only_its_own_list_elements() {
    let cluster = Cluster::start();
    let objects = "\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}, {name: admin, port: 81}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1.27
        env: [{name: A, value: a}, {name: B, value: b}]
        args: [one, two]
      - {name: log, image: busybox}
      tolerations: [{key: mine, operator: Exists}]
";
    cluster.feed("apply -f -", objects).result();
    cluster.kubectl(r#"patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"envoy"},{"name":"web","args":["three"],"env":[{"name":"C","value":"c"}]}]}}}}"#).result();
    cluster.kubectl(r#"patch service web -p {"spec":{"ports":[{"name":"metrics","port":82}]}}"#).result();
    let less = objects
        .replace(", {name: B, value: b}", "")
        .replace("      - {name: log, image: busybox}\n", "")
        .replace("one, two", "one")
        .replace(", {name: admin, port: 81}", "");
    insta::assert_snapshot!(cluster.feed("apply -f -", &less), @"
    service/web configured
    deployment.apps/web configured
    ");
    // Arguments have no merge key: the list is replaced.
    insta::assert_snapshot!(cluster.session(r#"
        get deployment web -o 'jsonpath={range .spec.template.spec.containers[*]}{.name} {.env[*].name} {.args}{"\n"}{end}'
        get service web -o 'jsonpath={range .spec.ports[*]}{.name} {.port} {.targetPort}{"\n"}{end}'
    "#), @r#"
    $ kubectl get deployment web -o 'jsonpath={range .spec.template.spec.containers[*]}{.name} {.env[*].name} {.args}{"\n"}{end}'
    sidecar
    web C A ["one"]
    $ kubectl get service web -o 'jsonpath={range .spec.ports[*]}{.name} {.port} {.targetPort}{"\n"}{end}'
    metrics 82 82
    http 80 80
    "#);
}

#[test]
fn apply_warns_if_the_annotation_is_missing() {
    let cluster = Cluster::with(SETTINGS);
    insta::assert_snapshot!(cluster.feed("apply -f -", SETTINGS), @"
    configmap/settings configured
    --- stderr
    Warning: resource configmaps/settings is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
    ");
}

#[test]
fn apply_shows_what_was_last_applied() {
    let cluster = Cluster::start();
    cluster.feed("apply -f -", SETTINGS).result();
    insta::assert_snapshot!(cluster.kubectl("apply view-last-applied configmap settings"), @"
    apiVersion: v1
    data:
      colour: blue
      size: large
    kind: ConfigMap
    metadata:
      annotations: {}
      labels:
        app: web
      name: settings
      namespace: default
    ");
    insta::assert_snapshot!(cluster.feed("apply set-last-applied -f -", &SETTINGS.replace("blue", "red")), @"configmap/settings configured");
    insta::assert_snapshot!(cluster.session("
        apply view-last-applied configmap settings -o json
        get configmap settings -o jsonpath={.data.colour}
    "), @r#"
    $ kubectl apply view-last-applied configmap settings -o json
    {
      "apiVersion": "v1",
      "data": {
        "colour": "red",
        "size": "large"
      },
      "kind": "ConfigMap",
      "metadata": {
        "labels": {
          "app": "web"
        },
        "name": "settings",
        "namespace": "default"
      }
    }
    $ kubectl get configmap settings -o jsonpath={.data.colour}
    blue
    "#);
}

#[test]
fn apply_with_prune_deletes_removed_objects() {
    let cluster = Cluster::start();
    let apply = "apply --prune -l app=web --prune-allowlist=core/v1/ConfigMap -f -";
    let other = SETTINGS.replace("settings", "other");
    cluster.feed(apply, &[SETTINGS, &other].join("---\n")).result();
    insta::assert_snapshot!(cluster.feed(apply, &other), @"
    configmap/other unchanged
    configmap/settings pruned
    ");
    insta::assert_snapshot!(cluster.kubectl("get configmaps -o name"), @"configmap/other");
}

#[test]
fn apply_with_server_dry_run_changes_nothing() {
    let cluster = Cluster::start();
    cluster.feed("apply -f -", SETTINGS).result();
    let red = SETTINGS.replace("blue", "red");
    insta::assert_snapshot!(cluster.feed("apply --dry-run=server -o jsonpath={.data.colour} -f -", &red), @"red");
    insta::assert_snapshot!(cluster.kubectl("get configmap settings -o jsonpath={.data.colour}"), @"blue");
}
