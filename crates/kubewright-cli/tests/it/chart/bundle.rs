//! `kubewright bundle` on a copy of the example, which is compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::same_objects::normalise;
use super::{by_id, documents};
use crate::delivery::registry::Registry;
use crate::delivery::{Package, digest, json as json_of, platforms, skopeo, tree, unpack};
use crate::manifests::Project;
use crate::run::{self, Run, command};

const CSV: &str = "bundle/manifests/markdown-view.clusterserviceversion.yaml";

/// The example with a bundle, generated once.
pub(super) static EXAMPLE: LazyLock<Project> = LazyLock::new(|| {
    let project = Project::shared("bundle-example");
    let wrote = run_in(&project, "bundle --quiet");
    assert_eq!(wrote.status, 0, "{wrote}");
    assert!(wrote.stdout.contains(&format!("wrote {CSV}\n")), "{wrote}");
    project
});

pub(super) fn run_in(project: &Project, line: &str) -> Run {
    run::run(command(line).current_dir(project.path("")).env("CARGO_TARGET_DIR", run::target()))
}

fn read(project: &Project, path: &str) -> Value {
    let text = fs::read_to_string(project.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Rules as a set, because their order has no meaning.
fn rules<'a>(rules: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
    rules.map(ToString::to_string).collect()
}

/// The Role of `#[rbac(namespace = "infra")]` and its binding, in config/default and in the chart.
#[track_caller]
fn has_a_role_in_another_namespace(project: &Project) {
    let chart = run_in(project, "chart --quiet");
    assert_eq!(chart.status, 0, "{chart}");
    let rendered = kustomized(project);
    let namespace = ["--namespace", "markdown-view-system"];
    let arguments = [&["template", "markdown-view", "dist/chart"], &namespace[..]].concat();
    let charted = by_id(documents(&super::helm(&project.path(""), &arguments)));
    for objects in [rendered, charted] {
        let name = "markdown-view-manager-role-infra";
        let role = &objects[&format!("Role infra/{name}")];
        assert_eq!(role["rules"][0]["resources"], json!(["secrets"]));
        let binding = &objects[&format!("RoleBinding infra/{name}")];
        assert_eq!(
            (&binding["roleRef"]["kind"], &binding["roleRef"]["name"]),
            (&"Role".into(), &name.into())
        );
        let account = json!({
            "kind": "ServiceAccount",
            "name": "markdown-view-controller-manager",
            "namespace": "markdown-view-system",
        });
        assert_eq!(binding["subjects"], json!([account]));
    }
}

fn kustomized(project: &Project) -> BTreeMap<String, Value> {
    let mut kubectl = run::kubectl();
    let rendered = run::run(kubectl.args(["kustomize", "config/default"]).current_dir(project.path("")));
    by_id(documents(&rendered.result()))
}

/// What a project has.
#[derive(Default)]
struct Shape {
    webhooks: bool,
    namespaced: bool,
}

/// Compares the bundle with what `kubectl kustomize config/default` renders.
#[track_caller]
fn deploys_config_default(project: &Project, name: &str, shape: &Shape) {
    let csv = read(project, &format!("bundle/manifests/{name}.clusterserviceversion.yaml"));
    let mut deployed = kustomized(project);
    let namespace = format!("{name}-system");
    let account = format!("{name}-controller-manager");
    deployed.remove(&format!("Namespace -/{namespace}")).expect("it exists");
    deployed.retain(|id, _| !id.contains(" infra/"));

    // OLM runs the Deployment with its own certificate, and with the namespaces of the OperatorGroup.
    let manager = deployed.remove(&format!("Deployment {namespace}/{account}")).expect("it exists");
    let installed = csv.pointer("/spec/install/spec/deployments/0").expect("a Deployment");
    assert_eq!(installed["name"], manager["metadata"]["name"]);
    assert_eq!(installed["label"], manager["metadata"]["labels"]);
    let expected = as_olm_runs_it(manager["spec"].clone(), shape);
    assert_eq!(format!("{:#}", installed["spec"]), format!("{expected:#}"));

    // The account and its permissions.
    deployed.remove(&format!("ServiceAccount {namespace}/{account}")).expect("it exists");
    for (field, binding) in [("permissions", "RoleBinding"), ("clusterPermissions", "ClusterRoleBinding")] {
        let bindings: Vec<Value> =
            deployed.values().filter(|object| object["kind"] == binding).cloned().collect();
        let mut granted = BTreeSet::new();
        for binding in &bindings {
            assert_eq!(binding["subjects"][0]["name"], account);
            let kind = text(&binding["roleRef"]["kind"]);
            let place = if kind == "Role" { namespace.as_str() } else { "-" };
            let role = deployed
                .remove(&format!("{kind} {place}/{}", text(&binding["roleRef"]["name"])))
                .expect("a role");
            granted.extend(rules(list(&role, "/rules")));
            deployed.remove(&super::id(binding));
        }
        let permissions: Vec<&Value> = list(&csv, &format!("/spec/install/spec/{field}")).collect();
        assert_eq!(permissions.len(), 1);
        assert_eq!(permissions[0]["serviceAccountName"], account);
        assert_eq!(rules(list(permissions[0], "/rules")), granted, "{field}");
    }

    // Webhooks: OLM creates Service, certificate and configurations.
    deployed.retain(|id, _| !id.starts_with("Certificate ") && !id.starts_with("Issuer "));
    let service = deployed.remove(&format!("Service {namespace}/{name}-webhook-service"));
    assert_eq!(service.is_some(), shape.webhooks);
    let mut expected = BTreeSet::new();
    for (kind, of) in [("Mutating", "MutatingAdmissionWebhook"), ("Validating", "ValidatingAdmissionWebhook")]
    {
        let id = format!("{kind}WebhookConfiguration -/{name}-{}-webhook-configuration", kind.to_lowercase());
        let configuration = deployed.remove(&id).unwrap_or_default();
        for webhook in list(&configuration, "/webhooks") {
            let path = &webhook["clientConfig"]["service"]["path"];
            let fields = [&webhook["rules"], &webhook["failurePolicy"], &webhook["timeoutSeconds"]];
            expected.insert(json!([of, webhook["name"], path, fields[0], fields[1], fields[2]]).to_string());
        }
    }
    for definition in deployed.values_mut().filter(|it| it["kind"] == "CustomResourceDefinition") {
        let annotations = definition.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        if let Some(annotations) = annotations {
            annotations.remove("cert-manager.io/inject-ca-from");
        }
        let singular = text(&definition["spec"]["names"]["singular"]);
        let Some(conversion) = definition["spec"].as_object_mut().expect("a spec").remove("conversion")
        else {
            continue;
        };
        let path = &conversion["webhook"]["clientConfig"]["service"]["path"];
        let name = format!("c{singular}.kb.io");
        expected.insert(json!(["ConversionWebhook", name, path, null, null, null]).to_string());
    }
    assert_eq!(!expected.is_empty(), shape.webhooks);
    let defined = list(&csv, "/spec/webhookdefinitions").map(|webhook| {
        assert_eq!(webhook["deploymentName"], account);
        assert_eq!((&webhook["containerPort"], &webhook["targetPort"]), (&443.into(), &9443.into()));
        let fields = ["type", "generateName", "webhookPath", "rules", "failurePolicy", "timeoutSeconds"];
        Value::from(fields.map(|field| webhook[field].clone()).to_vec()).to_string()
    });
    assert_eq!(defined.collect::<BTreeSet<_>>(), expected);

    // Everything else is a file of the bundle.
    let mut files = Vec::new();
    for entry in fs::read_dir(project.path("bundle/manifests")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if !path.to_string_lossy().ends_with(".clusterserviceversion.yaml") {
            files.extend(documents(&fs::read_to_string(path).expect("a file")));
        }
    }
    let mut files = by_id(files);
    let mut deployed = by_id(
        deployed
            .into_values()
            .map(|mut object| {
                object["metadata"].as_object_mut().expect("metadata").remove("namespace");
                object
            })
            .collect(),
    );
    for objects in [&mut files, &mut deployed] {
        objects.values_mut().for_each(normalise);
    }
    super::same_objects::assert_same(&files, &deployed);
}

/// The spec of the manager's Deployment with OLM's certificate and namespaces.
fn as_olm_runs_it(mut spec: Value, shape: &Shape) -> Value {
    let pod = spec["template"]["spec"].as_object_mut().expect("a Pod template");
    let without = |value: Option<Value>, names: &[&str]| -> Vec<Value> {
        let items = value.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        items.into_iter().filter(|item| !names.iter().any(|name| item["name"] == *name)).collect()
    };
    let volumes = without(pod.remove("volumes"), &["webhook-certs"]);
    let container = pod["containers"][0].as_object_mut().expect("a container");
    let mounts = without(container.remove("volumeMounts"), &["webhook-certs"]);
    let mut variables = without(container.remove("env"), &["WEBHOOK_SERVICE_NAME", "WATCH_NAMESPACE"]);
    if shape.namespaced {
        let field = json!({ "fieldRef": { "fieldPath": "metadata.annotations['olm.targetNamespaces']" } });
        variables.push(json!({ "name": "WATCH_NAMESPACE", "valueFrom": field }));
    }
    for (field, items) in [("env", variables), ("volumeMounts", mounts)] {
        if !items.is_empty() {
            container.insert(field.into(), items.into());
        }
    }
    let arguments = container["args"].as_array_mut().expect("it has arguments");
    arguments.retain(|argument| !text(argument).starts_with("--webhook-cert-"));
    if shape.webhooks {
        arguments.push("--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs".into());
    }
    if !volumes.is_empty() {
        pod.insert("volumes".into(), volumes.into());
    }
    spec
}

#[test]
fn the_bundle_deploys_the_objects_of_config_default() {
    deploys_config_default(&EXAMPLE, "markdown-view", &Shape { webhooks: true, ..Shape::default() });
}

#[test]
fn the_bundle_of_an_operator_without_webhooks_deploys_the_objects_of_config_default() {
    let project = Project::member("sample-controller", "bundle-sample");
    let wrote = run_in(&project, "bundle --quiet");
    assert_eq!(wrote.status, 0, "{wrote}");
    deploys_config_default(&project, "sample-controller", &Shape::default());
}

#[test]
fn the_bundle_deploys_the_objects_of_cert_manager_and_namespaced_projects() {
    let project = Project::shared("bundle-shapes");
    // A Role in another namespace, which OLM cannot create.
    let rule = "#[kubewright::rbac(groups = \"\", resources = \"secrets\", verbs = \"get\", namespace = \"infra\")]\n\
                #[expect(dead_code, reason = \"a place for the attribute\")]\nstruct Secrets;\n";
    let main = fs::read_to_string(project.path("src/main.rs")).expect("a file");
    fs::write(project.path("src/main.rs"), format!("{main}\n{rule}")).expect("a file");
    for (edit, namespaced) in [("--webhook-certs cert-manager", false), ("--namespaced", true)] {
        for line in [&format!("edit {edit}"), "manifests --quiet", "bundle"] {
            let run = run_in(&project, line);
            assert_eq!(run.status, 0, "{line}: {run}");
            if line.starts_with("bundle") {
                let warning =
                    "apply them after the installation: Role infra/markdown-view-manager-role-infra,";
                assert!(run.stderr.contains(warning), "{run}");
            }
        }
        has_a_role_in_another_namespace(&project);
        deploys_config_default(&project, "markdown-view", &Shape { webhooks: true, namespaced });
    }
}

#[test]
fn the_cluster_service_version_describes_the_operator() {
    let csv = read(&EXAMPLE, CSV);
    assert_eq!(csv["metadata"]["name"], "markdown-view.v0.1.0");
    let annotations = &csv["metadata"]["annotations"];
    let examples: Vec<Value> =
        serde_json::from_str(annotations["alm-examples"].as_str().expect("text")).expect("JSON");
    assert!(examples.iter().any(|example| example["kind"] == "MarkdownView"), "{examples:?}");
    let spec = &csv["spec"];
    assert_eq!(spec["version"], "0.1.0");
    assert_eq!(spec["relatedImages"], json!([{ "name": "manager", "image": "controller:latest" }]));
    let supported: Vec<&Value> =
        list(spec, "/installModes").filter(|mode| mode["supported"] == true).collect();
    assert_eq!(supported.len(), 1);
    assert_eq!(supported[0]["type"], "AllNamespaces");
    let owned: Vec<&Value> = list(spec, "/customresourcedefinitions/owned").collect();
    assert_eq!(owned.iter().map(|it| text(&it["version"])).collect::<Vec<_>>(), ["v1", "v2"]);
    for owned in owned {
        assert_eq!(
            (&owned["kind"], &owned["displayName"]),
            (&"MarkdownView".into(), &"Markdown View".into())
        );
        let kinds: BTreeSet<String> = list(owned, "/resources").map(|it| text(&it["kind"])).collect();
        assert_eq!(kinds, ["ConfigMap", "Deployment", "Service"].map(str::to_owned).into());
        assert!(list(owned, "/specDescriptors").any(|it| it["path"] == "replicas"), "{owned:#}");
        assert!(list(owned, "/statusDescriptors").any(|it| it["path"] == "conditions"), "{owned:#}");
    }
    let annotations = read(&EXAMPLE, "bundle/metadata/annotations.yaml");
    let annotations = &annotations["annotations"];
    assert_eq!(annotations["operators.operatorframework.io.bundle.package.v1"], "markdown-view");
    assert_eq!(annotations["operators.operatorframework.io.bundle.channels.v1"], "alpha");
    let dockerfile = fs::read_to_string(EXAMPLE.path("bundle.Dockerfile")).expect("a file");
    for (key, value) in annotations.as_object().expect("a map") {
        assert!(dockerfile.contains(&format!("LABEL {key}={}\n", text(value))), "{key}");
    }
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let place = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).expect("a file");
        }
    }
}

