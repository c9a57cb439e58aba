//! OCI layouts, as other tools read them.

use std::fs;
use std::process::Command;

use super::{Package, digest, json, run_in, skopeo, unpack};

#[test]
fn skopeo_and_umoci_accept_the_layout() {
    let package = Package::new();
    package.image("--tag example.com/shop:v1 --label team=sales");
    let layout = package.path("dist/image");
    let image = format!("oci:{}:v1", layout.display());
    let inspected = json(&skopeo(&["inspect", &image]));
    assert_eq!(inspected["Os"], "linux");
    assert_eq!(inspected["Created"], "1970-01-01T00:00:00Z");
    let labels = &inspected["Labels"];
    for (name, value) in [
        ("org.opencontainers.image.title", "shop"),
        ("org.opencontainers.image.version", "1.2.3"),
        ("org.opencontainers.image.description", "Sells things"),
        ("org.opencontainers.image.licenses", "Apache-2.0"),
        ("org.opencontainers.image.source", "https://example.com/shop"),
        ("team", "sales"),
    ] {
        assert_eq!(labels[name], value, "{labels}");
    }
    let config = json(&skopeo(&["inspect", "--config", &image]));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/manager"]));

    let rootfs = unpack(&layout, "v1", &package.path("bundle"));
    let users = fs::read_to_string(rootfs.join("etc/passwd")).expect("it is there");
    assert!(users.contains("nonroot:x:65532:65532:"), "{users}");
    assert_eq!(run_in(&rootfs, &[]), "user 65532 group 65532\ncertificates true\naddress true\n");
}

#[test]
fn the_same_source_gives_the_same_digest_in_another_directory() {
    let digests: Vec<String> = [Package::new(), Package::new()]
        .iter()
        .map(|package| {
            let built = package.run("image build --libc glibc");
            assert_eq!(built.status, 0, "{built}");
            digest(&built)
        })
        .collect();
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn a_new_build_replaces_the_blobs_of_the_last_one() {
    let package = Package::new();
    let first = digest(&package.image(""));
    let again = digest(&package.image(""));
    assert_eq!(first, again);
    let changed = digest(&package.image("--label team=sales"));
    assert_ne!(first, changed);
    let blobs = package.path("dist/image/blobs/sha256");
    assert!(!blobs.join(first.trim_start_matches("sha256:")).exists());
    // Two layers, configuration, manifest; SBOM, its configuration and manifest.
    assert_eq!(fs::read_dir(blobs).expect("a folder").count(), 7);
}

#[test]
fn the_revision_is_the_commit() {
    let package = Package::new();
    let git = |line: &str| {
        let output = Command::new("git")
            .args(["-c", "user.name=test", "-c", "user.email=test@example.com"])
            .args(line.split_whitespace())
            .current_dir(package.path(""))
            .output()
            .expect("git starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    package.write(".gitignore", "/dist\n/home\n/target\n");
    git("init --quiet");
    git("add .");
    git("commit --quiet -m start");
    let commit = git("rev-parse HEAD");
    let revision = || {
        package.image("");
        let image = format!("oci:{}:latest", package.path("dist/image").display());
        let inspected = json(&skopeo(&["inspect", &image]));
        inspected["Labels"]["org.opencontainers.image.revision"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(revision(), commit);
    package.write("src/main.rs", "fn main() {}\n");
    assert_eq!(revision(), format!("{commit}-dirty"));
}
