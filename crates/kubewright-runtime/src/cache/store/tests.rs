//! Tests of the store, partly against a simple model.

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
    entry.marks().labels.remove("color").into_iter().collect()
}

/// An object with its value in the index `color`.
fn indexed(entry: Arc<Entry>) -> Indexed {
    Indexed { values: vec![colors(&entry)], entry }
}

fn put(store: &mut Store, entry: Arc<Entry>) -> Option<Change> {
    store.put(indexed(entry))
}

fn replace(store: &mut Store, namespace: Option<&str>, now: Vec<Arc<Entry>>) -> Vec<Change> {
    let Difference { removed, changed } = store.difference(namespace, &[], now);
    store.apply(&removed, Removal::Deleted, changed.into_iter().map(indexed).collect())
}

fn names<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>) -> Vec<String> {
    entries.map(|entry| entry.key().to_string()).collect()
}

#[test]
fn a_namespace_is_distinct_from_one_with_the_same_prefix() {
    let mut store = Store::default();
    for (namespace, name) in [("a", "x"), ("a-b", "x"), ("a0", "x"), ("a", "y"), ("b", "x")] {
        put(&mut store, entry(namespace, name, 1, "red"));
    }
    assert_eq!(names(store.iter(Some("a"))), ["a/x", "a/y"]);
    assert_eq!(store.iter(None).count(), 5);
}

