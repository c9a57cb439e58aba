//! Finds the configuration of the cluster.
//!
//! Owns the order of the sources and the error if there is none. It opens no connection.

use std::path::PathBuf;

use kube::Config;
use kube::config::InClusterError;

use super::kubeconfig::{Environment, Kubeconfig, KubeconfigError};

/// The cluster that the user selected with flags. By default nothing is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// The path of the kubeconfig, `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// The context, `--context`; the current context if `None`.
    pub context: Option<String>,
}

/// No configuration of a cluster was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InferError {
    /// The file of `--kubeconfig` is invalid.
    #[error("invalid --kubeconfig {path}; check it with `kubectl --kubeconfig`")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: KubeconfigError,
    },
    /// The context of `--context` does not exist or is invalid.
    #[error("invalid --context {context}; run `kubectl config get-contexts` to list contexts")]
    Context {
        /// The context.
        context: String,
        /// The cause.
        #[source]
        source: KubeconfigError,
    },
    /// The kubeconfig is invalid.
    #[error("invalid kubeconfig; correct it, or set KUBECONFIG or --kubeconfig to another file")]
    Kubeconfig(#[source] KubeconfigError),
    /// There is no kubeconfig, and the process does not run in a pod.
    #[error(
        "no cluster configured: set KUBECONFIG or --kubeconfig, or create ~/.kube/config; \
         in a pod, mount a service account token (in-cluster configuration failed: {in_cluster})"
    )]
    Nowhere {
        /// Why the in-cluster configuration failed.
        in_cluster: InClusterError,
        /// Why there is no kubeconfig.
        #[source]
        kubeconfig: KubeconfigError,
    },
}

/// Finds the cluster: the file or context that the user selected, else `KUBECONFIG` or `~/.kube/config`, else the pod's
/// service account. This is kube's order.
pub async fn infer(source: &Source) -> Result<Config, InferError> {
    let environment = Environment::of_this_process();
    let context = source.context.as_deref();
    let mut config = if let Some(path) = &source.kubeconfig {
        let failed = |source| InferError::File { path: path.clone(), source };
        let kubeconfig = Kubeconfig::read(path).map_err(failed)?;
        kubeconfig.config(context, &environment).map_err(|error| match context {
            Some(context) if is_of_context(&error) => {
                InferError::Context { context: context.to_owned(), source: error }
            }
            _ => failed(error),
        })?
    } else {
        let found = Kubeconfig::find(&environment).and_then(|found| found.config(context, &environment));
        match (found, context) {
            (Ok(config), _) => config,
            // A named context implies a kubeconfig, not a pod.
            (Err(source), Some(context)) => {
                return Err(InferError::Context { context: context.to_owned(), source });
            }
            (Err(kubeconfig), None) => {
                Config::incluster().map_err(|in_cluster| neither(kubeconfig, in_cluster))?
            }
        }
    };
    config.apply_debug_overrides();
    Ok(config)
}

/// Prefers an error in an existing kubeconfig over the in-cluster error.
fn neither(kubeconfig: KubeconfigError, in_cluster: InClusterError) -> InferError {
    let missing = match &kubeconfig {
        KubeconfigError::Home => true,
        KubeconfigError::Read { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    };
    if missing { InferError::Nowhere { in_cluster, kubeconfig } } else { InferError::Kubeconfig(kubeconfig) }
}

fn is_of_context(error: &KubeconfigError) -> bool {
    matches!(error, KubeconfigError::Context(_) | KubeconfigError::Cluster { .. })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: one\nclusters:\n- name: c\n  \
                              cluster: {server: 'https://one.example'}\n- name: d\n  cluster: {server: \
                              'https://two.example'}\ncontexts:\n- name: one\n  context: {cluster: c, user: u, \
                              namespace: mine}\n- name: two\n  context: {cluster: d, user: u}\nusers:\n- name: u\n  \
                              user: {token: t}\n";

    #[tokio::test]
    async fn a_flag_names_the_file_and_the_context() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, KUBECONFIG).unwrap();
        let mut source = Source { kubeconfig: Some(path.clone()), context: None };
        let config = infer(&source).await.unwrap();
        assert_eq!(config.cluster_url, "https://one.example");
        assert_eq!(config.default_namespace, "mine");
        source.context = Some("two".to_owned());
        assert_eq!(infer(&source).await.unwrap().cluster_url, "https://two.example");
        source.context = Some("three".to_owned());
        let error = infer(&source).await.unwrap_err();
        assert!(error.to_string().contains("get-contexts"), "{error}");
        std::fs::write(&path, "not: [yaml").unwrap();
        assert!(matches!(infer(&source).await, Err(InferError::File { path: of, .. }) if of == path));
    }

    #[test]
    fn without_a_cluster_the_error_says_what_to_set() {
        let no_pod = || InClusterError::ReadEnvironmentVariable(std::env::VarError::NotPresent);
        let missing =
            |kind: io::ErrorKind| KubeconfigError::Read { path: "config".into(), source: kind.into() };
        for kubeconfig in [KubeconfigError::Home, missing(io::ErrorKind::NotFound)] {
            let error = neither(kubeconfig, no_pod()).to_string();
            assert!(error.contains("KUBECONFIG") && error.contains("--kubeconfig"), "{error}");
            assert!(error.contains("service account"), "{error}");
        }
        let unreadable = neither(missing(io::ErrorKind::PermissionDenied), no_pod());
        assert!(matches!(unreadable, InferError::Kubeconfig(_)));
        let broken = neither(KubeconfigError::NoContext, no_pod());
        assert!(matches!(broken, InferError::Kubeconfig(_)), "a broken kubeconfig is not a missing one");
    }
}
