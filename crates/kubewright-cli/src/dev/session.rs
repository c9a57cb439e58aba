//! The loop: what happens when something is saved, built, ended or ready.
//!
//! One event is handled at a time, and everything that waits can be given up, so that an end may come at any moment.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tokio::time::Instant;

use super::Options;
use super::builder::{Build, Builder, Built};
use super::cluster::Cluster;
use super::definitions::Definitions;
use super::operator::{self, Launch, Operator, Started};
use super::page::Page;
use super::readiness::tree::Standing;
use super::report::{Report, count, shown};
use super::samples::{self, Placed};
use super::waiting::Waiting;
use super::watcher::{Change, Watcher};
use crate::error::Hint as _;
use crate::project::{Manifests, Project, manifests};
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
    once: Option<Duration>,
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
    TimedOut,
}

impl Session {
    /// Starts all that is there before the operator. The project is looked at first, as most goes wrong there.
    pub(crate) async fn start(options: Options, ui: Ui) -> Result<Self> {
        let started = Instant::now();
        let report = Report::new(ui);
        let project = Project::find(&options.project)?;
        let metadata = project.metadata(options.bin.as_deref())?;
        // Before the build, so that what is saved during it is not lost.
        let watcher = match options.once {
            Some(_) => None,
            None => Some(Watcher::start(project.root(), metadata.sources.clone())?),
        };
        let cluster = Cluster::start(options.cluster, &metadata, &report, &ui).await?;
        let page = match options.once {
            Some(_) => None,
            None => Some(Page::start(cluster.client().clone(), options.page_port).await?),
        };
        let mut launch = Launch {
            folder: project.root().to_owned(),
            arguments: cluster.arguments.clone(),
            variables: cluster.variables.clone(),
        };
        if let Some(page) = &page {
            launch.variables.push(("KUBEWRIGHT_JOURNAL", page.journal_address().to_string().into()));
        }
        if project.watched_namespace().is_some() {
            // In a cluster it is the operator's own, here that of the samples.
            launch.arguments.push(format!("--namespace={}", cluster.client().default_namespace()));
        }
        launch.arguments.extend(options.operator_args);
        Ok(Self {
            ui,
            report,
            started,
            builder: Builder { project: project.clone(), bin: options.bin, arguments: options.cargo, ui },
            project,
            cluster,
            page,
            watcher,
            operator: Operator::new(launch, ui),
            definitions: Definitions::default(),
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
            standings: Vec::new(),
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
                () = deadline(self.once.map(|patience| self.started + patience)) => Event::TimedOut,
                standings = self.waiting.next(self.cluster.client(), &kinds) => Event::Standings(standings),
            };
            match event {
                Event::Saved => self.saved().await?,
                Event::Built(built) => self.built(built).await?,
                Event::Operator(operator::Event::Ended { told }) => self.report.failed("operator", &told)?,
                Event::Operator(operator::Event::Again) => {
                    let began = Instant::now();
                    let started = self.operator.start().await?;
                    self.tell_start("started again", started, began)?;
                }
                Event::Standings(standings) => {
                    if self.stand(standings)? && self.once.is_some() {
                        return Ok(());
                    }
                }
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
        if let Some(page) = self.page {
            page.stop().await;
        }
        let closed = self.cluster.close().await;
        stopped.and(closed)
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
        let goes_on = if self.operator.is_running() {
            "the old operator goes on"
        } else {
            "nothing runs until something is saved"
        };
        match built.program {
            None if self.once.is_some() => {
                return Err(anyhow!("the operator does not build")).hint("cargo has told above why");
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

    /// Brings a program that was built to work: manifests, definitions, the operator, samples. The first time each step
    /// has a line of its own.
    async fn deploy(&mut self, program: &Path, cargo: Duration) -> Result<()> {
        let mut line = vec![format!("cargo {}", shown(cargo))];
        let is_first = !self.is_deployed;
        if is_first {
            self.report.step("build", &format!("in {}", shown(cargo)))?;
        }

        let began = Instant::now();
        let manifests = self.manifests(program).await?;
        let took = shown(began.elapsed());
        line.push(format!("manifests {took}"));
        if is_first {
            let written = match manifests.changes.write.len() {
                0 => format!("{} unchanged", count(manifests.changes.unchanged.len(), "file")),
                written => format!("{} written", count(written, "file")),
            };
            self.report.step("manifests", &format!("{written} in {took}"))?;
        }

        let began = Instant::now();
        let changed = self.definitions.apply(self.cluster.client(), &manifests.definitions).await?;
        let took = shown(began.elapsed());
        if is_first {
            let what = match changed {
                0 => format!("{} unchanged", count(manifests.definitions.len(), "definition")),
                changed => format!("{} installed", count(changed, "definition")),
            };
            self.report.step("crds", &format!("{what} in {took}"))?;
        }
        line.push(if changed == 0 {
            "crds unchanged".to_owned()
        } else {
            format!("{changed} of the crds {took}")
        });

        let is_same = self.operator.is_running() && self.operator.runs(program);
        if is_same {
            line.push("the same program, not restarted".to_owned());
        } else {
            let began = Instant::now();
            let started = self.operator.replace(program).await?;
            if is_first {
                self.tell_start("started", started, began)?;
            }
            line.push(format!("restart {}", shown(began.elapsed())));
        }

        self.is_deployed = true;
        let began = Instant::now();
        self.is_sample_saved |= is_first && self.is_to_apply_samples().await?;
        if self.is_sample_saved {
            match self.apply_samples().await {
                Ok(applied) if is_first => {
                    let took = shown(began.elapsed());
                    self.report
                        .step("samples", &format!("{} applied in {took}", count(applied, "object")))?;
                }
                Ok(_) => line.push(format!("samples {}", shown(began.elapsed()))),
                Err(error) => self.survive(error, "samples", SAMPLES_STAY)?,
            }
        } else if is_first {
            let placed = self.kept_samples().await?;
            self.waiting.begin(placed);
        } else if !is_same {
            self.waiting.again();
        }

        if !is_first && !(is_same && self.repeat == Repeat::Running) {
            let total = shown(self.since.elapsed());
            self.report.step("rebuilt", &format!("in {total} ({})", line.join(", ")))?;
        }
        self.look_for_sources().await
    }

    /// Has the program say what it declares, and writes the files that follow from that.
    async fn manifests(&mut self, program: &Path) -> Result<Manifests> {
        let (project, program) = (self.project.clone(), program.to_owned());
        let made = tokio::task::spawn_blocking(move || {
            let declarations = project.declared_by(&program)?;
            let made = project.manifests(&declarations, &manifests::Options::default())?;
            if made.check().is_ok() {
                made.write(&project, false)?;
            }
            anyhow::Ok(made)
        });
        let made = made.await.context("the manifests could not be made")??;
        let findings = made.findings();
        if findings != self.findings {
            self.ui.print_styled_error(&findings);
            self.findings = findings;
        }
        made.check()?;
        Ok(made)
    }

    fn tell_start(&self, what: &str, started: Started, since: Instant) -> Result<()> {
        let took = shown(since.elapsed());
        match started {
            Started::Ready => self.report.step("operator", &format!("{what} in {took}")),
            Started::Running => {
                self.report.step("operator", &format!("{what}; its caches are not filled after {took}"))
            }
            // How it ended is told next.
            Started::Ended => Ok(()),
        }
    }

    /// Whether the samples are due with the first deployment.
    async fn is_to_apply_samples(&self) -> Result<bool> {
        Ok(match self.samples {
            Some(samples) => samples,
            None => self.once.is_some() || self.cluster.wants(&samples::read(self.project.root())?).await?,
        })
    }

    /// Applies the samples. Tells how many there are.
    async fn apply_samples(&mut self) -> Result<usize> {
        let client = self.cluster.client();
        let mut placed = Vec::new();
        for sample in samples::read(self.project.root())? {
            placed.push(sample.apply(client).await?);
        }
        let applied = placed.len();
        self.is_sample_saved = false;
        self.cluster.sampled()?;
        self.waiting.begin(placed);
        Ok(applied)
    }

    /// The samples that the cluster has from an earlier run.
    async fn kept_samples(&self) -> Result<Vec<Placed>> {
        let client = self.cluster.client();
        let mut kept = Vec::new();
        for sample in samples::read(self.project.root())? {
            let placed = sample.place(client).await?;
            if placed.exists(client).await? {
                kept.push(placed);
            }
        }
        Ok(kept)
    }

    /// A Cargo.toml may have brought other sources.
    async fn look_for_sources(&mut self) -> Result<()> {
        let Some(watcher) = self.watcher.as_mut().filter(|_| self.is_moved) else { return Ok(()) };
        let (project, bin) = (self.project.clone(), self.builder.bin.clone());
        let metadata = tokio::task::spawn_blocking(move || project.metadata(bin.as_deref()));
        watcher.watch(metadata.await.context("cargo could not be asked")??.sources)?;
        self.is_moved = false;
        Ok(())
    }

    /// Takes note of how the samples are, and tells it when that is news. Tells whether all is well.
    fn stand(&mut self, standings: Result<Vec<Standing>>) -> Result<bool> {
        self.standings = match standings {
            Ok(standings) => standings,
            Err(error) => {
                vec![Standing { sample: "samples".to_owned(), text: format!("{error:#}"), is_ready: false }]
            }
        };
        let runs = self.operator.is_running() && self.operator.trouble().is_none();
        let is_ready = runs && self.standings.iter().all(|standing| standing.is_ready);
        if is_ready {
            self.waiting.end();
            if self.told != Some(true) {
                self.summarise(true)?;
            }
        } else if self.waiting.is_late() && self.once.is_none() {
            self.summarise(false)?;
        }
        Ok(is_ready)
    }

    /// How it stands, and where to look.
    fn summarise(&mut self, is_ready: bool) -> Result<()> {
        let is_first = self.told.replace(is_ready).is_none();
        let after =
            if is_first { format!(" after {}", shown(self.started.elapsed())) } else { String::new() };
        if is_ready {
            self.report.result("ready", &format!("the operator runs{after}"))?;
        } else {
            self.report.failed("not ready", &format!("the samples are not all ready{after}"))?;
        }
        for Standing { sample, text, is_ready } in &self.standings {
            let line = format!("{sample}: {text}");
            if *is_ready {
                self.report.result("sample", &line)?
            } else {
                self.report.failed("sample", &line)?
            }
        }
        let mut plurals: Vec<String> = self.definitions.kinds().into_iter().map(|kind| kind.plural).collect();
        plurals.dedup();
        self.report.result("kubectl", &self.cluster.kubectl(&plurals))?;
        match &self.page {
            Some(page) => self.report.result("page", &page.url()),
            None => Ok(()),
        }
    }

    /// Why the samples are not ready in time.
    fn timed_out(&self) -> anyhow::Error {
        let mut reasons: Vec<String> = Vec::new();
        reasons.extend(self.operator.trouble().map(str::to_owned));
        let waits = self.standings.iter().filter(|standing| !standing.is_ready);
        reasons.extend(waits.map(|standing| format!("{}: {}", standing.sample, standing.text)));
        if self.build.is_some() {
            reasons.push("the operator is still being built".to_owned());
        }
        let patience = shown(self.once.unwrap_or_default());
        anyhow!("the samples are not ready after {patience}\n{}", reasons.join("\n")).hint(
            "give it more time with --timeout, or look into it with kubectl while it runs without --once",
        )
    }
}

/// Waits for a save, if anybody looks.
async fn changed(watcher: &mut Option<Watcher>) -> Result<()> {
    match watcher {
        Some(watcher) => watcher.changed().await,
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

async fn deadline(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