#[test]
fn objects_missing_from_a_new_list_are_reported_as_deleted() {
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
fn an_index_added_later_contains_the_existing_objects() {
    let mut store = Store::default();
    put(&mut store, entry("n", "a", 1, "red"));
    let mut index = Index::default();
    index.set(&Key::namespaced("n", "a"), vec!["red".to_owned()]);
    store.add_index("color".into(), index);
    assert_eq!(names(store.find("color", "red", None).unwrap()), ["n/a"]);
    assert!(store.find("shape", "red", None).is_none());
}

#[test]
fn unread_changes_are_merged() {
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
    // Created and deleted unread: the deletion is still reported.
    let mut brief = event(None, Some(&first));
    brief.then(event(Some(&first), None));
    assert!(brief.new.is_none() && brief.old.is_some() && brief.removal == Some(Removal::Deleted));
    // Recreated: it is not deleted.
    brief.then(event(None, Some(&second)));
    assert!(brief.new.is_some() && brief.removal.is_none());
}

#[test]
fn a_new_list_distinguishes_a_recreated_object() {
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
fn an_index_can_be_read_for_one_namespace() {
    let mut store = Store::default();
    store.add_index("color".into(), Index::default());
    for (namespace, name) in [("a", "x"), ("a-b", "x"), ("b", "y")] {
        put(&mut store, entry(namespace, name, 1, "red"));
    }
    assert_eq!(names(store.find("color", "red", Some("a")).unwrap()), ["a/x"]);
    assert_eq!(store.find("color", "red", None).unwrap().count(), 3);
    assert_eq!(store.find("color", "blue", Some("a")).unwrap().count(), 0);
}

/// An object with labels in the form `a=1,b=2`.
fn labelled(namespace: &str, name: &str, version: u64, labels: &str) -> Arc<Entry> {
    let pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
    let labels: BTreeMap<&str, &str> = pairs.collect();
    let object = json!({
        "metadata": {"namespace": namespace, "name": name, "resourceVersion": version.to_string(), "labels": labels},
    });
    Arc::new(Entry::read(&object.to_string(), false).unwrap())
}

#[test]
fn objects_are_found_by_their_labels() {
    let mut store = Store::default();
    for (version, (namespace, name, labels)) in (1..).zip([
        ("a", "x", "app=web,tier=front"),
        ("a", "y", "app=web,tier=back"),
        ("a-b", "x", "app=db"),
        ("b", "x", "app=web,tier=front,old=yes"),
        ("b", "z", ""),
    ]) {
        put(&mut store, labelled(namespace, name, version, labels));
    }
    let select = |store: &Store, selector: &str, namespace: Option<&str>| -> Vec<String> {
        names(store.select(&selector.parse().unwrap(), namespace).iter())
    };
    for (selector, found) in [
        ("", &["a/x", "a/y", "a-b/x", "b/x", "b/z"] as &[&str]),
        ("app=web", &["a/x", "a/y", "b/x"]),
        ("app=web,tier=front", &["a/x", "b/x"]),
        ("app in (db,web),!old", &["a/x", "a/y", "a-b/x"]),
        ("app in (db,db)", &["a-b/x"]),
        ("tier", &["a/x", "a/y", "b/x"]),
        ("tier,tier!=back", &["a/x", "b/x"]),
        ("!app", &["b/z"]),
        ("tier notin (front)", &["a/y", "a-b/x", "b/z"]),
        ("app=web,app=db", &[]),
        ("app=other", &[]),
        ("missing", &[]),
        ("missing!=x,app=db", &["a-b/x"]),
    ] {
        let mut found = found.to_vec();
        found.sort_unstable();
        assert_eq!(select(&store, selector, None), found, "{selector}");
        let here: Vec<&str> = found.into_iter().filter(|key| key.starts_with("a/")).collect();
        assert_eq!(select(&store, selector, Some("a")), here, "{selector} in a");
    }
    // An update moves the object, and a removal leaves no keys behind.
    put(&mut store, labelled("a", "x", 10, "app=db,new=1"));
    assert_eq!(select(&store, "app=web", None), ["a/y", "b/x"]);
    assert_eq!(select(&store, "new", None), ["a/x"]);
    store.remove(&Key::namespaced("a", "x"), None, Removal::Deleted);
    assert!(select(&store, "new", None).is_empty());
    assert_eq!(select(&store, "app=db", None), ["a-b/x"]);
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Remove(u8),
    Replace(Vec<(u8, u8)>),
}

/// The number of label combinations of [`labels_of`].
const LABELS: u8 = 12;

fn labels_of(number: u8) -> String {
    let (color, shape) = (number % 3, number / 3);
    match shape {
        0 => format!("color={color}"),
        3 => format!("shape={color}"),
        _ => format!("color={color},shape={shape}"),
    }
}

const SELECTORS: [&str; 10] = [
    "color=0",
    "color",
    "!color",
    "color!=1",
    "color in (0,2)",
    "color notin (0,2),shape",
    "shape=1,color=2",
    "shape,!color",
    "color,shape in (1,2)",
    "none",
];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..8u8, 0..LABELS).prop_map(|(name, color)| Step::Put(name, color)),
        2 => (0..8u8).prop_map(Step::Remove),
        1 => proptest::collection::vec((0..8u8, 0..LABELS), 0..8).prop_map(Step::Replace),
    ]
}

proptest! {
    #![proptest_config(crate::seeds::cases(256))]

    /// A follower's view equals the store, and indexes and labels agree with a scan over all objects.
    #[test]
    fn followers_and_indexes_agree_with_the_store(steps in proptest::collection::vec(step(), 0..60)) {
        let mut store = Store::default();
        store.add_index("color".into(), Index::default());
        let mut follower: BTreeMap<Key, u64> = BTreeMap::new();
        for (version, step) in (1u64..).zip(steps) {
            let make = |name: u8, color: u8| labelled("n", &name.to_string(), version, &labels_of(color));
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
                let scanned: Vec<String> = names(store.iter(None).filter(|it| colors(it) == [color]));
                prop_assert_eq!(names(store.find("color", color, None).unwrap()), scanned);
            }
            for text in SELECTORS {
                let selector: LabelSelector = text.parse().unwrap();
                let scanned = names(store.iter(None).filter(|it| selector.matches(&it.marks().labels)));
                prop_assert_eq!(names(store.select(&selector, None).iter()), scanned, "{}", text);
            }
        }
    }
}
