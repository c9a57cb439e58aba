//! The test of the bundle as a whole: its annotations, its ClusterServiceVersion, and every object that OLM
//! would create from it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Outcome;
use super::contents::Contents;
use super::server::{Answer, Server};
use crate::delivery::bundle::{ANNOTATIONS, SUPPORTED, check_version};
use crate::delivery::image::resolve::is_pinned;
use crate::delivery::rendered::Object;

/// Annotations that every bundle has, with the required value if there is one.
const REQUIRED: [(&str, Option<&str>); 5] = [
    ("bundle.mediatype.v1", Some("registry+v1")),
    ("bundle.manifests.v1", None),
    ("bundle.metadata.v1", None),
    ("bundle.package.v1", None),
    ("bundle.channels.v1", None),
];

/// Install modes that a ClusterServiceVersion must mention.
const MODES: [&str; 4] = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];

pub(super) async fn bundle(bundle: &Contents, server: &Server, outcome: &mut Outcome) {
    annotations(bundle, outcome);
    version(bundle, outcome);
    install_modes(bundle, outcome);
    definitions(bundle, outcome);
    webhooks(bundle, outcome);
    texts(bundle, outcome);
    images(bundle, outcome);
    objects(bundle, server, outcome).await;
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn annotations(bundle: &Contents, outcome: &mut Outcome) {
    if bundle.annotations.is_null() {
        outcome.fail("metadata/annotations.yaml is missing or has no annotations");
        return;
    }
    for (key, required) in REQUIRED {
        let key = format!("{ANNOTATIONS}{key}");
        let value = bundle.annotations[&key].as_str().unwrap_or_default();
        match required {
            _ if value.is_empty() => outcome.fail(format!("the annotation {key} is missing")),
            Some(required) if value != required => {
                outcome.fail(format!("the annotation {key} is {value}, not {required}"));
            }
            _ => {}
        }
    }
    let channels =
        bundle.annotations[format!("{ANNOTATIONS}bundle.channels.v1")].as_str().unwrap_or_default();
    let default = bundle.annotations[format!("{ANNOTATIONS}bundle.channel.default.v1")].as_str();
    if let Some(default) = default
        && !channels.split(',').any(|channel| channel.trim() == default)
    {
        outcome.fail(format!("the default channel {default} is not one of the channels {channels}"));
    }
}

fn version(bundle: &Contents, outcome: &mut Outcome) {
    let (name, version) = (text(&bundle.csv, "/metadata/name"), text(&bundle.csv, "/spec/version"));
    if let Err(error) = check_version(version) {
        outcome.fail(format!("spec.version: {error}"));
    } else if !name.ends_with(&format!(".v{version}")) {
        outcome.fail(format!("the ClusterServiceVersion is named {name}, not NAME.v{version}"));
    }
    let replaces = text(&bundle.csv, "/spec/replaces");
    if !replaces.is_empty() && replaces == name {
        outcome.fail(format!("{name} replaces itself"));
    }
    let skips = list(&bundle.csv, "/spec/skips").filter_map(Value::as_str);
    for other in skips.chain([replaces]).filter(|other| !other.is_empty()) {
        let parts = other.split_once(".v");
        if parts.is_none_or(|(package, version)| package.is_empty() || check_version(version).is_err()) {
            outcome.fail(format!("{other} in spec.replaces or spec.skips is not a name such as NAME.v1.2.3"));
        }
    }
}

/// Images by tag can change after the release, and mirrors of disconnected clusters skip them.
fn images(bundle: &Contents, outcome: &mut Outcome) {
    let related = list(&bundle.csv, "/spec/relatedImages").map(|it| text(it, "/image"));
    let deployments: Vec<&Value> = list(&bundle.csv, "/spec/install/spec/deployments").collect();
    let containers = deployments.iter().flat_map(|deployment| {
        let setup = list(deployment, "/spec/template/spec/initContainers");
        setup.chain(list(deployment, "/spec/template/spec/containers")).map(|it| text(it, "/image"))
    });
    for image in related.chain(containers).filter(|image| !is_pinned(image)) {
        outcome.suggest(format!(
            "pin the image {image} to a digest: push it, and run `kubewright bundle --image` with its name"
        ));
    }
}

fn install_modes(bundle: &Contents, outcome: &mut Outcome) {
    let supported = |mode: &str| {
        list(&bundle.csv, "/spec/installModes")
            .find(|it| it["type"] == mode)
            .map(|it| it["supported"] == true)
    };
    if MODES.iter().all(|mode| supported(mode) != Some(true)) {
        outcome.fail("no install mode is supported");
    }
    for mode in MODES.iter().filter(|mode| supported(mode).is_none()) {
        outcome.suggest(format!("state in spec.installModes whether {mode} is supported"));
    }
    let converts = list(&bundle.csv, "/spec/webhookdefinitions").any(|it| it["type"] == "ConversionWebhook");
    let only_all = MODES.iter().all(|mode| supported(mode).unwrap_or_default() == (*mode == "AllNamespaces"));
    if converts && !only_all {
        outcome.fail(
            "conversion webhooks are only possible if AllNamespaces is the only supported install mode",
        );
    }
}

/// Owned CRDs and CRDs in the bundle are the same, version by version.
fn definitions(bundle: &Contents, outcome: &mut Outcome) {
    let owned: BTreeSet<(&str, &str, &str)> =
        bundle.owned().map(|it| (text(it, "/name"), text(it, "/version"), text(it, "/kind"))).collect();
    let mut served = BTreeSet::new();
    for definition in bundle.definitions.iter().map(Object::value) {
        for version in list(definition, "/spec/versions").filter(|version| version["served"] == true) {
            let name = text(definition, "/metadata/name");
            served.insert((name, text(version, "/name"), text(definition, "/spec/names/kind")));
        }
    }
    for (name, version, kind) in owned.difference(&served) {
        outcome.fail(format!(
            "the ClusterServiceVersion owns {kind} {version} ({name}), which no CRD of the bundle serves"
        ));
    }
    for (name, version, kind) in served.difference(&owned) {
        outcome.fail(format!("the bundle has the CRD {name} with {kind} {version}, which the ClusterServiceVersion does not own"));
    }
    for kind in bundle.examples.iter().filter(|example| bundle.owner(example).is_none()) {
        outcome.fail(format!("alm-examples has a {} that the bundle does not own", text(kind, "/kind")));
    }
    for (_, _, kind) in &owned {
        if bundle.examples.iter().all(|example| example["kind"] != *kind) {
            outcome.suggest(format!("add an example of {kind} to alm-examples"));
        }
    }
}

fn webhooks(bundle: &Contents, outcome: &mut Outcome) {
    let deployments: BTreeSet<&str> =
        list(&bundle.csv, "/spec/install/spec/deployments").map(|it| text(it, "/name")).collect();
    let mut names = BTreeSet::new();
    for webhook in list(&bundle.csv, "/spec/webhookdefinitions") {
        let name = text(webhook, "/generateName");
        if !names.insert((text(webhook, "/type"), name)) {
            outcome.fail(format!("two webhooks are named {name}"));
        }
        let deployment = text(webhook, "/deploymentName");
        if !deployments.contains(deployment) {
            outcome.fail(format!(
                "the webhook {name} refers to the Deployment {deployment}, which does not exist"
            ));
        }
        for definition in list(webhook, "/conversionCRDs").filter_map(Value::as_str) {
            if bundle.owned().all(|owned| owned["name"] != definition) {
                outcome.fail(format!("the webhook {name} converts {definition}, which is not owned"));
            }
        }
    }
}

/// Texts that catalogs show.
fn texts(bundle: &Contents, outcome: &mut Outcome) {
    for (field, about) in [
        ("/spec/displayName", "displayName"),
        ("/spec/description", "description"),
        ("/spec/provider/name", "provider.name"),
    ] {
        if text(&bundle.csv, field).is_empty() {
            outcome.fail(format!("spec.{about} is missing"));
        }
    }
    for (field, advice) in [
        ("/spec/maintainers", "set `authors` in Cargo.toml to fill spec.maintainers"),
        ("/spec/icon", "add an icon to the ClusterServiceVersion"),
        ("/spec/links", "set `repository` or `homepage` in Cargo.toml to fill spec.links"),
        ("/spec/minKubeVersion", "add minKubeVersion to the ClusterServiceVersion"),
    ] {
        let value = bundle.csv.pointer(field).unwrap_or(&Value::Null);
        if value.is_null() || value.as_array().is_some_and(Vec::is_empty) {
            outcome.suggest(advice);
        }
    }
}

/// The API server accepts every object that OLM creates.
async fn objects(bundle: &Contents, server: &Server, outcome: &mut Outcome) {
    for (name, error) in server.refused_definitions() {
        outcome.fail(format!("the CRD {name} is not accepted: {error}"));
    }
    let mut objects: Vec<Value> = Vec::new();
    for object in &bundle.others {
        if !SUPPORTED.contains(&object.kind()) {
            outcome.fail(format!("OLM cannot install {} from a bundle", object.id()));
            continue;
        }
        objects.push(object.value().clone());
    }
    objects.extend(installed(&bundle.csv));
    for object in &objects {
        let name = format!("{} {}", text(object, "/kind"), text(object, "/metadata/name"));
        match server.dry_run(object).await {
            Answer::Accepted(warnings) => {
                for warning in warnings {
                    outcome.suggest(format!("{name}: {warning}"));
                }
            }
            // Kinds of other operators, such as ServiceMonitor.
            Answer::Unknown => {
                let _ = writeln!(outcome.log, "{name} was not checked: its CRD is not in the bundle");
            }
            Answer::Rejected(error) => outcome.fail(format!("{name} is not accepted: {error}")),
        }
    }
    if list(&bundle.csv, "/spec/install/spec/deployments").next().is_none() {
        outcome.fail("the install strategy has no Deployment");
    }
}

/// The objects that OLM creates from the install strategy.
fn installed(csv: &Value) -> Vec<Value> {
    let mut objects = Vec::new();
    for deployment in list(csv, "/spec/install/spec/deployments") {
        objects.push(json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": deployment["name"], "labels": deployment["label"] },
            "spec": deployment["spec"],
        }));
    }
    let mut accounts = BTreeSet::new();
    for (field, kind) in [("permissions", "Role"), ("clusterPermissions", "ClusterRole")] {
        for permission in list(csv, &format!("/spec/install/spec/{field}")) {
            let account = text(permission, "/serviceAccountName");
            accounts.insert(account);
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": kind,
                "metadata": { "name": account },
                "rules": permission["rules"],
            }));
        }
    }
    objects.extend(accounts.into_iter().filter(|account| *account != "default").map(
        |account| json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": account } }),
    ));
    objects
}
