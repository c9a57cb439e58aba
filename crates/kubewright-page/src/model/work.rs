//! The operator's work from its journal: reconciles with causes and calls, and queue depths.
//!
//! Pure: records in, board entries out. The newest [`Limits::reconciles`] are kept. When an operator stops, its
//! running reconciles and queues are closed.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use jiff::Timestamp;
use serde::Serialize;

use super::Limits;
use super::board::{Board, Topic};
use super::records::{Call, Cause, Ended, Hello, Queue, Record, Started};

/// Number of queue depths to keep, for the chart.
const DEPTHS: usize = 60;
/// Maximum number of queues.
const QUEUES: usize = 200;
/// Maximum length of an error text.
const TEXT: usize = 4_000;

#[derive(Default)]
pub struct Work {
    limits: Limits,
    reconciles: HashMap<String, Reconcile>,
    order: VecDeque<String>,
    /// Running reconciles by connection, controller, namespace and name.
    running: HashMap<(u64, String, String, String), String>,
    queues: BTreeMap<String, Depths>,
    operators: BTreeMap<u64, Operator>,
    /// Names of all operators that were connected.
    names: BTreeSet<String>,
    begun: u64,
}

#[derive(Debug, Serialize)]
pub struct Reconcile {
    pub id: String,
    /// Orders reconciles that started at the same time.
    number: u64,
    connection: u64,
    pub controller: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    attempt: u32,
    waited: f64,
    pub at: String,
    /// Its start in milliseconds since 1970.
    #[serde(skip)]
    pub millis: u64,
    pub causes: Vec<Cause>,
    /// Number of causes not kept.
    more_causes: u64,
    pub calls: Vec<Call>,
    /// Number of calls not kept.
    more: usize,
    /// `None` while it runs.
    ms: Option<f64>,
    outcome: Option<String>,
    after: Option<f64>,
    error: Option<String>,
}

impl Reconcile {
    fn about(&self) -> (u64, String, String, String) {
        (self.connection, self.controller.clone(), self.namespace.clone(), self.name.clone())
    }
}

#[derive(Debug, Serialize)]
struct Depths {
    controller: String,
    #[serde(skip)]
    connection: u64,
    depth: u64,
    active: u64,
    history: VecDeque<(String, u64, u64)>,
}

#[derive(Debug, Serialize)]
struct Operator {
    name: String,
    connection: u64,
    pid: u32,
    at: String,
    controllers: Vec<String>,
    connected: bool,
}

impl Work {
    /// Empty, with limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Handles a journal record.
    pub fn record(&mut self, connection: u64, record: Record, board: &mut Board) {
        match record {
            Record::Hello(hello) => self.hello(connection, hello, board),
            Record::Started(started) => self.started(connection, started, board),
            Record::Request(call) => {
                let id = format!("{connection}:{}", call.id);
                let Some(reconcile) = self.reconciles.get_mut(&id) else { return };
                if reconcile.calls.len() < self.limits.calls {
                    reconcile.calls.push(Call {
                        error: call.error.map(shorten),
                        path: shorten(call.path),
                        ..call
                    });
                } else {
                    reconcile.more += 1;
                }
                board.put(Topic::Reconcile, &id, reconcile);
            }
            Record::Ended(ended) => self.ended(connection, ended, board),
            Record::Queue(queue) => self.queue(connection, queue, board),
            Record::Admission(_) | Record::Conversion(_) | Record::Unknown => {}
        }
    }

    /// A reconcile by its ID.
    pub fn reconcile(&self, id: &str) -> Option<&Reconcile> {
        self.reconciles.get(id)
    }

    /// The reconciles, oldest first.
    pub fn oldest(&self) -> impl Iterator<Item = &Reconcile> {
        self.order.iter().filter_map(|id| self.reconciles.get(id))
    }

