//! A control plane in this process: the API server on a port, and optionally the cluster controllers.
//!
//! After `start` it is ready; after `close` all data is on disk. If it is dropped instead, acknowledged
//! writes survive as after a power failure.

use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kubewright_apiserver::serve::{Listening, ServeError};
use kubewright_apiserver::{ApiServer, Options};
use kubewright_cluster::Nodes;
use kubewright_runtime::logs;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::error::Hint as _;
use crate::secret_file;
use crate::ui::Ui;

/// Node heartbeat interval, as in the kubelet.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The server runtime, with half as many threads as cores. Clients run on the same machine and need the other
/// half, and fewer threads mean fewer handoffs per request.
pub(crate) fn runtime() -> Result<Runtime> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    Builder::new_multi_thread()
        .worker_threads(cores.div_ceil(2))
        .enable_all()
        .build()
        .context("failed to start the threads of the server")
        .hint("raise the limit of processes and threads: `ulimit -u`")
}

/// Log options: warnings by default, errors only with `--quiet`, controller activity and failed connections
/// too with `--verbose`.
pub(crate) fn log_options(ui: &Ui) -> logs::Options {
    let level = if ui.is_quiet() {
        "error"
    } else if ui.is_verbose() {
        "info,kubewright_apiserver=debug"
    } else {
        "warn"
    };
    logs::Options { format: logs::Format::Text, level: Some(level.to_owned()), color: logs::Color::Never }
}

pub(crate) struct ControlPlane {
    server: ApiServer,
    listening: Listening,
    cluster: Option<Cluster>,
}

impl ControlPlane {
    /// Opens the port and starts the controllers of a cluster with `nodes` nodes.
    pub(crate) async fn start(server: ApiServer, port: u16, nodes: Option<usize>) -> Result<Self> {
        let listening = Listening::open(server.clone(), port).await.map_err(|error| {
            let taken = matches!(error, ServeError::Bind { .. });
            let error = anyhow::Error::new(error).context("failed to start the API server");
            if taken { error.hint("choose another --port, or use --port 0 for a free one") } else { error }
        })?;
        let cluster =
            nodes.map(|nodes| Cluster::start(&server, nodes, listening.authority().pem())).transpose()?;
        Ok(Self { server, listening, cluster })
    }

    pub(crate) fn url(&self) -> String {
        self.listening.url()
    }

    pub(crate) fn port(&self) -> u16 {
        self.listening.address().port()
    }

    /// An in-process client with cluster-admin permissions.
    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.server.clone(), "default")
    }

    /// Writes the admin kubeconfig, readable only by the owner.
    pub(crate) fn write_kubeconfig(&self, path: &Path) -> Result<()> {
        secret_file::write(path, &self.listening.kubeconfig())
            .with_context(|| format!("cannot write the kubeconfig to {}", path.display()))
    }

    /// Stops the control plane after all writes are on disk.
    pub(crate) async fn close(self) -> Result<()> {
        if let Some(cluster) = self.cluster {
            cluster.end().await?;
        }
        self.listening.close().await;
        self.server.close().context("failed to store the last writes")
    }
}

/// Opens a server on the data of an earlier run.
pub(crate) fn open(dir: &Path, options: Options, ui: &Ui) -> Result<ApiServer> {
    let (server, recovered) = ApiServer::open(dir, options)
        .with_context(|| format!("cannot open the data directory {}", dir.display()))?;
    if recovered.truncated_bytes > 0 {
        ui.note(&format!(
            "discarded {} bytes of an incomplete write from the last run",
            recovered.truncated_bytes
        ));
    }
    Ok(server)
}

/// The cluster controllers, which use an in-process client.
struct Cluster {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), kubewright_cluster::RunError>>,
}

impl Cluster {
    fn start(server: &ApiServer, nodes: usize, root_ca: &str) -> Result<Self> {
        let nodes = Nodes { heartbeat: Some(HEARTBEAT), ..Nodes::count(nodes) };
        let root_ca = root_ca.to_owned();
        let options =
            kubewright_cluster::Options { nodes, root_ca, ..kubewright_cluster::Options::default() };
        let client = kube::Client::new(server.clone(), "default");
        let cluster = kubewright_cluster::Cluster::new(client, &options)
            .context("failed to start the controllers of the cluster")?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(cluster.run_until(async {
            // The sender is dropped to stop the cluster.
            let _ = stopped.await;
        }));
        Ok(Self { stop, task })
    }

    async fn end(self) -> Result<()> {
        drop(self.stop);
        let ended = self.task.await.context("the controllers of the cluster panicked")?;
        ended.context("the controllers of the cluster failed")
    }
}
