//! List and watch: fills an informer and keeps it up to date.
//!
//! The list is streamed if the server supports it, and read in pages otherwise. A watch that ends is reopened from its
//! last resourceVersion. Only if that version is too old, the reflector lists again and followers get the difference.
//! Failures back off and never end a reflector. Every wait has a timeout: a server that does not respond counts as
//! failed.

use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, header};
use bytes::Bytes;
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
use crate::http::{self, Lines};
use crate::query::{self, Query};
use crate::{Key, LabelSelector};

/// The page size of a list; the same as kubectl's.
const PAGE: u32 = 500;
/// Watches request a timeout of one to two times this, so that they do not all end at once.
const WATCH: Duration = Duration::from_mins(5);
/// A watch that is still open this long after its requested timeout is dead.
const OVERDUE: Duration = Duration::from_secs(15);
/// The timeout for a response to begin and for each part of a list: the server's own request timeout.
const ANSWER: Duration = Duration::from_mins(1);
/// The timeout of the GET that checks whether an object still exists.
const LOOKUP: Duration = Duration::from_secs(5);
/// At most this many of these GETs per second, so that a mass deletion does not delay the watch.
const LOOKUPS: u32 = 10;
/// If the server cannot stream lists of a kind, read pages for this long. Then try again: the server may have been
/// upgraded.
const PAGED: Duration = Duration::from_mins(30);
const BACKOFF_FIRST: Duration = Duration::from_millis(800);
const BACKOFF_MOST: Duration = Duration::from_secs(30);
/// After a watch was open for this long, the next failure counts as the first.
const STEADY: Duration = Duration::from_secs(30);

/// Which objects of a kind are watched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Selection {
    pub(crate) labels: String,
    pub(crate) fields: String,
    /// Request and store only metadata.
    pub(crate) metadata_only: bool,
}

impl Selection {
    /// Whether all objects are selected.
    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

/// Rate limit of the GETs of one watch.
#[derive(Default)]
struct Lookups {
    second: Option<Instant>,
    used: u32,
}

impl Lookups {
    /// Whether a GET is allowed now.
    fn take(&mut self) -> bool {
        if self.second.is_none_or(|second| second.elapsed() >= Duration::from_secs(1)) {
            *self = Self { second: Some(Instant::now()), used: 0 };
        }
        self.used += 1;
        self.used <= LOOKUPS
    }
}

/// Lists and watches for one part of an informer.
pub(crate) struct Reflector<'a> {
    informer: &'a Informer,
    part: &'a Part,
    client: &'a kube::Client,
    rng: fastrand::Rng,
    lookups: Lookups,
}

/// How a streamed list ended.
enum Streamed {
    /// The list was complete, and the watch after it has ended.
    Whole,
    /// The server closed the response before the list was complete.
    Ended,
    /// The server sent nothing for [`ANSWER`] before the list was complete.
    Stalled,
}

/// One parsed line of a watch response.
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

        Self::parse_compact(line).map_or_else(
            || serde_json::from_str(line).map(|Any { what, object }| Self { what, object: object.get() }),
            Ok,
        )
    }

    /// Parses a line in the form that all known servers write, without parsing the object: [`Entry::read`] does that.
    fn parse_compact(line: &'a str) -> Option<Self> {
        let (what, rest) = line.strip_prefix(r#"{"type":""#)?.split_once(r#"","object":{"#)?;
        let object = &line[line.len() - rest.len() - 1..line.len() - 1];
        (line.ends_with("}}") && !what.contains('"')).then_some(Self { what, object })
    }
}

