//! The ClusterServiceVersion.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::permissions::Permissions;
use super::readme::{Readme, display_name};
use super::{ARCHITECTURE, Options, Source, deployment, descriptors, olm, pins, webhooks};
use crate::project::project_file::LAYOUT;

/// The ClusterServiceVersion of a bundle.
pub(super) fn of(source: &Source<'_>, options: &Options, version: &str) -> Result<Value> {
    let (project, package) = (&source.project, &source.package);
    let name = project.project_name.as_str();
    let manager = source.objects.manager()?;
    let webhooks = webhooks::definitions(&source.objects, manager);
    let deployment = deployment::spec(manager.value(), !webhooks.is_empty(), project.namespaced);
    let images = deployment::related_images(&deployment);
    let image = images.iter().find(|image| image["name"] == "manager").map(|image| image["image"].clone());
    let owned = descriptors::owned(&source.objects, source.inventory);
    let readme = Readme::parse(source.readme.as_deref().unwrap_or_default());
    let title = readme.title.filter(|title| title != name).unwrap_or_else(|| display_name(name));
    let description = if readme.text.is_empty() { package.description.clone() } else { readme.text };
    let provider = project.setting("owner").and_then(Value::as_str).map(str::to_owned);
    let provider = provider.or_else(|| package.maintainers.first().map(|person| person.name.clone()));

    let mut annotations = json!({
        "alm-examples": examples(&source.samples, &owned),
        "capabilities": "Basic Install",
        "description": package.description,
        "operatorframework.io/suggested-namespace": manager.namespace().unwrap_or(name),
        "operators.operatorframework.io/builder": format!("kubewright-v{}", env!("CARGO_PKG_VERSION")),
        "operators.operatorframework.io/project_layout": LAYOUT,
    });
    olm::annotate(&mut annotations, source.inventory);
    if let Some(image) = image {
        annotations["containerImage"] = image;
    }
    if let Some(repository) = &package.repository {
        annotations["repository"] = repository.as_str().into();
    }
    if let Some(record) = source.pins.record() {
        annotations[pins::ANNOTATION] = record.into();
    }
    if let Some(range) = &options.skip_range {
        annotations["olm.skipRange"] = range.as_str().into();
    }
    let mut strategy = json!({
        "deployments": [{
            "name": manager.name(),
            "label": manager.value()["metadata"]["labels"],
            "spec": deployment,
        }],
    });
    Permissions::of(&source.objects, manager).add_to(&mut strategy);
    let mut spec = json!({
        "customresourcedefinitions": { "owned": owned },
        "description": description,
        "displayName": title,
        "install": { "strategy": "deployment", "spec": strategy },
        "installModes": install_modes(project.namespaced),
        "keywords": if package.keywords.is_empty() { json!([name]) } else { json!(package.keywords) },
        "links": links(source),
        "maturity": if version.starts_with("0.") { "alpha" } else { "stable" },
        "provider": { "name": provider.unwrap_or_else(|| project.domain.clone()) },
        "relatedImages": images,
        "version": version,
    });
    if let Some(url) = package.homepage.as_ref().or(package.repository.as_ref()) {
        spec["provider"]["url"] = url.as_str().into();
    }
    let maintainers = package.maintainers.iter().filter_map(|person| {
        let email = person.email.as_ref()?;
        Some(json!({ "name": person.name, "email": email }))
    });
    let maintainers: Vec<Value> = maintainers.collect();
    for (field, list) in [("maintainers", maintainers), ("webhookdefinitions", webhooks)] {
        if !list.is_empty() {
            spec[field] = list.into();
        }
    }
    if let Some(icon) = &source.icon {
        spec["icon"] = json!([icon]);
    }
    if let Some(replaces) = &options.replaces {
        spec["replaces"] = replaces.as_str().into();
    }
    if !options.skips.is_empty() {
        spec["skips"] = json!(options.skips);
    }
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{name}.v{version}"),
            "namespace": "placeholder",
            "annotations": annotations,
            "labels": labels(&source.architectures),
        },
        "spec": spec,
    }))
}

/// The platforms of the operator, by which catalogs select operators for the nodes of a cluster.
fn labels(architectures: &BTreeSet<String>) -> Value {
    let architectures = architectures.iter().map(|name| format!("{ARCHITECTURE}{name}"));
    let labels = architectures.chain(["operatorframework.io/os.linux".to_owned()]);
    labels.map(|label| (label, "supported".into())).collect::<Map<String, Value>>().into()
}

/// Samples of owned kinds as JSON.
fn examples(samples: &[Value], owned: &[Value]) -> String {
    let is_owned = |sample: &&Value| {
        owned.iter().any(|it| {
            let group =
                it["name"].as_str().and_then(|name| name.split_once('.')).map_or("", |(_, group)| group);
            let version = it["version"].as_str().unwrap_or_default();
            sample["kind"] == it["kind"] && sample["apiVersion"] == format!("{group}/{version}")
        })
    };
    let samples: Vec<&Value> = samples.iter().filter(is_owned).collect();
    serde_json::to_string_pretty(&samples).expect("a JSON value can be serialized")
}

/// A namespaced operator watches the namespaces of its OperatorGroup. Others watch all namespaces.
fn install_modes(namespaced: bool) -> Value {
    let mode = |of: &str, supported: bool| json!({ "type": of, "supported": supported });
    json!([
        mode("OwnNamespace", namespaced),
        mode("SingleNamespace", namespaced),
        mode("MultiNamespace", namespaced),
        mode("AllNamespaces", !namespaced),
    ])
}

fn links(source: &Source<'_>) -> Value {
    let package = &source.package;
    let links = [
        ("Homepage", &package.homepage),
        ("Documentation", &package.documentation),
        ("Source", &package.repository),
    ];
    let links =
        links.into_iter().filter_map(|(name, url)| Some(json!({ "name": name, "url": url.as_ref()? })));
    links.collect()
}
