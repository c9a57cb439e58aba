//! Watches: cursors into the store's events, encoded as lines of JSON or protobuf frames.
//!
//! A watch has no queue. It waits for the store's revision, reads the events that it has not seen, and sends
//! those that match its filter. A watch that is too slow for the ring gets a 410 error event and ends. Initial events
//! are encoded when the client reads them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::status::ApiError;
use kubewright_sync::ordered_watch;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::encoding::body::Body;
use crate::encoding::negotiate::{negotiate, no_stream};
use crate::encoding::response::{self, Change, Encoding, Format, View};
use crate::endpoints::read::{Filter, ReadPath};
use crate::registry::resource::Resource;
use crate::request::Request;
use crate::request::options::{ListOptions, parse_revision};
use crate::storage::{Event, EventKind, Revision, StoredObject};

/// Maximum number of events to read at a time.
const BATCH: usize = 256;
/// The watch yields to other tasks after it rendered this many objects, or objects or events of this size.
const MAX_RENDERED: usize = 256;
const MAX_RENDERED_BYTES: usize = 64 << 10;
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);
/// Minimum duration of a watch without a timeout. As upstream, a random time of up to the same length is
/// added.
const MIN_SECONDS: u32 = 1800;
/// Maximum timeout: a hundred years, which the clock can represent.
const MAX_SECONDS: u64 = 100 * 365 * 86_400;

impl ReadPath {
    /// Starts a watch.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        request: &Request,
        resource: &Arc<Resource>,
        namespace: &str,
        only: &str,
    ) -> Result<Response<Body>, ApiError> {
        let mut format = negotiate(request, resource)?;
        let mut unencodable = false;
        if matches!(format.view, View::MetadataList(_)) {
            // Upstream fails to encode the first event, and closes the watch.
            format.view = View::Whole;
            unencodable = true;
        }
        let options = ListOptions::read(&request.query, true)?;
        let filter = Filter::new(resource, namespace, &options)?;
        let from =
            if options.resource_version.is_empty() { 0 } else { parse_revision(&options.resource_version)? };
        let seconds = match options.timeout_seconds {
            Some(seconds) if seconds > 0 => u64::try_from(seconds).unwrap_or_default().min(MAX_SECONDS),
            _ => u64::from(MIN_SECONDS + self.ids.below(MIN_SECONDS)),
        };
        let mut watch = Watch {
            reads: self.clone(),
            resource: resource.clone(),
            filter,
            format,
            only: only.to_owned(),
            changes: self.store.changes(),
            cursor: from,
            initial: Vec::new().into_iter(),
            bookmark_after_initial: false,
            since_yield: (0, 0),
            ready: VecDeque::new(),
            ended: false,
            ends: Instant::now() + Duration::from_secs(seconds),
            bookmark: options.bookmarks.then(|| Instant::now() + BOOKMARK_PERIOD),
            columns_sent: false,
        };
        watch.start(&options, from).await?;
        let media = match format.encoding {
            Encoding::Json => "application/json",
            Encoding::Yaml => return Err(no_stream()),
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        };
        let stream = futures_util::stream::unfold(watch, move |mut watch| async move {
            let next = watch.next().await.filter(|_| !unencodable)?;
            Some((next, watch))
        });
        Ok(response::respond(StatusCode::OK, media, Body::stream(stream)))
    }
}

struct Watch {
    reads: Arc<ReadPath>,
    resource: Arc<Resource>,
    filter: Filter,
    format: Format,
    /// The name of a single watched object, or empty.
    only: String,
    changes: ordered_watch::Receiver<u64>,
    /// The revision up to which all events were read.
    cursor: u64,
    /// The existing objects that the client has not read yet.
    initial: std::vec::IntoIter<Arc<StoredObject>>,
    /// Whether a bookmark follows the existing objects.
    bookmark_after_initial: bool,
    /// Number and size of the rendered objects since the task yielded.
    since_yield: (usize, usize),
    /// Encoded events, sent after the initial ones.
    ready: VecDeque<Bytes>,
    ended: bool,
    ends: Instant,
    bookmark: Option<Instant>,
    columns_sent: bool,
}

