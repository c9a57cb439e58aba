//! Server-side apply end to end: ownership, conflicts and invalid configurations.

mod properties;

use super::*;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::types::type_named;
use serde_json::{Value, json};

/// A kind with one version and a schema of each source.
struct Kind<'s> {
    versions: OneVersion<'s>,
    name: &'s str,
    reset: Reset,
}

impl<'s> Kind<'s> {
    fn built_in(name: &str, api_version: &'s str, kind: &'s str) -> Self {
        let schema = Schema::built_in(type_named(name).unwrap());
        Self { versions: OneVersion { api_version, schema }, name: kind, reset: Reset::default() }
    }

    fn custom(ty: &'s TypeDef) -> Self {
        let schema = Schema::custom(ty);
        Self { versions: OneVersion { api_version: "e.io/v1", schema }, name: "W", reset: Reset::default() }
    }

    fn write<'a>(&'a self, manager: &'a str, time: &'a str) -> Write<'a> {
        Write {
            manager,
            api_version: self.versions.api_version,
            kind: self.name,
            subresource: "",
            time,
            versions: &self.versions,
            reset: &self.reset,
            owners: Owners::Json,
        }
    }

    fn object(&self, rest: &Value) -> Value {
        let mut object = json!({
            "apiVersion": self.versions.api_version, "kind": self.name, "metadata": {"name": "a", "uid": "u"},
        });
        for (name, value) in rest.as_object().unwrap() {
            object[name] = value.clone();
        }
        object
    }

    fn apply(&self, live: Option<&Value>, manager: &str, rest: &Value) -> Result<Value, ApplyError> {
        apply(live, &self.object(rest), false, &self.write(manager, "2026-01-01T00:00:00Z"))
    }

    fn force(&self, live: Option<&Value>, manager: &str, rest: &Value) -> Value {
        apply(live, &self.object(rest), true, &self.write(manager, "2026-01-01T00:00:00Z")).unwrap()
    }

    fn update(&self, live: Option<&Value>, manager: &str, new: &Value) -> Value {
        let mut new = new.clone();
        update(live, &mut new, &self.write(manager, "2026-01-02T00:00:00Z"));
        new
    }
}

fn config_map() -> Kind<'static> {
    Kind::built_in("core.v1.ConfigMap", "v1", "ConfigMap")
}

/// The field set of a manager, as `fieldsV1`.
fn owned(object: &Value, manager: &str) -> Value {
    let entries = object.list_at("metadata.managedFields");
    entries
        .iter()
        .find(|entry| entry["manager"] == manager)
        .map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

#[test]
fn force_takes_a_conflicting_field_from_its_owner() {
    let kind = config_map();
    let live = kind.apply(None, "m1", &json!({"data": {"a": "1", "b": "1"}})).unwrap();
    let error = kind.apply(Some(&live), "m2", &json!({"data": {"a": "2", "b": "2"}})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .data.a\n- .data.b"
    );
    let answer = error.to_api_error().to_value();
    assert_eq!(answer["code"], 409);
    assert_eq!(
        answer["details"]["causes"][0],
        json!({"reason": "FieldManagerConflict", "message": "conflict with \"m1\"", "field": ".data.a"})
    );
    let live = kind.force(Some(&live), "m2", &json!({"data": {"a": "2"}}));
    assert_eq!(live["data"], json!({"a": "2", "b": "1"}));
    assert_eq!(owned(&live, "m1"), json!({"f:data": {"f:b": {}}}));
    assert_eq!(owned(&live, "m2"), json!({"f:data": {"f:a": {}}}));
}

#[test]
fn equal_values_are_shared_and_the_last_owner_removes_the_field() {
    let kind = config_map();
    let live = kind.apply(None, "m1", &json!({"data": {"a": "1"}})).unwrap();
    let live = kind.apply(Some(&live), "m2", &json!({"data": {"a": "1"}})).unwrap();
    let entries = live.list_at("metadata.managedFields");
    assert!(entries.iter().any(|entry| entry["manager"] == "m2" && entry.get("time").is_none()));
    let live = kind.apply(Some(&live), "m1", &json!({})).unwrap();
    assert_eq!(live["data"], json!({"a": "1"}));
    let live = kind.apply(Some(&live), "m2", &json!({})).unwrap();
    assert!(!live.has("data.a"));
    assert!(!live.has("metadata.managedFields"));
}

#[test]
fn an_update_owns_only_the_fields_it_changes() {
    let kind = config_map();
    let live = kind.apply(None, "m1", &json!({"data": {"a": "1", "b": "1"}})).unwrap();
    let mut new = live.clone();
    new["data"]["a"] = json!("2");
    let live = kind.update(Some(&live), "m2", &new);
    assert_eq!(owned(&live, "m1"), json!({"f:data": {"f:b": {}}}));
    assert_eq!(owned(&live, "m2"), json!({"f:data": {"f:a": {}}}));
    assert_eq!(kind.update(Some(&live), "m3", &live), live);
}

#[test]
fn a_create_owns_its_fields_but_not_the_identity_of_the_object() {
    let kind = Kind::built_in("apps.v1.Deployment", "apps/v1", "Deployment");
    let new = kind.object(&json!({"spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}]}},
        "strategy": {},
    }, "status": {}}));
    let live = kind.update(None, "m", &new);
    assert_eq!(
        owned(&live, "m"),
        json!({"f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}}},
            },
        }})
    );
}

