//! A real registry: Debian's docker-registry on a free port of this machine.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tempfile::TempDir;

/// The user `ci` with the password `secret`, as bcrypt.
const HTPASSWD: &str = "ci:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

pub(crate) struct Registry {
    child: Child,
    folder: TempDir,
    log: Arc<Log>,
    pub(crate) address: String,
}

/// The output of the registry so far.
#[derive(Default)]
struct Log {
    state: Mutex<Output>,
    changed: Condvar,
}

#[derive(Default)]
struct Output {
    text: String,
    has_ended: bool,
}

impl Log {
    /// Collects the output until the process ends.
    fn read(&self, output: PipeReader) {
        let mut output = BufReader::new(output);
        loop {
            let mut line = String::new();
            let read = output.read_line(&mut line).unwrap_or_default();
            let mut state = self.state.lock().expect("no panic");
            state.text.push_str(&line);
            state.has_ended = read == 0;
            self.changed.notify_all();
            if read == 0 {
                return;
            }
        }
    }

    fn text(&self) -> String {
        self.state.lock().expect("no panic").text.clone()
    }
}

/// The address in the log line of a started registry.
fn address(log: &str) -> Option<&str> {
    log.split("listening on ").nth(1)?.split(['"', ' ', '\n']).next()
}

impl Registry {
    /// A registry without authentication.
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::with(false)
    }

    /// A registry for the user `ci` only.
    #[track_caller]
    pub(crate) fn with_login() -> Self {
        Self::with(true)
    }

    #[track_caller]
    fn with(login: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().display().to_string();
        let mut config = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {root}/data}}}}\n\
             http: {{addr: '127.0.0.1:0'}}\n"
        );
        if login {
            fs::write(folder.path().join("htpasswd"), HTPASSWD).expect("a file");
            writeln!(config, "auth: {{htpasswd: {{realm: test, path: {root}/htpasswd}}}}")
                .expect("a String takes all text");
        }
        fs::write(folder.path().join("config.yml"), config).expect("a file");
        let (output, input) = std::io::pipe().expect("a pipe");
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(folder.path().join("config.yml"))
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(input.try_clone().expect("a pipe"))
            .stderr(input)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("docker-registry does not start ({error}): install the Debian package docker-registry, or run `cargo xtask ci`")
            });
        let log = Arc::<Log>::default();
        let reader = log.clone();
        std::thread::spawn(move || reader.read(output));
        let mut registry = Self { child, folder, log, address: String::new() };
        registry.address = registry.listening();
        registry
    }

    /// Waits for the log line with the address.
    #[track_caller]
    fn listening(&self) -> String {
        let state = self.log.state.lock().expect("no panic");
        let is_starting = |output: &mut Output| address(&output.text).is_none() && !output.has_ended;
        let waited = self.log.changed.wait_timeout_while(state, Duration::from_mins(1), is_starting);
        let (state, _) = waited.expect("no panic");
        let found =
            address(&state.text).unwrap_or_else(|| panic!("the registry does not listen: {}", state.text));
        found.to_owned()
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    /// How many uploads it has seen.
    pub(crate) fn uploads(&self) -> usize {
        self.log()
            .lines()
            .filter(|line| line.contains("POST /v2/") && line.contains("/blobs/uploads/"))
            .count()
    }

    /// A reference in this registry.
    pub(crate) fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// A directory for files of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
