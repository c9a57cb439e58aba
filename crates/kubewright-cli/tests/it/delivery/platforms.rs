//! Images for several platforms, of binaries that were compiled before.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::registry::Registry;
use super::{Package, digest, json, skopeo};
use crate::run::Run;

/// Offset and values of the machine in the ELF header.
const MACHINE: usize = 18;
const X86_64: u8 = 62;
const AARCH64: u8 = 183;

/// A static binary of this machine, and a copy whose header names the other architecture. The image only depends
/// on the header.
pub(crate) fn binaries(package: &Package) -> [PathBuf; 2] {
    let (amd64, arm64) = (package.path("shop-amd64"), package.path("shop-arm64"));
    let output = Command::new("rustc")
        .args(["--edition=2024", "-Copt-level=s", "-Cstrip=symbols", "-Ctarget-feature=+crt-static", "-o"])
        .args([&amd64, &package.path("src/main.rs")])
        .output()
        .expect("rustc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut data = fs::read(&amd64).expect("a binary");
    for (file, machine) in [(&amd64, X86_64), (&arm64, AARCH64)] {
        data[MACHINE..MACHINE + 2].copy_from_slice(&[machine, 0]);
        fs::write(file, &data).expect("a binary");
    }
    [amd64, arm64]
}

fn built(package: &Package, arguments: &str) -> Run {
    let run = package.run(&format!("image build {arguments}"));
    assert_eq!(run.status, 0, "{arguments}: {run}");
    run
}

fn raw(reference: &str) -> Value {
    json(&skopeo(&["inspect", "--raw", "--tls-verify=false", &format!("docker://{reference}")]))
}

#[test]
fn an_index_has_a_manifest_and_an_sbom_for_each_platform() {
    let (registry, package) = (Registry::start(), Package::new());
    let [amd64, arm64] = binaries(&package);
    let image = registry.image("shop:v1");
    let both = format!("--binary {} --binary {}", amd64.display(), arm64.display());
    let line = format!("{both} --platform linux/amd64,linux/arm64 --tag {image} --output push");
    let first = built(&package, &line);
    // The base layer, the SBOM (the package has no dependencies) and its configuration are shared.
    assert!(first.stderr.contains(": 7 blobs uploaded, 3 already in the registry"), "{first}");
    assert!(first.stderr.contains("(linux/amd64, linux/arm64, "), "{first}");
    let uploads = registry.uploads();
    assert_eq!(uploads, 7, "{}", registry.log());

    let index = raw(&image);
    assert_eq!(index["mediaType"], "application/vnd.oci.image.index.v1+json", "{index}");
    let manifests = index["manifests"].as_array().expect("manifests");
    let platforms: Vec<String> = manifests
        .iter()
        .map(|it| format!("{}/{}", it["platform"]["os"], it["platform"]["architecture"]).replace('"', ""))
        .collect();
    assert_eq!(platforms, ["linux/amd64", "linux/arm64"]);
    for manifest in manifests {
        let digest = manifest["digest"].as_str().expect("a digest");
        let config = json(&skopeo(&[
            "inspect",
            "--config",
            "--tls-verify=false",
            &format!("docker://{}", registry.image(&format!("shop@{digest}"))),
        ]));
        assert_eq!(config["architecture"], manifest["platform"]["architecture"]);
        // Debian's registry has no referrers API, so the SBOM is listed under a tag.
        let referrers = raw(&registry.image(&format!("shop:{}", digest.replace(':', "-"))));
        let entries = referrers["manifests"].as_array().expect("referrers");
        assert_eq!(entries.len(), 1, "{referrers}");
        assert_eq!(entries[0]["artifactType"], "application/vnd.cyclonedx+json", "{referrers}");
        let sbom = entries[0]["digest"].as_str().expect("a digest");
        assert_eq!(raw(&registry.image(&format!("shop@{sbom}")))["subject"]["digest"], digest);
    }

    // Neither a second push nor the order of the flags changes anything.
    let swapped = format!("--binary {} --binary {}", arm64.display(), amd64.display());
    let line = format!("{swapped} --platform linux/arm64,linux/amd64 --tag {image} --output push");
    let second = built(&package, &line);
    assert!(second.stderr.contains(": 0 blobs uploaded, 10 already in the registry"), "{second}");
    assert_eq!(registry.uploads(), uploads, "{}", registry.log());
    assert_eq!(digest(&first), digest(&second));
}

#[test]
fn each_platform_needs_one_binary() {
    let package = Package::new();
    let [amd64, arm64] = binaries(&package);
    let refused = |arguments: &str, expected: &str| {
        let run = package.run(&format!("image build {arguments}"));
        assert!(run.status == 1 && run.stderr.contains(expected), "{arguments}: {run}");
    };
    let (amd64, arm64) = (amd64.display(), arm64.display());
    refused(&format!("--binary {amd64} --binary {amd64}"), "are both for linux/amd64\n  hint: pass one");
    refused(
        &format!("--binary {amd64} --platform linux/amd64,linux/arm64"),
        "error: no --binary is for linux/arm64\n",
    );
    refused(
        &format!("--binary {amd64} --binary {arm64} --platform linux/amd64"),
        "shop-arm64 is a binary for linux/arm64 only\n",
    );
    refused(
        &format!("--binary {amd64} --binary {arm64} --output docker-archive"),
        "an archive can hold one platform",
    );
}
