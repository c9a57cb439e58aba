//! Compiles the operator for a platform.
//!
//! Paths of this machine are removed from the binary, so that the same source gives the same digest on other
//! machines. cargo prints its own progress.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};

use super::platform::{Libc, Platform};
use crate::error::Hint as _;
use crate::project::{Build, Project};
use crate::ui::Ui;

/// What to compile.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    pub(crate) bin: Option<&'a str>,
    pub(crate) profile: &'a str,
    pub(crate) libc: Libc,
    /// Further arguments for cargo.
    pub(crate) cargo: &'a [String],
}

/// Compiles the operator and returns the path of its binary.
pub(crate) fn compile(
    project: &Project,
    platform: Platform,
    options: &Options<'_>,
    ui: &Ui,
) -> Result<PathBuf> {
    if options.libc == Libc::Glibc && (cfg!(not(target_os = "linux")) || Platform::host() != Some(platform)) {
        return Err(anyhow!(
            "`--libc glibc` cannot build for {platform}: it copies this machine's libraries"
        ))
        .hint("use `--libc musl` for other platforms");
    }
    let target = platform.target(options.libc);
    ensure_installed(project, target)?;
    let uses_zig = options.libc == Libc::Musl && has_program("cargo-zigbuild");
    ui.note(&format!(
        "compiling for {platform} ({target}{})",
        if uses_zig { ", with cargo-zigbuild" } else { "" }
    ));
    let arguments = arguments(project, target, options)?;
    let build = Build {
        subcommand: if uses_zig { "zigbuild" } else { "build" },
        selection: match options.bin {
            Some(name) => vec!["--bin".to_owned(), name.to_owned()],
            None => vec!["--bins".to_owned()],
        },
        arguments: &arguments,
        variables: rust_flags(project)?,
    };
    project.build(&build, ui).map_err(|error| {
        let cross = options.libc == Libc::Musl && !uses_zig;
        if cross { error.hint(linker_advice(platform)) } else { error }
    })
}

/// C code, such as that of ring, needs a C compiler for the target.
fn linker_advice(platform: Platform) -> String {
    let install = if Platform::host() == Some(platform) {
        "if a C compiler is missing, install musl-gcc (Debian: `apt-get install musl-tools`) or cargo-zigbuild"
    } else {
        "if a linker or C compiler is missing, install cargo-zigbuild, which compiles for all platforms"
    };
    install.to_owned()
}

fn arguments(project: &Project, target: &str, options: &Options<'_>) -> Result<Vec<String>> {
    let mut arguments =
        vec!["--profile".to_owned(), options.profile.to_owned(), "--target".to_owned(), target.to_owned()];
    // Joined with the user's `build.rustflags`. The user's `target.*.rustflags` replace them: cargo has no
    // way to add to those.
    if env::var_os("RUSTFLAGS").is_none() && env::var_os("CARGO_ENCODED_RUSTFLAGS").is_none() {
        let flags: Vec<String> = remapped(project)?.iter().map(|flag| format!("{flag:?}")).collect();
        arguments.extend(["--config".to_owned(), format!("build.rustflags=[{}]", flags.join(", "))]);
    }
    arguments.extend_from_slice(options.cargo);
    Ok(arguments)
}

/// `RUSTFLAGS` replace the flags of all configuration files; then ours are added to the variable.
fn rust_flags(project: &Project) -> Result<Vec<(&'static str, String)>> {
    let remapped = remapped(project)?;
    if let Ok(encoded) = env::var("CARGO_ENCODED_RUSTFLAGS") {
        let all: Vec<&str> = encoded.split('\u{1f}').chain(remapped.iter().map(String::as_str)).collect();
        return Ok(vec![("CARGO_ENCODED_RUSTFLAGS", all.join("\u{1f}"))]);
    }
    if let Ok(flags) = env::var("RUSTFLAGS") {
        return Ok(vec![("RUSTFLAGS", format!("{flags} {}", remapped.join(" ")))]);
    }
    Ok(Vec::new())
}

/// Compiler flags that replace paths of this machine in panic messages.
fn remapped(project: &Project) -> Result<Vec<String>> {
    let mut flags = Vec::new();
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let root = project.root().canonicalize().context("cannot find the project")?;
    for (path, name) in home.into_iter().map(|home| (home, "/cargo")).chain([(root, "/operator")]) {
        let path = path.to_str().context("a path of the project is not UTF-8")?.to_owned();
        // Flags in RUSTFLAGS are separated by spaces.
        if !path.contains([' ', '=']) {
            flags.push(format!("--remap-path-prefix={path}={name}"));
        }
    }
    Ok(flags)
}

/// Fails with the rustup command if the standard library of the target is missing.
fn ensure_installed(project: &Project, target: &str) -> Result<()> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc)
        .current_dir(project.root())
        .args(["--print", "target-libdir", "--target", target])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", Path::new(&rustc).display()))
        .hint("install Rust, or set RUSTC to the path of rustc")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if is_standard_library(&folder) {
        return Ok(());
    }
    let error = anyhow!("the Rust target {target} is not installed");
    let alternative = match Platform::host() {
        Some(host) if cfg!(target_os = "linux") && host.target(Libc::Musl) == target => {
            "; or add `--libc glibc` for an image with a copy of this machine's C library"
        }
        _ => "",
    };
    Err(error).hint(format!("run `rustup target add {target}`{alternative}"))
}

fn is_standard_library(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
}

/// Whether a program is in `PATH`.
pub(crate) fn has_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_a_compiler_for_the_platform() {
        let host = Platform::host().unwrap();
        assert!(linker_advice(host).contains("musl-tools"));
        let other = if host.architecture() == "arm64" { "linux/amd64" } else { "linux/arm64" };
        assert!(linker_advice(other.parse().unwrap()).ends_with("which compiles for all platforms"));
    }

    #[test]
    fn a_target_without_a_standard_library_is_not_installed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_standard_library(&folder.path().join("lib")));
        assert!(!is_standard_library(folder.path()));
        fs::write(folder.path().join("libstd-0123.rlib"), "").unwrap();
        assert!(is_standard_library(folder.path()));
    }
}
