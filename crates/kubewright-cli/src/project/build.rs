//! Builds an operator and runs its binary to get the inventory of what it declares.
//!
//! cargo prints its own progress to standard error. Of its JSON messages, only the executable paths are read.
//! The operator's binary runs without a cluster or input, and with a timeout.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow, bail};
use kubewright_manifests::inventory::Inventory;
use serde::Deserialize;

use super::Project;
use super::project_file::{ProjectFile, WebhookCerts};
use crate::error::Hint as _;
use crate::scaffold;
use crate::ui::Ui;

/// Timeout for printing the inventory.
const PATIENCE: Duration = Duration::from_mins(1);

/// How cargo builds an operator.
#[derive(Debug)]
pub(crate) struct Build<'a> {
    /// `build`, or a subcommand with the same arguments.
    pub(crate) subcommand: &'a str,
    /// The arguments that select the binary.
    pub(crate) selection: Vec<String>,
    pub(crate) arguments: &'a [String],
    /// Environment variables for cargo.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// A JSON message of cargo.
#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

impl Project {
    /// Builds the operator and reads its inventory.
    pub(crate) fn inventory(&self, bin: Option<&str>, cargo: &[String], ui: &Ui) -> Result<Inventory> {
        let selection = match self.metadata(bin) {
            Ok(metadata) => metadata.selection,
            // The build reports what is wrong with the project.
            Err(_) => {
                bin.map_or_else(|| vec!["--bins".to_owned()], |bin| vec!["--bin".to_owned(), bin.to_owned()])
            }
        };
        let build = Build { subcommand: "build", selection, arguments: cargo, variables: Vec::new() };
        let program = self.build(&build, ui)?;
        self.declared_by(&program)
    }

    /// Reads the inventory of an operator binary.
    pub(crate) fn declared_by(&self, program: &Path) -> Result<Inventory> {
        let kept = Kept::of(program, self.watched_namespace().as_deref());
        let mut inventory = if let Some(inventory) = kept.as_ref().and_then(Kept::read) {
            inventory
        } else {
            let text = self.ask(program)?;
            let inventory = Inventory::read(&text)
                .with_context(|| format!("cannot read the inventory of {}", shown(program)))?;
            if let Some(kept) = kept {
                kept.write(&text);
            }
            inventory
        };
        // Flags in config/default select the certificate mode, so the program does not know it.
        inventory.webhook_certificates &= self.issues_certificates();
        Ok(inventory)
    }

    /// The command that builds the operator's binary. [`Programs`] reads its standard output; its standard
    /// error goes to the user. `selection` is [`Metadata::selection`](super::Metadata::selection).
    pub(crate) fn build_command(&self, selection: &[String], arguments: &[String], ui: &Ui) -> Command {
        let build =
            Build { subcommand: "build", selection: selection.to_vec(), arguments, variables: Vec::new() };
        self.command(&build, ui)
    }

    fn command(&self, build: &Build<'_>, ui: &Ui) -> Command {
        let mut command = Command::new(cargo());
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_of_another_cargo) {
                command.env_remove(name);
            }
        }
        command.current_dir(self.root()).args([build.subcommand, "--message-format=json-render-diagnostics"]);
        command.args(&build.selection);
        if ui.is_quiet() {
            command.arg("--quiet");
        }
        command.args(build.arguments).envs(build.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Builds the package and returns the path of the operator binary.
    pub(crate) fn build(&self, build: &Build<'_>, ui: &Ui) -> Result<PathBuf> {
        let mut child = self.command(build, ui).spawn().map_err(not_started)?;
        let mut programs = Programs::default();
        let stdout = child.stdout.take().context("cargo has no standard output")?;
        for line in BufReader::new(stdout).lines() {
            programs.read(&line.context("cannot read the output of cargo")?);
        }
        let status = child.wait().context("cannot wait for cargo")?;
        if !status.success() {
            bail!("failed to build the operator");
        }
        programs.operator(self)
    }

    /// Runs the binary and returns the inventory that it prints.
    fn ask(&self, program: &Path) -> Result<String> {
        let mut command = Command::new(program);
        // A namespaced operator gets its namespace from its Pod spec, and its RBAC rules depend on it.
        if let Some(namespace) = self.watched_namespace() {
            command.args(["--namespace", &namespace]);
        }
        let mut child = command
            .env("KUBEWRIGHT_MANIFESTS", "1")
            .current_dir(self.root())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", shown(program)))?;
        let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
        // The pipes close when the program exits or closes them.
        let Ok(printed) = stdout.recv_timeout(PATIENCE) else {
            end(&mut child);
            return Err(anyhow!("{} did not print its inventory within {PATIENCE:?}", shown(program)))
                .hint("check that `main` does not block before `manager.run()`");
        };
        let said = stderr.recv_timeout(PATIENCE).unwrap_or_default();
        let status = child.wait().with_context(|| format!("cannot wait for {}", shown(program)))?;
        if !status.success() {
            let said = String::from_utf8_lossy(&said).trim().to_owned();
            let failed = anyhow!("{} failed to print its inventory ({status})", shown(program));
            let failed = if said.is_empty() { failed } else { anyhow!(said).context(failed) };
            return Err(failed).hint(
                "the operator must use `#[kubewright::main]` or call `kubewright::operator!().run(...)`",
            );
        }
        String::from_utf8(printed).with_context(|| format!("{} printed invalid UTF-8", shown(program)))
    }
}

