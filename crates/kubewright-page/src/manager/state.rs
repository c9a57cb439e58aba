//! The state of a manager's page: records of the journal, log lines, and the objects of the informers.
//!
//! Of an object only its entry in the tree is kept. Its conditions are read from the informer when they are requested.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use kubewright_runtime::cache::{Change, Entry, Informer, Occasion};
use kubewright_runtime::internal::journal;
use kubewright_runtime::{Key, Kind};
use serde::Serialize;
use serde_json::Value;

use super::writers::Writers;
use crate::model::Limits;
use crate::model::board::{Batch, Board, Topic};
use crate::model::history::{History, Write};
use crate::model::logs::Logs;
use crate::model::objects::{KindName, object_entry};
use crate::model::records::{Hello, Record};
use crate::model::reviews::{Review, Reviews};
use crate::model::status::Status;
use crate::model::why::{self, Why};
use crate::model::work::Work;
use crate::shared::Published;

/// The number of the only operator, as the journal of `kubewright dev` numbers its connections.
const OPERATOR: u64 = 1;
/// Number of writes in the detail of an object.
const WRITES: usize = 20;

pub(super) struct State {
    limits: Limits,
    board: Board,
    work: Work,
    logs: Logs,
    reviews: Reviews,
    history: History,
    status: Status,
    sources: HashMap<usize, Source>,
    last_source: usize,
    objects: HashMap<String, Object>,
}

/// An informer.
struct Source {
    informer: Arc<Informer>,
    name: KindName,
}

/// An object of the tree.
struct Object {
    source: usize,
    key: Key,
    changed: u64,
}

/// What the pane shows of an object. The fields are those of `kubewright dev`; those with content are empty.
#[derive(Debug, Serialize)]
pub(super) struct Detail {
    id: String,
    lines: Vec<(i8, String)>,
    managed: String,
    managers: usize,
    compared: bool,
    changed: u64,
    conditions: Value,
    writes: Vec<Write>,
}

impl Published for State {
    fn board(&self) -> &Board {
        &self.board
    }
}

