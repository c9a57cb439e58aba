//! The state that a log describes: the encoded live objects and the revision counter.
//!
//! Cloning costs a pointer per resource; a table is copied on its next write. This allows writing a snapshot
//! while the log continues.

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

/// The result of all records so far.
#[derive(Debug, Clone)]
pub(super) struct State {
    tables: BTreeMap<Arc<str>, Arc<Table>>,
    /// The last used revision.
    pub(super) revision: Revision,
    /// The last record marks a clean shutdown.
    pub(super) clean: bool,
    /// Total size of the live objects.
    pub(super) bytes: u64,
}

impl State {
    /// The state of an empty log.
    pub(super) fn new() -> Self {
        Self { tables: BTreeMap::new(), revision: 0, clean: true, bytes: 0 }
    }

    /// The state of a snapshot at `revision`. Not clean, because a running server wrote it.
    pub(super) fn from_snapshot(revision: Revision, objects: impl IntoIterator<Item = Record>) -> Self {
        let mut state = Self { revision, clean: false, ..Self::new() };
        for object in objects {
            if let Record::Put { resource, key, revision, json } = object {
                state.put(resource, &key, Entry { revision, json });
            }
        }
        state
    }

    /// Applies a log record. The error names the violated rule.
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
            Record::Opened { .. } | Record::Closed { .. } => return Err("the revision decreases"),
            Record::End { .. } => return Err("the log contains the end record of a snapshot"),
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
            return Err("the revision decreases");
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

/// Approximate size of an object in a snapshot.
fn size((key, entry): (&Arc<str>, &Entry)) -> u64 {
    (key.len() + entry.json.len() + 32) as u64
}
