//! Field sets: encoding and set laws.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn set(fields: &Value) -> Set {
    Set::decode(fields).unwrap()
}

fn paths(set: &Set) -> Vec<String> {
    let mut paths = Vec::new();
    set.each_path(&mut |path| paths.push(path_text(path)));
    paths
}

#[test]
fn field_sets_round_trip() {
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {"f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}, "v:\"x\"": {}, "i:0": {}}},
    });
    assert_eq!(set(&fields).encode(), fields);
    assert_eq!(
        paths(&set(&fields)),
        [
            ".metadata.labels",
            ".metadata.labels.a",
            r#".spec.list[name="a"]"#,
            r#".spec.list[="x"]"#,
            ".spec.list[0]",
            r#".spec.list[name="a"].image"#,
        ]
    );
}

#[test]
fn unknown_elements_are_skipped_and_invalid_ones_rejected() {
    assert_eq!(set(&json!({"z:new": {"f:a": {}}, "f:b": {}})), set(&json!({"f:b": {}})));
    assert!(Set::decode(&json!({"f:a": {"nocolon": {}}})).is_err());
}

#[test]
fn only_recursive_subtraction_removes_children() {
    let all = set(&json!({"f:a": {".": {}, "f:b": {"f:c": {}}}, "f:d": {}}));
    let a = set(&json!({"f:a": {}}));
    let mut left = all.clone();
    assert!(left.subtract(&a));
    assert_eq!(left.encode(), json!({"f:a": {"f:b": {"f:c": {}}}, "f:d": {}}));
    assert!(!left.subtract(&a));
    let mut left = all;
    assert!(left.subtract_recursively(&a));
    assert_eq!(left.encode(), json!({"f:d": {}}));
}

#[test]
fn leaves_are_the_fields_without_children() {
    let mut leaves = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
    leaves.keep_leaves();
    assert_eq!(leaves.encode(), json!({"f:a": {"f:b": {}}, "f:c": {}}));
}

#[test]
fn patterns_keep_whole_subtrees() {
    let mut resources = set(&json!({"f:spec": {
        "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:resources": {"f:limits": {}}}},
        "f:nodeName": {},
    }}));
    let pattern =
        [Pattern::Field("spec"), Pattern::Field("containers"), Pattern::Any, Pattern::Field("resources")];
    resources.keep_matching(&[&pattern]);
    assert_eq!(
        resources.encode(),
        json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:resources": {"f:limits": {}}}}}})
    );
}

fn element() -> impl Strategy<Value = Element> {
    prop_oneof![
        "[a-d]".prop_map(|name| Element::field(&name)),
        (0i64..3).prop_map(|n| Element::key(vec![("name".into(), json!(n))])),
        "[a-c]".prop_map(|text| Element::Value(std::sync::Arc::new(json!(text)))),
    ]
}

fn any_set() -> impl Strategy<Value = Set> {
    proptest::collection::vec(proptest::collection::vec(element(), 1..4), 0..12).prop_map(|paths| {
        let mut set = Set::default();
        for path in &paths {
            set.insert(path);
        }
        set
    })
}

fn well_formed(set: &Set) -> bool {
    set.nodes.is_sorted_by(|a, b| a.element < b.element)
        && set
            .nodes
            .iter()
            .all(|node| (node.member || !node.children.is_empty()) && well_formed(&node.children))
}

proptest! {
    #[test]
    fn arbitrary_sets_round_trip(set in any_set()) {
        prop_assert_eq!(Set::decode(&set.encode()).unwrap(), set);
    }

    #[test]
    fn set_operations_follow_the_set_laws(a in any_set(), b in any_set()) {
        let mut union = a.clone();
        union.unite(b.clone());
        let mut other_union = b.clone();
        other_union.unite(a.clone());
        prop_assert_eq!(&union, &other_union);

        let both = a.intersection(&b);
        prop_assert_eq!(&both, &b.intersection(&a));
        prop_assert!(both.is_subset(&a) && both.is_subset(&b));
        prop_assert_eq!(a.is_subset(&b), both == a);
        let mut only_a = a.clone();
        let lost = only_a.subtract(&b);
        prop_assert_eq!(lost, only_a != a);
        prop_assert_eq!(both.len() + only_a.len(), a.len());
        prop_assert_eq!(union.len(), a.len() + b.len() - both.len());

        let mut again = both.clone();
        again.unite(only_a.clone());
        prop_assert_eq!(&again, &a);

        let mut recursive = a.clone();
        recursive.subtract_recursively(&b);
        for set in [&union, &both, &only_a, &recursive] {
            prop_assert!(well_formed(set));
        }
        let mut kept = recursive.clone();
        kept.subtract(&only_a);
        prop_assert!(kept.is_empty());
    }

    #[test]
    fn each_visited_path_is_in_the_set(set in any_set()) {
        let mut count = 0;
        set.each_path(&mut |path| {
            count += 1;
            assert!(set.has(path));
        });
        prop_assert_eq!(count, set.len());
    }
}