    /// The reconciles, newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Reconcile> {
        self.order.iter().rev().filter_map(|id| self.reconciles.get(id))
    }

    /// The reconcile of the same key before this one.
    pub fn before(&self, reconcile: &Reconcile) -> Option<&Reconcile> {
        let about = reconcile.about();
        self.newest().find(|other| other.number < reconcile.number && other.about() == about)
    }

    /// Whether a field manager is an operator that was connected.
    pub fn is_operator(&self, manager: &str) -> bool {
        self.names.contains(manager)
    }

    /// Handles a closed journal.
    pub fn closed(&mut self, connection: u64, board: &mut Board) {
        for reconcile in self.reconciles.values_mut() {
            if reconcile.connection == connection && reconcile.outcome.is_none() {
                reconcile.outcome = Some("interrupted".to_owned());
                board.put(Topic::Reconcile, &reconcile.id, reconcile);
            }
        }
        self.running.retain(|(of, ..), _| *of != connection);
        for (controller, depths) in &mut self.queues {
            if depths.connection == connection {
                (depths.depth, depths.active) = (0, 0);
                board.put(Topic::Queue, controller, depths);
            }
        }
        let Some(operator) = self.operators.get_mut(&connection) else { return };
        operator.connected = false;
        board.put(Topic::Operator, &operator.name, operator);
        self.operators.remove(&connection);
    }

    fn hello(&mut self, connection: u64, hello: Hello, board: &mut Board) {
        let Hello { at, operator: name, pid, controllers, token: _ } = hello;
        self.names.insert(name.clone());
        let operator = Operator { name, connection, pid, at, controllers, connected: true };
        board.put(Topic::Operator, &operator.name, &operator);
        self.operators.insert(connection, operator);
    }

    fn started(&mut self, connection: u64, started: Started, board: &mut Board) {
        self.begun += 1;
        let reconcile = Reconcile {
            id: format!("{connection}:{}", started.id),
            number: self.begun,
            connection,
            controller: started.controller,
            kind: started.kind,
            namespace: started.namespace,
            name: started.name,
            attempt: started.attempt,
            waited: started.waited_ms,
            millis: millis(&started.at),
            at: started.at,
            causes: started.causes,
            more_causes: started.more_causes,
            calls: Vec::new(),
            more: 0,
            ms: None,
            outcome: None,
            after: None,
            error: None,
        };
        let id = reconcile.id.clone();
        // A key never runs twice at the same time: the end record of the previous one was lost.
        let lost = self.running.insert(reconcile.about(), id.clone());
        if let Some(lost) = lost.and_then(|lost| self.reconciles.get_mut(&lost)) {
            lost.outcome = Some("unknown".to_owned());
            board.put(Topic::Reconcile, &lost.id, lost);
        }
        board.put(Topic::Reconcile, &id, &reconcile);
        if self.reconciles.insert(id.clone(), reconcile).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > self.limits.reconciles {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(reconcile) = self.reconciles.remove(&oldest) {
                let about = reconcile.about();
                if self.running.get(&about) == Some(&oldest) {
                    self.running.remove(&about);
                }
            }
            board.remove(Topic::Reconcile, &oldest);
        }
    }

    fn ended(&mut self, connection: u64, ended: Ended, board: &mut Board) {
        let id = format!("{connection}:{}", ended.id);
        let Some(reconcile) = self.reconciles.get_mut(&id) else { return };
        self.running.remove(&reconcile.about());
        reconcile.ms = Some(ended.ms);
        reconcile.outcome = Some(ended.outcome);
        reconcile.after = ended.after_s;
        reconcile.error = ended.error.map(shorten);
        board.put(Topic::Reconcile, &id, reconcile);
    }

    fn queue(&mut self, connection: u64, queue: Queue, board: &mut Board) {
        let Queue { at, controller, depth, active } = queue;
        if !self.queues.contains_key(&controller) && self.queues.len() >= QUEUES {
            return;
        }
        let depths = self.queues.entry(controller.clone()).or_insert_with(|| Depths {
            controller: controller.clone(),
            connection,
            depth,
            active,
            history: VecDeque::new(),
        });
        (depths.connection, depths.depth, depths.active) = (connection, depth, active);
        depths.history.push_back((at, depth, active));
        if depths.history.len() > DEPTHS {
            depths.history.pop_front();
        }
        board.put(Topic::Queue, &controller, depths);
    }
}

/// A timestamp of the journal in milliseconds since 1970; 0 if it cannot be read.
fn millis(at: &str) -> u64 {
    at.parse::<Timestamp>().ok().and_then(|at| u64::try_from(at.as_millisecond()).ok()).unwrap_or_default()
}

