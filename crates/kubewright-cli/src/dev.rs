//! The development loop: a cluster, an operator that runs on it, and a rebuild on each save.
//!
//! - [`cluster`] is the cluster, kept in a [`state_dir`] between runs, with its [`ports`] and the [`durations`] of
//!   builds. [`crds`] and [`samples`] are applied to it.
//! - [`permissions`] runs the operator with its generated RBAC rules and reports forbidden calls.
//! - [`webhooks`] configures the API server to call the operator's webhooks on this machine.
//! - [`watcher`] reports saves, [`builder`] runs cargo and [`build_output`] reads its progress, and [`operator`] runs the
//!   built [`program`]. Both are a [`process_group`].
//! - [`sample_status`] evaluates whether the samples are ready, and [`readiness_watch`] decides when.
//! - [`session`] is the loop itself, [`report`] prints its lines, and [`page`] is the web UI.
//!
//! Invariants: **a running operator is only replaced by a successful build**; no save is lost; when the loop
//! ends, everything that it started is stopped, and nothing else.

mod api_error;
mod build_output;
mod builder;
mod cluster;
mod cluster_log;
mod crds;
mod durations;
mod operator;
mod page;
mod permissions;
mod ports;
mod process_group;
mod program;
mod readiness_watch;
mod report;
mod sample_status;
pub(crate) mod samples;
mod session;
mod state_dir;
mod watcher;
mod webhooks;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kubewright_runtime::logs;

pub(crate) use self::api_error::api_error;
pub(crate) use self::cluster::Where;
use self::cluster_log::ClusterLog;
pub use self::page::{Feed, Page};
use self::report::Voice;
use self::session::Session;
use crate::control_plane;
use crate::signals::Signals;
use crate::ui::Ui;

/// What to run, and where.
#[derive(Debug)]
pub(crate) struct Options {
    /// The project directory.
    pub(crate) project: PathBuf,
    /// The operator binary, if there are several.
    pub(crate) bin: Option<String>,
    /// Arguments for cargo.
    pub(crate) cargo: Vec<String>,
    pub(crate) operator_args: Vec<String>,
    /// Run the operator as the kubeconfig user instead of with its generated RBAC rules.
    pub(crate) as_admin: bool,
    pub(crate) cluster: Where,
    /// The host at which an existing cluster reaches this machine.
    pub(crate) webhook_host: Option<String>,
    /// Port of the web UI: 0 for a free one; by default that of the last run.
    pub(crate) page_port: Option<u16>,
    /// Whether to apply the samples; by default, if the cluster has not had them.
    pub(crate) samples: Option<bool>,
    /// Exit when the samples are ready, with this timeout after the build.
    pub(crate) once: Option<Duration>,
}

/// Runs the loop until it is interrupted or, with `once`, done.
pub(crate) fn run(options: Options, ui: Ui) -> Result<()> {
    let log = print_cluster_logs(ui.clone())?;
    let ran = control_plane::runtime()?.block_on(async {
        let mut signals = Signals::listen()?.with_hangup()?;
        let once = options.once.is_some();
        let mut session = tokio::select! {
            biased;
            () = signals.any() => return interrupted(once),
            session = Session::start(options, ui) => session?,
        };
        let ran = tokio::select! {
            biased;
            () = signals.any() => interrupted(once),
            ran = session.run() => ran,
        };
        let ended = session.end(&mut signals).await;
        ran.and(ended)
    });
    log.flush();
    ran
}

/// The result of an interrupted loop.
fn interrupted(once: bool) -> Result<()> {
    if once {
        bail!("interrupted before the samples were ready");
    }
    Ok(())
}

/// Prints logs of the embedded API server and controllers between the other lines.
fn print_cluster_logs(ui: Ui) -> Result<ClusterLog> {
    let options = control_plane::log_options(&ui);
    let log =
        ClusterLog::start(move |line| Voice::Cluster.say(&ui, line)).context("cannot start a thread")?;
    let writer = log.clone();
    let subscriber =
        logs::subscriber(&options, move || writer.writer()).context("cannot install the log subscriber")?;
    tracing::subscriber::set_global_default(subscriber).context("cannot install the log subscriber")?;
    Ok(log)
}
