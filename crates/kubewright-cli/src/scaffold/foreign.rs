//! Kinds and projects defined elsewhere: built-in kinds and kubebuilder projects.

use kubewright_apis::facts;
use serde_json::Value;

use super::from_crd::{self, Wanted};
use super::{kinds, names, webhooks};
use crate::project::project_file::{ProjectFile, Resource};

/// Finds a built-in kind. The group may be abbreviated: `core`, `apps`, `networking`.
pub(crate) fn builtin(group: &str, version: &str, kind: &str) -> Option<&'static facts::Resource> {
    facts::resources()
        .iter()
        .find(|known| is_group(group, known.group) && known.version == version && known.kind == kind)
}

/// Whether a group is built in.
pub(super) fn is_builtin_group(group: &str) -> bool {
    facts::resources().iter().any(|known| is_group(group, known.group))
}

fn is_group(said: &str, known: &str) -> bool {
    match said {
        "core" => known.is_empty(),
        "rbac" => known == "rbac.authorization.k8s.io",
        _ => known == said || known.strip_suffix(".k8s.io") == Some(said),
    }
}

/// The PROJECT entry of a built-in kind.
pub(super) fn builtin_entry(known: &facts::Resource) -> Resource {
    let (group, domain) = match known.group.strip_suffix(".k8s.io") {
        Some(group) => (group, "k8s.io"),
        None if known.group.is_empty() => ("core", ""),
        None => (known.group, ""),
    };
    // k8s-openapi's modules are named after Go's packages.
    let module = match known.group {
        "" => "api::core".to_owned(),
        "rbac.authorization.k8s.io" => "api::rbac".to_owned(),
        "apiextensions.k8s.io" => "apiextensions_apiserver::pkg::apis::apiextensions".to_owned(),
        "apiregistration.k8s.io" => "kube_aggregator::pkg::apis::apiregistration".to_owned(),
        "internal.apiserver.k8s.io" => "api::apiserverinternal".to_owned(),
        other => format!("api::{}", other.split('.').next().unwrap_or_default()),
    };
    Resource {
        core: true,
        domain: domain.to_owned(),
        group: group.to_owned(),
        kind: known.kind.to_owned(),
        path: format!("k8s_openapi::{module}::{}", known.version),
        plural: if names::plural(known.kind) == known.plural {
            String::new()
        } else {
            known.plural.to_owned()
        },
        version: known.version.to_owned(),
        ..Resource::default()
    }
}

/// Converts a kubebuilder project, and lists what is not imported. The types are generated from the project's
/// `crds`, so that no field of existing objects is pruned.
pub(crate) fn adopt(theirs: &ProjectFile, crds: &[Value]) -> (ProjectFile, Vec<String>) {
    let mut ours = ProjectFile::new(&theirs.domain, &theirs.project_name);
    ours.multigroup = theirs.multigroup;
    ours.namespaced = theirs.namespaced;
    let mut left = Vec::new();
    for plugin in theirs.plugins.keys() {
        left.push(format!("plugin {plugin}: not supported"));
    }
    for name in theirs.other.keys().filter(|name| !["repo", "cliVersion"].contains(&name.as_str())) {
        left.push(format!("`{name}`: unknown setting"));
    }
    for resource in &theirs.resources {
        let shown = resource.shown();
        if resource.api.as_ref().is_some_and(|api| api.other.get("ssa") == Some(&true.into())) {
            left.push(format!("`ssa` of {shown}: derive ApplyConfiguration on its types instead"));
        }
        if resource.external {
            left.push(format!(
                "{shown} of {}: add it with `create api --external-api-path` and a Rust crate",
                resource.path
            ));
            continue;
        }
        let controllers = (resource.controller, resource.controllers.clone());
        let mut entry = match builtin(&resource.group, &resource.version, &resource.kind) {
            Some(known) if resource.core || resource.api.is_none() => builtin_entry(known),
            _ if resource.api.is_none() => {
                left.push(format!("{shown}: unknown kind"));
                continue;
            }
            _ => Resource {
                api: resource.api.clone(),
                domain: resource.domain.clone(),
                group: resource.group.clone(),
                kind: resource.kind.clone(),
                plural: resource.plural.clone(),
                version: resource.version.clone(),
                ..Resource::default()
            },
        };
        if let Some(api) = &mut entry.api {
            api.other.clear();
        }
        (entry.controller, entry.controllers) = controllers;
        entry.webhooks = webhooks::carried_over(theirs, resource, &mut left);
        if entry.api.is_some() {
            match version_of(crds, &entry) {
                Some(crd) => ours.import(&entry.id(), Some(&crd)),
                None => left.push(format!(
                    "types of {shown}: config/crd/bases has no CRD for it, so they start from a template"
                )),
            }
        }
        ours.resources.push(entry);
    }
    for entry in ours.resources.clone() {
        let versions = ours.resources.iter().filter(|other| kinds::is_same_kind(other, &entry));
        let versions: Vec<Resource> = versions.filter(|other| other.api.is_some()).cloned().collect();
        if versions.len() > 1 {
            ours.set_storage_version(&entry, Some(&stored(theirs, crds, &versions)));
        }
    }
    (ours, left)
}

/// The CRD of a kind, reduced to one version.
fn version_of(crds: &[Value], entry: &Resource) -> Option<Value> {
    let wanted = Wanted {
        group: Some(entry.full_group()),
        version: Some(entry.version.clone()),
        kind: Some(entry.kind.clone()),
        ..Wanted::default()
    };
    let chosen = from_crd::choose(crds, &wanted).ok()?;
    chosen.into_iter().find(|chosen| chosen.group == entry.full_group()).map(|chosen| chosen.definition)
}

/// The storage version of a kind: from its CRD, else the conversion hub, else the first in PROJECT.
fn stored(theirs: &ProjectFile, crds: &[Value], versions: &[Resource]) -> String {
    let in_crd = |one: &&Resource| version_of(crds, one).as_ref().is_some_and(from_crd::is_stored);
    let is_hub = |one: &&Resource| {
        let theirs = theirs.resources.iter().find(|known| known.id() == one.id());
        theirs.and_then(Resource::webhooks).is_some_and(|webhooks| webhooks.conversion)
    };
    let found = versions.iter().find(in_crd).or_else(|| versions.iter().find(is_hub));
    found.or(versions.first()).map(|one| one.version.clone()).unwrap_or_default()
}
