//! The event loop: saves, builds, exits and readiness.
//!
//! Events are handled one at a time, and all waits are cancel-safe, so the loop can end at any time.

mod deploy;
mod role;
mod role_changes;
mod summary;

use std::time::Duration;

use anyhow::{Result, anyhow};
use kubewright_apimachinery::permission::Permission;
use kubewright_runtime::internal::journal;
use tokio::time::Instant;

use super::Options;
use super::build_output::LockAdvice;
use super::builder::{Build, Builder, Built};
use super::cluster::{Cluster, Where};
use super::definitions::Definitions;
use super::durations::{Durations, Reason};
use super::operator::{self, Launch, Operator};
use super::page::{Feed, Page};
use super::permissions::Permissions;
use super::ports::Ports;
use super::readiness::tree::Standing;
use super::readiness_watch::Waiting;
use super::report::{Report, count, shown};
use super::state_dir;
use super::watcher::{Change, Watcher};
use super::webhooks::{self, Host, Webhooks};
use crate::error::Hint as _;
use crate::project::Project;
use crate::signals::Signals;
use crate::ui::{OutputClosed, Ui};

const SAMPLES_STAY: &str = "they are applied again on the next save";

pub(crate) struct Session {
    ui: Ui,
    report: Report,
    project: Project,
    started: Instant,
    builder: Builder,
    cluster: Cluster,
    /// `None` with `--once`.
    page: Option<Page>,
    feed: Feed,
    /// `None` with `--once`.
    watcher: Option<Watcher>,
    operator: Operator,
    definitions: Definitions,
    /// `None` if the operator runs as the kubeconfig user.
    permissions: Option<Permissions>,
    /// `None` if the cluster cannot reach this machine.
    webhooks: Option<Webhooks>,
    waiting: Waiting,
    durations: Durations,
    /// The running build, and when it was requested.
    build: Option<Build>,
    since: Instant,
    /// Whether to build again afterwards.
    repeat: Repeat,
    /// Whether an operator was deployed already.
    is_deployed: bool,
    /// Whether a Cargo.toml changed since sources were last read.
    is_moved: bool,
    /// Whether saved samples are not applied yet.
    is_sample_saved: bool,
    /// The `--samples` flag.
    samples: Option<bool>,
    /// The last findings about the manifests.
    findings: String,
    /// The last summary.
    told: Option<bool>,
    /// Timeout of `--once`, counted from the end of the build.
    once: Option<Duration>,
    built: Option<Instant>,
    /// The last states of the samples.
    standings: Vec<Standing>,
}

/// Whether to repeat a build, because cargo may have missed a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    No,
    Wanted,
    /// The repeated build. Nothing is printed if it changes nothing.
    Running,
}

/// Something that happened.
enum Event {
    Saved,
    Built(Built),
    Operator(operator::Event),
    Standings(Result<Vec<Standing>>),
    Refused(Vec<Permission>),
    TimedOut,
}

