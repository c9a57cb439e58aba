//! Watches without the cache.
//!
//! [`Client::watch`] is for short uses, such as waiting for one object. Controllers and readers use the cache instead.
//! A watch that ends or breaks is reopened from its last resourceVersion, with backoff after failures. If that version
//! is too old, the watch starts over and reports [`WatchEvent::Restarted`].

use std::time::Duration;

use ::http::{Request, header};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::debug;

use super::{Client, Error, Writable, selection, unreadable};
use crate::error::Chain;
use crate::http::{self, Lines};
use crate::query::Query;
use crate::{Gvk, Kind, ListOptions, Object};

/// The timeout that the watch requests from the server.
const WATCH: Duration = Duration::from_mins(5);
/// A watch that is still open this long after its requested timeout is dead.
const OVERDUE: Duration = Duration::from_secs(15);
/// How long the server may take to open a watch.
const ANSWER: Duration = Duration::from_secs(30);
/// The delay after the first failure. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(800);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// An event of a watch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum WatchEvent<K> {
    /// The object existed when the watch began, was created, or started to match the selector.
    Added(K),
    /// The object was changed.
    Modified(K),
    /// The object was deleted or no longer matches the selector. This is its last state.
    Deleted(K),
    /// Everything up to this resourceVersion has been reported.
    Bookmark(String),
    /// The resourceVersion was too old, so events were lost. The current objects follow as [`WatchEvent::Added`];
    /// deletions in between are not reported.
    Restarted,
}

/// A stream of watch events. It ends after an error that a retry does not fix, such as a missing permission.
pub type WatchStream<K> = BoxStream<'static, Result<WatchEvent<K>, Error>>;

impl Client {
    /// Watches the objects of a list on the server. Existing objects come first, as [`WatchEvent::Added`].
    ///
    /// ```no_run
    /// use futures_util::StreamExt as _;
    /// # use kubewright_runtime::{Client, ListOptions};
    /// # use kubewright_runtime::client::WatchEvent;
    /// # use k8s_openapi::api::batch::v1::Job;
    /// # async fn example(client: Client) -> Result<(), kubewright_runtime::client::Error> {
    /// let mut jobs = client.watch::<Job>(&ListOptions::namespace("default"))?;
    /// while let Some(event) = jobs.next().await {
    ///     if let WatchEvent::Modified(job) = event? {
    ///         println!("{:?}", job.status);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch<K: Object>(&self, list: &ListOptions) -> Result<WatchStream<K>, Error> {
        self.watch_kind(Kind::of::<K>(), K::metadata_api(), list)
    }

    /// Watches objects of a kind that is known only at run time.
    pub async fn watch_dynamic(
        &self,
        gvk: &Gvk,
        list: &ListOptions,
    ) -> Result<WatchStream<DynamicObject>, Error> {
        self.watch_kind(self.kind(gvk).await?, false, list)
    }

    fn watch_kind<K: Writable>(
        &self,
        kind: Kind,
        metadata_only: bool,
        list: &ListOptions,
    ) -> Result<WatchStream<K>, Error> {
        let list = self.list_in_namespace(&kind, list)?;
        // Parse the selectors now, so that the caller gets the error.
        selection(&kind, &list)?;
        let accept = if metadata_only { http::METADATA } else { "application/json" };
        let watch = Watch {
            client: self.clone(),
            kind,
            list,
            accept,
            from: String::new(),
            open: None,
            failures: 0,
            ended: false,
        };
        Ok(stream::unfold(watch, |mut watch| async move { Some((watch.next().await?, watch)) }).boxed())
    }
}

/// A watch and its position.
struct Watch {
    client: Client,
    kind: Kind,
    list: ListOptions,
    accept: &'static str,
    /// The resourceVersion of the next watch; empty for the current state.
    from: String,
    open: Option<Open>,
    /// The number of failures since the last event.
    failures: u32,
    ended: bool,
}

