//! Server-side apply by several field managers, compared with a model of field ownership.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::world::{alone, client, object, server, soon};

/// A part of an object that a field manager may own. An item of a list and its fields are owned separately.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// An entry of a map.
    Entry(String),
    /// An item of a list with map keys.
    Item(String),
    /// The value of such an item.
    ItemValue(String),
    /// An item of a set.
    Tag(String),
}

/// An apply configuration; parts without a value are `None`.
type Wanted = BTreeMap<Part, Option<String>>;

/// Manager and operation: the same name with Apply and Update is two managers.
type Owner = (String, &'static str);

/// The expected state of an object by upstream's rules.
#[derive(Debug, Default, Clone, PartialEq)]
struct Model {
    values: Wanted,
    owners: BTreeMap<Part, BTreeSet<Owner>>,
}

impl Model {
    /// Returns false and changes nothing on a conflict with another field manager.
    fn apply(&mut self, manager: &str, wanted: &Wanted, force: bool) -> bool {
        let owner = (manager.to_owned(), "Apply");
        let fought_for: Vec<Part> = wanted
            .iter()
            .filter(|(part, value)| self.values.get(part).is_some_and(|there| there != *value))
            .map(|(part, _)| part.clone())
            .collect();
        let owned_by_others = |part: &Part| {
            self.owners.get(part).is_some_and(|owners| owners.iter().any(|found| *found != owner))
        };
        if !force && fought_for.iter().any(owned_by_others) {
            return false;
        }
        for part in fought_for {
            self.owners.remove(&part);
        }
        for owners in self.owners.values_mut() {
            owners.remove(&owner);
        }
        for (part, value) in wanted {
            self.values.insert(part.clone(), value.clone());
            self.owners.entry(part.clone()).or_default().insert(owner.clone());
        }
        self.forget();
        true
    }

    /// Sets or removes entries.
    fn update(&mut self, manager: &str, changes: &BTreeMap<String, Option<String>>) {
        for (name, value) in changes {
            let part = Part::Entry(name.clone());
            if self.values.get(&part).map(Option::as_ref) == value.as_ref().map(Some) {
                continue;
            }
            self.owners.remove(&part);
            if let Some(value) = value {
                self.values.insert(part.clone(), Some(value.clone()));
                self.owners.insert(part, [(manager.to_owned(), "Update")].into());
            }
        }
        self.forget();
    }

    /// Removes parts without an owner.
    fn forget(&mut self) {
        self.owners.retain(|_, owners| !owners.is_empty());
        self.values.retain(|part, _| self.owners.contains_key(part));
    }
}

/// The object and its managedFields as a model.
fn read(object: &DynamicObject) -> Model {
    let spec = &object.data["spec"];
    let mut model = Model::default();
    for (name, value) in spec["entries"].as_object().into_iter().flatten() {
        model.values.insert(Part::Entry(name.clone()), value.as_str().map(str::to_owned));
    }
    for item in spec["items"].as_array().into_iter().flatten() {
        let name = item["name"].as_str().unwrap_or_default().to_owned();
        if let Some(value) = item["value"].as_str() {
            model.values.insert(Part::ItemValue(name.clone()), Some(value.to_owned()));
        }
        model.values.insert(Part::Item(name), None);
    }
    for tag in spec["tags"].as_array().into_iter().flatten() {
        model.values.insert(Part::Tag(tag.as_str().unwrap_or_default().to_owned()), None);
    }
    for entry in object.managed_fields() {
        let operation = if entry.operation.as_deref() == Some("Apply") { "Apply" } else { "Update" };
        let owner = (entry.manager.clone().unwrap_or_default(), operation);
        let fields = entry.fields_v1.as_ref().map_or(&Value::Null, |fields| &fields.0["f:spec"]);
        for part in owned(fields) {
            model.owners.entry(part).or_default().insert(owner.clone());
        }
    }
    model
}

/// The parts in `fieldsV1`.
fn owned(fields: &Value) -> Vec<Part> {
    let members = |name: &str| fields[name].as_object().into_iter().flatten().filter(|(key, _)| *key != ".");
    let mut parts = Vec::new();
    for (key, _) in members("f:entries") {
        parts.push(Part::Entry(key.trim_start_matches("f:").to_owned()));
    }
    for (key, fields) in members("f:items") {
        let key: Value = serde_json::from_str(key.trim_start_matches("k:")).unwrap_or_default();
        let name = key["name"].as_str().unwrap_or_default().to_owned();
        if fields.get("f:value").is_some() {
            parts.push(Part::ItemValue(name.clone()));
        }
        if fields.get(".").is_some() {
            parts.push(Part::Item(name));
        }
    }
    for (key, _) in members("f:tags") {
        parts.push(Part::Tag(key.trim_start_matches("v:").trim_matches('"').to_owned()));
    }
    parts
}

/// The apply configuration for these parts.
fn configuration(wanted: &Wanted) -> Value {
    let mut spec = Map::new();
    for (part, value) in wanted {
        match part {
            Part::Entry(name) => {
                spec.entry("entries").or_insert_with(|| json!({}))[name] = json!(value);
            }
            Part::Item(name) => {
                let items = spec.entry("items").or_insert_with(|| json!([]));
                let value = wanted.get(&Part::ItemValue(name.clone()));
                let item = value
                    .map_or_else(|| json!({"name": name}), |value| json!({"name": name, "value": value}));
                items.as_array_mut().expect("created above").push(item);
            }
            Part::ItemValue(_) => {}
            Part::Tag(name) => {
                let tags = spec.entry("tags").or_insert_with(|| json!([]));
                tags.as_array_mut().expect("created above").push(name.as_str().into());
            }
        }
    }
    let mut object = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "a"}});
    // An empty spec would be owned itself.
    if !spec.is_empty() {
        object["spec"] = spec.into();
    }
    object
}

fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Thing"))
}

/// Creates a CRD with a map, a list with map keys, and a set.
async fn things(client: &Client) -> Result<Api<DynamicObject>> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "required": ["name"], "properties": {"name": text, "value": text}});
    let definition = object(json!({
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "entries": {"type": "object", "additionalProperties": text},
                    "items": {
                        "type": "array", "items": item,
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    },
                    "tags": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
                }}},
            }}}],
        },
    }));
    definitions.create(&PostParams::default(), &definition).await?;
    Ok(Api::default_namespaced_with(client.clone(), &resource()))
}

/// Parts that keep the three collections from becoming empty, since empty ones become null.
fn anchor() -> Wanted {
    let name = || "anchor".to_owned();
    [(Part::Entry(name()), Some(name())), (Part::Item(name()), None), (Part::Tag(name()), None)].into()
}

#[derive(Debug, Clone)]
enum Step {
    Apply { manager: String, wanted: Wanted, force: bool },
    Update { manager: String, changes: BTreeMap<String, Option<String>> },
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let values = || proptest::collection::btree_map("[xyz]", "[12]", 0..3);
    let items = proptest::collection::btree_map("[xyz]", proptest::option::of("[12]"), 0..3);
    let tags = proptest::collection::btree_set("[xyz]", 0..3);
    (values(), items, tags).prop_map(|(entries, items, tags)| {
        let mut wanted = Wanted::new();
        for (name, value) in entries {
            wanted.insert(Part::Entry(name), Some(value));
        }
        for (name, value) in items {
            if value.is_some() {
                wanted.insert(Part::ItemValue(name.clone()), value);
            }
            wanted.insert(Part::Item(name), None);
        }
        wanted.extend(tags.into_iter().map(|name| (Part::Tag(name), None)));
        wanted
    })
}

fn step() -> impl Strategy<Value = Step> {
    let manager = || "m[123]";
    let changes = proptest::collection::btree_map("[xyz]", proptest::option::of("[12]"), 1..3);
    prop_oneof![
        4 => (manager(), wanted(), any::<bool>())
            .prop_map(|(manager, wanted, force)| Step::Apply { manager, wanted, force }),
        1 => (manager(), changes).prop_map(|(manager, changes)| Step::Update { manager, changes }),
    ]
}

async fn apply(
    things: &Api<DynamicObject>,
    manager: &str,
    wanted: &Wanted,
    force: bool,
) -> kube::Result<DynamicObject> {
    let mut params = PatchParams::apply(manager);
    params.force = force;
    things.patch("a", &params, &Patch::Apply(configuration(wanted))).await
}

