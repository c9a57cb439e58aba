//! List and watch: how an informer learns what is there, and then what happens.
//!
//! The list is streamed where the server can do that, and read in pages where it cannot. A watch that ends is opened
//! again from its last resourceVersion. Only when that is too old, everything is listed again, and followers get the
//! difference. Failures back off, and never end a reflector. Every wait has a limit: a server that does not answer has
//! failed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::entry::Entry;
use super::health::SHORT;
use super::informer::{Informer, Part, Scoped};
use super::store::Removal;
use crate::client::Error;
use crate::error::Chain;
use crate::query::{self, Query};
use crate::wire::{self, Lines};
use crate::{Key, LabelSelector};

/// The page of a list; the same as kubectl's.
const PAGE: u32 = 500;
/// A watch is asked to end after one to two times this, so that not all of them end at once.
const WATCH: Duration = Duration::from_mins(5);
/// A watch that has not ended this long after it should have is dead.
const OVERDUE: Duration = Duration::from_secs(15);
/// How long an answer may take to begin, and a list to go on: as long as a server gives itself for a request.
const ANSWER: Duration = Duration::from_mins(1);
/// How long the watch waits for the answer whether an object still exists.
const LOOKUP: Duration = Duration::from_secs(5);
/// The watch waits for at most this many of these answers per second, so that a mass deletion does not delay it.
const LOOKUPS: u32 = 10;
/// After a server did not stream a list of a kind, its lists are read in pages for this long. Then it is asked again:
/// it may have been upgraded.
const PAGED: Duration = Duration::from_mins(30);
const BACKOFF_FIRST: Duration = Duration::from_millis(800);
const BACKOFF_MOST: Duration = Duration::from_secs(30);
/// After a watch that was open for this long, the next failure counts as the first.
const STEADY: Duration = Duration::from_secs(30);

/// What of a kind is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Selection {
    pub(crate) labels: String,
    pub(crate) fields: String,
    /// Only metadata is asked for, and kept.
    pub(crate) metadata_only: bool,
}

impl Selection {
    /// Whether every object is selected.
    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

/// Limits the lookups of one watch.
#[derive(Default)]
struct Lookups {
    second: Option<Instant>,
    used: u32,
}

impl Lookups {
    /// Whether a lookup may be sent now.
    fn take(&mut self) -> bool {
        if self.second.is_none_or(|second| second.elapsed() >= Duration::from_secs(1)) {
            *self = Self { second: Some(Instant::now()), used: 0 };
        }
        self.used += 1;
        self.used <= LOOKUPS
    }
}

/// Follows one part of an informer.
pub(crate) struct Reflector<'a> {
    informer: &'a Informer,
    part: &'a Part,
    client: &'a kube::Client,
    rng: fastrand::Rng,
    lookups: Lookups,
}

/// What a line of a watch says.
struct Line<'a> {
    what: &'a str,
    object: &'a str,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Any<'a> {
            #[serde(rename = "type")]
            what: &'a str,
            #[serde(borrow)]
            object: &'a RawValue,
        }

        Self::as_servers_write(line).map_or_else(
            || serde_json::from_str(line).map(|Any { what, object }| Self { what, object: object.get() }),
            Ok,
        )
    }

    /// A line that is written as every server does it, without a look at the object: who reads that will see.
    fn as_servers_write(line: &'a str) -> Option<Self> {
        let (what, rest) = line.strip_prefix(r#"{"type":""#)?.split_once(r#"","object":{"#)?;
        let object = &line[line.len() - rest.len() - 1..line.len() - 1];
        (line.ends_with("}}") && !what.contains('"')).then_some(Self { what, object })
    }
}

/// What a bookmark says.
#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct BookmarkMeta {
    resource_version: String,
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    resource_version: String,
    r#continue: String,
}

impl<'a> Reflector<'a> {
    pub(crate) fn new(
        informer: &'a Informer,
        part: &'a Part,
        client: &'a kube::Client,
        rng: fastrand::Rng,
    ) -> Self {
        Self { informer, part, client, rng, lookups: Lookups::default() }
    }

