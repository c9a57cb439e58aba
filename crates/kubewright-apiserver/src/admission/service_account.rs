//! ServiceAccount: sets a pod's service account, mounts its token, and adds its image pull secrets.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use serde_json::{Value, json};

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !is_pod(attributes) || attributes.operation != Operation::Create {
            return Admission::ALLOWED;
        }
        if is_mirror(&attributes.object) {
            return check(cluster, attributes).into();
        }
        set(cluster, attributes).and_then(|()| check(cluster, attributes)).into()
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !is_pod(attributes) {
            return Admission::ALLOWED;
        }
        check(cluster, attributes).into()
    }
}

const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";
/// One hour, plus the kubelet's margin, as upstream.
const TOKEN_SECONDS: i64 = 3607;

fn is_pod(attributes: &Attributes<'_>) -> bool {
    attributes.resource.group().is_empty()
        && attributes.resource.plural() == "pods"
        && matches!(attributes.subresource, "" | "ephemeralcontainers")
}

fn is_mirror(pod: &Value) -> bool {
    pod.map_at("metadata.annotations").contains_key(MIRROR)
}

fn account_of(cluster: &Cluster, attributes: &Attributes<'_>) -> Result<Value, ApiError> {
    let name = attributes.object.str_at("spec.serviceAccountName");
    let namespace = attributes.namespace;
    cluster.get("serviceaccounts", namespace, name).ok_or_else(|| {
        attributes.forbidden(&format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        ))
    })
}

fn set(cluster: &Cluster, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
    if attributes.object.str_at("spec.serviceAccountName").is_empty() {
        attributes.object.set_at("spec.serviceAccountName", "default");
        attributes.object.set_at("spec.serviceAccount", "default");
    }
    let account = account_of(cluster, attributes)?;
    let pod = &mut attributes.object;
    let automount = [pod.at("spec.automountServiceAccountToken"), account.at("automountServiceAccountToken")]
        .into_iter()
        .find_map(Value::as_bool)
        .unwrap_or(true);
    if automount {
        mount_token(cluster, pod);
    }
    if pod.list_at("spec.imagePullSecrets").is_empty() {
        let names = account.list_at("imagePullSecrets").iter().map(|secret| secret.str_at("name"));
        let secrets: Vec<Value> = names.map(|name| json!({"name": name})).collect();
        if !secrets.is_empty() {
            pod.set_at("spec.imagePullSecrets", secrets);
        }
    }
    Ok(())
}

/// Mounts a volume with the token into every container that mounts nothing at that path.
fn mount_token(cluster: &Cluster, pod: &mut Value) {
    let volumes = pod.list_at("spec.volumes").iter().map(|volume| volume.str_at("name"));
    let existing = volumes.into_iter().find(|name| name.starts_with(VOLUME)).map(str::to_owned);
    let has_volume = existing.is_some();
    let name = existing.unwrap_or_else(|| cluster.generate_name(VOLUME));
    let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
    let mut needed = false;
    for list in ["spec.initContainers", "spec.containers"] {
        for container in pod.list_mut(list).into_iter().flatten() {
            let mut mounts = container.list_at("volumeMounts").to_vec();
            if mounts.iter().any(|mount| mount.str_at("mountPath") == MOUNT_PATH) {
                continue;
            }
            mounts.push(mount.clone());
            container.set_at("volumeMounts", mounts);
            needed = true;
        }
    }
    if has_volume || !needed {
        return;
    }
    let mut volumes = pod.list_at("spec.volumes").to_vec();
    volumes.push(json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    }));
    pod.set_at("spec.volumes", volumes);
}

fn check(cluster: &Cluster, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let pod = &attributes.object;
    let ephemeral = attributes.subresource == "ephemeralcontainers";
    if attributes.operation != Operation::Create && !ephemeral {
        return Ok(());
    }
    if is_mirror(pod) && !ephemeral {
        return check_mirror(attributes);
    }
    if pod.str_at("spec.serviceAccountName").is_empty() {
        let (namespace, name) = (attributes.namespace, pod.str_at("metadata.name"));
        return Err(attributes.forbidden(&format!("no service account specified for pod {namespace}/{name}")));
    }
    let account = account_of(cluster, attributes)?;
    let enforced = account.map_at("metadata.annotations").get(ENFORCE_SECRETS).and_then(Value::as_str);
    if !enforced.is_some_and(is_true) {
        return Ok(());
    }
    let Some(why) = forbidden_secret(pod, &account, ephemeral) else { return Ok(()) };
    // Upstream returns a plain error here instead of Forbidden.
    Err(if ephemeral { ApiError::new(500, "", why) } else { attributes.forbidden(&why) })
}