/// Runs the steps on a server and in the model, and compares after each.
async fn agree(steps: &[Step]) -> Result<()> {
    let things = things(&alone()).await?;
    let mut model = Model::default();
    model.apply("anchor", &anchor(), false);
    let mut last = apply(&things, "anchor", &anchor(), false).await?;
    for step in steps {
        tokio::time::advance(Duration::from_secs(2)).await;
        let before = model.clone();
        let after = match step {
            Step::Apply { manager, wanted, force } => {
                let agreed = model.apply(manager, wanted, *force);
                match apply(&things, manager, wanted, *force).await {
                    Ok(after) => {
                        ensure!(agreed, "{step:?} did not conflict: {:?}", before.owners);
                        let again = apply(&things, manager, wanted, *force).await?;
                        ensure!(again == after, "applying again changed the object: {step:?}");
                        after
                    }
                    Err(kube::Error::Api(status)) if status.is_conflict() => {
                        ensure!(!agreed, "{step:?} is a conflict: {}", status.message);
                        things.get("a").await?
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Step::Update { manager, changes } => {
                model.update(manager, changes);
                let params = PatchParams { field_manager: Some(manager.clone()), ..PatchParams::default() };
                let patch = Patch::Merge(json!({"spec": {"entries": changes}}));
                things.patch("a", &params, &patch).await?
            }
        };
        let found = read(&after);
        ensure!(found == model, "after {step:?}\nfound  {found:?}\nwanted {model:?}");
        if model == before {
            ensure!(after.resource_version() == last.resource_version(), "{step:?} wrote nothing new");
        }
        last = after;
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 48, failure_persistence: None, ..Config::default() })]

    #[test]
    fn field_ownership_matches_the_model(steps in proptest::collection::vec(step(), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let agreed = runtime.block_on(agree(&steps));
        agreed.map_err(|error| TestCaseError::fail(format!("{error:#}")))?;
    }
}

/// Each field manager applies more and more of its own fields; none is lost, and there are no conflicts.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_field_managers_lose_no_fields() -> Result<()> {
    const MANAGERS: usize = 8;
    const ROUNDS: usize = 10;
    let server = server();
    let things = things(&client(&server)).await?;
    apply(&things, "anchor", &anchor(), false).await?;
    let parts = |manager: usize, rounds: usize| -> Wanted {
        let mut wanted = Wanted::new();
        for round in 0..rounds {
            let name = || format!("m{manager}-{round}");
            wanted.insert(Part::Entry(name()), Some(name()));
            wanted.insert(Part::Item(name()), None);
            wanted.insert(Part::ItemValue(name()), Some(name()));
            wanted.insert(Part::Tag(name()), None);
        }
        wanted
    };
    let mut tasks = JoinSet::new();
    for manager in 0..MANAGERS {
        let things: Api<DynamicObject> = Api::default_namespaced_with(client(&server), &resource());
        tasks.spawn(async move {
            for rounds in 1..=ROUNDS {
                apply(&things, &format!("m{manager}"), &parts(manager, rounds), false).await?;
            }
            // At the end each gives up one of its fields.
            let mut last = parts(manager, ROUNDS);
            last.remove(&Part::Entry(format!("m{manager}-0")));
            apply(&things, &format!("m{manager}"), &last, false).await?;
            anyhow::Ok(())
        });
    }
    while let Some(done) = soon("a manager", tasks.join_next()).await {
        done??;
    }
    let mut wanted = Model::default();
    wanted.apply("anchor", &anchor(), false);
    for manager in 0..MANAGERS {
        let mut last = parts(manager, ROUNDS);
        last.remove(&Part::Entry(format!("m{manager}-0")));
        wanted.apply(&format!("m{manager}"), &last, false);
    }
    assert_eq!(read(&things.get("a").await?), wanted);
    Ok(())
}

/// All force a different value of one field; the last wins, and all keep their other fields.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_forced_apply_takes_only_the_conflicting_field() -> Result<()> {
    const MANAGERS: usize = 8;
    let server = server();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let mut tasks = JoinSet::new();
    for at in 0..MANAGERS {
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
        tasks.spawn(async move {
            let manager = format!("m{at}");
            let data = json!({"shared": manager, manager.as_str(): "own"});
            let body =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
            for _ in 0..10 {
                maps.patch("a", &PatchParams::apply(&manager).force(), &Patch::Apply(&body)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = soon("a manager", tasks.join_next()).await {
        done??;
    }
    let map = maps.get("a").await?;
    let data = map.data.clone().unwrap_or_default();
    let winner = data.get("shared").context("the field is set")?;
    assert_eq!(data.len(), MANAGERS + 1, "{data:?}");
    for entry in map.managed_fields() {
        let fields = entry.fields_v1.as_ref().map_or(&Value::Null, |fields| &fields.0["f:data"]);
        let manager = entry.manager.clone().unwrap_or_default();
        assert_eq!(fields.get("f:shared").is_some(), manager == *winner, "{manager}: {fields}");
        assert!(fields.get(format!("f:{manager}")).is_some(), "{manager}: {fields}");
    }
    Ok(())
}
