//! `kubewright apiserver`: runs the API server in the foreground.
//!
//! Standard output carries exactly one line, printed when the server is ready, so that scripts can wait for
//! it. Everything else goes to standard error. The kubeconfig is written before that line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use kubewright_apimachinery::duration::parse_go_duration;
use kubewright_apiserver::authz::Authorization;
use kubewright_apiserver::{AdmissionPlugins, ApiServer, Controllers, KubernetesVersion, Options};

use crate::cli::examples::examples;
use crate::control_plane::{self, ControlPlane};
use crate::descriptions::KubernetesDescriptions;
use crate::error::Hint as _;
use crate::log_output;
use crate::signals::Signals;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Start a server", "kubewright apiserver --port 6443"),
    ("Use it from another terminal", "kubectl --kubeconfig kubewright.kubeconfig get namespaces"),
    ("Keep objects between runs", "kubewright apiserver --data-dir .kubewright"),
    ("Start a cluster in which Deployments create Pods", "kubewright apiserver --controllers all --nodes 3"),
    ("Start an API server without controllers, as envtest does", "kubewright apiserver --controllers none"),
    ("Report another Kubernetes version to clients", "kubewright apiserver --kubernetes-version 1.34"),
];

/// Run the Kubernetes API server in the foreground
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Port to listen on (127.0.0.1); 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// File to write the admin kubeconfig to
    #[arg(long, value_name = "FILE", default_value = "kubewright.kubeconfig")]
    kubeconfig: PathBuf,

    /// Data directory [default: in memory]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Controllers to run
    #[arg(long, value_name = "WHICH", default_value = "core")]
    controllers: Which,

    /// Number of simulated nodes, with `--controllers all`
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    nodes: usize,

    /// Comma-separated authorization modes: RBAC, AlwaysAllow
    #[arg(long, value_name = "MODES", default_value = "RBAC", value_parser = authorization)]
    authorization_mode: Mode,

    /// Additional admission plugins to enable (comma-separated)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins to disable (comma-separated); ServiceAccount is disabled by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,

    /// How long list continue tokens stay valid; 0 means forever
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    compaction_interval: Duration,

    /// Kubernetes version to report; the served API is always v1.36
    #[arg(long, value_name = "VERSION", default_value_t)]
    kubernetes_version: KubernetesVersion,
}

/// The effective mode of a list: AlwaysAllow overrides all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Rbac,
    AlwaysAllow,
}

impl From<Mode> for Authorization {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Rbac => Self::Rbac,
            Mode::AlwaysAllow => Self::AlwaysAllow,
        }
    }
}

/// Parses a list of modes. Invalid lists fail with kube-apiserver's messages.
pub(crate) fn authorization(list: &str) -> Result<Mode, String> {
    let mut seen = Vec::new();
    for mode in list.split(',') {
        match mode {
            "RBAC" | "AlwaysAllow" => {}
            "ABAC" | "AlwaysDeny" | "Node" | "Webhook" => {
                return Err(format!("authorization mode {mode} is not supported: use RBAC or AlwaysAllow"));
            }
            _ => {
                return Err(format!(
                    "authorization-mode {mode:?} is not a valid mode: use RBAC or AlwaysAllow"
                ));
            }
        }
        if seen.contains(&mode) {
            return Err(format!("authorization-mode has mode {mode:?} specified more than once"));
        }
        seen.push(mode);
    }
    Ok(if seen.contains(&"AlwaysAllow") { Mode::AlwaysAllow } else { Mode::Rbac })
}

/// Parses a Go duration, such as `5m` or `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = parse_go_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(nanoseconds).map(Duration::from_nanos).map_err(|_| "must not be negative".to_owned())
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Which {
    /// No controllers
    None,
    /// Garbage collection, namespace deletion and ClusterRole aggregation
    Core,
    /// Also workload controllers, a scheduler and simulated nodes; Pods run no containers
    All,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let started = Instant::now();
    log_output::install(ui)?;
    control_plane::runtime()?.block_on(serve(args, ui, started))
}

async fn serve(args: &Args, ui: &Ui, started: Instant) -> Result<()> {
    let mut signals = Signals::listen()?;
    let controllers = match args.controllers {
        Which::None => Controllers::None,
        Which::Core | Which::All => Controllers::Core,
    };
    let mut admission = AdmissionPlugins::default();
    admission.enable.extend(args.enable_admission_plugins.iter().cloned());
    admission.disable.extend(args.disable_admission_plugins.iter().cloned());
    admission
        .check()
        .map_err(anyhow::Error::new)
        .hint("use the names of kube-apiserver's admission plugins, such as PodSecurity")?;
    let descriptions = Arc::new(KubernetesDescriptions);
    let options = Options {
        admission,
        controllers,
        descriptions,
        authorization: args.authorization_mode.into(),
        version: args.kubernetes_version,
        compaction_interval: args.compaction_interval,
        ..Options::default()
    };
    let server = match &args.data_dir {
        None => ApiServer::new(options),
        Some(dir) => control_plane::open(dir, options, ui)
            .hint("choose another --data-dir, or stop the server that uses this one")?,
    };
    let nodes = matches!(args.controllers, Which::All).then_some(args.nodes);
    let control_plane = ControlPlane::start(server, args.port, nodes).await?;
    control_plane.write_kubeconfig(&args.kubeconfig).hint("choose a writable file with --kubeconfig FILE")?;
    ui.note(&format!("kubeconfig: {}", args.kubeconfig.display()));
    ui.print(format!("ready {} in {} ms\n", control_plane.url(), started.elapsed().as_millis()).as_bytes())?;

    signals.any().await;
    control_plane.close().await.hint("free disk space for --data-dir")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_those_of_kube_apiserver() {
        assert_eq!(authorization("RBAC"), Ok(Mode::Rbac));
        assert_eq!(authorization("AlwaysAllow"), Ok(Mode::AlwaysAllow));
        assert_eq!(authorization("RBAC,AlwaysAllow"), Ok(Mode::AlwaysAllow));
        for (list, refusal) in [
            ("rbac", "authorization-mode \"rbac\" is not a valid mode: use RBAC or AlwaysAllow"),
            ("RBAC,", "authorization-mode \"\" is not a valid mode: use RBAC or AlwaysAllow"),
            ("Node,RBAC", "authorization mode Node is not supported: use RBAC or AlwaysAllow"),
            ("RBAC,RBAC", "authorization-mode has mode \"RBAC\" specified more than once"),
        ] {
            assert_eq!(authorization(list), Err(refusal.to_owned()));
        }
    }
}
