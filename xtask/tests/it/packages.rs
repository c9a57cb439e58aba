//! Published crates can be packaged.

use std::path::Path;
use std::process::Command;

use cargo_metadata::MetadataCommand;

#[test]
fn every_published_crate_packages_without_warnings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec().unwrap();
    let packages = metadata.workspace_packages();
    let published: Vec<_> =
        packages.iter().filter(|it| it.publish.as_ref().is_none_or(|it| !it.is_empty())).collect();
    assert!(published.iter().any(|it| it.name.as_str() == "kubewright"), "the facade is published");

    let target = tempfile::tempdir().unwrap();
    let mut cargo = Command::new("cargo");
    cargo.args(["package", "--no-verify", "--allow-dirty", "--offline", "--target-dir"]).arg(target.path());
    for package in &published {
        cargo.args(["--package", package.name.as_str()]);
    }
    let output = cargo.current_dir(root).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("warning"), "{stderr}");
    for package in published {
        let file = format!("package/{}-{}.crate", package.name, package.version);
        assert!(target.path().join(&file).is_file(), "{file} is missing: {stderr}");
    }
}
