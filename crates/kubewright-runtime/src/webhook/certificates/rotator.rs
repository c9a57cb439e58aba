//! Performs the steps of [`next`] against the API server, on every replica.
//!
//! Owns the Secret and only the `caBundle` of the targets. Replicas may race: a write of the Secret has a precondition,
//! and the loser adopts the winner's Secret. A failure is logged, reported to readiness and retried; it never ends the
//! task.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::probe::{Probe, ProbeError};
use super::targets::{self, ExpectedTargets, Service, Target};
use super::{IssueError, Lifetimes, Material, RotatorMetrics, SecretError, Step, Targets, next};
use crate::certs::{CertificateError, Certificates};
use crate::client::{self, Client};
use crate::error::Chain;
use crate::events::Recorder;
use crate::{Clock, Key, ListOptions};

/// The delay after the first failure. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest time between two rounds, also without a watch event.
const RECHECK: Duration = Duration::from_mins(5);
/// How long a round waits for further watch events after the first one. A watch begins with an event for each object, and
/// every replica writes at the start.
const SETTLE: Duration = Duration::from_millis(100);

/// Options of the certificate rotation.
#[derive(Debug, Clone)]
pub struct RotatorOptions {
    /// The Secret that the replicas share.
    pub secret: Key,
    /// The Service in front of the replicas. Webhook configurations, CRDs and APIServices that name it are the targets.
    pub service: Service,
    /// What the registered webhooks need.
    pub targets: ExpectedTargets,
    /// DNS names besides those of the Service.
    pub extra_names: Vec<String>,
    /// The DNS domain of the cluster.
    pub cluster_domain: String,
    /// How long new certificates are valid.
    pub lifetimes: Lifetimes,
}

impl RotatorOptions {
    /// The Secret `<service>-cert` beside the Service.
    pub fn new(namespace: &str, service: &str, targets: ExpectedTargets) -> Self {
        Self {
            secret: Key::namespaced(namespace, &format!("{service}-cert")),
            service: Service { namespace: namespace.to_owned(), name: service.to_owned() },
            targets,
            extra_names: Vec::new(),
            cluster_domain: "cluster.local".to_owned(),
            lifetimes: Lifetimes::default(),
        }
    }

    fn names(&self) -> Vec<String> {
        let Service { namespace, name } = &self.service;
        let mut names = vec![
            self.service.host(),
            format!("{name}.{namespace}.svc.{}", self.cluster_domain),
            format!("{name}.{namespace}"),
            name.clone(),
        ];
        names.extend(self.extra_names.iter().cloned());
        names
    }
}

/// The readiness of the webhook server. Clones share it.
#[derive(Debug, Clone)]
pub struct Readiness(Arc<Mutex<Result<(), String>>>);

