//! The OLM bundle of a project, in bundle/, in the format registry+v1.
//!
//! The ClusterServiceVersion ([`csv`]) contains the Deployment, the permissions of its ServiceAccount, the
//! owned CRDs with descriptors ([`descriptors`]) and the webhooks ([`webhooks`]). CRDs and other objects are
//! files beside it. The objects come from config/default, what controllers own from the compiled operator, and
//! texts from `#[olm(...)]` attributes, Cargo.toml and README.md.

mod csv;
mod deployment;
mod descriptors;
pub(crate) mod image;
pub(crate) mod olm;
mod permissions;
pub(crate) mod pins;
mod previous;
mod readme;
mod webhooks;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use kubewright_manifests::inventory::Inventory;
use kubewright_manifests::yaml;
use serde_json::{Value, json};

use super::package::Package;
use super::rendered::{Object, Rendered};
use crate::error::Hint as _;
use crate::project::project_file::{LAYOUT, ProjectFile};
use crate::scaffold::{Rendered as File, Rendering};

pub(crate) use previous::Previous;

/// The directory of the bundle.
pub(crate) const FOLDER: &str = "bundle";
/// The record of the generated files.
pub(crate) const RECORD: &str = ".kubewright/bundle.yaml";
/// The suffix of the ClusterServiceVersion's file.
pub(crate) const CSV_FILE: &str = ".clusterserviceversion.yaml";
/// Prefix of the annotations that describe a bundle.
pub(crate) const ANNOTATIONS: &str = "operators.operatorframework.io.";
/// Prefix of the labels with the architectures of the operator.
const ARCHITECTURE: &str = "operatorframework.io/arch.";
/// The default channel.
const CHANNEL: &str = "alpha";
/// The image that `operator-sdk scorecard` runs the tests in. `kubewright scorecard` needs no image.
const SCORECARD: &str = "quay.io/operator-framework/scorecard-test:v1.42.3";

/// Kinds that OLM installs from a bundle.
pub(crate) const SUPPORTED: &[&str] = &[
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    "CustomResourceDefinition",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PriorityClass",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "VerticalPodAutoscaler",
];

/// The tests of the scorecard: suite and name.
pub(crate) const TESTS: [(&str, &str); 6] = [
    ("basic", "basic-check-spec"),
    ("olm", "olm-bundle-validation"),
    ("olm", "olm-crds-have-validation"),
    ("olm", "olm-crds-have-resources"),
    ("olm", "olm-spec-descriptors"),
    ("olm", "olm-status-descriptors"),
];

/// Input of the bundle.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) package: Package,
    pub(crate) project: ProjectFile,
    pub(crate) objects: Rendered,
    pub(crate) inventory: &'a Inventory,
    /// README.md, if it exists.
    pub(crate) readme: Option<String>,
    /// The objects in config/samples.
    pub(crate) samples: Vec<Value>,
    /// The icon of the operator.
    pub(crate) icon: Option<Value>,
    /// The tags of images that are pinned in `objects`.
    pub(crate) pins: pins::Pins,
    /// The architectures of the manager's image, in Go's notation.
    pub(crate) architectures: BTreeSet<String>,
}

/// Options of the bundle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Version without `v`. Defaults to the package's.
    pub(crate) version: Option<String>,
    pub(crate) channels: Vec<String>,
    pub(crate) default_channel: Option<String>,
    pub(crate) replaces: Option<String>,
    pub(crate) skips: Vec<String>,
    pub(crate) skip_range: Option<String>,
}

impl Options {
    /// Fills unset options from the bundle on disk. `replaces`, `skips` and `skip-range` are kept for the same version only.
    pub(crate) fn or(mut self, previous: &Previous, version: &str) -> Self {
        if self.channels.is_empty() {
            self.channels.clone_from(&previous.channels);
        }
        if self.channels.is_empty() {
            self.channels.push(CHANNEL.to_owned());
        }
        if self.default_channel.is_none() {
            let there = previous.default_channel.clone().filter(|channel| self.channels.contains(channel));
            self.default_channel = there.or_else(|| self.channels.first().cloned());
        }
        if previous.version.as_deref() == Some(self.version.as_deref().unwrap_or(version)) {
            self.replaces = self.replaces.or_else(|| previous.replaces.clone());
            self.skip_range = self.skip_range.or_else(|| previous.skip_range.clone());
            if self.skips.is_empty() {
                self.skips.clone_from(&previous.skips);
            }
        }
        self
    }
}

