//! Recorded patches with their results, and properties of arbitrary patches.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::object::Fields as _;
use crate::types::type_named;

fn deployment() -> Value {
    json!({
        "metadata": {"name": "d", "finalizers": ["example.com/a", "example.com/b"]},
        "spec": {
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {"spec": {
                "containers": [
                    {"name": "a", "image": "ia", "args": ["x", "y"],
                     "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                     "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}]},
                    {"name": "b", "image": "ib"},
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "tolerations": [{"key": "t", "operator": "Exists"}],
                "nodeSelector": {"n": "1", "m": "2"},
            }},
        },
    })
}

fn apply(patch: &Value) -> Result<Value> {
    apply_strategic_merge_patch(type_named("apps.v1.Deployment").unwrap(), &deployment(), patch)
}

/// The Pod spec after a patch.
fn pod_spec(patch: &Value) -> Value {
    let patched = apply(&json!({"spec": {"template": {"spec": patch}}})).unwrap();
    patched.at("spec.template.spec").clone()
}

/// The container names after a patch of the Pod spec.
fn containers(patch: &Value) -> Vec<String> {
    pod_spec(patch).list_at("containers").iter().map(|c| c.str_at("name").to_owned()).collect()
}

fn refused(patch: &Value) -> (u16, String) {
    let error = apply(&json!({"spec": {"template": {"spec": patch}}})).unwrap_err();
    (error.code(), error.to_string())
}

#[test]
fn containers_merge_by_name_in_the_order_of_the_patch() {
    let spec = pod_spec(&json!({"containers": [{"name": "b", "image": "x"}, {"name": "c", "image": "ic"}]}));
    assert_eq!(spec.at("containers")[0].str_at("name"), "a");
    assert_eq!(spec.at("containers")[1], json!({"name": "b", "image": "x"}));
    assert_eq!(spec.at("containers")[2], json!({"name": "c", "image": "ic"}));
    assert_eq!(containers(&json!({"containers": [{"name": "c"}]})), ["c", "a", "b"]);
    assert_eq!(containers(&json!({"containers": [{"name": "b"}, {"name": "a"}]})), ["b", "a"]);
}

#[test]
fn lists_inside_merged_elements_merge_too() {
    let spec = pod_spec(&json!({"containers": [
        {"name": "a", "env": [{"name": "A", "value": "3"}], "ports": [{"containerPort": 81}], "args": ["z"]},
    ]}));
    let a = &spec.at("containers")[0];
    assert_eq!(a.at("env"), &json!([{"name": "A", "value": "3"}, {"name": "B", "value": "2"}]));
    assert_eq!(
        a.at("ports"),
        &json!([{"containerPort": 81}, {"containerPort": 80, "name": "http", "protocol": "TCP"}])
    );
    assert_eq!(a.at("args"), &json!(["z"]));
}

#[test]
fn a_list_without_a_merge_key_is_replaced() {
    let spec = pod_spec(&json!({"tolerations": [{"key": "u"}]}));
    assert_eq!(spec.at("tolerations"), &json!([{"key": "u"}]));
}

#[test]
fn null_deletes_and_is_dropped_from_new_values() {
    let spec = pod_spec(&json!({
        "nodeSelector": {"n": null, "z": null},
        "volumes": null,
        "affinity": {"nodeAffinity": null, "podAffinity": {}},
    }));
    assert_eq!(spec.at("nodeSelector"), &json!({"m": "2"}));
    assert!(spec.get("volumes").is_none());
    assert_eq!(spec.at("affinity"), &json!({"podAffinity": {}}));
}

#[test]
fn objects_are_replaced_and_deleted_by_directive() {
    let spec = pod_spec(&json!({"nodeSelector": {"$patch": "replace", "x": "1"}}));
    assert_eq!(spec.at("nodeSelector"), &json!({"x": "1"}));
    let spec = pod_spec(&json!({"nodeSelector": {"$patch": "delete"}, "affinity": {"$patch": "delete"}}));
    assert_eq!(spec.at("nodeSelector"), &json!({}));
    assert!(spec.get("affinity").is_none());
    assert_eq!(apply(&json!({"$patch": "delete"})).unwrap(), json!({}));
}

#[test]
fn elements_are_deleted_and_lists_replaced_by_directive() {
    assert_eq!(
        containers(&json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "c"}]})),
        ["c", "b"]
    );
    assert_eq!(containers(&json!({"containers": [{"name": "none", "$patch": "delete"}]})), ["a", "b"]);
    assert_eq!(containers(&json!({"containers": [{"name": "z"}, {"$patch": "replace"}]})), ["z"]);
}

