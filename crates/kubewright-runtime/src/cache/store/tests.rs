//! The store against a model that is obviously right.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn entry(namespace: &str, name: &str, version: u64, color: &str) -> Arc<Entry> {
    let object = json!({
        "metadata": {"namespace": namespace, "name": name, "resourceVersion": version.to_string(),
            "labels": {"color": color}},
    });
    Arc::new(Entry::read(&object.to_string(), false).unwrap())
}

fn colors(entry: &Entry) -> Vec<String> {
    entry.marks().labels.into_values().collect()
}

/// An object with its value of the index `color`.
fn indexed(entry: Arc<Entry>) -> Indexed {
    Indexed { values: vec![colors(&entry)], entry }
}

fn put(store: &mut Store, entry: Arc<Entry>) -> Option<Change> {
    store.put(indexed(entry))
}

fn replace(store: &mut Store, namespace: Option<&str>, now: Vec<Arc<Entry>>) -> Vec<Change> {
    let Difference { gone, changed } = store.difference(namespace, now);
    store.apply(&gone, Removal::Deleted, changed.into_iter().map(indexed).collect())
}

fn names<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>) -> Vec<String> {
    entries.map(|entry| entry.key().to_string()).collect()
}

#[test]
fn a_namespace_is_told_from_those_that_start_like_it() {
    let mut store = Store::default();
    for (namespace, name) in [("a", "x"), ("a-b", "x"), ("a0", "x"), ("a", "y"), ("b", "x")] {
        put(&mut store, entry(namespace, name, 1, "red"));
    }
    assert_eq!(names(store.iter(Some("a"))), ["a/x", "a/y"]);
    assert_eq!(store.iter(None).count(), 5);
}

#[test]
fn what_a_new_list_lacks_is_told_as_deleted() {
    let mut store = Store::default();
    put(&mut store, entry("n", "a", 1, "red"));
    put(&mut store, entry("n", "b", 2, "red"));
    put(&mut store, entry("other", "c", 3, "red"));
    let changes = replace(&mut store, Some("n"), vec![entry("n", "b", 2, "red"), entry("n", "d", 4, "red")]);
    assert_eq!(changes.len(), 2);
    assert_eq!(changes[0].old.as_ref().unwrap().key().to_string(), "n/a");
    assert!(changes[0].new.is_none() && changes[0].removal == Some(Removal::Deleted));
    assert_eq!(changes[1].new.as_ref().unwrap().key().to_string(), "n/d");
    assert_eq!(names(store.iter(None)), ["n/b", "n/d", "other/c"]);
}

#[test]
fn an_index_that_comes_late_knows_what_is_there() {
    let mut store = Store::default();
    put(&mut store, entry("n", "a", 1, "red"));
    let mut index = Index::default();
    index.set(&Key::namespaced("n", "a"), vec!["red".to_owned()]);
    store.add_index("color".into(), index);
    assert_eq!(names(store.find("color", "red", None).unwrap()), ["n/a"]);
    assert!(store.find("shape", "red", None).is_none());
}

#[test]
fn changes_that_nobody_read_are_joined() {
    let (first, second, third) = (entry("n", "a", 1, "x"), entry("n", "a", 2, "x"), entry("n", "a", 3, "x"));
    let event = |old: Option<&Arc<Entry>>, new: Option<&Arc<Entry>>| Change {
        old: old.cloned(),
        new: new.cloned(),
        occasion: Occasion::Event,
        removal: new.is_none().then_some(Removal::Deleted),
    };
    let mut seen = event(Some(&first), Some(&second));
    seen.then(event(Some(&second), Some(&third)));
    assert_eq!((seen.old.as_ref().unwrap().version(), seen.new.as_ref().unwrap().version()), (1, 3));
    // Came and went before anybody looked: the end is told all the same.
    let mut brief = event(None, Some(&first));
    brief.then(event(Some(&first), None));
    assert!(brief.new.is_none() && brief.old.is_some() && brief.removal == Some(Removal::Deleted));
    // And came back: it is not gone.
    brief.then(event(None, Some(&second)));
    assert!(brief.new.is_some() && brief.removal.is_none());
}

#[test]
fn a_new_list_tells_an_object_from_its_namesake() {
    let object = |version: u64, uid: &str| {
        let json = json!({"metadata": {"name": "a", "resourceVersion": version.to_string(), "uid": uid}})
            .to_string();
        Arc::new(Entry::read(&json, false).unwrap())
    };
    let mut store = Store::default();
    put(&mut store, object(1, "x"));
    assert!(replace(&mut store, None, vec![object(1, "x")]).is_empty());
    let changed = replace(&mut store, None, vec![object(2, "x")]);
    assert!(matches!(&changed[..], [Change { old: Some(_), new: Some(_), .. }]));
    let other = replace(&mut store, None, vec![object(3, "y")]);
    assert!(matches!(
        &other[..],
        [Change { old: Some(_), new: None, .. }, Change { old: None, new: Some(_), .. }]
    ));
}

#[test]
fn an_index_is_asked_for_one_namespace_too() {
    let mut store = Store::default();
    store.add_index("color".into(), Index::default());
    for (namespace, name) in [("a", "x"), ("a-b", "x"), ("b", "y")] {
        put(&mut store, entry(namespace, name, 1, "red"));
    }
    assert_eq!(names(store.find("color", "red", Some("a")).unwrap()), ["a/x"]);
    assert_eq!(store.find("color", "red", None).unwrap().count(), 3);
    assert_eq!(store.find("color", "blue", Some("a")).unwrap().count(), 0);
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Remove(u8),
    Replace(Vec<(u8, u8)>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..8u8, 0..3u8).prop_map(|(name, color)| Step::Put(name, color)),
        2 => (0..8u8).prop_map(Step::Remove),
        1 => proptest::collection::vec((0..8u8, 0..3u8), 0..8).prop_map(Step::Replace),
    ]
}

proptest! {
    #![proptest_config(crate::seeds::cases(256))]

    /// Whoever follows the changes knows what the store knows, and the index knows no more and no less.
    #[test]
    fn followers_and_indexes_agree_with_the_store(steps in proptest::collection::vec(step(), 0..60)) {
        let mut store = Store::default();
        store.add_index("color".into(), Index::default());
        let mut follower: BTreeMap<Key, u64> = BTreeMap::new();
        for (version, step) in (1u64..).zip(steps) {
            let make = |name: u8, color: u8| entry("n", &name.to_string(), version, &color.to_string());
            let changes: Vec<Change> = match step {
                Step::Put(name, color) => put(&mut store, make(name, color)).into_iter().collect(),
                Step::Remove(name) => store.remove(&Key::namespaced("n", &name.to_string()), None, Removal::Deleted).into_iter().collect(),
                Step::Replace(all) => {
                    let all: BTreeMap<u8, u8> = all.into_iter().collect();
                    replace(&mut store, None, all.into_iter().map(|(name, color)| make(name, color)).collect())
                }
            };
            for change in changes {
                let key = change.latest().key().clone();
                prop_assert_eq!(change.old.is_some(), follower.contains_key(&key));
                match change.new {
                    Some(new) => follower.insert(key, new.version()),
                    None => follower.remove(&key),
                };
            }
            let known: BTreeMap<Key, u64> = store.iter(None).map(|it| (it.key().clone(), it.version())).collect();
            prop_assert_eq!(&known, &follower);
            for color in ["0", "1", "2"] {
                let scanned: Vec<String> =
                    names(store.iter(None).filter(|it| it.marks().labels["color"] == color));
                prop_assert_eq!(names(store.find("color", color, None).unwrap()), scanned);
            }
        }
    }
}
