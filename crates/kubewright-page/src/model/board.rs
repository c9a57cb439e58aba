//! The published entries, numbered so that any number of browsers can read them at their own pace.
//!
//! Every write gives its entry the next number, and only the last write of an entry is kept. A reader is just
//! a position and needs the entries after it. Slow readers cost nothing, and reconnecting readers resume.
//! Removals are kept as entries up to a limit; a reader from before the limit starts over.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;

/// Removals kept for reconnecting readers.
const REMOVALS: usize = 4_000;

/// Types of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    Status,
    Operator,
    Object,
    Event,
    Reconcile,
    Queue,
    Review,
    Log,
    Build,
}

impl Topic {
    fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Operator => "operator",
            Self::Object => "object",
            Self::Event => "event",
            Self::Reconcile => "reconcile",
            Self::Queue => "queue",
            Self::Review => "review",
            Self::Log => "log",
            Self::Build => "build",
        }
    }
}

type Key = (Topic, Arc<str>);

/// The entries.
#[derive(Debug, Default)]
pub struct Board {
    last: u64,
    entries: HashMap<Key, Entry>,
    order: BTreeMap<u64, Key>,
    removals: BTreeMap<u64, Key>,
    /// The newest removal that was dropped.
    forgotten: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    /// Serialized once.
    text: Arc<str>,
}

/// The entries after a position.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    /// As JSON: `{"reset": bool, "more": bool, "put": [[topic, entry]], "gone": [[topic, id]]}`.
    pub text: String,
    /// The reader's next position.
    pub position: u64,
    /// Whether there are more entries.
    pub more: bool,
}

impl Board {
    /// The number of the last write.
    pub fn position(&self) -> u64 {
        self.last
    }

    /// Writes an entry, unless it is unchanged.
    pub fn put(&mut self, topic: Topic, id: &str, entry: &impl Serialize) {
        // A struct of strings and numbers always serializes.
        let Ok(text) = serde_json::to_string(entry) else { return };
        let key = (topic, Arc::from(id));
        if let Some(old) = self.entries.get(&key) {
            if *old.text == *text {
                return;
            }
            self.order.remove(&old.number);
        } else {
            self.removals.retain(|_, removed| *removed != key);
        }
        self.last += 1;
        self.order.insert(self.last, key.clone());
        self.entries.insert(key, Entry { number: self.last, text: text.into() });
    }

    /// Removes an entry, if it exists.
    pub fn remove(&mut self, topic: Topic, id: &str) {
        let key = (topic, Arc::from(id));
        let Some(old) = self.entries.remove(&key) else { return };
        self.order.remove(&old.number);
        self.last += 1;
        self.removals.insert(self.last, key);
        while self.removals.len() > REMOVALS {
            let Some((number, _)) = self.removals.pop_first() else { break };
            self.forgotten = number;
        }
    }

    /// The entries after a position, at most `limit`; `None` if the reader is up to date. A new reader
    /// (position 0), or one from before the kept removals, is reset.
    pub fn after(&self, position: u64, limit: usize) -> Option<Batch> {
        let reset = position == 0 || position < self.forgotten || position > self.last;
        let from = if reset { 0 } else { position };
        if from == self.last {
            return None;
        }
        let mut text = String::new();
        let taken: Vec<(u64, &Key)> =
            self.order.range(from + 1..).take(limit).map(|(number, key)| (*number, key)).collect();
        let full = taken.len() == limit;
        let reached = taken.last().filter(|_| full).map_or(self.last, |(number, _)| *number);
        let more = reached < self.last;
        write!(text, "{{\"reset\":{reset},\"more\":{more},\"put\":[").unwrap_or_default();
        for (at, (_, key)) in taken.into_iter().enumerate() {
            let Some(entry) = self.entries.get(key) else { continue };
            let comma = if at > 0 { "," } else { "" };
            write!(text, "{comma}[\"{}\",{}]", key.0.name(), entry.text).unwrap_or_default();
        }
        text.push_str("],\"gone\":[");
        // A reset reader never had them.
        let gone = if reset { None } else { Some(self.removals.range(from + 1..=reached)) };
        for (at, (_, (topic, id))) in gone.into_iter().flatten().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let id = serde_json::Value::from(&**id);
            write!(text, "{comma}[\"{}\",{id}]", topic.name()).unwrap_or_default();
        }
        text.push_str("]}");
        Some(Batch { text, position: reached, more })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(board: &Board, position: u64, limit: usize) -> (Value, u64) {
        let batch = board.after(position, limit).expect("there is something");
        (serde_json::from_str(&batch.text).expect("it is JSON"), batch.position)
    }

    #[test]
    fn a_new_reader_gets_everything_and_then_only_changes() {
        let mut board = Board::default();
        board.put(Topic::Object, "a", &json!({ "id": "a" }));
        board.put(Topic::Event, "b", &json!({ "id": "b" }));
        let (first, position) = read(&board, 0, 10);
        assert_eq!(
            first,
            json!({ "reset": true, "more": false, "put": [["object", { "id": "a" }], ["event", { "id": "b" }]], "gone": [] })
        );
        assert_eq!(board.after(position, 10), None);
        board.put(Topic::Object, "a", &json!({ "id": "a" }));
        assert_eq!(board.after(position, 10), None, "the same again is no change");
        board.put(Topic::Object, "a", &json!({ "id": "a", "name": "x" }));
        board.remove(Topic::Event, "b");
        let (second, _) = read(&board, position, 10);
        assert_eq!(
            second,
            json!({ "reset": false, "more": false, "put": [["object", { "id": "a", "name": "x" }]], "gone": [["event", "b"]] })
        );
    }

    #[test]
    fn a_large_board_is_sent_in_batches() {
        let mut board = Board::default();
        for number in 0..5 {
            board.put(Topic::Object, &number.to_string(), &number);
        }
        let mut seen = Vec::new();
        let mut position = 0;
        while let Some(batch) = board.after(position, 2) {
            let text: Value = serde_json::from_str(&batch.text).expect("it is JSON");
            assert_eq!(text["reset"], json!(position == 0));
            assert_eq!(text["more"], json!(batch.more));
            seen.extend(text["put"].as_array().expect("a list").iter().map(|put| put[1].clone()));
            position = batch.position;
        }
        assert_eq!(seen, [json!(0), json!(1), json!(2), json!(3), json!(4)]);
    }

    #[test]
    fn a_reader_that_is_too_old_is_reset() {
        let mut board = Board::default();
        board.put(Topic::Object, "stays", &1);
        let early = board.position();
        for number in 0..=REMOVALS {
            board.put(Topic::Object, &number.to_string(), &number);
            board.remove(Topic::Object, &number.to_string());
        }
        let (answer, _) = read(&board, early, 10);
        assert_eq!(answer["reset"], json!(true));
        assert_eq!(answer["put"], json!([["object", 1]]));
        let (answer, _) = read(&board, board.position() + 7, 10);
        assert_eq!(answer["reset"], json!(true), "a number that was never given is of another board");
    }

    #[test]
    fn a_recreated_entry_is_not_reported_as_removed() {
        let mut board = Board::default();
        board.put(Topic::Queue, "q", &1);
        let position = board.position();
        board.remove(Topic::Queue, "q");
        board.put(Topic::Queue, "q", &2);
        let (answer, _) = read(&board, position, 10);
        assert_eq!(answer["put"], json!([["queue", 2]]));
        assert_eq!(answer["gone"], json!([]));
    }
}
