//! Images in a real registry.

use super::registry::Registry;
use super::{Package, digest, json, run_in, skopeo, unpack};

#[test]
fn an_image_is_pushed_and_pulled_back_by_its_digest() {
    let (registry, package) = (Registry::start(), Package::new());
    let image = registry.image("shop/operator:v1");
    let pushed = package.image(&format!("--tag {image} --output push --digest-file digest"));
    let by_digest = pushed.stdout.trim().to_owned();
    assert_eq!(by_digest, registry.image(&format!("shop/operator@{}", digest(&pushed))));
    assert_eq!(std::fs::read_to_string(package.path("digest")).expect("a file"), digest(&pushed));

    let layout = registry.path("pulled");
    let to = format!("oci:{}:v1", layout.display());
    skopeo(&["copy", "--src-tls-verify=false", &format!("docker://{by_digest}"), &to]);
    let manifest = json(&skopeo(&["inspect", "--raw", &to]));
    assert_eq!(manifest["layers"].as_array().map(Vec::len), Some(2));
    let rootfs = unpack(&layout, "v1", &registry.path("bundle"));
    assert_eq!(run_in(&rootfs, &[]), "user 65532 group 65532\ncertificates true\naddress true\n");
}

#[test]
fn a_second_push_uploads_nothing() {
    let (registry, package) = (Registry::start(), Package::new());
    let image = registry.image("shop/operator:v1");
    let first = package.image(&format!("--tag {image} --output push"));
    // Two layers, the configuration, the SBOM and its empty configuration.
    assert!(first.stderr.contains(": 5 blobs uploaded, 0 already in the registry"), "{first}");
    assert_eq!(registry.uploads(), 5, "{}", registry.log());
    let second = package.image(&format!("--tag {image} --output push"));
    assert!(second.stderr.contains(": 0 blobs uploaded, 5 already in the registry"), "{second}");
    assert_eq!(registry.uploads(), 5, "{}", registry.log());
    assert_eq!(digest(&first), digest(&second));

    // Another binary changes one layer and the configuration.
    let other = super::compiled("other", "fn main() {}");
    let third = package.run(&format!("image build --binary {} --tag {image} --output push", other.display()));
    assert!(third.stderr.contains(": 2 blobs uploaded, 3 already in the registry"), "{third}");
    assert_ne!(digest(&first), digest(&third));
}

#[test]
fn the_sbom_is_a_referrer_of_the_image() {
    let (registry, package) = (Registry::start(), Package::new());
    let image = registry.image("shop/operator:v1");
    let pushed = digest(&package.image(&format!("--tag {image} --output push")));
    // Debian's registry has no referrers API.
    let tag = registry.image(&format!("shop/operator:{}", pushed.replace(':', "-")));
    let raw = |reference: &str| json(&skopeo(&["inspect", "--raw", "--tls-verify=false", reference]));
    let referrers = raw(&format!("docker://{tag}"));
    let entry = &referrers["manifests"][0];
    assert_eq!(entry["artifactType"], "application/vnd.cyclonedx+json", "{referrers}");
    let sbom = entry["digest"].as_str().expect("it has a digest");
    let manifest = raw(&format!("docker://{}", registry.image(&format!("shop/operator@{sbom}"))));
    assert_eq!(manifest["subject"]["digest"], pushed.as_str(), "{manifest}");
    // A second push does not list it twice.
    package.image(&format!("--tag {image} --output push"));
    assert_eq!(raw(&format!("docker://{tag}")), referrers);
}

#[test]
fn a_registry_that_does_not_answer_is_reported() {
    let package = Package::new();
    let line =
        format!("image build --binary {} --output push --tag 127.0.0.1:1/shop:v1", super::binary().display());
    let refused = package.run(&line);
    assert_eq!(refused.status, 1, "{refused}");
    assert!(refused.stderr.contains("error: cannot log in to 127.0.0.1:1\n"), "{refused}");
    assert!(refused.stderr.contains("Connection refused"), "{refused}");
    assert!(refused.stderr.contains("hint: check the registry's name"), "{refused}");
}
