//! The loop of one save: detect, build, declare, replace, observe.
//!
//! Each part of the loop owns its state and how it starts and stops:
//!
//! - [`Sources`] detects saves, and [`Builds`] runs cargo;
//! - [`Declared`] generates manifests and installs CRDs, [`Role`] applies the operator's RBAC rules;
//! - [`Operator`] is the process, and [`WebhookServer`] configures the API server to call it;
//! - [`Samples`] follows the samples until they are ready, and [`Summary`] reports the result;
//! - [`Cluster`] is the control plane, and [`WebUi`] the page in the browser.
//!
//! Events are handled one at a time, and all waits are cancel-safe, so the loop can end at any time.

mod builds;
mod declared;
mod deploy;
mod role;
mod role_changes;
mod samples;
mod sources;
mod summary;
mod web_ui;
mod webhook_server;

use std::time::Duration;

use anyhow::{Result, anyhow};
use kubewright_apimachinery::permission::Permission;
use tokio::time::Instant;

use self::builds::Builds;
use self::declared::Declared;
use self::role::Role;
use self::samples::Samples;
use self::sources::Sources;
use self::summary::Summary;
use self::web_ui::WebUi;
use self::webhook_server::WebhookServer;
use super::Options;
use super::build_output::LockAdvice;
use super::builder::{Builder, Built};
use super::cluster::{Cluster, Where};
use super::durations::{Durations, Reason};
use super::operator::{self, Launch, Operator};
use super::permissions::Permissions;
use super::ports::Ports;
use super::report::{Report, count, shown};
use super::sample_status::SampleStatus;
use super::state_dir;
use super::watcher::Change;
use crate::error::Hint as _;
use crate::project::Project;
use crate::signals::Signals;
use crate::ui::{OutputClosed, Ui};

const SAMPLES_FAILED: &str = "they are applied again on the next save";

pub(crate) struct Session {
    project: Project,
    report: Report,
    /// Timeout of `--once`, counted from the end of the build.
    once: Option<Duration>,
    cluster: Cluster,
    web_ui: WebUi,
    sources: Sources,
    builds: Builds,
    declared: Declared,
    role: Role,
    operator: Operator,
    webhooks: WebhookServer,
    samples: Samples,
    summary: Summary,
    /// Whether an operator was deployed already.
    is_deployed: bool,
}

/// Something that happened.
enum Event {
    Saved(Change),
    Built(Built),
    Operator(operator::Event),
    Samples(Result<Vec<SampleStatus>>),
    Forbidden(Vec<Permission>),
    TimedOut,
}

impl Session {
    /// Starts everything except the operator. The project is checked first, since most errors are there.
    pub(crate) async fn start(options: Options, ui: Ui) -> Result<Self> {
        let started = Instant::now();
        let report = Report::new(ui.clone());
        let project = Project::find(&options.project)?;
        let metadata = project.metadata(options.bin.as_deref())?;
        let is_once = options.once.is_some();
        // Before the build, so that saves during it are not lost.
        let sources = Sources::watch(&project, metadata.sources.clone(), is_once)?;
        let permissions = Permissions::new(&metadata.name, matches!(options.cluster, Where::Existing(_)));
        let port = match options.cluster {
            Where::Embedded { port, .. } => port,
            Where::Existing(_) => None,
        };
        let state = state_dir::path(&metadata.target, &metadata.name);
        // Before the state of the last run is removed.
        let ports = Ports::choose(&state, port, options.page_port)?;
        let cluster =
            Cluster::start(options.cluster, &metadata, &ports, permissions.audit(), &report, &ui).await?;
        let web_ui = WebUi::start(&cluster, ports.page, is_once).await?;
        ports.keep(cluster.port(), web_ui.port())?;
        let webhooks =
            WebhookServer::start(&cluster, &metadata.name, options.webhook_host.as_deref(), &report).await?;

        let mut launch = Launch {
            folder: project.root().to_owned(),
            arguments: cluster.arguments.clone(),
            variables: cluster.variables.clone(),
            feed: web_ui.feed().clone(),
        };
        webhooks.configure(&mut launch);
        web_ui.configure(&mut launch);
        if project.watched_namespace().is_some() {
            // A namespaced operator watches its own namespace in a cluster, and that of the samples here.
            launch.arguments.push(format!("--namespace={}", cluster.client().default_namespace()));
        }
        launch.arguments.extend(options.operator_args);

        let builder = Builder {
            project: project.clone(),
            package: metadata.name,
            bin: options.bin,
            selection: metadata.selection,
            arguments: options.cargo,
            lock_advice: LockAdvice::default(),
            ui: ui.clone(),
            feed: web_ui.feed().clone(),
        };
        Ok(Self {
            builds: Builds::new(builder, Durations::read(&state, &metadata.target), started),
            project,
            report,
            once: options.once,
            cluster,
            web_ui,
            sources,
            declared: Declared::default(),
            role: Role::new((!options.as_admin).then_some(permissions)),
            operator: Operator::new(launch, ui),
            webhooks,
            samples: Samples::new(options.samples),
            summary: Summary::new(started),
            is_deployed: false,
        })
    }

