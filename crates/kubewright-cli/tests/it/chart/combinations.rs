//! Every combination of the boolean values, rendered by Helm and applied to the API server.
//!
//! One run of Helm renders many combinations: a parent chart contains the chart under many aliases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::server::Server;
use super::{CONVERSION, INIT, ORDER, ORDER_V2, WEBHOOKS, documents, helm, id, project};
use crate::scaffold::Folder;

/// Combinations in one run of Helm.
const BATCH: usize = 256;

/// The paths of all boolean values.
fn switches(values: &Value) -> Vec<String> {
    fn walk(path: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Bool(_) => found.push(path.to_owned()),
            // Contexts and resources are data of Kubernetes.
            Value::Object(fields) if !path.ends_with("ecurityContext") => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(&path, value, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk("", values, &mut found);
    found.sort();
    found
}

fn set(values: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        Some((name, rest)) => {
            let inner = values.entry(name).or_insert_with(|| Map::new().into());
            set(inner.as_object_mut().expect("a map"), rest, value);
        }
        None => _ = values.insert(path.to_owned(), value),
    }
}

/// The values of a combination: one bit for each switch.
fn combination(switches: &[String], bits: usize) -> Map<String, Value> {
    // The alias is the name of the chart in the parent.
    let mut values =
        Map::from_iter(["nameOverride", "fullnameOverride"].map(|it| (it.to_owned(), "shop".into())));
    for (at, switch) in switches.iter().enumerate() {
        set(&mut values, switch, (bits >> at & 1 == 1).into());
    }
    values
}

/// Renders combinations. Returns the documents of each, without what differs by alias.
fn render(chart: &Path, switches: &[String], batch: std::ops::Range<usize>) -> BTreeMap<usize, Vec<String>> {
    let parent = tempfile::tempdir().expect("a folder");
    let mut dependencies = String::from("apiVersion: v2\nname: all\nversion: 0.0.0\ndependencies:\n");
    let mut values = Map::new();
    for bits in batch.clone() {
        let _ = writeln!(dependencies, "- {{name: shop, version: 0.1.0, alias: c{bits}}}");
        values.insert(format!("c{bits}"), combination(switches, bits).into());
    }
    fs::write(parent.path().join("Chart.yaml"), dependencies).expect("a file");
    fs::write(parent.path().join("values.yaml"), Value::from(values).to_string()).expect("a file");
    fs::create_dir(parent.path().join("charts")).expect("a folder");
    copy(chart, &parent.path().join("charts/shop"));
    let text = helm(parent.path(), &["template", "shop", ".", "--namespace", "shop-system"]);
    let mut found: BTreeMap<usize, Vec<String>> = batch.map(|bits| (bits, Vec::new())).collect();
    for document in text.split("---\n# Source: all/charts/c").skip(1) {
        let (source, document) = document.split_once('\n').expect("a line");
        let (bits, _) = source.split_once('/').expect("a path");
        let document: String = document
            .lines()
            .filter(|line| !line.trim().starts_with("helm.sh/chart:"))
            .fold(String::new(), |all, line| all + line + "\n");
        found.get_mut(&bits.parse().expect("a number")).expect("a combination").push(document);
    }
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the chart") {
        let entry = entry.expect("an entry");
        let place = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).expect("a file");
        }
    }
}

/// A rendered combination.
struct Combination {
    /// The switches that are on.
    on: BTreeSet<String>,
    /// Kind, namespace and name of all objects.
    ids: BTreeSet<String>,
}

impl Combination {
    fn on(&self, switch: &str) -> bool {
        self.on.contains(switch)
    }

    #[track_caller]
    fn has(&self, object: &str, expected: bool) {
        let found = self.ids.iter().any(|id| id.starts_with(object));
        assert_eq!(found, expected, "{object} with {:?}", self.on);
    }
}

/// Renders all combinations and applies every object.
fn apply_all(folder: &Folder, expected_switches: usize) -> Vec<Combination> {
    folder.done("chart");
    let chart = folder.path().join("dist/chart");
    let values: Value =
        serde_saphyr::from_str(&folder.read("dist/chart/values.yaml")).expect("values are YAML");
    let switches = switches(&values);
    assert_eq!(switches.len(), expected_switches, "{switches:?}");
    let server = Server::start();
    let mut applied: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    let all = 1 << switches.len();
    for start in (0..all).step_by(BATCH) {
        for (bits, rendered) in render(&chart, &switches, start..(start + BATCH).min(all)) {
            let mut ids = BTreeSet::new();
            for document in rendered {
                // Combinations share most objects. Each distinct one is applied once.
                let object = applied.entry(document).or_insert_with_key(|document| {
                    let [object] = &documents(document)[..] else { panic!("not one object: {document}") };
                    server.applies(object);
                    id(object)
                });
                assert!(
                    ids.insert(object.clone()),
                    "{object} exists twice in {:?}",
                    combination(&switches, bits)
                );
            }
            let on = switches.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
            found.push(Combination { on: on.map(|(_, switch)| switch.clone()).collect(), ids });
        }
    }
    for one in &found {
        one.has("Deployment ", one.on("manager.enable"));
        one.has("CustomResourceDefinition ", one.on("crd.enable"));
        one.has("ServiceAccount ", one.on("serviceAccount.enable"));
        one.has(
            "Role shop-system/shop-leader-election-role",
            one.on("rbac.enable") && one.on("leaderElection.enable"),
        );
        one.has("ClusterRole -/shop-metrics-auth-role", one.on("rbac.enable") && one.on("metrics.enable"));
        one.has(
            "ClusterRole -/shop-order-viewer-role",
            one.on("rbac.enable") && one.on("rbac.helpers.enable"),
        );
        one.has("Service shop-system/shop-controller-manager-metrics-service", one.on("metrics.enable"));
        one.has("ServiceMonitor ", one.on("prometheus.enable") && one.on("metrics.enable"));
        one.has("NetworkPolicy shop-system/shop-allow-metrics-traffic", one.on("networkPolicy.enable"));
        let webhooks = one.on("webhook.enable");
        one.has("ValidatingWebhookConfiguration ", webhooks);
        one.has("Service shop-system/shop-webhook-service", webhooks);
        one.has(
            "NetworkPolicy shop-system/shop-allow-webhook-traffic",
            one.on("networkPolicy.enable") && webhooks,
        );
        let cert_manager = one.on("certManager.enable");
        one.has("Certificate ", webhooks && cert_manager);
        one.has(
            "Role shop-system/shop-webhook-certificates-role",
            one.on("rbac.enable") && webhooks && !cert_manager,
        );
    }
    found
}

#[test]
fn every_combination_of_a_chart_with_webhooks_is_accepted() {
    let found = apply_all(&project(&[INIT, ORDER, ORDER_V2, WEBHOOKS, CONVERSION]), 12);
    assert_eq!(found.len(), 4096);
    for one in found {
        one.has("ClusterRoleBinding -/shop-manager-rolebinding", one.on("rbac.enable"));
    }
}

#[test]
fn every_combination_of_a_namespaced_chart_is_accepted() {
    let found = apply_all(&project(&[&format!("{INIT} --namespaced"), ORDER]), 10);
    assert_eq!(found.len(), 1024);
    for one in found {
        one.has("RoleBinding shop-system/shop-manager-rolebinding", one.on("rbac.enable"));
        one.has("ClusterRoleBinding -/shop-manager-rolebinding", false);
    }
}
