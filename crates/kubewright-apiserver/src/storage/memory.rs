//! The in-memory engine: ordered maps of shared versions, and a ring of events per resource.
//!
//! Forks are cheap because tables are behind `Arc`s: a clone copies a pointer per resource, and the first
//! write to a resource after that copies its map of pointers, never an object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::{
    Attributes, Change, Conflict, Engine, Event, EventKind, Expect, Expired, Limits, Listing, Revision,
    StoredObject, Write,
};

/// See the [module](super) for the contract.
#[derive(Debug, Clone)]
pub struct Memory {
    revision: Revision,
    /// Earlier revisions cannot be read; new tables start here.
    floor: Revision,
    limits: Limits,
    tables: BTreeMap<Arc<str>, Arc<Table>>,
    /// From an owner's UID to its dependents.
    owned: Arc<BTreeMap<Box<str>, Dependents>>,
}

/// Resource and key of each dependent.
type Dependents = BTreeSet<(Arc<str>, Arc<str>)>;

#[derive(Debug, Clone, Default)]
struct Table {
    objects: BTreeMap<Arc<str>, Arc<StoredObject>>,
    ring: VecDeque<Arc<Event>>,
    /// Size of the objects that only the ring keeps.
    bytes: usize,
    /// Revision of the newest dropped event, or of the table's creation.
    dropped: Revision,
}

impl Memory {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        Self { revision: 0, floor: 0, limits, tables: BTreeMap::new(), owned: Arc::default() }
    }

    /// Restores a version from disk, without an event. Watches cannot start before it.
    pub fn restore(&mut self, resource: &Arc<str>, version: StoredObject) {
        self.revision = self.revision.max(version.revision);
        let version = Arc::new(version);
        self.link(resource, &version.key, &version.attributes);
        let table = Arc::make_mut(self.tables.entry(resource.clone()).or_default());
        table.dropped = table.dropped.max(version.revision);
        table.objects.insert(version.key.clone(), version);
    }

    /// Advances the counter, so that lost revisions are not reused.
    pub fn advance(&mut self, revision: Revision) {
        self.revision = self.revision.max(revision);
    }

    /// Drops all events. Earlier revisions can be neither watched nor listed.
    pub fn forget_past(&mut self) {
        self.floor = self.revision;
        for table in self.tables.values_mut() {
            let table = Arc::make_mut(table);
            table.ring.clear();
            table.bytes = 0;
            table.dropped = self.revision;
        }
    }

    fn check(&self, batch: &[Write]) -> Result<(), Conflict> {
        for (at, write) in batch.iter().enumerate() {
            let found = self.get(&write.resource, &write.key).map(|version| version.revision);
            let holds = match write.expect {
                Expect::Absent => found.is_none(),
                Expect::At(revision) => found == Some(revision),
            };
            if !holds {
                return Err(Conflict { at, key: write.key.to_string(), found });
            }
        }
        Ok(())
    }

    fn apply(&mut self, write: Write) -> Arc<StoredObject> {
        self.revision += 1;
        let (json, attributes, deleted) = match write.change {
            Change::Put { object, attributes } => (object.encode(self.revision), attributes, false),
            Change::Delete { object, attributes } => (object.encode(self.revision), attributes, true),
        };
        let version = Arc::new(StoredObject::new(write.key.clone(), self.revision, attributes, json));
        let previous = if deleted {
            self.table(&write.resource).objects.remove(&write.key)
        } else {
            self.table(&write.resource).objects.insert(write.key.clone(), version.clone())
        };
        if let Some(previous) = &previous {
            self.unlink(&write.resource, &write.key, &previous.attributes);
        }
        if !deleted {
            self.link(&write.resource, &write.key, &version.attributes);
        }
        let kind = match (deleted, &previous) {
            (true, _) => EventKind::Deleted,
            (false, None) => EventKind::Added,
            (false, Some(_)) => EventKind::Modified,
        };
        let limits = self.limits;
        let table = self.table(&write.resource);
        table.push(Arc::new(Event { kind, version: version.clone(), previous }), limits);
        version
    }

    /// The table of a resource, if it reaches back to a revision.
    fn reachable(&self, resource: &str, revision: Revision) -> Result<Option<&Table>, Expired> {
        let table = self.tables.get(resource);
        let oldest = table.map_or(0, |table| table.dropped).max(self.floor);
        if revision < oldest {
            return Err(Expired { asked: revision, oldest });
        }
        Ok(table.map(|table| &**table))
    }

    fn table(&mut self, resource: &Arc<str>) -> &mut Table {
        Arc::make_mut(self.tables.entry(resource.clone()).or_default())
    }

    fn link(&mut self, resource: &Arc<str>, key: &Arc<str>, attributes: &Attributes) {
        if !attributes.has_owners() {
            return;
        }
        let owned = Arc::make_mut(&mut self.owned);
        for owner in attributes.owners() {
            owned.entry(owner.into()).or_default().insert((resource.clone(), key.clone()));
        }
    }

    fn unlink(&mut self, resource: &Arc<str>, key: &Arc<str>, attributes: &Attributes) {
        if !attributes.has_owners() {
            return;
        }
        let owned = Arc::make_mut(&mut self.owned);
        for owner in attributes.owners() {
            if let Some(dependents) = owned.get_mut(owner) {
                dependents.remove(&(resource.clone(), key.clone()));
                if dependents.is_empty() {
                    owned.remove(owner);
                }
            }
        }
    }
}

impl Table {
    fn push(&mut self, event: Arc<Event>, limits: Limits) {
        self.bytes += superseded(&event);
        self.ring.push_back(event);
        while self.ring.len() > limits.events || (self.bytes > limits.bytes && self.ring.len() > 1) {
            if let Some(oldest) = self.ring.pop_front() {
                self.bytes -= superseded(&oldest);
                self.dropped = oldest.revision();
            }
        }
    }

