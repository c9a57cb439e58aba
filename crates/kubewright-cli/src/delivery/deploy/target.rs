//! The cluster of a deployment.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kube::config::Kubeconfig;
use kubewright_runtime::connect::{self, Source};

use crate::error::Hint as _;

/// The name of the context in kubeconfigs of `kubewright apiserver` and `kubewright dev`.
const EMBEDDED: &str = "kubewright";

/// A cluster to deploy to.
pub(crate) struct Target {
    pub(crate) client: kube::Client,
    pub(crate) url: String,
    pub(crate) context: Option<String>,
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
        let context = source.context.clone().or_else(|| current_context(&source));
        let options = connect::Options {
            user_agent: connect::user_agent("kubewright-deploy", env!("CARGO_PKG_VERSION")),
            ..connect::Options::default()
        };
        let client = connect::client(config, options).context("cannot connect to the cluster")?;
        Ok(Self { client, url, context })
    }

    /// Whether the nodes are simulated by kubewright and pull no images.
    pub(crate) fn is_embedded(&self) -> bool {
        self.context.as_deref() == Some(EMBEDDED)
    }

    /// The context and the address, for messages.
    pub(crate) fn shown(&self) -> String {
        match &self.context {
            Some(context) => format!("context {context} ({})", self.url),
            None => self.url.clone(),
        }
    }
}

/// An unreadable kubeconfig failed before, or does not exist, as in a Pod.
fn current_context(source: &Source) -> Option<String> {
    let kubeconfig = match &source.kubeconfig {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    kubeconfig.ok()?.current_context
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
