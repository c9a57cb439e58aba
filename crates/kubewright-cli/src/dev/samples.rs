//! The samples in config/samples, and how they are applied.
//!
//! They are applied like `kubectl apply --server-side --force-conflicts`, with our own field manager. Objects
//! removed from a file stay in the cluster.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, ApiResource, Scope};
use kubewright_runtime::eventually;
use serde_json::Value;

use super::api_error::api_error;
use super::watcher::SAMPLES;
use crate::error::Hint as _;

/// Field manager.
pub(crate) const MANAGER: &str = "kubewright-dev";
/// How long a newly installed kind may take to appear in discovery.
const PATIENCE: Duration = Duration::from_secs(2);

/// An object in a sample file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The name of its file.
    file: String,
    kind: GroupVersionKind,
    name: String,
    namespace: Option<String>,
    object: Value,
}

/// A sample with its resource.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) resource: ApiResource,
}

/// Reads the samples, Namespaces first.
pub(crate) fn read(root: &Path) -> Result<Vec<Sample>> {
    let entries = match fs::read_dir(root.join(SAMPLES)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {SAMPLES}")),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {SAMPLES}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_yaml = Path::new(&name).extension().is_some_and(|kind| kind == "yaml" || kind == "yml");
        let is_ours = is_yaml && !name.starts_with('.') && !name.starts_with("kustomization.");
        if is_ours {
            files.push((name, entry.path()));
        }
    }
    files.sort();
    let mut samples = Vec::new();
    for (file, path) in files {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {SAMPLES}/{file}"))?;
        samples.extend(parse(&file, &text)?);
    }
    samples.sort_by_key(|sample| sample.kind.kind != "Namespace");
    Ok(samples)
}

/// Parses the objects of a file.
fn parse(file: &str, text: &str) -> Result<Vec<Sample>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| anyhow!("{error}"))
        .with_context(|| format!("{SAMPLES}/{file} is not valid YAML"))
        .hint("fix the file; it is applied on save")?;
    let mut samples = Vec::new();
    for document in documents {
        match (&document["kind"], &document["items"]) {
            _ if document.is_null() => {}
            (Value::String(kind), Value::Array(items)) if kind == "List" => {
                for item in items {
                    samples.push(Sample::of(file, item.clone())?);
                }
            }
            _ => samples.push(Sample::of(file, document)?),
        }
    }
    Ok(samples)
}

impl Sample {
    fn of(file: &str, object: Value) -> Result<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let (Some(api_version), Some(kind), Some(name)) =
            (text("/apiVersion"), text("/kind"), text("/metadata/name"))
        else {
            return Err(anyhow!("an object in {SAMPLES}/{file} lacks apiVersion, kind or metadata.name"))
                .hint("set all three fields");
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let kind = GroupVersionKind::gvk(group, version, &kind);
        Ok(Self { file: file.to_owned(), kind, name, namespace: text("/metadata/namespace"), object })
    }

    /// The object as it is in the file.
    pub(crate) fn object(&self) -> &Value {
        &self.object
    }

    /// Finds the resource of the sample. Retries, since a new kind may not be served yet.
    pub(crate) async fn place(&self, client: &kube::Client) -> Result<Placed> {
        // Other errors are not retried.
        let found = eventually(PATIENCE, async || match discovery::pinned_kind(client, &self.kind).await {
            Err(error) if is_unknown(&error) => Err(format!("{:#}", api_error(error))),
            answer => Ok(answer),
        });
        let (resource, capabilities) = match found.await {
            Ok(answer) => answer.map_err(|error| api_error(error).context(self.failed()))?,
            Err(never) => {
                return Err(anyhow::Error::new(never).context(self.failed()))
                    .hint("the cluster does not serve this kind: fix the file, or install its CRD");
            }
        };
        let namespace = (capabilities.scope == Scope::Namespaced)
            .then(|| self.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned()));
        Ok(Placed { kind: self.kind.kind.clone(), namespace, name: self.name.clone(), resource })
    }

    /// Applies the sample.
    pub(crate) async fn apply(&self, client: &kube::Client) -> Result<Placed> {
        let placed = self.place(client).await?;
        let parameters = PatchParams::apply(MANAGER).force();
        placed
            .api(client)
            .patch(&self.name, &parameters, &Patch::Apply(&self.object))
            .await
            .map_err(api_error)
            .with_context(|| self.failed())?;
        Ok(placed)
    }

    fn failed(&self) -> String {
        format!("cannot apply {} {} from {SAMPLES}/{}", self.kind.kind, self.name, self.file)
    }
}

impl Placed {
    pub(crate) fn api(&self, client: &kube::Client) -> Api<DynamicObject> {
        api(client, self.namespace.as_deref(), &self.resource)
    }

    /// Whether the cluster has it.
    pub(crate) async fn exists(&self, client: &kube::Client) -> Result<bool> {
        let found = self.api(client).get_metadata_opt(&self.name).await;
        Ok(found.map_err(api_error).with_context(|| format!("cannot read {self}"))?.is_some())
    }
}

/// The API of a resource in a namespace, or in all.
pub(crate) fn api(
    client: &kube::Client,
    namespace: Option<&str>,
    resource: &ApiResource,
) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

impl std::fmt::Display for Placed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// Whether the error means that the kind is not served.
fn is_unknown(error: &kube::Error) -> bool {
    match error {
        kube::Error::Discovery(_) => true,
        kube::Error::Api(status) => status.code == 404,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_the_objects_of_all_files_except_the_kustomization() {
        let folder = tempfile::tempdir().unwrap();
        let samples = folder.path().join(SAMPLES);
        assert_eq!(read(folder.path()).unwrap(), []);
        fs::create_dir_all(&samples).unwrap();
        let write = |name: &str, text: &str| fs::write(samples.join(name), text).unwrap();
        write("kustomization.yaml", "resources: [a.yaml]");
        write("README.md", "text");
        write("b.yml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n");
        write(
            "a.yaml",
            "---\napiVersion: sales.example.com/v1\nkind: Order\nmetadata: {name: one, namespace: shop}\n---\n\
             apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: two}}\n",
        );
        let found: Vec<String> = read(folder.path())
            .unwrap()
            .iter()
            .map(|sample| format!("{} {} {:?}", sample.kind.kind, sample.name, sample.namespace))
            .collect();
        assert_eq!(found, ["Namespace shop None", "Order one Some(\"shop\")", "Secret two None"]);
    }

    #[test]
    fn invalid_samples_are_reported_with_their_file() {
        let refused = |text| parse("a.yaml", text).unwrap_err().to_string();
        assert_eq!(
            refused("kind: Order"),
            "an object in config/samples/a.yaml lacks apiVersion, kind or metadata.name"
        );
        assert_eq!(refused("a: [b"), "config/samples/a.yaml is not valid YAML");
    }
}
