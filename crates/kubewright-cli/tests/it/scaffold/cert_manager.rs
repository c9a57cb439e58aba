//! cert-manager's Certificate and Issuer in a project: types from its CRDs, and controllers that use them.
//!
//! The CRDs are those of the package `cert-manager-crds`, which the tests of the API server list. Nothing of it is
//! compiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Folder;

/// Adds the two kinds to a project with several groups, with controllers and a test under the generated role.
pub(super) fn add(folder: &Folder) {
    let crds = crds();
    for kind in ["Certificate", "Issuer"] {
        folder.done(&format!("create api --from-crd {} --kind {kind}", crds.display()));
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cert-manager");
    for (source, path) in [
        ("certificate.rs", "src/controllers/cert_manager/certificate.rs"),
        ("issuer.rs", "src/controllers/cert_manager/issuer.rs"),
        ("certificate_test.rs", "tests/it/cert_manager_certificate.rs"),
    ] {
        folder.read(path);
        folder.write(path, &fs::read_to_string(sources.join(source)).expect("the source is there"));
    }
}

/// The file with cert-manager's CRDs. cargo downloads its package, unless it is offline.
fn crds() -> PathBuf {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../kubewright-apiserver/tests/vendors/Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--quiet", "--locked", "--format-version=1"])
        // Without a platform, cargo downloads the dependencies of every platform.
        .args(["--filter-platform", "host-tuple", "--manifest-path", manifest])
        .output()
        .expect("cargo starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "cargo cannot download the CRDs; `cargo xtask ci --only fetch` does it: {}",
        stderr.trim()
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.clone().find(|package| package["name"] == "cert-manager-crds");
    let manifest = package.and_then(|package| package["manifest_path"].as_str()).expect("it is listed");
    Path::new(manifest).with_file_name("resources").join("cert-manager.crds.yaml")
}
