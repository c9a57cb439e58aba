//! Runs the binary in a clean environment.

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Variables that affect color, width or backtraces.
const DECIDING: [&str; 9] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "TERM",
];

/// The command for the binary.
pub(crate) fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command.args(line.split_whitespace()).stdin(Stdio::null());
    for name in DECIDING {
        command.env_remove(name);
    }
    command
}

/// The target directory of the tests. Test projects are built there too, since it has their dependencies.
pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder").to_owned()
}

/// Makes a test project use the dependencies that the workspace has built: with the versions of its lock file, and with
/// its features.
pub(crate) fn share_dependencies(project: &Path) {
    lock(project);
    let path = project.join("Cargo.toml");
    let manifest = fs::read_to_string(&path).expect("the project has a manifest");
    if !manifest.contains("workspace-features") {
        // The resolver of the scaffold enables features of other platforms too.
        let manifest = manifest.replace("\nresolver = \"1\"\n", "\n");
        let path_of_features = Path::new(ROOT).join("features").canonicalize().expect("the workspace has it");
        let dependency =
            format!("\n[dependencies.workspace-features]\npath = \"{}\"\n", path_of_features.display());
        fs::write(path, manifest + &dependency).expect("the manifest can be written");
    }
}

/// Makes a test project use the versions in the lock file of the workspace, which are downloaded already.
pub(crate) fn lock(project: &Path) {
    fs::copy(Path::new(ROOT).join("Cargo.lock"), project.join("Cargo.lock"))
        .expect("the workspace is locked");
}

/// kubectl without the user's configuration and locale.
pub(crate) fn kubectl() -> Command {
    let mut command = Command::new("kubectl");
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", env!("CARGO_TARGET_TMPDIR")).stdin(Stdio::null());
    command
}

/// Runs `kubewright` to completion.
pub(crate) fn kubewright(line: &str) -> Run {
    run(&mut command(line))
}

pub(crate) fn run(command: &mut Command) -> Run {
    let output = command.output().expect("the binary starts");
    Run {
        status: output.status.code().expect("the binary exits by itself"),
        stdout: String::from_utf8(output.stdout).expect("results are text"),
        stderr: String::from_utf8(output.stderr).expect("errors are text"),
    }
}

/// The result of a run. Its display is stable, for snapshots.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Standard output of a successful run without messages.
    #[track_caller]
    pub(crate) fn result(self) -> String {
        assert_eq!((self.status, self.stderr.as_str()), (0, ""), "{self}");
        self.stdout
    }
}

impl Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit status {}", self.status)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                writeln!(f, "--- {name}")?;
                // clap pads blank lines.
                without_build(text).lines().try_for_each(|line| writeln!(f, "{}", line.trim_end()))?;
            }
        }
        Ok(())
    }
}

/// Redacts what differs between builds.
fn without_build(text: &str) -> String {
    let commit: Vec<&str> = option_env!("KUBEWRIGHT_GIT_COMMIT")
        .map(|commit| commit.get(..9).unwrap_or(commit))
        .into_iter()
        .chain(option_env!("KUBEWRIGHT_GIT_COMMIT_DATE"))
        .collect();
    text.replace(&format!(" ({})", commit.join(" ")), "").replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
}