#[test]
fn scalars_merge_as_a_set_and_are_deleted_by_value() {
    let finalizers =
        |patch: Value| apply(&json!({"metadata": patch})).unwrap().at("metadata.finalizers").clone();
    assert_eq!(
        finalizers(json!({"finalizers": ["example.com/c", "example.com/b"]})),
        json!(["example.com/c", "example.com/a", "example.com/b"])
    );
    assert_eq!(
        finalizers(json!({"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/z"]})),
        json!(["example.com/b"])
    );
    assert_eq!(
        finalizers(json!({
            "$deleteFromPrimitiveList/finalizers": ["example.com/a"],
            "$setElementOrder/finalizers": ["example.com/c", "example.com/b"],
            "finalizers": ["example.com/c"],
        })),
        json!(["example.com/c", "example.com/b"])
    );
}

#[test]
fn set_element_order_orders_the_listed_elements() {
    let ordered = |order: Value| containers(&json!({"$setElementOrder/containers": order}));
    assert_eq!(ordered(json!([{"name": "b"}, {"name": "a"}])), ["b", "a"]);
    assert_eq!(ordered(json!([{"name": "none"}])), ["a", "b"]);
    assert_eq!(
        containers(&json!({
            "$setElementOrder/containers": [{"name": "a"}, {"name": "new"}, {"name": "b"}],
            "containers": [{"name": "new"}],
        })),
        ["a", "new", "b"]
    );
}

#[test]
fn elements_not_in_set_element_order_keep_their_live_position() {
    let order = json!([{"name": "c"}]);
    let added = json!({"$setElementOrder/containers": order, "containers": [{"name": "c"}]});
    assert_eq!(containers(&added), ["c", "a", "b"]);
    let added_for_deleted = json!({
        "$setElementOrder/containers": order,
        "containers": [{"name": "c"}, {"name": "a", "$patch": "delete"}],
    });
    assert_eq!(containers(&added_for_deleted), ["b", "c"]);
}

#[test]
fn retain_keys_removes_all_other_fields() {
    let strategy = |patch: Value| {
        Ok::<_, StrategicPatchError>(
            apply(&json!({"spec": {"strategy": patch}}))?.at("spec.strategy").clone(),
        )
    };
    let recreate = strategy(json!({"$retainKeys": ["type"], "type": "Recreate"}));
    assert_eq!(recreate, Ok(json!({"type": "Recreate"})));
    let surge = strategy(json!({"$retainKeys": ["type", "rollingUpdate"], "rollingUpdate": {"maxSurge": 2}}));
    assert_eq!(surge, Ok(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}})));
    let unnamed = strategy(json!({"$retainKeys": ["nosuch"], "type": "Recreate"}));
    assert_eq!(unnamed, Err(StrategicPatchError::RetainKeysFormat));
    assert_eq!(StrategicPatchError::RetainKeysFormat.to_string(), "invalid patch format of retainKeys");
    let spec =
        pod_spec(&json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {}}]}));
    assert_eq!(spec.at("volumes"), &json!([{"name": "v", "hostPath": {}}]));
}

#[test]
fn errors_have_upstreams_messages() {
    for (patch, code, text) in [
        (
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b", "image": "x"}]}),
            500,
            "The order in patch list:\n[map[image:x name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
        (
            json!({"$setElementOrder/containers": "x"}),
            500,
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"$setElementOrder/containers": null}),
            500,
            "expected a []interface {}, but received a %!s(<nil>)",
        ),
        (
            json!({"$setElementOrder/containers": [{"nokey": "a"}]}),
            500,
            "map: map[nokey:a] does not contain declared merge key: name",
        ),
        (json!({"$setElementOrder": []}), 400, "invalid patch format of setElementOrder list"),
        (json!({"$deleteFromPrimitiveListX/containers": []}), 400, "invalid patch format of primitive list"),
        (
            json!({"$setElementOrder/nosuch": []}),
            500,
            r#"unable to find api field in struct PodSpec for the json field "nosuch""#,
        ),
        (json!({"$setElementOrder/hostname": []}), 500, "expected slice or array type, but got: struct"),
        (
            json!({"containers": [{"image": "x"}]}),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "bogus"}]}),
            500,
            "unknown patch type: bogus in map: map[$patch:bogus name:a]",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "merge"}]}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"nodeSelector": {"$patch": 5}}),
            500,
            "unknown patch type: %!s(int64=5) in map: map[$patch:5]",
        ),
        (
            json!({"volumes": ["x"]}),
            500,
            "list element types are not identical: [[map[emptyDir:map[] name:v]] [x]]",
        ),
    ] {
        assert_eq!(refused(&patch), (code, text.to_owned()), "{patch}");
    }
    let error = apply(&json!([])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal array into Go value of type map[string]interface {}"
    );
}