fn check_mirror(attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let pod = &attributes.object;
    if !pod.str_at("spec.serviceAccountName").is_empty() {
        return Err(attributes.forbidden("a mirror pod may not reference service accounts"));
    }
    if references_secret(pod) {
        return Err(attributes.forbidden("a mirror pod may not reference secrets"));
    }
    let sources = pod.list_at("spec.volumes").iter().flat_map(|volume| volume.list_at("projected.sources"));
    if sources.into_iter().any(|source| source.has("serviceAccountToken")) {
        return Err(attributes.forbidden("a mirror pod may not use ServiceAccountToken volume projections"));
    }
    Ok(())
}

/// Whether Go's `strconv.ParseBool` returns true.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

fn containers<'a>(pod: &'a Value, list: &str) -> &'a [Value] {
    pod.list_at(list)
}

/// The secrets in a container's environment, each with its field for error messages.
fn environment(container: &Value) -> impl Iterator<Item = (String, &str)> {
    let variables = container.list_at("env").iter().filter(|env| env.has("valueFrom.secretKeyRef"));
    let variables = variables.map(|env| {
        (format!("with envVar {}", env.str_at("name")), env.str_at("valueFrom.secretKeyRef.name"))
    });
    let sources = container.list_at("envFrom").iter().filter(|source| source.has("secretRef"));
    variables.chain(sources.map(|source| ("with envFrom".to_owned(), source.str_at("secretRef.name"))))
}

/// Why a pod may not use one of its secrets: its service account does not list it.
fn forbidden_secret(pod: &Value, account: &Value, ephemeral: bool) -> Option<String> {
    let named =
        |list: &str, name: &str| account.list_at(list).iter().any(|entry| entry.str_at("name") == name);
    let name = account.str_at("metadata.name");
    if !ephemeral {
        for volume in pod.list_at("spec.volumes").iter().filter(|volume| volume.has("secret")) {
            let secret = volume.str_at("secret.secretName");
            if !named("secrets", secret) {
                return Some(format!(
                    "volume with secret.secretName=\"{secret}\" is not allowed because service account {name} does not \
                     reference that secret"
                ));
            }
        }
    }
    let lists: &[(&str, &str)] = if ephemeral {
        &[("spec.ephemeralContainers", "ephemeral container")]
    } else {
        &[("spec.initContainers", "init container"), ("spec.containers", "container")]
    };
    for (list, what) in lists {
        for container in containers(pod, list) {
            let missing = environment(container).find(|(_, secret)| !named("secrets", secret));
            if let Some((place, secret)) = missing {
                return Some(format!(
                    "{what} {} {place} referencing secret.secretName=\"{secret}\" is not allowed because service \
                     account {name} does not reference that secret",
                    container.str_at("name")
                ));
            }
        }
    }
    if ephemeral {
        return None;
    }
    let pulled = pod.list_at("spec.imagePullSecrets").iter().enumerate();
    let (at, secret) = pulled
        .map(|(at, secret)| (at, secret.str_at("name")))
        .find(|(_, secret)| !named("imagePullSecrets", secret))?;
    Some(format!(
        "imagePullSecrets[{at}].name=\"{secret}\" is not allowed because service account {name} does not reference that \
         imagePullSecret"
    ))
}

/// Whether a pod refers to any secret.
fn references_secret(pod: &Value) -> bool {
    let lists = ["spec.containers", "spec.initContainers", "spec.ephemeralContainers"];
    let by_containers = lists
        .iter()
        .flat_map(|list| containers(pod, list))
        .any(|container| environment(container).next().is_some());
    let source = |volume: &Value, paths: &[&str]| paths.iter().any(|path| volume.has(path));
    let by_volumes = pod.list_at("spec.volumes").iter().any(|volume| {
        source(
            volume,
            &[
                "secret",
                "azureFile",
                "cephfs.secretRef",
                "cinder.secretRef",
                "flexVolume.secretRef",
                "rbd.secretRef",
                "scaleIO.secretRef",
                "iscsi.secretRef",
                "storageos.secretRef",
                "csi.nodePublishSecretRef",
            ],
        ) || volume.list_at("projected.sources").iter().any(|source| source.has("secret"))
    });
    by_containers || by_volumes || !pod.list_at("spec.imagePullSecrets").is_empty()
}
