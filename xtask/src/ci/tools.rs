//! The programs that the checks call, beyond Rust and a C compiler.
//!
//! Owns the list and the versions. What is missing is installed by `.ci/install` where that asks nobody for
//! anything: as root on a Debian machine, or when it writes nothing outside `target/`. Otherwise the answer
//! is a sentence that says what to install.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// The oldest kubectl whose requests and output the tests know.
const KUBECTL: (u32, u32) = (1, 32);

/// Runs a program and gives what it printed, or nothing if it is not there or fails.
pub type Probe<'a> = &'a dyn Fn(&str, &[&str]) -> Option<String>;

/// A program that is not there, or too old.
#[derive(Debug, PartialEq, Eq)]
pub struct Lack {
    /// Its name, with what is wrong with it.
    pub what: String,
    /// How to get it.
    pub hint: &'static str,
    /// Whether `.ci/install` gets it without touching anything outside `target/`.
    pub stays_in_target: bool,
}

/// Makes sure that every program is there, and installs what is not if that disturbs nobody.
pub fn check(root: &Path) -> Result<()> {
    let path = path(root)?;
    let probe = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).env("PATH", &path).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let lacks = missing(&probe);
    if lacks.is_empty() {
        return Ok(());
    }
    let debian = probe("apt-get", &["--version"]).is_some();
    let may_install = is_root(&probe) || lacks.iter().all(|lack| lack.stays_in_target);
    if !debian || !may_install {
        bail!(sentence(&lacks));
    }
    let names: Vec<_> = lacks.iter().map(|lack| lack.what.as_str()).collect();
    eprintln!("ci: {}: running .ci/install", names.join(", "));
    let status = Command::new(root.join(".ci/install")).status().context("start .ci/install")?;
    ensure!(status.success(), "`.ci/install` ended with {status}; what went wrong stands above");
    let lacks = missing(&probe);
    ensure!(lacks.is_empty(), sentence(&lacks));
    Ok(())
}

/// The `PATH` for every step: what `.ci/install` put into the checkout comes first.
pub fn path(root: &Path) -> Result<OsString> {
    let old = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(root.join("target/tools/bin")).chain(env::split_paths(&old));
    env::join_paths(folders)
        .context("put target/tools/bin on PATH; does the checkout's path contain a colon?")
}

/// What is not there, or too old, as far as `probe` can tell.
pub fn missing(probe: Probe<'_>) -> Vec<Lack> {
    let mut lacks = Vec::new();
    let mut lack = |what: String, hint, stays_in_target| lacks.push(Lack { what, hint, stays_in_target });
    if probe("cargo", &["fmt", "--version"]).is_none() {
        lack("no rustfmt".into(), "run `rustup component add rustfmt`", false);
    }
    if probe("cargo", &["clippy", "--version"]).is_none() {
        lack("no clippy".into(), "run `rustup component add clippy`", false);
    }
    if probe("git", &["--version"]).is_none() {
        lack("no git".into(), "install it, on Debian `apt-get install git`", false);
    }
    if probe("python3", &["-m", "pip", "--version"]).is_none() {
        lack(
            "no python3 with pip".into(),
            "install both, on Debian `apt-get install python3 python3-pip`",
            false,
        );
    }
    let hint = "install 1.32 or newer, on Debian `.ci/install` puts one into target/tools/bin";
    match probe("kubectl", &["version", "--client", "--output=json"]) {
        None => lack("no kubectl".into(), hint, true),
        Some(answer) => match kubectl_version(&answer) {
            Some(version) if version >= KUBECTL => {}
            Some((major, minor)) => {
                lack(
                    format!("kubectl {major}.{minor} is older than {}.{}", KUBECTL.0, KUBECTL.1),
                    hint,
                    true,
                );
            }
            None => lack("kubectl does not say its version".into(), hint, true),
        },
    }
    if probe("etcd", &["--version"]).is_none() {
        lack("no etcd".into(), "install it, on Debian `.ci/install` puts one into target/tools/bin", true);
    }
    let browser = ["chromium", "google-chrome"].iter().any(|it| probe(it, &["--version"]).is_some());
    if !browser || probe("chromedriver", &["--version"]).is_none() {
        lack(
            "no Chromium with its driver".into(),
            "install both, on Debian `apt-get install chromium chromium-driver`",
            false,
        );
    }
    lacks
}

/// Major and minor of `kubectl version --client --output=json`.
fn kubectl_version(answer: &str) -> Option<(u32, u32)> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let version = answer["clientVersion"]["gitVersion"].as_str()?;
    let mut numbers = version.strip_prefix('v')?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn is_root(probe: Probe<'_>) -> bool {
    probe("id", &["-u"]).is_some_and(|id| id.trim() == "0")
}

fn sentence(lacks: &[Lack]) -> String {
    let parts: Vec<_> = lacks.iter().map(|lack| format!("{}: {}", lack.what, lack.hint)).collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubectl(git_version: &str) -> String {
        format!(r#"{{"clientVersion": {{"gitVersion": "{git_version}"}}}}"#)
    }

    #[test]
    fn a_machine_with_everything_lacks_nothing() {
        let probe = |program: &str, _: &[&str]| match program {
            "kubectl" => Some(kubectl("v1.36.4")),
            _ => Some(String::new()),
        };
        assert_eq!(missing(&probe), []);
    }

    #[test]
    fn an_empty_machine_is_told_every_program_at_once() {
        insta::assert_snapshot!(sentence(&missing(&|_, _| None)).replace("; ", "\n"), @"
        no rustfmt: run `rustup component add rustfmt`
        no clippy: run `rustup component add clippy`
        no git: install it, on Debian `apt-get install git`
        no python3 with pip: install both, on Debian `apt-get install python3 python3-pip`
        no kubectl: install 1.32 or newer, on Debian `.ci/install` puts one into target/tools/bin
        no etcd: install it, on Debian `.ci/install` puts one into target/tools/bin
        no Chromium with its driver: install both, on Debian `apt-get install chromium chromium-driver`
        ");
    }

    #[test]
    fn an_old_kubectl_counts_as_missing_and_is_got_without_root() {
        let probe = |program: &str, _: &[&str]| match program {
            "kubectl" => Some(kubectl("v1.20.2")),
            _ => Some(String::new()),
        };
        let lacks = missing(&probe);
        assert_eq!(lacks[0].what, "kubectl 1.20 is older than 1.32");
        assert!(lacks.iter().all(|lack| lack.stays_in_target));
    }

    #[test]
    fn versions_of_vendors_are_read_too() {
        assert_eq!(kubectl_version(&kubectl("v1.32.4-dispatcher")), Some((1, 32)));
        assert_eq!(kubectl_version(&kubectl("v1.33.0+k3s1")), Some((1, 33)));
        assert_eq!(kubectl_version("Client Version"), None);
    }
}
