//! The development loop: a cluster, an operator that runs on it, and a new operator on each save.
//!
//! - [`cluster`] is what it works on, kept in a [`folder`] between runs; [`definitions`] and [`samples`] get into it.
//! - [`permissions`] has the operator run under its generated role, and reports what it was refused.
//! - [`webhooks`] configures the API server to call the operator's webhooks on this machine.
//! - [`watcher`] tells of saves, [`builder`] has cargo build, [`operator`] runs the [`program`] that comes of it; both
//!   are a [`group`] of processes.
//! - [`readiness`] says whether the samples are, [`waiting`] how long to ask.
//! - [`session`] is the loop itself, [`report`] the lines that it says, and [`page`] what a browser shows of it.
//!
//! The invariants: **an operator that works is replaced by one that was built, and by nothing else**; a save is never
//! lost; whatever way the loop ends, nothing that it started is left, and nothing else has ended.

mod answer;
mod builder;
mod cluster;
mod definitions;
mod folder;
mod group;
mod operator;
mod page;
mod permissions;
mod program;
mod readiness;
mod report;
mod samples;
mod session;
mod waiting;
mod watcher;
mod webhooks;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kubewright_runtime::logs;

pub(crate) use self::cluster::Where;
use self::report::{Lines, Voice};
use self::session::Session;
use crate::control_plane;
use crate::signals::Signals;
use crate::ui::Ui;

/// What to run, and where.
#[derive(Debug)]
pub(crate) struct Options {
    /// A folder of the project.
    pub(crate) project: PathBuf,
    /// The operator's program, where there are several.
    pub(crate) bin: Option<String>,
    /// Arguments for cargo.
    pub(crate) cargo: Vec<String>,
    pub(crate) operator_args: Vec<String>,
    /// Whether the operator runs as the user of the kubeconfig, and not under its generated role.
    pub(crate) as_admin: bool,
    pub(crate) cluster: Where,
    /// The name or address by which an existing cluster reaches this machine.
    pub(crate) webhook_host: Option<String>,
    /// Where to serve the page; 0 is any port that is free.
    pub(crate) page_port: u16,
    /// Whether to apply the samples; if nobody says, when the cluster has not had them.
    pub(crate) samples: Option<bool>,
    /// To end when the samples are ready, which may take so long after the build.
    pub(crate) once: Option<Duration>,
}

/// Runs the loop until it is interrupted, or has done what it was to do once.
pub(crate) fn run(options: Options, ui: Ui) -> Result<()> {
    listen_to_the_cluster(ui.clone())?;
    control_plane::runtime()?.block_on(async {
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
    })
}

/// How a loop ends that was told to.
fn interrupted(once: bool) -> Result<()> {
    if once {
        bail!("interrupted before the samples were ready");
    }
    Ok(())
}

/// Has what the API server and the controllers in this process tell shown between the other lines.
fn listen_to_the_cluster(ui: Ui) -> Result<()> {
    let options = control_plane::log_options(&ui);
    let subscriber = logs::subscriber(&options, move || Lines { ui: ui.clone(), voice: Voice::Cluster })
        .context("cannot install the log subscriber")?;
    tracing::subscriber::set_global_default(subscriber).context("cannot install the log subscriber")
}