#[test]
fn an_empty_managed_fields_list_resets_but_a_missing_one_does_not() {
    let kind = config_map();
    let live = kind.apply(None, "m1", &json!({"data": {"a": "1"}})).unwrap();
    for reset in [json!([]), json!([{}])] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = reset;
        assert!(!kind.update(Some(&live), "m2", &new).has("metadata.managedFields"));
    }
    let mut new = live.clone();
    new.remove_at("metadata.managedFields");
    assert_eq!(kind.update(Some(&live), "m2", &new), live);
}

#[test]
fn fields_from_before_the_first_apply_get_their_own_owner() {
    let kind = config_map();
    let live = kind.object(&json!({"data": {"a": "1", "b": "1"}}));
    let error = kind.apply(Some(&live), "m1", &json!({"data": {"a": "2"}})).unwrap_err();
    assert!(error.to_string().contains("conflict with \"before-first-apply\" using v1: .data.a"), "{error}");
    let live = kind.force(Some(&live), "m1", &json!({"data": {"a": "2"}}));
    assert_eq!(owned(&live, "before-first-apply"), json!({"f:data": {".": {}, "f:b": {}}}));
}

#[test]
fn invalid_configurations_are_rejected_with_upstreams_messages() {
    let kind = Kind::built_in("apps.v1.Deployment", "apps/v1", "Deployment");
    let refused = |rest: Value, message: &str| {
        let error = kind.apply(None, "m", &rest).unwrap_err().to_string();
        let prefix = "failed to create typed patch object (/a; apps/v1, Kind=Deployment): ";
        assert_eq!(error.strip_prefix(prefix).unwrap_or(&error), message);
    };
    let containers = |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    refused(json!({"nosuch": 1}), ".nosuch: field not declared in schema");
    refused(
        json!({"spec": {"replicas": "x"}}),
        ".spec.replicas: expected numeric (int or float), got string",
    );
    refused(json!({"spec": {"paused": "x"}}), ".spec.paused: expected boolean, got &{x}");
    refused(
        json!({"metadata": {"name": "a", "labels": ["a", 1]}}),
        ".metadata.labels: expected map, got &{[a 1]}",
    );
    refused(
        json!({"metadata": {"name": "a", "labels": {"a": {"b": 1}}}}),
        ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"b\":1}}",
    );
    refused(
        containers(json!([{"name": "a"}, {"name": "a"}])),
        ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
    );
    refused(
        containers(json!(["a"])),
        ".spec.template.spec.containers: element 0: associative list with keys may not have non-map elements",
    );
    refused(
        containers(
            json!([{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]}]),
        ),
        ".spec.template.spec.containers[name=\"a\"].ports: duplicate entries for key [containerPort=80,protocol=\"TCP\"]",
    );
    refused(
        json!({"metadata": {"name": "a", "finalizers": [null]}}),
        ".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null",
    );
    let other = json!({"apiVersion": "v1", "kind": "Pod"});
    let error = apply(None, &other, false, &kind.write("m", "")).unwrap_err();
    assert_eq!(error, ApplyError::BadRequest("invalid object type: /v1, Kind=Pod".to_owned()));
}

