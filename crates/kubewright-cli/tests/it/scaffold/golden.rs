//! Golden projects in testdata/golden: `init` in full, others as a difference to it.
//!
//! `UPDATE_GOLDEN=1 cargo test -p kubewright-cli golden` updates them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Folder;

const INIT: &str = "init --domain example.com --kubewright-version 0.1.0";
const ORDER: &str = "create api --group sales --version v1 --kind Order";

pub(crate) type Files = BTreeMap<String, String>;

fn made(lines: &[&str]) -> Files {
    let folder = Folder::new("shop");
    for line in lines {
        folder.done(line);
    }
    // The scaffold record repeats the other files.
    folder.files().into_iter().filter(|(path, _)| !path.starts_with(".kubewright/")).collect()
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/golden").join(name)
}

#[track_caller]
pub(crate) fn is_golden(name: &str, files: &Files) {
    let place = place(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = fs::remove_dir_all(&place);
        for (path, text) in files {
            let path = place.join(path);
            fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
    }
    let mut golden = Vec::new();
    super::walk(&place, Path::new(""), &mut golden);
    let golden: Files = golden.into_iter().collect();
    let paths = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(files), paths(&golden), "files of {name}");
    for (path, text) in files {
        assert_eq!(*text, golden[path], "{name}/{path}");
    }
}

/// Compares the difference to a new project.
#[track_caller]
fn differs_as_golden(name: &str, lines: &[&str]) {
    let start = made(&[INIT]);
    let mut files = made(lines);
    files.retain(|path, text| start.get(path) != Some(text));
    is_golden(name, &files);
}

#[test]
fn a_new_project_is_golden() {
    is_golden("init", &made(&[INIT]));
}

#[test]
fn the_cookbook_lists_the_dependencies_of_a_new_project() {
    let rendered: toml::Table = made(&[INIT])["Cargo.toml"].parse().expect("Cargo.toml is TOML");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cookbook/index.md");
    let page = fs::read_to_string(page).expect("the cookbook has an index");
    let (_, block) = page.split_once("```toml\n").expect("the page has the dependencies");
    let (block, _) = block.split_once("```").expect("the block ends");
    let shown: toml::Table = block.parse().expect("the block is TOML");
    for table in ["dependencies", "dev-dependencies"] {
        assert_eq!(shown[table], rendered[table], "{table}");
    }
}

#[test]
fn a_project_with_a_kind_is_golden() {
    differs_as_golden("single", &[INIT, ORDER]);
}

#[test]
fn a_project_with_two_versions_is_golden() {
    differs_as_golden("two-versions", &[INIT, ORDER, "create api --group sales --version v2 --kind Order"]);
}

#[test]
fn a_project_with_two_controllers_of_a_kind_is_golden() {
    let backup = format!("{ORDER} --controller-name order-backup");
    differs_as_golden("two-controllers", &[INIT, ORDER, &backup]);
}

#[test]
fn a_project_with_several_groups_is_golden() {
    let init = format!("{INIT} --multigroup");
    differs_as_golden(
        "multigroup",
        &[&init, ORDER, "create api --group stock --version v1beta1 --kind Warehouse"],
    );
}

#[test]
fn a_controller_of_a_built_in_kind_is_golden() {
    differs_as_golden(
        "core",
        &[INIT, "create api --group apps --version v1 --kind Deployment --resource=false"],
    );
}

#[test]
fn a_cluster_scoped_kind_is_golden() {
    differs_as_golden("cluster", &[INIT, &format!("{ORDER} --namespaced=false")]);
}

#[test]
fn a_namespaced_project_is_golden() {
    differs_as_golden("namespaced", &[&format!("{INIT} --namespaced"), ORDER]);
}

#[test]
fn switching_to_multigroup_later_gives_the_same_project() {
    let init = format!("{INIT} --multigroup");
    assert_eq!(made(&[INIT, ORDER, "edit --multigroup"]), made(&[&init, ORDER]));
    assert_eq!(made(&[&init, ORDER, "edit --multigroup=false"]), made(&[INIT, ORDER]));
}

