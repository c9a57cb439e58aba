//! Compiles the operator for a platform.
//!
//! The flags of [`paths`] remove paths of this machine from the binary, so that the same source gives the same
//! digest on other machines. cargo prints its own progress.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};

use super::package::Dependencies;
use super::paths;
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
    let flags = Flags::add(
        &remapped(project, target, options)?,
        env::var("CARGO_ENCODED_RUSTFLAGS").ok().as_deref(),
        env::var("RUSTFLAGS").ok().as_deref(),
    );
    let mut arguments =
        vec!["--profile".to_owned(), options.profile.to_owned(), "--target".to_owned(), target.to_owned()];
    arguments.extend(flags.arguments);
    arguments.extend_from_slice(options.cargo);
    let build = Build {
        subcommand: if uses_zig { "zigbuild" } else { "build" },
        selection: match options.bin {
            Some(name) => vec!["--bin".to_owned(), name.to_owned()],
            None => vec!["--bins".to_owned()],
        },
        arguments: &arguments,
        variables: flags.variables,
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

/// The flags that remove paths. Without the dependencies, such as in a partial offline cache, those of the
/// workspace remain.
fn remapped(project: &Project, target: &str, options: &Options<'_>) -> Result<Vec<String>> {
    let all = Dependencies { target, cargo: options.cargo, locked: false };
    let graph = project.dependencies(all).or_else(|_| project.packages())?;
    paths::remapped(&graph)
}

/// Compiler flags as arguments and variables for cargo.
#[derive(Debug, PartialEq, Eq)]
struct Flags {
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl Flags {
    /// Adds flags to the user's. Both forms allow spaces in a flag.
    ///
    /// The user's variables `encoded` and `plain` replace the flags of configuration files, so the flags are
    /// added to the variable. Otherwise cargo joins them with the user's `build.rustflags`. The user's
    /// `target.*.rustflags` replace them: cargo has no way to add to those and to `build.rustflags`.
    fn add(flags: &[String], encoded: Option<&str>, plain: Option<&str>) -> Self {
        const SEPARATOR: &str = "\u{1f}";
        let users: Vec<&str> = match (encoded, plain) {
            (Some(encoded), _) => encoded.split(SEPARATOR).filter(|flag| !flag.is_empty()).collect(),
            (None, Some(plain)) => plain.split_whitespace().collect(),
            (None, None) => {
                // A JSON array of strings is also a TOML array.
                let list = serde_json::json!(flags);
                let arguments = vec!["--config".to_owned(), format!("build.rustflags={list}")];
                return Self { arguments, variables: Vec::new() };
            }
        };
        let all: Vec<&str> = users.into_iter().chain(flags.iter().map(String::as_str)).collect();
        let variables = vec![("CARGO_ENCODED_RUSTFLAGS", all.join(SEPARATOR))];
        Self { arguments: Vec::new(), variables }
    }
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
    fn flags_with_spaces_are_added_to_those_of_the_user() {
        let ours = ["--remap-path-prefix=/a b=/c".to_owned()];
        let variable = |value: &str| Flags {
            arguments: Vec::new(),
            variables: vec![("CARGO_ENCODED_RUSTFLAGS", value.to_owned())],
        };
        let added = |encoded, plain| Flags::add(&ours, encoded, plain);
        assert_eq!(added(None, Some("-g  -O")), variable("-g\u{1f}-O\u{1f}--remap-path-prefix=/a b=/c"));
        assert_eq!(added(Some("-L a b"), Some("-g")), variable("-L a b\u{1f}--remap-path-prefix=/a b=/c"));
        assert_eq!(added(Some(""), None), variable("--remap-path-prefix=/a b=/c"));
        let config = r#"build.rustflags=["--remap-path-prefix=/a b=/c"]"#;
        let arguments = vec!["--config".to_owned(), config.to_owned()];
        assert_eq!(added(None, None), Flags { arguments, variables: Vec::new() });
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
