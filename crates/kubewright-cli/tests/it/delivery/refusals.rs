//! Errors with a hint.

use insta::assert_snapshot;

use super::{Package, binary};
use crate::run::Run;

/// The messages without the directory of the package.
fn said(package: &Package, run: &Run) -> String {
    let folder = package.path("").canonicalize().expect("a folder").display().to_string();
    format!("exit status {}\n{}", run.status, run.stderr.replace(&folder, "<DIR>"))
}

/// No machine of ours has this target.
#[test]
fn a_missing_target_is_reported_with_the_rustup_command() {
    let package = Package::new();
    let refused = package.run("image build --platform linux/ppc64le");
    assert_snapshot!(said(&package, &refused), @"
    exit status 1
    error: the Rust target powerpc64le-unknown-linux-musl is not installed
      hint: run `rustup target add powerpc64le-unknown-linux-musl`
    ");
}

#[test]
fn glibc_images_are_for_this_platform_only() {
    let package = Package::new();
    let refused = package.run("image build --libc glibc --platform linux/riscv64");
    assert_snapshot!(said(&package, &refused), @"
    exit status 1
    error: `--libc glibc` cannot build for linux/riscv64: it copies this machine's libraries
      hint: use `--libc musl` for other platforms
    ");
}

#[test]
fn other_files_and_platforms_are_rejected() {
    let package = Package::new();
    let refused = package.run("image build --binary Cargo.toml");
    assert_snapshot!(said(&package, &refused), @"
    exit status 1
    error: cannot use Cargo.toml
      cause: not an ELF binary
      hint: pass a Linux binary, or let kubewright compile it
    ");
    let line = format!("image build --platform linux/riscv64 --binary {}", binary().display());
    let refused = package.run(&line);
    assert!(
        refused.stderr.contains("hint: drop --platform, or let kubewright compile for the platforms"),
        "{refused}"
    );
}

#[test]
fn invalid_references_are_rejected() {
    let package = Package::new();
    let binary = binary().display();
    let refused = package.run(&format!("image build --binary {binary} --tag Shop:v1"));
    assert_snapshot!(said(&package, &refused), @"
    exit status 1
    error: invalid image reference Shop:v1
      cause: invalid reference format
      hint: use for example registry.example.com/shop:v1, in lowercase
    ");
    let digest = format!("shop@sha256:{}", "0".repeat(64));
    let refused = package.run(&format!("image build --binary {binary} --tag {digest}"));
    assert!(
        refused.stderr.contains("contains a digest; the digest is known only after the build"),
        "{refused}"
    );
}

#[test]
fn a_directory_with_other_files_is_not_overwritten() {
    let package = Package::new();
    let refused = package.run(&format!("image build --binary {} --dest src", binary().display()));
    assert_eq!(refused.status, 1, "{refused}");
    assert!(refused.stderr.contains("error: src is not empty and not an OCI layout"), "{refused}");
    assert!(package.path("src/main.rs").exists());
}

/// The second target is not installed, so compiling would fail.
#[test]
fn an_archive_for_several_platforms_is_rejected_before_the_build() {
    let package = Package::new();
    let refused =
        package.run("image build --output docker-archive --platform linux/amd64,linux/arm64,linux/ppc64le");
    assert_snapshot!(said(&package, &refused), @"
    exit status 1
    error: an archive can hold one platform, but the image has 3
      hint: pass one --platform; a registry and `image build --output oci-layout` take several platforms
    ");
}
