//! The tutorial from an empty directory to a running operator.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Folder;
use crate::kubectl::cluster::Cluster;
use crate::run::{Run, lock, run, share_dependencies, target};

/// Builds, lints and tests a project as its CI does.
#[track_caller]
fn is_sound(folder: &Folder) {
    share_dependencies(&folder.path());
    folder.shell("cargo", "fmt --check", &[]);
    folder.shell("cargo", "clippy --quiet --all-targets -- -D warnings", &[]);
    passes_its_tests(folder);
}

#[track_caller]
fn passes_its_tests(folder: &Folder) {
    let said = folder.shell("cargo", "test --quiet", &[]);
    assert!(said.contains("test result: ok"), "{said}");
    folder.shell(env!("CARGO_BIN_EXE_kubewright"), "manifests --quiet --check", &[]);
}

#[test]
fn the_tutorial_operator_is_scaffolded_tested_run_and_deployed() {
    // The name differs from the example's: both programs are built in one target directory.
    let folder = Folder::new("tutorial-view");
    folder.done("init --domain ginoh.github.io");
    folder.done("create api --group view --version v1 --kind MarkdownView");
    // With the features of the scaffold alone, as a user's project has them.
    lock(&folder.path());
    passes_its_tests(&folder);

    let cluster = Cluster::start();
    let kubectl = format!("kubectl --kubeconfig {}", cluster.kubeconfig().display());
    let variables = [("KUBECTL", kubectl.as_str())];
    let tested = folder.shell("make", "test-e2e", &variables);
    assert!(tested.contains("the_samples_become_ready ... ok"), "{tested}");
    folder.shell("make", "install", &variables);
    let mut operator = Command::new(target().join("debug/tutorial-view"))
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .args(["--health-probe-bind-address=0", "--log-level=warn"])
        .stdin(Stdio::null())
        .spawn()
        .expect("the operator starts");
    let samples = folder.path().join("config/samples");
    cluster.kubectl(&format!("apply -k {}", samples.display())).result();
    let ready = cluster
        .kubectl("wait --for=condition=Ready --timeout=30s markdownviews/markdownview-sample")
        .output();
    let table = cluster.kubectl("get markdownviews").output();
    // The e2e test uses the operator that runs, and its own namespace.
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let existing = [("KUBECONFIG", kubeconfig.as_str()), ("USE_EXISTING_CLUSTER", "true")];
    let tested = folder.shell("make", "test-e2e", &existing);
    assert!(tested.contains("the_samples_become_ready ... ok"), "{tested}");
    let namespaces = cluster.kubectl("get markdownviews --all-namespaces -o jsonpath={..namespace}").result();
    assert_eq!(namespaces.split(' ').filter(|name| name.starts_with("test-")).count(), 1, "{namespaces}");
    operator.kill().expect("the operator still runs");
    operator.wait().expect("it has ended");
    assert_eq!(ready, "markdownview.view.ginoh.github.io/markdownview-sample condition met\n");
    assert!(table.starts_with("NAME                  READY   AGE\nmarkdownview-sample   True "), "{table}");

    folder.shell("make", "deploy IMG=example.com/tutorial-view:v1", &variables);
    let image =
        "-n tutorial-view-system get deployments tutorial-view-controller-manager -o jsonpath={..image}";
    assert_eq!(cluster.kubectl(image).result(), "example.com/tutorial-view:v1");
    folder.shell("make", "undeploy", &variables);
    folder.shell("make", "build-installer IMG=example.com/tutorial-view:v2", &variables);
    let installer = folder.path().join("dist/install.yaml");
    cluster.kubectl(&format!("apply --server-side -f {}", installer.display())).result();
    assert_eq!(cluster.kubectl(image).result(), "example.com/tutorial-view:v2");
    folder.shell("make", "undeploy uninstall", &variables);
    let help = folder.shell("make", "help", &variables);
    assert!(help.contains("  deploy              Deploy the operator with image IMG\n"), "{help}");
}

#[test]
fn the_e2e_test_fails_if_the_operator_exits() {
    let folder = Folder::new("exits");
    folder.done("init --domain example.com");
    let main = folder.read("src/main.rs");
    let run = "    manager.run().await\n";
    assert!(main.contains(run), "{main}");
    // `make` also runs the operator to generate the manifests, which must succeed.
    let fails = "    if std::env::var_os(\"KUBEWRIGHT_MANIFESTS\").is_none() {\n        \
                 anyhow::bail!(\"injected by the test\");\n    }\n";
    folder.write("src/main.rs", &main.replace(run, &format!("{fails}{run}")));
    share_dependencies(&folder.path());
    let tested = run_make(&folder, "test-e2e");
    assert!(tested.status != 0 && tested.stdout.contains("the operator exited: "), "{tested}");
    folder.write("src/main.rs", &main);
    let tested = run_make(&folder, "test-e2e");
    assert!(tested.status == 0 && tested.stdout.contains("the_samples_become_ready ... ok"), "{tested}");
    assert!(run_make(&folder, "test").status == 0, "a new project passes its tests");
}