#[test]
fn the_schema_of_a_custom_resource_decides_what_is_atomic() {
    let entry = MapDef::object([
        ("k", text()),
        ("p", FieldDef { default: Some("d".into()), ..text() }),
        ("v", FieldDef::new(Scalar::Numeric)),
    ]);
    let free = || MapDef::default().with_element(TypeRef::Deduced);
    let ty = custom_type([
        ("map", FieldDef::new(ListDef::new(entry, ListType::map(["k", "p"])))),
        ("set", FieldDef::new(ListDef::new(Scalar::String, ListType::Set))),
        ("list", FieldDef::new(ListDef::new(Scalar::String, ListType::Atomic))),
        ("whole", FieldDef::new(map_of_text().atomic())),
        ("free", FieldDef::new(free())),
        ("inner", FieldDef::new(free().resource())),
    ]);
    let kind = Kind::custom(&ty);
    let spec = json!({"spec": {
        "map": [{"k": "a", "v": 1}],
        "set": ["x"],
        "list": ["x"],
        "whole": {"a": "b"},
        "free": {"a": {"b": [1]}},
        "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"l": "1"}}, "spec": {"x": 1}},
    }});
    let live = kind.apply(None, "m", &spec).unwrap();
    assert_eq!(
        owned(&live, "m"),
        json!({"f:spec": {
            "f:map": {"k:{\"k\":\"a\",\"p\":\"d\"}": {".": {}, "f:k": {}, "f:v": {}}},
            "f:set": {"v:\"x\"": {}},
            "f:list": {},
            "f:whole": {},
            "f:free": {"f:a": {".": {}, "f:b": {}}},
            "f:inner": {
                "f:apiVersion": {}, "f:kind": {}, "f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {".": {}, "f:x": {}},
            },
        }})
    );
    let error = kind.apply(None, "m", &json!({"spec": {"nosuch": 1}})).unwrap_err();
    assert!(error.to_string().ends_with(".spec.nosuch: field not declared in schema"), "{error}");
}

#[test]
fn a_field_that_became_atomic_is_owned_as_a_whole() {
    let schema = |map: MapDef| custom_type([("m", FieldDef::new(map))]);
    let (before, after) = (schema(map_of_text()), schema(map_of_text().atomic()));
    let live = Kind::custom(&before).apply(None, "m1", &json!({"spec": {"m": {"a": "1"}}})).unwrap();
    assert_eq!(owned(&live, "m1"), json!({"f:spec": {"f:m": {"f:a": {}}}}));
    let live =
        Kind::custom(&after).apply(Some(&live), "m2", &json!({"metadata": {"labels": {"l": "1"}}})).unwrap();
    assert_eq!(owned(&live, "m1"), json!({"f:spec": {"f:m": {}}}));
}

