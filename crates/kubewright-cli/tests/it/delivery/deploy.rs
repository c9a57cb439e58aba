//! `kubewright deploy` and `undeploy` on the embedded cluster.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::registry::Registry;
use super::{binary, compiled, script};
use crate::kubectl::cluster::Cluster;
use crate::run::{self, Run};
use crate::scaffold::Folder;

const DEPLOYMENT: &str = "-n shop-system get deployment shop-controller-manager";

/// `kubewright` in a project, with a cluster.
fn command(folder: &Folder, cluster: &Cluster, line: &str) -> Command {
    let mut command = run::command(line);
    command
        .current_dir(folder.path())
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("KUBECTL")
        .env_remove("DOCKER_CONFIG");
    for name in ["CARGO_HOME", "RUSTUP_HOME"] {
        let home = std::env::var("HOME").expect("HOME is set");
        let default = format!("{home}/.{}", name.trim_end_matches("_HOME").to_lowercase());
        command.env(name, std::env::var(name).unwrap_or(default));
    }
    command
}

fn deploy(folder: &Folder, cluster: &Cluster, binary: &Path, arguments: &str) -> Run {
    let line = format!("deploy --binary {} --sbom=false {arguments}", binary.display());
    run::run(&mut command(folder, cluster, &line))
}

#[track_caller]
fn done(run: Run) -> Run {
    assert_eq!(run.status, 0, "{run}");
    run
}

fn image(cluster: &Cluster) -> String {
    cluster.kubectl(&format!("{DEPLOYMENT} -o jsonpath={{..image}}")).result()
}

#[test]
fn the_operator_is_deployed_and_removed() {
    let folder = Folder::with_order();
    let cluster = Cluster::with_nodes(1);
    let first = done(deploy(&folder, &cluster, binary(), ""));
    assert!(first.stdout.contains("created Deployment shop-system/shop-controller-manager\n"), "{first}");
    assert!(first.stdout.contains("created CustomResourceDefinition orders.sales.example.com\n"), "{first}");
    assert!(first.stderr.contains("deploying to context kubewright (https://127.0.0.1:"), "{first}");
    assert!(first.stderr.contains("Deployment shop-system/shop-controller-manager is available"), "{first}");
    let deployed = image(&cluster);
    assert!(deployed.starts_with("controller:latest-"), "{deployed}");
    assert!(first.stdout.ends_with(&format!("deployed {deployed}\n")), "{first}");
    let phases = cluster.kubectl("-n shop-system get pods -o jsonpath={..phase}").result();
    assert_eq!(phases, "Running");

    // The same source changes nothing.
    let again = done(deploy(&folder, &cluster, binary(), ""));
    assert_eq!(again.stdout, format!("deployed {deployed}\n"), "{again}");
    // Another binary starts a rollout.
    let other = done(deploy(&folder, &cluster, &compiled("deployed", "fn main() {}"), ""));
    assert!(
        other.stdout.starts_with("configured Deployment shop-system/shop-controller-manager\n"),
        "{other}"
    );
    assert_ne!(image(&cluster), deployed);

    // A CRD with objects is kept.
    cluster.create("apiVersion: sales.example.com/v1\nkind: Order\nmetadata: {name: first}\nspec: {}\n");
    let planned = done(run::run(&mut command(&folder, &cluster, "undeploy --dry-run")));
    assert!(planned.stdout.contains("would delete Namespace shop-system\n"), "{planned}");
    assert!(!planned.stdout.contains("CustomResourceDefinition"), "{planned}");
    let removed = done(run::run(&mut command(&folder, &cluster, "undeploy")));
    assert!(removed.stdout.contains("deleted Deployment shop-system/shop-controller-manager\n"), "{removed}");
    assert!(
        removed.stderr.contains(
            "CustomResourceDefinition orders.sales.example.com is kept: it has 1 object; --delete-custom-resources deletes both"
        ),
        "{removed}"
    );
    assert_eq!(cluster.kubectl("get orders -o name").result(), "order.sales.example.com/first\n");

    // The rest is missing now.
    let missing = run::run(&mut command(&folder, &cluster, "undeploy"));
    assert_eq!(missing.status, 1, "{missing}");
    assert!(missing.stderr.contains("hint: ignore missing objects with --ignore-not-found"), "{missing}");
    let all = "undeploy --ignore-not-found --delete-custom-resources";
    let removed = done(run::run(&mut command(&folder, &cluster, all)));
    assert_eq!(removed.stdout, "deleted CustomResourceDefinition orders.sales.example.com\n", "{removed}");
}