impl State {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            board: Board::default(),
            work: Work::new(limits),
            logs: Logs::new(limits),
            reviews: Reviews::new(limits),
            history: History::new(limits),
            status: Status { kubectl: "kubectl".to_owned(), ..Status::default() },
            sources: HashMap::new(),
            last_source: 0,
            objects: HashMap::new(),
        }
    }

    /// Publishes the status.
    pub(super) fn tell_status(&mut self) {
        self.board.put(Topic::Status, "", &self.status);
    }

    /// The manager started.
    pub(super) fn started(&mut self, operator: String, controllers: Vec<String>, at: u64) {
        let at =
            i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or_default();
        let hello = Hello {
            at: format!("{at:.6}"),
            operator,
            pid: std::process::id(),
            controllers,
            token: String::new(),
        };
        self.work.record(OPERATOR, Record::Hello(hello), &mut self.board);
    }

    /// The entries after a position; see [`Board::after`].
    pub(super) fn after(&self, position: u64, limit: usize) -> Option<Batch> {
        self.board.after(position, limit)
    }

    /// Handles a journal record.
    pub(super) fn record(&mut self, record: &journal::Record) {
        // Both crates have the same version, so every record can be read.
        let Ok(record) = serde_json::to_value(record).and_then(serde_json::from_value) else { return };
        match record {
            Record::Admission(mut review) => {
                // The values that the user sent.
                for operation in review.patch.iter_mut().filter_map(Value::as_object_mut) {
                    operation.remove("before");
                }
                self.reviews.add(&Review::Admission(*review), &mut self.board);
            }
            Record::Conversion(review) => self.reviews.add(&Review::Conversion(review), &mut self.board),
            record => self.work.record(OPERATOR, record, &mut self.board),
        }
    }

    /// Shows a log line.
    pub(super) fn log(&mut self, line: &str, at: u64) {
        self.logs.add(line, at, &mut self.board);
    }

    /// Explains a reconcile.
    pub(super) fn why(&self, id: &str) -> Option<Why> {
        why::why(id, &self.work, &self.history)
    }

    /// Adds an informer, and returns its number.
    pub(super) fn add_source(&mut self, informer: &Arc<Informer>) -> usize {
        let gvk = informer.kind().gvk();
        let name = KindName {
            key: format!("{}.{}", informer.kind().plural(), gvk.group),
            group: gvk.group.clone(),
            version: gvk.version.clone(),
            kind: gvk.kind.clone(),
        };
        self.last_source += 1;
        self.sources.insert(self.last_source, Source { informer: informer.clone(), name });
        self.last_source
    }

    /// Removes an informer and its objects.
    pub(super) fn remove_source(&mut self, source: usize) {
        self.sources.remove(&source);
        let gone = self.objects.extract_if(|_, object| object.source == source);
        for (id, _) in gone.collect::<Vec<_>>() {
            self.board.remove(Topic::Object, &id);
        }
    }

    /// Publishes which kinds are cached, and which are not listed yet.
    pub(super) fn tell_kinds(&mut self, informers: &[Arc<Informer>]) {
        let unlisted = informers.iter().filter(|informer| !informer.is_synced());
        self.status.listing = unlisted.map(|informer| informer.kind().gvk().to_string()).collect();
        self.status.discovered = true;
        self.status.kinds = informers.len();
        self.tell_status();
    }

    /// Handles a change of an informer.
    pub(super) fn see(&mut self, source: usize, change: &Change, writers: &Writers, at: u64) {
        if change.occasion == Occasion::Resync {
            return;
        }
        let Some(Source { informer, name }) = self.sources.get(&source) else { return };
        let kind = informer.kind();
        let old = change.old.as_deref().and_then(|entry| read(kind, entry));
        let Some(entry) = change.new.as_deref() else {
            let last = old.or_else(|| read(kind, change.latest()));
            return last.map_or((), |last| self.gone(source, &last, at));
        };
        let Some(mut object) = read(kind, entry) else { return };
        let Some(id) = uid(&object).map(str::to_owned) else { return };
        let managed = writers.take(kind, entry);
        let known = self.objects.get(&id);
        // Another informer of the same kind, with another selection, shows it.
        if known.is_some_and(|known| known.source != source) {
            return;
        }
        if known.is_none() && self.objects.len() >= self.limits.objects {
            self.status.full = true;
            return self.tell_status();
        }
        let changed = if change.occasion == Occasion::Initial { created(&object) } else { at };
        self.board.put(Topic::Object, &id, &object_entry(name, &id, &object, changed));
        self.objects.insert(id, Object { source, key: entry.key().clone(), changed });
        if let (Some(managed), Some(metadata)) = (managed, object["metadata"].as_object_mut()) {
            metadata.insert("managedFields".to_owned(), managed);
        }
        match change.occasion {
            Occasion::Initial => self.history.found(&object, changed),
            _ => self.history.wrote(old.as_ref(), &object, at),
        }
    }

    fn gone(&mut self, source: usize, last: &Value, at: u64) {
        let Some(id) = uid(last) else { return };
        if self.objects.get(id).is_some_and(|object| object.source == source) {
            self.objects.remove(id);
            self.board.remove(Topic::Object, id);
            self.history.deleted(last, at);
        }
    }

    /// The conditions and the last writes of an object.
    pub(super) fn detail(&self, id: &str) -> Option<Detail> {
        let object = self.objects.get(id)?;
        let informer = &self.sources.get(&object.source)?.informer;
        let conditions = informer
            .entry(&object.key)
            .and_then(|entry| read(informer.kind(), &entry))
            .and_then(|it| it.pointer("/status/conditions").cloned());
        Some(Detail {
            id: id.to_owned(),
            lines: Vec::new(),
            managed: String::new(),
            managers: 0,
            compared: false,
            changed: object.changed,
            conditions: conditions.filter(Value::is_array).unwrap_or_else(|| Value::Array(Vec::new())),
            writes: self.history.newest().filter(|write| write.object == id).take(WRITES).cloned().collect(),
        })
    }
}

/// The object of an entry, with its `apiVersion` and `kind`.
fn read(kind: &Kind, entry: &Entry) -> Option<Value> {
    let mut object: Value = serde_json::from_slice(entry.json()).ok()?;
    let fields = object.as_object_mut()?;
    fields.insert("apiVersion".to_owned(), kind.gvk().api_version().into());
    fields.insert("kind".to_owned(), kind.gvk().kind.clone().into());
    Some(object)
}

fn uid(object: &Value) -> Option<&str> {
    object.pointer("/metadata/uid")?.as_str()
}

/// The creation time of an object, in milliseconds since 1970.
fn created(object: &Value) -> u64 {
    let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    let created = created.and_then(|at| at.parse::<Timestamp>().ok());
    created.and_then(|at| u64::try_from(at.as_millisecond()).ok()).unwrap_or_default()
}
