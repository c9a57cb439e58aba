//! Bundles of several project shapes deploy the objects of config/default. The operator is not compiled: a script
//! in place of cargo returns a program with an empty inventory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::same_objects::{assert_same, kustomized, normalise};
use super::{INIT, ORDER, by_id, documents, project};
use crate::delivery::script;
use crate::run::{self, command};
use crate::scaffold::Folder;

const NAMESPACE: &str = "shop-system";
const CSV: &str = "bundle/manifests/shop.clusterserviceversion.yaml";

/// Generates the bundle with a cargo that does not compile.
#[track_caller]
fn bundle(folder: &Folder) {
    let tools = tempfile::tempdir().expect("a folder");
    let (cargo, operator) = (tools.path().join("cargo"), tools.path().join("shop"));
    script(&operator, "#!/bin/sh\necho '{\"format\": 1, \"program\": \"shop\"}'\n");
    let built = json!({
        "reason": "compiler-artifact",
        "target": { "kind": ["bin"], "name": "shop" },
        "executable": operator,
    });
    script(
        &cargo,
        &format!(
            "#!/bin/sh\nif [ \"$1\" = build ]; then echo '{built}'; else exec {} \"$@\"; fi\n",
            env!("CARGO")
        ),
    );
    let made = run::run(command("bundle").current_dir(folder.path()).env("CARGO", &cargo));
    assert_eq!(made.status, 0, "{made}");
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The rules of all permissions of a ClusterServiceVersion.
fn granted(csv: &Value, field: &str) -> BTreeSet<String> {
    let pointer = format!("/spec/install/spec/{field}");
    let permissions = list(csv, &pointer);
    permissions.flat_map(|it| list(it, "/rules")).map(ToString::to_string).collect()
}

/// Removes the bindings of a kind and their roles, and returns the rules.
fn bound(objects: &mut std::collections::BTreeMap<String, Value>, binding: &str) -> BTreeSet<String> {
    let ids: Vec<String> =
        objects.iter().filter(|(_, it)| it["kind"] == binding).map(|(id, _)| id.clone()).collect();
    let mut rules = BTreeSet::new();
    for id in ids {
        let binding = objects.remove(&id).expect("it exists");
        assert_eq!(binding["subjects"][0]["name"], "shop-controller-manager", "{id}");
        let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let kind = text("/roleRef/kind");
        let place = if kind == "Role" { NAMESPACE } else { "-" };
        let role = objects.remove(&format!("{kind} {place}/{}", text("/roleRef/name"))).expect("a role");
        rules.extend(list(&role, "/rules").map(ToString::to_string));
    }
    rules
}

/// The files of the bundle besides the ClusterServiceVersion.
fn files(folder: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join("bundle/manifests")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if !path.to_string_lossy().ends_with(".clusterserviceversion.yaml") {
            found.extend(documents(&fs::read_to_string(path).expect("a file")));
        }
    }
    found
}

#[test]
fn bundles_deploy_the_objects_of_config_default() {
    let namespaced = format!("{INIT} --namespaced");
    let all = "edit --network-policy --prometheus";
    for lines in [vec![INIT, ORDER], vec![INIT, ORDER, all], vec![&*namespaced, ORDER]] {
        let folder = project(&lines);
        bundle(&folder);
        let csv: Value = serde_saphyr::from_str(&folder.read(CSV)).expect("YAML");
        let mut deployed = kustomized(&folder);

        let mut manager =
            deployed.remove(&format!("Deployment {NAMESPACE}/shop-controller-manager")).expect("it exists");
        let mut installed =
            csv.pointer("/spec/install/spec/deployments/0/spec").expect("a Deployment").clone();
        normalise(&mut installed);
        if lines[0] == namespaced {
            // OLM passes the namespaces of the OperatorGroup.
            let variables = manager["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut();
            let watched = variables.expect("variables").iter_mut().find(|it| it["name"] == "WATCH_NAMESPACE");
            watched.expect("the namespace")["valueFrom"]["fieldRef"]["fieldPath"] =
                "metadata.annotations['olm.targetNamespaces']".into();
        }
        assert_eq!(format!("{installed:#}"), format!("{:#}", manager["spec"]), "{lines:?}");

        deployed.remove(&format!("ServiceAccount {NAMESPACE}/shop-controller-manager")).expect("it exists");
        for (field, binding) in [("permissions", "RoleBinding"), ("clusterPermissions", "ClusterRoleBinding")]
        {
            assert_eq!(granted(&csv, field), bound(&mut deployed, binding), "{lines:?}: {field}");
        }

        let mut rest = by_id(
            deployed
                .into_values()
                .map(|mut object| {
                    object["metadata"].as_object_mut().expect("metadata").remove("namespace");
                    object
                })
                .collect(),
        );
        let mut files = by_id(files(&folder.path()));
        for objects in [&mut rest, &mut files] {
            objects.values_mut().for_each(normalise);
        }
        assert_same(&files, &rest);
    }
}
