//! A control plane in this process: the API server on a port, and the controllers of a cluster if they are wanted.
//!
//! It is whole when it was started, and what it keeps is on disk when it was closed. Dropped instead, it ends as in a
//! power cut: nothing that was acknowledged is lost.

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
use crate::private;
use crate::ui::Ui;

/// How often nodes say that they are there, as kubelets do.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The threads of a server: half as many as there are cores. The other half is for its clients, which run on the same
/// machine, and one thread answers a client with less work than two that hand its requests to each other.
pub(crate) fn runtime() -> Result<Runtime> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    Builder::new_multi_thread()
        .worker_threads(cores.div_ceil(2))
        .enable_all()
        .build()
        .context("failed to start the server threads")
}

/// How the server and its controllers tell what is not an answer: warnings; with `--quiet` errors; with `--verbose` also
/// what controllers do, and which connections failed.
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
    /// Opens the port, and starts the controllers of a cluster of so many nodes.
    pub(crate) async fn start(server: ApiServer, port: u16, nodes: Option<usize>) -> Result<Self> {
        let listening = Listening::open(server.clone(), port).await.map_err(|error| {
            let taken = matches!(error, ServeError::Bind { .. });
            let error = anyhow::Error::new(error).context("failed to start the API server");
            if taken {
                error.hint("choose another --port, or use --port 0 for a free one")
            } else {
                error
            }
        })?;
        let cluster =
            nodes.map(|nodes| Cluster::start(&server, nodes, listening.authority().pem())).transpose()?;
        Ok(Self { server, listening, cluster })
    }

    pub(crate) fn url(&self) -> String {
        self.listening.url()
    }

    /// A client without a socket, who may do everything.
    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.server.clone(), "default")
    }

    /// Writes the kubeconfig of the administrator, for its owner's eyes only.
    pub(crate) fn write_kubeconfig(&self, path: &Path) -> Result<()> {
        private::write(path, &self.listening.kubeconfig())
            .with_context(|| format!("cannot write the kubeconfig to {}", path.display()))
    }

    /// Ends it, with all writes on disk.
    pub(crate) async fn close(self) -> Result<()> {
        if let Some(cluster) = self.cluster {
            cluster.end().await?;
        }
        self.listening.close().await;
        self.server.close().context("failed to store the last writes")
    }
}

/// A server on the objects that an earlier run left in a folder.
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

/// The controllers of a cluster, which talk to the server without a socket.
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
        let cluster =
            kubewright_cluster::Cluster::new(client, &options).context("failed to start the cluster")?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(cluster.run_until(async {
            // Dropping the other end is the sign.
            let _ = stopped.await;
        }));
        Ok(Self { stop, task })
    }

    async fn end(self) -> Result<()> {
        drop(self.stop);
        self.task.await.context("the cluster panicked")?.context("the cluster failed")
    }
}