/// The architectures in the labels of a ClusterServiceVersion.
fn architectures(csv: &Value) -> Vec<String> {
    let labels = csv["metadata"]["labels"].as_object().expect("it has labels");
    assert_eq!(labels["operatorframework.io/os.linux"], "supported");
    let found = labels.keys().filter_map(|label| label.strip_prefix("operatorframework.io/arch."));
    found.map(str::to_owned).collect()
}

#[test]
fn the_architectures_are_those_of_the_image() {
    let (registry, project) = (Registry::start(), Project::shared("bundle-platforms"));
    let package = Package::new();
    let [amd64, arm64] = platforms::binaries(&package);
    let (amd64, arm64) = (amd64.display(), arm64.display());
    for (tag, binaries) in [
        ("arm64", format!("--binary {arm64}")),
        ("both", format!("--binary {amd64} --binary {arm64}")),
        ("amd64", format!("--binary {amd64}")),
    ] {
        let image = registry.image(&format!("shop:{tag}"));
        let pushed = package.run(&format!("image build {binaries} --output push --tag {image}"));
        assert_eq!(pushed.status, 0, "{pushed}");
        let bundle = run_in(&project, &format!("bundle --quiet --image {image}"));
        assert_eq!(bundle.status, 0, "{bundle}");
        let expected: &[&str] = match tag {
            "both" => &["amd64", "arm64"],
            one => &[one],
        };
        assert_eq!(architectures(&read(&project, CSV)), expected, "{tag}");
        let checked = run_in(&project, "bundle --check");
        assert_eq!(checked.status, 0, "{checked}");
    }
}