impl Watch {
    /// Starts with the existing objects, or after a revision.
    async fn start(&mut self, options: &ListOptions, from: u64) -> Result<(), ApiError> {
        let initial = options.send_initial_events.unwrap_or(from == 0);
        if !initial {
            if from == 0 {
                self.cursor = self.reads.store.revision();
            } else if self.reads.store.events(&self.resource.storage, from, 1).is_err() {
                self.expire(from);
            }
            return Ok(());
        }
        if options.send_initial_events == Some(true) {
            self.reads.check_reachable(from)?;
        }
        let listing = self
            .reads
            .store
            .list(&self.resource.storage, &self.filter.prefix, self.reads.store.readable())
            .map_err(|error| ApiError::internal(error.to_string()))?;
        self.cursor = listing.revision;
        // The list is readable, or the log fails while it is stored: then the watch waits.
        let _ = self.reads.store.stored(listing.revision).await;
        self.reads.conversion.convert_versions(&self.resource, &listing.items).await?;
        self.initial = listing.items.into_iter();
        if options.send_initial_events == Some(true) && options.bookmarks {
            self.bookmark_after_initial = true;
        }
        Ok(())
    }

    /// The next chunk of the body; `None` at the end of the watch.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(line) = self.next_initial().await {
            return Some(line);
        }
        // The first event of a Table has the columns, so events are encoded in the order in which they are sent.
        if std::mem::take(&mut self.bookmark_after_initial) {
            return Some(self.bookmark_line(true));
        }
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            self.yield_after_rendering().await;
            self.changes.borrow_and_update();
            // Events before the resource was retired are still sent. Later objects may have a different
            // schema; a new watch returns them.
            let last = self.resource.crd().and_then(|custom| custom.retired());
            let more = self.read(last).await;
            self.ended |= last.is_some_and(|last| last <= self.cursor);
            if more || !self.ready.is_empty() || self.ended {
                continue;
            }
            let wake = self.bookmark.map_or(self.ends, |at| at.min(self.ends));
            tokio::select! {
                biased;
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                }
                () = tokio::time::sleep_until(wake) => {
                    if wake == self.ends {
                        return None;
                    }
                    self.bookmark = Some(Instant::now() + BOOKMARK_PERIOD);
                    let line = self.bookmark_line(false);
                    self.ready.push_back(line);
                }
            }
        }
    }

    /// The event of the next existing object that matches the filter.
    async fn next_initial(&mut self) -> Option<Bytes> {
        loop {
            self.yield_after_rendering().await;
            let Some(version) = self.initial.next() else {
                // The objects are read: release their list.
                self.initial = Vec::new().into_iter();
                return None;
            };
            self.since_yield.0 += 1;
            if self.lets_through(&version) {
                let line = self.line(&version, Change::Added);
                self.since_yield.1 += line.len().max(version.json.len());
                return Some(line);
            }
        }
    }

    /// Whether the watch rendered so much that other tasks should run.
    fn rendered_enough(&self) -> bool {
        self.since_yield.0 >= MAX_RENDERED || self.since_yield.1 >= MAX_RENDERED_BYTES
    }

    async fn yield_after_rendering(&mut self) {
        if self.rendered_enough() {
            self.since_yield = (0, 0);
            tokio::task::yield_now().await;
        }
    }

    /// Reads and renders the next events up to `last`. Returns whether there may be more.
    async fn read(&mut self, last: Option<Revision>) -> bool {
        let revision = self.reads.store.revision();
        match self.reads.store.events(&self.resource.storage, self.cursor, BATCH) {
            Err(_) => {
                self.expire(self.cursor);
                false
            }
            Ok(events) => {
                // An event is sent when it is durable. After a permanent failure of the log, watches end.
                if let Some(last) = events.last()
                    && self.reads.store.stored(last.revision()).await.is_err()
                {
                    self.ended = true;
                    return false;
                }
                if let Err(error) = self.convert(&events).await {
                    self.fail(&error);
                    return false;
                }
                for event in &events {
                    if let Some(last) = last.filter(|last| event.revision() > *last) {
                        self.cursor = self.cursor.max(last);
                        return false;
                    }
                    self.cursor = event.revision();
                    self.since_yield.0 += 1;
                    if let Some((change, line)) = self.judge(event) {
                        let line = line.unwrap_or_else(|| self.line(&event.version, change));
                        self.since_yield.1 += line.len().max(event.version.json.len());
                        self.ready.push_back(line);
                    }
                    if self.rendered_enough() {
                        return true;
                    }
                }
                let more = events.len() == BATCH;
                if !more {
                    self.cursor = self.cursor.max(revision);
                }
                more
            }
        }
    }

    /// Converts the objects of events if the CRD has a conversion webhook.
    async fn convert(&self, events: &[Arc<Event>]) -> Result<(), ApiError> {
        if self.resource.converter().is_none() {
            return Ok(());
        }
        let versions = events.iter().flat_map(|event| event.previous.iter().chain([&event.version]));
        let versions: Vec<Arc<StoredObject>> = versions.cloned().collect();
        self.reads.conversion.convert_versions(&self.resource, &versions).await
    }

    /// The event for a client that sees only objects that match the filter.
    fn judge(&self, event: &Event) -> Option<(Change, Option<Bytes>)> {
        let before = event.previous.as_ref().is_some_and(|previous| self.lets_through(previous));
        let after = event.kind != EventKind::Deleted && self.lets_through(&event.version);
        match (before, after, &event.previous) {
            (false, true, _) => Some((Change::Added, None)),
            (true, true, _) => Some((Change::Modified, None)),
            (true, false, _) if event.kind == EventKind::Deleted => Some((Change::Deleted, None)),
            (true, false, Some(previous)) => {
                // The object no longer matches: send its previous state with the revision of the change.
                let mut object = response::object(&self.resource, previous);
                object["metadata"]["resourceVersion"] = event.revision().to_string().into();
                let shown =
                    response::transformed(&self.resource, self.format.view, &object, self.reads.clock.now());
                let encoding = self.format.encoding;
                Some((Change::Deleted, Some(response::watch_event_of("DELETED", &shown, encoding))))
            }
            _ => None,
        }
    }

    fn lets_through(&self, version: &StoredObject) -> bool {
        (self.only.is_empty() || version.namespace_and_name().1 == self.only)
            && self.filter.matches(&self.resource, version)
    }

    fn line(&mut self, version: &StoredObject, change: Change) -> Bytes {
        if self.format.view == View::Whole {
            return response::watch_event(&self.resource, version, change, self.format.encoding);
        }
        let object = response::object(&self.resource, version);
        self.transformed_line(change.word(), &object)
    }

    fn transformed_line(&mut self, change: &str, object: &Value) -> Bytes {
        let mut shown =
            response::transformed(&self.resource, self.format.view, object, self.reads.clock.now());
        if matches!(self.format.view, View::Table(..)) {
            // Column definitions are sent only once.
            if self.columns_sent {
                shown["columnDefinitions"] = Value::Null;
            }
            self.columns_sent = true;
        }
        response::watch_event_of(change, &shown, self.format.encoding)
    }

    fn bookmark_line(&mut self, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.cursor.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mut object = json!({"metadata": metadata});
        response::set_kind(&mut object, self.resource.gvk().api_version(), self.resource.kind());
        // Fill in the fields of Go's zero value of the kind.
        if let Err(error) = self.resource.strategy.canonicalize(&mut object) {
            tracing::error!(%error, kind = self.resource.kind(), "failed to encode bookmark");
        }
        self.transformed_line("BOOKMARK", &object)
    }

    /// Ends the watch because its revision has expired.
    fn expire(&mut self, from: u64) {
        let oldest = self.reads.store.revision();
        let error = ApiError::expired(format!("too old resource version: {from} ({oldest})"));
        self.fail(&error);
    }

    /// Ends the watch with an error.
    fn fail(&mut self, error: &ApiError) {
        let event = response::watch_event_of("ERROR", &error.to_value(), self.format.encoding);
        self.ready.push_back(event);
        self.ended = true;
    }
}