#[test]
fn list_items_keep_their_order_around_applied_items() {
    let kind = Kind::built_in("apps.v1.Deployment", "apps/v1", "Deployment");
    let spec = |names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "i"})).collect();
        json!({"spec": {"template": {"spec": {"containers": containers}}}})
    };
    let names = |object: &Value| -> Vec<String> {
        let containers = object.list_at("spec.template.spec.containers");
        containers.iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
    };
    let live = kind.apply(None, "m1", &spec(&["a", "b", "c"])).unwrap();
    let live = kind.apply(Some(&live), "m2", &spec(&["c", "x", "a"])).unwrap();
    assert_eq!(names(&live), ["b", "c", "x", "a"]);
    let live = kind.apply(Some(&live), "m1", &spec(&["b"])).unwrap();
    assert_eq!(names(&live), ["b", "c", "x", "a"]);
    let live = kind.apply(Some(&live), "m2", &spec(&["a"])).unwrap();
    assert_eq!(names(&live), ["b", "a"]);
}

#[test]
fn the_oldest_update_entries_are_merged_beyond_the_limit() {
    let kind = config_map();
    let mut live = kind.update(None, "m00", &kind.object(&json!({"data": {"k00": "1"}})));
    for n in 1..12 {
        let mut new = live.clone();
        new["data"][format!("k{n:02}")] = json!("1");
        let (manager, time) = (format!("m{n:02}"), format!("2026-01-03T00:00:{n:02}Z"));
        update(Some(&live), &mut new, &kind.write(&manager, &time));
        live = new;
    }
    let entries = live.list_at("metadata.managedFields");
    assert_eq!(entries.len(), 10);
    assert_eq!(
        owned(&live, "ancient-changes"),
        json!({"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}})
    );
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(entries[0]["time"], "2026-01-03T00:00:02Z");
}

#[test]
fn kubectl_takes_over_client_side_applied_fields() {
    let kind = config_map();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let last =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}});
    let mut new = kind.object(&json!({"data": {"a": "1", "b": "1"}}));
    new["metadata"]["annotations"] = json!({annotation: last.to_string()});
    let live = kind.update(None, "kubectl-client-side-apply", &new);
    assert!(kind.apply(Some(&live), "other", &json!({"data": {"a": "2"}})).is_err());
    assert!(kind.apply(Some(&live), "kubectl", &json!({"data": {"b": "2"}})).is_err());
    let live = kind.apply(Some(&live), "kubectl", &json!({"data": {"a": "2"}})).unwrap();
    assert_eq!(owned(&live, "kubectl"), json!({"f:data": {"f:a": {}}}));
    let kept = live["metadata"]["annotations"][annotation].as_str().unwrap();
    assert_eq!(
        kept,
        "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}\n"
    );
}

#[test]
fn timestamps_alone_do_not_change_the_object() {
    let kind = config_map();
    let live = kind.apply(None, "m", &json!({"data": {"a": "1"}})).unwrap();
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("2027-01-01T00:00:00Z");
    let moved = new.clone();
    keep_times(&live, &mut new);
    assert_eq!(new, live);
    let mut changed = moved;
    changed["data"]["a"] = json!("2");
    let before = changed.clone();
    keep_times(&live, &mut changed);
    assert_eq!(changed, before);
}

#[test]
fn the_manager_name_defaults_to_the_user_agent() {
    assert_eq!(manager_name("m", "kubectl/v1"), "m");
    assert_eq!(manager_name("", "kubectl/v1.30 (linux)"), "kubectl");
    assert_eq!(manager_name("", "a\u{1}b/1"), "ab");
    assert_eq!(manager_name("", &"x".repeat(200)).len(), 128);
}

#[test]
fn scaling_owns_the_replicas_field() {
    let mut paths = ReplicasPaths::default();
    paths.add("apps/v1", Some(".spec.replicas"));
    let entry = |manager: &str, operation: &str, version: &str, fields: Value| {
        json!({"manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"})
    };
    let fields = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
    let object = ManagedFields::decode(&json!([entry("m", "Apply", "apps/v1", fields)])).unwrap();
    let scale = to_scale(&object, &paths);
    assert_eq!(scale.encode()[0]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(scale.encode()[0]["apiVersion"], "autoscaling/v1");
    assert_eq!(from_scale(&object, &scale, "apps/v1", &paths), object);
    let scaled = json!([entry("hpa", "Update", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}))]);
    let after = from_scale(&object, &ManagedFields::decode(&scaled).unwrap(), "apps/v1", &paths).encode();
    assert_eq!(after[0]["fieldsV1"], json!({"f:spec": {"f:paused": {}}}));
    assert_eq!(after[1]["apiVersion"], "apps/v1");
    assert!(after[1].get("time").is_none());
}