#[test]
fn a_pushed_image_is_deployed_by_its_digest() {
    let (registry, folder, cluster) = (Registry::start(), Folder::with_order(), Cluster::with_nodes(1));
    let tag = registry.image("shop:v1");
    let deployed = done(deploy(&folder, &cluster, binary(), &format!("--push --tag {tag}")));
    let image = image(&cluster);
    assert!(image.starts_with(&registry.image("shop@sha256:")), "{image}");
    assert!(deployed.stdout.ends_with(&format!("deployed {image}\n")), "{deployed}");
    super::skopeo(&["inspect", "--tls-verify=false", &format!("docker://{image}")]);
}

/// Adds annotations to the Pods of the operator, which the simulated kubelet follows.
fn annotate(folder: &Folder, annotation: &str) {
    let manager = folder.read("config/manager/manager.yaml");
    let line = "        kubectl.kubernetes.io/default-container: manager\n";
    assert!(manager.contains(line), "{manager}");
    folder.write(
        "config/manager/manager.yaml",
        &manager.replace(line, &format!("{line}        {annotation}\n")),
    );
}

#[test]
fn a_crashing_operator_is_reported_with_its_log() {
    let (folder, cluster) = (Folder::with_order(), Cluster::with_nodes(1));
    annotate(
        &folder,
        "kubewright.dev/exit-code: \"3\"\n        kubewright.dev/run-time: 1s\n        kubewright.dev/ready-delay: 10m\n        kubewright.dev/logs: \"no lease\"",
    );
    let failed = deploy(&folder, &cluster, binary(), "--timeout 2m");
    assert_eq!(failed.status, 1, "{failed}");
    assert!(failed.stderr.contains("container manager: CrashLoopBackOff"), "{failed}");
    assert!(failed.stderr.contains("  log:\n    no lease\n"), "{failed}");
    assert!(failed.stderr.contains("  events:\n"), "{failed}");
    assert!(
        failed.stderr.contains(
            "error: Deployment shop-system/shop-controller-manager failed: container manager of Pod"
        ),
        "{failed}"
    );
}

#[test]
fn an_image_that_cannot_be_pulled_is_reported_with_its_events() {
    let (folder, cluster) = (Folder::with_order(), Cluster::with_nodes(1));
    annotate(&folder, "kubewright.dev/bad-images: \"*\"");
    let failed = run::run(&mut command(&folder, &cluster, "deploy --image registry.example.com/shop:typo"));
    assert_eq!(failed.status, 1, "{failed}");
    assert!(failed.stderr.contains("ImagePullBackOff"), "{failed}");
    assert!(failed.stderr.contains("registry.example.com/shop:typo"), "{failed}");
    assert!(
        failed.stderr.contains("note: registry.example.com/shop:typo is deployed by its tag"),
        "{failed}"
    );
    let events = failed.stderr.split("  events:\n").nth(1).unwrap_or_else(|| panic!("no events: {failed}"));
    assert!(
        events.contains("    Warning Failed: Failed to pull image \"registry.example.com/shop:typo\""),
        "{failed}"
    );
}

#[test]
fn a_timeout_reports_how_far_the_rollout_is() {
    let (folder, cluster) = (Folder::with_order(), Cluster::with_nodes(1));
    annotate(&folder, "kubewright.dev/start-delay: 10m");
    let failed = run::run(&mut command(&folder, &cluster, "deploy --image shop:v1 --timeout 1s"));
    assert_eq!(failed.status, 1, "{failed}");
    assert!(failed.stderr.contains("0 of 1 pods available"), "{failed}");
    assert!(
        failed.stderr.contains("failed: not available within 1s\n  hint: wait longer with --timeout\n"),
        "{failed}"
    );
    assert!(failed.stderr.contains("  events:\n    Normal Scheduled: "), "{failed}");
}

#[test]
fn an_operator_that_never_becomes_ready_is_reported_with_its_log() {
    let (folder, cluster) = (Folder::with_order(), Cluster::with_nodes(1));
    annotate(&folder, "kubewright.dev/ready-delay: 10m\n        kubewright.dev/logs: \"no lease\"");
    let manager = folder.read("config/manager/manager.yaml");
    // Without a container name, log requests for a Pod with a sidecar fail.
    let sidecar = "      - name: proxy\n        image: example.com/proxy:v1\n        securityContext:\n          \
                   allowPrivilegeEscalation: false\n          capabilities: {drop: [ALL]}\n";
    folder.write("config/manager/manager.yaml", &format!("{manager}{sidecar}"));
    let failed = run::run(&mut command(&folder, &cluster, "deploy --image shop:v1 --timeout 3s"));
    assert_eq!(failed.status, 1, "{failed}");
    assert!(failed.stderr.contains("failed: not available within 3s\n"), "{failed}");
    assert!(failed.stderr.contains(": Running\n  events:\n"), "{failed}");
    assert!(failed.stderr.contains("  log:\n    no lease\n"), "{failed}");
}

