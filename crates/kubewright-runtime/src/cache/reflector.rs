//! List and watch: how an informer learns what is there, and then what happens.
//!
//! The list is streamed where the server can do that, and read in pages where it cannot. A watch that ends is
//! opened again where it stood; only when the server has forgotten that moment is everything listed again, and then
//! the difference is what followers are told. Failures back off, and never end a reflector. Nothing is waited for
//! without a limit: a server that says nothing has failed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::entry::Entry;
use super::informer::{Informer, Part};
use crate::client::Error;
use crate::error::Chain;
use crate::query::Query;
use crate::wire::{self, Lines};

/// The page of a list; the same as kubectl's.
const PAGE: u32 = 500;
/// A watch is asked to end after one to two times this, so that not all of them end at once.
const WATCH: Duration = Duration::from_mins(5);
/// A watch that has not ended this long after it should have is dead.
const OVERDUE: Duration = Duration::from_secs(15);
/// How long an answer may take to begin, and a list to go on: as long as a server gives itself for a request.
const ANSWER: Duration = Duration::from_mins(1);
/// A watch that ends sooner than this is a failure even if it ends well.
const SHORT: Duration = Duration::from_secs(1);
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

/// Follows one part of an informer.
pub(crate) struct Reflector<'a> {
    informer: &'a Informer,
    part: &'a Part,
    client: &'a kube::Client,
    rng: fastrand::Rng,
    /// Whether the server can stream lists, as far as we know.
    streams: bool,
    /// Since when the watch is open.
    opened: Option<Instant>,
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
    #[serde(default)]
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
        Self { informer, part, client, rng, streams: true, opened: None }
    }

    /// Lists and watches for ever.
    pub(crate) async fn run(mut self) {
        let mut failures = Failures::default();
        // Where the next watch begins; empty when everything must be listed first.
        let mut from = String::new();
        loop {
            self.opened = None;
            let step = if from.is_empty() { self.list(&mut from).await } else { self.watch(&mut from).await };
            let open = self.opened.map(|opened| opened.elapsed());
            if open.is_some_and(|open| open >= STEADY) {
                failures = Failures::default();
            }
            let short = open.is_some_and(|open| open < SHORT);
            let Err(error) = step else {
                // One that ends as soon as it begins would be asked for without a pause.
                if short {
                    tokio::time::sleep(failures.next(&mut self.rng)).await;
                }
                continue;
            };
            // A kind that is not served any more may come back with other objects.
            if error.is_gone() || error.is_not_found() {
                from.clear();
            }
            let pause = failures.next(&mut self.rng).max(error.retry_after().unwrap_or_default());
            // What broke after it had worked is taken up at once, the first time.
            if failures.count == 1 && (error.is_gone() || open.is_some_and(|open| open >= SHORT)) {
                debug!(kind = ?self.informer.kind(), namespace = self.part.namespace, error = %Chain(&error), "again");
                continue;
            }
            warn!(
                kind = ?self.informer.kind(),
                namespace = self.part.namespace,
                error = %Chain(&error),
                again_in = ?pause,
                "{}",
                if error.is_not_found() { "not served: is the CRD installed?" } else { "cannot follow" },
            );
            tokio::time::sleep(pause).await;
        }
    }

    async fn list(&mut self, from: &mut String) -> Result<(), Error> {
        if self.streams {
            match self.stream(from).await {
                // Servers that cannot stream say so in one of these ways.
                Err(error) if error.is_invalid() || error.is_bad_request() => {}
                // Or they do not know the words, and never say where the list ends.
                Ok(()) if from.is_empty() => {}
                done => return done,
            }
            debug!(kind = ?self.informer.kind(), "the server streams no lists: reading pages");
            self.streams = false;
        }
        self.opened = None;
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
                self.informer.replace(self.part, entries, number(&page.metadata.resource_version));
                *from = page.metadata.resource_version;
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
                        self.informer.replace(self.part, entries, number(&bookmark.resource_version));
                        *from = bookmark.resource_version;
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
        self.opened = Some(Instant::now());
        Ok((Lines::new(response.into_body()), deadline))
    }

    /// Takes event by event until the watch ends.
    async fn follow(&self, mut lines: Lines, deadline: Instant, from: &mut String) -> Result<(), Error> {
        while let Some(line) = next(&mut lines, deadline).await? {
            let line = self.line(&line)?;
            match line.what {
                "BOOKMARK" => {
                    *from = self.bookmark(line.object)?.resource_version;
                    self.part.reached(number(from));
                }
                "ADDED" | "MODIFIED" | "DELETED" => {
                    let Some(entry) = self.entry(line.object) else { continue };
                    if entry.version() != 0 {
                        *from = entry.version().to_string();
                    }
                    match line.what {
                        "DELETED" => self.informer.remove(self.part, entry),
                        _ => self.informer.put(self.part, entry),
                    }
                }
                _ => return Err(failed(line.object)),
            }
        }
        Ok(())
    }

    fn query(&self) -> Query {
        let Selection { labels, fields, .. } = &self.informer.settings().selection;
        let mut query = Query::new(self.informer.kind().path(self.part.namespace.as_deref()));
        for (name, value) in [("labelSelector", labels), ("fieldSelector", fields)] {
            if !value.is_empty() {
                query.push(name, value);
            }
        }
        query
    }

    fn request(&self, query: &Query, metadata: &'static str) -> Result<Request<Vec<u8>>, Error> {
        let accept =
            if self.informer.settings().selection.metadata_only { metadata } else { "application/json" };
        Request::get(query.as_str()).header(header::ACCEPT, accept).body(Vec::new()).map_err(Error::Build)
    }

    fn line<'l>(&self, line: &'l Bytes) -> Result<Line<'l>, Error> {
        wire::text(line).and_then(Line::read).map_err(|source| self.unreadable(source))
    }

    fn bookmark(&self, object: &str) -> Result<BookmarkMeta, Error> {
        let bookmark = serde_json::from_str::<Bookmark>(object).map_err(|source| self.unreadable(source))?;
        Ok(bookmark.metadata)
    }

    fn unreadable(&self, source: serde_json::Error) -> Error {
        Error::Decode { what: format!("the watch of {}", self.informer.kind().gvk()), source }
    }

    /// An object as it will be kept. One that cannot be read is left out, and said.
    fn entry(&self, object: &str) -> Option<Arc<Entry>> {
        let settings = self.informer.settings();
        let read = match &settings.transform {
            None => Entry::read(object, settings.keep_managed_fields),
            Some(transform) => {
                transform(object).and_then(|changed| Entry::read(&changed, settings.keep_managed_fields))
            }
        };
        match read {
            Ok(entry) => {
                Some(self.informer.known(entry.key(), entry.version()).unwrap_or_else(|| Arc::new(entry)))
            }
            Err(error) => {
                warn!(kind = ?self.informer.kind(), %error, "an object cannot be read, and is left out");
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
