//! The state of the web UI, behind one lock.
//!
//! Displayed data is published on the [`Board`]. The state keeps what only the server needs: the last two
//! versions of each object, and the objects of each kind. All of it is bounded.

use std::collections::{BTreeSet, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::Timestamp;
use kubewright_page::model::Limits;
use kubewright_page::model::board::{Board, Topic};
use kubewright_page::model::history::History;
use kubewright_page::model::logs::Logs;
use kubewright_page::model::objects::{KindName, object_entry};
use kubewright_page::model::records::Record;
use kubewright_page::model::redact;
use kubewright_page::model::reviews::{Review, Reviews};
use kubewright_page::model::status::Status;
use kubewright_page::model::why::{self, Why};
use kubewright_page::model::work::Work;
use kubewright_page::shared::Published;
use serde::Serialize;
use serde_json::Value;

use super::build::Build;
use super::detail::{self, Detail};

/// Number of events to keep.
const EVENTS: usize = 2_000;
/// Number of writes in the detail of an object.
const WRITES: usize = 20;

/// The state with change notifications.
pub(super) type Shared = kubewright_page::shared::Shared<State>;

/// An empty state.
pub(super) fn shared() -> Shared {
    let shared = Shared::new(State::default(), format!("{:x}", now()));
    shared.update(State::publish_status);
    shared
}

impl Published for State {
    fn board(&self) -> &Board {
        &self.board
    }
}

/// Milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[derive(Default)]
pub(super) struct State {
    pub(super) board: Board,
    pub(super) work: Work,
    pub(super) logs: Logs,
    pub(super) build: Build,
    reviews: Reviews,
    history: History,
    pub(super) status: Status,
    objects: HashMap<String, Tracked>,
    /// The last time of each event in seconds, and the reverse index.
    event_times: HashMap<String, String>,
    event_order: BTreeSet<(String, String)>,
}

/// How an object was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Listed,
    /// It was created or changed just now.
    Watched,
}

/// A tracked object.
struct Tracked {
    kind: String,
    /// As JSON text, which needs a tenth of the memory of a parsed object.
    current: Box<str>,
    /// The version before the last visible change, without `managedFields`.
    previous: Option<Box<str>>,
    changed: u64,
}

#[derive(Serialize)]
struct EventEntry<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    sort: &'a str,
    reason: &'a str,
    message: &'a str,
    count: i64,
    at: &'a str,
    /// Orders events within the same second.
    version: u64,
    source: &'a str,
    object: EventObject<'a>,
}