#[test]
fn a_dry_run_prints_the_objects_and_changes_nothing() {
    let (folder, cluster) = (Folder::with_order(), Cluster::start());
    let line = "deploy --image registry.example.com/shop:v1 --dry-run";
    let printed = done(run::run(&mut command(&folder, &cluster, line)));
    assert!(printed.stdout.contains("image: registry.example.com/shop:v1\n"), "{printed}");
    let folder_of_manifests = tempfile::tempdir().expect("a folder");
    let file = folder_of_manifests.path().join("all.yaml");
    std::fs::write(&file, &printed.stdout).expect("a file");
    assert_eq!(cluster.kubectl("get crds -o name").output(), "");
    cluster.kubectl(&format!("apply --server-side -f {}", file.display())).result();
}

/// A kubeconfig of the cluster with another name for the context.
fn renamed(folder: &Folder, cluster: &Cluster, context: &str) -> PathBuf {
    let kubeconfig = std::fs::read_to_string(cluster.kubeconfig()).expect("it is there");
    let file = folder.path().join("other.kubeconfig");
    let kubeconfig = kubeconfig
        .replace("name: kubewright", &format!("name: {context}"))
        .replace("current-context: kubewright", &format!("current-context: {context}"))
        .replace("cluster: kubewright", &format!("cluster: {context}"));
    std::fs::write(&file, kubeconfig).expect("a file");
    file
}

#[test]
fn an_image_without_a_registry_is_rejected_for_a_remote_cluster() {
    let (folder, cluster) = (Folder::with_order(), Cluster::start());
    let other = renamed(&folder, &cluster, "production");
    let refused = deploy(&folder, &cluster, binary(), &format!("--kubeconfig {}", other.display()));
    assert_eq!(refused.status, 1, "{refused}");
    assert!(
        refused.stderr.contains(
            "error: the image controller:latest has no registry from which the cluster can pull it"
        ),
        "{refused}"
    );
}

#[test]
fn an_image_is_loaded_into_the_cluster_of_the_context() {
    let (folder, cluster) = (Folder::with_order(), Cluster::start());
    let bin = folder.path().join("bin");
    script(&bin.join("kind"), &format!("#!/bin/sh\necho \"$*\" >> {}/calls\n", bin.display()));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let other = renamed(&folder, &cluster, "kind-dev");
    for (flags, name) in [("", "dev"), ("--load kind", "dev"), ("--load kind --name test", "test")] {
        let line = format!(
            "deploy --binary {} --sbom=false --wait=false --kubeconfig {} {flags}",
            binary().display(),
            other.display()
        );
        done(run::run(command(&folder, &cluster, &line).env("PATH", &path)));
        let calls = std::fs::read_to_string(bin.join("calls")).expect("kind was called");
        let last = calls.lines().last().unwrap_or_default();
        assert!(last.ends_with(&format!("/dist/image.tar --name {name}")), "{flags}: {calls}");
    }
}

/// A real cluster can have a context with this name.
#[test]
fn the_name_of_a_context_does_not_keep_an_image_from_being_pushed() {
    let (registry, folder, cluster) = (Registry::start(), Folder::with_order(), Cluster::start());
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: real}\n";
    let tag = registry.image("shop:v1");
    let line = format!("--wait=false --tag {tag}");
    for _ in 0..2 {
        let deployed = done(deploy(&folder, &cluster, binary(), &line));
        assert!(deployed.stdout.contains(&registry.image("shop@sha256:")), "{deployed}");
        // The second time with a node.
        cluster.feed("apply -f -", node).result();
    }
}

#[test]
fn several_platforms_are_rejected_before_the_build_if_the_image_is_loaded() {
    let (folder, cluster) = (Folder::with_order(), Cluster::with_nodes(1));
    let line = "deploy --platform linux/amd64,linux/arm64,linux/ppc64le";
    let refused = run::run(&mut command(&folder, &cluster, line));
    assert_eq!(refused.status, 1, "{refused}");
    assert!(refused.stderr.contains("error: an archive can hold one platform"), "{refused}");
    assert!(!refused.stderr.contains("compiling for"), "{refused}");
}
