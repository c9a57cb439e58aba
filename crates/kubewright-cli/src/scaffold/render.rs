//! Renders all files of a project.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kubewright_manifests::{rbac, yaml};
use serde_json::{Value, json};

use super::code::{crds, environment, get, register, registration, sample_text, signature, text_constant};
use super::dependency::Dependency;
use super::kinds::{self, Controller, Kind};
use super::template::fill;
use super::{from_crd, manifests, names, samples};
use crate::project::project_file::{self, ProjectFile};

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/", $path))
    };
}

// Declared after the macro, which it uses.
mod webhooks;

/// Files by an ID that is independent of the layout.
pub(crate) type Rendering = BTreeMap<String, Rendered>;

/// A file of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) path: String,
    pub(crate) text: String,
    /// `kubewright manifests` generates it.
    pub(crate) generated: bool,
    /// Only kubewright writes it.
    pub(crate) owned: bool,
    /// An existing file is kept.
    pub(crate) yields: bool,
}

/// Options of `init` that PROJECT does not record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) dependency: Dependency,
    /// Add a `[workspace]` table, because a parent directory has a Cargo.toml.
    pub(crate) standalone: bool,
}

/// Renders all files.
pub(crate) fn render(project: &ProjectFile, options: &Options) -> Rendering {
    let license =
        (project.setting("license").and_then(Value::as_str) == Some("apache2")).then_some("Apache-2.0");
    let mut out = Output {
        files: Rendering::new(),
        multigroup: project.multigroup,
        base: json!({
            "name": project.project_name,
            "webhooks": project.resources.iter().any(|resource| resource.webhooks().is_some()),
            "crate": project.project_name.replace('-', "_"),
            "namespaced": project.namespaced,
            "license": license,
            "dependency": options.dependency.values(),
            "standalone": options.standalone,
            "network_policy": project.is_on("networkPolicy"),
            "prometheus": project.is_on("prometheus"),
        }),
        header: header(project, license),
    };
    let kinds = kinds::kinds(project);
    out.package(project, &kinds);
    if license.is_some() {
        out.fixed("LICENSE", template!("LICENSE"));
    }
    out.sources(&kinds);
    out.webhooks(project, &kinds);
    out.tests(&kinds);
    out.config(project, &kinds);
    out.rbac(project, &kinds);
    out.generated(project, &kinds);
    out.files
}

/// The header of source files, if the project has an owner.
fn header(project: &ProjectFile, license: Option<&str>) -> String {
    let Some(owner) = project.setting("owner").and_then(Value::as_str) else { return String::new() };
    let license = license.map(|license| format!("// SPDX-License-Identifier: {license}\n"));
    format!("// Copyright {owner}\n{}\n", license.unwrap_or_default())
}

struct Output {
    files: Rendering,
    multigroup: bool,
    /// Values for all templates.
    base: Value,
    /// Header of source files.
    header: String,
}

impl Output {
    fn put(&mut self, id: impl Into<String>, path: &str, template: &str, with: &Value) {
        let mut values = self.base.clone();
        if let (Value::Object(values), Value::Object(with)) = (&mut values, with) {
            values.extend(with.clone());
        }
        self.write(id.into(), path.to_owned(), fill(template, &values));
    }

    fn write(&mut self, id: String, path: String, mut text: String) {
        if Path::new(&path).extension().is_some_and(|extension| extension == "rs") {
            text.insert_str(0, &self.header);
        }
        self.files.insert(id, Rendered { path, text, ..Rendered::default() });
    }

    /// Renders a file whose path is its ID.
    fn fixed(&mut self, path: &str, template: &str) {
        self.put(path, path, template, &Value::Null);
        if let Some(file) = self.files.get_mut(path) {
            file.yields = YIELDING.contains(&path);
        }
    }