fn run_make(folder: &Folder, target: &str) -> Run {
    let mut make = Command::new("make");
    make.arg(target).current_dir(folder.path());
    make.env("CARGO_TARGET_DIR", self::target()).env("CARGO_NET_OFFLINE", "true");
    run(make.env("KUBEWRIGHT", env!("CARGO_BIN_EXE_kubewright")))
}

#[test]
fn a_project_with_groups_versions_and_scopes_builds() {
    let folder = Folder::new("shop");
    folder.done("init --domain example.com");
    folder.done("create api --group sales --version v1beta1 --kind Order");
    folder.done("create api --group sales --version v1 --kind Order");
    folder.done("edit --multigroup");
    folder.done("create api --group stock --version v1 --kind Warehouse --namespaced=false");
    folder.done("create api --group stock --version v1 --kind Warehouse --controller-name warehouse-audit");
    is_sound(&folder);
    let config = folder.path().join("config/default");
    let cluster = Cluster::start();
    cluster.kubectl(&format!("apply -k {}", config.display())).output();
    let names = cluster.kubectl("get crds -o name").result();
    assert_eq!(names.lines().count(), 2, "{names}");
}

/// Fixtures are sent through webhooks, versions are converted, and the generated manifests equal the
/// templates.
#[test]
fn a_project_with_webhooks_builds() {
    let folder = Folder::new("hooks");
    folder.done("init --domain example.com");
    folder.done("create api --group sales --version v1 --kind Order");
    folder.done("create api --group sales --version v2 --kind Order");
    folder.done(
        "create webhook --group sales --version v1 --kind Order --defaulting --programmatic-validation",
    );
    folder.done("create webhook --group sales --version v1 --kind Order --conversion --spoke v2");
    folder.done("create webhook --group core --version v1 --kind Pod --defaulting --programmatic-validation");
    folder.done("create webhook --group apps --version v1 --kind Deployment --defaulting --defaulting-path /a-deployment");
    is_sound(&folder);
    // The controller reads v1, so the API server converts every object.
    folder.done("edit api --group sales --kind Order --storage-version v2");
    let tested = folder.shell("make", "test-e2e", &[]);
    assert!(tested.contains("the_samples_become_ready ... ok"), "{tested}");
    folder.done("edit --multigroup --namespaced --webhook-certs cert-manager");
    is_sound(&folder);
}

#[test]
fn a_project_with_webhooks_is_accepted_by_a_cluster() {
    let folder = Folder::new("shop");
    folder.done("init --domain example.com --kubewright-version 0.1.0");
    folder.done("create api --group sales --version v1 --kind Order");
    folder.done("create api --group sales --version v2 --kind Order");
    folder
        .done("create webhook --group sales --version v1 --kind Order --defaulting --conversion --spoke v2");
    folder.done("edit --network-policy");
    let cluster = Cluster::start();
    let config = folder.path().join("config/default");
    let said = cluster.kubectl(&format!("apply --server-side -k {}", config.display())).result();
    for object in [
        "mutatingwebhookconfiguration.admissionregistration.k8s.io/shop-mutating-webhook-configuration",
        "networkpolicy.networking.k8s.io/shop-allow-webhook-traffic",
        "service/shop-webhook-service",
    ] {
        assert!(said.contains(&format!("{object} serverside-applied\n")), "{said}");
    }
}

