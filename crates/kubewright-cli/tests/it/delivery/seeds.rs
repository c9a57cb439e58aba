//! The steps of the tutorial notes without Docker: from `init` to a running Pod and to archives for
//! containerd and minikube.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{json, run_in, skopeo, unpack};
use crate::kubectl::cluster::Cluster;
use crate::run::{self, target};
use crate::scaffold::Folder;

/// Writes a script in place of a tool of a cluster. The script records its arguments and reads the archive.
fn recorder(folder: &Path, name: &str) {
    let script = format!(
        "#!/bin/sh\nset -e\necho \"{name} $*\" >> {0}/calls\n\
         for word; do case $word in *.tar) tar -xOf \"$word\" manifest.json >/dev/null;; esac; done\n",
        folder.display()
    );
    fs::write(folder.join(name), script).expect("a file");
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[test]
fn the_notes_work_without_docker() {
    let folder = Folder::new("bar-controller");
    folder.done("init --domain ginoh.github.io --repo github.com/ginoh/bar-controller");
    folder.done("create api --group samplecontroller --version v1alpha1 --kind Bar");
    crate::run::lock(&folder.path());
    // Without a container tool, make calls kubewright.
    let absent = [("IMG", "bar-controller:dev"), ("CONTAINER_TOOL", "no-such-docker"), ("MAKEFLAGS", "-n")];
    let made = folder.shell("make", "docker-build docker-push docker-buildx deploy", &absent);
    for line in [
        "image build --tag bar-controller:dev\n",
        "image build --tag bar-controller:dev --output push\n",
        "image build --tag bar-controller:dev --platform linux/arm64,linux/amd64 --output push\n",
        "deploy --image bar-controller:dev --wait=false\n",
    ] {
        assert!(made.contains(line), "{line}: {made}");
    }

    // The operator is compiled for the debugger, in the directory with its compiled dependencies.
    folder.shell("cargo", "build --quiet", &[]);
    let binary = target().join("debug/bar-controller");
    let tools = tempfile::tempdir().expect("a folder");
    for tool in ["ctr", "minikube"] {
        recorder(tools.path(), tool);
    }
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap_or_default());
    let variables = [("PATH", path.as_str())];
    let kubewright = env!("CARGO_BIN_EXE_kubewright");
    let image = format!("--binary {} --tag bar-controller:dev", binary.display());
    folder.shell(kubewright, &format!("image load containerd {image}"), &variables);
    folder.shell(kubewright, &format!("image load minikube --name sample-bar-contrller {image}"), &variables);
    let calls = fs::read_to_string(tools.path().join("calls")).expect("both were called");
    let calls: Vec<&str> = calls.lines().collect();
    assert!(calls[0].starts_with("ctr --namespace k8s.io images import /"), "{calls:?}");
    assert!(calls[1].starts_with("minikube image load /"), "{calls:?}");
    assert!(calls[1].ends_with("dist/image.tar --profile sample-bar-contrller"), "{calls:?}");

    // The operator of the image prints its inventory as user 65532.
    folder.shell(kubewright, &format!("image build {image}"), &variables);
    let bundle = tools.path().join("bundle");
    let layout = folder.path().join("dist/image");
    let rootfs = unpack(&layout, "dev", &bundle);
    let inventory = json(&run_in(&rootfs, &[("KUBEWRIGHT_MANIFESTS", "1")]));
    assert!(inventory.to_string().contains("samplecontroller.ginoh.github.io"), "{inventory}");
    sbom_lists_the_runtime(&layout);

    // `IMG=bar-controller:dev make deploy`, and the Pod runs.
    let cluster = Cluster::with_nodes(1);
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let deployed = folder.shell(kubewright, &format!("deploy --kubeconfig {kubeconfig} {image}"), &variables);
    assert!(deployed.contains("deployed bar-controller:dev-"), "{deployed}");
    let pods = cluster.kubectl("-n bar-controller-system get pods -o jsonpath={..phase}").result();
    assert_eq!(pods, "Running");
    let archive = folder.path().join("dist/image.tar");
    let inspected = json(&skopeo(&["inspect", &format!("docker-archive:{}", archive.display())]));
    assert_eq!(inspected["Labels"]["org.opencontainers.image.title"], "bar-controller");
    let kubectl = format!("kubectl --kubeconfig {kubeconfig}");
    folder.shell(
        "make",
        "deploy IMG=bar-controller:dev",
        &[("KUBECTL", &kubectl), ("CONTAINER_TOOL", "no-such-docker")],
    );
    let images = cluster.kubectl("-n bar-controller-system get deployments -o jsonpath={..image}").result();
    assert_eq!(images, "bar-controller:dev");
}

/// The SBOM has the crates of the binary with their checksums, and no path of this machine.
#[track_caller]
fn sbom_lists_the_runtime(layout: &Path) {
    let blobs = layout.join("blobs/sha256");
    let texts = fs::read_dir(blobs).expect("a folder").filter_map(|entry| {
        let text = fs::read_to_string(entry.expect("an entry").path()).ok()?;
        text.contains("\"bomFormat\":\"CycloneDX\"").then_some(text)
    });
    let text = texts.into_iter().next().expect("the layout has an SBOM");
    let sbom = json(&text);
    let components = sbom["components"].as_array().expect("components");
    let found = |name: &str| components.iter().find(|component| component["name"] == name);
    assert!(found("kubewright-runtime").is_some() && found("kubewright-envtest").is_none());
    assert!(found("tokio").is_some_and(|tokio| tokio["hashes"][0]["alg"] == "SHA-256"));
    let home = run::target().display().to_string();
    assert!(!text.contains(&home) && !text.contains("file://"), "the SBOM has paths");
}