impl Readiness {
    /// Ready, or the reason why not.
    pub fn check(&self) -> Result<(), String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: Result<(), String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// A round failed. It is retried.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error("failed to read Secret {0}")]
    ReadSecret(Key, #[source] client::Error),
    #[error("invalid Secret {0}")]
    Secret(Key, #[source] SecretError),
    #[error("failed to write Secret {0}")]
    WriteSecret(Key, #[source] client::Error),
    #[error("failed to read {0}")]
    ReadTargets(&'static str, #[source] client::Error),
    #[error("failed to inject the CA into {0}")]
    Inject(Target, #[source] client::Error),
    #[error("invalid certificate in Secret {0}")]
    Serve(Key, #[source] CertificateError),
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error("{} not found for Service {service}; apply config/webhook and config/crd", missing.join(", "))]
    MissingTarget { service: Service, missing: Vec<String> },
    #[error("failed to call path {path} of this replica as {target} does")]
    Probe {
        path: String,
        /// Whether this replica serves a webhook at the path.
        is_registered: bool,
        target: Target,
        #[source]
        source: ProbeError,
    },
}

impl RoundError {
    /// Whether a ready replica stays ready. It still serves a certificate that its targets trusted when they were last
    /// read. During a rollout, the new version may have added or removed a webhook, or removed the permissions of the old
    /// certificate mode, and the replicas of the old version must serve until the new ones are ready.
    fn keeps_ready(&self) -> bool {
        match self {
            Self::ReadSecret(..)
            | Self::WriteSecret(..)
            | Self::ReadTargets(..)
            | Self::MissingTarget { .. } => true,
            // The new version has added a webhook.
            Self::Probe { is_registered, source: ProbeError::Webhook(_) | ProbeError::Api(_), .. } => {
                !is_registered
            }
            Self::Secret(..) | Self::Inject(..) | Self::Serve(..) | Self::Issue(_) | Self::Probe { .. } => {
                false
            }
        }
    }
}

/// The targets as they were when all of them had the bundle.
struct Trusted {
    bundle: String,
    /// The version of each target. Any change starts the time again: the bundle may have been absent in between.
    versions: Vec<String>,
    since: Timestamp,
}

/// Manages the certificates of a webhook server. One runs on every replica.
pub struct Rotator {
    client: Client,
    options: RotatorOptions,
    serving: Certificates,
    clock: Arc<dyn Clock>,
    readiness: Readiness,
    /// The served leaf, as PEM.
    loaded: String,
    /// The last content of the Secret. If the Secret is deleted, it is created again with this content: the targets trust
    /// this CA, and would refuse the leaf of a new one until API servers have seen its injection.
    known: Option<Material>,
    trusted: Option<Trusted>,
    /// The webhook server of this replica.
    probe: Option<Probe>,
    /// Whether the server was called with the current leaf and targets.
    is_probed: bool,
    /// The last injected bundle.
    injected: Option<(String, Instant)>,
    /// How often it was overwritten in a row.
    overwrites: u32,
    metrics: RotatorMetrics,
    recorder: Option<Recorder>,
}

impl Rotator {
    /// Keeps `serving` up to date. The client must write on every replica, leader or not.
    pub fn new(
        client: &Client,
        options: RotatorOptions,
        serving: Certificates,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let readiness = Readiness(Arc::new(Mutex::new(Err("the certificate is not loaded yet".to_owned()))));
        Self {
            client: client.uncached().field_owner("kubewright-webhook-ca"),
            options,
            serving,
            clock,
            readiness,
            loaded: String::new(),
            known: None,
            trusted: None,
            probe: None,
            is_probed: false,
            injected: None,
            overwrites: 0,
            metrics: RotatorMetrics::default(),
            recorder: None,
        }
    }

    /// Counts steps and failures in `metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: RotatorMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Records steps and failures as events of the Service.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Calls the webhook server at this address before the replica is ready.
    #[must_use]
    pub fn with_server(mut self, address: SocketAddr) -> Self {
        self.probe = Some(Probe::new(address, Arc::clone(&self.clock)));
        self
    }

    /// Ready when the leaf of the Secret is served, all targets trust it, and the server answers as they call it.
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let mut changes = self.changes();
        let mut failures = 0;
        let mut last = None;
        loop {
            let pause = match self.round().await {
                Ok(Step::Wait(until)) => {
                    failures = 0;
                    last = None;
                    let wait = until.duration_since(self.clock.now());
                    Duration::try_from(wait).unwrap_or_default().min(RECHECK)
                }
                // Do not spin if a step has no effect, for example because another controller reverts it.
                Ok(step) if last.as_ref() == Some(&step) => {
                    failures += 1;
                    backoff(failures)
                }
                Ok(step) => {
                    self.stepped(&step);
                    // Another controller that writes its own bundle on every change would cause a loop of writes.
                    if step == Step::Inject && self.overwrites > 0 {
                        tokio::time::sleep(backoff(self.overwrites)).await;
                    }
                    last = Some(step);
                    continue;
                }
                Err(error) => {
                    failures += 1;
                    let reason = Chain(&error).to_string();
                    warn!(error = reason, failures, "Webhook certificates are not ready");
                    self.failed(&reason);
                    if !error.keeps_ready() || self.readiness.check().is_err() {
                        self.readiness.set(Err(reason));
                    }
                    backoff(failures)
                }
            };
            tokio::select! {
                biased;
                _ = changes.next() => {
                    tokio::time::sleep(SETTLE).await;
                    while changes.next().now_or_never().flatten().is_some() {}
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn stepped(&self, step: &Step) {
        self.metrics.stepped(step.name());
        if let Some(recorder) = &self.recorder {
            let note = format!("Webhook certificates: {} done", step.name());
            recorder.about_reference(self.service()).normal("WebhookCertificateUpdated").note(note);
        }
    }

    fn failed(&self, reason: &str) {
        self.metrics.failed();
        if let Some(recorder) = &self.recorder {
            recorder.about_reference(self.service()).warning("WebhookCertificateFailed").note(reason);
        }
    }

    fn service(&self) -> ObjectReference {
        let Service { namespace, name } = &self.options.service;
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Service".to_owned()),
            namespace: Some(namespace.clone()),
            name: Some(name.clone()),
            ..ObjectReference::default()
        }
    }

    /// Reads the current state, performs one step, and returns it.
    async fn round(&mut self) -> Result<Step, RoundError> {
        let (names, lifetimes) = (self.options.names(), self.options.lifetimes);
        // The targets are read before the Secret, so a bundle in them is never newer than the Secret: a replica with an
        // old Secret would replace it.
        let found = targets::find(&self.client, &self.options.service, &self.options.targets).await;
        let stored = self.client.get_opt::<Secret>(&self.options.secret).await;
        let stored = stored.map_err(|error| RoundError::ReadSecret(self.options.secret.clone(), error))?;
        let now = self.clock.now();
        let material = match &stored {
            Some(secret) => Material::from_data(&data(secret))
                .map_err(|error| RoundError::Secret(self.options.secret.clone(), error))?,
            None => None,
        };
        let Some(material) = material else {
            let created = match &self.known {
                Some(known) if now < known.ca.validity.until => known.clone(),
                _ => Material::create_for(&names, lifetimes, now)?,
            };
            self.write(stored.as_deref(), &created).await?;
            return Ok(Step::Create);
        };
        self.serve(&material).map_err(|error| RoundError::Serve(self.options.secret.clone(), error))?;
        if self.known.as_ref() != Some(&material) {
            self.known = Some(material.clone());
        }
        let bundle = material.bundle();
        let found = found.map_err(|(what, error)| RoundError::ReadTargets(what, error))?;
        let step = next(Some(&material), &names, self.trust(&found, &bundle, now), now);
        match &step {
            Step::Wait(_) => {
                let missing = self.options.targets.missing(&found);
                if !missing.is_empty() {
                    let service = self.options.service.clone();
                    return Err(RoundError::MissingTarget { service, missing });
                }
                self.call_server(&found).await?;
                self.readiness.set(Ok(()));
            }
            Step::Inject => {
                self.count_overwrites(&bundle);
                for target in found.iter().filter(|target| !target.trusts(&bundle)) {
                    info!(target = %target.target, "Injecting the CA bundle");
                    match targets::inject(&self.client, target, &bundle, now).await {
                        // Another replica was first. The next round reads what it wrote.
                        Err(error) if error.is_conflict() => break,
                        injected => {
                            injected.map_err(|error| RoundError::Inject(target.target.clone(), error))?;
                        }
                    }
                }
            }
            step => {
                info!(step = step.name(), secret = %self.options.secret, "Updating webhook certificates");
                let changed = material.after(step, &names, lifetimes, now)?;
                self.write(stored.as_deref(), &changed).await?;
            }
        }
        Ok(step)
    }

    /// Calls the server of this replica once for every path and bundle of the targets.
    async fn call_server(&mut self, found: &[targets::Found]) -> Result<(), RoundError> {
        let Some(probe) = self.probe.as_ref().filter(|_| !self.is_probed) else { return Ok(()) };
        let mut unregistered = Ok(());
        for target in found {
            for config in &target.clients {
                let called =
                    probe.call(&self.options.service, config).await.map_err(|source| RoundError::Probe {
                        path: config.path.clone(),
                        is_registered: config.is_expected()
                            || self.options.targets.has_admission(&config.path),
                        target: target.target.clone(),
                        source,
                    });
                match called {
                    // The other calls may fail with an error that matters more.
                    Err(error) if error.keeps_ready() => unregistered = unregistered.and(Err(error)),
                    called => called?,
                }
            }
        }
        unregistered?;
        self.is_probed = true;
        Ok(())
    }

    fn count_overwrites(&mut self, bundle: &str) {
        let injected = self.injected.replace((bundle.to_owned(), Instant::now()));
        let again = injected.is_some_and(|(known, at)| known == bundle && at.elapsed() < RECHECK);
        self.overwrites = if again { self.overwrites.saturating_add(1) } else { 0 };
    }

    fn trust(&mut self, found: &[targets::Found], bundle: &str, now: Timestamp) -> Targets {
        if !found.iter().all(|target| target.trusts(bundle)) {
            self.trusted = None;
            return Targets::Differ;
        }
        let versions: Vec<String> = found.iter().map(|target| target.version.clone()).collect();
        match &self.trusted {
            Some(known) if known.bundle == bundle && known.versions == versions => {
                Targets::TrustSince(known.since)
            }
            _ => {
                self.is_probed = false;
                self.trusted = Some(Trusted { bundle: bundle.to_owned(), versions, since: now });
                Targets::TrustSince(now)
            }
        }
    }

    fn serve(&mut self, material: &Material) -> Result<(), CertificateError> {
        let leaf = &material.leaf;
        if self.loaded != leaf.certificate {
            self.serving.replace(leaf.certificate.as_bytes(), leaf.key.as_bytes())?;
            self.loaded.clone_from(&leaf.certificate);
            self.is_probed = false;
            self.metrics.serves_until(leaf.validity.until);
            info!(until = %leaf.validity.until, "Serving a new webhook certificate");
        }
        Ok(())
    }

    /// Creates or replaces the Secret. If another replica was first, the next round adopts what it wrote.
    async fn write(&self, stored: Option<&Secret>, material: &Material) -> Result<(), RoundError> {
        let content: BTreeMap<String, ByteString> =
            material.to_data().into_iter().map(|(key, value)| (key, ByteString(value))).collect();
        let written = if let Some(stored) = stored {
            self.client.update(&Secret { data: Some(content), ..stored.clone() }).await
        } else {
            let key = &self.options.secret;
            let metadata = ObjectMeta {
                name: Some(key.name().to_owned()),
                namespace: key.namespace().map(str::to_owned),
                ..ObjectMeta::default()
            };
            self.client.create(&Secret { metadata, data: Some(content), ..Secret::default() }).await
        };
        match written {
            Ok(_) => Ok(()),
            Err(error) if error.is_conflict() || error.is_already_exists() => {
                debug!(secret = %self.options.secret, "Conflict on the webhook certificate Secret; another replica updated it");
                Ok(())
            }
            Err(error) => Err(RoundError::WriteSecret(self.options.secret.clone(), error)),
        }
    }

    /// Watches the Secret and possible targets. Without permission to watch, rounds run periodically only.
    fn changes(&self) -> BoxStream<'static, ()> {
        let namespace = self.options.secret.namespace().unwrap_or_default();
        let secret = ListOptions::namespace(namespace).field("metadata.name", self.options.secret.name());
        let secrets = self.client.watch::<Secret>(&secret).ok();
        let secrets = secrets.map(|events| events.map(|_| ()).boxed());
        let targets = targets::changes(&self.client, &self.options.targets);
        let all: Vec<BoxStream<'static, ()>> = secrets.into_iter().chain(targets).collect();
        // A stream that ended must neither end the others nor wake the loop repeatedly.
        stream::select_all(all).chain(stream::pending()).boxed()
    }
}

fn data(secret: &Secret) -> BTreeMap<String, Vec<u8>> {
    let data = secret.data.iter().flatten();
    data.map(|(key, value)| (key.clone(), value.0.clone())).collect()
}

fn backoff(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(5)).min(LONGEST_PAUSE)
}
