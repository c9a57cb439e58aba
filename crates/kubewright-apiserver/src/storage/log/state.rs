//! What a log leads to: the live objects, as bytes, and the counter.
//!
//! A clone costs a pointer per resource; the tables are copied when they change next. That is how a snapshot
//! is written while the log goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::record::Record;
use crate::storage::Revision;

/// One live object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) revision: Revision,
    pub(super) json: Bytes,
}

type Table = BTreeMap<Arc<str>, Entry>;

/// The outcome of the records so far.
#[derive(Debug, Clone)]
pub(super) struct State {
    tables: BTreeMap<Arc<str>, Arc<Table>>,
    /// The last revision that was used up.
    pub(super) revision: Revision,
    /// Nothing happened since the last good end.
    pub(super) clean: bool,
    /// Bytes of the live objects.
    pub(super) bytes: u64,
}

impl State {
    /// Before the first record.
    pub(super) fn new() -> Self {
        Self { tables: BTreeMap::new(), revision: 0, clean: true, bytes: 0 }
    }

    /// What a snapshot of `revision` says, in which some server was at work.
    pub(super) fn from_snapshot(revision: Revision, objects: impl IntoIterator<Item = Record>) -> Self {
        let mut state = Self { revision, clean: false, ..Self::new() };
        for object in objects {
            if let Record::Put { resource, key, revision, json } = object {
                state.put(resource, &key, Entry { revision, json });
            }
        }
        state
    }

    /// Applies a record of a log. The error says which rule it breaks.
    pub(super) fn apply(&mut self, record: Record) -> Result<(), &'static str> {
        self.clean = false;
        match record {
            Record::Put { resource, key, revision, json } => {
                self.step(revision)?;
                self.put(resource, &key, Entry { revision, json });
            }
            Record::Delete { resource, key, revision } => {
                self.step(revision)?;
                self.delete(&resource, &key);
            }
            Record::Forget { resource } => {
                let table = self.tables.remove(&resource);
                self.bytes -= table.iter().flat_map(|table| table.iter()).map(size).sum::<u64>();
            }
            Record::Opened { revision } if revision >= self.revision => self.revision = revision,
            Record::Closed { revision } if revision == self.revision => self.clean = true,
            Record::Opened { .. } | Record::Closed { .. } => return Err("the counter goes back"),
            Record::End { .. } => return Err("a log holds the end of a snapshot"),
        }
        Ok(())
    }

    /// The live objects, by resource and key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Entry)> {
        self.tables
            .iter()
            .flat_map(|(resource, table)| table.iter().map(move |(key, entry)| (resource, key, entry)))
    }

    pub(super) fn objects(&self) -> usize {
        self.tables.values().map(|table| table.len()).sum()
    }

    fn step(&mut self, revision: Revision) -> Result<(), &'static str> {
        if revision <= self.revision {
            return Err("the counter goes back");
        }
        self.revision = revision;
        Ok(())
    }

    fn put(&mut self, resource: Arc<str>, key: &Arc<str>, entry: Entry) {
        self.bytes += size((key, &entry));
        let table = Arc::make_mut(self.tables.entry(resource).or_default());
        if let Some(old) = table.insert(key.clone(), entry) {
            self.bytes -= size((key, &old));
        }
    }

    fn delete(&mut self, resource: &str, key: &str) {
        let Some(table) = self.tables.get_mut(resource) else { return };
        if let Some((key, old)) = Arc::make_mut(table).remove_entry(key) {
            self.bytes -= size((&key, &old));
        }
    }
}

/// About what an object takes in a snapshot.
fn size((key, entry): (&Arc<str>, &Entry)) -> u64 {
    (key.len() + entry.json.len() + 32) as u64
}
