//! `kubewright image load`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::{Package, binary};
use crate::run::run;

#[test]
fn a_missing_tool_is_named_with_the_archive() {
    let package = Package::new();
    // No directory in PATH has any of the tools; cargo is called by its path.
    fs::create_dir(package.path("empty")).expect("a folder");
    for (cluster, program, arguments) in [
        ("kind --name dev", "kind", "load image-archive ARCHIVE --name dev"),
        ("minikube", "minikube", "image load ARCHIVE"),
        ("k3d", "k3d", "image import ARCHIVE"),
        ("containerd", "ctr", "--namespace k8s.io images import ARCHIVE"),
    ] {
        let line = format!("image load {cluster} --binary {} --sbom=false", binary().display());
        let failed =
            run(package.command(&line).env("PATH", package.path("empty")).env("CARGO", env!("CARGO")));
        let archive = package.path("dist/image.tar").canonicalize().expect("it was written");
        let said = failed.stderr.replace(&archive.display().to_string(), "ARCHIVE");
        assert_eq!(failed.status, 1, "{failed}");
        assert!(said.contains(&format!("error: cannot start {program}; the archive is ARCHIVE")), "{said}");
        assert!(said.contains(&format!("run `{program} {arguments}` there")), "{said}");
        fs::remove_file(archive).expect("a file");
    }
}

#[test]
fn the_tool_gets_the_archive() {
    let package = Package::new();
    let bin = package.path("bin");
    fs::create_dir(&bin).expect("a folder");
    // Lists the archive, as kind would read it.
    fs::write(bin.join("kind"), "#!/bin/sh\necho \"kind $1 $2\"; tar -tf \"$3\"\n").expect("a file");
    fs::set_permissions(bin.join("kind"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let line = format!("image load kind --binary {} --tag shop:v1", binary().display());
    let loaded = run(package.command(&line).env("PATH", path));
    assert_eq!(loaded.status, 0, "{loaded}");
    for line in ["kind load image-archive\n", "manifest.json\n", "index.json\n"] {
        assert!(loaded.stderr.contains(line), "{loaded}");
    }
    assert!(loaded.stdout.starts_with("loaded ") && loaded.stdout.lines().count() == 1, "{loaded}");
}