impl Project {
    /// The namespace that PROJECT restricts the operator to, if any.
    pub(crate) fn watched_namespace(&self) -> Option<String> {
        let file = ProjectFile::load(self.root()).ok()?;
        scaffold::watched(&file)
    }

    /// Whether PROJECT has no kinds, as after `init`.
    pub(crate) fn is_empty(&self) -> bool {
        ProjectFile::load(self.root()).is_ok_and(|file| file.resources.is_empty())
    }

    /// Whether the operator issues the certificates of its webhooks, according to PROJECT.
    fn issues_certificates(&self) -> bool {
        let file = ProjectFile::load(self.root());
        file.map_or(true, |file| file.webhook_certs() == WebhookCerts::SelfSigned)
    }
}

/// Whether a variable was set by a cargo that started this process. Build scripts read these: ring and its
/// dependents would be rebuilt whenever builds with and without them alternate.
fn is_of_another_cargo(name: &str) -> bool {
    let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];
    let names = ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];
    prefixes.iter().any(|prefix| name.starts_with(prefix)) || names.contains(&name)
}

/// The cargo executable.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The error for a cargo that did not start.
pub(crate) fn not_started(error: std::io::Error) -> anyhow::Error {
    let missing = error.kind() == ErrorKind::NotFound;
    let error = anyhow!(error).context(format!("cannot start {}", Path::new(&cargo()).display()));
    if missing { error.hint("install Rust, or set CARGO to the path of cargo") } else { error }
}

/// The binaries of a build, from cargo's messages.
#[derive(Debug, Default)]
pub(crate) struct Programs(BTreeMap<String, PathBuf>);

impl Programs {
    /// Reads a line of cargo's standard output.
    pub(crate) fn read(&mut self, line: &str) {
        // Build scripts and wrappers may print other lines.
        let Ok(message) = serde_json::from_str::<Message>(line) else { return };
        if let (true, Some(target), Some(executable)) =
            (message.reason == "compiler-artifact", message.target, message.executable)
            && target.kind.iter().any(|kind| kind == "bin")
        {
            self.0.insert(target.name, executable);
        }
    }

    /// The operator: the only binary.
    pub(crate) fn operator(self, project: &Project) -> Result<PathBuf> {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        match names[..] {
            [] => Err(no_program(project)),
            [_] => self.0.into_values().next().context("no binary found"),
            _ => Err(several_programs(&names)),
        }
    }
}

/// The error for a package without binaries.
pub(super) fn no_program(project: &Project) -> anyhow::Error {
    anyhow!("the package in {} has no binary", project.root().display())
        .hint("add a src/main.rs with `#[kubewright::main]`")
}

pub(super) fn several_programs(names: &[&str]) -> anyhow::Error {
    anyhow!("the package has several binaries: {}", names.join(", ")).hint("select the operator with --bin")
}

/// The inventory of a binary, cached beside it. The same binary prints the same inventory, which takes a
/// second for CRDs with embedded Pod templates.
struct Kept {
    file: PathBuf,
    /// Identifies the build of the binary.
    build: String,
}

impl Kept {
    fn of(program: &Path, namespace: Option<&str>) -> Option<Self> {
        let built = fs::metadata(program).ok()?;
        let modified = built.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let build = format!(
            "{} {} {} {}",
            env!("CARGO_PKG_VERSION"),
            built.len(),
            modified.as_nanos(),
            namespace.unwrap_or_default()
        );
        let mut name = program.file_name()?.to_owned();
        name.push(".manifests");
        Some(Self { file: program.with_file_name(name), build })
    }

    fn read(&self) -> Option<Inventory> {
        let text = fs::read_to_string(&self.file).ok()?;
        let (build, text) = text.split_once('\n')?;
        (build == self.build).then(|| Inventory::read(text).ok()).flatten()
    }

    /// Failures are ignored: the cache is optional.
    fn write(&self, text: &str) {
        let _ = fs::write(&self.file, format!("{}\n{text}", self.build));
    }
}

/// Reads to the end on another thread.
fn reader(pipe: Option<impl std::io::Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // On an error, keep what was read.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

fn end(child: &mut Child) {
    // It may have exited already.
    let _ = child.kill();
    let _ = child.wait();
}

fn shown(program: &Path) -> String {
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_settings_are_kept_and_package_variables_are_removed() {
        for kept in
            ["CARGO", "CARGO_TARGET_DIR", "CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_BUILD_JOBS", "PATH"]
        {
            assert!(!is_of_another_cargo(kept), "{kept}");
        }
        for gone in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_BIN_EXE_kubewright", "OUT_DIR"] {
            assert!(is_of_another_cargo(gone), "{gone}");
        }
    }
}