#[test]
fn switching_to_namespaced_later_gives_the_same_project() {
    let init = format!("{INIT} --namespaced");
    assert_eq!(made(&[INIT, ORDER, "edit --namespaced"]), made(&[&init, ORDER]));
    assert_eq!(made(&[&init, ORDER, "edit --namespaced=false"]), made(&[INIT, ORDER]));
}

#[test]
fn a_project_with_imported_crds_is_golden() {
    let from = |name: &str| {
        format!("create api --from-crd {}/testdata/crds/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
    };
    differs_as_golden("from-crd", &[INIT, "edit --multigroup", &from("odd"), &from("markdown_view")]);
}

#[test]
fn deleting_everything_gives_the_initial_project() {
    let delete = "delete api --group sales --version v1 --kind Order";
    assert_eq!(made(&[INIT, ORDER, delete]), made(&[INIT]));
}

const ORDER_V2: &str = "create api --group sales --version v2 --kind Order";
const WEBHOOKS: &str =
    "create webhook --group sales --version v1 --kind Order --defaulting --programmatic-validation";
const CONVERSION: &str = "create webhook --group sales --version v1 --kind Order --conversion --spoke v2";
const POD: &str = "create webhook --group core --version v1 --kind Pod --defaulting";

#[test]
fn a_project_with_webhooks_is_golden() {
    differs_as_golden("webhooks", &[INIT, ORDER, WEBHOOKS]);
}

#[test]
fn a_project_with_a_conversion_is_golden() {
    differs_as_golden("conversion", &[INIT, ORDER, ORDER_V2, CONVERSION]);
}

#[test]
fn a_project_with_cert_manager_is_golden() {
    let certs = "edit --webhook-certs cert-manager";
    differs_as_golden("cert-manager", &[INIT, ORDER, ORDER_V2, WEBHOOKS, CONVERSION, certs]);
}

#[test]
fn webhooks_of_a_built_in_kind_are_golden() {
    differs_as_golden("core-webhooks", &[INIT, POD]);
}

#[test]
fn adding_webhooks_one_by_one_gives_the_same_project() {
    let at_once = made(&[INIT, ORDER, WEBHOOKS]);
    let one = "create webhook --group sales --version v1 --kind Order";
    let (defaulting, validation) =
        (format!("{one} --defaulting"), format!("{one} --programmatic-validation"));
    assert_eq!(made(&[INIT, ORDER, &defaulting, &validation]), at_once);
    assert_eq!(made(&[INIT, ORDER, &validation, &defaulting, &validation]), at_once);
    let delete = "delete webhook --group sales --version v1 --kind Order";
    assert_eq!(made(&[INIT, ORDER, WEBHOOKS, delete]), made(&[INIT, ORDER]));
    let delete = format!("{delete} --programmatic-validation");
    assert_eq!(made(&[INIT, ORDER, WEBHOOKS, &delete]), made(&[INIT, ORDER, &defaulting]));
}

/// The kustomize output of config/default.
fn deployed(lines: &[&str]) -> Vec<Value> {
    let folder = Folder::new("shop");
    for line in lines {
        folder.done(line);
    }
    let text = folder.shell("kubectl", "kustomize config/default", &[]);
    serde_saphyr::from_multiple(&text).expect("it is YAML")
}

fn find<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn the_service_name_is_replaced_everywhere() {
    for lines in [
        vec![INIT, ORDER, WEBHOOKS],
        vec![INIT, ORDER, ORDER_V2, CONVERSION],
        vec![
            INIT,
            ORDER,
            ORDER_V2,
            WEBHOOKS,
            CONVERSION,
            "edit --webhook-certs cert-manager --network-policy",
        ],
        vec![INIT, POD, "edit --webhook-certs files"],
        vec![INIT, POD, "edit --webhook-certs none --namespaced"],
    ] {
        let objects = deployed(&lines);
        let services = find(&objects, "Service");
        let service = services
            .iter()
            .find(|service| service["metadata"]["name"] == "shop-webhook-service")
            .expect("the Service is deployed");
        assert_eq!(service["metadata"]["namespace"], "shop-system");
        let mut called = Vec::new();
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            for configuration in find(&objects, kind) {
                called.extend(configuration["webhooks"].as_array().into_iter().flatten().cloned());
            }
        }
        let conversions = find(&objects, "CustomResourceDefinition");
        let conversions = conversions.iter().filter_map(|crd| crd.pointer("/spec/conversion/webhook"));
        called.extend(conversions.cloned());
        assert!(!called.is_empty(), "{lines:?}");
        for webhook in called {
            let service = &webhook["clientConfig"]["service"];
            assert_eq!(
                (&service["name"], &service["namespace"]),
                (&"shop-webhook-service".into(), &"shop-system".into())
            );
        }
        let manager = find(&objects, "Deployment")[0];
        let container = &manager["spec"]["template"]["spec"]["containers"][0];
        let name = container["env"].as_array().into_iter().flatten();
        let name =
            name.clone().find(|variable| variable["name"] == "WEBHOOK_SERVICE_NAME").expect("it is set");
        assert_eq!(name["value"], "shop-webhook-service");
        let ports = container["ports"].as_array().expect("it has ports");
        assert!(ports.iter().any(|port| port["name"] == service["spec"]["ports"][0]["targetPort"]));
        // With a self-signed certificate, the manager may inject its CA into the configurations by their final names.
        let is_self_signed = !lines.iter().any(|line| line.contains("--webhook-certs"));
        let roles = find(&objects, "ClusterRole");
        let rules = roles.iter().flat_map(|role| role["rules"].as_array().into_iter().flatten());
        let named: Vec<&Value> = rules
            .filter(|rule| rule["apiGroups"][0] == "admissionregistration.k8s.io")
            .filter_map(|rule| rule["resourceNames"].get(0))
            .collect();
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            for configuration in find(&objects, kind) {
                let is_named = named.contains(&&configuration["metadata"]["name"]);
                assert_eq!(is_named, is_self_signed, "{lines:?}: {named:?}");
            }
        }
        let namespace = find(&objects, "Namespace")[0];
        assert_eq!(namespace["metadata"]["labels"]["control-plane"], "controller-manager");
    }
}