impl Session {
    /// Starts everything except the operator. The project is checked first, since most errors are there.
    pub(crate) async fn start(options: Options, ui: Ui) -> Result<Self> {
        let started = Instant::now();
        let report = Report::new(ui.clone());
        let project = Project::find(&options.project)?;
        let metadata = project.metadata(options.bin.as_deref())?;
        // Before the build, so that saves during it are not lost.
        let watcher = match options.once {
            Some(_) => None,
            None => Some(Watcher::start(project.root(), metadata.sources.clone())?),
        };
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
        let page = match options.once {
            Some(_) => None,
            None => Some(Page::start(cluster.client().clone(), ports.page).await?),
        };
        ports.keep(cluster.port(), page.as_ref().map(Page::port))?;
        // Nothing serves the webhooks of a run that crashed.
        match webhooks::clean_up(cluster.client(), &metadata.name).await {
            Ok(0) => {}
            Ok(left) => {
                let what = count(left, "object");
                report.step("webhooks", &format!("{what} of an earlier run deleted or restored"))?;
            }
            // The user may lack the permission, and the operator may have no webhooks.
            Err(error) => {
                let message = format!("cannot list webhook configurations of an earlier run: {error:#}");
                report.failed("webhooks", &message)?;
            }
        }
        let host = if cluster.is_existing() {
            Host::of_existing(options.webhook_host.as_deref(), cluster.context())
        } else {
            Some(Host::Loopback)
        };
        let webhooks = host.map(|host| Webhooks::new(&metadata.name, &host)).transpose()?;
        let mut launch = Launch {
            folder: project.root().to_owned(),
            arguments: cluster.arguments.clone(),
            variables: cluster.variables.clone(),
            feed: page.as_ref().map(Page::feed).unwrap_or_default(),
        };
        match &webhooks {
            Some(webhooks) => launch.variables.extend(webhooks.variables()),
            None => launch.arguments.push("--webhook-bind-address=0".to_owned()),
        }
        if let Some(page) = &page {
            launch.variables.push((journal::VARIABLE, page.journal_address().to_string().into()));
            launch.variables.push((journal::TOKEN_VARIABLE, page.journal_token().into()));
        }
        if project.watched_namespace().is_some() {
            // A namespaced operator watches its own namespace in a cluster, and that of the samples here.
            launch.arguments.push(format!("--namespace={}", cluster.client().default_namespace()));
        }
        launch.arguments.extend(options.operator_args);
        let feed = launch.feed.clone();
        feed.kubectl(cluster.kubectl_command());
        Ok(Self {
            report,
            started,
            builder: Builder {
                project: project.clone(),
                package: metadata.name,
                bin: options.bin,
                selection: metadata.selection,
                arguments: options.cargo,
                lock_advice: LockAdvice::default(),
                ui: ui.clone(),
                feed: feed.clone(),
            },
            project,
            cluster,
            page,
            feed,
            watcher,
            operator: Operator::new(launch, ui.clone()),
            definitions: Definitions::default(),
            permissions: (!options.as_admin).then_some(permissions),
            webhooks,
            waiting: Waiting::default(),
            durations: Durations::read(&state, &metadata.target),
            build: None,
            since: started,
            repeat: Repeat::No,
            is_deployed: false,
            is_moved: false,
            is_sample_saved: false,
            samples: options.samples,
            findings: String::new(),
            told: None,
            once: options.once,
            built: None,
            standings: Vec::new(),
            ui,
        })
    }

    /// Runs until an error or, with `--once`, until done.
    pub(crate) async fn run(&mut self) -> Result<()> {
        self.report.step("kubectl", &self.cluster.kubectl(&[]))?;
        if let Some(page) = &self.page {
            self.report.step("page", &page.url())?;
        }
        self.begin()?;
        loop {
            let kinds = self.definitions.kinds();
            let event = tokio::select! {
                biased;
                saved = changed(&mut self.watcher) => saved.map(|()| Event::Saved)?,
                built = finished(&mut self.build) => Event::Built(built?),
                event = self.operator.event() => Event::Operator(event?),
                () = deadline(self.once.zip(self.built)) => Event::TimedOut,
                refused = refused(self.permissions.as_ref()) => Event::Refused(refused),
                standings = self.waiting.next(self.cluster.client(), &kinds) => Event::Standings(standings),
            };
            match event {
                Event::Saved => self.saved().await?,
                Event::Built(built) => self.built(built).await?,
                Event::Operator(operator::Event::Ended { told }) => {
                    self.feed.exited(&told);
                    self.report.failed("operator", &told)?;
                }
                Event::Operator(operator::Event::Again) => {
                    let began = Instant::now();
                    let started = self.operator.start().await?;
                    self.waiting.look();
                    self.show_start(started, "restarted", began);
                    self.tell_start("restarted", started, began)?;
                }
                Event::Standings(standings) => {
                    if self.stand(standings)? && self.once.is_some() {
                        return self.checked_permissions();
                    }
                }
                Event::Refused(permissions) => self.report_refused(&permissions)?,
                Event::TimedOut => return Err(self.timed_out()),
            }
        }
    }