    /// Lists and watches for ever.
    pub(crate) async fn run(mut self) {
        let mut failures = Failures::default();
        // Where the next watch begins; empty when everything must be listed first.
        let mut from = String::new();
        loop {
            let step = if from.is_empty() { self.list(&mut from).await } else { self.watch(&mut from).await };
            let open = self.part.health.ended();
            if open.is_some_and(|open| open >= STEADY) {
                failures = Failures::default();
            }
            let short = open.is_some_and(|open| open < SHORT);
            let Err(error) = step else {
                // A watch that ends as soon as it begins would be opened again without a pause.
                if short {
                    self.part.health.too_short();
                    tokio::time::sleep(failures.next(&mut self.rng)).await;
                }
                continue;
            };
            self.part.health.failed(&error);
            self.informer.metrics().failed(self.informer.kind().gvk(), &error);
            // A kind that is not served any more may come back with other objects.
            if error.is_gone() || error.is_not_found() {
                from.clear();
            }
            let pause = failures.next(&mut self.rng).max(error.retry_after().unwrap_or_default());
            // What broke after it had worked is taken up at once, the first time.
            if failures.count == 1 && (error.is_gone() || open.is_some_and(|open| open >= SHORT)) {
                let kind = self.informer.kind().gvk();
                debug!(%kind, namespace = self.part.namespace(), error = %Chain(&error), "watch broke; retrying at once");
                continue;
            }
            warn!(
                kind = %self.informer.kind().gvk(),
                namespace = self.part.namespace(),
                error = %Chain(&error),
                again_in = ?pause,
                "{}",
                match () {
                    () if error.is_not_found() => "the resource is not served: is the CRD installed?",
                    () if error.is_forbidden() => "list or watch is forbidden: check the RBAC rules of the operator",
                    () => "list or watch failed",
                },
            );
            tokio::time::sleep(pause).await;
        }
    }

    async fn list(&mut self, from: &mut String) -> Result<(), Error> {
        if self.informer.streams() {
            match self.stream(from).await {
                // A server that knows the parameters and cannot stream refuses the request.
                Err(error) if error.is_invalid() || error.is_bad_request() => {}
                // An older server ignores the parameters and never marks the end of the list.
                Ok(()) if from.is_empty() => {}
                done => return done,
            }
            let kind = self.informer.kind().gvk();
            debug!(%kind, retry_in = ?PAGED, "the server does not stream lists of this kind; reading pages");
            self.informer.page_for(PAGED);
        }
        self.part.health.ended();
        self.pages(from).await
    }

