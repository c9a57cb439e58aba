//! The loop: what happens when something is saved, built, ended or ready.
//!
//! One event is handled at a time, and everything that waits can be given up, so that an end may come at any moment.

mod deploy;
mod role;
mod summary;

use std::time::Duration;

use anyhow::{Result, anyhow};
use kubewright_apimachinery::permission::Permission;
use tokio::time::Instant;

use super::Options;
use super::builder::{Build, Builder, Built};
use super::cluster::{Cluster, Where};
use super::definitions::Definitions;
use super::operator::{self, Launch, Operator};
use super::page::Page;
use super::permissions::Permissions;
use super::readiness::tree::Standing;
use super::report::{Report, count, shown};
use super::waiting::Waiting;
use super::watcher::{Change, Watcher};
use super::webhooks::{Host, Webhooks};
use crate::error::Hint as _;
use crate::project::Project;
use crate::signals::Signals;
use crate::ui::{OutputClosed, Ui};

const SAMPLES_STAY: &str = "they are applied again when something is saved";

pub(crate) struct Session {
    ui: Ui,
    report: Report,
    project: Project,
    started: Instant,
    builder: Builder,
    cluster: Cluster,
    /// None if it is to be done once.
    page: Option<Page>,
    /// None if it is to be done once.
    watcher: Option<Watcher>,
    operator: Operator,
    definitions: Definitions,
    /// None if the operator runs as the user of the kubeconfig.
    permissions: Option<Permissions>,
    /// None if the cluster cannot reach this machine.
    webhooks: Option<Webhooks>,
    waiting: Waiting,
    /// The build that is under way, and since when it is called for.
    build: Option<Build>,
    since: Instant,
    /// Whether to build again after it.
    repeat: Repeat,
    /// Whether an operator was deployed already.
    is_deployed: bool,
    /// Whether a Cargo.toml has changed since the sources were last looked for.
    is_moved: bool,
    /// Whether samples were saved that are not applied yet.
    is_sample_saved: bool,
    /// Whether the samples are to be applied, if somebody said.
    samples: Option<bool>,
    /// What was last found to be wrong with the manifests.
    findings: String,
    /// What the summary was last.
    told: Option<bool>,
    /// To end when the samples are ready, which may take so long after the build.
    once: Option<Duration>,
    built: Option<Instant>,
    /// How the samples were last.
    standings: Vec<Standing>,
}

