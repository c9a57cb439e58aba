//! The chart with default values, config/default and the bundle deploy the same objects.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{CONVERSION, INIT, ORDER, ORDER_V2, WEBHOOKS, by_id, documents, helm, project};
use crate::scaffold::Folder;

type Objects = BTreeMap<String, Value>;

/// The objects of config/default.
pub(super) fn kustomized(folder: &Folder) -> Objects {
    let mut objects = by_id(documents(&folder.shell("kubectl", "kustomize config/default", &[])));
    // `helm install --create-namespace` and OLM create the namespace.
    objects.retain(|id, _| !id.starts_with("Namespace "));
    objects.values_mut().for_each(normalise);
    objects
}

fn charted(folder: &Folder) -> Objects {
    let text = helm(&folder.path(), &["template", "shop", "dist/chart", "--namespace", "shop-system"]);
    let mut objects = by_id(documents(&text));
    objects.values_mut().for_each(normalise);
    objects
}

/// Removes what identifies the tool and the release.
pub(super) fn normalise(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for label in ["managed-by", "instance", "version"] {
                fields.remove(&format!("app.kubernetes.io/{label}"));
            }
            fields.remove("helm.sh/chart");
            fields.remove("helm.sh/resource-policy");
            // The chart's webhooks also ignore the release's namespace by name.
            if fields.get("key").is_some_and(|key| key == "kubernetes.io/metadata.name")
                && let Some(Value::Array(values)) = fields.get_mut("values")
            {
                values.retain(|value| value != "shop-system");
            }
            fields.values_mut().for_each(normalise);
            for field in ["annotations", "labels"] {
                if fields.get(field).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
                    fields.remove(field);
                }
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(normalise);
            // Ports, volumes and variables have names; their order has no meaning.
            if items.iter().all(|item| item["name"].is_string()) {
                items.sort_by_key(|item| item["name"].to_string());
            }
        }
        _ => {}
    }
}

#[track_caller]
pub(super) fn assert_same(one: &Objects, other: &Objects) {
    let ids = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(ids(one), ids(other));
    for (id, object) in one {
        assert_eq!(format!("{object:#}"), format!("{:#}", other[id]), "{id}");
    }
}

#[test]
fn the_chart_deploys_the_objects_of_config_default() {
    let pod = "create webhook --group core --version v1 --kind Pod --defaulting";
    let namespaced = format!("{INIT} --namespaced");
    let all = "edit --webhook-certs cert-manager --network-policy --prometheus";
    for lines in [
        vec![INIT],
        vec![INIT, ORDER],
        vec![&namespaced, ORDER, WEBHOOKS],
        vec![INIT, ORDER, ORDER_V2, WEBHOOKS, CONVERSION],
        vec![INIT, ORDER, ORDER_V2, WEBHOOKS, CONVERSION, all],
        vec![INIT, pod, "edit --webhook-certs files"],
        vec![INIT, pod, "edit --webhook-certs none --network-policy"],
        vec![INIT, "create api --group apps --version v1 --kind Deployment --resource=false"],
    ] {
        let folder = project(&lines);
        folder.done("chart");
        assert_same(&charted(&folder), &kustomized(&folder));
        // The CA is injected. A rendered one would replace it at every upgrade.
        let templates = folder.files();
        let mut templates = templates.iter().filter(|(path, _)| path.starts_with("dist/chart/")).peekable();
        assert!(templates.peek().is_some());
        for (path, text) in templates {
            assert!(!text.contains("caBundle"), "{path}");
        }
    }
}

#[test]
fn changes_of_config_are_in_the_chart() {
    let folder = project(&[INIT, ORDER]);
    // A further variable, a sidecar, and an object that kubewright does not know.
    let manager = folder.read("config/manager/manager.yaml");
    let edited = manager.replace(
        "        ports:\n",
        "        env:\n        - name: MODE\n          value: '{{ fast }}'\n        - name: SETTINGS\n          valueFrom:\n            configMapKeyRef:\n              name: settings\n              key: mode\n        ports:\n",
    ) + "      - name: proxy\n        image: example.com/proxy:v1\n";
    assert_ne!(manager, edited);
    folder.write("config/manager/manager.yaml", &edited);
    folder.write(
        "config/manager/settings.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  namespace: system\ndata:\n  mode: 'see {{ .Values }} in shop-system'\n",
    );
    folder.write(
        "config/manager/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- manager.yaml\n- settings.yaml\n",
    );
    folder.done("chart");
    assert_same(&charted(&folder), &kustomized(&folder));
    assert!(folder.read("dist/chart/values.yaml").contains("- name: MODE"));
    assert!(folder.read("dist/chart/templates/extras/configmap-settings.yaml").contains("resourceName"));
}
