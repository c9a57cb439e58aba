//! Properties of arbitrary configurations.

use proptest::prelude::*;

use super::*;

/// A type with every merge strategy.
fn everything() -> TypeDef {
    custom_type([
        ("a", text()),
        ("o", FieldDef::new(MapDef::object([("x", text()), ("y", text())]))),
        ("m", FieldDef::new(map_of_text())),
        ("s", FieldDef::new(ListDef::new(Scalar::String, ListType::Set))),
        ("l", FieldDef::new(ListDef::new(Scalar::String, ListType::Atomic))),
        (
            "k",
            FieldDef::new(ListDef::new(MapDef::object([("n", text()), ("v", text())]), ListType::map(["n"]))),
        ),
    ])
}

fn config() -> impl Strategy<Value = Value> {
    let text = || "[ab]";
    let names = || proptest::collection::btree_set("[a-c]", 0..3);
    (
        proptest::option::of(text()),
        proptest::option::of(text()),
        names(),
        names(),
        proptest::option::of(proptest::collection::vec(text(), 0..2)),
        proptest::collection::btree_map("[a-c]", proptest::option::of(text()), 0..3),
    )
        .prop_map(|(a, x, map, set, list, keyed)| {
            let mut spec = serde_json::Map::new();
            if let Some(a) = a {
                spec.insert("a".into(), a.into());
            }
            if let Some(x) = x {
                spec.insert("o".into(), json!({"x": x}));
            }
            if !map.is_empty() {
                spec.insert("m".into(), map.into_iter().map(|name| (name, Value::from("v"))).collect());
            }
            if !set.is_empty() {
                spec.insert("s".into(), set.into_iter().collect());
            }
            if let Some(list) = list {
                spec.insert("l".into(), list.into());
            }
            if !keyed.is_empty() {
                let item = |(name, value): (String, Option<String>)| match value {
                    Some(value) => json!({"n": name, "v": value}),
                    None => json!({"n": name}),
                };
                spec.insert("k".into(), keyed.into_iter().map(item).collect());
            }
            json!({"spec": spec})
        })
}

/// Whether `whole` contains everything in `part`. An object that lost its last field is null.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Null, Value::Object(part)) => part.is_empty(),
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => part.iter().all(|part| {
            whole.iter().any(|whole| match (whole.get("n"), part.get("n")) {
                (Some(a), Some(b)) => a == b && contains(whole, part),
                _ => whole == part,
            })
        }),
        _ => whole == part,
    }
}

proptest! {
    #[test]
    fn applying_again_changes_nothing(first in config(), second in config()) {
        let ty = everything();
        let kind = Kind::custom(&ty);
        let live = kind.force(None, "m1", &first);
        let live = kind.force(Some(&live), "m2", &second);
        prop_assert_eq!(&kind.force(Some(&live), "m2", &second), &live);
    }

    #[test]
    fn a_configuration_is_merged_if_merging_it_changes_nothing(
        first in config(),
        second in config(),
        reversed in any::<bool>(),
    ) {
        let ty = everything();
        let schema = Schema::custom(&ty);
        let whole = merge(schema, first.clone(), &second);
        for live in [&first, &whole] {
            let mut wanted = second.clone();
            for list in ["s", "k"] {
                if let Some(Value::Array(items)) = wanted["spec"].get_mut(list).filter(|_| reversed) {
                    items.reverse();
                }
            }
            let merged = merge(schema, live.clone(), &wanted);
            prop_assert_eq!(merge::is_merged(schema.ty(), live, &wanted), merged == *live, "{} {}", live, wanted);
        }
    }

    #[test]
    fn applied_fields_stay_while_they_are_applied(first in config(), second in config(), third in config()) {
        let ty = everything();
        let kind = Kind::custom(&ty);
        let live = kind.force(None, "m1", &first);
        prop_assert!(contains(&live, &first), "{live}");
        if let Ok(shared) = kind.apply(Some(&live), "m2", &second) {
            // There was no conflict, so both configurations are present.
            prop_assert!(contains(&shared, &first) && contains(&shared, &second), "{shared}");
            let left = kind.force(Some(&shared), "m2", &json!({}));
            prop_assert!(contains(&left, &first), "{left}");
            if let Ok(moved) = kind.apply(Some(&shared), "m1", &third) {
                prop_assert!(contains(&moved, &second) && contains(&moved, &third), "{moved}");
            }
        }
    }

    #[test]
    fn fields_without_an_owner_are_removed(first in config(), second in config()) {
        let ty = everything();
        let kind = Kind::custom(&ty);
        let live = kind.force(None, "m1", &first);
        let live = kind.force(Some(&live), "m2", &second);
        let live = kind.force(Some(&live), "m1", &json!({}));
        let live = kind.force(Some(&live), "m2", &json!({}));
        prop_assert!(!live.has("metadata.managedFields"), "{live}");
        prop_assert!(live.map_at("spec").values().all(Value::is_null), "{live}");
    }

    #[test]
    fn every_changed_field_has_one_update_entry_and_entries_round_trip(first in config(), second in config()) {
        let ty = everything();
        let kind = Kind::custom(&ty);
        let live = kind.update(None, "m1", &kind.object(&first));
        let mut new = kind.object(&second);
        new["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
        let new = kind.update(Some(&live), "m2", &new);
        let managed = ManagedFields::decode(&new["metadata"]["managedFields"]).unwrap();
        if let [a, b] = managed.entries() {
            prop_assert!(a.fields.intersection(&b.fields).is_empty());
        }
        if !managed.is_empty() {
            prop_assert_eq!(&managed.encode(), &new["metadata"]["managedFields"]);
        }
    }

    #[test]
    fn the_comparison_lists_exactly_the_differences(first in config(), second in config()) {
        let ty = everything();
        let schema = Schema::custom(&ty);
        let (a, b) = (json!({"spec": first["spec"]}), json!({"spec": second["spec"]}));
        let changes = compare(schema, &a, &b);
        let back = compare(schema, &b, &a);
        prop_assert_eq!(&changes.added, &back.removed);
        prop_assert_eq!(&changes.modified, &back.modified);
        prop_assert!(compare(schema, &a, &a).is_same());
    }
}
