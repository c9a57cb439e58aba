//! `kubewright chart`, `bundle` and `scorecard` on real projects: charts are rendered by Helm, and all objects
//! are applied to the API server.

mod bundle;
mod combinations;
mod merging;
mod same_objects;
mod scorecard;
mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::scaffold::Folder;

const INIT: &str = "init --domain example.com --kubewright-version 0.1.0";
const ORDER: &str = "create api --group sales --version v1 --kind Order";
const ORDER_V2: &str = "create api --group sales --version v2 --kind Order";
const WEBHOOKS: &str =
    "create webhook --group sales --version v1 --kind Order --defaulting --programmatic-validation";
const CONVERSION: &str = "create webhook --group sales --version v1 --kind Order --conversion --spoke v2";

/// A project in the directory `shop`.
fn project(lines: &[&str]) -> Folder {
    let folder = Folder::new("shop");
    for line in lines {
        folder.done(line);
    }
    folder
}

/// Runs Helm without the user's configuration, and returns its standard output.
#[track_caller]
fn helm(folder: &Path, arguments: &[&str]) -> String {
    let (succeeded, stdout, stderr) = try_helm(folder, arguments);
    assert!(succeeded, "helm {}: {stdout}\n{stderr}", arguments.join(" "));
    stdout
}

#[track_caller]
fn try_helm(folder: &Path, arguments: &[&str]) -> (bool, String, String) {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let output = Command::new("helm")
        .args(arguments)
        .current_dir(folder)
        .env("HELM_CACHE_HOME", home.join("helm/cache"))
        .env("HELM_CONFIG_HOME", home.join("helm/config"))
        .env("HELM_DATA_HOME", home.join("helm/data"))
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| {
            panic!("helm does not start ({error}); install Helm 3, or run `cargo xtask ci --only tools`")
        });
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("helm prints text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Parses YAML documents.
fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// Objects by kind, namespace and name. Fails if two are the same.
#[track_caller]
fn by_id(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for object in objects {
        let id = id(&object);
        assert!(found.insert(id.clone(), object).is_none(), "{id} exists twice");
    }
    found
}

fn id(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
    format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

#[test]
fn a_chart_is_golden_and_passes_helm_lint() {
    let folder = project(&[INIT, ORDER, ORDER_V2, WEBHOOKS, CONVERSION]);
    let wrote = folder.done("chart");
    assert!(wrote.lines().any(|line| line == "wrote dist/chart/Chart.yaml"), "{wrote}");
    let chart = folder.files().into_iter().filter(|(path, _)| path.starts_with("dist/chart/"));
    crate::scaffold::golden::is_golden("chart", &chart.collect());
    let said = helm(&folder.path(), &["lint", "--strict", "dist/chart"]);
    assert!(said.contains("0 chart(s) failed"), "{said}");
    assert!(!said.contains("[WARNING]"), "{said}");
}

#[test]
fn wrong_values_are_rejected_by_the_schema() {
    let folder = project(&[INIT, ORDER]);
    folder.done("chart");
    for (value, expected) in [
        ("metrics.prot=1", "prot"),
        ("metric.port=1", "metric"),
        ("metrics.port=70000", "65535"),
        ("manager.replicas=many", "integer"),
        ("manager.image.pullPolicy=Sometimes", "IfNotPresent"),
        ("crd.keep=perhaps", "boolean"),
    ] {
        let (succeeded, _, said) =
            try_helm(&folder.path(), &["template", "shop", "dist/chart", "--set", value]);
        assert!(!succeeded && said.contains(expected), "{value}: {said}");
    }
    // Values of a parent chart.
    helm(&folder.path(), &["template", "shop", "dist/chart", "--set", "enabled=true,global.registry=x"]);
}

#[test]
fn values_reach_the_objects() {
    let folder = project(&[INIT, ORDER, WEBHOOKS]);
    folder.done("chart --image example.com:5000/shop:v1.2.0");
    let set = [
        "manager.replicas=3",
        "manager.image.digest=sha256:00",
        "manager.env[0].name=A,manager.env[0].value=b",
        "manager.args[0]=--log-level=debug",
        "manager.nodeSelector.disk=ssd",
        "manager.priorityClassName=high",
        "manager.podLabels.team=sales",
        "manager.extraVolumes[0].name=tmp,manager.extraVolumeMounts[0].name=tmp,manager.extraVolumeMounts[0].mountPath=/x",
        "metrics.port=9000",
        "webhook.port=9444",
        "serviceAccount.name=someone",
        "serviceAccount.annotations.role=arn",
        "fullnameOverride=store",
        "networkPolicy.enable=true",
    ];
    let mut arguments = vec!["template", "release", "dist/chart", "--namespace", "sales"];
    for value in &set {
        arguments.extend(["--set", value]);
    }
    let objects = by_id(documents(&helm(&folder.path(), &arguments)));
    let manager = &objects["Deployment sales/store-controller-manager"];
    let pod = &manager["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(manager["spec"]["replicas"], 3);
    assert_eq!(container["image"], "example.com:5000/shop@sha256:00");
    assert_eq!(container["env"][1], serde_json::json!({ "name": "A", "value": "b" }));
    assert_eq!(container["env"][0]["value"], "store-webhook-service");
    let arguments = container["args"].as_array().expect("it has arguments");
    for argument in ["--metrics-bind-address=:9000", "--webhook-port=9444", "--log-level=debug"] {
        assert!(arguments.iter().any(|it| it == argument), "{arguments:?}");
    }
    assert_eq!(pod["nodeSelector"]["disk"], "ssd");
    assert_eq!(pod["priorityClassName"], "high");
    assert_eq!(pod["serviceAccountName"], "someone");
    assert_eq!(pod["volumes"][0]["name"], "tmp");
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/x");
    assert_eq!(manager["spec"]["template"]["metadata"]["labels"]["team"], "sales");
    assert_eq!(objects["ServiceAccount sales/someone"]["metadata"]["annotations"]["role"], "arn");
    let binding = &objects["ClusterRoleBinding -/store-manager-rolebinding"];
    assert_eq!(binding["subjects"][0]["name"], "someone");
    assert_eq!(binding["subjects"][0]["namespace"], "sales");
    assert_eq!(binding["roleRef"]["name"], "store-manager-role");
    let service = &objects["Service sales/store-controller-manager-metrics-service"]["spec"];
    assert_eq!(
        (&service["ports"][0]["port"], &service["ports"][0]["targetPort"]),
        (&9000.into(), &9000.into())
    );
    assert_eq!(service["selector"]["app.kubernetes.io/instance"], "release");
    let policy = &objects["NetworkPolicy sales/store-allow-webhook-traffic"]["spec"];
    assert_eq!(policy["ingress"][0]["ports"][0]["port"], 9444);
    let webhook = &objects["ValidatingWebhookConfiguration -/store-validating-webhook-configuration"];
    let client = &webhook["webhooks"][0]["clientConfig"]["service"];
    assert_eq!((&client["name"], &client["namespace"]), (&"store-webhook-service".into(), &"sales".into()));
    // The role of the manager refers to the configurations by name.
    let role = objects["ClusterRole -/store-manager-role"].to_string();
    assert!(role.contains("store-validating-webhook-configuration"), "{role}");
}

#[test]
fn long_release_names_keep_object_names_unique_and_valid() {
    let folder = project(&[INIT, ORDER, WEBHOOKS]);
    folder.done("chart");
    let long = "r".repeat(53);
    let objects = by_id(documents(&helm(&folder.path(), &["template", &long, "dist/chart"])));
    for (id, object) in &objects {
        let name = object["metadata"]["name"].as_str().expect("it has a name");
        assert!(name.len() <= 63, "{id}");
    }
}