/// Generates all files of the bundle.
pub(crate) fn files(source: &Source<'_>, options: &Options) -> Result<Rendering> {
    let name = source.project.project_name.as_str();
    let version = options.version.as_deref().unwrap_or(&source.package.version);
    check_version(version)?;
    let default_channel = options.default_channel.as_deref().unwrap_or(CHANNEL);
    if !options.channels.iter().any(|channel| channel == default_channel) {
        return Err(anyhow!("the default channel {default_channel} is not in the channels"))
            .hint(format!("add it: --channels {},{default_channel}", options.channels.join(",")));
    }
    let mut made = Rendering::new();
    let mut add = |path: String, text: String| {
        made.insert(path.clone(), File { path, text, ..File::default() });
    };
    let csv = csv::of(source, options, version)?;
    add(format!("{FOLDER}/manifests/{name}{CSV_FILE}"), document(&csv));
    for (file, object) in manifests(source)? {
        add(format!("{FOLDER}/manifests/{file}"), document(&object));
    }
    let annotations = annotations(name, &options.channels.join(","), default_channel);
    add(format!("{FOLDER}/metadata/annotations.yaml"), annotations_file(&annotations));
    add(format!("{FOLDER}/tests/scorecard/config.yaml"), document(&scorecard()));
    add("bundle.Dockerfile".to_owned(), dockerfile(&annotations));
    Ok(made)
}

fn document(value: &Value) -> String {
    yaml::document(value).trim_start_matches("---\n").to_owned()
}

/// Fails unless a version is semantic: `1.2.3`, also with a pre-release or build.
pub(crate) fn check_version(version: &str) -> Result<()> {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    let is_number = |part: &&str| {
        !part.is_empty()
            && part.bytes().all(|it| it.is_ascii_digit())
            && (part.len() == 1 || !part.starts_with('0'))
    };
    if parts.len() != 3 || !parts.iter().all(is_number) {
        return Err(anyhow!("{version} is not a semantic version"))
            .hint("use a version such as 1.2.0, without `v`");
    }
    Ok(())
}

/// Roles and bindings in other namespaces than the operator's. OLM cannot create them.
pub(crate) fn left_out(objects: &Rendered) -> Result<Vec<String>> {
    let manager = objects.manager()?;
    let elsewhere = objects.objects.iter().filter(|object| permissions::is_elsewhere(object, manager));
    Ok(elsewhere.map(Object::id).collect())
}

/// The objects beside the ClusterServiceVersion, with their file names. OLM creates the namespace, the
/// ServiceAccount, its permissions, and the Service and the configurations of webhooks.
fn manifests(source: &Source<'_>) -> Result<Vec<(String, Value)>> {
    let manager = source.objects.manager()?;
    let granted = permissions::Permissions::of(&source.objects, manager);
    let mut found = Vec::new();
    for object in &source.objects.objects {
        let kind = object.kind();
        let is_in_csv = object.id() == manager.id()
            || granted.contains(object)
            || permissions::is_elsewhere(object, manager)
            || matches!(
                kind,
                "Namespace" | "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration"
            )
            // OLM issues the certificate of webhooks.
            || object.api_version().starts_with("cert-manager.io/")
            || webhooks::is_service(object, &source.objects);
        if is_in_csv {
            continue;
        }
        if !SUPPORTED.contains(&kind) {
            return Err(anyhow!("OLM cannot install {} from a bundle", object.id()))
                .hint("remove it from config/default, or let the operator create it");
        }
        let mut value = object.value().clone();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        if kind == "CustomResourceDefinition" {
            // OLM sets the conversion from the webhook definitions.
            if let Some(spec) = value["spec"].as_object_mut() {
                spec.remove("conversion");
            }
            if let Some(annotations) =
                value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
            {
                annotations.remove("cert-manager.io/inject-ca-from");
                if annotations.is_empty()
                    && let Some(metadata) = value["metadata"].as_object_mut()
                {
                    metadata.remove("annotations");
                }
            }
        }
        found.push((file_name(object), value));
    }
    Ok(found)
}

