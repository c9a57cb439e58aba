//! Writes with an unknown outcome: the connection broke, the response did not arrive in time or cannot be decoded, or
//! the caller cancelled the request.
//!
//! The server may have processed such a write. Before the key runs again, [`Unknown::pending`] does a quorum read of
//! the object, or of the collection if the object has no name yet, and the key waits until the cache has seen the
//! result. It compares the versions of the objects, not of the list: a watch reports the list's version only with its
//! next bookmark, which can take a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, header};
use serde::Deserialize;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::write::AnswerMeta;
use super::write_tracker::{PendingWrite, WriteResult, WriteTracker, reports};
use super::{Client, Error, path};
use crate::cache::{Cache, Informer};
use crate::connect::retry::was_not_sent;
use crate::error::Chain;
use crate::query::Query;
use crate::{Key, Kind, ListOptions, http};

const PAGE: u32 = 500;
/// The timeout of one request to the server.
const ANSWER: Duration = Duration::from_secs(30);
/// The delays between attempts while the server does not respond.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The objects that a write changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Object(Key),
    /// Objects with unknown names in a namespace, or in the cluster.
    Collection(Option<String>),
}

impl Target {
    fn namespace(&self) -> Option<&str> {
        match self {
            Self::Object(key) => key.namespace(),
            Self::Collection(namespace) => namespace.as_deref(),
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Object(key) => Some(key.name()),
            Self::Collection(_) => None,
        }
    }
}

/// A write that the server may have processed.
#[derive(Clone)]
pub(crate) struct Unknown {
    kube: kube::Client,
    cache: Cache,
    kind: Kind,
    target: Target,
}

impl PartialEq for Unknown {
    fn eq(&self, other: &Self) -> bool {
        (&self.kind, &self.target) == (&other.kind, &other.target)
    }
}

/// Whether the server may have processed a write that failed with this error.
pub(super) fn is_unknown(error: &Error) -> bool {
    match error {
        Error::Send(error) => !was_not_sent(error),
        // The server or a proxy failed while processing the request.
        Error::Status(status) => status.code >= 500,
        // For `Fenced`: the fence was open when the request was sent, and closed before the response.
        Error::Timeout(_) | Error::Decode { .. } | Error::Fenced => true,
        _ => false,
    }
}

/// A write that was sent. Its outcome is unknown until [`InFlight::settle`] is called, even if this is dropped.
pub(super) struct InFlight<'a> {
    client: &'a Client,
    kind: &'a Kind,
    target: &'a Target,
    /// The tracker of the write; `None` if it is not tracked or its outcome is known.
    writes: Option<WriteTracker>,
}

impl<'a> InFlight<'a> {
    pub(super) fn new(
        client: &'a Client,
        kind: &'a Kind,
        target: &'a Target,
        writes: Option<WriteTracker>,
    ) -> Self {
        Self { client, kind, target, writes }
    }

    /// Marks the outcome as known.
    pub(super) fn settle(mut self) {
        self.writes = None;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let (Some(writes), Some(cache)) = (self.writes.take(), self.client.cache()) {
            let (kube, cache) = (self.client.raw().clone(), cache.clone());
            writes.note_unknown(Unknown {
                kube,
                cache,
                kind: self.kind.clone(),
                target: self.target.clone(),
            });
        }
    }
}

/// The parts of an object that are compared with the cache.
struct Found {
    key: Key,
    version: u64,
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Whole {
    metadata: AnswerMeta,
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    items: Option<Vec<Whole>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    r#continue: String,
}

impl Unknown {
    fn informers(&self) -> impl Iterator<Item = Arc<Informer>> {
        let all = self.cache.all_of(&self.kind).into_iter();
        all.filter(|informer| informer.covers(self.target.namespace()))
    }

    /// Whether any informer can report the write.
    pub(super) fn is_watched(&self) -> bool {
        self.informers().next().is_some()
    }