/// A new version keeps all fields of stored objects.
#[test]
fn a_new_version_loses_no_stored_field() {
    let folder = Folder::new("versions");
    folder.done("init --domain example.com");
    folder.done("create api --group sales --version v1 --kind Order");
    let foo =
        "    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n    pub foo: Option<String>,\n";
    let types = folder.read("src/api/v1/order.rs");
    assert!(types.contains(foo), "{types}");
    // Only the types mention the example field.
    folder.write("src/api/v1/order.rs", &types.replace(foo, "    pub amount: i64,\n"));
    share_dependencies(&folder.path());
    let cluster = Cluster::start();
    let kubectl = format!("kubectl --kubeconfig {}", cluster.kubeconfig().display());
    let variables = [("KUBECTL", kubectl.as_str())];
    folder.shell("make", "manifests install", &variables);
    // The test of the controller applies the sample, which needs the required field.
    let sample = folder.read("config/samples/sales_v1_order.yaml");
    assert!(sample.contains("spec: {}\n"), "{sample}");
    folder.write("config/samples/sales_v1_order.yaml", &sample.replace("spec: {}\n", "spec: {amount: 1}\n"));
    passes_its_tests(&folder);
    let object =
        "apiVersion: sales.example.com/v1\nkind: Order\nmetadata: {name: first}\nspec: {amount: 3}\n";
    folder.write("order.yaml", object);
    cluster.kubectl(&format!("apply -f {}", folder.path().join("order.yaml").display())).result();

    folder.done("create api --group sales --version v2 --kind Order");
    let made = folder.read("config/crd/bases/sales.example.com_orders.yaml");
    folder.shell("make", "manifests install", &variables);
    assert_eq!(folder.read("config/crd/bases/sales.example.com_orders.yaml"), made);
    let spec = |version: &str| {
        cluster
            .kubectl(&format!("get orders.{version}.sales.example.com first -o jsonpath={{.spec}}"))
            .result()
    };
    assert_eq!([spec("v1"), spec("v2")], [r#"{"amount":3}"#, r#"{"amount":3}"#]);

    folder.done("edit api --group sales --kind Order --storage-version v2");
    folder.shell("make", "manifests install", &variables);
    cluster.kubectl("annotate orders.v2.sales.example.com first touched=yes").result();
    assert_eq!([spec("v1"), spec("v2")], [r#"{"amount":3}"#, r#"{"amount":3}"#]);
}

#[test]
fn kinds_that_shadow_imports_compile() {
    let folder = Folder::new("names");
    folder.done("init --domain example.com");
    let kinds = [
        "Client",
        "Key",
        "List",
        "Context",
        "Manager",
        "Error",
        "Result",
        "Option",
        "Outcome",
        "Vec",
        "String",
        "Condition",
        "Patch",
        "Object",
        "Default",
        "Reconciler",
        "Arc",
        "Environment",
        "Serialize",
        "Some",
        "Box",
        "Conversion",
        "Defaulter",
        "Rejection",
        "Spoke",
        "Validation",
        "Validator",
    ];
    for kind in kinds {
        let which = format!("--group sales --version v1 --kind {kind}");
        folder.done(&format!("create api {which}"));
        folder.done(&format!("create webhook {which} --defaulting --programmatic-validation"));
    }
    folder.done("create api --group sales --version v2 --kind Conversion");
    folder.done("create webhook --group sales --version v1 --kind Conversion --conversion --spoke v2");
    share_dependencies(&folder.path());
    folder.shell("cargo", "fmt --check", &[]);
    folder.shell("cargo", "clippy --quiet --all-targets -- -D warnings", &[]);
}

/// The features of each package, by build.
fn features(folder: &Path, arguments: &str) -> BTreeSet<(String, String)> {
    let output = Command::new("cargo")
        .args(["tree", "--offline", "--prefix", "none", "--format", "{p}|{f}"])
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("names are text");
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)").trim_end());
    let pairs = lines.filter_map(|line| line.split_once('|'));
    pairs.map(|(package, features)| (package.to_owned(), features.to_owned())).collect()
}

/// `make run` and `make test` share one build of each dependency.
#[test]
fn dependencies_have_the_same_features_in_builds_and_tests() {
    let folder = Folder::new("shop");
    folder.done("init --domain example.com");
    folder.done("create api --group sales --version v1 --kind Order");
    lock(&folder.path());
    let build = features(&folder.path(), "--edges normal,build");
    let test = features(&folder.path(), "--edges normal,build,dev");
    assert!(build.len() > 100 && test.len() > build.len(), "{} and {}", build.len(), test.len());
    let differ: Vec<_> = build.difference(&test).collect();
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(
        test.iter()
            .any(|(package, features)| package.starts_with("tokio v") && features.contains("test-util"))
    );
    assert!(test.iter().any(|(package, _)| package.starts_with("kubewright-cluster v")));

    // The projects of these tests use the builds of the workspace.
    share_dependencies(&folder.path());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let workspace = features(&root, "--workspace --edges normal,build,dev");
    let shared = features(&folder.path(), "--edges normal,build,dev");
    let differ: Vec<_> =
        shared.difference(&workspace).filter(|(package, _)| !package.contains("(/")).collect();
    assert!(shared.len() > 100 && differ.is_empty(), "add features to features/Cargo.toml: {differ:#?}");
}

#[test]
fn a_namespaced_project_with_a_deployment_controller_builds() {
    let folder = Folder::new("follower");
    folder.done("init --domain example.com --namespaced --owner Followers");
    folder.done("create api --group apps --version v1 --kind Deployment --resource=false");
    folder.done("create api --group sales --version v1 --kind Order --controller=false");
    is_sound(&folder);
}

/// Its tests run controllers of cert-manager's Certificate and Issuer under the generated role.
#[test]
fn a_project_with_imported_crds_builds() {
    let folder = Folder::new("lab");
    folder.done("init --domain example.com --multigroup");
    for name in ["odd", "cronjob", "markdown_view"] {
        let file = format!("{}/testdata/crds/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        folder.done(&format!("create api --from-crd {file}"));
    }
    super::cert_manager::add(&folder);
    share_dependencies(&folder.path());
    // The controllers of cert-manager's kinds need other permissions than the templates.
    folder.shell(env!("CARGO_BIN_EXE_kubewright"), "manifests --quiet", &[]);
    is_sound(&folder);
}

/// An external crate that defines a kind.
const CERTS: &str = r#"
pub mod v1 {
    #[derive(kube::CustomResource, schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug)]
    #[kube(group = "cert-manager.io", version = "v1", kind = "Certificate", namespaced)]
    pub struct CertificateSpec {
        pub host: String,
    }
}
"#;

#[test]
fn a_project_with_an_external_kind_builds() {
    let folder = Folder::new("follower");
    folder.done("init --domain example.com");
    folder.done(
        "create api --group cert-manager --version v1 --kind Certificate --external-api-path certs::v1 \
         --external-api-domain io --external-api-module certs@0.1",
    );
    folder.done(
        "create webhook --group cert-manager --version v1 --kind Certificate --defaulting \
         --programmatic-validation",
    );
    fs::create_dir_all(folder.path().join("certs/src")).expect("a folder");
    folder.write("certs/src/lib.rs", CERTS);
    let manifest = folder.read("Cargo.toml");
    let dependencies: Vec<&str> = ["k8s-openapi", "kube", "schemars", "serde", "serde_json"]
        .iter()
        .filter_map(|name| manifest.lines().find(|line| line.starts_with(&format!("{name} = "))))
        .collect();
    let certs = "[package]\nname = \"certs\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\n";
    folder.write("certs/Cargo.toml", &format!("{certs}{}\n[workspace]\n", dependencies.join("\n")));
    // A path dependency, since the crate is not published.
    folder.write("Cargo.toml", &format!("{manifest}\n[patch.crates-io]\ncerts = {{ path = \"certs\" }}\n"));
    is_sound(&folder);
    assert!(folder.read("config/rbac/role.yaml").contains("- cert-manager.io\n"));
}

#[test]
fn a_project_without_kinds_is_accepted_by_a_cluster_with_all_parts() {
    let folder = Folder::new("shop");
    folder.done("init --domain example.com --kubewright-version 0.1.0");
    folder.done("edit --network-policy");
    let cluster = Cluster::start();
    let config = folder.path().join("config/default");
    let said = cluster.kubectl(&format!("apply --server-side -k {}", config.display())).result();
    assert!(
        said.contains("networkpolicy.networking.k8s.io/shop-allow-metrics-traffic serverside-applied"),
        "{said}"
    );
    folder.done("edit --prometheus");
    let rendered = cluster.kubectl(&format!("kustomize {}", config.display())).result();
    assert!(rendered.contains("kind: ServiceMonitor"), "{rendered}");
}

#[test]
fn the_manager_pod_meets_the_restricted_profile() {
    let folder = Folder::with_order();
    let manager: Vec<Value> =
        serde_saphyr::from_multiple(&folder.read("config/manager/manager.yaml")).expect("it is YAML");
    let deployment =
        manager.iter().find(|object| object["kind"] == "Deployment").expect("it has a Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let rules = [
        (
            "no namespaces of the host",
            ["hostNetwork", "hostPID", "hostIPC"].iter().all(|name| pod[*name].is_null()),
        ),
        ("no volumes of the host", pod["volumes"].is_null()),
        (
            "no ports of the host",
            container["ports"]
                .as_array()
                .is_some_and(|ports| ports.iter().all(|port| port["hostPort"].is_null())),
        ),
        (
            "no host process, no SELinux options, no sysctls",
            ["windowsOptions", "seLinuxOptions", "sysctls"]
                .iter()
                .all(|name| pod["securityContext"][*name].is_null()),
        ),
        ("not privileged", container["securityContext"]["privileged"].is_null()),
        ("no escalation", container["securityContext"]["allowPrivilegeEscalation"] == false),
        ("not as root", pod["securityContext"]["runAsNonRoot"] == true),
        (
            "no user 0",
            pod["securityContext"]["runAsUser"].is_null()
                && container["securityContext"]["runAsUser"].is_null(),
        ),
        ("seccomp", pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"),
        (
            "no capabilities",
            container["securityContext"]["capabilities"] == serde_json::json!({ "drop": ["ALL"] }),
        ),
        ("no other /proc", container["securityContext"]["procMount"].is_null()),
        (
            "one container",
            pod["containers"].as_array().is_some_and(|all| all.len() == 1) && pod["initContainers"].is_null(),
        ),
    ];
    for (rule, met) in rules {
        assert!(met, "{rule}");
    }
}
