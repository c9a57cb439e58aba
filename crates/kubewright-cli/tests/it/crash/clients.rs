//! Concurrent clients of the same few objects, which record their requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::history::{Content, Key, Listing, Operation, Outcome, Recorder, Request, Version};
use super::server::send;
use super::writer::{PATH, revision};

/// Number of the clients' objects: fewer than clients, so that requests for the same object overlap.
const SHARED: usize = 4;
/// An object that only the test itself writes.
const MARKER: Key = SHARED;
pub(crate) const KEYS: usize = SHARED + 1;

fn name(key: Key) -> String {
    format!("register-{key}")
}

/// The object's number, if it belongs to the test.
pub(crate) fn key_of(object: &Value) -> Option<Key> {
    object["metadata"]["name"].as_str()?.strip_prefix("register-")?.parse().ok()
}

pub(crate) fn version(object: &Value) -> Result<Version> {
    let number = |field: &str| -> Result<u64> {
        Ok(object["data"][field].as_str().map(str::parse).transpose()?.unwrap_or_default())
    };
    let content = Content { value: number("value")?, patch: number("patch")? };
    Ok(Version { revision: revision(object)?, content })
}

/// Lists all objects and records the list. `None` without a response.
pub(crate) async fn list(client: &Client, recorder: &Recorder) -> Result<Option<Listing>> {
    let start = recorder.now();
    let list = match send(client, Method::GET, PATH, &Value::Null).await {
        Ok(list) => list,
        Err(kube::Error::Api(status)) => bail!("{status:?}"),
        Err(_) => return Ok(None),
    };
    let end = recorder.now();
    let mut items = BTreeMap::new();
    for item in list["items"].as_array().context("no items")? {
        if let Some(key) = key_of(item) {
            items.insert(key, version(item)?);
        }
    }
    let listing = Listing { start, end, revision: revision(&list)?, items };
    recorder.change(|history| history.lists.push(listing.clone()));
    Ok(Some(listing))
}

/// The responses of one run of the server.
pub(crate) struct Count {
    left: AtomicUsize,
    done: Notify,
}

impl Count {
    pub(crate) fn new(wanted: usize) -> Self {
        Self { left: AtomicUsize::new(wanted), done: Notify::new() }
    }

    pub(crate) async fn done(&self) {
        self.done.notified().await;
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    fn add(&self) {
        let less = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Ok(1) {
            self.done.notify_one();
        }
    }
}

/// Sends a request and records it. `None` is a request without a response.
async fn request(
    client: &Client,
    recorder: &Recorder,
    key: Key,
    request: Request,
) -> Result<Option<Outcome>> {
    let start = recorder.now();
    let outcome = outcome(request, exchange(client, key, request).await)?;
    let answered = outcome != Outcome::Unknown;
    let end = if answered { recorder.now() } else { u64::MAX };
    // A read without a response shows nothing.
    if answered || request != Request::Get {
        let operation = Operation { key, start, end, request, outcome };
        recorder.change(|history| history.operations.push(operation));
    }
    Ok(answered.then_some(outcome))
}

/// Writes an object that no client uses, so that every watch gets an event. Returns its revision.
pub(crate) async fn mark(client: &Client, recorder: &Recorder) -> Result<u64> {
    let update = Request::Update { value: recorder.number(), expect: None };
    let mut outcome = request(client, recorder, MARKER, update).await?;
    if outcome == Some(Outcome::NotFound) {
        let create = Request::Create { value: recorder.number() };
        outcome = request(client, recorder, MARKER, create).await?;
    }
    let Some(Outcome::Version(version)) = outcome else { bail!("the write was answered with {outcome:?}") };
    Ok(version.revision)
}

async fn exchange(client: &Client, key: Key, request: Request) -> kube::Result<Value> {
    let path = format!("{PATH}/{}", name(key));
    let metadata = |expect: Option<u64>| match expect {
        Some(revision) => json!({"name": name(key), "resourceVersion": revision.to_string()}),
        None => json!({"name": name(key)}),
    };
    match request {
        Request::Create { value } => {
            let body = json!({"metadata": metadata(None), "data": {"value": value.to_string()}});
            send(client, Method::POST, PATH, &body).await
        }
        Request::Update { value, expect } => {
            let body = json!({"metadata": metadata(expect), "data": {"value": value.to_string()}});
            send(client, Method::PUT, &path, &body).await
        }
        Request::Patch { value, expect } => {
            let body = json!({"metadata": metadata(expect), "data": {"patch": value.to_string()}});
            send(client, Method::PATCH, &path, &body).await
        }
        Request::Delete { expect } => {
            let body = match expect {
                Some(revision) => json!({"preconditions": {"resourceVersion": revision.to_string()}}),
                None => json!({}),
            };
            send(client, Method::DELETE, &path, &body).await
        }
        Request::Get => send(client, Method::GET, &path, &Value::Null).await,
    }
}

/// Sends random requests, one after the other.
pub(crate) struct Requests {
    pub(crate) client: Client,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) count: Arc<Count>,
    pub(crate) random: fastrand::Rng,
    /// Ends after the wanted number of responses. Otherwise only a request without a response is the end.
    pub(crate) stops: bool,
}

impl Requests {
    pub(crate) async fn run(mut self) -> Result<()> {
        // The last known resourceVersion of each object, for preconditions.
        let mut seen: BTreeMap<Key, u64> = BTreeMap::new();
        while !(self.stops && self.count.is_done()) {
            if self.random.u8(..16) == 0 {
                match list(&self.client, &self.recorder).await? {
                    Some(_) => self.count.add(),
                    None => return Ok(()),
                }
                continue;
            }
            let key = self.random.usize(..SHARED);
            let choice = self.choose(seen.get(&key).copied());
            let Some(outcome) = request(&self.client, &self.recorder, key, choice).await? else {
                return Ok(());
            };
            if let Outcome::Version(version) = outcome {
                seen.insert(key, version.revision);
            }
            self.count.add();
        }
        Ok(())
    }

    fn choose(&mut self, seen: Option<u64>) -> Request {
        let value = self.recorder.number();
        match self.random.u8(..20) {
            0..4 => Request::Create { value },
            4..8 => Request::Update { value, expect: seen },
            8..10 => Request::Update { value, expect: None },
            10..12 => Request::Patch { value, expect: None },
            12 => Request::Patch { value, expect: seen },
            13 => Request::Delete { expect: seen },
            14 => Request::Delete { expect: None },
            _ => Request::Get,
        }
    }
}

fn outcome(request: Request, answer: kube::Result<Value>) -> Result<Outcome> {
    Ok(match answer {
        Ok(_) if matches!(request, Request::Delete { .. }) => Outcome::Deleted,
        Ok(object) => Outcome::Version(version(&object)?),
        Err(kube::Error::Api(status)) if status.is_not_found() => Outcome::NotFound,
        Err(kube::Error::Api(status)) if status.is_already_exists() => Outcome::AlreadyExists,
        Err(kube::Error::Api(status)) if status.is_conflict() => Outcome::Conflict,
        Err(kube::Error::Api(status)) => bail!("{request:?}: {status:?}"),
        Err(_) => Outcome::Unknown,
    })
}