    /// Reads the current state from the server, and retries until the server responds. The key loses nothing by
    /// waiting: it could not write to an unreachable server either.
    pub(super) async fn pending(self) -> Vec<PendingWrite> {
        let mut pause = FIRST_PAUSE;
        loop {
            let asked = tokio::time::timeout(ANSWER, self.ask()).await.unwrap_or(Err(Error::Timeout(ANSWER)));
            match asked {
                Ok(pending) => return pending,
                Err(error) if is_final(&error) => {
                    let error = Chain(&error);
                    let (kind, namespace, name) =
                        (self.kind.gvk(), self.target.namespace(), self.target.name());
                    warn!(%kind, namespace, name, %error, "Failed to determine whether a write succeeded");
                    return Vec::new();
                }
                Err(error) => {
                    let error = Chain(&error);
                    debug!(
                        kind = %self.kind.gvk(),
                        namespace = self.target.namespace(),
                        name = self.target.name(),
                        %error,
                        retry_in = ?pause,
                        "Failed to determine whether a write succeeded; will retry",
                    );
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn ask(&self) -> Result<Vec<PendingWrite>, Error> {
        match &self.target {
            Target::Object(key) => self.ask_object(key).await,
            Target::Collection(namespace) => self.ask_collection(namespace.as_deref()).await,
        }
    }

    async fn ask_object(&self, key: &Key) -> Result<Vec<PendingWrite>, Error> {
        let found = match self.send(&path(&self.kind, key, None), http::METADATA).await {
            Ok(body) => Some(self.read::<Whole>(&body)?.metadata.found(key)),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let pending = self.informers().filter_map(|informer| {
            let wrote = match &found {
                Some(found) if reports(&informer, key, Some(&found.labels)) => {
                    WriteResult::Version(found.version)
                }
                Some(_) => return None,
                None => WriteResult::Removed(informer.entry(key)?.uid().clone()),
            };
            Some(PendingWrite::new(informer, key, Instant::now(), &wrote))
        });
        Ok(pending.collect())
    }

    async fn ask_collection(&self, namespace: Option<&str>) -> Result<Vec<PendingWrite>, Error> {
        let (mut found, mut token, mut version) = (Vec::new(), String::new(), 0);
        loop {
            let mut query = Query::new(self.kind.path(namespace));
            query.push("limit", PAGE);
            if !token.is_empty() {
                query.push("continue", &token);
            }
            let body = self.send(query.as_str(), http::METADATA_LIST).await?;
            let page: Page = self.read(&body)?;
            if token.is_empty() {
                version = page.metadata.resource_version.parse().unwrap_or(0);
            }
            let items = page.items.unwrap_or_default();
            found.extend(items.into_iter().map(|Whole { metadata }| {
                let key = metadata.key();
                metadata.found(&key)
            }));
            token = page.metadata.r#continue;
            if token.is_empty() {
                break;
            }
        }
        let mut pending = Vec::new();
        for informer in self.informers() {
            let reported = found.iter().filter(|it| reports(&informer, &it.key, Some(&it.labels)));
            if let Some(newest) = reported.max_by_key(|it| it.version) {
                pending.push(PendingWrite::new(
                    informer.clone(),
                    &newest.key,
                    Instant::now(),
                    &WriteResult::Version(newest.version),
                ));
            }
            let there: BTreeSet<&Key> = found.iter().map(|it| &it.key).collect();
            let list = namespace.map_or_else(ListOptions::all, ListOptions::namespace);
            for entry in informer.entries(&list)? {
                if !there.contains(entry.key()) && entry.version() <= version {
                    let removed = WriteResult::Removed(entry.uid().clone());
                    pending.push(PendingWrite::new(informer.clone(), entry.key(), Instant::now(), &removed));
                }
            }
        }
        Ok(pending)
    }

    async fn send(&self, path: &str, accept: &'static str) -> Result<bytes::Bytes, Error> {
        let request = Request::get(path).header(header::ACCEPT, accept).body(Vec::new());
        http::send(&self.kube, request.map_err(Error::Build)?).await
    }

    fn read<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T, Error> {
        super::read(&self.kind, body)
    }
}

impl AnswerMeta {
    fn found(self, key: &Key) -> Found {
        let version = self.resource_version.parse().unwrap_or(0);
        Found { key: key.clone(), version, labels: self.labels.unwrap_or_default() }
    }
}

/// Whether retrying does not help: the operator lacks permission to read the kind, or it is no longer served.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Status(status) => {
            (400..500).contains(&status.code) && !error.is_too_many_requests() && !error.is_gone()
        }
        Error::Send(_) | Error::Timeout(_) => false,
        _ => true,
    }
}
