//! Renders webhook files: handlers, conversions, tests, fixtures and the manifests in config/.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_manifests::files::{Files, ROLES, WEBHOOK_CERTIFICATES};
use kubewright_manifests::rbac;
use serde_json::{Value, json};

use super::{Output, sample, values_of};
use crate::project::project_file::{ProjectFile, WebhookCerts};
use crate::scaffold::code::{
    attribute, conversion, environment, handler, register, round_trip, sample_text, text_constant,
};
use crate::scaffold::fixtures;
use crate::scaffold::kinds::{self, Kind};

/// Mount path of the serving certificate, as in kubebuilder.
const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";

/// Statements that register all webhooks.
pub(super) fn registrations(kinds: &[Kind<'_>], multigroup: bool) -> Vec<String> {
    let modules = kinds.iter().flat_map(|kind| {
        modules_of(kind).into_iter().map(move |module| (kind.webhooks_module(multigroup), module))
    });
    modules.map(|(path, module)| register(&format!("{path}::{module}"), "manager")).collect()
}

/// The modules of a kind: admission webhooks and conversion.
fn modules_of(kind: &Kind<'_>) -> Vec<String> {
    let admission = (!kind.admission().is_empty()).then(|| kind.module.clone());
    let conversion = (!kind.spokes().is_empty()).then(|| conversion_module(kind));
    admission.into_iter().chain(conversion).collect()
}

fn conversion_module(kind: &Kind<'_>) -> String {
    format!("{}_conversion", kind.module.trim_end_matches('_'))
}

/// Template values for config/default.
pub(super) fn wiring(project: &ProjectFile, kinds: &[Kind<'_>]) -> Value {
    let certs = project.webhook_certs();
    let admission: Vec<_> = kinds.iter().flat_map(Kind::admission).collect();
    let mut injected = Vec::new();
    if admission.iter().any(|webhook| webhook.mutating) {
        injected.push(json!({ "kind": "MutatingWebhookConfiguration" }));
    }
    if admission.iter().any(|webhook| !webhook.mutating) {
        injected.push(json!({ "kind": "ValidatingWebhookConfiguration" }));
    }
    let hubs = kinds.iter().filter(|kind| !kind.spokes().is_empty());
    injected.extend(hubs.map(|kind| {
        json!({ "kind": "CustomResourceDefinition", "name": format!("{}.{}", kind.plural, kind.group) })
    }));
    let argument = match certs {
        WebhookCerts::SelfSigned => None,
        WebhookCerts::CertManager | WebhookCerts::Files => {
            Some(format!("--webhook-cert-path={CERTIFICATES}"))
        }
        WebhookCerts::None => Some("--webhook-cert-mode=none".to_owned()),
    };
    json!({
        "cert_manager": certs == WebhookCerts::CertManager,
        "injected": injected,
        "admission": !admission.is_empty(),
        "argument": argument,
        "mounted": matches!(certs, WebhookCerts::CertManager | WebhookCerts::Files),
        "certificates": CERTIFICATES,
    })
}

/// RoleBindings that webhooks need: file, role and kind of the binding.
pub(super) fn bindings(
    project: &ProjectFile,
    generated: &Files,
) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut bindings = Vec::new();
    if generated.contains_key(WEBHOOK_CERTIFICATES) {
        bindings.push(("webhook_certificates_role_binding", rbac::WEBHOOK_CERTIFICATES_ROLE, "RoleBinding"));
    }
    // Webhook configurations and CRDs are cluster-scoped, even for a namespaced operator.
    let of_cluster = generated.get(ROLES).is_some_and(|roles| roles.contains("kind: ClusterRole\n"));
    if project.namespaced && of_cluster {
        bindings.push(("webhook_role_binding", rbac::MANAGER_ROLE, "ClusterRoleBinding"));
    }
    bindings
}

impl Output {
    /// Renders handlers, conversions and manifests.
    pub(super) fn webhooks(&mut self, project: &ProjectFile, kinds: &[Kind<'_>]) {
        if !self.base["webhooks"].as_bool().unwrap_or_default() {
            return;
        }
        self.webhook_modules(kinds);
        for kind in kinds {
            self.handlers(kind);
            self.conversion(kind, kinds);
        }
        let values = wiring(project, kinds);
        for (path, template) in [
            ("config/webhook/kustomization.yaml", template!("config/webhook/kustomization.yaml.j2")),
            ("config/webhook/kustomizeconfig.yaml", template!("config/webhook/kustomizeconfig.yaml")),
            ("config/webhook/service.yaml", template!("config/webhook/service.yaml.j2")),
            (
                "config/default/manager_webhook_patch.yaml",
                template!("config/default/manager_webhook_patch.yaml.j2"),
            ),
            (
                "config/network-policy/allow-webhook-traffic.yaml",
                template!("config/network-policy/allow-webhook-traffic.yaml.j2"),
            ),
        ] {
            self.put(path, path, template, &values);
        }
        if !values["argument"].is_null() {
            let path = "config/default/manager_webhook_cert_patch.yaml";
            self.put(path, path, template!("config/default/manager_webhook_cert_patch.yaml.j2"), &values);
        }
        if values["cert_manager"] == true {
            for (path, template) in [
                ("config/certmanager/kustomization.yaml", template!("config/certmanager/kustomization.yaml")),
                (
                    "config/certmanager/kustomizeconfig.yaml",
                    template!("config/certmanager/kustomizeconfig.yaml"),
                ),
                ("config/certmanager/issuer.yaml", template!("config/certmanager/issuer.yaml.j2")),
                (
                    "config/certmanager/certificate-webhook.yaml",
                    template!("config/certmanager/certificate-webhook.yaml.j2"),
                ),
            ] {
                self.fixed(path, template);
            }
        }
    }

    fn webhook_modules(&mut self, kinds: &[Kind<'_>]) {
        let multigroup = self.multigroup;
        let with: Vec<&Kind<'_>> = kinds.iter().filter(|kind| !modules_of(kind).is_empty()).collect();
        let top =
            with.iter().map(|kind| if multigroup { &*kind.group_module } else { &*kind.resource.version });
        self.modules("src/webhooks.rs", "src/webhooks.rs", "Webhooks.", top);
        if multigroup {
            let groups: BTreeMap<&str, &str> =
                with.iter().map(|kind| (&*kind.group_module, &*kind.resource.group)).collect();
            for (module, group) in groups {
                let inside = with.iter().filter(|kind| kind.group_module == module);
                let versions = inside.map(|kind| kind.resource.version.as_str());
                let about = format!("Webhooks for the group {group}.");
                self.modules(
                    &format!("webhooks/{group}"),
                    &format!("src/webhooks/{module}.rs"),
                    &about,
                    versions,
                );
            }
        }
        let mut folders: BTreeMap<String, (String, String, BTreeSet<String>)> = BTreeMap::new();
        for kind in with {
            let folder = kind.webhooks_module(multigroup).replace("::", "/");
            let version = &kind.resource.version;
            let (id, about) = if multigroup {
                let group = &kind.resource.group;
                (format!("webhooks/{group}/{version}"), format!("Webhooks for {group}/{version}."))
            } else {
                (format!("webhooks/{version}"), format!("Webhooks for version {version}."))
            };
            let (.., modules) = folders.entry(folder).or_insert_with(|| (id, about, BTreeSet::new()));
            modules.extend(modules_of(kind));
        }
        for (folder, (id, about, modules)) in folders {
            self.modules(&id, &format!("src/{folder}.rs"), &about, modules.iter().map(String::as_str));
        }
    }

    fn handlers(&mut self, kind: &Kind<'_>) {
        let admission = kind.admission();
        if admission.is_empty() {
            return;
        }
        let is_mutating = |wanted: bool| admission.iter().find(|webhook| webhook.mutating == wanted);
        let shown = |wanted: bool| {
            is_mutating(wanted).map(|webhook| {
                json!({
                    "name": webhook.handler,
                    "attribute": attribute(kind, webhook),
                    "signature": handler(kind, webhook),
                })
            })
        };
        let imports = match (is_mutating(true), is_mutating(false)) {
            (Some(_), Some(_)) => "AdmissionRequest, Defaulter, Rejection, Validation, Validator",
            (Some(_), None) => "AdmissionRequest, Defaulter, Rejection",
            _ => "Rejection, Validation, Validator",
        };
        let mut values = values_of(kind);
        values["type_path"] = kind.type_path("crate", self.multigroup).into();
        values["imports"] = imports.into();
        values["defaulter"] = shown(true).into();
        values["validator"] = shown(false).into();
        values["selected"] = kind.selected.clone().into();
        let folder = kind.webhooks_module(self.multigroup).replace("::", "/");
        let path = format!("src/{folder}/{}.rs", kind.module);
        self.put(format!("webhook/{}", kind.id()), &path, template!("src/webhook.rs.j2"), &values);
    }

    fn conversion(&mut self, kind: &Kind<'_>, kinds: &[Kind<'_>]) {
        if kind.spokes().is_empty() {
            return;
        }
        let mut values = self.conversion_values(kind, kinds);
        values["conversion"] = conversion(kind).into();
        let folder = kind.webhooks_module(self.multigroup).replace("::", "/");
        let path = format!("src/{folder}/{}.rs", conversion_module(kind));
        self.put(format!("conversion/{}", kind.id()), &path, template!("src/conversion.rs.j2"), &values);
    }

    /// Template values of a conversion and its test.
    fn conversion_values(&self, kind: &Kind<'_>, kinds: &[Kind<'_>]) -> Value {
        let hub = &kind.resource.version;
        let versions: BTreeSet<&str> =
            kind.spokes().iter().map(String::as_str).chain([hub.as_str()]).collect();
        let of = |version: &&str| {
            kinds.iter().find(|other| {
                kinds::is_same_kind(other.resource, kind.resource) && other.resource.version == **version
            })
        };
        let samples: Vec<Value> = versions
            .iter()
            .map(|version| {
                let constant = version.to_uppercase();
                let valid = of(version)
                    .filter(|kind| kind.imported.as_ref().is_none_or(|imported| imported.is_sample_taken));
                let text = match valid {
                    Some(kind) => sample_text(&constant, &sample(kind)),
                    None => text_constant(&constant, ""),
                };
                let object = format!("{version}::{}", kind.struct_name());
                json!({ "text": text, "round_trip": round_trip(&object, &constant) })
            })
            .collect();
        let constants: Vec<String> = versions.iter().map(|version| version.to_uppercase()).collect();
        let module = kind.api(self.multigroup);
        let module = module.rsplit_once("::").map_or(module.as_str(), |(module, _)| module).to_owned();
        let mut values = values_of(kind);
        values["hub"] = hub.as_str().into();
        values["spokes"] = json!(kind.spokes());
        values["api"] = module.into();
        values["versions"] = versions.into_iter().collect::<Vec<_>>().join(", ").into();
        values["samples"] = samples.into();
        values["constants"] = constants.join(", ").into();
        values
    }

    /// The types of all versions of a kind, as its conversion test imports them.
    fn converted_types(&self, kinds: &[Kind<'_>], kind: &Kind<'_>) -> Vec<String> {
        let root = self.base["crate"].as_str().unwrap_or_default();
        let versions = kinds.iter().filter(|other| kinds::is_same_kind(other.resource, kind.resource));
        let types = versions.filter(|version| version.own).map(|other| {
            let version = &other.resource.version;
            if *version == kind.resource.version || kind.spokes().contains(version) {
                format!("{version}::{}", other.struct_name())
            } else {
                format!("{root}::{}::{}", other.api(self.multigroup), other.struct_name())
            }
        });
        types.collect()
    }

    /// Renders webhook tests and fixtures. Returns the modules.
    pub(super) fn webhook_tests(&mut self, kinds: &[Kind<'_>]) -> Vec<String> {
        let mut modules = Vec::new();
        let root = self.base["crate"].as_str().unwrap_or_default().to_owned();
        for kind in kinds {
            let version = &kind.resource.version;
            let prefix = if self.multigroup { format!("{}_", kind.group_module) } else { String::new() };
            let name = kind.module.trim_end_matches('_');
            if !kind.admission().is_empty() {
                let module = format!("{prefix}{name}_{version}_webhook");
                self.webhook_test(kind, kinds, &root, &module);
                modules.push(module);
            }
            if !kind.spokes().is_empty() {
                let module = format!("{prefix}{name}_conversion");
                let mut values = self.conversion_values(kind, kinds);
                let path = kind.webhooks_module(self.multigroup);
                values["module"] = format!("{root}::{path}::{}", conversion_module(kind)).into();
                values["environment"] = environment(&self.converted_types(kinds, kind)).into();
                values["plural_constant"] = text_constant("PLURAL", &kind.plural).into();
                let id = format!("conversion-test/{}", kind.id());
                let path = format!("tests/it/{module}.rs");
                self.put(id, &path, template!("tests/conversion.rs.j2"), &values);
                modules.push(module);
            }
        }
        modules
    }

    fn webhook_test(&mut self, kind: &Kind<'_>, kinds: &[Kind<'_>], root: &str, module: &str) {
        let folder = kind.webhooks_module(self.multigroup).replace("::", "/");
        let folder = format!("tests/fixtures/{folder}/{}", kind.module);
        let fixture = fixtures::of(kind);
        if let Some(fixtures::Fixture { object, expected }) = &fixture {
            let mut write = |what: &str, path: &str, text: &String| {
                let id = format!("fixture/{}/{what}", kind.id());
                self.write(id, format!("{folder}/{path}"), text.clone());
            };
            for webhook in kind.admission() {
                if webhook.mutating {
                    write("default", "default/sample.yaml", object);
                    write("expected", "default/sample.expected.yaml", expected);
                } else {
                    write("valid", "valid/sample.yaml", object);
                }
            }
        }
        let path = format!("{}::{}", kind.webhooks_module(self.multigroup), kind.module);
        let mut values = values_of(kind);
        values["own"] = kind.own.into();
        values["type_path"] = kind.type_path(root, self.multigroup).into();
        values["environment"] = environment(&self.versions(kinds, kind)).into();
        values["register"] = register(&path, "&manager").into();
        values["folder"] = text_constant("FIXTURES", &folder).into();
        values["has_fixtures"] = fixture.is_some().into();
        let paths: Vec<String> = kind.admission().into_iter().map(|webhook| webhook.path).collect();
        values["paths"] = json!(paths);
        let id = format!("webhook-test/{}", kind.id());
        self.put(id, &format!("tests/it/{module}.rs"), template!("tests/webhook.rs.j2"), &values);
    }
}
