//! Digests of tags, from a real registry.

use super::registry::Registry;
use super::{Package, digest};
use crate::kubectl::cluster::Cluster;
use crate::run;
use crate::scaffold::Folder;

/// Pushes an image, and returns its digest.
fn pushed(registry: &Registry, image: &str) -> String {
    digest(&Package::new().image(&format!("--tag {} --output push", registry.image(image))))
}

fn deploy(folder: &Folder, cluster: &Cluster, arguments: &str) -> run::Run {
    let mut command = run::command(&format!("deploy --wait=false {arguments}"));
    command
        .current_dir(folder.path())
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("KUBECTL")
        .env_remove("DOCKER_CONFIG");
    run::run(&mut command)
}

fn deployed(cluster: &Cluster) -> String {
    let line = "-n shop-system get deployment shop-controller-manager -o jsonpath={..image}";
    cluster.kubectl(line).result()
}

#[test]
fn an_existing_image_is_deployed_by_the_digest_of_its_tag() {
    let (registry, folder, cluster) = (Registry::start(), Folder::with_order(), Cluster::start());
    let image = registry.image("shop:v1");
    let expected = registry.image(&format!("shop@{}", pushed(&registry, "shop:v1")));
    let uploads = registry.uploads();
    let run = deploy(&folder, &cluster, &format!("--image {image}"));
    assert!(run.status == 0 && run.stdout.ends_with(&format!("deployed {expected}\n")), "{run}");
    assert_eq!(deployed(&cluster), expected);
    let printed = deploy(&folder, &cluster, &format!("--image {image} --dry-run"));
    assert!(printed.stdout.contains(&format!("image: {expected}\n")), "{printed}");
    assert_eq!(registry.uploads(), uploads);
    // An image by digest is not looked up.
    let other = registry.image(&format!("shop@sha256:{}", "0".repeat(64)));
    let run = deploy(&folder, &cluster, &format!("--image {other}"));
    assert!(run.status == 0 && run.stdout.ends_with(&format!("deployed {other}\n")), "{run}");
}

#[test]
fn an_image_keeps_its_tag_if_the_registry_does_not_have_it() {
    let (registry, folder, cluster) = (Registry::start(), Folder::with_order(), Cluster::start());
    for (image, reason) in [
        (registry.image("shop:missing"), "manifest unknown"),
        ("127.0.0.1:1/shop:v1".to_owned(), "Connection refused"),
    ] {
        let run = deploy(&folder, &cluster, &format!("--image {image}"));
        assert_eq!(run.status, 0, "{run}");
        let note = format!("note: {image} is deployed by its tag: ");
        assert!(run.stderr.contains(&note) && run.stderr.contains(reason), "{run}");
        assert_eq!(deployed(&cluster), image);
    }
}