struct Open {
    lines: Lines,
    deadline: Instant,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    what: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Mark {
    metadata: MarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MarkMeta {
    resource_version: String,
}

impl Watch {
    /// The next event; `None` at the end.
    async fn next<K: Writable>(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        loop {
            if self.ended {
                return None;
            }
            let error = match self.line().await {
                Ok(Some(line)) => match self.event(&line) {
                    Ok(event) => return Some(Ok(event)),
                    // One object cannot be decoded; the watch continues.
                    Err(error @ Error::Decode { .. }) => return Some(Err(error)),
                    Err(error) => error,
                },
                Ok(None) => {
                    self.open = None;
                    // Avoid a busy loop if watches end without an event.
                    self.pause(None).await;
                    continue;
                }
                Err(error) => error,
            };
            self.open = None;
            if error.is_gone() {
                self.from.clear();
                self.pause(Some(&error)).await;
                return Some(Ok(WatchEvent::Restarted));
            }
            if is_final(&error) {
                self.ended = true;
                return Some(Err(error));
            }
            self.pause(Some(&error)).await;
        }
    }

    async fn pause(&mut self, error: Option<&Error>) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(8)).min(LONGEST_PAUSE);
        let asked = error.and_then(Error::retry_after).unwrap_or_default();
        if let Some(error) = error {
            let kind = self.kind.gvk();
            debug!(%kind, error = %Chain(error), retry_in = ?pause.max(asked), "Restarting watch");
        }
        // A watch that had worked is reopened without backoff.
        if self.failures > 0 || !asked.is_zero() {
            tokio::time::sleep(pause.max(asked)).await;
        }
        self.failures = self.failures.saturating_add(1);
    }

    async fn line(&mut self) -> Result<Option<Bytes>, Error> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.opened().await?,
        };
        let open = self.open.insert(open);
        // A watch past its timeout is dead.
        tokio::time::timeout_at(open.deadline, open.lines.next()).await.unwrap_or(Ok(None))
    }

    /// Takes `&mut self`, because the body of an open watch is not `Sync`.
    async fn opened(&mut self) -> Result<Open, Error> {
        let (query, deadline) = (self.query()?, Instant::now() + WATCH + OVERDUE);
        let request = Request::get(query.as_str()).header(header::ACCEPT, self.accept).body(Vec::new());
        let opening = http::open(self.client.raw(), request.map_err(Error::Build)?);
        let answer = tokio::time::timeout(ANSWER, opening).await.unwrap_or(Err(Error::Timeout(ANSWER)))?;
        Ok(Open { lines: Lines::new(answer.into_body()), deadline })
    }

    fn query(&self) -> Result<Query, Error> {
        let mut query = selection(&self.kind, &self.list)?;
        query.push("watch", true);
        query.push("allowWatchBookmarks", true);
        query.push("timeoutSeconds", WATCH.as_secs());
        if !self.from.is_empty() {
            query.push("resourceVersion", &self.from);
        }
        Ok(query)
    }

    fn event<K: Writable>(&mut self, line: &[u8]) -> Result<WatchEvent<K>, Error> {
        let failed = |source| unreadable(&self.kind, source);
        let Line { what, object } = http::text(line).and_then(serde_json::from_str).map_err(failed)?;
        let object = object.get();
        if what == "ERROR" {
            let status = serde_json::from_str(object).map_err(failed)?;
            return Err(Error::Status(Box::new(status)));
        }
        self.failures = 0;
        let Mark { metadata } = serde_json::from_str(object).map_err(failed)?;
        if !metadata.resource_version.is_empty() {
            self.from.clone_from(&metadata.resource_version);
        }
        let read = || serde_json::from_str(object).map_err(failed);
        Ok(match what {
            "ADDED" => WatchEvent::Added(read()?),
            "MODIFIED" => WatchEvent::Modified(read()?),
            "DELETED" => WatchEvent::Deleted(read()?),
            _ => WatchEvent::Bookmark(metadata.resource_version),
        })
    }
}

/// Whether retrying does not help.
fn is_final(error: &Error) -> bool {
    match error {
        Error::Status(status) => (400..500).contains(&status.code) && !error.is_too_many_requests(),
        Error::Send(_) | Error::Timeout(_) => false,
        _ => true,
    }
}
