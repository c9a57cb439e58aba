//! A writer that runs until the server is killed, and records the responses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::server::send;

pub(crate) const PATH: &str = "/api/v1/namespaces/default/configmaps";
/// Number of object names per writer.
const NAMES: usize = 12;

/// The known state of an object.
#[derive(Debug, Default, Clone)]
pub(crate) struct Object {
    /// State in the last response; `None` if it does not exist.
    last: Option<Value>,
    /// The pending request without a response.
    open: Option<Wanted>,
}

/// The effect of a request.
#[derive(Debug, Clone)]
enum Wanted {
    Value(String),
    Gone,
}

impl Wanted {
    fn is(&self, found: Option<&Value>) -> bool {
        match self {
            Self::Value(value) => found.is_some_and(|found| found["data"]["value"] == value.as_str()),
            Self::Gone => found.is_none(),
        }
    }
}

type Objects = BTreeMap<String, Object>;

/// The known states of all writers.
#[derive(Default)]
pub(crate) struct Known(BTreeMap<usize, Objects>);

impl Known {
    pub(crate) fn take(&mut self, writer: usize) -> Objects {
        self.0.remove(&writer).unwrap_or_default()
    }

    pub(crate) fn put(&mut self, writer: usize, objects: Objects) {
        self.0.insert(writer, objects);
    }

    /// Compares the stored objects with the known states, and resolves pending requests.
    pub(crate) fn settle(&mut self, found: &BTreeMap<String, Value>) -> Result<()> {
        for objects in self.0.values_mut() {
            for (name, object) in objects {
                let found = found.get(name);
                let as_answered = found == object.last.as_ref();
                let as_wanted = object.open.as_ref().is_some_and(|wanted| wanted.is(found));
                ensure!(
                    as_answered || as_wanted,
                    "{name} was answered as {:?}, {} and is found as {:?}",
                    object.last.as_ref().map(shown),
                    object
                        .open
                        .as_ref()
                        .map_or("nothing is open".to_owned(), |wanted| format!("{wanted:.40?} is open")),
                    found.map(shown),
                );
                *object = Object { last: found.cloned(), open: None };
            }
        }
        Ok(())
    }
}

fn shown(object: &Value) -> String {
    let value = object["data"]["value"].as_str().unwrap_or_default();
    format!("{} at {}", value.get(..20).unwrap_or(value), object["metadata"]["resourceVersion"])
}

pub(crate) fn revision(object: &Value) -> Result<u64> {
    Ok(object["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?.parse()?)
}

/// Shared counters of one round.
pub(crate) struct Shared {
    /// The resource version at startup.
    start: u64,
    highest: AtomicU64,
    acknowledged: AtomicUsize,
    wanted: usize,
    enough: Notify,
}

impl Shared {
    pub(crate) fn new(start: u64, wanted: usize) -> Self {
        let (highest, acknowledged) = (AtomicU64::new(start), AtomicUsize::new(0));
        Self { start, highest, acknowledged, wanted, enough: Notify::new() }
    }

    /// Waits for a number of responses.
    pub(crate) async fn enough(&self) {
        self.enough.notified().await;
    }

    pub(crate) fn highest(&self) -> u64 {
        self.highest.load(Ordering::SeqCst)
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Counts a response. Responses to deletions have no resource version.
    fn answered(&self, revision: Option<u64>) -> Result<()> {
        if let Some(revision) = revision {
            ensure!(revision > self.start, "a write got {revision}, and the start was at {}", self.start);
            self.highest.fetch_max(revision, Ordering::SeqCst);
        }
        if self.acknowledged.fetch_add(1, Ordering::SeqCst) + 1 == self.wanted {
            self.enough.notify_one();
        }
        Ok(())
    }
}

pub(crate) struct Writer {
    at: usize,
    client: Client,
    objects: Objects,
    shared: Arc<Shared>,
    random: fastrand::Rng,
}

impl Writer {
    pub(crate) fn new(
        at: usize,
        client: Client,
        objects: Objects,
        shared: Arc<Shared>,
        random: fastrand::Rng,
    ) -> Self {
        Self { at, client, objects, shared, random }
    }

    /// Writes until a request fails, and returns the known states.
    pub(crate) async fn run(mut self) -> Result<Objects> {
        loop {
            let name = format!("w{}-{}", self.at, self.random.usize(..NAMES));
            let answered = self.write(&name).await?;
            if !answered {
                return Ok(self.objects);
            }
        }
    }

    /// One write. Returns false without a response.
    async fn write(&mut self, name: &str) -> Result<bool> {
        let object = self.objects.entry(name.to_owned()).or_default();
        // Sizes vary, so that the log is truncated at different positions.
        let length =
            if self.random.u8(..16) == 0 { self.random.usize(..60_000) } else { self.random.usize(..2_000) };
        let value: String = std::iter::repeat_with(|| self.random.alphanumeric()).take(length + 8).collect();
        let (method, body) = match (&object.last, self.random.u8(..8)) {
            (None, _) => (Method::POST, json!({"metadata": {"name": name}, "data": {"value": value}})),
            (Some(_), 0) => (Method::DELETE, Value::Null),
            (Some(_), 1..=3) => (Method::PATCH, json!({"data": {"value": value}})),
            (Some(last), _) => {
                let mut changed = last.clone();
                changed["data"]["value"] = value.as_str().into();
                (Method::PUT, changed)
            }
        };
        let deletes = method == Method::DELETE;
        let path = if method == Method::POST { PATH.to_owned() } else { format!("{PATH}/{name}") };
        object.open = Some(if deletes { Wanted::Gone } else { Wanted::Value(value) });
        match send(&self.client, method, &path, &body).await {
            Ok(answer) => {
                object.open = None;
                let revision = if deletes { None } else { Some(revision(&answer)?) };
                object.last = (!deletes).then_some(answer);
                self.shared.answered(revision)?;
                Ok(true)
            }
            Err(kube::Error::Api(status)) => bail!("{name}: {status:?}"),
            // The server was killed; otherwise the round fails.
            Err(_) => Ok(false),
        }
    }
}