    /// Undoes every event after `at` on the objects below `prefix`.
    fn past(&self, prefix: &str, at: Revision) -> BTreeMap<Arc<str>, Arc<StoredObject>> {
        let mut objects: BTreeMap<Arc<str>, Arc<StoredObject>> =
            range(&self.objects, prefix).map(|(key, version)| (key.clone(), version.clone())).collect();
        for event in self.ring.iter().rev().take_while(|event| event.revision() > at) {
            let key = &event.version.key;
            if key.starts_with(prefix) {
                match &event.previous {
                    Some(previous) => objects.insert(key.clone(), previous.clone()),
                    None => objects.remove(key),
                };
            }
        }
        objects
    }
}

impl Engine for Memory {
    fn revision(&self) -> Revision {
        self.revision
    }

    fn get(&self, resource: &str, key: &str) -> Option<Arc<StoredObject>> {
        self.tables.get(resource)?.objects.get(key).cloned()
    }

    fn list(&self, resource: &str, prefix: &str, at: Option<Revision>) -> Result<Listing, Expired> {
        let revision = at.unwrap_or(self.revision);
        let Some(table) = self.reachable(resource, revision)? else {
            return Ok(Listing { items: Vec::new(), revision });
        };
        let newest = table.ring.back().map_or(table.dropped, |event| event.revision());
        let items = if revision >= newest {
            range(&table.objects, prefix).map(|(_, version)| version.clone()).collect()
        } else {
            table.past(prefix, revision).into_values().collect()
        };
        Ok(Listing { items, revision })
    }

    fn commit(&mut self, batch: Vec<Write>) -> Result<Vec<Arc<StoredObject>>, Conflict> {
        self.check(&batch)?;
        Ok(batch.into_iter().map(|write| self.apply(write)).collect())
    }

    fn events(&self, resource: &str, after: Revision, max: usize) -> Result<Vec<Arc<Event>>, Expired> {
        let Some(table) = self.reachable(resource, after)? else {
            return Ok(Vec::new());
        };
        let from = table.ring.partition_point(|event| event.revision() <= after);
        Ok(table.ring.iter().skip(from).take(max).cloned().collect())
    }

    fn dependents(&self, owner: &str) -> Vec<(Arc<str>, Arc<StoredObject>)> {
        let keys = self.owned.get(owner).into_iter().flatten();
        keys.filter_map(|(resource, key)| Some((resource.clone(), self.get(resource, key)?))).collect()
    }

    fn resources(&self) -> Vec<Arc<str>> {
        self.tables
            .iter()
            .filter(|(_, table)| !table.objects.is_empty())
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn forget(&mut self, resource: &str) {
        let Some((name, table)) = self.tables.remove_entry(resource) else { return };
        for (key, version) in &table.objects {
            self.unlink(&name, key, &version.attributes);
        }
    }
}

/// The size of the versions that the store no longer has since an event: the previous one, and the last one of a deleted
/// object. Each version is counted by one event.
fn superseded(event: &Event) -> usize {
    let previous = event.previous.as_ref().map_or(0, |previous| previous.json.len());
    previous + if event.kind == EventKind::Deleted { event.version.json.len() } else { 0 }
}

/// The objects whose keys start with `prefix`. The end is found by a lookup: comparing the key of each item
/// with the prefix would cost a cache miss per item.
fn range<'a>(
    objects: &'a BTreeMap<Arc<str>, Arc<StoredObject>>,
    prefix: &str,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<StoredObject>)> {
    let end = after(prefix);
    let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    objects.range::<str, _>((Bound::Included(prefix), end))
}

/// The smallest string that is greater than all strings with `prefix`, if there is one.
fn after(prefix: &str) -> Option<String> {
    let mut rest = prefix.chars();
    while let Some(last) = rest.next_back() {
        // Strings compare like their sequences of characters.
        if let Some(next) = (last..=char::MAX).nth(1) {
            return Some(format!("{}{next}", rest.as_str()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::conformance::encoder;

    fn put(key: &str, expect: Expect) -> Write {
        let object = serde_json::json!({"metadata": {"name": key}});
        Write {
            resource: Arc::from("things"),
            key: Arc::from(key),
            expect,
            change: Change::Put { attributes: Attributes::of(None, &object), object: encoder(object) },
        }
    }

    #[test]
    fn the_byte_limit_counts_versions_that_only_the_ring_keeps() {
        let mut engine = Memory::new(Limits { events: 1_000, bytes: 1_000 });
        for number in 0..100 {
            engine.commit(vec![put(&number.to_string(), Expect::Absent)]).unwrap();
        }
        assert_eq!(engine.events("things", 0, 1_000).unwrap().len(), 100, "all versions are current");
        let mut revision = engine.get("things", "7").unwrap().revision;
        let before = engine.revision();
        for _ in 0..100 {
            revision = engine.commit(vec![put("7", Expect::At(revision))]).unwrap()[0].revision;
        }
        assert!(engine.events("things", before, 1_000).is_err(), "old versions exceed the limit");
        let table = &engine.tables["things"];
        let kept: usize =
            table.ring.iter().filter_map(|event| event.previous.as_ref()).map(|it| it.json.len()).sum();
        assert!(table.bytes == kept && kept <= 1_000 && table.ring.len() > 10, "{kept} bytes");
    }

    #[test]
    fn a_prefix_range_ends_at_the_next_string_of_that_length() {
        assert_eq!(after("default/").as_deref(), Some("default0"));
        assert_eq!(after("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(after("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(after("\u{10ffff}"), None);
        assert_eq!(after(""), None);
    }
}
