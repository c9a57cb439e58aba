//! The kubeconfig of an operator's ServiceAccount, for operators that run as a process.
//!
//! Owns how the roles of `config/rbac` are applied, and how the account's token becomes a kubeconfig.

use std::path::{Path, PathBuf};

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, DynamicObject, PostParams};
use kubewright_runtime::Client;
use serde_json::{Value, json};

use crate::install::{self, InstallError};
use crate::yaml::{self, FixtureError};

/// The kubeconfig of an operator's ServiceAccount could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorKubeconfigError {
    /// The control plane has no kubeconfig.
    #[error(
        "this environment has no kubeconfig; use Environment::builder().https(), or deploy the operator to the existing cluster"
    )]
    NoKubeconfig,
    /// The files of the roles are invalid.
    #[error(transparent)]
    Roles(#[from] FixtureError),
    /// The directory has no ServiceAccount, or several.
    #[error("{} has {count} ServiceAccounts, expected one", path.display())]
    ServiceAccounts {
        /// The directory.
        path: PathBuf,
        /// The number of ServiceAccounts.
        count: usize,
    },
    /// The server rejected a role.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The server issued no token.
    #[error("failed to request a token for ServiceAccount {0}")]
    Token(String, #[source] kube::Error),
    /// The administrator's kubeconfig is invalid.
    #[error("invalid kubeconfig {}: {why}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A kubeconfig cannot be read or written.
    #[error("failed to access kubeconfig {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// Applies the ServiceAccount, roles and bindings of a directory to a namespace. Writes a kubeconfig of the
/// ServiceAccount beside the administrator's, and returns its path.
pub(crate) async fn kubeconfig(
    kube: &kube::Client,
    admin: &Path,
    rbac: &Path,
    namespace: &str,
) -> Result<PathBuf, OperatorKubeconfigError> {
    let mut accounts = Vec::new();
    let client = Client::new(kube.clone());
    for mut object in yaml::load(rbac)? {
        let kind = object.types.as_ref().map_or("", |types| &types.kind);
        match kind {
            "ServiceAccount" => accounts.extend(object.metadata.name.clone()),
            "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => {}
            // kustomization.yaml.
            _ => continue,
        }
        move_to(&mut object, namespace);
        install::object(&client, object, Some(namespace)).await?;
    }
    let [account] = accounts.as_slice() else {
        return Err(OperatorKubeconfigError::ServiceAccounts {
            path: rbac.to_owned(),
            count: accounts.len(),
        });
    };
    let token = Api::<ServiceAccount>::namespaced(kube.clone(), namespace)
        .create_token_request(account, &PostParams::default(), &TokenRequest::default())
        .await
        .map_err(|source| OperatorKubeconfigError::Token(account.clone(), source))?;
    let token = token.status.map(|status| status.token).unwrap_or_default();

    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| OperatorKubeconfigError::File { path, source }
    };
    let text = std::fs::read_to_string(admin).map_err(failed(admin))?;
    let mut config: Value = serde_saphyr::from_str(&text)
        .map_err(|error| OperatorKubeconfigError::Parse { path: admin.to_owned(), why: error.to_string() })?;
    config["users"] = json!([{ "name": account, "user": { "token": token } }]);
    config["contexts"][0]["context"]["user"] = json!(account);
    config["contexts"][0]["context"]["namespace"] = json!(namespace);
    let path = admin.with_file_name(format!("kubeconfig-{namespace}-{account}"));
    // JSON is YAML.
    std::fs::write(&path, config.to_string()).map_err(failed(&path))?;
    Ok(path)
}

/// Sets the namespace of namespaced objects and of ServiceAccounts in bindings, as kustomize's `namespace` does.
fn move_to(object: &mut DynamicObject, namespace: &str) {
    let kind = object.types.as_ref().map_or("", |types| &types.kind);
    if !kind.starts_with("Cluster") {
        object.metadata.namespace = Some(namespace.to_owned());
    }
    let subjects = object.data.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        if subject["kind"] == "ServiceAccount" {
            subject["namespace"] = json!(namespace);
        }
    }
}
