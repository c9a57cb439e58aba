//! Static images, compiled for musl.

use std::fs;

use super::{Package, digest, interpreter, json, run_in, script, skopeo, tree, unpack};
use crate::run::{run, target};

/// The musl target of this machine.
const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

/// Whether to leave the tests out, on machines that cannot install the target. `cargo xtask ci` warns about it.
pub(super) fn is_left_out() -> bool {
    std::env::var_os("KUBEWRIGHT_TESTS_WITHOUT_MUSL").is_some()
}

#[test]
fn the_image_has_a_static_binary_by_default() {
    if is_left_out() {
        return;
    }
    let package = Package::new();
    let built = package.run("image build --tag shop:v1");
    assert_eq!(
        built.status, 0,
        "{built}: the Rust target {TARGET} is needed; `cargo xtask ci --only tools` adds it"
    );
    assert!(built.stderr.contains(&format!("({TARGET}")), "{built}");
    let rootfs = unpack(&package.path("dist/image"), "v1", &package.path("bundle"));
    assert_eq!(interpreter(&rootfs.join("manager")), None);
    let expected = [
        "etc",
        "etc/group",
        "etc/nsswitch.conf",
        "etc/passwd",
        "etc/ssl",
        "etc/ssl/certs",
        "etc/ssl/certs/ca-certificates.crt",
        "manager",
        "tmp",
    ];
    assert_eq!(tree(&rootfs), expected);
    assert_eq!(run_in(&rootfs, &[]), "user 65532 group 65532\ncertificates true\naddress true\n");
}

#[test]
fn cargo_zigbuild_compiles_if_it_is_installed() {
    if is_left_out() {
        return;
    }
    let package = Package::new();
    let bin = package.path("bin");
    // Records the call, and compiles with cargo.
    script(
        &bin.join("cargo-zigbuild"),
        &format!("#!/bin/sh\necho \"$*\" >> {}/calls\nshift\nexec cargo build \"$@\"\n", bin.display()),
    );
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let built = run(package.command("image build").env("PATH", path));
    assert_eq!(built.status, 0, "{built}");
    assert!(built.stderr.contains(&format!("({TARGET}, with cargo-zigbuild)")), "{built}");
    let calls = fs::read_to_string(bin.join("calls")).expect("it was called");
    assert_eq!(calls.lines().count(), 1, "{calls}");
    assert!(calls.starts_with("zigbuild "), "{calls}");
    assert!(calls.contains(&format!("--bins --profile release --target {TARGET} ")), "{calls}");
    // zig links for musl only.
    let glibc = run(package.command("image build --libc glibc").env("PATH", &bin));
    assert!(!glibc.stderr.contains("with cargo-zigbuild"), "{glibc}");
    assert_eq!(digest(&built), digest(&Package::new().run("image build")));
}

/// With the real cargo-zigbuild and zig, which `cargo xtask ci` installs. The image of the other architecture is not run.
#[test]
fn zig_compiles_for_several_platforms() {
    if std::env::var_os("KUBEWRIGHT_TESTS_WITHOUT_ZIG").is_some() {
        return;
    }
    let package = Package::new();
    let tools = target().join("tools");
    let folders = [tools.join("zig/bin"), tools.join("bin")];
    assert!(folders[0].join("cargo-zigbuild").is_file(), "`cargo xtask ci --only tools` installs it");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path))).expect("a path");
    let line = "image build --tag shop:v1 --platform linux/amd64,linux/arm64";
    let mut command = package.command(line);
    // zig compiles the C library once, into its cache.
    let built = run(command.env("PATH", path).env("XDG_CACHE_HOME", target().join("tmp/zig")));
    assert_eq!(built.status, 0, "{built}");
    assert!(built.stderr.contains("(aarch64-unknown-linux-musl, with cargo-zigbuild)"), "{built}");
    let layout = format!("oci:{}:v1", package.path("dist/image").display());
    for (architecture, machine) in [("amd64", elf::abi::EM_X86_64), ("arm64", elf::abi::EM_AARCH64)] {
        let copy = package.path(architecture);
        let to = format!("oci:{}:v1", copy.display());
        skopeo(&["copy", "--override-os", "linux", "--override-arch", architecture, &layout, &to]);
        let config = json(&skopeo(&["inspect", "--config", &to]));
        assert_eq!(config["architecture"], architecture);
        let binary = unpack(&copy, "v1", &package.path(&format!("{architecture}-bundle"))).join("manager");
        assert_eq!(interpreter(&binary), None);
        let data = fs::read(binary).expect("a binary");
        let file = elf::ElfBytes::<elf::endian::AnyEndian>::minimal_parse(&data).expect("an ELF binary");
        assert_eq!(file.ehdr.e_machine, machine);
    }
}