/// A bookmark event.
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

    /// Lists and watches until it is cancelled.
    pub(crate) async fn run(mut self) {
        let mut failures = Failures::default();
        // The resourceVersion of the next watch; empty if a list is needed first.
        let mut from = String::new();
        loop {
            let step = if from.is_empty() { self.list(&mut from).await } else { self.watch(&mut from).await };
            let open = self.part.health.ended();
            if open.is_some_and(|open| open >= STEADY) {
                failures = Failures::default();
            }
            let short = open.is_some_and(|open| open < SHORT);
            let Err(error) = step else {
                // Avoid a busy loop if the server closes each watch immediately.
                if short {
                    self.part.health.too_short();
                    tokio::time::sleep(failures.next(&mut self.rng)).await;
                }
                continue;
            };
            self.part.health.failed(&error);
            self.informer.metrics().failed(self.informer.kind().gvk(), &error);
            // If the resource is no longer served, it may come back with other objects.
            if error.is_gone() || error.is_not_found() {
                from.clear();
            }
            let pause = failures.next(&mut self.rng).max(error.retry_after().unwrap_or_default());
            // Retry the first failure after a working watch immediately.
            if failures.count == 1 && (error.is_gone() || open.is_some_and(|open| open >= SHORT)) {
                let kind = self.informer.kind().gvk();
                debug!(%kind, namespace = self.part.namespace(), error = %Chain(&error), "Restarting watch");
                continue;
            }
            warn!(
                kind = %self.informer.kind().gvk(),
                namespace = self.part.namespace(),
                error = %Chain(&error),
                retry_in = ?pause,
                "{}",
                match () {
                    () if error.is_not_found() => "Resource is not served; check that its CRD is installed",
                    () if error.is_forbidden() => "List or watch is forbidden; check the RBAC rules of the operator",
                    () => "Failed to list or watch",
                },
            );
            tokio::time::sleep(pause).await;
        }
    }

    async fn list(&mut self, from: &mut String) -> Result<(), Error> {
        if self.informer.streams() {
            let kind = self.informer.kind().gvk();
            match self.stream(from).await {
                Ok(Streamed::Whole) => return Ok(()),
                // The server knows the parameters but cannot stream.
                Err(error) if error.is_invalid() || error.is_bad_request() => {
                    debug!(%kind, retry_in = ?PAGED, "Server does not support streaming lists; using pagination");
                    self.informer.page_for(PAGED);
                }
                Err(error) => return Err(error),
                // An older server ignores the parameters and never sends the bookmark that ends the list.
                Ok(Streamed::Stalled) => {
                    debug!(
                        %kind,
                        after = ?ANSWER,
                        retry_in = ?PAGED,
                        "Server did not complete the streamed list; using pagination",
                    );
                    self.informer.page_for(PAGED);
                }
                // For example because the server shuts down.
                Ok(Streamed::Ended) => {
                    debug!(%kind, "Server ended the streamed list before it was complete; using pagination once");
                }
            }
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
            let request = self.request(&query, http::METADATA_LIST)?;
            let body = answer(http::send(self.client, request)).await?;
            let page = http::text(&body).and_then(serde_json::from_str::<Page<'_>>);
            let page = page.map_err(|source| self.unreadable(source))?;
            for item in page.items.unwrap_or_default() {
                entries.extend(self.entry(item.get()));
            }
            token = page.metadata.r#continue;
            if token.is_empty() {
                let version = self.known(page.metadata.resource_version)?;
                self.informer.replace(self.part, entries, number(&version));
                self.part.health.received();
                *from = version;
                return Ok(());
            }
        }
    }

    /// Reads the list as the initial events of a watch, and continues with that watch.
    async fn stream(&mut self, from: &mut String) -> Result<Streamed, Error> {
        let mut query = self.query();
        query.push("sendInitialEvents", true);
        query.push("resourceVersionMatch", "NotOlderThan");
        let (mut lines, deadline) = self.open(&mut query).await?;
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        loop {
            let Ok(line) = tokio::time::timeout(ANSWER, lines.next()).await else {
                return Ok(Streamed::Stalled);
            };
            let Some(line) = line? else { return Ok(Streamed::Ended) };
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
                        self.part.health.received();
                        *from = version;
                        self.follow(lines, deadline, from).await?;
                        return Ok(Streamed::Whole);
                    }
                }
                _ => return Err(failed(line.object)),
            }
        }
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
        let request = self.request(query, http::METADATA)?;
        let response = answer(http::open(self.client, request)).await?;
        self.part.health.opened();
        Ok((Lines::new(response.into_body()), deadline))
    }

    /// Processes events until the watch ends.
    async fn follow(&mut self, mut lines: Lines, deadline: Instant, from: &mut String) -> Result<(), Error> {
        while let Some(line) = next(&mut lines, deadline).await? {
            let line = self.line(&line)?;
            match line.what {
                "BOOKMARK" => {
                    *from = self.known(self.bookmark(line.object)?.resource_version)?;
                    self.part.reached(number(from));
                    self.part.health.received();
                }
                "ADDED" | "MODIFIED" | "DELETED" => {
                    self.part.health.received();
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

    /// Why an object left the watch. `object` is as the server sent it: a transform may drop its labels and its uid.
    async fn removal(&mut self, object: &str) -> Removal {
        let selection = &self.part.scope.selection;
        if selection.is_all() {
            return Removal::Deleted;
        }
        let Ok(last) = Entry::read(object, false) else { return Removal::Unknown };
        // kube-apiserver sends the last matching state. If a server sends the new state, its labels answer without a
        // GET.
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
                debug!(%kind, %object, error = %Chain(&error), "Failed to check whether the object was deleted");
                Removal::Unknown
            }
            Err(_) => Removal::Unknown,
        }
    }

    /// Gets the metadata of an object from the server.
    async fn metadata(&self, key: &Key) -> Result<Entry, Error> {
        let mut path = self.informer.kind().path(key.namespace());
        path.push('/');
        query::encode(&mut path, key.name());
        let request = Request::get(path).header(header::ACCEPT, http::METADATA).body(Vec::new());
        let body = http::send(self.client, request.map_err(Error::Build)?).await?;
        let read = http::text(&body).and_then(|text| Entry::read(text, false));
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
        http::text(line).and_then(Line::read).map_err(|source| self.unreadable(source))
    }

    fn bookmark(&self, object: &str) -> Result<BookmarkMeta, Error> {
        let bookmark = serde_json::from_str::<Bookmark>(object).map_err(|source| self.unreadable(source))?;
        Ok(bookmark.metadata)
    }

    /// The resourceVersion to watch from. Fails if it is missing, because the list would be repeated in a busy loop.
    fn known(&self, version: String) -> Result<String, Error> {
        if version.is_empty() {
            return Err(Error::NoResourceVersion(self.informer.kind().gvk().to_string()));
        }
        Ok(version)
    }

    fn unreadable(&self, source: serde_json::Error) -> Error {
        Error::Decode { what: format!("the watch of {}", self.informer.kind().gvk()), source }
    }

    /// Parses an object as it is stored. Logs and skips invalid objects.
    fn entry(&self, object: &str) -> Option<Arc<Entry>> {
        match self.informer.entry_of(self.part, object) {
            Ok(entry) => Some(entry),
            Err(error) => {
                let kind = self.informer.kind().gvk();
                warn!(%kind, object = key_of(object), %error, "Failed to decode object; skipping it");
                None
            }
        }
    }
}

/// The key of an object that cannot be cached, as far as it can be read.
fn key_of(object: &str) -> Option<String> {
    let object: serde_json::Value = serde_json::from_str(object).ok()?;
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str()?;
    Some(metadata["namespace"].as_str().map_or_else(|| name.to_owned(), |it| format!("{it}/{name}")))
}

/// The next line; `None` at the end or at the deadline.
async fn next(lines: &mut Lines, deadline: Instant) -> Result<Option<Bytes>, Error> {
    match tokio::time::timeout_at(deadline, lines.next()).await {
        Ok(line) => line,
        // The server should have closed the watch, so the connection is dead.
        Err(_) => Ok(None),
    }
}

/// Waits for a response with a timeout.
async fn answer<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(ANSWER, asked).await.unwrap_or(Err(Error::Timeout(ANSWER)))
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

/// The number of consecutive failures.
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
    fn a_line_is_parsed_in_any_json_formatting() {
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