    /// Runs until an error or, with `--once`, until done.
    pub(crate) async fn run(&mut self) -> Result<()> {
        self.report.step("kubectl", &self.cluster.kubectl(&[]))?;
        if let Some(url) = self.web_ui.url() {
            self.report.step("page", &url)?;
        }
        self.build()?;
        loop {
            let kinds = self.declared.kinds();
            let timeout = self.once.zip(self.builds.ended()).map(|(timeout, ended)| ended + timeout);
            let event = tokio::select! {
                biased;
                change = self.sources.changed() => Event::Saved(change?),
                built = self.builds.finished() => Event::Built(built?),
                event = self.operator.event() => Event::Operator(event?),
                () = reached(timeout) => Event::TimedOut,
                forbidden = self.role.forbidden() => Event::Forbidden(forbidden),
                samples = self.samples.changed(self.cluster.client(), &kinds) => Event::Samples(samples),
            };
            match event {
                Event::Saved(change) => self.saved(change).await?,
                Event::Built(built) => self.built(built).await?,
                Event::Operator(operator::Event::Exited { reason }) => {
                    self.web_ui.feed().exited(&reason);
                    self.report.failed("operator", &reason)?;
                }
                Event::Operator(operator::Event::RestartDue) => self.restart().await?,
                Event::Samples(samples) => {
                    if self.observe(samples)? && self.once.is_some() {
                        return self.role.check();
                    }
                }
                Event::Forbidden(permissions) => Role::report_forbidden(&permissions, &self.report)?,
                Event::TimedOut => return Err(self.timed_out()),
            }
        }
    }

    /// Stops everything. Another signal skips the graceful shutdown.
    pub(crate) async fn end(mut self, signals: &mut Signals) -> Result<()> {
        self.builds.kill();
        let stopped = tokio::select! {
            biased;
            () = signals.any() => Ok(()),
            stopped = self.operator.stop() => stopped,
        };
        let reported = self.role.report_unused(&self.report);
        // The operator no longer serves the webhooks.
        let removed = self.webhooks.remove(&self.cluster).await;
        self.web_ui.stop().await;
        let kept = self.cluster.folder().map(|folder| folder.display().to_string());
        let closed = self.cluster.close().await;
        if self.once.is_none() {
            // The terminal may be closed.
            let _ = match kept {
                Some(folder) => self.report.step(
                    "stopped",
                    &format!("the cluster is kept in {folder}; `kubewright dev` continues with it, `--fresh` starts a new one"),
                ),
                None => self.report.step(
                    "stopped",
                    "CRDs, samples and the RBAC rules of the operator stay in the cluster; its webhooks are removed",
                ),
            };
        }
        stopped.and(removed).and(closed).and(reported)
    }

    /// Starts a build.
    fn build(&mut self) -> Result<()> {
        self.builds.start(self.reason(), self.operator.is_running(), &self.report)
    }

