//! `kubewright build-installer`.

use crate::kubectl::cluster::Cluster;
use crate::scaffold::Folder;

#[test]
fn the_installer_has_the_objects_of_kustomize_and_the_image() {
    let folder = Folder::with_order();
    let image = format!("registry.example.com/shop@sha256:{}", "0".repeat(64));
    folder.done(&format!("build-installer --image {image}"));
    let installer = folder.read("dist/install.yaml");
    assert_eq!(installer.matches(&format!("image: {image}\n")).count(), 1, "{installer}");
    assert!(!installer.contains("controller:latest"));
    let cluster = Cluster::start();
    let config = folder.path().join("config/default");
    let rendered = cluster.kubectl(&format!("kustomize {}", config.display())).result();
    let objects = |text: &str| {
        let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(text).expect("YAML");
        let mut objects: Vec<String> = documents
            .into_iter()
            .map(|document| document.to_string().replace(&image, "controller:latest"))
            .collect();
        objects.sort();
        objects
    };
    assert_eq!(objects(&installer), objects(&rendered));
    let file = folder.path().join("dist/install.yaml");
    cluster.kubectl(&format!("apply --server-side -f {}", file.display())).result();
    assert_eq!(folder.done(&format!("build-installer --image {image} --output -")), installer);
}

#[test]
fn a_broken_kustomization_is_reported() {
    let folder = Folder::with_order();
    folder.remove("config/rbac/role.yaml");
    let refused = folder.run("build-installer");
    assert_eq!(refused.status, 1, "{refused}");
    assert!(refused.stderr.starts_with("error: kustomize cannot render config/default\n"), "{refused}");
    assert!(refused.stderr.contains("role.yaml"), "{refused}");
}