    /// Reads the list page by page.
    async fn pages(&self, from: &mut String) -> Result<(), Error> {
        let mut entries = Vec::new();
        let mut token = String::new();
        loop {
            let mut query = self.query();
            query.push("limit", PAGE);
            if !token.is_empty() {
                query.push("continue", &token);
            }
            let request = self.request(&query, wire::METADATA_LIST)?;
            let body = answer(wire::send(self.client, request)).await?;
            let page = wire::text(&body).and_then(serde_json::from_str::<Page<'_>>);
            let page = page.map_err(|source| self.unreadable(source))?;
            for item in page.items.unwrap_or_default() {
                entries.extend(self.entry(item.get()));
            }
            token = page.metadata.r#continue;
            if token.is_empty() {
                let version = self.known(page.metadata.resource_version)?;
                self.informer.replace(self.part, entries, number(&version));
                self.part.health.heard();
                *from = version;
                return Ok(());
            }
        }
    }

    /// Reads the list as the first events of a watch, and goes on with that watch. If it ends well without `from`, it
    /// ended before the list did.
    async fn stream(&mut self, from: &mut String) -> Result<(), Error> {
        let mut query = self.query();
        query.push("sendInitialEvents", true);
        query.push("resourceVersionMatch", "NotOlderThan");
        let (mut lines, deadline) = self.open(&mut query).await?;
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        while let Some(line) = next(&mut lines, Instant::now() + ANSWER).await? {
            let line = self.line(&line)?;
            match line.what {
                "ADDED" | "MODIFIED" => entries.extend(self.entry(line.object)),
                "DELETED" => {
                    if let Some(last) = self.entry(line.object) {
                        entries.retain(|entry| entry.key() != last.key());
                    }
                }
                "BOOKMARK" => {
                    let bookmark = self.bookmark(line.object)?;
                    if bookmark.annotations.get("k8s.io/initial-events-end").is_some_and(|it| it == "true") {
                        let version = self.known(bookmark.resource_version)?;
                        self.informer.replace(self.part, entries, number(&version));
                        self.part.health.heard();
                        *from = version;
                        return self.follow(lines, deadline, from).await;
                    }
                }
                _ => return Err(failed(line.object)),
            }
        }
        Ok(())
    }

    async fn watch(&mut self, from: &mut String) -> Result<(), Error> {
        let mut query = self.query();
        query.push("resourceVersion", &from);
        let (lines, deadline) = self.open(&mut query).await?;
        self.follow(lines, deadline, from).await
    }

    async fn open(&mut self, query: &mut Query) -> Result<(Lines, Instant), Error> {
        let seconds = WATCH.as_secs() + self.rng.u64(..WATCH.as_secs());
        query.push("watch", true);
        query.push("allowWatchBookmarks", true);
        query.push("timeoutSeconds", seconds);
        let deadline = Instant::now() + Duration::from_secs(seconds) + OVERDUE;
        let request = self.request(query, wire::METADATA)?;
        let response = answer(wire::open(self.client, request)).await?;
        self.part.health.opened();
        Ok((Lines::new(response.into_body()), deadline))
    }

    /// Takes event by event until the watch ends.
    async fn follow(&mut self, mut lines: Lines, deadline: Instant, from: &mut String) -> Result<(), Error> {
        while let Some(line) = next(&mut lines, deadline).await? {
            let line = self.line(&line)?;
            match line.what {
                "BOOKMARK" => {
                    *from = self.known(self.bookmark(line.object)?.resource_version)?;
                    self.part.reached(number(from));
                    self.part.health.heard();
                }
                "ADDED" | "MODIFIED" | "DELETED" => {
                    self.part.health.heard();
                    let Some(entry) = self.entry(line.object) else { continue };
                    if entry.version() != 0 {
                        *from = entry.version().to_string();
                    }
                    if line.what == "DELETED" {
                        let removal = self.removal(line.object).await;
                        self.informer.remove(self.part, entry, removal);
                    } else {
                        self.informer.put(self.part, entry);
                    }
                }
                _ => return Err(failed(line.object)),
            }
        }
        Ok(())
    }

    /// Why an object has left a watch. `object` is as the server sent it: a transform may drop its labels and its uid.
    async fn removal(&mut self, object: &str) -> Removal {
        let selection = &self.part.scope.selection;
        if selection.is_all() {
            return Removal::Deleted;
        }
        let Ok(last) = Entry::read(object, false) else { return Removal::Unknown };
        // kube-apiserver sends the last state that matched; a server that sends the new state needs no GET.
        let labels = selection.labels.parse::<LabelSelector>();
        if labels.is_ok_and(|labels| !labels.matches(&last.marks().labels)) {
            return Removal::Deselected;
        }
        if !self.lookups.take() {
            return Removal::Unknown;
        }
        match tokio::time::timeout(LOOKUP, self.metadata(last.key())).await {
            Ok(Ok(now)) if now.uid() == last.uid() => Removal::Deselected,
            Ok(Ok(_)) => Removal::Deleted,
            Ok(Err(error)) if error.is_not_found() => Removal::Deleted,
            Ok(Err(error)) => {
                let (kind, object) = (self.informer.kind().gvk(), last.key());
                debug!(%kind, %object, error = %Chain(&error), "cannot tell whether the object was deleted");
                Removal::Unknown
            }
            Err(_) => Removal::Unknown,
        }
    }

    /// The metadata of an object, from the server.
    async fn metadata(&self, key: &Key) -> Result<Entry, Error> {
        let mut path = self.informer.kind().path(key.namespace());
        path.push('/');
        query::encode(&mut path, key.name());
        let request = Request::get(path).header(header::ACCEPT, wire::METADATA).body(Vec::new());
        let body = wire::send(self.client, request.map_err(Error::Build)?).await?;
        let read = wire::text(&body).and_then(|text| Entry::read(text, false));
        read.map_err(|source| self.unreadable(source))
    }

    fn query(&self) -> Query {
        let Scoped { except, selection: Selection { labels, fields, .. }, .. } = &self.part.scope;
        let mut query = Query::new(self.informer.kind().path(self.part.namespace()));
        let except = except.iter().map(|namespace| format!("metadata.namespace!={namespace}"));
        let fields: Vec<String> =
            Some(fields.clone()).into_iter().filter(|it| !it.is_empty()).chain(except).collect();
        for (name, value) in [("labelSelector", labels), ("fieldSelector", &fields.join(","))] {
            if !value.is_empty() {
                query.push(name, value);
            }
        }
        query
    }

    fn request(&self, query: &Query, metadata: &'static str) -> Result<Request<Vec<u8>>, Error> {
        let accept = if self.informer.settings().metadata_only { metadata } else { "application/json" };
        Request::get(query.as_str()).header(header::ACCEPT, accept).body(Vec::new()).map_err(Error::Build)
    }

    fn line<'l>(&self, line: &'l Bytes) -> Result<Line<'l>, Error> {
        wire::text(line).and_then(Line::read).map_err(|source| self.unreadable(source))
    }

    fn bookmark(&self, object: &str) -> Result<BookmarkMeta, Error> {
        let bookmark = serde_json::from_str::<Bookmark>(object).map_err(|source| self.unreadable(source))?;
        Ok(bookmark.metadata)
    }

    /// The resourceVersion to watch from. A list without one would be repeated at once and for ever.
    fn known(&self, version: String) -> Result<String, Error> {
        if version.is_empty() {
            return Err(Error::NoResourceVersion(self.informer.kind().gvk().to_string()));
        }
        Ok(version)
    }

    fn unreadable(&self, source: serde_json::Error) -> Error {
        Error::Decode { what: format!("the watch of {}", self.informer.kind().gvk()), source }
    }

    /// An object as it will be stored. One that is no Kubernetes object is logged and left out.
    fn entry(&self, object: &str) -> Option<Arc<Entry>> {
        match self.informer.entry_of(self.part, object) {
            Ok(entry) => Some(entry),
            Err(error) => {
                warn!(kind = %self.informer.kind().gvk(), %error, "failed to decode object; it is left out of the cache");
                None
            }
        }
    }
}

