//! Images, installers and deployments with real tools: a registry, skopeo, umoci, kubectl and the embedded
//! cluster. None of the tests needs a container runtime.

mod archive;
mod credentials;
mod deploy;
mod installer;
mod layout;
mod load;
mod push;
mod refusals;
mod registry;
mod seeds;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{self, Run, command};

/// A program that reports its user, its certificates and its name resolution.
const OPERATOR: &str = r#"
use std::net::ToSocketAddrs as _;
use std::os::unix::fs::MetadataExt as _;

fn main() {
    std::fs::write("/tmp/owner", "").expect("/tmp can be written");
    let owner = std::fs::metadata("/tmp/owner").expect("it was written");
    let certificates = std::fs::read_to_string("/etc/ssl/certs/ca-certificates.crt").expect("it is there");
    let address = ("127.0.0.1", 80).to_socket_addrs().expect("an address").next();
    println!("user {} group {}", owner.uid(), owner.gid());
    println!("certificates {}", certificates.matches("BEGIN CERTIFICATE").count() > 100);
    println!("address {}", address.is_some());
}
"#;

/// A cargo package without dependencies, and a binary that is compiled once for all tests.
pub(crate) struct Package(TempDir);

impl Package {
    pub(crate) fn new() -> Self {
        let package = Self(tempfile::tempdir().expect("a folder"));
        fs::create_dir(package.path("src")).expect("a folder");
        package.write("src/main.rs", OPERATOR);
        package.write(
            "Cargo.toml",
            "[package]\nname = \"shop\"\nversion = \"1.2.3\"\nedition = \"2024\"\ndescription = \"Sells things\"\n\
             license = \"Apache-2.0\"\nauthors = [\"Shop\"]\nrepository = \"https://example.com/shop\"\n\n\
             [profile.release]\nstrip = \"debuginfo\"\n\n[workspace]\n",
        );
        package.write("Cargo.lock", "version = 4\n\n[[package]]\nname = \"shop\"\nversion = \"1.2.3\"\n");
        package
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// `kubewright` in the package, without the user's credentials.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = command(line);
        let home = self.path("home");
        fs::create_dir_all(&home).expect("a folder");
        command
            .current_dir(self.0.path())
            .env("CARGO_HOME", cargo_home())
            .env("RUSTUP_HOME", rustup_home())
            .env("HOME", home)
            .env("CARGO_TARGET_DIR", self.path("target"))
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("DOCKER_CONFIG")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("SOURCE_DATE_EPOCH");
        command
    }

    pub(crate) fn run(&self, line: &str) -> Run {
        run::run(&mut self.command(line))
    }

    /// Builds an image of the compiled binary. Returns the command's result.
    #[track_caller]
    pub(crate) fn image(&self, arguments: &str) -> Run {
        let line = format!("image build --binary {} {arguments}", binary().display());
        let run = self.run(&line);
        assert_eq!(run.status, 0, "{line}: {run}");
        run
    }
}

/// The directory of cargo's downloads, which is below the home directory by default.
fn cargo_home() -> PathBuf {
    let home = || Path::new(&std::env::var_os("HOME").expect("HOME is set")).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

fn rustup_home() -> PathBuf {
    let home = || Path::new(&std::env::var_os("HOME").expect("HOME is set")).join(".rustup");
    std::env::var_os("RUSTUP_HOME").map_or_else(home, PathBuf::from)
}

/// [`OPERATOR`], compiled.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| compiled("operator", OPERATOR))
}

/// Compiles a program without cargo.
pub(crate) fn compiled(name: &str, source: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("delivery-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (file, binary) = (folder.join(format!("{name}.rs")), folder.join(name));
    fs::write(&file, source).expect("a file");
    let output = Command::new("rustc")
        .args(["--edition=2024", "-Copt-level=s", "-Cstrip=symbols", "-o"])
        .args([&binary, &file])
        .output()
        .expect("rustc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    binary
}

/// Runs a tool of a Debian package, and must succeed.
#[track_caller]
pub(crate) fn tool(program: &str, package: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| {
        panic!("{program} does not start ({error}): install the Debian package {package}, or run `cargo xtask ci`")
    });
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {}: {stdout}{stderr}", arguments.join(" "));
    stdout.into_owned()
}

pub(crate) fn skopeo(arguments: &[&str]) -> String {
    // The signature policy of the machine does not matter here.
    let arguments: Vec<&str> =
        std::iter::once("--insecure-policy").chain(arguments.iter().copied()).collect();
    tool("skopeo", "skopeo", &arguments)
}

/// Unpacks an image of a layout with umoci. Returns its root filesystem.
#[track_caller]
pub(crate) fn unpack(layout: &Path, tag: &str, into: &Path) -> PathBuf {
    let image = format!("{}:{tag}", layout.display());
    tool("umoci", "umoci", &["unpack", "--rootless", "--image", &image, into.to_str().expect("text")]);
    into.join("rootfs")
}

/// Runs the entry point of an unpacked image as its user, in a user namespace without other files.
#[track_caller]
pub(crate) fn run_in(rootfs: &Path, variables: &[(&str, &str)]) -> String {
    let output = Command::new("unshare")
        .args(["--user", "--map-user=65532", "--map-group=65532", "--root"])
        .arg(rootfs)
        .arg("/manager")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(variables.iter().copied())
        .output()
        .expect("unshare of util-linux starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {stdout}{stderr}", output.status);
    stdout.into_owned()
}

/// The last word of a command's result: the digest.
#[track_caller]
pub(crate) fn digest(run: &Run) -> String {
    let word = run.stdout.trim().rsplit([' ', '@']).next().unwrap_or_default().to_owned();
    assert!(word.starts_with("sha256:") && word.len() == 71, "{run}");
    word
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
