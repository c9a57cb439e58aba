//! scripts/without-docker.sh: the steps of the tutorial notes without Docker, with a real compilation.

use std::fs;
use std::path::Path;

use super::{json, musl, run_in, skopeo, unpack};
use crate::run;
use crate::scaffold::Folder;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Writes a script in place of a tool of a cluster. The script records its arguments and reads the archive.
fn recorder(folder: &Path, name: &str) {
    let script = format!(
        "#!/bin/sh\nset -e\necho \"{name} $*\" >> {0}/calls\n\
         for word; do case $word in *.tar) tar -xOf \"$word\" manifest.json >/dev/null;; esac; done\n",
        folder.display()
    );
    super::script(&folder.join(name), &script);
}

/// Without a container tool, make calls kubewright.
#[test]
fn make_calls_kubewright_without_docker() {
    let folder = Folder::with_order();
    let absent = [("IMG", "shop:dev"), ("CONTAINER_TOOL", "no-such-docker"), ("MAKEFLAGS", "-n")];
    let made = folder.shell("make", "docker-build docker-push docker-buildx deploy", &absent);
    for line in [
        "image build --tag shop:dev \n",
        "image build --tag shop:dev --output push \n",
        "image build --tag shop:dev --platform linux/arm64,linux/amd64 --output push \n",
        "deploy --image shop:dev --wait=false\n",
    ] {
        assert!(made.contains(line), "{line}: {made}");
    }
}

#[test]
fn the_notes_work_without_docker() {
    let folder = Folder::new("notes");
    let tools = tempfile::tempdir().expect("a folder");
    for tool in ["ctr", "minikube"] {
        recorder(tools.path(), tool);
    }
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap_or_default());
    let lock = format!("{ROOT}/Cargo.lock");
    // The dev profile compiles in a fraction of the time, for the same target and with the same flags.
    let flags = if musl::is_left_out() { "--profile dev --libc glibc" } else { "--profile dev" };
    let variables = [("PATH", path.as_str()), ("CARGO_LOCK", lock.as_str()), ("IMAGE_FLAGS", flags)];
    let script = format!("{ROOT}/scripts/without-docker.sh .");
    let said = folder.shell("sh", &script, &variables);
    assert!(said.contains("successfully rolled out\n"), "{said}");
    assert!(said.contains("1/1     Running"), "{said}");

    let calls = fs::read_to_string(tools.path().join("calls")).expect("both were called");
    let calls: Vec<&str> = calls.lines().collect();
    assert!(calls[0].starts_with("ctr --namespace k8s.io images import /"), "{calls:?}");
    assert!(calls[1].starts_with("minikube image load /"), "{calls:?}");
    assert!(calls[1].ends_with("dist/image.tar"), "{calls:?}");

    // The operator of the image is static, and prints its inventory as user 65532.
    let project = folder.path().join("bar-controller");
    let layout = project.join("dist/image");
    let rootfs = unpack(&layout, "dev", &tools.path().join("bundle"));
    assert_eq!(super::interpreter(&rootfs.join("manager")).is_some(), musl::is_left_out());
    let inventory = json(&run_in(&rootfs, &[("KUBEWRIGHT_MANIFESTS", "1")]));
    assert!(inventory.to_string().contains("samplecontroller.ginoh.github.io"), "{inventory}");
    sbom_lists_the_runtime(&layout);
    let archive = project.join("dist/image.tar");
    let inspected = json(&skopeo(&["inspect", &format!("docker-archive:{}", archive.display())]));
    assert_eq!(inspected["Labels"]["org.opencontainers.image.title"], "bar-controller");
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