/// The next line; none if there is none in time.
async fn next(lines: &mut Lines, deadline: Instant) -> Result<Option<Bytes>, Error> {
    match tokio::time::timeout_at(deadline, lines.next()).await {
        Ok(line) => line,
        // The server should have ended it itself: whatever stands between us is dead.
        Err(_) => Ok(None),
    }
}

/// Waits for an answer, but not for ever: nobody else would notice that it never comes.
async fn answer<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(ANSWER, asked).await.unwrap_or(Err(Error::Silent(ANSWER)))
}

fn failed(object: &str) -> Error {
    match serde_json::from_str(object) {
        Ok(status) => Error::Status(Box::new(status)),
        Err(source) => Error::Decode { what: "an error in a watch".to_owned(), source },
    }
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

/// How often it failed in a row.
#[derive(Default)]
struct Failures {
    count: u32,
}

impl Failures {
    fn next(&mut self, rng: &mut fastrand::Rng) -> Duration {
        self.count = self.count.saturating_add(1);
        let pause = BACKOFF_FIRST.saturating_mul(1 << (self.count - 1).min(8)).min(BACKOFF_MOST);
        pause.mul_f64(1.0 + rng.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_however_it_is_written() {
        for (line, what, object) in [
            (r#"{"type":"ADDED","object":{"a":{"type":"x"}}}"#, "ADDED", r#"{"a":{"type":"x"}}"#),
            (r#"{"type":"ADDED", "object": {"a":1} }"#, "ADDED", r#"{"a":1}"#),
            (r#"{"object":{"a":1},"type":"DELETED"}"#, "DELETED", r#"{"a":1}"#),
            (r#"{"type":"ADDED","object":{}}"#, "ADDED", "{}"),
        ] {
            let read = Line::read(line).unwrap();
            assert_eq!((read.what, read.object), (what, object), "{line}");
        }
        for wrong in
            ["", "{}", r#"{"type":"ADDED","object":{"#, r#"{"type":"ADDED"}"#, r#"{"type":"A","object":}"#]
        {
            assert!(Line::read(wrong).is_err(), "{wrong}");
        }
    }
}
