//! The kinds of a project, with all names derived from PROJECT.

use std::cmp::Reverse;

use serde_json::Value;

use super::from_crd::{self, Generated};
use super::names;
use crate::project::project_file::{ProjectFile, Resource};

/// A kind with its names.
#[derive(Clone, Debug)]
pub(super) struct Kind<'a> {
    pub(super) resource: &'a Resource,
    /// Whether the project defines it.
    pub(super) own: bool,
    /// Whether it is the storage version.
    pub(super) stored: bool,
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) module: String,
    pub(super) group_module: String,
    pub(super) controllers: Vec<Controller>,
    /// The generated content, if it was imported from a CRD.
    pub(super) imported: Option<Generated>,
    /// `spec.names` of the imported CRD of another version, shared by all versions.
    pub(super) names: Option<&'a Value>,
    /// Label that selects the objects for webhooks; `None` matches all objects.
    pub(super) selected: Option<String>,
    /// Whether another group has webhooks with the same name.
    is_name_taken: bool,
}

/// An admission webhook with its names.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    pub(super) mutating: bool,
    /// The Rust type.
    pub(super) handler: String,
    /// Its name, if not the default.
    pub(super) named: Option<String>,
    pub(super) path: String,
    /// Whether the path is not the default.
    pub(super) is_path_custom: bool,
}

/// A controller with its names.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    pub(super) module: String,
    pub(super) reconciler: String,
    /// Its name, if not that of the kind.
    pub(super) named: Option<String>,
    /// The condition type that it sets.
    pub(super) condition: String,
}

/// All kinds, in PROJECT order.
pub(super) fn kinds(project: &ProjectFile) -> Vec<Kind<'_>> {
    project.resources.iter().map(|resource| kind(project, resource)).collect()
}

fn kind<'a>(project: &'a ProjectFile, resource: &'a Resource) -> Kind<'a> {
    let singular = resource.kind.to_lowercase();
    let stored = storage_version(project, resource).is_none_or(|stored| stored == resource.version);
    let imported = project.imported.get(&resource.id());
    let mut versions = project.resources.iter().filter(|other| is_same_kind(other, resource));
    let names = versions.find_map(|other| project.imported.get(&other.id())?.pointer("/spec/names"));
    let is_name_taken =
        project.resources.iter().take_while(|other| other.id() != resource.id()).any(|other| {
            other.webhooks().is_some()
                && other.version == resource.version
                && other.kind.eq_ignore_ascii_case(&resource.kind)
        });
    // A failing webhook must not block objects that the cluster itself needs.
    let selected = resource.core.then(|| format!("{}/{}", project.domain, project.project_name));
    Kind {
        selected,
        is_name_taken,
        own: resource.api.is_some(),
        stored,
        imported: imported.map(|definition| from_crd::generate(definition, stored)),
        names,
        group: resource.full_group(),
        plural: if resource.plural.is_empty() {
            names::plural(&resource.kind)
        } else {
            resource.plural.clone()
        },
        module: names::module(&resource.kind),
        group_module: names::module(if resource.group.is_empty() {
            &resource.domain
        } else {
            &resource.group
        }),
        controllers: resource
            .controller_names()
            .into_iter()
            .map(|name| controller(resource, &singular, name))
            .collect(),
        singular,
        resource,
    }
}

fn controller(resource: &Resource, singular: &str, name: String) -> Controller {
    if name == singular {
        return Controller {
            module: names::module(&resource.kind),
            reconciler: format!("{}Reconciler", resource.kind),
            named: None,
            condition: "Ready".to_owned(),
        };
    }
    let type_name = names::type_name(&name);
    Controller {
        module: names::module(&name),
        reconciler: format!("{type_name}Reconciler"),
        // Two controllers of a kind must not write the same condition.
        condition: format!("{type_name}Ready"),
        named: Some(name),
    }
}

/// The storage version of a kind that the project defines: the recorded one, else the newest.
pub(super) fn storage_version<'a>(project: &'a ProjectFile, of: &Resource) -> Option<&'a str> {
    let versions = || {
        let own = project.resources.iter().filter(|other| other.api.is_some() && is_same_kind(other, of));
        own.map(|other| other.version.as_str())
    };
    let recorded = project.storage_version(of).filter(|recorded| versions().any(|one| one == *recorded));
    recorded.or_else(|| versions().max_by_key(|version| priority(version)))
}

/// Whether two entries are versions of the same kind.
pub(super) fn is_same_kind(one: &Resource, other: &Resource) -> bool {
    one.kind == other.kind && one.full_group() == other.full_group()
}

