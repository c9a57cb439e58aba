//! Writes whose outcome is not known: the connection broke, the answer did not arrive in time or cannot be read, or
//! the caller stopped to wait.
//!
//! The server may have processed such a write. Before the key runs again, [`Unknown::pending`] reads the object, or the
//! collection if the object has no name yet, with quorum, and the key waits until the cache has seen what was read.
//! The versions of the objects are compared, not the version of the list: a watch reports that one only with its next
//! bookmark, which can take a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, header};
use serde::Deserialize;
use tracing::{debug, warn};

use super::write::AnswerMeta;
use super::write_tracker::{PendingWrite, WriteTracker, Wrote, tells};
use super::{Client, Error, path};
use crate::cache::{Cache, Informer};
use crate::connect::retry::was_not_sent;
use crate::error::Chain;
use crate::query::Query;
use crate::{Key, Kind, List, wire};

const PAGE: u32 = 500;
/// The limit of one request to the server.
const ANSWER: Duration = Duration::from_secs(30);
/// The pauses between requests to a server that does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What a write changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Object(Key),
    /// Objects of a namespace, or of the cluster, whose names are not known.
    Collection(Option<String>),
}

impl Target {
    fn namespace(&self) -> Option<&str> {
        match self {
            Self::Object(key) => key.namespace(),
            Self::Collection(namespace) => namespace.as_deref(),
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
        // The server, or a proxy in front of it, gave up at some point.
        Error::Status(status) => status.code >= 500,
        // The fence was open when the request was sent, and closed before the answer.
        Error::Silent(_) | Error::Decode { .. } | Error::Fenced => true,
        _ => false,
    }
}

/// A write that was sent. Its outcome is unknown until [`InFlight::settle`] is called, also if it is dropped.
pub(super) struct InFlight<'a> {
    client: &'a Client,
    kind: &'a Kind,
    target: &'a Target,
    /// Where the write is noted; none if it is not tracked, or its outcome is known.
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

    /// The outcome is known.
    pub(super) fn settle(mut self) {
        self.writes = None;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let (Some(writes), Some(cache)) = (self.writes.take(), self.client.cache()) {
            let (kube, cache) = (self.client.kube().clone(), cache.clone());
            writes.note_unknown(Unknown {
                kube,
                cache,
                kind: self.kind.clone(),
                target: self.target.clone(),
            });
        }
    }
}

/// An object, as far as it is compared with the cache.
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

    /// Whether an informer can report the write.
    pub(super) fn is_watched(&self) -> bool {
        self.informers().next().is_some()
    }

    /// Asks the server what it has done. A server that cannot be asked cannot be written to either, so that the key
    /// loses nothing by waiting.
    pub(super) async fn pending(self) -> Vec<PendingWrite> {
        let mut pause = FIRST_PAUSE;
        loop {
            let asked = tokio::time::timeout(ANSWER, self.ask()).await.unwrap_or(Err(Error::Silent(ANSWER)));
            match asked {
                Ok(pending) => return pending,
                Err(error) if is_final(&error) => {
                    let error = Chain(&error);
                    warn!(kind = ?self.kind, target = ?self.target, %error, "cannot find out what a failed write has done");
                    return Vec::new();
                }
                Err(error) => {
                    let error = Chain(&error);
                    debug!(kind = ?self.kind, target = ?self.target, %error, again_in = ?pause, "the outcome of a write is not known yet");
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
        let found = match self.send(&path(&self.kind, key, None), wire::METADATA).await {
            Ok(body) => Some(self.read::<Whole>(&body)?.metadata.found(key)),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let pending = self.informers().filter_map(|informer| {
            let wrote = match &found {
                Some(found) if tells(&informer, key, Some(&found.labels)) => Wrote::Version(found.version),
                Some(_) => return None,
                None => Wrote::Gone(informer.entry(key)?.uid().clone()),
            };
            Some(PendingWrite::new(informer, key, &wrote))
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
            let body = self.send(query.as_str(), wire::METADATA_LIST).await?;
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
            let told = found.iter().filter(|it| tells(&informer, &it.key, Some(&it.labels)));
            if let Some(newest) = told.max_by_key(|it| it.version) {
                pending.push(PendingWrite::new(
                    informer.clone(),
                    &newest.key,
                    &Wrote::Version(newest.version),
                ));
            }
            let there: BTreeSet<&Key> = found.iter().map(|it| &it.key).collect();
            let list = namespace.map_or_else(List::all, List::namespace);
            for entry in informer.entries(&list)? {
                if !there.contains(entry.key()) && entry.version() <= version {
                    let gone = Wrote::Gone(entry.uid().clone());
                    pending.push(PendingWrite::new(informer.clone(), entry.key(), &gone));
                }
            }
        }
        Ok(pending)
    }

    async fn send(&self, path: &str, accept: &'static str) -> Result<bytes::Bytes, Error> {
        let request = Request::get(path).header(header::ACCEPT, accept).body(Vec::new());
        wire::send(&self.kube, request.map_err(Error::Build)?).await
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

/// Whether asking again does not help: the operator may not read the kind, or it is not served any more.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Status(status) => {
            (400..500).contains(&status.code) && !error.is_too_many_requests() && !error.is_gone()
        }
        Error::Send(_) | Error::Silent(_) => false,
        _ => true,
    }
}
