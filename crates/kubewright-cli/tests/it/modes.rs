//! Runs the tutorial, runtime and webhook tests of kubewright-envtest on every supported control plane.
//!
//! They are here because this crate has the binary. Embedded, they are normal tests of this binary
//! (`tutorial`, `runtime`, `manager_webhooks`); for other control planes the binary runs itself with other environment variables.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{Api, ListParams};
use kubewright_envtest::{Environment, Mode};

use crate::kubectl::process::Process;
use crate::run::{Run, command, run};

const TUTORIAL: &str = "tutorial::a_view_gets_its_children_and_they_are_garbage_collected";

/// Variables that select the control plane and how it reaches webhooks.
const DECIDING: [&str; 6] = [
    "KUBEBUILDER_ASSETS",
    "KUBECONFIG",
    "KUBEWRIGHT_WEBHOOK_HOST",
    "TEST_ASSET_ETCD",
    "TEST_ASSET_KUBE_APISERVER",
    "USE_EXISTING_CLUSTER",
];

/// The runtime tests, and their number.
const RUNTIME: (&str, usize) = ("runtime::", 7);

/// Runs the tutorial test with only these variables.
#[track_caller]
fn tutorial(variables: &[(&str, &Path)]) {
    passes(TUTORIAL, 1, variables);
}

/// Runs the runtime tests with only these variables.
#[track_caller]
fn runtime(variables: &[(&str, &Path)]) {
    passes(RUNTIME.0, RUNTIME.1, variables);
}

#[track_caller]
fn passes(filter: &str, tests: usize, variables: &[(&str, &Path)]) {
    let ended = run_tests(filter, variables);
    // A filter without matches succeeds too, so check the count.
    let passed = format!("\ntest result: ok. {tests} passed");
    assert!(ended.status == 0 && ended.stdout.contains(&passed), "{ended}");
}

/// Runs tests of this binary with only these variables.
#[track_caller]
fn run_tests(filter: &str, variables: &[(&str, &Path)]) -> Run {
    let mut test = Command::new(std::env::current_exe().expect("this binary has a file"));
    test.arg(filter);
    for name in DECIDING {
        test.env_remove(name);
    }
    run(test.envs(variables.iter().copied()))
}

/// The real etcd.
fn etcd() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("etcd")).find(|file| file.is_file());
    found.expect("this test needs etcd on PATH: `cargo xtask ci` installs it, on Debian also `apt-get install etcd-server`")
}

#[test]
fn the_tutorial_runs_on_a_real_etcd_and_kubewright_as_kube_apiserver() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(etcd(), folder.path().join("etcd")).unwrap();
    let apiserver = folder.path().join("kube-apiserver");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubewright"), apiserver).unwrap();
    tutorial(&[("KUBEBUILDER_ASSETS", folder.path())]);
}

#[test]
fn the_tutorial_runs_on_the_assets_directory() {
    let folder = tempfile::tempdir().unwrap();
    let assets = folder.path().join("assets");
    let made = run(command("envtest assets").arg(&assets));
    assert_eq!((made.status, made.stdout), (0, format!("export KUBEBUILDER_ASSETS={}\n", assets.display())));
    tutorial(&[("KUBEBUILDER_ASSETS", &assets)]);
}

#[test]
fn the_runtime_works_on_a_real_etcd_and_kubewright_as_kube_apiserver() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(etcd(), folder.path().join("etcd")).unwrap();
    let apiserver = folder.path().join("kube-apiserver");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubewright"), apiserver).unwrap();
    runtime(&[("KUBEBUILDER_ASSETS", folder.path())]);
}

#[test]
fn the_runtime_works_on_the_assets_directory() {
    let folder = tempfile::tempdir().unwrap();
    let assets = folder.path().join("assets");
    assert_eq!(run(command("envtest assets").arg(&assets)).status, 0);
    runtime(&[("KUBEBUILDER_ASSETS", &assets)]);
}

#[test]
fn webhooks_are_called_over_tls_on_the_assets_directory() {
    let folder = tempfile::tempdir().unwrap();
    let assets = folder.path().join("assets");
    assert_eq!(run(command("envtest assets").arg(&assets)).status, 0);
    for test in ["every_write_goes_through_the_webhooks", "a_stored_version_is_served_as_another"] {
        passes(&format!("manager_webhooks::{test}"), 1, &[("KUBEBUILDER_ASSETS", &assets)]);
    }
}