/// Whether a build is to be made again, because cargo may not have seen all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    No,
    Wanted,
    /// This is the second one: there is nothing to tell if nothing comes of it.
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
    /// Starts all that is there before the operator. The project is looked at first, as most goes wrong there.
    pub(crate) async fn start(options: Options, ui: Ui) -> Result<Self> {
        let started = Instant::now();
        let report = Report::new(ui.clone());
        let project = Project::find(&options.project)?;
        let metadata = project.metadata(options.bin.as_deref())?;
        // Before the build, so that what is saved during it is not lost.
        let watcher = match options.once {
            Some(_) => None,
            None => Some(Watcher::start(project.root(), metadata.sources.clone())?),
        };
        let permissions = Permissions::new(&metadata.name, matches!(options.cluster, Where::Existing(_)));
        let cluster = Cluster::start(options.cluster, &metadata, permissions.audit(), &report, &ui).await?;
        let page = match options.once {
            Some(_) => None,
            None => Some(Page::start(cluster.client().clone(), options.page_port).await?),
        };
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
        };
        match &webhooks {
            Some(webhooks) => launch.variables.extend(webhooks.variables()),
            None => launch.arguments.push("--webhook-bind-address=0".to_owned()),
        }
        if let Some(page) = &page {
            launch.variables.push(("KUBEWRIGHT_JOURNAL", page.journal_address().to_string().into()));
        }
        if project.watched_namespace().is_some() {
            // In a cluster it is the operator's own, here that of the samples.
            launch.arguments.push(format!("--namespace={}", cluster.client().default_namespace()));
        }
        launch.arguments.extend(options.operator_args);
        Ok(Self {
            report,
            started,
            builder: Builder {
                project: project.clone(),
                bin: options.bin,
                arguments: options.cargo,
                ui: ui.clone(),
            },
            project,
            cluster,
            page,
            watcher,
            operator: Operator::new(launch, ui.clone()),
            definitions: Definitions::default(),
            permissions: (!options.as_admin).then_some(permissions),
            webhooks,
            waiting: Waiting::default(),
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

    /// Runs until something fails, or until all is done that was to be done once.
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
                Event::Operator(operator::Event::Ended { told }) => self.report.failed("operator", &told)?,
                Event::Operator(operator::Event::Again) => {
                    let began = Instant::now();
                    let started = self.operator.start().await?;
                    self.waiting.look();
                    self.tell_start("started again", started, began)?;
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

    /// Ends all that was started. A signal meanwhile ends it at once.
    pub(crate) async fn end(mut self, signals: &mut Signals) -> Result<()> {
        // cargo goes with it.
        drop(self.build.take());
        let stopped = tokio::select! {
            biased;
            () = signals.any() => Ok(()),
            stopped = self.operator.stop() => stopped,
        };
        let reported = self.report_unused();
        // Nothing answers them from now on.
        let removed = match &mut self.webhooks {
            Some(webhooks) if self.is_deployed => webhooks.remove(self.cluster.client()).await,
            _ => Ok(()),
        };
        if let Some(page) = self.page {
            page.stop().await;
        }
        let closed = self.cluster.close().await;
        stopped.and(removed).and(closed).and(reported)
    }

    /// Starts a build.
    fn begin(&mut self) -> Result<()> {
        self.build = Some(self.builder.start(!self.operator.is_running())?);
        Ok(())
    }

    /// Something was saved.
    async fn saved(&mut self) -> Result<()> {
        let change: Change = self.watcher.as_mut().map(Watcher::take).unwrap_or_default();
        self.is_moved |= change.manifest;
        self.is_sample_saved |= change.samples && self.samples != Some(false);
        if change.code || (change.lock && self.build.is_none()) {
            if let Some(build) = self.build.take() {
                build.abandon().await?;
                self.report.step("saved", "while it was being built; that is begun again")?;
            }
            self.since = change.since.unwrap_or_else(Instant::now);
            self.repeat = Repeat::No;
            return self.begin();
        }
        if change.lock {
            // cargo writes it itself; who knows whether it was cargo.
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

    /// A build has ended.
    async fn built(&mut self, built: Built) -> Result<()> {
        self.build = None;
        self.built = Some(Instant::now());
        let goes_on = if self.operator.is_running() {
            "the old operator goes on"
        } else {
            "nothing runs until something is saved"
        };
        match built.program {
            None if self.once.is_some() => {
                return Err(anyhow!("failed to build the operator")).hint("cargo has told above why");
            }
            None => self.report.failed("build", &format!("failed in {}; {goes_on}", shown(built.took)))?,
            Some(program) => {
                if let Err(error) = self.deploy(&program, built.took).await {
                    self.survive(error, "rebuilt", goes_on)?;
                }
            }
        }
        self.repeat = match self.repeat {
            Repeat::Wanted => {
                self.since = Instant::now();
                self.begin()?;
                Repeat::Running
            }
            Repeat::No | Repeat::Running => Repeat::No,
        };
        Ok(())
    }

    /// Tells of an error that does not end the loop; it does where it is to be done once, or nobody listens.
    fn survive(&self, error: anyhow::Error, label: &str, goes_on: &str) -> Result<()> {
        if self.once.is_some() || error.is::<OutputClosed>() {
            return Err(error);
        }
        self.report.error(&error);
        self.report.failed(label, &format!("without success; {goes_on}"))
    }
}

/// Waits for a save, if anybody looks.
async fn changed(watcher: &mut Option<Watcher>) -> Result<()> {
    match watcher {
        Some(watcher) => watcher.changed().await,
        None => std::future::pending().await,
    }
}

/// Waits for refused calls, if the operator runs under its generated role.
async fn refused(permissions: Option<&Permissions>) -> Vec<Permission> {
    match permissions {
        Some(permissions) => permissions.refused().await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of a build, if there is one.
async fn finished(build: &mut Option<Build>) -> Result<Built> {
    match build {
        Some(build) => build.finish().await,
        None => std::future::pending().await,
    }
}

/// Waits for as long as it may take, from when it begins to count.
async fn deadline(limit: Option<(Duration, Instant)>) {
    match limit {
        Some((patience, since)) => tokio::time::sleep_until(since + patience).await,
        None => std::future::pending().await,
    }
}
