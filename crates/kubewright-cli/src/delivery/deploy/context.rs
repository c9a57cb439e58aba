//! The context of a kubeconfig, and the local cluster that it belongs to.

use kube::config::{Kubeconfig, NamedExtension};
use kubewright_runtime::connect::Source;

use crate::delivery::image::load::Cluster;

/// What minikube writes into the extensions of its clusters and contexts.
const MINIKUBE: &str = "minikube.sigs.k8s.io";

/// The selected context.
#[derive(Debug, Default)]
pub(crate) struct Context {
    /// `None` without a kubeconfig, as in a Pod.
    pub(crate) name: Option<String>,
    pub(crate) local: Option<Local>,
}

/// A cluster of kind, minikube or k3d on this machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) cluster: Cluster,
    /// The cluster name, or the minikube profile.
    pub(crate) name: String,
}

impl Context {
    /// The context that a client of this source uses. An unreadable kubeconfig gives no context; connecting reports it.
    pub(crate) fn of(source: &Source) -> Self {
        let kubeconfig = match &source.kubeconfig {
            Some(file) => Kubeconfig::read_from(file),
            None => Kubeconfig::read(),
        };
        let kubeconfig = kubeconfig.unwrap_or_default();
        let Some(name) = source.context.clone().or_else(|| kubeconfig.current_context.clone()) else {
            return Self::default();
        };
        let local = Local::find(&kubeconfig, &name);
        Self { name: Some(name), local }
    }
}

impl Local {
    /// The local cluster of a context. A minikube profile can have any name, so minikube marks its clusters; kind and k3d
    /// have prefixes.
    fn find(kubeconfig: &Kubeconfig, context: &str) -> Option<Self> {
        let entry = kubeconfig.contexts.iter().find(|entry| entry.name == context);
        let entry = entry.and_then(|entry| entry.context.as_ref());
        let cluster = entry.and_then(|entry| kubeconfig.clusters.iter().find(|it| it.name == entry.cluster));
        let extensions = cluster.and_then(|it| it.cluster.as_ref()?.extensions.as_ref());
        if let Some(cluster) = cluster.filter(|_| is_of_minikube(extensions)) {
            return Some(Self { cluster: Cluster::Minikube, name: cluster.name.clone() });
        }
        if is_of_minikube(entry.and_then(|entry| entry.extensions.as_ref())) {
            return Some(Self { cluster: Cluster::Minikube, name: context.to_owned() });
        }
        Self::of_name(context)
    }

    fn of_name(context: &str) -> Option<Self> {
        let local = |cluster, name: &str| Some(Self { cluster, name: name.to_owned() });
        if let Some(name) = context.strip_prefix("kind-") {
            return local(Cluster::Kind, name);
        }
        if let Some(name) = context.strip_prefix("k3d-") {
            return local(Cluster::K3d, name);
        }
        if context == "minikube" { local(Cluster::Minikube, context) } else { None }
    }
}

fn is_of_minikube(extensions: Option<&Vec<NamedExtension>>) -> bool {
    extensions.into_iter().flatten().any(|it| it.extension["provider"] == MINIKUBE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = "
clusters:
- name: sandbox
  cluster:
    server: https://192.0.2.1:8443
    extensions:
    - name: cluster_info
      extension: {provider: minikube.sigs.k8s.io, version: v1.37.0}
- name: cloud
  cluster: {server: 'https://192.0.2.2'}
contexts:
- {name: sandbox, context: {cluster: sandbox, user: u}}
- {name: renamed, context: {cluster: sandbox, user: u}}
- {name: production, context: {cluster: cloud, user: u}}
- {name: minikube, context: {cluster: cloud, user: u}}
- {name: kind-dev, context: {cluster: kind-dev, user: u}}
- {name: k3d-dev, context: {cluster: k3d-dev, user: u}}
- name: profile
  context:
    cluster: gone
    user: u
    extensions:
    - name: context_info
      extension: {provider: minikube.sigs.k8s.io}
";

    #[test]
    fn local_clusters_are_known_by_their_context() {
        let kubeconfig = Kubeconfig::from_yaml(KUBECONFIG).unwrap();
        let found = |context| Local::find(&kubeconfig, context).map(|local| (local.cluster, local.name));
        let expected = |cluster, name: &str| Some((cluster, name.to_owned()));
        assert_eq!(found("kind-dev"), expected(Cluster::Kind, "dev"));
        assert_eq!(found("k3d-dev"), expected(Cluster::K3d, "dev"));
        assert_eq!(found("minikube"), expected(Cluster::Minikube, "minikube"));
        assert_eq!(found("production"), None);
    }

    #[test]
    fn minikube_profiles_are_known_by_their_extension() {
        let kubeconfig = Kubeconfig::from_yaml(KUBECONFIG).unwrap();
        for (context, profile) in [("sandbox", "sandbox"), ("renamed", "sandbox"), ("profile", "profile")] {
            let expected = Local { cluster: Cluster::Minikube, name: profile.to_owned() };
            assert_eq!(Local::find(&kubeconfig, context), Some(expected));
        }
    }
}
