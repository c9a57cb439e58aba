//! Watches without the cache.
//!
//! [`Client::watch`] is for short uses, such as waiting for one object. Controllers and readers use the cache instead.
//! A watch that ends or breaks is reopened from its last resourceVersion, with backoff after failures. If that version
//! is too old, the watch starts over and reports [`WatchEvent::Restarted`].
//!
//! The existing objects are the initial events of the watch. They are ordered by key, so their resourceVersions are not
//! a position: a watch that breaks before their end starts over. If the server does not stream them, they are listed in
//! pages.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
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
    /// The resourceVersion was too old, so events were lost, or the watch broke before all existing objects were
    /// reported. The current objects follow as [`WatchEvent::Added`]; deletions in between are not reported.
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
        let watch = Watch {
            client: self.clone(),
            kind,
            list: ListOptions { limit: None, ..list },
            metadata_only,
            from: String::new(),
            in_pages: false,
            listed: VecDeque::new(),
            reported: false,
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
    metadata_only: bool,
    /// The resourceVersion of the next watch; empty until all existing objects are known.
    from: String,
    /// Whether existing objects are listed in pages, because the server did not stream them.
    in_pages: bool,
    /// The objects of such a list that have not been returned yet, and then its resourceVersion.
    listed: VecDeque<Listed>,
    /// Whether existing objects have been returned, but not all.
    reported: bool,
    open: Option<Open>,
    /// The number of failures since the last event after the existing objects.
    failures: u32,
    ended: bool,
}

enum Listed {
    Object(Box<RawValue>),
    End(String),
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

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MarkMeta {
    resource_version: String,
    annotations: Option<BTreeMap<String, String>>,
}

impl MarkMeta {
    /// Whether the bookmark marks the end of the existing objects.
    fn ends_initial_events(&self) -> bool {
        let end = self.annotations.as_ref().and_then(|it| it.get("k8s.io/initial-events-end"));
        end.is_some_and(|end| end == "true")
    }
}

impl Watch {
    /// The next event; `None` at the end.
    async fn next<K: Writable>(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(listed) = self.listed.pop_front() {
                return Some(match listed {
                    Listed::Object(object) => self.object(object.get()).map(WatchEvent::Added),
                    Listed::End(version) => Ok(WatchEvent::Bookmark(version)),
                });
            }
            let lists = self.open.is_none() && self.from.is_empty() && self.in_pages;
            let ended = if lists { self.list().await.map(|()| None) } else { self.line().await };
            let error = match ended {
                Ok(Some(line)) => match self.event(&line) {
                    Ok(event) => return Some(Ok(event)),
                    // One object cannot be decoded; the watch continues.
                    Err(error @ Error::Decode { .. }) => return Some(Err(error)),
                    Err(error) => error,
                },
                Ok(None) if lists => continue,
                Ok(None) => {
                    self.open = None;
                    // An older server ignores the parameters and never sends the bookmark that ends the list.
                    self.in_pages = self.from.is_empty();
                    // Avoid a busy loop if watches end without an event.
                    self.pause(None).await;
                    if self.restarts() {
                        return Some(Ok(WatchEvent::Restarted));
                    }
                    continue;
                }
                Err(error) => error,
            };
            self.open = None;
            if error.is_gone() {
                self.from.clear();
                self.reported = false;
                self.pause(Some(&error)).await;
                return Some(Ok(WatchEvent::Restarted));
            }
            // The server knows the parameters but cannot stream.
            let refused = error.is_invalid() || error.is_bad_request();
            if refused && self.from.is_empty() && !self.in_pages {
                self.in_pages = true;
                continue;
            }
            if is_final(&error) {
                self.ended = true;
                return Some(Err(error));
            }
            self.pause(Some(&error)).await;
            if self.restarts() {
                return Some(Ok(WatchEvent::Restarted));
            }
        }
    }

    /// Whether some existing objects have been returned and will be returned again. True once.
    fn restarts(&mut self) -> bool {
        self.from.is_empty() && std::mem::take(&mut self.reported)
    }

    /// Lists the existing objects in pages.
    async fn list(&mut self) -> Result<(), Error> {
        let read = |item: &RawValue| Ok(Listed::Object(item.to_owned()));
        let (objects, version) =
            self.client.fetch_all(&self.kind, &self.list, self.metadata_only, read).await?;
        if version.is_empty() {
            return Err(Error::NoResourceVersion(self.kind.gvk().to_string()));
        }
        self.from.clone_from(&version);
        self.listed = objects.into_iter().chain([Listed::End(version)]).collect();
        Ok(())
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
        // A watch past its timeout is dead. An older server sends no end of the existing objects.
        let deadline = if self.from.is_empty() { Instant::now() + ANSWER } else { open.deadline };
        tokio::time::timeout_at(deadline, open.lines.next()).await.unwrap_or(Ok(None))
    }

    /// Takes `&mut self`, because the body of an open watch is not `Sync`.
    async fn opened(&mut self) -> Result<Open, Error> {
        let (query, deadline) = (self.query()?, Instant::now() + WATCH + OVERDUE);
        let accept = if self.metadata_only { http::METADATA } else { "application/json" };
        let request = Request::get(query.as_str()).header(header::ACCEPT, accept).body(Vec::new());
        let opening = http::open(self.client.raw(), request.map_err(Error::Build)?);
        let answer = tokio::time::timeout(ANSWER, opening).await.unwrap_or(Err(Error::Timeout(ANSWER)))?;
        Ok(Open { lines: Lines::new(answer.into_body()), deadline })
    }

    fn query(&self) -> Result<Query, Error> {
        let mut query = selection(&self.kind, &self.list)?;
        query.push("watch", true);
        query.push("allowWatchBookmarks", true);
        query.push("timeoutSeconds", WATCH.as_secs());
        if self.from.is_empty() {
            query.push("sendInitialEvents", true);
            query.push("resourceVersionMatch", "NotOlderThan");
        } else {
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
        let Mark { metadata } = serde_json::from_str(object).map_err(failed)?;
        let ends = what == "BOOKMARK" && metadata.ends_initial_events();
        if self.from.is_empty() && !ends {
            self.reported = true;
        } else {
            self.failures = 0;
            if !metadata.resource_version.is_empty() {
                self.from.clone_from(&metadata.resource_version);
            }
        }
        Ok(match what {
            "ADDED" => WatchEvent::Added(self.object(object)?),
            "MODIFIED" => WatchEvent::Modified(self.object(object)?),
            "DELETED" => WatchEvent::Deleted(self.object(object)?),
            _ => WatchEvent::Bookmark(metadata.resource_version),
        })
    }

    fn object<K: Writable>(&self, object: &str) -> Result<K, Error> {
        let mut object: K = serde_json::from_str(object).map_err(|source| unreadable(&self.kind, source))?;
        // The items of a list of a built-in kind have no apiVersion and kind.
        if let Some(object) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>() {
            object.types.get_or_insert_with(|| self.kind.type_meta());
        }
        Ok(object)
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
