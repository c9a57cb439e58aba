//! Tests of the storage contract, for any [`Engine`].
//!
//! Call [`check`] with a function that creates an empty store. Its ring must hold at least four events and
//! fewer than a thousand.

use std::sync::Arc;

use bytes::Bytes;
use kubewright_apimachinery::json;
use serde_json::{Value, json};

use super::{Attributes, Change, Encoder, Engine, EventKind, Expect, Revision, Write};

/// Panics if the engine violates the contract.
pub fn check<E: Engine>(empty: impl Fn() -> E) {
    revisions_count_writes(empty());
    preconditions_guard_the_whole_batch(empty());
    events_carry_the_previous_version(empty());
    a_prefix_is_one_namespace(empty());
    the_past_can_be_listed(empty());
    dropped_events_are_reported(empty());
    forks_part_ways(empty());
    owners_find_their_dependents(empty());
}

/// An encoder that writes the revision into the object.
pub(super) fn encoder(mut object: Value) -> Encoder {
    Encoder::new(move |revision| {
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        Bytes::from(json::to_vec(&object))
    })
}

fn put(key: &str, expect: Expect, value: i64) -> Write {
    owned(key, expect, value, &[])
}

fn owned(key: &str, expect: Expect, value: i64, owners: &[&str]) -> Write {
    let owners: Vec<Value> = owners.iter().map(|uid| json!({"uid": uid})).collect();
    let object = json!({"metadata": {"ownerReferences": owners}, "value": value});
    Write {
        resource: Arc::from("things"),
        key: Arc::from(key),
        expect,
        change: Change::Put { attributes: Attributes::of(None, &object), object: encoder(object) },
    }
}

fn delete(key: &str, at: Revision) -> Write {
    Write {
        resource: Arc::from("things"),
        key: Arc::from(key),
        expect: Expect::At(at),
        change: Change::Delete {
            object: encoder(json!({"metadata": {}})),
            attributes: Attributes::default(),
        },
    }
}

fn one<E: Engine>(engine: &mut E, write: Write) -> Revision {
    engine.commit(vec![write]).expect("the precondition holds")[0].revision
}

fn keys<E: Engine>(engine: &E, prefix: &str, at: Option<Revision>) -> Vec<String> {
    let listing = engine.list("things", prefix, at).expect("the ring has the revision");
    listing.items.iter().map(|version| version.key.to_string()).collect()
}

fn revisions_count_writes<E: Engine>(mut engine: E) {
    let start = engine.revision();
    let versions = engine.commit(vec![put("a/1", Expect::Absent, 1), put("a/2", Expect::Absent, 2)]).unwrap();
    assert_eq!(versions.iter().map(|v| v.revision).collect::<Vec<_>>(), [start + 1, start + 2], "rule 1");
    assert_eq!(engine.revision(), start + 2, "rule 1");
    assert_eq!(
        versions[1].object()["metadata"]["resourceVersion"],
        (start + 2).to_string(),
        "the store sets the resourceVersion"
    );
    assert_eq!(engine.get("things", "a/2").unwrap().revision, start + 2);
    assert!(engine.get("things", "a/3").is_none() && engine.get("others", "a/1").is_none());
}

fn preconditions_guard_the_whole_batch<E: Engine>(mut engine: E) {
    let first = one(&mut engine, put("a", Expect::Absent, 1));
    let before = engine.revision();
    let conflict = engine.commit(vec![put("b", Expect::Absent, 1), put("a", Expect::Absent, 2)]).unwrap_err();
    assert_eq!((conflict.at, conflict.found), (1, Some(first)), "the conflict names the write");
    assert!(engine.get("things", "b").is_none(), "rule 3");
    assert_eq!(engine.revision(), before, "rule 3: a failed batch takes no revision");
    assert!(engine.commit(vec![put("a", Expect::At(first + 7), 2)]).is_err());
    assert!(engine.commit(vec![put("z", Expect::At(first), 2)]).is_err());
    one(&mut engine, put("a", Expect::At(first), 2));
}