fn shorten(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn write(work: &mut Work, board: &mut Board, connection: u64, line: &Value) {
        work.record(connection, serde_json::from_value(line.clone()).expect("it is a record"), board);
    }

    fn entries(board: &Board, topic: &str) -> Vec<Value> {
        let batch = board.after(0, usize::MAX).expect("there is something");
        let batch: Value = serde_json::from_str(&batch.text).expect("it is JSON");
        let put = batch["put"].as_array().expect("a list");
        put.iter().filter(|put| put[0] == topic).map(|put| put[1].clone()).collect()
    }

    fn started(id: &str) -> Value {
        json!({
            "type": "started", "at": "2026-01-01T00:00:00.000000Z", "id": id, "controller": "view", "kind": "View",
            "name": "sample", "attempt": 0, "waited_ms": 1.5, "new_field": true,
            "causes": [{ "why": "modified", "kind": "Deployment", "name": "sample", "changed": ["status.readyReplicas"], "more": 0 }],
        })
    }

    #[test]
    fn a_reconcile_has_cause_calls_and_outcome() {
        let (mut work, mut board) = (Work::default(), Board::default());
        write(&mut work, &mut board, 1, &started("r1"));
        assert_eq!(entries(&board, "reconcile")[0]["outcome"], Value::Null);
        let call = json!({ "type": "request", "at": "2026-01-01T00:00:00.001Z", "id": "r1", "method": "PATCH", "path": "/api", "status": 200, "ms": 0.8 });
        write(&mut work, &mut board, 1, &call);
        let ended = json!({ "type": "ended", "at": "2026-01-01T00:00:00.012Z", "id": "r1", "ms": 12.3, "outcome": "error", "error": "no" });
        write(&mut work, &mut board, 1, &ended);
        let all = entries(&board, "reconcile");
        assert_eq!(all.len(), 1);
        assert_eq!(all[0]["causes"][0]["changed"], json!(["status.readyReplicas"]));
        assert_eq!(all[0]["calls"][0]["path"], "/api");
        assert_eq!(
            (&all[0]["outcome"], &all[0]["error"], &all[0]["ms"]),
            (&json!("error"), &json!("no"), &json!(12.3))
        );
    }

    #[test]
    fn a_reconcile_without_an_end_record_is_closed() {
        let (mut work, mut board) = (Work::default(), Board::default());
        write(&mut work, &mut board, 1, &started("r1"));
        write(&mut work, &mut board, 1, &started("r2"));
        let outcome = |id: &str| {
            entries(&board, "reconcile")
                .into_iter()
                .find(|one| one["id"] == id)
                .map(|one| one["outcome"].clone())
        };
        assert_eq!(outcome("1:r1"), Some(json!("unknown")));
        assert_eq!(outcome("1:r2"), Some(Value::Null));
    }

    #[test]
    fn a_key_that_is_not_an_object_has_no_kind() {
        let (mut work, mut board) = (Work::default(), Board::default());
        let line = json!({ "type": "started", "at": "", "id": "r", "controller": "c", "name": "key", "more_causes": 3 });
        write(&mut work, &mut board, 1, &line);
        let entry = &entries(&board, "reconcile")[0];
        assert_eq!((&entry["kind"], &entry["more_causes"]), (&json!(""), &json!(3)));
    }

    #[test]
    fn the_same_id_of_two_operators_is_two_reconciles() {
        let (mut work, mut board) = (Work::default(), Board::default());
        write(&mut work, &mut board, 1, &started("r1"));
        write(&mut work, &mut board, 2, &started("r1"));
        assert_eq!(entries(&board, "reconcile").len(), 2);
    }

    #[test]
    fn a_stopped_operator_leaves_nothing_running() {
        let (mut work, mut board) = (Work::default(), Board::default());
        let hello = json!({ "type": "hello", "at": "2026-01-01T00:00:00Z", "operator": "o", "pid": 7, "controllers": ["view"] });
        write(&mut work, &mut board, 1, &hello);
        write(&mut work, &mut board, 1, &started("r1"));
        let queue = json!({ "type": "queue", "at": "2026-01-01T00:00:00Z", "controller": "view", "depth": 3, "active": 1 });
        write(&mut work, &mut board, 1, &queue);
        assert_eq!(entries(&board, "operator")[0]["connected"], json!(true));
        work.closed(1, &mut board);
        assert_eq!(entries(&board, "reconcile")[0]["outcome"], "interrupted");
        assert_eq!(entries(&board, "queue")[0]["depth"], 0);
        assert_eq!(entries(&board, "operator")[0]["connected"], json!(false));
    }

    #[test]
    fn reconciles_calls_and_depths_are_bounded() {
        let (mut work, mut board) = (Work::default(), Board::default());
        for number in 0..Limits::DEV.reconciles + 5 {
            write(&mut work, &mut board, 1, &started(&number.to_string()));
        }
        assert_eq!(
            (work.reconciles.len(), entries(&board, "reconcile").len()),
            (Limits::DEV.reconciles, Limits::DEV.reconciles)
        );
        let last = (Limits::DEV.reconciles + 4).to_string();
        for number in 0..Limits::DEV.calls + 3 {
            let call = json!({ "type": "request", "at": "", "id": last, "method": "GET", "path": format!("/{number}"), "ms": 0.1 });
            write(&mut work, &mut board, 1, &call);
            let queue =
                json!({ "type": "queue", "at": "", "controller": "view", "depth": number, "active": 1 });
            write(&mut work, &mut board, 1, &queue);
        }
        let reconcile = &work.reconciles[&format!("1:{last}")];
        assert_eq!((reconcile.calls.len(), reconcile.more), (Limits::DEV.calls, 3));
        assert_eq!(work.queues["view"].history.len(), DEPTHS);
    }
}
