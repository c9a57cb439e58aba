//! The Helm chart of a project, in dist/chart.
//!
//! The objects of config/default become a tree of data and actions ([`template`]): names and namespaces
//! follow the release ([`names`]), what users of a chart change becomes values ([`deployment`], [`values`]),
//! and optional objects depend on switches ([`objects`]). With default values, the chart installs the objects
//! of config/default.

mod deployment;
mod names;
mod objects;
mod template;
mod values;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use kubewright_manifests::yaml;
use serde_json::{Value, json};

use self::deployment::Manager;
use self::names::Names;
use self::objects::{Objects, Template};
use self::values::Setting;
use super::package::Package;
use super::rendered::{Object, Rendered};
use crate::project::Project;
use crate::project::project_file::{ProjectFile, WebhookCerts};
use crate::scaffold::{Rendered as File, Rendering};

/// The directory of the chart.
pub(crate) const FOLDER: &str = "dist/chart";
/// The record of the generated files.
pub(crate) const RECORD: &str = ".kubewright/chart.yaml";

/// Mount path of the webhook certificate, as in the scaffold.
const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";
/// Kustomizations that config/default only contains if they are enabled.
const OPTIONAL: [&str; 2] = ["config/network-policy", "config/prometheus"];

/// Conditions of templates.
mod when {
    pub(super) const MANAGER: &str = ".Values.manager.enable";
    pub(super) const ACCOUNT: &str = ".Values.serviceAccount.enable";
    pub(super) const RBAC: &str = ".Values.rbac.enable";
    pub(super) const HELPERS: &str = ".Values.rbac.helpers.enable";
    pub(super) const LEADER_ELECTION: &str = ".Values.leaderElection.enable";
    pub(super) const CRDS: &str = ".Values.crd.enable";
    pub(super) const METRICS: &str = ".Values.metrics.enable";
    pub(super) const POLICIES: &str = ".Values.networkPolicy.enable";
    pub(super) const WEBHOOKS: &str = ".Values.webhook.enable";
    pub(super) const CERTIFICATES: &str = "and .Values.webhook.enable .Values.certManager.enable";
    pub(super) const OWN_CERTIFICATES: &str = ".Values.webhook.enable (not .Values.certManager.enable)";
}

/// What the project has.
#[derive(Clone, Copy, Debug)]
struct Features {
    webhooks: bool,
    /// When cert-manager issues the certificate; `None` if it never does.
    cert_manager: Option<&'static str>,
}

/// Input of the chart.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) package: Package,
    pub(crate) project: ProjectFile,
    /// The objects of config/default.
    pub(crate) objects: Rendered,
    /// The objects of optional kustomizations, without prefix and namespace.
    pub(crate) optional: Vec<Object>,
    /// The name prefix of config/default.
    pub(crate) prefix: String,
}

impl Source {
    /// Reads the project. `image` replaces the image in config/.
    pub(crate) fn read(project: &Project, image: Option<&str>) -> Result<Self> {
        let file = ProjectFile::load(project.root())?;
        let mut objects = project.rendered()?;
        if let Some(image) = image {
            objects.set_image(image)?;
        }
        let mut optional = Vec::new();
        for folder in OPTIONAL {
            if project.root().join(folder).is_dir() {
                optional.extend(project.rendered_from(folder)?.objects);
            }
        }
        let prefix = prefix(project, &file, &objects)?;
        Ok(Self { package: Package::read(project)?, project: file, objects, optional, prefix })
    }
}