#[derive(Serialize)]
struct EventObject<'a> {
    id: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl State {
    /// Publishes the status.
    pub(super) fn publish_status(&mut self) {
        self.board.put(Topic::Status, "", &self.status);
    }

    /// Handles a journal record.
    pub(super) fn record(&mut self, connection: u64, record: Record) {
        match record {
            Record::Admission(it) => self.reviews.add(&Review::Admission(*it), &mut self.board),
            Record::Conversion(it) => self.reviews.add(&Review::Conversion(it), &mut self.board),
            record => self.work.record(connection, record, &mut self.board),
        }
    }

    /// Explains a reconcile.
    pub(super) fn why(&self, id: &str) -> Option<Why> {
        why::why(id, &self.work, &self.history)
    }

    /// Adds or updates an object, which a watch or a list returned.
    pub(super) fn see(&mut self, kind: &KindName, mut object: Value, at: u64, seen: Seen) {
        let Some(id) = text(&object, "/metadata/uid").map(str::to_owned) else { return };
        redact::redact(&kind.group, &kind.kind, &mut object);
        let old = self.objects.remove(&id);
        if old.is_none() && self.objects.len() >= Limits::DEV.objects {
            self.status.full = true;
            self.publish_status();
            return;
        }
        let current = object.to_string().into_boxed_str();
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        let (previous, changed) = match old {
            None => {
                match seen {
                    Seen::Watched => self.history.wrote(None, &object, at),
                    Seen::Listed => self.history.found(&object, created(&object)),
                }
                (None, at)
            }
            Some(old) => match parsed(&old.current).filter(|before| detail::differs(before, &object)) {
                None => (old.previous, old.changed),
                Some(mut before) => {
                    self.history.wrote(Some(&before), &object, at);
                    detail::without_managed_fields(&mut before);
                    (Some(before.to_string().into_boxed_str()), at)
                }
            },
        };
        self.board.put(Topic::Object, &id, &object_entry(kind, &id, &object, changed));
        self.objects.insert(id, Tracked { kind: kind.key.clone(), current, previous, changed });
    }

    /// Removes an object.
    pub(super) fn gone(&mut self, id: &str) {
        if let Some(object) = self.objects.remove(id).and_then(|it| serde_json::from_str(&it.current).ok()) {
            self.history.deleted(&object, now());
        }
        self.board.remove(Topic::Object, id);
    }

    /// Completes a list: removes other objects of the kind.
    pub(super) fn listed(&mut self, kind: &str, present: &BTreeSet<String>) {
        let gone = |(id, object): (&String, &Tracked)| {
            (object.kind == kind && !present.contains(id)).then(|| id.clone())
        };
        for id in self.objects.iter().filter_map(gone).collect::<Vec<_>>() {
            self.gone(&id);
        }
    }

    /// Removes the objects of kinds that are no longer served.
    pub(super) fn keep_kinds(&mut self, is_served: impl Fn(&str) -> bool) {
        let gone = |(id, object): (&String, &Tracked)| (!is_served(&object.kind)).then(|| id.clone());
        for id in self.objects.iter().filter_map(gone).collect::<Vec<_>>() {
            self.gone(&id);
        }
        let status = &mut self.status;
        for kinds in [&mut status.listing, &mut status.forbidden] {
            kinds.retain(|kind| is_served(kind));
        }
        for kinds in [&mut status.lost, &mut status.unreadable] {
            kinds.retain(|kind, _| is_served(kind));
        }
    }

    /// Adds or updates an event.
    pub(super) fn see_event(&mut self, event: &Value) {
        let Some(id) = text(event, "/metadata/uid") else { return };
        let entry = event_entry(id, event);
        // Only some times have fractions of a second; truncated to seconds they sort as text.
        let second = entry.at.get(..19).unwrap_or(entry.at).to_owned();
        self.board.put(Topic::Event, id, &entry);
        if let Some(old) = self.event_times.insert(id.to_owned(), second.clone()) {
            self.event_order.remove(&(old, id.to_owned()));
        }
        self.event_order.insert((second, id.to_owned()));
        while self.event_order.len() > EVENTS {
            let Some((_, oldest)) = self.event_order.pop_first() else { break };
            self.event_times.remove(&oldest);
            self.board.remove(Topic::Event, &oldest);
        }
    }

    /// Removes an event.
    pub(super) fn gone_event(&mut self, id: &str) {
        if let Some(second) = self.event_times.remove(id) {
            self.event_order.remove(&(second, id.to_owned()));
        }
        self.board.remove(Topic::Event, id);
    }

    /// Completes a list of events: removes others.
    pub(super) fn listed_events(&mut self, present: &BTreeSet<String>) {
        for id in self.event_times.keys().filter(|id| !present.contains(*id)).cloned().collect::<Vec<_>>() {
            self.gone_event(&id);
        }
    }

    /// The full object.
    pub(super) fn detail(&self, id: &str) -> Option<Detail> {
        let object = self.objects.get(id)?;
        let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
        let previous = object.previous.as_deref().and_then(parse);
        let mut detail = detail::detail(id, parse(&object.current)?, previous.as_ref(), object.changed);
        detail.writes =
            self.history.newest().filter(|write| write.object == id).take(WRITES).cloned().collect();
        Some(detail)
    }
}

/// The creation time of an object, in milliseconds since 1970.
fn created(object: &Value) -> u64 {
    let created = text(object, "/metadata/creationTimestamp").and_then(|at| at.parse::<Timestamp>().ok());
    created.and_then(|at| u64::try_from(at.as_millisecond()).ok()).unwrap_or_default()
}

fn event_entry<'a>(id: &'a str, event: &'a Value) -> EventEntry<'a> {
    let first = |paths: &[&str]| {
        paths.iter().find_map(|path| text(event, path).filter(|text| !text.is_empty())).unwrap_or_default()
    };
    let number = |path: &str| event.pointer(path).and_then(Value::as_i64);
    EventEntry {
        id,
        sort: first(&["/type"]),
        reason: first(&["/reason"]),
        message: first(&["/message", "/note"]),
        count: number("/series/count").or_else(|| number("/count")).unwrap_or(1).max(1),
        at: first(&[
            "/series/lastObservedTime",
            "/lastTimestamp",
            "/eventTime",
            "/firstTimestamp",
            "/metadata/creationTimestamp",
        ]),
        version: first(&["/metadata/resourceVersion"]).parse().unwrap_or_default(),
        source: first(&["/reportingComponent", "/source/component"]),
        object: EventObject {
            id: first(&["/involvedObject/uid"]),
            kind: first(&["/involvedObject/kind"]),
            namespace: first(&["/involvedObject/namespace"]),
            name: first(&["/involvedObject/name"]),
        },
    }
}

fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(group: &str, name: &str) -> KindName {
        let key = format!("{}s.{group}", name.to_lowercase());
        KindName { key, group: group.to_owned(), version: "v1".to_owned(), kind: name.to_owned() }
    }

    fn entries(state: &State, topic: &str) -> Vec<Value> {
        let batch = state.board.after(0, usize::MAX).expect("there is something");
        let batch: Value = serde_json::from_str(&batch.text).expect("it is JSON");
        let put = batch["put"].as_array().expect("a list");
        put.iter().filter(|put| put[0] == topic).map(|put| put[1].clone()).collect()
    }

    #[test]
    fn the_version_before_the_last_visible_change_is_kept() {
        let mut state = State::default();
        let map = kind("", "ConfigMap");
        let version = |number: &str, page: &str| json!({ "kind": "ConfigMap", "metadata": { "uid": "u", "name": "m", "resourceVersion": number }, "data": { "page": page } });
        state.see(&map, version("1", "one"), 10, Seen::Watched);
        assert!(!state.detail("u").expect("it is there").compared);
        state.see(&map, version("2", "two"), 20, Seen::Watched);
        state.see(&map, version("3", "two"), 30, Seen::Watched);
        let detail = state.detail("u").expect("it is there");
        assert!(detail.lines.contains(&(-1, "  page: one".to_owned())));
        assert!(detail.lines.contains(&(1, "  page: two".to_owned())));
        assert_eq!(detail.changed, 20, "a write that changes nothing is no change");
        state.gone("u");
        assert!(state.detail("u").is_none());
    }

    #[test]
    fn a_secret_is_redacted_before_it_is_kept() {
        let mut state = State::default();
        let secret =
            json!({ "metadata": { "uid": "u", "name": "s" }, "data": { "password": "aHVudGVyMg==" } });
        state.see(&kind("", "Secret"), secret, 1, Seen::Watched);
        let detail = serde_json::to_string(&state.detail("u").expect("it is there")).expect("it is JSON");
        assert!(detail.contains("password: (redacted)") && !detail.contains("aHVudGVyMg"), "{detail}");
        assert!(!state.objects["u"].current.contains("aHVudGVyMg"));
    }

    #[test]
    fn a_list_removes_deleted_objects_of_its_kind() {
        let mut state = State::default();
        for (sort, id) in [("ConfigMap", "a"), ("ConfigMap", "b"), ("Pod", "c")] {
            state.see(&kind("", sort), json!({ "metadata": { "uid": id, "name": id } }), 1, Seen::Watched);
        }
        state.listed("configmaps.", &BTreeSet::from(["a".to_owned()]));
        let left: Vec<_> = entries(&state, "object").iter().map(|entry| entry["id"].clone()).collect();
        assert_eq!(left, ["a", "c"]);
    }

    #[test]
    fn only_the_newest_events_are_kept() {
        let mut state = State::default();
        let event = |id: usize| {
            let at = format!("2026-01-01T{:02}:{:02}:{:02}Z", id / 3600, id / 60 % 60, id % 60);
            json!({ "metadata": { "uid": id.to_string() }, "reason": "R", "lastTimestamp": at })
        };
        for id in (0..EVENTS + 2).rev() {
            state.see_event(&event(id));
        }
        let kept = entries(&state, "event");
        assert_eq!(kept.len(), EVENTS);
        assert!(kept.iter().all(|event| event["id"] != "0" && event["id"] != "1"));
        state.gone_event("2");
        assert_eq!(entries(&state, "event").len(), EVENTS - 1);
    }

    #[test]
    fn events_of_both_api_groups_are_shown() {
        let object = json!({ "kind": "Pod", "namespace": "default", "name": "web", "uid": "p" });
        let old = json!({
            "metadata": { "uid": "1" }, "type": "Warning", "reason": "BackOff", "message": "no", "count": 4,
            "lastTimestamp": "2026-01-01T00:00:01Z", "source": { "component": "kubelet" }, "involvedObject": object,
        });
        let new = json!({
            "metadata": { "uid": "2" }, "type": "Normal", "reason": "Made", "message": "yes", "lastTimestamp": null,
            "eventTime": "2026-01-01T00:00:00.5Z", "reportingComponent": "view", "involvedObject": object,
            "series": { "count": 7, "lastObservedTime": "2026-01-01T00:00:02.5Z" },
        });
        let mut state = State::default();
        state.see_event(&old);
        state.see_event(&new);
        let shown = |entry: &Value| format!("{} {} {}", entry["at"], entry["count"], entry["source"]);
        let shown: Vec<_> = entries(&state, "event").iter().map(shown).collect();
        assert_eq!(shown, [r#""2026-01-01T00:00:01Z" 4 "kubelet""#, r#""2026-01-01T00:00:02.5Z" 7 "view""#]);
    }

    #[test]
    fn the_object_limit_is_reported() {
        let mut state = State::default();
        let map = kind("", "ConfigMap");
        for id in 0..=Limits::DEV.objects {
            state.see(&map, json!({ "metadata": { "uid": id.to_string(), "name": "m" } }), 1, Seen::Watched);
        }
        assert_eq!(state.objects.len(), Limits::DEV.objects);
        assert_eq!(entries(&state, "status")[0]["full"], json!(true));
    }
}