/// With a real registry: tags become digests, which `--check` takes from the bundle.
#[test]
fn all_images_are_pinned_to_the_digests_of_their_tags() {
    let (registry, project) = (Registry::start(), Project::shared("bundle-pinned"));
    let package = Package::new();
    let pushed = |image: &str, label: &str| {
        let arguments = format!("--label of={label} --output push --tag {}", registry.image(image));
        digest(&package.image(&arguments))
    };
    let (view, proxy) = (pushed("view:v1", "view"), pushed("proxy:v1", "proxy"));
    let manager = project.path("config/manager/manager.yaml");
    let before = fs::read_to_string(&manager).expect("a file");
    let container = format!("      - name: proxy\n        image: {}\n", registry.image("proxy:v1"));
    fs::write(&manager, format!("{before}{container}")).expect("a file");
    let bundle = |line: &str| run_in(&project, &format!("bundle {line}"));
    let image = registry.image("view:v1");

    // Without an answer of a registry, the bundle is for the platform of most clusters.
    assert_eq!(architectures(&read(&EXAMPLE, CSV)), ["amd64"]);
    let unpinned = bundle(&format!("--image {image} --pin-images=false"));
    assert!(unpinned.status == 0 && !unpinned.stderr.contains("without a digest"), "{unpinned}");
    let images = |csv: &Value| {
        let mut found: Vec<String> = list(csv, "/spec/relatedImages").map(|it| text(&it["image"])).collect();
        let pod = "/spec/install/spec/deployments/0/spec/template/spec/containers";
        let mut containers: Vec<String> = list(csv, pod).map(|it| text(&it["image"])).collect();
        found.sort();
        containers.sort();
        assert_eq!(found, containers);
        found
    };
    assert_eq!(images(&read(&project, CSV)), [registry.image("proxy:v1"), image.clone()]);
    let suggested = run::run(command("scorecard").current_dir(project.path("")));
    let suggestion = format!("suggestion: pin the image {image} to a digest");
    assert!(suggested.status == 0 && suggested.stdout.contains(&suggestion), "{suggested}");

    let pinned = bundle(&format!("--image {image}"));
    assert!(pinned.status == 0 && !pinned.stderr.contains("without a digest"), "{pinned}");
    let expected = [registry.image(&format!("proxy@{proxy}")), registry.image(&format!("view@{view}"))];
    assert_eq!(images(&read(&project, CSV)), expected);
    let suggested = run::run(command("scorecard").current_dir(project.path("")));
    assert!(suggested.status == 0 && !suggested.stdout.contains("pin the image"), "{suggested}");

    // The tag moves: `--check` needs no registry, and a new run resolves again.
    let moved = pushed("proxy:v1", "another");
    let checked = bundle("--check");
    assert_eq!(checked.status, 0, "{checked}");
    assert_eq!(bundle("").status, 0);
    assert_eq!(images(&read(&project, CSV))[0], registry.image(&format!("proxy@{moved}")));

    // The image of the bundle has its files and labels, and `make` needs no Docker.
    let name = registry.image("view-bundle:v1");
    let make = |target: &str| {
        let output = Command::new("make")
            .args([target, &format!("BUNDLE_IMG={name}"), "CONTAINER_TOOL=no-such-docker"])
            .arg(format!("KUBEWRIGHT={}", env!("CARGO_BIN_EXE_kubewright")))
            .current_dir(project.path(""))
            .env("CARGO_TARGET_DIR", run::target())
            .output()
            .expect("make starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "make {target}: {said}");
    };
    for target in ["chart", "bundle-build", "bundle-push"] {
        make(target);
    }
    let inspected = json_of(&skopeo(&["inspect", "--tls-verify=false", &format!("docker://{name}")]));
    let annotations = read(&project, "bundle/metadata/annotations.yaml");
    assert_eq!(inspected["Labels"], annotations["annotations"]);
    let rootfs = unpack(&project.path("dist/bundle"), "v1", &registry.path("unpacked"));
    for folder in ["manifests", "metadata", "tests/scorecard"] {
        assert_eq!(tree(&rootfs.join(folder)), tree(&project.path("bundle").join(folder)), "{folder}");
    }
}

#[test]
fn releases_have_channels_an_upgrade_graph_and_pinned_images() {
    let project = Project::shared("bundle-release");
    let bundle = |line: &str| run_in(&project, &format!("bundle --quiet {line}"));
    let read = |path: &str| fs::read_to_string(project.path(path)).expect("a file");
    assert_eq!(bundle("").status, 0);
    assert_eq!(bundle("--check").status, 0);

    // A change of the user.
    fs::write(
        project.path(CSV),
        read(CSV).replace("capabilities: Basic Install\n", "capabilities: Seamless Upgrades\n"),
    )
    .expect("a file");
    let image = format!("example.com/view@sha256:{}", "0".repeat(64));
    let release = bundle(&format!(
        "--version 1.1.0 --channels stable,beta --default-channel stable --replaces markdown-view.v1.0.0 --skips markdown-view.v1.0.1 --skip-range >=1.0.0 --image {image}"
    ));
    assert_eq!(release.status, 0, "{release}");
    let text = read(CSV);
    let csv: Value = serde_saphyr::from_str(&text).expect("YAML");
    assert_eq!(csv["metadata"]["name"], "markdown-view.v1.1.0");
    assert_eq!(csv["metadata"]["annotations"]["olm.skipRange"], ">=1.0.0");
    assert_eq!(csv["spec"]["replaces"], "markdown-view.v1.0.0");
    assert_eq!(csv["spec"]["skips"], json!(["markdown-view.v1.0.1"]));
    assert_eq!(csv["spec"]["relatedImages"][0]["image"], image);
    assert_eq!(
        csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"][0]["image"],
        image
    );
    assert!(text.contains("capabilities: Seamless Upgrades\n"), "{text}");
    assert!(read("bundle.Dockerfile").contains("bundle.channels.v1=stable,beta\n"));

    // Flags that are not set keep their values.
    assert_eq!(bundle("--version 1.1.0 --check").status, 0);
    let other = bundle("--version 1.2.0 --check");
    assert_eq!(other.status, 1, "{other}");
    assert!(other.stdout.contains("-  replaces: markdown-view.v1.0.0\n"), "{other}");

    let wrong = bundle("--default-channel nightly");
    assert!(wrong.stderr.starts_with("error: the default channel nightly is not in the channels"), "{wrong}");
    let wrong = bundle("--version v1");
    assert!(wrong.stderr.starts_with("error: v1 is not a semantic version"), "{wrong}");
}
