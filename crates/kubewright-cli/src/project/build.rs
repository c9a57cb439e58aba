//! Building an operator, and asking its program what it declares.
//!
//! cargo says itself what it does, on standard error. Of what it says to programs, only the paths of executables are
//! read. The operator's program is given no cluster, no input and little time.

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
use kubewright_manifests::declarations::Declarations;
use serde::Deserialize;

use super::Project;
use super::project_file::ProjectFile;
use crate::error::Hint as _;
use crate::scaffold;
use crate::ui::Ui;

/// How long a program may take to say what it declares.
const PATIENCE: Duration = Duration::from_mins(1);

/// A line of what cargo says to programs.
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
    /// Builds the operator, and has its program say what it declares.
    pub(crate) fn declarations(&self, bin: Option<&str>, cargo: &[String], ui: &Ui) -> Result<Declarations> {
        let program = self.build(bin, cargo, ui)?;
        self.declared_by(&program)
    }

    /// What a program of the operator declares.
    pub(crate) fn declared_by(&self, program: &Path) -> Result<Declarations> {
        let kept = Kept::of(program, self.watched_namespace().as_deref());
        if let Some(declarations) = kept.as_ref().and_then(Kept::read) {
            return Ok(declarations);
        }
        let text = self.ask(program)?;
        let declarations = Declarations::read(&text)
            .with_context(|| format!("cannot read what {} declares", shown(program)))?;
        if let Some(kept) = kept {
            kept.write(&text);
        }
        Ok(declarations)
    }

    /// Has cargo build the programs of the package: its standard output is what [`Programs`] reads, its standard error
    /// is for people.
    pub(crate) fn build_command(&self, bin: Option<&str>, arguments: &[String], ui: &Ui) -> Command {
        let mut command = Command::new(cargo());
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_of_another_cargo) {
                command.env_remove(name);
            }
        }
        command.current_dir(self.root()).args(["build", "--message-format=json-render-diagnostics"]);
        match bin {
            Some(name) => command.args(["--bin", name]),
            None => command.arg("--bins"),
        };
        if ui.is_quiet() {
            command.arg("--quiet");
        }
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Builds the programs of the package, and tells where the operator's is.
    fn build(&self, bin: Option<&str>, arguments: &[String], ui: &Ui) -> Result<PathBuf> {
        let mut child = self.build_command(bin, arguments, ui).spawn().map_err(not_started)?;
        let mut programs = Programs::default();
        let stdout = child.stdout.take().context("cargo has no standard output")?;
        for line in BufReader::new(stdout).lines() {
            programs.read(&line.context("cannot read what cargo says")?);
        }
        let status = child.wait().context("cannot wait for cargo")?;
        if !status.success() {
            bail!("the operator does not build");
        }
        programs.operator(self)
    }

    /// What a program prints of itself.
    fn ask(&self, program: &Path) -> Result<String> {
        let mut command = Command::new(program);
        // An operator for its own namespace is told so in its pod; its roles depend on it.
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
        // Both ends are closed when the program has ended, or closed them itself.
        let Ok(printed) = stdout.recv_timeout(PATIENCE) else {
            end(&mut child);
            return Err(anyhow!("{} did not say within {PATIENCE:?} what it declares", shown(program)))
                .hint("does its `main` wait for something before `manager.run()`?");
        };
        let said = stderr.recv_timeout(PATIENCE).unwrap_or_default();
        let status = child.wait().with_context(|| format!("cannot wait for {}", shown(program)))?;
        if !status.success() {
            let said = String::from_utf8_lossy(&said).trim().to_owned();
            let failed = anyhow!("{} cannot say what it declares ({status})", shown(program));
            let failed = if said.is_empty() { failed } else { anyhow!(said).context(failed) };
            return Err(failed)
                .hint("an operator has `#[kubewright::main]`, or calls `kubewright::operator!().run(...)`");
        }
        String::from_utf8(printed)
            .with_context(|| format!("{} printed something that is no text", shown(program)))
    }
}

impl Project {
    /// The namespace that PROJECT has the operator watch, if it is not for all.
    pub(crate) fn watched_namespace(&self) -> Option<String> {
        let file = ProjectFile::load(self.root()).ok()?;
        scaffold::watched(&file)
    }
}

/// Whether a cargo that has started this program has said something of it in a variable. Build scripts look at these:
/// ring's, and all that depends on it, would be built again whenever one builds with and without them in turn.
fn is_of_another_cargo(name: &str) -> bool {
    let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];
    let names = ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];
    prefixes.iter().any(|prefix| name.starts_with(prefix)) || names.contains(&name)
}

/// The cargo to call.
pub(super) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Why cargo did not start, and what to do.
pub(crate) fn not_started(error: std::io::Error) -> anyhow::Error {
    let missing = error.kind() == ErrorKind::NotFound;
    let error = anyhow!(error).context(format!("cannot start {}", Path::new(&cargo()).display()));
    if missing { error.hint("install Rust, or set CARGO to the path of cargo") } else { error }
}

/// The programs that a build made, as cargo tells of them.
#[derive(Debug, Default)]
pub(crate) struct Programs(BTreeMap<String, PathBuf>);

impl Programs {
    /// Takes a line of cargo's standard output.
    pub(crate) fn read(&mut self, line: &str) {
        // Build scripts and wrappers may print lines of their own.
        let Ok(message) = serde_json::from_str::<Message>(line) else { return };
        if let (true, Some(target), Some(executable)) =
            (message.reason == "compiler-artifact", message.target, message.executable)
            && target.kind.iter().any(|kind| kind == "bin")
        {
            self.0.insert(target.name, executable);
        }
    }

    /// The operator's: the only one.
    pub(crate) fn operator(self, project: &Project) -> Result<PathBuf> {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        match names[..] {
            [] => Err(no_program(project)),
            [_] => self.0.into_values().next().context("a program was found"),
            _ => Err(several_programs(&names)),
        }
    }
}

/// A package that is no operator's.
pub(super) fn no_program(project: &Project) -> anyhow::Error {
    anyhow!("the package in {} has no program", project.root().display())
        .hint("an operator has a src/main.rs with `#[kubewright::main]`")
}

pub(super) fn several_programs(names: &[&str]) -> anyhow::Error {
    anyhow!("the package has several programs: {}", names.join(", ")).hint("choose the operator's with --bin")
}

/// What a program said of itself, kept beside it: the same program says the same again, and definitions with a whole
/// pod in them take it a second.
struct Kept {
    file: PathBuf,
    /// Tells one build of the program from another.
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

    fn read(&self) -> Option<Declarations> {
        let text = fs::read_to_string(&self.file).ok()?;
        let (build, text) = text.split_once('\n')?;
        (build == self.build).then(|| Declarations::read(text).ok()).flatten()
    }

    /// It is a favour to the next run, and no harm if it fails.
    fn write(&self, text: &str) {
        let _ = fs::write(&self.file, format!("{}\n{text}", self.build));
    }
}

/// Reads to the end, beside whoever waits for it.
fn reader(pipe: Option<impl std::io::Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is all there is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

fn end(child: &mut Child) {
    // It may have ended meanwhile.
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
    fn settings_of_cargo_are_kept_and_what_it_says_of_a_package_is_not() {
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