#[test]
fn cert_manager_injects_its_ca_into_all_webhook_clients() {
    let certs = "edit --webhook-certs cert-manager";
    let objects = deployed(&[INIT, ORDER, ORDER_V2, WEBHOOKS, CONVERSION, certs]);
    let certificate = find(&objects, "Certificate")[0];
    assert_eq!(certificate["metadata"]["name"], "shop-serving-cert");
    assert_eq!(certificate["spec"]["issuerRef"]["name"], "shop-selfsigned-issuer");
    let names = serde_json::json!([
        "shop-webhook-service.shop-system.svc",
        "shop-webhook-service.shop-system.svc.cluster.local",
    ]);
    assert_eq!(certificate["spec"]["dnsNames"], names);
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "CustomResourceDefinition"]
    {
        let annotations = &find(&objects, kind)[0]["metadata"]["annotations"];
        assert_eq!(annotations["cert-manager.io/inject-ca-from"], "shop-system/shop-serving-cert", "{kind}");
    }
    let pod = &find(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], certificate["spec"]["secretName"]);
    let mounted = pod["containers"][0]["volumeMounts"][0]["mountPath"].as_str().expect("it is mounted");
    let argument = format!("--webhook-cert-path={mounted}");
    let arguments = pod["containers"][0]["args"].as_array().expect("it has arguments");
    assert!(arguments.iter().any(|one| *one == argument.as_str()), "{arguments:?}");
}