#[test]
fn the_tutorial_runs_on_an_existing_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut server = Process::start(command("apiserver --port 0 --kubeconfig").arg(&kubeconfig), "");
    server.line_with("ready https://");
    tutorial(&[("USE_EXISTING_CLUSTER", Path::new("true")), ("KUBECONFIG", &kubeconfig)]);
}

#[test]
fn a_manager_with_webhooks_fails_on_an_existing_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut server = Process::start(command("apiserver --port 0 --kubeconfig").arg(&kubeconfig), "");
    server.line_with("ready https://");
    let variables = [("USE_EXISTING_CLUSTER", Path::new("true")), ("KUBECONFIG", &kubeconfig)];
    let ended = run_tests("manager_webhooks::every_write_goes_through_the_webhooks", &variables);
    assert_ne!(ended.status, 0, "{ended}");
    let said = "an existing cluster cannot call the webhooks of this process";
    assert!(ended.stdout.contains(said) && ended.stdout.contains("unset USE_EXISTING_CLUSTER"), "{ended}");
}

#[tokio::test]
async fn an_existing_cluster_calls_webhooks_at_the_webhook_host() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut server = Process::start(command("apiserver --port 0 --kubeconfig").arg(&kubeconfig), "");
    server.line_with("ready https://");
    let variables = [
        ("USE_EXISTING_CLUSTER", Path::new("true")),
        ("KUBECONFIG", &kubeconfig),
        ("KUBEWRIGHT_WEBHOOK_HOST", Path::new("127.0.0.1")),
    ];
    for test in [
        "every_write_goes_through_the_webhooks",
        "a_stored_version_is_served_as_another",
        "the_api_server_calls_the_webhooks_of_an_operator_process",
    ] {
        passes(&format!("manager_webhooks::{test}"), 1, &variables);
    }

    let cluster = Environment::builder().mode(Mode::Existing).kubeconfig(kubeconfig).webhook_host("");
    let client = cluster.start().await.unwrap().client();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    assert_eq!(mutating.list(&ListParams::default()).await.unwrap().items, []);
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client);
    assert_eq!(validating.list(&ListParams::default()).await.unwrap().items, []);
}

#[test]
fn other_files_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("etcd"), "the real one").unwrap();
    let refused = run(command("envtest assets").arg(folder.path()));
    let shown = refused.to_string().replace(&folder.path().display().to_string(), "<DIR>");
    insta::assert_snapshot!(shown, @"
    exit status 1
    --- stderr
    error: <DIR>/etcd already exists and is not a link to kubewright
      hint: choose another directory, or remove the file
    ");
    assert!(!folder.path().join("kube-apiserver").exists(), "nothing is written where something is refused");
    std::fs::remove_file(folder.path().join("etcd")).unwrap();

    for how in ["--dry-run", "", "", "--copy", "--copy", ""] {
        let made = run(command("envtest assets").args(how.split_whitespace()).arg(folder.path()));
        let said = made.stderr.replace(&folder.path().display().to_string(), "<DIR>");
        let verb = if how == "--dry-run" { "would write" } else { "wrote" };
        assert!(
            made.status == 0 && said.starts_with(&format!("note: {verb} <DIR>/kube-apiserver, a ")),
            "{how}: {said}"
        );
        assert_eq!(folder.path().join("etcd").exists(), how != "--dry-run");
    }
}

#[test]
fn the_assets_directory_links_kubectl() {
    let folder = tempfile::tempdir().unwrap();
    let (bin, assets) = (folder.path().join("bin"), folder.path().join("assets"));
    std::fs::create_dir(&bin).unwrap();
    let make = |how: &str| {
        run(command("envtest assets").args(how.split_whitespace()).arg(&assets).env("PATH", &bin))
    };
    let without = make("");
    assert!(without.stderr.contains("note: kubectl not found on PATH"), "{without}");
    assert!(!assets.join("kubectl").exists());

    std::fs::write(bin.join("kubectl"), "a kubectl").unwrap();
    std::fs::set_permissions(bin.join("kubectl"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for how in ["", "", "--copy"] {
        let made = make(how);
        assert_eq!(made.status, 0, "{made}");
        assert_eq!(std::fs::read_to_string(assets.join("kubectl")).unwrap(), "a kubectl");
    }
    // A regular file is kept.
    std::fs::write(assets.join("kubectl"), "another").unwrap();
    assert_eq!(make("").status, 0);
    assert_eq!(std::fs::read_to_string(assets.join("kubectl")).unwrap(), "another");
}