/// The name prefix of config/default.
fn prefix(project: &Project, file: &ProjectFile, objects: &Rendered) -> Result<String> {
    let manager = objects.manager()?.name();
    if let Some(prefix) = manager.strip_suffix("controller-manager") {
        return Ok(prefix.to_owned());
    }
    let path = project.root().join(super::rendered::DEFAULT).join("kustomization.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let kustomization: Value =
        serde_saphyr::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    let prefix = kustomization["namePrefix"].as_str().map(str::to_owned);
    Ok(prefix.unwrap_or_else(|| format!("{}-", file.project_name)))
}

/// Generates all files of the chart.
pub(crate) fn files(source: &Source) -> Result<Rendering> {
    let manager = source.objects.manager()?;
    let namespace = manager.namespace().unwrap_or("default");
    let account = manager.value().pointer("/spec/template/spec/serviceAccountName");
    let account = account.and_then(Value::as_str).unwrap_or("default").to_owned();
    let chart = source.project.project_name.as_str();
    let mut names = Names::new(chart, &source.prefix, namespace, &account);
    let features = features(source);
    let objects = all_objects(source, &names, features)?;
    for object in &objects {
        names.add(object);
    }
    let deployed = Manager::new(manager.value(), &names, features);
    let is_deployed = |kind: &str| source.objects.of_kind(kind).next().is_some();
    let exists = |kind: &str| objects.iter().any(|object| object.kind() == kind);
    let settings = settings(&deployed, features, |kind| exists(kind).then(|| is_deployed(kind)));

    let templates = Objects {
        names: &names,
        features,
        ports: deployed.ports,
        bound: objects::bound(&objects),
        account: account.clone(),
    };
    let mut made = Rendering::new();
    let mut add = |path: String, text: String| {
        let path = format!("{FOLDER}/{path}");
        made.insert(path.clone(), File { path, text, ..File::default() });
    };
    let mut node = deployed.template;
    let suffix = names.suffix(manager.name()).unwrap_or(manager.name()).to_owned();
    if names.suffix(manager.name()).is_some() {
        node.rename(names.action(&suffix));
    }
    add("templates/manager/deployment.yaml".to_owned(), node.document(Some(when::MANAGER)));
    let mut taken = BTreeSet::new();
    for object in objects.iter().filter(|object| object.id() != manager.id()) {
        let Some(Template { mut path, when, node }) = templates.template(object) else { continue };
        if !taken.insert(path.clone()) {
            // A Role and a ClusterRole can have the same name.
            let stem = path.trim_end_matches(".yaml").to_owned();
            path = format!("{stem}-{}.yaml", object.kind().to_lowercase());
            taken.insert(path.clone());
        }
        add(path, node.document(when.as_deref()));
    }
    let account = names.suffix(&account).unwrap_or("controller-manager");
    let text = |template: &str| {
        template.replace("CHART", chart).replace("ACCOUNT", account).replace("DEPLOYMENT", &suffix)
    };
    add("templates/_helpers.tpl".to_owned(), text(include_str!("../../templates/chart/_helpers.tpl")));
    add("templates/NOTES.txt".to_owned(), text(include_str!("../../templates/chart/NOTES.txt")));
    add(".helmignore".to_owned(), include_str!("../../templates/chart/helmignore").to_owned());
    add("Chart.yaml".to_owned(), chart_file(chart, &source.package));
    add("values.yaml".to_owned(), values::file(chart, &settings));
    add("values.schema.json".to_owned(), values::schema(chart, &settings));
    Ok(made)
}

fn features(source: &Source) -> Features {
    let webhooks = source.project.resources.iter().any(|resource| resource.webhooks().is_some());
    // A project with cert-manager has no permissions to issue its own certificate, so its chart has no switch.
    let cert_manager = match source.project.webhook_certs() {
        WebhookCerts::SelfSigned => Some(when::CERTIFICATES),
        WebhookCerts::CertManager => Some(when::WEBHOOKS),
        WebhookCerts::Files | WebhookCerts::None => None,
    };
    Features { webhooks, cert_manager: cert_manager.filter(|_| webhooks) }
}

/// The objects of config/default, and those that are off by default.
fn all_objects(source: &Source, names: &Names, features: Features) -> Result<Vec<Object>> {
    let mut objects = source.objects.objects.clone();
    let mut add = |mut value: Value| -> Result<()> {
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if names.suffix(name).is_none() {
            let name = names.prefixed(name);
            value["metadata"]["name"] = name.into();
        }
        value["metadata"]["namespace"] = names.namespace().into();
        let object = Object::new(value)?;
        if objects.iter().all(|other| other.id() != object.id()) {
            objects.push(object);
        }
        Ok(())
    };
    for object in &source.optional {
        add(object.value().clone())?;
    }
    if features.cert_manager.is_some() {
        for object in objects::certificates(names) {
            add(object)?;
        }
    }
    Ok(objects)
}

/// The settings in the order of values.yaml. `enabled` returns whether config/default deploys a kind; `None`
/// if the project has none.
fn settings(manager: &Manager, features: Features, enabled: impl Fn(&str) -> Option<bool>) -> Vec<Setting> {
    let enable = |about: &str, value: bool| Setting::switch("enable", about, value);
    let mut settings = vec![
        Setting::text("nameOverride", "Replaces the chart's name in object names and labels.", ""),
        Setting::text("fullnameOverride", "Replaces the prefix of all object names.", ""),
        Setting::group("manager", "The Deployment of the manager.", manager.settings.clone()),
        Setting::group(
            "leaderElection",
            "Leader election, which more than one replica needs.",
            vec![enable("Enable leader election and its Role.", manager.leader_election)],
        ),
        Setting::group(
            "serviceAccount",
            "The ServiceAccount of the manager.",
            vec![
                enable("Create the ServiceAccount. Otherwise it must exist.", true),
                Setting::text(
                    "name",
                    "Name of the ServiceAccount. Defaults to a name with the release's prefix.",
                    "",
                ),
                Setting::strings("annotations", "Annotations of the ServiceAccount.", Value::Null),
            ],
        ),
        Setting::group(
            "rbac",
            "Permissions of the manager.",
            vec![
                enable(
                    "Create Roles and bindings. Otherwise the cluster administrator grants the permissions.",
                    true,
                ),
                Setting::group(
                    "helpers",
                    "Roles for users of the custom resources: admin, editor and viewer. Not bound.",
                    vec![enable("Create the roles.", true)],
                ),
            ],
        ),
        Setting::group(
            "crd",
            "CustomResourceDefinitions.",
            vec![
                enable("Install and upgrade the CRDs with the chart.", true),
                Setting::switch(
                    "keep",
                    "Keep the CRDs, and with them all custom resources, when the release is uninstalled.",
                    true,
                ),
            ],
        ),
        Setting::group(
            "metrics",
            "Metrics of the manager, served over HTTPS with authentication and authorization by the API server.",
            vec![
                enable("Serve metrics, with a Service and the roles to authorize requests.", manager.metrics),
                Setting::port(
                    "port",
                    "Port of the metrics server and of its Service.",
                    manager.ports.metrics,
                ),
            ],
        ),
    ];
    if features.webhooks {
        settings.push(Setting::group(
            "webhook",
            "Admission and conversion webhooks.",
            vec![
                enable("Serve webhooks, and install their configurations and Service.", true),
                Setting::port("port", "Port of the webhook server in the Pod.", manager.ports.webhook),
            ],
        ));
    }
    if features.cert_manager == Some(when::CERTIFICATES) {
        settings.push(Setting::group(
            "certManager",
            "The webhook certificate. By default, the manager issues it and injects its CA.",
            vec![enable("Let cert-manager, which must be installed, issue it.", false)],
        ));
    }
    if let Some(is_default) = enabled("ServiceMonitor") {
        settings.push(Setting::group(
            "prometheus",
            "ServiceMonitor for the Prometheus Operator.",
            vec![enable("Create the ServiceMonitor. Its CRD must be installed.", is_default)],
        ));
    }
    if let Some(is_default) = enabled("NetworkPolicy") {
        settings.push(Setting::group(
            "networkPolicy",
            "NetworkPolicies: metrics from namespaces labeled `metrics: enabled`, webhooks and probes from anywhere.",
            vec![enable("Create the NetworkPolicies.", is_default)],
        ));
    }
    settings
}

/// Chart.yaml.
fn chart_file(name: &str, package: &Package) -> String {
    let mut chart = json!({
        "apiVersion": "v2",
        "appVersion": package.version,
        "description": package.description,
        "name": name,
        "type": "application",
        "version": package.version,
    });
    if let Some(home) = package.homepage.as_ref().or(package.repository.as_ref()) {
        chart["home"] = home.as_str().into();
    }
    if let Some(repository) = &package.repository {
        chart["sources"] = json!([repository]);
    }
    if !package.keywords.is_empty() {
        chart["keywords"] = json!(package.keywords);
    }
    if !package.maintainers.is_empty() {
        let maintainers = package.maintainers.iter().map(|person| {
            let mut maintainer = json!({ "name": person.name });
            if let Some(email) = &person.email {
                maintainer["email"] = email.as_str().into();
            }
            maintainer
        });
        chart["maintainers"] = maintainers.collect();
    }
    yaml::document(&chart).trim_start_matches("---\n").to_owned()
}