/// The file of an object, as operator-sdk names it.
fn file_name(object: &Object) -> String {
    let value = object.value();
    if object.kind() == "CustomResourceDefinition" {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        return format!("{}_{}.yaml", text("/spec/group"), text("/spec/names/plural"));
    }
    let api_version = object.api_version().replace('/', "_");
    format!("{}_{api_version}_{}.yaml", object.name(), object.kind().to_lowercase())
}

/// The annotations of the bundle, which are also labels of its image.
fn annotations(
    package: &str,
    channels: &str,
    default_channel: &str,
) -> Vec<(&'static str, Vec<(String, String)>)> {
    let of = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| (format!("{ANNOTATIONS}{key}"), (*value).to_owned())).collect()
    };
    let builder = format!("kubewright-v{}", env!("CARGO_PKG_VERSION"));
    vec![
        (
            "Core bundle annotations.",
            of(&[
                ("bundle.mediatype.v1", "registry+v1"),
                ("bundle.manifests.v1", "manifests/"),
                ("bundle.metadata.v1", "metadata/"),
                ("bundle.package.v1", package),
                ("bundle.channels.v1", channels),
                ("bundle.channel.default.v1", default_channel),
                ("metrics.builder", &builder),
                ("metrics.mediatype.v1", "metrics+v1"),
                ("metrics.project_layout", LAYOUT),
            ]),
        ),
        (
            "Annotations for testing.",
            of(&[("test.mediatype.v1", "scorecard+v1"), ("test.config.v1", "tests/scorecard/")]),
        ),
    ]
}

fn annotations_file(annotations: &[(&str, Vec<(String, String)>)]) -> String {
    let mut text = String::from("annotations:\n");
    for (about, pairs) in annotations {
        let _ = writeln!(text, "  # {about}");
        for (key, value) in pairs {
            let line = document(&json!({ key.as_str(): value }));
            let _ = writeln!(text, "  {}", line.trim_end());
        }
    }
    text
}

fn dockerfile(annotations: &[(&str, Vec<(String, String)>)]) -> String {
    let mut text = String::from(
        "# The image of the OLM bundle, which `kubewright bundle --push` also builds.\nFROM scratch\n",
    );
    for (about, pairs) in annotations {
        let _ = write!(text, "\n# {about}\n");
        for (key, value) in pairs {
            let _ = writeln!(text, "LABEL {key}={value}");
        }
    }
    text.push_str(
        "\nCOPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\nCOPY bundle/tests/scorecard /tests/scorecard/\n",
    );
    text
}

/// The scorecard configuration of operator-sdk.
fn scorecard() -> Value {
    let test = |(suite, name): &(&str, &str)| {
        json!({
            "image": SCORECARD,
            "entrypoint": ["scorecard-test", name],
            "labels": { "suite": suite, "test": format!("{name}-test") },
        })
    };
    json!({
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": { "name": "config" },
        "stages": [{ "parallel": true, "tests": TESTS.iter().map(test).collect::<Vec<_>>() }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for good in ["1.2.3", "0.1.0", "10.0.0-rc.1+build"] {
            assert!(check_version(good).is_ok(), "{good}");
        }
        for bad in ["v1.2.3", "1.2", "1.2.x", "01.2.3", ""] {
            assert!(check_version(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_bundle_on_disk_fills_what_is_not_set() {
        let previous = Previous {
            version: Some("0.2.0".into()),
            channels: vec!["beta".into(), "stable".into()],
            default_channel: Some("stable".into()),
            replaces: Some("shop.v0.1.0".into()),
            ..Previous::default()
        };
        let same = Options::default().or(&previous, "0.2.0");
        assert_eq!(same.channels, ["beta", "stable"]);
        assert_eq!(same.default_channel.as_deref(), Some("stable"));
        assert_eq!(same.replaces.as_deref(), Some("shop.v0.1.0"));
        let next = Options { channels: vec!["beta".into()], ..Options::default() }.or(&previous, "0.3.0");
        assert_eq!((next.default_channel.as_deref(), next.replaces), (Some("beta"), None));
        assert_eq!(Options::default().or(&Previous::default(), "0.1.0").channels, ["alpha"]);
    }
}