    fn package(&mut self, project: &ProjectFile, kinds: &[Kind<'_>]) {
        let project = Rendered {
            path: project_file::PATH.to_owned(),
            text: project.to_text(),
            owned: true,
            ..Rendered::default()
        };
        self.files.insert(project.path.clone(), project);
        let modules: BTreeSet<&str> = kinds.iter().map(|kind| kind.resource.module.as_str()).collect();
        let crates: Vec<Value> = modules
            .into_iter()
            .filter(|module| !module.is_empty())
            .map(|module| module.split_once('@').unwrap_or((module, "*")))
            .map(|(name, version)| json!({ "name": name, "version": version.trim_start_matches('v') }))
            .collect();
        self.put("Cargo.toml", "Cargo.toml", template!("Cargo.toml.j2"), &json!({ "crates": crates }));
        self.fixed("Makefile", template!("Makefile.j2"));
        self.fixed("Dockerfile", template!("Dockerfile.j2"));
        self.fixed(".dockerignore", template!("dockerignore"));
        self.fixed(".gitignore", template!("gitignore"));
        self.fixed("README.md", template!("README.md.j2"));
        self.fixed("AGENTS.md", template!("AGENTS.md.j2"));
        self.fixed(".github/workflows/test.yml", template!("github/test.yml.j2"));
        self.fixed(".github/workflows/lint.yml", template!("github/lint.yml.j2"));
        self.fixed(".github/workflows/release.yml", template!("github/release.yml.j2"));
        self.fixed(".github/workflows/chart.yml", template!("github/chart.yml.j2"));
    }

    fn sources(&mut self, kinds: &[Kind<'_>]) {
        self.fixed("src/main.rs", template!("src/main.rs.j2"));
        self.fixed("src/lib.rs", template!("src/lib.rs.j2"));
        self.registry(kinds);
        self.api(kinds);
        self.controllers(kinds);
    }

    fn registry(&mut self, kinds: &[Kind<'_>]) {
        let types: Vec<String> = kinds
            .iter()
            .filter(|kind| kind.own)
            .map(|kind| crds(&format!("{}::{}", kind.api(self.multigroup), kind.struct_name())))
            .collect();
        let controllers: Vec<String> = with_controllers(kinds)
            .map(|(kind, controller)| {
                let module = format!("{}::{}", kind.controllers_module(self.multigroup), controller.module);
                register(&module, "manager")
            })
            .collect();
        let webhooks = webhooks::registrations(kinds, self.multigroup);
        let used = [("api", !types.is_empty()), ("controllers", !controllers.is_empty())];
        let used = used.into_iter().chain([("webhooks", !webhooks.is_empty())]);
        let used: Vec<&str> = used.filter(|(_, used)| *used).map(|(module, _)| module).collect();
        let imported = match used.as_slice() {
            [module] => (*module).to_owned(),
            modules => format!("{{{}}}", modules.join(", ")),
        };
        let registrations: Vec<String> = controllers.into_iter().chain(webhooks).collect();
        let values = json!({ "kinds": types, "registrations": registrations, "imported": imported });
        self.put("src/registry.rs", "src/registry.rs", template!("src/registry.rs.j2"), &values);
    }

    fn modules<'a>(&mut self, id: &str, path: &str, about: &str, modules: impl Iterator<Item = &'a str>) {
        let modules: BTreeSet<&str> = modules.collect();
        self.put(id, path, template!("src/modules.rs.j2"), &json!({ "about": about, "modules": modules }));
    }

    fn api(&mut self, kinds: &[Kind<'_>]) {
        let own: Vec<&Kind<'_>> = kinds.iter().filter(|kind| kind.own).collect();
        let multigroup = self.multigroup;
        let top =
            own.iter().map(|kind| if multigroup { &*kind.group_module } else { &*kind.resource.version });
        self.modules("src/api.rs", "src/api.rs", "API types.", top);
        let mut versions: BTreeMap<(&str, &str, &str), Vec<&Kind<'_>>> = BTreeMap::new();
        for kind in &own {
            let key = (kind.group_module.as_str(), kind.group.as_str(), kind.resource.version.as_str());
            versions.entry(key).or_default().push(kind);
        }
        if multigroup {
            let groups: BTreeMap<&str, &str> =
                versions.keys().map(|(module, group, _)| (*module, *group)).collect();
            for (module, group) in groups {
                let inside =
                    versions.keys().filter(|(other, ..)| *other == module).map(|(.., version)| *version);
                let inside: Vec<&str> = inside.collect();
                let path = format!("src/api/{module}.rs");
                self.modules(
                    &format!("api/{group}"),
                    &path,
                    &format!("API types in the group {group}."),
                    inside.into_iter(),
                );
            }
        }
        for ((module, group, version), mut kinds) in versions {
            kinds.sort_by(|one, other| one.module.cmp(&other.module));
            let folder =
                if multigroup { format!("src/api/{module}/{version}") } else { format!("src/api/{version}") };
            let inside: Vec<Value> = kinds.iter().map(|kind| json!({ "module": kind.module })).collect();
            let values = json!({ "group": group, "version": version, "kinds": inside });
            let id = format!("api/{group}/{version}");
            self.put(id, &format!("{folder}.rs"), template!("src/version.rs.j2"), &values);
            for kind in kinds {
                let path = format!("{folder}/{}.rs", kind.module);
                let id = format!("types/{}", kind.id());
                match &kind.imported {
                    Some(imported) => self.write(id, path, imported.code.clone()),
                    None => self.put(id, &path, template!("src/types.rs.j2"), &values_of(kind)),
                }
            }
        }
    }

    fn controllers(&mut self, kinds: &[Kind<'_>]) {
        let multigroup = self.multigroup;
        let all: Vec<(&Kind<'_>, &Controller)> = with_controllers(kinds).collect();
        let top =
            all.iter().map(
                |(kind, controller)| {
                    if multigroup { kind.group_module.as_str() } else { controller.module.as_str() }
                },
            );
        self.modules("src/controllers.rs", "src/controllers.rs", "Controllers.", top);
        if multigroup {
            let groups: BTreeMap<&str, &str> = all
                .iter()
                .map(|(kind, _)| (kind.group_module.as_str(), kind.resource.group.as_str()))
                .collect();
            for (module, group) in groups {
                let inside = all.iter().filter(|(kind, _)| kind.group_module == module);
                let about = format!("Controllers for the group {group}.");
                let path = format!("src/controllers/{module}.rs");
                let inside = inside.map(|(_, controller)| controller.module.as_str());
                self.modules(&format!("controllers/{group}"), &path, &about, inside);
            }
        }
        for (kind, controller) in all {
            let folder = kind.controllers_module(multigroup).replace("::", "/");
            let path = format!("src/{folder}/{}.rs", controller.module);
            let mut values = values_of(kind);
            values["type_path"] = kind.type_path("crate", multigroup).into();
            values["reconciler"] = controller.reconciler.as_str().into();
            values["registration"] = registration(controller).into();
            values["signature"] = signature(kind).into();
            values["condition"] = controller.condition.as_str().into();
            let id = format!("controller/{}/{}", kind.id(), controller.module);
            let template = if kind.own {
                template!("src/controller.rs.j2")
            } else {
                template!("src/controller_foreign.rs.j2")
            };
            self.put(id, &path, template, &values);
        }
    }

    fn tests(&mut self, kinds: &[Kind<'_>]) {
        let mut modules = BTreeSet::from(["operator".to_owned()]);
        modules.extend(self.webhook_tests(kinds));
        self.fixed("tests/it/operator.rs", template!("tests/operator.rs.j2"));
        let root = self.base["crate"].as_str().unwrap_or_default().to_owned();
        let mut samples = Vec::new();
        for (kind, controller) in with_controllers(kinds).filter(|(kind, _)| !kind.resource.external) {
            let module = if self.multigroup {
                format!("{}_{}", kind.group_module, controller.module)
            } else {
                controller.module.clone()
            };
            let types = self.versions(kinds, kind);
            let object_yaml = samples::object(&kind.group, &kind.resource.version, &kind.resource.kind);
            let mut values = values_of(kind);
            values["own"] = kind.own.into();
            values["type_path"] = kind.type_path(&root, self.multigroup).into();
            let module_path = format!("{}::{}", kind.controllers_module(self.multigroup), controller.module);
            values["register"] = register(&module_path, "&manager").into();
            values["file"] = text_constant("FILE", &format!("{}.rs", module_path.replace("::", "/"))).into();
            values["controller_name"] = controller.named.as_ref().unwrap_or(&kind.singular).as_str().into();
            values["environment"] = environment(&types).into();
            values["sample_text"] = sample_text("SAMPLE", &sample(kind)).into();
            values["condition"] = controller.condition.as_str().into();
            values["object_yaml"] = object_yaml.clone().unwrap_or_default().into();
            let (test, indent) = match (kind.own, object_yaml) {
                (true, _) => test_of(kind),
                (false, Some(_)) => (template!("tests/controller_foreign.rs.j2"), 0),
                (false, None) => (template!("tests/controller_runs.rs.j2"), 0),
            };
            values["get"] = get(kind, indent).into();
            let id = format!("test/{}/{}", kind.id(), controller.module);
            self.put(id, &format!("tests/it/{module}.rs"), test, &values);
            modules.insert(module);
            let reports =
                kind.imported.as_ref().is_none_or(|made| made.is_sample_taken && made.has_conditions);
            if kind.own && reports {
                samples.push(json!({ "file": sample(kind), "condition": controller.condition }));
            }
        }
        let values = json!({ "modules": modules });
        self.put("tests/it/main.rs", "tests/it/main.rs", template!("tests/main.rs.j2"), &values);
        let values = json!({ "samples": samples });
        self.put("tests/e2e/main.rs", "tests/e2e/main.rs", template!("tests/e2e.rs.j2"), &values);
    }

    /// The types of all versions of a kind, which share one CRD, as a test imports them.
    fn versions(&self, kinds: &[Kind<'_>], kind: &Kind<'_>) -> Vec<String> {
        let root = self.base["crate"].as_str().unwrap_or_default();
        let versions = kinds.iter().filter(|other| kinds::is_same_kind(other.resource, kind.resource));
        let types = versions.filter(|version| version.own).map(|version| {
            if version.id() == kind.id() {
                kind.object_name()
            } else {
                format!("{root}::{}::{}", version.api(self.multigroup), version.struct_name())
            }
        });
        types.collect()
    }

    fn config(&mut self, project: &ProjectFile, kinds: &[Kind<'_>]) {
        let own: Vec<&Kind<'_>> = kinds.iter().filter(|kind| kind.own).collect();
        let mut values = webhooks::wiring(project, kinds);
        values["kinds"] = (!own.is_empty()).into();
        let path = "config/default/kustomization.yaml";
        self.put(path, path, template!("config/default/kustomization.yaml.j2"), &values);
        self.fixed(
            "config/default/metrics_service.yaml",
            template!("config/default/metrics_service.yaml.j2"),
        );
        self.fixed("config/manager/kustomization.yaml", template!("config/manager/kustomization.yaml"));
        self.fixed("config/manager/manager.yaml", template!("config/manager/manager.yaml.j2"));
        self.fixed("config/prometheus/kustomization.yaml", template!("config/prometheus/kustomization.yaml"));
        self.fixed("config/prometheus/monitor.yaml", template!("config/prometheus/monitor.yaml.j2"));
        let policies = "config/network-policy/kustomization.yaml";
        self.fixed(policies, template!("config/network-policy/kustomization.yaml.j2"));
        let policy = "config/network-policy/allow-metrics-traffic.yaml";
        self.fixed(policy, template!("config/network-policy/allow-metrics-traffic.yaml.j2"));
        if own.is_empty() {
            return;
        }
        let bases: BTreeSet<String> =
            own.iter().map(|kind| format!("bases/{}_{}.yaml", kind.group, kind.plural)).collect();
        let crd = "config/crd/kustomization.yaml";
        let about = "CRDs generated by `kubewright manifests`.";
        let is_converted = kinds.iter().any(|kind| !kind.spokes().is_empty());
        let values = json!({ "about": about, "files": bases, "configured": is_converted });
        self.put(crd, crd, template!("config/list.yaml.j2"), &values);
        if is_converted {
            self.fixed("config/crd/kustomizeconfig.yaml", template!("config/crd/kustomizeconfig.yaml"));
        }
        let samples: Vec<String> = own.iter().map(|kind| sample(kind)).collect();
        let path = "config/samples/kustomization.yaml";
        let values = json!({ "about": "", "files": samples, "configured": false });
        self.put(path, path, template!("config/list.yaml.j2"), &values);
        for kind in own {
            let path = format!("config/samples/{}", sample(kind));
            let mut values = values_of(kind);
            let fields = match &kind.imported {
                Some(imported) => imported.sample.clone().into(),
                None => json!({ "spec": {} }),
            };
            values["fields"] = yaml::document(&fields).trim_start_matches("---\n").trim_end().into();
            values["taken"] = kind.imported.as_ref().is_none_or(|imported| imported.is_sample_taken).into();
            let id = format!("sample/{}", kind.id());
            self.put(id, &path, template!("config/samples/sample.yaml.j2"), &values);
        }
    }

    fn rbac(&mut self, project: &ProjectFile, kinds: &[Kind<'_>]) {
        self.fixed("config/rbac/service_account.yaml", template!("config/rbac/service_account.yaml.j2"));
        let manager = if project.namespaced { "RoleBinding" } else { "ClusterRoleBinding" };
        let mut bindings = vec![
            ("role_binding", rbac::MANAGER_ROLE, manager),
            ("leader_election_role_binding", rbac::LEADER_ELECTION_ROLE, "RoleBinding"),
            ("metrics_auth_role_binding", rbac::METRICS_AUTH_ROLE, "ClusterRoleBinding"),
        ];
        let webhooks = webhooks::bindings(project, &manifests::files(project, kinds));
        bindings.extend(&webhooks);
        for (file, role, binding) in bindings {
            let path = format!("config/rbac/{file}.yaml");
            let values = json!({ "role": role, "binding": binding });
            self.put(&path, &path, template!("config/rbac/binding.yaml.j2"), &values);
        }
        let inventory = manifests::inventory(project, kinds);
        for (file, role) in [
            ("leader_election_role", rbac::leader_election_role(&inventory)),
            ("metrics_auth_role", rbac::metrics_auth_role(&inventory)),
            ("metrics_reader_role", rbac::metrics_reader_role(&inventory)),
            ("debug_page_reader_role", rbac::debug_page_reader_role(&inventory)),
        ] {
            let path = format!("config/rbac/{file}.yaml");
            let text = yaml::documents(&role);
            self.files.insert(path.clone(), Rendered { path, text, ..Rendered::default() });
        }
        let mut roles = Vec::new();
        for kind in kinds.iter().filter(|kind| kind.own && kind.stored) {
            let group = names::module(&kind.resource.group).replace('_', "-");
            let (prefix, dashed) = if self.multigroup {
                (format!("{}_", kind.group_module), format!("{group}-"))
            } else {
                Default::default()
            };
            for (who, about, verbs) in PEOPLE {
                let file = format!("{prefix}{}_{who}_role.yaml", kind.singular);
                let mut values = values_of(kind);
                values["singular"] = format!("{dashed}{}", kind.singular).into();
                values["who"] = (*who).into();
                values["verbs"] = json!(verbs);
                values["about"] = about.replace("KINDS", &kind.plural).into();
                let id = format!("role/{}/{}/{who}", kind.group, kind.resource.kind);
                self.put(
                    id,
                    &format!("config/rbac/{file}"),
                    template!("config/rbac/kind_role.yaml.j2"),
                    &values,
                );
                roles.push(file);
            }
        }
        let path = "config/rbac/kustomization.yaml";
        let webhooks: Vec<String> = webhooks.iter().map(|(file, ..)| format!("{file}.yaml")).collect();
        let values = json!({ "roles": roles, "webhook_bindings": webhooks });
        self.put(path, path, template!("config/rbac/kustomization.yaml.j2"), &values);
    }

    fn generated(&mut self, project: &ProjectFile, kinds: &[Kind<'_>]) {
        for kind in kinds {
            let Some(definition) = project.imported.get(&kind.id()) else { continue };
            let file = Rendered {
                path: kind.resource.imported_path(),
                text: format!("{IMPORTED}{}", yaml::document(definition).trim_start_matches("---\n")),
                owned: true,
                ..Rendered::default()
            };
            self.files.insert(format!("imported/{}", kind.id()), file);
        }
        for (path, text) in manifests::files(project, kinds) {
            self.files.insert(path.clone(), Rendered { path, text, generated: true, ..Rendered::default() });
        }
    }
}

/// Files that may exist before `init`.
const YIELDING: [&str; 4] = [".gitignore", "AGENTS.md", "LICENSE", "README.md"];

const IMPORTED: &str = "\
# The CRD that the types were generated from. Do not edit it: `kubewright` uses it to merge later changes.
# The deployed CRD is in ../bases.
";

/// Roles for users of a kind.
const PEOPLE: &[(&str, &str, &[&str])] = &[
    ("admin", "Grants full permissions on KINDS.", &["*"]),
    (
        "editor",
        "Grants permissions to create, update and delete KINDS.",
        &["create", "delete", "get", "list", "patch", "update", "watch"],
    ),
    ("viewer", "Grants read-only access to KINDS.", &["get", "list", "watch"]),
];

fn with_controllers<'a>(kinds: &'a [Kind<'a>]) -> impl Iterator<Item = (&'a Kind<'a>, &'a Controller)> {
    kinds.iter().flat_map(|kind| kind.controllers.iter().map(move |controller| (kind, controller)))
}

/// The test of a controller: the sample becomes ready, is accepted, or the controller only starts. Also
/// returns the indentation of the statement that reads the object.
fn test_of(kind: &Kind<'_>) -> (&'static str, usize) {
    match &kind.imported {
        Some(imported) if !imported.is_sample_taken => (template!("tests/controller_runs.rs.j2"), 0),
        Some(imported) if !imported.has_conditions => (template!("tests/controller_silent.rs.j2"), 4),
        _ => (template!("tests/controller.rs.j2"), 8),
    }
}

fn sample(kind: &Kind<'_>) -> String {
    let group = if kind.resource.group.is_empty() { &kind.resource.domain } else { &kind.resource.group };
    format!("{group}_{}_{}.yaml", kind.resource.version, kind.singular)
}

fn values_of(kind: &Kind<'_>) -> Value {
    let name = &kind.resource.kind;
    let article = names::article(name);
    json!({
        "group": kind.group,
        "version": kind.resource.version,
        "kind": name,
        "struct": kind.struct_name(),
        "object": kind.object_name(),
        "plural": kind.plural,
        "singular": kind.singular,
        "stored": kind.stored,
        "namespaced": kind.namespaced(),
        "article": article,
        "names": kind.names.map(from_crd::name_attributes).unwrap_or_default(),
        "imported": kind.imported.is_some(),
        "conditions": kind.imported.as_ref().is_none_or(|imported| imported.has_conditions),
    })
}
