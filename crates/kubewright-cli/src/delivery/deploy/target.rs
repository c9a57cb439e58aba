//! The cluster of a deployment.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kubewright_runtime::connect::{self, Source};

use super::context::Context;
use crate::error::Hint as _;

/// The name of the context in kubeconfigs of `kubewright apiserver` and `kubewright dev`.
const EMBEDDED: &str = "kubewright";
/// The container runtime of simulated nodes.
const SIMULATED: &str = "kubewright://simulated";

/// A cluster to deploy to.
pub(crate) struct Target {
    pub(crate) client: kube::Client,
    pub(crate) url: String,
    pub(crate) context: Context,
}

/// The nodes of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nodes {
    /// They pull images, or it is unknown whether they do.
    Real,
    /// kubewright simulates them. They pull no images.
    Simulated,
    /// A server of kubewright without nodes, according to the context. Another cluster can have this context too.
    None,
}

impl Target {
    /// Connects to the cluster of a context. Without flags, those of the variable `KUBECTL` apply, so that
    /// `make deploy KUBECTL="kubectl --context dev"` uses the same cluster with both tools.
    pub(crate) async fn connect(kubeconfig: Option<PathBuf>, context: Option<String>) -> Result<Self> {
        let words = std::env::var("KUBECTL").unwrap_or_default();
        let words: Vec<&str> = words.split_whitespace().collect();
        let source = Source {
            kubeconfig: kubeconfig.or_else(|| flag(&words, "--kubeconfig").map(PathBuf::from)),
            context: context.or_else(|| flag(&words, "--context")),
        };
        let config = connect::infer(&source)
            .await
            .context("cannot load the kubeconfig")
            .hint("set KUBECONFIG, or pass --kubeconfig and --context")?;
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let context = Context::of(&source);
        let options = connect::Options {
            user_agent: connect::user_agent("kubewright-deploy", env!("CARGO_PKG_VERSION")),
            ..connect::Options::default()
        };
        let client = connect::client(config, options).context("cannot connect to the cluster")?;
        Ok(Self { client, url, context })
    }

    /// How the nodes get images. Only the nodes themselves show this: a context of any cluster can be called `kubewright`.
    pub(crate) async fn nodes(&self) -> Nodes {
        let api: Api<Node> = Api::all(self.client.clone());
        // Users who may not list nodes have a real cluster.
        let Ok(list) = api.list(&ListParams::default().limit(1)).await else { return Nodes::Real };
        let runtime = |node: &Node| {
            let info = node.status.as_ref()?.node_info.as_ref()?;
            Some(info.container_runtime_version == SIMULATED)
        };
        match list.items.first() {
            Some(node) if runtime(node) == Some(true) => Nodes::Simulated,
            None if self.context.name.as_deref() == Some(EMBEDDED) => Nodes::None,
            _ => Nodes::Real,
        }
    }

    /// The context and the address, for messages.
    pub(crate) fn shown(&self) -> String {
        match &self.context.name {
            Some(context) => format!("context {context} ({})", self.url),
            None => self.url.clone(),
        }
    }
}

/// The value of a flag, as `--flag value` or `--flag=value`.
fn flag(words: &[&str], name: &str) -> Option<String> {
    let at = words.iter().position(|word| word.split('=').next() == Some(name))?;
    let value = match words[at].split_once('=') {
        Some((_, value)) => value,
        None => words.get(at + 1)?,
    };
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_kubectl_are_found() {
        let words = ["kubectl", "--kubeconfig", "/a", "--context=dev"];
        assert_eq!(flag(&words, "--kubeconfig").as_deref(), Some("/a"));
        assert_eq!(flag(&words, "--context").as_deref(), Some("dev"));
        assert_eq!(flag(&words, "--cluster"), None);
        assert_eq!(flag(&["kubectl", "--context"], "--context"), None);
    }
}