#[test]
fn raw_values_have_no_schema() {
    let ty = type_named("apps.v1.ControllerRevision").unwrap();
    let revision = json!({"data": {"a": 1, "b": {"c": 1}}, "revision": 1});
    let patched =
        apply_strategic_merge_patch(ty, &revision, &json!({"data": {"a": 2, "d": {"e": 1}}})).unwrap();
    assert_eq!(patched.at("data"), &json!({"a": 2, "b": {"c": 1}, "d": {"e": 1}}));
    let deeper = apply_strategic_merge_patch(ty, &revision, &json!({"data": {"b": {"c": 2}}})).unwrap_err();
    assert_eq!(
        deeper.to_string(),
        r#"unable to find api field in struct RawExtension for the json field "b""#
    );
}

/// Any subset of a Pod template with lists, maps and scalars, without directives.
fn template() -> impl Strategy<Value = Value> {
    let env = prop::collection::btree_map("[A-D]", "[0-9]", 0..4)
        .prop_map(|env| env.into_iter().map(|(n, v)| json!({"name": n, "value": v})).collect::<Vec<_>>());
    let container = (prop::option::of("[x-z]"), prop::option::of(env), prop::collection::vec("[p-q]", 0..3))
        .prop_map(|(image, env, args)| {
            let mut container = json!({"args": args});
            if let Some(image) = image {
                container.set_at("image", image);
            }
            if let Some(env) = env {
                container.set_at("env", env);
            }
            container
        });
    let containers = prop::collection::btree_map("[a-e]", container, 0..5).prop_map(|containers| {
        let named = containers.into_iter().map(|(name, mut container)| {
            container.set_at("name", name);
            container
        });
        named.collect::<Vec<_>>()
    });
    let shuffled = containers.prop_shuffle();
    let labels = prop::collection::btree_map("[a-d]", prop::option::of("[0-9]"), 0..4);
    let finalizers = prop::collection::btree_set("[a-e]", 0..4).prop_map(Vec::from_iter).prop_shuffle();
    (shuffled, labels, finalizers).prop_map(|(containers, labels, finalizers)| {
        json!({
            "metadata": {"labels": labels, "finalizers": finalizers},
            "template": {"spec": {"containers": containers}},
        })
    })
}

proptest! {
    #[test]
    fn the_empty_patch_changes_nothing(doc in template()) {
        let ty = type_named("core.v1.PodTemplate").unwrap();
        prop_assert_eq!(apply_strategic_merge_patch(ty, &doc, &json!({})).unwrap(), doc);
    }

    #[test]
    fn applying_a_patch_is_idempotent(doc in template(), patch in template()) {
        let ty = type_named("core.v1.PodTemplate").unwrap();
        let once = apply_strategic_merge_patch(ty, &doc, &patch).unwrap();
        let twice = apply_strategic_merge_patch(ty, &once, &patch).unwrap();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn set_element_order_is_respected(doc in template(), order in prop::collection::btree_set("[a-e]", 1..5)
        .prop_map(Vec::from_iter).prop_shuffle()) {
        let ty = type_named("core.v1.PodTemplate").unwrap();
        prop_assume!(!doc.list_at("template.spec.containers").is_empty());
        let names: Vec<Value> = order.iter().map(|name| json!({"name": name})).collect();
        let patch = json!({"template": {"spec": {"$setElementOrder/containers": names}}});
        let patched = apply_strategic_merge_patch(ty, &doc, &patch).unwrap();
        let places: Vec<usize> = patched.list_at("template.spec.containers").iter()
            .filter_map(|c| order.iter().position(|name| name == c.str_at("name"))).collect();
        prop_assert!(places.is_sorted());
        prop_assert_eq!(
            patched.list_at("template.spec.containers").len(),
            doc.list_at("template.spec.containers").len()
        );
    }
}