/// Kubernetes version priority: v2, v1, v1beta2, v1beta1, v1alpha1.
pub(super) fn priority(version: &str) -> (u8, u32, u32) {
    let number = |text: &str| text.parse().unwrap_or_default();
    let rest = version.trim_start_matches('v');
    for (stage, rank) in [("alpha", 0), ("beta", 1)] {
        if let Some((major, minor)) = rest.split_once(stage) {
            return (rank, number(major), number(minor));
        }
    }
    (2, number(rest), 0)
}

impl Kind<'_> {
    /// The module of its types: `api::v1`.
    pub(super) fn api(&self, multigroup: bool) -> String {
        let version = &self.resource.version;
        if multigroup { format!("api::{}::{version}", self.group_module) } else { format!("api::{version}") }
    }

    /// The path that a controller or test imports; `root` is the crate's path.
    pub(super) fn type_path(&self, root: &str, multigroup: bool) -> String {
        let module =
            if self.own { format!("{root}::{}", self.api(multigroup)) } else { self.resource.path.clone() };
        let (name, alias) = (self.struct_name(), self.object_name());
        if name == alias { format!("{module}::{name}") } else { format!("{module}::{name} as {alias}") }
    }

    /// Its Rust type.
    pub(super) fn struct_name(&self) -> String {
        if self.own { names::struct_name(&self.resource.kind) } else { self.resource.kind.clone() }
    }

    /// The name of its Rust type in controllers and tests.
    pub(super) fn object_name(&self) -> String {
        names::object_name(&self.resource.kind)
    }

    /// The module of its controllers.
    pub(super) fn controllers_module(&self, multigroup: bool) -> String {
        if multigroup { format!("controllers::{}", self.group_module) } else { "controllers".to_owned() }
    }

    /// The module of its webhooks.
    pub(super) fn webhooks_module(&self, multigroup: bool) -> String {
        let version = &self.resource.version;
        if multigroup {
            format!("webhooks::{}::{version}", self.group_module)
        } else {
            format!("webhooks::{version}")
        }
    }

    /// Its admission webhooks, defaulting first.
    pub(super) fn admission(&self) -> Vec<Admission> {
        let Some(webhooks) = self.resource.webhooks() else { return Vec::new() };
        let (singular, version) = (&self.singular, &self.resource.version);
        [
            (true, webhooks.defaulting, &webhooks.defaulting_path),
            (false, webhooks.validation, &webhooks.validation_path),
        ]
        .into_iter()
        .filter(|(_, there, _)| *there)
        .map(|(mutating, _, path)| {
            let (verb, initial, handler) =
                if mutating { ("mutate", 'm', "Defaulter") } else { ("validate", 'v', "Validator") };
            let group = if self.resource.group.is_empty() { &self.group } else { &self.resource.group };
            Admission {
                mutating,
                handler: format!("{}{handler}", self.resource.kind),
                named: self.is_name_taken.then(|| format!("{initial}{singular}-{version}.{group}.kb.io")),
                path: if path.is_empty() {
                    format!("/{verb}-{}-{version}-{singular}", self.group.replace('.', "-"))
                } else {
                    path.clone()
                },
                is_path_custom: !path.is_empty(),
            }
        })
        .collect()
    }

    /// The spoke versions, if it is a conversion hub.
    pub(super) fn spokes(&self) -> &[String] {
        self.resource
            .webhooks()
            .filter(|webhooks| webhooks.conversion)
            .map_or(&[], |webhooks| &webhooks.spoke)
    }

    /// Group, version and kind as an ID, independent of the layout.
    pub(super) fn id(&self) -> String {
        self.resource.id()
    }

    /// Whether it is namespaced.
    pub(super) fn namespaced(&self) -> bool {
        match &self.resource.api {
            Some(api) => api.namespaced,
            None => super::builtin(&self.resource.group, &self.resource.version, &self.resource.kind)
                .is_none_or(kubewright_apis::facts::Resource::namespaced),
        }
    }
}

/// Versions of a kind by priority.
pub(super) fn newest_first(mut resources: Vec<&Resource>) -> Vec<&Resource> {
    resources.sort_by_key(|resource| Reverse(priority(&resource.version)));
    resources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_kubernetes_priority_order() {
        let mut versions = ["v1alpha1", "v2", "v1beta10", "v1", "v1beta2", "v10"];
        versions.sort_by_key(|version| Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1"]);
    }
}