    /// Stops everything. Another signal skips the graceful shutdown.
    pub(crate) async fn end(mut self, signals: &mut Signals) -> Result<()> {
        // Dropping it kills cargo.
        drop(self.build.take());
        let stopped = tokio::select! {
            biased;
            () = signals.any() => Ok(()),
            stopped = self.operator.stop() => stopped,
        };
        let reported = self.report_unused();
        // The operator no longer serves the webhooks.
        let removed = match &mut self.webhooks {
            Some(webhooks) => webhooks.remove(self.cluster.client()).await,
            None => Ok(()),
        };
        if let Some(page) = self.page {
            page.stop().await;
        }
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

    /// Starts a build, and announces it unless it is a repeated one.
    fn begin(&mut self) -> Result<()> {
        if self.repeat != Repeat::Running {
            let what = self.durations.announce(&self.builder.package, self.reason());
            self.report.step("building", &what)?;
        }
        let runs = self.operator.is_running();
        self.build = Some(self.builder.start(!runs)?);
        self.feed.compiling(runs);
        Ok(())
    }

    fn reason(&self) -> Reason {
        if self.is_deployed { Reason::Save } else { Reason::Start }
    }

    /// Handles a save.
    async fn saved(&mut self) -> Result<()> {
        let change: Change = self.watcher.as_mut().map(Watcher::take).unwrap_or_default();
        self.is_moved |= change.manifest;
        self.is_sample_saved |= change.samples && self.samples != Some(false);
        if change.code || (change.lock && self.build.is_none()) {
            if let Some(build) = self.build.take() {
                build.abandon().await?;
                self.report.step("saved", "during the build; restarting it")?;
            }
            self.since = change.since.unwrap_or_else(Instant::now);
            self.repeat = Repeat::No;
            return self.begin();
        }
        if change.lock {
            // cargo writes Cargo.lock too, so this may not be the user's change.
            self.repeat = Repeat::Wanted;
        }
        if self.is_sample_saved && self.is_deployed && self.build.is_none() {
            let since = change.since.unwrap_or_else(Instant::now);
            match self.apply_samples().await {
                Ok(applied) => {
                    let took = shown(since.elapsed());
                    self.report
                        .step("samples", &format!("{} applied in {took}", count(applied, "object")))?;
                }
                Err(error) => self.survive(error, "samples", SAMPLES_STAY)?,
            }
        }
        Ok(())
    }

    /// Handles the end of a build.
    async fn built(&mut self, built: Built) -> Result<()> {
        self.build = None;
        self.built = Some(Instant::now());
        let goes_on =
            if self.operator.is_running() { "the old operator keeps running" } else { "waiting for changes" };
        match built.program {
            None if self.once.is_some() => {
                return Err(anyhow!("failed to build the operator")).hint("see the compiler errors above");
            }
            None => {
                self.feed.failed(&built.error, goes_on);
                self.report.failed("build", &format!("failed in {}; {goes_on}", shown(built.took)))?;
            }
            Some(program) => {
                self.durations.record(self.reason(), built.took);
                self.feed.deploying();
                if let Err(error) = self.deploy(&program, built.took).await {
                    self.feed.failed(&format!("{error:#}"), goes_on);
                    self.survive(error, "rebuilt", goes_on)?;
                }
            }
        }
        match self.repeat {
            Repeat::Wanted => {
                self.since = Instant::now();
                self.repeat = Repeat::Running;
                self.begin()
            }
            Repeat::No | Repeat::Running => {
                self.repeat = Repeat::No;
                Ok(())
            }
        }
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

/// Waits for a save, if there is a watcher.
async fn changed(watcher: &mut Option<Watcher>) -> Result<()> {
    match watcher {
        Some(watcher) => watcher.changed().await,
        None => std::future::pending().await,
    }
}

/// Waits for forbidden calls, if the operator runs with its generated RBAC rules.
async fn refused(permissions: Option<&Permissions>) -> Vec<Permission> {
    match permissions {
        Some(permissions) => permissions.refused().await,
        None => std::future::pending().await,
    }
}

/// Waits for a running build.
async fn finished(build: &mut Option<Build>) -> Result<Built> {
    match build {
        Some(build) => build.finish().await,
        None => std::future::pending().await,
    }
}

/// Waits for the deadline, if there is one.
async fn deadline(limit: Option<(Duration, Instant)>) {
    match limit {
        Some((patience, since)) => tokio::time::sleep_until(since + patience).await,
        None => std::future::pending().await,
    }
}