    fn reason(&self) -> Reason {
        if self.is_deployed { Reason::Save } else { Reason::Start }
    }

    /// Handles a save.
    async fn saved(&mut self, change: Change) -> Result<()> {
        self.samples.saved(change);
        if change.code || (change.lock && !self.builds.is_running()) {
            if self.builds.abandon().await? {
                self.report.step("saved", "during the build; restarting it")?;
            }
            self.builds.request(change.since.unwrap_or_else(Instant::now));
            return self.build();
        }
        if change.lock {
            // cargo writes Cargo.lock too, so this may not be the user's change.
            self.builds.repeat();
        }
        if self.samples.are_saved() && self.is_deployed && !self.builds.is_running() {
            let since = change.since.unwrap_or_else(Instant::now);
            match self.apply_samples().await {
                Ok(applied) => {
                    let took = shown(since.elapsed());
                    self.report
                        .step("samples", &format!("{} applied in {took}", count(applied, "object")))?;
                }
                Err(error) => self.survive(error, "samples", SAMPLES_FAILED)?,
            }
        }
        Ok(())
    }

    /// Handles the end of a build.
    async fn built(&mut self, built: Built) -> Result<()> {
        let goes_on =
            if self.operator.is_running() { "the old operator keeps running" } else { "waiting for changes" };
        match built.program {
            None if self.once.is_some() => {
                return Err(anyhow!("failed to build the operator")).hint("see the compiler errors above");
            }
            None => {
                self.web_ui.feed().failed(&built.error, goes_on);
                self.report.failed("build", &format!("failed in {}; {goes_on}", shown(built.took)))?;
            }
            Some(program) => {
                self.builds.record(self.reason(), built.took);
                self.web_ui.feed().deploying();
                if let Err(error) = self.deploy(&program, built.took).await {
                    self.web_ui.feed().failed(&format!("{error:#}"), goes_on);
                    self.survive(error, "rebuilt", goes_on)?;
                }
            }
        }
        if self.builds.is_repeat_due() { self.build() } else { Ok(()) }
    }

    /// Records the states of the samples and reports changes. Returns whether all are ready.
    fn observe(&mut self, samples: Result<Vec<SampleStatus>>) -> Result<bool> {
        self.summary.update(samples);
        let is_ready =
            self.operator.is_running() && self.operator.failure().is_none() && self.summary.is_ready();
        if is_ready {
            self.samples.settle();
            if !self.summary.has_reported_ready() {
                self.summarize(true)?;
            }
        } else if self.samples.are_late() && self.once.is_none() {
            self.summarize(false)?;
        }
        Ok(is_ready)
    }

    fn summarize(&mut self, is_ready: bool) -> Result<()> {
        let mut plurals: Vec<String> = self.declared.kinds().into_iter().map(|kind| kind.plural).collect();
        plurals.dedup();
        let (kubectl, page) = (self.cluster.kubectl(&plurals), self.web_ui.url());
        self.summary.print(is_ready, &kubectl, page.as_deref(), &self.report)
    }

    /// The timeout error of `--once`.
    fn timed_out(&self) -> anyhow::Error {
        let timeout = shown(self.once.unwrap_or_default());
        let failure = self.operator.failure().map(str::to_owned).into_iter();
        let reasons: Vec<String> = failure.chain(self.summary.not_ready()).collect();
        anyhow!("samples not ready {timeout} after the build\n{}", reasons.join("\n"))
            .hint("increase --timeout, or run without --once and inspect the cluster with kubectl")
    }

    /// Prints an error that does not end the loop. With `--once` the error is returned.
    fn survive(&self, error: anyhow::Error, label: &str, goes_on: &str) -> Result<()> {
        if self.once.is_some() || error.is::<OutputClosed>() {
            return Err(error);
        }
        self.report.error(&error);
        self.report.failed(label, &format!("failed; {goes_on}"))
    }
}

/// Waits for a time, if there is one.
async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
