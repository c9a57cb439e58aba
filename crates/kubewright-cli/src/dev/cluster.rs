//! The cluster of the loop: an embedded one that is kept between runs, or an existing one.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use kubewright_apiserver::audit::Audit;
use kubewright_apiserver::{Controllers, Options};
use kubewright_runtime::connect;

use super::ports::Ports;
use super::report::{Report, shown};
use super::samples::Sample;
use super::state_dir::StateDir;
use crate::control_plane::{self, ControlPlane};
use crate::delivery::deploy::context::{self, Local};
use crate::descriptions::KubernetesDescriptions;
use crate::error::Hint as _;
use crate::project::Metadata;
use crate::ui::Ui;

const SIMULATED: &str =
    "simulated: no image is pulled and no container runs; `kubectl exec` and `port-forward` report that";

/// Which cluster to use.
#[derive(Debug)]
pub(crate) enum Where {
    /// An embedded cluster.
    Embedded { port: Option<u16>, nodes: usize, fresh: bool },
    /// An existing cluster.
    Existing(connect::Source),
}

pub(crate) struct Cluster {
    client: kube::Client,
    /// `kubectl` with the flags for this cluster.
    kubectl: String,
    /// Arguments with which the operator connects to it.
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(&'static str, OsString)>,
    embedded: Option<(ControlPlane, StateDir)>,
    /// The context of an existing cluster.
    context: context::Context,
}

impl Cluster {
    /// Starts or finds the cluster, and reports which one before anything is written to it. Requests to an
    /// embedded one are audited.
    pub(crate) async fn start(
        which: Where,
        metadata: &Metadata,
        ports: &Ports,
        audit: Arc<dyn Audit>,
        report: &Report,
        ui: &Ui,
    ) -> Result<Self> {
        match which {
            Where::Embedded { nodes, fresh, .. } => {
                let folder = StateDir::open(&metadata.target, &metadata.name, fresh)?;
                Self::embedded(ports.api, nodes, folder, audit, report, ui).await
            }
            Where::Existing(source) => Self::existing(source, report).await,
        }
    }

    async fn embedded(
        port: u16,
        nodes: usize,
        folder: StateDir,
        audit: Arc<dyn Audit>,
        report: &Report,
        ui: &Ui,
    ) -> Result<Self> {
        let started = Instant::now();
        let options = Options {
            controllers: Controllers::Core,
            descriptions: Arc::new(KubernetesDescriptions),
            audit: Some(audit),
            ..Options::default()
        };
        let kept = folder.objects().exists();
        let server = control_plane::open(&folder.objects(), options, ui)
            .hint("start with a new cluster: --fresh; also check for free disk space")?;
        let control_plane = ControlPlane::start(server, port, Some(nodes)).await?;
        let kubeconfig = folder.kubeconfig();
        control_plane
            .write_kubeconfig(&kubeconfig)
            .hint("check for free disk space, or set CARGO_TARGET_DIR to a writable directory")?;
        let which = if kept { "kept from the last run" } else { "new" };
        let took = shown(started.elapsed());
        report.step("cluster", &format!("{} in {took}, {which}", control_plane.url()))?;
        report.step("pods", SIMULATED)?;
        Ok(Self {
            client: control_plane.client(),
            kubectl: format!("kubectl --kubeconfig {}", quoted(&kubeconfig)),
            arguments: Vec::new(),
            variables: vec![("KUBECONFIG", kubeconfig.into_os_string())],
            embedded: Some((control_plane, folder)),
            context: context::Context::default(),
        })
    }

    async fn existing(source: connect::Source, report: &Report) -> Result<Self> {
        let config = connect::infer(&source).await.context("cannot load the kubeconfig")?;
        let url = config.cluster_url.to_string();
        let context = context::Context::of(&source);
        let shown =
            context.name.as_ref().map_or_else(|| "no context".to_owned(), |it| format!("context {it}"));
        report.result(
            "cluster",
            &format!("{}: {shown}; objects are applied to it", url.trim_end_matches('/')),
        )?;
        let mut arguments = Vec::new();
        let mut kubectl = "kubectl".to_owned();
        if let Some(file) = &source.kubeconfig {
            let file = std::path::absolute(file).context("cannot find the kubeconfig")?;
            kubectl = format!("{kubectl} --kubeconfig {}", quoted(&file));
            arguments.push(format!("--kubeconfig={}", file.display()));
        }
        if let Some(context) = &source.context {
            kubectl = format!("{kubectl} --context {}", quoted(Path::new(context)));
            arguments.push(format!("--context={context}"));
        }
        let options = connect::Options {
            user_agent: connect::user_agent("kubewright-dev", env!("CARGO_PKG_VERSION")),
            ..connect::Options::default()
        };
        let client = connect::client(config, options).context("cannot connect to the cluster")?;
        Ok(Self { client, kubectl, arguments, variables: Vec::new(), embedded: None, context })
    }

    /// Whether it is an existing cluster.
    pub(crate) fn is_existing(&self) -> bool {
        self.embedded.is_none()
    }

    /// The port of an embedded API server.
    pub(crate) fn port(&self) -> Option<u16> {
        self.embedded.as_ref().map(|(control_plane, _)| control_plane.port())
    }

    /// The state directory of an embedded cluster.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.embedded.as_ref().map(|(_, folder)| folder.path())
    }

    /// The tool of an existing local cluster.
    pub(crate) fn local(&self) -> Option<&Local> {
        self.context.local.as_ref()
    }

    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// A command line that lists objects of some kinds.
    pub(crate) fn kubectl(&self, plurals: &[String]) -> String {
        let kinds: Vec<&str> = plurals.iter().map(String::as_str).chain(["pods"]).collect();
        format!("{} get {}", self.kubectl, kinds.join(","))
    }

    /// The start of a command line of kubectl for this cluster.
    pub(crate) fn kubectl_command(&self) -> &str {
        &self.kubectl
    }

    /// Whether the samples were never applied to this cluster.
    pub(crate) async fn wants(&self, samples: &[Sample]) -> Result<bool> {
        if let Some((_, folder)) = &self.embedded {
            return Ok(!folder.is_sampled());
        }
        for sample in samples {
            if sample.place(&self.client).await?.exists(&self.client).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Records that the samples were applied.
    pub(crate) fn sampled(&self) -> Result<()> {
        match &self.embedded {
            Some((_, folder)) => folder.sampled(),
            None => Ok(()),
        }
    }

    /// Stops an embedded cluster.
    pub(crate) async fn close(self) -> Result<()> {
        match self.embedded {
            Some((control_plane, _folder)) => {
                control_plane.close().await.hint("free disk space for the target directory")
            }
            None => Ok(()),
        }
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_spaces_are_quoted() {
        assert_eq!(quoted(Path::new("/a/b-c_1.kubeconfig")), "/a/b-c_1.kubeconfig");
        assert_eq!(quoted(Path::new("/my shop/it's")), r"'/my shop/it'\''s'");
    }
}
