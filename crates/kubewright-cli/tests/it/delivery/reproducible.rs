//! The same source gives the same image, whatever the directories of the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::{Package, digest, json};
use crate::run::{self, Run};

/// A package with a path dependency, generated code and an optional dependency, in a directory with a space.
struct Machine {
    held: TempDir,
    name: &'static str,
}

impl Machine {
    fn new(name: &'static str) -> Self {
        let machine = Self { held: tempfile::tempdir().expect("a folder"), name };
        for (path, text) in [
            (
                "shop/Cargo.toml",
                "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                 [dependencies]\ninside = { path = \"inside\" }\noptional = { path = \"optional\", optional = true }\n\n\
                 [profile.release]\ndebug = \"line-tables-only\"\n\n[workspace]\n",
            ),
            ("shop/build.rs", BUILD),
            (
                "shop/src/main.rs",
                "include!(concat!(env!(\"OUT_DIR\"), \"/generated.rs\"));\n\
                 fn main() {\n    println!(\"{} {} {}\", file!(), inside::place(), generated());\n}\n",
            ),
            (
                "shop/inside/Cargo.toml",
                "[package]\nname = \"inside\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            ),
            ("shop/inside/src/lib.rs", PLACE),
            (
                "shop/optional/Cargo.toml",
                "[package]\nname = \"optional\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            ),
            ("shop/optional/src/lib.rs", PLACE),
        ] {
            machine.write(path, text);
        }
        machine
    }

    /// The directory of everything that the machine has.
    fn root(&self) -> PathBuf {
        self.held.path().join(format!("the {}", self.name))
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.root().join(path);
        fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }

    fn command(&self, line: &str) -> Command {
        let mut command = run::command(line);
        command
            .current_dir(self.root().join("shop"))
            .env("CARGO_HOME", self.root().join("cargo home"))
            .env("CARGO_TARGET_DIR", self.root().join("built"))
            .env("RUSTUP_HOME", super::rustup_home())
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        command
    }

    #[track_caller]
    fn build(&self, line: &str) -> Run {
        let built = run::run(&mut self.command(line));
        assert_eq!(built.status, 0, "{built}");
        built
    }

    /// The compiled operator.
    fn binary(&self) -> Vec<u8> {
        let target = self.root().join("built");
        let folders = fs::read_dir(&target).expect("the target directory");
        let mut binaries = folders
            .map(|entry| entry.expect("an entry").path().join("release/shop"))
            .filter(|it| it.is_file());
        fs::read(binaries.next().expect("it was built")).expect("a binary")
    }
}

const BUILD: &str = r#"
fn main() {
    let folder = std::env::var("OUT_DIR").expect("cargo sets it");
    let code = "fn generated() -> &'static str { file!() }\n";
    std::fs::write(format!("{folder}/generated.rs"), code).expect("a file");
}
"#;

const PLACE: &str = "#[inline(never)]\npub fn place() -> &'static str {\n    file!()\n}\n";

#[track_caller]
fn has_no(binary: &[u8], path: &Path) {
    let path = path.to_str().expect("text").as_bytes();
    let at = binary.windows(path.len()).position(|window| window == path);
    if let Some(at) = at {
        let end = (at + 160).min(binary.len());
        panic!("the binary contains {}", String::from_utf8_lossy(&binary[at..end]));
    }
}

#[test]
fn directories_of_the_machine_do_not_change_the_digest() {
    let machines = [Machine::new("one"), Machine::new("other")];
    let digests: Vec<String> = machines
        .iter()
        .map(|machine| {
            let digest = digest(&machine.build("image build --libc glibc"));
            let binary = machine.binary();
            has_no(&binary, &machine.root());
            has_no(&binary, &machine.root().canonicalize().expect("a folder"));
            digest
        })
        .collect();
    assert_eq!(digests[0], digests[1]);

    // The same with flags of the user, which have the paths too.
    let [one, other] = &machines;
    let with = |machine: &Machine| {
        let mut command = machine.command("image build --libc glibc");
        let built = run::run(command.env("RUSTFLAGS", "-Copt-level=1  -Cforce-frame-pointers"));
        assert_eq!(built.status, 0, "{built}");
        has_no(&machine.binary(), &machine.root());
        digest(&built)
    };
    let (one, other) = (with(one), with(other));
    assert_eq!(one, other);
    assert_ne!(one, digests[0], "the flags of the user have no effect");
}

#[test]
fn a_path_dependency_outside_of_the_project_leaves_no_path() {
    let machine = Machine::new("only");
    machine.write(
        "outside/Cargo.toml",
        "[package]\nname = \"outside\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    );
    machine.write("outside/src/lib.rs", PLACE);
    let manifest = fs::read_to_string(machine.root().join("shop/Cargo.toml")).expect("a file");
    let manifest =
        manifest.replace("[dependencies]\n", "[dependencies]\noutside = { path = \"../outside\" }\n");
    machine.write("shop/Cargo.toml", &manifest);
    machine.write("shop/src/main.rs", "fn main() {\n    println!(\"{}\", outside::place());\n}\n");
    machine.build("image build --libc glibc");
    let binary = machine.binary();
    has_no(&binary, &machine.root());
    let place = b"/dependencies/outside/src/lib.rs";
    assert!(binary.windows(place.len()).any(|window| window == place), "the path is not replaced");
}

#[test]
fn the_sbom_has_the_features_of_the_build() {
    let machine = Machine::new("only");
    let components = |line: &str| {
        machine.build(line);
        let blobs = machine.root().join("shop/dist/image/blobs/sha256");
        let texts = fs::read_dir(blobs).expect("a folder").filter_map(|entry| {
            let text = fs::read_to_string(entry.expect("an entry").path()).ok()?;
            text.contains("\"bomFormat\":\"CycloneDX\"").then_some(text)
        });
        let sbom = json(&texts.into_iter().next().expect("the layout has an SBOM"));
        let components = sbom["components"].as_array().expect("components").iter();
        components.map(|it| it["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(components("image build --libc glibc"), ["inside"]);
    assert_eq!(components("image build --libc glibc -- --features optional"), ["inside", "optional"]);
}

/// An SBOM of other versions than those in the binary would be wrong.
#[test]
fn an_outdated_lock_file_is_rejected_for_the_sbom_of_a_binary() {
    let package = Package::new();
    let lock = fs::read_to_string(package.path("Cargo.lock")).expect("a file");
    package.write("Cargo.lock", &lock.replace("1.2.3", "1.2.2"));
    let line = format!("image build --binary {}", super::binary().display());
    let refused = package.run(&line);
    assert_eq!(refused.status, 1, "{refused}");
    assert!(refused.stderr.contains("--locked"), "{refused}");
    assert_eq!(package.run(&format!("{line} --sbom=false")).status, 0);
}