fn events_carry_the_previous_version<E: Engine>(mut engine: E) {
    let start = engine.revision();
    let added = one(&mut engine, put("a", Expect::Absent, 1));
    let modified = one(&mut engine, put("a", Expect::At(added), 2));
    let deleted = one(&mut engine, delete("a", modified));
    let events = engine.events("things", start, 10).unwrap();
    let told: Vec<_> =
        events.iter().map(|e| (e.kind, e.revision(), e.previous.as_ref().map(|p| p.revision))).collect();
    assert_eq!(
        told,
        [
            (EventKind::Added, added, None),
            (EventKind::Modified, modified, Some(added)),
            (EventKind::Deleted, deleted, Some(modified)),
        ],
        "rule 4"
    );
    assert_eq!(
        engine.events("things", added, 1).unwrap()[0].revision(),
        modified,
        "a cursor continues after its last event"
    );
    assert!(engine.events("things", deleted, 10).unwrap().is_empty());
    assert!(engine.events("others", 0, 10).unwrap().is_empty());
}

fn a_prefix_is_one_namespace<E: Engine>(mut engine: E) {
    let all = ["a-b/1", "a.b/1", "a/1", "a/2", "a0/1", "ab/1", "b/1"];
    for key in all.iter().rev() {
        one(&mut engine, put(key, Expect::Absent, 1));
    }
    assert_eq!(keys(&engine, "", None), all, "ordered by key");
    assert_eq!(keys(&engine, "a/", None), ["a/1", "a/2"]);
    assert_eq!(keys(&engine, "b/", None), ["b/1"]);
    assert!(keys(&engine, "c/", None).is_empty());
}

fn the_past_can_be_listed<E: Engine>(mut engine: E) {
    let one_only = one(&mut engine, put("a/1", Expect::Absent, 1));
    let two = one(&mut engine, put("b/1", Expect::Absent, 1));
    let changed = one(&mut engine, put("a/1", Expect::At(one_only), 2));
    one(&mut engine, delete("b/1", two));
    assert_eq!(keys(&engine, "", None), ["a/1"]);
    assert_eq!(keys(&engine, "", Some(two)), ["a/1", "b/1"], "rule 5");
    assert_eq!(keys(&engine, "a/", Some(changed)), ["a/1"], "rule 5");
    assert_eq!(engine.list("things", "", Some(two)).unwrap().items[0].revision, one_only, "rule 5");
    assert!(keys(&engine, "", Some(one_only - 1)).is_empty(), "rule 5");
}

fn dropped_events_are_reported<E: Engine>(mut engine: E) {
    let start = engine.revision();
    let mut at = one(&mut engine, put("a", Expect::Absent, 0));
    for value in 1..1_000 {
        at = one(&mut engine, put("a", Expect::At(at), value));
    }
    let expired = engine.events("things", start, 1).unwrap_err();
    assert!(expired.oldest > start && expired.asked == start, "rule 4");
    assert!(engine.events("things", expired.oldest, 1).is_ok(), "rule 4: the oldest revision is available");
    assert!(engine.list("things", "", Some(start)).is_err(), "rule 5");
    assert!(engine.list("things", "", Some(at)).is_ok(), "rule 5");
}

fn forks_part_ways<E: Engine>(mut engine: E) {
    let at = one(&mut engine, put("a", Expect::Absent, 1));
    let mut fork = engine.clone();
    one(&mut fork, put("b", Expect::Absent, 1));
    one(&mut engine, put("a", Expect::At(at), 2));
    assert_eq!(keys(&engine, "", None), ["a"], "rule 6");
    assert_eq!(keys(&fork, "", None), ["a", "b"], "rule 6");
    assert_eq!(fork.get("things", "a").unwrap().revision, at, "rule 6");
}

fn owners_find_their_dependents<E: Engine>(mut engine: E) {
    let dependents = |engine: &E| -> Vec<String> {
        engine.dependents("u").into_iter().map(|(_, version)| version.key.to_string()).collect()
    };
    let first = one(&mut engine, owned("a", Expect::Absent, 1, &["u", "v"]));
    let second = one(&mut engine, owned("b", Expect::Absent, 1, &["u"]));
    assert_eq!(dependents(&engine), ["a", "b"]);
    one(&mut engine, owned("a", Expect::At(first), 2, &["v"]));
    assert_eq!(dependents(&engine), ["b"]);
    one(&mut engine, delete("b", second));
    assert!(dependents(&engine).is_empty());
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Memory};

    #[test]
    fn the_engine_in_memory_keeps_the_contract() {
        super::check(|| Memory::new(Limits { events: 100, bytes: 1 << 20 }));
    }

    #[test]
    fn the_contract_holds_with_a_small_byte_limit() {
        super::check(|| Memory::new(Limits { events: 10_000, bytes: 2_000 }));
    }
}
