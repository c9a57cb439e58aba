//! The objects of config/default, as `kubectl kustomize` renders them.
//!
//! kustomize is not reimplemented: users extend config/ with all its features. The result is parsed once, and
//! all further changes, such as setting the image, are made to the objects and not to YAML text.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, anyhow};
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::error::Hint as _;
use crate::project::Project;

/// The kustomization that deploys the operator.
pub(crate) const DEFAULT: &str = "config/default";
/// The image name in config/manager/manager.yaml that stands for the operator's image.
const PLACEHOLDER: &str = "controller";
/// The container of the operator.
const CONTAINER: &str = "manager";
/// The order in which objects are created: those that others need first.
const ORDER: &[&str] = &[
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Service",
];

/// The rendered objects, in the order in which they are created.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rendered {
    pub(crate) objects: Vec<Object>,
}

/// A Kubernetes object with a kind and a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    value: Value,
}

impl Project {
    /// Renders [`DEFAULT`]. The image is the placeholder of config/manager, unless the user's kustomization
    /// replaces it.
    pub(crate) fn rendered(&self) -> Result<Rendered> {
        self.rendered_from(DEFAULT)
    }

    /// Renders another kustomization of the project.
    pub(crate) fn rendered_from(&self, folder: &str) -> Result<Rendered> {
        let text = kustomize(self.root(), folder)?;
        Rendered::parse(&text).with_context(|| format!("cannot read the objects of {folder}"))
    }
}

impl Rendered {
    /// Parses YAML documents.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| anyhow!("{error}"))?;
        let documents = documents.into_iter().filter(|document| !document.is_null());
        let mut objects = documents.map(Object::new).collect::<Result<Vec<_>>>()?;
        // Stable: objects of the same rank stay in the order of kustomize.
        objects.sort_by_key(|object| {
            ORDER.iter().position(|kind| *kind == object.kind()).unwrap_or(ORDER.len())
        });
        Ok(Self { objects })
    }

    /// The objects of a kind.
    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Object> {
        self.objects.iter().filter(move |object| object.kind() == kind)
    }

    /// The Deployment of the operator: the one with the placeholder image, or with a container `manager`.
    pub(crate) fn manager(&self) -> Result<&Object> {
        let deployments = || self.of_kind("Deployment");
        deployments()
            .find(|it| it.containers().any(is_placeholder))
            .or_else(|| deployments().find(|it| it.containers().any(is_manager)))
            .with_context(|| format!("{DEFAULT} has no Deployment with a container {CONTAINER}"))
            .hint("restore config/manager/manager.yaml, or add it to the resources of config/default")
    }

    /// Sets the image of the operator. Containers with the placeholder image are changed as kustomize's
    /// `images` does; without any, the container `manager` of the operator's Deployment is.
    pub(crate) fn set_image(&mut self, image: &str) -> Result<()> {
        let manager = self.manager()?.id();
        let has_placeholder = self.objects.iter().flat_map(Object::containers).any(is_placeholder);
        for object in &mut self.objects {
            let is_operator = object.id() == manager;
            for container in object.containers_mut() {
                let matches = if has_placeholder {
                    is_placeholder(container)
                } else {
                    is_operator && is_manager(container)
                };
                if matches {
                    container["image"] = image.into();
                }
            }
        }
        Ok(())
    }

    /// The containers and init containers of all workloads.
    pub(crate) fn containers_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.objects.iter_mut().flat_map(Object::containers_mut)
    }

    /// The objects as YAML documents.
    pub(crate) fn to_yaml(&self) -> String {
        self.objects.iter().map(|object| kubewright_manifests::yaml::document(&object.value)).collect()
    }
}

impl Object {
    /// Fails if kind or name are missing.
    pub(crate) fn new(value: Value) -> Result<Self> {
        let object = Self { value };
        for (field, text) in
            [("apiVersion", object.api_version()), ("kind", object.kind()), ("metadata.name", object.name())]
        {
            if text.is_empty() {
                return Err(anyhow!("an object has no {field}: {}", object.value))
                    .hint(format!("set {field} in the file under config/ that has this object"));
            }
        }
        Ok(object)
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    pub(crate) fn kind(&self) -> &str {
        self.text("/kind")
    }

    pub(crate) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// The namespace; `None` for cluster-scoped objects.
    pub(crate) fn namespace(&self) -> Option<&str> {
        Some(self.text("/metadata/namespace")).filter(|namespace| !namespace.is_empty())
    }

    pub(crate) fn group_version_kind(&self) -> GroupVersionKind {
        let (group, version) = self.api_version().split_once('/').unwrap_or(("", self.api_version()));
        GroupVersionKind::gvk(group, version, self.kind())
    }

    /// Kind, namespace and name, for display: `Deployment shop-system/shop-controller-manager`.
    pub(crate) fn id(&self) -> String {
        let namespace = self.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{} {namespace}{}", self.kind(), self.name())
    }

    /// The containers and init containers of a workload's Pod template.
    pub(crate) fn containers(&self) -> impl Iterator<Item = &Value> {
        let pod = self.value.pointer("/spec/template/spec");
        ["containers", "initContainers"]
            .into_iter()
            .filter_map(move |field| pod?.get(field)?.as_array())
            .flatten()
    }

    fn containers_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        let pod = self.value.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
        let fields = pod.into_iter().flat_map(|pod| pod.iter_mut());
        fields
            .filter(|(field, _)| matches!(field.as_str(), "containers" | "initContainers"))
            .filter_map(|(_, containers)| containers.as_array_mut())
            .flatten()
    }

    fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

fn is_manager(container: &Value) -> bool {
    container["name"] == CONTAINER
}

/// Whether a container has the placeholder image, with any tag or digest.
fn is_placeholder(container: &Value) -> bool {
    let image = container["image"].as_str().unwrap_or_default();
    image.split([':', '@']).next() == Some(PLACEHOLDER)
}

/// Runs `kubectl kustomize`, or `kustomize build` if kubectl is missing.
fn kustomize(root: &Path, folder: &str) -> Result<String> {
    if !root.join(folder).is_dir() {
        return Err(anyhow!("{} has no {folder}", root.display()))
            .hint("run this in a project directory; `kubewright init` creates one");
    }
    let mut kubectl = kubectl();
    let output = match run(kubectl.current_dir(root).args(["kustomize", folder])) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut kustomize = Command::new("kustomize");
            match run(kustomize.current_dir(root).args(["build", folder])) {
                Err(other) if other.kind() == ErrorKind::NotFound => Err(error),
                output => output,
            }
        }
        output => output,
    };
    let output = output
        .with_context(|| format!("cannot start kubectl, which renders {folder}"))
        .hint("install kubectl or kustomize, or set KUBECTL to the path of kubectl")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(anyhow!(said).context(format!("kustomize cannot render {folder}")))
            .hint("fix the kustomization; `kubectl kustomize` prints the same error");
    }
    String::from_utf8(output.stdout).context("kustomize printed invalid UTF-8")
}

/// kubectl, or the command in the variable `KUBECTL`, which the Makefile also uses. It may contain flags.
pub(crate) fn kubectl() -> Command {
    let line = std::env::var_os("KUBECTL").filter(|line| !line.is_empty());
    let line = line.unwrap_or_else(|| OsString::from("kubectl"));
    let text = line.to_string_lossy().into_owned();
    let mut words = text.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("kubectl"));
    command.args(words);
    command
}

fn run(command: &mut Command) -> std::io::Result<Output> {
    command.stdin(Stdio::null()).output()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYED: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-controller-manager, namespace: shop-system}
spec:
  template:
    spec:
      initContainers:
      - {name: setup, image: 'controller@sha256:00'}
      containers:
      - {name: manager, image: 'controller:latest'}
      - {name: proxy, image: 'example.com/controller:v1'}
---
---
apiVersion: v1
kind: Namespace
metadata: {name: shop-system}
";

    fn images(rendered: &Rendered) -> Vec<&str> {
        let containers = rendered.objects.iter().flat_map(Object::containers);
        containers.map(|container| container["image"].as_str().unwrap()).collect()
    }

    #[test]
    fn namespaces_come_first_and_empty_documents_are_ignored() {
        let rendered = Rendered::parse(DEPLOYED).unwrap();
        let ids: Vec<String> = rendered.objects.iter().map(Object::id).collect();
        assert_eq!(ids, ["Namespace shop-system", "Deployment shop-system/shop-controller-manager"]);
        assert_eq!(
            rendered.objects[1].group_version_kind(),
            GroupVersionKind::gvk("apps", "v1", "Deployment")
        );
    }

    #[test]
    fn the_image_replaces_the_placeholder_only() {
        let mut rendered = Rendered::parse(DEPLOYED).unwrap();
        rendered.set_image("shop:v2").unwrap();
        assert_eq!(images(&rendered), ["shop:v2", "example.com/controller:v1", "shop:v2"]);
    }

    #[test]
    fn an_image_of_the_users_kustomization_is_replaced_in_the_manager() {
        let text = DEPLOYED.replace("controller:latest", "shop:v1").replace("controller@", "setup@");
        let mut rendered = Rendered::parse(&text).unwrap();
        rendered.set_image("shop:v2").unwrap();
        assert_eq!(images(&rendered), ["shop:v2", "example.com/controller:v1", "setup@sha256:00"]);
    }

    #[test]
    fn rendered_objects_survive_yaml() {
        let rendered = Rendered::parse(DEPLOYED).unwrap();
        assert_eq!(Rendered::parse(&rendered.to_yaml()).unwrap(), rendered);
    }

    #[test]
    fn objects_without_a_manager_are_rejected() {
        let mut rendered = Rendered::parse("{apiVersion: v1, kind: Namespace, metadata: {name: a}}").unwrap();
        let error = rendered.set_image("shop:v2").unwrap_err();
        assert_eq!(error.to_string(), "config/default has no Deployment with a container manager");
        let error = Rendered::parse("{apiVersion: v1, kind: Namespace}").unwrap_err();
        assert!(error.to_string().starts_with("an object has no metadata.name"), "{error}");
    }
}