#[test]
fn an_endpoint_owns_only_the_fields_it_can_change() {
    let kind = Kind {
        reset: Reset::fields(&[&["status"]]),
        ..Kind::built_in("apps.v1.Deployment", "apps/v1", "Deployment")
    };
    let live = kind.apply(None, "m", &json!({"spec": {"replicas": 1}, "status": {"replicas": 3}})).unwrap();
    assert_eq!(owned(&live, "m"), json!({"f:spec": {"f:replicas": {}}}));
    let kind = Kind { reset: Reset::fields(&[&["spec"], &["metadata", "labels"]]), ..kind };
    let live = kind.apply(None, "m", &json!({"spec": {"replicas": 1}, "status": {"replicas": 3}})).unwrap();
    assert_eq!(owned(&live, "m"), json!({"f:status": {"f:replicas": {}}}));
}

/// A version in which `data` is called `stuff`.
struct Renamed;

impl Versions for Renamed {
    fn schema(&self, api_version: &str) -> Result<Schema<'_>, ConvertError> {
        match api_version {
            "e.io/v1" | "e.io/v2" => Ok(Schema::deduced()),
            _ => Err(ConvertError::Missing),
        }
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        self.schema(api_version)?;
        let mut object = object.clone();
        object["apiVersion"] = json!(api_version);
        let (from, to) = if api_version == "e.io/v1" { ("stuff", "data") } else { ("data", "stuff") };
        if let Some(value) = object.remove_at(from) {
            object[to] = value;
        }
        Ok(object)
    }
}

#[test]
fn managed_fields_are_compared_in_their_own_version() {
    let reset = Reset::default();
    let one = |manager, api_version| Write {
        manager,
        api_version,
        kind: "W",
        subresource: "",
        time: "2026-01-01T00:00:00Z",
        versions: &Renamed,
        reset: &reset,
        owners: Owners::Json,
    };
    let wanted = |api_version: &str, field: &str, value: &str| json!({"apiVersion": api_version, "kind": "W", "metadata": {"name": "a"}, field: {"k": value}});
    let live = apply(None, &wanted("e.io/v1", "data", "1"), false, &one("m1", "e.io/v1")).unwrap();
    let live = Renamed.convert(&live, "e.io/v2").unwrap();
    let error =
        apply(Some(&live), &wanted("e.io/v2", "stuff", "2"), false, &one("m2", "e.io/v2")).unwrap_err();
    assert!(error.to_string().ends_with("conflict with \"m1\": .data.k"), "{error}");
    let same = apply(Some(&live), &wanted("e.io/v2", "stuff", "1"), false, &one("m1", "e.io/v2")).unwrap();
    assert_eq!(owned(&same, "m1"), json!({"f:stuff": {".": {}, "f:k": {}}}));
    let empty = json!({"apiVersion": "e.io/v2", "kind": "W", "metadata": {"name": "a"}});
    let gone = apply(Some(&live), &empty, false, &one("m1", "e.io/v2")).unwrap();
    assert!(!gone.has("stuff") && !gone.has("data"), "{gone}");
}

fn text() -> FieldDef {
    FieldDef::new(Scalar::String)
}

fn map_of_text() -> MapDef {
    MapDef::default().with_element(TypeRef::Def(Scalar::String.into()))
}

/// The type of a custom resource with these fields in its spec.
fn custom_type<const N: usize>(spec: [(&str, FieldDef); N]) -> TypeDef {
    MapDef::object([("spec", FieldDef::new(MapDef::object(spec)))]).resource().into()
}
